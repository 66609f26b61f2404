"""Training steps beside PyTorch's: the models of benches/train.rs, with the same number of threads.

    cargo bench -p exmy-train --bench train --no-run      # prints the path of the program
    python benches/peers_train.py PROGRAM [--threads N] [--rounds R] [--model gpt|proxy]

Each round asks one process after another for the shortest of five steps (after two); a ratio is the
median of the rounds' ratios. `eager` and `autocast` are PyTorch's f32 and bf16; `proxy, no teacher` is
PyTorch's student alone, on targets that are there already.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

RECIPES = {
    "gpt": ["f32", "bf16", "mxfp8-e4m3", "mxfp4", "nvfp4", "nv-nvfp4", "chon"],
    "proxy": ["f32", "mxfp8-e4m3"],
}
PEERS = {
    "gpt": ["gpt eager", "gpt autocast"],
    "proxy": ["proxy eager", "proxy autocast", "proxy, no teacher eager"],
}
ROWS = {"gpt": 16 * 256, "proxy": 2048}


def torch_step(model, variant, threads):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(1)

    class Block(nn.Module):
        """Attention unless `heads` is 0, and a GELU MLP, each behind a LayerNorm and around a sum."""

        def __init__(self, width, heads, hidden):
            super().__init__()
            self.heads = heads
            self.before_mlp = nn.LayerNorm(width)
            self.up = nn.Linear(width, hidden, bias=False)
            self.down = nn.Linear(hidden, width, bias=False)
            if heads:
                self.before_attention = nn.LayerNorm(width)
                self.qkv = nn.Linear(width, 3 * width, bias=False)
                self.out = nn.Linear(width, width, bias=False)

        def forward(self, x):
            if self.heads:
                batch, length, width = x.shape
                qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1)
                q, k, v = qkv.permute(2, 0, 3, 1, 4)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.before_mlp(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(256, 256), nn.Embedding(256, 256)
            self.blocks = nn.Sequential(*[Block(256, 4, 1024) for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 256, bias=False)

        def forward(self, x):
            return self.head(self.norm(self.blocks(self.tokens(x) + self.places.weight)))

    if model == "gpt":
        net = Gpt()
        given, wanted = torch.randint(0, 256, (2, 16, 256))

        def loss():
            return F.cross_entropy(net(given).float().view(-1, 256), wanted.view(-1))
    else:
        net, teacher = (
            nn.Sequential(*[Block(512, 0, hidden) for _ in range(4)]) for hidden in (2048, 512)
        )
        given, fixed = torch.randn(2, 2048, 512)
        for block in teacher:
            block.before_mlp = nn.Identity()

        def loss():
            if model != "proxy":
                return F.mse_loss(net(given).float(), fixed)
            x = torch.randn(2048, 512)
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=False):
                wanted = teacher(x) + torch.randn(2048, 512)
            return F.mse_loss(net(x).float(), wanted)

    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.1)

    def step():
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=variant == "autocast"):
            value = loss()
        value.backward()
        optimizer.step()
        value.item()
        return time.perf_counter() - start

    step(), step()
    return min(step() for _ in range(5))


def ask(threads, *command):
    count = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "EXMY_THREADS")}
    result = subprocess.run(command, env={**os.environ, **count}, capture_output=True, text=True, check=True)
    return float(result.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=list(ROWS), action="append")
    arguments = parser.parse_args()
    threads, median = arguments.threads, statistics.median
    for model in arguments.model or ROWS:
        found = {name: [] for name in (*PEERS[model], *RECIPES[model])}
        for _ in range(arguments.rounds):
            for name, seconds in found.items():
                if name in PEERS[model]:
                    kind, variant = name.rsplit(" ", 1)
                    command = (sys.executable, __file__, "--torch", kind, variant, str(threads))
                else:
                    command = (arguments.program, "once", model, name)
                seconds.append(ask(threads, *command))
        print(f"| {model}, {threads} threads | rows/s | ms | of PyTorch f32 | of PyTorch bf16 |\n|---|---:|---:|---:|---:|")
        for name, seconds in found.items():
            of = [median(x / y for x, y in zip(found[peer], seconds)) for peer in PEERS[model][:2]]
            rows = ROWS[model] / median(seconds)
            print(f"| {name} | {rows:.0f} | {1e3 * median(seconds):.0f} | {of[0]:.2f} | {of[1]:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:
        print(torch_step(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        main()
