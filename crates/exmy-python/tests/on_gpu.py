"""What `exmy` does with tensors on a GPU, each case a function of how a tensor gets there; results have the bits of the
CPU. Alone, as `python on_gpu.py`, it compares all of it on the GPU 0."""

import pickle
import sys
import time

import numpy as np
import torch

import exmy
import exmy.torch
from exmy import _tensors


def on_a_gpu(where, monkeypatch):
    """A function that brings tensors to a GPU: a real one, or this processor, which then is the GPU 99."""
    import pytest

    if where == "cuda":
        if not torch.cuda.is_available():
            pytest.skip("no GPU")
        return lambda x: x.to("cuda")
    if not hasattr(exmy._exmy, "_EMULATED"):
        pytest.skip("built without the feature emulated")

    def aligned(x):
        size = x.numel() * x.element_size()
        place = torch.empty(size + 256, dtype=torch.uint8)
        first = -place.data_ptr() % 256
        return place[first : first + size].view(x.dtype).view(x.shape).copy_(x)

    monkeypatch.setattr(_tensors, "gpu_of", lambda x, name: 99)
    monkeypatch.setattr(_tensors, "aligned", aligned)
    seven = lambda shape, like, kind=torch.float32: aligned(torch.full(tuple(shape), 7, dtype=kind))
    monkeypatch.setattr(_tensors, "empty", seven)
    return lambda x: x


RNG = np.random.default_rng(4)
X = torch.from_numpy((RNG.standard_normal((6, 32, 64)) * np.exp2(RNG.integers(-9, 9, (6, 32, 64)))).astype(np.float32))
A, B = X[0], X[1].t().contiguous()
LARGE = torch.from_numpy(RNG.standard_normal((300, 520)).astype(np.float32))
BLOCKS = ("mxfp8-e4m3", "mxfp4", "nvfp4", "nvfp4@sr8", "mxfp6-e2m3", "e8m3/32:e8m0", "nvfp4-16x16", "e4m3/row:f32")


def fake_quantize(to):
    for name in (*BLOCKS, "e4m3", "e8m3@rtz", "bf16>rht16>nvfp4", "e5m2@sr4", "nvfp4@4over6", "nvfp4@torchao-0.18"):
        for axis in (0, 1, -1):
            yield exmy.fake_quantize(to(X.transpose(0, 1).transpose(0, axis)), name, axis=axis, seed=3)
        yield exmy.fake_quantize(to(A), name, axis=0, seed=3)
    for x in (X[:, 1], X.transpose(0, 1), X[1:], X.bfloat16(), X.half(), X[..., :20], X[:0], X[0, :, :0], X[0, 0]):
        yield exmy.fake_quantize(to(x), "mxfp4")
    yield exmy.Quantizer("nvfp4").fake_quantize(to(LARGE), axis=0)


def fake_quantize_out(to):
    x = to(X)
    out = _tensors.empty(x.shape, x) if isinstance(x, torch.Tensor) else np.empty_like(x)
    assert exmy.fake_quantize(x, "nvfp4", out=out) is out
    yield out


def rounding_in_torch(to):
    for name in ("nvfp4", "mxfp4@sr8", "e4m3"):
        for axis in (0, 1, -1):
            yield exmy.torch.fake_quantize(to(X), name, axis, seed=3)
    yield exmy.torch.fake_quantize(to(X.bfloat16()), "mxfp4")


def quantize(to):
    for name in (*BLOCKS, "e4m3", "bf16>e2m1@rtz", "e8m3@sr8"):
        small = (X[0, :, :20], 1), (X[0, :3], 0), (X[:0], 2), (X[0, 0], 0)
        for x, axis in ((X, 0), (X, 1), (X, 2), (A, 0), (A, 1), *small):
            b = exmy.quantize(to(x), name, axis=axis, seed=3)
            assert b.shape == tuple(x.shape) and b.axis == axis
            yield from (b.codes, b.packed, b.scales, b.dequantize())
            yield np.float32(0 if b.tensor_scale is None else b.tensor_scale)


def parts(to):
    for name in ("mxfp4", "nvfp4", "e4m3/row:f32"):
        for axis in (0, 1):
            b = exmy.quantize(to(LARGE), name, axis=axis)
            again = exmy.Blocks.from_parts(b.format, b.shape, b.packed, b.scales, b.tensor_scale, axis=axis)
            for one in (again, b.cpu(), pickle.loads(pickle.dumps(b))):
                yield one.dequantize()
    yield pickle.loads(pickle.dumps(exmy.quantize(to(X), "nvfp4", axis=1))).codes


def encode(to):
    for name in ("e4m3", "e5m2", "e2m1", "e8m3", "bf16", "e5m10", "e8m0", "binary8p3se", "e8m13", "f32", "int8"):
        for rounding in (None, "rtz", "sr8", "rup"):
            for overflow in (None, "sat-none"):
                yield exmy.Format(name).encode(to(X), rounding=rounding, overflow=overflow, seed=5)
    for x in (X.bfloat16(), X.half(), X[:, 1], X[0, 0, 0], X[:0]):
        yield exmy.Format("e4m3").encode(to(x))


def decode(to):
    for name in ("e4m3", "e5m2", "e2m1", "e8m3", "bf16", "e8m0", "binary8p3se", "int8"):
        codes = np.arange(1 << exmy.Format(name).bits).astype(np.uint8 if exmy.Format(name).bits <= 8 else np.uint16)
        yield exmy.Format(name).decode(to(torch.from_numpy(codes)))
    wide = torch.from_numpy(np.arange(0, 1 << 22, 77, dtype=np.uint32))
    yield exmy.Format("e8m13").decode(to(wide))
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16, torch.float32):
        yield exmy.Format(kind).decode(to(X.to(kind)))
    yield exmy.Format("bf16").decode(to(torch.arange(200, dtype=torch.uint8)))


def operands():
    yield A, B
    yield X[2], X[3].t()
    yield X[2].t(), X[3]
    yield LARGE, LARGE.t()
    yield A[:, 3:40], B[3:40]
    yield A[:0], B
    yield A[:, :0], B[:0]


def products(to):
    for sum in ("fast", "blocked256"):
        for a, b in operands():
            yield exmy.gemm(to(a), to(b), sum=sum)
        for left, right in ((torch.bfloat16, torch.bfloat16), (torch.float16, torch.float32)):
            yield exmy.gemm(to(A.to(left)), to(B.to(right)), sum=sum)
        yield exmy.gemm(to(A.to(torch.float8_e4m3fn)), to(B.to(torch.float8_e5m2)), sum=sum)
        yield exmy.gemm(to(A), to(B), sum=sum, output="bf16")
        yield exmy.gemm(to(A), to(B), sum=sum, output="e4m3", rounding="sr8", seed=7)
        yield exmy.gemm(to(A), to(B), sum=sum, output="e8m3", rounding="rtz")


def products_of_blocks(to):
    for name in BLOCKS:
        a = exmy.quantize(to(LARGE), name, seed=3)
        b = exmy.quantize(to(LARGE.t()), name, axis=0, seed=3)
        yield exmy.gemm(a, b, sum="fast")
        yield exmy.gemm(a, to(LARGE.t().bfloat16()), sum="fast", output="bf16")


def products_of_hopper(to):
    for a, b in operands():
        yield exmy.gemm(to(a.bfloat16()), to(b.bfloat16()), sum="hopper")
        codes = [(x / 64).to(torch.float8_e4m3fn) for x in (a, b)]
        yield exmy.gemm(*map(to, codes), sum="hopper", output="bf16")


CASES = (
    fake_quantize,
    fake_quantize_out,
    rounding_in_torch,
    quantize,
    parts,
    encode,
    decode,
    products,
    products_of_blocks,
    products_of_hopper,
)


def on_the_host(x) -> np.ndarray:
    if not isinstance(x, torch.Tensor):
        return np.asarray(x, order="C")
    x = x.detach().cpu().contiguous()
    return x.view(torch.int16).numpy() if x.dtype == torch.bfloat16 else x.numpy()


def differ(there, here) -> str | None:
    """In what a result on the GPU differs from that of the CPU."""
    there, here = (on_the_host(x) for x in (there, here))
    if (there.shape, there.dtype) != (here.shape, here.dtype):
        return f"{there.dtype} {there.shape}, not {here.dtype} {here.shape}"
    kind = f"u{here.dtype.itemsize}"
    wrong = np.flatnonzero(there.reshape(-1).view(kind) != here.reshape(-1).view(kind))
    if wrong.size == 0:
        return None
    at = wrong[0]
    return f"{wrong.size} of {here.size}, first {at}: {there.reshape(-1)[at]}, not {here.reshape(-1)[at]}"


def main() -> int:
    print(torch.__version__, torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0))
    failures, count = 0, 0
    for case in CASES:
        begin, here, said = time.perf_counter(), case(lambda x: x), []
        try:
            for i, (there, here) in enumerate(zip(case(lambda x: x.to("cuda")), here, strict=True)):
                assert not isinstance(there, torch.Tensor) or there.is_cuda or case is parts, f"{i} is on the CPU"
                count += 1
                why = differ(there, here)
                said += [f"{i}: {why}"] if why else []
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
        failures += len(said)
        print(case.__name__, f"{time.perf_counter() - begin:.1f} s", "; ".join(said)[:180] if said else "equal")
    print(f"{count} results, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
