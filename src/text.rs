//! Textual forms: how formats, rounding modes and overflow policies are written, and what a wrong
//! name is answered with.
//!
//! Each has one canonical form, the same in Rust (`Display`, `FromStr`), on the command line, in
//! configuration files and in figures; canonical forms round-trip. This file holds what every
//! name in the crate shares: short strings without allocation, and the search for the nearest
//! right names.

#![forbid(unsafe_code)]

mod aliases;
mod big;
mod decimal;
mod format;
mod function;
mod layout;
mod number;
#[cfg(feature = "alloc")]
pub mod old;
mod parse;
mod rounding;
#[cfg(feature = "serde")]
mod serde;
mod value;

pub use aliases::{ALIASES, Alias, CLASHES};
pub use format::ParseFormatError;
pub use number::Number;
pub use parse::ParseNumberError;
#[cfg(feature = "serde")]
pub(crate) use serde::AsText;
#[cfg(all(feature = "serde", feature = "block"))]
pub(crate) use serde::as_text;
pub use value::Hex;

use core::fmt::{self, Write};

/// A string of at most 56 bytes, held in place. What is longer ends in `...`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Short {
    bytes: [u8; Self::CAPACITY],
    len: u8,
}

impl Short {
    const CAPACITY: usize = 56;

    /// A copy of the beginning of `text`, control characters as `?`.
    ///
    /// ```
    /// use exmy::text::Short;
    ///
    /// assert_eq!(Short::new("e4m3\n").as_str(), "e4m3?");
    /// let long = Short::new(&"long ".repeat(20));
    /// assert!(long.as_str().len() <= 56 && long.as_str().ends_with("..."));
    /// ```
    pub fn new(text: &str) -> Self {
        let mut short = Self { bytes: [0; Self::CAPACITY], len: 0 };
        for c in text.chars() {
            let c = if c.is_control() { '?' } else { c };
            // Space for the mark that something is missing stays free.
            if short.len as usize + c.len_utf8() + 3 > Self::CAPACITY {
                short.append("...");
                break;
            }
            short.append(c.encode_utf8(&mut [0; 4]));
        }
        short
    }

    /// The text of anything that can be written.
    fn of(parts: fmt::Arguments<'_>) -> Self {
        let mut short = Self { bytes: [0; Self::CAPACITY], len: 0 };
        // Names are shorter than the capacity; a longer one is cut at the part that is too long.
        let _ = short.write_fmt(parts);
        short
    }

    fn append(&mut self, text: &str) {
        let start = self.len as usize;
        self.bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len() as u8;
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.len as usize + text.len() > Self::CAPACITY {
            return Err(fmt::Error);
        }
        self.append(text);
        Ok(())
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Up to three names near a wrong one, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nearest<'a> {
    names: [&'a str; 3],
    len: usize,
}

impl<'a> Nearest<'a> {
    /// The names of `candidates` that are a few typing errors away from `given`, after those that go on
    /// behind it with a hyphen.
    ///
    /// ```
    /// use exmy::text::Nearest;
    ///
    /// // A swap of neighbours is one error, and case none.
    /// assert_eq!(Nearest::new("E4M3NF", ["e5m2", "e4m3fn", "bf16"]).names(), ["e4m3fn"]);
    /// assert_eq!(Nearest::new("mxfp8", ["mxfp4", "mxfp8-e4m3"]).names(), ["mxfp8-e4m3", "mxfp4"]);
    /// assert!(Nearest::new("xyz", ["abc"]).names().is_empty()); // no letter in common
    /// ```
    pub fn new(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(given, &mut candidates.into_iter())
    }

    /// As [`new`](Self::new), compiled once.
    fn of(given: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Self {
        let limit = (given.len() / 3).max(2);
        let mut names = [""; 3];
        let mut distances = [usize::MAX; 3];
        for name in candidates {
            // Names are looked for where none is meant, too, so what is far off by its length alone is passed
            // over.
            let goes_on = goes_on(name, given);
            if !goes_on && compared(given).len().abs_diff(compared(name).len()) > limit {
                continue;
            }
            let distance = if goes_on { 0 } else { distance_within(limit, given, name) };
            // A word that has no letter in common is no slip of another.
            let unlike = distance >= given.len().max(name.len());
            if distance > limit || unlike || names.contains(&name) {
                continue;
            }
            // Insertion behind equals keeps the order of the candidates.
            if let Some(place) = distances.iter().position(|&other| distance < other) {
                names.copy_within(place..2, place + 1);
                distances.copy_within(place..2, place + 1);
                (names[place], distances[place]) = (name, distance);
            }
        }
        let len = distances.iter().filter(|&&distance| distance != usize::MAX).count();
        Self { names, len }
    }

    /// The names.
    pub fn names(&self) -> &[&'a str] {
        &self.names[..self.len]
    }
}

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names().iter().enumerate() {
            let before = match i {
                0 => "",
                _ if i + 1 == self.len => " or ",
                _ => ", ",
            };
            write!(f, "{before}{name}")?;
        }
        Ok(())
    }
}

/// Whether a name is what was given and more behind a hyphen.
fn goes_on(name: &str, given: &str) -> bool {
    let (name, given) = (name.as_bytes(), given.as_bytes());
    !given.is_empty()
        && name.get(given.len()) == Some(&b'-')
        && name[..given.len()].eq_ignore_ascii_case(given)
}

/// Bytes at the beginning of names that are compared.
const COMPARED: usize = 63;

fn compared(name: &str) -> &[u8] {
    &name.as_bytes()[..name.len().min(COMPARED)]
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, bytes
/// compared without case (optimal string alignment distance). Only the first 63 bytes count.
///
/// ```
/// use exmy::text::edit_distance;
///
/// assert_eq!(edit_distance("e4m3nf", "E4M3FN"), 1); // a swap of neighbours, without case
/// assert_eq!(edit_distance("ca", "abc"), 3); // what was swapped is not edited again
/// ```
pub fn edit_distance(a: &str, b: &str) -> usize {
    distance_within(usize::MAX, a, b)
}

/// The same, where it is at most `limit`; else anything above.
fn distance_within(limit: usize, a: &str, b: &str) -> usize {
    let (a, b) = (compared(a), compared(b));
    let same = |i: usize, j: usize| a[i].eq_ignore_ascii_case(&b[j]);
    // Rows i - 2, i - 1 and i of the table of distances between prefixes.
    let (mut older, mut old, mut row) = ([0; COMPARED + 1], [0; COMPARED + 1], [0; COMPARED + 1]);
    for (j, entry) in old.iter_mut().enumerate() {
        *entry = j;
    }
    for i in 0..a.len() {
        row[0] = i + 1;
        for j in 0..b.len() {
            let replaced = old[j] + usize::from(!same(i, j));
            let mut best = replaced.min(old[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j) {
                best = best.min(older[j - 1] + 1);
            }
            row[j + 1] = best;
        }
        // What follows comes from these two rows, and is no less.
        let least = |row: &[usize]| row.iter().copied().min().unwrap_or(0);
        if least(&row[..=b.len()]) > limit && least(&old[..=b.len()]) > limit {
            return usize::MAX;
        }
        (older, old) = (old, row);
    }
    old[b.len()]
}

/// A name nobody has: what was asked for, the nearest right names, and how one is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownName {
    kind: &'static str,
    given: Short,
    nearest: Nearest<'static>,
    forms: &'static str,
}

impl UnknownName {
    /// `kind` names what was looked for ("rounding mode"), `forms` lists or describes the names
    /// there are.
    ///
    /// ```
    /// use exmy::text::UnknownName;
    ///
    /// let error = UnknownName::new("rounding mode", "rnn", ["rne", "odd"], "rne odd");
    /// assert_eq!(error.nearest(), ["rne"]);
    /// let text = "no rounding mode is called \"rnn\"; did you mean rne? Possible: rne odd";
    /// assert_eq!(error.to_string(), text);
    /// ```
    pub fn new(
        kind: &'static str,
        given: &str,
        candidates: impl IntoIterator<Item = &'static str>,
        forms: &'static str,
    ) -> Self {
        let nearest = Nearest::new(given, candidates);
        Self { kind, given: Short::new(given), nearest, forms }
    }

    /// The nearest right names.
    pub fn nearest(&self) -> &[&'static str] {
        self.nearest.names()
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, given, nearest, forms } = self;
        write!(f, "no {kind} is called {given:?}")?;
        match nearest.names() {
            [] => write!(f, "; possible: {forms}"),
            _ => write!(f, "; did you mean {nearest}? Possible: {forms}"),
        }
    }
}

impl core::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_worked_out_by_hand() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("e4m3nf", "e4m3fn", 1),
            ("E4M3", "e4m3", 0),
            ("ca", "abc", 3),
            ("bf61", "bf16", 1),
        ];
        for (a, b, distance) in cases {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
            assert_eq!(edit_distance(b, a), distance, "{b} {a}");
            // A search that ends early finds the same up to its limit.
            for (limit, (a, b)) in (0..5).flat_map(|limit| [(limit, (a, b)), (limit, (b, a))]) {
                let found = distance_within(limit, a, b);
                assert_eq!(found.min(limit + 1), distance.min(limit + 1), "{a} {b} {limit}");
            }
        }
    }

    #[test]
    fn nearest_are_sorted_and_few() {
        let nearest = Nearest::new("rns", ["rtz", "rne", "rnz", "rna", "odd"]);
        assert_eq!(nearest.names(), ["rne", "rnz", "rna"]);
        assert!(Nearest::new("something else", ["rtz"]).names().is_empty());
        for given in ["", "x", "\u{e9}", "xy"] {
            assert!(Nearest::new(given, ["F4", "f16"]).names().is_empty(), "{given:?}");
        }
        assert_eq!(Nearest::new("f5", ["F4"]).names(), ["F4"]);
        assert_eq!(Nearest::new("", ["-a", "a-b"]).names(), [""; 0]);
    }

    #[test]
    fn long_and_odd_names_are_cut() {
        let long = Short::new(&"\u{e9}\n".repeat(40));
        assert!(long.as_str().ends_with("...") && long.as_str().len() <= 56);
        assert!(!long.as_str().contains('\n'));
        assert_eq!(Short::new("short").as_str(), "short");
    }
}
