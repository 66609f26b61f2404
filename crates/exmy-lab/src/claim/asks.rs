//! Claims in words.

use super::{PerSeed, Test, name};
use crate::measure::{Metric, Pick};

impl PerSeed {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Of(metric, pick) => format!("the {}{}", metric.name(), within(pick)),
            Self::Less(metric, a, b) => {
                format!("the {} of {} minus that of {}", metric.name(), name(a), name(b))
            }
            Self::Over(metric, a, b) => {
                format!("the {} of {} over that of {}", metric.name(), name(a), name(b))
            }
            Self::Beyond(one, others, pick) => {
                let of = within(pick);
                let others: Vec<&str> = others.iter().map(|other| other.what).collect();
                let largest = if others.len() > 1 { "the largest of " } else { "" };
                format!("the {} minus {largest}{}{of}", one.what, others.join(", "))
            }
            Self::Sum(terms) => {
                let term = |(factor, metric, pick): &(f64, Metric, Pick)| {
                    format!("{factor} x the {} of {}", metric.name(), name(pick))
                };
                terms.iter().map(term).collect::<Vec<_>>().join(" + ")
            }
        }
    }
}

/// ` in GLA`, or nothing of the grid point at hand.
fn within(pick: Pick) -> String {
    if pick.is_empty() { String::new() } else { format!(" in {}", name(pick)) }
}

impl Test {
    /// What is asked in words, of the opposite `None` if there is none; where one of all levels of `axis`
    /// is enough, and all together are to be as sure as one.
    pub(super) fn asks(&self, axis: &str, opposite: bool) -> Option<String> {
        let side = if opposite { "below" } else { "above" };
        let verb = |metric: Metric| metric.verbs()[usize::from(opposite)];
        let sure = match axis {
            "" => String::new(),
            axis => format!(", surer as one of all {axis}s is enough"),
        };
        Some(match self {
            Self::Above { of, over, or_diverges } => {
                let diverged =
                    if *or_diverges && !opposite { ", or some of its runs diverge" } else { "" };
                format!(
                    "{} {} {} (interval of the paired difference {side} 0{sure}{diverged})",
                    name(of),
                    verb(Metric::Loss),
                    name(over)
                )
            }
            Self::Nats { of, over, least, more } => {
                if opposite {
                    return None;
                }
                let how = if *more { "more than" } else { "at most" };
                format!("{} ends {how} {least} nats above {}", name(of), name(over))
            }
            Self::Spikier { of, over } => {
                let (of, over) = (name(of), name(over));
                format!(
                    "{of} {} {over} (sign test over seeds, one-sided, 5 %)",
                    verb(Metric::Spikes)
                )
            }
            Self::FailsMore { of, over } => {
                let (of, over) = (name(of), name(over));
                let verb = verb(Metric::Failed);
                format!("{of} {verb} {over} (Fisher's exact test, one-sided, 5 %{sure})")
            }
            Self::Wider { of, over, at, than } => {
                let (wider, there) = if opposite { ("narrower", than) } else { ("wider", at) };
                format!(
                    "the gap of {} above {} is {wider} with {} than with {} (interval of the difference \
                     of paired gaps {side} 0) and the interval of the gap with {} excludes 0",
                    name(of),
                    name(over),
                    name(at),
                    name(than),
                    name(there)
                )
            }
            Self::Ordered { axis } => {
                if opposite {
                    return None;
                }
                format!("each {axis} ends above the one before it, but for at most one in six")
            }
            Self::OneBelow { of, over } => {
                if opposite {
                    return None;
                }
                format!(
                    "one of {} ends below {} (interval of the paired difference below 0, at {} % as \
                     there are {})",
                    of.join(", "),
                    name(over),
                    percent(of.len()),
                    of.len()
                )
            }
            Self::Any { axis, surer, test } => {
                let inner = test.asks(if *surer { axis } else { "" }, opposite)?;
                format!("at one {axis} at least, {inner}")
            }
            Self::AnyOf { axis, levels, test } => {
                let inner = test.asks("", opposite)?;
                format!("at one {axis} of {}, {inner}", levels.join(" and "))
            }
            Self::Each { axis, test } => format!("for each {axis}, {}", test.asks("", opposite)?),
            Self::Every { axis, test } => {
                let each = if opposite { "at one" } else { "for each" };
                format!("{each} {axis}, {}", test.asks("", opposite)?)
            }
            Self::Bound { value, bound, above } => {
                let side = if *above == opposite { "below" } else { "above" };
                format!("{} is {side} {bound} (interval of the mean over seeds)", value.words())
            }
            Self::Rising { probed, of, falls } => {
                let verb = if *falls == opposite { "rises" } else { "falls" };
                let of = if of.is_empty() { String::new() } else { format!(" of {}", name(of)) };
                format!(
                    "the {}{of} {verb} in each run (test of Mann and Kendall, one-sided, 5 %)",
                    probed.what
                )
            }
            Self::Smooth if opposite => "one diverges".to_owned(),
            Self::Smooth => "no run has a spike or diverges".to_owned(),
            Self::Where { level, test, other } => {
                let [test, other] = [test, other].map(|test| test.asks(axis, opposite));
                format!("{}, or, where {level} is not run, {}", test?, other?)
            }
            Self::Last { axis, test } => {
                let inner = test.asks("", opposite)?;
                format!("at the last {axis} at which no run diverges, {inner}")
            }
            Self::Pooled { metric, of, over, axes, below } => {
                let low = *below != opposite;
                format!(
                    "{} {} {} (95 % interval of the paired difference {} 0; each seed counts once, with its \
                     mean over {})",
                    name(of),
                    metric.verbs()[usize::from(low)],
                    name(over),
                    if low { "below" } else { "above" },
                    axes.join(", ")
                )
            }
            Self::PooledWider { metric, of, over, at, than, axes } => format!(
                "{} {} {} by {} with {} than with {} (95 % interval without 0; each seed counts once, with \
                 its mean over {})",
                name(of),
                metric.verbs()[0],
                name(over),
                if opposite { "less" } else { "more" },
                name(at),
                name(than),
                axes.join(", ")
            ),
            Self::Given { level, test, .. } => {
                format!("where there is {level}, {}", test.asks(axis, opposite)?)
            }
            Self::All(tests) => {
                let all: Vec<String> =
                    tests.iter().filter_map(|test| test.asks(axis, opposite)).collect();
                if all.is_empty() {
                    return None;
                }
                all.join(if opposite { ", or " } else { ", and " })
            }
            Self::Sized { test, .. } => test.asks(axis, opposite)?,
            Self::Own { asks, .. } if opposite => asks.opposite()?,
            Self::Own { asks, .. } => match (asks.note)() {
                note if note.is_empty() => asks.holds(),
                note => format!("{} ({note})", asks.holds()),
            },
        })
    }
}

/// How sure each of so many intervals is, in percent, if all together are to be at 95 %.
fn percent(of: usize) -> String {
    format!("{:.1}", 100.0 - 5.0 / of as f64)
}
