//! A recipe for one model and one run: every question answered by (step, place).
//!
//! What a [`Recipe`] leaves open until a model is known, it says relative to it: the last blocks, a share of
//! the run's steps. A [`Plan`] has settled that, and knows what share of the model's multiplications has
//! which numbers.

use std::fmt;

use crate::nn::parameters::{Layout, Role};
use crate::nn::site::{Operand, Operator, Place, Product, Site, Vector};
use crate::recipe::Recipe;
use crate::recipe::hot::Patch;
use crate::recipe::rule::{self, Layers, Rule, Selector, Start, Subject, Value};
use crate::recipe::state::RecipeState;
use crate::recipe::sums::{Sums, TensorCores};
use crate::recipe::tensor_format::TensorFormat;
use exmy::error::Error;
use exmy::round::Rounding;

/// A linear operator of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Where it is.
    pub site: Site,
    /// Output features.
    pub outputs: usize,
    /// Input features.
    pub inputs: usize,
}

impl Linear {
    /// The linear operators of a model, in the order of its parameters; without a weight of its own, the
    /// head has that of the embedding of tokens.
    pub fn all(layout: &Layout) -> Vec<Self> {
        let mut all = Vec::new();
        let mut tied = None;
        for entry in layout {
            let &[outputs, inputs] = entry.shape.as_slice() else { continue };
            if entry.role == Role::Tokens {
                let site = Site { layer: None, operator: Operator::Head };
                tied = Some(Self { site, outputs, inputs });
            }
            all.extend(entry.site.map(|site| Self { site, outputs, inputs }));
        }
        let has_head = all.iter().any(|linear| linear.site.operator == Operator::Head);
        all.extend(tied.filter(|_| !has_head));
        all
    }

    /// Parameters, which are multiplications a token and product.
    pub fn size(&self) -> u64 {
        self.outputs as u64 * self.inputs as u64
    }
}

/// Refuses a recipe with a rule, written out by itself, about blocks or operators that a model has not: those
/// of its parameters and some others, of a teacher. The rules that a base stands for are for many models, and
/// may mean nothing in one.
///
/// # Errors
/// If there is one; the error says what the model has.
pub fn check_named(recipe: &Recipe, layout: &Layout, others: &[Operator]) -> Result<(), Error> {
    let linears = Linear::all(layout);
    let layers = linears.iter().filter_map(|linear| linear.site.layer).max().map_or(0, |l| l + 1);
    let own = |operator: &Operator| linears.iter().any(|linear| linear.site.operator == *operator);
    let has = |operator: &Operator| own(operator) || others.contains(operator);
    for word in &recipe.words[1..] {
        // Options have other words: `out=bf16`.
        let Some(Ok(on)) = word.split_once('=').map(|(on, _)| on.parse::<Selector>()) else {
            continue;
        };
        let beyond = |some: &Layers| matches!(*some, Layers::Range(first, _) if first >= layers);
        let is_head = on.operators.iter().all(|one| *one == Operator::Head);
        let what = if on.layers.iter().any(beyond) {
            format!("names a block that the model has not: its {layers} count from 0")
        } else if let Some(missing) = on.operators.iter().find(|one| !has(one)) {
            format!("names {missing}, which the model has not")
        } else if !on.layers.is_empty() && !on.operators.is_empty() && is_head {
            "names blocks, and the head is in none".to_owned()
        } else {
            continue;
        };
        let blocks = match layers {
            0 | 1 => "layer0".to_owned(),
            more => format!("layer0 to layer{}", more - 1),
        };
        let there = Operator::ALL.iter().filter(|one| has(one)).map(|one| one.name());
        let there = there.collect::<Vec<_>>().join(", ");
        return Err(Error::new(format!("recipe {recipe}: {word} {what}"))
            .hint(format!("there are {blocks}, and of operators {there}")));
    }
    Ok(())
}

/// A rule and what it comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settled {
    rule: Rule,
    /// Its first step.
    from: u64,
    /// The operators that only the model has, if it means any.
    sites: Vec<Site>,
}

/// A recipe settled for a model and a number of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    rules: Vec<Settled>,
    linears: Vec<Linear>,
    layers: u32,
}

/// Why a recipe does not go with a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The operator where it does not.
    pub site: Site,
    /// The product, if it is of one.
    pub product: Option<Product>,
    /// What is wrong, and what would work.
    message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PlanError {}

/// The share of linear parameters that stays in high precision at most, where a percentage of blocks does.
const MOST: (u64, u64) = (1, 4);

/// The operators from the end of a model: in blocks from the last one on, and within them in the reverse
/// order of their parameters, skipping what does not fit any more.
pub fn last(linears: &[Linear], layers: u32, percent: u32) -> Vec<Site> {
    let count = ((u64::from(percent) * u64::from(layers) + 50) / 100).max(1) as u32;
    let all: u64 = linears.iter().map(Linear::size).sum();
    let head = linears.iter().filter(|linear| linear.site.layer.is_none());
    let mut kept: u64 = head.map(Linear::size).sum();
    let mut sites = Vec::new();
    for linear in linears.iter().rev() {
        let is_last = linear.site.layer.is_some_and(|layer| layer >= layers.saturating_sub(count));
        if is_last && (kept + linear.size()) * MOST.1 <= all * MOST.0 {
            kept += linear.size();
            sites.push(linear.site);
        }
    }
    sites
}

/// The operators after the meeting of queries and keys: o and the decay gate in a block that has one, v in
/// any other.
fn post_qk(linears: &[Linear]) -> Vec<Site> {
    let is_gate = |site: Site| site.operator.is_decay();
    let gated = |layer| linears.iter().any(|one| one.site.layer == layer && is_gate(one.site));
    let meant = |site: &Site| match (site.layer, gated(site.layer)) {
        (None, _) => false,
        (_, true) => site.operator == Operator::O || is_gate(*site),
        (_, false) => site.operator == Operator::V,
    };
    linears.iter().map(|linear| linear.site).filter(meant).collect()
}

impl Plan {
    /// `recipe` for the model of `layout`, trained for `steps`.
    ///
    /// # Errors
    /// If the operands of a product would be rotated differently, a patch meets a rotated product, rotated
    /// queries, keys or values have no whole groups, or tensor cores are to multiply what they cannot.
    pub fn new(recipe: &Recipe, layout: &Layout, steps: u64) -> Result<Self, PlanError> {
        Self::of(recipe, Linear::all(layout), steps)
    }

    /// The same for a model of the given linear operators.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(recipe: &Recipe, linears: Vec<Linear>, steps: u64) -> Result<Self, PlanError> {
        let layers =
            linears.iter().filter_map(|linear| linear.site.layer).max().map_or(0, |l| l + 1);
        let settle = |rule: &Rule| {
            let from = match rule.on.from {
                None => 0,
                Some(Start::Step(step)) => step,
                Some(Start::Percent(percent)) => {
                    (u128::from(steps) * u128::from(percent)).div_ceil(100) as u64
                }
            };
            let sites = rule.on.layers.iter().flat_map(|some| match some {
                Layers::LastPercent(percent) => last(&linears, layers, *percent),
                Layers::PostQk => post_qk(&linears),
                _ => Vec::new(),
            });
            Settled { rule: rule.clone(), from, sites: sites.collect() }
        };
        let rules = recipe.rules().iter().map(settle).collect();
        let plan = Self { rules, linears, layers };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), PlanError> {
        let mut starts: Vec<u64> = self.rules.iter().map(|rule| rule.from).collect();
        starts.sort_unstable();
        starts.dedup();
        for step in starts {
            for linear in &self.linears {
                let site = linear.site;
                self.check_heads(step, linear)?;
                for &product in Product::ALL {
                    let fail = |message| PlanError { site, product: Some(product), message };
                    let [a, b] =
                        product.operands().map(|one| self.operand(step, site, product, one));
                    let turns = |n: &TensorFormat| n.quantizer.rotation.map(|r| (r, n.fresh));
                    if turns(&a) != turns(&b) {
                        return Err(fail(format!(
                            "{site}, {product}: one operand is {a}, the other {b}; both need the same \
                             rotation, or the product means nothing"
                        )));
                    }
                    let patched = self.patch(step, site).is_some() && product == Product::Forward;
                    if patched && a.quantizer.rotation.is_some() {
                        return Err(fail(format!(
                            "{site}: a hot-channel patch and a rotation ({a}) in the forward product; \
                             rotated channels are no channels"
                        )));
                    }
                    if let Some(Sums::Cores(cores)) = self.sums(step, site, product) {
                        self.check_cores(step, linear, product, cores)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses rotations of what q, k or v write that have no whole groups.
    fn check_heads(&self, step: u64, linear: &Linear) -> Result<(), PlanError> {
        let place = match linear.site.operator {
            Operator::Q => Place::Q,
            Operator::K => Place::K,
            Operator::V => Place::V,
            _ => return Ok(()),
        };
        for gradient in [false, true] {
            let numbers = self.place(step, linear.site.layer, place, gradient);
            let Some(rotation) = numbers.quantizer.rotation else { continue };
            if rotation.check(linear.outputs).is_ok() {
                continue;
            }
            let (size, width) = (rotation.size(), linear.outputs);
            let works = match 1 << width.trailing_zeros().min(7) {
                1 => "leave the rotation out".to_owned(),
                whole => format!("ht{whole} in place of ht{size} has whole groups"),
            };
            let message = format!(
                "{place}={numbers}: groups of {size} do not fill the {width} numbers that {place} has of a \
                 token: {works}"
            );
            return Err(PlanError { site: linear.site, product: None, message });
        }
        Ok(())
    }

    /// Refuses what tensor cores cannot multiply.
    fn check_cores(
        &self,
        step: u64,
        linear: &Linear,
        product: Product,
        cores: TensorCores,
    ) -> Result<(), PlanError> {
        let site = linear.site;
        let fail = |message| PlanError { site, product: Some(product), message };
        let numbers = |site| product.operands().map(|one| self.operand(step, site, product, one));
        for one in numbers(site) {
            if let Some(why) = cores.why_not(&one) {
                return Err(fail(format!(
                    "{site}, {product}: an operand is {one}, and {why}; {}:{product}:sums=f32 leaves it to \
                     the usual order",
                    site.operator
                )));
            }
        }
        if cores == TensorCores::E4m3
            && product == Product::Forward
            && self.patch(step, site).is_some()
        {
            return Err(fail(format!(
                "{site}: a hot-channel patch has parts of more bits than sums={cores} multiplies; \
                 sums=hopper:bf16 takes them"
            )));
        }
        // The sum of `grad_input` runs over all operators that read one input.
        let others = self.linears.iter().map(|linear| linear.site);
        let joint = |other: &Site| product == Product::GradInput && other.shares_input(site);
        let group: Vec<Site> = others.filter(|other| *other == site || joint(other)).collect();
        let is_other =
            |other: &&Site| self.sums(step, **other, product) != Some(Sums::Cores(cores));
        if let Some(other) = group.iter().find(is_other) {
            return Err(fail(format!(
                "{site} and {other} read one input, so {product} is one sum: sums={cores} is for both or \
                 neither"
            )));
        }
        let all = || group.iter().flat_map(|site| numbers(*site));
        match (all().find(TensorFormat::is_scaled), all().find(|one| !one.packs())) {
            (Some(scaled), Some(other)) => Err(fail(format!(
                "{site}, {product}: one operand is {scaled}, another {other}; the scale of a whole tensor \
                 multiplies the sums of sums={cores}, which needs a quantizer and nothing more for all of \
                 them"
            ))),
            _ => Ok(()),
        }
    }

    /// The model's linear operators.
    pub fn linears(&self) -> &[Linear] {
        &self.linears
    }

    /// The value of the last rule that is in force and meant.
    fn find(
        &self,
        step: u64,
        site: Option<Site>,
        layer: Option<u32>,
        product: Option<Product>,
        subject: impl Fn(&Subject) -> bool,
    ) -> Option<Value> {
        let meant = |settled: &&Settled| {
            let Settled { rule, from, sites } = settled;
            *from <= step
                && subject(&rule.on.subject)
                && site.is_none_or(|site| rule.on.has(site, product))
                && (rule.on.has_layer(layer, self.layers)
                    || site.is_some_and(|site| sites.contains(&site)))
        };
        self.rules.iter().rev().find(meant).map(|settled| settled.rule.value)
    }

    fn numbers(value: Option<Value>) -> TensorFormat {
        match value {
            Some(Value::Format(numbers)) => numbers,
            _ => TensorFormat::NONE,
        }
    }

    /// The numbers of an operand of a product.
    pub fn operand(
        &self,
        step: u64,
        site: Site,
        product: Product,
        operand: Operand,
    ) -> TensorFormat {
        Self::numbers(self.find(step, Some(site), site.layer, Some(product), |subject| {
            matches!(subject, Subject::Operands(some) if some.is_empty() || some.contains(&operand))
        }))
    }

    /// The numbers a product is rounded to.
    pub fn output(&self, step: u64, site: Site, product: Product) -> TensorFormat {
        let is = |subject: &Subject| *subject == Subject::Output;
        Self::numbers(self.find(step, Some(site), site.layer, Some(product), is))
    }

    /// The order and the accumulator of a product's sums; `None` for those of the engine.
    pub fn sums(&self, step: u64, site: Site, product: Product) -> Option<Sums> {
        let is = |subject: &Subject| *subject == Subject::Sums;
        match self.find(step, Some(site), site.layer, Some(product), is) {
            Some(Value::Sums(sums)) => sums,
            _ => None,
        }
    }

    /// The numbers of another tensor or of its gradient.
    pub fn place(
        &self,
        step: u64,
        layer: Option<u32>,
        place: Place,
        gradient: bool,
    ) -> TensorFormat {
        Self::numbers(self.find(step, None, layer, None, |subject| {
            matches!(subject, Subject::Places(places, which)
                if places.contains(&place) && which.is_none_or(|which| which == gradient))
        }))
    }

    /// How each step of an operation or of its backward pass is rounded to bfloat16, if at all.
    pub fn vector(
        &self,
        step: u64,
        layer: Option<u32>,
        vector: Vector,
        gradient: bool,
    ) -> Option<Rounding> {
        let is = |subject: &Subject| {
            matches!(subject, Subject::Vectors(some, which)
                if some.contains(&vector) && which.is_none_or(|which| which == gradient))
        };
        rule::arithmetic(&Self::numbers(self.find(step, None, layer, None, is)))
    }

    /// The patch of an operator's products.
    pub fn patch(&self, step: u64, site: Site) -> Option<Patch> {
        match self.find(step, Some(site), site.layer, None, |subject| *subject == Subject::Patch) {
            Some(Value::Patch(patch)) => patch,
            _ => None,
        }
    }

    /// Whether a step changes what the recipe remembers: it has windows of largest magnitudes, or hot
    /// channels of which a choice is due.
    pub fn changes(&self, step: u64, memory: &RecipeState) -> bool {
        let products = [Product::Forward, Product::GradInput, Product::GradWeight];
        self.linears.iter().any(|&Linear { site, .. }| {
            let windows = products.into_iter().any(|product| {
                let has_window = |operand| self.operand(step, site, product, operand).window > 0;
                product.operands().into_iter().any(has_window)
            });
            let last = memory.hot.get(&site).map(|hot| hot.step);
            windows || self.patch(step, site).is_some_and(|patch| patch.is_due(step, last))
        })
    }

    /// The steps at which something changes, ascending, 0 first.
    pub fn switches(&self) -> Vec<u64> {
        let mut steps: Vec<u64> = self.rules.iter().map(|rule| rule.from).collect();
        steps.push(0);
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// Which share of the multiplications of linear operators has which numbers at a step. Each product has
    /// its pairs of formats, the most frequent first, as shares of its own multiplications. A teacher's
    /// products do not count.
    pub fn shares(&self, step: u64) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        let total: u64 = self.linears.iter().map(Linear::size).sum();
        for &product in Product::ALL {
            let start = shares.len();
            for linear in &self.linears {
                let numbers =
                    product.operands().map(|one| self.operand(step, linear.site, product, one));
                let formats = numbers.map(|numbers| numbers.format());
                let bits = numbers.map(|numbers| numbers.bits()).into_iter().fold(0, u32::max);
                let share = linear.size() as f64 / total as f64;
                match shares[start..].iter_mut().find(|one| one.formats == formats) {
                    Some(one) => one.share += share,
                    None => shares.push(Share { product, formats, bits, share }),
                }
            }
            shares[start..].sort_by(|a, b| b.share.total_cmp(&a.share));
        }
        shares
    }

    /// Multiplications that patches add at a step, as a share of those of all linear operators.
    pub fn patched(&self, step: u64) -> f64 {
        let total: u64 = self.linears.iter().map(Linear::size).sum();
        let added = |linear: &Linear| {
            let Some(patch) = self.patch(step, linear.site) else { return 0 };
            linear.outputs * patch.channels(linear.inputs) * patch.products()
        };
        self.linears.iter().map(added).sum::<usize>() as f64
            / (Product::ALL.len() as f64 * total as f64)
    }
}

/// A pair of formats and the share of a product's multiplications that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Of which product.
    pub product: Product,
    /// The formats of its operands, in the order of [`Product::operands`].
    pub formats: [String; 2],
    /// Bits of the wider element.
    pub bits: u32,
    /// From 0 to 1; those of a product sum to 1.
    pub share: f64,
}

impl Share {
    /// The share of all multiplications of all products whose both operands have elements of at most so many
    /// bits.
    pub fn within(shares: &[Self], bits: u32) -> f64 {
        let meant = shares.iter().filter(|share| share.bits <= bits);
        meant.map(|share| share.share).sum::<f64>() / Product::ALL.len() as f64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.formats;
        write!(f, "{} {:.1} % {a}", self.product, 100.0 * self.share)?;
        if a == b { Ok(()) } else { write!(f, " x {b}") }
    }
}
