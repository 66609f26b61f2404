//! What a rank other than 0 does: its parts of each step that it is told of, until there is nothing more.

use crate::recipe::device::Quantize;
use crate::recipe::state::RecipeState;
use crate::train::config::Config;
use crate::train::data::Dataset;
use crate::train::ranks::{Message, Ranks, out_of_turn};
use crate::train::trainer::Trainer;
use exmy::error::{Error, Result};

/// Takes its parts of the steps of a run that rank 0 leads, until that ends. `stops` says whether this rank
/// was asked to end; rank 0 hears of it with the losses of a step, and then stops the run.
///
/// # Errors
/// If the device fails or another rank has ended. Rank 0 is told first, and reports it.
pub fn serve<D: Quantize>(
    device: &D,
    config: &Config,
    data: &Dataset,
    ranks: Ranks<D>,
    stops: &dyn Fn() -> bool,
) -> Result<()> {
    let mut trainer = match Trainer::member(device.clone(), config, data, ranks) {
        Ok(trainer) => trainer,
        Err((error, mut ranks)) => {
            ranks.tell_failure(&error);
            return Err(error);
        }
    };
    let served = work(&mut trainer, stops);
    if let (Err(error), Some(ranks)) = (&served, trainer.ranks()) {
        ranks.tell_failure(error);
    }
    served
}

fn work<D: Quantize>(trainer: &mut Trainer<'_, D>, stops: &dyn Fn() -> bool) -> Result<()> {
    loop {
        let Some(ranks) = trainer.ranks() else { return Ok(()) };
        let (step, recipe, memory, later) = match ranks.hear()? {
            Message::Step { step, recipe, memory, later } => (step, recipe, memory, later),
            Message::End => return Ok(()),
            _ => return Err(out_of_turn(0)),
        };
        let recipe = recipe
            .parse()
            .map_err(|error| Error::new(format!("the recipe {recipe} cannot be read: {error}")))?;
        trainer.join(step, &recipe)?;
        let memory = match later {
            false => memory,
            true => match trainer.ranks().map(Ranks::hear) {
                Some(Ok(Message::Memory(memory))) => memory,
                Some(Err(error)) => return Err(error),
                _ => return Err(out_of_turn(0)),
            },
        };
        let losses = trainer.take_parts(RecipeState::from_text(&memory).map_err(Error::new)?);
        trainer.check()?;
        trainer.check_ranks()?;
        let bits = losses.into_iter().map(f64::to_bits).collect();
        if let Some(ranks) = trainer.ranks() {
            ranks.tell_lead(&Message::Losses { bits, stops: stops() })?;
        }
    }
}
