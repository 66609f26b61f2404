"""Tensors on a GPU for the functions of `exmy`: the bits of the CPU, and words where something has no kernel."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import exmy
from on_gpu import CASES, A, B, X, differ, on_a_gpu


@pytest.mark.parametrize("where", ["emulated", "cuda"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_gpu_has_the_bits_of_the_cpu(where, case, monkeypatch):
    expected = list(case(lambda x: x))
    with monkeypatch.context() as patch:
        found = list(case(on_a_gpu(where, patch)))
    assert len(found) == len(expected)
    for i, (there, here) in enumerate(zip(found, expected)):
        assert differ(there, here) is None, f"result {i}: {differ(there, here)}"


@pytest.mark.parametrize(
    "wrong, kind, said",
    [
        (lambda to: exmy.gemm(to(A), to(B), sum="exact"), NotImplementedError, r'sum="exact".*"fast".*a.cpu\(\)'),
        (lambda to: exmy.gemm(to(A), to(B), sum="hopper"), NotImplementedError, "two matrices of bfloat16"),
        (lambda to: exmy.gemm(exmy.quantize(to(A), "mxfp4"), to(B), sum="blocked256"), NotImplementedError, "blocks"),
        (lambda to: exmy.gemm(to(A), to(A)), ValueError, "64 columns and 32 rows"),
        (lambda to: exmy.gemm(to(X), to(B)), ValueError, r"a has shape \(6, 32, 64\)"),
        (lambda to: exmy.gemm(to(A.double()), to(B)), TypeError, "a has elements of torch.float64"),
        (lambda to: exmy.gemm(to(A), B.numpy()), TypeError, "b is on the CPU"),
        (lambda to: exmy.gemm(exmy.quantize(A.numpy(), "mxfp4"), to(B)), TypeError, "a is on the CPU"),
        (lambda to: exmy.gemm(exmy.quantize(to(A), "mxfp4", axis=0), to(B)), ValueError, r"\(a, .., axis=-1\)"),
        (lambda to: exmy.gemm(to(A), exmy.quantize(to(B), "mxfp4")), ValueError, r"quantize\(b, .., axis=0\)"),
        (lambda to: exmy.gemm(to(A), to(B), sum="fats"), ValueError, "fats"),
        (lambda to: exmy.gemm(to(A), to(B), output="f64"), ValueError, "float32"),
        (lambda to: exmy.gemm(to(A), to(B), output="bf16", rounding="sr8"), ValueError, "seed=1"),
        (lambda to: exmy.fake_quantize(to(X), "mxfp4", axis=3), ValueError, "axis is 3"),
        (lambda to: exmy.fake_quantize(to(X), "mxfp4@sr8"), ValueError, "seed=1"),
        (lambda to: exmy.fake_quantize(to(X.double()), "mxfp4"), TypeError, r"torch.float64.*x.float\(\)"),
        (lambda to: exmy.fake_quantize(to(X), "mxfp4", out=np.empty(X.shape, "f4")), ValueError, "tensor of float32"),
        (lambda to: exmy.fake_quantize(to(X), "mxfp4", axis=0, out=torch.empty(X.shape)), ValueError, "the last axis"),
        (lambda to: exmy.quantize(to(X[0, 0, 0]), "mxfp4"), ValueError, "single number"),
        (lambda to: exmy.quantize(to(A), "none"), RuntimeError, "has no codes"),
        (lambda to: exmy.Format("e4m3").encode(to(X.double())), NotImplementedError, r"x.cpu\(\)"),
        (lambda to: exmy.Format("f64").encode(to(X)), NotImplementedError, "64 bits"),
        (lambda to: exmy.Format("e11m20").decode(to(torch.zeros(2).int())), NotImplementedError, "float32"),
        (lambda to: exmy.Format("e2m1").decode(to(torch.full((2,), 16, dtype=torch.uint8))), ValueError, "0x10 is no"),
        (lambda to: exmy.Format("e4m3").decode(to(X.int())), TypeError, r"codes.to\(torch.uint8\)"),
        (lambda to: exmy.Format("e4m3").decode(to(X)), TypeError, r"Format\('e4m3'\).encode\(x\)"),
        (lambda to: exmy.Blocks.from_parts("mxfp4", (2, 32), to(PARTS[0]), to(PARTS[1][:1])), ValueError, "32 and 1"),
        (lambda to: exmy.Blocks.from_parts("mxfp4", (2, 32), to(PARTS[0]), to(PARTS[1].int())), TypeError, "int32"),
    ],
)
@pytest.mark.parametrize("where", ["emulated", "cuda"])
def test_what_cannot_be_done_there_is_refused(where, wrong, kind, said, monkeypatch):
    with pytest.raises(kind, match=said):
        wrong(on_a_gpu(where, monkeypatch))


PARTS = torch.zeros(32, dtype=torch.uint8), torch.zeros(2, dtype=torch.uint8)


@pytest.mark.parametrize("where", ["emulated", "cuda"])
def test_one_nan_is_in_the_scales_of_both(where, monkeypatch):
    x = A.clone()
    x[0, 0] = float("nan")
    for name in ("mxfp4", "mxfp8-e4m3"):
        here = exmy.quantize(x, name)
        with monkeypatch.context() as patch:
            there = exmy.quantize(on_a_gpu(where, patch)(x), name)
            assert differ(there.scales, here.scales) is None and differ(there.dequantize(), here.dequantize()) is None
