"""Software floating-point formats of any shape, block formats and products, with stated bits.

    >>> import exmy, numpy as np
    >>> x = np.array([[0.1, 0.3, -3.0, 500.0]], dtype=np.float32)
    >>> exmy.fake_quantize(x, "mxfp4")
    array([[  0.,   0.,  -0., 384.]], dtype=float32)

Arrays are NumPy's, or whatever offers the buffer protocol or DLPack on the CPU. Of PyTorch's tensors results are
tensors; those on an NVIDIA GPU stay there. One that requires a gradient is refused: `exmy.torch` has gradients.
Contiguous arrays of float32 are read where they lie. Those of float16 and bfloat16 are widened first, which is exact.
Others are refused: to round twice is another result.
`Array` has numbers of a format, as codes, with NumPy's ways and arithmetic that rounds once.

`exmy.torch`, imported when it is asked for, has layers for PyTorch; `read_runs`, `read_metrics` and `read_probes` need
pandas.
"""

from ._array import Array, apply
from ._format import Format
from ._formats import Blocks, Quantizer, fake_quantize, gemm, quantize, random_words
from ._runs import read_metrics, read_probes, read_runs

__all__ = [
    "Array",
    "Blocks",
    "Format",
    "Quantizer",
    "apply",
    "fake_quantize",
    "gemm",
    "quantize",
    "random_words",
    "read_metrics",
    "read_probes",
    "read_runs",
]


def __getattr__(name: str):
    if name == "torch":
        import importlib

        return importlib.import_module("exmy.torch")
    raise AttributeError(f"module 'exmy' has no attribute {name!r}")


__version__ = "0.1.0"
