//! Whether a run can be made, before anything is allocated or written: its configuration by itself, its
//! recipe for its model, and its data for both.

use crate::nn::site::Operator;
use crate::recipe::plan::check_named;
use crate::train::config::Config;
use crate::train::data::Dataset;
use exmy::error::{Error, Result};

/// Whether `config` can be trained on `data`, before anything is allocated or written.
///
/// # Errors
/// If the configuration is impossible, a rule of the recipe is about what the model has not, or the data have
/// more tokens than the vocabulary or fewer than one context.
pub fn check_run(config: &Config, data: &Dataset) -> Result<()> {
    config.validate()?;
    check_recipe(config)?;
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

/// Refuses a recipe that does not go with the model, or has rules about blocks or operators that it has not.
fn check_recipe(Config { recipe, model, train, .. }: &Config) -> Result<()> {
    const TEACHER: [Operator; 3] =
        [Operator::TeacherGate, Operator::TeacherUp, Operator::TeacherDown];
    let (layout, others) =
        (model.layout(), if model.decoder().is_some() { &[][..] } else { &TEACHER });
    check_named(recipe, &layout, others)?;
    recipe.settled(&layout, train.steps).map(drop)
}
