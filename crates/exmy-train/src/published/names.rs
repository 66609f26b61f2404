//! The tensors of a file and the parameters of a model, matched by their names.
//!
//! A tensor is a parameter's where it has its name, that of Hugging Face's Llama (or OLMo 2), or Flash Linear
//! Attention's for it (`model.layers.0.attn_norm.weight`). The name may have the prefixes `module.` and
//! `_orig_mod.` of PyTorch's wrappers, lack `model.` at its beginning, or be one of GPT-2's of Hugging Face
//! and nanoGPT (`transformer.h.0.attn.c_attn.weight`). Of GPT-2 the fused q, k, v are divided, and matrices
//! stored (in, out) by Hugging Face's `Conv1D` are transposed. The names of GGUF files are translated first.

use crate::nn::parameters::Layout;
use exmy::error::{Error, Result};
use exmy::safetensors::{extents, quoted};
use std::collections::BTreeMap;

/// The part of a tensor that becomes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Whole,
    /// The first, second or third of three equal parts of the outputs.
    Third(usize),
}

/// Where a tensor of GPT-2 goes; a matrix is stored (in, out) if the file is of Hugging Face.
fn of_gpt2(name: &str) -> Vec<(String, Cut)> {
    let name = name.strip_prefix("transformer.").unwrap_or(name);
    let whole = |name: String| vec![(name, Cut::Whole)];
    match name {
        "wte.weight" => return whole("model.embed_tokens.weight".into()),
        "wpe.weight" => return whole("model.embed_positions.weight".into()),
        "ln_f.weight" | "ln_f.bias" => return whole(name.replace("ln_f", "model.norm")),
        _ => {}
    }
    let Some((layer, rest)) = name.strip_prefix("h.").and_then(|rest| rest.split_once('.')) else {
        return Vec::new();
    };
    let block = format!("model.layers.{layer}");
    if let Some(kind) = rest.strip_prefix("attn.c_attn.") {
        let parts = ["q_proj", "k_proj", "v_proj"].iter().enumerate();
        return parts
            .map(|(i, part)| (format!("{block}.self_attn.{part}.{kind}"), Cut::Third(i)))
            .collect();
    }
    for (theirs, ours) in [
        ("ln_1.", "input_layernorm."),
        ("ln_2.", "post_attention_layernorm."),
        ("attn.c_proj.", "self_attn.o_proj."),
        ("mlp.c_fc.", "mlp.up_proj."),
        ("mlp.c_proj.", "mlp.down_proj."),
    ] {
        if let Some(kind) = rest.strip_prefix(theirs) {
            return whole(format!("{block}.{ours}{kind}"));
        }
    }
    Vec::new()
}

/// The name of a tensor of Flash Linear Attention; others are as they were.
fn of_fla(name: &str) -> String {
    for (theirs, ours) in [
        ("embeddings.", "embed_tokens."),
        ("attn_norm.", "input_layernorm."),
        ("mlp_norm.", "post_attention_layernorm."),
        // Where the norm and the gate are two kernels (`fuse_norm` is false).
        ("attn.g_norm.", "attn.g_norm_swish_gate."),
    ] {
        if let Some((before, after)) = name.split_once(theirs)
            && (before.is_empty() || before.ends_with('.'))
        {
            return format!("{before}{ours}{after}");
        }
    }
    name.to_owned()
}

/// The name in Hugging Face's files of a tensor of a GGUF file, if it has one.
pub(crate) fn of_gguf(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    let whole = match stem {
        "token_embd" => "model.embed_tokens",
        "position_embd" => "model.embed_positions",
        "output_norm" => "model.norm",
        "output" => "lm_head",
        _ => "",
    };
    if !whole.is_empty() {
        return Some(format!("{whole}.{kind}"));
    }
    let (layer, part) = stem.strip_prefix("blk.")?.split_once('.')?;
    let ours = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "attn_qkv" => return Some(format!("h.{layer}.attn.c_attn.{kind}")),
        "post_attention_norm" | "ffn_norm" => "post_attention_layernorm",
        "post_ffw_norm" => "post_feedforward_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{ours}.{kind}"))
}

/// The parameters that a tensor of that name is for.
fn places(name: &str, layout: &Layout) -> Vec<(String, Cut)> {
    let mut plain = name;
    while let Some(rest) =
        ["module.", "_orig_mod."].iter().find_map(|prefix| plain.strip_prefix(prefix))
    {
        plain = rest;
    }
    let fla = of_fla(plain);
    for candidate in [plain.to_owned(), format!("model.{plain}"), format!("model.{fla}"), fla] {
        if layout.find(&candidate).is_some() {
            return vec![(candidate, Cut::Whole)];
        }
    }
    let mut found = of_gpt2(plain);
    found.retain(|(name, _)| layout.find(name).is_some());
    found
}

/// Rows for columns, of a (rows, cols) matrix.
pub fn transposed(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..cols).flat_map(|j| (0..rows).map(move |i| values[i * cols + j])).collect()
}

/// Where a parameter is found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The tensor's name there.
    pub(crate) tensor: String,
    /// Extents of a matrix whose rows are the parameter's columns.
    pub(crate) to_transpose: Option<[usize; 2]>,
    cut: Cut,
}

impl Origin {
    /// The parameter's part of all values of its tensor, transposed already.
    pub(crate) fn part<'a>(&self, all: &'a [f32]) -> &'a [f32] {
        match self.cut {
            Cut::Whole => all,
            Cut::Third(i) => &all[i * (all.len() / 3)..(i + 1) * (all.len() / 3)],
        }
    }
}

/// What a file has for a model, by the names of parameters, and the names of its other tensors.
pub(crate) type Origins = (BTreeMap<String, Origin>, Vec<String>);

/// The parameters that a file has, as far as the names and extents of its tensors say, each given with the
/// name that it would have in Hugging Face's files. `sizes` is what to do where they have other sizes.
///
/// # Errors
/// If two tensors are for the same parameter, or a tensor's extents are not those of its parameter.
pub(crate) fn origins<'a>(
    tensors: impl Iterator<Item = (&'a str, String, &'a [usize])>,
    layout: &Layout,
    sizes: &str,
) -> Result<Origins> {
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_by(|a, b| a.0.cmp(b.0));
    // Only a fused matrix distinguishes (in, out) from (out, in); the others are as it is.
    let conv1d = tensors.iter().any(|(_, name, shape)| {
        let is_fused = name.ends_with("attn.c_attn.weight") && shape.len() == 2;
        is_fused && Some(shape[1]) == shape[0].checked_mul(3)
    });
    let mut found: BTreeMap<String, Origin> = BTreeMap::new();
    let mut unused = Vec::new();
    for (tensor, name, shape) in tensors {
        let places = places(&name, layout);
        if places.is_empty() {
            unused.push(tensor.to_owned());
            continue;
        }
        let (mut shape, mut to_transpose) = (shape.to_vec(), None);
        let linear = [".c_attn.weight", ".c_proj.weight", ".c_fc.weight"];
        if conv1d && shape.len() == 2 && linear.iter().any(|end| name.ends_with(end)) {
            to_transpose = Some([shape[0], shape[1]]);
            shape.reverse();
        }
        for (place, cut) in places {
            let mut shape = shape.clone();
            if let Cut::Third(_) = cut
                && shape.first().is_some_and(|rows| rows.is_multiple_of(3))
            {
                shape[0] /= 3;
            }
            let Some(entry) = layout.find(&place) else { continue };
            if entry.shape != shape {
                let (theirs, ours) = (extents(&shape), extents(&entry.shape));
                let what = format!("{} is {theirs}, {place} is {ours}", quoted(tensor));
                return Err(Error::new(what).hint(sizes));
            }
            let origin = Origin { tensor: tensor.to_owned(), to_transpose, cut };
            if let Some(Origin { tensor: other, .. }) = found.insert(place.clone(), origin) {
                let (other, name) = (quoted(&other), quoted(tensor));
                return Err(Error::new(format!("both {other} and {name} are for {place}"))
                    .hint("remove one of them from the file"));
            }
        }
    }
    Ok((found, unused))
}
