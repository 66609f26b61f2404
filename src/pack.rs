//! Codes of 1 to 16 bits as a dense stream of bits and in the other containers they are stored in,
//! and back; block scales in theirs.
//!
//! Code `i` of width `w` occupies bits `i w` to `(i + 1) w - 1` of the stream, and bit `j` of the
//! stream is bit `j mod 8` of byte `j / 8`: little-endian throughout. The usual containers follow:
//! FP4 puts element `2i` into the low nibble (torchao, Transformer Engine, gpt-oss), and FP6 puts
//! four codes into three bytes, `v0 | v1 << 6 | v2 << 12 | v3 << 18` (Quark, Modular). Bits of the
//! last byte beyond the last code are zero.
//!
//! The definition is [`pack_plain`] and [`unpack_plain`], bit by bit. [`pack_into`] and
//! [`unpack_into`] do the same in groups of eight codes, which are `w` whole bytes, with bodies of
//! their own for 4 and 6 bits. Large slices are divided between threads. [`Layout`] names the other
//! containers of codes, [`scales`] those of scales, [`ggml`] and [`gpt_oss`] the ones that a file
//! format prescribes for both.

#![deny(unsafe_code)]

#[cfg(feature = "bitvec")]
mod bits;
mod error;
pub mod ggml;
pub mod gpt_oss;
mod layout;
mod plain;
pub mod scales;
mod stream;

#[cfg(feature = "bitvec")]
pub use bits::{bits, bits_mut, code_bits, code_bits_mut};
pub use error::PackError;
pub use layout::Layout;
pub use plain::{pack_plain, unpack_plain};
pub use scales::ScaleLayout;

use alloc::vec;
use alloc::vec::Vec;

/// An unsigned integer that holds one code: `u8` or `u16`.
pub trait Code: Copy + Into<u16> + TryFrom<u16> + Send + Sync + sealed::Sealed {
    /// Bits of the integer.
    const BITS: u32;
}

mod sealed {
    use super::stream::CodeInteger;

    pub trait Sealed: CodeInteger {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
}

impl Code for u8 {
    const BITS: u32 = 8;
}

impl Code for u16 {
    const BITS: u32 = 16;
}

/// Bytes that `count` codes of `width` bits take; `None` if more than a `usize` can say.
///
/// ```
/// use exmy::pack;
///
/// assert_eq!(pack::packed_len(5, 6), Some(4)); // 30 bits
/// assert_eq!(pack::packed_len(usize::MAX, 9), None);
/// ```
pub const fn packed_len(count: usize, width: u32) -> Option<usize> {
    // Whole groups of eight codes take `width` bytes each, so nothing wider than the result occurs.
    let (groups, rest) = (count / 8, count % 8);
    match groups.checked_mul(width as usize) {
        Some(bytes) => bytes.checked_add((rest * width as usize).div_ceil(8)),
        None => None,
    }
}

fn check_width(width: u32, most: u32) -> Result<(), PackError> {
    if (1..=most).contains(&width) { Ok(()) } else { Err(PackError::Width { width, most }) }
}

fn check_length(count: usize, width: u32, found: usize) -> Result<(), PackError> {
    check_width(width, 16)?;
    match packed_len(count, width) {
        Some(needed) if needed == found => Ok(()),
        needed => {
            let (container, needed) = (Layout::Stream.name(), needed.unwrap_or(usize::MAX));
            Err(PackError::Length { container, needed, found, codes: count, width })
        }
    }
}

/// The first code that has bits beyond its width.
fn code_too_wide<C: Code>(codes: &[C], width: u32) -> Option<PackError> {
    if width >= C::BITS || stream::any(codes) >> width == 0 {
        return None;
    }
    let index = codes.iter().position(|&code| Into::<u16>::into(code) >> width != 0)?;
    Some(PackError::CodeTooWide { index, code: codes[index].into(), width })
}

/// Packs codes of `width` bits into new bytes.
///
/// # Errors
/// If `width` is not in 1..=16, or a code has bits beyond it.
///
/// ```
/// use exmy::pack;
///
/// assert_eq!(pack::pack(&[0x1_u8, 0x2, 0xF], 4)?, [0x21, 0x0F]);
/// # Ok::<(), pack::PackError>(())
/// ```
pub fn pack<C: Code>(codes: &[C], width: u32) -> Result<Vec<u8>, PackError> {
    check_width(width, 16)?;
    // A code takes no more bytes packed than two in the slice, so that this is never `None`.
    let mut bytes = vec![0; packed_len(codes.len(), width).unwrap_or(0)];
    pack_into(codes, width, &mut bytes)?;
    Ok(bytes)
}

/// Packs codes of `width` bits into `bytes`, which must be as long as [`packed_len`] says. On an
/// error about a code all bytes are zero; on another they are as before.
///
/// # Errors
/// If `width` is not in 1..=16, a code has bits beyond it, or `bytes` has another length.
///
/// ```
/// use exmy::pack::{self, PackError};
///
/// let mut bytes = [0xFF; 3];
/// pack::pack_into(&[0x21_u8, 0x3F, 0x00, 0x15], 6, &mut bytes)?;
/// assert_eq!(bytes, [0xE1, 0x0F, 0x54]); // 0x21 | 0x3F << 6 | 0x15 << 18
///
/// let error = pack::pack_into(&[0_u8, 0x40, 0, 0], 6, &mut bytes);
/// assert_eq!(error, Err(PackError::CodeTooWide { index: 1, code: 0x40, width: 6 }));
/// assert_eq!(bytes, [0; 3]);
/// # Ok::<(), PackError>(())
/// ```
pub fn pack_into<C: Code>(codes: &[C], width: u32, bytes: &mut [u8]) -> Result<(), PackError> {
    check_length(codes.len(), width, bytes.len())?;
    if stream::pack(codes, width, bytes) {
        return Ok(());
    }
    bytes.fill(0);
    code_too_wide(codes, width).map_or(Ok(()), Err)
}

/// Unpacks `count` codes of `width` bits into a new vector.
///
/// # Errors
/// If `width` is not in 1..=16 or exceeds the integer type, or `bytes` is not as long as
/// [`packed_len`] says. Bits beyond the last code are ignored.
///
/// ```
/// use exmy::pack;
///
/// let codes: Vec<u8> = pack::unpack(&[0x21, 0x0F], 4, 3)?;
/// assert_eq!(codes, [0x1, 0x2, 0xF]);
/// # Ok::<(), pack::PackError>(())
/// ```
pub fn unpack<C: Code>(bytes: &[u8], width: u32, count: usize) -> Result<Vec<C>, PackError> {
    check_width(width, C::BITS)?;
    check_length(count, width, bytes.len())?;
    let mut codes = vec![C::from_low_bits(0); count];
    unpack_into(bytes, width, &mut codes)?;
    Ok(codes)
}

/// Unpacks as many codes of `width` bits as `codes` holds.
///
/// # Errors
/// As of [`unpack`]; `codes` is then as before.
///
/// ```
/// use exmy::pack;
///
/// let mut codes = [0_u8; 2];
/// pack::unpack_into(&[0xC3], 4, &mut codes)?;
/// assert_eq!(codes, [0x3, 0xC]);
/// assert!(pack::unpack_into(&[0xC3, 0x00, 0x00], 12, &mut codes).is_err()); // a u8 has 8 bits
/// # Ok::<(), pack::PackError>(())
/// ```
pub fn unpack_into<C: Code>(bytes: &[u8], width: u32, codes: &mut [C]) -> Result<(), PackError> {
    check_width(width, C::BITS)?;
    check_length(codes.len(), width, bytes.len())?;
    stream::unpack(bytes, width, codes);
    Ok(())
}
