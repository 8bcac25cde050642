"""Random programs of stencils whose operands' halos travel together (one is known from its third time on)."""

import numpy as np

DTYPES = ["f8", "f4", "i4", "c16", "i8", "u1"]


def program(seed):
    """Operands and statements: each writes the inner part of an array from shifted parts of others."""
    r = np.random.default_rng(seed)
    shape = (
        (int(r.integers(40, 60)),) if r.random() < 0.5 else (int(r.integers(24, 40)), int(r.integers(6, 12)))
    )
    kinds = r.choice(DTYPES, int(r.integers(1, 4)))
    arrays = [(np.arange(np.prod(shape)).reshape(shape) % 23 + k).astype(t) for k, t in enumerate(kinds)]
    statements = []
    for _ in range(3):
        terms = []
        for _ in range(int(r.integers(1, 5))):
            k = int(r.integers(len(arrays)))
            shift = [int(r.integers(-2, 3)) for _ in shape]
            part = ", ".join(f"{2 + s}:{n - 2 + s}" for s, n in zip(shift, shape, strict=True))
            terms.append(f"{r.choice(['', '0.5 * ', '2 * '])}a[{k}][{part}]")
        inner = ", ".join(f"2:{n - 2}" for n in shape)
        made = " + ".join(terms)
        if r.random() < 0.5:
            statements.append(f"out[{inner}] = xp.real({made})")
        else:
            statements.append(f"out = out + xp.pad(xp.real({made}), 2) * 0.25")
    return arrays, statements


def ran(xp, arrays, out, statements, turns):
    for _ in range(turns):
        for s in statements:
            here = {"xp": xp, "a": arrays, "out": out}
            exec(s, here)
            out = here["out"]
    return out
