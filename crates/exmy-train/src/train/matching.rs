//! The weights of a file in place of fresh ones, where its tensors are [a model's](names).

use crate::nn::parameters::Layout;
use crate::published::names::{self, Origin, Origins, transposed};
use crate::train::checkpoint;
use crate::train::fingerprint::Fingerprint;
use exmy::error::{Error, Result};
use exmy::safetensors::{Dtype, Header, Reader, given, quoted};
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

/// The parameters that a file has, as far as its header says.
///
/// # Errors
/// If nothing in it fits, two tensors are for the same parameter, or a tensor's shape or type is not one that
/// its parameter can have.
pub(super) fn origins(path: &Path, header: &Header, layout: &Layout) -> Result<Origins> {
    let fault = |error: Error| Error::new(printable_path(path)).because(error);
    let tensors = header.entries().iter();
    let tensors = tensors.map(|entry| (entry.name.as_str(), entry.name.clone(), &entry.shape[..]));
    let sizes = "set the sizes of [model] to those of the file";
    let (found, unused) = names::origins(tensors, layout, sizes).map_err(fault)?;
    for Origin { tensor, .. } in found.values() {
        let dtype = header.get(tensor)?.dtype;
        if !matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(fault(
                Error::new(format!("{} is {dtype}", quoted(tensor)))
                    .hint("weights are F64, F32, F16 or BF16"),
            ));
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
/// If the file cannot be read, nothing in it fits, two tensors are for the same parameter, or the shapes of a
/// tensor and its parameter differ. Then nothing is replaced.
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
        let Some(origin) = found.get(&entry.name) else {
            matching.fresh.push(entry.name.clone());
            continue;
        };
        params[entry.range.clone()].copy_from_slice(origin.part(&values[origin.tensor.as_str()]));
        matching.loaded.push(entry.name.clone());
    }
    Ok(matching)
}
