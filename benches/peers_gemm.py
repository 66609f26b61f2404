"""The fast product beside PyTorch's f32 (MKL) and bf16 (oneDNN) products, one thread each.

    cargo bench --all-features --bench gemm_fast --no-run      # prints the path of the program
    python benches/peers_gemm.py PROGRAM [SIZE...]

Each of five rounds asks one process after another for the shortest time of its calls; a ratio is the
median of the rounds' ratios.
"""
import os
import statistics
import subprocess
import sys

ONE = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
FORMATS = ("mxfp8-e4m3", "mxfp4", "nvfp4")


def torch_speed(dtype, n):
    """GFLOP/s of the shortest call within 40 ms."""
    import time

    import torch

    torch.set_num_threads(1)
    a, b = (torch.randn(n, n).to(getattr(torch, dtype)) for _ in range(2))
    out = torch.empty(n, n, dtype=a.dtype)
    for _ in range(2):
        torch.mm(a, b, out=out)
    best, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < 0.04:
        call = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - call)
    return 2 * n**3 / best / 1e9


def ask(*command):
    result = subprocess.run(command, env={**os.environ, **ONE}, capture_output=True, text=True, check=True)
    return float(result.stdout)


def main():
    program, sizes = sys.argv[1], [int(n) for n in sys.argv[2:]] or [512, 1024, 2048]
    print("| product | n | GFLOP/s | f32 | of f32 | bf16 | of bf16 |\n|---|---:|---:|---:|---:|---:|---:|")
    for n in sizes:
        names = [f"{kind} {name}" for kind in ("kernel", "packed") for name in FORMATS]
        speeds = {name: [] for name in ("float32", "bfloat16", *names)}
        for _ in range(5):
            for name, found in speeds.items():
                if " " in name:
                    found.append(ask(program, "once", name, str(n), str(n), str(n)))
                else:
                    found.append(ask(sys.executable, __file__, "--torch", name, str(n)))
        median = statistics.median
        f32, bf16 = speeds["float32"], speeds["bfloat16"]
        for name in names:
            found = speeds[name]
            of = [median(x / y for x, y in zip(found, other)) for other in (f32, bf16)]
            print(f"| {name} | {n} | {median(found):.0f} | {median(f32):.0f} | {of[0]:.2f} | {median(bf16):.0f} | {of[1]:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:
        print(torch_speed(sys.argv[2], int(sys.argv[3])))
    else:
        main()
