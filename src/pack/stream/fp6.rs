//! Codes of 6 bits: four in three bytes.
//!
//! The hand-written kernel where there is one, and the body for all widths for what it leaves over.

use super::{CodeInteger, PackedCount, groups};

/// Packs.
pub(super) fn pack(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    let done = super::x86::pack_sixes(codes, bytes);
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    let done = PackedCount { codes: 0, any: 0 };
    let (rest, at) = (&codes[done.codes..], done.codes / 8 * 6);
    let more = groups::pack_bytes(rest, 6, &mut bytes[at..]);
    PackedCount { codes: done.codes + more, any: done.any | u8::any(rest) }
}

/// Unpacks; how many codes were.
pub(super) fn unpack(bytes: &[u8], codes: &mut [u8]) -> usize {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    let done = super::x86::unpack_sixes(bytes, codes);
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    let done = 0;
    done + groups::unpack_bytes(&bytes[done / 8 * 6..], 6, &mut codes[done..])
}
