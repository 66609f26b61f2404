"""Arrays of numbers of a format: NumPy's behaviour, and arithmetic beside ml_dtypes, which computes in float32 and
rounds that: for these formats the same, but beyond the largest number."""

import copy
import doctest
import pickle

import ml_dtypes
import numpy as np
import pytest

import exmy
from exmy import _array

RNG = np.random.default_rng(6)
NUMBERS = (RNG.standard_normal((4, 6)) * 2.0 ** RNG.integers(-5, 3, (4, 6))).astype(np.float32)
X, Y = exmy.Array(NUMBERS, "e4m3"), exmy.Array(NUMBERS[::-1], "e4m3")


def same(found, expected):
    """An array of a format and one of ml_dtypes."""
    codes = np.asarray(expected)
    assert found.codes.dtype == f"u{codes.dtype.itemsize}"
    assert np.array_equal(found.codes, codes.view(found.codes.dtype))


def test_the_examples_of_the_docstrings():
    found = doctest.testmod(_array)
    assert found.attempted > 4 and found.failed == 0


@pytest.mark.parametrize(
    "name, theirs", [("e4m3", ml_dtypes.float8_e4m3fn), ("bf16", ml_dtypes.bfloat16), ("f16", np.float16)]
)
def test_arithmetic_is_that_of_ml_dtypes(name, theirs):
    x, y = exmy.Array(NUMBERS, name), exmy.Array(NUMBERS[::-1], name)
    p, q = NUMBERS.astype(theirs), NUMBERS[::-1].astype(theirs)
    for work in (
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / (b * b + b),
        lambda a, b: -a,
        lambda a, b: np.sqrt(abs(a)),
        lambda a, b: np.maximum(a, b),
        lambda a, b: np.floor(a),
        lambda a, b: np.ceil(a),
        lambda a, b: np.trunc(a),
        lambda a, b: np.rint(a),
        lambda a, b: a * np.ones((), theirs).item() + 2,
    ):
        with np.errstate(all="ignore"):
            expected = work(p, q).astype(theirs)
        found = work(x, y)
        assert found.format == x.format
        inside = np.isfinite(expected.astype(np.float32))
        same(found.reshape(-1)[inside.ravel()], expected[inside])
    for ask in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal):
        assert np.array_equal(ask(x, y), ask(p, q)) and np.array_equal(ask(x, x), ask(p, p))
        assert np.array_equal(ask(x, 0.5), ask(p, theirs(0.5)))


def test_results_are_rounded_once():
    # 1 + 2^-8 + 2^-20 is just above the middle between 1 and 1 + 2^-7 of bfloat16; in float32 it is there exactly.
    a, b = exmy.Array([1 + 2.0**-10], "e8m13"), exmy.Array([2.0**-8 - 2.0**-10 + 2.0**-20], "e8m13")
    assert exmy.apply("add", a, b, to="bf16").tolist() == [1 + 2.0**-7]
    assert exmy.apply("add", a, b, to="bf16", rounding="rtz").tolist() == [1.0]
    # Of float64: the sum is no number of it, and rounds to odd on the way to nothing.
    one, tiny = exmy.Array([1 + 2.0**-8], "f64"), exmy.Array([2.0**-70], "f64")
    assert exmy.apply("add", one, tiny, to="bf16").tolist() == [1 + 2.0**-7]
    assert one.astype("bf16").tolist() == [1.0]
    wide = exmy.Array([1.0], "e11m50") + exmy.Array([2.0**-50], "e11m50")
    assert wide.codes[0] - exmy.Array([1.0], "e11m50").codes[0] == 1


def test_apply_has_modes_formats_and_words():
    x = exmy.Array(np.full(4096, 1.0, np.float32), "e4m3")
    half = exmy.Array(0.0625, "e4m3")  # half a unit above 1
    words = exmy.random_words(7, "test", 4096)
    found = exmy.apply("add", x, half, rounding="sr1", seed=7, stream="test")
    assert np.array_equal(found.codes, 0x38 + (words >> 31))
    a, b = exmy.Array([1.5, 448], "e4m3"), exmy.Array([3.0, 57344], "e5m2")
    assert exmy.apply("mul", a, b, to="f32").tolist() == [4.5, 448.0 * 57344]
    assert exmy.apply("lt", a, b).tolist() == [True, True]
    assert exmy.apply("mulAdd", a, a, 1).tolist() == [3.25, 448.0]
    assert np.isnan(np.asarray(exmy.apply("mul", a, a, overflow="sat-none")))[1]
    assert exmy.apply("nextUp", a).tolist()[0] == 1.625 and exmy.apply("pow", a, 2).tolist()[0] == 2.25
    assert exmy.apply("scaleB", a, [2, -3]).tolist() == [6.0, 56.0] and exmy.apply("Scale_B", a[0], -1) == 0.75
    assert exmy.apply("scaleB", a, np.array([[2**40], [-(2**40)]])).tolist() == [[448.0] * 2, [0.0] * 2]
    assert exmy.apply("eq", a, a[0]).tolist() == [True, False] and exmy.apply("eq", a[0], 1.5)
    assert not a[0] != 1.5 and a[0] != 1.25 and not np.isnan(a[0])


def test_arrays_are_those_of_numpy():
    assert (X.shape, X.ndim, X.size, X.nbytes, len(X)) == ((4, 6), 2, 24, 24, 4)
    values = np.asarray(X)
    assert values.dtype == np.float32 and np.array_equal(values, X.format.decode(X.codes))
    assert np.asarray(X, np.float64).dtype == np.float64
    for work in (
        lambda x: x[1],
        lambda x: x[1, 2],
        lambda x: x[:, ::2],
        lambda x: x[x > 0] if isinstance(x, np.ndarray) else x[np.asarray(x) > 0],
        lambda x: x[[0, 2]],
        lambda x: x[None, ..., 1],
        lambda x: x.T,
        lambda x: x.reshape(2, -1),
        lambda x: x.reshape((3, 8)).transpose(1, 0).ravel(),
        lambda x: np.concatenate([x, x[:1]], axis=0),
        lambda x: np.stack([x, x]),
        lambda x: np.moveaxis(x, 0, 1),
        lambda x: np.roll(x, 1, axis=1),
        lambda x: np.broadcast_to(x[0], (3, 6)),
        lambda x: np.take(x, np.array([1, 3]), axis=1),
        lambda x: np.split(x, 2, axis=1)[1],
        lambda x: np.repeat(x, 2),
        lambda x: np.where(np.arange(6) > 2, x, -x),
        lambda x: x.copy(),
    ):
        found, expected = work(X), work(values)
        assert isinstance(found, exmy.Array) and found.shape == expected.shape
        assert np.array_equal(np.asarray(found), expected)
    assert np.array_equal(np.where(X, X, X[0]), np.where(values, values, values[0]))
    filled = np.full_like(X, 0.1)
    assert isinstance(filled, exmy.Array) and filled.tolist() == [[0.1015625] * 6] * 4
    assert not np.zeros_like(X).codes.any() and np.empty_like(X, shape=3).shape == (3,)
    # In float32 that number is halfway between two of bfloat16, and rounds to 1.
    assert np.full_like(X.astype("bf16"), 1 + 2.0**-8 + 2.0**-30)[0, 0] == 1 + 2.0**-7
    assert np.array_equal(np.block([[X], [X]]), np.block([[values], [values]]))
    assert [one.tolist() for one in X] == values.tolist() == X.tolist() and float(X[0, 0]) == values[0, 0]
    assert np.sum(X) == values.sum() and np.array_equal(X, values) and np.isfinite(X).all()
    assert repr(X[0, :2]) == f"exmy.Array({np.array2string(values[0, :2], separator=', ')}, format='e4m3')"
    for again in (pickle.loads(pickle.dumps(X)), copy.deepcopy(X)):
        assert again.format == X.format and (again == X).all()
    assert not np.shares_memory(copy.copy(X).codes, X.codes) and int(exmy.Array(-3.5, "e4m3")) == -3
    told = np.zeros((), bool)
    assert np.equal(X[0, 0], X[0, 0], out=told) is told and told


def test_numbers_beyond_float64_are_not_infinite_nor_zero():
    codes = np.array([0, 1, (0x7FFF << 10) - 1, 0x7FFF << 10, (0x7FFF << 10) + 1], np.uint32)
    x = exmy.Array.from_codes(codes, "e15m10")
    assert np.isfinite(x).tolist() == [True, True, True, False, False]
    assert np.isinf(x).tolist() == [False, False, False, True, False] and np.isnan(x).tolist() == [False] * 4 + [True]
    assert [bool(one) for one in x] == [False, True, True, True, True]


def test_views_share_memory_and_numbers_are_written_rounded():
    x = exmy.Array(NUMBERS, "e4m3")
    x[1, :2] = [0.1, 1000.0]
    x[2] = x[0] + 1
    x.T[0, 3] = 5
    assert x[1, :2].tolist() == [0.1015625, 448.0] and float(x[3, 0]) == 5.0
    x += 1
    assert isinstance(x, exmy.Array) and float(x[3, 0]) == 6.0
    codes = np.array([0x38, 0x40], np.uint8)
    view = exmy.Array.from_codes(codes, "e4m3")
    view[0] = 4.0
    assert codes.tolist() == [0x48, 0x40]
    assert exmy.Array.from_codes(codes.view(ml_dtypes.float8_e4m3fn), "e4m3").tolist() == [4.0, 2.0]


def test_what_has_no_numbers_is_not_equal():
    for other in (None, "a", b"a", object(), {}):
        assert not X == other and X != other and not other == X and other != X
    assert X.__eq__(None) is NotImplemented and X not in [None, "a"]
    # What has numbers of no format is refused still.
    for other in (NUMBERS, NUMBERS.tolist(), 1j):
        for ask in (lambda: X == other, lambda: X != other):
            with pytest.raises(TypeError, match="exmy.Array.x, 'e4m3'. rounds others"):
                ask()


def test_numbers_that_numpy_has_no_type_for_are_refused():
    with pytest.raises(ValueError, match="x is a whole number of 1329 bits, beyond float64, whose largest is 1.8e308"):
        X + 10**400
    with pytest.raises(ValueError, match="x is -1180591620717411303424, beyond NumPy's integers.*float.x. rounds it"):
        X * -(2**70)


def test_arrays_are_operands():
    a, b = exmy.Array(RNG.standard_normal((8, 32)), "e4m3"), exmy.Array(RNG.standard_normal((32, 8)), "e4m3")
    p, q = (x.codes.view(ml_dtypes.float8_e4m3fn) for x in (a, b))
    for sum in ("exact", "hopper", "fast"):
        assert np.array_equal(exmy.gemm(a, b, sum=sum), exmy.gemm(p, q, sum=sum))
        assert np.array_equal(exmy.gemm(a, b.T.copy().T, sum=sum), exmy.gemm(p, q, sum=sum))
    wide = exmy.Array(RNG.standard_normal((8, 32)), "e8m20")
    assert np.array_equal(exmy.gemm(wide, b, sum="exact"), exmy.gemm(np.asarray(wide), q, sum="exact"))
    assert np.array_equal(exmy.fake_quantize(a, "mxfp4"), exmy.fake_quantize(np.asarray(a), "mxfp4"))
    assert a.astype("e5m2").tolist() == exmy.Format("e5m2").decode(exmy.Format("e5m2").encode(np.asarray(a))).tolist()
    assert exmy.Format("bf16").array(a).format == exmy.Format("bf16")


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: X + NUMBERS, r"operand is a ndarray.*exmy.Array\(x, 'e4m3'\)"),
        (lambda: NUMBERS * X, "operand is a ndarray"),
        (lambda: X + X.astype("bf16"), "e4m3 and bf16.*to='e4m3'.*astype"),
        (lambda: X @ X.T, "matmul is no operation.*exmy.gemm"),
        (lambda: np.add.reduce(X), r"numpy.add.reduce is no operation.*numpy.asarray\(x\)"),
        (lambda: np.cbrt(X), "numpy.cbrt is no operation"),
        (lambda: np.add(X, X, where=NUMBERS > 0), "add with where is no operation"),
        (lambda: np.add(X, X, out=np.empty((4, 6))), "out is a ndarray, and results are an exmy.Array of e4m3"),
        (lambda: np.concatenate([X, NUMBERS]), "one format, not e4m3 and ndarray"),
        (lambda: np.concatenate([X, X.astype("bf16")]), "one format, not bf16 and e4m3"),
        (lambda: np.where(NUMBERS > 0, X, 0), "one format, not e4m3 and int"),
        (lambda: np.concatenate([X, X], out=X.codes), "concatenate with out is no function of an exmy.Array"),
        (lambda: np.stack([X, X], dtype=np.float32), "stack with dtype is no function"),
        (lambda: np.zeros_like(X, dtype=np.float64), "zeros_like with dtype"),
        (lambda: np.full_like(X, 1, np.float64), "has its format: astype"),
        (lambda: np.stack(arrays=[X, X]), r"stack takes an exmy.Array by its place"),
        (lambda: np.atleast_1d(X, X), "atleast_1d is of one exmy.Array"),
        (lambda: np.copyto(X, NUMBERS), r"copyto writes values.*x\[...\] = y"),
        (lambda: np.put(X, 0, 1), "put writes values"),
        (lambda: np.sum(X, axis=0, out=X[0]), "sum writes values"),
        (lambda: exmy.apply("scaleB", X, X), "exponents, which are whole numbers, not a Array"),
        (lambda: exmy.apply("scaleB", X, 2.0), "exponents, which are whole numbers, not a float"),
        (lambda: X.__setitem__(0, X[0].astype("bf16")), "x is e4m3, and bf16 is written to it"),
        (lambda: exmy.apply("add", 1, 2), "no operand is an exmy.Array"),
        (lambda: exmy.apply(None, X), "operation is None"),
        (lambda: exmy.Array(["a"], "e4m3"), "array of numbers"),
        (lambda: exmy.Array.from_codes([1.5], "e4m3"), "encode.x. has the codes"),
        (lambda: hash(X), "unhashable"),
    ],
)
def test_mistakes_of_kind_are_refused(wrong, said):
    with pytest.raises(TypeError, match=said):
        wrong()


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: exmy.apply("ad", X, X), "did you mean add"),
        (lambda: exmy.apply("add", X), "2 operands, not 1"),
        (lambda: exmy.apply("to_i32", X), "gives integers; apply gives numbers or truth values"),
        (lambda: exmy.apply("add", X, X, rounding="up"), "up"),
        (lambda: exmy.apply("add", X, X, rounding="sr8"), "seed=1"),
        (lambda: X + X[:, :5], "broadcast"),
        (lambda: X.reshape(5, 5), "reshape"),
        (lambda: bool(X), "ambiguous"),
        (lambda: np.array(X, copy=False), "x.codes has no copy"),
        (lambda: exmy.Array.from_codes(np.array([16], np.uint8), "e2m1"), "0x10 is no code"),
    ],
)
def test_mistakes_of_value_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()
