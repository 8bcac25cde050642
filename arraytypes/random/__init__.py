"""Random numbers that are functions of seed, call and place: the same on every type of array.

`philox`, `elementary`, `blocks`, `rejection` and `counting` are written in the words of `lanes`, so
that NumPy runs them on blocks and backends compile their text. `samplers` lists what can be drawn,
`filling` has a backend fill memory with it, and the methods of `Generator` are made of that.
"""

from mirabelle.arraytypes.random.bitgenerator import Philox
from mirabelle.arraytypes.random.generator import Generator, default_rng
from mirabelle.dispatch import loading

loading.complete(__name__)

__all__ = ["Generator", "Philox", "default_rng"]
