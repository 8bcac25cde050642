"""Samplers by name, and draws: one call of one sampler, for any part of an array.

A *block sampler* makes one value for each of `lanes` neighbouring elements from one block of
words. A *rejecting* sampler makes a proposal for one element, as often as it takes; a block sampler
may go on as one for the elements it refuses.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.arraytypes.random import blocks, counting, elementary, philox, rejection

# The modules whose text makes up a kernel, each in need only of those before it.
MODULES = (philox, elementary, blocks, rejection, counting)
MARK = "# Kernel source"
# After this many attempts the last proposal is taken as it is, so that no kernel runs for ever.
# (No distribution needs more than about 1.6 attempts on average.)
ATTEMPTS = 10_000


@dataclass(frozen=True)
class Sampler:
    """How elements come of words.

    `block` is called as `block(place, stream, *parameters)` and returns `lanes` values, after as many
    truth values (accepted?) if there is `again`, which is called as `again(index, attempt, stream,
    *parameters)` and returns (accepted, value). Without `block`, `again` makes the first attempt too.
    `parameters` are the dtypes of the parameters.
    """

    name: str
    dtype: np.dtype
    lanes: int = 1
    block: Callable[..., Any] | None = None
    again: Callable[..., Any] | None = None
    parameters: tuple[np.dtype, ...] = ()


@dataclass(frozen=True)
class Draw:
    """One call: a sampler, the stream of this call, and the parameters.

    A parameter is a number, or a view of memory that holds one for each element, in C order.
    """

    sampler: Sampler
    stream: tuple[int, int, int, int]
    parameters: tuple[Any, ...] = ()


F4, F8, I8, U4, U8 = (np.dtype(c) for c in ("f4", "f8", "i8", "u4", "u8"))

TABLE: dict[str, Sampler] = {
    s.name: s
    for s in (
        Sampler("words_4", U4, 4, blocks.four_words),
        Sampler("words_8", U8, 2, blocks.two_long_words),
        Sampler("uniform", F8, 2, blocks.uniform),
        Sampler("uniform_4", F4, 4, blocks.uniform_4),
        Sampler("exponential", F8, 2, blocks.exponential),
        Sampler("exponential_4", F4, 4, blocks.exponential_4),
        Sampler("normal", F8, 2, blocks.normal),
        Sampler("normal_4", F4, 4, blocks.normal_4),
        Sampler("bounded_4", I8, 4, blocks.bounded_4, blocks.bounded_4_again, (U8, U8, U8)),
        Sampler("bounded_8", I8, 2, blocks.bounded_8, blocks.bounded_8_again, (U8, U8, U8)),
        Sampler("bounded_each", I8, again=blocks.bounded_each, parameters=(U8, U8)),
        Sampler("gamma", F8, again=rejection.gamma, parameters=(F8,)),
        Sampler("log_gamma", F8, again=rejection.log_gamma, parameters=(F8,)),
        Sampler("haversine", F8, again=rejection.haversine, parameters=(F8,)),
        Sampler("zipf", I8, again=rejection.zipf, parameters=(F8,)),
        Sampler("poisson", I8, again=counting.poisson, parameters=(F8,)),
        Sampler("binomial", I8, again=counting.binomial, parameters=(I8, F8)),
        Sampler("hypergeometric", I8, again=counting.hypergeometric, parameters=(I8, I8, I8)),
    )
}


@functools.cache
def kernel_text() -> tuple[str, tuple[str, ...]]:
    """The text of all sampler modules without their imports, and the functions it defines."""
    parts, names = [], []
    for module in MODULES:
        text = inspect.getsource(module)
        parts.append(text[text.index("\n", text.index(MARK)) + 1 :].strip("\n"))
        names += [
            n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__
        ]
    return "\n\n\n".join(parts), tuple(names)
