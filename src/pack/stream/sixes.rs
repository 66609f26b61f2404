//! Codes of 6 bits: four in three bytes.

use super::groups;

pub(super) fn pack(codes: &[u8], bytes: &mut [u8]) -> usize {
    groups::pack_bytes(codes, 6, bytes)
}

pub(super) fn unpack(bytes: &[u8], codes: &mut [u8]) -> usize {
    groups::unpack_bytes(bytes, 6, codes)
}
