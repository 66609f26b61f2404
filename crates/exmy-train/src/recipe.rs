//! Recipes: which numbers each tensor of a training step gets.
//!
//! A recipe is an ordered list of [rules](rule), each saying where (layers, operators, products, operands,
//! steps) and what ([`TensorFormat`]: a quantizer, the axis of its blocks, its random bits). Later rules
//! override earlier ones; what no rule mentions is f32. It has one textual form, the same in Rust, on the
//! command line, in `config.toml` and in a plot's legend. It is a base, and behind each `+` an option or a
//! rule.
//!
//! | base | operands of all three products of all linear layers, head included |
//! |---|---|
//! | `f32` | untouched |
//! | a format: `bf16`, `e8m3`, `e4m3`, `e8m3@rtz`, ... | that format, to nearest even unless said otherwise |
//! | a block format: `mxfp8-e4m3`, `e2m1/16:e8m0`, ... | it, blocks along each product's reduction axis |
//! | `rht16>nvfp4`, `clip-e7m7`, ... | any other [`TensorFormat`] |
//! | `mxfp8-mix` | `mxfp8-e4m3`; the output gradient in both backward products `mxfp8-e5m2` |
//! | a paper's: `bitred-e8m3`, `chon`, ... | as in `docs/recipes.md`, with options: `chon+last=0` |
//!
//! | option | means |
//! |---|---|
//! | `+out=FORMAT` | the results of forward and `grad_input` are rounded to FORMAT |
//! | `+dw-out=FORMAT` | those of `grad_weight` |
//! | `+fwd-only` | the backward products are f32 |
//! | `+o_proj=bf16`, `+last2:weight=bf16`, `+from80%:forward=bf16`, ... | a [rule] |
//!
//! `bitred-e8m7` is `bf16+out=bf16`, bit for bit. In a configuration a recipe can be a table, too:
//!
//! ```toml
//! [recipe]
//! base = "nv-nvfp4+last=1"
//! [[recipe.rule]]
//! layers = ["first1"]
//! operators = ["o_proj", "down_proj"]
//! products = ["grad_weight"]
//! operands = ["grad_output"]
//! from = "80%"
//! numbers = "bf16>rht16>nvfp4@sr4"
//! ```
//!
//! It is written as the line that means the same. A [`Plan`] is a recipe settled for a model; the
//! [`Engine`] computes with it.

#[doc(hidden)]
pub mod bump;
mod bundle;
mod by_token;
pub mod clip;
pub mod device;
mod engine;
mod fast;
pub mod hot;
#[doc(hidden)]
pub mod mask;
#[doc(hidden)]
pub mod old;
#[doc(hidden)]
pub mod plan;
pub mod rule;
pub mod state;
pub mod sums;
mod table;
pub mod tensor_format;

pub use engine::{Engine, Images, Observer, Phase, Rounded, WeightCache};
pub use plan::{Linear, Plan, PlanError, Share};
pub use tensor_format::TensorFormat;

use crate::nn::parameters::Layout;
use crate::nn::site::Product;
use exmy::error::Error;
use exmy::format::Format;
use exmy::quantizer::{ParseQuantizerError, Quantizer};
use exmy::text::Nearest;
use rule::{Rule, Selector, Value};
use std::fmt;
use std::str::FromStr;
use sums::{Sums, TensorCores};

/// Recipes with a name of their own, for suggestions and listings.
pub const NAMED: [&str; 36] = [
    "f32",
    "bf16",
    "e8m3",
    "e8m4",
    "e8m5",
    "e8m6",
    "e8m7",
    "e8m3@rtz",
    "bitred-e8m3",
    "bitred-e8m4",
    "bitred-e8m5",
    "bitred-e8m6",
    "bitred-e8m7",
    "bitred-e7m7",
    "mxfp8-e4m3",
    "mxfp8-e5m2",
    "mxfp8-mix",
    "mxfp8-weights",
    "mxfp6-e2m3",
    "mxfp6-e3m2",
    "mxfp4",
    "mxint8",
    "nvfp4",
    "mxpaper-e4m3",
    "mxpaper-e5m2",
    "mxpaper-mix",
    "mxpaper-e3m2",
    "mxpaper-e2m3",
    "mxpaper-e2m1",
    "mxpaper-int8",
    "msamp-o1",
    "nv-nvfp4",
    "nv-mxfp4",
    "nv-post-qk",
    "nv-hcp",
    "chon",
];

/// Which numbers the tensors of a network get.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    text: String,
    /// The base, and what stands behind each plus sign, in the one spelling.
    words: Vec<String>,
    rules: Vec<Rule>,
}

impl Recipe {
    /// The rules; later ones override earlier ones.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The tensor cores that some product is summed by, if there is one.
    pub fn cores(&self) -> Option<TensorCores> {
        self.rules.iter().find_map(|rule| match rule.value {
            Value::Sums(Some(Sums::Cores(cores))) => Some(cores),
            _ => None,
        })
    }

    /// What a GPU leaves to the processor, if there is something.
    pub fn on_host(&self) -> Option<&'static str> {
        self.rules.iter().find_map(|rule| match rule.value {
            Value::Sums(Some(Sums::Steps(_))) => Some("sums of other orders"),
            Value::Format(TensorFormat { by_position: true, .. }) => {
                Some("exponents bumped by position")
            }
            Value::Format(TensorFormat { window: 1.., quantizer, .. })
                if quantizer.is_stochastic() =>
            {
                Some("delayed scales with random bits")
            }
            _ => None,
        })
    }

    /// The plan for a model and a run of so many steps.
    pub(crate) fn settled(&self, layout: &Layout, steps: u64) -> Result<Plan, Error> {
        Plan::new(self, layout, steps)
            .map_err(|error| Error::new(format!("recipe {self}: {error}")))
    }

    /// This recipe with more options and rules behind it: `+out=bf16+o_proj=bf16`. Those that it ends with
    /// already are not added again.
    ///
    /// # Errors
    /// If the result is no recipe.
    pub fn with(&self, additions: &str) -> Result<Self, ParseRecipeError> {
        let more = parts(additions);
        if !more[0].is_empty() {
            let reason =
                "what is added to a recipe begins with a plus sign and an option or a rule";
            return Err(ParseRecipeError { given: additions.into(), reason: Some(reason.into()) });
        }
        let own: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let longer = Self::of(&[&own, &more[1..]].concat())?;
        let is_there = self.words[1..].ends_with(&longer.words[own.len()..]);
        Ok(if is_there { self.clone() } else { longer })
    }

    /// This recipe with one more rule.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.words.push(rule.to_string());
        self.text = self.words.join("+");
        self.rules.push(rule);
        self
    }

    /// This recipe with more rules. Those that it ends with already are not added again.
    #[must_use]
    pub fn with_rules(self, rules: &[Rule]) -> Self {
        let words: Vec<String> = rules.iter().map(Rule::to_string).collect();
        if self.words[1..].ends_with(&words) {
            return self;
        }
        rules.iter().cloned().fold(self, Self::with_rule)
    }

    /// The textual form.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Default for Recipe {
    /// `f32`: nothing is quantized.
    fn default() -> Self {
        Self { text: "f32".into(), words: vec!["f32".into()], rules: Vec::new() }
    }
}

/// A text that is no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseRecipeError {
    /// The text.
    pub given: String,
    /// Which part of it is wrong, and why; `None` if it begins as no recipe does.
    pub reason: Option<String>,
}

impl fmt::Display for ParseRecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given, reason } = self;
        write!(f, "there is no recipe {given:?}")?;
        if let Some(reason) = reason {
            return write!(f, "\n  {reason}");
        }
        let near = Nearest::new(given, NAMED);
        if !near.names().is_empty() {
            write!(f, "\n  did you mean {near}?")?;
        }
        write!(
            f,
            "\n  a recipe is f32, a format (bf16, e8m3, e8m3@rtz), a block format (mxfp8-e4m3, \
             mxfp4, nvfp4), mxfp8-mix, bitred-e8m3 to bitred-e8m7, mxpaper-e4m3, msamp-o1, nv-nvfp4, \
             chon, each also +out=bf16 and +WHERE=NUMBERS (+last2:o_proj=bf16)"
        )
    }
}

impl std::error::Error for ParseRecipeError {}

/// The parts between plus signs; the one of `+tensor` in a block format divides nothing.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('+') {
        let behind = &text[at + 1..];
        let word = behind.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("tensor"));
        let ends = |byte: &u8| matches!(byte, b'@' | b'+' | b'>');
        if !(word && behind.as_bytes().get(6).is_none_or(ends)) {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The numbers that a base alone is, in the one spelling.
fn numbers(base: &str) -> Result<TensorFormat, Option<String>> {
    base.parse::<TensorFormat>().map_err(|error| match base.parse::<Quantizer>() {
        Err(ParseQuantizerError::Unknown(_)) => None,
        _ => Some(error.to_string()),
    })
}

/// The rule of `+out=` and `+dw-out=`. Where the value is neither a format nor other numbers, a format was
/// meant.
fn output(on: Selector, value: &str) -> Result<Rule, String> {
    Rule::of(on, value).map_err(|error| match value.parse::<Format>() {
        Err(format) if value.parse::<TensorFormat>().is_err() => format.to_string(),
        _ => error.to_string(),
    })
}

impl FromStr for Recipe {
    type Err = ParseRecipeError;

    fn from_str(text: &str) -> Result<Self, ParseRecipeError> {
        Self::of(&parts(text))
    }
}

impl Recipe {
    /// The recipe of a base and what follows it.
    fn of(words: &[&str]) -> Result<Self, ParseRecipeError> {
        let fail = |reason| ParseRecipeError { given: words.join("+"), reason };
        let (base, options) = (words[0], &words[1..]);
        let split = |word: &'_ str| -> (usize, usize) {
            word.find('=').map_or((word.len(), word.len()), |at| (at, at + 1))
        };
        let items = options.iter().map(|word| (&word[..split(word).0], &word[split(word).1..]));
        let mut options = bundle::Options::new(items.collect());
        let found = bundle::find(base, &mut options).map_err(|reason| fail(Some(reason)))?;
        let is_bundle = found.is_some();
        let mut rules = found.unwrap_or_default();
        let mut canonical = vec![base.to_owned()];
        if !is_bundle {
            let numbers = numbers(base).map_err(fail)?;
            // A name of its own stays (`e8m7` is the format bf16, but not what was asked for); any
            // other spelling becomes the quantizer's.
            if !NAMED.contains(&base) {
                canonical = vec![numbers.to_string()];
            }
            if !numbers.is_none() {
                rules.push(Selector::ALL.to(numbers));
            }
        }
        for (key, value, taken) in options.iter() {
            if taken {
                let value = if value.is_empty() { String::new() } else { format!("={value}") };
                canonical.push(format!("{key}{value}"));
                continue;
            }
            let products: &[Product] = match key {
                "out" => &[Product::Forward, Product::GradInput],
                "dw-out" => &[Product::GradWeight],
                _ => &[],
            };
            if !products.is_empty() {
                let on = Selector::products(products).output();
                let rule = output(on, value).map_err(|reason| fail(Some(reason)))?;
                let mut word = format!("{key}=");
                // A text takes all that is written into it.
                let _ = rule.write_value(&mut word);
                canonical.push(word);
                rules.push(rule);
            } else if key == "fwd-only" && value.is_empty() {
                canonical.push(key.to_owned());
                rules.extend(rule::forward_only());
            } else {
                let rule = Rule::parse(key, value).map_err(|error| {
                    let near = Nearest::new(key, options.names().iter().copied());
                    let other = ["out", "dw-out", "fwd-only"];
                    let near =
                        if near.names().is_empty() { Nearest::new(key, other) } else { near };
                    fail(Some(if error.unknown && !near.names().is_empty() {
                        format!("+{key}: {base} has no such option; did you mean +{near}?")
                    } else if value.is_empty() {
                        format!("+{key}: {error}")
                    } else {
                        error.to_string()
                    }))
                })?;
                canonical.push(rule.to_string());
                rules.push(rule);
            }
        }
        Ok(Self { text: canonical.join("+"), words: canonical, rules })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}
