"""Tensors of PyTorch on an NVIDIA GPU for the functions of `exmy`: results are tensors there, with the bits of the CPU.

Numbers do not pass through the host. What has no kernel is refused, in words that say what would work.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import _exmy, _tensors
from ._arrays import _matrix, _rows, _seed, _text
from ._format import Format, _is_type_of
from ._formats import Blocks

_CODES = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}


def _code_type(format: Format) -> torch.dtype:
    if format.bits > 32:
        raise NotImplementedError(f"{format} has codes of {format.bits} bits, and GPUs have up to 32: x.cpu()")
    return _CODES[1 if format.bits <= 8 else 2 if format.bits <= 16 else 4]


def _name(x: torch.Tensor) -> str:
    return str(x.dtype).partition(".")[2]


def _rounds(x: torch.Tensor, axis: int):
    return _matrix(_tensors.plain(x, "x"), axis, _tensors.whole, torch.moveaxis)


@dataclass(frozen=True)
class Gpu:
    """A GPU, by its number."""

    index: int

    def _call(self, function, *arguments):
        """What a function of `_exmy` gives, after what PyTorch has asked of the GPU; tensors go by addresses."""
        _tensors.wait(self.index)
        return function(self.index, *(one.data_ptr() if isinstance(one, torch.Tensor) else one for one in arguments))

    def fake_quantize(self, quantizer, x: torch.Tensor, axis: int, seed, stream, out) -> torch.Tensor:
        matrix, along, moved = _rounds(x, axis)
        if out is not None:
            _check_out(self.index, out, x, axis, moved)
        target = _tensors.empty(matrix.shape, matrix) if out is None else out
        how = _rows(matrix), along, _seed(seed), stream
        self._call(quantizer._fake_quantize_on, matrix, *how, target if out is None else _tensors.written(out))
        return target if moved is None else torch.moveaxis(target, -1, moved)

    def encode(self, format: Format, x: torch.Tensor, rounding, overflow, seed, stream) -> torch.Tensor:
        kind = _code_type(format)
        if x.dtype == torch.float64:
            raise NotImplementedError("x has elements of float64, and GPUs round float32: x.cpu() is rounded once")
        x = _tensors.plain(x, "x")
        codes = _tensors.empty(x.shape, x, kind)
        self._call(format._encode_on, x, x.numel(), codes, rounding, overflow, _seed(seed), stream)
        return codes

    def decode(self, format: Format, codes: torch.Tensor) -> torch.Tensor:
        if not format._fits_f32:
            raise NotImplementedError(f"GPUs decode to float32, which has not all numbers of {format}: codes.cpu()")
        kind, found = _code_type(format), _name(codes)
        codes = codes.detach()
        if _is_type_of(found, format):
            codes = codes.contiguous().view(kind)
        elif codes.dtype in _CODES.values() and codes.element_size() <= kind.itemsize:
            codes = codes.to(kind)
        else:
            name = str(kind).partition(".")[2]
            how = f"codes.to(torch.{name})"
            if codes.is_floating_point():
                how = f"{format!r}.encode(x) has the codes of numbers"
            raise TypeError(f"codes has elements of {found}, and codes of {format} are {name}: {how}")
        last = (1 << format.bits) - 1
        if codes.numel() and format.bits < 8 * kind.itemsize:
            # PyTorch has no maxima of wider integers without a sign.
            most = int((codes if kind == torch.uint8 else codes.to(torch.int64)).max())
            if most > last:
                raise ValueError(f"{most:#x} is no code of {format}: the last is {last:#x}")
        codes = _tensors.whole(codes)
        values = _tensors.empty(codes.shape, codes)
        self._call(format._decode_on, codes, codes.numel(), values)
        return values

    def quantize(self, quantizer, x: torch.Tensor, axis: int, seed, stream) -> Blocks:
        matrix, along, moved = _rounds(x, axis)
        made = self._call(quantizer._quantize_on, matrix, _rows(matrix), along, _seed(seed), stream)
        return GpuBlocks(made, tuple(x.shape), moved, x.device)

    def gemm(self, a, b, shape: tuple[int, int], sum: str, output, rounding, seed) -> torch.Tensor:
        # PyTorch may give the memory of a tensor that is no more to another one.
        (left, keep), (right, kept) = _operand(a, "a"), _operand(b, "b")
        out = _tensors.empty(shape, a)
        self._call(_exmy.gemm_on, left, right, sum, output, rounding, _seed(seed), out)
        del keep, kept
        return out


def _check_out(gpu: int, out, x: torch.Tensor, axis: int, moved: int | None) -> None:
    fits = isinstance(out, torch.Tensor) and out.shape == x.shape and out.dtype == torch.float32
    if not fits or _tensors.gpu_of(out, "out") != gpu or not out.is_contiguous():
        raise ValueError(f"out is a contiguous tensor of float32 of shape {tuple(x.shape)} on {x.device}, as x")
    if moved is not None:
        raise ValueError(f"axis is {axis}, and out takes the last axis alone, or the first of a matrix")
    if out.data_ptr() % 256:
        raise ValueError("out begins within another tensor, at no multiple of 256 bytes: torch.empty_like(x)")
    (first, size), (other, more) = ((one.data_ptr(), one.numel() * one.element_size()) for one in (out, x))
    if first < other + more and other < first + size:
        raise ValueError("out and x share memory; out needs its own")


class GpuBlocks(Blocks):
    """Blocks on a GPU; parts and values are tensors there."""

    def __init__(self, inner: _exmy.GpuBlocks, shape: tuple[int, ...], moved: int | None, device: torch.device):
        super().__init__(inner, shape, moved, True)
        self.device, self._gpu = device, Gpu(inner.device)

    def _made(self, write, shape, kind=torch.float32) -> torch.Tensor:
        made = _tensors.empty(shape, self, kind)
        _tensors.wait(self._inner.device)
        write(made.data_ptr())
        return made

    @property
    def codes(self) -> torch.Tensor:
        return self._back(self._made(self._inner._codes, self._inner.shape, _code_type(self.element)))

    @property
    def packed(self) -> torch.Tensor:
        return self._made(self._inner._packed, self._inner.sizes[:1], torch.uint8)

    @property
    def scales(self) -> torch.Tensor:
        return self._made(self._inner._packed_scales, self._inner.blocks, _code_type(self.scale))

    def dequantize(self) -> torch.Tensor:
        return self._back(self._made(self._inner._dequantize, self._inner.shape))

    def cpu(self) -> Blocks:
        inner = self._inner
        parts = (one.cpu().numpy().tobytes() for one in (self.packed, self.scales))
        made = _exmy.Blocks.from_parts(inner.name, inner.shape, inner.along_cols, *parts, inner.tensor_scale)
        return Blocks(made, self.shape, self._moved, True)

    def _moveaxis(self, rows: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.moveaxis(rows, -1, axis)

    def __reduce__(self):
        self._check_stored()
        inner = self._inner
        # As bytes, since PyTorch does not store all integers.
        scales = self._made(inner._packed_scales, inner.sizes[1:], torch.uint8)
        parts = inner.name, inner.shape, inner.along_cols, self.packed, scales, inner.tensor_scale
        return blocks, (*parts, self.shape, self._moved)

    def __repr__(self) -> str:
        return f"<exmy.Blocks {self.format} of shape {self.shape} on {self.device}>"


def blocks(format: str, rows, along: bool, packed, scales, tensor_scale, shape=None, moved=None) -> Blocks:
    """Blocks of their parts on a GPU."""
    gpu = _tensors.gpu_of(packed, "packed")
    if gpu is None or _tensors.gpu_of(scales, "scales") != gpu:
        raise TypeError(f"packed is on {packed.device} and scales on {scales.device}; parts are on one GPU")
    if packed.dtype != torch.uint8 or scales.dtype not in _CODES.values():
        raise TypeError(
            f"packed has elements of {_name(packed)} and scales of {_name(scales)}; uint8 and codes of scales, as "
            f".packed and .scales give them, are needed"
        )
    packed, scales = (_tensors.whole(one.detach()) for one in (packed, scales))
    sizes = (one.numel() * one.element_size() for one in (packed, scales))
    _tensors.wait(gpu)
    parts = zip((packed.data_ptr(), scales.data_ptr()), sizes)
    made = _exmy.GpuBlocks.from_parts(gpu, format, tuple(rows), along, *parts, tensor_scale)
    return GpuBlocks(made, tuple(rows) if shape is None else shape, moved, packed.device)


def _operand(x, name: str):
    """What `_exmy.gemm_on` takes of an operand, and the tensor whose memory that is."""
    if isinstance(x, GpuBlocks):
        return (x._inner, x.shape, False, None), None
    turned = x.t().is_contiguous() and not x.is_contiguous()
    x, kind = x.t() if turned else x, _name(x)
    if kind.startswith(("bfloat16", "float16", "float8")):
        x = _tensors.whole(x.detach())
    else:
        x, kind = _tensors.plain(x, name), None
    return (x.data_ptr(), tuple(x.shape), turned, kind), x
