//! The containers in which codes are stored, and their names.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{Code, PackError, check_width, code_too_wide, pack_into, packed_len, unpack_into};
use crate::text::UnknownName;

/// A container of codes.
///
/// * `stream`, 1 to 16 bits: no bit between codes, little-endian. FP4 of torchao (`pack_uint4`), Transformer
///   Engine, gpt-oss and Quark; FP6 of Quark (`Pack_fp6`) and Modular (`pack_fp6_x4`).
/// * `byte`, 1 to 16 bits: one code a byte, or two bytes (low one first) above 8 bits; the bits above it
///   zero. ml_dtypes, torchao, results of PTX `cvt`.
/// * `fp6-padded4`, 6 bits: 4 codes in 3 bytes, then 1 zero byte. A container discussed for Triton
///   (triton-lang/triton#7756).
/// * `fp6-padded32`, 6 bits: 32 codes (an MX block) in 24 bytes, then 8 zero bytes. Blocks aligned to 32
///   bytes.
/// * `tma16`, 6 bits: 16 codes in 12 bytes, then 4 zero bytes. Inferred from the name of CUDA's tensor map
///   type `16U6_ALIGN16B`; compared with no device.
///
/// A last group that is not full is completed with zero codes. Padding is written as zeros and not
/// looked at when read; bits above a code in `byte` are no padding but an error.
///
/// PTX names the operands of `cvt.rn.satfinite.e2m1x2.f32 d, a, b` from the top: `b` goes into the
/// low nibble and `a` into the high one, so the stream of elements 0, 1 is `cvt d, x1, x0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Layout {
    /// The dense stream of bits.
    #[default]
    Stream,
    /// One code a byte, or two bytes above 8 bits.
    Byte,
    /// Four codes of 6 bits in 4 bytes.
    Fp6Padded4,
    /// 32 codes of 6 bits in 32 bytes.
    Fp6Padded32,
    /// 16 codes of 6 bits in 16 bytes.
    Tma16,
}

/// Groups of codes with bytes behind each.
#[derive(Clone, Copy)]
struct Groups {
    codes: usize,
    data: usize,
    whole: usize,
}

/// Codes that go through a stream of their own at a time; a multiple of every group.
const BATCH: usize = 2048;

impl Groups {
    /// From a stream of whole groups to groups with padding.
    fn pad(self, stream: &[u8], bytes: &mut [u8]) {
        match self.whole {
            4 => pad::<3, 4>(stream, bytes),
            16 => pad::<12, 16>(stream, bytes),
            _ => pad::<24, 32>(stream, bytes),
        }
    }

    /// The way back.
    fn strip(self, bytes: &[u8], stream: &mut [u8]) {
        match self.whole {
            4 => strip::<3, 4>(bytes, stream),
            16 => strip::<12, 16>(bytes, stream),
            _ => strip::<24, 32>(bytes, stream),
        }
    }
}

fn pad<const DATA: usize, const WHOLE: usize>(stream: &[u8], bytes: &mut [u8]) {
    let groups = bytes.as_chunks_mut::<WHOLE>().0;
    for (group, data) in groups.iter_mut().zip(stream.as_chunks::<DATA>().0) {
        *group = [0; WHOLE];
        group[..DATA].copy_from_slice(data);
    }
}

fn strip<const DATA: usize, const WHOLE: usize>(bytes: &[u8], stream: &mut [u8]) {
    let groups = bytes.as_chunks::<WHOLE>().0;
    for (data, group) in stream.as_chunks_mut::<DATA>().0.iter_mut().zip(groups) {
        data.copy_from_slice(&group[..DATA]);
    }
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 5] =
        [Self::Stream, Self::Byte, Self::Fp6Padded4, Self::Fp6Padded32, Self::Tma16];

    /// Its name.
    ///
    /// ```
    /// use exmy::pack::Layout;
    ///
    /// assert_eq!(Layout::Fp6Padded4.name(), "fp6-padded4");
    /// assert_eq!(Layout::Tma16.len(16, 6), Ok(16)); // 12 bytes of codes and 4 of padding
    /// assert!(Layout::Tma16.len(16, 8).is_err()); // it holds 6-bit codes only
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Byte => "byte",
            Self::Fp6Padded4 => "fp6-padded4",
            Self::Fp6Padded32 => "fp6-padded32",
            Self::Tma16 => "tma16",
        }
    }

    const fn groups(self) -> Option<Groups> {
        match self {
            Self::Stream | Self::Byte => None,
            Self::Fp6Padded4 => Some(Groups { codes: 4, data: 3, whole: 4 }),
            Self::Fp6Padded32 => Some(Groups { codes: 32, data: 24, whole: 32 }),
            Self::Tma16 => Some(Groups { codes: 16, data: 12, whole: 16 }),
        }
    }

    /// Bytes that `count` codes of `width` bits take.
    ///
    /// # Errors
    /// If `width` is not in 1..=16 or not one that the layout holds, or the bytes are more than a
    /// `usize` can say.
    ///
    /// ```
    /// use exmy::pack::Layout;
    ///
    /// assert_eq!(Layout::Stream.len(33, 6)?, 25);
    /// assert_eq!(Layout::Fp6Padded32.len(33, 6)?, 64); // the second group holds one code
    /// assert!(Layout::Fp6Padded4.len(4, 4).is_err());
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn len(self, count: usize, width: u32) -> Result<usize, PackError> {
        check_width(width, 16)?;
        let len = match self.groups() {
            Some(_) if width != 6 => {
                return Err(PackError::Container { container: self.name(), holds: 6, width });
            }
            Some(groups) => count.div_ceil(groups.codes).checked_mul(groups.whole),
            None if self == Self::Byte => count.checked_mul(if width > 8 { 2 } else { 1 }),
            None => packed_len(count, width),
        };
        len.ok_or(self.wrong_length(count, width, usize::MAX, 0))
    }

    fn wrong_length(self, codes: usize, width: u32, needed: usize, found: usize) -> PackError {
        PackError::Length { container: self.name(), needed, found, codes, width }
    }

    fn check(self, count: usize, width: u32, found: usize) -> Result<(), PackError> {
        let needed = self.len(count, width)?;
        if needed == found { Ok(()) } else { Err(self.wrong_length(count, width, needed, found)) }
    }

    /// Puts codes of `width` bits into `bytes`. On an error about a code all bytes are zero.
    ///
    /// # Errors
    /// As [`len`](Self::len), and if a code has bits beyond `width` or `bytes` has another length.
    ///
    /// ```
    /// use exmy::pack::Layout;
    ///
    /// let mut bytes = [0xFF; 8];
    /// Layout::Fp6Padded4.pack_into(&[0x3F_u8, 0, 0, 0, 0x21], 6, &mut bytes)?;
    /// assert_eq!(bytes, [0x3F, 0, 0, 0, 0x21, 0, 0, 0]);
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn pack_into<C: Code>(
        self,
        codes: &[C],
        width: u32,
        bytes: &mut [u8],
    ) -> Result<(), PackError> {
        self.check(codes.len(), width, bytes.len())?;
        let Some(groups) = self.groups() else {
            if self == Self::Stream {
                return pack_into(codes, width, bytes);
            }
            if let Some(error) = code_too_wide(codes, width) {
                bytes.fill(0);
                return Err(error);
            }
            // A code of a whole byte or two is its own container.
            return pack_into(codes, if width > 8 { 16 } else { 8 }, bytes);
        };
        if let Some(error) = code_too_wide(codes, width) {
            bytes.fill(0);
            return Err(error);
        }
        // Through a stream of many groups, which the packer makes faster than one of few.
        let mut stream = [0; BATCH / 8 * 6];
        let batches = bytes.chunks_mut(BATCH / groups.codes * groups.whole);
        for (codes, bytes) in codes.chunks(BATCH).zip(batches) {
            let len = codes.len().div_ceil(groups.codes) * groups.data;
            let packed = packed_len(codes.len(), width).unwrap_or(len);
            pack_into(codes, width, &mut stream[..packed])?;
            stream[packed..len].fill(0);
            groups.pad(&stream[..len], bytes);
        }
        Ok(())
    }

    /// The codes in new bytes.
    ///
    /// # Errors
    /// As [`pack_into`](Self::pack_into), without those of a length.
    ///
    /// ```
    /// use exmy::pack::Layout;
    ///
    /// assert_eq!(Layout::Byte.pack(&[0x2A_u16, 0x1FF], 9)?, [0x2A, 0x00, 0xFF, 0x01]);
    /// assert!(Layout::Byte.pack(&[0x2A_u16, 0x1FF], 8).is_err());
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn pack<C: Code>(self, codes: &[C], width: u32) -> Result<Vec<u8>, PackError> {
        let mut bytes = vec![0; self.len(codes.len(), width)?];
        self.pack_into(codes, width, &mut bytes)?;
        Ok(bytes)
    }

    /// Takes as many codes of `width` bits as `codes` holds out of `bytes`. On an error about a
    /// code all codes are zero.
    ///
    /// # Errors
    /// As [`len`](Self::len), and if `width` exceeds the integer type, `bytes` has another length,
    /// or a code of [`Layout::Byte`] has bits beyond `width`.
    ///
    /// ```
    /// use exmy::pack::{Layout, PackError};
    ///
    /// let mut codes = [0_u8; 2];
    /// let error = Layout::Byte.unpack_into(&[0x15, 0x40], 6, &mut codes);
    /// assert_eq!(error, Err(PackError::CodeTooWide { index: 1, code: 0x40, width: 6 }));
    /// ```
    pub fn unpack_into<C: Code>(
        self,
        bytes: &[u8],
        width: u32,
        codes: &mut [C],
    ) -> Result<(), PackError> {
        self.check(codes.len(), width, bytes.len())?;
        check_width(width, C::BITS)?;
        let Some(groups) = self.groups() else {
            if self == Self::Stream {
                return unpack_into(bytes, width, codes);
            }
            unpack_into(bytes, if width > 8 { 16 } else { 8 }, codes)?;
            if let Some(error) = code_too_wide(codes, width) {
                codes.fill(C::from_low_bits(0));
                return Err(error);
            }
            return Ok(());
        };
        let mut stream = [0; BATCH / 8 * 6];
        let batches = bytes.chunks(BATCH / groups.codes * groups.whole);
        for (codes, bytes) in codes.chunks_mut(BATCH).zip(batches) {
            groups.strip(bytes, &mut stream);
            let packed = packed_len(codes.len(), width).unwrap_or(stream.len());
            unpack_into(&stream[..packed], width, codes)?;
        }
        Ok(())
    }

    /// The first `count` codes in a new vector.
    ///
    /// # Errors
    /// As [`unpack_into`](Self::unpack_into).
    ///
    /// ```
    /// use exmy::pack::Layout;
    ///
    /// let bytes = [0x3F, 0, 0, 0xAA, 0x21, 0, 0, 0]; // what lies in the padding does not matter
    /// assert_eq!(Layout::Fp6Padded4.unpack::<u8>(&bytes, 6, 5)?, [0x3F, 0, 0, 0, 0x21]);
    /// # Ok::<(), exmy::pack::PackError>(())
    /// ```
    pub fn unpack<C: Code>(
        self,
        bytes: &[u8],
        width: u32,
        count: usize,
    ) -> Result<Vec<C>, PackError> {
        self.check(count, width, bytes.len())?;
        let mut codes = vec![C::from_low_bits(0); count];
        self.unpack_into(bytes, width, &mut codes)?;
        Ok(codes)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layout {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|layout| layout.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names = Self::ALL.into_iter().map(Self::name);
            let forms = "stream, byte, fp6-padded4, fp6-padded32, tma16";
            UnknownName::new("layout of codes", text, names, forms)
        })
    }
}
