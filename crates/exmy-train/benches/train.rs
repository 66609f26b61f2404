//! Whole training steps of the two models that `docs/performance.md` compares with PyTorch. `gpt`: 4
//! layers, d 256, 4 heads, context 256, batch 16, 256 tokens, GELU of 1024, LayerNorm with bias, learned
//! positions, untied head, AdamW, no clipping. `proxy`: the preset `proxy-mx`, 4 residual blocks of
//! width 512, batch 2048, with its teacher. 2 threads, or as many as `EXMY_THREADS` says.
//!
//! `cargo bench -p exmy-train --bench train [-- [--table] [--proxy] RECIPE...]` prints
//! tokens (rows) a second of the median step and the times of the shortest and the longest. Of one
//! thread it also prints the time that the processor gave it (Linux), which other processes do not
//! lengthen. `--table` adds where the time goes, and the memory (of each recipe in a process of its own).
//! `-- once MODEL RECIPE` prints the seconds of the shortest of five steps, and nothing else:
//! `benches/peers_train.py` asks for them.

use exmy::parallel::with_threads;
use exmy_train::nn::decoder::Position;
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;
use exmy_train::train::profile::{StepProfile, begin};
use exmy_train::train::trainer::Trainer;
use std::time::Instant;

/// Steps that are measured, after two that are not.
const STEPS: usize = 9;

/// Seconds that the processor gave this thread.
fn given() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn config(model: &str, recipe: &str) -> Config {
    let name = if model == "proxy" { "proxy-mx" } else { "nanogpt-cpu" };
    let mut config = preset(name).expect("a preset");
    config.recipe = recipe.parse().unwrap_or_else(|error| panic!("{error}"));
    config.train.clip = 0.0;
    if let Some(model) = config.model.decoder_mut() {
        model.context = 256;
        model.d_model = 256;
        model.hidden = 1024;
        model.norm_bias = true;
        model.position = Position::Learned;
        model.tied = false;
        config.train.batch = 16;
    }
    config
}

/// Calls `work` with what makes a step and returns its seconds, after two steps.
fn with_steps(config: &Config, work: impl FnOnce(&mut dyn FnMut() -> f64)) {
    let data = Dataset::load(&Source::default(), &DataOptions::default()).expect("a text");
    begin();
    let mut trainer = Trainer::new(config, &data).expect("a model");
    let mut step = || {
        let start = Instant::now();
        trainer.step(None);
        start.elapsed().as_secs_f64()
    };
    (0..2).for_each(|_| {
        step();
    });
    work(&mut step);
}

fn measure(model: &str, recipe: &str, table: bool) {
    let config = config(model, recipe);
    let (unit, rows) = match model {
        "proxy" => ("rows", config.train.batch),
        _ => ("tokens", config.train.batch * config.model.context()),
    };
    with_steps(&config, |step| {
        let before = given();
        let mut times: Vec<f64> = (0..STEPS).map(|_| step()).collect();
        let given = given().zip(before).map(|(after, before)| (after - before) / STEPS as f64);
        times.sort_by(f64::total_cmp);
        let rows = rows as f64;
        let [least, median, most] = [times[0], times[STEPS / 2], times[STEPS - 1]].map(|t| 1e3 * t);
        println!(
            "{recipe:<16} {:>8.0} {unit}/s {median:>8.1} ms a step ({least:.1} to {most:.1})",
            1e3 * rows / median
        );
        if let (1, Some(given)) = (exmy::parallel::threads(), given) {
            println!("{recipe:<16} {:>8.0} {unit} a second of processor time", rows / given);
        }
        if table {
            let profile = StepProfile::of(&config.model, config.train.batch, 5, || {
                step();
            });
            print!("{profile}");
        }
    });
}

fn once(model: &str, recipe: &str) {
    with_steps(&config(model, recipe), |step| {
        println!("{}", (0..5).map(|_| step()).fold(f64::INFINITY, f64::min));
    });
}

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let option = |name| std::env::args().any(|word| word == name);
    let (table, model) = (option("--table"), if option("--proxy") { "proxy" } else { "gpt" });
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let threads = std::env::var("EXMY_THREADS").ok().and_then(|text| text.parse().ok());
    with_threads(threads.unwrap_or(2), || match words[..] {
        ["once", model, recipe] => once(model, recipe),
        [] => ["f32", "mxfp8-e4m3", "nvfp4"].iter().for_each(|name| measure(model, name, table)),
        _ => words.iter().for_each(|name| measure(model, name, table)),
    })
    .expect("threads");
}
