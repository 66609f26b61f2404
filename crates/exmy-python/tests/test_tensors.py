"""Tensors of PyTorch on the CPU in `exmy`'s own functions: tensors come out, with the bits that arrays of NumPy
have, and no gradient is lost without a word."""

import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import exmy
import exmy.torch
import on_gpu
from on_gpu import A, B, X, differ


def array(x: torch.Tensor) -> np.ndarray:
    """The same memory as an array; NumPy's narrow types are those of ml_dtypes."""
    kind = str(x.dtype).partition(".")[2]
    if not kind.startswith(("bfloat16", "float8")):
        return x.numpy()
    return x.view(torch.uint16 if x.element_size() == 2 else torch.uint8).numpy().view(getattr(ml_dtypes, kind))


@pytest.mark.parametrize("case", [case for case in on_gpu.CASES if case is not on_gpu.rounding_in_torch])
def test_tensors_give_tensors_and_arrays_arrays(case):
    tensors, arrays = list(case(lambda x: x)), list(case(array))
    assert len(tensors) == len(arrays) > 0
    for i, (tensor, found) in enumerate(zip(tensors, arrays)):
        assert differ(tensor, found) is None, f"result {i}: {differ(tensor, found)}"
        assert isinstance(found, (np.ndarray, np.float32)), i
        # The scale of a tensor is a number either way.
        assert isinstance(tensor, torch.Tensor) or isinstance(tensor, np.float32), i
        assert not isinstance(tensor, torch.Tensor) or not tensor.requires_grad, i


def test_one_tensor_among_operands_makes_a_tensor():
    blocks = exmy.quantize(A, "mxfp4")
    b = exmy.quantize(B.numpy(), "mxfp4", axis=0)
    expected = exmy.gemm(A.numpy(), B.numpy())
    for left, right in ((A, B.numpy()), (A.numpy(), B), (exmy.Format("e8m23").array(A.numpy()), B)):
        found = exmy.gemm(left, right)
        assert isinstance(found, torch.Tensor) and differ(found, expected) is None
    assert isinstance(exmy.gemm(blocks, b), torch.Tensor) and isinstance(exmy.gemm(b.dequantize().T, b), np.ndarray)


def test_results_go_into_a_tensor():
    out = torch.full_like(X, 7)
    at = out.data_ptr()
    assert exmy.fake_quantize(X, "nvfp4", out=out) is out and out.data_ptr() == at
    assert differ(out, exmy.fake_quantize(X.numpy(), "nvfp4")) is None
    for wrong in (out.numpy(), out[:3], out.double(), out.transpose(0, 1), out.clone().requires_grad_()):
        with pytest.raises(ValueError, match="out (is a contiguous tensor of float32|requires a gradient)"):
            exmy.fake_quantize(X, "nvfp4", out=wrong)
    with pytest.raises(ValueError, match="overlap|share memory|same memory"):
        exmy.fake_quantize(out, "nvfp4", out=out)


def test_a_graph_knows_that_what_it_saved_is_overwritten():
    out, w = torch.ones(4, 32), torch.ones(4, 32, requires_grad=True)
    loss = (out * w).sum()
    exmy.fake_quantize(torch.ones(4, 32), "mxfp4", out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


FUNCTIONS = {
    "x": [
        lambda x: exmy.fake_quantize(x, "mxfp4"),
        lambda x: exmy.Quantizer("mxfp4").fake_quantize(x, axis=0, out=torch.empty(32, 64)),
        lambda x: exmy.quantize(x, "nvfp4"),
        lambda x: exmy.Format("e4m3").encode(x),
        lambda x: exmy.Array(x, "e4m3"),
        lambda x: exmy.Format("e4m3").array(x),
    ],
    "a": [lambda x: exmy.gemm(x, B), lambda x: exmy.gemm(x, B.numpy(), sum="exact")],
    "b": [lambda x: exmy.gemm(B, x), lambda x: exmy.gemm(exmy.quantize(B, "mxfp4"), x)],
    "codes": [lambda x: exmy.Format("f32").decode(x), lambda x: exmy.Array.from_codes(x, "f32")],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_gradient_is_lost_without_a_word(name):
    x = A.clone().requires_grad_()
    for work in FUNCTIONS[name]:
        for one in (x, torch.nn.Parameter(A), x * 2):
            said = rf"^{name} requires a gradient.*exmy\.torch\.fake_quantize\({name}.*{name}\.detach\(\)"
            with pytest.raises(RuntimeError, match=said):
                work(one)
        # What is said works, and so does a block in which nothing has a gradient.
        work(x.detach())
        with torch.no_grad():
            work(x)
        with torch.inference_mode():
            work(x)
    # What is refused in one place passes in the other.
    exmy.torch.fake_quantize(x, "nvfp4").sum().backward()
    assert differ(x.grad, torch.ones(32, 64)) is None


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_blocks_of_tensors_are_sent(axis):
    b = exmy.quantize(X, "nvfp4", axis=axis)
    again = pickle.loads(pickle.dumps(b))
    for one in ("codes", "packed", "scales"):
        assert isinstance(getattr(again, one), torch.Tensor) and torch.equal(getattr(again, one), getattr(b, one))
    assert torch.equal(again.dequantize(), b.dequantize())
    assert np.array_equal(np.asarray(b), exmy.quantize(X.numpy(), "nvfp4", axis=axis))


def test_codes_of_a_tensor_are_a_tensor_of_its_type_by_a_view():
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16):
        x = X.clamp(-400, 400)
        codes = exmy.Format(kind).encode(x)
        assert torch.equal(codes.view(kind).float(), x.to(kind).float())


def test_an_array_of_a_tensor_has_codes_of_numpy():
    x = exmy.Array(A, "e4m3")
    assert isinstance(x.codes, np.ndarray) and np.array_equal(x.codes, exmy.Array(A.numpy(), "e4m3").codes)
    x[0] = B[:, 0].contiguous()
    assert np.array_equal(x.codes[0], exmy.Format("e4m3").encode(B[:, 0].numpy()))
    codes = torch.arange(256, dtype=torch.uint8)
    assert exmy.Array.from_codes(codes, "e4m3").codes.ctypes.data == codes.data_ptr()


def test_views_that_are_negated_when_read_are_read():
    x = torch.complex(A, A).conj().imag
    assert x.is_neg()
    assert torch.equal(exmy.fake_quantize(x, "mxfp4"), exmy.fake_quantize(-A, "mxfp4"))
    assert torch.equal(exmy.Format("f32").decode(x), -A)


def test_what_is_wrong_is_said_in_words_of_pytorch():
    for wrong, said in [
        (lambda: exmy.Format("e4m3").encode(torch.tensor([True])), r"bool.*x.double\(\)"),
        (lambda: exmy.Format("e4m3").decode(torch.zeros(4, dtype=torch.int32)), r"int32.*codes.to\(torch.uint8\)"),
        (lambda: exmy.fake_quantize(torch.zeros(4, 32).double(), "mxfp4"), r"float64.*x.float\(\)"),
    ]:
        with pytest.raises(TypeError, match=said):
            wrong()


def test_pytorch_is_not_imported_for_arrays():
    code = (
        "import sys, numpy, exmy; x = numpy.ones((4, 32), numpy.float32); b = exmy.quantize(x, 'mxfp4'); b.codes; "
        "exmy.gemm(b, exmy.quantize(x.T.copy(), 'mxfp4', axis=0)); exmy.fake_quantize(x, 'nvfp4'); "
        "e = exmy.Format('e4m3'); e.decode(e.encode(x)); e.array(x); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", done.stderr


def calls(x: torch.Tensor):
    """Functions of this package that read numbers of a tensor."""
    return [
        lambda: exmy.fake_quantize(x, "mxfp4"),
        lambda: exmy.quantize(x, "mxfp4"),
        lambda: exmy.gemm(x, x.T),
        lambda: exmy.Format("e4m3").encode(x),
        lambda: exmy.torch.fake_quantize(x, "mxfp4"),
    ]


def test_a_fake_tensor_has_no_numbers():
    from torch._subclasses.fake_tensor import FakeTensorMode

    fake = FakeTensorMode().from_tensor(A)
    for call in calls(fake):
        with pytest.raises(TypeError, match="is a FakeTensor, which .* a plain torch.Tensor is needed"):
            call()


def test_a_tangent_is_not_lost():
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        for call in calls(forward_ad.make_dual(A, torch.ones_like(A)))[:4]:
            with pytest.raises(RuntimeError, match="x has a tangent|a has a tangent"):
                call()
        assert exmy.fake_quantize(A, "mxfp4").shape == A.shape
