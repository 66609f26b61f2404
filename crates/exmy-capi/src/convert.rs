//! Arrays of numbers from one format to another.

#![allow(unsafe_code)] // the caller's texts and arrays

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use exmy::Format;
use exmy::math::{Context, Operand};
use exmy::slice::{Converter, Real};

use crate::arrays::{Arrays, Codes, CodesMut, each, optional_text, text};
use crate::settings;
use crate::status::{ExmyStatus, Failure, given, guard, make};

/// A conversion from one format to another, prepared for arrays.
pub struct ExmyConverter {
    from: Format,
    converter: Converter<'static>,
}

impl ExmyConverter {
    /// The caller's random words, where the mode needs some.
    ///
    /// # Safety
    /// As [`Arrays::read`].
    unsafe fn words<'a>(
        &self,
        arrays: &mut Arrays,
        random: *const u32,
        count: usize,
    ) -> Result<Option<&'a [u32]>, Failure> {
        let mode = self.converter.rules().rounding;
        if !mode.is_stochastic() {
            return Ok(None);
        }
        if random.is_null() && count > 0 {
            return Err(Failure::argument(format_args!("random is null, and {mode} needs words")));
        }
        // SAFETY: the caller's word.
        unsafe { arrays.read(random, count, "random") }.map(Some)
    }

    fn with<'a>(&self, words: Option<&'a [u32]>) -> Converter<'a> {
        match words {
            Some(words) => self.converter.with_words(words),
            None => self.converter,
        }
    }
}

/// The conversion of a format's name to another's, with settings as those of `exmy_function_new`, which may
/// be null. In `*out`; null if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_converter_new(
    from: *const c_char,
    to: *const c_char,
    settings: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<ExmyConverter>>>>,
) -> ExmyStatus {
    make(out, || {
        // SAFETY: the contract of the crate.
        let (from, to, open) =
            unsafe { (text(from, "from")?, text(to, "to")?, optional_text(settings, "settings")?) };
        let from: Format = from.parse().map_err(Failure::name)?;
        let to: Format = to.parse().map_err(Failure::name)?;
        let settings = settings::read(open)?;
        let rules = settings.rules(settings.profile.conversion(from, to));
        Ok(ExmyConverter { from, converter: Converter::new(to, rules) })
    })
}

/// Frees a converter.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_converter_free(converter: Option<Box<ExmyConverter>>) {
    drop(converter);
}

/// Converts `count` codes of the one format to codes of the other. `random` has a word for each under
/// stochastic modes, else it may be null. So may `flags`, which is filled with the bits EXMY_FLAG_*; finding
/// them takes longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_convert(
    converter: Option<&ExmyConverter>,
    count: usize,
    codes: *const c_void,
    random: *const u32,
    results: *mut c_void,
    flags: *mut u8,
) -> ExmyStatus {
    guard(|| {
        let this = given(converter, "converter")?;
        let (from, to) = (this.from, this.converter.format());
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (codes, words, results, flags) = unsafe {
            (
                arrays.codes(codes, count, from.bits(), "codes")?,
                this.words(&mut arrays, random, count)?,
                arrays.codes_mut(results, count, to.bits(), "results")?,
                arrays.write_optional(flags, count, "flags")?,
            )
        };
        match flags {
            Some(flags) => one_by_one(this, codes, words, results, flags),
            None => {
                let converter = this.with(words);
                each!(Codes, codes, |codes| each!(CodesMut, results, |results| converter
                    .recode_into(from, codes, results)));
            }
        }
        Ok(())
    })
}

/// The conversion with flags.
fn one_by_one(
    this: &ExmyConverter,
    codes: Codes<'_>,
    words: Option<&[u32]>,
    results: CodesMut<'_>,
    flags: &mut [u8],
) {
    let context = Context::new(this.converter.format(), this.converter.rules());
    let rounded = codes.wide().into_iter().zip(flags).enumerate().map(|(i, (code, flags))| {
        let context = context.with_random(words.map_or(0, |words| words[i]));
        let rounded = context.convert(Operand::new(this.from, code));
        *flags = rounded.flags.bits();
        rounded.code
    });
    results.fill_from(rounded);
}

/// Rounds `count` numbers of C to the other format and back: what the format keeps of them. The converter
/// comes from `f32`, and numbers and results are `float`; or from `f64`, and they are `double`. They may be
/// one array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_fake_quantize(
    converter: Option<&ExmyConverter>,
    count: usize,
    numbers: *const c_void,
    random: *const u32,
    results: *mut c_void,
) -> ExmyStatus {
    guard(|| {
        let this = given(converter, "converter")?;
        // SAFETY: the contract of the crate.
        unsafe {
            match this.from {
                Format::F32 => rounded::<f32>(this, count, numbers.cast(), random, results.cast()),
                Format::F64 => rounded::<f64>(this, count, numbers.cast(), random, results.cast()),
                from => Err(Failure::unsupported(format_args!(
                    "fake quantization of {from}: the converter comes from f32 or f64"
                ))),
            }
        }
    })
}

/// As [`exmy_fake_quantize`].
///
/// # Safety
/// As there.
unsafe fn rounded<T: Real + crate::arrays::Plain>(
    this: &ExmyConverter,
    count: usize,
    numbers: *const T,
    random: *const u32,
    results: *mut T,
) -> Result<(), Failure> {
    let mut arrays = Arrays::default();
    // SAFETY: the caller's word; of one array for both, only the written one is made a slice.
    let (numbers, words, results) = unsafe {
        let apart = numbers != results.cast_const();
        let numbers = if apart { Some(arrays.read(numbers, count, "numbers")?) } else { None };
        let words = this.words(&mut arrays, random, count)?;
        (numbers, words, arrays.write(results, count, "results")?)
    };
    match numbers {
        Some(numbers) => this.with(words).fake_quantize_into(numbers, results),
        None => this.with(words).fake_quantize(results),
    }
    Ok(())
}
