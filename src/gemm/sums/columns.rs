//! The orders in accumulators of other formats, all columns of a row at a time, for numbers that are
//! binary32.
//!
//! A product of two such numbers is a binary64 number, a sum of two numbers may not be one. It is
//! rounded *to odd* then: a number between two neighbours becomes the one whose last bit is 1. Any
//! rounding to at most 51 bits takes that for the number itself. This is by Boldo and Melquiond,
//! "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE
//! Transactions on Computers 57, 2008. The error of a rounded sum, by which that is decided, is Knuth's
//! TwoSum. The second rounding is [`Converter`]'s, of many sums at once. The plain form is the
//! definition, and tests compare the two.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::transposed;
use crate::format::Format;
use crate::gemm::accumulation::{Order, Sum};
use crate::gemm::rows::ExactRows;
use crate::quantizer::Cast;
use crate::round::Rounding;
use crate::simd::kernel;
use crate::slice::Converter;

/// Operands whose numbers are all binary32, and what adds their products.
pub(in crate::gemm) struct ColumnSums {
    part: RoundedOrder,
    /// Products of a part, and the accumulator that parts are added to.
    promote: Option<(usize, Accumulator)>,
    /// Rows of A.
    a: Vec<f32>,
    /// Rows of B, that is numbers of equal k side by side.
    b: Vec<f32>,
    k: usize,
    n: usize,
}

/// An order of rounded operations.
struct RoundedOrder {
    order: Order,
    by: Accumulator,
}

/// What binary64 numbers are rounded by.
enum Accumulator {
    Binary32,
    /// bfloat16 as hardware has it, which a training step may ask for billions of times.
    Bfloat16,
    Other(Box<Converter<'static>>),
}

impl Accumulator {
    /// `None` for formats that leave fewer than two of 53 bits, or whose range is not well inside
    /// binary64. Also `None` for stochastic modes, which count their random words sum by sum, and for
    /// rounding down, where a sum of zero is -0.
    fn new(cast: Cast) -> Option<Self> {
        let fits = cast.format.is_exact_in_f32()
            && !cast.rounding.is_stochastic()
            && cast.rounding != Rounding::TowardNegative;
        let is = |format| cast == Cast::new(format);
        fits.then(|| match cast {
            _ if is(Format::F32) => Self::Binary32,
            _ if is(Format::BF16) => Self::Bfloat16,
            _ => Self::Other(Box::new(Converter::from(cast))),
        })
    }

    fn round(&self, sums: &mut [f64]) {
        match self {
            Self::Binary32 => to_binary32(sums),
            Self::Bfloat16 => to_bfloat16(sums),
            Self::Other(converter) => converter.fake_quantize(sums),
        }
    }

    /// Adds terms to sums.
    fn add(&self, sums: &mut [f64], terms: &[f64]) {
        add(sums, terms);
        self.round(sums);
    }
}

impl ColumnSums {
    /// `None` if a number is not binary32, or an accumulator none for which this works.
    pub(in crate::gemm) fn new(
        part: &Sum,
        promote: Option<(u32, Cast)>,
        a: &ExactRows,
        b: &ExactRows,
    ) -> Option<Self> {
        let part = RoundedOrder { order: part.order, by: Accumulator::new(part.accumulator)? };
        let promote = match promote {
            Some((every, into)) => Some((every as usize, Accumulator::new(into)?)),
            None => None,
        };
        let (x, y) = (a.as_f32()?, b.as_f32()?);
        Some(Self { part, promote, a: x, b: transposed(&y, b.count, b.k), k: a.k, n: b.count })
    }

    /// The sums of row `i` of A with every column of B.
    pub(in crate::gemm) fn row_into(&self, i: usize, sums: &mut [f64]) {
        let Self { part, promote, b, k, n, .. } = self;
        let a = &self.a[i * k..(i + 1) * k];
        let Some((every, into)) = promote else { return part.sum(a, b, sums) };
        let mut one = vec![0.0; *n];
        sums.fill(0.0);
        for (a, b) in a.chunks(*every).zip(b.chunks(every.saturating_mul(*n).max(1))) {
            part.sum(a, b, &mut one);
            into.add(sums, &one);
        }
    }
}

impl RoundedOrder {
    /// The sums of numbers of A with as many rows of B.
    fn sum(&self, a: &[f32], b: &[f32], sums: &mut [f64]) {
        let n = sums.len();
        let rows = || a.iter().zip(b.chunks(n.max(1)));
        sums.fill(0.0);
        match self.order {
            Order::Fma => rows().for_each(|(a, b)| self.fused(*a, b, sums)),
            Order::MulAdd => {
                let mut terms = vec![0.0; n];
                for (a, b) in rows() {
                    multiply(*a, b, &mut terms);
                    self.by.round(&mut terms);
                    self.by.add(sums, &terms);
                }
            }
            Order::Pairwise => {
                let mut terms = vec![0.0; a.len() * n];
                for ((a, b), terms) in rows().zip(terms.chunks_mut(n.max(1))) {
                    multiply(*a, b, terms);
                }
                self.by.round(&mut terms);
                let mut count = a.len();
                while count > 1 {
                    for i in 0..count / 2 {
                        terms.copy_within(2 * i * n..(2 * i + 1) * n, i * n);
                        let (sums, rest) = terms.split_at_mut((i + 1) * n);
                        self.by.add(&mut sums[i * n..], &rest[i * n..(i + 1) * n]);
                    }
                    if count % 2 == 1 {
                        terms.copy_within((count - 1) * n..count * n, count / 2 * n);
                    }
                    count = count.div_ceil(2);
                }
                if count == 1 {
                    sums.copy_from_slice(&terms[..n]);
                }
            }
            Order::Blocked(len) => {
                let (len, mut part) = (len as usize, vec![0.0; n]);
                let blocks = a.chunks(len).zip(b.chunks(len.saturating_mul(n).max(1)));
                for (i, (a, b)) in blocks.enumerate() {
                    part.fill(0.0);
                    for (a, b) in a.iter().zip(b.chunks(n.max(1))) {
                        self.fused(*a, b, &mut part);
                    }
                    match i {
                        0 => sums.copy_from_slice(&part),
                        _ => self.by.add(sums, &part),
                    }
                }
            }
        }
    }

    fn fused(&self, a: f32, b: &[f32], sums: &mut [f64]) {
        if matches!(self.by, Accumulator::Bfloat16) {
            return fused_to_bfloat16(a, b, sums);
        }
        fused(a, b, sums);
        self.by.round(sums);
    }
}

/// The sum of two binary64 numbers that are far from both ends of its range, rounded to odd.
#[inline(always)]
fn to_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    let of_y = sum - x;
    let error = (x - (sum - of_y)) + (y - of_y);
    // No error of infinities and NaN: that is NaN, and not above 0.
    let even = (sum.to_bits() & 1 == 0) & (error.abs() > 0.0);
    let outward = (error > 0.0) == (sum > 0.0);
    let step = if outward { 1 } else { u64::MAX };
    f64::from_bits(sum.to_bits().wrapping_add(if even { step } else { 0 }))
}

kernel! {
    /// `sums[j] = a * b[j] + sums[j]`.
    fn fused<'a>(a: f32, b: &'a [f32], sums: &'a mut [f64]) {
        let a = f64::from(a);
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum = to_odd(a * f64::from(*b), *sum);
        }
    }
}

kernel! {
    fn multiply<'a>(a: f32, b: &'a [f32], products: &'a mut [f64]) {
        let a = f64::from(a);
        for (product, b) in products.iter_mut().zip(b) {
            *product = a * f64::from(*b);
        }
    }
}

kernel! {
    fn add<'a>(sums: &'a mut [f64], terms: &'a [f64]) {
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum = to_odd(*sum, *term);
        }
    }
}

/// A binary64 number to bfloat16, to nearest even.
#[inline(always)]
fn bfloat16(x: f64) -> f64 {
    const DROPPED: u32 = 52 - 7;
    let (bits, magnitude) = (x.to_bits(), x.abs());
    let half = ((1 << (DROPPED - 1)) - 1_u64).wrapping_add(bits >> DROPPED & 1);
    // A carry into the exponent is the next power of two.
    let normal = f64::from_bits(bits.wrapping_add(half) & u64::MAX << DROPPED).abs();
    // Below 2^-126 places are 2^-133 apart, as they are in binary64 next to 2^-81.
    let large = f64::from_bits((1023 - 81) << 52);
    let subnormal = (magnitude + large) - large;
    let rounded = if magnitude < f64::from(f32::MIN_POSITIVE) { subnormal } else { normal };
    let rounded = if rounded > f64::from(f32::MAX) { f64::INFINITY } else { rounded };
    if x.is_nan() { f64::NAN } else { rounded.copysign(x) }
}

kernel! {
    /// `sums[j] = a * b[j] + sums[j]`, rounded.
    fn fused_to_bfloat16<'a>(a: f32, b: &'a [f32], sums: &'a mut [f64]) {
        let a = f64::from(a);
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum = bfloat16(to_odd(a * f64::from(*b), *sum));
        }
    }
}

kernel! {
    fn to_bfloat16<'a>(sums: &'a mut [f64]) {
        for sum in sums {
            *sum = bfloat16(*sum);
        }
    }
}

kernel! {
    fn to_binary32<'a>(sums: &'a mut [f64]) {
        for sum in sums {
            *sum = f64::from(*sum as f32);
        }
    }
}
