//! Conditions side by side in panels: what each measured, and how far it is from the one it is compared with.
//!
//! Curves of number formats nearly coincide, and runs of one seed see the same batches. So the difference is
//! taken step by step within a seed, in per cent, and what is drawn is its mean over seeds with a band from
//! the lowest seed to the highest. Axes are fitted to where the curves end up ([`Panel::settled`]).

use crate::plot::{Axis, Band, Panel, Series, smooth};
use crate::statistics::mean;
use crate::table::{gap_percent, number};
use std::collections::BTreeMap;

/// The curve of a seed: steps and values.
type Points = Vec<(f64, f64)>;

/// What one condition measured of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The condition.
    pub name: String,
    /// Seeds and what each measured.
    pub seeds: Vec<(u64, Points)>,
    /// The number of the condition that this one is compared with.
    pub base: Option<usize>,
    /// What stands behind the name instead of the last value.
    pub end: Option<String>,
}

impl Curves {
    /// What the `index`-th condition of a picture measured, in which all are compared with the first.
    pub(crate) fn of(name: &str, seeds: Vec<(u64, Points)>, index: usize) -> Self {
        Self { name: name.to_owned(), seeds, base: (index > 0).then_some(0), end: None }
    }
}

/// A noisy curve as an average that looks back over a tenth of the steps so far, so that the steep start is
/// not dragged along, and over a thirtieth of the run at most.
pub(crate) fn calm(points: &[(f64, f64)]) -> Points {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let most = values.len() as f64 / 30.0;
    let smoothed = smooth(&values, |i| (i as f64 / 10.0).min(most).max(1.0));
    points.iter().map(|point| point.0).zip(smoothed).collect()
}

/// The curves of the seeds that have begun, up to the last step that all of them have. Beyond it a mean would
/// be of other seeds than before, and bend where nothing happened. A seed that has no more than its value
/// before the first step has not begun, unless none has.
fn in_common(seeds: &[(u64, Points)]) -> Vec<(u64, Points)> {
    let last = |points: &Points| points.last().map(|point| point.0);
    let has_begun = |points: &Points| last(points) > Some(0.0);
    let some_have = seeds.iter().any(|(_, points)| has_begun(points));
    let begun = seeds.iter().filter(|(_, points)| !some_have || has_begun(points));
    let end = begun.clone().filter_map(|(_, points)| last(points)).fold(f64::INFINITY, f64::min);
    let until = |points: &Points| points.iter().copied().filter(|point| point.0 <= end).collect();
    begun.map(|(seed, points)| (*seed, until(points))).collect()
}

/// Steps that all seeds have, with the mean, the lowest and the highest of the seeds.
pub fn over_seeds(seeds: &[(u64, Points)]) -> Vec<(f64, f64, f64, f64)> {
    let seeds = in_common(seeds);
    let mut steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for &(x, y) in seeds.iter().flat_map(|(_, points)| points) {
        steps.entry(x as u64).or_default().push(y);
    }
    steps.retain(|_, values| values.len() == seeds.len());
    let of = |(step, values): (u64, Vec<f64>)| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_whole = values.iter().all(|value| value.is_finite());
        let middle = if is_whole { mean(&values).unwrap_or(f64::NAN) } else { f64::NAN };
        (step as f64, middle, low, high)
    };
    steps.into_iter().map(of).collect()
}

/// Adds a condition: the mean of its seeds, and of several the band about it.
fn add(panel: Panel, name: &str, seeds: &[(u64, Points)], note: impl Fn(f64) -> String) -> Panel {
    let all = over_seeds(seeds);
    let band = Band::new(name, all.iter().map(|&(x, _, low, high)| (x, low, high)));
    let panel = if seeds.len() > 1 { panel.band(band) } else { panel };
    // Of several seeds one may have diverged; the line ends before that step.
    let last = all.iter().rfind(|point| seeds.len() == 1 || point.1.is_finite()).or(all.last());
    let last = last.map_or_else(String::new, |&(_, mean, ..)| note(mean));
    panel.line(Series::new(name, all.iter().map(|&(x, mean, ..)| (x, mean))).note(last))
}

/// The panel of what was measured; of one seed each also the raw values, faintly.
pub fn values(axis: Axis, all: &[Curves], noisy: bool) -> Panel {
    let mut panel = Panel::new(axis).settled();
    for one in all {
        let common = in_common(&one.seeds);
        let calmed = || common.iter().map(|(seed, points)| (*seed, calm(points))).collect();
        let seeds: Vec<(u64, Points)> = if noisy { calmed() } else { one.seeds.clone() };
        if let ([(_, raw)], true) = (&one.seeds[..], noisy) {
            panel = panel.faint(Series::new(&one.name, raw.iter().copied()));
        }
        let note = |last: f64| one.end.clone().unwrap_or_else(|| number(last));
        panel = add(panel, &one.name, &seeds, note);
    }
    panel
}

/// How far a condition is from the one it is compared with, in per cent, seed by seed; nothing where that one
/// has no value above 0 to compare with.
pub fn differences_of(one: &Curves, all: &[Curves], noisy: bool) -> Option<Vec<(u64, Points)>> {
    let base = &all[one.base?];
    let mut found = Vec::new();
    for (seed, points) in &one.seeds {
        let Some((_, other)) = base.seeds.iter().find(|(known, _)| known == seed) else { continue };
        if other.iter().any(|&(_, y)| y <= 0.0) {
            return None;
        }
        // Averages look back by the length of a curve: both end at the same step.
        let last = |points: &Points| points.last().map_or(f64::NEG_INFINITY, |point| point.0);
        let end = last(points).min(last(other));
        let of = |points: &Points| -> Points {
            let until = points.iter().copied().filter(|point| point.0 <= end).collect::<Points>();
            if noisy { calm(&until) } else { until }
        };
        let other: BTreeMap<u64, f64> = of(other).iter().map(|&(x, y)| (x as u64, y)).collect();
        let gap = |(x, y): (f64, f64)| Some((x, gap_percent(y, *other.get(&(x as u64))?)));
        found.push((*seed, of(points).into_iter().filter_map(gap).collect()));
    }
    found.retain(|(_, points): &(u64, Points)| !points.is_empty());
    (!found.is_empty()).then_some(found)
}

/// The panel of the differences; `None` where nothing is compared.
pub fn differences(all: &[Curves], noisy: bool) -> Option<Panel> {
    let compared: Vec<(&Curves, Vec<(u64, Points)>)> =
        all.iter().filter_map(|one| Some((one, differences_of(one, all, noisy)?))).collect();
    let bases: Vec<&str> =
        compared.iter().filter_map(|(one, _)| Some(&*all[one.base?].name)).collect();
    let first = *bases.first()?;
    let label = match bases.iter().all(|base| *base == first) {
        true => format!("difference from {first}, %"),
        false => "difference from the first recipe at the same settings, %".to_owned(),
    };
    // Of runs that fail everyone sees that; the axis is for those that do not.
    let last = |seeds: &[(u64, Points)]| -> f64 {
        over_seeds(seeds).last().map_or(f64::NAN, |point| point.1)
    };
    let far = |seeds: &[(u64, Points)]| last(seeds).is_nan() || last(seeds).abs() > FAR;
    let (beyond, near): (Vec<_>, Vec<_>) = compared.iter().partition(|(_, seeds)| far(seeds));
    let axis = match (beyond.is_empty(), range(&near)) {
        (false, Some([low, high])) => Axis::linear(label).range(low, high),
        _ => Axis::linear(label),
    };
    let mut panel = Panel::new(axis).settled();
    for (one, seeds) in &compared {
        let note = |last: f64| one.end.clone().unwrap_or_else(|| format!("{last:+.2} %"));
        panel = add(panel, &one.name, seeds, note);
    }
    Some(panel.rule(0.0, ""))
}

/// A name with places and the value of each seed there.
pub(crate) type BySeed = (String, Vec<(f64, Vec<f64>)>);

/// The panel of the differences of values at places from those of the first name: seed by seed, the mean and
/// the range of the seeds. `None` where there is nothing to compare.
pub(crate) fn gaps(all: &[BySeed]) -> Option<Panel> {
    let ((first, base), others) = all.split_first()?;
    let mut panel = Panel::new(Axis::linear(format!("difference from {first}, %")));
    let mut is_empty = true;
    for (name, points) in others {
        let gaps = points.iter().filter_map(|(x, values)| {
            let (_, other) =
                base.iter().find(|(at, other)| at == x && other.len() == values.len())?;
            let gaps = values.iter().zip(other).map(|(own, other)| gap_percent(*own, *other));
            let gaps: Vec<f64> = gaps.collect();
            let low = gaps.iter().copied().fold(f64::INFINITY, f64::min);
            let high = gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Some((*x, mean(&gaps)?, low, high))
        });
        let gaps: Vec<(f64, f64, f64, f64)> = gaps.filter(|gap| gap.1.is_finite()).collect();
        let Some(last) = gaps.last() else { continue };
        let note = format!("{:+.2} %", last.1);
        panel = panel
            .band(Band::new(name, gaps.iter().map(|&(x, _, low, high)| (x, low, high))))
            .line(Series::new(name, gaps.iter().map(|gap| (gap.0, gap.1))).note(note));
        is_empty = false;
    }
    (!is_empty).then(|| panel.rule(0.0, ""))
}

/// A difference, in per cent, beyond which a condition does not decide what an axis shows.
const FAR: f64 = 100.0;

/// Where the last nine tenths of some differences lie, with some room; `None` of none.
fn range(all: &[&(&Curves, Vec<(u64, Points)>)]) -> Option<[f64; 2]> {
    let points = || all.iter().flat_map(|(_, seeds)| seeds).flat_map(|(_, points)| points);
    let end = points().map(|point| point.0).fold(0.0, f64::max);
    let ys = points().filter(|point| point.0 >= end / 10.0).map(|point| point.1);
    let [low, high] = ys
        .filter(|y| y.is_finite())
        .fold([0.0_f64, 0.0_f64], |[low, high], y| [low.min(y), high.max(y)]);
    let room = (high - low) / 12.0;
    (high > low).then_some([low - room, high + room])
}

/// The first condition before each one that has exactly its values.
pub fn twins(all: &[Curves]) -> Vec<Option<usize>> {
    let same = |a: &Curves, b: &Curves| !a.seeds.is_empty() && a.seeds == b.seeds;
    (0..all.len()).map(|i| (0..i).find(|&j| same(&all[i], &all[j]))).collect()
}

/// The only value that all of some curves ever have, if there is one.
pub fn constant(all: &[Curves]) -> Option<f64> {
    let mut values =
        all.iter().flat_map(|one| &one.seeds).flat_map(|(_, points)| points).map(|point| point.1);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}
