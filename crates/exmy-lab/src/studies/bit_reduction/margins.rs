//! How much the learning rate matters, by mantissa bits.
//!
//! The number is the sensitivity S of [`sensitivity`](crate::sensitivity), of each seed, and the width of
//! the interval of rates that work.

use crate::claim::{TestResult, words};
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Part, Table};
use crate::grid::{GridPoint, Level};
use crate::measure::{Metric, Results};
use crate::sensitivity::{self, Rate, Sensitivity, Stable};
use crate::statistics::paired_interval;
use exmy::error::Result;

/// How much the rate matters to runs of one kind.
pub struct Margin {
    /// S of each seed.
    pub each: Vec<f64>,
    /// S of the mean losses.
    all: Option<Sensitivity>,
    stable: Option<Stable>,
}

impl Margin {
    /// Of the final losses of all seeds at each rate, ascending, and of the loss before training.
    pub fn of(grid: &[(f64, Vec<f64>)], initial: f64) -> Self {
        let rate = |lr: f64, losses: Vec<f64>| {
            let diverged = losses.iter().filter(|loss| !loss.is_finite()).count();
            Rate { lr, losses, diverged }
        };
        let whole: Vec<Rate> = grid.iter().map(|(lr, losses)| rate(*lr, losses.clone())).collect();
        let of_seed = |seed: usize| {
            let rates: Vec<Rate> =
                grid.iter().map(|(lr, losses)| rate(*lr, vec![losses[seed]])).collect();
            sensitivity::sensitivity(&rates, initial).map(|found| found.s)
        };
        let seeds = grid.first().map_or(0, |(_, losses)| losses.len());
        Self {
            each: (0..seeds).filter_map(of_seed).collect(),
            all: sensitivity::sensitivity(&whole, initial),
            stable: sensitivity::stable(&whole, NEAR),
        }
    }

    /// The width of the interval of rates that work, in decades.
    pub fn decades(&self) -> f64 {
        self.stable.map_or(0.0, |stable| stable.decades)
    }

    /// S, the best rate and its loss, the interval, as tables have them.
    fn row(&self) -> [String; 6] {
        let text = |x: Option<f64>, e: bool| match (x, e) {
            (None, _) => "-".to_owned(),
            (Some(x), true) => format!("{x:e}"),
            (Some(x), false) => format!("{x:.4}"),
        };
        let (all, stable) = (self.all, self.stable);
        [
            text(all.map(|all| all.s), false),
            text(all.map(|all| all.best_lr), true),
            text(all.map(|all| all.best), false),
            text(stable.map(|stable| stable.low), true),
            text(stable.map(|stable| stable.high), true),
            text(stable.map(|stable| stable.decades), false),
        ]
    }
}

/// How far above the best loss that of a rate that works may be, nats.
const NEAR: f64 = 0.1;

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask("S in E8M3", Is::Above("S in E8M7"), By::Interval),
        ask(
            "the width of the interval of rates in E8M3 less that in E8M7",
            Is::AtMost(0.0),
            By::Value,
        ),
    ],
    Opposite::Each,
)
.noted(|| format!("rates within {NEAR} nats of the best"));

/// That of each format.
fn margins(results: &Results<'_>) -> Result<Vec<(&'static Level, Margin)>> {
    let of = |format: &'static Level| -> Result<(&'static Level, Margin)> {
        let here = GridPoint::default().with("format", format);
        let rates = results.levels(results.grid.axis("rate"));
        let points = rates.iter().map(|rate| (rate.x, results.point(&[rate.name], &here)));
        let losses: Vec<(f64, Vec<f64>)> = points
            .map(|(lr, point)| Ok((lr, results.values(point, Metric::Loss)?)))
            .collect::<Result<_>>()?;
        let first = results.trained(results.point(&[rates[0].name], &here))?;
        let before = first.first().and_then(|(_, run)| run.losses().first().copied());
        Ok((format, Margin::of(&losses, before.map_or(f64::NAN, |(_, loss)| loss))))
    };
    results.levels(results.grid.axis("format")).iter().map(of).collect()
}

/// Whether S is higher, and the interval no wider, on the last level of the axis `format` than on the first.
pub(crate) fn judge(results: &Results<'_>) -> Result<TestResult> {
    let found = margins(results)?;
    let ((first, many), (last, few)) = (&found[0], &found[found.len() - 1]);
    let [many_wide, few_wide] = [many, few].map(Margin::decades);
    let gap = paired_interval(&few.each, &many.each, 0.95);
    let text = format!(
        "S in {} above {} {}; intervals of {many_wide:.2} decades in {}, {few_wide:.2} in {}",
        last.name,
        first.name,
        words(gap),
        first.name,
        last.name
    );
    Ok(TestResult {
        holds: gap.is_some_and(|gap| gap.low > 0.0) && few_wide <= many_wide,
        opposite: gap.is_some_and(|gap| gap.high < 0.0) && few_wide >= many_wide,
        known: gap.is_some(),
        ..TestResult::either(false, text)
    })
}

/// S and the rates that work, by format.
pub(crate) fn table(results: &Results<'_>) -> Result<Vec<Part>> {
    let mut table = Table::new(
        "sensitivity S (nats), and the neighbouring rates within 0.1 nats of the best and without divergence",
        &["bits", "S", "best lr", "best loss", "from", "to", "decades"],
    );
    for (format, margin) in margins(results)? {
        table.row(std::iter::once(format.name.to_owned()).chain(margin.row()));
    }
    Ok(vec![Part::Table(table)])
}
