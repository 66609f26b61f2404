//! Elementary functions in binary64 with a bound on their error, to decide most roundings at once.
//!
//! Formats of up to 16 bits look at some 12 bits of a result, so 45 good ones decide all but one in
//! billions of random numbers. The rest goes to the integers
//! ([`elementary`](crate::math::elementary)), which are the definition. Only `+ - *` of binary64
//! are used, so the bits are the same everywhere.

use crate::format::Format;
use crate::round::{Overflow, Rounding};

/// A number and how far the exact one may be from it, to either side.
#[derive(Clone, Copy)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// A function that can be estimated.
#[derive(Clone, Copy)]
pub(super) enum Quick {
    Exp,
    Exp2,
}

impl Quick {
    /// The function of a number of up to 24 significant bits; not of NaN.
    ///
    /// Numbers beyond 600, infinities too, are read as 600. Results in the formats that have
    /// elementary functions end at `2^160`. Rounding to nearest even takes all that lies beyond to
    /// one result, and all below `2^-161` to zero.
    #[inline(always)]
    pub(super) const fn estimate(self, x: f64) -> Estimate {
        let x = x.clamp(-600.0, 600.0);
        match self {
            Self::Exp => exp(x),
            Self::Exp2 => exp2(x),
        }
    }

    /// As `estimate`, with an error of at most `2^-37` of the value: enough to lie between the
    /// neighbours of its rounding to binary32.
    #[inline(always)]
    pub(super) fn rough(self, x: f64) -> f64 {
        const PER_LN_2: f64 = 46.166_241_308_446_83; // 32 / ln(2)
        let x = x.clamp(-600.0, 600.0);
        // The products' errors are below 2^-43, of a remainder that is at most 0.0109.
        let (k, r) = match self {
            Self::Exp => {
                let (k, integer) = nearest(x * PER_LN_2);
                (integer, x - k * (core::f64::consts::LN_2 / 32.0))
            }
            Self::Exp2 => {
                let (k, integer) = nearest(x * 32.0);
                (integer, (x - k * (1.0 / 32.0)) * core::f64::consts::LN_2)
            }
        };
        // The series ends with r^4/24; r^5/120 is below 2^-39.
        let series = r + r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0)));
        let scale = TABLE[(k & 31) as usize] * power(k >> 5);
        scale + scale * series
    }

    /// The codes of the function of all codes of a format of up to 8 bits, or
    /// [`UNDECIDED`](Self::UNDECIDED).
    pub(super) const fn table(self, format: Format) -> [u16; 256] {
        let mut table = [Self::UNDECIDED; 256];
        let mut code = 0;
        while code < 256 && format.has_zero() && format.is_exact_in_f64() {
            let x = format.to_f64(code as u64);
            if !x.is_nan() {
                let Estimate { value, error } = self.estimate(x);
                let low = nearest_code(format, value - error);
                if low == nearest_code(format, value + error) {
                    table[code] = low as u16;
                }
            }
            code += 1;
        }
        table
    }

    /// No code of 8 bits.
    pub(super) const UNDECIDED: u16 = 256;
}

const fn nearest_code(format: Format, x: f64) -> u64 {
    format.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code
}

/// `2^(i / 32)`, to nearest.
const TABLE: &[f64; 32] = &table();

/// `2^(i/32)` for `i` in 0..32 by five square roots, in units of `2^-62`. Each root is at most one
/// unit too small, and the products of up to five of them, cut off, stay within 20 units.
const fn table() -> [f64; 32] {
    let mut roots = [0_u64; 5];
    let mut square = 2_u128 << 62;
    let mut i = 0;
    while i < 5 {
        // The root of a number below 2^63 units of 2^-62 lies in 62 fractional bits.
        let root = (square << 62).isqrt();
        roots[i] = root as u64;
        square = root;
        i += 1;
    }
    let mut table = [0.0; 32];
    let mut i = 0;
    while i < 32 {
        let mut product = 1_u128 << 62;
        let mut bit = 0;
        while bit < 5 {
            if i >> (4 - bit) & 1 == 1 {
                product = (product * roots[bit] as u128) >> 62;
            }
            bit += 1;
        }
        // The cast rounds to nearest; the factor is a power of two.
        table[i] = product as f64 * (1.0 / (1_u64 << 62) as f64);
        i += 1;
    }
    table
}

/// `2^n`, for a normal result.
#[inline(always)]
const fn power(n: i64) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// `2^(k/32) * e^r` for a small `r`, with `r` itself wrong by at most `2^-53`.
///
/// The series ends with `r^6/720`; its rest is below `2^-52` of `e^r` for `|r| <= 0.0109` (half of
/// `ln 2 / 32`): `r^7/5040 < 2^-57`. Its rounding errors are below `2^-53` in all, as `|r| < 2^-6`;
/// that of the product with the table, the table's own, and `r`'s are `2^-53` each. The sum is
/// below `2^-50`; `2^-48` is claimed.
#[inline(always)]
const fn assemble(k: i64, r: f64) -> Estimate {
    let tail = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0));
    let series = r + r * r * (0.5 + r * (1.0 / 6.0 + r * tail));
    let scale = TABLE[(k & 31) as usize] * power(k >> 5);
    let value = scale + scale * series;
    Estimate { value, error: value * power(-48) }
}

/// The nearest integer, by an addition that leaves no room for a fraction.
#[inline(always)]
const fn nearest(x: f64) -> (f64, i64) {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    let shifted = x + SHIFT;
    (shifted - SHIFT, shifted.to_bits().wrapping_sub(SHIFT.to_bits()) as i64)
}

/// `e^x` for `|x| <= 600` of up to 24 significant bits.
#[inline(always)]
const fn exp(x: f64) -> Estimate {
    // ln(2) / 32 as a number of 32 bits, so that its products with |k| < 2^15 are exact, and the
    // rest of it.
    const HIGH: f64 = f64::from_bits(0x3F96_2E42_FEE0_0000);
    const LOW: f64 = f64::from_bits(0x3D9A_39EF_3579_3C76);
    const PER_LN_2: f64 = 46.166_241_308_446_83; // 32 / ln(2)
    let (k, integer) = nearest(x * PER_LN_2);
    assemble(integer, (x - k * HIGH) - k * LOW)
}

/// `2^x` for `|x| <= 600`.
#[inline(always)]
const fn exp2(x: f64) -> Estimate {
    let (k, integer) = nearest(x * 32.0);
    assemble(integer, (x - k * (1.0 / 32.0)) * core::f64::consts::LN_2)
}

#[cfg(test)]
mod tests {
    /// `ln(2) / 32` in two parts is checked by going through every argument of the functions, in
    /// `tests/minifloat/fast.rs`.
    #[test]
    fn table_is_increasing_and_squares_to_itself() {
        let table = super::TABLE;
        for i in 0..16 {
            let (square, double) = (table[i] * table[i], table[2 * i]);
            assert!((square - double).abs() < 1e-15, "{i}: {square} {double}");
        }
        assert!(table.is_sorted());
    }
}
