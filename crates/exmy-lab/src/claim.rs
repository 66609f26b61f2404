//! What a figure claims, as a value: the sentence of the criterion, the verdict and its numbers come from it.
//!
//! A [`Test`] compares grid points of a grid, runs of one seed with each other. Each has an opposite, or
//! none; a claim is contradicted where the opposite holds.

mod asks;
pub mod pooled;

pub(super) use pooled::{Paired, by_seed};

use crate::criterion::Criterion;
use crate::finding::{Findings, Power, Verdict};
use crate::grid::GridPoint;
use crate::measure::{Metric, Pick, Probed, Results};
use crate::statistics::{
    Interval, fisher, fisher_power, interval_power, mean, paired_interval, sd, sign_test,
};
pub(super) use crate::test_result::TestResult;
use crate::test_result::{all, any, every, joined};
use exmy::error::Result;

/// What is asked of runs.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// The interval of the mean paired difference of two grid points lies above 0.
    Above {
        of: Pick,
        over: Pick,
        /// Whether it also counts if some of the first diverge and none of the second.
        or_diverges: bool,
    },
    /// The mean of the paired differences of losses, of at most a guess, is above so many nats, or is not.
    Nats { of: Pick, over: Pick, least: f64, more: bool },
    /// Spikes are more in the first of each pair of seeds, by the sign test.
    Spikier { of: Pick, over: Pick },
    /// More runs fail, by Fisher's exact test.
    FailsMore { of: Pick, over: Pick },
    /// How far the first is above the second is more at one place than at another, and its interval
    /// there lies above 0.
    Wider { of: Pick, over: Pick, at: Pick, than: Pick },
    /// At most one in six neighbours on an axis, the first level the lowest, is out of order.
    Ordered { axis: &'static str },
    /// The interval of one of several lies below another. That one lies above is no opposite.
    OneBelow { of: &'static [&'static str], over: Pick },
    /// For one level of an axis.
    Any {
        axis: &'static str,
        /// Whether all levels together have the confidence of one.
        surer: bool,
        test: &'static Test,
    },
    /// For one of these levels, nothing else being said of the others.
    AnyOf { axis: &'static str, levels: &'static [&'static str], test: &'static Test },
    /// For each level of an axis.
    Each { axis: &'static str, test: &'static Test },
    /// For the last level of an axis at which there is an interval.
    Last { axis: &'static str, test: &'static Test },
    /// The same, but the opposite of one is enough.
    Every { axis: &'static str, test: &'static Test },
    /// The mean over seeds of a value lies above a bound, or below it, by its interval.
    Bound { value: PerSeed, bound: f64, above: bool },
    /// What a probe measured rises, or falls, in each run, by the test of Mann and Kendall.
    Rising { probed: Probed, of: Pick, falls: bool },
    /// No run has a spike or diverges; that one diverges is the opposite.
    Smooth,
    /// One where there is a level, another one where there is none.
    Where { level: &'static str, test: &'static Test, other: &'static Test },
    /// A metric of one grid point is claimed to be above that of another, or below, by the interval of the
    /// mean over seeds of their difference. Grid points of several levels share the batches of a seed, so
    /// that each seed counts once, with its mean over these axes.
    Pooled { metric: Metric, of: Pick, over: Pick, axes: &'static [&'static str], below: bool },
    /// The same of how much further the first is above the second at one place than at another.
    PooledWider {
        metric: Metric,
        of: Pick,
        over: Pick,
        at: Pick,
        than: Pick,
        axes: &'static [&'static str],
    },
    /// At scales at which an axis has that level; nothing is asked where it has not.
    Given { axis: &'static str, level: &'static str, test: &'static Test },
    /// The same, and how large the effect is in the paper, in the numbers of the test and in words.
    Sized { size: f64, words: &'static str, test: &'static Test },
    /// All of several; the opposite of one is enough.
    All(&'static [Test]),
    /// An analysis of its own: its criterion, and a function.
    Own { asks: &'static Criterion, judge: fn(&Results<'_>) -> Result<TestResult> },
}

/// A number for each seed.
#[derive(Clone, Copy, Debug)]
pub enum PerSeed {
    /// A metric of a grid point.
    Of(Metric, Pick),
    /// A metric of a grid point less that of another.
    Less(Metric, Pick, Pick),
    /// The same as a ratio.
    Over(Metric, Pick, Pick),
    /// What a probe measured, less the largest of what others did.
    Beyond(Probed, &'static [Probed], Pick),
    /// A sum with factors.
    Sum(&'static [(f64, Metric, Pick)]),
}

impl PerSeed {
    fn of(&self, place: &Place<'_>) -> Result<Vec<f64>> {
        let values = |pick: Pick, metric| {
            place.results.values(place.results.point(pick, &place.here), metric)
        };
        let with = |a: Vec<f64>, b: Vec<f64>, by: fn(f64, f64) -> f64| -> Vec<f64> {
            a.into_iter().zip(b).map(|(a, b)| by(a, b)).collect()
        };
        Ok(match *self {
            Self::Of(metric, pick) => values(pick, metric)?,
            Self::Less(metric, a, b) => with(values(a, metric)?, values(b, metric)?, |a, b| a - b),
            Self::Over(metric, a, b) => with(values(a, metric)?, values(b, metric)?, |a, b| a / b),
            Self::Beyond(one, others, pick) => {
                let own = values(pick, Metric::Probed(one))?;
                let mut largest = vec![f64::NEG_INFINITY; own.len()];
                for other in others {
                    largest = with(largest, values(pick, Metric::Probed(*other))?, f64::max);
                }
                with(own, largest, |a, b| a - b)
            }
            Self::Sum(terms) => {
                let mut sum = Vec::new();
                for &(factor, metric, pick) in terms {
                    let own: Vec<f64> = values(pick, metric)?.iter().map(|x| factor * x).collect();
                    sum = if sum.is_empty() { own } else { with(sum, own, |a, b| a + b) };
                }
                sum
            }
        })
    }
}

/// A test of two grid points' final losses.
pub const fn above(of: Pick, over: Pick) -> Test {
    Test::Above { of, over, or_diverges: false }
}

/// What a figure claims.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub holds: Test,
    /// The opposite, if it is not that of the test; where both hold, nothing is seen.
    pub opposite: Option<Test>,
}

impl Claim {
    /// One with the test's own opposite.
    pub const fn new(holds: Test) -> Self {
        Self { holds, opposite: None }
    }

    /// The criterion as a sentence.
    pub fn criterion(&self) -> String {
        let opposite = match &self.opposite {
            Some(test) => test.asks("", false),
            None => self.holds.asks("", true),
        };
        let holds = self.holds.asks("", false).unwrap_or_default();
        let opposite =
            opposite.map_or_else(String::new, |asks| format!("; contradicted where {asks}"));
        format!("Reproduced where {holds}{opposite}.")
    }

    /// What the runs say.
    pub fn findings(&self, results: &Results<'_>) -> Result<Findings> {
        let place = Place { results, here: GridPoint::default(), of: 1, size: None };
        let result = self.holds.judge(&place)?;
        let (holds, opposite) = match &self.opposite {
            None => (result.holds, result.opposite),
            Some(test) => {
                let opposite = test.judge(&place)?.holds;
                (result.holds && !opposite, opposite && !result.holds)
            }
        };
        let (judged, power) = (result.judged(), result.known_power());
        let verdict = Verdict::of(holds, opposite, result.text).with_power(power);
        Ok(Findings { judged, ..Findings::of(verdict, Vec::new()) })
    }
}

/// Where a test looks.
#[derive(Clone)]
struct Place<'a> {
    results: &'a Results<'a>,
    /// The levels of axes that are gone through.
    here: GridPoint,
    /// Of how many tests one is enough.
    of: usize,
    /// How large the effect is in the paper.
    size: Option<f64>,
}

impl Place<'_> {
    fn confidence(&self) -> f64 {
        1.0 - 0.05 / self.of as f64
    }

    /// What is known of the power, by that of an effect of some size.
    fn power(&self, of: impl Fn(f64) -> Option<f64>) -> Power {
        self.size.map_or(Power::UNSTATED, |size| of(size).map_or(Power::FewSeeds, Power::Share))
    }

    /// A result with the power of an interval of the mean of these values.
    fn powered(&self, result: TestResult, values: &[f64]) -> TestResult {
        let power = |size| interval_power(size, sd(values)?, values.len(), self.confidence());
        TestResult { power: self.power(power), ..result }
    }

    /// `nano: `, or nothing.
    fn prefix(&self) -> String {
        if self.here.0.is_empty() { String::new() } else { format!("{}: ", self.here.words(&[])) }
    }

    /// What tests of each level say, in order.
    fn each(&self, axis: &str, surer: bool, test: &Test) -> Result<Vec<TestResult>> {
        let axis = self.results.grid.axis(axis);
        let levels = self.results.levels(axis);
        let of = if surer { self.of * levels.len() } else { self.of };
        let at = |level| {
            test.judge(&Place { here: self.here.with(axis.name, level), of, ..self.clone() })
        };
        levels.iter().map(at).collect()
    }
}

/// A mean and its interval in words.
pub(super) fn words(gap: Option<Interval>) -> String {
    gap.map_or_else(|| "too few seeds".into(), |gap| gap.words(4))
}

fn name(pick: Pick) -> String {
    pick.join(", ")
}

impl Test {
    fn judge(&self, place: &Place<'_>) -> Result<TestResult> {
        let Place { results, here, .. } = place;
        let losses = |of: Pick, over: Pick, metric| results.pair([of, over], here, metric);
        let prefix = place.prefix();
        Ok(match self {
            Self::Above { of, over, or_diverges } => {
                let [a, b] = losses(of, over, Metric::Loss)?;
                let finite = |losses: &[f64]| losses.iter().all(|loss| loss.is_finite());
                let (of, over) = (name(of), name(over));
                if *or_diverges && finite(&b) && !finite(&a) {
                    let text = format!("{prefix}{of} diverges, {over} does not");
                    return Ok(TestResult::either(true, text));
                }
                let gap = paired_interval(&a, &b, place.confidence());
                let gaps: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                let text = format!("{prefix}{of} above {over} {}", words(gap));
                place.powered(TestResult::of(gap, text), &gaps)
            }
            Self::Nats { of, over, least, more } => {
                let [a, b] = losses(of, over, Metric::Capped)?;
                let gaps: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                let gap = mean(&gaps).unwrap_or(f64::NAN);
                let text = format!("{prefix}{} above {} {gap:+.3}", name(of), name(over));
                TestResult::either((gap > *least) == *more, text)
            }
            Self::Spikier { of, over } => spikier(place, of, over)?,
            Self::FailsMore { of, over } => {
                let pair = losses(of, over, Metric::Failed)?;
                let [a, b] =
                    pair.map(|failed| (failed.iter().sum::<f64>() as u64, failed.len() as u64));
                let level = 0.05 / place.of as f64;
                let (more, fewer) = (fisher(a, b).unwrap_or(1.0), fisher(b, a).unwrap_or(1.0));
                let text = format!(
                    "{prefix}{} of {} fail in {}, {} of {} in {} (one-sided p {:.4})",
                    a.0,
                    a.1,
                    name(of),
                    b.0,
                    b.1,
                    name(over),
                    more.min(fewer)
                );
                let power = |size| fisher_power((size, a.1), (0.0, b.1), level);
                let power = place.power(|size| Some(power(size)));
                TestResult {
                    holds: more < level,
                    opposite: fewer < level,
                    power,
                    ..TestResult::either(false, text)
                }
            }
            Self::Wider { of, over, at, than } => wider(place, [of, over], [at, than])?,
            Self::Ordered { axis } => {
                let levels = results.levels(results.grid.axis(axis));
                let points = levels.iter().map(|level| results.point(&[level.name], here));
                let means: Vec<f64> = points
                    .map(
                        |point| Ok(mean(&results.values(point, Metric::Loss)?).unwrap_or(f64::NAN)),
                    )
                    .collect::<Result<_>>()?;
                // Runs that diverge count as worse than any that do not.
                let worse = |pair: &&[f64]| pair[1] > pair[0] || !pair[1].is_finite();
                let pairs = means.len().saturating_sub(1);
                let ordered = means.windows(2).filter(worse).count();
                let text = format!("{prefix}{ordered} of {pairs} neighbours in order");
                let holds = pairs - ordered <= pairs / 6;
                TestResult::either(holds, text)
            }
            Self::OneBelow { of, over } => {
                let place = Place { of: place.of * of.len(), ..place.clone() };
                let below = |one: &'static &'static str| {
                    above(over, std::slice::from_ref(one)).judge(&place)
                };
                let all: Vec<TestResult> = of.iter().map(below).collect::<Result<_>>()?;
                let holds = all.iter().any(|result| result.holds);
                TestResult::either(holds, joined(&all))
            }
            Self::Any { axis, surer, test } => any(&place.each(axis, *surer, test)?),
            Self::AnyOf { axis, levels, test } => {
                let known = results.levels(results.grid.axis(axis)).iter();
                let all = place.each(axis, false, test)?;
                let own = known.zip(all).filter(|(level, _)| levels.contains(&level.name));
                any(&own.map(|(_, result)| result).collect::<Vec<_>>())
            }
            Self::Each { axis, test } => all(&place.each(axis, false, test)?),
            Self::Every { axis, test } => every(&place.each(axis, false, test)?),
            Self::Bound { value, bound, above } => {
                let (values, words) = (value.of(place)?, prefix + &value.words());
                let result = match above {
                    true => TestResult::above(&words, &values, *bound, ""),
                    false => TestResult::under(&words, &values, *bound, ""),
                };
                place.powered(result, &values)
            }
            Self::Rising { probed, of, falls } => {
                let series = results.series(results.point(of, here), *probed)?;
                let result = TestResult::rising(&format!("{prefix}{}", probed.what), &series);
                if *falls { result.negated() } else { result }
            }
            Self::Smooth => {
                let count = |metric| -> Result<(f64, usize)> {
                    let each = results.points.iter().map(|point| results.values(point, metric));
                    let all = each.collect::<Result<Vec<_>>>()?.concat();
                    Ok((all.iter().sum(), all.len()))
                };
                let ((diverged, runs), (spiked, _)) =
                    (count(Metric::Diverged)?, count(Metric::Spiked)?);
                let text =
                    format!("{prefix}of {runs} runs {diverged} diverge and {spiked} have spikes");
                TestResult {
                    opposite: diverged > 0.0,
                    known: runs > 0,
                    ..TestResult::either(runs > 0 && diverged + spiked == 0.0, text)
                }
            }
            Self::Where { level, test, other } => {
                let known = results.points.iter().any(|point| point.has(level));
                if known { test.judge(place)? } else { other.judge(place)? }
            }
            Self::Last { axis, test } => {
                let result = place.each(axis, false, test)?;
                let text = "too few seeds for an interval".into();
                let none = TestResult { known: false, ..TestResult::either(false, text) };
                result.into_iter().rfind(|result| result.known).unwrap_or(none)
            }
            Self::Pooled { metric, of, over, axes, below } => {
                let pair = pooled::pair(place, *metric, [*of, *over], axes)?;
                let gaps: Vec<f64> = pair[0].iter().zip(&pair[1]).map(|(a, b)| a - b).collect();
                let what = format!("{prefix}{}", pooled::what(*metric, of, over, *below));
                let result = pooled::result(&pair, *below, what);
                let text = result.text + &pooled::in_percent(*metric, &gaps);
                place.powered(TestResult { text, ..result }, &gaps)
            }
            Self::PooledWider { metric, of, over, at, than, axes } => {
                let gap = |at: Pick| pooled::gap(place, *metric, [*of, *over], at, axes);
                let what = format!(
                    "{prefix}{} minus {} with {}, minus that with {}",
                    name(of),
                    name(over),
                    name(at),
                    name(than)
                );
                pooled::result(&[gap(at)?, gap(than)?], false, what)
            }
            Self::Given { axis, level, test } => {
                let levels = results.levels(results.grid.axis(axis));
                match levels.iter().any(|known| known.name == *level) {
                    true => test.judge(place)?,
                    false => {
                        let text = format!("{prefix}no {level} at this scale");
                        TestResult::either(true, text)
                    }
                }
            }
            Self::Sized { size, words, test } => {
                let result = test.judge(&Place { size: Some(*size), ..place.clone() })?;
                let seen = match result.power {
                    Power::Share(share) => {
                        let percent = 100.0 * share;
                        format!(
                            "; the paper's effect, {words}, would be seen in {percent:.0} % of cases"
                        )
                    }
                    Power::FewSeeds | Power::NoSize(_) => String::new(),
                };
                let text = result.text + &seen;
                TestResult { text, ..result }
            }
            Self::All(tests) => {
                let result: Vec<TestResult> =
                    tests.iter().map(|test| test.judge(place)).collect::<Result<_>>()?;
                every(&result)
            }
            Self::Own { judge, .. } => judge(results)?,
        })
    }
}

/// Whether spikes are more, by pairs of seeds.
fn spikier(place: &Place<'_>, of: Pick, over: Pick) -> Result<TestResult> {
    let [a, b] = place.results.pair([of, over], &place.here, Metric::Spikes)?;
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    let prefix = place.prefix();
    let Some(signs) = sign_test(&differences) else {
        let text = format!("{prefix}no pairs");
        return Ok(TestResult { known: false, ..TestResult::either(false, text) });
    };
    let [a, b] = [a, b].map(|values| mean(&values).unwrap_or(f64::NAN));
    let text = format!(
        "{prefix}{a:.2} spikes per 1000 steps in {}, {b:.2} in {} (more on {} seeds, fewer on {}, \
         one-sided p {:.4})",
        name(of),
        name(over),
        signs.positive,
        signs.negative,
        signs.p_positive
    );
    let (holds, opposite) = (signs.p_positive < 0.05, signs.p_negative < 0.05);
    Ok(TestResult { opposite, ..TestResult::either(holds, text) })
}

/// Whether a gap is wider at the first place than at the second. Where the intervals of both gaps include 0,
/// there is no gap that could change.
fn wider(place: &Place<'_>, pair: [Pick; 2], at: [Pick; 2]) -> Result<TestResult> {
    let gaps = |at: Pick| -> Result<(Vec<f64>, bool)> {
        let picks = pair.map(|pick| [pick, at].concat());
        let [a, b] = place.results.pair([&picks[0], &picks[1]], &place.here, Metric::Loss)?;
        let above = paired_interval(&a, &b, place.confidence()).is_some_and(|gap| gap.low > 0.0);
        Ok((a.iter().zip(&b).map(|(a, b)| a - b).collect(), above))
    };
    let ((there, after), (here, before)) = (gaps(at[0])?, gaps(at[1])?);
    let found = paired_interval(&there, &here, place.confidence());
    let above = |is| if is { "is" } else { "is not" };
    let text = format!(
        "{}the gap of {} above {} with {} minus that with {}: {}; the interval of the first {} above 0, that \
         of the second {}",
        place.prefix(),
        name(pair[0]),
        name(pair[1]),
        name(at[0]),
        name(at[1]),
        words(found),
        above(after),
        above(before)
    );
    let result = TestResult::of(found, text);
    Ok(TestResult { holds: result.holds && after, opposite: result.opposite && before, ..result })
}
