//! Recipes: which number format each operand of each product of each linear layer gets.
//!
//! A recipe answers (site, product, operand) with a [`Quantizer`], and (site, product) with the
//! format the product is stored in. It has one textual form, the same in Rust, on the command line,
//! in `config.toml` and in a plot's legend:
//!
//! | text | operands of all three products of all linear layers, head included |
//! |---|---|
//! | `f32` | untouched |
//! | a format: `bf16`, `e8m3`, `e4m3fn`, `e8m3@rtz`, ... | that format, to nearest even unless said otherwise |
//! | a block format: `mxfp8-e4m3`, `mxfp4`, `nvfp4`, `e2m1/16:e8m0`, ... | that block format, blocks along each product's own reduction axis |
//! | `mxfp8-mix` | `mxfp8-e4m3`; the output gradient in both backward products `mxfp8-e5m2` |
//! | `bitred-e8mM` | rounded to bf16, then the low 7 - M mantissa bits cut off; outputs of forward and `grad_input` rounded to bf16 (arXiv 2405.18710 as specified by its reviewers: a bit mask on bf16 values, accumulation in high precision) |
//! | any of these `+out=FORMAT` | the same, with the outputs of forward and `grad_input` rounded to FORMAT |
//!
//! Everything else of the network stays in f32. `bitred-e8m7` is `bf16+out=bf16`, bit for bit.

mod engine;

pub use engine::{Engine, Images, Observer, Phase};

use crate::format::{Format, Sign};
use crate::nn::site::{Operand, Product, Site};
use crate::quantizer::{ParseQuantizerError, Quantizer, Target};
use crate::text::Nearest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Recipes with a name of their own, for suggestions and listings.
pub const NAMED: [&str; 21] = [
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
    "mxfp8-e4m3",
    "mxfp8-e5m2",
    "mxfp8-mix",
    "mxfp6-e2m3",
    "mxfp6-e3m2",
    "mxfp4",
    "mxint8",
    "nvfp4",
];

/// How the linear layers of a network are quantized.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    text: String,
    /// Inputs and weights, in every product they enter.
    values: Quantizer,
    /// The gradient of the output, in both backward products.
    gradients: Quantizer,
    /// Storage of the outputs of forward and `grad_input`.
    output: Option<Format>,
}

impl Recipe {
    /// The quantizer of one operand of one product.
    pub fn quantizer(&self, _site: Site, _product: Product, operand: Operand) -> Quantizer {
        match operand {
            Operand::Input | Operand::Weight => self.values,
            Operand::GradOutput => self.gradients,
        }
    }

    /// The format a product is rounded to, to nearest even; `None` leaves it in f32. Weight
    /// gradients stay in f32, as they are added to an f32 buffer.
    pub fn output(&self, _site: Site, product: Product) -> Option<Format> {
        match product {
            Product::Forward | Product::GradInput => self.output,
            Product::GradWeight => None,
        }
    }

    /// The textual form.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Default for Recipe {
    /// `f32`: nothing is quantized.
    fn default() -> Self {
        Self {
            text: "f32".into(),
            values: Quantizer::NONE,
            gradients: Quantizer::NONE,
            output: None,
        }
    }
}

/// A text that is no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseRecipeError {
    given: String,
    reason: Option<String>,
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
             mxfp4, nvfp4), mxfp8-mix or bitred-e8m3 to bitred-e8m7, each also +out=bf16"
        )
    }
}

impl std::error::Error for ParseRecipeError {}

impl FromStr for Recipe {
    type Err = ParseRecipeError;

    fn from_str(text: &str) -> Result<Self, ParseRecipeError> {
        let fail = |reason| ParseRecipeError { given: text.into(), reason };
        let (base, out) = match text.split_once("+out=") {
            Some((base, out)) => {
                let format = out.parse::<Format>().map_err(|e| fail(Some(e.to_string())))?;
                (base, Some(format))
            }
            None => (text, None),
        };
        let quantizer = |text: &str| -> Result<Quantizer, ParseRecipeError> {
            let quantizer: Quantizer = text.parse().map_err(|error| match error {
                ParseQuantizerError::Unknown(_) => fail(None),
                other => fail(Some(other.to_string())),
            })?;
            if quantizer.rotation.is_some() {
                return Err(fail(Some(
                    "a recipe rotates nothing: operands of every product have axes of any length, \
                     and a rotation needs whole groups"
                        .into(),
                )));
            }
            match quantizer.target {
                Target::Format(format) if format.sign() == Sign::Unsigned => Err(fail(Some(
                    format!("{format} has no negative numbers: it is made for scales"),
                ))),
                _ => Ok(quantizer),
            }
        };
        let mut recipe = match base {
            "f32" => Self::default(),
            "mxfp8-mix" => Self {
                values: quantizer("mxfp8-e4m3")?,
                gradients: quantizer("mxfp8-e5m2")?,
                ..Self::default()
            },
            _ => match base.strip_prefix("bitred-e8m") {
                Some(bits @ ("1" | "2" | "3" | "4" | "5" | "6" | "7")) => {
                    let values = match bits {
                        "7" => quantizer("bf16")?,
                        _ => quantizer(&format!("bf16>e8m{bits}@rtz"))?,
                    };
                    let output = Some(Format::BF16);
                    Self { values, gradients: values, output, ..Self::default() }
                }
                Some(_) => {
                    let reason = "bitred keeps 1 to 7 of bf16's 7 mantissa bits: bitred-e8m1 to \
                                  bitred-e8m7";
                    return Err(fail(Some(reason.into())));
                }
                None => {
                    let values = quantizer(base)?;
                    Self { values, gradients: values, ..Self::default() }
                }
            },
        };
        recipe.output = out.or(recipe.output);
        // A name of its own stays (`e8m7` is the format bf16, but not what was asked for); any
        // other spelling becomes the quantizer's.
        recipe.text = match base {
            _ if NAMED.contains(&base) || base.starts_with("bitred-") => base.into(),
            _ => recipe.values.to_string(),
        };
        if let Some(format) = out {
            recipe.text += &format!("+out={format}");
        }
        Ok(recipe)
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::site::Operator;

    const SITE: Site = Site { layer: Some(0), operator: Operator::Up };

    #[test]
    fn a_rotation_is_refused() {
        let error = "rht16>nvfp4".parse::<Recipe>().unwrap_err().to_string();
        assert!(error.contains("whole groups"), "{error}");
        assert_eq!("mxfp8-e4m3@te".parse::<Recipe>().unwrap().to_string(), "mxfp8-e4m3@te");
    }

    #[test]
    fn every_name_parses_and_prints_itself() {
        for name in NAMED {
            let recipe: Recipe = name.parse().unwrap();
            assert_eq!(recipe.to_string(), name);
        }
    }

    #[test]
    fn other_spellings_print_the_one_form() {
        let text = |text: &str| text.parse::<Recipe>().unwrap().to_string();
        assert_eq!(text("float8_e4m3fn"), "e4m3fn");
        assert_eq!(text("e4m3fn@rne"), "e4m3fn");
        assert_eq!(text("e2m1/16:ue4m3+tensor"), "nvfp4");
        assert_eq!(text("F8_E4M3@rtz+out=bfloat16"), "e4m3fn@rtz+out=bf16");
        assert_eq!(text("f32+out=bf16"), "f32+out=bf16");
    }

    #[test]
    fn mix_differs_in_the_gradient_alone() {
        let recipe: Recipe = "mxfp8-mix".parse().unwrap();
        let text = |product, operand| recipe.quantizer(SITE, product, operand).to_string();
        assert_eq!(text(Product::Forward, Operand::Weight), "mxfp8-e4m3");
        assert_eq!(text(Product::GradInput, Operand::Weight), "mxfp8-e4m3");
        assert_eq!(text(Product::GradWeight, Operand::Input), "mxfp8-e4m3");
        assert_eq!(text(Product::GradInput, Operand::GradOutput), "mxfp8-e5m2");
        assert_eq!(text(Product::GradWeight, Operand::GradOutput), "mxfp8-e5m2");
    }

    #[test]
    fn bitred_rounds_to_bf16_then_cuts_and_stores_bf16() {
        let recipe: Recipe = "bitred-e8m3".parse().unwrap();
        let quantizer = recipe.quantizer(SITE, Product::Forward, Operand::Input);
        assert_eq!(quantizer.to_string(), "bf16>e8m3@rtz");
        assert_eq!(recipe.output(SITE, Product::Forward), Some(Format::BF16));
        assert_eq!(recipe.output(SITE, Product::GradInput), Some(Format::BF16));
        assert_eq!(recipe.output(SITE, Product::GradWeight), None);
    }

    #[test]
    fn wrong_names_are_answered() {
        let message = |text: &str| text.parse::<Recipe>().unwrap_err().to_string();
        assert!(message("mxpf8-e4m3").contains("did you mean mxfp8-e4m3"));
        assert!(message("bitred-e8m9").contains("bitred-e8m1 to bitred-e8m7"));
        assert!(message("bitred-e8m0").contains("bitred-e8m1 to bitred-e8m7"));
        assert!(message("e8m0").contains("no negative numbers"));
        assert!(message("e4m3fn@sr33").contains("sr33"));
        assert!(message("mxfp4@sr8@sr4").contains("two rounding modes"));
        assert!(message("bf16+out=bf61").contains("bf16"));
    }
}
