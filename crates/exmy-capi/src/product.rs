//! Products of matrices, each in a stated order of summation.

#![allow(unsafe_code)] // the caller's texts and arrays

use std::ffi::{c_char, c_void};
use std::fmt;
use std::mem::MaybeUninit;

use exmy::gemm::{Accumulation, NonFinite, Spec, gemm_codes, gemm_into};
use exmy::quantizer::Cast;
use exmy::{Format, ViewMut};

use crate::arrays::{Arrays, CodesMut, each, optional_text, text};
use crate::blocks::span;
use crate::format::ExmyFormatFacts;
use crate::matrix::ExmyMatrix;
use crate::random::{ExmyRandom, philox};
use crate::settings::{named, pairs, unknown, word};
use crate::status::{ExmyStatus, Failure, given, guard, make};

/// How a product is summed, and what becomes of its results.
pub struct ExmyProduct(Spec);

const KEYS: [(&str, &str); 4] = [
    ("output", "a format"),
    ("round", "a rounding mode"),
    ("overflow", "an overflow policy"),
    ("non-finite", "keep or error"),
];

/// The product of an accumulation's name: `exact`, `fma`, `fma:bf16`, `blocked256`,
/// `promote128(fma:e8m13@rtz)`, `fast`, a matrix unit as `hopper` or `unit.toml`. Settings, which may be
/// null: output (a format, `f32` if it is not set), round and overflow of the results, non-finite (what
/// becomes of a product with infinities or NaN): keep error. In `*out`; null if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_product_new(
    accumulation: *const c_char,
    settings: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<ExmyProduct>>>>,
) -> ExmyStatus {
    make(out, || {
        // SAFETY: the contract of the crate.
        let (accumulation, settings) =
            unsafe { (text(accumulation, "accumulation")?, optional_text(settings, "settings")?) };
        let mut spec = Spec::from(Accumulation::named(accumulation).map_err(Failure::name)?);
        let (mut format, mut rounding, mut overflow) = (Format::F32, None, None);
        for (key, value) in pairs(settings.unwrap_or_default())? {
            match key {
                "output" => format = named(key, value)?,
                "round" => rounding = Some(named(key, value)?),
                "overflow" => overflow = Some(named(key, value)?),
                "non-finite" => {
                    let words = [("keep", NonFinite::Keep), ("error", NonFinite::Error)];
                    spec.non_finite = word(key, value, &words)?;
                }
                _ => return Err(unknown(key, KEYS.into_iter())),
            }
        }
        let mut output = Cast::new(format);
        output.rounding = rounding.unwrap_or(output.rounding);
        output.overflow = overflow.unwrap_or(output.overflow);
        spec.output = output;
        Ok(ExmyProduct(spec))
    })
}

/// Frees a product.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_product_free(product: Option<Box<ExmyProduct>>) {
    drop(product);
}

/// The facts of the output's format, whose codes `exmy_gemm_codes` gives.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_product_describe(
    product: Option<&ExmyProduct>,
    facts: Option<&mut MaybeUninit<ExmyFormatFacts>>,
) -> ExmyStatus {
    guard(|| {
        let format = given(product, "product")?.0.output.format;
        given(facts, "facts")?.write(format.into());
        Ok(())
    })
}

/// C = alpha A B + beta C, of M x N numbers, row `i` of which begins at `i * c_row_stride` (0: N). C is not
/// read if beta is 0. Stochastic roundings need `random`; else it may be null. So may `non_finite`, which
/// is how many results were infinite or NaN. Nothing is written if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_gemm(
    product: Option<&ExmyProduct>,
    a: Option<&ExmyMatrix<'_>>,
    b: Option<&ExmyMatrix<'_>>,
    alpha: f32,
    beta: f32,
    random: Option<&ExmyRandom>,
    c: *mut f32,
    c_row_stride: usize,
    non_finite: Option<&mut MaybeUninit<u64>>,
) -> ExmyStatus {
    guard(|| {
        let spec = given(product, "product")?.0.clone().with_alpha(alpha).with_beta(beta);
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (spec, a, b) = unsafe { operands(&mut arrays, spec, a, b, random) }?;
        let (rows, cols) = (a.rows(), b.cols());
        let stride = if c_row_stride == 0 { cols } else { c_row_stride };
        // SAFETY: the contract of the crate.
        let c = unsafe { arrays.write(c, span(rows, cols, stride, 1)?, "c") }?;
        let c = ViewMut::with_row_stride(c, rows, cols, stride).map_err(Failure::argument)?;
        let report = gemm_into(a, b, &spec, c).map_err(Failure::unsupported)?;
        if let Some(non_finite) = non_finite {
            non_finite.write(report.non_finite);
        }
        Ok(())
    })
}

/// alpha A B as M x N codes of the output's format, row by row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_gemm_codes(
    product: Option<&ExmyProduct>,
    a: Option<&ExmyMatrix<'_>>,
    b: Option<&ExmyMatrix<'_>>,
    alpha: f32,
    random: Option<&ExmyRandom>,
    codes: *mut c_void,
) -> ExmyStatus {
    guard(|| {
        let spec = given(product, "product")?.0.clone().with_alpha(alpha);
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (spec, a, b) = unsafe { operands(&mut arrays, spec, a, b, random) }?;
        let count = span(a.rows(), b.cols(), b.cols(), 1)?;
        // SAFETY: the contract of the crate.
        let codes = unsafe { arrays.codes_mut(codes, count, spec.output.format.bits(), "codes") }?;
        each!(CodesMut, codes, |codes| {
            codes.copy_from_slice(&gemm_codes(a, b, &spec).map_err(Failure::unsupported)?);
        });
        Ok(())
    })
}

/// The operands and random words of a product.
///
/// # Safety
/// As [`Arrays::read`].
unsafe fn operands<'a>(
    arrays: &mut Arrays,
    mut spec: Spec,
    a: Option<&ExmyMatrix<'a>>,
    b: Option<&ExmyMatrix<'a>>,
    random: Option<&ExmyRandom>,
) -> Result<(Spec, exmy::gemm::Operand<'a>, exmy::gemm::Operand<'a>), Failure> {
    let (a, b) = (given(a, "a")?, given(b, "b")?);
    // SAFETY: the caller's word.
    let (a, b) = unsafe {
        let rounding = spec.output.rounding;
        let needed_by: Option<&dyn fmt::Display> = if spec.accumulation.is_stochastic() {
            Some(&spec.accumulation)
        } else {
            rounding.is_stochastic().then_some(&rounding as _)
        };
        spec.random = philox(random, needed_by)?;
        (a.operand(arrays, "a")?, b.operand(arrays, "b")?)
    };
    Ok((spec, a, b))
}
