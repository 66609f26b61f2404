//! Whether a device's results are what a model computes, and where they are not.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{KINDS, Tiles, TilesError};
use crate::error::Error;
use crate::gemm::unit::{Coded, Explanation, Model, Rows, Unit, UnitError};

/// A result that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TileMismatch {
    /// The tile, row and column, each from 0.
    pub place: [usize; 3],
    /// The tile's kind.
    pub kind: u8,
    /// The code of the file.
    pub recorded: u64,
    /// The model's, step by step.
    pub explanation: Explanation,
}

/// What became of a file.
///
/// Its text is `N elements, M mismatches` and below it the first mismatch, term by term, with a
/// width as [`Explanation`] takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TilesVerdict {
    /// The unit that was asked.
    pub unit: Unit,
    /// Results that were compared.
    pub elements: usize,
    /// How many of them differ.
    pub mismatches: usize,
    /// The first that does.
    pub first: Option<TileMismatch>,
}

/// A tile's operands for a unit, and its results by it.
pub(super) struct Computed {
    pub(super) rows: Rows,
    pub(super) columns: Rows,
    pub(super) addends: Vec<u64>,
    pub(super) words: Vec<u32>,
    pub(super) results: Vec<u64>,
}

pub(super) fn impossible(error: UnitError) -> Error {
    Error::new("a tile without whole rows").because(error)
}

impl Tiles {
    /// The unit that a model has for the formats of this file.
    ///
    /// # Errors
    /// If addend and result differ in format, or the model does not take them.
    pub fn unit(&self, model: &Model) -> Result<Unit, Error> {
        let ([a, b], [_, _, c, d]) = (self.inputs(), self.formats());
        if c != d {
            return Err(Error::new(TilesError::Addend { c, d }.to_string()));
        }
        let unit = model.unit(a, b, d).map_err(|error| Error::new(format!("{model}: {error}")))?;
        self.check_words(&unit)?;
        Ok(unit)
    }

    /// Results have as many random words as a unit needs.
    pub(super) fn check_words(&self, unit: &Unit) -> Result<(), Error> {
        let [_, _, k] = self.shape();
        let (found, needed) = (self.words(), unit.words(k));
        if found == needed {
            return Ok(());
        }
        Err(Error::new(format!(
            "{unit} needs {needed} random words for a result of {k} elements, and the file has {found}"
        )))
    }

    /// What a unit makes of a tile.
    pub(super) fn computed(&self, unit: &Unit, tile: usize) -> Result<Computed, UnitError> {
        let [_, _, k] = self.shape();
        let ([a, b, addends, _], [a_scales, b_scales]) = (self.tile(tile), self.scales(tile));
        let rows = unit.rows(&a, &a_scales, k)?;
        let columns = unit.columns(&b, &b_scales, k)?;
        let mut results = addends.clone();
        let words = self.random_words(tile);
        unit.multiply_with(&rows, &columns, &mut results, &words);
        Ok(Computed { rows, columns, addends, words, results })
    }

    /// The same operands and addends with the results of a model.
    ///
    /// ```
    /// use exmy::vectors::tiles::Tiles;
    ///
    /// // One tile of one product: 1.5 * 2 + 1 in e5m2 and f32, its result not yet known.
    /// let mut bytes = b"EXMYTILE".to_vec();
    /// [1_u32, 0, 1, 1, 1, 4, 4, 5, 5, 1].map(|word| bytes.extend(word.to_le_bytes()));
    /// bytes.resize(80, 0);
    /// bytes.extend([0x3E, 0x40]);
    /// [1.0_f32, 0.0].map(|x| bytes.extend(x.to_le_bytes()));
    /// let tiles = Tiles::parse(bytes)?.with_results(&"hopper".parse()?)?;
    /// assert_eq!(tiles.as_bytes()[86..], 4.0_f32.to_le_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`unit`](Self::unit).
    pub fn with_results(mut self, model: &Model) -> Result<Self, Error> {
        let unit = self.unit(model)?;
        for tile in 0..self.count() {
            let results = self.computed(&unit, tile).map_err(impossible)?.results;
            self.set_results(tile, &results);
        }
        Ok(self)
    }

    /// Computes every result anew and compares, bit for bit.
    ///
    /// ```
    /// use exmy::vectors::tiles::Tiles;
    ///
    /// // One tile of one product: 1.5 * 2 + 1 in e5m2 and f32, recorded as 4.
    /// let mut bytes = b"EXMYTILE".to_vec();
    /// [1_u32, 0, 1, 1, 1, 4, 4, 5, 5, 1].map(|word| bytes.extend(word.to_le_bytes()));
    /// bytes.resize(80, 0);
    /// bytes.extend([0x3E, 0x40]);
    /// [1.0_f32, 4.0].map(|x| bytes.extend(x.to_le_bytes()));
    /// let tiles = Tiles::parse(bytes)?;
    /// assert_eq!(tiles.verify(&"hopper".parse()?)?.to_string(), "1 elements, 0 mismatches");
    /// assert!(tiles.verify(&"volta".parse()?).is_err()); // it has no 8-bit operands
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`unit`](Self::unit).
    pub fn verify(&self, model: &Model) -> Result<TilesVerdict, Error> {
        let unit = self.unit(model)?;
        let [_, n, _] = self.shape();
        let mut verdict =
            TilesVerdict { unit, elements: self.results(), mismatches: 0, first: None };
        for tile in 0..self.count() {
            let Computed { rows, columns, addends: c, words, results: sums } =
                self.computed(&unit, tile).map_err(impossible)?;
            let [_, _, _, d] = self.tile(tile);
            for (at, (computed, recorded)) in sums.iter().zip(&d).enumerate() {
                if computed == recorded {
                    continue;
                }
                verdict.mismatches += 1;
                if verdict.first.is_none() {
                    let (i, j) = (at / n, at % n);
                    let words = &words[at * self.words()..][..self.words()];
                    verdict.first = Some(TileMismatch {
                        place: [tile, i, j],
                        kind: self.kind(tile),
                        recorded: *recorded,
                        explanation: unit.explain_with(&rows.row(i), &columns.row(j), c[at], words),
                    });
                }
            }
        }
        Ok(verdict)
    }
}

impl fmt::Display for TilesVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, elements, mismatches, first } = self;
        write!(f, "{elements} elements, {mismatches} mismatches")?;
        let Some(TileMismatch { place: [tile, row, column], kind, recorded, explanation }) = first
        else {
            return Ok(());
        };
        let kind = KINDS.get(usize::from(*kind)).map_or(String::new(), |name| format!(" ({name})"));
        writeln!(f, "\n{unit}\ntile {tile}{kind}, row {row}, column {column}")?;
        writeln!(f, "recorded {}", Coded(explanation.format, *recorded))?;
        match f.width() {
            Some(width) => write!(f, "{explanation:width$}"),
            None => write!(f, "{explanation}"),
        }
    }
}
