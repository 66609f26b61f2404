//! Whether a run can be made, before anything is allocated or written: its configuration by itself, its
//! recipe for its model, and its data for both.

use crate::nn::site::Operator;
use crate::recipe::Recipe;
use crate::recipe::plan::check_named;
use crate::train::config::Config;
use crate::train::data::Dataset;
use exmy::error::{Error, Result};

/// Whether a run of `config` can begin on `data`, before anything is allocated or written.
///
/// # Errors
/// As [`check_fit`], and if a rule of its recipe, or of one that it changes to, is about what the model has
/// not.
pub fn check_run(config: &Config, data: &Dataset) -> Result<()> {
    check_fit(config, data)?;
    check_names(config)
}

/// Whether `config` can be trained on `data`. Runs that began before rules were looked at by their names may
/// have some about nothing, and go on as they began.
///
/// # Errors
/// If the configuration is impossible, its recipe does not go with the model, or the data have more tokens
/// than the vocabulary or fewer than one context.
pub fn check_fit(config: &Config, data: &Dataset) -> Result<()> {
    config.validate()?;
    config.recipe.settled(&config.model.layout(), config.train.steps)?;
    let Some(model) = config.model.decoder() else { return Ok(()) };
    if data.vocab > model.vocab {
        return Err(Error::new(format!(
            "the data have {} different tokens, model.vocab is {}",
            data.vocab, model.vocab
        ))
        .hint(format!("set model.vocab={}", data.vocab)));
    }
    data.check_context(model.context).map_err(Error::from_cause)
}

/// Refuses rules about blocks or operators that the model has not, in the recipe and in what becomes of it.
fn check_names(config: &Config) -> Result<()> {
    const TEACHER: [Operator; 3] =
        [Operator::TeacherGate, Operator::TeacherUp, Operator::TeacherDown];
    let layout = config.model.layout();
    let teachers = if config.model.decoder().is_some() { &[][..] } else { &TEACHER };
    let named = |recipe: &Recipe| check_named(recipe, &layout, teachers);
    named(&config.recipe)?;
    let mut changed = config.recipe.clone();
    for (number, at) in (1..).zip(&config.at) {
        changed = at.then.change(&changed)?;
        named(&changed).map_err(|error| Error::new(format!("rule {number} of [[at]]: {error}")))?;
    }
    for (number, when) in (1..).zip(&config.when) {
        let recipe = when.then.change(&config.recipe)?;
        named(&recipe)
            .map_err(|error| Error::new(format!("rule {number} of [[when]]: {error}")))?;
    }
    Ok(())
}
