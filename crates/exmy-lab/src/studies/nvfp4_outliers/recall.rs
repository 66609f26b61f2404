//! How much of the memory task a run can do.

use crate::store::Trained;
use exmy::error::{Error, Result};
use exmy::slice::View;
use exmy_train::nn::decoder::Decoder;
use exmy_train::nn::site::Place;
use exmy_train::recipe::{Engine, Images, Observer, Phase, Plan};
use exmy_train::train::checkpoint;
use exmy_train::train::data::recall::{Task, answers};
use exmy_train::train::data::{Dataset, windows};

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
pub(crate) fn accuracy(run: &Trained, text: &Dataset) -> Result<[f64; 2]> {
    let config = run.folder.config()?;
    let Some(shape) = config.model.decoder().copied() else {
        return Err(Error::new("no model of tokens answers questions"));
    };
    let in_words = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let layout = config.model.layout();
    let folder = run.folder.checkpoints();
    let Some(newest) = checkpoint::list(&folder)?.last().copied() else {
        // It diverged before it had learnt anything.
        return Ok([0.0; 2]);
    };
    let (state, _) = checkpoint::load(&checkpoint::path(&folder, newest), &layout)?;
    let plan = Plan::new(&config.recipe, &layout, config.train.steps).map_err(|e| in_words(&e))?;
    let mut decoder = Decoder::new(shape).map_err(|e| in_words(&e))?;
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
        decoder.losses(&*state.params, &tokens, &targets, rows, &mut engine, &mut losses);
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
