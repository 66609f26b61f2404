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
        digits(shape).filter(|(e, m)| (2..=8).contains(e) && (u8::from(*e < 8)..=7).contains(m))
    else {
        return Err(
            "bitred keeps 0 to 7 of bf16's 7 mantissa bits, or 1 to 7 with 2 to 7 of its exponent bits: \
             bitred-e8m0 to bitred-e8m7, bitred-e7m7"
                .into(),
        );
    };
    let round = options.get("round").unwrap_or("trunc");
    let suffix = match round {
        "trunc" => "@rtz".to_owned(),
        "rne" => String::new(),
        _ => match round.parse::<exmy::round::Rounding>() {
            Ok(rounding) if rounding.is_stochastic() => format!("@{round}"),
            _ => return Err(format!("+round={round}: trunc, rne, or stochastic as sr8")),
        },
    };
    if mantissa == 0 && suffix != "@rtz" {
        return Err(format!("+round={round}: a mask that leaves no mantissa is trunc"));
    }
    let scaled = options.choice("scale", &["none", "tensor-pow2"])? != "none";
    let mask = if mantissa < 7 { format!("e8m{mantissa}{suffix}") } else { String::new() };
    let numbers = if mantissa == 0 {
        if scaled {
            return Err("+scale=tensor-pow2: no power of two changes which exponent is left".into());
        }
        "mask0".to_owned()
    } else if exponent == 8 && !scaled {
        if mask.is_empty() { "bf16".to_owned() } else { format!("bf16>{mask}") }
    } else {
        let clip = clip(exponent, mantissa, scaled, options)?;
        if mask.is_empty() { clip } else { format!("{clip}>>{mask}") }
    };
    let sums = options.choice("accum", &["fp32", "bf16"])?;
    let mut all = list([("all", "bf16"), ("forward:grad_input:output", "bf16")]);
    let on = selectors(options.get("mask").unwrap_or("paper"))?;
    if on == ["all"] {
        all[0].1 = numbers;
    } else {
        all.extend(on.into_iter().map(|on| (on.to_owned(), numbers.clone())));
    }
    if sums == "bf16" {
        all.push(("sums".into(), "fma:bf16".into()));
    }
    Ok(all)
}

/// Which operands of linear operators are masked.
const OPERANDS: [(&str, &str); 6] = [
    ("paper", "all"),
    ("forward", "forward"),
    ("backward", "backward"),
    ("weights", "weight"),
    ("inputs", "input"),
    ("gradients", "grad_output"),
];

/// What else is: operands of attention's two products, in their backward passes too, and the rows of
/// the embedding.
const OTHERS: [(&str, &[&str]); 4] = [
    ("qk", &["q:k:tensor", "scores:gradient"]),
    ("pv", &["v:probabilities:tensor", "attention:gradient"]),
    (
        "attention",
        &["q:k:tensor", "scores:gradient", "v:probabilities:tensor", "attention:gradient"],
    ),
    ("embedding", &["embedding:tensor"]),
];

/// The selectors of words joined by `/`; those of other tensors alone are in addition to the paper's.
fn selectors(words: &str) -> Result<Vec<&'static str>, String> {
    let mut operands: Vec<&'static str> = Vec::new();
    let mut others: Vec<&'static str> = Vec::new();
    for word in words.split('/') {
        if let Some((_, on)) = OPERANDS.iter().find(|(name, _)| *name == word) {
            operands.push(*on);
        } else if let Some((_, on)) = OTHERS.iter().find(|(name, _)| *name == word) {
            others.extend(*on);
        } else {
            let names = OPERANDS.iter().map(|(name, _)| *name);
            let names: Vec<_> = names.chain(OTHERS.iter().map(|(name, _)| *name)).collect();
            return Err(format!(
                "+mask={words}: {word:?} is none of {}; several are joined by /",
                names.join(", ")
            ));
        }
    }
    if operands.is_empty() {
        operands.push("all");
    }
    operands.extend(others);
    Ok(operands)
}

fn clip(
    exponent: u8,
    mantissa: u8,
    scaled: bool,
    options: &mut Options<'_>,
) -> Result<String, String> {
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
    text += if scaled { "-pow2" } else { "" };
    // One spelling: what `-inner` clips does not overflow, and so on.
    let clip: crate::recipe::clip::Clip =
        text.parse().map_err(|e: exmy::text::UnknownName| e.to_string())?;
    Ok(clip.to_string())
}
