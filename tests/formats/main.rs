//! Formats against an independent model: what their codes mean, what becomes of every value,
//! midpoint, neighbour and special value under every mode and policy; the master table, the P3109
//! family and the degenerate shapes.

#![cfg(feature = "std")]

mod chains;
mod combinations;
#[path = "../common/mod.rs"]
mod common;
mod conversions;
mod decoding;
mod edges;
mod p3109;
mod rounding;
mod stochastic;
mod table;
mod truncated;

use common::{Meaning, Model, Num};
use exmy::format::{Format, Sign, Specials, Value};

/// A shape's parameters with all classes and options, as format and model. What the builder
/// refuses is checked against the reasons for refusing.
fn pairs(signed: bool, exp_bits: u32, man_bits: u32, bias: Option<i32>) -> Vec<(Format, Model)> {
    let classes = Specials::ALL;
    let sign = if signed { Sign::Magnitude } else { Sign::Unsigned };
    let mut pairs = Vec::new();
    for specials in classes {
        for (zero, subnormals) in [(true, true), (true, false), (false, false)] {
            let builder = Format::builder(sign, exp_bits, man_bits)
                .specials(specials)
                .zero(zero)
                .subnormals(subnormals);
            let builder = bias.map_or(builder, |bias| builder.bias(bias));
            let codes = 1_i64 << (exp_bits + man_bits);
            let reserved = match specials {
                Specials::Ieee => 1 << man_bits,
                Specials::Fn => 1,
                Specials::P3109 { infinite } => i64::from(infinite) + i64::from(!signed),
                _ => 0,
            };
            let single_nan = matches!(specials, Specials::Fnuz | Specials::P3109 { .. });
            let no_nan_beside_infinity = specials == Specials::Ieee && exp_bits.min(man_bits) == 0;
            let no_sign_for_nan = specials == Specials::Fnuz && !signed;
            let no_zero_for_nan = single_nan && signed && !zero;
            let possible = !no_nan_beside_infinity
                && !no_sign_for_nan
                && !no_zero_for_nan
                && codes - reserved > i64::from(zero);
            let name = format!("{exp_bits} {man_bits} {specials:?} {zero} {subnormals}");
            assert_eq!(builder.build().is_ok(), possible, "{name}: {:?}", builder.build());
            let Ok(format) = builder.build() else { continue };
            let usual = match specials {
                _ if exp_bits == 0 => 0,
                Specials::Fnuz | Specials::P3109 { .. } => 1 << (exp_bits - 1),
                _ => (1 << (exp_bits - 1)) - 1,
            };
            let bias = bias.unwrap_or(usual);
            let model = Model::new(signed, exp_bits, man_bits, bias, specials, zero, subnormals);
            pairs.push((format, model));
        }
    }
    pairs
}

/// All shapes of up to 8 bits.
fn small(signed: bool) -> Vec<(Format, Model)> {
    let mut all = Vec::new();
    for exp_bits in 0..=8 {
        for man_bits in 0..=8 {
            let bits = exp_bits + man_bits + u32::from(signed);
            if (2..=8).contains(&bits) && exp_bits + man_bits > 0 {
                all.extend(pairs(signed, exp_bits, man_bits, None));
            }
        }
    }
    // Two's complement of 2 to 8 bits, in units of 2^(1 - M) and of 2^-M.
    for man_bits in 1..=7 {
        for bias in [0, 1] {
            let builder = Format::builder(Sign::TwosComplement, 0, man_bits).bias(bias);
            all.push((builder.build().unwrap(), Model::integer(man_bits, bias)));
        }
    }
    all
}

fn meaning(value: Value) -> Meaning {
    match value {
        Value::Nan { negative } => Meaning::Nan(negative),
        Value::Infinite { negative } => Meaning::Infinite(negative),
        Value::Finite { negative, significand, exponent } => {
            Meaning::Finite(negative, Num::new(significand.into(), exponent))
        }
    }
}

/// Values, midpoints, and both with the nearest binary32 and binary64 numbers around them.
fn inputs(model: &Model) -> Vec<f64> {
    let values = model.magnitudes();
    let mut points: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
    points.extend(values.windows(2).map(|pair| pair[0].plus(pair[1]).to_f64() / 2.0));
    points.push(values[0].to_f64() / 2.0);
    points.push(values[values.len() - 1].to_f64() * 2.0);
    points.extend([
        f64::MAX,
        f32::MAX.into(),
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f32::from_bits(1).into(),
        0.0,
    ]);
    let mut inputs = Vec::new();
    for x in points {
        inputs.extend([x.next_down(), x, x.next_up()]);
        let near = x as f32;
        if f64::from(near) == x {
            inputs.extend([near.next_down().into(), f64::from(near.next_up())]);
        }
    }
    inputs.retain(|x| *x >= 0.0 && x.is_finite());
    inputs
}
