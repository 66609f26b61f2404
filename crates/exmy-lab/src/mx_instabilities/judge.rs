//! How claims of the MX study are judged: means of paired differences by their intervals, counts by sign tests,
//! with the numbers in words. No claim is given both chances.

use crate::finding::Verdict;
use crate::statistics::{Interval, Signs, mean, paired_interval, sign_test};

/// Which way paired runs differ, at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The first are above the second.
    Above,
    /// They are below.
    Below,
    /// Neither can be told.
    Neither,
}

/// A comparison of paired values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Paired {
    pub(super) side: Side,
    pub(super) mean: f64,
    pub(super) interval: Option<Interval>,
    pub(super) signs: Option<Signs>,
    pairs: usize,
}

impl Paired {
    /// Compares the two of each pair. A side needs the 95 % interval of the mean difference to exclude 0; signs
    /// are told and decide nothing.
    pub(super) fn of(first: &[f64], second: &[f64]) -> Self {
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let interval = paired_interval(first, second, 0.95);
        let signs = sign_test(&differences);
        let mean = mean(&differences).unwrap_or(f64::NAN);
        let side = match interval {
            Some(interval) if interval.low > 0.0 => Side::Above,
            Some(interval) if interval.high < 0.0 => Side::Below,
            _ => Side::Neither,
        };
        Self { side, mean, interval, signs, pairs: differences.len() }
    }

    /// The same of natural logarithms: a difference of 0.1 is some 10 %.
    pub(super) fn of_logarithms(first: &[f64], second: &[f64]) -> Self {
        let ln = |values: &[f64]| values.iter().map(|value| libm::log(*value)).collect::<Vec<_>>();
        Self::of(&ln(first), &ln(second))
    }

    /// `+0.12 [0.03, 0.21], 5 of 6 pairs above`.
    pub(super) fn words(&self) -> String {
        let interval = self.interval.map_or_else(String::new, |interval| {
            format!(" [{:+.3}, {:+.3}]", interval.low, interval.high)
        });
        let above = self.signs.map_or(0, |signs| signs.positive);
        format!("{:+.3}{interval}, {above} of {} pairs above 0", self.mean, self.pairs)
    }

    /// The verdict on the claim that the first are on a `side` of the second.
    pub(super) fn verdict(&self, claimed: Side, text: String) -> Verdict {
        verdict(self.side, claimed, text)
    }
}

/// The mean over cells of each seed; cells without a value are left out. Cells share the batches of a seed, so that each
/// seed counts once.
pub(super) fn by_seed(cells: &[Vec<f64>]) -> Vec<f64> {
    let seeds = cells.iter().map(Vec::len).max().unwrap_or(0);
    let of = |seed: usize| {
        let values = cells.iter().filter_map(|cell| cell.get(seed).copied());
        mean(&values.filter(|value| !value.is_nan()).collect::<Vec<_>>())
    };
    (0..seeds).filter_map(of).collect()
}

/// The verdict on a claim of a side.
pub(super) fn verdict(found: Side, claimed: Side, text: String) -> Verdict {
    match found {
        Side::Neither => Verdict::NotSeen(text),
        found if found == claimed => Verdict::Reproduced(text),
        _ => Verdict::Contradicted(text),
    }
}

/// The verdict on a claim that signs are above 0 more often than below (sign test, p at most 0.05).
pub(super) fn by_signs(signs: &[f64], text: String) -> Verdict {
    let test = sign_test(signs);
    let by = |p: fn(Signs) -> f64| test.is_some_and(|test| p(test) <= 0.05);
    Verdict::of(by(|test| test.p_positive), by(|test| test.p_negative), text)
}

/// The verdict of several that all must hold: contradicted if one is, reproduced if all are.
pub(super) fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let verdicts: Vec<Verdict> = verdicts.into_iter().collect();
    let text = verdicts.iter().map(Verdict::reason).collect::<Vec<_>>().join("; ");
    let is = |kind: fn(&Verdict) -> bool| verdicts.iter().filter(|v| kind(v)).count();
    if is(|verdict| matches!(verdict, Verdict::Contradicted(_))) > 0 {
        Verdict::Contradicted(text)
    } else if is(|verdict| matches!(verdict, Verdict::Reproduced(_))) == verdicts.len() {
        Verdict::Reproduced(text)
    } else {
        Verdict::NotSeen(text)
    }
}

/// The verdict of the first of several settings, with what was seen in the others.
pub(super) fn first_of(verdicts: &[Verdict]) -> Verdict {
    let Some((first, others)) = verdicts.split_first() else {
        return Verdict::NotSeen("nothing was tried".into());
    };
    let mut text = first.reason().to_owned();
    for other in others {
        text += &format!("; not judged ({}): {}", other.word(), other.reason());
    }
    first.with(text)
}

/// The verdict on a claim that rests on a detector: whatever it says of the runs, nothing is seen unless it
/// fires where it must.
pub(super) fn controlled(fired: bool, control: &str, verdict: Verdict) -> Verdict {
    let text = format!("{}; positive control: {control}", verdict.reason());
    if fired { verdict.with(text) } else { Verdict::NotSeen(format!("{text}, which did not fire")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_alone_decide_nothing() {
        let zeros = [0.0; 10];
        assert_eq!(Paired::of(&[1.0, 1.1, 1.2], &zeros[..3]).side, Side::Above);
        assert_eq!(Paired::of(&zeros[..3], &[1.0, 1.1, 1.2]).side, Side::Below);
        // Nine of ten are above (p 0.02), and their mean is not told from 0.
        let mut most = [0.1; 10];
        most[3] = -3.0;
        let compared = Paired::of(&most, &zeros);
        assert!(compared.signs.is_some_and(|signs| signs.p_two_sided < 0.05));
        assert_eq!(compared.side, Side::Neither);
        assert_eq!(Paired::of(&[1.0], &[0.0]).side, Side::Neither);
    }
}
