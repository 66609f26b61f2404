//! Codes of 4 bits: two in a byte, the first in the low nibble.
//!
//! Two codes are one 16-bit integer, so packing is a shift and an OR in lanes of 16 bits that keep
//! their low byte, and unpacking the way back.

use crate::simd::kernel;

kernel! {
    /// Packs all pairs.
    pub(super) fn pack<'a>(codes: &'a [u8], bytes: &'a mut [u8]) -> usize {
        for (byte, pair) in bytes.iter_mut().zip(codes.as_chunks().0) {
            let pair = u16::from_le_bytes(*pair);
            *byte = (pair | pair >> 4) as u8;
        }
        codes.len() / 8 * 8
    }
}

kernel! {
    /// Unpacks all pairs.
    pub(super) fn unpack<'a>(bytes: &'a [u8], codes: &'a mut [u8]) -> usize {
        for (pair, byte) in codes.as_chunks_mut().0.iter_mut().zip(bytes) {
            let both = u16::from(*byte);
            *pair = ((both | both << 4) & 0x0F0F).to_le_bytes();
        }
        codes.len() / 8 * 8
    }
}
