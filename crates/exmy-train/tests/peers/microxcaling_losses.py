"""Trains the MX study's proxy with microxcaling's layers, from exmy's weights on exmy's rows, and compares.

    cargo test -p exmy-train --test peers -- --ignored                       # writes target/tmp/proxies
    export PYTHONPATH=MICROXCALING                                           # its checkout
    python tests/peers/microxcaling_losses.py target/tmp/proxies             # compares
    python tests/peers/microxcaling_losses.py target/tmp/proxies --write     # and writes proxy/losses.rs

Needs PyTorch 2.5 or later, Python 3.11 or later and github.com/microsoft/microxcaling (commit 7bc4195), on
the CPU and without its CUDA kernels. The folder has for each recipe its configuration (NAME.toml) and
NAME.safetensors: the initial weights by name, every step's rows and targets (`batches.x`,
`batches.targets`), and what exmy had: `exmy.losses`, and before each step's update `exmy.weights.NAME` and
`exmy.grads.NAME`.

Linear layers and norms are microxcaling's, and GELU where the recipe rounds it. The rest is the study's: in
its code the norms return no gradient of their bias, and GELU is exact; in its text gain and bias of norms
are MX, straight through in the backward pass. Adam is PyTorch's.

Each recipe is trained freely, and "held": each step begins with the weights that exmy had. Two more trainings
are held with products summed in f64 and with the exact GELU in f64, to tell what the order of f32 sums and
the last bit of PyTorch's GELU do.
"""

import argparse
import importlib
import tomllib
from pathlib import Path

import torch
from mx.activations import GELU
from mx.layernorm import LayerNorm, LayerNormFunction
from mx.linear import Linear
from mx.mx_ops import quantize_mx_op
from mx.specs import finalize_mx_specs
from mx.vector_ops import vec_quantize
from pytorch_losses import read_safetensors
from torch import nn

E4M3, E5M2 = "fp8_e4m3", "fp8_e5m2"


def specs(element, **others):
    fixed = {"block_size": 32, "scale_bits": 8, "bfloat": 16, "custom_cuda": False}
    return finalize_mx_specs({"w_elem_format": element, "a_elem_format": element} | fixed | others)


BACKWARD = dict.fromkeys(("w_elem_format_bp", "a_elem_format_bp_ex", "a_elem_format_bp_os"), E5M2)
SPECS = {
    "f32": None,
    "code": specs(E4M3),
    "text": specs(E4M3),
    "mix": specs(E4M3, **BACKWARD),
    "e5m2": specs(E5M2),  # microxcaling as it is, without the study's changes
}


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, specs):
        x = vec_quantize(x, mx_specs=specs)
        return quantize_mx_op(x, specs, elem_format=specs["w_elem_format"], axes=[-1], round="nearest")

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class TextNorm(LayerNorm):
    def forward(self, x):
        gain, bias = (StraightThrough.apply(p, self.mx_specs) for p in (self.weight, self.bias))
        return LayerNormFunction.apply(x, gain, bias, self.eps, self.mx_specs, None)


class Block(nn.Module):
    def __init__(self, name, m):
        super().__init__()
        d, specs = m["width"], SPECS[name]
        norm = TextNorm if name == "text" else LayerNorm
        self.input_layernorm = norm(d, eps=m["norm_eps"], mx_specs=specs)
        self.input_layernorm.bias.requires_grad_(name in ("f32", "e5m2"))
        self.mlp = nn.Module()
        self.mlp.up_proj = Linear(d, 4 * d, bias=False, mx_specs=specs)
        self.mlp.down_proj = Linear(4 * d, d, mx_specs=specs)
        self.gelu = GELU(mx_specs=specs) if name == "e5m2" else nn.GELU()

    def forward(self, x):
        inside = self.mlp.up_proj(self.input_layernorm(x))
        return x + self.mlp.down_proj(self.gelu(inside))


class Student(nn.Module):
    """Names of modules are those of the weights, so that loading checks that none is missing."""

    def __init__(self, name, m):
        super().__init__()
        self.model = nn.Module()
        self.model.layers = nn.ModuleList(Block(name, m) for _ in range(m["layers"]))

    def forward(self, x, targets):
        for layer in self.model.layers:
            x = layer(x)
        return (x - targets).square().mean()


def sums_in_f64(wide):
    """Replaces what microxcaling's linear layer calls (the attribute `mx.linear` is a function)."""
    module = importlib.import_module("mx.linear")
    product, linear = torch.matmul, nn.functional.linear
    if wide:
        module.f_linear = lambda x, w: linear(x.double(), w.double()).float()
        module.torch_matmul = lambda a, b: product(a.double(), b.double()).float()
    else:
        module.f_linear, module.torch_matmul = linear, product


class WideGelu(nn.GELU):
    def forward(self, x):
        return super().forward(x.double()).float()


def train(name, config, tensors, held, wide=None):
    """Every step's loss and gradients; `wide`, "sums" or "gelu", is computed in f64."""
    t = config["train"]
    sums_in_f64(wide == "sums")
    student = Student(name, config["model"])
    if wide == "gelu" and name != "e5m2":
        for layer in student.model.layers:
            layer.gelu = WideGelu()
    own = ("batches.", "exmy.")
    student.load_state_dict({k: x for k, x in tensors.items() if not k.startswith(own)}, strict=True)
    parameters = dict(student.named_parameters())
    betas = t["beta1"], t["beta2"]
    optimizer = torch.optim.Adam(student.parameters(), lr=t["lr"], betas=betas, eps=t["eps"])
    losses, grads = [], []
    for step in range(t["steps"]):
        if held:
            for k, p in parameters.items():
                p.data.copy_(tensors[f"exmy.weights.{k}"][step])
        optimizer.zero_grad()
        loss = student(tensors["batches.x"][step], tensors["batches.targets"][step])
        loss.backward()
        losses.append(loss.item())
        some = {k: torch.zeros_like(p) if p.grad is None else p.grad for k, p in parameters.items()}
        grads.append({k: g.clone() for k, g in some.items()})
        optimizer.step()
    return losses, grads


def norm(grads):
    return sum(g.double().square().sum().item() for g in grads.values()) ** 0.5


def relative(a, b):
    return [abs(x - y) / abs(y) for x, y in zip(a, b, strict=True)]


def unequal(a, b):
    """In how many elements of all steps two lists of gradients differ."""
    return sum(int((x[k] != y[k]).sum()) for x, y in zip(a, b, strict=True) for k in x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="what the ignored tests wrote")
    parser.add_argument("--write", action="store_true", help="write proxy/losses.rs beside this script")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    version = torch.__version__.partition("+")[0]
    text = [
        f"//! Losses by microxcaling 7bc4195 on PyTorch {version}, one thread, written by",
        "//! `python tests/peers/microxcaling_losses.py target/tmp/proxies --write`.",
        "",
        "use super::Recorded;",
    ]
    print(f"PyTorch {version}; largest relative differences, elements of the gradients that differ")
    for path in sorted(arguments.folder.glob("*.toml")):
        name, config = path.stem, tomllib.loads(path.read_text())
        tensors = read_safetensors(path.with_suffix(".safetensors"))
        exmy = tensors["exmy.losses"].tolist()
        steps = range(len(exmy))
        names = [k.removeprefix("exmy.grads.") for k in tensors if k.startswith("exmy.grads.")]
        own = [{k: tensors[f"exmy.grads.{k}"][step] for k in names} for step in steps]
        free, free_grads = train(name, config, tensors, held=False)
        held, grads = train(name, config, tensors, held=True)
        _, sums = train(name, config, tensors, held=True, wide="sums")
        _, gelu = train(name, config, tensors, held=True, wide="gelu")
        norms = [norm(g) for g in grads]
        apart = relative(exmy, free)
        together = next((step for step in steps if apart[step] > 1e-6), len(exmy))
        print(f"{name}: loss {exmy[0]:.4f} to {exmy[-1]:.4f}")
        print(f"  free: {max(apart[:together]):.1e} in the first {together} steps, then {max(apart):.1e}")
        print(
            f"  held: losses {max(relative(exmy, held)):.1e},"
            f" gradients' norms {max(relative(map(norm, own), norms)):.1e}"
        )
        total = sum(g.numel() for step in own for g in step.values())
        pairs = {
            "exmy and microxcaling": (own, grads),
            "with its sums in f64": (own, sums),
            "with its GELU in f64": (own, gelu),
            "microxcaling and its sums in f64": (grads, sums),
        }
        found = ", ".join(f"{label} {unequal(*pair)}" for label, pair in pairs.items())
        print(f"  held, elements of {total}: {found}")
        counts = [unequal(own[:n], free_grads[:n]) for n in (together, together + 1)]
        print(f"  free, elements until then {counts[0]}, with one more step {counts[1]}")
        # Nine digits tell an f32 from its neighbours.
        text.append(f"\npub(super) const {name.upper()}: Recorded = Recorded {{")
        for field, values in (("free", free), ("held", held), ("norms", norms)):
            text.append(f"    {field}: [")
            for n in range(0, len(values), 5):
                text.append(f"        {', '.join(f'{x:.8e}' for x in values[n : n + 5])},")
            text.append("    ],")
        text.append("};")
    if arguments.write:
        place = Path(__file__).parent / "proxy" / "losses.rs"
        place.parent.mkdir(exist_ok=True)
        place.write_text("\n".join(text) + "\n")
        print(f"wrote {place}")


if __name__ == "__main__":
    main()
