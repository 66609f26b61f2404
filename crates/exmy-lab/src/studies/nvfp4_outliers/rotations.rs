//! E15: rotations, where and of what size.

use super::product;
use super::recipes::{BY_16, OTHERWISE, UNROTATED};
use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Table};
use crate::grid::{Level, Set};
use crate::measure::Results;
use crate::series::spread;
use crate::test_result::{TestResult, verdict};
use exmy::error::{Error, Result};
use exmy::gemm::f32::{Output, matmul};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::nn::device::{Cpu, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::Operator;
use exmy_train::recipe::{Engine, Images, Phase, Recipe};

/// What the activations are; gradients are N(0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activations {
    /// N(0, 1).
    Normal,
    /// The same, one element in so many so many times as large.
    Spiky(u64, f64),
}

/// Tokens, inputs, outputs.
const SHAPE: (usize, usize, usize) = (256, 128, 128);
/// What is judged: one element in so many is larger, and how much.
const SPIKES: (u64, f64) = (64, 30.0);

/// Tokens of so many values each.
fn values(seed: u64, label: &str, width: usize, kind: Activations) -> Vec<f32> {
    let random = Philox::new(seed, Stream::new(label));
    let places = Philox::new(seed, Stream::new(label).with(1));
    let one = |i: u64| {
        let x = product::normal(&random, i);
        let y = match kind {
            Activations::Spiky(of, size) if places.below(i, of) == 0 => size * x,
            Activations::Normal | Activations::Spiky(..) => x,
        };
        y as f32
    };
    (0..(SHAPE.0 * width) as u64).map(one).collect()
}

/// Signal to noise of the weight gradient in decibel, of the recipe with nothing rounded stochastically.
pub fn decibel(seed: u64, activations: Activations, recipe: &Recipe) -> Result<f64> {
    let (tokens, inputs, outputs) = SHAPE;
    let recipe = recipe.with("+sr=none").map_err(Error::from_cause)?;
    let plan = product::plan(&recipe, outputs, inputs)?;
    let x = values(seed, "rotation input", inputs, activations);
    let g = values(seed, "rotation gradient", outputs, Activations::Normal);
    let (x, g) = (View::new(&x, tokens, inputs), View::new(&g, tokens, outputs));
    let (mut exact, mut found) = (vec![0.0; outputs * inputs], vec![0.0; outputs * inputs]);
    matmul(g.t(), x, ViewMut::new(&mut exact, outputs, inputs), Output::Overwrite);
    let members = [(Operator::Up, outputs)];
    let mut images = Images::default();
    let mut engine = Engine::new(&plan, seed, Phase::Train(0), &mut images);
    engine.grad_weight(
        &Cpu::new(),
        &Group { layer: Some(0), members: &members },
        g.into(),
        x.into(),
        MatrixMut::new(&mut found, outputs, inputs),
    );
    let [noise, signal] = product::squares(&found, &exact);
    Ok(10.0 * libm::log10(signal / noise))
}

pub fn claims(plain: &[f64], rotated: &[f64]) -> Vec<TestResult> {
    vec![ROTATED.of_pairs(rotated, plain, " dB")]
}

const ROTATED: Requirement = ask(
    "the ratio of signal to noise of spiky activations rotated by 16",
    Is::Above("that without rotation"),
    By::Interval,
);

pub(crate) const ASKS: Criterion = Criterion::new(&[ROTATED], Opposite::One);

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let draws = results.setting.scale.pick([2, 10, 10]);
    let mut table = Table::new(
        format!(
            "weight gradient of {} tokens, signal to noise in dB (mean and range over {draws} draws); spiky: \
             one activation in {} is {} times as large",
            SHAPE.0, SPIKES.0, SPIKES.1
        ),
        &["rotation", "spiky", "normal"],
    );
    // Adds a row and gives its values of spiky activations.
    let mut row = |level: Level| -> Result<Vec<f64>> {
        let Set::Recipe(recipe) = level.set else { unreachable!("{}: no recipe", level.name) };
        let recipe = product::recipe(recipe)?;
        let of = |kind: Activations| -> Result<Vec<f64>> {
            (1..=draws).map(|seed| decibel(seed, kind, &recipe)).collect()
        };
        let spiky = of(Activations::Spiky(SPIKES.0, SPIKES.1))?;
        let normal = of(Activations::Normal)?;
        table.row([level.name.to_owned(), spread(&spiky), spread(&normal)]);
        Ok(spiky)
    };
    let (plain, rotated) = (row(UNROTATED)?, row(BY_16)?);
    OTHERWISE.into_iter().try_for_each(|level| row(level).map(drop))?;
    let parts = vec![Part::Table(table)];
    let verdict = verdict(&claims(&plain, &rotated));
    let text = format!("of the noise of one product, not of losses: {}", verdict.reason());
    Ok(Findings::of(verdict.with(text), parts))
}
