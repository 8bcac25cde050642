"""What is known of the types of public functions, for `docs/stubs.py`.

A function that stands in no table takes arrays where its parameter is called `x`, and gives an array.
"""

from __future__ import annotations

# Where a result is no single array.
RESULTS = {
    **dict.fromkeys(("divmod", "modf", "frexp"), "tuple[AbstractArray, AbstractArray]"),
    "__array_namespace_info__": "Any",
    "get_printoptions": "dict[str, Any]",
    "place": "Place",
    "to_numpy": "npt.NDArray[Any]",
}

# Parameters by name: those that are arrays wherever they occur, and others of one meaning.
_ARRAYS = """
    x x1 x2 x3 a b A M X arr ary ar ar1 ar2 a1 a2 v y m z u p xp fp values val weights fweights aweights
    filt seq_of_zeros condition dest src indices ind mask where repeats q fill_value obj arys arrays
    blocks operands factors matrices x0 a_min a_max min max to_end to_begin prepend append array element
    w lu_and_piv sample B
"""
PARAMETERS = {
    **dict.fromkeys(_ARRAYS.split(), "ArrayLike"),
    "axis": "Axis",
    "axes": "Any",
    "dtype": "DTypeLike",
    "device": "Device | None",
    "out": "Out",
    "shape": "ShapeLike",
    "new_shape": "ShapeLike",
    "dimensions": "ShapeLike",
    "window_shape": "ShapeLike",
    "dims": "ShapeLike",
    "shapes": "ShapeLike",
    "repetitions": "ShapeLike",
    "keepdims": "bool",
    "casting": "str",
    "norm": "str | None",
    "n": "int | None",
    "n_cols": "int | None",
    "s": "Sequence[int] | None",
    "ddof": "float | None",
    "correction": "float | None",
    "rcond": "float | None",
    "rtol": "float",
    "atol": "float",
    "tol": "float | None",
    "kind": "str | None",
    "order": "str | None",
    "mode": "str",
    "kth": "int | Sequence[int]",
    "bins": "int | str | ArrayLike",
    "indices_or_sections": "int | ArrayLike",
    "tup": "ArrayLike",
    "keys": "ArrayLike",
    "choices": "ArrayLike",
    "condlist": "Sequence[ArrayLike]",
    "choicelist": "Sequence[ArrayLike]",
    "initial": "complex | None",
    "mean": "ArrayLike | None",
    "shift": "int | Sequence[int]",
    "sorter": "ArrayLike | None",
    "copy": "bool | None",
    "deg": "int",
    "density": "bool | None",
    "stable": "bool | None",
    "default": "ArrayLike",
    "source": "int | Sequence[int]",
    "destination": "int | Sequence[int]",
    "start": "ArrayLike",
    "stop": "ArrayLike",
    "step": "complex",
    "fname": "File | Iterable[str]",
    "file": "File",
    "index": "Index",
    "iter": "Iterable[Any]",
    "subscripts": "str | ArrayLike",
    "funclist": "Sequence[Any]",
    "predicate": "ArrayLike",
    "lower": "ArrayLike",
    "upper": "ArrayLike",
}

# Those of one function that have another.
OF_FUNCTION = {
    **dict.fromkeys(
        (f"fft.{f}.axes" for f in ("fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn")),
        "Sequence[int] | None",
    ),
    **dict.fromkeys(("fft.fftshift.axes", "fft.ifftshift.axes"), "int | Sequence[int] | None"),
    **dict.fromkeys(("histogram.range", "histogram_bin_edges.range"), "tuple[float, float] | None"),
    **dict.fromkeys(("histogram2d.range", "histogramdd.range"), "Sequence[Any] | None"),
    **dict.fromkeys(
        ("linalg.matrix_norm.ord", "linalg.norm.ord", "linalg.vector_norm.ord"), "float | str | None"
    ),
    **dict.fromkeys(("linalg.gemm.alpha", "linalg.gemm.beta"), "complex"),
    **dict.fromkeys(("tensordot.axes", "linalg.tensordot.axes"), "int | Sequence[Any]"),
    **dict.fromkeys(("accumulate.op", "mapreduce.op", "reduce.op"), "str | Callable[[Any, Any], Any]"),
    **dict.fromkeys(("accumulate.init", "mapreduce.init", "reduce.init"), "complex | None"),
    **dict.fromkeys(("finfo.type", "iinfo.type"), "DTypeLike | ArrayLike"),
    **dict.fromkeys(("can_cast.from_", "can_cast.to"), "DTypeLike"),
    **dict.fromkeys(("fori_loop.lower", "fori_loop.upper"), "int | AbstractArray"),
    **dict.fromkeys(("einsum.optimize", "einsum_path.optimize"), "bool | str | Sequence[Any]"),
    **dict.fromkeys(("interp.left", "interp.right", "interp.period"), "complex | None"),
    **dict.fromkeys(("nan_to_num.posinf", "nan_to_num.neginf"), "float | None"),
    "broadcast_arrays.args": "ArrayLike",
    "cond.predicate": "builtins.bool | AbstractArray",
    "linalg.solve_triangular.trans": "int | str",
    "linalg.tensorsolve.axes": "Sequence[int] | None",
    "logspace.base": "ArrayLike",
    "mapreduce.f": "str | Callable[[Any], Any]",
    "polyint.k": "ArrayLike | None",
    "ravel_multi_index.multi_index": "Sequence[ArrayLike] | AbstractArray",
    "require.requirements": "str | Sequence[str] | None",
    "trapezoid.dx": "ArrayLike",
    "unpackbits.count": "int | None",
    "unwrap.discont": "float | None",
    **dict.fromkeys(("divmod.out", "modf.out", "frexp.out"), "tuple[AbstractArray | None, ...] | None"),
    "ix_.args": "ArrayLike",
    "kaiser.beta": "ArrayLike",
    "result_type.arrays_and_dtypes": "ArrayLike | DTypeLike",
    "adapt.to": "type[AbstractArray]",
    "all.where": "ArrayLike",
    "apply_over_axes.axes": "int | Sequence[int]",
    "array.object": "ArrayLike",
    "asarray_chkfinite.order": "str | None",
    "average.axis": "Axis",
    "block.arrays": "Any",
    "fft.fft2.axes": "Sequence[int]",
    "fill_diagonal.val": "ArrayLike",
    "isin.kind": "str | None",
    "linalg.cho_solve.c_and_lower": "tuple[ArrayLike, bool]",
    "linalg.cond.p": "float | str | None",
    "mask_indices.k": "int",
    "nan_to_num.nan": "float",
    "norm.p": "float",
    "pad.pad_width": "int | Sequence[Any]",
    "pad.mode": "str | Callable[..., Any]",
    "permute_dims.axes": "Sequence[int]",
    "rot90.axes": "Sequence[int]",
    "save.x": "Any",
    "tri.M": "int | None",
    "transpose.axes": "Sequence[int] | None",
    "tril_indices.m": "int | None",
    "triu_indices.m": "int | None",
    "vander.N": "int | None",
    **{
        f"linalg.{solver}.{name}": "ArrayLike | Multiplies | Callable[[AbstractArray], Any]"
        for solver in ("cg", "gmres", "minres")
        for name in "AM"
    },
}

_RETSTEP = "start: ArrayLike, stop: ArrayLike, /, num: int = ..., endpoint: bool = ..."
_NO_STEP = f"{_RETSTEP}, retstep: Literal[False] = ..., dtype: DTypeLike = ..., axis: int = ..., *"
_COMPILED = (
    "*, static: Iterable[str] = ..., passes: str | Iterable[str | Callable[..., Any]] | None = ..., "
    "assume_finite: bool = ..., whole: bool = ..., "
    "schedule: Schedule | None = ..., sizes: builtins.str = ..."
)
_FLAGS = ("store", "once", "recompute", "separate", "own_memory")
_HINTED = (
    "precision: str | None = ..., library: str | None = ..., tile: int | None = ..., "
    "threads: int | None = ..., tag: str | None = ..., axes: Iterable[str] | None = ..."
)
_JITTED = """*, parallel: bool = ..., fastmath: bool = ..., nogil: bool = ..., boundscheck: bool = ..."""


def _made(parameters: str) -> list[str]:
    """A function that makes an array: of the type that `device=` says, where it says a type."""
    return [
        f"({parameters}, device: type[_Made]) -> _Made",
        f"({parameters}, device: Device | None = ...) -> AbstractArray",
    ]


def _reduced(parameters: str) -> list[str]:
    """A reduction: of the type of `out`, where the result is written to an array."""
    first, _, rest = parameters.partition("; ")
    return [
        f"({first}, *, out: _Made{rest.replace('*, ', '').removeprefix('out: Out = ...')}) -> _Made",
        f"({first}, {rest}) -> AbstractArray",
    ]


_LOADED = "device: Device | None = ..., mmap_mode: str | None = ..., allow_pickle: bool = ..."
# What a function of elements gives: numbers, or tuples of them. (An element may be a number of any kind.)
_GIVES = {"complex": "AbstractArray", "tuple[Any, ...]": "tuple[AbstractArray, ...]"}
_APPLIED = [
    *(
        f"(f: Callable[[{', '.join(['Any'] * n)}], {gives}], "
        f"{', '.join(f'x{i}: ArrayLike' for i in range(1, n + 1))}, /) -> {made}"
        for n in (1, 2, 3)
        for gives, made in _GIVES.items()
    ),
    "(f: Callable[..., Any], /, *operands: ArrayLike) -> AbstractArray",
]

# Functions that get arrays: so a checker knows what `lambda row: ...` is given. The last takes any other.
_GETS_ARRAYS = ("Callable[Concatenate[AbstractArray, ...], Any]", "Callable[..., Any]")
_OF_INDICES = [*(f"Callable[[{', '.join(['AbstractArray'] * n)}], Any]" for n in (1, 2, 3)), _GETS_ARRAYS[1]]

_FILLED = "shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *"
_LIKE = "x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..."
_AXIS = "x: ArrayLike, /, axis: Axis = ..."
_KEEP = "keepdims: bool = ..."
_WHERE = "where: ArrayLike = ..."
_INITIAL = f"{_KEEP}, initial: complex | None = ..., {_WHERE}"
_EXTREMUM = _reduced(f"{_AXIS}; out: Out = ..., {_INITIAL}")
_TRUTH = _reduced(f"{_AXIS}; out: Out = ..., {_KEEP}, {_WHERE}")
_TOTAL = _reduced(f"{_AXIS}, dtype: DTypeLike = ...; out: Out = ..., {_INITIAL}")

# Where the result's type depends on how a function is called: its signatures, the first that fits holds.
OVERLOADS = {
    **dict.fromkeys(("zeros", "ones", "empty"), _made(_FILLED)),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), _made(_LIKE)),
    "full": _made(_FILLED.replace("dtype", "fill_value: ArrayLike, dtype", 1)),
    "full_like": _made(_LIKE.replace("dtype", "fill_value: ArrayLike, dtype", 1)),
    "arange": _made(
        "start: ArrayLike, /, stop: ArrayLike | None = ..., step: ArrayLike = ..., dtype: DTypeLike = ..., *"
    ),
    "eye": _made(
        "n_rows: int, n_cols: int | None = ..., /, *, k: int = ..., dtype: DTypeLike = ..., order: str = ..."
    ),
    "identity": _made("n: int, dtype: DTypeLike = ..., *"),
    **dict.fromkeys(("sum", "prod"), _TOTAL),
    **dict.fromkeys(("max", "min", "amax", "amin"), _EXTREMUM),
    **dict.fromkeys(("all", "any"), _TRUTH),
    "mean": _reduced(f"{_AXIS}, dtype: DTypeLike = ...; out: Out = ..., {_KEEP}, *, {_WHERE}"),
    "round": [
        "(x: ArrayLike, /, decimals: int = ..., out: Out = ..., *, where: ArrayLike = ...) -> AbstractArray"
    ],
    "asarray": _made("obj: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, copy: bool | None = ..."),
    "array": _made(
        "object: ArrayLike, dtype: DTypeLike = ..., *, copy: bool | None = ..., order: str = ..., "
        "ndmin: int = ..."
    ),
    "linspace": [
        *_made(_NO_STEP),
        f"({_RETSTEP}, *, retstep: Literal[True], dtype: DTypeLike = ..., axis: int = ..., "
        "device: Device | None = ...) -> tuple[AbstractArray, AbstractArray]",
    ],
    "where": [
        "(condition: ArrayLike, /) -> tuple[AbstractArray, ...]",
        "(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray",
    ],
    "average": [
        "(a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: Literal[False] = ..., *, "
        "keepdims: bool = ...) -> AbstractArray",
        "(a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: bool = ..., *, "
        "keepdims: bool = ...) -> tuple[AbstractArray, AbstractArray]",
    ],
    "adapt": [
        # (A wrapper or a structured array stays one, with parts of the type.)
        "(to: type[_Made], x: DenseArray[Any] | npt.NDArray[Any]) -> _Made",
        "(to: type[AbstractArray], x: AbstractArray) -> AbstractArray",
        *(f"(to: type[AbstractArray], x: {nest}) -> {nest}" for nest in ("tuple[Any, ...]", "list[Any]")),
        "(to: type[AbstractArray], x: Mapping[_R, Any]) -> dict[_R, Any]",
    ],
    **dict.fromkeys(("broadcast", "map"), _APPLIED),
    "apply_along_axis": [
        f"(func1d: {function}, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> AbstractArray"
        for function in _GETS_ARRAYS
    ],
    "fromfunction": [
        f"(function: {function}, shape: ShapeLike, *, dtype: DTypeLike = ..., device: Device | None = ..., "
        "**kwargs: Any) -> AbstractArray"
        for function in _OF_INDICES
    ],
    "piecewise": [
        f"(x: ArrayLike, condlist: Sequence[ArrayLike], funclist: Sequence[ArrayLike | {function}], "
        "*args: Any, **kw: Any) -> AbstractArray"
        for function in _GETS_ARRAYS
    ],
    "indices": [
        f"(dimensions: ShapeLike, dtype: DTypeLike = ..., sparse: {sparse} = ..., *, "
        f"device: Device | None = ...) -> {made}"
        for sparse, made in (("Literal[False]", "AbstractArray"), ("bool", "tuple[AbstractArray, ...]"))
    ],
    "load": [
        f"(file: File, /, name: str, *, mmap: bool = ..., {_LOADED}) -> AbstractArray",
        f"(file: File, /, name: None = ..., *, mmap: Literal[True], {_LOADED}) -> AbstractArray",
        # (Several arrays of a file are a dictionary; only the file says whether it has several.)
        f"(file: File, /, name: None = ..., *, mmap: bool = ..., {_LOADED}) -> AbstractArray | Any",
    ],
    "gradient": [
        "(f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int = ...) -> AbstractArray",
        "(f: ArrayLike, *varargs: ArrayLike, axis: tuple[int, int, Unpack[tuple[int, ...]]], "
        "edge_order: int = ...) -> tuple[AbstractArray, ...]",
        "(f: ArrayLike, *varargs: ArrayLike, axis: Axis = ..., edge_order: int = ...) "
        "-> AbstractArray | Any",  # (a tuple of several axes, which `dx, dy = mb.gradient(A)` takes apart)
    ],
    "unique": [
        "(ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[False] = ..., "
        "return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: bool = ..., "
        "sorted: bool = ...) -> AbstractArray",
        "(ar: ArrayLike, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ..., "
        "axis: int | None = ..., *, equal_nan: bool = ..., sorted: bool = ...) -> tuple[AbstractArray, ...]",
    ],
    "intersect1d": [
        "(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: Literal[False] = ...) "
        "-> AbstractArray",
        "(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: bool = ...) "
        "-> tuple[AbstractArray, AbstractArray, AbstractArray]",
    ],
    "polyfit": [
        "(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: Literal[False] = ..., "
        "w: ArrayLike | None = ..., cov: Literal[False] = ...) -> AbstractArray",
        "(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: bool = ..., "
        "w: ArrayLike | None = ..., cov: bool | str = ...) -> tuple[Any, ...]",
    ],
    **{
        f"atleast_{n}d": [
            "(ary: ArrayLike, /) -> AbstractArray",
            "(*arys: ArrayLike) -> tuple[AbstractArray, ...]",
        ]
        for n in (1, 2, 3)
    },
    "compile": [
        f"(f: Callable[_P, _R], /, {_COMPILED}) -> _CompiledFunction[_P, _R]",
        f"(f: None = ..., /, {_COMPILED}) -> Callable[[Callable[_P, _R]], _CompiledFunction[_P, _R]]",
    ],
    "jit": [
        f"(function: Callable[_P, _R], /, {_JITTED}) -> _JittedFunction[_P, _R]",
        f"(function: None = ..., /, {_JITTED}) -> Callable[[Callable[_P, _R]], _JittedFunction[_P, _R]]",
    ],
    "kernel": [
        "(function: Callable[..., Any], /) -> Kernel",
        "(*, padded: bool = ..., boundscheck: bool = ...) -> Callable[[Callable[..., Any]], Kernel]",
    ],
    "hint": ["(x: _R, /, *, " + ", ".join(f"{name}: bool = ..." for name in _FLAGS) + f", {_HINTED}) -> _R"],
    "cond": [
        "(predicate: ArrayLike, if_true: Callable[[Unpack[_Ts]], _R], if_false: Callable[[Unpack[_Ts]], _R], "
        "*operands: Unpack[_Ts]) -> _R",
    ],
    "fori_loop": ["(lower: ArrayLike, upper: ArrayLike, body: Callable[[Any, _R], _R], state: _R) -> _R"],
    "while_loop": ["(condition: Callable[[_R], Any], body: Callable[[_R], _R], state: _R) -> _R"],
    "linalg.qr": [
        '(x: ArrayLike, /, mode: Literal["reduced", "complete"] = ...) -> QRResult',
        '(x: ArrayLike, /, mode: Literal["r"]) -> AbstractArray',
        "(x: ArrayLike, /, mode: str) -> QRResult | AbstractArray",
    ],
    "linalg.svd": [
        "(x: ArrayLike, /, full_matrices: bool = ..., compute_uv: Literal[True] = ..., "
        "hermitian: bool = ...) -> SVDResult",
        "(x: ArrayLike, /, full_matrices: bool, compute_uv: Literal[False], hermitian: bool = ...) "
        "-> AbstractArray",
        "(x: ArrayLike, /, full_matrices: bool = ..., *, compute_uv: Literal[False], hermitian: bool = ...) "
        "-> AbstractArray",
        "(x: ArrayLike, /, full_matrices: bool = ..., compute_uv: bool = ..., hermitian: bool = ...) "
        "-> SVDResult | AbstractArray",
    ],
    "generic": [
        "(prototype: Callable[_P, _R], arity: int | None = ..., *, wider: bool = ..., optional: int = ..., "
        "operator: bool = ..., by_type: bool = ...) -> _Function[_P, _R]",
    ],
    "linalg.hessenberg": [
        "(a: ArrayLike, /, *, calc_q: Literal[False] = ...) -> AbstractArray",
        "(a: ArrayLike, /, *, calc_q: bool = ...) -> tuple[AbstractArray, AbstractArray]",
    ],
}
