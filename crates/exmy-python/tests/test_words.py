"""Random words: no two layers of a model take the same ones, and a checkpointed pass takes its own again."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import exmy.torch
from torch.utils.checkpoint import checkpoint

RNG = np.random.default_rng(3)
X = torch.from_numpy(RNG.standard_normal((64, 32)).astype(np.float32))


def linear(recipe="mxfp4@sr8", **how):
    return exmy.torch.Linear(32, 32, recipe=recipe, **how)


def test_a_layer_that_takes_words_says_its_place():
    with pytest.raises(ValueError, match="name='layers.0.up_proj', and another place for another layer"):
        linear()
    with pytest.raises(TypeError, match="recipe is None"):
        linear(None)
    for recipe in ("mxfp4", "f32", "nvfp4+residual=bf16@sr8"):
        linear(recipe)
    for recipe in ("bf16>rht16>nvfp4@fresh", "mxfp4@sr8>>bf16", "bf16+sums=fma:bf16@sr8", "bf16+out=bf16@sr8"):
        with pytest.raises(ValueError, match="takes random words"):
            linear(recipe)


def test_layers_of_one_place_are_refused():
    layer = linear(name="layers.0.up_proj")
    parts = lambda seed: exmy.torch.convert(torch.nn.Sequential(torch.nn.Linear(32, 32)), "mxfp4@sr8", seed=seed)
    models = {
        "0 and 1 both are layers.0.up_proj of seed 1": [linear(name="layers.0.up_proj"), layer],
        "0 and 2 both are layers.0.up_proj of seed 1": [layer, torch.nn.ReLU(), copy.deepcopy(layer)],
        "0.0 and 1.0 both are layers.0.up_proj of seed 1": [parts(1), parts(1)],
    }
    for said, modules in models.items():
        model = torch.nn.Sequential(*modules)
        with pytest.raises(ValueError, match=said):
            exmy.torch.set_step(model, 1)
        assert [one["step"] for one in exmy.torch.state(model)] == [0, 0]
    for modules in (
        [linear(name="layers.0.up_proj"), linear(name="layers.1.up_proj")],
        [layer, layer],
        [linear("mxfp4"), linear("mxfp4")],
        [parts(1), parts(2)],
    ):
        exmy.torch.set_step(torch.nn.Sequential(*modules), 1)
    # Parts of other seeds do take other words, copies that are set alone the same.
    one, two = parts(1), parts(2)
    two.load_state_dict(one.state_dict())
    assert not torch.equal(one(X), two(X)) and torch.equal(one(X), copy.deepcopy(one)(X))


class Block(torch.nn.Module):
    """Two layers, so that the second one's input is computed again."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(linear(name="layers.0.up_proj"), torch.nn.ReLU(), linear(name="lm_head"))

    def forward(self, x):
        return self.layers(x)


def gradients(block, ways, order, at=((0, 0), (0, 1), (1, 0))):
    """The gradients of passes at some steps, all forward before they go back in some order."""
    losses = []
    block.zero_grad()
    for step, part in at:
        exmy.torch.set_step(block, step, part)
        x = X.clone().requires_grad_()
        losses.append(ways(block, x).square().sum())
    for one in order:
        losses[one].backward()
    return [parameter.grad.clone() for parameter in block.parameters()]


PLAIN = lambda block, x: block(x)
KEPT = lambda block, x: checkpoint(block, x, use_reentrant=False, context_fn=exmy.torch.checkpoint_contexts(block))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_a_checkpointed_pass_has_its_own_words(order):
    torch.manual_seed(1)
    block = Block()
    found = gradients(block, KEPT, order)
    # The step is what it was, whatever was computed again.
    assert [(one["step"], one["part"]) for one in exmy.torch.state(block)] == [(1, 0), (1, 0)]
    assert all(map(torch.equal, found, gradients(block, PLAIN, order)))


def test_a_checkpointed_pass_goes_back_twice():
    block = Block()
    exmy.torch.set_step(block, 2**64 - 1, 2**63)
    y = KEPT(block, X.clone().requires_grad_()).square().sum()
    exmy.torch.set_step(block, 4)
    first = torch.autograd.grad(y, list(block.parameters()), retain_graph=True)
    assert all(map(torch.equal, first, torch.autograd.grad(y, list(block.parameters()))))


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_pass_computed_again_at_another_step_is_refused(reentrant):
    torch.manual_seed(1)
    block, ways = Block(), lambda block, x: checkpoint(block, x, use_reentrant=reentrant)
    for at in [((0, 0), (0, 1)), ((4, 0), (5, 0))]:
        # The last pass goes back at its own step, as one alone does.
        gradients(block, ways, [1], at)
        if not reentrant:
            with pytest.raises(ValueError, match="step ., part 0 is computed again .*exmy.torch.checkpoint_contexts"):
                gradients(block, ways, [0], at)
    exmy.torch.set_step(block, 1)
    y = ways(block, X.clone().requires_grad_()).sum()
    exmy.torch.set_step(block, 2)
    with pytest.raises(ValueError, match="step 1, part 0 is computed again at step 2, part 0.*checkpoint_contexts"):
        y.backward()
    # Where no step is rounded otherwise than another, none is refused.
    same = torch.nn.Sequential(linear("mxfp4"), torch.nn.ReLU(), linear("mxfp4"))
    for one, other in zip(gradients(same, ways, (1, 0, 2)), gradients(same, PLAIN, (1, 0, 2))):
        assert torch.equal(one, other)
