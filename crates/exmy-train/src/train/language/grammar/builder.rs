//! Rules as they are written down, and what makes a grammar of them.
//!
//! Weights become probabilities by division by their sum; every condition that the [grammar's
//! page](super) states is checked here or in what it calls, and a refusal names the culprit.

use std::fmt;

use super::{Grammar, Production, Symbol};

/// Why a list of rules is no [`Grammar`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarError {
    /// There is no nonterminal at all.
    NoStart,
    /// A nonterminal has no rule.
    NoRule(String),
    /// A rule of this nonterminal has an empty right side.
    EmptyRule(String),
    /// A rule of this nonterminal has a weight that is not positive and finite.
    Weight(String),
    /// This nonterminal can begin with itself.
    LeftRecursion(String),
    /// The first spelling begins the second (or is empty).
    NotPrefixFree(String, String),
    /// The expected length of a derivation is infinite.
    Supercritical,
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStart => f.write_str("a grammar needs a nonterminal to start from"),
            Self::NoRule(name) => write!(f, "`{name}` has no rule"),
            Self::EmptyRule(name) => write!(f, "a rule of `{name}` has an empty right side"),
            Self::Weight(name) => {
                write!(f, "a rule of `{name}` has a weight that is not positive and finite")
            }
            Self::LeftRecursion(name) => write!(f, "`{name}` can begin with itself"),
            Self::NotPrefixFree(a, b) => write!(f, "the spelling {a:?} begins {b:?}"),
            Self::Supercritical => f.write_str("derivations have no finite expected length"),
        }
    }
}

impl std::error::Error for GrammarError {}

/// Collects the parts of a [`Grammar`]. The first nonterminal declared is the start.
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    names: Vec<String>,
    spellings: Vec<String>,
    rules: Vec<(usize, f64, Vec<Symbol>)>,
}

impl GrammarBuilder {
    /// Declares a nonterminal.
    pub fn nonterminal(&mut self, name: impl Into<String>) -> Symbol {
        self.names.push(name.into());
        Symbol::Nonterminal(self.names.len() - 1)
    }

    /// Declares a terminal by its spelling, including what separates it from the next.
    pub fn terminal(&mut self, spelling: impl Into<String>) -> Symbol {
        self.spellings.push(spelling.into());
        Symbol::Terminal(self.spellings.len() - 1)
    }

    /// Adds `left -> right`, as probable as its part of the weights of all rules of `left`.
    ///
    /// # Panics
    /// If `left` is a terminal, or a symbol was declared to another builder.
    pub fn rule(&mut self, left: Symbol, weight: f64, right: &[Symbol]) {
        let Symbol::Nonterminal(left) = left else { panic!("a terminal has no rules") };
        let known = |symbol: &Symbol| match *symbol {
            Symbol::Nonterminal(i) => i < self.names.len(),
            Symbol::Terminal(i) => i < self.spellings.len(),
        };
        assert!(left < self.names.len() && right.iter().all(known), "an undeclared symbol");
        self.rules.push((left, weight, right.to_vec()));
    }

    /// Checks and normalizes.
    ///
    /// # Errors
    /// The first [`GrammarError`] found.
    pub fn build(self) -> Result<Grammar, GrammarError> {
        let Self { names, spellings, rules: listed } = self;
        if names.is_empty() {
            return Err(GrammarError::NoStart);
        }
        let mut rules: Vec<Production> = Vec::with_capacity(listed.len());
        let mut ranges = Vec::with_capacity(names.len());
        for (left, name) in names.iter().enumerate() {
            let own = || listed.iter().filter(|rule| rule.0 == left);
            if own().next().is_none() {
                return Err(GrammarError::NoRule(name.clone()));
            }
            let total: f64 = own().map(|rule| rule.1).sum();
            let first = rules.len();
            for (_, weight, right) in own() {
                if right.is_empty() {
                    return Err(GrammarError::EmptyRule(name.clone()));
                }
                let probability = weight / total;
                if !(*weight > 0.0 && total.is_finite() && probability > 0.0) {
                    return Err(GrammarError::Weight(name.clone()));
                }
                let log_probability = libm::log(probability);
                rules.push(Production { left, right: right.clone(), probability, log_probability });
            }
            ranges.push(first..rules.len());
        }

        let mut order: Vec<usize> = (0..spellings.len()).collect();
        order.sort_by(|&a, &b| spellings[a].cmp(&spellings[b]));
        if let Some(&first) = order.first().filter(|&&i| spellings[i].is_empty()) {
            let other = order.get(1).map_or(first, |&i| i);
            return Err(GrammarError::NotPrefixFree(String::new(), spellings[other].clone()));
        }
        // Whatever begins another also begins its own successor in sorted order.
        for pair in order.windows(2) {
            let [a, b] = [&spellings[pair[0]], &spellings[pair[1]]];
            if b.starts_with(a.as_str()) {
                return Err(GrammarError::NotPrefixFree(a.clone(), b.clone()));
            }
        }

        let mut grammar = Grammar {
            names,
            spellings,
            order,
            rules,
            ranges,
            starts: Vec::new(),
            uses: Vec::new(),
        };
        grammar.starts = grammar.find_starts()?;
        grammar.uses = grammar.find_uses()?;
        Ok(grammar)
    }
}
