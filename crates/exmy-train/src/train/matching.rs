//! The tensors of a file and the parameters of a model, matched by their names.

use crate::nn::parameters::Layout;
use crate::train::checkpoint;
use crate::train::fingerprint::Fingerprint;
use exmy::error::{Error, Result};
use exmy::safetensors::{Dtype, Header, Reader, extents, given, quoted};
use exmy::shown::printable_path;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// What became of the tensors of a file and of the parameters of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Parameters that were taken from the file, in the order of the model.
    pub loaded: Vec<String>,
    /// Parameters that the file lacks.
    pub fresh: Vec<String>,
    /// Tensors of the file that belong to no parameter.
    pub unused: Vec<String>,
}

/// A file's hash, as `start.fingerprint` has it.
///
/// # Errors
/// If it cannot be read.
pub(super) fn fingerprint(path: &Path) -> Result<String> {
    let mut hash = Fingerprint::default();
    let mut feed = || -> io::Result<()> {
        let mut file = BufReader::with_capacity(1 << 20, given::open(path)?);
        loop {
            let piece = file.fill_buf()?;
            if piece.is_empty() {
                return Ok(());
            }
            hash.feed(piece);
            let length = piece.len();
            file.consume(length);
        }
    };
    feed().map_err(|error| Error::io("read", path, error))?;
    Ok(hash.to_string())
}

/// Refuses a file other than the one a run began with.
///
/// # Errors
/// If it cannot be read or has another hash.
pub(super) fn check_fingerprint(path: &Path, hash: &str) -> Result<()> {
    if fingerprint(path)? == hash {
        return Ok(());
    }
    Err(Error::new(format!("{} is not the file the run began with", printable_path(path)))
        .hint("put the old file back, or begin a new run"))
}

/// The part of a tensor that becomes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
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

/// The parameters that a tensor of that name is for.
fn places(name: &str, layout: &Layout) -> Vec<(String, Cut)> {
    let mut plain = name;
    while let Some(rest) =
        ["module.", "_orig_mod."].iter().find_map(|prefix| plain.strip_prefix(prefix))
    {
        plain = rest;
    }
    for candidate in [plain.to_owned(), format!("model.{plain}")] {
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
pub(super) struct Origin {
    tensor: String,
    /// Extents of a matrix whose rows are the parameter's columns.
    to_transpose: Option<[usize; 2]>,
    cut: Cut,
}

/// What a file has for a model, by the names of parameters, and the names of its other tensors.
pub(super) type Origins = (BTreeMap<String, Origin>, Vec<String>);

/// The parameters that a file has, as far as its header says.
///
/// # Errors
/// If nothing in it fits, two tensors are for the same parameter, or a tensor's shape or type is not one that
/// its parameter can have.
pub(super) fn origins(path: &Path, header: &Header, layout: &Layout) -> Result<Origins> {
    let fault = |what: String| Error::new(format!("{}: {what}", printable_path(path)));
    let mut tensors: Vec<_> = header.entries().iter().collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    // Only a fused matrix distinguishes (in, out) from (out, in); the others are as it is.
    let conv1d = tensors.iter().any(|tensor| {
        let shape = &tensor.shape;
        let is_fused = tensor.name.ends_with("attn.c_attn.weight") && shape.len() == 2;
        is_fused && Some(shape[1]) == shape[0].checked_mul(3)
    });
    let mut found: BTreeMap<String, Origin> = BTreeMap::new();
    let mut unused = Vec::new();
    for tensor in tensors {
        let name = &tensor.name;
        let places = places(name, layout);
        if places.is_empty() {
            unused.push(name.clone());
            continue;
        }
        if !matches!(tensor.dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(fault(format!("{} is {}", quoted(name), tensor.dtype))
                .hint("weights are F64, F32, F16 or BF16"));
        }
        let (mut shape, mut to_transpose) = (tensor.shape.clone(), None);
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
                return Err(fault(format!("{} is {theirs}, {place} is {ours}", quoted(name)))
                    .hint("set the sizes of [model] to those of the file"));
            }
            let origin = Origin { tensor: name.clone(), to_transpose, cut };
            if let Some(Origin { tensor: other, .. }) = found.insert(place.clone(), origin) {
                let (other, name) = (quoted(&other), quoted(name));
                return Err(fault(format!("both {other} and {name} are for {place}"))
                    .hint("remove one of them from the file"));
            }
        }
    }
    if found.is_empty() {
        let theirs = unused.first().map_or("none".to_owned(), |name| quoted(name));
        let ours = layout.iter().next().map_or("none", |entry| entry.name.as_str());
        return Err(Error::new(format!("{} has no tensor of this model", printable_path(path)))
            .hint(format!("its names are like {theirs}, the model's like {ours}")));
    }
    Ok((found, unused))
}

/// Replaces those of `params` that the safetensors file at `path` has.
///
/// # Errors
/// If the file cannot be read, nothing in it fits, two tensors are for the same parameter, or the
/// shapes of a tensor and its parameter differ; then nothing is replaced.
pub fn load_matching(path: &Path, layout: &Layout, params: &mut [f32]) -> Result<Matching> {
    let mut reader = Reader::open(path)?;
    // The header alone says whether the rest is worth reading.
    let (found, unused) = origins(path, reader.header(), layout)?;
    checkpoint::verify(path)
        .map_err(|error| error.hint("copy it again from where it came, or write it anew"))?;
    let mut values: BTreeMap<&str, Vec<f32>> = BTreeMap::new();
    for Origin { tensor, to_transpose, .. } in found.values() {
        if !values.contains_key(tensor.as_str()) {
            let mut all = reader.read_f32(tensor)?;
            if let Some([rows, cols]) = *to_transpose {
                all = transposed(&all, rows, cols);
            }
            values.insert(tensor, all);
        }
    }
    let mut matching = Matching { unused, ..Matching::default() };
    for entry in layout.iter() {
        let Some(Origin { tensor, cut, .. }) = found.get(&entry.name) else {
            matching.fresh.push(entry.name.clone());
            continue;
        };
        let all = &values[tensor.as_str()];
        let part = match *cut {
            Cut::Whole => &all[..],
            Cut::Third(i) => &all[i * (all.len() / 3)..(i + 1) * (all.len() / 3)],
        };
        params[entry.range.clone()].copy_from_slice(part);
        matching.loaded.push(entry.name.clone());
    }
    Ok(matching)
}
