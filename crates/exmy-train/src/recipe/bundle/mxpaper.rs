//! "Characterization and Mitigation of Training Instabilities in Microscaling Formats" (arXiv 2506.20752), as
//! its public code trains (Hither1/systems-scaling at 8aa0ac8, on microxcaling 7bc4195).
//!
//! Operands are rounded to bfloat16 and then to MX blocks along each product's sum, ties away from zero.
//! Every product's result is rounded to bfloat16, and so is every step of norms and activations. The affine
//! parameters of norms are bfloat16 in the code and MX in the text. The two projections into an MLP with a
//! gate are one matrix in the code, which shows in `grad_input`, whose sums and blocks run over both.

use super::Options;
use crate::nn::site::{Operand, Operator, Place, Product, Vector};
use crate::recipe::rule::{self, Rule, Selector, Subject};
use crate::recipe::tensor_format::{Prior, TensorFormat};
use exmy::block::scale::ScaleRule;
use exmy::block::{BlockFormat, BlockProfile, Shape};
use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::quantizer::Quantizer;
use exmy::round::Rounding;

/// An element's name to its format.
fn element(name: &str) -> Option<Format> {
    Some(match name {
        "e4m3" => Format::E4M3FN,
        "e5m2" => Format::E5M2,
        "e3m2" => Format::E3M2,
        "e2m3" => Format::E2M3,
        "e2m1" => Format::E2M1,
        "int8" => Format::INT8,
        _ => return None,
    })
}

const ELEMENTS: &str = "e4m3, e5m2, e3m2, e2m3, e2m1, int8, bf16, fp32";

/// `e4m3`, `mix`, or weights and activations: `e5m2-e4m3`.
pub(super) fn rules(elements: &str, options: &mut Options<'_>) -> Result<Vec<Rule>, String> {
    use Operand::{GradOutput, Input, Weight};
    use Product::{Forward, GradInput, GradWeight};
    let (weight, input, backward) = match elements.split_once('-') {
        _ if elements == "mix" => ("e4m3", "e4m3", Some("e5m2")),
        Some((weight, input)) => (weight, input, None),
        None => (elements, elements, None),
    };
    let rounding = match options.choice("round", &["half-away", "rne", "floor"])? {
        "rne" => Rounding::TiesToEven,
        "floor" => Rounding::TowardZero,
        _ => Rounding::TiesToAway,
    };
    let block = options.number("block", 32)?;
    let (scale_rule, by_position) = match options.get("bump") {
        None | Some("off") => (ScaleRule::Floor, false),
        Some("" | "block") => (ScaleRule::RCeil, false),
        Some("code") => (ScaleRule::Floor, true),
        Some(other) => return Err(format!("+bump={other}: off, block or code")),
    };
    let first = Cast::new(Format::BF16).with_rounding(rounding);
    let bf16: TensorFormat = Quantizer::new(Format::BF16.into()).with_rounding(rounding).into();
    let numbers = |name: &str| match (name, element(name)) {
        ("bf16", _) => Ok(bf16),
        ("fp32", _) => Ok(TensorFormat::NONE),
        (_, Some(element)) => {
            let (shape, profile) = (Shape::Along(block), BlockProfile::Microxcaling);
            let format =
                BlockFormat { shape, rule: scale_rule, profile, ..BlockFormat::mx(element) };
            let quantizer = Quantizer::new(format.into()).with_rounding(rounding).after(first);
            Ok(TensorFormat { by_position, ..quantizer.into() })
        }
        _ => Err(format!("{name:?} is no element of mxpaper: {ELEMENTS}; or mxpaper-mix")),
    };
    let (act, act_all) = (options.flag("bf16-act")?, options.flag("bf16-act-all")?);
    let weight_is_bf16 = options.flag("bf16-weight")?;
    let w = options.get("w").unwrap_or(if weight_is_bf16 { "bf16" } else { weight });
    let a = options.get("a").unwrap_or(if act || act_all { "bf16" } else { input });
    // A backward format that is not set copies the forward one; interventions set the forward one alone.
    let w_bp =
        options.get("w-bp").unwrap_or(backward.unwrap_or(if weight_is_bf16 { weight } else { w }));
    let a_bp = options.get("a-bp").unwrap_or(a);
    let g = if act_all { "bf16" } else { backward.unwrap_or(if act { input } else { a }) };
    let g_ex = options.get("g-ex").unwrap_or(g);
    let g_os = options.get("g-os").unwrap_or(g);

    let on = |operators: &[Operator], product, operand| Selector {
        products: vec![product],
        subject: Subject::Operands(vec![operand]),
        ..Selector::operators(operators)
    };
    let mut all = vec![
        on(&[], Forward, Input).to(numbers(a)?),
        on(&[], Forward, Weight).to(numbers(w)?),
        on(&[], GradInput, Weight).to(numbers(w_bp)?),
        on(&[], GradInput, GradOutput).to(numbers(g_os)?),
    ];
    // Gate and up are one matrix there, in whose blocks both may have a part.
    if [w_bp, g_os].iter().any(|name| element(name).is_some()) {
        for (operand, name) in [(Weight, w_bp), (GradOutput, g_os)] {
            let joined = TensorFormat { joined: true, ..numbers(name)? };
            all.push(on(&[Operator::Gate, Operator::Up], GradInput, operand).to(joined));
        }
    }
    all.push(on(&[], GradWeight, GradOutput).to(numbers(g_ex)?));
    all.push(on(&[], GradWeight, Input).to(numbers(a_bp)?));
    all.push(Selector::ALL.output().to(bf16));
    let forward_only = options.flag("fwd-only")?;
    if forward_only {
        all.extend(rule::forward_only());
    }
    all.extend(vectors(options, bf16, forward_only, || numbers(w))?);
    Ok(all)
}

/// The steps of norms, activation functions and biases, and what attention reads and writes.
fn vectors(
    options: &mut Options<'_>,
    bf16: TensorFormat,
    forward_only: bool,
    mx: impl Fn() -> Result<TensorFormat, String>,
) -> Result<Vec<Rule>, String> {
    use Place::{Attention, K, NormBeta, NormGamma, Q, V};
    let mut all = Vec::new();
    let (plain_norm, tail) = match options.get("no-ln-q") {
        None => (false, false),
        Some("" | "text") => (true, false),
        Some("code") => (true, true),
        Some(other) => return Err(format!("+no-ln-q={other}: text (as plain +no-ln-q) or code")),
    };
    let affine = options.choice("ln-affine", &["bf16", "mx", "fp32"])?;
    if options.choice("ln-arith", &["bf16", "fp32"])? == "bf16" && !plain_norm {
        all.push(Selector::vectors(&[Vector::Norm]).to(bf16));
    }
    if tail {
        all.push(Selector::of(Subject::Vectors(vec![Vector::NormTail], Some(false))).to(bf16));
    }
    if !plain_norm && affine != "fp32" {
        let on = Selector::of(Subject::Places(vec![NormGamma, NormBeta], Some(false)));
        all.push(on.to(if affine == "mx" { mx()? } else { bf16 }));
    }
    if options.choice("ln-bias-grad", &["off", "on"])? == "off" {
        let on = Selector::of(Subject::Places(vec![NormBeta], Some(true)));
        all.push(on.to(TensorFormat::NONE.behind(Prior::Zero)));
    }
    let plain_gelu = options.flag("no-gelu-q")?;
    if options.choice("gelu", &["bf16", "fp32"])? == "bf16" && !plain_gelu {
        all.push(Selector::vectors(&[Vector::Activation]).to(bf16));
    }
    all.push(Selector::vectors(&[Vector::Bias]).to(bf16));
    if forward_only {
        let operations = vec![Vector::Norm, Vector::Activation, Vector::Bias];
        all.push(Selector::of(Subject::Vectors(operations, Some(true))).to(TensorFormat::NONE));
    }
    if options.choice("attention", &["bf16", "fp32"])? == "bf16" {
        all.push(Selector::places(&[Q, K, V, Attention]).to(Format::BF16));
    }
    Ok(all)
}
