//! The names of a probe's values: what a value is of, and which statistic it is.
//!
//! In `probes.jsonl` a name is one text of words between points; everywhere else it is a [`Key`]:
//!
//! | text | of | statistic |
//! |---|---|---|
//! | `bound` | the network | `bound` |
//! | `layers.3.entropy` | a block | `entropy` |
//! | `layers.3.q_proj.overlap` | a linear operator | `overlap` |
//! | `layers.3.q_proj.forward.error` | one of its products | `error` |
//! | `layers.3.q_proj.forward.input.mse`, `lm_head.input` | an operand of a product or of all | `mse`, none |
//! | `layers.3.residual.sd` | another place | `sd` |
//! | `model.norm.weight.grad` | a tensor of the model | `grad` |

use crate::nn::site::{Operand, Operator, Place, Product, Site};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

/// What a value is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// The whole network.
    Network,
    /// A block.
    Layer(u32),
    /// A linear operator, or what of it is named.
    Operator(Site, Option<Product>, Option<Operand>),
    /// A tensor that is no operand of one, of a block or outside of all.
    Place(Option<u32>, Place),
    /// A tensor of the model, by its name.
    Tensor(String),
}

impl Of {
    /// Whether it is a bias of the model.
    pub fn is_bias(&self) -> bool {
        matches!(self, Self::Tensor(name) if name.ends_with(".bias"))
    }
}

impl From<Site> for Of {
    fn from(site: Site) -> Self {
        Self::Operator(site, None, None)
    }
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => Ok(()),
            Self::Layer(layer) => write!(f, "layers.{layer}"),
            Self::Operator(site, product, operand) => {
                write!(f, "{site}")?;
                product.map_or(Ok(()), |product| write!(f, ".{product}"))?;
                operand.map_or(Ok(()), |operand| write!(f, ".{operand}"))
            }
            Self::Place(Some(layer), place) => write!(f, "layers.{layer}.{place}"),
            Self::Place(None, place) => write!(f, "{place}"),
            Self::Tensor(name) => f.write_str(name),
        }
    }
}

/// The name of a value; keys are in the order of their texts.
#[derive(Clone, Debug)]
pub struct Key {
    of: Of,
    statistic: String,
    text: String,
}

impl Key {
    /// A statistic of something, "" where there is but one.
    pub fn new(of: impl Into<Of>, statistic: &str) -> Self {
        let (of, statistic) = (of.into(), statistic.to_owned());
        let mut text = of.to_string();
        if !text.is_empty() && !statistic.is_empty() {
            text.push('.');
        }
        text += &statistic;
        Self { of, statistic, text }
    }

    /// What it is of.
    pub const fn of(&self) -> &Of {
        &self.of
    }

    /// Which statistic, "" where there is but one.
    pub fn statistic(&self) -> &str {
        &self.statistic
    }

    /// The linear operator, of the values of one.
    pub const fn site(&self) -> Option<Site> {
        match self.of {
            Of::Operator(site, ..) => Some(site),
            _ => None,
        }
    }

    /// The operand, of the values of one.
    pub const fn operand(&self) -> Option<Operand> {
        match self.of {
            Of::Operator(_, _, operand) => operand,
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A word at the beginning, and what is behind its point.
fn word(text: &str) -> (&str, &str) {
    text.split_once('.').unwrap_or((text, ""))
}

/// What is behind a name at the beginning that may have points in itself.
fn behind<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// A linear operator at the beginning of a text, what of it is named, and the rest.
fn operator(layer: Option<u32>, text: &str) -> Option<(Of, &str)> {
    let is_possible = |operator: Operator| (operator == Operator::Head) == layer.is_none();
    let all = Operator::ALL.iter().filter(|operator| is_possible(**operator));
    let (operator, mut rest) =
        all.filter_map(|one| Some((*one, behind(text, one.name())?))).next()?;
    let mut named = |names: &mut dyn FnMut(&str) -> bool| {
        let (first, behind) = word(rest);
        if names(first) {
            rest = behind;
        }
    };
    let (mut product, mut operand) = (None, None);
    named(&mut |word| {
        product = word.parse::<Product>().ok();
        product.is_some()
    });
    named(&mut |word| {
        operand = word.parse::<Operand>().ok();
        operand.is_some()
    });
    Some((Of::Operator(Site { layer, operator }, product, operand), rest))
}

/// A tensor of the model at the beginning: its name ends in the first `weight` or `bias`.
fn tensor(text: &str) -> Option<(Of, &str)> {
    let ends = [".weight", ".bias"].into_iter().filter_map(|end| {
        let at = text.find(end)? + end.len();
        behind(text, &text[..at]).map(|rest| (at, rest))
    });
    let (at, rest) = ends.min_by_key(|(at, _)| *at)?;
    Some((Of::Tensor(text[..at].to_owned()), rest))
}

/// What a text names, and the statistic behind it.
fn read(text: &str) -> Option<(Of, &str)> {
    let place = |layer, rest: &str| word(rest).0.parse().ok().map(|one| Of::Place(layer, one));
    let Some(rest) = text.strip_prefix("layers.") else {
        let of_place = || place(None, text).map(|of| (of, word(text).1));
        return operator(None, text).or_else(of_place).or_else(|| tensor(text));
    };
    let (layer, rest) = word(rest);
    let layer = layer.parse().ok()?;
    let of_place = || place(Some(layer), rest).map(|of| (of, word(rest).1));
    let of_layer = || (!rest.contains('.')).then_some((Of::Layer(layer), rest));
    operator(Some(layer), rest).or_else(of_place).or_else(of_layer).or_else(|| tensor(text))
}

impl From<&str> for Key {
    /// Reads the text of a key; one that names nothing known is a statistic of the network.
    fn from(text: &str) -> Self {
        let read = read(text).map(|(of, statistic)| Self::new(of, statistic));
        // A text has one reading: one with a point or a number too many is kept as it is.
        read.filter(|key| key.text == text).unwrap_or_else(|| Self::new(Of::Network, text))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
