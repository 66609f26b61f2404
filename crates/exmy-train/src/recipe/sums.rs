//! How products are summed where a recipe says so: step by step in an accumulator of its own, or as Hopper's
//! tensor cores do.
//!
//! | text | order and precision |
//! |---|---|
//! | `fma:bf16`, `mul-add:e8m9@rtz`, `blocked64:f16` | a [`Sum`] of the library, rounded at each step |
//! | `hopper:bf16` | bfloat16 instructions of 16 products each, 25 fraction bits |
//! | `hopper:e4m3` | FP8 instructions of 32 products each, 13 fraction bits |
//!
//! The last two are those of [`Unit`], which models them bit for bit: a CPU computes
//! the model, a GPU of compute capability 9.0 the thing itself. Nothing chooses between them. They multiply
//! what their codes can hold and nothing else ([`TensorCores::why_not`]); the scale of a whole tensor
//! multiplies the sums, as in the order `fast`.

use std::fmt;
use std::str::FromStr;

use crate::recipe::tensor_format::{Prior, TensorFormat};
use exmy::block::{BlockFormat, Shape};
use exmy::format::Format;
use exmy::gemm::unit::Unit;
use exmy::gemm::{Accumulation, Sum};
use exmy::quantizer::{Quantizer, Target};

/// The order and the precision of a product's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sums {
    /// One operation after the other, each rounded to an accumulator.
    Steps(Sum),
    /// By Hopper's tensor cores.
    Cores(TensorCores),
}

/// Instructions of Hopper's tensor cores, by the codes that they multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorCores {
    /// Bfloat16.
    Bf16,
    /// E4M3 of OCP.
    E4m3,
}

impl TensorCores {
    /// The format of the codes.
    pub const fn format(self) -> Format {
        match self {
            Self::Bf16 => Format::BF16,
            Self::E4m3 => Format::E4M3FN,
        }
    }

    /// Why these instructions cannot multiply a tensor in `numbers`, and what they could; `None` if they can.
    ///
    /// Of bfloat16 a format has at most eight significant bits, block scales included. At the ends of the
    /// range of binary32 a value may have fewer places there than it needs; it is rounded to nearest even.
    pub fn why_not(self, numbers: &TensorFormat) -> Option<String> {
        let (fits, takes) = match self {
            Self::Bf16 => (
                is_short(numbers),
                "numbers of at most 8 significant bits with their block scales, as bf16, e4m3, mxfp8-e4m3, \
                 mxfp4 and nvfp4 have",
            ),
            Self::E4m3 => (
                is_e4m3(numbers),
                "codes of e4m3 with at most one scale a tensor, e4m3 or e4m3/tensor:e8m0@rceil; others go \
                 with sums=hopper:bf16",
            ),
        };
        (!fits).then(|| format!("sums={self} multiplies {takes}"))
    }

    /// Whether members of a group in these numbers are multiplied one by one, because each has a scale that
    /// multiplies its sums.
    pub(super) fn splits(cores: Option<Self>, quantizer: &Quantizer) -> bool {
        let Target::Block(format) = quantizer.target else { return false };
        format.tensor_scale || cores == Some(Self::E4m3)
    }
}

/// Whether the values of a format are bfloat16 numbers.
fn is_bf16(format: Format) -> bool {
    let bf16 = Format::BF16;
    format.precision() <= bf16.precision()
        && format.emax() <= bf16.emax()
        && format.lsb() >= bf16.lsb()
}

/// Whether element times scale has the significant bits of bfloat16 at most.
fn is_short_block(format: BlockFormat) -> bool {
    let [element, scale] = [format.element, format.scale].map(Format::precision);
    let bits = if element == 1 || scale == 1 { element.max(scale) } else { element + scale };
    bits <= Format::BF16.precision()
}

/// Whether values in `numbers` have the significant bits of bfloat16 at most, the tensor's scale apart.
fn is_short(numbers: &TensorFormat) -> bool {
    let Quantizer { target, before, rotation, .. } = numbers.quantizer;
    match (target, numbers.prior) {
        (_, Some(Prior::Zero)) => true,
        (Target::Format(format), _) => is_bf16(format),
        // The scale of the whole tensor stays apart where the quantizer is all there is.
        (Target::Block(format), _) => {
            is_short_block(format) && (!format.tensor_scale || numbers.packs())
        }
        // What rotates last is rounded no more.
        (Target::None, _) if rotation.is_some() => false,
        (Target::None, None) => before.is_some_and(|cast| is_bf16(cast.format)),
        (Target::None, Some(Prior::Mask(_))) => true,
        (Target::None, Some(Prior::Clip(clip))) => clip.mantissa_bits < 8,
        (Target::None, Some(Prior::Quantizer(first))) => {
            let whole = matches!(first.target, Target::Block(format) if format.tensor_scale);
            !whole && is_short(&TensorFormat::of(first))
        }
        _ => false,
    }
}

/// Whether codes in `numbers` are E4M3's, with one scale or none.
fn is_e4m3(numbers: &TensorFormat) -> bool {
    let is_it = match numbers.quantizer.target {
        Target::Format(format) => format == Format::E4M3FN,
        Target::Block(format) => {
            format.element == Format::E4M3FN
                && format.shape == Shape::Tensor
                && format.scale.bits() <= 8
                && !format.tensor_scale
        }
        _ => false,
    };
    is_it && numbers.packs()
}

impl fmt::Display for TensorCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hopper:{}", self.format())
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(sum) => write!(f, "{}", Accumulation::Sum(*sum)),
            Self::Cores(cores) => write!(f, "{cores}"),
        }
    }
}

impl FromStr for Sums {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [TensorCores::Bf16, TensorCores::E4m3];
        if let Ok(unit) = text.parse::<Unit>()
            && let Some(cores) = all.into_iter().find(|cores| cores.to_string() == unit.to_string())
        {
            return Ok(Self::Cores(cores));
        }
        // A unit's name with operands is no accumulation of the library.
        let others = || {
            format!(
                "{text:?}: a recipe's sums are fma, mul-add, pairwise or blockedN with an accumulator, as \
                 fma:bf16; hopper:bf16 or hopper:e4m3, by tensor cores; or f32"
            )
        };
        match text.parse() {
            Ok(Accumulation::Sum(sum)) => Ok(Self::Steps(sum)),
            Err(error) if text.parse::<Unit>().is_err() => Err(error.to_string()),
            _ => Err(others()),
        }
    }
}
