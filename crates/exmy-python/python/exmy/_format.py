"""Formats, and the codes that numbers have in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import numpy as np

from . import _exmy
from ._arrays import (
    _array,
    _code_type,
    _Codes,
    _format_of,
    _gpu,
    _is_tensor,
    _narrow,
    _numbers,
    _plain,
    _seed,
    _text,
    _to_tensor,
    _unicode,
    _whole,
)

if TYPE_CHECKING:
    import torch

    from ._array import Array


def _name_of(kind) -> str:
    """The text of a format, or of the format of a type of NumPy, ml_dtypes or PyTorch."""
    if isinstance(kind, (str, _exmy.Format)):
        return _unicode(str(kind), "a format")
    if str(kind).startswith("torch."):
        name = str(kind).partition(".")[2]
    elif isinstance(kind, (type, np.dtype)):
        name = np.dtype(kind).name
    else:
        raise TypeError(f'a format is a text such as "e4m3", a Format or a type such as numpy.float16, not {kind!r}')
    text = _format_of(name)
    if text is None:
        raise ValueError(
            f"the type {name} has no format; signed integers of 2 to 32 bits and floating-point types up to float64 "
            f"have one, such as numpy.int16, numpy.float64 and ml_dtypes.bfloat16"
        )
    return text


def _is_type_of(kind: str, format: _exmy.Format) -> bool:
    """Whether a type of this name has the format."""
    text = _format_of(kind)
    return text is not None and _exmy.Format(text) == format


class Format(_exmy.Format):
    """A floating-point format: `Format("e4m3")`, `"bf16"`, `"float8_e5m2"`, `"e6m9"`, `"binary8p3se"`.

    >>> e4m3 = Format("e4m3")
    >>> e4m3.max, e4m3.bits, e4m3.smallest_subnormal
    (448.0, 8, 0.001953125)
    >>> e4m3.encode([0.1, 1.0, -448.0])
    array([ 29,  56, 254], dtype=uint8)
    """

    def __new__(cls, name) -> Format:
        """The format of a name, or of a type of NumPy, ml_dtypes or PyTorch.

        Types of signed integers have plain ones, where the texts "int8", "int4" and the like are MX's fractions:

        >>> Format(np.int8), Format(np.int8).max, Format("int8").max
        (exmy.Format('int8b-6'), 127.0, 1.984375)

        The fractions are clamped to as far below zero as above it, so -2 becomes -1.984375 unless `overflow` is
        "sat-none"; of plain integers -128 stays.
        """
        return super().__new__(cls, _name_of(name))

    def value(self, code: int) -> float:
        """The value of one code, rounded to nearest even where the format is wider than float64."""
        return super().value(_whole(code, "code"))

    @overload
    def encode(
        self, x: torch.Tensor, *, rounding=None, overflow=None, seed=None, stream="quantize"
    ) -> torch.Tensor: ...
    @overload
    def encode(self, x, *, rounding=None, overflow=None, seed=None, stream="quantize") -> np.ndarray: ...
    def encode(self, x, *, rounding=None, overflow=None, seed=None, stream="quantize"):
        """The codes of an array, in the smallest unsigned integers that hold them, each rounded once.

        `x` has elements of float16, bfloat16, float32 or float64, or is a list of numbers. `rounding` is to nearest
        even unless it is a mode such as "rtz" or "sr8", which needs a `seed`; `overflow` is a policy such as
        "sat-finite". Unless it is "sat-none", formats without infinities saturate, where types of ml_dtypes have NaN.
        Of a tensor of PyTorch codes are one where it is; GPUs take no float64.
        """
        rounding = None if rounding is None else _text(rounding, "rounding", "rtz")
        overflow = None if overflow is None else _text(overflow, "overflow", "sat-none")
        if gpu := _gpu(x, "x"):
            return gpu.encode(self, x, rounding, overflow, seed, stream)
        codes = self._encoded(x, rounding, overflow, seed, stream)
        return _to_tensor(codes) if _is_tensor(x) else codes

    def _encoded(self, x, rounding=None, overflow=None, seed=None, stream="quantize") -> np.ndarray:
        """The codes of an array, or of a tensor on the CPU, as an array of NumPy."""
        tensor, x = _is_tensor(x), _array(x, "x")
        # Tensors of bfloat16 and float8 come as their codes, which are no integers to be encoded.
        if not isinstance(x, _Codes) and x.dtype.kind in "iu" and np.all(np.abs(x.astype(np.float64)) < 2.0**53):
            x = x.astype(np.float64)
        x = _plain(_numbers(x, "x", wide=True, tensor=tensor))
        wide = x.dtype == np.float64
        codes = np.empty(x.shape, _code_type(self.bits))
        # A single number is read and written as an array of one.
        self._encode(np.atleast_1d(x), np.atleast_1d(codes), rounding, overflow, _seed(seed), stream, wide)
        return codes

    def array(self, x, *, rounding=None, overflow=None, seed=None, stream="quantize") -> Array:
        """Numbers as an array of this format: `exmy.Array(x, self, ...)`."""
        from ._array import Array

        return Array(x, self, rounding=rounding, overflow=overflow, seed=seed, stream=stream)

    @overload
    def decode(self, codes: torch.Tensor) -> torch.Tensor: ...
    @overload
    def decode(self, codes) -> np.ndarray: ...
    def decode(self, codes):
        """The values of codes as float32, or as float64 where that has not all of them.

        `codes` are unsigned integers, or of the format's own type in NumPy, ml_dtypes or PyTorch. Those of a tensor
        have their values in one.
        """
        if gpu := _gpu(codes, "codes"):
            return gpu.decode(self, codes)
        tensor, codes = _is_tensor(codes), self._codes_of(codes)
        values = np.empty(codes.shape, np.float32 if self._fits_f32 else np.float64)
        self._decode(np.atleast_1d(_plain(codes)), np.atleast_1d(values))
        return _to_tensor(values) if tensor else values

    def _codes_of(self, codes) -> np.ndarray:
        """Codes of this format as integers, without a copy where they are such."""
        tensor, codes, of = _is_tensor(codes), _array(codes, "codes"), np.dtype(_code_type(self.bits))
        narrow, kind = _narrow(codes) or (None, None)
        if kind is not None and _is_type_of(kind, self):
            codes = narrow
        elif kind is None and codes.dtype.kind == "u" and codes.dtype.isnative and codes.dtype.itemsize <= of.itemsize:
            codes = codes.astype(of, copy=False)
        elif codes.dtype.isnative and codes.dtype.kind in "fi" and _is_type_of(codes.dtype.name, self):
            codes = codes.view(of)
        else:
            how = f"codes.to(torch.{of.name})" if tensor else f"numpy.asarray(codes, numpy.{of.name})"
            if kind is not None:
                how = f"exmy.Format({_format_of(kind)!r}).decode(codes) has their values"
            elif codes.dtype.kind == "f":
                how = f"{self!r}.encode(x) has the codes of numbers"
            raise TypeError(f"codes has elements of {kind or codes.dtype}, and codes of {self} are {of.name}: {how}")
        last = (1 << self.bits) - 1
        if codes.size and codes.max() > last:
            raise ValueError(f"{int(codes.max()):#x} is no code of {self}: the last is {last:#x}")
        return codes

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
