//! The bit mask of arXiv 2405.18710, whatever it leaves.
//!
//! A number is rounded to bfloat16, to nearest even, and all but the first M of its seven mantissa bits are
//! cleared. With M from 1 on that is rounding toward zero to a format, `bf16>e8m3@rtz`. With M = 0 no format
//! has the result, since the only mantissa that is left means infinity, and NaN needs a code, too. So NaN is
//! kept apart here and stays one; infinities stay, subnormal numbers become zeros, signs stay.

/// Rounds to bfloat16 and keeps `bits` mantissa bits, 0 to 7.
pub fn apply(bits: u8, values: &mut [f32]) {
    let keep = 0xFFFF_0000_u32 << (7 - bits);
    for value in values.iter_mut() {
        let bf16 = super::clip::bf16(*value);
        *value = if bf16.is_nan() { f32::NAN } else { f32::from_bits(bf16.to_bits() & keep) };
    }
}
