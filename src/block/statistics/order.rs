//! The order in which the sums of pieces are added, as [`Statistics`](super::Statistics) defines it.

use super::BAND;
use super::lanes::Sums;

/// The rows of a band.
#[derive(Default)]
pub(crate) struct Band {
    rows: [Sums; BAND],
}

impl Band {
    /// Adds a piece of row `i` of the matrix; those of a row come from left to right.
    pub(in crate::block) fn add(&mut self, i: usize, piece: Sums) {
        self.rows[i % BAND].add(piece);
    }

    pub(in crate::block) fn total(&self) -> Sums {
        self.rows.iter().fold(Sums::default(), added)
    }
}

/// The sum of the pieces of a matrix, row-major, so many a row.
pub(crate) fn ordered(pieces: &[Sums], of_row: usize) -> Sums {
    let bands = pieces.chunks((of_row * BAND).max(1)).map(|rows| {
        let mut band = Band::default();
        for (i, row) in rows.chunks(of_row).enumerate() {
            row.iter().for_each(|piece| band.add(i, *piece));
        }
        band.total()
    });
    bands.fold(Sums::default(), |all, band| added(all, &band))
}

fn added(mut all: Sums, more: &Sums) -> Sums {
    all.add(*more);
    all
}
