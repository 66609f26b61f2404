//! The loss about the weights of runs that keep checkpoints.

use crate::finding::{Findings, Part, Table, Verdict};
use crate::landscape::{self, Grid};
use crate::measure::Results;
use crate::run_config::RunConfig;
use exmy::error::Result;
use exmy_train::train::checkpoint;
use exmy_train::train::run::load_data;
use exmy_train::train::trainer::Trainer;

/// The seed of the two directions, the same for all checkpoints and formats.
const DIRECTIONS: u64 = 2018;
/// The losses about a checkpoint of a run.
fn grid(results: &Results<'_>, planned: &RunConfig, step: u64) -> Result<Grid> {
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
fn judge(surfaces: &[(String, Grid)]) -> Verdict {
    let words = |(name, grid): &(String, Grid)| {
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
        surfaces.iter().all(|(_, grid)| grid.minima() > 3),
        text,
    )
}

pub(crate) const ASKS: &str = "Reproduced where all losses of each surface are finite and its one local \
                               minimum inside the grid is its lowest point; contradicted where each \
                               surface has more than three.";

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A surface by its formula, at -1, -0.75 and so on to 1.
    fn made(loss: impl Fn(f64, f64) -> f64) -> Grid {
        let empty = Grid { side: 9, range: 1.0, losses: Vec::new() };
        let losses = (0..81).map(|index| empty.at(index)).map(|(x, y)| loss(x, y)).collect();
        Grid { losses, ..empty }
    }

    fn bowl() -> Grid {
        made(|x, y| x * x + y * y)
    }

    fn of(second: Grid) -> Verdict {
        judge(&[("a".into(), bowl()), ("b".into(), second)])
    }

    #[test]
    fn each_verdict_can_be_reached() {
        assert_eq!(of(bowl()).word(), "reproduced");
        // Two valleys, at -0.5 and at 0.5.
        let two = made(|x, y| (x * x - 0.25) * (x * x - 0.25) + y * y);
        assert_eq!((two.minima(), of(two).word()), (2, "not seen at this scale"));
        // Holes at all multiples of a half, nine of them inside.
        let is_half = |x: f64| (2.0 * x).fract() == 0.0;
        let rough = made(|x, y| if is_half(x) && is_half(y) { 0.0 } else { 1.0 });
        assert_eq!(rough.minima(), 9);
        let verdict = judge(&[("a".into(), rough.clone()), ("b".into(), rough)]);
        assert_eq!(verdict.word(), "contradicted");
    }

    #[test]
    fn what_is_no_valley_is_not_smooth() {
        let not = "not seen at this scale";
        for nothing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(of(made(|_, _| nothing)).word(), not);
            // One point at the corner, far from the valley.
            let mut one = bowl();
            one.losses[0] = nothing;
            let verdict = of(one);
            assert_eq!(verdict.word(), not);
            assert!(verdict.reason().ends_with("b: 1 (80 of 81 losses are finite)"));
        }
        assert_eq!(of(made(|x, _| x)).word(), not, "a slope");
        assert_eq!(of(made(|_, _| 1.0)).word(), not, "a plain");
        // A hole of 0.3 in a slope that falls to -1.
        let hole = made(|x, y| if (x, y) == (0.0, 0.0) { -0.3 } else { x });
        let verdict = of(hole);
        assert_eq!(verdict.word(), not);
        assert!(verdict.reason().ends_with("b: 1 (and lower points at the edge)"));
    }
}
