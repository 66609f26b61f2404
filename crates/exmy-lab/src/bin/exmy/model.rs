//! The model that a command is given: one that others published, or a run of one's own.

use crate::sample::{run_folder, shape, words};
use crate::tokens::tell_dropout;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::runner::find_run;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::published::Published;
use exmy_train::recipe::Recipe;
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
/// If there is none, it is damaged, or it is a run that has no weights of a language model.
pub(crate) fn open(path: &Path) -> Result<Published> {
    if is_run(path) { of_run(&run_folder(path)?) } else { Published::open(path) }
}

fn of_run(folder: &Folder) -> Result<Published> {
    let shape = shape(folder)?;
    let file = folder.weights()?;
    if file != folder.model_file() {
        say!("note: no final weights; taken are those of {}", printable_path(&file));
    }
    checkpoint::verify(&file)?;
    Published::of_shape(folder.path(), shape, file)
}

/// The recipe of a model that is a run.
///
/// # Errors
/// If the run's configuration cannot be read.
pub(crate) fn recipe(model: &Published) -> Result<Option<Recipe>> {
    let of_run = |path| Ok(Folder::new(path).config()?.recipe);
    is_run(model.path()).then(|| of_run(model.path())).transpose()
}

/// The tokenizer that is wanted, or the model's.
///
/// # Errors
/// If there is none, it cannot be read, or it is not the one of a run's data.
pub(crate) fn tokenizer(model: &Published, wanted: Option<&Path>) -> Result<Tokenizer> {
    let found = read(model, wanted)?;
    tell_dropout(&found);
    Ok(found)
}

fn read(model: &Published, wanted: Option<&Path>) -> Result<Tokenizer> {
    if is_run(model.path()) {
        let found = words::tokenizer(&Folder::new(model.path()), wanted)?;
        return found.map_or_else(Tokenizer::bytes, Ok);
    }
    match wanted {
        Some(path) => Tokenizer::open(path),
        None => Tokenizer::from_json(model.tokenizer()?).map_err(|error| {
            let path = match model.path().is_dir() {
                true => model.path().join("tokenizer.json"),
                false => model.path().to_owned(),
            };
            Error::new(format!("the tokenizer of {} is none", printable_path(&path)))
                .because(error)
                .hint("name another by --tokenizer FILE")
        }),
    }
}
