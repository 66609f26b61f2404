//! Slices of typed numbers as slices of their codes or bytes, and back, without copying.
//!
//! [`Minifloat<F>`] is its code and nothing more (`repr(transparent)`), so a slice of one is a slice
//! of the other. From numbers to codes nothing can go wrong. Back, a code may have bits that the
//! format lacks: 0x1F is a `u8` but no code of E2M1. Such a slice is refused ([`StrayBits`]), and a
//! number with such bits is never made: codes are lent for writing only where every integer is a
//! code. Bytes are in the machine's order; of formats stored in a byte they are the codes.
//!
//! The traits of the crates bytemuck and zerocopy hold where nothing has to be checked. Formats as
//! wide as their integer, E4M3 and Bf16 among them, implement `Pod` of bytemuck, and all formats
//! `IntoBytes` of zerocopy. Its `FromBytes` cannot depend on the format, so none implements it.
//!
//! ```compile_fail
//! let numbers: &[exmy::E2M1] = bytemuck::cast_slice(&[0x1F_u8]); // more than four bits
//! ```
//!
//! Packed codes, several in a byte, are no slices of numbers; [`pack`](mod@crate::pack) unpacks them.
//!
//! ```
//! use exmy::slice::cast;
//! use exmy::minifloat::{E2M1, E4M3};
//!
//! let tensor = [0x38, 0xC0, 0x2A_u8]; // a buffer from elsewhere
//! let numbers: &[E4M3] = cast::from_bits(&tensor)?;
//! assert_eq!(numbers.iter().copied().sum::<E4M3>().to_f32(), -0.6875);
//! assert_eq!(cast::as_bits(numbers), tensor);
//!
//! let error = cast::from_bits::<exmy::minifloat::ExMy<2, 1, exmy::minifloat::Finite>>(&tensor);
//! assert_eq!(error.unwrap_err().index, 0);
//!
//! let mut codes = [0_u8; 4]; // typed writing into a buffer of codes
//! cast::from_bits_mut(&mut codes)?.fill(E2M1::from_f32(1.5));
//! assert_eq!(codes, [3; 4]);
//! # Ok::<(), cast::StrayBits>(())
//! ```

#![allow(unsafe_code)]

use core::fmt;
use core::slice;

use crate::format::Format;
#[cfg(feature = "bytemuck")]
use crate::minifloat::Yes;
use crate::minifloat::{self, Bits, FloatFormat, Minifloat};

// SAFETY: a number is an unsigned integer (`repr(transparent)`), and 0 is a code of every format.
#[cfg(feature = "bytemuck")]
unsafe impl<F: FloatFormat> bytemuck::Zeroable for Minifloat<F> {}

// SAFETY: a number is an unsigned integer (`repr(transparent)`), without padding, and by `Full` every
// value of that integer is a code.
#[cfg(feature = "bytemuck")]
unsafe impl<F: FloatFormat<Full = Yes>> bytemuck::Pod for Minifloat<F> {}

/// An integer of a slice has bits above the format's width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StrayBits {
    /// Where, counted in codes.
    pub index: usize,
    /// The integer.
    pub bits: u64,
    /// The format.
    pub format: Format,
}

impl fmt::Display for StrayBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, bits, format } = self;
        let width = format.bits();
        write!(f, "code {index} is {bits:#x}, more than the {width} bits of {format}")
    }
}

impl core::error::Error for StrayBits {}

/// Why bytes are no slice of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BytesError {
    /// They do not divide into codes.
    Length {
        /// How many bytes there are.
        bytes: usize,
        /// Bytes of a code.
        each: usize,
    },
    /// They begin at an address that codes of this many bytes cannot have.
    Alignment {
        /// What the address must be a multiple of.
        align: usize,
    },
    /// They are codes with bits that the format lacks.
    StrayBits(StrayBits),
}

impl fmt::Display for BytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes, each } => {
                write!(f, "{bytes} bytes are no whole number of codes of {each} bytes")
            }
            Self::Alignment { align } => {
                write!(f, "the bytes begin at an address that is no multiple of {align}")
            }
            Self::StrayBits(stray) => stray.fmt(f),
        }
    }
}

impl core::error::Error for BytesError {}

/// Whether every integer is a code.
const fn fills<F: FloatFormat>() -> bool {
    minifloat::fills::<F::Bits>(Minifloat::<F>::FORMAT)
}

fn check<F: FloatFormat>(bits: &[F::Bits]) -> Result<(), StrayBits> {
    if fills::<F>() {
        return Ok(());
    }
    let format = Minifloat::<F>::FORMAT;
    match bits.iter().position(|bits| bits.to_u64() >> format.bits() != 0) {
        None => Ok(()),
        Some(index) => Err(StrayBits { index, bits: bits[index].to_u64(), format }),
    }
}

/// The codes of numbers.
///
/// ```
/// use exmy::minifloat::E2M1;
///
/// assert_eq!(exmy::slice::cast::as_bits(&[E2M1::MAX, -E2M1::MAX]), [0x7, 0xF]); // a byte each, not packed
/// ```
pub fn as_bits<F: FloatFormat>(numbers: &[Minifloat<F>]) -> &[F::Bits] {
    // SAFETY: `Minifloat<F>` is `repr(transparent)` over `F::Bits`, so pointer, length, alignment
    // and lifetime are those of the slice given, and every code is a valid integer.
    unsafe { slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) }
}

/// The codes of numbers, for writing: of formats whose bits fill their integer, so that every
/// integer is a code. For others it does not compile; [`from_bits_mut`] serves them.
///
/// ```compile_fail
/// let mut numbers = [exmy::minifloat::E2M1::MAX];
/// exmy::slice::cast::as_bits_mut(&mut numbers)[0] = 0x1F;
/// ```
///
/// ```
/// let mut numbers = [exmy::minifloat::E4M3::MAX];
/// exmy::slice::cast::as_bits_mut(&mut numbers)[0] = 0x38;
/// assert_eq!(numbers[0].to_f32(), 1.0);
/// ```
pub fn as_bits_mut<F: FloatFormat>(numbers: &mut [Minifloat<F>]) -> &mut [F::Bits] {
    const { assert!(fills::<F>(), "not every integer is a code of this format") }
    codes_mut(numbers)
}

/// The codes of numbers of any format, for the crate's own conversions, which write nothing but
/// codes.
pub(crate) fn codes_mut<F: FloatFormat>(numbers: &mut [Minifloat<F>]) -> &mut [F::Bits] {
    // SAFETY: as in `as_bits`; the borrow is exclusive, and what is written through it is a
    // `F::Bits`, which is all that `Minifloat<F>` holds to the language.
    unsafe { slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len()) }
}

/// The numbers of codes.
///
/// # Errors
/// If a code has bits above the format's width. Where there are none (E4M3, F16), nothing is looked
/// at.
///
/// ```
/// use exmy::slice::cast;
/// use exmy::minifloat::E2M1;
///
/// let numbers: &[E2M1] = cast::from_bits(&[0x7, 0xF])?;
/// assert_eq!(numbers[1].to_f32(), -6.0);
/// let error = cast::from_bits::<_>(&[0x7, 0x1F]).map(|numbers: &[E2M1]| numbers.len()).unwrap_err();
/// assert_eq!((error.index, error.bits), (1, 0x1F)); // two packed codes are no number
/// # Ok::<(), cast::StrayBits>(())
/// ```
pub fn from_bits<F: FloatFormat>(bits: &[F::Bits]) -> Result<&[Minifloat<F>], StrayBits> {
    check::<F>(bits)?;
    // SAFETY: `Minifloat<F>` is `repr(transparent)` over `F::Bits`, so pointer, length, alignment
    // and lifetime are those of the slice given. To the language every integer is a valid
    // `Minifloat<F>`, and each was just found to be a code.
    Ok(unsafe { slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) })
}

/// The numbers of codes, for writing: what is written are codes.
///
/// ```
/// use exmy::slice::cast;
/// use exmy::minifloat::E2M1;
///
/// let mut codes = [0x7, 0x1];
/// let numbers: &mut [E2M1] = cast::from_bits_mut(&mut codes)?;
/// numbers[1] = numbers[0] + numbers[1]; // 6.5 saturates
/// assert_eq!(codes, [0x7, 0x7]);
/// codes[0] = 0x80; // a bit above the four of a code
/// let error = cast::from_bits_mut(&mut codes).map(|numbers: &mut [E2M1]| numbers.len()).unwrap_err();
/// assert_eq!((error.index, error.bits), (0, 0x80));
/// # Ok::<(), cast::StrayBits>(())
/// ```
///
/// # Errors
/// As [`from_bits`].
pub fn from_bits_mut<F: FloatFormat>(
    bits: &mut [F::Bits],
) -> Result<&mut [Minifloat<F>], StrayBits> {
    check::<F>(bits)?;
    // SAFETY: as in `from_bits`; the borrow is exclusive, and what is written through it is a
    // `Minifloat<F>`, a valid `F::Bits`.
    Ok(unsafe { slice::from_raw_parts_mut(bits.as_mut_ptr().cast(), bits.len()) })
}

/// The codes of numbers as bytes in the machine's order.
///
/// ```
/// use exmy::minifloat::Bf16;
///
/// let one = [Bf16::from_f32(1.0)];
/// assert_eq!(exmy::slice::cast::as_bytes(&one), 0x3F80_u16.to_ne_bytes()); // the machine's order
/// ```
pub fn as_bytes<F: FloatFormat>(numbers: &[Minifloat<F>]) -> &[u8] {
    // SAFETY: `Minifloat<F>` is `repr(transparent)` over an unsigned integer (`Bits` is sealed),
    // which has no padding; a byte has no alignment, and the length is that of the slice in bytes.
    unsafe { slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// The numbers of bytes in the machine's order.
///
/// # Errors
/// If the bytes do not divide into codes, are not aligned as the integers that store them, or a code
/// has bits above the format's width.
///
/// ```
/// use exmy::slice::cast::{self, BytesError};
/// use exmy::minifloat::{Bf16, E4M3};
///
/// let numbers: &[E4M3] = cast::from_bytes(&[0x38, 0x7F])?;
/// assert!(numbers[0].to_f32() == 1.0 && numbers[1].is_nan());
/// let odd = cast::from_bytes(&[0; 3]).map(|numbers: &[Bf16]| numbers.len());
/// assert_eq!(odd, Err(BytesError::Length { bytes: 3, each: 2 }));
/// # Ok::<(), BytesError>(())
/// ```
pub fn from_bytes<F: FloatFormat>(bytes: &[u8]) -> Result<&[Minifloat<F>], BytesError> {
    let each = size_of::<F::Bits>();
    if !bytes.len().is_multiple_of(each) {
        return Err(BytesError::Length { bytes: bytes.len(), each });
    }
    let start = bytes.as_ptr().cast::<F::Bits>();
    if !start.is_aligned() {
        return Err(BytesError::Alignment { align: align_of::<F::Bits>() });
    }
    // SAFETY: the pointer is aligned and the bytes are initialized, as many as that number of
    // integers has. Every bit pattern is a valid integer. The lifetime is that of the bytes.
    let bits = unsafe { slice::from_raw_parts(start, bytes.len() / each) };
    from_bits(bits).map_err(BytesError::StrayBits)
}
