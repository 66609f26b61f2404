//! The words: syllables by seed, endings by category.
//!
//! Words are drawn, but what they end in shows their category, so no word can be of two:
//!
//! | category | form | example |
//! |---|---|---|
//! | noun | stem, class vowel (`a`, `i`, `o`), plural `n` | `tera`, `teran` |
//! | verb | stem, class vowel of its subject, `t` (singular) or `m` (plural) | `dorat`, `dorim` |
//! | adjective, adverb | stem, `u` or `e` | `pelu`, `gade` |
//! | determiner | consonant, vowel, `l` | `tel` |
//! | opening word | capital, vowel, consonant, vowel, `k` | `Dorak` |
//! | closing word | consonant, vowel, `s` and a full stop, question or exclamation mark | `bas.` |
//!
//! `wo` introduces a relative clause; `w` begins no other word. Frequent words are short, as in
//! natural languages: stems of the first ranks have three letters, the rest five.

use std::collections::HashSet;

use exmy::random::{Philox, Stream};

const CONSONANTS: &[u8; 14] = b"bdfgklmnprstvz";
const VOWELS: &[u8; 5] = b"aeiou";

/// Stems of up to this rank are short.
const SHORT_RANKS: usize = 16;

/// Draws letters and never returns a stem twice.
pub(super) struct Stems {
    philox: Philox,
    drawn: u64,
    seen: HashSet<String>,
}

impl Stems {
    /// The stems of a seed, in the order in which they are asked for.
    pub(super) fn new(seed: u64) -> Self {
        let philox = Philox::new(seed, Stream::new("language.lexicon"));
        Self { philox, drawn: 0, seen: HashSet::new() }
    }

    /// A new stem of consonants (`c`) and vowels (`v`) as `pattern` says. Stems of different
    /// `category` may coincide.
    pub(super) fn stem(&mut self, category: &str, pattern: &str) -> String {
        loop {
            let stem: String = pattern
                .bytes()
                .map(|kind| {
                    let letters: &[u8] = if kind == b'v' { VOWELS } else { CONSONANTS };
                    let letter = self.philox.below(self.drawn, letters.len() as u64);
                    self.drawn += 1;
                    char::from(letters[letter as usize])
                })
                .collect();
            if self.seen.insert(format!("{category} {stem}")) {
                return stem;
            }
        }
    }

    /// `count` stems of a category by rank, the first ones short.
    pub(super) fn ranked(&mut self, category: &str, count: usize) -> Vec<String> {
        (0..count)
            .map(|rank| self.stem(category, if rank < SHORT_RANKS { "cvc" } else { "cvcvc" }))
            .collect()
    }
}

/// Zipf's law as Mandelbrot shifted it, with exponent 1: the weight of a rank counted from 0.
pub(super) fn zipf(rank: usize) -> f64 {
    1.0 / (rank as f64 + 2.0)
}
