//! Scales that are powers of two: the rules `floor`, `ceil`, `even` and `rceil` in integers.
//!
//! With `amax = m 2^e`, `1 <= m < 2`, and the element format's largest value `d 2^emax`, the scale is
//! `2^s` with
//!
//! | rule | s | source |
//! |---|---|---|
//! | `floor` | `e - emax` | OCP MX 1.0, 6.3 |
//! | `ceil` | `e - emax + [m > 1]` | torchao |
//! | `even` | `e - emax + [m >= 2 - 2^-(M+1)]` | torchao, Quark |
//! | `rceil` | `e - emax + [m > d]` | arXiv 2506.08027, cuBLAS, Transformer Engine |
//!
//! and then brought into the range of the scale format. `even` adds half a place of the largest element
//! first; `rceil` is `ceil(log2(amax / max))`, so that nothing saturates. That is the definition; the other
//! ways to find `e` and the increment that [`Choices`] name are those of libraries.

use super::ScaleRule;
use super::choices::{Above, Choices, Exponent, Infinity, RoundUp};
use super::log2::{ceil_log2, floor_log2, normalized};
use crate::format::{Format, Value};
use crate::round::{Exact, Overflow, Rounding};

/// The code of a block's scale under a power rule. `amax` is a magnitude, infinity or NaN.
pub(crate) fn power_code(
    amax: f32,
    element: Format,
    scale: Format,
    rule: ScaleRule,
    choices: &Choices,
) -> u64 {
    let nan = scale.nan_code().unwrap_or(scale.max_code());
    let (bottom, top) = power_range(scale);
    let exponent = match exponent(amax, element, rule, choices) {
        Power::Nan => return nan,
        Power::Zero => bottom,
        Power::Infinite => match choices.infinity {
            Infinity::Nan => return nan,
            Infinity::Largest => top,
            Infinity::AsPower => 128 - element.emax(),
        },
        Power::Finite(exponent) => exponent,
    };
    let powers_alone = scale.man_bits() == 0;
    if exponent > top && powers_alone && matches!(choices.above, Above::NanInPowers) {
        return nan;
    }
    let exponent = exponent.clamp(bottom, top);
    let power = Exact { negative: false, significand: 1, exponent, sticky: false };
    scale.round(power, Rounding::TiesToEven, 0, Overflow::Finite).code
}

/// The exponents of the smallest and the largest power of two that a format has.
fn power_range(scale: Format) -> (i32, i32) {
    let bottom = match scale.min_positive() {
        Value::Finite { significand, exponent, .. } => {
            let whole = significand.is_power_of_two();
            exponent + significand.ilog2() as i32 + i32::from(!whole)
        }
        _ => unreachable!("the smallest positive value is finite"),
    };
    (bottom, scale.emax())
}

/// An unclamped scale.
enum Power {
    Zero,
    Finite(i32),
    Infinite,
    Nan,
}

/// `s`, before it is brought into range.
fn exponent(amax: f32, element: Format, rule: ScaleRule, choices: &Choices) -> Power {
    if amax.is_nan() {
        return Power::Nan;
    }
    if rule == ScaleRule::RCeil {
        match choices.round_up {
            RoundUp::Exact => {}
            RoundUp::Reciprocal => return upward(amax * (1.0 / element.max().to_f32())),
            RoundUp::Log2 => {
                let ratio = amax / element.max().to_f32();
                return match ratio {
                    0.0 => Power::Zero,
                    f32::INFINITY => Power::Infinite,
                    _ => Power::Finite(ceil_log2(ratio)),
                };
            }
        }
    }
    if choices.exponent == Exponent::Field {
        return from_field(amax, element, rule);
    }
    if amax == 0.0 {
        // Where microxcaling takes a logarithm it puts the smallest normal number for zero
        // (`_shared_exponents` of its `mx_ops.py`); its C++ code reads the field, which is 0
        // (`funcs.cpp`, `shared_exp.cuh`). Only in formats of emax 0 do scales differ.
        return match choices.exponent {
            Exponent::Log2 => Power::Finite(-126 - element.emax()),
            _ => Power::Zero,
        };
    }
    if amax.is_infinite() {
        return Power::Infinite;
    }
    let (mut e, significand) = normalized(amax);
    let mut m = u64::from(significand);
    if choices.exponent == Exponent::Log2 && floor_log2(amax) > e {
        // What is just below 2^(e+1) is measured from there, and lies below every threshold.
        (e, m) = (e + 1, 1 << 23);
    }
    let up = match rule {
        ScaleRule::Ceil => m > 1 << 23,
        ScaleRule::Even => half_place(element).is_some_and(|half| m + half >= 1 << 24),
        ScaleRule::RCeil => {
            let Value::Finite { significand: d, .. } = element.max() else { return Power::Nan };
            (u128::from(m) << d.ilog2()) > u128::from(d) << 23
        }
        _ => false,
    };
    Power::Finite(e - element.emax() + i32::from(up))
}

/// Half a place of the element format's largest values, as a part of a 24-bit significand; `None`
/// if it is smaller than the last bit.
fn half_place(element: Format) -> Option<u64> {
    // Of a fixed-point format the places do not grow with the value.
    let place = element.emax().max(element.emin()) - element.man_bits() as i32;
    let below = 22 - (element.emax() - place);
    (0..=23).contains(&below).then(|| 1 << below)
}

/// The rules on the bits of `amax`, whose exponent is its field less 127: torchao.
fn from_field(amax: f32, element: Format, rule: ScaleRule) -> Power {
    let bits = amax.to_bits();
    let bits = match rule {
        ScaleRule::Even => bits + half_place(element).unwrap_or(0) as u32,
        // One more for any fraction, by a carry out of it.
        ScaleRule::Ceil => bits + 0x007F_FFFF,
        _ => bits,
    };
    match (bits >> 23) as i32 {
        _ if amax.is_infinite() => Power::Infinite,
        255 if rule == ScaleRule::Even => Power::Infinite,
        field => Power::Finite(field - 127 - element.emax()),
    }
}

/// Rounding a binary32 magnitude up to a power of two, at least `2^-127`: PTX
/// `cvt.rp.ue8m0x2.f32`.
fn upward(x: f32) -> Power {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 23) as i32, bits & 0x007F_FFFF);
    match field {
        255 => Power::Infinite,
        // 2^-127 is the fraction 1/2 there.
        0 => Power::Finite(if fraction > 0x0040_0000 { -126 } else { -127 }),
        _ => Power::Finite(field - 127 + i32::from(fraction != 0)),
    }
}
