//! BR-12: how much the learning rate matters, by mantissa bits.
//!
//! The number is the sensitivity S of [`sensitivity`](crate::study::sensitivity), of each seed, and the width of the interval of
//! rates that work.

use super::common::{Spec, all, seeds, tails};
use crate::error::Result;
use crate::plot::{self, Axis, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::sensitivity::{self, Rate, Sensitivity, Stable};
use crate::study::statistics::{mean, paired_interval};
use crate::study::store::{Runs, Trained};

/// How much the rate matters to runs of one kind.
struct Margin {
    /// S of each seed.
    each: Vec<f64>,
    /// S of the mean losses.
    all: Option<Sensitivity>,
    stable: Option<Stable>,
    /// Rates and mean losses.
    points: Vec<(f64, f64)>,
}

impl Margin {
    /// Of the final losses of all seeds at each rate, ascending, and of the loss before training.
    fn of(grid: &[(f64, Vec<f64>)], initial: f64) -> Self {
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
        let point = |rate: &Rate| (rate.lr, mean(&rate.losses).unwrap_or(f64::NAN));
        Self {
            each: (0..seeds).filter_map(of_seed).collect(),
            all: sensitivity::sensitivity(&whole, initial),
            stable: sensitivity::stable(&whole, 0.1),
            points: whole.iter().map(point).collect(),
        }
    }

    /// The width of the interval of rates that work, in decades.
    fn decades(&self) -> f64 {
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

/// BR-12.
pub(super) struct Rates;

/// The loss before training.
fn initial(run: &Trained) -> f64 {
    run.losses().first().map_or(f64::NAN, |point| point.1)
}

const LEARNING_RATES: [f64; 7] = [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1];
const SENSITIVE_BITS: [u32; 4] = [7, 5, 4, 3];

fn sensitive_arms(setting: &Setting, bits: u32, lr: f64) -> Vec<Arm> {
    let steps = setting.scale.pick([20, 200, 600, 20_000]);
    let preset = setting.scale.pick(["nano", "nano", "nano", "llama-120m"]);
    let recipe = format!("bitred-e8m{bits}");
    seeds(setting, [1, 3, 3, 3])
        .map(|seed| Spec { lr, ..Spec::new(preset, &recipe, seed, steps) }.arm(setting))
        .collect()
}

fn learning_rates(setting: &Setting) -> &'static [f64] {
    if setting.scale == Scale::Smoke { &LEARNING_RATES[1..4] } else { &LEARNING_RATES }
}

impl Figure for Rates {
    fn id(&self) -> &'static str {
        "BR-12"
    }

    fn title(&self) -> &'static str {
        "how much the learning rate matters, by mantissa bits"
    }

    fn source(&self) -> &'static str {
        "the paper's claim as a number: learning-rate sensitivity S of Wortsman et al. (arXiv 2309.14322)"
    }

    fn claim(&self) -> &'static str {
        "Fewer mantissa bits leave fewer learning rates that work. Reproduced where S of each seed is higher in E8M3 than in \
         E8M7 (interval of the paired difference above 0) and the interval of rates within 0.1 nats of the best is not wider."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let of = |bits| {
            learning_rates(setting).iter().flat_map(move |&lr| sensitive_arms(setting, bits, lr))
        };
        SENSITIVE_BITS.into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "sensitivity S (nats), and the neighbouring rates within 0.1 nats of the best and without divergence",
            &["bits", "S", "best lr", "best loss", "from", "to", "decades"],
        );
        let mut panel =
            Panel::new(Axis::linear("mean training loss of the last tenth, nats/token"));
        let mut found = Vec::new();
        for bits in SENSITIVE_BITS {
            let grid: Vec<(f64, Vec<Trained>)> = learning_rates(setting)
                .iter()
                .map(|&lr| Ok((lr, all(runs, &sensitive_arms(setting, bits, lr))?)))
                .collect::<Result<_>>()?;
            let initial = initial(&grid[0].1[0]);
            let losses: Vec<_> = grid.iter().map(|(lr, runs)| (*lr, tails(runs))).collect();
            let margin = Margin::of(&losses, initial);
            table.row(std::iter::once(format!("E8M{bits}")).chain(margin.row()));
            panel = panel.line(Series::new(format!("E8M{bits}"), margin.points.iter().copied()));
            found.push(margin);
        }
        let picture = plot::Figure::new("Loss by learning rate and mantissa bits")
            .subtitle("mean over seeds; rates at which a run diverged are marked as missing")
            .x(Axis::log("peak learning rate"))
            .panel(panel);
        let (many, few) = (&found[0], &found[found.len() - 1]);
        let wide = [many, few].map(Margin::decades);
        let shown = format!("intervals of {:.2} decades in E8M7, {:.2} in E8M3", wide[0], wide[1]);
        let verdict = match paired_interval(&few.each, &many.each, 0.95) {
            None => Verdict::NotSeen(format!("too few seeds for an interval; {shown}")),
            Some(gap) => {
                let text = format!(
                    "S is {:+.4} nats in E8M3 above E8M7 (95 % {:+.4} to {:+.4}); {shown}",
                    gap.estimate, gap.low, gap.high
                );
                Verdict::of(
                    gap.low > 0.0 && wide[1] <= wide[0],
                    gap.high < 0.0 && wide[1] >= wide[0],
                    text,
                )
            }
        };
        Ok(Findings { verdict, parts: vec![Part::Picture(picture), Part::Table(table)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model whose losses are 2 within so many rates of the best, and 4 elsewhere, with a little scatter over seeds.
    fn margin(wide: i32) -> Margin {
        let loss = |at: i32, seed: f64| {
            (if (at - 2).abs() <= wide { 2.0 } else { 4.0 }) + 0.01 * seed * f64::from(at)
        };
        let rate = |at: i32| (libm::exp10(f64::from(at)), vec![loss(at, 0.0), loss(at, 1.0)]);
        Margin::of(&(0..5).map(rate).collect::<Vec<_>>(), 5.5)
    }

    #[test]
    fn fewer_rates_that_work_are_told() {
        // Two of five rates lose 2 nats, and all are a little above the best.
        let of = margin(1);
        assert_eq!((of.each[0], of.decades()), (0.8, 2.0));
        assert_eq!(margin(2).decades(), 4.0);
    }
}
