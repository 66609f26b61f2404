//! What a run starts from in place of fresh weights: tensors of a file, or another run's checkpoint.
//!
//! **Weights of a file** (`start.weights`, `--init-from`): a safetensors file as PyTorch users write
//! it. A tensor is taken where its name is that of a parameter. The name may have the prefixes
//! `module.` and `_orig_mod.` of PyTorch's wrappers, lack `model.` at its beginning, or be one of
//! GPT-2's of Hugging Face and nanoGPT (`transformer.h.0.attn.c_attn.weight`). Of GPT-2 the fused q, k, v
//! are divided, and matrices stored (in, out) by Hugging Face's `Conv1D` are transposed. f64, f32, f16 and
//! bf16 are read. F64 is rounded to nearest even. A shape that differs is an error; parameters that the file
//! lacks keep their fresh values; both these and tensors that belong to nothing are listed.
//!
//! **A checkpoint** (`start.run` and `start.step`, `--branch RUN@STEP`): the branch's folder gets a copy of
//! the checkpoint and of the lines up to its step. From then on it is a run like any other that was stopped
//! there. Its recipe is that of its own configuration; with the recipe that was in force in the other run it
//! repeats that run, bit for bit.

pub use crate::train::matching::{Matching, load_matching};

use crate::train::checkpoint;
use crate::train::config::{Config, Start};
use crate::train::control::Control;
use crate::train::matching::{fingerprint, origins};
use crate::train::run::Folder;
use exmy::error::{Error, Result};
use exmy::safetensors::{Reader, given};
use exmy::shown::printable_path;
use std::fs;
use std::path::Path;

/// A path as records have it: whole, so that a resume may be started from another folder.
fn recorded(path: &Path) -> Result<String> {
    let whole = fs::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
    whole.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(format!("{}: the path is not UTF-8", printable_path(&whole)))
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
            return Err(Error::new(format!("{} is a folder", printable_path(&path))).hint(works));
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
        Folder::new(&config.start.run).past(config.start.step)?;
        check_branch(config)?;
    }
    Ok(())
}

/// The configuration of a branch of `run` at `step`, before anything is changed in it: that of the
/// run, with the recipe in force there.
///
/// # Errors
/// If the run cannot be read or has no checkpoint of that step.
pub fn branch(run: &Folder, step: u64) -> Result<Config> {
    if !run.config_file().is_file() {
        let name = printable_path(run.path());
        let fault = format!("{name} is no run: it has no config.toml");
        return Err(Error::new(fault).hint(
            "name the folder of one run and a step of it, for example runs/0001/f32-s1@500",
        ));
    }
    let mut config = run.config()?;
    let path = checkpoint::path(&run.checkpoints(), step);
    if !path.is_file() {
        given::check(&path).map_err(|error| Error::io("read", &path, error))?;
        let steps = checkpoint::list(&run.checkpoints())?;
        let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
        let error =
            Error::new(format!("{} has no checkpoint of step {step}", printable_path(run.path())));
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
