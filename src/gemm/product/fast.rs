//! The accumulation `fast` in the one call: by the packed product of [`gemm::fast`], whose bits are those
//! of the readable [unit](crate::gemm::unit) of that name.
//!
//! [`Spec`](super::Spec) and [`Scaling`] write down the same operations in the same order: tensor
//! scales times alpha, times the sum, plus beta times C. So only the rounding to an output other
//! than binary32 is left to do.
//!
//! [`gemm::fast`]: crate::gemm::fast

use alloc::vec;
use alloc::vec::Vec;

use super::super::fast::{Packed, Scaling, multiply};
use super::super::units;
use super::{Accumulation, GemmError, NonFinite, Operand, Product, ProductReport, for_each};
use crate::format::Format;
use crate::gemm::unit::Preset;
use crate::round::Rules;
use crate::simd::kernel;
use crate::slice::{Converter, ViewMut};

#[cfg(feature = "std")]
use crate::parallel::both;

/// Without threads.
#[cfg(not(feature = "std"))]
fn both(first: impl FnOnce(), second: impl FnOnce()) {
    first();
    second();
}

/// Results that are rounded at a time.
const CHUNK: usize = 1 << 13;

/// Packed operands: their memory serves the products of a batch one after the other, and one that
/// all of them share is packed once.
#[derive(Default)]
pub(super) struct Packs {
    sides: [Option<Packed>; 2],
    keep: [bool; 2],
}

impl Packs {
    /// Which sides of the next product are those of the last one.
    pub(super) fn keep(&mut self, keep: [bool; 2]) {
        self.keep = keep;
    }

    fn pack(&mut self, a: &Operand<'_>, b: &Operand<'_>) -> [&Packed; 2] {
        let Self { sides: [left, right], keep } = self;
        let side =
            |packed: &mut Option<Packed>, keep: bool, of, new: fn(&Operand<'_>) -> Packed| {
                match packed {
                    Some(_) if keep => {}
                    Some(packed) => packed.repack(of),
                    None => *packed = Some(new(of)),
                }
            };
        both(|| side(left, keep[0], a, Packed::left), || side(right, keep[1], b, Packed::right));
        match (left, right) {
            (Some(left), Some(right)) => [left, right],
            _ => unreachable!("both were packed"),
        }
    }
}

impl Product<'_> {
    /// Whether the accumulation is `fast`, with parameters as they are.
    pub(super) fn is_fast(&self) -> bool {
        let Accumulation::Unit { model, result } = &self.spec.accumulation else { return false };
        let of_preset = |unit: &crate::gemm::unit::Unit| {
            Preset::Fast.parameters(unit.a(), unit.b(), *result).as_ref() == Some(unit.parameters())
        };
        model.preset() == Preset::Fast
            && units::unit(model, *result, self.a, self.b).is_ok_and(|unit| of_preset(&unit))
    }

    /// Whether results are what the packed product writes, and nothing can be wrong about them.
    pub(super) fn is_in_place(&self) -> bool {
        self.is_fast() && self.is_plain() && self.spec.non_finite == NonFinite::Keep
    }

    /// Whether results are those of the packed product, bit for bit.
    fn is_plain(&self) -> bool {
        let output = &self.spec.output;
        output.format == Format::F32 && output.rules() == Rules::DEFAULT
    }

    /// The product in C itself.
    pub(super) fn fast_into(&self, mut c: ViewMut<'_, f32>) -> Result<ProductReport, GemmError> {
        self.multiply_into(&mut Packs::default(), c.reborrow())?;
        let (rows, cols, stride) = (c.rows(), c.cols(), c.row_stride());
        if cols == 0 {
            return Ok(ProductReport::default());
        }
        let count = (0..rows).map(|i| non_finite(&c.data()[i * stride..][..cols])).sum();
        self.report(count, 0)
    }

    /// The values of all results.
    pub(super) fn fast_numbers(
        &self,
        packs: &mut Packs,
    ) -> Result<(Vec<f32>, ProductReport), GemmError> {
        let numbers = self.unrounded(packs)?;
        if self.is_plain() {
            let report = self.judge(&numbers)?;
            return Ok((numbers, report));
        }
        let mut rounded = vec![0.0; numbers.len()];
        let converter = self.converter();
        for_each(rounded.chunks_mut(CHUNK).enumerate(), |(i, rounded)| {
            let (first, len) = (i * CHUNK, rounded.len());
            let converter = converter.starting_at(self.first.wrapping_add(first as u64));
            converter.fake_quantize_into(&numbers[first..first + len], rounded);
        });
        let report = self.judge_both(&numbers, &rounded, |x| x.is_finite())?;
        Ok((rounded, report))
    }

    /// The codes of all results.
    pub(super) fn fast_codes(&self) -> Result<(Vec<u64>, ProductReport), GemmError> {
        let format = self.spec.output.format;
        let numbers = self.unrounded(&mut Packs::default())?;
        let mut codes = vec![0_u64; numbers.len()];
        let converter = self.converter();
        for_each(codes.chunks_mut(CHUNK).enumerate(), |(i, codes)| {
            let (first, len) = (i * CHUNK, codes.len());
            let converter = converter.starting_at(self.first.wrapping_add(first as u64));
            converter.encode_into(&numbers[first..first + len], codes);
        });
        let report = self.judge_both(&numbers, &codes, |code| format.decode(*code).is_finite())?;
        Ok((codes, report))
    }

    /// All results before they are rounded to the output's format.
    fn unrounded(&self, packs: &mut Packs) -> Result<Vec<f32>, GemmError> {
        let (rows, cols) = (self.a.rows(), self.b.cols());
        let mut out = if self.c.is_empty() { vec![0.0; rows * cols] } else { self.c.to_vec() };
        self.multiply_into(packs, ViewMut::new(&mut out, rows, cols))?;
        Ok(out)
    }

    fn multiply_into(&self, packs: &mut Packs, out: ViewMut<'_, f32>) -> Result<(), GemmError> {
        let [left, right] = packs.pack(self.a, self.b);
        let with = Scaling { alpha: self.spec.alpha, beta: self.spec.beta };
        multiply(left, right, out, with).map(|_| ())
    }

    /// What rounds the results: result `e` by word `e` of all, as the sum itself takes none.
    fn converter(&self) -> Converter<'static> {
        let converter = Converter::from(self.spec.output);
        match self.spec.random {
            Some(random) => converter.with_random(random),
            None => converter,
        }
    }

    /// Counts results that are infinite or NaN.
    fn judge(&self, numbers: &[f32]) -> Result<ProductReport, GemmError> {
        let count = non_finite(numbers);
        let first = numbers.iter().position(|x| count > 0 && !x.is_finite());
        self.report(count, first.unwrap_or(0))
    }

    /// Counts results that are infinite or NaN before or after they are rounded.
    fn judge_both<T>(
        &self,
        before: &[f32],
        after: &[T],
        is_finite: impl Fn(&T) -> bool,
    ) -> Result<ProductReport, GemmError> {
        let wrong = |(before, after): (&f32, &T)| !before.is_finite() || !is_finite(after);
        let pairs = || before.iter().zip(after);
        let count = pairs().filter(|pair| wrong(*pair)).count() as u64;
        let first = if count > 0 { pairs().position(wrong) } else { None };
        self.report(count, first.unwrap_or(0))
    }
}

/// How many numbers are infinite or NaN.
fn non_finite(numbers: &[f32]) -> u64 {
    // A piece has fewer than a lane can count.
    numbers.chunks(1 << 16).map(|piece| u64::from(count_non_finite(piece))).sum()
}

kernel! {
    fn count_non_finite<'a>(numbers: &'a [f32]) -> u32 {
        numbers.iter().fold(0, |count, x| count + u32::from(!x.is_finite()))
    }
}
