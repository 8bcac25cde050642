"""Bad input: a clear sentence with a cure, and nothing changed."""

import datetime
import decimal
import fractions
import operator
import pickle

import numpy as np
import pytest
from compare import assert_same
from kinds import LEAVES, SINGLE, wrapped
from samples import ordinary

import mirabelle as mb

FAMILIES = [mb.HostArray, mb.RefArray]
both = pytest.mark.parametrize("family", FAMILIES)


def refused(exception, *texts):
    """The exception, with texts that its message contains: what happened, and the cure."""
    lookaheads = "".join(f"(?=(?s:.*)(?:{t}))" for t in texts)
    return pytest.raises(exception, match=lookaheads)


# Shapes


@both
def test_shapes_that_do_not_fit(family):
    x, y = family(np.ones((2, 3))), family(np.ones(4))
    for f in (lambda: x + y, lambda: mb.where(x > 0, x, y), lambda: mb.fma(x, y, 1.0), lambda: x > y):
        with refused(ValueError, "could not be broadcast", r"\(2,3\)", r"\(4,\)", "None|x.T"):
            f()


@both
def test_the_error_comes_at_the_line_that_made_it(family):
    """Nothing needs to be evaluated to see a mistake."""
    x = family(np.ones((2, 3)))
    pending = mb.exp(x) + 1
    with mb.count() as c, pytest.raises(ValueError, match="add"):
        pending + family(np.ones(5))
    assert c.launches == 0


@both
def test_a_destination_too_small(family, way):
    x = family([1.0, 2.0])
    values = [family(np.ones(3)), family(np.ones((2, 2)))]
    for value in [*values, [1.0, 2.0, 3.0]] if family is mb.HostArray else values:
        with refused(ValueError, "could not broadcast", r"\(2,\)"):
            x[...] = value
        with refused(ValueError, "could not broadcast"):
            mb.copyto(x, value)
    with pytest.raises(ValueError):
        x += family(np.ones((3, 2)))
    with pytest.raises(ValueError):
        x[:1] = family([1.0, 2.0])
    assert x.tolist() == [1.0, 2.0]


@both
def test_a_leading_one_fits_a_destination(family, way):
    x = family([1.0, 2.0])
    x[...] = family([[3.0, 4.0]])
    assert x.tolist() == [3.0, 4.0]
    x += 1
    assert x.tolist() == [4.0, 5.0]


@both
def test_indices_out_of_bounds(family):
    x = family(np.ones((2, 3)))
    for index in (2, (0, 3), (0, 0, 0), -3):
        with pytest.raises(IndexError):
            x[index]
        with pytest.raises(IndexError):
            x[index] = 5.0
    for index in (1.5, "a", [0.5], [[0, 5]], ([0], [0], [0])):
        with pytest.raises(IndexError, match="ind"):
            x[index]
        with pytest.raises(IndexError, match="ind"):
            x[index] = 1.0
    assert_same(x, np.ones((2, 3)))


@both
def test_axes_that_do_not_exist(family):
    x = family(np.ones((2, 3)))
    for axis in (2, -3, (0, 5)):
        with pytest.raises(np.exceptions.AxisError):
            mb.sum(x, axis=axis)
    with pytest.raises(ValueError, match="duplicate"):
        mb.sum(x, axis=(0, -2))
    with refused(TypeError, "axis"):
        mb.sum(x, axis="rows")
    with pytest.raises(ValueError, match="axes"):
        x.transpose(0, 0)


@both
def test_reshapes_that_do_not_fit(family):
    x = family(np.ones((2, 3)))
    for shape in ((4,), (-1, 4), (-1, -1), (2, 3, 2)):
        with pytest.raises(ValueError):
            x.reshape(shape)
    with pytest.raises(ValueError, match=r"stretched|broadcast"):
        mb.broadcast_to(x, (2, 4))
    with pytest.raises(ValueError, match="negative"):
        mb.zeros((-1,), device=family)
    with pytest.raises(TypeError, match="shape"):
        mb.zeros("ab", device=family)
    with pytest.raises(TypeError, match="shape"):
        mb.zeros(2.5, device=family)


@both
def test_ragged_data(family):
    with refused(ValueError, "same length"):
        family([[1, 2], [3]])


@both
def test_matrix_products_that_do_not_fit(family):
    x = family(np.ones((2, 3)))
    with refused(ValueError, r"\(2, 3\)", "x.T"):
        x @ x
    with pytest.raises(ValueError):
        x @ family(np.float64(3.0))
    with refused(ValueError, "do not fit", "x.T"):
        mb.dot(x, x)


# Dtypes


@pytest.mark.parametrize(
    "data",
    [
        np.array([object(), None]), np.array(["a", "b"]), np.array([b"a"]),
        np.array(["2020-01-01"], "datetime64[D]"), np.array([1], "timedelta64[s]"),
        np.zeros(2, [("a", float), ("b", int)]), ["text"], [None, 1], "text", None, {"a": 1}, {1, 2},
        datetime.date(2020, 1, 1), object(), lambda: 1,
    ],
    ids=lambda d: f"{type(d).__name__}-{getattr(d, 'dtype', '')}",
)  # fmt: skip
@both
def test_data_that_are_no_numbers(family, data):
    for make in (family, lambda d: mb.asarray(d, device=family)):
        with refused(TypeError, "Arrays hold|not something", "Convert|Take|Give|`"):
            make(data)


@pytest.mark.parametrize("dtype", [object, str, "M8[s]", "m8[s]", "S5", "V8", [("a", "f8")]], ids=repr)
@both
def test_dtypes_that_are_no_numbers(family, dtype):
    x = family([1.0, 2.0])
    for f in (
        lambda: family([1.0], dtype=dtype),
        lambda: x.astype(dtype),
        lambda: mb.zeros(2, dtype=dtype, device=family),
        lambda: mb.similar(x, dtype=dtype),
        lambda: family[dtype] if not isinstance(dtype, list) else x.astype(dtype),
    ):
        with refused(TypeError, "Arrays hold", "Convert|Take"):
            f()


@both
def test_words_that_are_no_dtypes(family):
    for f in (
        lambda: family([1.0], dtype="float65"),
        lambda: family["nonsense"],
        lambda: family([1.0]).astype(3),
    ):
        with refused(TypeError, "is not a dtype", "mb.float64"):
            f()


@both
def test_operations_a_dtype_does_not_have(family):
    x, b, z = family([1.5, 2.5]), family([True, False]), family([1j])
    for f in (
        lambda: x & x, lambda: ~x, lambda: x << 1, lambda: mb.gcd(x, x), lambda: z % z, lambda: mb.floor(z),
        lambda: z // z,
    ):  # fmt: skip
        with refused(TypeError, "not defined for", "astype"):
            f()
    for f in (lambda: b - b, lambda: -b):
        with refused(TypeError, "boolean"):
            f()
    with refused(TypeError, "real numbers", "mb.real"):
        mb.erf(z)


@both
def test_inplace_results_that_do_not_fit_the_dtype(family, way):
    x = family(np.array([1, 2, 3], "i4"))
    for f in (
        lambda: x.__iadd__(1.5),
        lambda: x.__itruediv__(2),
        lambda: x.__imul__(1j),
        lambda: x.__iadd__(family([0.5, 0.5, 0.5])),
    ):
        with refused(TypeError, "Cannot cast", "astype"):
            f()
    y = family([1.0, 2.0])
    with refused(TypeError, "cast|complex", "mb.complex128|astype"):
        y[0:1] = 1j
    with refused(TypeError, "cast"):
        y *= 1j
    assert x.tolist() == [1, 2, 3] and y.tolist() == [1.0, 2.0]


@both
def test_integers_out_of_bounds(family):
    x = family(np.array([1, 2], "u1"))
    for f in (lambda: x + 300, lambda: x * -1, lambda: 256 - x, lambda: x.__iadd__(300)):
        with refused(OverflowError, "out of bounds for uint8"):
            f()
    for index, value in ((slice(None), 300), (0, -1), (..., 1 << 70)):
        with mb.allow_scalar(), refused(OverflowError, "out of bounds for uint8"):
            x[index] = value
    with pytest.raises(OverflowError):
        family([1.0]) + 10**400
    assert x.tolist() == [1, 2]
    assert (x < 300).tolist() == [True, True] and (x == -1).tolist() == [False, False]


@both
def test_integers_to_negative_powers(family):
    with refused(ValueError, "negative integer powers", "astype"):
        family([1, 2]) ** -1


# Foreign objects


class Foreign:
    def __repr__(self):
        return "Foreign()"


@pytest.mark.parametrize(
    "thing", [Foreign(), "text", None, {"a": 1}, b"ab", datetime.date(2020, 1, 1)], ids=repr
)
@both
def test_foreign_objects_as_operands(family, thing):
    x = family([1.0, 2.0])
    for f in (
        lambda: x + thing,
        lambda: thing - x,
        lambda: mb.where(x > 0, x, thing),
        lambda: mb.add(x, thing),
    ):
        # (`where` without its last operand is NumPy's ValueError.)
        with pytest.raises((TypeError, ValueError) if thing is None else TypeError) as e:
            f()
        assert type(thing).__name__.removesuffix("Type") in str(e.value)
    with pytest.raises(TypeError):
        x += thing
    assert x.tolist() == [1.0, 2.0]


@both
def test_comparing_with_a_foreign_object(family):
    """As Python does it: unequal, or no order."""
    x = family([1.0, 2.0])
    assert (x == Foreign()) is False and (x != Foreign()) is True
    with pytest.raises(TypeError):
        x < Foreign()


@both
def test_other_numbers(family):
    """Decimal and Fraction are numbers, but of no dtype of ours."""
    x = family([1.0])
    for number in (decimal.Decimal("1.5"), fractions.Fraction(1, 2)):
        with refused(TypeError, type(number).__name__):
            x + number


@both
def test_functions_of_things_that_are_no_arrays(family):
    for f in (mb.sqrt, mb.sum, mb.to_numpy, mb.materialize, mb.place, mb.explain):
        with pytest.raises(TypeError):
            f("text")
    with refused(TypeError, "adapt"):
        mb.adapt(mb.types.Transpose, family([1.0]))


@both
def test_assigning_a_foreign_object(family):
    x = family([1.0, 2.0])
    for thing in (Foreign(), "text", None, {"a": 1}, ["a", "b"]):
        with pytest.raises(TypeError):
            x[...] = thing
        with pytest.raises((TypeError, ValueError)):
            x[:1] = thing
    assert x.tolist() == [1.0, 2.0]


# Places


def test_a_device_array_meets_a_host_array():
    r = mb.RefArray([1.0, 2.0])
    for other in (mb.HostArray([1.0, 2.0]), np.array([1.0, 2.0])):
        for f in (
            lambda: r + other,
            lambda: other * r,
            lambda: mb.where(r > 0, other, r),
            lambda: mb.maximum(other, r),
            lambda: r @ other,
            lambda: other @ r,
        ):
            with refused(mb.PlaceError, r"ref:0|RefArray", "mb.adapt", "host|HostArray"):
                f()
        for f in (lambda: r.__iadd__(other), lambda: r.__setitem__(..., other), lambda: mb.copyto(r, other)):
            with refused(mb.PlaceError, "mb.adapt"):
                f()
    h = mb.HostArray([1.0, 2.0])
    with refused(mb.PlaceError, "mb.adapt"):
        h[...] = r
    with refused(mb.PlaceError, "mb.adapt"):
        h += r
    n = np.ones(2)
    with pytest.raises((mb.PlaceError, TypeError)):
        n += r
    with pytest.raises((mb.PlaceError, mb.DeviceError)):
        n[...] = r
    assert r.tolist() == h.tolist() == [1.0, 2.0] and n.tolist() == [1.0, 1.0]
    assert issubclass(mb.PlaceError, ValueError)


def test_scalars_of_the_host_join_a_device():
    r = mb.RefArray([1.0, 2.0])
    for scalar in (2, 2.0, np.float64(2), np.array(2.0), mb.HostArray(2.0), mb.sum(mb.HostArray([1.0, 1.0]))):
        result = r * scalar
        assert type(result) is mb.RefArray[mb.float64, 1]
        assert result.tolist() == [2.0, 4.0]
    r[...] = mb.HostArray(7.0)
    assert r.tolist() == [7.0, 7.0]


def test_transfers_can_be_allowed():
    r = mb.RefArray([1.0, 2.0])
    with mb.allow_transfer():
        assert (r + mb.HostArray([1.0, 1.0])).tolist() == [2.0, 3.0]
        assert (np.ones(2) + r).tolist() == [2.0, 3.0]
        r[...] = np.zeros(2)
    assert r.tolist() == [0.0, 0.0]
    with pytest.raises(mb.PlaceError):
        r + mb.HostArray([1.0, 1.0])


def test_numpy_cannot_read_a_device_array():
    for x in (mb.RefArray([1.0, 2.0]), mb.RefArray(np.ones((2, 2))).T, mb.RefArray([1.0]) + 1):
        with refused(mb.PlaceError, "ref:0", "mb.to_numpy"):
            np.asarray(x)
        with pytest.raises((mb.PlaceError, mb.DeviceError, TypeError)):
            np.frombuffer(x)
        with pytest.raises((TypeError, BufferError)):
            memoryview(x)


def test_scalar_reads_and_writes_on_a_device_are_refused():
    x = mb.RefArray([1.0, 2.0])
    for f in (
        lambda: float(x[0]), lambda: int(x[0]), lambda: bool(x[0] > 0), lambda: x[0].item(), lambda: x.item(1),
        lambda: complex(x[1]), lambda: float(x[0] * 2 + 1), lambda: [float(v) for v in x],
        lambda: x.__setitem__(0, 5.0), lambda: x.__setitem__(0, x[1]),
    ):  # fmt: skip
        with refused(mb.ScalarAccessError, "ref:0", "mb.to_numpy", "allow_scalar"):
            f()
    assert x.tolist() == [1.0, 2.0]
    # One number that array operations came to is what a program wants to know: only counted.
    with mb.count() as c:
        assert float(mb.sum(x)) == 3.0 and bool(mb.all(x > 0)) and 1.0 in x
    assert c.scalar_reads == 3
    with mb.allow_scalar():
        x[0] = 5.0
        assert float(x[0]) == 5.0
        with mb.allow_scalar(False), pytest.raises(mb.ScalarAccessError):
            float(x[0])
    assert issubclass(mb.ScalarAccessError, RuntimeError)


def test_the_setting_allows_scalar_access():
    with mb.settings.changed(allow_scalar=True):
        assert float(mb.RefArray([3.0])[0]) == 3.0


def test_host_arrays_read_scalars():
    assert float(mb.HostArray([1.0, 2.0])[1]) == 2.0


# Conversions to scalars


@both
def test_arrays_of_several_elements_are_no_scalars(family):
    x = family([1.0, 2.0])
    with mb.allow_scalar():
        for f in (float, int, complex):
            with refused(TypeError, "one element|size 1|scalar", r"mb\.sum"):
                f(x)
        with refused(ValueError, "ambiguous", "mb.any"):
            bool(x)
        with refused(ValueError, "size 1", "mb.to_numpy"):
            x.item()
        with pytest.raises(ValueError, match=r"ambiguous|empty"):
            bool(family(np.ones(0)))
        with pytest.raises(TypeError):
            hash(x)
        with pytest.raises(TypeError):
            range(5)[family(1.5)]
        with pytest.raises(TypeError):
            len(family(1.0))
        with pytest.raises(TypeError):
            iter(family(1.0))
        assert range(5)[family(3)] == 3


# Read-only destinations


@pytest.mark.parametrize("leaf", ["host", "ref", "host_pending", "host_shared"])
def test_a_stretched_array_is_read_only(leaf):
    values = np.broadcast_to(np.arange(3.0), (2, 3))
    base = LEAVES[leaf].make(np.arange(3.0))
    x = mb.broadcast_to(base, (2, 3))
    for view in (x, x.T, x[:, ::-1], x.T[1:]):
        for write in (
            lambda: view.__iadd__(1),
            lambda: view.__setitem__(..., 0),
            lambda: view.__setitem__(slice(1), 0),
            lambda: mb.copyto(view, 5.0),
            lambda: view.fill(1),
        ):
            with refused(ValueError, "read-only", "mb.copy"):
                write()
    assert_same(x, values)
    assert_same(base, np.arange(3.0))
    y = mb.copy(x)
    y += 1
    assert_same(y, values + 1)


@pytest.mark.parametrize("kind", [k for k in SINGLE if not k.writable], ids=repr)
def test_every_read_only_kind_refuses(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    with refused(ValueError, "read-only", "mb.copy"):
        x += 1
    deeper = wrapped(kind, "transpose").make(wrapped(kind, "transpose").sample(values))
    with refused(ValueError, "read-only", "mb.copy"):
        deeper[...] = 0
    assert_same(x, values)


def _write_to_imaginary_parts(xp, x):
    part = x.imag
    for target in (part, part.T, part[1:] if part.ndim else part[...]):
        with pytest.raises(ValueError, match="read-only"):
            target[...] = 1
    with pytest.raises(ValueError, match="read-only"):
        part += 1
    return x + part


@pytest.mark.parametrize("dtype", ["f8", "i4", "?"])
@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_imaginary_parts_of_real_numbers_are_zeros_that_nobody_writes_to(kind, dtype):
    for shape in ((3, 4), (5,), (0, 2), ()):
        values = kind.sample(ordinary(dtype, shape))
        x = kind.make(values)
        assert_same(_write_to_imaginary_parts(mb, x), values + np.zeros((), dtype))
        assert_same(x.imag, values.imag)


def test_imaginary_parts_of_real_numbers_in_programs_gradients_and_structured_matrices():
    x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    assert_same(mb.compile(lambda v: _write_to_imaginary_parts(mb, v))(x), mb.to_numpy(x))
    slope = mb.autodiff.gradient(lambda v: mb.sum(_write_to_imaginary_parts(mb, v * v)), x)
    assert_same(slope, 2 * mb.to_numpy(x))
    for matrix in (mb.Diagonal(x[0]), mb.Symmetric(x), mb.CSR(x)):
        assert_same(matrix.imag, np.zeros((2, 2)))
        with pytest.raises(ValueError, match="read-only"):
            matrix.imag[...] = 1.0
    assert mb.Diagonal(mb.ones(1 << 20)).imag.shape == (1 << 20, 1 << 20)  # (which takes no memory)


def test_a_read_only_numpy_array_is_a_read_only_destination():
    n = np.ones((2, 3))
    n.flags.writeable = False
    x = mb.asarray(n)
    for view in (x, x.T, x[1:]):
        with refused(ValueError, "read-only", "NumPy", "mb.copy"):
            view += 1
    assert n.sum() == 6
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(mb.HostArray([1.0]))[0] = 2


# User functions


@both
def test_user_functions_that_do_not_compile(family):
    x = family([1.0, 2.0])

    def opens_a_file(v):
        with open("/dev/null") as f:
            return v + len(f.read())

    def unknown(v):
        return undefined_name(v)  # noqa: F821

    for f in (opens_a_file, unknown, lambda v: v.no_such_method()):
        with refused(mb.UserFunctionError, "cannot be compiled", "float64", "number"):
            mb.broadcast(f, x)
    assert issubclass(mb.UserFunctionError, TypeError)


@both
def test_user_functions_that_return_no_number(family):
    x = family([1.0, 2.0])
    for f in (lambda v: None, lambda v: "text", lambda v: [v, v], lambda v: np.zeros(2), lambda v: {v: v}):
        with refused(mb.UserFunctionError, "returns|cannot be compiled", "number"):
            mb.broadcast(f, x)


@both
def test_user_functions_that_raise(family):
    """What a kernel cannot do is refused, and the destination stays as it was."""
    x, dest = family([1.0, 2.0]), family([7.0, 7.0])

    def careful(v):
        if v > 1:
            raise ValueError("too large")
        return v

    # The user's own exception or our refusal, but never a result as if nothing had happened.
    with pytest.raises((mb.UserFunctionError, ValueError)):
        dest[...] = mb.broadcast(careful, x)
        mb.materialize(dest)
    assert dest.tolist() == [7.0, 7.0]


@both
def test_things_that_are_no_user_functions(family):
    x = family([1.0])
    for thing in (np.sin, 3, "sin", Foreign()):
        with pytest.raises(TypeError, match=r"lambda|mb\.|function"):
            mb.broadcast(thing, x)
    with refused(TypeError, "at least one operand"):
        mb.broadcast(lambda: 1.0)
    with pytest.raises(TypeError):
        mb.broadcast(lambda a, b: a, x)
    with refused(ValueError, "one shape", "broadcast"):
        mb.map(lambda a, b: a, x, family([1.0, 2.0]))


@both
def test_reductions_with_functions_say_what_they_need(family):
    x = family([1.0, 2.0])
    with refused(ValueError, "init=0"):
        mb.reduce(lambda a, b: a + b, x)
    with refused(ValueError, "not an operation"):
        mb.reduce("median", x)
    with refused(ValueError, "tuple"):
        mb.mapreduce(lambda v: (v, v), mb.add, x)
    with refused(ValueError, "operation to accumulate"):
        mb.accumulate(x, "sin")
    with refused(ValueError, "axis"):
        mb.accumulate(family(np.ones((2, 2))))


# Values


@both
def test_reductions_of_nothing(family):
    x = family(np.ones((0, 3)))
    for f in (mb.min, mb.max):
        with refused(ValueError, "zero-size", "minimum|maximum"):
            f(x)
        with pytest.raises(ValueError):
            f(x, axis=0)
        assert f(x, axis=1).shape == (0,)
    assert mb.sum(x).tolist() == 0 and mb.prod(x, axis=0).tolist() == [1, 1, 1]
    assert np.isnan(mb.mean(x).tolist())


@both
def test_nan_infinity_and_overflow_are_values_without_warnings(family, way):
    """As in a kernel: no warning and no exception, whatever way it runs."""
    x = family([0.0, -1.0, np.inf, np.nan, 1e308])
    for y in (1 / x, mb.log(x), mb.sqrt(x), x * 1e10, x - x, mb.exp(x), mb.sum(x), mb.max(x), mb.var(x)):
        mb.materialize(y)
    n = family(np.array([0, 5, -128], "i1"))
    assert (1 // n).tolist() == [0, 0, -1]
    assert (n * 3).tolist() == [0, 15, -128]
    assert (-n).tolist() == [0, -5, -128]
    assert abs(n).tolist() == [0, 5, -128]
    assert (n % 0).tolist() == [0, 0, 0]


@both
def test_a_failing_write_leaves_views_and_pending_readers_alone(family):
    x = family([1.0, 2.0, 3.0])
    view, pending = x[1:], x * 2
    for bad in (
        lambda: operator.setitem(x, ..., family(np.ones(7))),
        lambda: operator.iadd(x, "a"),
        lambda: operator.imul(x, 1j),
        lambda: operator.setitem(x, slice(2), family(np.ones(3))),
    ):
        with pytest.raises((TypeError, ValueError)):
            bad()
    assert x.tolist() == [1.0, 2.0, 3.0] and view.tolist() == [2.0, 3.0] and pending.tolist() == [2.0, 4.0, 6.0]


# Types


def test_type_parameters_that_make_no_sense():
    with refused(TypeError, "number of dimensions", "never carries sizes"):
        mb.HostArray[mb.float64, (2, 3)]
    with pytest.raises(TypeError):
        mb.HostArray[mb.float64, -1]
    with pytest.raises(TypeError):
        mb.HostArray[mb.float64, 1, 2]
    with refused(TypeError, "already"):
        mb.HostArray[mb.float64, 1][mb.float64]
    with pytest.raises(TypeError, match="parent"):
        mb.types.Transpose[mb.float64]
    with pytest.raises(TypeError, match="no parameters"):
        mb.AbstractArray[mb.float64]
    with refused(ValueError, "1 dimension", "HostArray"):
        mb.HostArray[mb.float64, 1]([[1.0]])


def test_wrappers_and_abstract_types_are_not_made_directly():
    for cls in (mb.types.Transpose, mb.types.View, mb.AbstractArray, mb.types.DenseArray):
        with pytest.raises(TypeError):
            cls([1.0])


def test_errors_pickle():
    for cls in (mb.PlaceError, mb.MissingMethodError, mb.ScalarAccessError, mb.UserFunctionError):
        e = pickle.loads(pickle.dumps(cls("a message")))
        assert type(e) is cls and str(e) == "a message" and isinstance(e, mb.MirabelleError)
