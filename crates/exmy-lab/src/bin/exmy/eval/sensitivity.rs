//! Which parts of a model cost most in a format, when one of them at a time has it.

use super::rows::{Row, error, known};
use clap::ValueEnum;
use exmy_lab::amounts::thousands;
use exmy_lab::table::aligned;
use exmy_train::nn::decoder::Config;
use exmy_train::nn::parameters::Layout;
use exmy_train::nn::site::Operator;
use exmy_train::recipe::rule::{Layers, Selector};

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Each {
    /// A block.
    Layer,
    /// A linear operator in all blocks.
    Operator,
    /// A linear operator of one block.
    Site,
}

/// A part of a model.
pub(super) struct Part {
    /// What chooses it in a rule of a recipe.
    pub(super) on: Selector,
    /// That in text.
    pub(super) name: String,
    /// Block and operator, of one operator of one block.
    pub(super) site: Option<(usize, Operator)>,
}

impl Part {
    fn new(on: Selector, site: Option<(usize, Operator)>) -> Self {
        Self { name: on.to_string(), on, site }
    }
}

/// The operators of a model's blocks.
fn operators(layout: &Layout) -> Vec<Operator> {
    let sites = || layout.iter().filter_map(|entry| entry.site);
    let inside = |operator: &Operator| {
        sites().any(|site| site.layer.is_some() && site.operator == *operator)
    };
    Operator::ALL.iter().copied().filter(inside).collect()
}

/// The parts of a model, each once: blocks, then operators, then the operators of each block; the head last.
pub(super) fn parts(config: &Config, layout: &Layout, each: &[Each]) -> Vec<Part> {
    let operators = operators(layout);
    let block = |l: usize| Selector::layers(Layers::Range(l as u32, l as u32));
    let operator = |one: Operator| Selector::operators(&[one]);
    let mut parts = Vec::new();
    if each.contains(&Each::Layer) {
        parts.extend((0..config.layers).map(|l| Part::new(block(l), None)));
    }
    if each.contains(&Each::Operator) {
        parts.extend(operators.iter().map(|&one| Part::new(operator(one), None)));
    }
    if each.contains(&Each::Site) {
        let part =
            |l, one| Part::new(Selector { operators: vec![one], ..block(l) }, Some((l, one)));
        let of_block = |l| operators.iter().map(move |&one| part(l, one));
        parts.extend((0..config.layers).flat_map(of_block));
    }
    parts.push(Part::new(operator(Operator::Head), None));
    parts
}

/// The parts by what they cost, the costliest first.
pub(super) fn table(rows: &[Row<'_>], numbers: &str) -> String {
    let head = ["part", "KL", "+-", "above first", "+-", "same top"];
    let mut cells = vec![head.map(String::from).to_vec()];
    for row in &rows[1..] {
        cells.push(vec![
            row.part.unwrap_or_default().to_owned(),
            known(row.divergence.mean, format!("{:.6}", row.divergence.mean)),
            error(row.divergence.error),
            format!("{:+.6}", row.above.mean),
            error(row.above.error),
            known(row.agreement.mean, format!("{:.2} %", 100.0 * row.agreement.mean)),
        ]);
    }
    let (first, scored) = (rows[0].recipe, thousands(rows[0].tokens as u64));
    aligned(&cells, 1)
        + &format!(
            "{scored} tokens scored under {first}, one part at a time in {numbers}; KL from {first} in nats\n"
        )
}
