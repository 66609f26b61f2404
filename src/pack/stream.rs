//! The dense stream of codes, fast.
//!
//! Eight codes of `w` bits are `w` whole bytes, so a slice is taken in groups of eight: [`groups`]
//! for any width, [`fp4`] and [`fp6`] for those of FP4 and FP6; 8 and 16 bits are copies. What a
//! kernel leaves over goes through the definition ([`plain`](super::plain)). Large slices are cut
//! after whole groups and divided between threads.

mod fp4;
mod fp6;
mod groups;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod x86;

use super::Code;
use super::plain::{pack_plain, unpack_plain};
use crate::simd::kernel;

/// Codes that a kernel is given at a time: where their widths are checked by themselves, that reads
/// them into the first-level cache. A multiple of 64.
const SPAN: usize = 8192;

/// Codes that a thread is given at a time. A multiple of [`SPAN`].
#[cfg(feature = "std")]
const PART: usize = 1 << 18;

/// What a packing kernel has done: how many codes from the first on, a multiple of eight or all.
/// Also which bits any of those had, within the width and beyond it.
#[derive(Clone, Copy)]
pub struct PackedCount {
    codes: usize,
    any: u16,
}

/// What the stream needs of the integers that hold codes.
pub trait CodeInteger: Copy {
    /// The code with these bits; the integer's width of them is kept.
    fn from_low_bits(code: u16) -> Self;
    /// The low eight bits.
    fn low_byte(self) -> u8;
    /// The bits that any of the codes has.
    fn any(codes: &[Self]) -> u16;
    /// Packs. Codes that are too wide make bytes of no use.
    fn pack(codes: &[Self], width: u32, bytes: &mut [u8]) -> PackedCount;
    /// Unpacks; how many codes, counted as in [`PackedCount`].
    fn unpack(bytes: &[u8], width: u32, codes: &mut [Self]) -> usize;
}

impl CodeInteger for u8 {
    #[inline(always)]
    fn from_low_bits(code: u16) -> Self {
        code as u8
    }
    #[inline(always)]
    fn low_byte(self) -> u8 {
        self
    }
    fn any(codes: &[Self]) -> u16 {
        any_of_bytes(codes).into()
    }
    fn pack(codes: &[Self], width: u32, bytes: &mut [u8]) -> PackedCount {
        match width {
            4 => return fp4::pack(codes, bytes),
            6 => return fp6::pack(codes, bytes),
            8 => bytes.copy_from_slice(codes),
            1..8 => {
                let any = Self::any(codes);
                return PackedCount { codes: groups::pack_bytes(codes, width, bytes), any };
            }
            _ => {
                let mut wide = [0_u16; 256];
                let bytes = bytes.chunks_mut(256 / 8 * width as usize);
                for (codes, bytes) in codes.chunks(256).zip(bytes) {
                    let wide = &mut wide[..codes.len()];
                    widen(codes, wide);
                    pack_part(wide, width, bytes);
                }
            }
        }
        PackedCount { codes: codes.len(), any: 0 }
    }
    fn unpack(bytes: &[u8], width: u32, codes: &mut [Self]) -> usize {
        match width {
            4 => fp4::unpack(bytes, codes),
            6 => fp6::unpack(bytes, codes),
            8 => {
                codes.copy_from_slice(bytes);
                codes.len()
            }
            _ => groups::unpack_bytes(bytes, width, codes),
        }
    }
}

impl CodeInteger for u16 {
    #[inline(always)]
    fn from_low_bits(code: u16) -> Self {
        code
    }
    #[inline(always)]
    fn low_byte(self) -> u8 {
        self as u8
    }
    fn any(codes: &[Self]) -> u16 {
        any_of_pairs(codes)
    }
    fn pack(codes: &[Self], width: u32, bytes: &mut [u8]) -> PackedCount {
        let any = if width < 16 { Self::any(codes) } else { 0 };
        match width {
            8 => narrow(codes, bytes),
            16 => pairs(codes, bytes),
            _ => return PackedCount { codes: groups::pack_pairs(codes, width, bytes), any },
        }
        PackedCount { codes: codes.len(), any }
    }
    fn unpack(bytes: &[u8], width: u32, codes: &mut [Self]) -> usize {
        match width {
            8 => widen(bytes, codes),
            16 => from_pairs(bytes, codes),
            _ => return groups::unpack_pairs(bytes, width, codes),
        }
        codes.len()
    }
}

kernel! {
    fn any_of_bytes<'a>(codes: &'a [u8]) -> u8 {
        codes.iter().fold(0, |any, code| any | code)
    }
}

kernel! {
    fn any_of_pairs<'a>(codes: &'a [u16]) -> u16 {
        codes.iter().fold(0, |any, code| any | code)
    }
}

kernel! {
    fn narrow<'a>(codes: &'a [u16], bytes: &'a mut [u8]) {
        for (byte, code) in bytes.iter_mut().zip(codes) {
            *byte = *code as u8;
        }
    }
}

kernel! {
    fn widen<'a>(bytes: &'a [u8], codes: &'a mut [u16]) {
        for (code, byte) in codes.iter_mut().zip(bytes) {
            *code = u16::from(*byte);
        }
    }
}

kernel! {
    fn pairs<'a>(codes: &'a [u16], bytes: &'a mut [u8]) {
        for (pair, code) in bytes.as_chunks_mut().0.iter_mut().zip(codes) {
            *pair = code.to_le_bytes();
        }
    }
}

kernel! {
    fn from_pairs<'a>(bytes: &'a [u8], codes: &'a mut [u16]) {
        for (code, pair) in codes.iter_mut().zip(bytes.as_chunks().0) {
            *code = u16::from_le_bytes(*pair);
        }
    }
}

/// The bits that any of the codes has.
pub(super) fn any<C: Code>(codes: &[C]) -> u16 {
    C::any(codes)
}

/// Packs; whether no code was too wide. If one was, `bytes` holds nothing of use.
pub(super) fn pack<C: Code>(codes: &[C], width: u32, bytes: &mut [u8]) -> bool {
    #[cfg(feature = "std")]
    {
        use std::sync::atomic::{AtomicBool, Ordering};
        let fits = AtomicBool::new(true);
        crate::parallel::for_each_chunk(bytes, PART / 8 * width as usize, |i, bytes| {
            let codes = &codes[i * PART..];
            if !pack_part(&codes[..codes.len().min(PART)], width, bytes) {
                fits.store(false, Ordering::Relaxed);
            }
        });
        fits.into_inner()
    }
    #[cfg(not(feature = "std"))]
    pack_part(codes, width, bytes)
}

fn pack_part<C: Code>(codes: &[C], width: u32, bytes: &mut [u8]) -> bool {
    let mut any = 0_u32;
    for (codes, bytes) in codes.chunks(SPAN).zip(bytes.chunks_mut(SPAN / 8 * width as usize)) {
        let done = C::pack(codes, width, bytes);
        let (rest, at) = (&codes[done.codes..], done.codes / 8 * width as usize);
        any |= u32::from(done.any | C::any(rest));
        if !rest.is_empty() {
            pack_plain(rest, width, &mut bytes[at..]);
        }
    }
    any >> width == 0
}

/// Unpacks.
pub(super) fn unpack<C: Code>(bytes: &[u8], width: u32, codes: &mut [C]) {
    #[cfg(feature = "std")]
    crate::parallel::for_each_chunk(codes, PART, |i, codes| {
        let start = i * (PART / 8 * width as usize);
        let len = super::packed_len(codes.len(), width).unwrap_or(0);
        unpack_part(&bytes[start..start + len], width, codes);
    });
    #[cfg(not(feature = "std"))]
    unpack_part(bytes, width, codes);
}

fn unpack_part<C: Code>(bytes: &[u8], width: u32, codes: &mut [C]) {
    let done = C::unpack(bytes, width, codes);
    if done < codes.len() {
        unpack_plain(&bytes[done / 8 * width as usize..], width, &mut codes[done..]);
    }
}
