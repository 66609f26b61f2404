"""Runs Flash Linear Attention's recurrence of gated linear attention, and trains exmy's model with it.

    cargo test -p exmy-train --test peers -- --ignored                         # writes target/tmp/flash_linear
    python tests/peers/flash_linear.py FLA target/tmp/flash_linear             # compares losses
    python tests/peers/flash_linear.py FLA target/tmp/flash_linear --write     # and writes flash_linear.safetensors
    python tests/peers/flash_linear.py FLA target/tmp/flash_linear --model tests/published/data/gla

FLA is a checkout of github.com/fla-org/flash-linear-attention (commit bc3b101d); of it only
`fla/ops/gla/naive.py` runs, which is PyTorch alone, on the CPU. Needs PyTorch 2.5 or later and Python 3.11 or
later.

What is recorded: the function alone on random rows (`op.`: inputs, output, and gradients by autograd, that of the
decay gate through `logsigmoid(z) / 16` as in FLA's layer); and for each NAME.toml of the folder, from exmy's
weights on exmy's batches, the loss of every step (`NAME.losses`) and of the first gradient the upper rows of each
tensor of the first block's attention (`NAME.grads.`). Around the function stands the model of
`pytorch_losses.py`: FLA's norms, SwiGLU and output gate are Triton kernels, which a CPU does not run. In what
else FLA's layer differs, docs/verification.md says.

`--model` writes a small random model as FLA saves one, in bfloat16, and `truth.safetensors`: tokens, and the logits
of the same weights in f32.

The same is computed with a recurrence of this project in f64, to tell which of the two f32 is nearer to it.
"""

import argparse
import importlib.util
import json
import struct
import tomllib
from pathlib import Path

import pytorch_losses
import torch
import torch.nn.functional as F
from pytorch_losses import GatedLinearAttention, difference, initial, losses, read_safetensors

DTYPES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64", torch.int32: "I32"}
SEQUENCES, TOKENS, HEADS, KEY, VALUE, TAU = 2, 37, 2, 8, 12, 16
ROWS = 4


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, x in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        part = x.detach().contiguous().view(torch.uint8).numpy().tobytes()
        offsets = [len(body), len(body) + len(part)]
        header[name] = {"dtype": DTYPES[x.dtype], "shape": list(x.shape), "data_offsets": offsets}
        body += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def naive(checkout):
    """FLA's function with the signature of `GatedLinearAttention.recurrence`."""
    path = checkout / "fla" / "ops" / "gla" / "naive.py"
    spec = importlib.util.spec_from_file_location("naive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda q, k, v, decay: module.naive_recurrent_gla(q, k, v, decay)[0]


def rows():
    """Random q, k, v, gates from closed (a decay of 4e-4) to open, and a gradient of the output."""
    torch.manual_seed(27)
    shape = SEQUENCES, TOKENS, HEADS
    q, k = torch.randn(*shape, KEY), torch.randn(*shape, KEY)
    v, dy = torch.randn(*shape, VALUE), torch.randn(*shape, VALUE)
    z = torch.rand(*shape, KEY) * 2 - 1
    z = torch.where(z > 0, 12 * z, 125 * z**3)
    return {"q": q, "k": k, "v": v, "z": z, "dy": dy}


def alone(recurrence, given, dtype):
    q, k, v, z, dy = (given[name].to(dtype) for name in ("q", "k", "v", "z", "dy"))
    inputs = [x.requires_grad_() for x in (q, k, v, z)]
    y = recurrence(q, k, v, F.logsigmoid(z) / TAU)
    found = dict(zip(("dq", "dk", "dv", "dz"), torch.autograd.grad(y, inputs, dy)))
    return {"y": y.detach()} | found


def first_gradient(config, tensors, dtype):
    """Upper rows of the gradient of the first block's attention, at the weights exmy begins with."""
    decoder = initial(config, tensors, dtype)
    decoder(tensors["batches.tokens"][0], tensors["batches.targets"][0]).backward()
    start = "model.layers.0.attn."
    return {k: p.grad[:ROWS] if p.ndim > 1 else p.grad
            for k, p in decoder.named_parameters() if k.startswith(start)}  # fmt: skip


def apart(a, b):
    """The largest difference in parts of the largest element, tensor by tensor."""
    return max(float((a[k].double() - b[k]).abs().max() / b[k].double().abs().max()) for k in b)


NAMES = {  # ours, FLA's
    "embed_tokens.": "embeddings.",
    "input_layernorm.": "attn_norm.",
    "post_attention_layernorm.": "mlp_norm.",
}
# As GLAConfig writes it, with one choice of each kind that is not its default.
MODEL = dict(
    model_type="gla", architectures=["GLAForCausalLM"], attn=None, attn_mode="chunk", attnres_block_size=None,
    bos_token_id=1, clamp_min=-0.5, conv_size=4, elementwise_affine=True, eos_token_id=2, expand_k=0.5, expand_v=1.5,
    feature_map=None, fuse_cross_entropy=True, fuse_linear_cross_entropy=False, fuse_norm=True, fuse_swiglu=True,
    hidden_act="swish", hidden_ratio=4, hidden_size=32, initializer_range=0.02, intermediate_size=48,
    max_position_embeddings=64, norm_eps=1e-5, num_heads=2, num_hidden_layers=2, num_kv_heads=None,
    pad_token_id=None, tie_word_embeddings=False, use_cache=True, use_gk=True, use_gv=False, use_l2warp=False,
    use_output_gate=True, use_short_conv=False, vocab_size=96,
)  # fmt: skip


def write_model(folder, fla):
    """Parameters about as large as those of trained models; gates from closed enough for `clamp_min` to open."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODEL, indent=2) + "\n")
    gla = dict(gate_tau=TAU, gate_min=MODEL["clamp_min"], gate_rank=16)
    gla |= dict(heads=MODEL["num_heads"], expand_k=MODEL["expand_k"], expand_v=MODEL["expand_v"])
    decoder = pytorch_losses.Decoder(dict(
        d_model=MODEL["hidden_size"], mixer="gla", vocab=MODEL["vocab_size"], position="none", sink=False,
        layers=MODEL["num_hidden_layers"], norm="rms-norm", norm_affine=True, norm_eps=MODEL["norm_eps"], tied=False,
        mlp="swiglu", hidden=MODEL["intermediate_size"], gla=gla,
    ))  # fmt: skip
    generator = torch.Generator().manual_seed(28)
    stored = {}
    for name, p in decoder.named_parameters():
        x = torch.randn(p.shape, generator=generator)
        if p.ndim == 2:
            # Wide products before the gate, so that some decays are clamped.
            x *= (4 if "gk_proj" in name else 1.5) / p.shape[1] ** 0.5
        else:
            x = 1 + 0.2 * x if "norm" in name else 0.3 * x
        x = x.to(torch.bfloat16)
        p.data = x.float()
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        stored[name] = x
    tokens = torch.randint(0, MODEL["vocab_size"], (1, 40), generator=generator)
    GatedLinearAttention.recurrence = staticmethod(fla)
    with torch.no_grad():
        logits = decoder.logits(tokens)[0]
        greedy = tokens[:, :8]
        while greedy.shape[1] < 32:
            last = decoder.logits(greedy)[:, -1]
            best = last.topk(2).values[0]
            greedy = torch.cat([greedy, last.argmax(-1, keepdim=True)], dim=1)
            print(f"the likeliest token leads by {best[0] - best[1]:.4f}")
    print("greedy:", greedy[0, 8:].tolist(), f"logits up to {logits.abs().max():.2f}")
    write_safetensors(folder / "model.safetensors", stored)
    write_safetensors(folder / "truth.safetensors", {"tokens": tokens[0].to(torch.int32), "logits": logits})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path, help="Flash Linear Attention")
    parser.add_argument("folder", type=Path, help="what the ignored tests wrote")
    parser.add_argument("--write", action="store_true", help="write flash_linear.safetensors beside this script")
    parser.add_argument("--model", type=Path, help="write a model and its logits to this folder, and nothing else")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.model:
        return write_model(arguments.model, naive(arguments.checkout))
    fla, own = naive(arguments.checkout), GatedLinearAttention.recurrence
    given = rows()
    found = alone(fla, given, torch.float32)
    recorded = {f"op.{k}": x for k, x in (given | found).items()}
    print(f"PyTorch {torch.__version__.partition('+')[0]}; largest relative differences")
    print(f"the recurrence alone: FLA to f64 {apart(found, alone(own, given, torch.float64)):.1e}")
    for path in sorted(arguments.folder.glob("*.toml")):
        config, tensors = tomllib.loads(path.read_text()), read_safetensors(path.with_suffix(".safetensors"))
        results = []
        for recurrence, dtype in ((fla, torch.float32), (own, torch.float64)):
            GatedLinearAttention.recurrence = staticmethod(recurrence)
            results.append((losses(config, tensors, dtype)[0], first_gradient(config, tensors, dtype)))
        (found, grads), (exact, exact_grads) = results
        exmy = tensors["exmy.losses"].tolist()
        print(f"{path.stem}: losses {found[0]:.4f} to {found[-1]:.4f}, first gradient: FLA to f64"
              f" {apart(grads, exact_grads):.1e}")  # fmt: skip
        for label, pair in {"exmy to FLA": (exmy, found), "FLA to f64": (found, exact)}.items():
            print(f"  {label:12}", *(f"{difference([a], [b]):.0e}" for a, b in zip(*pair)))
        recorded[f"{path.stem}.losses"] = torch.tensor(found, dtype=torch.float64)
        recorded |= {f"{path.stem}.grads.{k}": x for k, x in grads.items()}
    if arguments.write:
        place = Path(__file__).with_suffix(".safetensors")
        write_safetensors(place, recorded)
        print(f"wrote {place}, {place.stat().st_size} bytes")


if __name__ == "__main__":
    main()
