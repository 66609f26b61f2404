"""`convert`: every `torch.nn.Linear` of a model becomes a layer of a recipe, each at a place of its own.

A place is what rules choose by and what addresses random words. A module's path says it, or `names`; a layer without
one, or whose place another layer has, gets one behind all others. Nothing that multiplies is passed over in silence:
a module that cannot be replaced is refused, one of another kind is warned of, and `skip` says that it should stay.
"""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections.abc import Iterable, Mapping

import torch
from torch.nn.utils import parametrize

from . import _exmy
from ._layers import Linear, Plan, members, operators, recipe_text


def convert(
    model: torch.nn.Module,
    recipe: str,
    *,
    skip: Iterable[str] | None = None,
    names: Mapping[str, str] | None = None,
    seed: int = 1,
    steps: int | None = None,
) -> torch.nn.Module:
    """Makes every `torch.nn.Linear` of a model a `Linear` of a recipe, in place, and returns the model.

    Weights, hooks and the names of parameters stay, so an optimizer that has them goes on. What a pattern of `skip`
    matches stays as it is: `["lm_head"]`. Subclasses of `torch.nn.Linear`, parametrized ones and
    `torch.nn.MultiheadAttention` are refused until `skip` names them. Other modules with weights, as `Conv1D` of
    transformers, stay, with a warning. Layers of an earlier `convert` stay under its recipe.

    Rules of a recipe choose by places such as `layers.3.q_proj`. A path of Hugging Face's Llama says its place itself;
    for others `names` does, `*` standing for one word: `names={"h.*.attn.qkv": "layers.*.q_proj+k_proj+v_proj",
    "h.*.mlp.fc": "layers.*.up_proj"}`. A layer without a place of its own gets one behind all others; where the recipe
    chooses blocks or operators, that is refused. After each step call `set_step`.

    Random words are addressed by the seed, the place and the step. Parts of a model that are converted one by one,
    such as an encoder and a decoder, have the same places, so each needs a seed of its own.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, and a torch.nn.Module is needed")
    recipe, names = recipe_text(recipe), {} if names is None else names
    if not isinstance(names, Mapping) or not all(isinstance(one, str) for pair in names.items() for one in pair):
        raise TypeError(f"names is {names!r}, and a dict of paths and places is needed: {{'fc': 'layers.0.up_proj'}}")
    modules = _without_skipped(model, skip)
    layers, others = _sorted(modules)
    if not layers:
        already = [path or "itself" for path, one in modules.items() if isinstance(one, Linear)]
        others += [f"{path} (under a recipe already)" for path in already]
        others = f"; it has {_some(others)}" if others else ""
        raise ValueError(f"the model has no torch.nn.Linear that could be replaced{others}")
    for pattern in names:
        if not any(_matches(pattern, path) for path in layers):
            raise ValueError(
                f"names: no layer to convert is called {pattern}, where * is one word; there are {_some(layers)}"
            )
    earlier = {place for one in modules.values() if isinstance(one, Linear) for place in _places_of(one)}
    places, homeless = _places(layers, names, earlier)
    shapes = [(members(places[path], one.out_features, None), one.in_features) for path, one in layers.items()]
    plan = Plan(recipe, shapes, steps, seed)
    if homeless and plan.inner.chooses:
        parts = "; an encoder and a decoder are converted one by one: convert(model.decoder, .., seed=2)"
        raise ValueError(
            f"recipe {recipe} chooses blocks or operators, and these have no place of their own: "
            f"{_some(f'{path}{why}' for path, why in homeless.items())}. names={{{next(iter(homeless))!r}: "
            f"'layers.0.up_proj'}} says one, with * for a word of both{parts if any(homeless.values()) else ''}"
        )
    if plan.inner.others:
        warnings.warn(
            f"recipe {recipe}: {_some(plan.inner.others)} are about tensors and operations between linear layers, "
            f"which stay PyTorch's",
            stacklevel=2,
        )
    if others:
        warnings.warn(
            f"these stay as they are, since convert replaces torch.nn.Linear alone: {_some(others)}; skip says that "
            f"they should",
            stacklevel=2,
        )
    for index, (path, module) in enumerate(layers.items()):
        module.__class__ = Linear
        module._exmy = plan, index, places[path]
    for module in model.modules():
        _go_through_layers(module)
    return model


def _go_through_layers(module: torch.nn.Module) -> None:
    """Switches off what PyTorch's encoders do past their layers, where one of these is under a recipe."""
    encoders = torch.nn.TransformerEncoder, torch.nn.TransformerEncoderLayer
    if not isinstance(module, encoders) or not any(isinstance(one, Linear) for one in module.modules()):
        return
    if isinstance(module, torch.nn.TransformerEncoderLayer):
        # Its evaluation without gradients would read the weights itself.
        module.activation_relu_or_gelu = 0
    else:
        # With a mask of padding it would hand on nested tensors. Which of the two is read depends on the version.
        module.enable_nested_tensor = module.use_nested_tensor = False


def _without_skipped(model: torch.nn.Module, skip: Iterable[str] | None) -> dict[str, torch.nn.Module]:
    """The modules by their paths, but for those that a pattern matches, with all that is in them."""
    modules = dict(model.named_modules())
    skip = [skip] if isinstance(skip, str) or not isinstance(skip, Iterable | None) else skip
    kept = []
    for pattern in skip or ():
        if not isinstance(pattern, str):
            raise TypeError(f"skip has {pattern!r}, and the path of a module or a pattern of it is needed: 'lm_head'")
        found = [path for path in modules if fnmatch.fnmatchcase(path, pattern)]
        if not found:
            linears = (path for path, one in modules.items() if isinstance(one, torch.nn.Linear))
            raise ValueError(f"skip: no module is called {pattern}; there are {_some(linears)}")
        kept += found
    stays = lambda path: any(path == one or not one or path.startswith(f"{one}.") for one in kept)
    return {path: module for path, module in modules.items() if not stays(path)}


def _sorted(modules: dict[str, torch.nn.Module]) -> tuple[dict[str, torch.nn.Linear], list[str]]:
    """The layers to convert, and in words what else has weights. What looks like a layer and is none is refused."""
    layers, refused, others = {}, {}, []
    for path, module in modules.items():
        if any(path.startswith(f"{one}.") for one in refused):
            continue
        if type(module) is torch.nn.Linear:
            layers[path] = module
        elif isinstance(module, torch.nn.MultiheadAttention):
            refused[path] = "is a torch.nn.MultiheadAttention, which multiplies without modules"
        elif isinstance(module, torch.nn.Linear) and parametrize.is_parametrized(module):
            refused[path] = "is parametrized; what is converted can be parametrized after that"
        elif isinstance(module, torch.nn.LazyLinear):
            refused[path] = "is a torch.nn.LazyLinear, which becomes a torch.nn.Linear when the model has run once"
        elif isinstance(module, torch.nn.Linear) and not isinstance(module, Linear):
            refused[path] = f"is a {type(module).__name__}, which may multiply in its own way"
        elif not isinstance(module, (Linear, torch.nn.Embedding, torch.nn.EmbeddingBag)) and _has_weights(module):
            others.append(f"{path or 'the model'} ({type(module).__name__})")
    if refused:
        said = _some((f"{path or 'the model'} {why}" for path, why in refused.items()), "; ")
        raise ValueError(
            f"convert replaces modules whose type is torch.nn.Linear: {said}; "
            f"skip={list(refused)[:4]} leaves them as they are"
        )
    return layers, others


def _has_weights(module: torch.nn.Module) -> bool:
    """Whether a module has matrices of weights itself."""
    own = module.named_parameters(recurse=False)
    return any(
        name.startswith("weight") and (torch.nn.parameter.is_lazy(one) or one.dim() > 1) for name, one in own
    )


def _matches(pattern: str, path: str) -> re.Match | None:
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"([^.]+)"), path)


def _given(path: str, names: Mapping[str, str]) -> str | None:
    """What the first pattern that matches makes of a module's path."""
    for pattern, name in names.items():
        if found := _matches(pattern, path):
            parts = iter(found.groups())
            return re.sub(r"\*", lambda _: next(parts, "*"), name)
    return None


def _places_of(layer: Linear) -> list[str]:
    plan, index, _ = layer._exmy
    return [place for place, _ in plan.layers[index][0]]


def _places(
    layers: Iterable[str], names: Mapping[str, str], earlier: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The place of each path; and the paths that have none of their own, with the reason."""
    places = {path: _given(path, names) for path in layers}
    taken = dict.fromkeys(earlier, "a layer of an earlier convert")
    homeless = {}
    for path, place in places.items():
        for one in operators(place) if place else ():
            if one in taken:
                raise ValueError(f"names: {taken[one]} and {path} both are {one}; each layer needs a place of its own")
            taken[one] = path
    for path in [path for path, place in places.items() if place is None]:
        place = _exmy.place_of(path)
        if place is None or place in taken:
            homeless[path] = f" ({place} is {taken[place]})" if place else ""
        else:
            places[path], taken[place] = place, path
    blocks = [int(found[1]) for place in taken if (found := re.match(r"layers\.(\d+)\.", place))]
    for block, path in enumerate(homeless, start=1 + max(blocks, default=-1)):
        places[path] = f"layers.{block}.up_proj"
    return places, homeless


def _some(names: Iterable[str], between: str = ", ") -> str:
    names = list(names)
    return between.join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
