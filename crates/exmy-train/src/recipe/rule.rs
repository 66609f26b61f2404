//! One rule of a recipe: where, and what numbers.
//!
//! # Text
//!
//! `word:word:...=value`. The words say where; words of one kind widen the choice, words of different kinds
//! narrow it, and a kind that is not mentioned is not asked about.
//!
//! | kind | words |
//! |---|---|
//! | layers | `first2` `last2` `layer3` `layers2-5` (from 0), `blocks` (no head), `last15%`, `post-qk` |
//! | operators | `q_proj` ... `lm_head`, `gk_proj` (both factors of a decay gate), `teacher` (a proxy's) |
//! | products | `forward` `grad_input` `grad_weight`, `backward` (the last two) |
//! | operands | `input` `weight` `grad_output`, and `output`: what a product is rounded to |
//! | steps | `from2000` (steps from 0), `from80%` (of the run's steps) |
//! | places | `embedding` `norm_gamma` `q` ...: tensors that are no operands; `tensor`, `gradient` |
//! | operations | `norm` `activation` `bias`: steps rounded to bf16, or (`f32`) not; `tensor`, `gradient` |
//! | sums | `sums`: the order and the accumulator of products' sums |
//! | patches | `hcp` |
//!
//! A teacher is meant only where it is named. `tensor` is for the tensor itself or forward only, `gradient`
//! for its gradient or backward only.
//!
//! The value is [`TensorFormat`]; for operations `f32`, `bf16`, `bf16@rna` or `bf16@rtz`; for `sums`
//! [`Sums`], `fma:bf16` or `hopper:bf16`, or `f32` for the engine's own; for `hcp` a [`Patch`] or `off`.
//! Later rules override earlier ones. `last15%` are linear operators of the last max(1, 15 % of all) blocks.
//! They are taken from the end (down, up, gate, o, v, k, q) as long as they and the head together have at
//! most 25 % of the model's linear parameters. `post-qk` are the operators after the meeting of queries and
//! keys that CHON (arXiv 2602.02047) protects: o and the decay gate in blocks of gated linear attention, v
//! in others.

use std::fmt;
use std::str::FromStr;

use crate::nn::site::{Operand, Operator, Place, Product, Site, Vector};
use crate::recipe::hot::Patch;
use crate::recipe::sums::Sums;
use crate::recipe::tensor_format::TensorFormat;
use exmy::block::hadamard::Signs;
use exmy::format::Format;
use exmy::quantizer::Target;
use exmy::round::{Overflow, Rounding};
use exmy::text::Nearest;

/// Some of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layers {
    /// The first so many.
    First(u32),
    /// The last so many.
    Last(u32),
    /// The last so many percent, see the [module](self).
    LastPercent(u32),
    /// From the one to the other, both meant.
    Range(u32, u32),
    /// All blocks.
    Blocks,
    /// What follows the meeting of queries and keys, see the [module](self).
    PostQk,
}

/// When a rule begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// With this step, from 0.
    Step(u64),
    /// After this share of the run's steps, in percent.
    Percent(u32),
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Operands of products; empty lists mean all.
    Operands(Vec<Operand>),
    /// What products are rounded to.
    Output,
    /// How products are summed.
    Sums,
    /// Other tensors; `None` means these and their gradients.
    Places(Vec<Place>, Option<bool>),
    /// The arithmetic of operations; `None` means these and their backward passes.
    Vectors(Vec<Vector>, Option<bool>),
    /// Patches.
    Patch,
}

/// Where a rule applies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Blocks; empty: everywhere.
    pub layers: Vec<Layers>,
    /// Operators; empty: all but a teacher's.
    pub operators: Vec<Operator>,
    /// Products; empty: all.
    pub products: Vec<Product>,
    /// What it is about.
    pub subject: Subject,
    /// When it begins; `None`: at once.
    pub from: Option<Start>,
}

/// What a rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Numbers.
    Format(TensorFormat),
    /// An order of summation and its accumulator, or those of the engine.
    Sums(Option<Sums>),
    /// A patch or none.
    Patch(Option<Patch>),
}

/// Where and what; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Where.
    pub on: Selector,
    /// What.
    pub value: Value,
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseRuleError {
    message: String,
    /// Whether a word of the selector was not known, so that another reading may be tried.
    pub(super) unknown: bool,
}

impl fmt::Display for ParseRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseRuleError {}

/// Words that are no names of operators, products, operands, places or operations.
const OTHER: [&str; 15] = [
    "first1",
    "last1",
    "last15%",
    "post-qk",
    "layer0",
    "layers0-1",
    "blocks",
    "gk_proj",
    "teacher",
    "backward",
    "output",
    "sums",
    "from80%",
    "gradient",
    "hcp",
];

/// All words of selectors, with examples of those with a number.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    let operators = Operator::ALL.iter().map(|one| one.name());
    let products = Product::ALL.iter().map(|one| one.name());
    let operands = Operand::ALL.iter().map(|one| one.name());
    let places = Place::ALL.iter().map(|one| one.name());
    let vectors = Vector::ALL.iter().map(|one| one.name());
    operators.chain(products).chain(operands).chain(places).chain(vectors).chain(OTHER)
}

impl Selector {
    /// Every operand of every product, from the first step on; not a teacher's.
    pub const ALL: Self = Self::of(Subject::Operands(Vec::new()));

    /// Everything of a kind.
    pub const fn of(subject: Subject) -> Self {
        Self {
            layers: Vec::new(),
            operators: Vec::new(),
            products: Vec::new(),
            subject,
            from: None,
        }
    }

    /// All operands of some products.
    pub fn products(products: &[Product]) -> Self {
        Self { products: products.to_vec(), ..Self::ALL }
    }

    /// All operands of some operators.
    pub fn operators(operators: &[Operator]) -> Self {
        Self { operators: operators.to_vec(), ..Self::ALL }
    }

    /// All operands of some blocks.
    pub fn layers(layers: Layers) -> Self {
        Self { layers: vec![layers], ..Self::ALL }
    }

    /// One operand of all products.
    pub fn operand(operand: Operand) -> Self {
        Self::of(Subject::Operands(vec![operand]))
    }

    /// Other tensors and their gradients.
    pub fn places(places: &[Place]) -> Self {
        Self::of(Subject::Places(places.to_vec(), None))
    }

    /// Operations and their backward passes.
    pub fn vectors(vectors: &[Vector]) -> Self {
        Self::of(Subject::Vectors(vectors.to_vec(), None))
    }

    /// What these products are rounded to, in place of their operands.
    #[must_use]
    pub fn output(self) -> Self {
        Self { subject: Subject::Output, ..self }
    }

    /// The patches at the same place.
    #[must_use]
    pub fn patch(self) -> Self {
        Self { subject: Subject::Patch, ..self }
    }

    /// The rule that gives all this some numbers.
    pub fn to(self, numbers: impl Into<TensorFormat>) -> Rule {
        Rule { on: self, value: Value::Format(numbers.into()) }
    }

    /// Whether a product of a site is meant, blocks and steps aside.
    pub(super) fn has(&self, site: Site, product: Option<Product>) -> bool {
        let operator = match self.operators[..] {
            [] => !site.operator.is_teacher(),
            ref some => some.contains(&site.operator),
        };
        let meant = |product| self.products.is_empty() || self.products.contains(&product);
        operator && product.is_none_or(meant)
    }

    /// Whether block `layer` of `count` is meant; not asked of `last15%`.
    pub(super) fn has_layer(&self, layer: Option<u32>, count: u32) -> bool {
        let Some(layer) = layer else { return self.layers.is_empty() };
        let one = |some: &Layers| match *some {
            Layers::First(n) => layer < n,
            Layers::Last(n) => layer >= count.saturating_sub(n),
            Layers::Range(first, last) => (first..=last).contains(&layer),
            Layers::Blocks => true,
            Layers::LastPercent(_) | Layers::PostQk => false,
        };
        self.layers.is_empty() || self.layers.iter().any(one)
    }
}

pub(super) fn number<T: FromStr>(word: &str, prefix: &str) -> Option<T> {
    let digits = word.strip_prefix(prefix)?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

fn layers(word: &str) -> Option<Layers> {
    let percent = word.strip_suffix('%').and_then(|word| number(word, "last"));
    let range = || {
        let (first, last) = word.strip_prefix("layers")?.split_once('-')?;
        let (first, last) = (number(first, "")?, number(last, "")?);
        (first <= last).then_some(Layers::Range(first, last))
    };
    match word {
        "blocks" => Some(Layers::Blocks),
        "post-qk" => Some(Layers::PostQk),
        _ => percent
            .filter(|percent| *percent <= 100)
            .map(Layers::LastPercent)
            .or_else(|| number(word, "first").map(Layers::First))
            .or_else(|| number(word, "last").map(Layers::Last))
            .or_else(|| number(word, "layer").map(|n| Layers::Range(n, n)))
            .or_else(range),
    }
}

/// When, without the word `from`: `2000` or `80%`.
pub(super) fn start(word: &str) -> Option<Start> {
    match word.strip_suffix('%') {
        Some(word) => number(word, "").filter(|percent| *percent <= 100).map(Start::Percent),
        None => number(word, "").map(Start::Step),
    }
}

impl FromStr for Selector {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, ParseRuleError> {
        let mut on = Self::ALL;
        let (mut operands, mut places, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gradient, mut output, mut sums, mut patch) = (None, false, false, false);
        for word in text.split(':') {
            if let Some(some) = layers(word) {
                on.layers.push(some);
            } else if let Ok(operator) = word.parse() {
                on.operators.push(operator);
            } else if let Ok(product) = word.parse() {
                on.products.push(product);
            } else if let Ok(operand) = word.parse() {
                operands.push(operand);
            } else if let Ok(place) = word.parse() {
                places.push(place);
            } else if let Ok(vector) = word.parse() {
                vectors.push(vector);
            } else if let Some(when) = word.strip_prefix("from").and_then(start) {
                on.from = Some(when);
            } else {
                let prefixed = |prefix: &str| {
                    let all = Operator::ALL.iter().copied();
                    all.filter(|one| one.name().starts_with(prefix)).collect::<Vec<_>>()
                };
                match word {
                    "all" => {}
                    "gk_proj" => on.operators.extend(prefixed("gk_proj.")),
                    "teacher" => on.operators.extend(prefixed("teacher.")),
                    "backward" => on.products.extend([Product::GradInput, Product::GradWeight]),
                    "output" => output = true,
                    "sums" => sums = true,
                    "hcp" => patch = true,
                    "gradient" => gradient = Some(true),
                    "tensor" => gradient = Some(false),
                    _ => return Err(unknown(word)),
                }
            }
        }
        let others = [!places.is_empty(), !vectors.is_empty(), output, sums, patch];
        let kinds = [!operands.is_empty()].into_iter().chain(others);
        if kinds.filter(|is| *is).count() > 1 {
            return Err(wrong(format!(
                "{text:?} is about operands, outputs, sums, places, operations and patches at once: one \
                 rule, one of these"
            )));
        }
        let linear = places.is_empty() && vectors.is_empty();
        let named = !on.operators.is_empty() || !on.products.is_empty();
        if !linear && named {
            return Err(wrong(format!(
                "{text:?}: places and operations belong to no operator and no product"
            )));
        }
        if !linear
            && on.layers.iter().any(|some| matches!(some, Layers::LastPercent(_) | Layers::PostQk))
        {
            return Err(wrong(format!("{text:?}: that chooses linear operators, no places")));
        }
        if gradient.is_some() && linear {
            return Err(wrong(format!(
                "{text:?}: `tensor` and `gradient` go with a place or an operation; operands have \
                 `grad_output`"
            )));
        }
        on.subject = match others {
            [true, ..] => Subject::Places(places, gradient),
            [_, true, ..] => Subject::Vectors(vectors, gradient),
            [_, _, true, ..] => Subject::Output,
            [.., true, _] => Subject::Sums,
            [.., true] => Subject::Patch,
            _ => Subject::Operands(operands),
        };
        Ok(on)
    }
}

fn wrong(message: String) -> ParseRuleError {
    ParseRuleError { message, unknown: false }
}

fn unknown(word: &str) -> ParseRuleError {
    let near = Nearest::new(word, words());
    let message = match near.names() {
        [] => format!(
            "{word:?} is no place of a recipe; write operators, products, operands, layers: \
             last2:o_proj:weight=bf16"
        ),
        _ => format!("{word:?} is no place of a recipe; did you mean {near}?"),
    };
    ParseRuleError { message, unknown: true }
}

impl Rule {
    /// The rule of a selector and a value.
    ///
    /// # Errors
    /// If either is none, or they do not go together.
    pub fn parse(on: &str, value: &str) -> Result<Self, ParseRuleError> {
        Self::of(on.parse()?, value)
    }

    /// The rule of a selector and a value in text.
    ///
    /// # Errors
    /// If the value is none, or they do not go together.
    pub fn of(on: Selector, value: &str) -> Result<Self, ParseRuleError> {
        let numbers = || value.parse::<TensorFormat>().map_err(|error| wrong(error.to_string()));
        let value = match on.subject {
            Subject::Patch if value == "off" => Value::Patch(None),
            Subject::Patch => {
                let patch =
                    value.parse().map_err(|e: exmy::text::UnknownName| wrong(e.to_string()))?;
                Value::Patch(Some(patch))
            }
            Subject::Sums if matches!(value, "f32" | "none") => Value::Sums(None),
            Subject::Sums => Value::Sums(Some(value.parse().map_err(wrong)?)),
            Subject::Vectors(..) => {
                let numbers = numbers()?;
                if !numbers.is_none() && arithmetic(&numbers).is_none() {
                    return Err(wrong(format!(
                        "{value:?}: the steps of an operation are f32, bf16, bf16@rna or bf16@rtz"
                    )));
                }
                Value::Format(numbers)
            }
            // An output that overflows a format without infinities becomes NaN, as an exact cast does.
            Subject::Output => {
                let mut numbers = numbers()?;
                if numbers.quantizer.rotation.is_some() || numbers.window > 0 {
                    return Err(wrong(format!(
                        "{value:?}: outputs are not rotated and have no window"
                    )));
                }
                let written = value.split('@').skip(1).any(|part| part.parse::<Overflow>().is_ok());
                if let (Target::Format(_), false) = (numbers.quantizer.target, written) {
                    numbers.quantizer.overflow = Overflow::None;
                }
                Value::Format(numbers)
            }
            Subject::Places(ref places, _) => {
                let numbers = numbers()?;
                if numbers.window > 0 || numbers.across {
                    return Err(wrong(format!(
                        "{value:?}: places have blocks along their rows and no window"
                    )));
                }
                if let Some(rotation) = numbers.quantizer.rotation {
                    let heads = [Place::Q, Place::K, Place::V];
                    if let Some(other) = places.iter().find(|place| !heads.contains(place)) {
                        return Err(wrong(format!(
                            "{value:?}: of places q, k and v alone are rotated, not {other}"
                        )));
                    }
                    // The rotation is its own inverse, on every device.
                    if rotation.signs() != Signs::Plus || numbers.fresh {
                        return Err(wrong(format!(
                            "{value:?}: places are rotated without signs, and back after rounding: ht{}",
                            rotation.size()
                        )));
                    }
                }
                Value::Format(numbers)
            }
            Subject::Operands(_) => Value::Format(numbers()?),
        };
        Ok(Self { on, value })
    }
}

/// The backward products in f32, their operands and what they give.
pub(super) fn forward_only() -> [Rule; 2] {
    let backward = || Selector::products(&[Product::GradInput, Product::GradWeight]);
    [backward().to(TensorFormat::NONE), backward().output().to(TensorFormat::NONE)]
}

/// The rounding of steps to bfloat16.
pub(super) fn arithmetic(numbers: &TensorFormat) -> Option<Rounding> {
    let quantizer = numbers.plain()?;
    let is = quantizer.target == Target::Format(Format::BF16) && quantizer.before.is_none();
    let known = matches!(
        quantizer.rounding,
        Rounding::TiesToEven | Rounding::TiesToAway | Rounding::TowardZero
    );
    (is && known).then_some(quantizer.rounding)
}

impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, ParseRuleError> {
        match text.split_once('=') {
            Some((on, value)) => Self::parse(on, value),
            None => Err(unknown(text)),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        match self.from {
            None => {}
            Some(Start::Step(step)) => words.push(format!("from{step}")),
            Some(Start::Percent(percent)) => words.push(format!("from{percent}%")),
        }
        words.extend(self.layers.iter().map(|some| match some {
            Layers::First(n) => format!("first{n}"),
            Layers::Last(n) => format!("last{n}"),
            Layers::LastPercent(n) => format!("last{n}%"),
            Layers::Range(first, last) if first == last => format!("layer{first}"),
            Layers::Range(first, last) => format!("layers{first}-{last}"),
            Layers::Blocks => "blocks".into(),
            Layers::PostQk => "post-qk".into(),
        }));
        words.extend(self.operators.iter().map(Operator::to_string));
        words.extend(self.products.iter().map(Product::to_string));
        match &self.subject {
            Subject::Operands(operands) => words.extend(operands.iter().map(Operand::to_string)),
            Subject::Output => words.push("output".into()),
            Subject::Sums => words.push("sums".into()),
            Subject::Places(places, gradient) => {
                words.extend(places.iter().map(Place::to_string));
                words.extend(gradient.map(|is| if is { "gradient" } else { "tensor" }.to_owned()));
            }
            Subject::Vectors(vectors, gradient) => {
                words.extend(vectors.iter().map(Vector::to_string));
                words.extend(gradient.map(|is| if is { "gradient" } else { "tensor" }.to_owned()));
            }
            Subject::Patch => words.push("hcp".into()),
        }
        if words.is_empty() {
            words.push("all".into());
        }
        f.write_str(&words.join(":"))
    }
}

impl Rule {
    /// The value in text: what stands behind the equals sign.
    pub(super) fn write_value(&self, f: &mut impl fmt::Write) -> fmt::Result {
        match self.value {
            // Overflow to infinity or NaN is meant of outputs without a word.
            Value::Format(mut numbers) if self.on.subject == Subject::Output => {
                let default = numbers.quantizer.target.default_overflow();
                let meant = numbers.quantizer.overflow == Overflow::None;
                match (numbers.quantizer.target, meant, default) {
                    (Target::Format(_), true, _) => numbers.quantizer.overflow = default,
                    (Target::Format(_), false, Overflow::Finite)
                        if numbers.quantizer.overflow == default =>
                    {
                        return write!(f, "{numbers}@{default}");
                    }
                    _ => {}
                }
                write!(f, "{numbers}")
            }
            Value::Format(numbers) => write!(f, "{numbers}"),
            Value::Sums(Some(sums)) => write!(f, "{sums}"),
            Value::Sums(None) => f.write_str("f32"),
            Value::Patch(Some(patch)) => write!(f, "{patch}"),
            Value::Patch(None) => f.write_str("off"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.on)?;
        self.write_value(f)
    }
}
