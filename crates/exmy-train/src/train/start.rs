//! What a run starts from beside fresh weights: tensors of a file, or another run's checkpoint.
//!
//! **Weights of a file** (`start.weights`, `--init-from`): a safetensors file as PyTorch users write
//! it. A tensor is taken where its name is that of a parameter: as it stands, without the prefixes
//! `module.` and `_orig_mod.` of PyTorch's wrappers, with `model.` before it, or translated from
//! GPT-2's names of Hugging Face and nanoGPT (`transformer.h.0.attn.c_attn.weight`; the fused q, k, v
//! are divided, and matrices stored (in, out) by Hugging Face's `Conv1D` are transposed). f64, f32,
//! f16 and bf16 are read; f64 is rounded to nearest even. A shape that differs is an error; parameters that the
//! file lacks keep their fresh values; both these and tensors that belong to nothing are listed.
//!
//! **A checkpoint** (`start.run` and `start.step`, `--branch RUN@STEP`): the branch's folder gets a
//! copy of the checkpoint and of the lines up to its step, and from then on it is a run like any
//! other that was stopped there. Its recipe is that of its own configuration; with the recipe that
//! was in force in the other run it repeats that run, bit for bit.

use crate::nn::parameters::Layout;
use crate::train::checkpoint;
use crate::train::config::{Config, Start};
use crate::train::fingerprint::Fingerprint;
use crate::train::record::{self, split_at};
use crate::train::run::Folder;
use crate::train::trigger::Control;
use exmy::error::{Error, Result};
use exmy::safetensors::whole::{self, WholeFile};
use exmy::safetensors::{Dtype, Header, Reader, extents, given, quoted};
use std::collections::BTreeMap;
use std::fs;
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
pub fn fingerprint(path: &Path) -> Result<String> {
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
pub fn check_fingerprint(path: &Path, start: &Start) -> Result<()> {
    if fingerprint(path)? == start.fingerprint {
        return Ok(());
    }
    Err(Error::new(format!("{} is not the file the run began with", path.display()))
        .hint("put the old file back, or begin a new run"))
}

/// A path as records have it: whole, so that a resume may be started from another folder.
fn recorded(path: &Path) -> Result<String> {
    let whole = fs::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
    whole.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(format!("{}: the path is not UTF-8", whole.display()))
            .hint("paths are written into records; rename it or give it a link")
    })
}

/// Fills in what is known of `[start]` once its files have been read, and checks a branch; the
/// data's fingerprint must be known.
///
/// # Errors
/// If a file cannot be read, or the run would not go on as a branch does.
pub fn settle(config: &mut Config) -> Result<()> {
    if !config.start.weights.is_empty() {
        let works = "--init-from (start.weights) takes one safetensors file, as model.safetensors";
        let path = Path::new(&config.start.weights).to_owned();
        if path.is_dir() {
            return Err(Error::new(format!("{} is a folder", path.display())).hint(works));
        }
        config.start.weights = recorded(&path).map_err(|error| error.hint(works))?;
        // What does not fit is not read to its end.
        origins(&path, Reader::open(&path)?.header(), &config.model.layout())?;
        config.start.fingerprint = fingerprint(&path)?;
    }
    if config.start.is_branch() {
        config.start.run = recorded(Path::new(&config.start.run))?;
        let checkpoints = Folder::new(&config.start.run).checkpoints();
        let path = checkpoint::path(&checkpoints, config.start.step);
        checkpoint::verify(&path).map_err(|error| error.hint("branch off at another step"))?;
        config.start.fingerprint = fingerprint(&path)?;
        past(&Folder::new(&config.start.run), config.start.step)?;
        check_branch(config)?;
    }
    Ok(())
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
fn transposed(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..cols).flat_map(|j| (0..rows).map(move |i| values[i * cols + j])).collect()
}

/// Where a parameter is found in a file.
struct Origin {
    tensor: String,
    /// Extents of a matrix whose rows are the parameter's columns.
    turned: Option<[usize; 2]>,
    cut: Cut,
}

/// What a file has for a model, by the names of parameters, and the names of its other tensors.
type Origins = (BTreeMap<String, Origin>, Vec<String>);

/// The parameters that a file has, as far as its header tells.
///
/// # Errors
/// If nothing in it fits, two tensors are for the same parameter, or a tensor's shape or type is not one that
/// its parameter can have.
fn origins(path: &Path, header: &Header, layout: &Layout) -> Result<Origins> {
    let fault = |what: String| Error::new(format!("{}: {what}", path.display()));
    let mut tensors: Vec<_> = header.entries().iter().collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    // Only a fused matrix tells (in, out) from (out, in); the others are as it is.
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
        let (mut shape, mut turned) = (tensor.shape.clone(), None);
        let linear = [".c_attn.weight", ".c_proj.weight", ".c_fc.weight"];
        if conv1d && shape.len() == 2 && linear.iter().any(|end| name.ends_with(end)) {
            turned = Some([shape[0], shape[1]]);
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
            let origin = Origin { tensor: name.clone(), turned, cut };
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
        return Err(Error::new(format!("{} has no tensor of this model", path.display()))
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
    for Origin { tensor, turned, .. } in found.values() {
        if !values.contains_key(tensor.as_str()) {
            let mut all = reader.read_f32(tensor)?;
            if let Some([rows, cols]) = *turned {
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

/// The configuration of a branch of `run` at `step`, before anything is changed in it: that of the
/// run, with the recipe in force there.
///
/// # Errors
/// If the run cannot be read or has no checkpoint of that step.
pub fn branch(run: &Folder, step: u64) -> Result<Config> {
    if !run.config_file().is_file() {
        let fault = format!("{} is no run: it has no config.toml", run.path().display());
        return Err(Error::new(fault).hint(
            "name the folder of one run and a step of it, for example runs/0001/f32-s1@500",
        ));
    }
    let mut config = run.config()?;
    let path = checkpoint::path(&run.checkpoints(), step);
    if !path.is_file() {
        let steps = checkpoint::list(&run.checkpoints())?;
        let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
        let error =
            Error::new(format!("{} has no checkpoint of step {step}", run.path().display()));
        return Err(error.hint(match steps.is_empty() {
            true => "it has none at all".to_owned(),
            false => format!("it has those of {}", steps.join(", ")),
        }));
    }
    let recipe = {
        let mut control = Control::new(&config);
        let lines = run.metrics()?;
        let past = lines.iter().take_while(|line| line.step <= step);
        past.into_iter().try_for_each(|line| control.replay(line))?;
        control.recipe().clone()
    };
    config.recipe = recipe;
    let place = recorded(run.path())?;
    config.start = Start { run: place, step, ..Start::default() };
    Ok(config)
}

/// Refuses a branch that would not see the batches, or not have the weights, of the run it leaves.
///
/// # Errors
/// Names what differs.
fn check_branch(config: &Config) -> Result<()> {
    let start = &config.start;
    let theirs = Folder::new(&start.run).config()?;
    let same = [
        ("seed", config.seed == theirs.seed),
        ("data", config.data.fingerprint == theirs.data.fingerprint),
        ("data.validation", config.data.validation == theirs.data.validation),
        ("model", config.model == theirs.model),
        ("train.batch", config.train.batch == theirs.train.batch),
        ("train.optimizer", config.train.optimizer == theirs.train.optimizer),
        ("train.momentum", config.train.momentum == theirs.train.momentum),
    ];
    if let Some((key, _)) = same.iter().find(|(_, same)| !same) {
        return Err(Error::new(format!("{key} is another than in {}", start.run))
            .hint("a branch goes on with the same weights, moments and batches"));
    }
    if start.step >= config.train.steps {
        return Err(Error::new(format!(
            "the branch begins at step {} and has train.steps = {}",
            start.step, config.train.steps
        ))
        .hint("give it more steps"));
    }
    Ok(())
}

/// The metrics of a run up to its checkpoint of `step`.
fn past(run: &Folder, step: u64) -> Result<Vec<u8>> {
    let (past, _) = split_at(&run.metrics_file(), step)?;
    let digests = checkpoint::records(&checkpoint::path(&run.checkpoints(), step))?;
    if digests.is_some_and(|digests| digests.metrics != record::digest(&past)) {
        let path = run.metrics_file();
        return Err(Error::new(format!(
            "{} up to step {step} is not as it was written",
            path.display()
        ))
        .hint("put the file back as it was, or branch off at an earlier step"));
    }
    Ok(past)
}

/// Gives a branch its past: the checkpoint it begins with and the lines up to there.
///
/// # Errors
/// If they cannot be read, are not those that were meant, or cannot be written.
pub fn copy_past(start: &Start, folder: &Folder) -> Result<()> {
    let run = Folder::new(&start.run);
    let from = checkpoint::path(&run.checkpoints(), start.step);
    check_fingerprint(&from, start)?;
    let checkpoints = folder.checkpoints();
    fs::create_dir_all(&checkpoints).map_err(|error| Error::io("create", &checkpoints, error))?;
    let to = checkpoint::path(&checkpoints, start.step);
    let copy = || {
        let mut file = WholeFile::create(&to)?;
        io::copy(&mut given::open(&from)?, file.file())?;
        file.finish()
    };
    copy().map_err(|error| Error::io("write", &to, error))?;
    let past = past(&run, start.step)?;
    whole::write_whole(&folder.metrics_file(), &past)
}

#[cfg(test)]
mod tests;
