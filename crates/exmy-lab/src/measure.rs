//! What is measured of the runs of a figure: one number a run, by grid point and seed.

use crate::grid::{Axis, Divergence, Grid, GridPoint, Level};
use crate::outcome::{Outcome, tail};
use crate::run_config::{RunConfig, Setting};
use crate::series;
use crate::statistics::mean;
use crate::store::{Runs, Trained};
use crate::table::gap_percent;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_train::nn::site::{Operand, Operator};
use exmy_train::train::probe::{Key, Line};
use std::collections::BTreeSet;

/// What a run is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// The mean training loss of the last tenth of the steps, in nats; infinite if it diverged.
    Loss,
    /// The same, at most that of a guess.
    Capped,
    /// Spikes per thousand steps.
    Spikes,
    /// 1 if it failed, 0 if not.
    Failed,
    /// How far the loss is above that of a grid point, seed by seed, in percent.
    Gap(Pick),
    /// What a probe measured.
    Probed(Probed),
    /// The mean of the last tenth, at most the loss before training.
    Tail,
    /// Its natural logarithm: a difference of 0.1 is some 10 %.
    LogTail,
    /// The validation loss; infinite if there is none.
    Validation,
    /// 1 if it diverged by the rule for its kind of loss, 0 if not.
    Diverged,
    /// 1 if it has a spike by that rule, and how many.
    Spiked,
    SpikeCount,
    /// Whatever else, computed of each run.
    Computed(Computed),
}

/// A number that an analysis makes of a run.
#[derive(Clone, Copy, Debug)]
pub struct Computed {
    /// What it is; each has a name of its own.
    pub(super) what: &'static str,
    pub(super) of: fn(&Trained, &RunConfig) -> Result<f64>,
}

impl PartialEq for Computed {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}

/// What a probe measured, the mean over parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// What that is.
    pub(super) what: &'static str,
    probe: &'static str,
    /// Of which linear operators.
    operators: Operators,
    /// Of which operand, if it is of one.
    operand: Option<Operand>,
    statistic: &'static str,
    /// Whether it is the last value that counts, and not the mean of the last third of the steps.
    last: bool,
}

/// Some linear operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operators {
    /// All but the head, and whatever is none.
    Blocks,
    /// Those of [`INPUTS`].
    Inputs,
    One(Operator),
}

/// The inputs that linear operators do not share: one operator of each.
pub(super) const INPUTS: [Operator; 4] = [Operator::Q, Operator::O, Operator::Gate, Operator::Down];

/// The mean over parts with such a statistic of no operand, but the head's.
pub const fn of_parts(what: &'static str, probe: &'static str, statistic: &'static str) -> Probed {
    Probed { what, probe, operators: Operators::Blocks, operand: None, statistic, last: false }
}

/// The same at the end of the run.
pub(super) const fn at_the_end(
    what: &'static str,
    probe: &'static str,
    statistic: &'static str,
) -> Probed {
    Probed { last: true, ..of_parts(what, probe, statistic) }
}

/// The mean over inputs of a statistic, "" where the probe has but one of them.
pub const fn of_inputs(what: &'static str, probe: &'static str, statistic: &'static str) -> Probed {
    let (operators, operand) = (Operators::Inputs, Some(Operand::Input));
    Probed { operators, operand, ..of_parts(what, probe, statistic) }
}

impl Probed {
    /// The same statistic of an operand of all operators but the head.
    pub const fn of_operand(self, operand: Operand) -> Self {
        Self { operand: Some(operand), ..self }
    }

    /// The same of one operator of each block.
    pub const fn of_operator(self, operator: Operator) -> Self {
        Self { operators: Operators::One(operator), ..self }
    }

    pub fn has(&self, key: &Key) -> bool {
        let operator = key.site().map(|site| site.operator);
        let meant = match self.operators {
            Operators::Blocks => operator != Some(Operator::Head),
            Operators::Inputs => operator.is_some_and(|operator| INPUTS.contains(&operator)),
            Operators::One(one) => operator == Some(one),
        };
        meant && key.operand() == self.operand && key.statistic() == self.statistic
    }

    /// Steps and values of a run.
    pub(super) fn series(&self, run: &Trained) -> Result<Vec<(f64, f64)>> {
        let lines = run.probe(self.probe)?;
        // A run that diverged may have ended before the first measurement.
        if lines.is_empty() && run.summary.diverged_at.is_none() {
            let path = printable_path(run.folder.path());
            return Err(Error::new(format!("{path} has no probe `{}`", self.probe)));
        }
        self.of_lines(&lines)
    }

    /// The same of a probe's lines.
    ///
    /// # Errors
    /// If there are some, and none has what is meant: a mistake in a table, which smoke runs find.
    pub fn of_lines(&self, lines: &[Line]) -> Result<Vec<(f64, f64)>> {
        let keys = || lines.iter().flat_map(|line| line.values.parts.keys());
        if !lines.is_empty() && !keys().any(|key| self.has(key)) {
            let known: BTreeSet<String> = keys().map(ToString::to_string).collect();
            let known: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
            let statistic = if self.statistic.is_empty() { "value" } else { self.statistic };
            let of = self.operand.map_or_else(String::new, |operand| format!(" of {operand:?}"));
            let at = format!("at {:?}", self.operators);
            return Err(Error::new(format!(
                "probe `{}` has no `{statistic}`{of} {at}",
                self.probe
            ))
            .hint(format!("it has {}, ...", known.join(", "))));
        }
        let mean = |line: &Line| series::parts_mean(line, |key| self.has(key));
        Ok(lines.iter().filter_map(|line| Some((line.step as f64, mean(line)?))).collect())
    }

    /// What of these counts.
    pub(super) fn of(&self, series: &[(f64, f64)]) -> f64 {
        match self.last {
            true => series.last().map_or(f64::NAN, |&(_, y)| y),
            false => series::late(series, 2.0 / 3.0),
        }
    }
}

impl Metric {
    /// What a run with more of it does, and one with less.
    pub(super) const fn verbs(self) -> [&'static str; 2] {
        match self {
            Self::Loss | Self::Capped | Self::Tail => ["ends above", "ends below"],
            Self::LogTail => ["ends above (logarithms)", "ends below (logarithms)"],
            Self::Validation => {
                ["has a higher validation loss than", "has a lower validation loss than"]
            }
            Self::Diverged => ["diverges more often than", "diverges less often than"],
            Self::Spikes | Self::Spiked | Self::SpikeCount => {
                ["spikes more often than", "spikes less often than"]
            }
            Self::Failed => ["fails more often than", "fails less often than"],
            Self::Gap(_) | Self::Probed(_) | Self::Computed(_) => ["is above", "is below"],
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss | Self::Capped | Self::Tail => "loss",
            Self::LogTail => "logarithm of the loss",
            Self::Validation => "validation loss",
            Self::Spikes | Self::Spiked | Self::SpikeCount => "number of spikes",
            Self::Failed | Self::Diverged => "number of failures",
            Self::Gap(_) => "gap",
            Self::Probed(probed) => probed.what,
            Self::Computed(computed) => computed.what,
        }
    }

    /// Of one run.
    fn of(self, run: &Trained, planned: &RunConfig) -> Result<f64> {
        let outcome = || Outcome::of(run.clone(), planned);
        let count = |is: bool| f64::from(u8::from(is));
        Ok(match self {
            Self::Loss | Self::Gap(_) => run.tail_loss(),
            Self::Probed(probed) => probed.of(&probed.series(run)?),
            Self::Capped => {
                let model = planned.config.model.decoder();
                capped(run.tail_loss(), model.map_or(1, |model| model.vocab))
            }
            Self::Spikes => outcome().verdict.spikes_per_thousand(run.summary.steps as usize),
            Self::Failed => count(outcome().failed()),
            Self::Tail => tail(run),
            Self::LogTail => libm::log(tail(run)),
            Self::Validation => run.summary.val_loss.unwrap_or(f64::INFINITY),
            Self::Diverged => count(outcome().diverged()),
            Self::Spiked => count(!outcome().verdict.spikes.is_empty()),
            Self::SpikeCount => outcome().verdict.spikes.len() as f64,
            Self::Computed(computed) => (computed.of)(run, planned)?,
        })
    }
}

/// A loss, or that of a guess among so many tokens where it is higher or none: a run that diverged has
/// learnt nothing.
pub fn capped(loss: f64, vocab: usize) -> f64 {
    loss.min(libm::log(vocab as f64))
}

/// Names of levels that say which grid point is meant, those of the grid point at hand in place of what is
/// left out.
pub(super) type Pick = &'static [&'static str];

/// The runs of a figure.
#[derive(Clone)]
pub struct Results<'a> {
    pub(super) setting: &'a Setting,
    pub(super) grid: &'a Grid,
    pub points: Vec<GridPoint>,
    source: Source<'a>,
}

/// Where they come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Runs(&'a Runs<'a>),
    Made(Made<'a>),
}

/// What a metric of a seed of a grid point is to be.
pub(super) type Made<'a> = &'a dyn Fn(&GridPoint, u64, Metric) -> f64;

impl<'a> Results<'a> {
    pub(super) fn new(setting: &'a Setting, grid: &'a Grid, runs: &'a Runs<'a>) -> Self {
        Self { setting, grid, points: grid.points(setting.scale), source: Source::Runs(runs) }
    }

    /// Of no runs, but of what they would show.
    pub fn made(setting: &'a Setting, grid: &'a Grid, made: Made<'a>) -> Self {
        Self { setting, grid, points: grid.points(setting.scale), source: Source::Made(made) }
    }

    /// The levels of an axis.
    pub(super) fn levels(&self, axis: &Axis) -> &'static [Level] {
        self.setting.scale.pick(axis.levels)
    }

    /// The grid point that has all levels of `pick`, and those of `here` of all other axes.
    ///
    /// # Panics
    /// If there is none or several: a mistake in a table, which the test of all tables finds.
    pub(super) fn point(&self, pick: &[&str], here: &GridPoint) -> &GridPoint {
        match self.points_of(pick, here)[..] {
            [one] => one,
            _ => panic!("no point, or several, of {pick:?} at {here:?}"),
        }
    }

    /// All such grid points.
    pub(super) fn points_of(&self, pick: &[&str], here: &GridPoint) -> Vec<&GridPoint> {
        let fits = |point: &&GridPoint| {
            let agrees = |(axis, level): &(&'static str, Level)| {
                pick.contains(&level.name) || here.level(axis).is_none_or(|here| here == level)
            };
            pick.iter().all(|name| point.has(name)) && point.0.iter().all(agrees)
        };
        self.points.iter().filter(fits).collect()
    }

    /// The complete run of a configuration.
    pub(super) fn run(&self, planned: &RunConfig) -> Result<Trained> {
        match self.source {
            Source::Runs(runs) => runs.of(planned),
            Source::Made(_) => Err(exmy::error::Error::new("there are no runs")),
        }
    }

    /// The runs of a grid point, seed by seed.
    pub(super) fn trained(&self, point: &GridPoint) -> Result<Vec<(RunConfig, Trained)>> {
        if let Source::Made(_) = self.source {
            return Ok(Vec::new());
        }
        let runs = match self.grid.is_later(self.setting.scale, point) {
            false => self.grid.runs_of(self.setting, point),
            true => {
                let diverged = |planned: &RunConfig| {
                    Ok(Divergence::of(Outcome::of(self.run(planned)?, planned).verdict.diverged))
                };
                self.grid.later_of(self.setting, point, &diverged)?
            }
        };
        runs.into_iter().map(|planned| self.run(&planned).map(|run| (planned, run))).collect()
    }

    /// What became of the runs of a grid point, seed by seed.
    pub(super) fn outcomes(&self, point: &GridPoint) -> Result<Vec<Outcome>> {
        let runs = self.trained(point)?.into_iter();
        Ok(runs.map(|(planned, run)| Outcome::of(run, &planned)).collect())
    }

    /// Those of another grid, from the same place.
    pub(super) fn of_grid<'b>(&'b self, grid: &'b Grid) -> Results<'b> {
        Results {
            grid,
            points: grid.points(self.setting.scale),
            setting: self.setting,
            source: self.source,
        }
    }

    /// A metric of each run of a grid point, by seed.
    pub(super) fn values(&self, point: &GridPoint, metric: Metric) -> Result<Vec<f64>> {
        if let Source::Made(made) = self.source {
            let seeds = 1..=self.setting.scale.pick(self.grid.seeds);
            return Ok(seeds.map(|seed| made(point, seed, metric)).collect());
        }
        let runs = self.trained(point)?;
        let own = runs
            .iter()
            .map(|(planned, run)| metric.of(run, planned))
            .collect::<Result<Vec<_>>>()?;
        let Metric::Gap(base) = metric else { return Ok(own) };
        let base = self.values(self.point(base, point), Metric::Loss)?;
        Ok(own.iter().zip(base).map(|(own, base)| gap_percent(*own, base)).collect())
    }

    /// What a probe measured of each run of a grid point, step by step.
    pub(super) fn series(&self, point: &GridPoint, probed: Probed) -> Result<Vec<Vec<(f64, f64)>>> {
        self.trained(point)?.iter().map(|(_, run)| probed.series(run)).collect()
    }

    /// The runs of the grid point of a pick.
    pub(super) fn picked(&self, pick: &[&str]) -> Result<Vec<(RunConfig, Trained)>> {
        self.trained(self.point(pick, &GridPoint::default()))
    }

    /// The metrics of two grid points.
    pub(super) fn pair(
        &self,
        [of, over]: [&[&str]; 2],
        here: &GridPoint,
        metric: Metric,
    ) -> Result<[Vec<f64>; 2]> {
        let values = |pick| self.values(self.point(pick, here), metric);
        Ok([values(of)?, values(over)?])
    }
}

/// The mean over runs of a probe's values, step by step.
pub(super) fn mean_values(runs: &[(RunConfig, Trained)], probe: &str) -> Result<Vec<(f64, f64)>> {
    let each: Vec<Vec<(f64, f64)>> =
        runs.iter().map(|(_, run)| run.values(probe)).collect::<Result<_>>()?;
    let shortest = each.iter().map(Vec::len).min().unwrap_or(0);
    let at = |i: usize| {
        let values: Vec<f64> = each.iter().map(|values| values[i].1).collect();
        (each[0][i].0, mean(&values).unwrap_or(f64::NAN))
    };
    Ok((0..shortest).map(at).collect())
}
