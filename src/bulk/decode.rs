//! Codes to numbers.

use super::{Real, decode_plain};
use crate::format::Format;
use crate::minifloat::Bits;

/// Writes to `out` the values of `codes`, to nearest even where the type cannot hold them. NaN is
/// quiet and without payload. Bits of a code above the format's width are ignored.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// use exmy::bulk::decode_into;
/// use exmy::format::Format;
///
/// let mut x = [0.0_f32; 3];
/// decode_into(Format::E2M1, &[0x1_u8, 0xF, 0x7], &mut x);
/// assert_eq!(x, [0.5, -6.0, 6.0]);
/// ```
pub fn decode_into<C: Bits, T: Real>(format: Format, codes: &[C], out: &mut [T]) {
    decode_plain(format, codes, out);
}
