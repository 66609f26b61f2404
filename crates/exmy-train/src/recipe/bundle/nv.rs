//! "Pretraining Large Language Models with NVFP4" (arXiv 2509.25149) and what CHON (arXiv 2602.02047) adds.
//!
//! | product | operands |
//! |---|---|
//! | forward | X in blocks of 16 along the sum; W in blocks of 16 x 16 |
//! | `grad_input` | dY rounded stochastically; W with the same codes and scales as in forward |
//! | `grad_weight` | dY and X rotated along the tokens, then in blocks of 16; dY rounded stochastically |
//!
//! Everything is rounded to bfloat16 first, products are rounded to bfloat16 (weight gradients stay f32), the
//! head and the last blocks are bfloat16.

use super::{Options, Rules, rules as list};
use crate::nn::site::{Operator, Product};
use crate::recipe::rule;
use exmy::hadamard::Hadamard;
use exmy::round::Rounding;

/// The arm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocks {
    /// Blocks of 16 with E4M3 scales and a tensor scale.
    Nvfp4,
    /// Blocks of 32 with powers of two, rounded up.
    Mxfp4,
}

/// What is added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patches {
    /// Nothing.
    None,
    /// High precision after the meeting of queries and keys.
    PostQk,
    /// Hot-channel patches.
    Hot,
    /// Both.
    Chon,
}

/// `a/b`: operators' names.
fn operators(key: &str, text: &str) -> Result<Vec<&'static str>, String> {
    let known = |word: &str| {
        let mut all = Operator::ALL.iter().map(|one| one.name()).chain(["gk_proj", "post-qk"]);
        all.find(|name| *name == word).ok_or_else(|| {
            let names: Vec<_> = Operator::ALL.iter().map(|one| one.name()).collect();
            format!("+{key}={text}: {word:?} is no operator; there are {}", names.join(", "))
        })
    };
    text.split('/').map(known).collect()
}

pub(super) fn rules(
    blocks: Blocks,
    patches: Patches,
    options: &mut Options<'_>,
) -> Result<Rules, String> {
    let nvfp4 = blocks == Blocks::Nvfp4;
    let order = if nvfp4 { options.choice("scale-order", &["v2", "v1"])? } else { "v2" };
    let tail = match (blocks, order) {
        (Blocks::Mxfp4, _) => ":e8m0@rceil",
        (_, "v1") => ":ue4m3+tensor@te-2.13",
        _ => ":ue4m3+tensor",
    };
    let side = if nvfp4 { 16 } else { 32 };
    let (tile, line) = (format!("{side}x{side}"), format!("1x{side}"));
    let same = format!("{line}-same");
    let weight = options.get("weight-block").unwrap_or(&tile);
    if ![&tile, &line, &same].iter().any(|word| *word == weight) {
        return Err(format!("+weight-block={weight}: {tile}, {line} or {same}"));
    }
    let stochastic = options.choice("sr", &["grad", "none", "act", "weight", "bwd", "all"])?;
    let bits = options.get("sr-bits").unwrap_or("8");
    if format!("sr{bits}").parse::<Rounding>().is_err() {
        return Err(format!(
            "+sr-bits={bits}: 1 to 32, with the variant a, b or c behind it: 8, 8b"
        ));
    }
    let rotated = options.choice("rht", &["wgrad", "none", "fprop", "dgrad", "all"])?;
    let size = options.number("rht-size", side)?;
    if !Hadamard::SIZES.contains(&(size as usize)) {
        return Err(format!("+rht-size={size}: {:?}", Hadamard::SIZES));
    }
    let (signs, fresh) = match options.choice("rht-signs", &["fixed", "none", "fresh"])? {
        "none" => ("ht", ""),
        "fresh" => ("rht", "@fresh"),
        _ => ("rht", ""),
    };
    let four = options.choice("4over6", &["none", "weights", "acts", "all"])?;
    if !nvfp4 && four != "none" {
        return Err("+4over6: a choice between scales of NVFP4".into());
    }
    let high = options.choice("high", &["bf16", "f32"])?;

    let numbers = |product: Product, operand: &str| {
        let turned = match product {
            Product::Forward => matches!(rotated, "fprop" | "all"),
            Product::GradInput => matches!(rotated, "dgrad" | "all"),
            Product::GradWeight => matches!(rotated, "wgrad" | "all"),
        };
        let random = match (stochastic, operand) {
            ("all", _) | ("grad", "grad_output") | ("weight", "weight") | ("act", "input") => true,
            ("bwd", _) => product != Product::Forward,
            _ => false,
        };
        let shape = match operand {
            "weight" if weight == tile => tile.clone(),
            _ => side.to_string(),
        };
        // The choice is not combined with rotations or random bits, as Transformer Engine has it.
        let four = match (four, operand) {
            ("weights" | "all", "weight") | ("acts" | "all", "input") => !turned && !random,
            _ => false,
        };
        let mut text = String::from("bf16>");
        if turned {
            text += &format!("{signs}{size}>");
        }
        text += &format!("e2m1/{shape}{tail}");
        if four {
            // It came with the second order of operations.
            text = text.replace("@te-2.13", "") + "@4over6";
        }
        if random {
            text += &format!("@sr{bits}");
        }
        if turned {
            text += fresh;
        }
        if operand == "weight" && product == Product::GradInput && weight == same {
            text += "@across";
        }
        text
    };
    let mut all = list([("forward:grad_input:output", "bf16")]);
    let mut push = |on: String, value: String| all.push((on, value));
    for &product in Product::ALL {
        for operand in product.operands() {
            push(format!("{product}:{operand}"), numbers(product, operand.name()));
        }
    }

    // What stays in high precision.
    push("lm_head".into(), high.into());
    let last = options.get("last").unwrap_or("15%");
    let first = options.get("first").unwrap_or("0");
    let mut exceptions = vec!["lm_head".to_owned()];
    for (word, count) in [("last", last), ("first", first)] {
        let digits = count.strip_suffix('%').filter(|_| word == "last").unwrap_or(count);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!(
                "+{word}={count}: a number of blocks{}",
                if word == "last" { " or percent" } else { "" }
            ));
        }
        if digits.bytes().any(|byte| byte != b'0') {
            exceptions.push(format!("{word}{count}"));
            push(format!("{word}{count}"), high.into());
        }
    }
    let protects = match patches {
        Patches::PostQk | Patches::Chon => "post-qk",
        Patches::None | Patches::Hot => "none",
    };
    match options.get("protect").unwrap_or(protects) {
        "none" => {}
        some => {
            for operator in operators("protect", some)? {
                exceptions.push(operator.to_owned());
                push(operator.to_owned(), high.into());
            }
        }
    }
    if let Some(only) = options.get("only") {
        let only = operators("only", only)?;
        for operator in Operator::ALL.iter().map(|one| one.name()) {
            let meant =
                only.iter().any(|one| operator == *one || operator.starts_with(&format!("{one}.")));
            if !meant && operator != "lm_head" && !operator.starts_with("teacher.") {
                push(operator.to_owned(), high.into());
            }
        }
    }
    let patch = match patches {
        Patches::Hot | Patches::Chon => "s-o2-b",
        Patches::None | Patches::PostQk => "off",
    };
    let patch = options.get("hcp").unwrap_or(patch);
    if patch != "off" {
        push("hcp".into(), patch.into());
        for exception in exceptions {
            push(format!("{exception}:hcp"), "off".into());
        }
    }

    // The late switch.
    let scope = options.choice("late-scope", &["both", "forward", "backward"])?;
    if let Some(late) = options.get("late") {
        if rule::start(late).is_none() {
            return Err(format!("+late={late}: a step, or a share of the run as 80%"));
        }
        let on = if scope == "both" { "all" } else { scope };
        push(format!("from{late}:{on}"), high.into());
        if scope != "backward" {
            push(format!("from{late}:hcp"), "off".into());
        }
    }
    Ok(all)
}
