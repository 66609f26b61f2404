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

use super::{Options, bf16_outputs};
use crate::nn::site::{Operand, Operator, Product};
use crate::recipe::hot::Patch;
use crate::recipe::rule::{self, Layers, Rule, Selector, Subject, Value};
use crate::recipe::tensor_format::TensorFormat;
use exmy::block::hadamard::{Hadamard, Signs};
use exmy::block::scale::{FourOverSix, ScaleRule};
use exmy::block::{BlockFormat, BlockProfile, Shape};
use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::quantizer::Quantizer;
use exmy::round::{Rounding, StochasticVariant};

/// Which blocks there are.
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

/// How weights lie in blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WeightBlocks {
    /// In squares, which a matrix and its transpose share.
    Square,
    /// Along each product's own sum.
    Along,
    /// Along the sum of the forward product, in `grad_input` too.
    AlongForward,
}

/// Which operands of which products are meant.
type Meant = fn(Product, Operand) -> bool;

/// Values of `sr`: what is rounded stochastically.
const STOCHASTIC: [(&str, Meant); 6] = [
    ("grad", |_, operand| operand == Operand::GradOutput),
    ("none", |_, _| false),
    ("act", |_, operand| operand == Operand::Input),
    ("weight", |_, operand| operand == Operand::Weight),
    ("bwd", |product, _| product != Product::Forward),
    ("all", |_, _| true),
];

/// Values of `rht`: what is rotated.
const ROTATED: [(&str, Meant); 5] = [
    ("wgrad", |product, _| product == Product::GradWeight),
    ("none", |_, _| false),
    ("fprop", |product, _| product == Product::Forward),
    ("dgrad", |product, _| product == Product::GradInput),
    ("all", |_, _| true),
];

/// Values of `4over6`: what chooses between two scales.
const FOUR: [(&str, Meant); 4] = [
    ("none", |_, _| false),
    ("weights", |_, operand| operand == Operand::Weight),
    ("acts", |_, operand| operand == Operand::Input),
    ("all", |_, operand| operand != Operand::GradOutput),
];

/// What the options say of the operands of the products.
struct Operands {
    side: u32,
    format: BlockFormat,
    weight: WeightBlocks,
    stochastic: Meant,
    random: Rounding,
    rotated: Meant,
    rotation: Hadamard,
    /// Whether the signs of rotations are drawn anew in each step.
    fresh: bool,
    four: Meant,
}

impl Operands {
    fn read(blocks: Blocks, options: &mut Options<'_>) -> Result<Self, String> {
        let nvfp4 = blocks == Blocks::Nvfp4;
        let order = if nvfp4 { options.choice("scale-order", &["v2", "v1"])? } else { "v2" };
        let (side, format) = match (blocks, order) {
            (Blocks::Mxfp4, _) => {
                (32, BlockFormat { rule: ScaleRule::RCeil, ..BlockFormat::MXFP4 })
            }
            (_, "v1") => (16, BlockFormat { profile: BlockProfile::Te213, ..BlockFormat::NVFP4 }),
            _ => (16, BlockFormat::NVFP4),
        };
        let shapes = match nvfp4 {
            true => ["16x16", "1x16", "1x16-same"],
            false => ["32x32", "1x32", "1x32-same"],
        };
        let weight = options.choice("weight-block", &shapes)?;
        let weight = match shapes.iter().position(|shape| *shape == weight) {
            Some(1) => WeightBlocks::Along,
            Some(2) => WeightBlocks::AlongForward,
            _ => WeightBlocks::Square,
        };
        let stochastic = options.one_of("sr", &STOCHASTIC)?;
        let bits = options.get("sr-bits").unwrap_or("8");
        let random = random(bits).ok_or_else(|| {
            format!("+sr-bits={bits}: 1 to 32, with the variant a, b or c behind it: 8, 8b")
        })?;
        let rotated = options.one_of("rht", &ROTATED)?;
        let size = options.number("rht-size", side)?;
        let (signs, fresh) = match options.choice("rht-signs", &["fixed", "none", "fresh"])? {
            "none" => (Signs::Plus, false),
            word => (Signs::TransformerEngine, word == "fresh"),
        };
        let rotation = Hadamard::new(size as usize, signs)
            .map_err(|_| format!("+rht-size={size}: {:?}", Hadamard::SIZES))?;
        let four = options.one_of("4over6", &FOUR)?;
        let chooses =
            [Operand::Weight, Operand::Input].map(|operand| four(Product::Forward, operand));
        if !nvfp4 && chooses.contains(&true) {
            return Err("+4over6: a choice between scales of NVFP4".into());
        }
        Ok(Self { side, format, weight, stochastic, random, rotated, rotation, fresh, four })
    }

    /// The numbers of an operand of a product.
    fn of(&self, product: Product, operand: Operand) -> TensorFormat {
        use Operand::Weight;
        let rotated = (self.rotated)(product, operand);
        let random = (self.stochastic)(product, operand);
        // The choice is not combined with rotations or random bits, as Transformer Engine has it.
        let four = (self.four)(product, operand) && !rotated && !random;
        let shape = match (operand, self.weight) {
            (Weight, WeightBlocks::Square) => Shape::Tile(self.side, self.side),
            _ => Shape::Along(self.side),
        };
        let mut format = BlockFormat { shape, ..self.format };
        if four {
            // It came with the second order of operations.
            format.rule = ScaleRule::FourOverSix(FourOverSix::DEFAULT);
            format.profile = BlockProfile::Ocp;
        }
        let mut quantizer = Quantizer::new(format.into()).after(Cast::new(Format::BF16));
        if rotated {
            quantizer = quantizer.rotated(self.rotation);
        }
        if random {
            quantizer = quantizer.with_rounding(self.random);
        }
        let across = (operand, product, self.weight)
            == (Weight, Product::GradInput, WeightBlocks::AlongForward);
        TensorFormat { across, fresh: rotated && self.fresh, ..quantizer.into() }
    }
}

/// `8`, `8b`: how many random bits, and the variant, A where none is written.
fn random(text: &str) -> Option<Rounding> {
    use StochasticVariant::{A, B, C};
    let variants = [(['a', 'A'], A), (['b', 'B'], B), (['c', 'C'], C)];
    let split = |(letters, variant)| Some((text.strip_suffix(letters)?, variant));
    let (digits, variant) = variants.into_iter().find_map(split).unwrap_or((text, A));
    let is_plain = |bits: &u8| (1..=32).contains(bits) && !digits.starts_with('0');
    let bits = rule::number(digits, "").filter(is_plain)?;
    Some(Rounding::Stochastic { variant, bits })
}

/// `a/b`: operators' names, each as where its operands are.
fn operators(key: &str, text: &str) -> Result<Vec<Selector>, String> {
    let known = |word: &str| match word {
        "gk_proj" => Ok(Selector::operators(&[Operator::DecayDown, Operator::DecayUp])),
        "post-qk" => Ok(Selector::layers(Layers::PostQk)),
        _ => word.parse().map(|one| Selector::operators(&[one])).map_err(|_| {
            let names: Vec<_> = Operator::ALL.iter().map(|one| one.name()).collect();
            format!("+{key}={text}: {word:?} is no operator; there are {}", names.join(", "))
        }),
    };
    text.split('/').map(known).collect()
}

/// `2`, or of the last blocks `15%`, too; `None` of none.
fn layers(key: &str, count: &str) -> Result<Option<Layers>, String> {
    let percent = count.strip_suffix('%').filter(|_| key == "last");
    let number = rule::number::<u32>(percent.unwrap_or(count), "");
    match (number, percent) {
        (Some(0), _) => Ok(None),
        (Some(n @ ..=100), Some(_)) => Ok(Some(Layers::LastPercent(n))),
        (Some(n), None) if key == "last" => Ok(Some(Layers::Last(n))),
        (Some(n), None) => Ok(Some(Layers::First(n))),
        _ => Err(format!(
            "+{key}={count}: a number of blocks{}",
            if key == "last" { " or percent" } else { "" }
        )),
    }
}

/// What stays in high precision, block by block and operator by operator.
fn exceptions(patches: Patches, options: &mut Options<'_>) -> Result<Vec<Selector>, String> {
    let mut all = vec![Selector::operators(&[Operator::Head])];
    let last = options.get("last").unwrap_or("15%");
    let first = options.get("first").unwrap_or("0");
    for (key, count) in [("last", last), ("first", first)] {
        all.extend(layers(key, count)?.map(Selector::layers));
    }
    let protects = match patches {
        Patches::PostQk | Patches::Chon => "post-qk",
        Patches::None | Patches::Hot => "none",
    };
    match options.get("protect").unwrap_or(protects) {
        "none" => {}
        some => all.extend(operators("protect", some)?),
    }
    Ok(all)
}

/// All operators but those that are meant, the head and a teacher's.
fn others(only: &[Selector]) -> impl Iterator<Item = Selector> {
    let meant = |operator| only.iter().any(|on| on.operators.contains(operator));
    let others = Operator::ALL.iter().filter(move |operator| !meant(operator));
    let ours = others.filter(|one| **one != Operator::Head && !one.is_teacher());
    ours.map(|operator| Selector::operators(&[*operator]))
}

fn patch(on: Selector, patch: Option<Patch>) -> Rule {
    Rule { on, value: Value::Patch(patch) }
}

pub(super) fn rules(
    blocks: Blocks,
    patches: Patches,
    options: &mut Options<'_>,
) -> Result<Vec<Rule>, String> {
    let operands = Operands::read(blocks, options)?;
    let high = match options.choice("high", &["bf16", "f32"])? {
        "f32" => TensorFormat::NONE,
        _ => Format::BF16.into(),
    };
    let mut all = vec![bf16_outputs()];
    for &product in Product::ALL {
        for operand in product.operands() {
            let subject = Subject::Operands(vec![operand]);
            let on = Selector { subject, ..Selector::products(&[product]) };
            all.push(on.to(operands.of(product, operand)));
        }
    }

    let exceptions = exceptions(patches, options)?;
    all.extend(exceptions.iter().map(|on| on.clone().to(high)));
    if let Some(only) = options.get("only") {
        all.extend(others(&operators("only", only)?).map(|on| on.to(high)));
    }

    let default = match patches {
        Patches::Hot | Patches::Chon => "s-o2-b",
        Patches::None | Patches::PostQk => "off",
    };
    let hot = options.get("hcp").unwrap_or(default);
    if hot != "off" {
        let hot = hot.parse().map_err(|error: exmy::text::UnknownName| error.to_string())?;
        all.push(patch(Selector::ALL.patch(), Some(hot)));
        all.extend(exceptions.into_iter().map(|on| patch(on.patch(), None)));
    }

    // The late switch.
    let scope = options.choice("late-scope", &["both", "forward", "backward"])?;
    if let Some(late) = options.get("late") {
        let from = rule::start(late);
        if from.is_none() {
            return Err(format!("+late={late}: a step, or a share of the run as 80%"));
        }
        let products: &[Product] = match scope {
            "forward" => &[Product::Forward],
            "backward" => &[Product::GradInput, Product::GradWeight],
            _ => &[],
        };
        all.push(Selector { from, ..Selector::products(products) }.to(high));
        if scope != "backward" {
            all.push(patch(Selector { from, ..Selector::ALL.patch() }, None));
        }
    }
    Ok(all)
}
