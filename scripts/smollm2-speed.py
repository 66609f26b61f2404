"""SmolLM2-135M-Instruct on two cores: tokens a second of exmy and of transformers, in turns.

    python3 scripts/smollm2-speed.py TEXT [TURNS]

It needs what `smollm2.py` needs. Prompts have 1024 tokens of the text, and 32 tokens are generated greedily. A window
is what `exmy eval` reads: from the time of four less that of one, so that reading the model and rounding its weights,
which is done once, fall out. The machine is to have nothing else to do.
"""

import os
import re
import statistics
import subprocess
import sys
import time

os.environ.update(OMP_NUM_THREADS="2", RAYON_NUM_THREADS="2", EXMY_THREADS="2")

import smollm2
import torch

TEXT, TURNS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
EXMY = os.path.join(smollm2.ROOT, "target", "release", "exmy")
SHORT, NEW = "Once upon a time", 33

torch.set_num_threads(2)
path = smollm2.model_path()
model, tokenizer = smollm2.read(path)
model.set_attn_implementation("sdpa")
with open(TEXT, encoding="utf-8", newline="") as file:
    ids = tokenizer.encode(file.read(6000), add_special_tokens=False).ids[:1024]
prompt = tokenizer.decode(ids)


def ours(recipe, prompt, tokens):
    """Tokens a second of the prompt, and of what was drawn behind the first."""
    command = [EXMY, "generate", path, "--prompt", prompt, "--tokens", str(tokens), "--temperature", "0", "--endless"]
    said = subprocess.run([*command, "--recipe", recipe], capture_output=True, text=True, check=True).stderr
    found = re.search(r"prompt +\d+ tokens, ([\d.]+) a second; \d+ drawn, ([\d.]+) a second", said)
    return float(found[1]), float(found[2])


def windows(recipe):
    """Tokens a second of windows of 1024."""
    took = []
    for tokens in ("1024", "4096"):
        command = [EXMY, "eval", path, "--data", TEXT, "--tokens", tokens, "--window", "1024", "--stride", "1024"]
        begun = time.time()
        subprocess.run([*command, "--recipe", recipe, "--json", "-q"], stdout=subprocess.DEVNULL, check=True)
        took.append(time.time() - begun)
    return 3072 / (took[1] - took[0])


@torch.inference_mode()
def theirs():
    """The same as `ours` by transformers in f32."""
    begun = time.time()
    model(torch.tensor([ids]), use_cache=True, logits_to_keep=1)
    speed = len(ids) / (time.time() - begun)
    batch, took = torch.tensor([tokenizer.encode(SHORT, add_special_tokens=False).ids]), []
    for count in (1, NEW):
        begun = time.time()
        model.generate(
            batch, attention_mask=torch.ones_like(batch), max_new_tokens=count, do_sample=False, eos_token_id=None,
            pad_token_id=0,
        )
        took.append(time.time() - begun)
    return speed, (NEW - 1) / (took[1] - took[0])


theirs()
rows = {}
for _ in range(TURNS):
    speeds = theirs()
    for name, speed in (
        ("prompt, transformers f32", speeds[0]),
        ("prompt, f32", ours("f32", prompt, 1)[0]),
        ("prompt, mxfp8-e4m3", ours("mxfp8-e4m3", prompt, 1)[0]),
        ("windows, f32", windows("f32")),
        ("windows, mxfp8-e4m3", windows("mxfp8-e4m3")),
        ("generation, transformers f32", speeds[1]),
        ("generation, f32", ours("f32", SHORT, NEW)[1]),
        ("generation, mxfp4", ours("mxfp4", SHORT, NEW)[1]),
    ):
        rows.setdefault(name, []).append(speed)
for name, speeds in rows.items():
    print(f"{name:30} {statistics.median(speeds):7.1f} tokens a second, {min(speeds):.1f} to {max(speeds):.1f}")
