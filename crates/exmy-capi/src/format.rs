//! Formats: what they are called and which numbers they have.

#![allow(unsafe_code)] // the caller's texts

use std::ffi::c_char;
use std::mem::MaybeUninit;

use exmy::Format;

use crate::arrays::{code_bytes, text, write_text};
use crate::status::{ExmyStatus, Failure, given, guard, make};

/// A number format.
pub struct ExmyFormat(pub(crate) Format);

/// The facts of a format. Codes are those of positive numbers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExmyFormatFacts {
    /// Bits of a code, 1 to 64.
    pub bits: u32,
    /// Bytes of the integer in which a code stands in arrays: 1, 2, 4 or 8.
    pub code_bytes: u32,
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the trailing significand.
    pub mantissa_bits: u32,
    /// What the exponent field has on top of the exponent.
    pub bias: i32,
    /// The exponent of the smallest normal number.
    pub emin: i32,
    /// The exponent of the largest number.
    pub emax: i32,
    /// The code of the largest number.
    pub max_code: u64,
    /// The code of the smallest normal number; 0 if there is none.
    pub min_normal_code: u64,
    /// The code of the smallest positive number.
    pub min_positive_code: u64,
    /// The code of NaN results; 0 if there is no NaN.
    pub nan_code: u64,
    /// The code of positive infinity; 0 if there is none.
    pub infinity_code: u64,
    /// 1 if there are negative numbers, else 0.
    pub is_signed: u8,
    /// 1 if there is a zero, else 0.
    pub has_zero: u8,
    /// 1 if there is a negative zero, else 0.
    pub has_negative_zero: u8,
    /// 1 if there are subnormal numbers, else 0.
    pub has_subnormals: u8,
    /// 1 if there is a NaN, else 0.
    pub has_nan: u8,
    /// 1 if there are infinities, else 0.
    pub has_infinity: u8,
}

impl From<Format> for ExmyFormatFacts {
    fn from(format: Format) -> Self {
        Self {
            bits: format.bits(),
            code_bytes: code_bytes(format.bits()),
            exponent_bits: format.exp_bits(),
            mantissa_bits: format.man_bits(),
            bias: format.bias(),
            emin: format.emin(),
            emax: format.emax(),
            max_code: format.max_code(),
            min_normal_code: format.min_normal_code().unwrap_or(0),
            min_positive_code: format.min_positive_code(),
            nan_code: format.nan_code().unwrap_or(0),
            infinity_code: format.infinity_code(false).unwrap_or(0),
            is_signed: format.is_signed().into(),
            has_zero: format.has_zero().into(),
            has_negative_zero: format.has_negative_zero().into(),
            has_subnormals: format.has_subnormals().into(),
            has_nan: format.has_nan().into(),
            has_infinity: format.has_infinity().into(),
        }
    }
}

/// The format of a name: `e4m3`, `float8_e5m2`, `bf16`, `e6m9`, `binary8p3se`. In `*out`; null if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_format_new(
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<ExmyFormat>>>>,
) -> ExmyStatus {
    make(out, || {
        // SAFETY: the contract of the crate.
        let name = unsafe { text(name, "name") }?;
        name.parse().map(ExmyFormat).map_err(Failure::name)
    })
}

/// Frees a format.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_format_free(format: Option<Box<ExmyFormat>>) {
    drop(format);
}

/// The canonical name, in `text` of `size` bytes, and in `*length`, which may be null, how long it is without
/// the zero behind it. With a null `text` and a size of 0 the length alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_format_name(
    format: Option<&ExmyFormat>,
    text: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        let name = given(format, "format")?.0.to_string();
        // SAFETY: the contract of the crate.
        unsafe { write_text(&name, text, size, length) }
    })
}

/// The facts of a format.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_format_describe(
    format: Option<&ExmyFormat>,
    facts: Option<&mut MaybeUninit<ExmyFormatFacts>>,
) -> ExmyStatus {
    guard(|| {
        let format = given(format, "format")?.0;
        given(facts, "facts")?.write(format.into());
        Ok(())
    })
}

/// The number of a code, rounded to nearest even where the format is wider than a `double`. Bits beyond the
/// format's width do not count.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_format_value(
    format: Option<&ExmyFormat>,
    code: u64,
    value: Option<&mut MaybeUninit<f64>>,
) -> ExmyStatus {
    guard(|| {
        let format = given(format, "format")?.0;
        given(value, "value")?.write(format.to_f64(code));
        Ok(())
    })
}
