//! Codes of 4 bits: two in a byte, the first in the low nibble.
//!
//! Two codes are one 16-bit integer, so packing is a shift and an OR in lanes of 16 bits that keep
//! their low byte, and unpacking the way back. The compiler vectorizes both; with the check of the
//! codes in the same loop it does not do well, so x86-64 has a hand-written kernel for packing.

use super::{CodeInteger, PackedCount};
use crate::simd::kernel;

/// Packs all groups.
pub(super) fn pack(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    let done = super::x86::pack_fours(codes, bytes);
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    let done = PackedCount { codes: 0, any: 0 };
    let rest = &codes[done.codes..];
    pack_pairs(rest, &mut bytes[done.codes / 2..]);
    PackedCount { codes: codes.len() / 8 * 8, any: done.any | u8::any(rest) }
}

kernel! {
    fn pack_pairs<'a>(codes: &'a [u8], bytes: &'a mut [u8]) {
        for (byte, pair) in bytes.iter_mut().zip(codes.as_chunks().0) {
            let pair = u16::from_le_bytes(*pair);
            *byte = (pair | pair >> 4) as u8;
        }
    }
}

kernel! {
    /// Unpacks all groups; how many codes they are.
    pub(super) fn unpack<'a>(bytes: &'a [u8], codes: &'a mut [u8]) -> usize {
        for (pair, byte) in codes.as_chunks_mut().0.iter_mut().zip(bytes) {
            let both = u16::from(*byte);
            *pair = ((both | both << 4) & 0x0F0F).to_le_bytes();
        }
        codes.len() / 8 * 8
    }
}
