"""Kernels compiled for cards that need not be here: their own code, and text from which later ones' is made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mirabelle.backends.cuda import modules
from mirabelle.backends.cuda.ahead.driver import Kernel
from mirabelle.backends.host import diskcache

_WORD = re.compile(r"(sm|compute)_(\d+)(\d)$")


class Architecture(NamedTuple):
    """A generation of cards, and whether the driver makes code of PTX for it and for later ones."""

    capability: tuple[int, int]
    is_text: bool

    def __str__(self) -> str:
        return f"{'compute' if self.is_text else 'sm'}_{self.capability[0]}{self.capability[1]}"

    @property
    def early(self) -> bool:
        """Do kernels begin by waiting for the one before them?"""
        return self.capability >= modules.EARLY_FROM


def architectures(said: str | Sequence[str] | None, here: tuple[int, int]) -> list[Architecture]:
    """What is asked for: by default code for the card that programs are for, and text for later ones.

    >>> [str(a) for a in architectures("sm_80, sm_90", (9, 0))], [str(a) for a in architectures(None, (9, 0))]
    (['sm_80', 'sm_90', 'compute_90'], ['sm_90', 'compute_90'])
    """
    words = [said] if isinstance(said, str) else said or ["sm_{}{}".format(*here)]
    found = []
    for word in [w.strip() for text in words for w in text.split(",")]:
        known = _WORD.match(word)
        if known is None:
            raise ValueError(
                f"arch says for which cards a library is, and was {word!r}: `arch='sm_90'` is code for cards "
                "of compute capability 9.0, `arch='compute_90'` is text that the driver compiles for these and "
                "later ones, and `arch=['sm_80', 'sm_90']` is several."
            )
        kind, major, minor = known.groups()
        found.append(Architecture((int(major), int(minor)), kind == "compute"))
    if not any(a.is_text for a in found):
        found.append(Architecture(max(a.capability for a in found), True))
    return list(dict.fromkeys(found))


def image(kernel: Kernel, architecture: Architecture) -> tuple[bytes, str]:
    """A kernel's code for an architecture, and the name of its entry. (Text ends with a zero.)"""
    source, functions, contract = kernel.source, kernel.functions, kernel.contract
    capability = architecture.capability
    if architecture.is_text:
        text, entry = modules.text_of(source, functions, capability, contract)
        return text.encode() + b"\0", entry
    # (As for kernels that are run here, which may have been compiled before.)
    name = None if functions else diskcache.entry_key(modules.depends_on(source, capability, contract))
    there = None if name is None else diskcache.read(name)
    if there is not None:
        return there
    text, entry = modules.text_of(source, functions, capability, contract)
    code = modules.assembled(text, capability)
    if name is not None:
        diskcache.write(name, code, entry)
    return code, entry


__all__ = ["Architecture", "architectures", "image"]
