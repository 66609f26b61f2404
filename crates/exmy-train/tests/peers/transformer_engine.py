"""Trains a decoder in NVFP4 with Transformer Engine's reference, from exmy's weights on exmy's batches.

    cargo test -p exmy-train --test peers -- --ignored                                 # writes the folder
    python tests/peers/transformer_engine.py TE target/tmp/transformer_engine          # compares
    python tests/peers/transformer_engine.py TE target/tmp/transformer_engine --write  # and records

TE is a checkout of github.com/NVIDIA/TransformerEngine (commit d0067d0d), or the folder that holds an
installed `transformer_engine`. Of it `reference_nvfp4.py`, `reference_utils.py` and `gemm.py` of
`pytorch/custom_recipes` run, which are PyTorch alone. Needs PyTorch 2.5 or later and Python 3.11 or later, on
the CPU. It records in `transformer_engine.safetensors` beside this script.

The folder has for each recipe its configuration (NAME.toml) and NAME.safetensors: what `pytorch_losses.py`
reads, and of each step `exmy.STEP.weights.`, `exmy.STEP.grads.`, and by layer, operator, product and operand
what exmy rounded (`before`, `image`), with which random bits (`bits`), and what products gave (`result`).

The model is that of `pytorch_losses.py`. Its linear layers are the reference's quantizers and products.
Inputs and gradients have blocks of 16 along their rows, and once rotated along their columns; weights have
tiles of 16 x 16. All are bfloat16 before. Results are rounded to bfloat16, gradients of weights are not. The
reference rounds to nearest; recipes with random bits take exmy's, and round the reference's scaled elements
by `stochastic_round_fp4_e2m1` of `common/util/ptx.cuh`, restated here.

Compared are the operands of every product bit by bit, and trainings that hold

* `nothing`;
* `weights`: each step begins with exmy's weights;
* `operands`: so does each linear layer with exmy's input, and its backward pass with exmy's gradient.

Each is also trained with the tensors' scales applied in exmy's order, and with all that is between the
products in f64, to tell what the last bits of f32 do. The matrices of `transformer_engine_edges.py` are
quantized too, by four over six as well.
"""

import argparse
import importlib.util
import re
import sys
import tomllib
import types
from pathlib import Path

import pytorch_losses
import torch
from flash_linear import DTYPES as WRITTEN
from flash_linear import ROWS, write_safetensors
from pytorch_losses import Decoder, learning_rate, read_safetensors
from torch import nn
from transformer_engine_edges import edges

pytorch_losses.DTYPES["U8"] = torch.uint8
WRITTEN |= {torch.uint8: "U8", torch.int64: "I64"}
HELD = "nothing", "weights", "operands"
# Their codes and scales in the first step are recorded.
SHOWN = "0.k_proj", "0.down_proj"


def reference(checkout):
    """The reference, with stand-ins for what its files import of the compiled library."""

    class Quantizer:
        def __init__(self, *, rowwise, columnwise):
            self.rowwise_usage, self.columnwise_usage = rowwise, columnwise

    stands = {
        "": {},
        ".quantized_tensor": {"QuantizedTensorStorage": object, "Quantizer": Quantizer},
        ".tensor": {},
        ".tensor.utils": {"is_custom": lambda x: x.custom},
        ".custom_recipes": {},
    }
    package = "transformer_engine.pytorch"
    sys.modules["transformer_engine"] = types.ModuleType("transformer_engine")
    for name, contents in stands.items():
        module = sys.modules[package + name] = types.ModuleType(package + name)
        vars(module).update(contents)
    folder = checkout / "transformer_engine" / "pytorch" / "custom_recipes"
    for name in ("reference_utils", "gemm", "reference_nvfp4"):
        full = f"{package}.custom_recipes.{name}"
        spec = importlib.util.spec_from_file_location(full, folder / f"{name}.py")
        module = sys.modules[full] = importlib.util.module_from_spec(spec)
        setattr(sys.modules[f"{package}.custom_recipes"], name, module)
        spec.loader.exec_module(module)
    return module


def stochastic(y, bits, rounded=False):
    """`stochastic_round_fp4_e2m1` with eight random bits an element, as codes, two in a byte. The sum with
    the bits is exact, or (`rounded`) one in f32, as there; that function keeps the sign of zero."""
    step = lambda a: torch.where(a >= 4, 2.0, torch.where(a >= 2, 1.0, 0.5)).double()
    a = y.abs().double()
    t = a + bits / 256 * step(a)
    t = t.float().double() if rounded else t
    q = (torch.floor(t / step(t)) * step(t)).clamp(max=6.0)
    grid = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=torch.float64)
    codes = (torch.searchsorted(grid, q.contiguous()) + 8 * (y < 0)).to(torch.uint8)
    return codes[:, ::2] + codes[:, 1::2] * 16


class Nvfp4:
    """Quantizers and products of the reference; `exmy_order` multiplies sums by the tensors' scales as exmy
    does, `rounded` is that of `stochastic`."""

    def __init__(self, module, exmy_order=False, rounded=False):
        self.module, self.exmy_order, self.rounded = module, exmy_order, rounded
        self.nearest = module.cast_to_fp4x2
        e2m1 = module.reference_utils.Fp4Formats.E2M1
        self.lines = module.NVFP4QuantizerRef(e2m1, with_rht=True)
        self.tiles = module.NVFP4QuantizerRef(e2m1, quant_tile_shape=(16, 16))

    def rows(self, x, bits=None):
        """An input or an output's gradient: along its rows, and rotated along its columns."""
        if bits is not None:
            given = iter((bits[0], bits[1].t()))
            self.module.cast_to_fp4x2 = lambda y: stochastic(y, next(given), self.rounded)
        found = self.lines.quantize(x.bfloat16())
        self.module.cast_to_fp4x2 = self.nearest
        return found

    def weight(self, w):
        return self.tiles.quantize(w.bfloat16())

    def rotated(self, x):
        return self.lines._apply_rht(x.bfloat16().t()).t().float()

    def product(self, kind, x, w):
        if not self.exmy_order:
            layout = {"forward": "TN", "grad_input": "NN", "grad_weight": "NT"}[kind]
            gemm, f32 = self.module.gemm.custom_gemm, torch.float32
            return gemm(w, x, None, out_dtype=f32, layout=layout, grad=kind != "forward")[0]
        (a, s), (b, t) = (self.parts(q, by_column) for q, by_column in zip((x, w), COLUMNS[kind]))
        return (a.double() @ b.double().t()).float() * (s * t)

    def parts(self, q, by_column):
        """Codes times blocks' scales, exact, and the tensor's scale."""
        codes, scales, amax = codes_of(q, by_column)
        values = self.module.cast_from_fp4x2(codes, torch.float32)
        # Python's number by a tensor would be the tensor's reciprocal times the number.
        encode = torch.div(torch.tensor(2688.0), amax).clamp(max=torch.finfo(torch.float32).max)
        return values * scales.float().repeat_interleave(16, dim=1), torch.reciprocal(encode)

    def image(self, q, by_column):
        values, scale = self.parts(q, by_column)
        return (values * scale).t() if by_column else values * scale


COLUMNS = {"forward": (False, False), "grad_input": (False, True), "grad_weight": (True, True)}


def codes_of(q, by_column):
    return (q.data_t, q.scale_t, q.global_amax_col) if by_column else (q.data, q.scale, q.global_amax_row)


class Round(torch.autograd.Function):
    """Nothing forward; of all operators that share an input, the sum of their gradients to bfloat16."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient.bfloat16().to(gradient.dtype)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, layer):
        shape, dtype = x.shape, x.dtype
        x, w = layer.hold("forward.input", x.flatten(0, -2).float()), w.float()
        if layer.nvfp4 is None:
            ctx.given = x.bfloat16().float(), w.bfloat16().float(), layer
            y = ctx.given[0] @ ctx.given[1].t()
        else:
            ctx.given = layer.nvfp4.rows(x), layer.nvfp4.weight(w), layer
            y = layer.nvfp4.product("forward", *ctx.given[:2])
        return y.bfloat16().to(dtype).view(*shape[:-1], -1)

    @staticmethod
    def backward(ctx, gradient):
        x, w, layer = ctx.given
        dy = layer.hold("grad_input.grad_output", gradient.flatten(0, -2).float())
        if layer.nvfp4 is None:
            dy = dy.bfloat16().float()
            dx, dw = dy @ w, dy.t() @ x
        else:
            dy = layer.nvfp4.rows(dy, layer.bits)
            dx, dw = layer.nvfp4.product("grad_input", dy, w), layer.nvfp4.product("grad_weight", dy, x)
        return dx.to(gradient.dtype).view(*gradient.shape[:-1], -1), dw.to(gradient.dtype), None


class Layer(nn.Linear):
    nvfp4 = bits = held = None
    apart = 0.0

    def forward(self, x):
        return Linear.apply(x, self.weight, self)

    def hold(self, operand, x):
        """exmy's operand in place of this one, if operands are held, and how far they were apart."""
        if self.held is None:
            return x
        own = self.held[f"{operand}.before"]
        self.apart = max(self.apart, ((x - own).abs().max() / own.abs().max()).item())
        return own


def in_bfloat16(config):
    """What stays in bfloat16: the head and `last15%`. That is of the last blocks as many operators, from the
    model's end, as keep both together within a quarter of the linear layers' parameters."""
    m = config["model"]
    d, kv, found = m["d_model"], m["kv_heads"] * m["d_model"] // m["heads"], {"lm_head"}
    if "last=0" in config["recipe"]:
        return found
    sizes = dict.fromkeys(("down_proj", "up_proj", "gate_proj"), m["hidden"] * d)
    sizes |= {"o_proj": d * d, "v_proj": kv * d, "k_proj": kv * d, "q_proj": d * d}
    kept = m["vocab"] * d
    most = (m["layers"] * sum(sizes.values()) + kept) / 4
    for layer in reversed(range(m["layers"] - max(1, m["layers"] * 15 // 100), m["layers"])):
        for name, size in sizes.items():
            if kept + size <= most:
                kept += size
                found.add(f"{layer}.{name}")
    return found


def decoder(config, nvfp4):
    model, plain, layers = Decoder(config["model"]), in_bfloat16(config), {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            words = name.split(".")
            site = f"{words[2]}.{words[-1]}" if name != "lm_head" else name
            module.__class__ = Layer
            module.nvfp4 = None if site in plain else nvfp4
            layers[site] = module
        if name.endswith((".self_attn", ".mlp", ".o_proj", ".down_proj", "lm_head")):
            module.register_forward_pre_hook(lambda _, given: Round.apply(given[0]))
    return model, layers


def within(file, start):
    return {k.removeprefix(start): x for k, x in file.items() if k.startswith(start)}


def random_bits(site):
    found = [site.get(f"{product}.grad_output.bits") for product in ("grad_input", "grad_weight")]
    return None if found[0] is None else found


def train(config, file, nvfp4, held, dtype=torch.float32):
    """Every step's loss and gradients, and how far operands were from those held. What is between products is
    in `dtype`."""
    t = config["train"]
    model, layers = decoder(config, nvfp4)
    own = ("batches.", "exmy.")
    model.load_state_dict({k: x for k, x in file.items() if not k.startswith(own)}, strict=True)
    model.to(dtype)
    parameters = dict(model.named_parameters())
    groups = [
        {"params": [p for p in parameters.values() if (p.ndim > 1) == decays], "weight_decay": decay}
        for decays, decay in ((True, t["weight_decay"]), (False, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups, betas=(t["beta1"], t["beta2"]), eps=t["eps"])
    losses, grads = [], []
    for step in range(t["steps"]):
        if held != "nothing":
            for k, x in within(file, f"exmy.{step}.weights.").items():
                parameters[k].data.copy_(x)
        for site, layer in layers.items():
            tensors = within(file, f"exmy.{step}.{site}.")
            layer.bits, layer.held = random_bits(tensors), tensors if held == "operands" else None
        optimizer.zero_grad()
        loss = model(*(file[f"batches.{which}"][step] for which in ("tokens", "targets")))
        loss.backward()
        losses.append(loss.item())
        grads.append({k: p.grad.float() for k, p in parameters.items()})
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(t, step)
        optimizer.step()
    return losses, grads, max(layer.apart for layer in layers.values())


def checksum(x):
    """Of the bits of an f32 matrix, row by row: the sum of (bits + 1) (2 i + 1), modulo 2^64."""
    words = x.contiguous().view(torch.int32).flatten().long() & 0xFFFF_FFFF
    return ((words + 1) * (2 * torch.arange(words.numel()) + 1)).sum()


def quantized(nvfp4, tensors):
    """The reference's operands by their names, and what of each is multiplied; products of them."""
    names = "forward.input", "forward.weight", "grad_input.grad_output"
    x, w, dy = (tensors[f"{name}.before"] for name in names)
    x, w, dy = nvfp4.rows(x), nvfp4.weight(w), nvfp4.rows(dy, random_bits(tensors))
    operands = {
        "forward.input": (x, False),
        "forward.weight": (w, False),
        "grad_input.grad_output": (dy, False),
        "grad_input.weight": (w, True),
        "grad_weight.grad_output": (dy, True),
        "grad_weight.input": (x, True),
    }
    return operands, {"forward": (x, w), "grad_weight": (dy, x)}


def compare_operands(config, file, exact, exmy_order, rounded):
    """Quantizes what exmy quantized and compares bits; what is recorded of it."""
    counts, record = {}, {}
    plain = in_bfloat16(config)
    names = {m[1] for k in file if (m := re.match(r"exmy\.0\.(\d+\.\w+)\.forward\.input\.image", k))}
    sites = sorted(names - plain)

    def note(what, found, expected):
        differ = int((found.contiguous().view(torch.int32) != expected.contiguous().view(torch.int32)).sum())
        before = counts.get(what, (0, 0))
        counts[what] = before[0] + differ, before[1] + found.numel()

    for step in range(config["train"]["steps"]):
        for site in sites:
            tensors = within(file, f"exmy.{step}.{site}.")
            operands, products = quantized(exact, tensors)
            if random_bits(tensors):
                q, _ = quantized(rounded, tensors)[0]["grad_input.grad_output"]
                for name, by_column in (("grad_input", False), ("grad_weight", True)):
                    image = tensors[f"{name}.grad_output.image"]
                    note(f"{name}.grad_output, sums in f32", image, exact.image(q, by_column))
            for name, (q, by_column) in operands.items():
                image = exact.image(q, by_column)
                note(name, tensors[f"{name}.image"], image)
                pair = torch.stack([checksum(tensors[f"{name}.before"]), checksum(image)])
                record.setdefault(f"sums.{site}.{name}", []).append(pair)
                new = random_bits(tensors) is None or f"{name}.bits" in tensors
                if step == 0 and site in SHOWN and new:
                    for part, x in zip(("codes", "scales", "amax"), codes_of(q, by_column)):
                        x = x.view(torch.uint8) if part == "scales" else x
                        record[f"first.{site}.{name}.{part}"] = x
            for name, operand in (("grad_output", "grad_input.grad_output"), ("input", "forward.input")):
                rotated = exact.rotated(tensors[f"{operand}.before"])
                note(f"grad_weight.{name}, rotated", tensors[f"grad_weight.{name}.before"], rotated)
            for kind, (a, b) in products.items():
                for label, nvfp4 in (("", exact), (", tensors' scales in exmy's order", exmy_order)):
                    y = nvfp4.product(kind, a, b)
                    y = y.bfloat16().float() if kind == "forward" else y
                    note(f"{kind}{label}", tensors[f"{kind}.result"], y)
    for what, (differ, all_of_them) in counts.items():
        print(f"  {what}: {differ} of {all_of_them} differ")
    return {k: torch.stack(x) if isinstance(x, list) else x for k, x in record.items()}


def record_edges(module):
    """Codes and scales of the matrices at the ends, by every rule there is."""
    record, e2m1 = {}, module.reference_utils.Fp4Formats.E2M1
    rules = {"nearest": {}}
    for error, bound in ((error, bound) for error in ("mae", "mse") for bound in (256, 448)):
        name = "4over6" + "-mse" * (error == "mse") + "-448" * (bound == 448)
        choice = {"nvfp4_e4m3_max": bound, "nvfp4_4over6_err_mode": error}
        rules[name] = {"nvfp4_use_4over6": True} | choice
    for name, x in edges().items():
        record[f"edge.{name}.x"] = x.float()
        for shape, tile in (("lines", (1, 16)), ("tiles", (16, 16))):
            for rule, given in rules.items():
                q = module.NVFP4QuantizerRef(e2m1, quant_tile_shape=tile, **given).quantize(x)
                record[f"edge.{name}.{shape}.{rule}.codes"] = q.data
                record[f"edge.{name}.{shape}.{rule}.scales"] = q.scale.view(torch.uint8)
    return record


def norms(grads):
    rows = [[g[k].double().norm().item() for k in sorted(g)] for g in grads]
    return torch.tensor(rows, dtype=torch.float64)


def distance(a, b):
    """Of two trainings: losses, gradients' norms and, as a part of a tensor's largest, elements; operands."""
    losses = [abs(x - y) / y for x, y in zip(a[0], b[0], strict=True)]
    alike = [x < 2e-7 for x in losses]
    pairs = [(x[k], y[k]) for x, y in zip(a[1], b[1], strict=True) for k in x]
    sizes = (norms(a[1]) / norms(b[1]) - 1).abs().max()
    elements = max(((x - y).abs().max() / y.abs().max()).item() for x, y in pairs)
    return (
        f"losses alike in {sum(alike)} steps, at first in {(alike + [False]).index(False)},"
        f" at most {max(losses):.1e}; norms {sizes:.1e}, elements {elements:.1e},"
        f" operands {max(a[2], b[2]):.1e}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path, help="what holds the folder transformer_engine")
    parser.add_argument("folder", type=Path, help="what the ignored tests wrote")
    parser.add_argument("--write", action="store_true", help="record, beside this script")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    module = reference(arguments.checkout)
    exact, exmy_order = Nvfp4(module), Nvfp4(module, exmy_order=True)
    rounded = Nvfp4(module, rounded=True)
    record = record_edges(module)
    print(f"PyTorch {torch.__version__}")
    for path in sorted(arguments.folder.glob("*.toml")):
        name, config = path.stem, tomllib.loads(path.read_text())
        file = read_safetensors(path.with_suffix(".safetensors"))
        print(f"{name}: {config['recipe']}; in bfloat16: {', '.join(sorted(in_bfloat16(config)))}")
        part = compare_operands(config, file, exact, exmy_order, rounded)
        exmy, variants = file["exmy.losses"].tolist(), {
            "the reference": (exact,),
            "scales in exmy's order": (exmy_order,),
            "in f64 between products": (exact, torch.float64),
        }
        own = exmy, [within(file, f"exmy.{step}.grads.") for step in range(len(exmy))], 0.0
        for held in HELD:
            print(f"  holding {held}")
            runs = {k: train(config, file, nvfp4, held, *dtype) for k, (nvfp4, *dtype) in variants.items()}
            for label, run in runs.items():
                print(f"    exmy, {label}: {distance(own, run)}")
            first, _, last = runs.values()
            print(f"    PyTorch in f32, in f64: {distance(first, last)}")
            part[f"losses.{held}"] = torch.tensor(first[0], dtype=torch.float64)
        part["norms"] = norms(first[1])
        part |= {f"grads.{k}": g[:ROWS] for k, g in first[1][-1].items() if g[:ROWS].any()}
        record |= {f"{name}.{k}": x for k, x in part.items()}
    if arguments.write:
        place = Path(__file__).with_suffix(".safetensors")
        write_safetensors(place, record)
        print(f"wrote {place}, {place.stat().st_size} bytes")


if __name__ == "__main__":
    main()
