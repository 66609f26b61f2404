//! The loss about the weights of runs that keep checkpoints.

use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::landscape::{self, Landscape};
use crate::measure::Results;
use crate::run_config::RunConfig;
use exmy::error::Result;
use exmy_train::train::checkpoint;
use exmy_train::train::run::load_data;
use exmy_train::train::trainer::Trainer;

/// The seed of the two directions, the same for all checkpoints and formats.
const DIRECTIONS: u64 = 2018;
/// The losses about a checkpoint of a run.
fn grid(results: &Results<'_>, planned: &RunConfig, step: u64) -> Result<Landscape> {
    let (side, range) = (results.setting.scale.pick([5, 21, 51]), 1.0);
    let folder = results.run(planned)?.folder;
    let mut config = planned.config.clone();
    let data = load_data(&mut config)?;
    let mut trainer = Trainer::new(&config, &data)?;
    let path = checkpoint::path(&folder.checkpoints(), step);
    let (state, _) = checkpoint::load(&path, trainer.layout())?;
    let directions =
        [0, 1].map(|i| landscape::direction(trainer.layout(), &state.params, DIRECTIONS, i));
    Ok(landscape::grid(&state.params, &directions[0], &directions[1], side, range, |params| {
        trainer.begin(params.to_vec());
        trainer.validation_loss()
    }))
}

/// Whether surfaces are smooth: one valley each.
pub fn judge(surfaces: &[(String, Landscape)]) -> Verdict {
    let words = |(name, grid): &(String, Landscape)| {
        let (minima, count) = (grid.minima(), grid.losses.len());
        let finite = grid.losses.iter().filter(|loss| loss.is_finite()).count();
        match (finite == count, minima == 1 && !grid.is_valley()) {
            (false, _) => format!("{name}: {minima} ({finite} of {count} losses are finite)"),
            (true, true) => format!("{name}: {minima} (and lower points at the edge)"),
            (true, false) => format!("{name}: {minima}"),
        }
    };
    let list: Vec<String> = surfaces.iter().map(words).collect();
    let text = format!("local minima inside the grid: {}", list.join(", "));
    Verdict::of(
        surfaces.iter().all(|(_, grid)| grid.is_valley()),
        surfaces.iter().all(|(_, grid)| grid.minima() as f64 > MANY.bound()),
        text,
    )
}

/// What no smooth surface has.
const MANY: Requirement = ask("that number", Is::Over(3.0), By::Value);

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask(
            "the number of local minima of each surface inside the grid",
            Is::Exactly(1.0),
            By::Value,
        ),
        ask("that minimum", Is::So("is the surface's lowest point"), By::Value),
        ask("every loss", Is::So("is finite"), By::Value),
    ],
    Opposite::All(&[MANY]),
);

/// The surfaces about each checkpoint that the runs were to keep.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let mut table = Table::new(
        "validation loss, nats/token: at the weights, and over the grid",
        &["recipe", "step", "at the weights", "lowest", "highest", "local minima"],
    );
    let (mut parts, mut surfaces) = (Vec::new(), Vec::new());
    for planned in results.grid.runs(results.setting) {
        let recipe = &planned.config.recipe.to_string();
        for &step in &planned.config.record.checkpoint_at {
            let grid = grid(results, &planned, step)?;
            let low = grid.losses.iter().copied().fold(f64::INFINITY, f64::min);
            let high = grid.losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let centre = grid.centre().map_or_else(|| "-".into(), |loss| format!("{loss:.4}"));
            table.row([
                recipe.clone(),
                step.to_string(),
                centre,
                format!("{low:.4}"),
                format!("{high:.4}"),
                grid.minima().to_string(),
            ]);
            let title = format!("Validation loss about {recipe}'s weights after {step} steps");
            let under = "alpha and beta scale two random directions, filter by filter";
            parts.extend(grid.draw(&title, under, "nats/token", true).map(Part::Picture));
            surfaces.push((format!("{recipe} at {step}"), grid));
        }
    }
    parts.insert(0, Part::Table(table));
    Ok(Findings::of(judge(&surfaces), parts))
}
