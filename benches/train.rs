//! Whole training steps of the model that `docs/performance.md` compares with PyTorch: 4 layers,
//! d 256, 4 heads, context 256, batch 16, 256 tokens, GELU of 1024, LayerNorm with bias, learned
//! positions, untied head, AdamW, no clipping. 2 threads, or as many as `EXMY_THREADS` says.
//!
//! `cargo bench --features train,parallel --bench train [-- [--table] RECIPE...]` prints tokens a
//! second of the median step and the times of the shortest and the longest; of one thread also the
//! time that the processor gave it (Linux), which other processes do not lengthen; with `--table`
//! where the time goes.

use exmy::nn::decoder::Position;
use exmy::parallel::with_threads;
use exmy::train::data::{DataOptions, Dataset, Source};
use exmy::train::preset::preset;
use exmy::train::profile::Profile;
use exmy::train::trainer::Trainer;
use std::time::Instant;

/// Steps that are measured, after two that are not.
const STEPS: usize = 9;

/// Seconds that the processor gave this thread.
fn given() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn measure(recipe: &str, table: bool) {
    let mut config = preset("nanogpt-cpu").expect("a preset");
    config.recipe = recipe.parse().unwrap_or_else(|error| panic!("{error}"));
    let model = config.model.decoder_mut().expect("a decoder");
    model.context = 256;
    model.d_model = 256;
    model.hidden = 1024;
    model.norm_bias = true;
    model.position = Position::Learned;
    model.tied = false;
    config.train.batch = 16;
    config.train.clip = 0.0;
    let data = Dataset::load(&Source::default(), &DataOptions::default()).expect("a text");
    let mut trainer = Trainer::new(&config, &data).expect("a model");
    let mut step = || {
        let start = Instant::now();
        trainer.step(None);
        start.elapsed().as_secs_f64()
    };
    (0..2).for_each(|_| {
        step();
    });
    let before = given();
    let mut times: Vec<f64> = (0..STEPS).map(|_| step()).collect();
    let given = given().zip(before).map(|(after, before)| (after - before) / STEPS as f64);
    times.sort_by(f64::total_cmp);
    let tokens = (config.train.batch * config.model.context()) as f64;
    let [least, median, most] = [times[0], times[STEPS / 2], times[STEPS - 1]].map(|t| 1e3 * t);
    println!(
        "{recipe:<16} {:>8.0} tokens/s {median:>8.1} ms a step ({least:.1} to {most:.1})",
        1e3 * tokens / median
    );
    if let (1, Some(given)) = (exmy::parallel::threads(), given) {
        println!("{recipe:<16} {:>8.0} tokens a second of processor time", tokens / given);
    }
    if table {
        let profile = Profile::of(&config.model, config.train.batch, 5, || {
            step();
        });
        print!("{profile}");
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let table = std::env::args().any(|word| word == "--table");
    let recipes: Vec<&str> = if arguments.is_empty() {
        vec!["f32", "mxfp8-e4m3", "nvfp4"]
    } else {
        arguments.iter().map(String::as_str).collect()
    };
    let threads = std::env::var("EXMY_THREADS").ok().and_then(|text| text.parse().ok());
    with_threads(threads.unwrap_or(2), || recipes.iter().for_each(|recipe| measure(recipe, table)))
        .expect("threads");
}
