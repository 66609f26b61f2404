//! Checkpoints: everything a run needs to go on as if it had never stopped.
//!
//! A checkpoint is one safetensors file with the f32 master weights under their Hugging Face names,
//! AdamW's two moments as `adamw.m.NAME` and `adamw.v.NAME`, and one metadata entry, `exmy`: a JSON
//! object with the step, the tokens seen and, if there is any, the recipe's memory. Random bits are
//! addressed by step, so there is no generator state to save. One file appears by one rename, so a checkpoint is whole or absent.
//!
//! Scheduled checkpoints (every `checkpoint_every` steps and the last step) are pruned to the newest
//! few. One written because somebody interrupted the run is extra: it goes as soon as a scheduled
//! one follows, so that a resumed run leaves the same files as an uninterrupted one.

use crate::error::{Error, Result};
use crate::files::whole;
use crate::nn::parameters::Layout;
use crate::recipe::memory::Memory;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a run stands, beside its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Optimizer steps done.
    pub step: u64,
    /// Tokens trained on.
    pub tokens: u64,
}

/// What a checkpoint says beside its tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    step: u64,
    tokens: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    memory: String,
}

/// Weights and optimizer moments, one arena each, laid out by [`Layout`], and what the recipe
/// remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// f32 master weights.
    pub params: Vec<f32>,
    /// First moments.
    pub m: Vec<f32>,
    /// Second moments.
    pub v: Vec<f32>,
    /// What the recipe remembers from step to step.
    pub memory: Memory,
}

const METADATA_KEY: &str = "exmy";
const MOMENTS: [&str; 2] = ["adamw.m.", "adamw.v."];

/// The file of the checkpoint after `step` steps.
pub fn path(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("step-{step:08}.safetensors"))
}

/// Steps of the checkpoints in `folder`, ascending.
///
/// # Errors
/// If the folder exists but cannot be read.
pub fn list(folder: &Path) -> Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read the folder", folder, error)),
    };
    let mut steps: Vec<u64> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix("step-")?.strip_suffix(".safetensors")?;
            number.parse().ok()
        })
        .collect();
    steps.sort_unstable();
    Ok(steps)
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn serialize(
    path: &Path,
    tensors: &[(String, Vec<usize>, Vec<u8>)],
    metadata: Option<HashMap<String, String>>,
) -> Result<()> {
    let fault = |error| Error::new(format!("cannot lay out {}", path.display())).because(error);
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| {
            Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(fault)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let bytes = safetensors::serialize(views, metadata).map_err(fault)?;
    whole::write_whole(path, &bytes)
}

/// Writes the checkpoint of `progress` into `folder`, whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn save(folder: &Path, layout: &Layout, state: &State, progress: Progress) -> Result<()> {
    let mut tensors = Vec::new();
    for (prefix, values) in [("", &state.params), (MOMENTS[0], &state.m), (MOMENTS[1], &state.v)] {
        for entry in layout.iter() {
            let bytes = bytes_of(&values[entry.range.clone()]);
            tensors.push((format!("{prefix}{}", entry.name), entry.shape.clone(), bytes));
        }
    }
    let Progress { step, tokens } = progress;
    let metadata = Metadata { step, tokens, memory: state.memory.to_text() };
    let progress_text = serde_json::to_string(&metadata)
        .map_err(|error| Error::new("cannot write the progress").because(error))?;
    // A single entry: the order in which a map of several would be written is not fixed.
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), progress_text)]);
    serialize(&path(folder, step), &tensors, Some(metadata))
}

/// Writes the weights alone, as other frameworks read them.
///
/// # Errors
/// If the file cannot be written.
pub fn save_model(path: &Path, layout: &Layout, params: &[f32]) -> Result<()> {
    let tensors: Vec<_> = layout
        .iter()
        .map(|entry| {
            (entry.name.clone(), entry.shape.clone(), bytes_of(&params[entry.range.clone()]))
        })
        .collect();
    serialize(path, &tensors, None)
}

/// Reads one arena's tensors, each under `prefix` + its name.
fn read_arena(
    path: &Path,
    file: &SafeTensors<'_>,
    layout: &Layout,
    prefix: &str,
) -> Result<Vec<f32>> {
    let mut values = vec![0.0; layout.len()];
    for entry in layout.iter() {
        let name = format!("{prefix}{}", entry.name);
        let tensor = file.tensor(&name).map_err(|_| {
            Error::new(format!("{} has no tensor {name}", path.display()))
                .hint("it was written for another model; the run's config.toml must match it")
        })?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != entry.shape {
            return Err(Error::new(format!(
                "{}: {name} is {:?} {:?}, the model needs F32 {:?}",
                path.display(),
                tensor.dtype(),
                tensor.shape(),
                entry.shape
            )));
        }
        let (bytes, _) = tensor.data().as_chunks::<4>();
        for (value, bytes) in values[entry.range.clone()].iter_mut().zip(bytes) {
            *value = f32::from_le_bytes(*bytes);
        }
    }
    Ok(values)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Error::io("read", path, error))
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes).map_err(|error| {
        Error::new(format!("{} is not a whole safetensors file", path.display())).because(error)
    })
}

/// Reads a checkpoint back.
///
/// # Errors
/// If the file cannot be read, is damaged, or belongs to another model.
pub fn load(path: &Path, layout: &Layout) -> Result<(State, Progress)> {
    let bytes = read(path)?;
    let file = parse(path, &bytes)?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| {
        Error::new(format!("{} has no readable header", path.display())).because(error)
    })?;
    let text = header.metadata().as_ref().and_then(|map| map.get(METADATA_KEY));
    let metadata = text.and_then(|text| serde_json::from_str(text).ok()).ok_or_else(|| {
        Error::new(format!("{} does not say which step it is of", path.display()))
            .hint("it holds weights only; a checkpoint to resume from is below checkpoints/")
    })?;
    let Metadata { step, tokens, memory } = metadata;
    let progress = Progress { step, tokens };
    let memory = Memory::from_text(&memory)
        .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
    let state = State {
        params: read_arena(path, &file, layout, "")?,
        m: read_arena(path, &file, layout, MOMENTS[0])?,
        v: read_arena(path, &file, layout, MOMENTS[1])?,
        memory,
    };
    Ok((state, progress))
}

/// Reads the weights of a model file or of a checkpoint.
///
/// # Errors
/// If the file cannot be read, is damaged, or belongs to another model.
pub fn load_model(path: &Path, layout: &Layout) -> Result<Vec<f32>> {
    let bytes = read(path)?;
    read_arena(path, &parse(path, &bytes)?, layout, "")
}

/// Removes checkpoints that are no longer needed: all but the newest `keep` that `is_scheduled`
/// accepts, and those that `is_kept` does.
///
/// # Errors
/// If a file cannot be removed.
pub fn prune(
    folder: &Path,
    keep: usize,
    is_scheduled: impl Fn(u64) -> bool,
    is_kept: impl Fn(u64) -> bool,
) -> Result<()> {
    let steps = list(folder)?;
    let scheduled: Vec<u64> = steps.iter().copied().filter(|&step| is_scheduled(step)).collect();
    let newest = &scheduled[scheduled.len().saturating_sub(keep.max(1))..];
    remove(folder, |step| !newest.contains(&step) && !is_kept(step))
}

/// Removes the checkpoints of the steps that `is_gone` names, the newest first, so that what is
/// left after a kill is a run's beginning.
///
/// # Errors
/// If a file cannot be removed.
pub fn remove(folder: &Path, is_gone: impl Fn(u64) -> bool) -> Result<()> {
    for step in list(folder)?.into_iter().rev().filter(|&step| is_gone(step)) {
        let path = path(folder, step);
        fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    Ok(())
}
