//! Which parts of a model cost most in a format, when one of them at a time has it.

use super::rows::{Row, error, known};
use clap::ValueEnum;
use exmy_lab::amounts::thousands;
use exmy_lab::table::aligned;
use exmy_train::nn::decoder::Config;
use exmy_train::nn::parameters::Layout;
use exmy_train::nn::site::Operator;

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

/// A part of a model, by the words that choose it in a rule of a recipe.
pub(super) struct Part {
    pub(super) name: String,
    /// Block and operator, of one operator of one block.
    pub(super) site: Option<(usize, Operator)>,
}

/// The operators of a model's blocks.
fn operators(layout: &Layout) -> Vec<Operator> {
    let is_there = |operator: &Operator| {
        let end = format!(".{operator}.weight");
        layout.iter().any(|entry| entry.name.ends_with(&end))
    };
    let inside = |operator: &Operator| *operator != Operator::Head;
    Operator::ALL.iter().copied().filter(inside).filter(is_there).collect()
}

/// The parts of a model, each once: blocks, then operators, then the operators of each block; the head last.
pub(super) fn parts(config: &Config, layout: &Layout, each: &[Each]) -> Vec<Part> {
    let operators = operators(layout);
    let mut parts = Vec::new();
    if each.contains(&Each::Layer) {
        parts.extend((0..config.layers).map(|l| Part { name: format!("layer{l}"), site: None }));
    }
    if each.contains(&Each::Operator) {
        parts.extend(operators.iter().map(|one| Part { name: one.to_string(), site: None }));
    }
    if each.contains(&Each::Site) {
        let of_block = |l: usize| {
            let part = move |&one: &Operator| Part {
                name: format!("layer{l}:{one}"),
                site: Some((l, one)),
            };
            operators.iter().map(part).collect::<Vec<_>>()
        };
        parts.extend((0..config.layers).flat_map(of_block));
    }
    parts.push(Part { name: Operator::Head.to_string(), site: None });
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
