//! Lanes of block codes to panels by hand (AVX-512 with VBMI), 64 positions of 32 lanes at a time.
//! Packed codes of 1 to 6 or 8 bits become bytes, and bytes become bfloat16 values by a table in
//! registers. These are multiplied by block scales, and squares are transposed where the side asks
//! for it. All that is read and written stays in the first-level cache, except for codes and panels
//! themselves, which pass once.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod x86;

use super::Side;
use super::panel::{BLOCK, Facts, LANES, Line, PAIR_LINES, WIDE_LINES};

/// Stored rows of codes that are lanes.
pub(super) struct BlockCodes<'a> {
    /// Packed, row behind row.
    bytes: &'a [u8],
    /// Bits of a code.
    bits: u32,
    lanes: usize,
    depth: usize,
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "std")), expect(dead_code))]
    values: Values,
}

/// bfloat16 values of codes, low and high bytes apart.
#[cfg_attr(not(all(target_arch = "x86_64", feature = "std")), expect(dead_code))]
struct Values {
    bytes: [[u8; 256]; 2],
    /// Whether the codes from 128 on are the others' negatives, or both are NaN.
    signed: bool,
}

impl<'a> BlockCodes<'a> {
    /// If the level in force has the instructions, rows are whole bytes and blocks of [`BLOCK`]
    /// codes, and the table of values is given for all bytes.
    pub(super) fn new(
        bytes: &'a [u8],
        bits: u32,
        (lanes, depth): (usize, usize),
        halves: &[u16; 256],
    ) -> Option<Self> {
        if !available() || !matches!(bits, 1..=6 | 8) || !depth.is_multiple_of(BLOCK) {
            return None;
        }
        assert!(bytes.len() >= lanes * depth / 8 * bits as usize, "codes of all lanes");
        let (positive, negative) = halves.split_at(128);
        let signed = positive.iter().zip(negative).all(|(x, y)| {
            let nan = |half: u16| half & 0x7FFF > 0x7F80;
            x ^ y == 0x8000 && x & 0x8000 == 0 || nan(*x) && nan(*y)
        });
        let bytes_of = [halves.map(|half| half as u8), halves.map(|half| (half >> 8) as u8)];
        Some(Self { bytes, bits, lanes, depth, values: Values { bytes: bytes_of, signed } })
    }

    /// The codes of some blocks of a panel; nothing of lanes that are not there.
    fn rows(&self, panel: usize, block: usize, blocks: usize) -> [&'a [u8]; LANES] {
        let bits = self.bits as usize;
        core::array::from_fn(|lane| {
            let lane = panel * LANES + lane;
            match lane < self.lanes {
                true => {
                    let first = (lane * self.depth + block * BLOCK) / 8 * bits;
                    &self.bytes[first..first + blocks * BLOCK / 8 * bits]
                }
                false => &[],
            }
        })
    }

    /// Packs blocks of a panel as bfloat16 and returns what they are; `None`, and nothing of use in
    /// `lines`, if that loses something.
    ///
    /// # Panics
    /// If `lines` are no whole blocks, or codes or scales of those are missing.
    pub(super) fn halves(
        &self,
        (panel, block): (usize, usize),
        scales: Scales<'_>,
        side: Side,
        lines: &mut [Line],
    ) -> Option<Facts> {
        let blocks = lines.len() / PAIR_LINES;
        assert!(lines.len().is_multiple_of(PAIR_LINES));
        let rows = self.rows(panel, block, blocks);
        scales.check(&rows, blocks);
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        // SAFETY: `self` is made only where the instructions are available; of each lane there are no
        // codes, or those of all blocks, and then scales of all of them.
        unsafe {
            x86::halves(self, &rows, scales, side, lines)
        }
        #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
        unreachable!("codes are made where they can be packed, {side:?}")
    }

    /// Packs blocks of a panel as binary32.
    ///
    /// # Panics
    /// As [`halves`](Self::halves).
    pub(super) fn singles(
        &self,
        (panel, block): (usize, usize),
        scales: Scales<'_>,
        side: Side,
        lines: &mut [Line],
    ) {
        let blocks = lines.len() / WIDE_LINES;
        assert!(lines.len().is_multiple_of(WIDE_LINES));
        let rows = self.rows(panel, block, blocks);
        scales.check(&rows, blocks);
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        // SAFETY: as in `halves`.
        unsafe {
            x86::singles(self, &rows, scales, side, lines);
        }
        #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
        unreachable!("codes are made where they can be packed, {side:?}")
    }
}

/// Block scales of some blocks of the lanes of a panel.
#[derive(Clone, Copy)]
pub(super) struct Scales<'a> {
    /// Lane by lane from the first of these blocks on.
    pub(super) rows: &'a [&'a [f32]; LANES],
    /// Whether a scale is of 16 positions, else of 32.
    pub(super) sixteens: bool,
}

impl Scales<'_> {
    fn check(&self, codes: &[&[u8]; LANES], blocks: usize) {
        let needed = blocks << usize::from(self.sixteens);
        for (codes, scales) in codes.iter().zip(self.rows) {
            assert!(codes.is_empty() || scales.len() >= needed, "scales of all codes");
        }
    }
}

/// Whether the level in force and the machine have the instructions for this.
pub(super) fn available() -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    return crate::simd::level() >= crate::simd::Level::Avx512
        && is_x86_feature_detected!("avx512vbmi");
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    false
}
