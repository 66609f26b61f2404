//! "Characterization and Mitigation of Training Instabilities in Microscaling Formats" (arXiv 2506.20752), as
//! its public code trains (Hither1/systems-scaling at 8aa0ac8, on microxcaling 7bc4195).
//!
//! Operands are rounded to bfloat16 and then to MX blocks along each product's sum, ties away from zero;
//! every product's result is rounded to bfloat16, and so is every step of norms and activations. The affine
//! parameters of norms are bfloat16 in the code and MX in the text. The two projections into an MLP with a gate are
//! one matrix in the code, which shows in `grad_input`, whose sums and blocks run over both.

use super::{Options, Rules};

/// An element's name to its format.
fn element(name: &str) -> Option<&'static str> {
    Some(match name {
        "e4m3" => "e4m3fn",
        "e5m2" => "e5m2",
        "e3m2" => "e3m2",
        "e2m3" => "e2m3",
        "e2m1" => "e2m1",
        "int8" => "int8",
        _ => return None,
    })
}

const ELEMENTS: &str = "e4m3, e5m2, e3m2, e2m3, e2m1, int8, bf16, fp32";

/// `e4m3`, `mix`, or weights and activations: `e5m2-e4m3`.
pub(super) fn rules(elements: &str, options: &mut Options<'_>) -> Result<Rules, String> {
    let (weight, input, backward) = match elements.split_once('-') {
        _ if elements == "mix" => ("e4m3", "e4m3", Some("e5m2")),
        Some((weight, input)) => (weight, input, None),
        None => (elements, elements, None),
    };
    let round = match options.choice("round", &["half-away", "rne", "floor"])? {
        "rne" => "@rne",
        "floor" => "@rtz",
        _ => "@rna",
    };
    let block = options.number("block", 32)?;
    let bump = options.get("bump");
    let bump = match bump {
        None | Some("off") => "",
        Some("" | "block") => "@rceil",
        Some("code") => "@by-position",
        Some(other) => return Err(format!("+bump={other}: off, block or code")),
    };
    let bf16 = format!("bf16{}", if round == "@rne" { "" } else { round });
    let numbers = |name: &str| match (name, element(name)) {
        ("bf16", _) => Ok(bf16.clone()),
        ("fp32", _) => Ok("f32".to_owned()),
        (_, Some(element)) => {
            let own = if round == "@rna" { "" } else { round };
            let (rule, position) = if bump == "@rceil" { (bump, "") } else { ("", bump) };
            Ok(format!("{bf16}>{element}/{block}:e8m0{rule}@microxcaling{own}{position}"))
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
    let mut all: Rules = Vec::new();
    let mut push = |on: &str, value: String| all.push((on.to_owned(), value));
    push("forward:input", numbers(a)?);
    push("forward:weight", numbers(w)?);
    push("grad_input:weight", numbers(w_bp)?);
    push("grad_input:grad_output", numbers(g_os)?);
    // Gate and up are one matrix there, in whose blocks both may have a part.
    if [w_bp, g_os].iter().any(|name| element(name).is_some()) {
        push("gate_proj:up_proj:grad_input:weight", format!("{}@joined", numbers(w_bp)?));
        push("gate_proj:up_proj:grad_input:grad_output", format!("{}@joined", numbers(g_os)?));
    }
    push("grad_weight:grad_output", numbers(g_ex)?);
    push("grad_weight:input", numbers(a_bp)?);
    push("output", bf16.clone());
    let forward_only = options.flag("fwd-only")?;
    if forward_only {
        push("backward", "f32".into());
        push("backward:output", "f32".into());
    }
    let (plain_norm, tail) = match options.get("no-ln-q") {
        None => (false, false),
        Some("" | "text") => (true, false),
        Some("code") => (true, true),
        Some(other) => return Err(format!("+no-ln-q={other}: text (as plain +no-ln-q) or code")),
    };
    let affine = options.choice("ln-affine", &["bf16", "mx", "fp32"])?;
    if options.choice("ln-arith", &["bf16", "fp32"])? == "bf16" && !plain_norm {
        push("norm", bf16.clone());
    }
    if tail {
        push("norm_tail:tensor", bf16.clone());
    }
    if !plain_norm && affine != "fp32" {
        push(
            "norm_gamma:norm_beta:tensor",
            if affine == "mx" { numbers(w)? } else { bf16.clone() },
        );
    }
    if options.choice("ln-bias-grad", &["off", "on"])? == "off" {
        push("norm_beta:gradient", "zero".into());
    }
    let plain_gelu = options.flag("no-gelu-q")?;
    if options.choice("gelu", &["bf16", "fp32"])? == "bf16" && !plain_gelu {
        push("activation", bf16.clone());
    }
    push("bias", bf16.clone());
    if forward_only {
        push("norm:activation:bias:gradient", "f32".into());
    }
    if options.choice("attention", &["bf16", "fp32"])? == "bf16" {
        push("q:k:v:attention", "bf16".into());
    }
    Ok(all)
}
