//! The bit mask of arXiv 2405.18710, whatever it leaves.
//!
//! A number is rounded to bfloat16, to nearest even, and all but the first M of its seven mantissa bits are
//! cleared. With M from 1 on that is rounding toward zero to a format, `bf16>e8m3@rtz`; with M = 0 no format
//! has the result, since the only mantissa that is left means infinity, and NaN needs a code, too. So NaN is
//! kept apart here and stays one; infinities stay, subnormal numbers become zeros, signs stay.

/// Rounds to bfloat16 and keeps `bits` mantissa bits, 0 to 7.
pub(super) fn apply(bits: u8, values: &mut [f32]) {
    let keep = 0xFFFF_0000_u32 << (7 - bits);
    for value in values.iter_mut() {
        let bf16 = super::clip::bf16(*value);
        *value = if bf16.is_nan() { f32::NAN } else { f32::from_bits(bf16.to_bits() & keep) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over all bfloat16 codes: powers of two of the same exponent, by arithmetic; specials by hand.
    #[test]
    fn nothing_but_the_exponent_is_left() {
        for code in 0..=u16::MAX {
            let x = f32::from_bits(u32::from(code) << 16);
            let mut masked = [x];
            apply(0, &mut masked);
            let expected = if x.is_nan() || x.is_infinite() {
                x
            } else if x.abs() < f32::MIN_POSITIVE {
                0.0_f32.copysign(x)
            } else {
                libm::ldexpf(1.0_f32.copysign(x), libm::ilogbf(x))
            };
            let same = masked[0].to_bits() == expected.to_bits();
            assert!(same || masked[0].is_nan() && x.is_nan(), "{x:e}: {:e}", masked[0]);
        }
    }

    /// Numbers are rounded to bfloat16 first: the last one below 2 becomes 2.
    #[test]
    fn literals() {
        let below = f32::from_bits(2.0_f32.to_bits() - 1);
        for (bits, x, expected) in [
            (0, core::f32::consts::PI, 2.0),
            (0, 0.1, 0.0625),
            (0, -0.001, -0.000_976_562_5),
            (0, below, 2.0),
            (0, -0.0, -0.0),
            (3, core::f32::consts::PI, 3.0),
            (3, 0.1, 0.093_75),
            (6, -0.001, -65.0 / 65_536.0),
            (7, 1.003, 1.0),
        ] {
            let mut masked = [x];
            apply(bits, &mut masked);
            assert_eq!(masked[0].to_bits(), f32::to_bits(expected), "M = {bits} of {x}");
        }
    }
}
