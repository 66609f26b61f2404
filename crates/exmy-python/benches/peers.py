#!/usr/bin/env python3
"""exmy beside microxcaling and torchao from Python, on the CPU or a GPU: fake quantization of 2^24 numbers, and a step
of a small GPT-2 whose linear layers round.

    pip install torch torchao ./crates/exmy-python
    git clone https://github.com/microsoft/microxcaling
    python crates/exmy-python/benches/peers.py --microxcaling microxcaling

Each round runs all candidates in turns; times are medians of the rounds, after one to warm up, and the smallest. What
is compared computes the same: how many numbers differ in a bit stands beside. A library that is not there is left out.
"""
import argparse
import importlib.metadata as metadata
import os
import platform
import statistics
import sys
import time

import torch

import exmy
import exmy.torch


def turns(rounds, device, **candidates):
    """Seconds of each candidate in each round, and what it made."""
    times, made = {name: [] for name in candidates}, {}
    for turn in range(rounds + 1):
        for name, work in candidates.items():
            start = time.perf_counter()
            found = work()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn:
                times[name].append(time.perf_counter() - start)
            else:
                made[name] = found
    return times, made


def table(title, times, note=lambda name: ""):
    print(f"\n{title}")
    base = statistics.median(times["exmy"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"  {name:14} {median:9.4f} s  least {min(seconds):9.4f} s  {median / base:7.2f} x  {note(name)}")


def quantization(rounds, device, mx, ao):
    x = torch.randn(4096, 4096, generator=torch.Generator().manual_seed(1)).to(device)
    out = torch.empty(4096, 4096)
    for name, theirs in [("mxfp8-e4m3", "fp8_e4m3"), ("mxfp4", "fp4_e2m1"), ("nvfp4@torchao-0.18", None)]:
        all = {"exmy": lambda: exmy.torch.fake_quantize(x, name)}
        if device == "cpu":
            all["exmy, out"] = lambda: exmy.fake_quantize(x, name, out=out)
        if mx and theirs:
            how = {"scale_bits": 8, "elem_format": theirs, "axes": [-1], "block_size": 32, "round": "even"}
            all["microxcaling"] = lambda: mx.mx_ops._quantize_mx(x, **how)
        if ao and theirs:
            kind = torch.float8_e4m3fn if theirs == "fp8_e4m3" else torch.float4_e2m1fn_x2
            all["torchao"] = lambda: ao.mx_tensor.MXTensor.to_mx(x, kind, 32).dequantize()
        elif ao:
            scale = ao.nvfp4_tensor.per_tensor_amax_to_scale
            all["torchao"] = lambda: ao.nvfp4_tensor.NVFP4Tensor.to_nvfp4(
                x, per_tensor_scale=scale(x.abs().max())
            ).dequantize()
        times, made = turns(rounds, device, **all)
        ours = made["exmy"]
        word = lambda y: torch.as_tensor(y, device=device).float().contiguous().view(torch.int32)
        differ = {one: int((word(y) != word(ours)).sum()) for one, y in made.items()}
        table(f"fake quantization of 2^24 float32 to {name}", times, lambda one: f"{differ[one]} differ")


class Block(torch.nn.Module):
    """A block of GPT-2 (Radford et al., 2019)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, linear = heads, torch.nn.Linear
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.c_attn, self.c_proj = linear(width, 3 * width), linear(width, width)
        self.c_fc, self.c_out = linear(width, 4 * width), linear(4 * width, width)

    def forward(self, x):
        rows, tokens, width = x.shape
        q, k, v = (
            one.view(rows, tokens, self.heads, -1).transpose(1, 2) for one in self.c_attn(self.ln_1(x)).chunk(3, -1)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.c_out(torch.nn.functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, depth, width=768, heads=12, context=256, vocabulary=50257):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(context, width)
        self.h = torch.nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.ln_f = torch.nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return torch.nn.functional.linear(self.ln_f(x), self.wte.weight)


NAMES = {
    "h.*.c_attn": "layers.*.q_proj+k_proj+v_proj",
    "h.*.c_proj": "layers.*.o_proj",
    "h.*.c_fc": "layers.*.up_proj",
    "h.*.c_out": "layers.*.down_proj",
}


def model(depth, device, change):
    torch.manual_seed(1)
    model = Gpt2(depth)
    change(model)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(50257, (2, 257), generator=torch.Generator().manual_seed(2)).to(device)

    def step():
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def training(rounds, device, mx, depth):
    def theirs(model):
        specs = {"scale_bits": 8, "w_elem_format": "fp8_e4m3", "a_elem_format": "fp8_e4m3", "block_size": 32}
        specs = mx.finalize_mx_specs({**specs, "bfloat": 0, "round": "even", "custom_cuda": False})
        for block in model.h:
            for name, one in list(block.named_children()):
                if type(one) is torch.nn.Linear:
                    new = mx.Linear(one.in_features, one.out_features, mx_specs=specs)
                    new.load_state_dict(one.state_dict())
                    setattr(block, name, new)

    changes = {"exmy": lambda model: exmy.torch.convert(model, "mxfp8-e4m3", names=NAMES)}
    if mx:
        changes["microxcaling"] = theirs
    changes["torch, f32"] = lambda model: None
    times, made = turns(rounds, device, **{name: model(depth, device, change) for name, change in changes.items()})
    title = f"a step of GPT-2, {depth} blocks of width 768, 2 x 256 tokens, linear layers of blocks in mxfp8-e4m3"
    table(title, times, lambda name: f"first loss {made[name]:.6f}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--microxcaling", metavar="FOLDER", help="a checkout of microsoft/microxcaling")
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--depth", type=int, default=2, help="blocks of the GPT-2")
    options = options.parse_args()
    mx = ao = None
    if options.microxcaling:
        sys.path.insert(0, options.microxcaling)
        import mx
        import mx.mx_ops
    try:
        import torchao.prototype.mx_formats.mx_tensor
        import torchao.prototype.mx_formats.nvfp4_tensor
        import torchao.prototype.mx_formats as ao
    except ImportError as error:
        print("torchao is left out:", error)
    versions = [f"{name} {metadata.version(name)}" for name in ("exmy", "torch", "torchao") if name != "torchao" or ao]
    if options.device == "cuda":
        print(torch.cuda.get_device_name())
    print(f"{cpu()}, {os.cpu_count()} CPUs, {torch.get_num_threads()} threads of PyTorch; {', '.join(versions)}")
    with torch.no_grad():
        quantization(options.rounds, options.device, mx, ao)
    training(options.rounds, options.device, mx, options.depth)


def cpu():
    try:
        return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


main()
