//! Floor and ceiling of a *binary32* logarithm: what `floor(log2(x))` gives in a program that
//! computes the logarithm in binary32, correctly rounded.
//!
//! Just below `2^k` the exact logarithm lies within half a place of `k` and rounds to it. With `2^t`
//! the binade of the numbers next to `k`, that is so for `x = 2^k (1 - j 2^-24)` and
//! `j <= 2^t ln 2`; just above, for `x = 2^k (1 + j 2^-23)` and `j <= 2^(t-1) ln 2`. The terms of
//! second order move these bounds by less than 10^-5, and no bound is that near an integer. So
//! `floor` is one too high below `2^k` for all k from -126 to 127 but -1, 0, 1 and 2. PyTorch's
//! `log2` on the CPU agrees within 120 places of every power of two.

/// `ln 2` in units of `2^-32`.
const LN_2: u64 = 0xB172_17F7;

/// The exponent of a positive finite number, and its significand of 24 bits, the first one set.
pub(super) fn normalized(x: f32) -> (i32, u32) {
    let bits = x.to_bits();
    match (bits >> 23, bits & 0x007F_FFFF) {
        (0, fraction) => {
            let shift = fraction.leading_zeros() - 8;
            (-126 - shift as i32, fraction << shift)
        }
        (field, fraction) => (field as i32 - 127, fraction | 0x0080_0000),
    }
}

/// `floor` of the binary32 number nearest `log2 x`, for positive finite x.
pub(crate) fn floor_log2(x: f32) -> i32 {
    let (e, significand) = normalized(x);
    if (1 << 24) - significand <= reach(e + 1) { e + 1 } else { e }
}

/// The largest j for which the logarithm of `2^k (1 - j 2^-24)` counts as k.
#[inline(always)]
fn reach(k: i32) -> u32 {
    // The numbers next to k on the lower side: of smaller magnitude above 0, of larger below it.
    let next = if k < 0 { -k } else { k - 1 };
    // Their binade by conversion, which vectorizes.
    let binade = ((next as f32).to_bits() >> 23) as i32 - 127;
    let reach = (LN_2 >> 1) as u32 >> ((31 - binade) & 31);
    if next > 0 { reach } else { 0 }
}

/// Whether [`floor_log2`] of the normal number with these bits is one more than its exponent.
#[inline(always)]
pub(crate) fn near_power(bits: u32) -> bool {
    let k = (bits >> 23) as i32 - 126;
    0x0080_0000 - (bits & 0x007F_FFFF) <= reach(k)
}

/// `ceil` of the binary32 number nearest `log2 x`, for positive finite x.
pub(super) fn ceil_log2(x: f32) -> i32 {
    let (k, significand) = normalized(x);
    let j = u64::from(significand - (1 << 23));
    let binade = match k {
        ..=-2 => (k.unsigned_abs() - 1).ilog2(),
        -1 | 0 => return k + i32::from(j > 0),
        _ => (k as u32).ilog2(),
    };
    if j <= LN_2 << binade >> 33 { k } else { k + 1 }
}
