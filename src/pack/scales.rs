//! Where the scale of a block lies among the others.
//!
//! *Linear* scales are a matrix, row-major, next to row-major elements: the scale of block `c` in
//! row `r` is at `r * cols + c`. For MX and NVFP4, cuBLAS and CUTLASS read *tiles* of 128 rows and
//! 4 columns, 512 bytes each, tiles along a row fastest. Within a tile 16 bytes hold the 4 columns
//! of rows `r`, `r + 32`, `r + 64` and `r + 96`. CUTLASS writes that as shape ((32, 4), 4), stride
//! ((16, 4), 1); torchao calls it `to_blocked`. Rows are padded to 128 and columns to 4, with
//! zeros.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::PackError;
use crate::text::UnknownName;

/// Rows and columns of a tile, and its bytes.
const TILE: (usize, usize) = (128, 4);
const TILE_BYTES: usize = 512;

/// The order of block scales in memory; see the [definitions](self).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ScaleLayout {
    /// Row-major.
    #[default]
    Linear,
    /// In tiles of 128 rows and 4 columns.
    Tiled,
}

/// The place of scale (`r`, `c`) of a matrix of `cols` columns in tiles of 128 x 4.
///
/// # Panics
/// If the place exceeds `usize` in a build with overflow checks.
///
/// ```
/// use exmy::pack::scales;
///
/// assert_eq!(scales::offset(1, 0, 4), 16); // the next row is 16 bytes away
/// assert_eq!(scales::offset(32, 0, 4), 4); // and row 32 lies between
/// assert_eq!(scales::offset(0, 4, 5), 512); // five columns are two tiles
/// assert_eq!(scales::offset(128, 0, 5), 1024);
/// ```
pub const fn offset(r: usize, c: usize, cols: usize) -> usize {
    let tile = r / TILE.0 * cols.div_ceil(TILE.1) + c / TILE.1;
    tile * TILE_BYTES + r % 32 * 16 + r % TILE.0 / 32 * 4 + c % TILE.1
}

impl ScaleLayout {
    /// All layouts.
    pub const ALL: [Self; 2] = [Self::Linear, Self::Tiled];

    /// Its name.
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// assert_eq!(ScaleLayout::ALL.map(ScaleLayout::name), ["linear", "128x4"]);
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Tiled => "128x4",
        }
    }

    /// Rows and columns with their padding; `None` beyond `usize`.
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// assert_eq!(ScaleLayout::Tiled.padded(129, 3), Some((256, 4)));
    /// assert_eq!(ScaleLayout::Linear.padded(129, 3), Some((129, 3)));
    /// ```
    pub const fn padded(self, rows: usize, cols: usize) -> Option<(usize, usize)> {
        match self {
            Self::Linear => Some((rows, cols)),
            Self::Tiled => {
                match (rows.checked_next_multiple_of(TILE.0), cols.checked_next_multiple_of(TILE.1))
                {
                    (Some(rows), Some(cols)) => Some((rows, cols)),
                    _ => None,
                }
            }
        }
    }

    /// Bytes that `rows` x `cols` scales of a byte take; `None` beyond `usize`.
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// assert_eq!(ScaleLayout::Linear.len(1, 1), Some(1));
    /// assert_eq!(ScaleLayout::Tiled.len(1, 1), Some(512)); // a whole tile
    /// ```
    pub const fn len(self, rows: usize, cols: usize) -> Option<usize> {
        match self.padded(rows, cols) {
            Some((rows, cols)) => rows.checked_mul(cols),
            None => None,
        }
    }

    fn wrong(self, needed: Option<usize>, found: usize, rows: usize, cols: usize) -> PackError {
        let (container, needed) = (self.name(), needed.unwrap_or(usize::MAX));
        PackError::Scales { container, needed, found, rows, cols }
    }

    fn check(self, found: usize, rows: usize, cols: usize) -> Result<(), PackError> {
        match self.len(rows, cols) {
            Some(needed) if needed == found => Ok(()),
            needed => Err(self.wrong(needed, found, rows, cols)),
        }
    }

    /// Brings a row-major matrix of scales into the layout.
    ///
    /// # Errors
    /// If `scales` is not `rows * cols` long, or `out` not [`len`](Self::len).
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// let mut out = [0xFF; 512];
    /// ScaleLayout::Tiled.pack_into(&[1, 2, 3, 4, 5, 6], 2, 3, &mut out)?;
    /// assert_eq!(out[..4], [1, 2, 3, 0]); // the fourth column is padding
    /// assert_eq!(out[16..20], [4, 5, 6, 0]);
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn pack_into(
        self,
        scales: &[u8],
        rows: usize,
        cols: usize,
        out: &mut [u8],
    ) -> Result<(), PackError> {
        Self::Linear.check(scales.len(), rows, cols)?;
        self.check(out.len(), rows, cols)?;
        match self {
            Self::Linear => out.copy_from_slice(scales),
            Self::Tiled => {
                out.fill(0);
                for (r, row) in scales.chunks_exact(cols.max(1)).enumerate() {
                    for (c, four) in row.chunks(TILE.1).enumerate() {
                        let at = offset(r, c * TILE.1, cols);
                        out[at..at + four.len()].copy_from_slice(four);
                    }
                }
            }
        }
        Ok(())
    }

    /// The scales in new bytes.
    ///
    /// # Errors
    /// If `scales` is not `rows * cols` long, or the padded matrix exceeds `usize`.
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// let tiled = ScaleLayout::Tiled.pack(&[1, 2, 3, 4, 5, 6], 2, 3)?;
    /// assert_eq!((tiled.len(), &tiled[16..20]), (512, &[4, 5, 6, 0][..]));
    /// assert_eq!(ScaleLayout::Tiled.unpack(&tiled, 2, 3)?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn pack(self, scales: &[u8], rows: usize, cols: usize) -> Result<Vec<u8>, PackError> {
        Self::Linear.check(scales.len(), rows, cols)?;
        let len = self.len(rows, cols).ok_or(self.wrong(None, 0, rows, cols))?;
        let mut out = vec![0; len];
        self.pack_into(scales, rows, cols, &mut out)?;
        Ok(out)
    }

    /// Brings scales of the layout back into a row-major matrix; padding is dropped unseen.
    ///
    /// # Errors
    /// As [`pack_into`](Self::pack_into).
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// let tile: Vec<u8> = (0..512).map(|i| (i / 4) as u8).collect();
    /// let mut scales = [0; 34 * 2];
    /// ScaleLayout::Tiled.unpack_into(&tile, 34, 2, &mut scales)?;
    /// assert_eq!(scales[..4], [0, 0, 4, 4]); // rows 0 and 1
    /// assert_eq!(scales[64..], [1, 1, 5, 5]); // rows 32 and 33
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn unpack_into(
        self,
        bytes: &[u8],
        rows: usize,
        cols: usize,
        scales: &mut [u8],
    ) -> Result<(), PackError> {
        Self::Linear.check(scales.len(), rows, cols)?;
        self.check(bytes.len(), rows, cols)?;
        match self {
            Self::Linear => scales.copy_from_slice(bytes),
            Self::Tiled => {
                for (r, row) in scales.chunks_exact_mut(cols.max(1)).enumerate() {
                    for (c, four) in row.chunks_mut(TILE.1).enumerate() {
                        let at = offset(r, c * TILE.1, cols);
                        four.copy_from_slice(&bytes[at..at + four.len()]);
                    }
                }
            }
        }
        Ok(())
    }

    /// The row-major matrix in a new vector.
    ///
    /// # Errors
    /// As [`unpack_into`](Self::unpack_into).
    ///
    /// ```
    /// use exmy::pack::ScaleLayout;
    ///
    /// // Six bytes are a row-major matrix, but no tile.
    /// assert!(ScaleLayout::Linear.unpack(&[0; 6], 2, 3).is_ok());
    /// assert!(ScaleLayout::Tiled.unpack(&[0; 6], 2, 3).is_err());
    /// ```
    pub fn unpack(self, bytes: &[u8], rows: usize, cols: usize) -> Result<Vec<u8>, PackError> {
        self.check(bytes.len(), rows, cols)?;
        // The padded matrix is in memory, so the smaller one's size is no surprise.
        let mut scales = vec![0; rows * cols];
        self.unpack_into(bytes, rows, cols, &mut scales)?;
        Ok(scales)
    }
}

impl fmt::Display for ScaleLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ScaleLayout {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|layout| layout.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names = Self::ALL.into_iter().map(Self::name);
            UnknownName::new("layout of scales", text, names, "linear, 128x4")
        })
    }
}
