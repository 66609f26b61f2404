//! The arrays and texts of a caller, checked before they are read.
//!
//! All raw pointers of the crate become slices here. What a machine can see is checked: null, alignment, a
//! size beyond the address space, and arrays that overlap one that is written. That the memory is there is
//! the caller's word.

#![allow(unsafe_code)] // pointers to slices

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use exmy::minifloat::Bits;

use crate::status::Failure;

/// A text. Null is `None`.
///
/// # Safety
/// It is null or ends with a zero byte, and stays as it is while the result is used.
pub(crate) unsafe fn optional_text<'a>(
    text: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Failure::name(format_args!("{name} is no UTF-8")))?;
    Ok(Some(text))
}

/// A text that has to be there.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's word.
    let text = unsafe { optional_text(text, name) }?;
    text.ok_or_else(|| Failure::argument(format_args!("{name} is null")))
}

/// Writes a text of ours and its zero byte, and how long it is without.
///
/// # Safety
/// `to` is null or has `size` bytes.
pub(crate) unsafe fn write_text(
    text: &str,
    to: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Failure> {
    if let Some(length) = length {
        length.write(text.len());
    }
    if to.is_null() && size == 0 {
        return Ok(());
    }
    if to.is_null() || size <= text.len() {
        let needed = text.len() + 1;
        let message =
            format!("the text has {needed} bytes with the zero behind it, text has {size}");
        return Err(Failure::argument(if to.is_null() { "text is null".into() } else { message }));
    }
    // SAFETY: `size` bytes are there, more than the text has.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// The arrays of one call, each of which is compared with those before it.
#[derive(Default)]
pub(crate) struct Arrays {
    /// First byte, the byte behind the last, whether it is written, name.
    spans: Vec<(usize, usize, bool, &'static str)>,
}

impl Arrays {
    fn check<T>(
        &mut self,
        start: *const T,
        count: usize,
        written: bool,
        name: &'static str,
    ) -> Result<(), Failure> {
        let size = count.checked_mul(size_of::<T>()).filter(|size| isize::try_from(*size).is_ok());
        let size = size.ok_or_else(|| {
            Failure::argument(format_args!("{name} has {count} elements, more than a memory holds"))
        })?;
        if size == 0 {
            return Ok(());
        }
        if start.is_null() {
            return Err(Failure::argument(format_args!("{name} is null")));
        }
        if !start.is_aligned() {
            let align = align_of::<T>();
            let why = format!("{name} is not aligned: its elements begin at multiples of {align}");
            return Err(Failure::argument(why));
        }
        let (first, end) = (start.addr(), start.addr().saturating_add(size));
        for (other, behind, its_written, beside) in &self.spans {
            if first < *behind && *other < end && (written || *its_written) {
                return Err(Failure::argument(format_args!("{name} and {beside} overlap")));
            }
        }
        self.spans.push((first, end, written, name));
        Ok(())
    }

    /// `count` elements that are read.
    ///
    /// # Safety
    /// They are there and nobody writes to them while the result is used.
    pub(crate) unsafe fn read<'a, T: Plain>(
        &mut self,
        start: *const T,
        count: usize,
        name: &'static str,
    ) -> Result<&'a [T], Failure> {
        self.check(start, count, false, name)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: not null, aligned, of a possible size; the rest is the caller's word.
        Ok(unsafe { std::slice::from_raw_parts(start, count) })
    }

    /// `count` elements that are written and not read before.
    ///
    /// # Safety
    /// They are there and nobody else uses them while the result is used.
    pub(crate) unsafe fn write<'a, T: Plain>(
        &mut self,
        start: *mut T,
        count: usize,
        name: &'static str,
    ) -> Result<&'a mut [T], Failure> {
        self.check(start.cast_const(), count, true, name)?;
        if count == 0 {
            return Ok(&mut []);
        }
        // SAFETY: not null, aligned, apart from the other arrays; the rest is the caller's word. Numbers are
        // valid whatever their bits, and these are written first.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
    }

    /// As [`write`](Self::write); null is `None`.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn write_optional<'a, T: Plain>(
        &mut self,
        start: *mut T,
        count: usize,
        name: &'static str,
    ) -> Result<Option<&'a mut [T]>, Failure> {
        if start.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's word.
        unsafe { self.write(start, count, name) }.map(Some)
    }

    /// Codes of so many bits that are read, in the smallest integers that hold them.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub(crate) unsafe fn codes<'a>(
        &mut self,
        start: *const c_void,
        count: usize,
        bits: u32,
        name: &'static str,
    ) -> Result<Codes<'a>, Failure> {
        // SAFETY: the caller's word.
        Ok(unsafe {
            match code_bytes(bits) {
                1 => Codes::U8(self.read(start.cast(), count, name)?),
                2 => Codes::U16(self.read(start.cast(), count, name)?),
                4 => Codes::U32(self.read(start.cast(), count, name)?),
                _ => Codes::U64(self.read(start.cast(), count, name)?),
            }
        })
    }

    /// Codes of so many bits that are written.
    ///
    /// # Safety
    /// As [`write`](Self::write).
    pub(crate) unsafe fn codes_mut<'a>(
        &mut self,
        start: *mut c_void,
        count: usize,
        bits: u32,
        name: &'static str,
    ) -> Result<CodesMut<'a>, Failure> {
        // SAFETY: the caller's word.
        Ok(unsafe {
            match code_bytes(bits) {
                1 => CodesMut::U8(self.write(start.cast(), count, name)?),
                2 => CodesMut::U16(self.write(start.cast(), count, name)?),
                4 => CodesMut::U32(self.write(start.cast(), count, name)?),
                _ => CodesMut::U64(self.write(start.cast(), count, name)?),
            }
        })
    }
}

/// Types whose every bit pattern is a value.
///
/// # Safety
/// That is promised of each type that has it.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty)*) => {$(
        // SAFETY: numbers.
        unsafe impl Plain for $type {}
    )*};
}

plain! { u8 u16 u32 u64 f32 f64 }

/// Codes in the smallest integers that hold them.
#[derive(Clone, Copy)]
pub(crate) enum Codes<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// As [`Codes`], for writing.
pub(crate) enum CodesMut<'a> {
    U8(&'a mut [u8]),
    U16(&'a mut [u16]),
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
}

/// Does the same for slices of each type of [`Codes`] or [`CodesMut`].
macro_rules! each {
    ($kind:ident, $codes:expr, |$slice:ident| $body:expr) => {
        match $codes {
            $kind::U8($slice) => $body,
            $kind::U16($slice) => $body,
            $kind::U32($slice) => $body,
            $kind::U64($slice) => $body,
        }
    };
}
pub(crate) use each;

impl Codes<'_> {
    /// The same codes in integers of one width.
    pub(crate) fn wide(self) -> Vec<u64> {
        each!(Codes, self, |codes| codes.iter().map(|code| code.to_u64()).collect())
    }
}

impl CodesMut<'_> {
    /// Writes codes, as many as there are places.
    pub(crate) fn fill_from(self, codes: impl Iterator<Item = u64>) {
        each!(CodesMut, self, |places| {
            for (place, code) in places.iter_mut().zip(codes) {
                *place = Bits::from_u64(code);
            }
        });
    }
}

/// Bytes of the smallest integer of C that holds so many bits.
pub(crate) const fn code_bytes(bits: u32) -> u32 {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: Result<T, Failure>) -> String {
        format!("{:?}", result.err().expect("is refused"))
    }

    #[test]
    fn arrays_that_cannot_be_used_are_refused() {
        let mut memory = [1_u32, 2, 3, 4];
        let start = memory.as_mut_ptr();
        let mut arrays = Arrays::default();
        // SAFETY: parts of `memory`, of which no two are used at a time; the others are refused.
        unsafe {
            assert_eq!(arrays.read(start, 2, "x").unwrap(), [1, 2]);
            assert_eq!(arrays.read(start.add(1), 2, "y").unwrap(), [2, 3]);
            assert!(refused(arrays.write(start.add(2), 2, "z")).contains("z and y overlap"));
            assert_eq!(arrays.write(start.add(3), 1, "z").unwrap(), [4]);
            assert!(refused(arrays.read(start, 4, "w")).contains("w and z overlap"));
            let odd = start.cast::<u8>().add(1).cast::<u32>();
            assert!(refused(arrays.read(odd, 1, "odd")).contains("multiples of 4"));
            assert!(refused(arrays.read::<u32>(std::ptr::null(), 1, "x")).contains("x is null"));
            assert!(
                refused(arrays.read(start, usize::MAX / 4, "x")).contains("more than a memory")
            );
            assert!(arrays.read::<u32>(std::ptr::null(), 0, "x").unwrap().is_empty());
            assert!(arrays.write_optional::<u32>(std::ptr::null_mut(), 3, "x").unwrap().is_none());
            assert!(refused(optional_text(c"\xFF".as_ptr(), "t")).contains("t is no UTF-8"));
        }
    }

    #[test]
    fn a_text_is_written_whole_or_not() {
        let mut memory = [b'x' as c_char; 4];
        let mut length = MaybeUninit::uninit();
        // SAFETY: `memory` has four bytes.
        unsafe {
            write_text("abc", memory.as_mut_ptr(), 4, Some(&mut length)).unwrap();
            assert_eq!((memory.map(|c| c as u8), length.assume_init()), (*b"abc\0", 3));
            let error = refused(write_text("abcd", memory.as_mut_ptr(), 4, Some(&mut length)));
            assert!(error.contains("has 5 bytes"), "{error}");
            assert_eq!((memory[0] as u8, length.assume_init()), (b'a', 4));
            write_text("abcd", std::ptr::null_mut(), 0, None).unwrap();
        }
    }
}
