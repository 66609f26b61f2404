//! Checkpoints: everything a run needs to go on as if it had never stopped.
//!
//! A checkpoint is one safetensors file. It has the f32 master weights under their Hugging Face names
//! and AdamW's two moments as `adamw.m.NAME` and `adamw.v.NAME`, or the buffer of SGD with momentum as
//! `sgd.b.NAME`. Its one metadata entry, `exmy`, is a JSON object with the step, the tokens seen, the
//! recipe's memory, if there is any, the [`Digests`] of the run's records up to there, and its own digest.
//! Random bits are addressed by step, so there is no generator state to save. Every NaN is written as
//! 0x7FC00000, so the bytes do not tell which machine made it. One file appears by one rename,
//! so a checkpoint is whole or absent.
//!
//! The digest is the sum (of 64 bits) of the [`Digest`]s of all tensors' bytes, each with the digest of
//! its name as seed, and of the JSON object without its digest. A file whose digest is another is damaged
//! and refused. A file that has none, as other programs write them, is read as it is.
//!
//! Scheduled checkpoints (every `checkpoint_every` steps and the last step) are pruned to the newest
//! few. One written because somebody interrupted the run is extra. It goes as soon as a scheduled one
//! follows, so that a resumed run leaves the same files as an uninterrupted one.
//!
//! Tensors are written and read in pieces, so a checkpoint takes no memory in addition to what it holds.

use crate::nn::parameters::{Entry, Layout};
use crate::recipe::state::{RecipeState, stored_bits};
use crate::train::digest::Digest;
use crate::train::memory;
use crate::train::optimizer::Optimizer;
use crate::train::record::Digests;
use exmy::error::{Error, Result};
use exmy::safetensors::{Dtype, Outline, Reader, Writer};
use exmy::shown::printable_path;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a run stands, apart from its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Optimizer steps done.
    pub step: u64,
    /// Tokens trained on.
    pub tokens: u64,
}

/// What a file says apart from its tensors; one of weights alone has a digest alone.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    memory: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<Digests>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    digest: String,
}

impl Metadata {
    fn to_text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::new("cannot write the progress").because(error))
    }

    /// The same without a digest, as it is digested.
    fn digest(&self) -> Result<u64> {
        let text = Self { digest: String::new(), ..self.clone() }.to_text()?;
        Ok(Digest::of(text.as_bytes(), 0))
    }
}

/// The digest of a tensor, of which there is nothing yet.
fn of_tensor(name: &str) -> Digest {
    Digest::new(Digest::of(name.as_bytes(), 0))
}

/// Weights and optimizer moments, one arena each, laid out by [`Layout`], and what the recipe
/// remembers: read from a file, or as a trainer has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State<'a> {
    /// f32 master weights.
    pub params: Cow<'a, [f32]>,
    /// First moments of AdamW, or the buffer of SGD with momentum; else empty.
    pub m: Cow<'a, [f32]>,
    /// Second moments of AdamW; else empty.
    pub v: Cow<'a, [f32]>,
    /// What the recipe remembers from step to step.
    pub memory: Cow<'a, RecipeState>,
}

impl State<'_> {
    /// Whether its moments are those that an optimizer keeps.
    pub fn is_of(&self, optimizer: &Optimizer) -> bool {
        let kept = |which: usize| optimizer.moments().len() > which;
        self.m.is_empty() != kept(0) && self.v.is_empty() != kept(1)
    }
}

const METADATA_KEY: &str = "exmy";
const ADAMW: [&str; 2] = ["adamw.m.", "adamw.v."];
const SGD: &str = "sgd.b.";

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

/// Numbers that are turned into bytes at a time.
pub const PIECE: usize = 1 << 16;

/// An arena, and what its tensors' names begin with.
type Arena<'a> = (&'static str, &'a [f32]);

/// Calls `work` with some numbers' bytes, piece by piece in one buffer.
fn pieces(
    values: &[f32],
    buffer: &mut Vec<u8>,
    mut work: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for piece in values.chunks(PIECE) {
        buffer.clear();
        buffer.extend(piece.iter().flat_map(|&value| stored_bits(value).to_le_bytes()));
        work(buffer)?;
    }
    Ok(())
}

/// Writes all tensors of some arenas, whole or not at all, with the digest of them and of `about`, and
/// `more` metadata.
fn write(
    path: &Path,
    layout: &Layout,
    arenas: &[Arena<'_>],
    mut about: Metadata,
    more: &[(&str, &str)],
) -> Result<()> {
    let named = |prefix: &str, entry: &Entry| format!("{prefix}{}", entry.name);
    let (mut outlines, mut buffer) = (Vec::new(), Vec::new());
    let mut sum = about.digest()?;
    for &(prefix, values) in arenas {
        for entry in layout.iter() {
            let name = named(prefix, entry);
            let mut digest = of_tensor(&name);
            pieces(&values[entry.range.clone()], &mut buffer, |bytes| {
                digest.feed(bytes);
                Ok(())
            })?;
            sum = sum.wrapping_add(digest.finish());
            outlines.push(Outline::new(name, Dtype::F32, entry.shape.clone()));
        }
    }
    about.digest = format!("{sum:016x}");
    let mut metadata: BTreeMap<_, _> =
        more.iter().map(|&(key, text)| (key.to_owned(), text.to_owned())).collect();
    metadata.insert(METADATA_KEY.to_owned(), about.to_text()?);
    let mut writer = Writer::create(path, &outlines, metadata)?;
    for &(prefix, values) in arenas {
        for entry in layout.iter() {
            let name = named(prefix, entry);
            pieces(&values[entry.range.clone()], &mut buffer, |bytes| writer.write(&name, bytes))?;
        }
    }
    writer.finish()
}

/// What a file says apart from its tensors, if it says anything.
fn metadata(reader: &Reader) -> Result<Option<Metadata>> {
    let text = reader.header().metadata().get(METADATA_KEY);
    let read = text.map(|text| serde_json::from_str(text)).transpose();
    read.map_err(|error| damaged(reader, "its metadata").because(error))
}

fn damaged(reader: &Reader, what: &str) -> Error {
    Error::new(format!(
        "{} is damaged: {what} are not as they were written",
        printable_path(reader.path())
    ))
}

/// Refuses a file whose tensors or metadata are not those that its digest is of.
///
/// # Errors
/// If they are not, or cannot be read.
fn check(reader: &mut Reader) -> Result<()> {
    let Some(about) = metadata(reader)?.filter(|about| !about.digest.is_empty()) else {
        return Ok(());
    };
    let mut sum = about.digest()?;
    let names: Vec<_> = reader.header().entries().iter().map(|entry| entry.name.clone()).collect();
    for name in names {
        let mut digest = of_tensor(&name);
        reader.pieces(&name, |bytes| {
            digest.feed(bytes);
            Ok(())
        })?;
        sum = sum.wrapping_add(digest.finish());
    }
    if format!("{sum:016x}") != about.digest {
        return Err(damaged(reader, "its numbers"));
    }
    Ok(())
}

/// Refuses a file of tensors that was written with a digest and does not have it any more.
///
/// # Errors
/// If it has another one, or cannot be read.
pub fn verify(path: &Path) -> Result<()> {
    check(&mut Reader::open(path)?)
}

/// Writes the checkpoint of `progress` into `folder`, whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn save(folder: &Path, layout: &Layout, state: &State<'_>, progress: Progress) -> Result<()> {
    save_recorded(folder, layout, state, progress, None)
}

/// As [`save`], with the digests of the records up to there.
///
/// # Errors
/// As [`save`].
pub fn save_recorded(
    folder: &Path,
    layout: &Layout,
    state: &State<'_>,
    progress: Progress,
    records: Option<Digests>,
) -> Result<()> {
    let mut arenas: Vec<Arena<'_>> = vec![("", &state.params)];
    match (&state.m[..], &state.v[..]) {
        ([], _) => {}
        (buffer, []) => arenas.push((SGD, buffer)),
        (m, v) => arenas.extend([(ADAMW[0], m), (ADAMW[1], v)]),
    }
    let Progress { step, tokens } = progress;
    let about = Metadata {
        step: Some(step),
        tokens: Some(tokens),
        memory: state.memory.to_text(),
        records,
        ..Metadata::default()
    };
    write(&path(folder, step), layout, &arenas, about, &[])
}

/// Writes the weights alone, as other frameworks read them.
///
/// # Errors
/// If the file cannot be written.
pub fn save_model(path: &Path, layout: &Layout, params: &[f32]) -> Result<()> {
    // Transformers refuses metadata without a format.
    write(path, layout, &[("", params)], Metadata::default(), &[("format", "pt")])
}

/// The digests of the records up to a checkpoint; earlier versions wrote none.
///
/// # Errors
/// If the file cannot be read or its metadata is damaged.
pub fn records(path: &Path) -> Result<Option<Digests>> {
    Ok(metadata(&Reader::open(path)?)?.and_then(|about| about.records))
}

/// Reads one arena's tensors, each under `prefix` + its name.
fn read_arena(reader: &mut Reader, layout: &Layout, prefix: &str) -> Result<Vec<f32>> {
    memory::ensure(layout.len(), "its numbers")?;
    let mut values = vec![0.0; layout.len()];
    let path = printable_path(reader.path());
    for entry in layout.iter() {
        let name = format!("{prefix}{}", entry.name);
        let found = reader.header().find(&name).ok_or_else(|| {
            Error::new(format!("{path} has no tensor {name}"))
                .hint("it was written for another model; the run's config.toml must match it")
        })?;
        if found.dtype != Dtype::F32 || found.shape != entry.shape {
            return Err(Error::new(format!(
                "{path}: {name} is {} {:?}, the model needs F32 {:?}",
                found.dtype, found.shape, entry.shape
            )));
        }
        let mut values = values[entry.range.clone()].iter_mut();
        reader.pieces(&name, |piece| {
            for (bytes, value) in piece.as_chunks::<4>().0.iter().zip(values.by_ref()) {
                *value = f32::from_le_bytes(*bytes);
            }
            Ok(())
        })?;
    }
    Ok(values)
}

/// Reads a checkpoint back.
///
/// # Errors
/// If the file cannot be read, is damaged, or belongs to another model.
pub fn load(path: &Path, layout: &Layout) -> Result<(State<'static>, Progress)> {
    let mut reader = Reader::open(path)?;
    let about = metadata(&reader)?.unwrap_or_default();
    let (Some(step), Some(tokens)) = (about.step, about.tokens) else {
        return Err(Error::new(format!(
            "{} does not say which step it is of",
            printable_path(path)
        ))
        .hint("it holds weights only; a checkpoint to resume from is below checkpoints/"));
    };
    check(&mut reader)?;
    let progress = Progress { step, tokens };
    // What a tensor is of is said by its name, so that a file alone says which optimizer it is of.
    let has =
        |prefix: &str| reader.header().entries().iter().any(|entry| entry.name.starts_with(prefix));
    let kept = match ADAMW.iter().any(|prefix| has(prefix)) {
        true => Some(true),
        false => has(SGD).then_some(false),
    };
    let memory = about.memory;
    let memory = RecipeState::from_text(&memory)
        .map_err(|error| Error::new(format!("{}: {error}", printable_path(path))))?;
    let mut arena = |prefix: &str| read_arena(&mut reader, layout, prefix);
    let params = arena("")?;
    let [m, v] = match kept {
        Some(true) => [arena(ADAMW[0])?, arena(ADAMW[1])?],
        Some(false) => [arena(SGD)?, Vec::new()],
        None => [Vec::new(), Vec::new()],
    };
    let [params, m, v] = [params, m, v].map(Cow::Owned);
    Ok((State { params, m, v, memory: Cow::Owned(memory) }, progress))
}

/// Reads the weights of a model file or of a checkpoint.
///
/// # Errors
/// If the file cannot be read, is damaged, or belongs to another model.
pub fn load_model(path: &Path, layout: &Layout) -> Result<Vec<f32>> {
    let mut reader = Reader::open(path)?;
    check(&mut reader)?;
    read_arena(&mut reader, layout, "")
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
