"""Quantizers, blocks and products: what `exmy` has for arrays of NumPy, and for tensors, of which results are tensors.
"""

from __future__ import annotations

import math
import numbers
import os
from typing import TYPE_CHECKING, overload

import numpy as np

from . import _exmy
from ._array import Array
from ._arrays import (
    _array,
    _code_type,
    _format_of,
    _gpu,
    _is_float,
    _is_tensor,
    _matrix,
    _narrow,
    _native,
    _numbers,
    _plain,
    _rows,
    _seed,
    _text,
    _to_tensor,
    _unicode,
    _whole,
)
from ._format import Format

if TYPE_CHECKING:
    import torch


class Blocks:
    """A matrix of codes with the scales of its blocks; see `quantize`.

    Parts and values are arrays of NumPy, of a tensor of PyTorch tensors where that was. They are made when they are
    asked for: what is written to them does not reach the blocks. `from_parts` makes blocks of parts that were changed.
    """

    _gpu = None

    def __init__(self, inner: _exmy.Blocks, shape: tuple[int, ...], moved: int | None, tensors: bool = False):
        self._inner, self.shape, self._moved, self._tensors = inner, shape, moved, tensors

    @classmethod
    def from_parts(cls, format, shape, packed, scales, tensor_scale=None, *, axis=-1) -> Blocks:
        """A matrix of its parts, as `packed`, `scales` and `tensor_scale` give them. Blocks lie along `axis`.

        Parts of what is made are tensors of PyTorch where these are.
        A tensor scale that is NaN or infinite is refused, also where `quantize` found it in an array with a NaN: no
        number could be read back.
        """
        if axis not in (-2, -1, 0, 1):
            raise ValueError(f"axis is {axis}, and a matrix has 2 axes: -2 to 1")
        if not isinstance(shape, (tuple, list)) or len(shape) != 2:
            raise TypeError(f"shape is {shape!r}, and the rows and columns of a matrix are needed: (64, 256)")
        format = _unicode(str(format), "format")
        rows, cols = (_whole(size, "a side of shape") for size in shape)
        if not isinstance(tensor_scale, numbers.Real | None):
            raise TypeError(f"tensor_scale is {tensor_scale!r}, and a number is needed, or None: blocks.tensor_scale")
        if _gpu(packed, "packed"):
            from . import _on_gpu

            return _on_gpu.blocks(format, (rows, cols), axis % 2 == 1, packed, scales, tensor_scale)
        tensors = _is_tensor(packed) or _is_tensor(scales)
        packed, scales = np.asarray(packed), np.asarray(scales)
        if packed.dtype != np.uint8 or scales.dtype.kind != "u" or not scales.dtype.isnative:
            raise TypeError(
                f"packed has elements of {packed.dtype} and scales of {scales.dtype.str}; bytes (numpy.uint8) and "
                f"codes of scales, as .packed and .scales give them, are needed"
            )
        parts = packed.tobytes(), scales.tobytes()
        made = _exmy.Blocks.from_parts(format, (rows, cols), axis % 2 == 1, *parts, tensor_scale)
        return cls(made, (rows, cols), None, tensors)

    def _check_stored(self) -> None:
        scale = self.tensor_scale
        if scale is not None and not math.isfinite(scale):
            raise ValueError(f"{self!r} has the tensor scale {scale}, and decodes to nothing of use")

    def __reduce__(self):
        self._check_stored()
        inner = self._inner
        parts = inner.name, inner.shape, inner.along_cols, inner.packed, inner.packed_scales, inner.tensor_scale
        return _again, (parts, self.shape, self._moved, self._tensors)

    @property
    def axis(self) -> int:
        """The axis along which blocks lie."""
        if self._moved is not None:
            return self._moved
        return len(self.shape) - 1 if self._inner.along_cols else 0

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
    def codes(self) -> np.ndarray | torch.Tensor:
        """The codes of the elements, one in each integer, in the shape of the array; a copy each time."""
        rows = np.empty(self._inner.shape, _code_type(self.element.bits))
        self._inner._codes(rows)
        return self._given(self._back(rows))

    @property
    def packed(self) -> np.ndarray | torch.Tensor:
        """The codes as a stream of bits, row by row, the first one in the low bits of the first byte; a copy."""
        return self._given(np.frombuffer(self._inner.packed, np.uint8).copy())

    @property
    def scales(self) -> np.ndarray | torch.Tensor:
        """The codes of the scales, one a block, in rows and columns of blocks; a copy each time."""
        (rows, cols), (high, wide) = self._inner.shape, self._inner.block
        shape = -(-rows // high), -(-cols // wide)
        scales = np.frombuffer(self._inner.packed_scales, _code_type(self.scale.bits))
        return self._given(scales.reshape(shape).copy())

    def dequantize(self) -> np.ndarray | torch.Tensor:
        """The values: code times scale, in the shape of the array."""
        rows = np.empty(self._inner.shape, np.float32)
        self._inner._dequantize(rows)
        return self._given(self._back(rows))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.dequantize(), dtype)

    def cpu(self) -> Blocks:
        """The same blocks in the memory of the host, where they are already unless `x` was on a GPU."""
        return self

    def _given(self, found: np.ndarray) -> np.ndarray | torch.Tensor:
        """A result as it is given out."""
        return _to_tensor(found) if self._tensors else found

    def _back(self, rows):
        if self._moved is None:
            return rows.reshape(self.shape)
        rest = self.shape[: self._moved] + self.shape[self._moved + 1 :]
        return self._moveaxis(rows.reshape(*rest, self.shape[self._moved]), self._moved)

    def _moveaxis(self, rows: np.ndarray, axis: int) -> np.ndarray:
        return np.moveaxis(rows, -1, axis)

    def __repr__(self) -> str:
        return f"<exmy.Blocks {self.format} of shape {self.shape}>"


def _again(parts, shape, moved, tensors=False) -> Blocks:
    return Blocks(_exmy.Blocks.from_parts(*parts), shape, moved, tensors)


def _memory_of(out, x: np.ndarray, tensor: bool) -> np.ndarray:
    """The array of `out`, which has to be what `x` is: an array, or a tensor."""
    if _is_tensor(out) and tensor:
        from . import _tensors

        fits = _tensors.gpu_of(out, "out") is None and str(out.dtype) == "torch.float32" and out.is_contiguous()
        if fits and tuple(out.shape) == x.shape:
            return _aligned(_tensors.written(out).numpy())
    elif not tensor and isinstance(out, np.ndarray) and _is_float(out, "float32") and out.shape == x.shape:
        return _aligned(_native(out))
    if tensor:
        raise ValueError(f"out is a contiguous tensor of float32 of shape {x.shape} on the CPU, as x")
    how = "; out.numpy() is one of a tensor" if hasattr(out, "__dlpack__") else ""
    raise ValueError(f"out is an array of NumPy of float32 of shape {x.shape}, that of x{how}")


def _aligned(out: np.ndarray) -> np.ndarray:
    if not out.flags.aligned:
        at = out.ctypes.data % out.itemsize
        raise ValueError(
            f"out must be aligned, and begins {at} bytes past a multiple of {out.itemsize}: numpy.empty or "
            f"torch.empty makes memory that is"
        )
    return out


class Quantizer(_exmy.Quantizer):
    """What rounds an array: a format or a block format with modes and rules.

    `Quantizer("nvfp4")`, `"mxfp8-e4m3@rceil"`, `"bf16>rht16>nvfp4@sr8"`, `"e8m3@rtz"`: the texts of the program
    and of the library.
    """

    def __new__(cls, name) -> Quantizer:
        """The quantizer of a text, or of a format."""
        if not isinstance(name, (str, _exmy.Format, _exmy.Quantizer)):
            kind = type(name).__name__
            raise TypeError(f'a quantizer is a text such as "nvfp4", a Quantizer or a Format, and here it is a {kind}')
        return super().__new__(cls, _unicode(str(name), "a quantizer"))

    @overload
    def fake_quantize(
        self, x: torch.Tensor, *, axis=-1, seed=None, stream="quantize", out: torch.Tensor | None = None
    ) -> torch.Tensor: ...
    @overload
    def fake_quantize(self, x, *, axis=-1, seed=None, stream="quantize", out=None) -> np.ndarray: ...
    def fake_quantize(self, x, *, axis=-1, seed=None, stream="quantize", out=None):
        """The values that `x` has in low precision, as float32; after a rotation still rotated.

        Blocks lie along `axis`, the one that a product sums along. Stochastic modes need a `seed`: element `i` of
        the matrix takes word `i` of the stream. `out` is an array of float32 of the shape of `x`, contiguous. Of a
        tensor of PyTorch results are one where it is, and `out` is.
        """
        if gpu := _gpu(x, "x"):
            return gpu.fake_quantize(self, x, axis, seed, stream, out)
        tensor, x = _is_tensor(x), _numbers(x, "x")
        matrix, along, moved = _matrix(x, axis)
        if out is not None and moved is not None:
            raise ValueError(f"axis is {axis}, and out takes the last axis alone, or the first of a matrix")
        target = np.empty(matrix.shape, np.float32) if out is None else _memory_of(out, x, tensor)
        self._fake_quantize(matrix, _rows(matrix), along, _seed(seed), stream, target)
        if out is not None:
            return out
        found = target if moved is None else np.moveaxis(target, -1, moved)
        return _to_tensor(found) if tensor else found

    def quantize(self, x, *, axis=-1, seed=None, stream="quantize") -> Blocks:
        """The codes and scales of `x`; of a tensor of PyTorch blocks where it is, whose parts are tensors."""
        if gpu := _gpu(x, "x"):
            return gpu.quantize(self, x, axis, seed, stream)
        tensor, x = _is_tensor(x), _numbers(x, "x")
        matrix, along, moved = _matrix(x, axis)
        made = self._quantize(matrix, _rows(matrix), along, _seed(seed), stream)
        return Blocks(made, x.shape, moved, tensor)

    def __repr__(self) -> str:
        return f"exmy.Quantizer({str(self)!r})"

    def __reduce__(self):
        return Quantizer, (str(self),)


def _quantizer(quantizer) -> Quantizer:
    return quantizer if isinstance(quantizer, Quantizer) else Quantizer(quantizer)


@overload
def fake_quantize(
    x: torch.Tensor, quantizer, *, axis=-1, seed=None, stream="quantize", out: torch.Tensor | None = None
) -> torch.Tensor: ...
@overload
def fake_quantize(x, quantizer, *, axis=-1, seed=None, stream="quantize", out=None) -> np.ndarray: ...
def fake_quantize(x, quantizer, *, axis=-1, seed=None, stream="quantize", out=None):
    """The values that `x` has in what `quantizer` names, a text or a `Quantizer`, as float32 of the same shape.

    Other arguments are those of `Quantizer.fake_quantize`.

    >>> fake_quantize(np.array([[1.0, 2.0, 30.0, 0.5]], dtype=np.float32), "mxfp4")
    array([[ 0.,  2., 24.,  0.]], dtype=float32)
    """
    return _quantizer(quantizer).fake_quantize(x, axis=axis, seed=seed, stream=stream, out=out)


def quantize(x, quantizer, *, axis=-1, seed=None, stream="quantize") -> Blocks:
    """The codes and scales of `x` in what `quantizer` names, a text or a `Quantizer`.

    Other arguments are those of `Quantizer.fake_quantize`.

    >>> b = quantize(np.array([[1.0, 2.0, 30.0, 0.5]], dtype=np.float32), "mxfp4")
    >>> b.codes, b.scales, b.dequantize()
    (array([[0, 1, 7, 0]], dtype=uint8), array([[129]], dtype=uint8), array([[ 0.,  2., 24.,  0.]], dtype=float32))
    """
    return _quantizer(quantizer).quantize(x, axis=axis, seed=seed, stream=stream)


def _place(x, name: str):
    """The GPU that an operand is on; None on the CPU."""
    return x._gpu if isinstance(x, Blocks) else _gpu(x, name)


def _shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int]:
    """That of a product."""
    for shape, name in ((a, "a"), (b, "b")):
        if len(shape) != 2:
            raise ValueError(f"{name} has shape {tuple(shape)}, and a product is of matrices")
    if a[1] != b[0]:
        sides = f"{a[1]} columns and {b[0]} rows"
        raise ValueError(f"a has shape {tuple(a)} and b {tuple(b)}: {sides}, which should be as many")
    return a[0], b[1]


def _operand(x, name: str):
    """What `_exmy.gemm` takes of an operand, and its shape."""
    if isinstance(x, Blocks):
        return (x._inner, x.shape, False, None), x.shape
    if isinstance(x, Array) and x.format.bits <= 16:
        x, codes = x.codes, str(x.format)
    else:
        x, codes = _array(x, name), None
        if narrow := _narrow(x):
            # Narrow numbers stay what they are, since some orders of summation are of them alone.
            x, codes = narrow[0], _format_of(narrow[1])
        else:
            x = _numbers(x, name)
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return (_plain(x.T), x.T.shape, True, codes), x.shape
    return (_plain(x), x.shape, False, codes), x.shape


@overload
def gemm(a: torch.Tensor, b, *, sum="fast", output=None, rounding=None, seed=None) -> torch.Tensor: ...
@overload
def gemm(a, b: torch.Tensor, *, sum="fast", output=None, rounding=None, seed=None) -> torch.Tensor: ...
@overload
def gemm(a, b, *, sum="fast", output=None, rounding=None, seed=None) -> np.ndarray | torch.Tensor: ...
def gemm(a, b, *, sum="fast", output=None, rounding=None, seed=None):
    """C = A B in a stated order of summation, the same bits on any machine.

    `a` and `b` are arrays of float32, of float16, of types of ml_dtypes, or `Blocks`, those of `a` along its last axis
    and of `b` along its first. `sum` names the order: "exact", "fma", "fast", or a matrix unit such as "hopper", which
    takes operands of the types that it has: two of bfloat16, say, or the file that describes one, "unit.toml" (a text
    or a path). `output` is a format that results are
    rounded to, float32 unless it is given; they are returned as float32 either way. Where an operand is a tensor of
    PyTorch, or `Blocks` of one, results are a tensor. On a GPU the orders with kernels are "fast", "blocked256" and
    "hopper".
    """
    rounding = None if rounding is None else _text(rounding, "rounding", "rtz")
    output = None if output is None else str(Format(output))
    sum = _text(os.fsdecode(sum) if isinstance(sum, os.PathLike) else sum, "sum", "hopper")
    on = [_place(x, name) for x, name in ((a, "a"), (b, "b"))]
    if on[0] != on[1]:
        where = " and ".join(
            f"{name} is on {'the CPU' if gpu is None else x.device}" for x, name, gpu in zip((a, b), "ab", on)
        )
        raise TypeError(f"{where}; a product is of two on one device: torch.as_tensor(a, device=b.device)")
    if on[0]:
        return on[0].gemm(a, b, _shape(a.shape, b.shape), sum, output, rounding, seed)
    tensors = any(x._tensors if isinstance(x, Blocks) else _is_tensor(x) for x in (a, b))
    (a, a_shape), (b, b_shape) = _operand(a, "a"), _operand(b, "b")
    out = np.empty(_shape(a_shape, b_shape), np.float32)
    _exmy.gemm(a, b, sum, output, rounding, _seed(seed), out)
    return _to_tensor(out) if tensors else out


def random_words(seed: int, stream: str | tuple, count: int, *, first: int = 0) -> np.ndarray:
    """The words that stochastic roundings take from a stream, which depend on nothing but their place."""
    first, count = _whole(first, "first"), _whole(count, "count")
    if first + count > 1 << 64:
        raise ValueError(f"a stream has 2**64 words, and these are {count} from {first} on")
    words = np.empty(count, np.uint32)
    _exmy.random_words(_whole(seed, "seed"), stream, first, words, count)
    return words
