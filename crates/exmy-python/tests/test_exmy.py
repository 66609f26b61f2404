"""The bindings: that axes, types and memory arrive as they should. Numbers are compared with ml_dtypes, with
literals worked out by hand, and with fractions."""

import copy
import doctest
import multiprocessing
import pathlib
import pickle
import subprocess
import sys
import threading
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import exmy
from exmy import _format, _formats

RNG = np.random.default_rng(1)
X = (RNG.standard_normal((6, 4, 64)) * np.exp2(RNG.integers(-12, 9, (6, 4, 64)))).astype(np.float32)


SQUARE = np.ones((64, 64), np.float32)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


def test_the_examples_of_the_docstrings():
    for module in (exmy, _format, _formats):
        found = doctest.testmod(module)
        assert found.attempted > 1 and found.failed == 0


@pytest.mark.parametrize(
    "name, theirs",
    [
        ("e4m3fn", ml_dtypes.float8_e4m3fn),
        ("e5m2", ml_dtypes.float8_e5m2),
        ("e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
        ("bf16", ml_dtypes.bfloat16),
        ("f16", np.float16),
        ("e2m1", ml_dtypes.float4_e2m1fn),
        ("e3m2", ml_dtypes.float6_e3m2fn),
    ],
)
def test_codes_are_those_of_ml_dtypes(name, theirs):
    ours = exmy.Format(name)
    inside = np.clip(X, -ours.max, ours.max)
    with np.errstate(all="ignore"):
        expected = inside.astype(theirs)
    codes = ours.encode(inside)
    assert np.array_equal(codes, expected.view(codes.dtype))
    assert np.array_equal(bits(ours.decode(codes)), bits(expected.astype(np.float32)))
    # An array of theirs is read as its codes.
    assert np.array_equal(bits(ours.decode(expected)), bits(expected.astype(np.float32)))


@pytest.mark.parametrize(
    "name, rounding, least",
    [
        ("float8_e4m3fn", None, 0),
        ("float8_e4m3fnuz", None, 0),
        ("float8_e5m2fnuz", None, 0),
        ("float8_e4m3b11fnuz", None, 0),
        # A tie of theirs goes up, and below 2^-126, where float32 is subnormal, 1.1 * 2^-127 does, too.
        ("float8_e8m0fnu", "rna", 2.0**-126),
    ],
)
def test_without_saturation_all_codes_are_those_of_ml_dtypes(name, rounding, least):
    x = np.concatenate([X.ravel(), np.exp2(RNG.uniform(-126, 127, 4096)), [0, -0.0, np.inf, -np.inf, np.nan, 3, 3e38]])
    x = x[~(np.abs(x) < least) | (x == 0)].astype(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(getattr(ml_dtypes, name)).view(np.uint8)
    assert np.array_equal(exmy.Format(name).encode(x, rounding=rounding, overflow="sat-none"), expected)


def test_a_format_says_what_it_is():
    e4m3 = exmy.Format("float8_e4m3fn")
    assert (e4m3.bits, e4m3.exponent_bits, e4m3.mantissa_bits, e4m3.bias) == (8, 4, 3, 7)
    assert (e4m3.max, e4m3.smallest_normal, e4m3.smallest_subnormal) == (448.0, 2.0**-6, 2.0**-9)
    for name, theirs in [("e4m3", ml_dtypes.float8_e4m3fn), ("bf16", ml_dtypes.bfloat16), ("e8m0", "float8_e8m0fnu")]:
        facts = ml_dtypes.finfo(theirs)
        assert (exmy.Format(name).min, exmy.Format(name).eps) == (float(facts.min), float(facts.eps))
    assert e4m3.has_nan and not e4m3.has_infinity and e4m3.is_signed
    assert e4m3.value(0x7E) == 448.0 and len(e4m3.values) == 256
    assert e4m3 == exmy.Format("e4m3") and hash(e4m3) == hash(exmy.Format("e4m3"))
    assert pickle.loads(pickle.dumps(e4m3)) == copy.copy(e4m3) == e4m3
    assert type(pickle.loads(pickle.dumps(exmy.Quantizer("nvfp4")))) is exmy.Quantizer
    with pytest.raises(ValueError, match="0x100"):
        e4m3.value(0x100)


def mxfp4(block):
    """32 numbers in MXFP4 by the definition: OCP MX 1.0, 6.3, to nearest even."""
    grid = sorted({s * v for s in (-1, 1) for v in (0, 0.5, 1, 1.5, 2, 3, 4, 6)})
    even = {0, 1, -1, 2, -2, 4, -4}  # those whose last bit is 0
    scale = Fraction(2) ** (int(np.floor(np.log2(np.abs(block).max()))) - 2)
    out = []
    for x in block:
        exact = Fraction(float(x)) / scale
        out.append(float(min(grid, key=lambda v: (abs(Fraction(v) - exact), v not in even)) * scale))
    return out


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_blocks_lie_along_the_axis(axis):
    x = np.ascontiguousarray(np.moveaxis(X, 2, axis))
    expected = np.moveaxis([[mxfp4(x) + mxfp4(y) for x, y in zip(p[:, :32], p[:, 32:])] for p in X], 2, axis)
    assert np.array_equal(exmy.fake_quantize(x, "mxfp4", axis=axis), expected)
    blocks = exmy.quantize(x, "mxfp4", axis=axis)
    assert np.array_equal(blocks.dequantize(), expected) and blocks.shape == x.shape
    assert np.array_equal(blocks.element.decode(blocks.codes).shape, x.shape)
    assert blocks.scales.size == x.size // 32 and blocks.packed.size == x.size // 2


def test_a_matrix_may_be_blocked_down_its_columns():
    x = X[0].T.copy()
    assert np.array_equal(exmy.fake_quantize(x, "mxfp4", axis=0).T, exmy.fake_quantize(X[0], "mxfp4"))
    assert np.array_equal(exmy.quantize(x, "nvfp4", axis=0).dequantize(), exmy.fake_quantize(x, "nvfp4", axis=0))
    assert np.array_equal(exmy.quantize(x, "nvfp4", axis=0), exmy.fake_quantize(x, "nvfp4", axis=0))
    assert exmy.quantize(x, "nvfp4").tensor_scale == np.float32(np.abs(x).max() / np.float32(2688))


@pytest.mark.parametrize("axis", [0, -1])
def test_blocks_are_made_of_their_parts(axis):
    b = exmy.quantize(X[0], "nvfp4", axis=axis)
    again = exmy.Blocks.from_parts(b.format, b.shape, b.packed, b.scales, b.tensor_scale, axis=axis)
    assert np.array_equal(again.dequantize(), b.dequantize()) and np.array_equal(again.codes, b.codes)
    with pytest.raises(ValueError):
        exmy.Blocks.from_parts(b.format, b.shape, b.packed[1:], b.scales, b.tensor_scale, axis=axis)


def test_what_decodes_to_nothing_is_not_stored():
    x = np.ones((2, 32), np.float32)
    x[0, 0] = np.nan
    b = exmy.quantize(x, "nvfp4")
    assert np.isnan(b.tensor_scale) and np.isnan(b.dequantize()[0]).all()
    with pytest.raises(ValueError, match="finite"):
        exmy.Blocks.from_parts(b.format, b.shape, b.packed, b.scales, b.tensor_scale)
    with pytest.raises(ValueError, match="nothing of use"):
        pickle.dumps(b)


def test_what_is_not_float32_is_widened_or_refused():
    narrow = X.astype(ml_dtypes.bfloat16)
    assert np.array_equal(exmy.fake_quantize(narrow, "mxfp4"), exmy.fake_quantize(narrow.astype(np.float32), "mxfp4"))
    strided = np.repeat(X, 2, axis=2)[:, :, ::2]
    assert np.array_equal(exmy.fake_quantize(strided, "mxfp4"), exmy.fake_quantize(X, "mxfp4"))
    for wrong in (X.astype(np.float64), X.astype(np.int32)):
        with pytest.raises(TypeError, match="float32, float16 or bfloat16"):
            exmy.fake_quantize(wrong, "mxfp4")


def test_results_go_where_they_are_asked_to():
    out = np.empty_like(X)
    assert exmy.fake_quantize(X, "nvfp4", out=out) is out
    assert np.array_equal(out, exmy.fake_quantize(X, "nvfp4"))
    x = X.copy()
    for wrong in (x, out[:3], X.astype(np.float64)):
        with pytest.raises(ValueError):
            exmy.fake_quantize(x, "nvfp4", out=wrong)
    assert np.array_equal(x, X)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        exmy.fake_quantize(X, "nvfp4", out=out)


def test_stochastic_rounding_takes_the_words_of_its_seed():
    x = np.full(4096, 1.0625, np.float32)  # half a unit above 1 in E4M3
    codes = exmy.Format("e4m3").encode(x, rounding="sr1", seed=7, stream="test")
    words = exmy.random_words(7, "test", 4096)
    assert np.array_equal(codes, 0x38 + (words >> 31))
    assert np.array_equal(exmy.random_words(7, "test", 96, first=4000), words[4000:])
    with pytest.raises(ValueError, match="seed=1"):
        exmy.fake_quantize(x, "nvfp4@sr8")
    one = exmy.fake_quantize(x, "nvfp4@sr8", seed=1)
    assert np.array_equal(one, exmy.fake_quantize(x, "nvfp4@sr8", seed=1))


def test_a_forked_process_computes():
    x = RNG.standard_normal((512, 512)).astype(np.float32)
    expected = exmy.fake_quantize(x, "mxfp4")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert np.array_equal(pool.apply_async(exmy.fake_quantize, (x, "mxfp4")).get(60), expected)


def test_numbers_are_rounded_once():
    e4m3 = exmy.Format("e4m3")
    # Just above the middle of 1 and 1.125; the middle itself in float32.
    x = [1 + 2**-4 + 2**-40, 1 + 2**-4, 3]
    assert e4m3.encode(x).tolist() == [0x39, 0x38, 0x44]
    assert e4m3.encode(np.array(x)).tolist() == [0x39, 0x38, 0x44]
    f64 = exmy.Format("f64")
    assert f64.decode(f64.encode([0.1, 1e300])).tolist() == [0.1, 1e300]
    with pytest.raises(TypeError):
        e4m3.encode(["1.5"])


@pytest.mark.parametrize(
    "codes",
    [
        np.array([0x3F80], ">u2"),
        np.array([1.0], np.float16),
        np.array([1], np.int16),
        np.array([True]),
        np.array([1.0], ml_dtypes.float8_e5m2),
        [1],
    ],
)
def test_codes_are_not_guessed(codes):
    with pytest.raises(TypeError, match="codes of bf16 are uint16: .*(numpy.uint16|decode.codes. has their values)"):
        exmy.Format("bf16").decode(codes)


def test_codes_beyond_the_last_are_refused():
    with pytest.raises(ValueError, match="the last is 0xf"):
        exmy.Format("e2m1").decode(np.array([16], np.uint8))


def test_memory_of_another_kind_is_not_written():
    for out in (np.empty(X.shape, ">f4"), np.empty(X.shape), [0.0], np.empty_like(X)[:, :, ::-1]):
        with pytest.raises(ValueError):
            exmy.fake_quantize(X, "mxfp4", out=out)
    unaligned = np.frombuffer(b"-" + X.tobytes(), np.uint8)[1:].view("f4").reshape(X.shape)
    assert np.array_equal(exmy.fake_quantize(unaligned, "mxfp4"), exmy.fake_quantize(X, "mxfp4"))
    with pytest.raises(TypeError):
        exmy.Blocks.from_parts("mxfp4", (1, 32), np.zeros(16, np.uint8), np.zeros(1, ">u2"))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_blocks_are_copied_and_sent(axis):
    b = exmy.quantize(X, "nvfp4", axis=axis)
    again = pickle.loads(pickle.dumps(b))
    assert again.axis == axis and again.shape == X.shape
    assert np.array_equal(again.dequantize(), b.dequantize())


def test_matrix_units_take_their_own_types():
    a, b = (x.astype(ml_dtypes.bfloat16) for x in (X[0, :, :16], X[1, :, :16].T))
    # 2^24 + 1 - 2^24 is 0 where 25 bits remain beside the largest term, and 1 exactly.
    row = np.array([[2.0**24, 1.0, -(2.0**24)] + [0.0] * 13], ml_dtypes.bfloat16)
    ones = np.ones((16, 1), ml_dtypes.bfloat16)
    assert exmy.gemm(row, ones, sum="exact")[0, 0] == 1.0
    assert exmy.gemm(row, ones, sum="fma").shape == (1, 1)
    assert exmy.gemm(a, b, sum="hopper").shape == (4, 4)
    assert np.array_equal(exmy.gemm(a, b, sum="exact"), exmy.gemm(a.astype("f4"), b.astype("f4"), sum="exact"))
    assert exmy.gemm(a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e4m3fn), sum="hopper").shape == (4, 4)


def test_a_file_describes_a_unit(tmp_path):
    row = np.array([[2.0**24, 1.0, -(2.0**24)] + [0.0] * 13], ml_dtypes.bfloat16)
    ones = np.ones((16, 1), ml_dtypes.bfloat16)
    unit = tmp_path / "unit.toml"
    for f, kept in [(23, 0.0), (24, 1.0)]:  # the last bit that is kept of a sum of 2^24: 2 or 1
        unit.write_text(f'like = "custom"\na = "bf16"\nl = 16\nf = {f}\n')
        for path in (unit, str(unit), f"{unit}+f32"):
            assert exmy.gemm(row, ones, sum=path)[0, 0] == kept
    with pytest.raises(ValueError, match="missing.toml"):
        exmy.gemm(row, ones, sum=tmp_path / "missing.toml")


def test_products_are_summed_in_the_order_that_is_named():
    a, b = X[0, :, :32], X[1, :, :32]
    exact = [[float(sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(r, c))) for c in b] for r in a]
    found = exmy.gemm(a, b.T, sum="exact")
    assert np.array_equal(found, np.array(exact, np.float64).astype(np.float32))
    assert np.array_equal(exmy.gemm(a, np.ascontiguousarray(b.T), sum="exact"), found)
    rounded = found.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(exmy.gemm(a, b.T, sum="exact", output=exmy.Format("bf16")), rounded)
    p, q = exmy.quantize(a, "mxfp4"), exmy.quantize(b.T, "mxfp4", axis=0)
    assert np.array_equal(exmy.gemm(p, q, sum="exact"), exmy.gemm(p.dequantize(), q.dequantize(), sum="exact"))
    with pytest.raises(ValueError, match="32 columns and 4 rows"):
        exmy.gemm(a, b)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: exmy.Format("e99m1"), "e99m1"),
        (lambda: exmy.Quantizer("mxfp5"), "mxfp5"),
        (lambda: exmy.fake_quantize(X, "mxfp4", axis=3), "axis is 3"),
        (lambda: exmy.fake_quantize(X, "mxfp4@sr8", seed=-1), "seed is -1"),
        (lambda: exmy.fake_quantize(X, "mxfp4@sr8", seed=2**64), "seed is 18446744073709551616"),
        (lambda: exmy.fake_quantize(np.float32(1), "mxfp4"), "single number"),
        (lambda: exmy.fake_quantize(X[..., :20], "rht16>nvfp4"), "zeros"),
        (lambda: exmy.gemm(X[0], X[0].T, sum="hoper"), "hoper"),
        (lambda: exmy.gemm(X, X), r"a has shape \(6, 4, 64\)"),
        (lambda: exmy.Format("e4m3").encode(X, rounding="up"), "up"),
        (lambda: exmy.Format("f64").values, "decode"),
        (lambda: exmy.gemm(exmy.quantize(SQUARE, "mxfp4", axis=0), SQUARE), r"a is .* exmy.quantize\(a, .., axis=-1\)"),
        (lambda: exmy.gemm(SQUARE, exmy.quantize(SQUARE, "mxfp4")), r"b is .* exmy.quantize\(b, .., axis=0\)"),
        (lambda: exmy.gemm(SQUARE, SQUARE, output="bf16", rounding="sr8"), "seed=1"),
        (lambda: exmy.gemm(SQUARE, SQUARE, output="f64"), "float32"),
        (lambda: exmy.Format("e4m3").value(-1), "code is -1"),
        (lambda: exmy.random_words(1, "test", -1), "count is -1"),
        (lambda: exmy.random_words(1, "test", 4, first=2**64 - 3), r"2\*\*64 words"),
        (lambda: exmy.Blocks.from_parts("mxfp4", (-1, 32), *PARTS), "a side of shape is -1"),
    ],
)
def test_mistakes_are_exceptions_that_say_so(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()


PARTS = np.zeros(16, np.uint8), np.zeros(1, np.uint8)


@pytest.mark.parametrize(
    "wrong, said",
    [
        # The default of NumPy, where None stands for a type, is float64.
        (lambda: exmy.Format(None), "not None"),
        (lambda: exmy.Format(5), "not 5"),
        (lambda: exmy.Quantizer(None), "here it is a NoneType"),
        (lambda: exmy.fake_quantize("nvfp4", X), "here it is a ndarray"),
        (lambda: exmy.fake_quantize(X, "mxfp4", axis=1.0), "axis is 1.0"),
        (lambda: exmy.fake_quantize(X, "mxfp4@sr8", seed="a"), "seed is 'a'"),
        (lambda: exmy.fake_quantize(X, "mxfp4@sr8", seed=1, stream=()), r"stream is \(\); a stream is a text"),
        (lambda: exmy.fake_quantize(X, "mxfp4@sr8", seed=1, stream=("a", -1)), "integers from 0 up"),
        (lambda: exmy.random_words(None, "test", 1), "seed is None"),
        (lambda: exmy.random_words(1, "test", 2.5), "count is 2.5"),
        (lambda: exmy.gemm(SQUARE, SQUARE, sum=None), "sum is None, and a text is needed, such as 'hopper'"),
        (lambda: exmy.gemm(SQUARE, SQUARE, rounding=5), "rounding is 5"),
        (lambda: exmy.gemm(SQUARE, SQUARE, output=5), "a format is .* not 5"),
        (lambda: exmy.Format("e4m3").encode(X, overflow=1), "overflow is 1"),
        (lambda: exmy.Format("e4m3").value("a"), "code is 'a'"),
        (lambda: exmy.Blocks.from_parts("mxfp4", 5, *PARTS), "shape is 5"),
        (lambda: exmy.Blocks.from_parts("mxfp4", (1.0, 32), *PARTS), "a side of shape is 1.0"),
        (lambda: exmy.Blocks.from_parts("nvfp4", (1, 32), *PARTS, "a"), "tensor_scale is 'a', and a number"),
        (lambda: exmy.Format("e4m3").encode([True]), "elements of bool, and float64, float32.*numpy.float64"),
        (lambda: exmy.Format("e4m3").encode([2**60 + 1]), "elements of int64, and float64.*rounds them"),
        (lambda: exmy.Format("e4m3").decode(X), r"exmy.Format\('e4m3'\).encode\(x\) has the codes of numbers"),
        (lambda: exmy.gemm(SQUARE.astype("u1"), SQUARE), r"uint8.*codes, exmy.Array.from_codes\(a, 'e4m3'\)"),
        (lambda: exmy.fake_quantize(SQUARE.astype(ml_dtypes.float8_e5m2), "mxfp4"), r"float8_e5m2'\).decode\(x\)"),
    ],
)
def test_arguments_of_another_kind_are_refused(wrong, said):
    with pytest.raises(TypeError, match=said):
        wrong()


def test_results_are_not_written_out_of_line():
    out = np.frombuffer(bytearray(4 * 32 + 1), np.uint8)[1:].view("f4").reshape(1, 32)
    with pytest.raises(ValueError, match="out must be aligned, and begins [123] bytes past a multiple of 4"):
        exmy.fake_quantize(SQUARE[:1, :32], "mxfp4", out=out)


@pytest.mark.parametrize(
    "wrong, name",
    [
        (lambda text: exmy.Format(text), "a format"),
        (lambda text: exmy.Quantizer(text), "a quantizer"),
        (lambda text: exmy.fake_quantize(X, text), "a quantizer"),
        (lambda text: exmy.gemm(SQUARE, SQUARE, sum=text), "sum"),
        (lambda text: exmy.gemm(SQUARE, SQUARE, sum=pathlib.Path(text[:2] + "\udc80")), "sum"),
        (lambda text: exmy.Format("e4m3").encode(X, rounding=text), "rounding"),
        (lambda text: exmy.Blocks.from_parts(text, (1, 32), *PARTS), "format"),
        (lambda text: exmy.Array(X, text), "a format"),
    ],
)
def test_texts_that_are_no_unicode_are_refused(wrong, name):
    with pytest.raises(ValueError, match=rf"{name} is 'mx\\ud[c8][80]0', which is no valid Unicode: .* at position 2"):
        wrong("mx\ud800")


def test_a_single_number_has_a_code():
    e4m3 = exmy.Format("e4m3")
    for x in (1.5, np.float32(1.5), np.array(1.5)):
        code = e4m3.encode(x)
        assert code.shape == () and code == 0x3C and e4m3.decode(code) == 1.5
    assert e4m3.encode(2) == 0x40


def test_parts_of_blocks_can_be_written():
    """PyTorch warns of arrays that cannot. What is written stays in the copy, as the docstring says."""
    b = exmy.quantize(SQUARE, "mxfp4")
    assert "does not reach the blocks" in " ".join(exmy.Blocks.__doc__.split())
    for part in (b.codes, b.packed, b.scales):
        part[...] = 0
    assert np.array_equal(b.dequantize(), SQUARE)


class Csr:
    """A sparse matrix, as those of SciPy, which NumPy takes for an object."""

    def toarray(self):
        raise AssertionError("not asked for")


@pytest.mark.parametrize(
    "x, said",
    [
        (X.astype(np.complex64), "complex64.*x.real and x.imag are two arrays"),
        (np.array(["a"]), "an array of numbers"),
        (np.array([None, 1.0]), "elements of object.*an array of numbers"),
        (None, "x is a NoneType, and an array of numbers is needed"),
        (Csr(), r"x is a Csr.*x.toarray\(\)"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(x, said):
    for wrong in (lambda: exmy.fake_quantize(x, "mxfp4"), lambda: exmy.Format("e4m3").encode(x)):
        with pytest.raises(TypeError, match=said):
            wrong()


def test_infinities_saturate_in_formats_and_not_in_blocks():
    """As the page says; docs/blocks.md has the scales of every profile."""
    x = np.ones((1, 64), np.float32)
    x[0, :2] = np.inf, -np.inf
    for name, found in [("e4m3", [448, -448, 1]), ("e2m1", [6, -6, 1]), ("e5m2", [np.inf, -np.inf, 1])]:
        assert exmy.fake_quantize(x, name)[0, :3].tolist() == found
    for name in ("mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e3m2", "mxint8", "mxfp4", "mxfp4@ceil", "mxfp4@rceil"):
        found = exmy.fake_quantize(x, name)[0]
        assert np.isnan(found[:32]).all() and (found[32:] == 1).all()
        assert exmy.quantize(x, name).scales[0, 0] == 255
    # A tensor scale of 1, and the largest scale of a block.
    found = exmy.fake_quantize(x, "nvfp4")[0]
    assert found[:2].tolist() == [2688, -2688] and (found[2:16] == 0).all() and np.all(found[16:] == found[16])
    assert exmy.quantize(x, "nvfp4").tensor_scale == 1
    row = exmy.fake_quantize(np.array([[np.inf, 1], [np.nan, 1], [2, 1]], np.float32), "e4m3/row:f32")
    assert np.array_equal(row, [[np.inf, 0], [np.nan] * 2, [2, 1]], equal_nan=True)


def test_empty_arrays_are_arrays():
    for shape in [(0, 32), (3, 0), (0,)]:
        empty = np.empty(shape, np.float32)
        assert exmy.fake_quantize(empty, "mxfp4").shape == shape
        assert exmy.Format("e4m3").encode(empty).shape == shape


def test_other_threads_run_meanwhile():
    x = RNG.standard_normal((1024, 1024)).astype(np.float32)
    expected, found = exmy.fake_quantize(x, "nvfp4"), [None] * 4

    def work(i):
        found[i] = exmy.fake_quantize(x, "nvfp4")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(np.array_equal(one, expected) for one in found)


def test_the_first_lines_of_the_page_work():
    page = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
    program = page.read_text().split("python - <<'END'\n", 1)[1].split("\nEND\n", 1)[0]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    blocks, codes = ran.stdout.splitlines()
    assert blocks.startswith("(64, 256) (64, 8) 448.0 ")
    # 0.1 = 2^-4 1.6, nearest 2^-4 (1 + 5 / 8): (7 - 4) 8 + 5; 1: 7 8; 448 = 2^8 (1 + 6 / 8): 15 8 + 6.
    assert codes == "[ 29  56 126] (64, 64)"
