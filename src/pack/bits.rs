//! The stream as individual bits: views of the crate `bitvec` (feature `bitvec`).
//!
//! `Lsb0` numbers the bits of a byte from the least significant one, as the stream does, so that
//! code `i` of width `w` is `bits(bytes)[i * w..(i + 1) * w]`, and `load_le` reads it.

use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;
use bitvec::view::BitView;

/// All bits of a stream, those beyond the last code included.
///
/// ```
/// use exmy::pack;
///
/// let bytes = pack::pack(&[0b101_u8, 0b110, 0b011], 3)?;
/// let ones: Vec<usize> = pack::bits(&bytes).iter_ones().collect();
/// assert_eq!(ones, [0, 2, 4, 5, 6, 7]);
/// let codes: Vec<&_> = pack::bits(&bytes).chunks_exact(3).take(3).collect(); // any width
/// assert!(codes[2].iter().by_vals().eq([true, true, false])); // lowest bit first
/// # Ok::<(), pack::PackError>(())
/// ```
pub fn bits(bytes: &[u8]) -> &BitSlice<u8, Lsb0> {
    bytes.view_bits()
}

/// All bits of a stream, to be written.
///
/// ```
/// use exmy::pack;
///
/// let mut bytes = [0x00, 0x00];
/// pack::bits_mut(&mut bytes).set(9, true);
/// assert_eq!(bytes, [0x00, 0x02]);
/// ```
pub fn bits_mut(bytes: &mut [u8]) -> &mut BitSlice<u8, Lsb0> {
    bytes.view_bits_mut()
}

/// The bits of one code, the lowest first; `None` if the stream ends before its last bit, or a code
/// of no bits is asked for.
///
/// ```
/// use bitvec::field::BitField;
/// use exmy::pack;
///
/// let bytes = pack::pack(&[0x21_u8, 0x3F, 0x15], 6)?;
/// let code = pack::code_bits(&bytes, 6, 2).expect("a third code");
/// assert_eq!(code.load_le::<u8>(), 0x15);
/// assert!(code[0] && !code[5]); // 010101 from the top: bit 5 is the sign
/// assert!(pack::code_bits(&bytes, 6, 3).is_some()); // 24 bits: one more code, of zeros
/// assert!(pack::code_bits(&bytes, 6, 4).is_none());
/// # Ok::<(), pack::PackError>(())
/// ```
pub fn code_bits(bytes: &[u8], width: u32, index: usize) -> Option<&BitSlice<u8, Lsb0>> {
    bytes.view_bits().get(place(width, index)?)
}

/// The bits of one code, to be written.
///
/// ```
/// use exmy::pack;
///
/// let mut bytes = pack::pack(&[0x7_u8, 0x7], 4)?; // E2M1: 6, 6
/// pack::code_bits_mut(&mut bytes, 4, 1).expect("a second code").set(3, true); // its sign
/// assert_eq!(bytes, [0xF7]);
/// # Ok::<(), pack::PackError>(())
/// ```
pub fn code_bits_mut(
    bytes: &mut [u8],
    width: u32,
    index: usize,
) -> Option<&mut BitSlice<u8, Lsb0>> {
    bytes.view_bits_mut().get_mut(place(width, index)?)
}

fn place(width: u32, index: usize) -> Option<core::ops::Range<usize>> {
    let start = index.checked_mul(width as usize)?;
    (width != 0).then_some(start..start.checked_add(width as usize)?)
}
