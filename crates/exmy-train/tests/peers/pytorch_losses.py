"""Trains exmy's models in PyTorch, from the same weights on the same batches, and compares losses.

    cargo test -p exmy-train --test peers -- --ignored            # writes target/tmp/peers
    python tests/peers/pytorch_losses.py target/tmp/peers          # compares
    python tests/peers/pytorch_losses.py target/tmp/peers --write  # and writes losses.rs

Needs PyTorch 2.5 or later and Python 3.11 or later, nothing else. The folder has for each model its
configuration (NAME.toml) and NAME.safetensors: the initial weights by name, the tokens of every step
(`batches.tokens`, `batches.targets`: steps, batch, context) and the losses that exmy had
(`exmy.losses`). The models, the learning rate and the division of parameters are written from the
definitions, on torch.nn; clipping and AdamW are PyTorch's own. Gated linear attention is the
recurrence, token by token, with autograd's gradients.

Each model is trained in f32, on one thread, and in f64: where exmy and PyTorch differ, f64 tells
which of the two is nearer to the exact value.
"""

import argparse
import json
import math
import struct
import tomllib
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32}


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            part = bytearray(data[8 + length + first : 8 + length + end])
            flat = torch.frombuffer(part, dtype=DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def linear(inputs, outputs, bias=False):
    return nn.Linear(inputs, outputs, bias=bias)


def norm(m, width):
    if m["norm"] == "layer-norm":
        affine = m["norm_affine"]
        return nn.LayerNorm(width, m["norm_eps"], affine, bias=m["norm_bias"])
    return nn.RMSNorm(width, m["norm_eps"], m["norm_affine"])


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        d, self.heads, self.kv_heads = m["d_model"], m["heads"], m["kv_heads"]
        self.head = d // self.heads
        self.q_proj = linear(d, d)
        self.k_proj = linear(d, self.kv_heads * self.head)
        self.v_proj = linear(d, self.kv_heads * self.head)
        self.o_proj = linear(d, d)
        self.qk_norm, self.position = m["qk_norm"], m["position"]
        if self.qk_norm == "head":
            self.q_norm, self.k_norm = norm(m, self.head), norm(m, self.head)
        if self.qk_norm == "full":
            self.q_norm, self.k_norm = norm(m, d), norm(m, self.kv_heads * self.head)

    def rotate(self, x):
        """Element i turns with element i + head / 2, as in Hugging Face's Llama."""
        base = float(self.position.partition(":")[2] or 10_000)
        powers = torch.arange(0, self.head, 2, dtype=torch.float64) / self.head
        angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), base**-powers)
        cos = torch.cat([angles, angles], -1).cos().to(x.dtype)
        sin = torch.cat([angles, angles], -1).sin().to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin

    def forward(self, x):
        batch, tokens, d = x.shape
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.qk_norm == "full":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (y.view(batch, tokens, -1, self.head).transpose(1, 2) for y in (q, k, v))
        if self.qk_norm == "head":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.position.startswith("rope"):
            q, k = self.rotate(q), self.rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, tokens, d))


class GatedLinearAttention(nn.Module):
    def __init__(self, m):
        super().__init__()
        gla, d = m["gla"], m["d_model"]
        self.heads, self.tau, self.least = gla["heads"], gla["gate_tau"], gla["gate_min"]
        keys, values = int(d * gla["expand_k"]), int(d * gla["expand_v"])
        self.q_proj, self.k_proj = linear(d, keys), linear(d, keys)
        self.v_proj, self.g_proj = linear(d, values), linear(d, values)
        rank = gla["gate_rank"]
        self.gk_proj = nn.Sequential(linear(d, rank), linear(rank, keys, bias=True))
        self.g_norm_swish_gate = nn.RMSNorm(values // self.heads, m["norm_eps"])
        self.o_proj = linear(values, d)

    def forward(self, x):
        batch, tokens, _ = x.shape
        decay = F.logsigmoid(self.gk_proj(x)) / self.tau
        if self.least != 0:
            decay = decay.clamp(min=self.least)
        parts = self.q_proj(x), self.k_proj(x), self.v_proj(x), decay
        y = self.recurrence(*(y.view(batch, tokens, self.heads, -1) for y in parts))
        y = self.g_norm_swish_gate(y).flatten(2)
        return self.o_proj(y * F.silu(self.g_proj(x)))

    @staticmethod
    def recurrence(q, k, v, decay):
        """S = diag(a) S + k^T v, y = q S / sqrt(head) (arXiv 2312.06635, equation 4), `decay` being log a."""
        q, a = q / math.sqrt(q.shape[-1]), decay.exp()
        state = q.new_zeros(q.shape[0], q.shape[2], k.shape[-1], v.shape[-1])
        outputs = []
        for t in range(q.shape[1]):
            state = a[:, t, :, :, None] * state + k[:, t, :, :, None] * v[:, t, :, None, :]
            outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
        return torch.stack(outputs, dim=1)


class Mlp(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.kind = m["mlp"]
        if self.kind == "swiglu":
            self.gate_proj = linear(m["d_model"], m["hidden"])
        self.up_proj = linear(m["d_model"], m["hidden"])
        self.down_proj = linear(m["hidden"], m["d_model"])

    def forward(self, x):
        up = self.up_proj(x)
        match self.kind:
            case "swiglu":
                inside = F.silu(self.gate_proj(x)) * up
            case "gelu":
                inside = F.gelu(up)
            case "relu":
                inside = F.relu(up)
            case "squared-relu":
                inside = F.relu(up).square()
        return self.down_proj(inside)


class Block(nn.Module):
    def __init__(self, m, mixer):
        super().__init__()
        self.input_layernorm = norm(m, m["d_model"])
        if mixer == "gla":
            self.attn = GatedLinearAttention(m)
        else:
            self.self_attn = Attention(m)
        self.post_attention_layernorm = norm(m, m["d_model"])
        self.mlp = Mlp(m)

    def forward(self, x):
        mixer = self.attn if hasattr(self, "attn") else self.self_attn
        x = x + mixer(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Names of modules are those of the weights, so that loading checks that none is missing."""

    def __init__(self, m):
        super().__init__()
        d, mixers = m["d_model"], m["mixer"].split(",")
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(m["vocab"], d)
        if m["position"] == "learned":
            self.model.embed_positions = nn.Embedding(m["context"], d)
        if m["sink"]:
            self.model.sink = nn.Embedding(1, d)
        self.model.layers = nn.ModuleList(
            Block(m, mixers[layer % len(mixers)]) for layer in range(m["layers"])
        )
        self.model.norm = norm(m, d)
        if not m["tied"]:
            self.lm_head = linear(d, m["vocab"])

    def forward(self, tokens, targets):
        return F.cross_entropy(self.logits(tokens).flatten(0, 1), targets.flatten().long())

    def logits(self, tokens):
        model = self.model
        x = model.embed_tokens(tokens)
        if hasattr(model, "sink"):
            first = model.sink.weight.expand(x.shape[0], 1, -1)
            x = torch.cat([first, x[:, 1:]], dim=1)
        if hasattr(model, "embed_positions"):
            x = x + model.embed_positions.weight[: tokens.shape[1]]
        for layer in model.layers:
            x = layer(x)
        x = model.norm(x)
        return self.lm_head(x) if hasattr(self, "lm_head") else F.linear(x, model.embed_tokens.weight)


def learning_rate(train, step):
    """nanoGPT's warm-up and cosine; warm-up, constant, line (WSD)."""
    steps, warmup, peak, least = (train[k] for k in ("steps", "warmup", "lr", "lr_min"))
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    kind, _, fraction = train["schedule"].partition(":")
    match kind:
        case "constant":
            return peak
        case "cosine":
            x = (step - warmup) / (steps - warmup)
            return least + 0.5 * (1 + math.cos(math.pi * x)) * (peak - least)
        case "wsd":
            start = max(steps - round(steps * float(fraction or 0.2)), warmup)
            return peak + max(step - start, 0) / (steps - start) * (least - peak)
    raise ValueError(kind)


def initial(config, tensors, dtype):
    """The decoder with the weights that exmy began with."""
    decoder = Decoder(config["model"])
    own = ("batches.", "exmy.")
    weights = {name: x for name, x in tensors.items() if not name.startswith(own)}
    decoder.load_state_dict(weights, strict=True)
    return decoder.to(dtype)


def losses(config, tensors, dtype):
    """The loss of every step, and in how many steps the gradient was clipped."""
    train = config["train"]
    decoder = initial(config, tensors, dtype)
    everything = train["decay"] == "all"
    groups = [
        {"params": [p for p in decoder.parameters() if everything or p.ndim > 1]},
        {"params": [p for p in decoder.parameters() if not everything and p.ndim == 1]},
    ]
    groups[0]["weight_decay"], groups[1]["weight_decay"] = train["weight_decay"], 0.0
    betas = train["beta1"], train["beta2"]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], betas=betas, eps=train["eps"])
    found, clipped = [], 0
    for step in range(train["steps"]):
        tokens, targets = (tensors[f"batches.{which}"][step] for which in ("tokens", "targets"))
        optimizer.zero_grad()
        parts = train["accumulate"]
        mean = 0.0
        for tokens, targets in zip(tokens.chunk(parts), targets.chunk(parts)):
            loss = decoder(tokens, targets) / parts
            loss.backward()
            mean += loss.item()
        found.append(mean)
        if train["clip"] > 0:
            size = nn.utils.clip_grad_norm_(decoder.parameters(), train["clip"])
            clipped += size.item() > train["clip"]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(train, step)
        optimizer.step()
    return found, clipped


def difference(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="what `cargo test -p exmy-train --test peers -- --ignored` wrote")
    parser.add_argument("--write", action="store_true", help="write losses.rs beside this script")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    version = torch.__version__.partition("+")[0]
    text = [
        f"//! Losses by PyTorch {version} in f32 on one thread, written by",
        "//! `python tests/peers/pytorch_losses.py target/tmp/peers --write`.",
    ]
    print(f"PyTorch {version}; largest relative difference of the losses")
    print(f"{'model':8} {'exmy-PyTorch':>13} {'exmy-f64':>9} {'PyTorch-f64':>12}   loss, clipped steps")
    for path in sorted(arguments.folder.glob("*.toml")):
        config = tomllib.loads(path.read_text())
        tensors = read_safetensors(path.with_suffix(".safetensors"))
        exmy = tensors["exmy.losses"].tolist()
        narrow, clipped = losses(config, tensors, torch.float32)
        wide, _ = losses(config, tensors, torch.float64)
        pairs = [difference(exmy, narrow), difference(exmy, wide), difference(narrow, wide)]
        print(
            f"{path.stem:8} {pairs[0]:13.1e} {pairs[1]:9.1e} {pairs[2]:12.1e}"
            f"   {narrow[0]:.4f} to {narrow[-1]:.4f}, {clipped} of {len(narrow)}"
        )
        # Eight digits are all that an f32 of this size has.
        values = "".join(f"    {loss:.7f},\n" for loss in narrow)
        name = path.stem.upper()
        text.append(f"\npub(super) const {name}: [f64; {len(narrow)}] = [\n{values}];")
    if arguments.write:
        place = Path(__file__).with_name("losses.rs")
        place.write_text("\n".join(text) + "\n")
        print(f"wrote {place}; `cargo fmt` gives it its form")


if __name__ == "__main__":
    main()
