//! One element of a block: to its code, given the block's scale, and back.

use super::BlockFormat;
use crate::block::scale::{
    Choices, Elements, Order, ScaleRule, Smallest, TensorFactors, Zeros, floor_log2,
};
use crate::format::{Format, Value};
use crate::math::{Context, Operand};
use crate::round::{Overflow, Rounding, Rules};

/// The code of an element in a block of the given scale.
pub(crate) fn encode_element(
    format: BlockFormat,
    rounding: Rounding,
    overflow: Overflow,
    x: f32,
    scale: Value,
    factors: &TensorFactors,
    word: u32,
) -> u64 {
    let element = format.element;
    let choices = format.profile.choices(format.rule);
    let positive = |x: f32| if choices.zeros == Zeros::Signed { x } else { x + 0.0 };
    let code = match format.rule {
        ScaleRule::MaxAbs => return encode_quotient(element, rounding, overflow, x, scale, word),
        ScaleRule::Nearest | ScaleRule::FourOverSix(_) => {
            let y = x * factors.factor(scale.to_f32());
            let largest = factors.largest;
            // A comparison chain that lets NaN through.
            let y = if y > largest { largest } else { y };
            let y = if y < -largest { -largest } else { y };
            element.encode_f32(positive(y), rounding, overflow, word).code
        }
        _ => {
            let divisor = divisor(format, scale, &choices);
            let value = match choices.elements {
                Elements::Binary32 => in_binary32(element, rounding, positive(x), divisor.to_f32()),
                Elements::Once => None,
            };
            let value = value.unwrap_or_else(|| over_power(Value::from_f32(positive(x)), divisor));
            element.encode(value, rounding, overflow, word).code
        }
    };
    let zero = choices.zeros == Zeros::Positive && element.decode(code).is_zero();
    if zero { 0 } else { code }
}

/// The code of `x / scale`, exact and then rounded once: the projection of P3109 (Interim Report
/// 4.0) to a block whose scale is given.
pub(super) fn encode_quotient(
    element: Format,
    rounding: Rounding,
    overflow: Overflow,
    x: f32,
    scale: Value,
    word: u32,
) -> u64 {
    let rules = Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow);
    let quotient = match scale {
        Value::Nan { .. } => Value::Nan { negative: false },
        _ if x.is_nan() => Value::from_f32(x),
        Value::Finite { significand: 0, .. } => Value::ZERO,
        Value::Infinite { negative } => {
            let (significand, sign) = (u64::from(x != 0.0), x < 0.0);
            Value::Finite {
                negative: significand != 0 && sign != negative,
                significand,
                exponent: 0,
            }
        }
        Value::Finite { .. } => {
            let (x, scale) = (Operand::f32(x), Operand::f32(scale.to_f32()));
            return Context::new(element, rules).with_random(word).div(x, scale).code;
        }
    };
    element.encode(quotient, rounding, overflow, word).code
}

/// The image of an element's code in a block of the given scale; `tensor` is the tensor's scale, or
/// 1 where there is none.
pub(crate) fn decode_element(format: BlockFormat, code: u64, scale: Value, tensor: f32) -> f32 {
    if scale.is_nan() || tensor.is_nan() {
        return f32::from_bits(0x7FC0_0000);
    }
    let (element, scale) = (format.element.to_f32(code), scale.to_f32());
    let image = match format.profile.choices(format.rule).order {
        Order::Torchao => element * (scale * tensor),
        _ => element * scale * tensor,
    };
    // One NaN, whatever the machine gives for 0 times infinity.
    if image.is_nan() { f32::from_bits(0x7FC0_0000) } else { image }
}

/// What the elements of a block of this scale, a power of two or NaN, are divided by.
fn divisor(format: BlockFormat, scale: Value, choices: &Choices) -> Value {
    if choices.smallest == Smallest::Scale || scale != format.scale.min_positive() {
        return scale;
    }
    let exponent = if choices.smallest == Smallest::One { 0 } else { -126 };
    Value::Finite { negative: false, significand: 1, exponent }
}

/// `x / scale` exactly, for a scale that is a power of two; NaN if it is NaN.
fn over_power(x: Value, scale: Value) -> Value {
    match (x, scale) {
        (
            Value::Finite { negative, significand, exponent },
            Value::Finite { significand: one, exponent: power, .. },
        ) => {
            let power = power + one.trailing_zeros() as i32;
            Value::Finite { negative, significand, exponent: exponent - power }
        }
        (_, Value::Finite { .. }) => x,
        _ => Value::Nan { negative: false },
    }
}

/// `x / scale` rounded to the element format's grid, without an upper end, as microxcaling's
/// `_quantize_elemwise_core` does it: every line one binary32 operation. `None` for modes it lacks.
fn in_binary32(element: Format, rounding: Rounding, x: f32, scale: f32) -> Option<Value> {
    if !matches!(rounding, Rounding::TiesToAway | Rounding::TowardZero | Rounding::TiesToEven) {
        return None;
    }
    // `torch.sign` of either zero is 0, and so the result where the quotient underflows.
    let y = x / scale + 0.0;
    if !y.is_finite() || y == 0.0 {
        return Some(Value::from_f32(y));
    }
    let place = floor_log2(y.abs()).max(element.emin()) - element.man_bits() as i32;
    // Exact but for quotients far below the smallest place, which are zero either way.
    let units = scaled(y.abs(), -place);
    let floor = |x: f32| x as u32;
    let whole = match rounding {
        Rounding::TiesToAway => floor(units + 0.5),
        Rounding::TowardZero => floor(units),
        _ => {
            let tie = units - 0.5 == floor(units) as f32 && floor(units) % 2 == 0;
            floor(units + 0.5) - u32::from(tie)
        }
    };
    Some(Value::Finite { negative: y < 0.0, significand: u64::from(whole), exponent: place })
}

/// `x * 2^k`, to nearest even where it is subnormal.
fn scaled(x: f32, k: i32) -> f32 {
    match Value::from_f32(x) {
        Value::Finite { negative, significand, exponent } => {
            Value::Finite { negative, significand, exponent: exponent + k }.to_f32()
        }
        special => special.to_f32(),
    }
}
