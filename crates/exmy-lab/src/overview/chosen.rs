//! Which runs a picture has, where there are more than a reader can distinguish.
//!
//! What is drawn is chosen from the runs that have recorded it, and the quantities that are offered come from
//! the same runs: a probe that only the last of a hundred runs has is offered and drawn.

use crate::gather::RecordedRun;
use exmy::error::Result;
use std::collections::BTreeSet;

/// Runs whose lines a reader can distinguish in a picture.
pub(super) const MOST: usize = 36;

/// The runs of one picture.
pub(super) struct Chosen {
    /// For each quantity, the numbers of the runs that have recorded it.
    having: Vec<Vec<usize>>,
    /// The numbers of the runs that are drawn, in their order.
    runs: Vec<usize>,
    /// How many runs there are.
    count: usize,
}

/// Whether a run has recorded a quantity, of which `recorded` has those that are no part of a probe.
fn has(run: &RecordedRun, recorded: &BTreeSet<String>, name: &str) -> Result<bool> {
    Ok(recorded.contains(name) || name.contains('/') && !run.curve(name)?.is_empty())
}

impl Chosen {
    /// Chooses for a picture of the quantities `names`; `recorded` is what each of the runs has.
    pub(super) fn new(
        names: &[String],
        runs: &[RecordedRun],
        recorded: &[BTreeSet<String>],
    ) -> Result<Self> {
        let mut having = Vec::new();
        for name in names {
            let mut numbers = Vec::new();
            for (i, (run, recorded)) in runs.iter().zip(recorded).enumerate() {
                if has(run, recorded, name)? {
                    numbers.push(i);
                }
            }
            having.push(numbers);
        }
        Ok(Self { runs: choose(&having), having, count: runs.len() })
    }

    /// The numbers of all runs that are drawn.
    pub(super) fn runs(&self) -> &[usize] {
        &self.runs
    }

    /// Whether any run has the quantity of that number.
    pub(super) fn has(&self, quantity: usize) -> bool {
        !self.having[quantity].is_empty()
    }

    /// The numbers of the runs that are drawn of a quantity.
    pub(super) fn of(&self, quantity: usize) -> Vec<usize> {
        let is_drawn = |i: &usize| self.runs.contains(i);
        self.having[quantity].iter().copied().filter(is_drawn).collect()
    }

    /// What is left out of a quantity's panel, if anything is.
    pub(super) fn remark(&self, quantity: usize, name: &str) -> Option<String> {
        let (having, drawn, count) = (&self.having[quantity], self.of(quantity), self.count);
        let of = having.len();
        if drawn.len() == of {
            let have = if of == 1 { "has" } else { "have" };
            return (of < count).then(|| format!("{of} of {count} runs {have} recorded {name}"));
        }
        let first = if having.starts_with(&drawn) { "the first " } else { "" };
        let those = if of < count { format!(" that have recorded {name}") } else { String::new() };
        Some(format!("{first}{} of {of} runs{those}", drawn.len()))
    }
}

/// Of the runs that have each quantity, as many as a reader can distinguish: those that have most of the
/// quantities before the others, and of every quantity some.
fn choose(having: &[Vec<usize>]) -> Vec<usize> {
    let mut all: Vec<usize> = having.iter().flatten().copied().collect();
    let shares = |i: usize| having.iter().filter(|numbers| numbers.contains(&i)).count();
    all.sort_unstable();
    all.dedup();
    if all.len() <= MOST {
        return all;
    }
    let mut ranked: Vec<(usize, usize)> = all.iter().map(|&i| (shares(i), i)).collect();
    ranked.sort_by_key(|&(shares, i)| (std::cmp::Reverse(shares), i));
    let mut chosen = BTreeSet::new();
    while chosen.len() < MOST {
        for numbers in having {
            let next = ranked
                .iter()
                .map(|&(_, i)| i)
                .find(|i| numbers.binary_search(i).is_ok() && !chosen.contains(i));
            chosen.extend(next.filter(|_| chosen.len() < MOST));
        }
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(having: &[Vec<usize>], count: usize) -> Chosen {
        Chosen { runs: choose(having), having: having.to_vec(), count }
    }

    #[test]
    fn those_are_drawn_that_have_it() {
        let all: Vec<usize> = (0..110).collect();
        let of_all = chosen(std::slice::from_ref(&all), 110);
        assert_eq!(of_all.of(0), (0..36).collect::<Vec<_>>());
        assert_eq!(of_all.remark(0, "loss").unwrap(), "the first 36 of 110 runs");
        let late = chosen(&[vec![109]], 110);
        assert_eq!((late.of(0), late.has(0)), (vec![109], true));
        assert_eq!(late.remark(0, "sharpness").unwrap(), "1 of 110 runs has recorded sharpness");
        let half = chosen(&[(50..110).collect()], 110);
        assert_eq!(half.of(0), (50..86).collect::<Vec<_>>());
        let text = "the first 36 of 60 runs that have recorded sharpness";
        assert_eq!(half.remark(0, "sharpness").unwrap(), text);
        assert!(!chosen(&[vec![]], 3).has(0));
        assert_eq!(chosen(&[(0..36).collect()], 36).remark(0, "loss"), None);
    }

    #[test]
    fn every_panel_has_some_and_all_together_no_more_than_differ() {
        let all: Vec<usize> = (0..110).collect();
        // One run has both: it is drawn in both panels.
        let both = chosen(&[all, vec![109]], 110);
        assert_eq!((both.runs().len(), both.of(1)), (MOST, vec![109]));
        assert_eq!(both.remark(0, "loss").unwrap(), "36 of 110 runs");
        // No run has both.
        let apart = chosen(&[(0..50).collect(), (50..60).collect()], 60);
        assert_eq!((apart.of(0).len(), apart.of(1).len()), (26, 10));
    }
}
