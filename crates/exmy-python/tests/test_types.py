"""Types of NumPy and ml_dtypes as formats, integers and other orders of bytes among them. Literals are worked out by
hand."""

import ctypes
import sys

import ml_dtypes
import numpy as np
import pytest

import exmy

SQUARE = np.ones((64, 64), np.float32)


def test_types_name_formats():
    for kind, name in [(np.float16, "f16"), (np.dtype("f4"), "f32"), (ml_dtypes.float8_e5m2, "e5m2")]:
        assert exmy.Format(kind) == exmy.Format(name)
        assert np.array_equal(exmy.gemm(SQUARE, SQUARE, output=kind), exmy.gemm(SQUARE, SQUARE, output=name))


@pytest.mark.parametrize(
    "kind, bits",
    [(np.int8, 8), (np.int16, 16), (np.dtype(">i4"), 32), (ml_dtypes.int4, 4), (ml_dtypes.int2, 2)],
)
def test_types_of_integers_are_plain_integers(kind, bits):
    format, ends = exmy.Format(kind), [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
    assert format.bits == bits and [format.min, format.max] == ends and format.smallest_subnormal == 1
    x = np.array([*ends, -1, 0, 1], kind)
    codes = [int(one) % 2**bits for one in x]
    assert format.encode(x.astype(np.int64)).tolist() == codes
    assert format.encode([-1e10, 1e10]).tolist() == codes[:2]
    if x.dtype.isnative:
        assert format.decode(x).tolist() == x.tolist()


def test_texts_of_integers_are_fractions_of_mx():
    assert [exmy.Format(one).max for one in ("int8", "int4", "int8b-6", "int4b-2")] == [127 / 64, 7 / 4, 127, 7]
    x = exmy.Array(np.array([1, 2, -3, 100], np.int8), np.int8)
    assert x.tolist() == [1, 2, -3, 100] and x.codes.tolist() == [1, 2, 253, 100]
    with pytest.raises(TypeError, match="codes of int8 are uint8"):
        exmy.Format("int8").decode(np.array([1], np.int8))
    with pytest.raises(TypeError, match=r"elements of int4, .*exmy.Format\('int4b-2'\).decode\(codes\)"):
        exmy.Format("int4").decode(np.array([1], ml_dtypes.int4))


def test_products_of_integers_are_integers():
    a, b = np.array([[3, 3]], ml_dtypes.int4), np.array([[2], [2]], ml_dtypes.int4)
    assert exmy.gemm(a, b, sum="exact").tolist() == [[12.0]]
    assert exmy.gemm(np.array([[-3, -3]], ml_dtypes.int4), b, sum="exact", output=np.int16).tolist() == [[-12.0]]
    signs = np.array([[-1, -2]], np.int8).view(ml_dtypes.int4)
    assert exmy.gemm(signs, b, sum="exact").tolist() == [[-6.0]]
    with pytest.raises(TypeError, match=r"elements of int4, .*exmy.Format\('int4b-2'\).decode\(x\)"):
        exmy.fake_quantize(a, "mxfp4")
    # No format is the type's, so none can be advised.
    for kind in (ml_dtypes.uint4, ml_dtypes.int1):
        with pytest.raises(TypeError, match=f"elements of {np.dtype(kind).name}, .*numpy.asarray.a, numpy.float32."):
            exmy.gemm(np.zeros((1, 2), kind), b)


@pytest.mark.parametrize("kind", [np.uint8, np.int64, int, bool, np.complex64, ml_dtypes.uint4, ml_dtypes.int1, object])
def test_types_without_a_format_are_refused(kind):
    with pytest.raises(ValueError, match=f"the type {np.dtype(kind).name} has no format; signed integers of 2 to 32"):
        exmy.Format(kind)


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i4", ml_dtypes.bfloat16, ml_dtypes.int4])
def test_the_order_of_bytes_may_be_said(kind):
    """As it is in arrays of ctypes."""
    order = "<" if sys.byteorder == "little" else ">"
    x = np.array([1, 2, 3, -4]).astype(kind)
    said = x.view(x.dtype.newbyteorder(order))
    if kind != ml_dtypes.int4:
        assert exmy.Format("e4m3").encode(said).tolist() == [0x38, 0x40, 0x44, 0xC8]
    if kind not in ("f8", "i4"):
        row, column = said.reshape(1, 4), said.reshape(4, 1)
        assert exmy.gemm(row, column, sum="exact").tolist() == [[30.0]]
    if kind == "f4":
        out = np.zeros_like(said)
        assert exmy.fake_quantize((ctypes.c_float * 4)(1, 2, 3, -4), "mxfp4", out=out) is out
        assert out.tolist() == [1, 2, 3, -4]


def test_codes_may_say_their_order_of_bytes():
    order = "<" if sys.byteorder == "little" else ">"
    codes = np.array([0x3F80, 0x4000], np.dtype("u2").newbyteorder(order))
    assert exmy.Format("bf16").decode(codes).tolist() == [1.0, 2.0]
    view = exmy.Array.from_codes(codes, "bf16")
    view[0] = 4
    assert codes.tolist() == [0x4080, 0x4000]
