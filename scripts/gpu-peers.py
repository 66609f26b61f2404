#!/usr/bin/env python3
"""What PyTorch reaches on a GPU for the products and the copy that exmy-cuda-speed times: cuBLAS in f32
without TF32, in bfloat16 and in FP8, and a copy on the device. Each is the median of five rounds, after one to
warm up."""
import torch


def median(work, repeats):
    work()
    rounds = []
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeats):
            work()
        end.record()
        end.synchronize()
        rounds.append(start.elapsed_time(end) / repeats)
    return sorted(rounds)[2]


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    for m, k, n in [(512, 512, 512), (2048, 512, 2048), (2048,) * 3, (4096,) * 3, (8192,) * 3]:
        flops = 2 * m * k * n
        repeats = int(min(max(3e11 / flops, 2), 50))
        a, b = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda")
        for name, left, right in [("f32", a, b), ("bf16", a.bfloat16(), b.bfloat16())]:
            out = torch.empty(m, n, device="cuda", dtype=left.dtype)
            time = median(lambda: torch.mm(left, right.t(), out=out), repeats)
            print(f"cuBLAS {name} nt {m} x {k} x {n}: {time:.4f} ms, {flops / time / 1e9:.1f} TFLOP/s")
        one = torch.ones((), device="cuda")
        left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        fast = dict(out_dtype=torch.float32, use_fast_accum=True)
        time = median(lambda: torch._scaled_mm(left, right.t(), one, one, **fast), repeats)
        print(f"cuBLAS e4m3 nt {m} x {k} x {n}: {time:.4f} ms, {flops / time / 1e9:.1f} TFLOP/s")
    x = torch.randn(16384, 8192, device="cuda")
    y = torch.empty_like(x)
    time = median(lambda: y.copy_(x), 10)
    print(f"copy of 16384 x 8192 f32: {time:.3f} ms, {8 * x.numel() / time / 1e6:.0f} GB/s")


main()
