//! What the numbers of a packed operand are: counts that explain a [`KernelReport`](super::KernelReport), and
//! the largest magnitude.
//!
//! They are those of the panels, of which a pass costs a fraction of what packing them did, and nobody who
//! does not ask has it made. What fills panels up at their edges is zero and is taken off again.

use super::pack::{Packed, SlabNumbers};
use super::panel::{BLOCK, LANES, halves, singles};
use crate::simd::kernel;

/// What the images of an operand are, binary32 numbers: code times block scale, without the tensor's
/// scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// All images.
    pub count: u64,
    /// Zeros of either sign.
    pub zeros: u64,
    /// Subnormal binary32 numbers.
    pub subnormals: u64,
    /// Infinities, those of [`overflows`](Self::overflows) included.
    pub infinities: u64,
    /// NaN.
    pub nans: u64,
    /// Finite values whose products with finite scales are infinite.
    pub overflows: u64,
    /// The largest finite magnitude; 0 if there is none.
    pub amax: f32,
}

impl Packed {
    /// What the images are; those of a scan of the dequantized tensor, where that has no tensor scale.
    /// An operand of which nothing could be packed has none.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::gemm::Operand;
    /// use exmy::gemm::fast::Packed;
    ///
    /// // 448 2^120 and 2^-9 2^120, beyond binary32 and not; then 0 and, by a scale of 2^-127, 2^-127.
    /// let (format, mut codes) = (BlockFormat::MXFP8_E4M3, vec![0x38; 64]);
    /// (codes[0], codes[1], codes[32]) = (0x7E, 0x01, 0x80);
    /// let scales = vec![127 + 120, 0];
    /// let x = BlockTensor::from_parts(format, Axis::Cols, (1, 64), codes, scales, None)?;
    /// let counts = Packed::left(&Operand::from(&x)).counts();
    /// assert_eq!((counts.count, counts.zeros, counts.subnormals), (64, 1, 31));
    /// assert_eq!((counts.infinities, counts.overflows, counts.amax), (1, 1, 2.0_f32.powi(120)));
    /// # Ok::<(), exmy::block::PartsError>(())
    /// ```
    pub fn counts(&self) -> Counts {
        if self.wrong().is_some() {
            return Counts::default();
        }
        let mut total = Counts { overflows: self.overflows(), ..Counts::default() };
        let mut most = 0;
        for (panel, slab) in
            (0..self.panels()).flat_map(|i| (0..self.slabs_of_panel()).map(move |j| (i, j)))
        {
            let tally = match self.numbers(panel, slab) {
                SlabNumbers::Halves(_, lines) => tally(halves(lines)),
                SlabNumbers::Singles(lines) => tally(singles(lines)),
            };
            total.zeros += u64::from(tally.zeros);
            total.subnormals += u64::from(tally.subnormals);
            total.infinities += u64::from(tally.infinities);
            total.nans += u64::from(tally.nans);
            most = most.max(tally.most);
        }
        total.count = (self.lanes() * self.depth()) as u64;
        let places = self.panels() * LANES * self.depth().next_multiple_of(BLOCK);
        total.zeros -= places as u64 - total.count;
        total.amax = f32::from_bits(most);
        total
    }
}

/// A packed number.
trait Number: Copy {
    /// The bits of its magnitude as binary32.
    fn magnitude(self) -> u32;
}

impl Number for u16 {
    #[inline(always)]
    fn magnitude(self) -> u32 {
        u32::from(self & 0x7FFF) << 16
    }
}

impl Number for f32 {
    #[inline(always)]
    fn magnitude(self) -> u32 {
        self.abs().to_bits()
    }
}

/// The counts of a slab, which has fewer numbers than a lane can count.
#[derive(Clone, Copy, Default)]
struct Tally {
    zeros: u32,
    subnormals: u32,
    infinities: u32,
    nans: u32,
    /// Bits of the largest finite magnitude.
    most: u32,
}

kernel! {
    fn tally<'a, T: Number>(numbers: &'a [T]) -> Tally {
        const INFINITY: u32 = 0x7F80_0000;
        numbers.iter().fold(Tally::default(), |mut tally, number| {
            let size = number.magnitude();
            let finite = if size < INFINITY { size } else { 0 };
            tally.zeros += u32::from(size == 0);
            tally.subnormals += u32::from(size.wrapping_sub(1) < 0x7F_FFFF);
            tally.infinities += u32::from(size == INFINITY);
            tally.nans += u32::from(size > INFINITY);
            tally.most = if finite > tally.most { finite } else { tally.most };
            tally
        })
    }
}
