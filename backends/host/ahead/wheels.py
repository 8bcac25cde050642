"""Wheels of libraries: after `pip install step-1.0-py3-none-linux_x86_64.whl` there is `step.step(x, y)`."""

from __future__ import annotations

import base64
import hashlib
import re
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path

from mirabelle.arraytypes.io import permitted, replacing
from mirabelle.backends.host.ahead.interface import Function
from mirabelle.backends.host.numpyblas import Blas

_CLIENT = Path(__file__).with_name("client.py.txt")


def write(
    path: Path,
    name: str,
    functions: Sequence[Function],
    work: Path,
    library: Path,
    blas: Blas | None,
    version: str,
) -> Path:
    """Write a wheel; its name has to say what it is for, and is mended if it does not."""
    found = re.match(r"[^-]+-(\d[\w.]*)-", path.name)
    release = found[1] if found else "1.0"
    tag = f"py3-none-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"
    path = path.with_name(f"{name}-{release}-{tag}.whl")
    info = f"{name}-{release}.dist-info"
    described = [
        {
            "name": f.name,
            "arguments": [[x.name, x.letter, list(x.shape), x.written] for x in f.arguments],
            "results": [[x.name, x.letter, list(x.shape)] for x in f.results],
        }
        for f in functions
    ]
    client = (
        _CLIENT.read_text()
        .replace("FUNCTIONS = []", f"FUNCTIONS = {described!r}")
        .replace('NAME = ""', f"NAME = {name!r}")
    )
    files = {
        f"{name}/__init__.py": client.encode(),
        f"{name}/{library.name}": library.read_bytes(),
        f"{name}/{name}.h": (work / f"{name}.h").read_bytes(),
        f"{name}/{name}.f90": (work / f"{name}.f90").read_bytes(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n"
        f"Summary: Programs built ahead of time by mirabelle {version}\nRequires-Dist: numpy\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: mirabelle {version}\nRoot-Is-Purelib: false\n"
        f"Tag: {tag}\n".encode(),
    }
    if blas is not None and Path(blas.library).is_absolute():
        # (With the libraries that it needs in turn, which lie beside it.)
        for part in sorted(Path(blas.library).parent.iterdir()):
            if part.is_file():
                files[f"{name}/{part.name}"] = part.read_bytes()
    record = [
        f"{at},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}"
        for at, content in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    with (
        permitted(path),
        replacing(path) as fresh,
        zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for at, content in files.items():
            archive.writestr(at, content)
    return path


__all__ = ["write"]
