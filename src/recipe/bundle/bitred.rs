//! "To FP8 and Back Again" (arXiv 2405.18710): bfloat16 with fewer mantissa or exponent bits.
//!
//! Operands are rounded to bfloat16 and lose their low mantissa bits to a mask, or the ends of their range to
//! clipping; sums are in binary32, the results of forward and `grad_input` in bfloat16. The paper does not say
//! which products are masked; all three are here, the head's too, attention's not.

use super::{Options, Rules, rules as list};

fn digits(shape: &str) -> Option<(u8, u8)> {
    let (exponent, mantissa) = shape.strip_prefix('e')?.split_once('m')?;
    let digit = |text: &str| text.parse().ok().filter(|_| text.len() == 1);
    Some((digit(exponent)?, digit(mantissa)?))
}

/// `e8m3`, `e7m7`: what is left.
pub(super) fn rules(shape: &str, options: &mut Options<'_>) -> Result<Rules, String> {
    let Some((exponent, mantissa)) =
        digits(shape).filter(|(e, m)| (2..=8).contains(e) && (1..=7).contains(m))
    else {
        return Err(
            "bitred keeps 1 to 7 of bf16's 7 mantissa bits and 2 to 8 of its exponent bits: \
                    bitred-e8m1 to bitred-e8m7, bitred-e7m7"
                .into(),
        );
    };
    let round = options.get("round").unwrap_or("trunc");
    let suffix = match round {
        "trunc" => "@rtz".to_owned(),
        "rne" => String::new(),
        _ => match round.parse::<crate::round::Rounding>() {
            Ok(rounding) if rounding.is_stochastic() => format!("@{round}"),
            _ => return Err(format!("+round={round}: trunc, rne, or stochastic as sr8")),
        },
    };
    let mask = if mantissa < 7 { format!("e8m{mantissa}{suffix}") } else { String::new() };
    let numbers = if exponent == 8 {
        if mask.is_empty() { "bf16".to_owned() } else { format!("bf16>{mask}") }
    } else {
        let clip = clip(exponent, mantissa, options)?;
        if mask.is_empty() { clip } else { format!("{clip}>>{mask}") }
    };
    let masks = ["paper", "forward", "backward", "weights", "inputs", "gradients", "attention"];
    let mut all = list([("all", "bf16"), ("forward:grad_input:output", "bf16")]);
    let on: &[&str] = match options.choice("mask", &masks)? {
        "forward" => &["forward"],
        "backward" => &["backward"],
        "weights" => &["weight"],
        "inputs" => &["input"],
        "gradients" => &["grad_output"],
        "attention" => &["all", "q:k:v:probabilities:tensor", "attention:scores:gradient"],
        _ => {
            all[0].1.clone_from(&numbers);
            return Ok(all);
        }
    };
    all.extend(on.iter().map(|on| ((*on).to_owned(), numbers.clone())));
    Ok(all)
}

fn clip(exponent: u8, mantissa: u8, options: &mut Options<'_>) -> Result<String, String> {
    let mut text = format!("clip-e{exponent}m{mantissa}");
    match options.get("bias") {
        None | Some("centred") => {}
        Some(word @ ("keep-low" | "keep-high")) => text += &format!("-{word}"),
        Some(number) => match number.parse::<i16>() {
            Ok(bias) => text += &format!("-bias{bias}"),
            Err(_) => {
                return Err(format!("+bias={number}: centred, keep-low, keep-high or a number"));
            }
        },
    }
    match options.choice("clip", &["both", "outer", "inner", "none"])? {
        "outer" => text += "-outer",
        "inner" => text += "-inner",
        "none" => text += "-off",
        _ => {}
    }
    text += if options.choice("overflow", &["saturate", "inf"])? == "inf" { "-inf" } else { "" };
    match options.choice("underflow", &["flush", "subnormal", "clamp"])? {
        "subnormal" => text += "-subnormal",
        "clamp" => text += "-clamp",
        _ => {}
    }
    text += if options.choice("scale", &["none", "tensor-pow2"])? == "none" { "" } else { "-pow2" };
    // One spelling: what `-inner` clips does not overflow, and so on.
    let clip: crate::recipe::clip::Clip =
        text.parse().map_err(|e: crate::text::UnknownName| e.to_string())?;
    Ok(clip.to_string())
}
