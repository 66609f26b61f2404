//! Codes of 1 to 16 bits as a dense stream of bits, and back.
//!
//! Code `i` of width `w` occupies bits `i w` to `(i + 1) w - 1` of the stream, and bit `j` of the
//! stream is bit `j mod 8` of byte `j / 8`: little-endian throughout. The usual containers follow:
//! FP4 puts element `2i` into the low nibble (torchao, Transformer Engine, gpt-oss), and FP6 puts
//! four codes into three bytes, `v0 | v1 << 6 | v2 << 12 | v3 << 18` (Quark, Modular). Bits of the
//! last byte beyond the last code are zero.

#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Why codes were not packed or unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PackError {
    /// A width outside 1..=16.
    Width {
        /// Bits a code was to have.
        width: u32,
    },
    /// A code with bits beyond its width.
    CodeTooWide {
        /// Where it is.
        index: usize,
        /// The code.
        code: u16,
        /// Bits it may have.
        width: u32,
    },
    /// A byte buffer of another length than the codes take.
    Length {
        /// Bytes that the codes take; `usize::MAX` if that is more than memory can hold.
        needed: usize,
        /// Bytes there are.
        found: usize,
        /// Number of codes.
        codes: usize,
        /// Bits of a code.
        width: u32,
    },
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width { width } => {
                write!(f, "codes of {width} bits: widths from 1 to 16 can be packed")
            }
            Self::CodeTooWide { index, code, width } => {
                write!(f, "code {code:#x} at index {index} does not fit {width} bits")
            }
            Self::Length { needed, found, codes, width } => {
                write!(f, "{codes} codes of {width} bits take {needed} bytes, found {found}")
            }
        }
    }
}

impl core::error::Error for PackError {}

/// An unsigned integer that holds one code: `u8` or `u16`.
pub trait Code: Copy + Into<u16> + TryFrom<u16> + sealed::Sealed {
    /// Bits of the integer.
    const BITS: u32;
}

mod sealed {
    pub trait Sealed {}
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
pub const fn packed_len(count: usize, width: u32) -> Option<usize> {
    // Whole groups of eight codes take `width` bytes each, so nothing wider than the result occurs.
    let (groups, rest) = (count / 8, count % 8);
    match groups.checked_mul(width as usize) {
        Some(bytes) => bytes.checked_add((rest * width as usize).div_ceil(8)),
        None => None,
    }
}

fn check_length(count: usize, width: u32, found: usize) -> Result<(), PackError> {
    if !(1..=16).contains(&width) {
        return Err(PackError::Width { width });
    }
    match packed_len(count, width) {
        Some(needed) if needed == found => Ok(()),
        needed => {
            let needed = needed.unwrap_or(usize::MAX);
            Err(PackError::Length { needed, found, codes: count, width })
        }
    }
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
    if !(1..=16).contains(&width) {
        return Err(PackError::Width { width });
    }
    // A code takes no more bytes packed than in the slice, whose size fits.
    let mut bytes = vec![0; packed_len(codes.len(), width).unwrap_or(0)];
    pack_into(codes, width, &mut bytes)?;
    Ok(bytes)
}

/// Packs codes of `width` bits into `bytes`, which must be as long as [`packed_len`] says. On an
/// error about a code the bytes before it are written.
///
/// # Errors
/// If `width` is not in 1..=16, a code has bits beyond it, or `bytes` has another length.
pub fn pack_into<C: Code>(codes: &[C], width: u32, bytes: &mut [u8]) -> Result<(), PackError> {
    check_length(codes.len(), width, bytes.len())?;
    // Bits not yet written, the earliest lowest; fewer than 8 before a code is appended.
    let (mut pending, mut count) = (0_u32, 0);
    let mut bytes = bytes.iter_mut();
    for (index, &code) in codes.iter().enumerate() {
        let code: u16 = code.into();
        if u32::from(code) >> width != 0 {
            return Err(PackError::CodeTooWide { index, code, width });
        }
        pending |= u32::from(code) << count;
        count += width;
        while count >= 8 {
            if let Some(byte) = bytes.next() {
                *byte = pending as u8;
            }
            pending >>= 8;
            count -= 8;
        }
    }
    if let Some(byte) = bytes.next() {
        *byte = pending as u8;
    }
    Ok(())
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
    check_length(count, width, bytes.len())?;
    if width > C::BITS {
        return Err(PackError::Width { width });
    }
    Ok(codes(bytes, width, count).collect())
}

/// Unpacks as many codes of `width` bits as `codes` holds.
///
/// # Errors
/// As of [`unpack`].
pub fn unpack_into<C: Code>(bytes: &[u8], width: u32, out: &mut [C]) -> Result<(), PackError> {
    check_length(out.len(), width, bytes.len())?;
    if width > C::BITS {
        return Err(PackError::Width { width });
    }
    let count = out.len();
    for (out, code) in out.iter_mut().zip(codes(bytes, width, count)) {
        *out = code;
    }
    Ok(())
}

/// The codes of a stream; lengths and width are checked by the callers.
fn codes<C: Code>(bytes: &[u8], width: u32, count: usize) -> impl Iterator<Item = C> {
    let mut bytes = bytes.iter();
    let (mut pending, mut available) = (0_u32, 0);
    core::iter::repeat_with(move || {
        while available < width {
            pending |= u32::from(bytes.next().copied().unwrap_or(0)) << available;
            available += 8;
        }
        let code = (pending & ((1 << width) - 1)) as u16;
        pending >>= width;
        available -= width;
        code
    })
    .take(count)
    .filter_map(|code| C::try_from(code).ok())
}

/// The stream as individual bits: code `i` of width `w` is `bits[i * w..(i + 1) * w]`, readable
/// with `load_le`.
#[cfg(feature = "bitvec")]
pub fn bits(bytes: &[u8]) -> &bitvec::slice::BitSlice<u8, bitvec::order::Lsb0> {
    bitvec::view::BitView::view_bits(bytes)
}

/// The stream as individual bits that can be written.
#[cfg(feature = "bitvec")]
pub fn bits_mut(bytes: &mut [u8]) -> &mut bitvec::slice::BitSlice<u8, bitvec::order::Lsb0> {
    bitvec::view::BitView::view_bits_mut(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Philox, Stream};

    fn some_codes(width: u32, count: usize) -> Vec<u16> {
        let philox = Philox::new(u64::from(width), Stream::new("pack"));
        (0..count as u64).map(|i| philox.bits(i, width) as u16).collect()
    }

    /// Each bit placed by the sentence that defines the layout.
    #[test]
    fn the_stream_is_little_endian() {
        for width in 1..=16 {
            for count in 0..40 {
                let codes = some_codes(width, count);
                let mut expected = vec![0_u8; (count * width as usize).div_ceil(8)];
                for (i, code) in codes.iter().enumerate() {
                    for b in 0..width as usize {
                        let at = i * width as usize + b;
                        expected[at / 8] |= ((code >> b & 1) as u8) << (at % 8);
                    }
                }
                assert_eq!(packed_len(count, width), Some(expected.len()));
                assert_eq!(pack(&codes, width).unwrap(), expected);
                assert_eq!(unpack::<u16>(&expected, width, count).unwrap(), codes);
                if width <= 8 {
                    let narrow: Vec<u8> = codes.iter().map(|&code| code as u8).collect();
                    assert_eq!(pack(&narrow, width).unwrap(), expected);
                    let mut out = vec![0xFF_u8; count];
                    unpack_into(&expected, width, &mut out).unwrap();
                    assert_eq!(out, narrow);
                }
            }
        }
    }

    #[test]
    fn containers_of_fp4_and_fp6() {
        assert_eq!(pack(&[0xA_u8, 0x5, 0x3, 0xC], 4).unwrap(), [0x5A, 0xC3]);
        let v = [0x21_u8, 0x3F, 0x00, 0x15];
        let word = 0x21 | 0x3F << 6 | 0x15 << 18;
        assert_eq!(pack(&v, 6).unwrap(), [word as u8, (word >> 8) as u8, (word >> 16) as u8]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = pack(&[3_u8, 4], 2).unwrap_err();
        assert_eq!(error, PackError::CodeTooWide { index: 1, code: 4, width: 2 });
        assert_eq!(pack(&[0_u8], 0), Err(PackError::Width { width: 0 }));
        assert_eq!(pack(&[0_u16], 17), Err(PackError::Width { width: 17 }));
        assert_eq!(unpack::<u8>(&[0, 0], 9, 1), Err(PackError::Width { width: 9 }));
        for bytes in [2, 4] {
            let error = PackError::Length { needed: 3, found: bytes, codes: 4, width: 6 };
            assert_eq!(unpack::<u8>(&vec![0; bytes], 6, 4), Err(error));
            assert_eq!(pack_into(&[0_u8; 4], 6, &mut vec![0; bytes]), Err(error));
        }
        assert!(unpack::<u16>(&[], 16, usize::MAX).is_err());
        assert_eq!(packed_len(usize::MAX, 16), None);
        assert_eq!(packed_len(usize::MAX, 1), Some(usize::MAX / 8 + 1));
    }

    #[cfg(feature = "bitvec")]
    #[test]
    fn bits_agree_with_bitvec() {
        use bitvec::field::BitField;
        for width in 1..=16_usize {
            let codes = some_codes(width as u32, 37);
            let bytes = pack(&codes, width as u32).unwrap();
            let mut rebuilt = vec![0; bytes.len()];
            for (i, &code) in codes.iter().enumerate() {
                let place = i * width..(i + 1) * width;
                assert_eq!(bits(&bytes)[place.clone()].load_le::<u16>(), code);
                bits_mut(&mut rebuilt)[place].store_le(code);
            }
            assert_eq!(rebuilt, bytes);
        }
    }
}
