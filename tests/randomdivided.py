"""Random programs over divided arrays beside NumPy: views of views, writes through them, functions, all dtypes.

    python -m tests.randomdivided 2000        # so many programs, on 1 to 4 processes (threads) in turn

It says which differ, with the program. Lines that NumPy refuses, or that write where it may have copied because
its results lie in another order, are left out. Every other four programs run on processes that look at their
own parts, and hold what the others have let go of: that must change nothing.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import mirabelle as mb
from tests.threadranks import on_ranks

D = mb.DArray[mb.HostArray]
VIEWS = [
    "{a}.T", "{a}[::2]", "{a}[1:]", "{a}[::-1]", "{a}[..., ::2]", "{a}[..., 1:]", "{a}.reshape(-1)",
    "{a}.reshape({s})", "np.flip({a})", "np.moveaxis({a},0,-1)", "{a}[None]", "np.expand_dims({a},-1)",
    "np.swapaxes({a},0,-1)", "np.ravel({a})", "np.squeeze({a}[None])", "{a}.real", "({a} * (1 + 0.5j)).imag",
    "{a}[..., 0:2]", "np.broadcast_to({a},(2,)+{a}.shape)", "{a}[0:1]", "np.diagonal({a})", "{a}[..., ::-1]",
    "np.split({a},[1])[1]", "np.atleast_2d({a})", "np.rollaxis({a},{a}.ndim-1)",
]  # fmt: skip
FUNCTIONS = [
    "{a}+1", "-{a}", "{a}*{a}", "np.abs({a})", "np.where({a}!=0,{a},1)", "np.cumsum({a},axis=0)",
    "np.sort({a},axis=-1)", "np.concatenate([{a},{a}],axis=0)", "np.stack([{a},{a}],axis=-1)",
    "np.roll({a},1)", "np.roll({a},2,axis=-1)", "np.tile({a},2)", "np.repeat({a},2,axis=0)", "np.pad({a},1)",
    "np.diff({a},axis=0)", "np.sum({a},axis=0)", "np.max({a},axis=-1)", "np.mean({a},axis=0)",
    "np.argmax(np.abs({a}),axis=0)", "np.take({a},[1,0,0],axis=0)", "{a}[[1,0]]", "{a}[np.abs({a})>1]",
    "np.outer({a},{a})", "np.kron({a},[1,2])", "np.einsum('...i->...',{a})", "np.unique(np.abs({a}))",
    "np.searchsorted(np.sort(np.abs({a}).ravel()),[1.5,2])",
    "np.trace(np.atleast_2d({a}.reshape({a}.shape[0],-1)))", "np.tril(np.atleast_2d({a}))",
    "np.median(np.abs({a}),axis=0)", "np.clip(np.abs({a}),1,3)", "np.gradient(np.abs({a})*1.0,axis=0)",
    "np.isin({a},[1,2])", "np.nonzero({a})[0] + 0", "np.array_split({a},2)[0]", "np.rot90(np.atleast_2d({a}))",
    "np.count_nonzero({a},axis=0)", "np.ptp(np.abs({a}),axis=0)", "np.delete({a},1,axis=0)",
    "np.insert({a},1,5,axis=0)", "np.append({a},{a},axis=0)", "np.compress([True,False,True],{a},axis=0)",
    "np.vstack([{a},{a}])", "np.hstack([{a},{a}])", "np.ediff1d({a})",
    "np.bincount(np.abs({a}.real.reshape(-1)).astype(int))", "np.dot({a},{a}.T)",
    "np.matmul(np.atleast_2d({a}),np.atleast_2d({a}).T) if {a}.ndim<3 else {a}",
    "np.var(np.abs({a}),axis=-1)", "np.all({a},axis=0)", "np.cumprod(np.abs({a})*0.5,axis=-1)",
    "np.linalg.norm({a}.reshape(-1))", "np.round({a}*0.37,1)", "np.floor_divide(np.abs({a}),2)",
    "np.average(np.abs({a}),axis=0)", "np.digitize(np.abs({a}),[1,2,3])", "np.fliplr(np.atleast_2d({a}))",
    "np.column_stack([{a}.reshape(-1),{a}.reshape(-1)])", "np.percentile(np.abs({a}),30,axis=0)",
    "np.vdot({a},{a})", "np.convolve(np.abs({a}).reshape(-1),[1,2])", "np.nanmax(np.abs({a}),axis=0)",
    "np.block([[np.atleast_2d({a})],[np.atleast_2d({a})]])", "np.sum({a}*{a})",
]  # fmt: skip
WRITES = [
    "{v}[...] = 2", "{v}[...] = {v}*0 + 3", "{v} *= 2", "{v}[1:] = {v}[:-1]", "{v}[::-1] = {v} + 1",
    "{v}[0:1] += 1", "{v}[{v} == {v}] = 1", "{v}[[0]] = 7", "np.copyto({v}, 4)", "np.add({v}, {v}, out={v})",
    "{v}[...] = {b}", "{v}[0:1] = {b}[0:1]", "{v}[1:] = {b}[1:]", "{v}[..., 1:] = {b}[..., :-1]",
    "{b}[0:2] = {v}[0:2]", "{b}[...] = {v}", "{v} += {b}", "np.copyto({v}, {b})",
]  # fmt: skip
LOOKS = ["keep.append({a})", "keep.append({a}[...])", "keep.append({a}.T)", "keep.clear()", "repr({a})"]
SHAPES = ["(-1,1)", "(2,-1)", "(3,-1)", "(-1,2)", "(1,-1)", "(4,-1)"]
DTYPES = ["f8", "f4", "i8", "i4", "c16", "u1", "?", "i2"]


def program(seed: int) -> tuple[list[str], np.ndarray]:
    """Lines that NumPy runs, and what they begin with."""
    r = np.random.default_rng(seed)
    shape: Any = [(12,), (3, 4), (4, 6), (5, 3), (2, 3, 4), (7,), (6, 2)][r.integers(7)]
    data: Any = r.integers(-4, 5, shape)
    dtype = str(r.choice(DTYPES))
    data = (data + 1j * r.integers(-3, 3, shape) if dtype == "c16" else data).astype(dtype)
    names, here, lines = ["x", "y"], {"np": np, "x": data.copy(), "y": data.copy()}, []
    for k in range(int(r.integers(4, 10))):
        shown, write = str(r.choice(names)), r.random() < 0.3
        for _ in range(int(r.integers(0, 3))):
            shown = "(" + str(r.choice(VIEWS)).replace("{a}", shown).replace("{s}", str(r.choice(SHAPES))) + ")"
        if not write and r.random() < 0.8:
            shown = str(r.choice(FUNCTIONS)).replace("{a}", shown)
        new = [f"v{k} = {shown}"]
        if write:
            new.append(str(r.choice(WRITES)).replace("{v}", f"v{k}").replace("{b}", str(r.choice(names))))
        if runs(new, here) and may_be_shown(here[f"v{k}"], write, here):
            names.append(f"v{k}")
            lines += new
            if len(names) > 3 and r.random() < 0.4:
                gone = names.pop(int(r.integers(len(names))))
                lines.append(f"del {gone}")
                del here[gone]
        else:  # (from the beginning, as a write may have been half done)
            here = {"np": np, "x": data.copy(), "y": data.copy()}
            runs(lines, here)
    return lines, data


def looks(seed: int, lines: list[str], rank: int) -> list[str]:
    """What a process does for itself after each line."""
    r = np.random.default_rng((seed, rank))
    names, found = ["x", "y"], []
    for line in lines:
        name, _, value = line.partition(" = ")
        if line.startswith("del "):
            names.remove(line[4:])
        elif value and name.isidentifier():
            names.append(name)
        found.append(str(r.choice(LOOKS)).replace("{a}", str(r.choice(names))) if r.random() < 0.4 else "")
    return found


def runs(lines: list[str], here: dict[str, Any]) -> bool:
    try:
        for line in lines:
            exec(line, here)
    except Exception:
        return False
    return True


def may_be_shown(value: Any, written: bool, here: dict[str, Any]) -> bool:
    """Is it an array in C's order or a part of one, as ours are? (Results in another order are NumPy's own.)"""
    if isinstance(value, np.ndarray) and not value.ndim:
        return False
    memory = value
    while isinstance(memory, np.ndarray) and isinstance(memory.base, np.ndarray):
        memory = memory.base
    if isinstance(memory, np.ndarray) and not memory.flags.c_contiguous:
        return False
    return not written or (isinstance(value, np.ndarray) and bool(value.flags.writeable))


def difference(seed: int, ranks: int) -> str | None:
    """What a program gives otherwise than NumPy, in words."""
    lines, data = program(seed)
    expected: dict[str, Any] = {"np": np, "x": data.copy(), "y": data.copy()}
    runs(lines, expected)

    def on_rank(comm: Any) -> dict[str, Any]:
        here = {"np": mb, "x": D(data, comm=comm), "y": D(data, comm=comm), "keep": []}
        own = looks(seed, lines, comm.rank) if seed // 4 % 2 else [""] * len(lines)
        for line, look in zip(lines, own, strict=True):
            exec(line, here)
            exec(look, here)
        return {k: mb.to_numpy(v) for k, v in here.items() if isinstance(v, mb.AbstractArray)}

    sizes = {"immediate_size": (0, 1 << 20)[seed // 8 % 2], "overlap_size": (0, 1 << 20)[seed // 16 % 2]}
    try:
        with mb.settings.changed(**sizes):
            found = on_ranks(ranks, on_rank)
    except BaseException as e:
        return repr(e)[:300]
    for values in found:
        for name, value in values.items():
            wanted = np.asarray(expected[name])
            close = 1e-4 if wanted.dtype in (np.float32, np.complex64) else 1e-9
            if value.shape != wanted.shape or value.dtype != wanted.dtype:
                return f"{name}: {value.dtype}{value.shape}, NumPy {wanted.dtype}{wanted.shape}"
            if not np.allclose(value, wanted, rtol=close, atol=1e-6, equal_nan=True):
                return f"{name}: {value.ravel()[:6]}, NumPy {wanted.ravel()[:6]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", type=int)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for seed in range(given.first, given.first + given.programs):
        said = difference(seed, 1 + seed % 4)
        if said:
            wrong += 1
            print(f"{seed} on {1 + seed % 4}: {said}\n    " + "\n    ".join(program(seed)[0]), flush=True)
    print(f"{given.programs} programs, {wrong} differ.")
    return min(wrong, 1)


if __name__ == "__main__":
    raise SystemExit(main())
