//! E20: what a model can still do that was trained in NVFP4: recall and repeat, on the memory task.

use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Power, Table};
use crate::measure::Results;
use crate::plot::{self, Axis};
use crate::series::{intervals, spread};
use crate::statistics::{interval_power, paired_interval, sd};
use crate::store::Trained;
use crate::test_result::{TestResult, concluded, every, interval};
use exmy::error::{Error, Result};
use exmy::slice::View;
use exmy_train::nn::model::Batch;
use exmy_train::nn::site::Place;
use exmy_train::recipe::{Engine, Images, Observer, Phase, Plan};
use exmy_train::train::checkpoint;
use exmy_train::train::data::recall::{Task, answers};
use exmy_train::train::data::{DataOptions, Dataset, Source, windows};

const RECIPES: [&str; 3] = ["bf16", "NVFP4", "CHON"];
const TASKS: [&str; 2] = ["recall", "induction"];
/// Percentage points that count as maintained.
const MARGIN: f64 = 2.0;

/// Windows that are asked.
const WINDOWS: usize = 256;
/// Windows of a forward pass.
const ROWS: usize = 16;

/// The likeliest token after each.
#[derive(Default)]
struct Guesses {
    all: Vec<u32>,
}

impl Observer for Guesses {
    fn place(&mut self, _: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        if place != Place::Logits || gradient {
            return;
        }
        for i in 0..values.rows() {
            let mut best = 0;
            for j in 1..values.cols() {
                if values.at(i, j) > values.at(i, best) {
                    best = j;
                }
            }
            self.all.push(best as u32);
        }
    }
}

/// The share of answers of each task that a run's model gives, under its own recipe: of those whose
/// whole episode lies in the window.
fn accuracy(run: &Trained, text: &Dataset) -> Result<[f64; 2]> {
    let config = run.folder.config()?;
    let Some(shape) = config.model.decoder() else {
        return Err(Error::new("no model of tokens answers questions"));
    };
    let layout = config.model.layout();
    let folder = run.folder.checkpoints();
    let Some(newest) = checkpoint::list(&folder)?.last().copied() else {
        // It diverged before it had learnt anything.
        return Ok([0.0; 2]);
    };
    let (state, _) = checkpoint::load(&checkpoint::path(&folder, newest), &layout)?;
    let plan = Plan::new(&config.recipe, &layout, config.train.steps).map_err(Error::from_cause)?;
    let mut model = config.model.on_cpu(config.seed).map_err(Error::from_cause)?;
    let mut images = Images::default();
    images.memory = state.memory.into_owned();
    let (context, mut right, mut asked) = (shape.context, [0_u64; 2], [0_u64; 2]);
    let all = windows(&text.validation, context);
    for first in (0..all.len().min(WINDOWS)).step_by(ROWS) {
        let rows = ROWS.min(all.len().min(WINDOWS) - first);
        let (mut tokens, mut targets) = (vec![0; rows * context], vec![0; rows * context]);
        all.fill(first, rows, &mut tokens, &mut targets);
        let mut guesses = Guesses::default();
        let phase = Phase::Evaluate { step: newest, pass: (first / ROWS) as u64 };
        let mut engine = Engine::new(&plan, config.seed, phase, &mut images).observed(&mut guesses);
        let mut losses = vec![0.0; rows * context];
        let batch = Batch::Tokens { tokens: &tokens, targets: &targets, sequences: rows };
        model.losses((&*state.params).into(), &batch, &mut engine, (&mut losses).into());
        for row in 0..rows {
            let at = row * context;
            let bytes: Vec<u8> =
                tokens[at..at + context].iter().map(|&token| token as u8).collect();
            for answer in answers(&bytes) {
                let task = usize::from(answer.task == Task::Induction);
                asked[task] += 1;
                // What follows token t - 1 is token t. A sink hides the first token.
                let guess = guesses.all[at + answer.at - 1];
                right[task] += u64::from(guess == u32::from(bytes[answer.at]));
            }
        }
    }
    Ok([0, 1].map(|task| right[task] as f64 / asked[task].max(1) as f64))
}

/// Whether CHON stays within the margin of bfloat16, in percent, task by task.
pub fn claims(kind: &str, bf16: &[Vec<f64>; 2], chon: &[Vec<f64>; 2]) -> Vec<TestResult> {
    let tasks = TASKS.iter().zip(bf16.iter().zip(chon));
    let of = |(task, (bf16, chon)): (&&str, (&Vec<f64>, &Vec<f64>))| {
        let lost: Vec<f64> = bf16.iter().zip(chon).map(|(a, b)| a - b).collect();
        let what = format!("{task} of {}, lost by CHON", kind);
        // What is maintained loses nothing, which is the margin below it.
        let power = sd(&lost).and_then(|sd| interval_power(MARGIN, sd, lost.len(), 0.95));
        let power = power.map_or(Power::FewSeeds, Power::Share);
        TestResult { power, ..TestResult::under(&what, &lost, MARGIN, " points") }
    };
    tasks.map(of).collect()
}

const LOST: Requirement = ask(
    "the accuracy that CHON loses against bfloat16, in percentage points,",
    Is::Under(MARGIN),
    By::Interval,
);

pub(crate) const ASKS: Criterion = Criterion::new(&[LOST], Opposite::One)
    .noted(|| "It is asked of both tasks and both kinds of attention.".into());

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let text = Dataset::load(&Source::Recall { seed: 0 }, &DataOptions::default())
        .map_err(Error::from_cause)?;
    let mut table = Table::new(
        "accuracy in percent (mean and range over seeds), and difference from bfloat16 in points (mean and \
         95 % interval)",
        &["model", "recipe", "recall", "difference", "induction", "difference"],
    );
    let (mut all, mut panels) = (Vec::new(), Vec::new());
    for kind in ["GLA", "SA"] {
        // By recipe and task.
        let mut found: Vec<[Vec<f64>; 2]> = Vec::new();
        for recipe in RECIPES {
            let mut own: [Vec<f64>; 2] = Default::default();
            for (_, run) in results.picked(&[kind, recipe])? {
                let right = accuracy(&run, &text)?;
                own.iter_mut().zip(right).for_each(|(own, right)| own.push(100.0 * right));
            }
            found.push(own);
            let (own, base) = (&found[found.len() - 1], &found[0]);
            let mut row = vec![kind.to_owned(), recipe.to_owned()];
            for task in 0..TASKS.len() {
                row.push(spread(&own[task]));
                row.push(match recipe {
                    "bf16" => "-".into(),
                    _ => interval(paired_interval(&own[task], &base[task], 0.95)),
                });
            }
            table.row(row);
        }
        for (task, name) in TASKS.iter().enumerate() {
            let label = format!("{name} of {}, % right", kind);
            let values: Vec<Vec<f64>> = found.iter().map(|own| own[task].clone()).collect();
            panels.push(intervals(&label, &values));
        }
        all.extend(claims(kind, &found[0], &found[2]));
    }
    let figure = plot::Figure::new("What models recall and repeat")
        .subtitle(
            "validation text, under each model's own recipe; mean and 95 % interval, and each seed",
        )
        .x(Axis::categories("", RECIPES));
    let figure = panels.into_iter().fold(figure, plot::Figure::panel);
    let found = concluded(&all, vec![Part::Picture(figure), Part::Table(table)]);
    Ok(Findings { verdict: found.verdict.with_power(every(&all).power), ..found })
}
