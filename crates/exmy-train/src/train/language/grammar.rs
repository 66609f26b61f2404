//! Probabilistic context-free grammars over byte strings, with closed forms.
//!
//! A grammar is a list of rules `left -> right` with probabilities that sum to 1 over each left
//! side. What it says about its sentences is exact, not sampled. Let `M[A][B]` be the expected
//! number of `B` in one application of a rule of `A`. Then the expected uses `m` of every nonterminal
//! in one sentence solve `m = e_start + Mᵀ m`. The entropy of a derivation is the sum of
//! `m[A] H(A)` over the nonterminals (Grenander, "Syntax-controlled probabilities", 1967; Booth and
//! Thompson, IEEE Trans. Computers 22, 1973) and the expected length that of `m[A] bytes(A)`.
//! Both are finite if the spectral radius of `M` is below 1, which [`GrammarBuilder::build`]
//! requires.
//!
//! It also requires what makes text readable back into derivations: spellings of which none begins
//! another, no empty right side and no left recursion. That a grammar is unambiguous cannot be
//! decided in general; the [parser](super::parser) reports any text with two derivations.

mod builder;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

pub use builder::{GrammarBuilder, GrammarError};
use exmy::random::{Philox, Stream};

/// A symbol on the right side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// Is replaced by one of its own rules; the number is the order of declaration.
    Nonterminal(usize),
    /// Is spelled out; the number is the order of declaration.
    Terminal(usize),
}

/// One rule of a [`Grammar`].
#[derive(Clone, Debug)]
pub struct Production {
    /// The nonterminal it replaces.
    pub left: usize,
    /// What it is replaced by; never empty.
    pub right: Vec<Symbol>,
    /// How often, among the rules of the same left side.
    pub probability: f64,
    /// `ln probability`, by `libm`.
    pub log_probability: f64,
}

/// A probabilistic context-free grammar; see the [module](self).
#[derive(Clone, Debug)]
pub struct Grammar {
    names: Vec<String>,
    spellings: Vec<String>,
    /// Terminals in the order of their spellings.
    order: Vec<usize>,
    /// Grouped by left side.
    rules: Vec<Production>,
    ranges: Vec<Range<usize>>,
    /// Per nonterminal: terminal -> the rules that can begin with it.
    starts: Vec<HashMap<usize, Vec<usize>>>,
    /// Expected uses of each nonterminal in a sentence.
    uses: Vec<f64>,
}

impl Grammar {
    /// All rules, grouped by left side in order of declaration.
    pub fn rules(&self) -> &[Production] {
        &self.rules
    }

    /// All spellings, in order of declaration.
    pub fn spellings(&self) -> &[String] {
        &self.spellings
    }

    /// The name of a nonterminal.
    ///
    /// # Panics
    /// If there is none of this number.
    pub fn name(&self, nonterminal: usize) -> &str {
        &self.names[nonterminal]
    }

    /// The terminal that `text` begins with; by prefix-freeness there is at most one.
    pub fn terminal_at(&self, text: &[u8]) -> Option<usize> {
        // Every string between `t` and `t...` in sorted order begins with `t`, so the last spelling
        // that is not after the text is the only candidate.
        let after = self.order.partition_point(|&i| self.spellings[i].as_bytes() <= text);
        let candidate = *self.order.get(after.checked_sub(1)?)?;
        text.starts_with(self.spellings[candidate].as_bytes()).then_some(candidate)
    }

    /// The rules of `nonterminal` that can begin with `terminal`, in order.
    pub(super) fn rules_at(&self, nonterminal: usize, terminal: usize) -> &[usize] {
        self.starts[nonterminal].get(&terminal).map_or(&[], Vec::as_slice)
    }

    /// Appends the sentence that `stream` draws under `seed`. Choice `k` (leftmost derivation,
    /// counting only nonterminals with more than one rule) uses element `k` of the stream.
    pub fn generate(&self, seed: u64, stream: Stream, out: &mut Vec<u8>) {
        let philox = Philox::new(seed, stream);
        let mut choice = 0;
        let mut open = vec![Symbol::Nonterminal(0)];
        while let Some(symbol) = open.pop() {
            match symbol {
                Symbol::Terminal(i) => out.extend_from_slice(self.spellings[i].as_bytes()),
                Symbol::Nonterminal(i) => {
                    let own = &self.rules[self.ranges[i].clone()];
                    let mut chosen = own.len() - 1;
                    if own.len() > 1 {
                        let mut left = philox.uniform(choice);
                        choice += 1;
                        for (j, rule) in own[..chosen].iter().enumerate() {
                            left -= rule.probability;
                            if left < 0.0 {
                                chosen = j;
                                break;
                            }
                        }
                    }
                    open.extend(own[chosen].right.iter().rev());
                }
            }
        }
    }

    /// Entropy of a sentence's derivation, in nats: that of the sentence, if unambiguous.
    pub fn entropy(&self) -> f64 {
        self.expect(|rule| -rule.log_probability)
    }

    /// Expected length of a sentence, in bytes.
    pub fn expected_bytes(&self) -> f64 {
        self.expect(|rule| {
            let bytes = |symbol: &Symbol| match *symbol {
                Symbol::Terminal(i) => self.spellings[i].len(),
                Symbol::Nonterminal(_) => 0,
            };
            rule.right.iter().map(bytes).sum::<usize>() as f64
        })
    }

    /// Expected sum of `value` over the rules of a derivation.
    pub fn expect(&self, value: impl Fn(&Production) -> f64) -> f64 {
        self.rules.iter().map(|rule| self.uses[rule.left] * rule.probability * value(rule)).sum()
    }

    /// Which terminals each rule can begin with: the least fixed point, with a check that no
    /// nonterminal begins with itself.
    fn find_starts(&self) -> Result<Vec<HashMap<usize, Vec<usize>>>, GrammarError> {
        let n = self.names.len();
        let firsts = |i: usize| self.rules[self.ranges[i].clone()].iter().map(|rule| rule.right[0]);
        // Nonterminals in an order in which all that they begin with come before; a round that adds
        // none while some are left has found a circle.
        let mut done = vec![false; n];
        let mut begins: Vec<Vec<usize>> = vec![Vec::new(); n];
        loop {
            let ready = |i: &usize| {
                !done[*i]
                    && firsts(*i).all(|first| match first {
                        Symbol::Nonterminal(j) => done[j],
                        Symbol::Terminal(_) => true,
                    })
            };
            let Some(i) = (0..n).find(ready) else { break };
            let mut all: Vec<usize> = Vec::new();
            for first in firsts(i) {
                match first {
                    Symbol::Terminal(t) => all.push(t),
                    Symbol::Nonterminal(j) => all.extend(&begins[j]),
                }
            }
            all.sort_unstable();
            all.dedup();
            begins[i] = all;
            done[i] = true;
        }
        if let Some(i) = self.find_circle(&done) {
            return Err(GrammarError::LeftRecursion(self.names[i].clone()));
        }
        let mut starts: Vec<HashMap<usize, Vec<usize>>> = vec![HashMap::new(); n];
        for (r, rule) in self.rules.iter().enumerate() {
            let terminals = match &rule.right[0] {
                Symbol::Terminal(t) => std::slice::from_ref(t),
                Symbol::Nonterminal(j) => &begins[*j],
            };
            for &t in terminals {
                starts[rule.left].entry(t).or_default().push(r);
            }
        }
        Ok(starts)
    }

    /// A member of a circle among the nonterminals that are not `done`, each of which begins with
    /// another such one.
    fn find_circle(&self, done: &[bool]) -> Option<usize> {
        let mut at = done.iter().position(|&done| !done)?;
        // As many steps as there are nonterminals end on the circle.
        for _ in 0..self.names.len() {
            at = self.rules[self.ranges[at].clone()].iter().find_map(|rule| {
                match rule.right[0] {
                    Symbol::Nonterminal(j) if !done[j] => Some(j),
                    _ => None,
                }
            })?;
        }
        Some(at)
    }

    /// Solves for the expected uses, after a proof that they exist. If `x = 1 + M x` has a solution with
    /// `x >= 1`, the spectral radius of the non-negative `M` is below 1 (Berman and Plemmons, "Nonnegative
    /// Matrices in the Mathematical Sciences", theorem 6.2.3).
    fn find_uses(&self) -> Result<Vec<f64>, GrammarError> {
        let n = self.names.len();
        let mut forward = vec![vec![0.0; n]; n];
        for (i, row) in forward.iter_mut().enumerate() {
            row[i] = 1.0;
        }
        for rule in &self.rules {
            for symbol in &rule.right {
                if let Symbol::Nonterminal(j) = *symbol {
                    forward[rule.left][j] -= rule.probability;
                }
            }
        }
        let backward = (0..n).map(|i| (0..n).map(|j| forward[j][i]).collect()).collect();
        let sizes = solve(forward, vec![1.0; n]).ok_or(GrammarError::Supercritical)?;
        if !sizes.iter().all(|&x| x.is_finite() && x > 0.999) {
            return Err(GrammarError::Supercritical);
        }
        let mut start = vec![0.0; n];
        start[0] = 1.0;
        solve(backward, start).ok_or(GrammarError::Supercritical)
    }
}

/// One line a rule: `NP -> Det Noun [0.3]`, spellings in quotes.
impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            write!(f, "{} ->", self.names[rule.left])?;
            for symbol in &rule.right {
                match *symbol {
                    Symbol::Nonterminal(i) => write!(f, " {}", self.names[i])?,
                    Symbol::Terminal(i) => write!(f, " {:?}", self.spellings[i])?,
                }
            }
            writeln!(f, " [{:.4}]", rule.probability)?;
        }
        Ok(())
    }
}

/// Gaussian elimination with partial pivoting; `None` if a pivot vanishes.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for column in 0..n {
        let pivot =
            (column..n).max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs()))?;
        a.swap(column, pivot);
        b.swap(column, pivot);
        let top = a[column].clone();
        if top[column].abs() < 1e-300 {
            return None;
        }
        for row in column + 1..n {
            let factor = a[row][column] / top[column];
            if factor != 0.0 {
                for (x, t) in a[row].iter_mut().zip(&top).skip(column) {
                    *x -= factor * t;
                }
                b[row] -= factor * b[column];
            }
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|j| a[row][j] * b[j]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    Some(b)
}
