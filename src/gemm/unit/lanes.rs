//! The fast form of the fused orders: sixteen products at a time, significands and exponents apart.
//!
//! A product's significand is an integer and its exponent a sum, so the largest exponent, the
//! truncating shifts and the sum are a few integer operations a product without branches. Power-of-two
//! scales are part of the exponents. A row with a NaN or an infinity goes to the definition, and so
//! does every unit whose step is not a truncating one, or whose rounding is stochastic.

use alloc::vec;
use alloc::vec::Vec;

use super::align::{AlignedSum, round, store};
use super::factor::{Factor, FactorClass};
use super::parameters::{Cut, Parameters, StepOrder, Underflow};
use super::row::Row;
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::Rounding;
use crate::simd::kernel;

/// Products that are treated together; a step's are padded to a multiple of it.
const LANES: usize = 16;

/// The exponent of a zero: below that of every product, with some to spare for the sum of two.
const NEVER: i16 = -8192;

/// Rows as the kernel takes them.
#[derive(Clone, Debug)]
pub(super) struct UnitLanes {
    /// Signed significands and exponents: for each row its steps one after another.
    significands: Vec<i16>,
    exponents: Vec<i16>,
    /// Whether a row holds what is no finite number.
    special: Vec<bool>,
    /// Lanes of a step, steps of a row.
    lanes: usize,
    steps: usize,
    digits: u32,
}

impl UnitLanes {
    /// `None` where the kernel cannot do what the parameters say.
    pub(super) fn new(
        format: Format,
        k: usize,
        rows: &[Row<'_>],
        parameters: &Parameters,
    ) -> Option<Self> {
        let quarters = parameters.order == StepOrder::Quarters;
        let simple = (parameters.order == StepOrder::Fused || quarters)
            && parameters.cut == Cut::Truncate
            && !parameters.normalize
            && !parameters.in_register()
            && !parameters.rounding.is_stochastic()
            // A lane adds up four products.
            && parameters.products <= 64
            && parameters.zeros.is_none()
            && parameters.keeps_subnormals()
            && parameters.promote.is_none_or(|every| !quarters && every % parameters.products == 0);
        let digits = format.man_bits();
        // A cut product has two bits more than the fraction, and a lane adds up four of them.
        if !simple || parameters.fraction > 26 || 2 * digits > parameters.fraction || digits > 11 {
            return None;
        }
        let products = parameters.products as usize;
        let order: Vec<Vec<usize>> = if quarters {
            let quarter = |low| (0..products).filter(|k| (k % 4 < 2) == low).collect();
            vec![quarter(true), quarter(false)]
        } else {
            vec![(0..products).collect()]
        };
        let lanes = order[0].len().next_multiple_of(LANES);
        let steps = k.div_ceil(products) * order.len();
        let mut packed = Self {
            significands: vec![0; rows.len() * steps * lanes],
            exponents: vec![NEVER; rows.len() * steps * lanes],
            special: vec![false; rows.len()],
            lanes,
            steps,
            digits,
        };
        for (i, row) in rows.iter().enumerate() {
            for (step, part) in (0..steps).zip(order.iter().cycle()) {
                let first = step / order.len() * products;
                let at = (i * steps + step) * lanes;
                for (lane, k) in part.iter().map(|k| first + k).enumerate() {
                    if k >= row.factors.len() {
                        continue;
                    }
                    let mut factor = row.factors[k];
                    if quarters {
                        factor = factor.in_binary16();
                    }
                    if let Some(scale) = row.scale(k, parameters) {
                        factor = factor.shifted_by(scale);
                    }
                    if factor.class != FactorClass::Finite {
                        packed.special[i] = true;
                    } else if factor.significand != 0 {
                        let magnitude = factor.significand as i16;
                        packed.significands[at + lane] =
                            if factor.negative { -magnitude } else { magnitude };
                        packed.exponents[at + lane] = factor.exponent as i16;
                    }
                }
            }
        }
        Some(packed)
    }

    fn row(&self, i: usize) -> (&[i16], &[i16]) {
        let len = self.steps * self.lanes;
        (&self.significands[i * len..(i + 1) * len], &self.exponents[i * len..(i + 1) * len])
    }
}

/// What the kernel needs to know of the parameters.
#[derive(Clone, Copy)]
pub(super) struct LaneJob<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) result: Format,
    pub(super) a: &'a UnitLanes,
    pub(super) b: &'a UnitLanes,
}

/// The sum of a step's products in units of `2^(exponent - fraction)`, and that exponent: the
/// largest of theirs and at least `least`.
#[inline(always)]
fn products(a: (&[i16], &[i16]), b: (&[i16], &[i16]), least: i32, shift: u32) -> (i64, i32) {
    let (significands, exponents) = (a.0.as_chunks::<LANES>().0, a.1.as_chunks::<LANES>().0);
    let (others, places) = (b.0.as_chunks::<LANES>().0, b.1.as_chunks::<LANES>().0);
    let mut largest = [i16::MIN; LANES];
    for (x, y) in exponents.iter().zip(places) {
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(x[lane] + y[lane]);
        }
    }
    let largest = largest.into_iter().fold(i16::MIN, i16::max);
    let exponent = i32::from(largest).max(least);
    let mut sums = [0_i32; LANES];
    for (((x, y), p), q) in significands.iter().zip(others).zip(exponents).zip(places) {
        for lane in 0..LANES {
            let product = i32::from(x[lane]) * i32::from(y[lane]);
            let sign = product >> 31;
            let magnitude = ((product ^ sign) - sign) as u32;
            let below = (exponent - i32::from(p[lane] + q[lane])).min(31) as u32;
            let kept = ((magnitude << shift) >> below) as i32;
            sums[lane] += (kept ^ sign) - sign;
        }
    }
    (sums.into_iter().map(i64::from).sum(), exponent)
}

kernel! {
    /// Every dot product of one row with all columns, from the addends in `sums`, which become the
    /// results. Rows that hold what is not finite are left alone.
    fn row<'a>(job: &'a LaneJob<'a>, i: usize, sums: &'a mut [u64], done: &'a mut [bool]) {
        let LaneJob { parameters, a, b, .. } = *job;
        let (lanes, shift) = (a.lanes, parameters.fraction - a.digits - b.digits);
        let left = a.row(i);
        let every = parameters.promote.map_or(usize::MAX, |every| (every / parameters.products) as usize);
        let quarters = parameters.order == StepOrder::Quarters;
        for (j, sum) in sums.iter_mut().enumerate() {
            let first = Factor::new(job.result, *sum);
            if a.special[i] || b.special[j] || first.class != FactorClass::Finite {
                continue;
            }
            let right = b.row(j);
            let mut finite = true;
            let mut total = *sum;
            let mut code = if quarters || every != usize::MAX { 0 } else { total };
            for step in 0..a.steps {
                let addend = Factor::new(job.result, code);
                finite &= addend.class == FactorClass::Finite;
                let least = match parameters.floor {
                    _ if addend.is_zero() => parameters.floor.unwrap_or(i32::from(i16::MIN)),
                    Some(floor) => floor.max(addend.exponent),
                    None => addend.exponent,
                };
                let at = step * lanes..(step + 1) * lanes;
                let (sum, exponent) = products(
                    (&left.0[at.clone()], &left.1[at.clone()]),
                    (&right.0[at.clone()], &right.1[at]),
                    least,
                    shift,
                );
                let unit = exponent - parameters.fraction as i32;
                let sum = sum + Cut::Truncate.apply(&addend, unit).0;
                code = finish(parameters, AlignedSum { sum, unit }, job.result);
                let last = step + 1 == a.steps;
                if quarters && step % 2 == 1 {
                    total = nearest_sum(parameters, code, total, job.result);
                    code = 0;
                } else if every != usize::MAX && (last || (step + 1) % every == 0) {
                    total = nearest_sum(parameters, total, code, job.result);
                    code = 0;
                }
            }
            if finite {
                *sum = if quarters || every != usize::MAX { total } else { code };
                done[j] = true;
            }
        }
    }
}

/// The dot products of one row that the kernel can do; `done` says which.
pub(super) fn row_into(job: &LaneJob<'_>, i: usize, sums: &mut [u64], done: &mut [bool]) {
    row(job, i, sums, done);
}

/// An IEEE addition to nearest even, by the machine where it has the format.
fn nearest_sum(parameters: &Parameters, a: u64, b: u64, result: Format) -> u64 {
    if result == Format::F32 {
        let sum = f32::from_bits(a as u32) + f32::from_bits(b as u32);
        if !sum.is_nan() {
            return u64::from(sum.to_bits());
        }
    }
    let rules = parameters.rules(Rounding::TiesToEven);
    Context::new(result, rules).add(Operand::new(result, a), Operand::new(result, b)).code
}

/// The rounding of a step: truncation to a view of binary32 in a few operations, everything else as
/// the definition does.
#[inline(always)]
fn finish(parameters: &Parameters, sum: AlignedSum, result: Format) -> u64 {
    let output = parameters.output;
    let view = output.exp_bits() == 8 && output.bias() == 127 && output.has_infinity();
    let truncated = parameters.rounding == Rounding::TowardZero
        && parameters.underflow == Underflow::Positive
        && result == Format::F32;
    if !(view && truncated && output.man_bits() <= 23) {
        return store(output, round(sum.exact(), output, parameters, None), result);
    }
    if sum.sum == 0 {
        return 0;
    }
    let magnitude = sum.sum.unsigned_abs();
    let sign = u64::from(sum.sum < 0) << 31;
    let top = 63 - magnitude.leading_zeros() as i32;
    let exponent = sum.unit + top;
    if exponent > 127 {
        return sign | 0x7F80_0000;
    }
    // The last place: that of 24 significant bits, but no finer than the subnormal numbers'.
    let last = (exponent - 23).max(-149) - sum.unit;
    let kept = if last > 63 {
        0
    } else if last >= 0 {
        magnitude >> last
    } else {
        magnitude << -last
    };
    let kept = kept >> (23 - output.man_bits()) << (23 - output.man_bits());
    if kept == 0 {
        return 0;
    }
    let field = if kept >> 23 == 0 { 0 } else { (exponent + 126) as u64 };
    sign | ((field << 23) + kept)
}
