//! Which conditions a picture has, where there are more than a reader can distinguish.
//!
//! What is drawn is chosen from the conditions that have recorded it, and the quantities that are offered
//! come from the same. A probe that only the last of a hundred runs has is offered and drawn.

use super::answer::list;
use super::condition::Condition;
use exmy::error::Result;
use std::collections::BTreeSet;

/// Lines that a reader can distinguish in a picture.
pub const MOST: usize = 36;

/// Conditions without a quantity that are named; more are counted.
const NAMED: usize = 6;

/// The conditions of one picture.
pub struct Chosen {
    /// For each quantity, the numbers of the conditions that have recorded it.
    pub having: Vec<Vec<usize>>,
    /// The numbers of the conditions that are drawn, in their order.
    pub drawn: Vec<usize>,
    /// What all of them are called, and whether they go on.
    pub all: Vec<(String, bool)>,
    /// What they are called.
    pub word: &'static str,
}

/// Whether a condition has recorded a quantity, of which `recorded` has those that are no part of a probe.
fn has(one: &Condition<'_>, recorded: &BTreeSet<String>, name: &str) -> Result<bool> {
    Ok(recorded.contains(name) || name.contains('/') && !one.curves(name)?.seeds.is_empty())
}

impl Chosen {
    /// Chooses for a picture of the quantities `names`; `recorded` is what each of the conditions has.
    pub(super) fn new(
        names: &[String],
        all: &[Condition<'_>],
        recorded: &[BTreeSet<String>],
    ) -> Result<Self> {
        let mut having = Vec::new();
        for name in names {
            let mut numbers = Vec::new();
            for (i, (one, recorded)) in all.iter().zip(recorded).enumerate() {
                if has(one, recorded, name)? {
                    numbers.push(i);
                }
            }
            having.push(numbers);
        }
        let alone = all.iter().all(|one| one.runs.len() == 1);
        let word = if alone { "runs" } else { "conditions" };
        let goes_on = |one: &Condition<'_>| one.runs.iter().any(|run| run.summary.is_none());
        let all = all.iter().map(|one| (one.name.clone(), goes_on(one))).collect();
        Ok(Self { drawn: choose(&having), having, all, word })
    }

    /// The numbers of all that are drawn.
    pub fn conditions(&self) -> &[usize] {
        &self.drawn
    }

    /// Whether any has the quantity of that number.
    pub fn has(&self, quantity: usize) -> bool {
        !self.having[quantity].is_empty()
    }

    /// The numbers of those that are drawn of a quantity.
    pub fn of(&self, quantity: usize) -> Vec<usize> {
        let is_drawn = |i: &usize| self.drawn.contains(i);
        self.having[quantity].iter().copied().filter(is_drawn).collect()
    }

    /// Which conditions have none of a quantity: by name if they are few.
    fn missing(&self, quantity: usize, name: &str) -> String {
        let (having, what) = (&self.having[quantity], words(name));
        let missing = self.all.iter().enumerate().filter(|(i, _)| !having.contains(i));
        let (names, go_on): (Vec<String>, Vec<bool>) = missing.map(|(_, one)| one.clone()).unzip();
        let have = |n: usize| if n == 1 { "has" } else { "have" };
        if names.len() <= NAMED {
            let yet = if go_on.contains(&false) { "" } else { " yet" };
            return format!("{} {} no {what}{yet}", list(&names), have(names.len()));
        }
        let (of, count, word) = (having.len(), self.all.len(), self.word);
        format!("{of} of {count} {word} {} recorded {what}", have(of))
    }

    /// What is left out of a quantity's panel, if anything is.
    pub fn remark(&self, quantity: usize, name: &str) -> Option<String> {
        let (having, drawn) = (&self.having[quantity], self.of(quantity));
        let count = self.all.len();
        let word = self.word;
        let of = having.len();
        if drawn.len() == of {
            return (of < count).then(|| self.missing(quantity, name));
        }
        let first = if having.starts_with(&drawn) { "the first " } else { "" };
        let those = if of < count { format!(" that have recorded {name}") } else { String::new() };
        Some(format!("{first}{} of {of} {word}{those}", drawn.len()))
    }
}

/// A quantity in words.
pub(super) fn words(name: &str) -> &str {
    match name {
        "loss" => "training loss",
        "val_loss" => "validation loss",
        "grad_norm" => "gradient norm",
        "lr" => "learning rate",
        other => other,
    }
}

/// Of the conditions that have each quantity, as many as a reader can distinguish: those that have most of
/// the quantities before the others, and of every quantity some.
pub fn choose(having: &[Vec<usize>]) -> Vec<usize> {
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
