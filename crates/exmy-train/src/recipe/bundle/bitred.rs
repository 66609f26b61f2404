//! "To FP8 and Back Again" (arXiv 2405.18710): bfloat16 with fewer mantissa or exponent bits.
//!
//! Operands are rounded to bfloat16 and lose their low mantissa bits to a mask, or the ends of their range to
//! clipping. Sums are in binary32, the results of forward and `grad_input` in bfloat16. The paper does not
//! say which products are masked; all three are here, the head's too, attention's not.

use super::{Options, bf16_outputs};
use crate::nn::site::{Operand, Place, Product};
use crate::recipe::clip::{Bias, Clip, Inner};
use crate::recipe::rule::{Rule, Selector, Subject, Value};
use crate::recipe::sums::Sums;
use crate::recipe::tensor_format::{Prior, TensorFormat};
use exmy::format::Format;
use exmy::gemm::{Order, Sum};
use exmy::quantizer::Cast;
use exmy::quantizer::Quantizer;
use exmy::round::Rounding;

fn digits(shape: &str) -> Option<(u8, u8)> {
    let (exponent, mantissa) = shape.strip_prefix('e')?.split_once('m')?;
    let digit = |text: &str| text.parse().ok().filter(|_| text.len() == 1);
    Some((digit(exponent)?, digit(mantissa)?))
}

/// `e8m3`, `e7m7`: what is left.
pub(super) fn rules(shape: &str, options: &mut Options<'_>) -> Result<Vec<Rule>, String> {
    let Some((exponent, mantissa)) =
        digits(shape).filter(|(e, m)| (2..=8).contains(e) && (u8::from(*e < 8)..=7).contains(m))
    else {
        return Err(
            "bitred keeps 0 to 7 of bf16's 7 mantissa bits, or 1 to 7 with 2 to 7 of its exponent bits: \
             bitred-e8m0 to bitred-e8m7, bitred-e7m7"
                .into(),
        );
    };
    let numbers = numbers(exponent, mantissa, options)?;
    let sums = options.choice("accum", &["fp32", "bf16"])?;
    let (operands, others) = selectors(options.get("mask").unwrap_or("paper"))?;
    let all = operands == [Selector::ALL] && others.is_empty();
    let mut rules = vec![Selector::ALL.to(if all { numbers } else { Format::BF16.into() })];
    rules.push(bf16_outputs());
    if !all {
        rules.extend(operands.into_iter().chain(others).map(|on| on.to(numbers)));
    }
    if sums == "bf16" {
        let sum = Sum { order: Order::Fma, accumulator: Cast::new(Format::BF16) };
        rules.push(Rule {
            on: Selector::of(Subject::Sums),
            value: Value::Sums(Some(Sums::Steps(sum))),
        });
    }
    Ok(rules)
}

/// The numbers of what is masked or clipped.
fn numbers(exponent: u8, mantissa: u8, options: &mut Options<'_>) -> Result<TensorFormat, String> {
    let round = options.get("round").unwrap_or("trunc");
    let rounding = match round {
        "trunc" => Rounding::TowardZero,
        "rne" => Rounding::TiesToEven,
        _ => match round.parse::<Rounding>() {
            Ok(rounding) if rounding.is_stochastic() => rounding,
            _ => return Err(format!("+round={round}: trunc, rne, or stochastic as sr8")),
        },
    };
    if mantissa == 0 && rounding != Rounding::TowardZero {
        return Err(format!("+round={round}: a mask that leaves no mantissa is trunc"));
    }
    let scaled = options.choice("scale", &["none", "tensor-pow2"])? != "none";
    if mantissa == 0 {
        if scaled {
            return Err("+scale=tensor-pow2: no power of two changes which exponent is left".into());
        }
        return Ok(TensorFormat::NONE.behind(Prior::Mask(0)));
    }
    let mask = match Format::ieee(8, u32::from(mantissa)) {
        Ok(format) if mantissa < 7 => Quantizer::new(format.into()).with_rounding(rounding),
        _ => Quantizer::NONE,
    };
    if exponent < 8 || scaled {
        let clip = clip(Clip { scaled, ..Clip::new(exponent, mantissa) }, options)?;
        return Ok(TensorFormat::of(mask).behind(Prior::Clip(clip)));
    }
    Ok(if mask.is_none() {
        Format::BF16.into()
    } else {
        mask.after(Cast::new(Format::BF16)).into()
    })
}

/// Which operands of linear operators are masked.
fn operands(word: &str) -> Option<Selector> {
    Some(match word {
        "paper" => Selector::ALL,
        "forward" => Selector::products(&[Product::Forward]),
        "backward" => Selector::products(&[Product::GradInput, Product::GradWeight]),
        "weights" => Selector::operand(Operand::Weight),
        "inputs" => Selector::operand(Operand::Input),
        "gradients" => Selector::operand(Operand::GradOutput),
        _ => return None,
    })
}

/// What else is: operands of attention's two products, in their backward passes too, and the rows of
/// the embedding.
fn others(word: &str) -> Option<Vec<Selector>> {
    let on =
        |places: &[Place], gradient| Selector::of(Subject::Places(places.to_vec(), Some(gradient)));
    let qk = || [on(&[Place::Q, Place::K], false), on(&[Place::Scores], true)];
    let pv = || [on(&[Place::V, Place::Probabilities], false), on(&[Place::Attention], true)];
    Some(match word {
        "qk" => qk().into(),
        "pv" => pv().into(),
        "attention" => qk().into_iter().chain(pv()).collect(),
        "embedding" => vec![on(&[Place::Embedding], false)],
        _ => return None,
    })
}

const MASKS: &str =
    "paper, forward, backward, weights, inputs, gradients, qk, pv, attention, embedding";

/// The selectors of words joined by `/`, of operands and of others; the latter alone are in addition to
/// the paper's.
fn selectors(words: &str) -> Result<(Vec<Selector>, Vec<Selector>), String> {
    let (mut linear, mut other) = (Vec::new(), Vec::new());
    for word in words.split('/') {
        match (operands(word), others(word)) {
            (Some(on), _) => linear.push(on),
            (_, Some(on)) => other.extend(on),
            _ => {
                return Err(format!(
                    "+mask={words}: {word:?} is none of {MASKS}; several are joined by /"
                ));
            }
        }
    }
    if linear.is_empty() {
        linear.push(Selector::ALL);
    }
    Ok((linear, other))
}

/// What the options say of a clipped range.
fn clip(clip: Clip, options: &mut Options<'_>) -> Result<Clip, String> {
    let bias = match options.get("bias") {
        None | Some("centred") => Bias::Centred,
        Some("keep-low") => Bias::KeepLow,
        Some("keep-high") => Bias::KeepHigh,
        Some(number) => number.parse().ok().and_then(Bias::value).ok_or_else(|| {
            format!("+bias={number}: centred, keep-low, keep-high or a number from -500 to 500")
        })?,
    };
    let sides = options.choice("clip", &["both", "outer", "inner", "none"])?;
    let infinite = options.choice("overflow", &["saturate", "inf"])? == "inf";
    let small = match options.choice("underflow", &["flush", "subnormal", "clamp"])? {
        "subnormal" => Inner::Subnormal,
        "clamp" => Inner::Clamp,
        _ => Inner::Flush,
    };
    let outer = matches!(sides, "both" | "outer");
    let inner = matches!(sides, "both" | "inner").then_some(small);
    Ok(Clip { bias, outer, infinite, inner, ..clip })
}
