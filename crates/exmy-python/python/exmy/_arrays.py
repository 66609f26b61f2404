"""Arrays and axes for the functions of `exmy._exmy`, which take contiguous matrices.

A quantizer sees a matrix: blocks lie along the last axis of it or down the first. An array of more dimensions is
one of as many rows as all but its last axis have places; along another axis it is moved there and back.
"""

from __future__ import annotations

import math

import numpy as np

from . import _exmy

_CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _code_type(bits: int) -> type:
    return _CODES[next(size for size in _CODES if bits <= 8 * size)]


def _numbers(x, name: str) -> np.ndarray:
    """`x` as an array of float32, without a copy where it is one."""
    if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
        # What DLPack of NumPy lacks, PyTorch widens itself.
        if str(getattr(x, "dtype", "")) in ("torch.bfloat16", "torch.float16"):
            x = x.float()
        x = np.from_dlpack(x.detach() if hasattr(x, "detach") else x)
    x = np.asarray(x)
    if x.dtype == np.float32:
        return x
    if x.dtype == np.float16 or x.dtype.name == "bfloat16":
        return x.astype(np.float32)
    raise TypeError(
        f"{name} has elements of {x.dtype}, and float32, float16 or bfloat16 is needed: "
        f"{name}.astype(numpy.float32) rounds them to the nearest"
    )


def _matrix(x: np.ndarray, axis: int) -> tuple[np.ndarray, bool, int | None]:
    """`x` as contiguous rows, whether blocks lie along the columns, and which axis was moved to the end."""
    if x.ndim == 0:
        raise ValueError("x is a single number; blocks need an axis: x.reshape(1)")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}, and x has {x.ndim} axes: {-x.ndim} to {x.ndim - 1}")
    axis %= x.ndim
    if x.ndim == 2 and axis == 0:
        return np.ascontiguousarray(x), False, None
    moved = None if axis == x.ndim - 1 else axis
    return np.ascontiguousarray(x if moved is None else np.moveaxis(x, axis, -1)), True, moved


def _rows(x: np.ndarray) -> tuple[int, int]:
    return math.prod(x.shape[:-1]), x.shape[-1]


class Format(_exmy.Format):
    """A floating-point format: `Format("e4m3")`, `"bf16"`, `"float8_e5m2"`, `"e6m9"`, `"binary8p3se"`.

    >>> e4m3 = Format("e4m3")
    >>> e4m3.max, e4m3.bits, e4m3.smallest_subnormal
    (448.0, 8, 0.001953125)
    >>> e4m3.encode([0.1, 1.0, -448.0])
    array([ 29,  56, 254], dtype=uint8)
    """

    def encode(self, x, *, rounding=None, overflow=None, seed=None, stream="encode") -> np.ndarray:
        """The codes of an array, in the smallest unsigned integers that hold them.

        `rounding` is to nearest even unless it is a mode such as "rtz" or "sr8", which needs a `seed`; `overflow`
        is a policy such as "sat-finite".
        """
        if isinstance(x, (int, float, list, tuple)):
            x = np.asarray(x, dtype=np.float32)
        x = np.ascontiguousarray(_numbers(x, "x"))
        codes = np.empty(x.shape, _code_type(self.bits))
        self._encode(x, codes, rounding, overflow, seed, stream)
        return codes

    def decode(self, codes) -> np.ndarray:
        """The values of an array of codes as float32. Types of ml_dtypes are read as their codes."""
        codes = np.asarray(codes)
        of = _code_type(self.bits)
        if codes.dtype.itemsize == np.dtype(of).itemsize:
            codes = codes.view(of)
        codes = np.ascontiguousarray(codes.astype(of, casting="safe", copy=False))
        values = np.empty(codes.shape, np.float32)
        self._decode(codes, values)
        return values

    @property
    def values(self) -> np.ndarray:
        """The value of each code, of a format of at most 16 bits."""
        if self.bits > 16:
            raise ValueError(f"{self} has 2**{self.bits} values; decode() gives those of chosen codes")
        return self.decode(np.arange(1 << self.bits, dtype=_code_type(self.bits)))

    def __repr__(self) -> str:
        return f"exmy.Format({str(self)!r})"

    def __reduce__(self):
        return Format, (str(self),)


class Blocks:
    """A matrix of codes with the scales of its blocks; see `quantize`."""

    def __init__(self, inner: _exmy.Blocks, shape: tuple[int, ...], moved: int | None):
        self._inner, self.shape, self._moved = inner, shape, moved

    @classmethod
    def from_parts(cls, format, shape, packed, scales, tensor_scale=None, *, axis=-1) -> Blocks:
        """A matrix of its parts, as `packed`, `scales` and `tensor_scale` give them. Blocks lie along `axis`."""
        if axis not in (-2, -1, 0, 1):
            raise ValueError(f"axis is {axis}, and a matrix has 2 axes: -2 to 1")
        rows, cols = shape
        packed, scales = (np.ascontiguousarray(part).tobytes() for part in (packed, scales))
        made = _exmy.Blocks.from_parts(str(format), (rows, cols), axis % 2 == 1, packed, scales, tensor_scale)
        return cls(made, (rows, cols), None)

    @property
    def format(self) -> str:
        """The block format's name."""
        return self._inner.name

    @property
    def element(self) -> Format:
        """The format of the elements."""
        return Format(str(self._inner.element))

    @property
    def scale(self) -> Format:
        """The format of the scales."""
        return Format(str(self._inner.scale))

    @property
    def tensor_scale(self) -> float | None:
        """The scale of the whole, in formats that have one, as NVFP4."""
        return self._inner.tensor_scale

    @property
    def codes(self) -> np.ndarray:
        """The codes of the elements, one in each integer, in the shape of the array."""
        rows = np.empty(self._inner.shape, _code_type(self.element.bits))
        self._inner._codes(rows)
        return self._back(rows)

    @property
    def packed(self) -> np.ndarray:
        """The codes as a stream of bits, row by row, the first one in the low bits of the first byte."""
        return np.frombuffer(self._inner.packed, np.uint8)

    @property
    def scales(self) -> np.ndarray:
        """The codes of the scales, one a block, in rows and columns of blocks."""
        (rows, cols), (high, wide) = self._inner.shape, self._inner.block
        shape = -(-rows // high), -(-cols // wide)
        return np.frombuffer(self._inner.packed_scales, _code_type(self.scale.bits)).reshape(shape)

    def dequantize(self) -> np.ndarray:
        """The values: code times scale, in the shape of the array."""
        rows = np.empty(self._inner.shape, np.float32)
        self._inner._dequantize(rows)
        return self._back(rows)

    def _back(self, rows: np.ndarray) -> np.ndarray:
        if self._moved is None:
            return rows.reshape(self.shape)
        rest = self.shape[: self._moved] + self.shape[self._moved + 1 :]
        return np.moveaxis(rows.reshape(*rest, self.shape[self._moved]), -1, self._moved)

    def __repr__(self) -> str:
        return f"<exmy.Blocks {self.format} of shape {self.shape}>"


class Quantizer(_exmy.Quantizer):
    """What rounds an array: a format or a block format with modes and rules.

    `Quantizer("nvfp4")`, `"mxfp8-e4m3@rceil"`, `"bf16>rht16>nvfp4@sr8"`, `"e8m3@rtz"`: the texts of the program
    and of the library.
    """

    def fake_quantize(self, x, *, axis=-1, seed=None, stream="quantize", out=None) -> np.ndarray:
        """The values that `x` has in low precision; after a rotation still rotated.

        Blocks lie along `axis`, the one that a product sums along. Stochastic modes need a `seed`: element `i` of
        the matrix takes word `i` of the stream. `out` is an array of float32 of the shape of `x`, contiguous.
        """
        x = _numbers(x, "x")
        matrix, along, moved = _matrix(x, axis)
        if out is not None and (moved is not None or out.shape != x.shape):
            raise ValueError(f"out has shape {out.shape}, and x {x.shape}; out takes the last axis alone")
        target = np.empty(matrix.shape, np.float32) if out is None else out
        self._fake_quantize(matrix, _rows(matrix), along, seed, stream, target)
        return target if moved is None else np.moveaxis(target, -1, moved)

    def quantize(self, x, *, axis=-1, seed=None, stream="quantize") -> Blocks:
        """The codes and scales of `x`."""
        x = _numbers(x, "x")
        matrix, along, moved = _matrix(x, axis)
        made = self._quantize(matrix, _rows(matrix), along, seed, stream)
        return Blocks(made, x.shape, moved)

    def __repr__(self) -> str:
        return f"exmy.Quantizer({str(self)!r})"

    def __reduce__(self):
        return Quantizer, (str(self),)


def _quantizer(quantizer) -> Quantizer:
    return quantizer if isinstance(quantizer, Quantizer) else Quantizer(str(quantizer))


def fake_quantize(x, quantizer, *, axis=-1, seed=None, stream="quantize", out=None) -> np.ndarray:
    """`Quantizer(quantizer).fake_quantize(x, ...)`."""
    return _quantizer(quantizer).fake_quantize(x, axis=axis, seed=seed, stream=stream, out=out)


def quantize(x, quantizer, *, axis=-1, seed=None, stream="quantize") -> Blocks:
    """`Quantizer(quantizer).quantize(x, ...)`.

    >>> b = quantize(np.array([[1.0, 2.0, 30.0, 0.5]], dtype=np.float32), "mxfp4")
    >>> b.codes, b.scales, b.dequantize()
    (array([[0, 1, 7, 0]], dtype=uint8), array([[129]], dtype=uint8), array([[ 0.,  2., 24.,  0.]], dtype=float32))
    """
    return _quantizer(quantizer).quantize(x, axis=axis, seed=seed, stream=stream)


def _operand(x, name: str):
    if isinstance(x, Blocks):
        if len(x.shape) != 2:
            raise ValueError(f"{name} has {len(x.shape)} axes, and a product is of matrices")
        turned = x._moved is not None
        shape = x._inner.shape
        return (x._inner, shape, turned), (shape[::-1] if turned else shape)
    x = _numbers(x, name)
    if x.ndim != 2:
        raise ValueError(f"{name} has {x.ndim} axes, and a product is of matrices")
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return (x.T, x.T.shape, True), x.shape
    return (np.ascontiguousarray(x), x.shape, False), x.shape


def gemm(a, b, *, sum="fast", output=None, rounding=None, seed=None) -> np.ndarray:
    """C = A B in a stated order of summation, the same bits on any machine.

    `a` and `b` are arrays or `Blocks`, those of `a` along its last axis and of `b` along its first. `sum` names the
    order: "exact", "fma", "fast", a matrix unit such as "hopper:bf16". `output` is a format that results are
    rounded to, float32 unless it is given; they are returned as float32 either way.
    """
    (a, a_shape), (b, b_shape) = _operand(a, "a"), _operand(b, "b")
    if a_shape[1] != b_shape[0]:
        raise ValueError(f"a has shape {a_shape} and b {b_shape}: {a_shape[1]} columns and {b_shape[0]} rows")
    out = np.empty((a_shape[0], b_shape[1]), np.float32)
    _exmy.gemm(a, b, sum, output, rounding, seed, out)
    return out


def random_words(seed: int, stream: str, count: int, *, first: int = 0) -> np.ndarray:
    """The words that stochastic roundings take from a stream, which depend on nothing but their place."""
    words = np.empty(count, np.uint32)
    _exmy.random_words(seed, stream, first, words, count)
    return words
