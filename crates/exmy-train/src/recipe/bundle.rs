//! Recipes with a name: the papers', as rules.
//!
//! A bundle has options, written behind its name: `nv-nvfp4+last=0+sr-bits=4`. Which it has, what they are
//! when not written, and where each number comes from is in `docs/recipes.md`, whose lists of rules are
//! tested against this code.

mod bitred;
mod mxpaper;
mod nv;

use crate::nn::site::{Operand, Product};
use crate::recipe::rule::{Rule, Selector};
use crate::recipe::tensor_format::{Prior, TensorFormat};
use exmy::block::scale::ScaleRule;
use exmy::block::{BlockFormat, Shape};
use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::quantizer::Quantizer;
use exmy::text::Nearest;

/// The options behind a name, and which of them a bundle has taken.
pub(super) struct Options<'a> {
    items: Vec<(&'a str, &'a str)>,
    taken: Vec<bool>,
    /// Those that a bundle has asked for, for suggestions.
    asked: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(super) fn new(items: Vec<(&'a str, &'a str)>) -> Self {
        Self { taken: vec![false; items.len()], items, asked: Vec::new() }
    }

    /// The value of an option, "" where there is none behind it. The last one counts.
    fn get(&mut self, key: &'static str) -> Option<&'a str> {
        self.asked.push(key);
        let mut value = None;
        for (item, taken) in self.items.iter().zip(&mut self.taken) {
            if item.0 == key {
                (value, *taken) = (Some(item.1), true);
            }
        }
        value
    }

    /// An option without value.
    fn flag(&mut self, key: &'static str) -> Result<bool, String> {
        match self.get(key) {
            None => Ok(false),
            Some("") => Ok(true),
            Some(value) => Err(format!("+{key}={value}: the option {key} takes no value")),
        }
    }

    /// One of some words, the first of them where none is written.
    fn choice(
        &mut self,
        key: &'static str,
        words: &[&'static str],
    ) -> Result<&'static str, String> {
        let all: Vec<_> = words.iter().map(|&word| (word, word)).collect();
        self.one_of(key, &all)
    }

    /// What one of some words means, the first of them where none is written.
    fn one_of<T: Copy>(
        &mut self,
        key: &'static str,
        all: &[(&'static str, T)],
    ) -> Result<T, String> {
        let Some(value) = self.get(key) else { return Ok(all[0].1) };
        all.iter().find(|(word, _)| *word == value).map(|(_, meant)| *meant).ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
            let near = Nearest::new(value, words.iter().copied());
            let meant = if near.names().is_empty() {
                String::new()
            } else {
                format!(" did you mean {near}?")
            };
            format!("+{key}={value}:{meant} {key} is one of {}", words.join(", "))
        })
    }

    /// A whole number from 1.
    fn number(&mut self, key: &'static str, default: u32) -> Result<u32, String> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("+{key}={value}: a whole number from 1"))
    }

    /// Index and parts of each option, and whether a bundle has taken it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str, bool)> {
        self.items.iter().zip(&self.taken).map(|(&(key, value), &taken)| (key, value, taken))
    }

    /// The names of the options that the bundle has.
    pub(super) fn names(&self) -> &[&'static str] {
        &self.asked
    }
}

/// The rules of a bundle, if there is one of that name.
pub(super) fn find(name: &str, options: &mut Options<'_>) -> Result<Option<Vec<Rule>>, String> {
    if let Some(shape) = name.strip_prefix("bitred-") {
        return bitred::rules(shape, options).map(Some);
    }
    if let Some(elements) = name.strip_prefix("mxpaper-") {
        return mxpaper::rules(elements, options).map(Some);
    }
    Ok(Some(match name {
        "mxfp8-mix" => vec![
            Selector::ALL.to(BlockFormat::MXFP8_E4M3),
            Selector::operand(Operand::GradOutput).to(BlockFormat::MXFP8_E5M2),
        ],
        "mxfp8-weights" => vec![
            Selector::ALL.to(Format::BF16),
            Selector::operand(Operand::Weight).to(BlockFormat::MXFP8_E4M3),
        ],
        "msamp-o1" => msamp(options)?,
        "nv-nvfp4" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::None, options)?,
        "nv-mxfp4" => nv::rules(nv::Blocks::Mxfp4, nv::Patches::None, options)?,
        "nv-post-qk" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::PostQk, options)?,
        "nv-hcp" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::Hot, options)?,
        "chon" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::Chon, options)?,
        _ => return Ok(None),
    }))
}

/// What forward and `grad_input` are rounded to, as most papers have it.
fn bf16_outputs() -> Rule {
    Selector::products(&[Product::Forward, Product::GradInput]).output().to(Format::BF16)
}

/// MS-AMP 0.3.0 at level O1 (arXiv 2310.18313; `msamp/nn/functional.py`): every linear operator in FP8 with
/// one power of two a tensor.
fn msamp(options: &mut Options<'_>) -> Result<Vec<Rule>, String> {
    let window = options.number("window", 16)?;
    let window =
        u8::try_from(window).map_err(|_| format!("+window={window}: at most 255 steps"))?;
    let shape = Shape::Tensor;
    let format =
        |element| BlockFormat { shape, rule: ScaleRule::RCeil, ..BlockFormat::mx(element) };
    // A window of one step is scaling in time.
    let window = if window == 1 { 0 } else { window };
    let scaled = |element| TensorFormat { shared: true, window, ..format(element).into() };
    let quantizer = |element| Quantizer::new(format(element).into());
    let half = Prior::Quantizer(quantizer(Format::F16));
    let e4m3 = quantizer(Format::E4M3FN);
    let grad_weight = Selector::products(&[Product::GradWeight]);
    Ok(vec![
        Selector::operand(Operand::Weight).to(TensorFormat::of(e4m3).behind(half)),
        bf16_outputs(),
        grad_weight.output().to(e4m3.after(Cast::new(Format::BF16))),
        Selector::operand(Operand::Input).to(scaled(Format::E4M3FN)),
        Selector::operand(Operand::GradOutput).to(scaled(Format::E5M2)),
    ])
}
