//! The model that a command is given: one that others published, or a run of one's own.

use crate::sample::{run_folder, words};
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::runner::find_run;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::published::Published;
use exmy_train::train::checkpoint;
use exmy_train::train::run::Folder;
use std::path::Path;

/// Whether the path is that of a run, or of a folder of runs.
pub(crate) fn is_run(path: &Path) -> bool {
    !path.join("config.json").is_file()
        && (find_run(path).join("config.toml").is_file() || path.join("manifest.json").is_file())
}

/// Opens it.
///
/// # Errors
/// If there is none, it is damaged, or it is a run that has no final weights of a language model.
pub(crate) fn open(path: &Path) -> Result<Published> {
    if is_run(path) { of_run(&run_folder(path)?) } else { Published::open(path) }
}

fn of_run(folder: &Folder) -> Result<Published> {
    let path = printable_path(folder.path());
    let config = folder.config()?;
    let shape = config.model.decoder().copied().ok_or_else(|| {
        Error::new(format!("{path} holds no language model"))
            .hint("a run of a decoder has one; a proxy reads no text")
    })?;
    let file = folder.model_file();
    if !file.is_file() {
        return Err(Error::new(format!("{path} has no final weights"))
            .hint(format!("train it to its end: exmy train --resume {path}")));
    }
    checkpoint::verify(&file)?;
    Published::of_shape(folder.path(), shape)
}

/// The tokenizer that is wanted, or the model's.
///
/// # Errors
/// If there is none, or it cannot be read.
pub(crate) fn tokenizer(model: &Published, wanted: Option<&Path>) -> Result<Tokenizer> {
    if let Some(path) = wanted {
        return Tokenizer::open(path);
    }
    if !is_run(model.path()) {
        return Tokenizer::from_json(model.tokenizer()?);
    }
    let folder = Folder::new(model.path());
    match words::beside(&folder.config()?.data.source)? {
        Some(tokenizer) => Ok(tokenizer),
        None if model.config().vocab == 256 => Tokenizer::bytes(),
        None => Err(Error::new(format!(
            "{} was trained on token numbers, and no tokenizer.json is beside its data",
            printable_path(model.path())
        ))
        .hint("name the one that made them by --tokenizer FILE")),
    }
}
