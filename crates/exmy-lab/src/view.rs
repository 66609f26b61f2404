//! What a figure shows of its runs: curves, lines over numbers, tables.

mod gaps;
mod probed;

use crate::claim::words;
use crate::comparison::{self, BySeed, Curves};
use crate::finding::{Part, Table};
use crate::grid::GridPoint;
use crate::measure::{Metric, Pick, Probed, Results, mean_values};
use crate::outcome::{self, Outcome, calm};
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::RunConfig;
use crate::series::{self, parts_mean, spread};
use crate::spikes::{self, Curve, Nats};
use crate::statistics::{Interval, mean, mean_interval, median, paired_interval, wilson};
use crate::store::Trained;
use exmy::error::Result;
use exmy_train::nn::site::Operand;
use exmy_train::train::probe::Key;
pub(super) use probed::{Shown, Usual, shown};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub enum View {
    /// Smoothed losses step by step, a line for each grid point: a picture for each level of an axis, or one
    /// for all.
    Curves {
        /// `{}` is the level.
        title: &'static str,
        per: Option<&'static str>,
        /// A probe that is drawn below, and what it measures.
        also: Option<(&'static str, &'static str)>,
        under: &'static str,
    },
    /// The median of the seeds step by step and their range, a line for each grid point: a picture for each
    /// combination of the levels of some axes.
    Outcomes {
        /// `{}` are those levels.
        title: &'static str,
        per: &'static [&'static str],
        /// Whether gradient norms are drawn below.
        norms: bool,
        under: &'static str,
    },
    /// Mean final losses over an axis of numbers, a line for each level of the others.
    Lines {
        title: &'static str,
        axis: &'static str,
        /// What the axis is called, and whether it is logarithmic.
        x: (&'static str, bool),
        /// The grid point whose mean loss is taken away.
        above: Option<Pick>,
    },
    /// A row for each grid point, or for each group of them.
    Table {
        caption: &'static str,
        /// The axes whose levels have a row each; none for all of them.
        rows: &'static [&'static str],
        columns: &'static [Column],
    },
    /// Gaps to a grid point in percent, of all others.
    Gaps { title: &'static str, under: &'static str, base: Pick },
    /// Differences of a metric between grid points of one level.
    Pairs { caption: &'static str, metric: Metric, pairs: &'static [[&'static str; 2]] },
    /// What probes measured over the run.
    Probed { title: &'static str, under: &'static str, panels: &'static [Shown] },
    /// A paragraph.
    Text(&'static str),
    /// An analysis of its own.
    Own(fn(&Results<'_>) -> Result<Vec<Part>>),
}

/// Curves of losses alone, a picture for each level of an axis, or one if none is named.
pub(crate) const fn curves(title: &'static str, per: &'static str, under: &'static str) -> View {
    View::Curves { title, per: if per.is_empty() { None } else { Some(per) }, also: None, under }
}

/// A table with a row for each grid point.
pub(crate) const fn by_point(caption: &'static str, columns: &'static [Column]) -> View {
    View::Table { caption, rows: &[], columns }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    head: &'static str,
    /// Which of a row's grid points it reads.
    pick: Pick,
    show: Show,
}

/// A column of rows that are grid points.
pub(super) const fn column(head: &'static str, show: Show) -> Column {
    Column { head, pick: &[], show }
}

/// A column of rows that are groups of grid points.
pub(super) const fn column_of(head: &'static str, pick: Pick, show: Show) -> Column {
    Column { head, pick, show }
}

/// The level of an axis, under the axis's name.
pub(super) const fn level_of(axis: &'static str) -> Column {
    column(axis, Show::Level(axis))
}

/// Columns of many tables.
pub(super) mod columns {
    use super::{Column, Metric, Show, column};

    pub(crate) const LOSS: Column = column("loss", Show::Mean(Metric::Tail));
    pub(crate) const LOSS_INTERVAL: Column = column("loss", Show::LossInterval);
    pub(crate) const DIVERGED: Column = column("diverged", Show::Sum(Metric::Diverged));
    pub(crate) const FAILED: Column = column("failed", Show::Sum(Metric::Failed));
    pub(crate) const LOW: Column = column("low, %", Show::FailedLow);
    pub(crate) const HIGH: Column = column("high, %", Show::FailedHigh);
    pub(crate) const SPIKED: Column = column("with spikes", Show::Sum(Metric::Spiked));
    pub(crate) const SPIKE_COUNT: Column = column("spikes", Show::Sum(Metric::SpikeCount));
    pub(crate) const SPIKE_RATE: Column = column("spikes", Show::Spikes);
    pub(crate) const RUNS: Column = column("seeds", Show::Runs);
}

/// What a column shows of a grid point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Show {
    /// The level of an axis.
    Level(&'static str),
    /// The number of that level.
    Number(&'static str),
    /// How many runs there are.
    Runs,
    /// The mean loss,
    Loss,
    /// with its interval over seeds.
    LossInterval,
    /// The lowest and the highest loss of a seed.
    Lowest,
    Highest,
    /// The ends of Wilson's interval of the share of runs that failed, in percent.
    FailedLow,
    FailedHigh,
    /// The mean of a metric over seeds, and the sum.
    Mean(Metric),
    Sum(Metric),
    /// Spikes per thousand steps, the mean over seeds.
    Spikes,
    /// The mean and the range over seeds of what a probe measured.
    Spread(Probed),
    /// The paired difference from another grid point with its interval, or one number of it.
    Above(Pick),
    Gap(Pick),
    GapLow(Pick),
    GapHigh(Pick),
    /// The mean over seeds of a probe, so many parts of three through the run.
    Thirds(&'static str, u8),
    /// At the last measurement of the first seed, the mean of a part of the probe `rounding` over the
    /// operands of inputs, weights and gradients, in percent.
    Rounding(&'static str),
}

impl View {
    /// Its parts of the page.
    pub fn draw(&self, results: &Results<'_>) -> Result<Vec<Part>> {
        match *self {
            Self::Curves { title, per, also, under } => {
                draw_curves(results, title, per, also, under)
            }
            Self::Outcomes { title, per, norms, under } => {
                outcomes(results, title, per, norms, under)
            }
            Self::Lines { .. } => self.lines(results),
            Self::Table { caption, rows, columns } => table(results, caption, rows, columns),
            Self::Gaps { title, under, base } => gaps::gaps(results, title, under, base),
            Self::Pairs { caption, metric, pairs } => gaps::pairs(results, caption, metric, pairs),
            Self::Probed { title, under, panels } => probed::draw(results, title, under, panels),
            Self::Text(text) => Ok(vec![Part::Text(text.to_owned())]),
            Self::Own(draw) => draw(results),
        }
    }

    fn lines(&self, results: &Results<'_>) -> Result<Vec<Part>> {
        let Self::Lines { title, axis, x, above } = *self else { return Ok(Vec::new()) };
        let losses = |point: &GridPoint| results.values(point, Metric::Loss);
        let (base, y) = match above {
            Some(pick) => {
                let y = format!("training loss above {}, nats/token", pick.join(", "));
                let base = losses(results.point(pick, &GridPoint::default()))?;
                (mean(&base).unwrap_or(f64::NAN), y)
            }
            None => (0.0, "mean training loss of the last tenth, nats/token".to_owned()),
        };
        // A value of each seed at each place.
        let mut all: Vec<BySeed> = Vec::new();
        for point in results.points.iter().filter(|point| point.0.len() == results.grid.axes.len())
        {
            let Some(level) = point.level(axis) else { continue };
            let (name, values) = (point.words(&[axis]), (level.x, losses(point)?));
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.push(values),
                None => all.push((name, vec![values])),
            }
        }
        // Levels may be listed from the highest down, and what is noted of a line is its right end.
        all.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
        let means = |(name, points): &BySeed| {
            let of = |(x, values): &(f64, Vec<f64>)| (*x, mean(values).unwrap_or(f64::NAN) - base);
            (name.clone(), points.iter().map(of).collect())
        };
        let (lines, merged) = series::distinct(all.iter().map(means).collect());
        let mut under = "mean over seeds; where a run diverged there is no point".to_owned();
        under += if merged.is_some() { "; lines that coincide are drawn once" } else { "" };
        let x = if x.1 { Axis::log(x.0) } else { Axis::whole(x.0) };
        let figure = plot::Figure::new(title).subtitle(under).x(x);
        let figure = figure.order(lines.iter().map(|(name, _)| name.clone()));
        let gaps = above.is_none().then(|| comparison::gaps(&all)).flatten();
        let panel = lines.into_iter().fold(Panel::new(Axis::linear(y)), |panel, (name, points)| {
            let last = points.last().map_or_else(String::new, |point| format!("{:.3}", point.1));
            panel.line(Series::new(name, points).note(last))
        });
        let picture = gaps.into_iter().fold(figure, plot::Figure::panel).panel(panel);
        let merged = merged.map(|lines| Part::Text(format!("Lines that coincide: {lines}.")));
        Ok(std::iter::once(Part::Picture(picture)).chain(merged).collect())
    }
}

fn draw_curves(
    results: &Results<'_>,
    title: &str,
    per: Option<&str>,
    also: Option<(&str, &str)>,
    under: &str,
) -> Result<Vec<Part>> {
    let mut pictures: Vec<(&str, Vec<Curves>, Panel, Option<Panel>)> = Vec::new();
    for point in &results.points {
        let level = per.and_then(|axis| point.level(axis)).map_or("", |level| level.name);
        if !pictures.iter().any(|(known, ..)| *known == level) {
            let losses = Panel::new(Axis::linear("smoothed training loss, nats/token")).settled();
            let probe = also.map(|(_, label)| Panel::new(Axis::log(label)));
            let losses = if probe.is_some() { losses.height_share(1.4) } else { losses };
            pictures.push((level, Vec::new(), losses, probe));
        }
        let Some((_, curves, losses, probe)) =
            pictures.iter_mut().find(|(known, ..)| *known == level)
        else {
            continue;
        };
        let (name, runs) = (point.words(per.as_slice()), results.trained(point)?);
        *losses = with_seeds(losses.clone(), &name, &runs);
        let seeds = runs.iter().map(|(planned, run)| (planned.config.seed, smoothed_loss(run)));
        curves.push(Curves::of(&name, seeds.collect(), curves.len()));
        if let (Some(panel), Some((measured, _))) = (probe, also) {
            let values = mean_values(&runs, measured)?;
            let last = values.last().map_or_else(String::new, |point| outcome::number(point.1));
            *panel = panel.clone().line(Series::new(&name, values).note(last));
        }
    }
    let picture = |(level, curves, losses, probe): (&str, Vec<Curves>, Panel, Option<Panel>)| {
        let figure = plot::Figure::new(title.replace("{}", level)).subtitle(under);
        let figure = compared(figure.x(Axis::linear("step")), &curves).panel(losses);
        Part::Picture(probe.into_iter().fold(figure, plot::Figure::panel))
    };
    Ok(pictures.into_iter().map(picture).collect())
}

fn outcomes(
    results: &Results<'_>,
    title: &str,
    per: &[&str],
    norms: bool,
    under: &str,
) -> Result<Vec<Part>> {
    let mut pictures: Vec<(String, Vec<Curves>, Panel, Panel)> = Vec::new();
    for point in &results.points {
        let here =
            GridPoint(point.0.iter().filter(|(axis, _)| per.contains(axis)).copied().collect());
        let here = here.words(&[]);
        let known = pictures.iter().position(|(known, ..)| *known == here);
        let index = known.unwrap_or(pictures.len());
        if known.is_none() {
            let runs = results.grid.runs_of(results.setting, point);
            let model = runs.first().map(|planned| &planned.config.model);
            let axis = match model.is_some_and(|model| model.decoder().is_some()) {
                true => Axis::linear("training loss, nats per byte"),
                false => {
                    let unit = model.map_or("", |model| model.loss_unit());
                    Axis::log(format!("training loss, {unit}"))
                }
            };
            let (losses, norms) = (Panel::new(axis), Panel::new(Axis::log("gradient norm")));
            pictures.push((here, Vec::new(), losses.settled(), norms.settled()));
        }
        let (name, runs) = (point.words(per), results.outcomes(point)?);
        let with_median = |panel: &Panel, name: &str, curves: &[Vec<(f64, f64)>]| {
            series::with_seeds(panel.clone(), name, curves, median, number)
        };
        let of = |curve: fn(&Outcome) -> &Curve| -> Vec<_> {
            runs.iter().map(|run| calm(curve(run))).collect()
        };
        let (_, curves, losses, below) = &mut pictures[index];
        let seeds = results.grid.runs_of(results.setting, point).into_iter();
        let seeds = seeds.map(|planned| planned.config.seed).zip(of(|run| &run.losses));
        curves.push(Curves::of(&name, seeds.collect(), curves.len()));
        *losses = with_median(losses, &name, &of(|run| &run.losses));
        *below = with_median(below, &name, &of(|run| &run.norms));
    }
    let picture = |(here, curves, losses, below): (String, Vec<Curves>, Panel, Panel)| {
        let figure = plot::Figure::new(title.replace("{}", &here)).subtitle(under);
        let figure = compared(figure.x(Axis::linear("step")), &curves).panel(losses);
        Part::Picture(if norms { figure.panel(below) } else { figure })
    };
    Ok(pictures.into_iter().map(picture).collect())
}

/// A picture with a panel of the differences from the first curves, where there are others.
fn compared(figure: plot::Figure, curves: &[Curves]) -> plot::Figure {
    let figure = figure.order(curves.iter().map(|one| one.name.as_str()));
    comparison::differences(curves, false).into_iter().fold(figure, plot::Figure::panel)
}

/// The smoothed losses of a run, step by step, up to the first that is no finite number.
fn smoothed_loss(run: &Trained) -> Vec<(f64, f64)> {
    let mut curve = spikes::curves(&run.metrics).0;
    let end = curve.iter().position(|(_, loss)| !loss.is_finite());
    curve.truncate(end.unwrap_or(curve.len()));
    outcome::average(&curve, |_| 1.0 / Nats::default().alpha)
}

/// Adds the mean of several seeds and the band from the lowest to the highest, as far as all of them go.
fn with_seeds(panel: Panel, name: &str, runs: &[(RunConfig, Trained)]) -> Panel {
    let curves: Vec<_> = runs.iter().map(|(_, run)| smoothed_loss(run)).collect();
    let shortest = curves.iter().map(Vec::len).min().unwrap_or(0);
    // One point in a few is enough for a picture.
    let stride = shortest.div_ceil(200).max(1);
    let few = |curve: &Vec<(f64, f64)>| curve[..shortest].iter().copied().step_by(stride).collect();
    let curves: Vec<Vec<(f64, f64)>> = curves.iter().map(few).collect();
    series::with_seeds(panel, name, &curves, mean, |last| format!("{last:.3}"))
}

fn table(
    results: &Results<'_>,
    caption: &str,
    rows: &[&str],
    columns: &[Column],
) -> Result<Vec<Part>> {
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let mut table = Table::new(caption, &heads);
    let mut known: Vec<GridPoint> = Vec::new();
    for point in &results.points {
        let own = |(axis, _): &&(&str, _)| rows.is_empty() || rows.contains(axis);
        let row = GridPoint(point.0.iter().filter(own).copied().collect());
        if known.contains(&row) {
            continue;
        }
        let shown: Vec<String> =
            columns.iter().map(|column| column.of(results, &row, point)).collect::<Result<_>>()?;
        table.row(shown);
        known.push(row);
    }
    Ok(vec![Part::Table(table)])
}

/// A loss as tables have it; a run without one diverged.
fn number(x: f64) -> String {
    if x.is_finite() { format!("{x:.4}") } else { "diverged".to_owned() }
}

/// The mean of some losses as tables have it.
fn mean_of(values: &[f64]) -> String {
    number(mean(values).unwrap_or(f64::NAN))
}

impl Column {
    /// What stands in a row that begins with `first`.
    fn of(&self, results: &Results<'_>, row: &GridPoint, first: &GridPoint) -> Result<String> {
        let point = if self.pick.is_empty() { first } else { results.point(self.pick, row) };
        let runs = || results.trained(point);
        let values = |metric| results.values(point, metric);
        let signed = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{x:+.4}"));
        let gap = |over: Pick| -> Result<Option<Interval>> {
            let over = results.values(results.point(over, point), Metric::Loss)?;
            Ok(paired_interval(&values(Metric::Loss)?, &over, 0.95))
        };
        let share = |end: fn(&Interval) -> f64| -> Result<String> {
            let failed = values(Metric::Failed)?;
            let share = wilson(failed.iter().sum::<f64>() as u64, failed.len() as u64, 0.95);
            Ok(share.map_or_else(|| "-".into(), |share| format!("{:.1}", 100.0 * end(&share))))
        };
        let extreme = |from: f64, pick: fn(f64, f64) -> f64| -> Result<String> {
            Ok(number(values(Metric::Loss)?.into_iter().fold(from, pick)))
        };
        Ok(match self.show {
            Show::Level(axis) => point.level(axis).map_or("-", |level| level.name).to_owned(),
            Show::Number(axis) => {
                point.level(axis).map_or_else(|| "-".into(), |level| level.x.to_string())
            }
            Show::Runs => runs()?.len().to_string(),
            Show::Loss => mean_of(&values(Metric::Loss)?),
            Show::LossInterval => {
                let losses = values(Metric::Loss)?;
                match mean_interval(&losses, 0.95) {
                    Some(found) => {
                        format!("{:.4} ± {:.4}", found.estimate, found.high - found.estimate)
                    }
                    None => mean_of(&losses),
                }
            }
            Show::Lowest => extreme(f64::INFINITY, f64::min)?,
            Show::Highest => extreme(f64::NEG_INFINITY, f64::max)?,
            Show::FailedLow => share(|share| share.low)?,
            Show::FailedHigh => share(|share| share.high)?,
            Show::Mean(metric) => outcome::number(mean(&values(metric)?).unwrap_or(f64::NAN)),
            Show::Sum(metric) => values(metric)?.iter().sum::<f64>().to_string(),
            Show::Spikes => {
                format!("{:.2}", mean(&values(Metric::Spikes)?).unwrap_or(f64::NAN))
            }
            Show::Spread(probed) => spread(&values(Metric::Probed(probed))?),
            Show::Above(over) if results.point(over, point) == point => "-".into(),
            Show::Above(over) => words(gap(over)?),
            Show::Gap(over) => signed(gap(over)?.map(|gap| gap.estimate)),
            Show::GapLow(over) => signed(gap(over)?.map(|gap| gap.low)),
            Show::GapHigh(over) => signed(gap(over)?.map(|gap| gap.high)),
            Show::Thirds(probe, thirds) => {
                let measured = mean_values(&runs()?, probe)?;
                let index = (measured.len() as f64 * (f64::from(thirds) / 3.0)) as usize;
                let point = measured.get(index.min(measured.len().saturating_sub(1)));
                point.map_or_else(|| "-".into(), |point| format!("{:.4}", point.1))
            }
            Show::Rounding(part) => {
                let runs = runs()?;
                match runs.first() {
                    Some((planned, run)) if !planned.config.record.probes.is_empty() => {
                        rounding(run, part)?
                    }
                    _ => "-".into(),
                }
            }
        })
    }
}

fn rounding(run: &Trained, part: &str) -> Result<String> {
    let lines = run.probe("rounding")?;
    let of = |operand: Operand| {
        let is = |key: &Key| key.operand() == Some(operand) && key.statistic() == part;
        let mean = lines.last().and_then(|line| parts_mean(line, is));
        mean.map_or(f64::NAN, |mean| 100.0 * mean)
    };
    let [a, b, c] = [Operand::Input, Operand::Weight, Operand::GradOutput].map(of);
    Ok(format!("{a:.2} / {b:.2} / {c:.2}"))
}
