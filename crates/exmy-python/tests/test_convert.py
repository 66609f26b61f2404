"""Models of PyTorch under a recipe: what is converted and what is refused, at which places, and what goes on in a copy
or from a checkpoint."""

import copy
import pickle
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import exmy.torch
from torch.nn.utils import parametrizations, parametrize

RNG = np.random.default_rng(2)
INPUTS = 64
X = RNG.standard_normal((96, INPUTS)).astype(np.float32)


def same(found, expected):
    assert found.shape == expected.shape and np.array_equal(found.view(np.uint32), expected.view(np.uint32))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(INPUTS, 3 * INPUTS)
        self.up_proj = torch.nn.Linear(INPUTS, INPUTS)

    def forward(self, x):
        return self.up_proj(self.qkv(x)[..., :INPUTS])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.lm_head = torch.nn.Linear(INPUTS, 8)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


NAMES = {"layers.*.qkv": "layers.*.q_proj+k_proj+v_proj"}


def test_a_model_is_converted_in_place():
    model, seen = Model(), []
    before = {name: parameter for name, parameter in model.named_parameters()}
    model.layers[0].qkv.register_forward_hook(lambda *_: seen.append(1))
    found = exmy.torch.convert(model, "mxfp4+last1:up_proj=bf16", skip=["lm_head"], names=NAMES)
    assert found is model and type(model.lm_head) is torch.nn.Linear
    assert all(parameter is before[name] for name, parameter in model.named_parameters())
    assert model.layers[0].up_proj.numbers == {
        "layers.0.up_proj": dict.fromkeys(["forward", "grad_input", "grad_weight"], ("mxfp4", "mxfp4"))
    }
    assert model.layers[1].up_proj.numbers["layers.1.up_proj"]["forward"] == ("bf16", "bf16")
    assert list(model.layers[1].qkv.numbers) == ["layers.1.q_proj", "layers.1.k_proj", "layers.1.v_proj"]
    model(torch.from_numpy(X)).sum().backward()
    assert seen == [1] and all(parameter.grad is not None for parameter in model.parameters())


def test_a_copy_goes_on_with_the_same_bits():
    # Scales of the last 4 steps' magnitudes, which the recipe remembers.
    recipe = "e4m3/tensor:e8m0@rceil@window4"
    model = exmy.torch.convert(Model(), recipe, names=NAMES)
    for step in range(6):
        exmy.torch.set_step(model, step)
        model(torch.from_numpy(X) * 2.0**step)
    fresh = exmy.torch.convert(Model(), recipe, names=NAMES)
    fresh.load_state_dict(model.state_dict())
    exmy.torch.set_step(fresh, 6)
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), fresh]
    saved = exmy.torch.state(model)
    assert "window" in saved[0]["memory"]
    exmy.torch.set_step(model, 6)
    expected = model(torch.from_numpy(X)).detach().numpy()
    exmy.torch.set_step(others[0], 6)
    exmy.torch.set_step(others[1], 6)
    same(others[0](torch.from_numpy(X)).detach().numpy(), expected)
    same(others[1](torch.from_numpy(X)).detach().numpy(), expected)
    exmy.torch.load_state(fresh, saved)
    exmy.torch.set_step(fresh, 6)
    same(fresh(torch.from_numpy(X)).detach().numpy(), expected)
    again = exmy.torch.convert(Model(), recipe, names=NAMES)
    again.load_state_dict(model.state_dict())
    exmy.torch.set_step(again, 6)
    assert not np.array_equal(again(torch.from_numpy(X)).detach().numpy(), expected)


@pytest.mark.parametrize(
    "how, said",
    [
        ({"recipe": "mxfp5"}, "mxfp5"),
        ({"recipe": "mxfp4+last1=bf16"}, "layers.0.qkv, layers.1.qkv. names={'layers.0.qkv': 'layers.0.up_proj'}"),
        ({"recipe": "mxfp4+from80%=bf16"}, "steps=10000"),
        ({"recipe": "mxfp4", "skip": ["head"]}, "no module is called head"),
        ({"recipe": "mxfp4", "skip": ["*"]}, "no torch.nn.Linear"),
        ({"recipe": "mxfp4", "names": {"layers.*.qkv": "layers.0.q_proj"}}, "layers.0.qkv and layers.1.qkv both are"),
        ({"recipe": "mxfp4", "names": {"layers.*.qkv": "layers.*.q_proj+up_proj"}}, "do not read one input"),
        ({"recipe": "mxfp4", "names": {"lm_head": "layers.9.head"}}, "layers.9.head|head"),
        ({"recipe": "mxfp4", "names": {"layer.*.qkv": "layers.*.q_proj"}}, "is called layer.*qkv.* are layers.0.qkv"),
        ({"recipe": "mxfp4", "names": {"lm_head": "lm_head"}, "skip": ["lm_head"]}, "no layer to convert"),
        ({"recipe": "mxfp4", "names": ["lm_head"]}, "names is .*a dict of paths and places"),
        ({"recipe": "mxfp4", "names": {"lm_head": 1}}, "names is .*a dict of paths and places"),
        ({"recipe": "mxfp4", "skip": [1]}, "skip has 1, and the path"),
        ({"recipe": "mxfp4", "skip": 1}, "skip has 1, and the path"),
        ({"recipe": "mxfp4", "seed": -1}, "seed is -1"),
        ({"recipe": "mxfp4", "seed": None}, "seed is None, and a whole number"),
        ({"recipe": "mxfp4", "steps": 0}, "steps is 0"),
        ({"recipe": "mxfp4", "steps": "a"}, "steps is 'a'"),
        ({"recipe": None}, "recipe is None, and a recipe is a text"),
        ({"recipe": 4}, "recipe is 4, and a recipe is a text"),
    ],
)
def test_what_cannot_be_converted_is_said(how, said):
    model = Model()
    with pytest.raises((TypeError, ValueError), match=said):
        exmy.torch.convert(model, **how)
    assert type(model.lm_head) is torch.nn.Linear


def test_what_multiplies_elsewhere_is_said():
    attention = torch.nn.Sequential(torch.nn.MultiheadAttention(64, 2), torch.nn.Linear(64, 64))
    with pytest.raises(ValueError, match="MultiheadAttention"):
        exmy.torch.convert(attention, "mxfp4")
    exmy.torch.convert(attention, "mxfp4", skip=["0"])
    with pytest.warns(UserWarning, match="norm"):
        exmy.torch.convert(torch.nn.Sequential(torch.nn.Linear(32, 32)), "mxfp4+norm=bf16")
    layer = exmy.torch.Linear(32, 32, recipe="mxfp4")
    for step, part, said in [(-1, 0, "step is -1"), ("a", 0, "step is 'a'"), (0, 1.5, "part is 1.5")]:
        with pytest.raises((TypeError, ValueError), match=said):
            exmy.torch.set_step(layer, step, part)
    with pytest.raises(TypeError, match="model is a ndarray"):
        exmy.torch.convert(X, "mxfp4")
    with pytest.raises(TypeError, match="torch.as_tensor"):
        exmy.torch.fake_quantize(X, "mxfp4")
    with pytest.raises(ValueError, match="convert"):
        exmy.torch.set_step(torch.nn.Linear(2, 2), 1)
    with pytest.raises(TypeError, match="model is a int"):
        exmy.torch.set_step(5, 1)
    with pytest.raises(ValueError, match=r"could be replaced; it has itself \(under a recipe already\)"):
        exmy.torch.convert(layer, "mxfp8-mix")
    for widths, said in [(5, "widths is 5"), ([16, 8], "operators of 32 outputs together"), ([32, 0], "each with some")]:
        with pytest.raises((TypeError, ValueError), match=said):
            exmy.torch.Linear(32, 32, recipe="mxfp4", name="layers.0.q_proj+k_proj", widths=widths)


class Own(torch.nn.Linear):
    pass


def test_layers_of_their_own_kind_are_refused_by_name():
    """None of them stays in float without a word."""
    linear = lambda: torch.nn.Linear(64, 64)
    model = torch.nn.ModuleDict(
        {
            "own": Own(64, 64),
            "normed": parametrizations.weight_norm(linear()),
            "lazy": torch.nn.LazyLinear(64),
            "attention": torch.nn.MultiheadAttention(64, 2),
            "plain": linear(),
        }
    )
    with pytest.raises(ValueError) as refused:
        exmy.torch.convert(model, "mxfp4")
    for said in ("own is a Own", "normed is parametrized", "lazy is a torch.nn.LazyLinear", "attention is a torch.nn"):
        assert said in str(refused.value)
    assert "skip=['own', 'normed', 'lazy', 'attention'] leaves them" in str(refused.value)
    assert type(model["plain"]) is torch.nn.Linear
    exmy.torch.convert(model, "mxfp4", skip=["own", "normed", "lazy", "attention"])
    assert [type(one) is exmy.torch.Linear for one in model.values()] == [False] * 4 + [True]


def test_norms_of_weights_are_at_work_in_a_layer():
    """Parametrized after the conversion, or by the hooks of old, which leave the type."""
    plain = torch.nn.Sequential(torch.nn.Linear(64, 32))
    converted = exmy.torch.convert(copy.deepcopy(plain), "f32")
    parametrizations.weight_norm(converted[0])
    assert parametrize.is_parametrized(converted[0]) and isinstance(converted[0], exmy.torch.Linear)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = exmy.torch.convert(torch.nn.Sequential(torch.nn.utils.weight_norm(copy.deepcopy(plain[0]))), "f32")
    expected = plain(torch.from_numpy(X)).detach()
    for model in (converted, old):
        found = model(torch.from_numpy(X))
        found.sum().backward()
        assert torch.allclose(found, expected, atol=1e-5) and all(one.grad is not None for one in model.parameters())


def test_what_stays_is_said():
    model = torch.nn.Sequential(torch.nn.Conv1d(64, 64, 1), torch.nn.Embedding(8, 64), torch.nn.Linear(64, 8))
    with pytest.warns(UserWarning, match=r"stay as they are.*: 0 \(Conv1d\); skip says"):
        exmy.torch.convert(copy.deepcopy(model), "mxfp4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exmy.torch.convert(model, "mxfp4", skip=["0"])
    with pytest.raises(ValueError, match=r"no torch.nn.Linear that could be replaced; it has 0 \(LSTM\)"):
        exmy.torch.convert(torch.nn.Sequential(torch.nn.LSTM(4, 4)), "mxfp4")


class Half(torch.nn.Module):
    """Of an encoder and a decoder, with the paths of Hugging Face's BART."""

    def __init__(self, cross):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Module()])
        for name in ("self_attn", "encoder_attn") if cross else ("self_attn",):
            attention = torch.nn.Module()
            attention.q_proj = torch.nn.Linear(64, 64)
            self.layers[0].add_module(name, attention)


def test_an_encoder_and_a_decoder_have_places_of_their_own():
    made = lambda: torch.nn.ModuleDict({"encoder": Half(False), "decoder": Half(True)})
    place = lambda path: model.get_submodule(path)._exmy[2]
    model = exmy.torch.convert(made(), "mxfp4@sr8")
    assert place("encoder.layers.0.self_attn.q_proj") == "layers.0.q_proj"
    assert place("decoder.layers.0.self_attn.q_proj") == "layers.1.up_proj"
    assert place("decoder.layers.0.encoder_attn.q_proj") == "layers.2.up_proj"
    exmy.torch.set_step(model, 1)
    # A recipe that chooses blocks would choose others than are meant.
    with pytest.raises(ValueError) as refused:
        exmy.torch.convert(made(), "mxfp4+first1=bf16")
    for said in (
        "decoder.layers.0.self_attn.q_proj (layers.0.q_proj is encoder.layers.0.self_attn.q_proj)",
        "convert(model.decoder, .., seed=2)",
    ):
        assert said in str(refused.value)
    # What is converted later goes behind what was before.
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    exmy.torch.convert(model, "mxfp4@sr8", skip=["1"])
    exmy.torch.convert(model, "mxfp8-e4m3@sr8")
    assert (place("0"), place("1")) == ("layers.0.up_proj", "layers.1.up_proj")
    assert repr(model[0]).count("mxfp4@sr8") == repr(model[1]).count("mxfp8-e4m3@sr8") == 1


def test_evaluation_of_an_encoder_goes_through_its_layers():
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    exmy.torch.convert(layer, "mxfp4", skip=["self_attn"]).eval()
    x = torch.randn(2, 8, 64)
    with_gradients = layer(x).detach()
    with torch.no_grad():
        assert (layer(x) - with_gradients).abs().max() < 1e-5


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_evaluation_of_an_encoder_with_padding_goes_through_its_layers():
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    made = [torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested) for nested in (True, False)]
    made[1].load_state_dict(made[0].state_dict())
    found, plain = (exmy.torch.convert(one, "mxfp4", skip=["layers.*.self_attn"]).eval() for one in made)
    x, padding = torch.randn(2, 8, 64), torch.zeros(2, 8, dtype=torch.bool)
    padding[1, 5:] = True
    with torch.no_grad():
        same(found(x, src_key_padding_mask=padding).numpy(), plain(x, src_key_padding_mask=padding).numpy())


def test_an_encoder_that_is_skipped_stays_as_it_is():
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2)
    before = encoder.use_nested_tensor, encoder.layers[0].activation_relu_or_gelu
    model = torch.nn.ModuleDict({"encoder": encoder, "head": torch.nn.Linear(64, 8)})
    exmy.torch.convert(model, "mxfp4", skip="encoder")
    assert before == (True, 1) == (encoder.use_nested_tensor, encoder.layers[0].activation_relu_or_gelu)


def test_a_state_of_another_recipe_is_refused():
    windows = exmy.torch.Linear(64, 64, recipe="e4m3/tensor:e8m0@rceil@window4")
    other = exmy.torch.Linear(64, 64, recipe="mxfp4")
    with pytest.raises(ValueError, match="the state is of recipe mxfp4, and the model's is e4m3"):
        exmy.torch.load_state(windows, exmy.torch.state(other))
    saved = exmy.torch.state(windows)
    for wrong in (None, saved[0], [{"recipe": "mxfp4"}], ["mxfp4"]):
        with pytest.raises(TypeError, match="exmy.torch.state"):
            exmy.torch.load_state(windows, wrong)
    # What is refused leaves the other layers of the model as they were, too.
    model = torch.nn.Sequential(windows, copy.deepcopy(windows))
    saved = exmy.torch.state(model)
    exmy.torch.set_step(model, 3)
    model(torch.from_numpy(X))
    before = exmy.torch.state(model)
    for wrong in ({"memory": "window nowhere"}, {"step": -1}, {"step": 7, "memory": None}):
        with pytest.raises((TypeError, ValueError)):
            exmy.torch.load_state(model, [saved[0], saved[1] | wrong])
        assert exmy.torch.state(model) == before != saved
