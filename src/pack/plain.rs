//! The stream of codes bit by bit: the definition that the fast packers are held to.
//!
//! Every bit is placed by the sentence that defines the stream, bit `b` of code `i` of width `w` at
//! bit `i w + b`. No check, no speed: the callers have compared the lengths.

use super::Code;

/// The definition of [`pack_into`](super::pack_into) where it succeeds: bits of a code beyond
/// `width` are dropped.
///
/// # Panics
/// If `bytes` is too short.
///
/// ```
/// use exmy::pack;
///
/// let mut bytes = [0xFF; 2];
/// pack::pack_plain(&[0b101_u8, 0b110, 0b011], 3, &mut bytes);
/// assert_eq!(bytes, [0b1111_0101, 0b0000_0000]); // the third code's upper bit, 0, is in byte 1
/// ```
pub fn pack_plain<C: Code>(codes: &[C], width: u32, bytes: &mut [u8]) {
    bytes.fill(0);
    let width = width as usize;
    for (i, &code) in codes.iter().enumerate() {
        let code: u16 = code.into();
        for b in 0..width {
            let at = i * width + b;
            bytes[at / 8] |= ((code >> b & 1) as u8) << (at % 8);
        }
    }
}

/// The definition of [`unpack_into`](super::unpack_into) where it succeeds.
///
/// # Panics
/// If `bytes` is too short.
///
/// ```
/// use exmy::pack;
///
/// let mut codes = [0_u16; 3];
/// pack::unpack_plain(&[0b1111_0101, 0b1111_1110], 3, &mut codes);
/// assert_eq!(codes, [0b101, 0b110, 0b011]); // bits beyond the last code are ignored
/// ```
pub fn unpack_plain<C: Code>(bytes: &[u8], width: u32, codes: &mut [C]) {
    let width = width as usize;
    for (i, out) in codes.iter_mut().enumerate() {
        let mut code = 0_u16;
        for b in 0..width {
            let at = i * width + b;
            code |= u16::from(bytes[at / 8] >> (at % 8) & 1) << b;
        }
        *out = C::from_low_bits(code);
    }
}
