"""Arrays and axes for the functions of `exmy._exmy`, which take contiguous matrices.

A quantizer sees a matrix: blocks lie along the last axis of it or down the first. An array of more dimensions is
one of as many rows as all but its last axis have places; along another axis it is moved there and back.
"""

from __future__ import annotations

import math
import operator
import os
import re
import sys
from typing import TYPE_CHECKING

import numpy as np

from . import _exmy

if TYPE_CHECKING:
    import torch

# A forked process has no threads but the one that forked it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_exmy._after_fork)

# Devices of DLPack whose memory is the host's: the CPU, and memory pinned for a GPU.
_HOST = (1, 3)

_CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _code_type(bits: int) -> type:
    return _CODES[next(size for size in _CODES if bits <= 8 * size)]


def _array(x, name: str) -> np.ndarray:
    """`x` as an array of whatever elements it has, tensors by DLPack without a copy.

    DLPack of NumPy has neither bfloat16 nor types of 8 bits. Those of PyTorch come as integers that view the same
    memory, in arrays that know their format.
    """
    if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
        x = _tensor(x, name)
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: {name}.filled(0)")
    if isinstance(x, _Codes):
        return x
    found = np.asarray(x)
    if found.dtype == object and found.ndim == 0:
        if isinstance(x, int):
            raise ValueError(_too_large(x, name))
        how = f"{name}.toarray()" if hasattr(x, "toarray") else "an array of NumPy or a tensor"
        raise TypeError(f"{name} is a {type(x).__name__}, and an array of numbers is needed: {how}")
    return _native(found)


def _native(found: np.ndarray) -> np.ndarray:
    """The same memory, in the words of this machine for its own order of bytes.

    Arrays of ctypes, and types made with `newbyteorder`, say `<` where NumPy says `=`, and no buffer that is read
    as float32 may say so.
    """
    kind = found.dtype
    return found.view(kind.newbyteorder("=")) if kind.isnative and kind.byteorder in "<>" else found


def _too_large(x: int, name: str) -> str:
    """What is said of a whole number that NumPy has no integers for."""
    try:
        float(x)
    except OverflowError:
        return f"{name} is a whole number of {x.bit_length()} bits, beyond float64, whose largest is 1.8e308"
    return f"{name} is {x}, beyond NumPy's integers of 64 bits: float({name}) rounds it to the nearest of float64"


def _format_of(kind: str) -> str | None:
    """The text of the format of a type of this name in NumPy, ml_dtypes or PyTorch; None of a type without one.

    A type such as int8 has plain integers. The text "int8" is MX's, whose values lie below 2; integers are 2**(8 - 2)
    times as large, which the bias says.
    """
    if found := re.fullmatch(r"int(\d+)", kind):
        kind += f"b{2 - int(found[1])}"
    try:
        _exmy.Format(kind)
    except ValueError:
        return None
    return kind


class _Codes(np.ndarray):
    """Codes of the format of this name, as integers."""

    format: str


def _is_tensor(x) -> bool:
    """Whether `x` is a tensor of PyTorch, which somebody then has imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _to_tensor(found: np.ndarray) -> torch.Tensor:
    """A tensor on the CPU that has the memory of a result."""
    import torch

    return torch.from_numpy(found)


def _gpu(x, name: str):
    """The GPU that a tensor of PyTorch is on, which has the functions of this package; None on the CPU.

    Every tensor passes here first. What has no numbers in rows is refused, and what would lose its gradient.
    """
    if not _is_tensor(x):
        return None
    from . import _on_gpu, _tensors

    index = _tensors.gpu_of(x, name)
    _tensors.check_gradient(x, name)
    return None if index is None else _on_gpu.Gpu(index)


def _tensor(x, name: str) -> np.ndarray:
    if not _is_tensor(x):
        if x.__dlpack_device__()[0] not in _HOST:
            where = getattr(x, "device", "another device")
            raise TypeError(
                f"{name} is on {where}; of arrays there exmy takes tensors of PyTorch: torch.from_dlpack({name})"
            )
        return np.from_dlpack(x)
    if _gpu(x, name) is not None:
        raise TypeError(f"{name} is on {x.device}, and an array on the CPU is needed: {name}.cpu()")
    import torch

    # Views that are negated when they are read are not so in memory.
    x, kind = x.detach().resolve_conj().resolve_neg(), str(x.dtype).partition(".")[2]
    if kind.endswith("_x2"):
        raise TypeError(
            f"{name} has elements of {kind}, two numbers a byte: {name}.view(torch.uint8) has the bytes, whose low and "
            f"high halves (& 15, >> 4) are codes of e2m1"
        )
    if not kind.startswith(("bfloat16", "float8")):
        return np.from_dlpack(x)
    codes = np.from_dlpack(x.view(torch.uint8 if x.element_size() == 1 else torch.uint16)).view(_Codes)
    codes.format = kind
    return codes


def _narrow(x: np.ndarray) -> tuple[np.ndarray, str] | None:
    """Numbers of at most 16 bits as codes, without a copy where bytes are codes, and their type's name."""
    if isinstance(x, _Codes):
        return x.view(np.ndarray), x.format
    if x.dtype.isnative and x.dtype.itemsize <= 2 and x.dtype.kind in "fV":
        kind = x.dtype.name
        if _format_of(kind) is None:
            return None
        codes = x.view(np.uint8 if x.dtype.itemsize == 1 else np.uint16)
        if found := re.fullmatch(r"int(\d)", kind):
            # ml_dtypes reads the low bits of the byte alone, and the others may be copies of the sign.
            codes = codes & ((1 << int(found[1])) - 1)
        return codes, kind
    return None


def _is_float(x: np.ndarray, *names: str) -> bool:
    return x.dtype.isnative and x.dtype.name in names


def _numbers(x, name: str, *, wide: bool = False, tensor: bool = False) -> np.ndarray:
    """`x` as an array of float32, without a copy where it is one; of float64 if it may be as wide.

    What is refused is told in PyTorch's words if it is a tensor, or was one.
    """
    tensor, x = tensor or _is_tensor(x), _array(x, name)
    if _is_float(x, "float32", *(["float64"] if wide else [])):
        return x
    codes, kind = _narrow(x) or (None, None)
    if kind == "float16":
        return x.astype(np.float32)
    if kind == "bfloat16":
        return np.left_shift(codes, 16, dtype=np.uint32).view(np.float32)
    takes = "float64, float32, float16 or bfloat16" if wide else "float32, float16 or bfloat16"
    raise TypeError(
        f"{name} has elements of {_kind(x, kind)}, and {takes} is needed: "
        f"{_how(x, name, kind, wide, tensor)}"
    )


def _kind(x: np.ndarray, kind: str | None) -> str:
    return kind or str(x.dtype.newbyteorder("=") if x.dtype.isnative else x.dtype.str)


def _how(x: np.ndarray, name: str, kind: str | None, wide: bool, tensor: bool) -> str:
    """What makes numbers that can be read of others."""
    if kind is not None:
        return f"exmy.Format({_format_of(kind)!r}).decode({name}) has their values"
    if x.dtype.kind == "c" and tensor:
        return f"torch.view_as_real({name}) has their parts as numbers"
    if x.dtype.kind == "c":
        return f"{name}.real and {name}.imag are two arrays"
    # Integers of ml_dtypes have no kind of their own.
    if x.dtype.kind not in "biuf" and not re.fullmatch(r"u?int\d", x.dtype.name):
        return "an array of numbers"
    how = f"numpy.asarray({name}, numpy.{'float64' if wide else 'float32'})"
    if tensor:
        how = f"{name}.double()" if wide else f"{name}.float()"
    how += " rounds them to the nearest"
    codes = x.dtype.kind == "u" and x.dtype.itemsize <= 2
    return how + (f"; if they are codes, exmy.Array.from_codes({name}, 'e4m3') says of what" if codes else "")


def _plain(x: np.ndarray) -> np.ndarray:
    """`x` contiguous and aligned, copied if it is not."""
    return np.require(x, requirements=["C", "ALIGNED"])


def _whole(value, name: str, least: int | None = 0) -> int:
    """A whole number, at least `least` and below 2**64 if there is such a bound."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, and a whole number is needed") from None
    if least is not None and not least <= number < 1 << 64:
        raise ValueError(f"{name} is {number}; it is at least {least} and below 2**64")
    return number


def _text(value, name: str, example: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, and a text is needed, such as {example!r}")
    return _unicode(value, name)


def _unicode(text: str, name: str) -> str:
    """A text that the library can read, which takes UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        bad = f"{text[error.start]!a} at position {error.start}"
        raise ValueError(f"{name} is {text!a}, which is no valid Unicode: {bad} is half a character") from None
    return text


def _seed(seed) -> int | None:
    return None if seed is None else _whole(seed, "seed")


def _matrix(x, axis: int, plain=_plain, moveaxis=np.moveaxis) -> tuple[np.ndarray, bool, int | None]:
    """`x` as contiguous rows, whether blocks lie along the columns, and which axis was moved to the end."""
    if x.ndim == 0:
        raise ValueError("x is a single number; blocks need an axis: x.reshape(1)")
    axis = _whole(axis, "axis", None)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}, and x has {x.ndim} axes: {-x.ndim} to {x.ndim - 1}")
    axis %= x.ndim
    if x.ndim == 2 and axis == 0:
        return plain(x), False, None
    moved = None if axis == x.ndim - 1 else axis
    return plain(x if moved is None else moveaxis(x, axis, -1)), True, moved


def _rows(x: np.ndarray) -> tuple[int, int]:
    return math.prod(x.shape[:-1]), x.shape[-1]
