//! Dot products of matrix units, bit for bit.

#![allow(unsafe_code)] // the caller's texts and arrays

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use exmy::gemm::unit::{Input, Rows, Unit};

use crate::arrays::{Arrays, text, write_text};
use crate::status::{ExmyStatus, Failure, given, guard, make};

/// A matrix unit with the formats that enter and leave it.
pub struct ExmyUnit(Unit);

/// What enters and leaves a unit.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExmyUnitFacts {
    /// Bits of the elements of A and of B.
    pub element_bits: [u32; 2],
    /// Bits of the block scales of A and of B; 0 if there are none.
    pub scale_bits: [u32; 2],
    /// Elements that share a scale; 0 if there are none.
    pub block: [u32; 2],
    /// Bits of addend and result.
    pub result_bits: u32,
    /// Products of a step, after which the sum is rounded.
    pub products: u32,
}

/// One side of a product: elements, and the scales of a unit that has some.
struct Side {
    elements: *const c_void,
    scales: *const c_void,
    names: [&'static str; 2],
}

impl Side {
    /// Codes of `count` rows of `k` elements, and of their scales.
    ///
    /// # Safety
    /// As [`Arrays::read`].
    unsafe fn codes(
        &self,
        arrays: &mut Arrays,
        input: Input,
        count: usize,
        k: usize,
    ) -> Result<(Vec<u64>, Vec<u64>), Failure> {
        let size = |each: usize| {
            count.checked_mul(each).ok_or_else(|| {
                Failure::argument(format_args!(
                    "{count} rows of {each} are more than a memory holds"
                ))
            })
        };
        let (elements, scales) = (size(k)?, size(input.scales(k))?);
        // SAFETY: the caller's word.
        unsafe {
            let codes =
                arrays.codes(self.elements, elements, input.format.bits(), self.names[0])?;
            let scales = match input.scale {
                None => Vec::new(),
                Some(scale) => {
                    let bits = scale.format.bits();
                    arrays.codes(self.scales, scales, bits, self.names[1])?.wide()
                }
            };
            Ok((codes.wide(), scales))
        }
    }
}

/// Rows of A and columns of B for a unit.
///
/// # Safety
/// As [`Arrays::read`].
unsafe fn prepared(
    arrays: &mut Arrays,
    unit: &Unit,
    [a, b]: [Side; 2],
    (m, n, k): (usize, usize, usize),
) -> Result<(Rows, Rows), Failure> {
    if k == 0 {
        return Err(Failure::argument("k is 0: a dot product has one element or more"));
    }
    // SAFETY: the caller's word.
    let ((a, a_scales), (b, b_scales)) =
        unsafe { (a.codes(arrays, unit.a(), m, k)?, b.codes(arrays, unit.b(), n, k)?) };
    let rows = unit.rows(&a, &a_scales, k).map_err(Failure::argument)?;
    Ok((rows, unit.columns(&b, &b_scales, k).map_err(Failure::argument)?))
}

const fn sides(
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
) -> [Side; 2] {
    [
        Side { elements: a, scales: a_scales, names: ["a", "a_scales"] },
        Side { elements: b, scales: b_scales, names: ["b", "b_scales"] },
    ]
}

/// Where random words come from.
#[derive(Clone, Copy)]
enum Random {
    /// There are none, and the function of this name takes some.
    None(&'static str),
    /// The caller's, which may be null where none are needed.
    Words(*const u32),
}

impl Random {
    /// The words of so many dot products.
    ///
    /// # Safety
    /// As [`Arrays::read`].
    unsafe fn of<'a>(
        self,
        arrays: &mut Arrays,
        unit: &Unit,
        (results, k): (usize, usize),
    ) -> Result<&'a [u32], Failure> {
        let words = match self {
            Self::None(_) if !unit.is_stochastic() => return Ok(&[]),
            Self::None(other) => {
                return Err(Failure::argument(format_args!(
                    "{unit} rounds by random words, as many as exmy_unit_words says: {other} takes them"
                )));
            }
            Self::Words(words) => words,
        };
        let Some(count) = results.checked_mul(unit.words(k)) else {
            return Err(Failure::argument(format_args!(
                "the random words of {results} results are more than a memory holds"
            )));
        };
        // SAFETY: the caller's word.
        unsafe { arrays.read(words, count, "words") }
    }
}

/// One dot product.
///
/// # Safety
/// As [`Arrays::read`].
unsafe fn dot(
    unit: Option<&ExmyUnit>,
    sides: [Side; 2],
    (k, c): (usize, u64),
    random: Random,
    result: Option<&mut MaybeUninit<u64>>,
) -> Result<(), Failure> {
    let unit = &given(unit, "unit")?.0;
    let mut arrays = Arrays::default();
    // SAFETY: the caller's word.
    let (words, (a, b)) = unsafe {
        let words = random.of(&mut arrays, unit, (1, k))?;
        (words, prepared(&mut arrays, unit, sides, (1, 1, k))?)
    };
    given(result, "result")?.write(unit.dot_with(&a.row(0), &b.row(0), c, words));
    Ok(())
}

/// M x N dot products.
///
/// # Safety
/// As [`Arrays::read`].
unsafe fn multiply(
    unit: Option<&ExmyUnit>,
    sides: [Side; 2],
    (m, n, k): (usize, usize, usize),
    c: *const c_void,
    random: Random,
    d: *mut c_void,
) -> Result<(), Failure> {
    let unit = &given(unit, "unit")?.0;
    let mut arrays = Arrays::default();
    // SAFETY: the caller's word.
    let (a, b) = unsafe { prepared(&mut arrays, unit, sides, (m, n, k)) }?;
    let (count, bits) = (crate::blocks::span(m, n, n, 1)?, unit.result().bits());
    // SAFETY: the caller's word.
    let words = unsafe { random.of(&mut arrays, unit, (count, k)) }?;
    let mut sums = if c.is_null() {
        vec![0; count]
    } else {
        // Copied and forgotten before D is looked at, which may be the same array.
        // SAFETY: the caller's word.
        unsafe { Arrays::default().codes(c, count, bits, "c") }?.wide()
    };
    // SAFETY: the caller's word.
    let d = unsafe { arrays.codes_mut(d, count, bits, "d") }?;
    unit.multiply_with(&a, &b, &mut sums, words);
    d.fill_from(sums.into_iter());
    Ok(())
}

/// The steps of one dot product.
///
/// # Safety
/// As [`Arrays::read`].
unsafe fn explain(
    unit: Option<&ExmyUnit>,
    sides: [Side; 2],
    (k, c): (usize, u64),
    random: Random,
) -> Result<String, Failure> {
    let unit = &given(unit, "unit")?.0;
    let mut arrays = Arrays::default();
    // SAFETY: the caller's word.
    let (words, (a, b)) = unsafe {
        let words = random.of(&mut arrays, unit, (1, k))?;
        (words, prepared(&mut arrays, unit, sides, (1, 1, k))?)
    };
    Ok(unit.explain_with(&a.row(0), &b.row(0), c, words).to_string())
}

/// The unit of a text, `MODEL[,KEY=VALUE...]:A[,B][+RESULT]`: `hopper:e4m3`, `ada:e4m3,e5m2+f16`,
/// `blackwell:nvfp4`, `custom,l=8,f=24:e5m3`; or of a file that describes one and whose name ends in `.toml`
/// (docs/units.md), with formats behind a colon or in it: `unit.toml:e4m3`, `unit.toml`. In `*out`; null if
/// it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_new(
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<ExmyUnit>>>>,
) -> ExmyStatus {
    make(out, || {
        // SAFETY: the contract of the crate.
        let name = unsafe { text(name, "name") }?;
        Unit::named(name, None).map(ExmyUnit).map_err(Failure::name)
    })
}

/// Frees a unit.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_unit_free(unit: Option<Box<ExmyUnit>>) {
    drop(unit);
}

/// The unit's text, as `exmy_format_name` writes a format's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_name(
    unit: Option<&ExmyUnit>,
    text: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        let name = given(unit, "unit")?.0.to_string();
        // SAFETY: the contract of the crate.
        unsafe { write_text(&name, text, size, length) }
    })
}

/// What enters and leaves a unit.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_unit_describe(
    unit: Option<&ExmyUnit>,
    facts: Option<&mut MaybeUninit<ExmyUnitFacts>>,
) -> ExmyStatus {
    guard(|| {
        let unit = &given(unit, "unit")?.0;
        let inputs = [unit.a(), unit.b()];
        given(facts, "facts")?.write(ExmyUnitFacts {
            element_bits: inputs.map(|input| input.format.bits()),
            scale_bits: inputs.map(|input| input.scale.map_or(0, |scale| scale.format.bits())),
            block: inputs.map(|input| input.scale.map_or(0, |scale| scale.block)),
            result_bits: unit.result().bits(),
            products: unit.parameters().products,
        });
        Ok(())
    })
}

/// Random words of a dot product of `k` elements, for `exmy_unit_dot_random` and its like: one of 32 bits for
/// each rounding, mostly for each step, of which `srN` uses the top N bits; 0 unless the unit rounds by a
/// stochastic mode.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_unit_words(
    unit: Option<&ExmyUnit>,
    k: usize,
    words: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        let unit = &given(unit, "unit")?.0;
        given(words, "words")?.write(unit.words(k));
        Ok(())
    })
}

/// One dot product of `k` elements on top of the addend `c`, a code of the result's format. `a_scales` and
/// `b_scales` have a code for each block and may be null where the unit has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_dot(
    unit: Option<&ExmyUnit>,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
    c: u64,
    result: Option<&mut MaybeUninit<u64>>,
) -> ExmyStatus {
    let random = Random::None("exmy_unit_dot_random");
    // SAFETY: the contract of the crate.
    guard(|| unsafe { dot(unit, sides(a, b, a_scales, b_scales), (k, c), random, result) })
}

/// The same by `exmy_unit_words` random words, the first for the first step. They may be null where none are
/// needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_dot_random(
    unit: Option<&ExmyUnit>,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
    c: u64,
    words: *const u32,
    result: Option<&mut MaybeUninit<u64>>,
) -> ExmyStatus {
    let random = Random::Words(words);
    // SAFETY: the contract of the crate.
    guard(|| unsafe { dot(unit, sides(a, b, a_scales, b_scales), (k, c), random, result) })
}

/// D = A B + C of M x N dot products. A has M rows of `k` elements one after the other, B has N *columns*
/// of as many; scales likewise. C and D are codes of the result's format, row by row; they may be one
/// array. A null C is zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_multiply(
    unit: Option<&ExmyUnit>,
    m: usize,
    n: usize,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
    c: *const c_void,
    d: *mut c_void,
) -> ExmyStatus {
    let random = Random::None("exmy_unit_multiply_random");
    // SAFETY: the contract of the crate.
    guard(|| unsafe { multiply(unit, sides(a, b, a_scales, b_scales), (m, n, k), c, random, d) })
}

/// The same by random words: M x N times `exmy_unit_words` of them, those of a result one after another, row
/// by row. They may be null where none are needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_multiply_random(
    unit: Option<&ExmyUnit>,
    m: usize,
    n: usize,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
    c: *const c_void,
    words: *const u32,
    d: *mut c_void,
) -> ExmyStatus {
    let random = Random::Words(words);
    // SAFETY: the contract of the crate.
    guard(|| unsafe { multiply(unit, sides(a, b, a_scales, b_scales), (m, n, k), c, random, d) })
}

/// One dot product step by step, as text: what was aligned to what, which bits were cut, what was rounded.
/// Text and length as in `exmy_format_name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_explain(
    unit: Option<&ExmyUnit>,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
    c: u64,
    text: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        let random = Random::None("exmy_unit_explain_random");
        // SAFETY: the contract of the crate.
        unsafe {
            let steps = explain(unit, sides(a, b, a_scales, b_scales), (k, c), random)?;
            write_text(&steps, text, size, length)
        }
    })
}

/// The same by random words, as in `exmy_unit_dot_random`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unit_explain_random(
    unit: Option<&ExmyUnit>,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    a_scales: *const c_void,
    b_scales: *const c_void,
    c: u64,
    words: *const u32,
    text: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        let random = Random::Words(words);
        // SAFETY: the contract of the crate.
        unsafe {
            let steps = explain(unit, sides(a, b, a_scales, b_scales), (k, c), random)?;
            write_text(&steps, text, size, length)
        }
    })
}
