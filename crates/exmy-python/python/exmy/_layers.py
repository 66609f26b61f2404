"""Linear layers of PyTorch under a recipe: the three products of each, and the step that a model is at.

A recipe is settled for some layers at once, in a plan that they share. The plan knows the step and the part, by which
random words are addressed, and what the recipe remembers. Words have no other address than the seed, the layer's
place, the step and the part. So two layers of one model that share a place and a seed are refused, where a recipe
takes words: their errors would not be independent. A copy that is a model of its own goes on with the same bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from . import _exmy, _tensors
from ._arrays import _unicode, _whole

# The pass backward that is at work, which computes a checkpointed pass again; -1 if none is.
_backward = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def recipe_text(recipe) -> str:
    """The text of what should be a recipe."""
    if not isinstance(recipe, (str, _exmy.Format, _exmy.Quantizer)):
        raise TypeError(
            f"recipe is {recipe!r}, and a recipe is a text such as 'mxfp8-mix' or 'nv-nvfp4'; 'f32' rounds nothing"
        )
    return _unicode(str(recipe), "recipe")


class Plan:
    """A recipe at work in the layers of a model, and the step that it is at."""

    def __init__(self, recipe: str, layers: list, steps: int | None, seed: int):
        steps = None if steps is None else _whole(steps, "steps", 1)
        self.arguments = recipe, layers, steps, _whole(seed, "seed")
        self.inner, self.layers = _exmy.Plan(*self.arguments), layers
        self.step = self.part = 0
        # Whether `checkpoint_contexts` says the step; else the step of each layer's last pass is compared.
        self.again, self.last = False, {}

    @property
    def seed(self) -> int:
        return self.arguments[3]

    def __getstate__(self):
        return self.arguments, self.step, self.part, self.inner.memory

    def __setstate__(self, state):
        arguments, step, part, memory = state
        self.__init__(*arguments)
        self.step, self.part, self.inner.memory = step, part, memory

    def now(self, index: int) -> tuple[int, int]:
        """The step and part of a pass of a layer that begins."""
        at = self.step, self.part
        if _backward() == -1:
            self.last[index] = at
        elif not self.again:
            self.check(self.last.get(index, at), at)
        return at

    def check(self, first: tuple, again: tuple) -> None:
        """Refuses a pass that is computed again at another step than the first time."""
        if self.inner.varies and first != again:
            (step, part, *_), (other, another, *_) = first, again
            raise ValueError(
                f"a checkpointed pass of step {step}, part {part} is computed again at step {other}, part {another}, "
                f"where recipe {self.inner.recipe} rounds it otherwise: checkpoint(..., use_reentrant=False, "
                f"context_fn=exmy.torch.checkpoint_contexts(model)) computes it as it was"
            )

    def multiply(self, gpu, product: str, index: int, at, rows: int, operands, results) -> None:
        _tensors.wait(gpu)
        operands, results = ([_tensors.memory(one, gpu) for one in some] for some in (operands, results))
        self.inner.multiply(gpu, product, index, at, rows, operands, results)


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, plan, index, at):
        rows = x.reshape(-1, x.shape[-1])
        count, gpu = len(rows), _tensors.gpu_of(x, "x")
        for one, name in ((weight, "weight"), (bias, "bias")):
            if one is not None and _tensors.gpu_of(one, name) != gpu:
                raise TypeError(f"{name} is on {one.device} and x on {x.device}; a layer and x are on one device")
        # Saved as a tensor the step comes back as a checkpoint has it, from the pass that was computed again.
        ctx.save_for_backward(x, weight, torch.from_numpy(np.array(at, np.uint64).view(np.int64)))
        # Tokens of a sequence, which exponents bumped by position ask for.
        ctx.at = at, x.shape[-2] if x.dim() > 2 else 0
        ctx.plan, ctx.index = plan, index
        ctx.kinds = weight.dtype, None if bias is None else bias.dtype
        y = _tensors.empty((count, weight.shape[0]), x)
        if count:
            b = None if bias is None else _tensors.plain(bias, "bias")
            operands = _tensors.plain(rows, "x"), _tensors.plain(weight, "weight"), b
            plan.multiply(gpu, "forward", index, ctx.at, count, operands, (y, None))
        return y.to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, weight, at = ctx.saved_tensors
        ctx.plan.check(ctx.at[0], tuple(one % 2**64 for one in at.tolist()))
        rows, need = x.reshape(-1, x.shape[-1]), ctx.needs_input_grad
        count, gpu = len(rows), _tensors.gpu_of(x, "x")
        g = _tensors.plain(g.reshape(count, weight.shape[0]), "the gradient")
        multiply = lambda product, *tensors: ctx.plan.multiply(gpu, product, ctx.index, ctx.at, count, *tensors)
        dx = _tensors.empty(rows.shape, x) if need[0] else None
        if count and need[0]:
            multiply("grad_input", (g, _tensors.plain(weight, "weight"), None), (dx, None))
        dw = _tensors.empty(weight.shape, x).zero_() if need[1] else None
        db = _tensors.empty(weight.shape[:1], x).zero_() if need[2] else None
        if count and (need[1] or need[2]):
            multiply("grad_weight", (g, _tensors.plain(rows, "x"), None), (dw, db))
        dx = None if dx is None else dx.to(x.dtype).reshape(x.shape)
        dw, db = (None if one is None else one.to(kind) for one, kind in zip((dw, db), ctx.kinds))
        return dx, dw, db, None, None, None


class Linear(torch.nn.Linear):
    """`torch.nn.Linear` under a recipe, which rounds the operands of `y = x wᵀ`, `dx = g w` and `dw = gᵀ x`.

    `recipe` is a recipe's text, as `"mxfp8-mix"` or `"nv-nvfp4+last=1"`. `name` is the layer's place in a model, by
    which rules choose and random words are addressed: `"layers.3.q_proj"`, `"lm_head"`. A recipe that takes random
    words needs it, another one for each layer. A layer that computes several outputs of one input names all, as
    `"layers.3.q_proj+k_proj+v_proj"`; its outputs are divided equally, or as `widths` says. `steps` are those of the
    run, which rules such as `from80%` need.

    Sums, seeds and streams are those of `exmy train`. Numbers are float32 inside; inputs of bfloat16 or float16 are
    widened, and results rounded to that. `model.eval()` computes as an evaluation does.
    """

    __module__ = "exmy.torch"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype=None,
        *,
        recipe: str,
        name: str | None = None,
        widths: Iterable[int] | None = None,
        seed: int = 1,
        steps: int | None = None,
    ):
        super().__init__(in_features, out_features, bias, device, dtype)
        place = "layers.0.up_proj" if name is None else str(name)
        plan = Plan(recipe_text(recipe), [(members(place, out_features, widths), in_features)], steps, seed)
        if name is None and plan.inner.draws:
            raise ValueError(
                f"recipe {recipe} takes random words, which are addressed by the layer's place in a model: "
                f"name={place!r}, and another place for another layer"
            )
        self._exmy = plan, 0, place

    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs, in the type of `x`."""
        _tensors.gpu_of(x, "x")
        if x.dim() == 0 or x.shape[-1] != self.in_features:
            raise ValueError(f"x has shape {tuple(x.shape)}, and its last axis should have {self.in_features} elements")
        plan, index, _ = self._exmy
        return _Products.apply(x, self.weight, self.bias, plan, index, (*plan.now(index), self.training))

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


def operators(name: str) -> list[str]:
    """The places of the operators that a layer's name lists."""
    first, *others = name.split("+")
    block = first.rpartition(".")[0]
    return [first, *(f"{block}.{other}" for other in others)]


def members(name: str, outputs: int, widths) -> list[tuple[str, int]]:
    """The operators of a layer, each with its outputs."""
    places = operators(name)
    if widths is None:
        if outputs % len(places):
            raise ValueError(f"{name} divides {outputs} outputs by {len(places)}; widths says how, if not equally")
        widths = [outputs // len(places)] * len(places)
    if not isinstance(widths, Iterable):
        raise TypeError(f"widths is {widths!r}, and a list of one for each of {len(places)} operators is needed")
    widths = [_whole(width, "a width") for width in widths]
    if len(widths) != len(places) or sum(widths) != outputs or (len(places) > 1 and min(widths) < 1):
        raise ValueError(
            f"widths are {widths}, and {name} is {len(places)} operators of {outputs} outputs together, each with some"
        )
    return list(zip(places, widths))


def _plans(model: torch.nn.Module) -> list[Plan]:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, and a torch.nn.Module is needed")
    plans = {id(one._exmy[0]): one._exmy[0] for one in model.modules() if isinstance(one, Linear)}
    if not plans:
        raise ValueError("the model has no exmy.torch.Linear; exmy.torch.convert(model, recipe) makes them")
    return list(plans.values())


def _check_places(model: torch.nn.Module) -> None:
    """Refuses layers of one model that would take the same random words."""
    paths = {}
    for path, module in model.named_modules():
        plan, index, _ = module._exmy if isinstance(module, Linear) else (None, 0, "")
        for place, _ in plan.layers[index][0] if plan and plan.inner.draws else ():
            other = paths.setdefault((plan.seed, place), path)
            if other != path:
                raise ValueError(
                    f"{other} and {path} both are {place} of seed {plan.seed}, so their roundings would take the same "
                    f"random words: convert the whole model at once, after its layers are copied, or its parts each "
                    f"with a seed=, or name each Linear; copies that should agree are set by set_step one by one"
                )


def set_step(model: torch.nn.Module, step: int, part: int = 0) -> None:
    """Says which step comes next, from 0 on: rules begin by it, and random words are addressed by it.

    `part` counts batches whose gradients are added in one step, and passes of an evaluation. The same seed, step
    and part give the same bits. Two layers of one place and seed are refused where a recipe takes random words.
    """
    plans, step, part = _plans(model), _whole(step, "step"), _whole(part, "part")
    _check_places(model)
    for plan in plans:
        plan.step, plan.part = step, part


class _Again:
    """While a checkpointed pass is computed again, plans are at the step of the first time."""

    def __init__(self, plans: list[Plan]):
        self.plans = [(plan, plan.step, plan.part) for plan in plans]

    def __enter__(self):
        self.before = [(plan.step, plan.part, plan.again) for plan, _, _ in self.plans]
        for plan, step, part in self.plans:
            plan.step, plan.part, plan.again = step, part, True

    def __exit__(self, *_):
        for (plan, _, _), before in zip(self.plans, self.before):
            plan.step, plan.part, plan.again = before


def checkpoint_contexts(model: torch.nn.Module):
    """For `torch.utils.checkpoint`: passes that the backward pass computes again have the words of the first time.

    `checkpoint(block, x, use_reentrant=False, context_fn=exmy.torch.checkpoint_contexts(block))`. Without it a pass is
    computed again at the step and part that `set_step` said last; if these are others by then, that is refused.
    """
    plans = _plans(model)
    return lambda: (contextlib.nullcontext(), _Again(plans))


def state(model: torch.nn.Module) -> list[dict]:
    """The step, and what recipes remember from step to step (windows of magnitudes, hot channels), for a checkpoint."""
    made = lambda plan: {"recipe": plan.inner.recipe, "step": plan.step, "part": plan.part, "memory": plan.inner.memory}
    return [made(plan) for plan in _plans(model)]


def load_state(model: torch.nn.Module, state: list[dict]) -> None:
    """Goes on from what `state` returned of a model that was converted alike."""
    plans = _plans(model)
    keys = "recipe", "step", "part", "memory"
    if not isinstance(state, list) or not all(isinstance(one, dict) and one.keys() >= set(keys) for one in state):
        raise TypeError("the state is not what exmy.torch.state(model) returns: a list of dicts of " + ", ".join(keys))
    if len(state) != len(plans):
        raise ValueError(f"the state is of {len(state)} recipes, and the model has {len(plans)}")
    for plan, one in zip(plans, state):
        if one["recipe"] != plan.inner.recipe:
            raise ValueError(f"the state is of recipe {one['recipe']}, and the model's is {plan.inner.recipe}")
    before = [plan.inner.memory for plan in plans]
    steps = [(_whole(one["step"], "step"), _whole(one["part"], "part")) for one in state]
    try:
        for plan, one in zip(plans, state):
            plan.inner.memory = one["memory"]
    except (TypeError, ValueError):
        for plan, memory in zip(plans, before):
            plan.inner.memory = memory
        raise
    for plan, at in zip(plans, steps):
        plan.step, plan.part = at
