//! Which kernels computed a product, and why.

use core::fmt;

use super::bf16::PairOrder;
use super::panel::{Facts, Kind};
use crate::simd::Level;

/// How many parts of a product each kernel computed. A part is a tile of up to 32 x 32 sums over a
/// slab of up to 256 positions.
///
/// Its text is a sentence:
///
/// ```
/// use exmy::gemm::Operand;
/// use exmy::gemm::fast::{Packed, Scaling, multiply};
/// use exmy::slice::{View, ViewMut};
///
/// let x = [0.5_f32; 4];
/// let (a, b) = (Operand::from(View::new(&x, 2, 2)), Operand::from(View::new(&x, 2, 2)));
/// let report = multiply(
///     &Packed::left(&a),
///     &Packed::right(&b),
///     ViewMut::new(&mut [0.0; 4], 2, 2),
///     Scaling::OVERWRITE,
/// )?;
/// assert_eq!(report.parts(), 1);
/// println!("{report}"); // 1 part: 1 by amx
/// # Ok::<(), exmy::gemm::GemmError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelReport {
    /// The level in force.
    pub level: Level,
    /// By matrix tiles.
    pub amx: u64,
    /// By dot products of pairs of bfloat16 numbers.
    pub dots: u64,
    /// By vectors of binary32, as the level has neither, or an operand was packed at another level.
    pub without_bf16: u64,
    /// By vectors, as some number needs more bits than a bfloat16 number has.
    pub wide: u64,
    /// By vectors, as there are infinities or NaN.
    pub non_finite: u64,
    /// By vectors, as there are subnormal numbers.
    pub subnormal: u64,
    /// By vectors, as a partial sum could be subnormal.
    pub tiny: u64,
}

impl KernelReport {
    pub(super) const fn new(level: Level) -> Self {
        Self {
            level,
            amx: 0,
            dots: 0,
            without_bf16: 0,
            wide: 0,
            non_finite: 0,
            subnormal: 0,
            tiny: 0,
        }
    }

    /// All parts.
    pub const fn parts(&self) -> u64 {
        self.amx + self.dots + self.vectors()
    }

    /// Parts computed by vectors of binary32.
    pub const fn vectors(&self) -> u64 {
        self.without_bf16 + self.wide + self.non_finite + self.subnormal + self.tiny
    }

    #[cfg(feature = "std")]
    pub(super) fn add(&mut self, other: &Self) {
        self.amx += other.amx;
        self.dots += other.dots;
        self.without_bf16 += other.without_bf16;
        self.wide += other.wide;
        self.non_finite += other.non_finite;
        self.subnormal += other.subnormal;
        self.tiny += other.tiny;
    }

    /// Counts a part of two slabs; whether instructions that take pairs of this order, if there are some, may
    /// compute it.
    #[inline]
    pub(super) fn count(&mut self, pairs: Option<PairOrder>, a: &Facts, b: &Facts) -> bool {
        /// Exponent of the smallest normal number.
        const SMALLEST: i32 = -126;
        let either = |kind| a.kind == kind || b.kind == kind;
        let Some(pairs) = pairs else {
            self.without_bf16 += 1;
            return false;
        };
        let place = match () {
            () if either(Kind::Wide) => &mut self.wide,
            () if either(Kind::NonFinite) => &mut self.non_finite,
            () if either(Kind::Subnormal) => &mut self.subnormal,
            () if a.last + b.last < SMALLEST => &mut self.tiny,
            () => {
                match pairs {
                    PairOrder::Neighbours => self.amx += 1,
                    PairOrder::Chains => self.dots += 1,
                }
                return true;
            }
        };
        *place += 1;
        false
    }
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        write!(f, "{parts} part{}", if parts == 1 { "" } else { "s" })?;
        let vectors = self.level.min(Level::Avx512).name();
        let mut mark = ": ";
        let mut part = |count: u64, by: &str, why: &str| {
            if count == 0 {
                return Ok(());
            }
            let before = core::mem::replace(&mut mark, ", ");
            write!(f, "{before}{count} by {by}{why}")
        };
        part(self.amx, Level::Amx.name(), "")?;
        part(self.dots, Level::Avx512Bf16.name(), "")?;
        part(self.without_bf16, vectors, " (not packed for bfloat16)")?;
        part(self.wide, vectors, " (not bfloat16)")?;
        part(self.non_finite, vectors, " (infinity or NaN)")?;
        part(self.subnormal, vectors, " (subnormal numbers)")?;
        part(self.tiny, vectors, " (partial sums could be subnormal)")
    }
}
