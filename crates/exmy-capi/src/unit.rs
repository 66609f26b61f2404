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
    guard(|| {
        let unit = &given(unit, "unit")?.0;
        let sides = sides(a, b, a_scales, b_scales);
        // SAFETY: the contract of the crate.
        let (a, b) = unsafe { prepared(&mut Arrays::default(), unit, sides, (1, 1, k)) }?;
        given(result, "result")?.write(unit.dot(&a.row(0), &b.row(0), c));
        Ok(())
    })
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
    guard(|| {
        let unit = &given(unit, "unit")?.0;
        let sides = sides(a, b, a_scales, b_scales);
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (a, b) = unsafe { prepared(&mut arrays, unit, sides, (m, n, k)) }?;
        let (count, bits) = (crate::blocks::span(m, n, n, 1)?, unit.result().bits());
        let mut sums = if c.is_null() {
            vec![0; count]
        } else {
            // Copied and forgotten before D is looked at, which may be the same array.
            // SAFETY: the contract of the crate.
            unsafe { Arrays::default().codes(c, count, bits, "c") }?.wide()
        };
        // SAFETY: the contract of the crate.
        let d = unsafe { arrays.codes_mut(d, count, bits, "d") }?;
        unit.multiply(&a, &b, &mut sums);
        d.fill_from(sums.into_iter());
        Ok(())
    })
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
        let unit = &given(unit, "unit")?.0;
        let sides = sides(a, b, a_scales, b_scales);
        // SAFETY: the contract of the crate.
        let (a, b) = unsafe { prepared(&mut Arrays::default(), unit, sides, (1, 1, k)) }?;
        let steps = unit.explain(&a.row(0), &b.row(0), c).to_string();
        // SAFETY: the contract of the crate.
        unsafe { write_text(&steps, text, size, length) }
    })
}
