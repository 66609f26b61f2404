"""exmy in PyTorch. Layers are restated, bit for bit, by quantized operands and products in the order `fast`, with the
streams that docs/recipes.md names; loosely by PyTorch's own arithmetic. Gradients are worked out by hand."""

import doctest

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import exmy
import exmy.torch
from exmy import _arrays, _tensors
from on_gpu import on_a_gpu

RNG = np.random.default_rng(2)
TOKENS, INPUTS, OUTPUTS = 96, 64, 32
X = RNG.standard_normal((TOKENS, INPUTS)).astype(np.float32)
G = RNG.standard_normal((TOKENS, OUTPUTS)).astype(np.float32)


def run(layer, x=X, g=G):
    x = torch.tensor(x, requires_grad=True)
    y = layer(x)
    y.backward(torch.tensor(g))
    return [one.detach().numpy() for one in (y, x.grad, layer.weight.grad)]


def product(a, b, recipes, streams=(None, None), seed=None):
    """A B of operands that are rounded along the sum."""
    parts = [(a, recipes[0], -1, streams[0]), (b, recipes[1], 0, streams[1])]
    blocks = [
        exmy.quantize(x, name, axis=axis, seed=seed, stream=stream or "unused") for x, name, axis, stream in parts
    ]
    return exmy.gemm(*blocks, sum="fast")


def same(found, expected):
    found, expected = (np.ascontiguousarray(x, dtype=np.float32) for x in (found, expected))
    assert found.shape == expected.shape and np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_the_examples_of_the_docstrings():
    found = doctest.testmod(exmy.torch)
    assert found.attempted > 4 and found.failed == 0


@pytest.mark.parametrize(
    "recipe, gradient",
    [("mxfp8-e4m3", None), ("mxfp4", None), ("nvfp4", None), ("mxfp8-mix", "mxfp8-e5m2"), ("e2m1/16:e8m0", None)],
)
def test_a_layer_multiplies_rounded_operands(recipe, gradient):
    layer = exmy.torch.Linear(INPUTS, OUTPUTS, recipe=recipe)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    y, dx, dw = run(layer)
    name = "mxfp8-e4m3" if gradient else recipe
    back = gradient or recipe
    same(y, product(X, w.T, [name, name]) + b)
    same(dx, product(G, w, [back, name]))
    same(dw, product(G.T, X, [back, name]))
    sums = np.zeros(OUTPUTS, np.float32)
    for row in G:
        sums += row
    same(layer.bias.grad.numpy(), sums)
    # And PyTorch's own product of the rounded operands, which is summed in another order.
    theirs = torch.nn.functional.linear(
        *(torch.from_numpy(exmy.fake_quantize(one, name)) for one in (X, w)), layer.bias.detach()
    )
    assert np.allclose(y, theirs.numpy(), rtol=1e-5, atol=1e-5)
    plain = run(copy_of(layer))
    assert not np.array_equal(y, plain[0]) and np.abs(y - plain[0]).max() < 1.0


def copy_of(layer):
    plain = torch.nn.Linear(layer.in_features, layer.out_features)
    plain.load_state_dict(layer.state_dict())
    return plain


def test_without_rounding_the_order_is_that_of_f32():
    layer = exmy.torch.Linear(INPUTS, OUTPUTS, bias=False, recipe="f32")
    w = layer.weight.detach().numpy()
    y, dx, dw = run(layer)
    same(y, exmy.gemm(X, w.T, sum="blocked256"))
    same(dx, exmy.gemm(G, w, sum="blocked256"))
    same(dw, exmy.gemm(G.T, X, sum="blocked256"))


def test_random_bits_are_addressed_by_the_step_and_the_place():
    layer = exmy.torch.Linear(INPUTS, OUTPUTS, bias=False, recipe="mxfp4@sr8", name="layers.3.q_proj", seed=7)
    w = layer.weight.detach().numpy()
    for step, part in [(0, 0), (5, 0), (5, 2)]:
        exmy.torch.set_step(layer, step, part)
        first = ("quantize part", step, part) if part else ("quantize", step)
        # Block 3 is 4, q_proj is operator 0; then the product and the operand: input, weight, gradient.
        stream = lambda product, operand: (*first, 4, 0, product, operand)
        layer.weight.grad = None
        y, dx, dw = run(layer)
        names = ["mxfp4@sr8"] * 2
        same(y, restated(X, w, stream, 7))
        same(dx, product(G, w, names, (stream(1, 2), stream(1, 1)), 7))
        # The words of the gradient are those of its rows as they are, not of the transpose.
        g = exmy.fake_quantize(G, names[0], axis=0, seed=7, stream=stream(2, 2))
        x = exmy.fake_quantize(X, names[0], axis=0, seed=7, stream=stream(2, 0))
        same(dw, exmy.gemm(g.T, x, sum="fast"))
    again = run(layer)
    same(again[0], y)
    exmy.torch.set_step(layer, 6)
    assert not np.array_equal(run(layer)[0], y)
    layer.eval()
    assert not np.array_equal(run(layer)[0], y)


def restated(x, w, stream, seed):
    x = exmy.fake_quantize(x, "mxfp4@sr8", seed=seed, stream=stream(0, 0))
    w = exmy.fake_quantize(w, "mxfp4@sr8", seed=seed, stream=stream(0, 1))
    return exmy.gemm(x, w.T, sum="fast")


def exact(shape, first):
    """Numbers from -1 to 1, other ones for each `first`."""
    words = (np.arange(np.prod(shape), dtype=np.uint32) + np.uint32(first)) * np.uint32(2654435761) >> np.uint32(8)
    return torch.from_numpy((words.astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape))


def digest(x):
    """The sum of the numbers' bits times odd weights, modulo 2^64."""
    words = np.ascontiguousarray(x).reshape(-1).view(np.uint32).astype(np.uint64)
    return int((words * (2 * np.arange(len(words), dtype=np.uint64) + 1)).sum(dtype=np.uint64))


@pytest.mark.parametrize(
    "recipe, expected",
    [
        ("mxfp4@sr8", [147_273_240_649_576_448, 59_757_845_059_534_848, 225_054_219_697_913_856]),
        ("nv-nvfp4+last=0", [148_787_475_689_439_232, 59_010_263_287_988_224, 225_148_264_881_777_449]),
        ("msamp-o1", [148_865_326_728_871_936, 59_853_284_880_613_376, 224_329_803_543_609_344]),
        ("bitred-e8m3", [148_801_272_114_118_656, 59_597_108_878_376_960, 224_621_728_439_468_941]),
        ("nvfp4+hcp=d-o2-b", [148_656_876_174_746_439, 59_032_233_343_483_297, 221_076_587_163_688_555]),
        ("mxpaper-e4m3", [148_866_762_193_108_992, 59_562_405_976_932_352, 225_639_017_066_528_768]),
    ],
)
def test_a_layer_has_the_digests_of_training(recipe, expected):
    """Those of `crates/exmy-train/tests/recipes/border.rs`: y, dx and dw of three steps, added up."""
    name = "layers.1.q_proj+k_proj+v_proj"
    layer = exmy.torch.Linear(64, 96, bias=False, recipe=recipe, name=name, seed=7, steps=10)
    layer.weight.data, found = exact((96, 64), 1), [0, 0, 0]
    for step in range(3):
        exmy.torch.set_step(layer, step)
        layer.zero_grad()
        made = run(layer, (exact((48, 64), 1000 + step) * 2.0**step).numpy(), exact((48, 96), 2000 + step).numpy())
        found = [(one + digest(x)) % 2**64 for one, x in zip(found, made)]
    assert found == expected


def test_a_layer_of_several_operators_rounds_each():
    layer = exmy.torch.Linear(INPUTS, 96, bias=False, recipe="nvfp4", name="layers.0.q_proj+k_proj+v_proj")
    w, g = layer.weight.detach().numpy(), RNG.standard_normal((TOKENS, 96)).astype(np.float32)
    y, dx, dw = run(layer, g=g)
    parts = [slice(i, i + 32) for i in (0, 32, 64)]
    names = ["nvfp4", "nvfp4"]
    same(y, np.hstack([product(X, w[part].T, names) for part in parts]))
    same(dw, np.vstack([product(g[:, part].T, X, names) for part in parts]))
    one, two, three = (product(g[:, part], w[part], names) for part in parts)
    same(dx, one + two + three)
    joint = exmy.torch.Linear(INPUTS, 96, bias=False, recipe="nvfp4")
    joint.weight = layer.weight
    assert not np.array_equal(joint(torch.from_numpy(X)).detach().numpy(), y)


def test_narrow_inputs_are_widened_and_results_rounded():
    layer = exmy.torch.Linear(INPUTS, OUTPUTS, recipe="mxfp4")
    x = torch.from_numpy(X).bfloat16().reshape(2, 48, INPUTS)
    y = layer(x)
    assert y.dtype == torch.bfloat16 and y.shape == (2, 48, OUTPUTS)
    same(y.detach().float().numpy(), layer(x.float()).bfloat16().float().detach().numpy())
    y.sum().backward()
    assert layer(x[:0]).shape == (0, 48, OUTPUTS)
    with pytest.raises(TypeError, match="float64"):
        layer(x.double())
    with pytest.raises(ValueError, match="64 elements"):
        layer(x[..., :3])


def test_the_gradient_passes_straight_through():
    x = torch.tensor(X, requires_grad=True)
    y = exmy.torch.fake_quantize(x, "nvfp4", axis=0)
    same(y.detach().numpy(), exmy.fake_quantize(X, "nvfp4", axis=0))
    y.backward(torch.from_numpy(X))
    same(x.grad.numpy(), X)
    x.grad = None
    exmy.torch.fake_quantize(x, "mxfp4", backward="mxfp8-e5m2").backward(torch.from_numpy(X))
    same(x.grad.numpy(), exmy.fake_quantize(X, "mxfp8-e5m2"))
    x.grad = None
    how = {"seed": 3, "stream": ("quantize", 5)}
    exmy.torch.fake_quantize(x, "mxfp4@sr8", backward="mxfp4@sr8", **how).backward(torch.from_numpy(X))
    same(x.grad.numpy(), exmy.fake_quantize(X, "mxfp4@sr8", seed=3, stream=("quantize gradient", 5)))
    half = exmy.torch.fake_quantize(torch.from_numpy(X).bfloat16(), "mxfp4")
    assert half.dtype == torch.bfloat16
    with pytest.raises(ValueError, match="rotates"):
        exmy.torch.fake_quantize(x, "rht16>nvfp4")
    with pytest.raises(ValueError, match="seed=1"):
        exmy.torch.fake_quantize(x, "mxfp4", backward="mxfp4@sr8")


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "bfloat16"])
def test_tensors_arrive_without_a_copy(kind):
    x = torch.from_numpy(X).to(getattr(torch, kind))
    codes = _arrays._array(x, "x")
    assert codes.ctypes.data == x.data_ptr() and codes.dtype.itemsize == x.element_size()
    same(exmy.Format(kind).decode(x), x.float().numpy())
    same(exmy.gemm(x, x.T, sum="exact"), exmy.gemm(x.float(), x.float().T, sum="exact"))
    with pytest.raises(TypeError, match="decode.codes. has their values"):
        exmy.Format("e2m1" if kind == "bfloat16" else "e3m4").decode(x)
    if kind == "bfloat16":
        same(exmy.fake_quantize(x, "mxfp4"), exmy.fake_quantize(x.float(), "mxfp4"))
    else:
        with pytest.raises(TypeError, match=kind):
            exmy.fake_quantize(x, "mxfp4")
    # And back: codes are such a tensor by a view.
    back = exmy.Format(kind).encode(x.float()).view(x.dtype)
    assert torch.equal(back.view(torch.uint8), x.view(torch.uint8))


def test_tensors_of_float32_are_read_where_they_lie():
    x = torch.tensor(X)
    assert _arrays._array(x, "x").ctypes.data == x.data_ptr() == _tensors.plain(x, "x").data_ptr()
    same(exmy.fake_quantize(x, "nvfp4"), exmy.fake_quantize(X, "nvfp4"))


class Elsewhere:
    """A tensor of a GPU, as DLPack shows it."""

    device, dtype = "cuda:0", "torch.float32"

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        raise AssertionError("not asked for")


def test_what_a_tensor_holds_is_said():
    four = torch.zeros(4, 16, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    with pytest.raises(TypeError, match=r"two numbers a byte: b.view\(torch.uint8\)"):
        exmy.gemm(torch.ones(4, 4), four)
    with pytest.raises(ValueError, match=r"out.numpy\(\)"):
        exmy.fake_quantize(np.ones((4, 32), np.float32), "mxfp4", out=torch.empty(4, 32))
    # Codes of a tensor's type are no integers.
    for kind in (torch.bfloat16, torch.float16):
        x = torch.tensor([0.5, -3.0, 1000.0], dtype=kind)
        assert exmy.Format("e4m3").encode(x).tolist() == [0x30, 0xC4, 0x7E]


def test_tensors_of_other_devices_are_refused():
    with pytest.raises(TypeError, match=r"torch\.from_dlpack\(x\)"):
        exmy.fake_quantize(Elsewhere(), "mxfp4")


# What a tensor is, beside float32 on the CPU, and what is said of it.
OTHERS = {
    "on meta, where tensors have shapes and no numbers": lambda: torch.empty(4, 32, device="meta"),
    r"torch.view_as_real\(x\)": lambda: torch.zeros(4, 32, dtype=torch.complex64),
    r"sparse \(torch.sparse_coo\).*x.to_dense\(\)": lambda: torch.eye(32).to_sparse(),
    r"sparse \(torch.sparse_csr\).*x.to_dense\(\)": lambda: torch.eye(32).to_sparse_csr(),
    r"quantized \(torch.quint8\).*x.dequantize\(\)": lambda: torch.quantize_per_tensor(
        torch.zeros(4, 32), 0.1, 0, torch.quint8
    ),
    r"nested.*x.to_padded_tensor": lambda: torch.nested.nested_tensor([torch.zeros(2, 32), torch.zeros(3, 32)]),
    r"float64.*x.float\(\)": lambda: torch.zeros(4, 32, dtype=torch.float64),
    r"int32.*x.float\(\)": lambda: torch.zeros(4, 32, dtype=torch.int32),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("said", OTHERS)
def test_tensors_of_other_kinds_are_refused(said):
    x, layer = OTHERS[said](), exmy.torch.Linear(32, 32, recipe="mxfp4")
    for wrong in (layer, lambda x: exmy.torch.fake_quantize(x, "mxfp4"), lambda x: exmy.fake_quantize(x, "mxfp4")):
        with pytest.raises(TypeError, match=said):
            wrong(x)
    meta = exmy.torch.Linear(32, 32, recipe="mxfp4", device="meta")
    with pytest.raises(TypeError, match="weight is on meta.*model.to_empty"):
        meta(torch.zeros(4, 32))
    with pytest.raises(TypeError, match=r"float64.*model.float\(\)"):
        layer.double()(torch.zeros(4, 32))


@pytest.mark.filterwarnings("ignore")
def test_a_trace_is_refused():
    """It would have the numbers of its one pass for good."""
    for work in (exmy.torch.Linear(32, 32, recipe="mxfp4"), lambda x: exmy.torch.fake_quantize(x, "mxfp4")):
        with pytest.raises(RuntimeError, match="a trace would keep"):
            torch.jit.trace(work, torch.zeros(4, 32))


def test_types_of_pytorch_name_formats():
    assert exmy.Format(torch.float8_e5m2) == exmy.Format("e5m2")


def test_integers_of_pytorch_are_plain_integers():
    for kind in (torch.int8, torch.int16, torch.int32):
        format, facts = exmy.Format(kind), torch.iinfo(kind)
        assert (format.bits, format.min, format.max) == (facts.bits, facts.min, facts.max)
        x = torch.tensor([facts.min, -1, 0, 1, facts.max], dtype=kind)
        assert format.decode(x).tolist() == exmy.Array(x, kind, overflow="sat-none").tolist() == x.tolist()
    for kind in (torch.uint8, torch.int64, torch.bool, torch.complex64):
        with pytest.raises(ValueError, match=f"the type {str(kind).partition('.')[2]} has no format"):
            exmy.Format(kind)


@pytest.mark.parametrize("where", ["emulated", "cuda"])
@pytest.mark.parametrize("recipe", ["f32", "mxfp8-mix", "nvfp4@sr8", "e4m3/tensor:e8m0@rceil@window4", "nv-nvfp4"])
def test_a_gpu_has_the_bits_of_the_cpu(where, recipe, monkeypatch):
    made = []
    for device in ("cpu", "gpu"):
        with monkeypatch.context() as patch:
            to = on_a_gpu(where, patch) if device == "gpu" else lambda x: x
            torch.manual_seed(1)
            layer = exmy.torch.Linear(INPUTS, OUTPUTS, recipe=recipe, name="layers.0.up_proj")
            layer.weight.data, layer.bias.data = to(layer.weight.data), to(layer.bias.data)
            for step in range(2):
                exmy.torch.set_step(layer, step)
                layer.zero_grad()
                x = to(torch.tensor(X * 2**step)).requires_grad_()
                y = layer(x)
                y.backward(to(torch.tensor(G)))
                made.append([one.detach().cpu().numpy() for one in (y, x.grad, layer.weight.grad, layer.bias.grad)])
            made[-1].append(exmy.torch.state(layer)[0]["memory"])
    assert made[1].pop() == made[3].pop()
    for here, there in zip(made[0] + made[1], made[2] + made[3]):
        same(there, here)


@pytest.mark.parametrize("where", ["emulated", "cuda"])
def test_a_gpu_rounds_with_the_bits_of_the_cpu(where, monkeypatch):
    x = torch.from_numpy(RNG.standard_normal((6, 32, 64)).astype(np.float32))
    cases = [(x, name, axis) for name in ("nvfp4", "mxfp4@sr8", "e4m3") for axis in (0, 1, -1)]
    cases += [(x[0], "nvfp4", axis) for axis in (0, 1)] + [(x[:, 1], "mxfp4", -1), (x.bfloat16(), "mxfp8-e4m3", -1)]
    work = lambda to: [exmy.torch.fake_quantize(to(x), name, axis, seed=3).cpu().float() for x, name, axis in cases]
    expected = work(lambda x: x)
    with monkeypatch.context() as patch:
        found = work(on_a_gpu(where, patch))
        with pytest.raises(ValueError, match="axis is 3"):
            exmy.torch.fake_quantize(x, "mxfp4", 3)
    for one, other in zip(found, expected):
        same(one.numpy(), other.numpy())


def test_a_bias_of_its_own_type_keeps_its_gradient():
    layer = exmy.torch.Linear(64, 32, recipe="mxfp8-e4m3")
    layer.weight.data = layer.weight.data.bfloat16()
    layer(torch.randn(16, 64)).backward(torch.randn(16, 32))
    found = layer.bias.grad
    assert layer.weight.grad.dtype == torch.bfloat16 and not torch.equal(found, found.bfloat16().float())
