"""Makes the small models of crates/exmy-train/tests/published/data with their logits, by transformers and gguf.

    pip install torch transformers gguf
    python3 scripts/published-models.py crates/exmy-train/tests/published/data

Every folder has a random model of one family as transformers saves it, in bfloat16, and `truth.safetensors`: tokens,
and the logits of the same weights in f32. `blocks.gguf` has a model whose tensors are of all types that are read, and
`blocks.safetensors` what the package gguf makes of the bytes of each, and the logits of transformers.
"""

import json
import os
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

VOCAB, TOKENS = 96, 40


def tokens(seed):
    return torch.randint(0, VOCAB, (1, TOKENS), generator=torch.Generator().manual_seed(seed))


def randomize(model, seed):
    """All parameters about as large as those of trained models, biases and gains too."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 2:
            values = 1.5 * values / parameter.shape[1] ** 0.5
        elif "norm" in name or "ln_" in name:
            values = 0.2 * values + (0.0 if name.endswith("bias") else 1.0)
        else:
            values = 0.3 * values
        parameter.data = values.to(torch.bfloat16).to(torch.float32)


COMMON = dict(
    vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=1,
)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
MODELS = {
    "llama": dict(model_type="llama", **COMMON),
    "llama3": dict(model_type="llama", attention_bias=True, mlp_bias=True, head_dim=16, rope_parameters=LLAMA3,
                   rms_norm_eps=1e-5, tie_word_embeddings=True, **COMMON),
    "mistral": dict(model_type="mistral", sliding_window=48, **COMMON),
    "qwen2": dict(model_type="qwen2", **COMMON),
    "qwen3": dict(model_type="qwen3", head_dim=16, tie_word_embeddings=True, **COMMON),
    "olmo2": dict(model_type="olmo2", **COMMON),
    "gpt2": dict(model_type="gpt2", vocab_size=VOCAB, n_embd=32, n_head=4, n_layer=2, n_positions=64,
                 bos_token_id=0, eos_token_id=1),
}


def families(folder):
    for seed, (name, keys) in enumerate(MODELS.items()):
        config = AutoConfig.for_model(**keys)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
        randomize(model, seed)
        given = tokens(seed)
        with torch.no_grad():
            logits = model(given).logits[0]
        path = os.path.join(folder, name)
        model.to(torch.bfloat16).save_pretrained(path, safe_serialization=True)
        os.path.exists(f"{path}/generation_config.json") and os.remove(f"{path}/generation_config.json")
        save_file({"tokens": given[0].to(torch.int32), "logits": logits.contiguous()}, f"{path}/truth.safetensors")
        print(name, float(logits.abs().max()), len(logits))


def random_blocks(kind, shape, generator):
    """Bytes of a type's blocks with scales that keep values about as large as weights."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, cols = shape
    blocks = generator.integers(0, 256, (rows * cols // elements, size), dtype=np.uint8)
    half = lambda low, high: generator.uniform(low, high, len(blocks)).astype(np.float16).view(np.uint8).reshape(-1, 2)
    name = kind.name
    if name in ("Q8_0", "Q4_0", "Q4_1"):
        blocks[:, 0:2] = half(0.0002, 0.001) if name == "Q8_0" else half(0.005, 0.02)
    if name == "Q4_1":
        blocks[:, 2:4] = half(-0.15, 0.0)
    if name == "Q4_K":
        blocks[:, 0:2], blocks[:, 2:4] = half(0.0001, 0.0005), half(0.0001, 0.003)
    if name == "Q6_K":
        blocks[:, 208:210] = half(0.00001, 0.00005)
    if name == "MXFP4":
        blocks[:, 0] = generator.integers(119, 123, len(blocks))
    return blocks.reshape(rows, -1)


def blocks(folder):
    kinds = gguf.GGMLQuantizationType
    generator = np.random.default_rng(1)
    d, heads, kv, hidden = 256, 4, 1, 256
    path = os.path.join(folder, "blocks.gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(d)
    writer.add_block_count(1)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1000.0)
    writer.add_rope_dimension_count(d // heads)
    writer.add_vocab_size(VOCAB)
    key = d // heads * kv
    tensors = {
        "token_embd.weight": (kinds.Q6_K, (VOCAB, d)),
        "output.weight": (kinds.Q8_0, (VOCAB, d)),
        "blk.0.attn_q.weight": (kinds.Q4_K, (d, d)),
        "blk.0.attn_k.weight": (kinds.Q4_0, (key, d)),
        "blk.0.attn_v.weight": (kinds.BF16, (key, d)),
        "blk.0.attn_output.weight": (kinds.Q4_1, (d, d)),
        "blk.0.ffn_gate.weight": (kinds.MXFP4, (hidden, d)),
        "blk.0.ffn_up.weight": (kinds.F16, (hidden, d)),
        "blk.0.ffn_down.weight": (kinds.Q4_K, (d, hidden)),
        "output_norm.weight": (kinds.F32, (d,)),
        "blk.0.attn_norm.weight": (kinds.F32, (d,)),
        "blk.0.ffn_norm.weight": (kinds.F32, (d,)),
    }
    truth = {}
    for name, (kind, shape) in tensors.items():
        if kind == kinds.F32:
            data = (1 + 0.2 * generator.standard_normal(shape)).astype(np.float32)
        elif kind == kinds.F16:
            data = (0.08 * generator.standard_normal(shape)).astype(np.float16)
        elif kind == kinds.BF16:
            data = gguf.quants.quantize((0.08 * generator.standard_normal(shape)).astype(np.float32), kind)
        else:
            data = random_blocks(kind, shape, generator)
        writer.add_tensor(name, data, raw_dtype=kind)
        values = data if kind == kinds.F32 else gguf.quants.dequantize(data, kind)
        truth[name] = torch.from_numpy(np.ascontiguousarray(values.reshape(shape), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    config = AutoConfig.for_model(
        "llama", vocab_size=VOCAB, hidden_size=d, intermediate_size=hidden, num_hidden_layers=1,
        num_attention_heads=heads, num_key_value_heads=kv, max_position_embeddings=64, rms_norm_eps=1e-5,
        rope_theta=1000.0, tie_word_embeddings=False)
    config.rope_parameters = dict(rope_type="default", rope_theta=1000.0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    interleaved = lambda w, n: w.reshape(n, w.shape[0] // n // 2, 2, -1).swapaxes(1, 2).reshape(w.shape)
    names = {
        "model.embed_tokens": "token_embd", "lm_head": "output", "model.norm": "output_norm",
        "model.layers.0.self_attn.q_proj": "blk.0.attn_q", "model.layers.0.self_attn.k_proj": "blk.0.attn_k",
        "model.layers.0.self_attn.v_proj": "blk.0.attn_v", "model.layers.0.self_attn.o_proj": "blk.0.attn_output",
        "model.layers.0.mlp.gate_proj": "blk.0.ffn_gate", "model.layers.0.mlp.up_proj": "blk.0.ffn_up",
        "model.layers.0.mlp.down_proj": "blk.0.ffn_down", "model.layers.0.input_layernorm": "blk.0.attn_norm",
        "model.layers.0.post_attention_layernorm": "blk.0.ffn_norm",
    }
    state = {f"{ours}.weight": truth[f"{theirs}.weight"] for ours, theirs in names.items()}
    for part, n in [("q_proj", heads), ("k_proj", kv)]:
        name = f"model.layers.0.self_attn.{part}.weight"
        state[name] = interleaved(state[name], n)
    model.load_state_dict(state)
    given = tokens(100)
    with torch.no_grad():
        logits = model(given).logits[0]
    print("blocks", float(logits.abs().max()))
    # Of each tensor the first rows' values: all types, without the size of all values.
    few = {name: values.flatten()[: 2 * 256].clone() for name, values in truth.items()}
    few.update(tokens=given[0].to(torch.int32), logits=logits.contiguous())
    save_file(few, os.path.join(folder, "blocks.safetensors"))


if __name__ == "__main__":
    print(json.dumps(dict(torch=torch.__version__, transformers=transformers.__version__)))
    families(sys.argv[1])
    blocks(sys.argv[1])
