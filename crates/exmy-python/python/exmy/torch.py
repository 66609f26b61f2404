"""exmy in PyTorch: a straight-through function, and linear layers that a recipe rounds.

    >>> import torch, exmy.torch
    >>> x = torch.tensor([[0.1, 0.3, -3.0, 500.0]], requires_grad=True)
    >>> exmy.torch.fake_quantize(x, "mxfp4").sum().backward()
    >>> x.grad
    tensor([[1., 1., 1., 1.]])
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    >>> exmy.torch.convert(model, "mxfp8-mix")[0]
    Linear(in_features=64, out_features=32, bias=True, recipe='mxfp8-mix', name='layers.0.up_proj')

Tensors are on the CPU or on an NVIDIA GPU, where they stay. Numbers have the bits of exmy's own training: the same
seed and step give the same bits, whatever the threads or the device.
"""

from __future__ import annotations

try:
    import torch
except ImportError as error:
    raise ImportError("exmy.torch works on PyTorch's tensors, and PyTorch is not there: pip install torch") from error

from torch.autograd.function import once_differentiable

from . import _tensors
from ._arrays import _seed, _whole
from ._convert import convert
from ._formats import _quantizer
from ._layers import Linear, checkpoint_contexts, load_state, set_step, state

__all__ = ["Linear", "checkpoint_contexts", "convert", "fake_quantize", "load_state", "set_step", "state"]


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, quantizer, axis, seed, stream, backward):
        ctx.how = backward, axis, seed, stream
        return _tensors.rounded(x, "x", quantizer, axis, seed, stream)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        quantizer, axis, seed, stream = ctx.how
        if quantizer is not None:
            label, *rest = (stream,) if isinstance(stream, str) else stream
            g = _tensors.rounded(g, "the gradient", quantizer, axis, seed, (f"{label} gradient", *rest))
        return g, None, None, None, None, None


@torch.compiler.disable
def fake_quantize(
    x: torch.Tensor, quantizer, axis: int = -1, *, seed=None, stream="quantize", backward=None
) -> torch.Tensor:
    """The values that `x` has in low precision; the gradient passes as it is, or rounded by `backward`.

    As `exmy.fake_quantize`, differentiable. Results have the type of `x`: those that bfloat16 or float16 lacks are
    rounded to it. A gradient that rounds stochastically takes the words of the stream `"quantize gradient"`.
    A loop should name the step in the stream, `stream=("quantize", step)`, or it uses the same words each time.
    """
    quantizer = _quantizer(quantizer)
    backward = None if backward is None else _quantizer(backward)
    for one in (quantizer, backward):
        if one is not None and ">" in str(one) and "ht" in str(one):
            raise ValueError(
                f"{one} rotates, and the values would stay rotated; exmy.torch.Linear rotates both operands"
            )
        if one is not None and one.is_stochastic and seed is None:
            raise ValueError(f"{one} rounds stochastically and needs a seed: seed=1")
    return _FakeQuantize.apply(x, quantizer, _whole(axis, "axis", None), _seed(seed), stream, backward)
