"""Random functions that read what is outside of them, which changes between calls: compiled and as they stand.

python tests/randomoutside.py 2000
"""

import argparse
import importlib.util
import random
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

import mirabelle as mb

WORLD = """
import types

import numpy as np

import mirabelle as mb

NUMBER, COUNT, NAME = 2.0, 3, "b"
TABLE = np.arange(4.0)
OURS = mb.HostArray([1.0, 2.0, 3.0, 4.0])
BORROWED = mb.asarray(np.array([4.0, 3.0, 2.0, 1.0]))
SETTINGS = {"a": 0.5, "b": 1.5, "of": {"c": 2.5}}
HELD = types.SimpleNamespace(
    number=1.5, on=True, levels=[1.0, 2.0, 3.0], pair=(1, 2.0), table=np.ones(4),
    inner=types.SimpleNamespace(depth=2.0),
)


class Scaled:
    factor = 2.0

    def __init__(self):
        self.shift = 0.25

    def scaled(self, x):
        return x * self.factor + self.shift


SCALED = Scaled()


class Slotted(Scaled):
    __slots__ = ("other",)

    def __init__(self, other=1.0):
        super().__init__()
        self.other = other

    @property
    def twice(self):
        return 2 * self.other


OTHER = Slotted()


def first(x):
    return x * NUMBER + HELD.number


def second(x):
    return first(x) - SETTINGS["a"]


def made(kept, table):
    def set_kept(value):
        nonlocal kept
        kept = value

    def f(x):
LINES
        return y

    return f, set_kept
"""
# Terms of functions, and what changes between calls.
TERMS = """
x * NUMBER; y + COUNT; first(y); second(x); SCALED.scaled(x); y + SCALED.shift; y - Scaled.factor; y * kept
y + table; y + TABLE; x - TABLE[::-1]; y + np.asarray(TABLE).sum(); y + SETTINGS['a']; y + SETTINGS[NAME]
y + OURS; y - OURS[::-1]; y + SETTINGS.get('d', 7.0); y + SETTINGS['of']['c']; y * HELD.number
y + (1.0 if HELD.on else -1.0); y + BORROWED; y + HELD.levels[-1]; y + len(HELD.levels)
y + sum(HELD.levels); y + HELD.pair[1]; y + HELD.table; y + HELD.inner.depth; y + (lambda v: v * NUMBER)(x)
y + sum([x * v for v in HELD.levels]); mb.where(y > NUMBER, y, x); y + OTHER.scaled(x); y * OTHER.twice
"""
CHANGES = """
NUMBER = value; COUNT = int(value); NAME = 'ab'[value > 0]; TABLE[1] = value; TABLE = TABLE + value
OURS[2] = value; OURS *= value; OURS = OURS + 1; BORROWED[0] = value; SETTINGS['a'] = value
SETTINGS['d'] = value; SETTINGS.pop('d', None); SETTINGS['of']['c'] = value
SETTINGS = {'a': value, 'b': 1.5, 'of': {'c': 2.5}}; HELD.number = value; HELD.on = not HELD.on
HELD.levels[0] = value; HELD.levels.append(value); HELD.levels = [value, 1.0]; HELD.pair = (1, value)
HELD.table[1:] += 1; HELD.inner.depth = value; HELD.inner = types.SimpleNamespace(depth=value)
SCALED.shift = value; Scaled.factor = value; SCALED.factor = value; SCALED = Scaled()
first = lambda x: x * value; set_kept(value); OTHER.shift = value
Scaled.scaled = lambda self, x: x * self.factor - value; Slotted.factor = value; OTHER = Slotted(value)
"""


def listed(text):
    return [x.strip() for x in text.replace("\n", ";").split(";") if x.strip()]


TERMS, CHANGES = listed(TERMS), listed(CHANGES)


def change(r, world, set_kept):
    """Change something outside, and say what."""
    text, value = r.choice(CHANGES), round(r.uniform(-2, 3), 2)
    vars(world).update(set_kept=set_kept)
    exec(text.replace("value", repr(value)), vars(world))
    return text


def failures(count, first, folder):
    """What went wrong with so many random functions."""
    wrong = []
    for seed in range(first, first + count):
        r = random.Random(seed)
        lines = ["y = x * 1.0"] + [f"y = {t}" for t in r.sample(TERMS, r.randint(1, 5))]
        text = WORLD.replace("LINES", "\n".join(" " * 8 + line for line in lines))
        path = Path(folder) / f"outside{seed}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        world = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = world
        spec.loader.exec_module(world)
        f, set_kept = world.made(1.25, np.full(4, 0.5))
        compiled = mb.compile(f, whole=r.random() < 0.4)
        x, done = np.array([0.5, 1.0, -2.0, 3.0]), []
        try:
            for turn in range(12):
                with np.errstate(all="ignore"):
                    wanted, got = mb.to_numpy(f(mb.HostArray(x))), mb.to_numpy(compiled(mb.HostArray(x)))
                if not np.allclose(got, wanted, rtol=1e-12):
                    wrong.append(f"{seed}, turn {turn}: {got}, not {wanted}; {lines}, after {done}")
                    break
                if r.random() < 0.7:
                    done.append(change(r, world, set_kept))
        except Exception:
            wrong.append(f"{seed}: {lines}\n{traceback.format_exc(limit=-2)}")
        finally:
            del sys.modules[path.stem]
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = failures(given.count, given.first, folder)
    print(*found, sep="\n")
    print(f"{given.count} functions, {len(found)} wrong")
    sys.exit(bool(found))
