"""Examples of what is NumPy's own, and of constants: docstrings of ours have their own."""

from __future__ import annotations

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
KINDS = {
    "complexfloating": "complex64",
    "floating": "float32",
    "inexact": "float64",
    "integer": "uint8",
    "number": "float64",
    "signedinteger": "int16",
    "unsignedinteger": "uint8",
}
# By name, what is typed and what is shown.
EXAMPLES = {
    "__array_api_version__": "mb.__array_api_version__\n'2025.12'",
    "__version__": 'mb.__version__ >= "0.1"\nTrue',
    "False_": "mb.True_ & mb.False_\nnp.False_",
    "True_": "mb.True_ | mb.False_\nnp.True_",
    "compiling.FINITE": "list(mb.compiling.FINITE)\n['finite']",
    "compiling.PASSES": "list(mb.compiling.PASSES)[:3]\n['constants', 'algebra', 'folds']",
    "dtype": 'mb.dtype("float32") == mb.ones(2, dtype=mb.float32).dtype\nTrue',
    "e": "print(mb.log(mb.e))\n1.0",
    "euler_gamma": "print(mb.round(mb.euler_gamma, 4))\n0.5772",
    "get_printoptions": 'mb.get_printoptions()["precision"]\n8',
    "index_exp": "mb.index_exp[1:3, ..., None]\n(slice(1, 3, None), Ellipsis, None)",
    "inf": "print(mb.HostArray([1.0, -1.0]) / 0 == mb.inf)\n[ True False]",
    "issubdtype": "mb.issubdtype(mb.zeros(2).dtype, mb.floating)\nTrue",
    "iterable": "mb.iterable(mb.zeros(2)), mb.iterable(2.0)\n(True, False)",
    "nan": "print(mb.isnan(mb.HostArray([1.0, mb.nan])))\n[False  True]",
    "ndindex": "list(mb.ndindex(2, 2))\n[(0, 0), (0, 1), (1, 0), (1, 1)]",
    "newaxis": "mb.zeros(3)[:, mb.newaxis].shape\n(3, 1)",
    "pi": "print(mb.round(mb.sin(mb.pi / 6), 3))\n0.5",
    "printoptions": (
        "with mb.printoptions(precision=2):\n...     print(mb.HostArray([2 / 3, 1 / 3]))\n[0.67 0.33]"
    ),
    "promote_types": "mb.promote_types(mb.float32, mb.int32)\ndtype('float64')",
    "s_": "print(mb.arange(6)[mb.s_[::2]])\n[0 2 4]",
    "set_printoptions": (
        "mb.set_printoptions(precision=3)\n>>> print(mb.HostArray([2 / 3]))\n[0.667]\n"
        ">>> mb.set_printoptions(precision=8)"
    ),
    **{name: f"mb.zeros(2, dtype=mb.{name}).dtype\ndtype('{name}')" for name in DTYPES},
    **{kind: f"mb.issubdtype(mb.{name}, mb.{kind})\nTrue" for kind, name in KINDS.items()},
}


def example(name: str) -> str:
    """The example of a name as it is typed; nothing where there is none."""
    return f">>> import mirabelle as mb\n>>> {EXAMPLES[name]}" if name in EXAMPLES else ""
