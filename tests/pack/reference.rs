//! The packer that all are compared with, from the crate bitvec: it numbers bits as the stream does
//! and stores an integer of any width at any bit.

use bitvec::field::BitField;
use bitvec::order::Lsb0;
use bitvec::vec::BitVec;
use bitvec::view::BitView;
use exmy::random::{Philox, Stream};

/// The stream of codes.
pub(crate) fn packed(codes: &[u16], width: u32) -> Vec<u8> {
    let width = width as usize;
    let mut bits: BitVec<u8, Lsb0> = BitVec::repeat(false, codes.len() * width);
    for (place, code) in bits.chunks_exact_mut(width).zip(codes) {
        place.store_le(*code);
    }
    bits.set_uninitialized(false);
    bits.into_vec()
}

/// The codes of a stream.
pub(crate) fn unpacked(bytes: &[u8], width: u32, count: usize) -> Vec<u16> {
    let bits = bytes.view_bits::<Lsb0>().chunks_exact(width as usize);
    bits.take(count).map(BitField::load_le).collect()
}

/// Codes in which every bit is as often 1 as 0.
pub(crate) fn codes(width: u32, count: usize) -> Vec<u16> {
    let philox = Philox::new(u64::from(width), Stream::new("codes to pack"));
    (0..count as u64).map(|i| philox.bits(i, width) as u16).collect()
}

/// The same in bytes, for widths up to 8.
pub(crate) fn narrow(codes: &[u16]) -> Vec<u8> {
    codes.iter().map(|&code| u8::try_from(code).expect("a code of at most 8 bits")).collect()
}
