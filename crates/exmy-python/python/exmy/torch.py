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

import fnmatch
import operator
import re
import warnings
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from . import _exmy
from ._arrays import _quantizer, _seed

__all__ = ["Linear", "convert", "fake_quantize", "load_state", "set_step", "state"]

_KINDS = (torch.float32, torch.bfloat16, torch.float16)


def _gpu(x: torch.Tensor, name: str) -> int | None:
    """The number of the GPU that a tensor is on; None on the CPU."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}, and a tensor of PyTorch is needed: torch.as_tensor({name})")
    if x.device.type == "cpu":
        return None
    if x.device.type == "cuda":
        return x.device.index
    raise TypeError(f"{name} is on {x.device}, and exmy computes on the CPU and on NVIDIA GPUs: {name}.cpu()")


def _empty(shape, like: torch.Tensor) -> torch.Tensor:
    return torch.empty(tuple(shape), dtype=torch.float32, device=like.device)


def _aligned(x: torch.Tensor) -> torch.Tensor:
    """A tensor of a GPU that begins where kernels read it fastest, copied if it is a part of another."""
    return x.clone() if x.data_ptr() % 256 else x


def _plain(x: torch.Tensor, name: str) -> torch.Tensor:
    """A tensor contiguous and of float32, copied only where it is not."""
    gpu = _gpu(x, name)
    if x.dtype not in _KINDS:
        raise TypeError(f"{name} has elements of {x.dtype}; float32, bfloat16 or float16 is needed: {name}.float()")
    x = x.detach().float().contiguous()
    return x if gpu is None else _aligned(x)


def _call(function, gpu: int | None, *arguments) -> None:
    """Calls a function of `_exmy` that takes arrays, or addresses on a GPU, in place of tensors."""
    if gpu is not None and torch.cuda.is_available():
        torch.cuda.current_stream(gpu).synchronize()
    memory = lambda x: x.numpy() if gpu is None else x.data_ptr()
    function(*(memory(one) if isinstance(one, torch.Tensor) else one for one in arguments))


def _rounded(x: torch.Tensor, name: str, quantizer, axis: int, seed, stream) -> torch.Tensor:
    gpu = _gpu(x, name)
    if gpu is None or x.numel() == 0:
        found = quantizer.fake_quantize(_plain(x.cpu(), name).numpy(), axis=axis, seed=seed, stream=stream)
        return torch.from_numpy(np.ascontiguousarray(found)).to(x.device, x.dtype)
    if x.dim() == 0 or not -x.dim() <= axis < x.dim():
        raise ValueError(f"axis is {axis}, and {name} has {x.dim()} axes")
    down = x.dim() == 2 and axis % 2 == 0
    rows = _plain(x if down else x.movedim(axis, -1), name)
    out = _empty(rows.shape, rows)
    shape = rows.numel() // rows.shape[-1], rows.shape[-1]
    _call(quantizer._fake_quantize_on, gpu, gpu, rows, shape, not down, seed, stream, out)
    return (out if down else out.movedim(-1, axis)).to(x.dtype)


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, quantizer, axis, seed, stream, backward):
        ctx.how = backward, axis, seed, stream
        return _rounded(x, "x", quantizer, axis, seed, stream)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        quantizer, axis, seed, stream = ctx.how
        if quantizer is not None:
            label, *rest = (stream,) if isinstance(stream, str) else stream
            g = _rounded(g, "the gradient", quantizer, axis, seed, (f"{label} gradient", *rest))
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
    return _FakeQuantize.apply(x, quantizer, axis, _seed(seed), stream, backward)


class _Plan:
    """A recipe at work in the layers of a model, and the step that it is at."""

    def __init__(self, recipe: str, layers: list, steps: int | None, seed: int):
        self.arguments = recipe, layers, steps, seed
        self.inner, self.layers = _exmy.Plan(recipe, layers, steps, seed), layers
        self.step = self.part = 0

    def __getstate__(self):
        return self.arguments, self.step, self.part, self.inner.memory

    def __setstate__(self, state):
        arguments, step, part, memory = state
        self.__init__(*arguments)
        self.step, self.part, self.inner.memory = step, part, memory


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, plan, index, trains):
        rows = x.reshape(-1, x.shape[-1])
        count, gpu = len(rows), _gpu(x, "x")
        for one, name in ((weight, "weight"), (bias, "bias")):
            if one is not None and _gpu(one, name) != gpu:
                raise TypeError(f"{name} is on {one.device} and x on {x.device}; a layer and x are on one device")
        ctx.save_for_backward(x, weight)
        # Tokens of a sequence, which exponents bumped by position ask for.
        ctx.at = (plan.step, plan.part, trains), x.shape[-2] if x.dim() > 2 else 0
        ctx.plan, ctx.index = plan, index
        ctx.kinds = weight.dtype, None if bias is None else bias.dtype
        y = _empty((count, weight.shape[0]), x)
        if count:
            b = None if bias is None else _plain(bias, "bias")
            operands = _plain(rows, "x"), _plain(weight, "weight"), b
            _call(plan.inner.forward, gpu, gpu, index, ctx.at, count, *operands, y)
        return y.to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rows, need = x.reshape(-1, x.shape[-1]), ctx.needs_input_grad
        count, gpu, plan = len(rows), _gpu(x, "x"), ctx.plan.inner
        g = _plain(g.reshape(count, weight.shape[0]), "the gradient")
        dx = _empty(rows.shape, x) if need[0] else None
        if count and need[0]:
            _call(plan.grad_input, gpu, gpu, ctx.index, ctx.at, count, g, _plain(weight, "weight"), dx)
        dw = _empty(weight.shape, x).zero_() if need[1] else None
        db = _empty(weight.shape[:1], x).zero_() if need[2] else None
        if count and (need[1] or need[2]):
            _call(plan.grad_weight, gpu, gpu, ctx.index, ctx.at, count, g, _plain(rows, "x"), dw, db)
        dx = None if dx is None else dx.to(x.dtype).reshape(x.shape)
        dw, db = (None if one is None else one.to(kind) for one, kind in zip((dw, db), ctx.kinds))
        return dx, dw, db, None, None, None


class Linear(torch.nn.Linear):
    """`torch.nn.Linear` under a recipe, which says how operands of `y = x wᵀ`, `dx = g w` and `dw = gᵀ x` are rounded.

    `recipe` is a recipe's text, as `"mxfp8-mix"` or `"nv-nvfp4+last=1"`. `name` is the layer's place in a model, by
    which rules choose and random bits are addressed: `"layers.3.q_proj"`, `"lm_head"`. A layer that computes several
    outputs of one input names all, as `"layers.3.q_proj+k_proj+v_proj"`; its outputs are divided equally, or as
    `widths` says. `steps` are those of the run, which rules such as `from80%` need.

    Sums, seeds and streams are those of `exmy train`. Numbers are float32 inside; inputs of bfloat16 or float16 are
    widened, and results rounded to that. `model.eval()` computes as an evaluation does.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype=None,
        *,
        recipe: str,
        name: str = "layers.0.up_proj",
        widths: Iterable[int] | None = None,
        seed: int = 1,
        steps: int | None = None,
    ):
        super().__init__(in_features, out_features, bias, device, dtype)
        layer = _members(name, out_features, widths), in_features
        self._exmy = _Plan(str(recipe), [layer], steps, _seed(seed)), 0, name

    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs, in the type of `x`."""
        if x.dim() == 0 or x.shape[-1] != self.in_features:
            raise ValueError(f"x has shape {tuple(x.shape)}, and its last axis should have {self.in_features} elements")
        plan, index, _ = self._exmy
        return _Products.apply(x, self.weight, self.bias, plan, index, self.training)

    @property
    def numbers(self) -> dict[str, dict[str, tuple[str, str]]]:
        """The numbers of the operands of each product at this step, by the operators' places."""
        plan, index, _ = self._exmy
        found = {}
        for place, _ in plan.layers[index][0]:
            numbers = plan.inner.numbers(place, plan.step)
            products = zip(numbers[::2], numbers[1::2])
            found[place] = dict(zip(("forward", "grad_input", "grad_weight"), products))
        return found

    def extra_repr(self) -> str:
        plan, _, name = self._exmy
        return f"{super().extra_repr()}, recipe={plan.inner.recipe!r}, name={name!r}"


def _members(name: str, outputs: int, widths) -> list[tuple[str, int]]:
    """The operators of a layer, each with its outputs."""
    first, *others = name.split("+")
    block = first.rpartition(".")[0]
    places = [first, *(f"{block}.{other}" for other in others)]
    if widths is None:
        if outputs % len(places):
            raise ValueError(f"{name} divides {outputs} outputs by {len(places)}; widths says how, if not equally")
        widths = [outputs // len(places)] * len(places)
    widths = [int(width) for width in widths]
    if len(widths) != len(places) or (len(places) > 1 and min(widths) < 1):
        raise ValueError(f"{name} has {len(places)} operators and widths are {widths}")
    return list(zip(places, widths))


def _given(path: str, names: Mapping[str, str]) -> str | None:
    """What the first pattern that matches makes of a module's path."""
    for pattern, name in names.items():
        found = re.fullmatch(re.escape(pattern).replace(r"\*", r"([^.]+)"), path)
        if found:
            parts = iter(found.groups())
            return re.sub(r"\*", lambda _: next(parts, "*"), name)
    return None


def convert(
    model: torch.nn.Module,
    recipe: str,
    *,
    skip: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    seed: int = 1,
    steps: int | None = None,
) -> torch.nn.Module:
    """Makes every `torch.nn.Linear` of a model a `Linear` of a recipe, in place, and returns the model.

    Weights, hooks and the names of parameters stay, so an optimizer that has them goes on. Other modules that multiply,
    as `Conv1D` of transformers, stay as they are, and so does what a pattern of `skip` matches: `["lm_head"]`.

    Rules of a recipe choose by places such as `layers.3.q_proj`. A path of Hugging Face's Llama says its place itself;
    for others `names` does, `*` standing for one word: `names={"h.*.attn.qkv": "layers.*.q_proj+k_proj+v_proj",
    "h.*.mlp.fc": "layers.*.up_proj"}`. A layer without a place gets one behind all others; where the recipe chooses
    blocks or operators, that is refused. After each step call `set_step`.
    """
    skip, names = [skip] if isinstance(skip, str) else list(skip), dict(names or {})
    paths = {path: module for path, module in model.named_modules() if type(module) is torch.nn.Linear}
    for pattern in skip:
        if not any(fnmatch.fnmatchcase(path, pattern) for path, _ in model.named_modules()):
            raise ValueError(f"skip: no module is called {pattern}; there are {_some(path for path in paths)}")
    kept = [path for path, _ in model.named_modules() if any(fnmatch.fnmatchcase(path, one) for one in skip)]
    stays = lambda path: any(path == one or path.startswith(f"{one}.") for one in kept)
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.MultiheadAttention) and not stays(path):
            raise ValueError(
                f"{path} is a torch.nn.MultiheadAttention, which multiplies without modules; skip=[{path!r}] leaves it"
            )
    paths = {path: module for path, module in paths.items() if not stays(path)}
    if not paths:
        raise ValueError("the model has no torch.nn.Linear that could be replaced")
    places = {path: _given(path, names) or _exmy.place_of(path) for path in paths}
    without = [path for path, place in places.items() if place is None]
    blocks = [int(found[1]) for place in places.values() if (found := re.match(r"layers\.(\d+)\.", place or ""))]
    for block, path in enumerate(without, start=1 + max(blocks, default=-1)):
        places[path] = f"layers.{block}.up_proj"
    layers = [(_members(places[path], one.out_features, None), one.in_features) for path, one in paths.items()]
    plan = _Plan(str(recipe), layers, steps, _seed(seed))
    if without and plan.inner.chooses:
        raise ValueError(
            f"recipe {recipe} chooses blocks or operators, and these paths say none: {_some(without)}; "
            f"names={{{without[0]!r}: 'layers.0.up_proj'}} would, with * for a word of both"
        )
    if plan.inner.others:
        warnings.warn(
            f"recipe {recipe}: {_some(plan.inner.others)} are about tensors and operations between linear layers, "
            f"which stay PyTorch's",
            stacklevel=2,
        )
    for module in model.modules():
        # Its evaluation without gradients would read the weights itself, past these layers.
        if isinstance(module, torch.nn.TransformerEncoderLayer):
            module.activation_relu_or_gelu = 0
    for index, (path, module) in enumerate(paths.items()):
        module.__class__ = Linear
        module._exmy = plan, index, places[path]
    return model


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _plans(model: torch.nn.Module) -> list[_Plan]:
    plans = {id(one._exmy[0]): one._exmy[0] for one in model.modules() if isinstance(one, Linear)}
    if not plans:
        raise ValueError("the model has no exmy.torch.Linear; exmy.torch.convert(model, recipe) makes them")
    return list(plans.values())


def set_step(model: torch.nn.Module, step: int, part: int = 0) -> None:
    """Says which step comes next, from 0 on: rules begin by it, and random bits are addressed by it.

    `part` counts batches whose gradients are added in one step, and passes of an evaluation. The same seed, step
    and part give the same bits.
    """
    for name, number in (("step", step), ("part", part)):
        if not 0 <= operator.index(number) < 1 << 64:
            raise ValueError(f"{name} is {number}, and a {name} is at least 0 and below 2**64")
    for plan in _plans(model):
        plan.step, plan.part = operator.index(step), operator.index(part)


def state(model: torch.nn.Module) -> list[dict]:
    """The step, and what recipes remember from step to step (windows of magnitudes, hot channels), for a checkpoint."""
    made = lambda plan: {"recipe": plan.inner.recipe, "step": plan.step, "part": plan.part, "memory": plan.inner.memory}
    return [made(plan) for plan in _plans(model)]


def load_state(model: torch.nn.Module, state: list[dict]) -> None:
    """Goes on from what `state` returned of a model that was converted alike."""
    plans = _plans(model)
    if len(state) != len(plans):
        raise ValueError(f"the state is of {len(state)} recipes, and the model has {len(plans)}")
    for plan, one in zip(plans, state):
        if one["recipe"] != plan.inner.recipe:
            raise ValueError(f"the state is of recipe {one['recipe']}, and the model's is {plan.inner.recipe}")
    for plan, one in zip(plans, state):
        plan.step, plan.part, plan.inner.memory = one["step"], one["part"], one["memory"]
