//! How packed operands lie in memory.
//!
//! A *panel* is [`LANES`] rows of the left operand or columns of the right one, cut along the sum into
//! *blocks* of [`BLOCK`] and *slabs* of [`SLAB`]. What is missing at the edges is zero. A block of
//! bfloat16 is two AMX tiles, 16 lanes each. A left tile has a line of 32 numbers for each lane. A
//! right one has a line for each pair of neighbours along the sum, with that pair of all 16 lanes. Dot
//! products want other [pairs](super::bf16::PairOrder) at the same places. A block of binary32 is
//! 32 x 32 numbers, lane by lane (left) or position by position (right). Everything is a whole number
//! of 64-byte lines.

#![allow(unsafe_code)]

use crate::simd::kernel;

/// Rows or columns of a panel.
pub(super) const LANES: usize = 32;
/// Positions along the sum that two chains share.
pub(super) const BLOCK: usize = 32;
/// 32 x 32 numbers.
pub(super) type Square = [f32; BLOCK * LANES];
/// Positions along the sum about which one decision is taken.
pub(super) const SLAB: usize = 256;

/// Lines of a block of bfloat16.
pub(super) const PAIR_LINES: usize = 32;
/// Lines of a block of binary32.
pub(super) const WIDE_LINES: usize = 64;

/// 64 bytes at a multiple of 64.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Line([u32; 16]);

impl Line {
    pub(super) const ZERO: Self = Self([0; 16]);

    /// Two neighbouring numbers of bfloat16.
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    #[inline(always)]
    pub(super) fn pair(&self, at: usize) -> u32 {
        self.0[at]
    }

    pub(super) fn words(&mut self) -> &mut [u32; 16] {
        &mut self.0
    }
}

/// Lines as halves of words: bfloat16 numbers.
pub(super) fn halves(lines: &[Line]) -> &[u16] {
    // SAFETY: a line is 64 initialized bytes without padding, and any bytes are such numbers, whose
    // alignment is smaller.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 32) }
}

/// As [`halves`], to write.
pub(super) fn halves_mut(lines: &mut [Line]) -> &mut [u16] {
    // SAFETY: as above, and the borrow is exclusive; any numbers are a line.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 32) }
}

/// Lines as binary32 numbers.
pub(super) fn singles(lines: &[Line]) -> &[f32] {
    // SAFETY: as in `halves`.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16) }
}

/// As [`singles`], to write.
pub(super) fn singles_mut(lines: &mut [Line]) -> &mut [f32] {
    // SAFETY: as in `halves_mut`.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 16) }
}

/// What has to be known of a slab of a panel to choose the kernel of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    /// Exponent of the last bit that the numbers use: all are multiples of two to it. The largest
    /// number if all are zero.
    pub(super) last: i32,
    /// All magnitudes are below two to it.
    pub(super) top: i32,
}

/// What the numbers of a slab are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// bfloat16 numbers, finite, none subnormal.
    Normal,
    /// bfloat16 numbers, finite, some subnormal.
    Subnormal,
    /// bfloat16 numbers with infinities or NaN.
    NonFinite,
    /// Some need more bits than a bfloat16 number has, or nobody looked.
    Wide,
}

impl Facts {
    pub(super) const WIDE: Self = Self { kind: Kind::Wide, last: i32::MIN / 4, top: i32::MAX / 4 };

    /// The same of numbers whose last bit may be anywhere.
    pub(super) fn with_any_last(self) -> Self {
        Self { last: i32::MIN / 4, ..self }
    }

    /// Of bfloat16 numbers.
    pub(super) fn of(halves: &[u16]) -> Self {
        let (any, least, most) = extremes(halves);
        Self::of_extremes(any, least, most)
    }

    /// Of bfloat16 numbers of which the bits that any magnitude has, the least one less one (zero has
    /// the largest) and the largest are known.
    pub(super) fn of_extremes(any: u16, least: u16, most: u16) -> Self {
        const INFINITY: u16 = 0x7F80;
        if most == 0 {
            return Self { kind: Kind::Normal, last: i32::MAX / 4, top: i32::MIN / 4 };
        }
        // Zero wrapped around, so that it is not the least.
        let least = least.wrapping_add(1);
        let kind = match () {
            () if most >= INFINITY => Kind::NonFinite,
            () if least < 0x0080 => Kind::Subnormal,
            () => Kind::Normal,
        };
        // Of all mantissas together at least so many low bits are zero.
        let spare = (any & 0x7F | 0x80).trailing_zeros() as i32;
        let exponent = |half: u16| i32::from(half >> 7).max(1) - 127;
        Self { kind, last: exponent(least) - 7 + spare, top: exponent(most) + 1 }
    }
}

kernel! {
    /// The bits that any of the numbers has, the least magnitude less one (zero has the largest),
    /// and the largest magnitude.
    fn extremes<'a>(halves: &'a [u16]) -> (u16, u16, u16) {
        const WIDTH: usize = 128;
        let (mut any, mut least, mut most) = ([0_u16; WIDTH], [u16::MAX; WIDTH], [0_u16; WIDTH]);
        // Slabs are whole lines, and whole blocks more than this.
        let (chunks, rest) = halves.as_chunks::<WIDTH>();
        for chunk in chunks {
            for i in 0..WIDTH {
                let magnitude = chunk[i] & 0x7FFF;
                any[i] |= magnitude;
                least[i] = least[i].min(magnitude.wrapping_sub(1));
                most[i] = most[i].max(magnitude);
            }
        }
        for (i, half) in rest.iter().enumerate() {
            let magnitude = half & 0x7FFF;
            any[i] |= magnitude;
            least[i] = least[i].min(magnitude.wrapping_sub(1));
            most[i] = most[i].max(magnitude);
        }
        let mut all = (0_u16, u16::MAX, 0_u16);
        for i in 0..WIDTH {
            all = (all.0 | any[i], all.1.min(least[i]), all.2.max(most[i]));
        }
        all
    }
}
