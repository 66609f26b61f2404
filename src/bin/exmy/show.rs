//! What a person sees: a header, progress, a table, an error.
//!
//! On a terminal progress is a bar that fits its width; elsewhere (a pipe, a log) it is one line
//! every few seconds. Progress and messages go to stderr, results to stdout.

use crate::rows::printable;
use exmy::error::Error;
use exmy::study::compare::{Comparison, gap_percent};
use exmy::train::config::Config;
use exmy::train::data::Dataset;
use exmy::train::record::Metrics;
use exmy::train::run::{Outcome, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Prints an error the way every command does.
pub(crate) fn error(error: &Error) {
    // Paths are shown and not obeyed; lines are the error's own.
    let text = error.to_string();
    let lines: Vec<String> = text.lines().map(printable).collect();
    eprintln!("error: {}", lines.join("\n"));
}

/// What is about to be trained, on what, into where.
pub(crate) fn header(out: &Path, config: &Config, data: &Dataset, runs: usize) {
    let parameters = thousands(config.model.layout().len() as u64);
    eprintln!("data     {}", data.description);
    if let Some(reference) = &data.reference {
        eprintln!(
            "         its entropy rate {:.4} nats/byte, its -log p on the validation text {:.4}",
            reference.entropy_rate, reference.validation
        );
    }
    let model = &config.model;
    eprintln!(
        "model    {} layers, d {}, {} heads, context {}: {parameters} parameters",
        model.layers, model.d_model, model.heads, model.context
    );
    let train = &config.train;
    let plural = if runs == 1 { "run" } else { "runs" };
    eprintln!(
        "training {runs} {plural} of {} steps x {} tokens, {}, SIMD {}",
        train.steps,
        thousands((train.batch * model.context) as u64),
        threads(),
        exmy::simd::level()
    );
    eprintln!("writing  {}", out.display());
}

fn threads() -> String {
    match exmy::parallel::threads() {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    }
}

/// 1234567 as "1 234 567".
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Shows one run's progress and passes on the wish to stop.
pub(crate) struct Watcher<'a> {
    bar: ProgressBar,
    name: String,
    stop: &'a AtomicBool,
    lines: bool,
    begun: Instant,
    last_line: Instant,
    first_step: Option<u64>,
    tokens_per_step: u64,
    loss: f64,
}

impl<'a> Watcher<'a> {
    /// For run `index` of `count`.
    pub(crate) fn new(
        config: &Config,
        (index, count): (usize, usize),
        quiet: bool,
        stop: &'a AtomicBool,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(config.train.steps),
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
        );
        let style = ProgressStyle::with_template(
            "{prefix} {wide_bar:.cyan/dim} {pos}/{len} {msg} {eta:>4}",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
        let name = match count {
            1 => config.recipe.to_string(),
            _ => format!("{}/{count} {}", index + 1, config.recipe),
        };
        bar.set_prefix(name.clone());
        let now = Instant::now();
        Self {
            bar,
            name,
            stop,
            lines: !quiet && !std::io::stderr().is_terminal(),
            begun: now,
            last_line: now,
            first_step: None,
            tokens_per_step: (config.train.batch * config.model.context) as u64,
            loss: f64::NAN,
        }
    }

    /// Clears the bar; without a terminal leaves a last line.
    pub(crate) fn finish(&self, outcome: &Outcome) {
        self.bar.finish_and_clear();
        if self.lines && outcome.steps > 0 {
            eprintln!(
                "{}: {} steps in {:.1} s of training",
                self.name, outcome.steps, outcome.train_seconds
            );
        }
    }
}

impl Watch for Watcher<'_> {
    fn step(&mut self, metrics: &Metrics, steps: u64) -> bool {
        let first = *self.first_step.get_or_insert_with(|| {
            self.bar.set_position(metrics.step);
            self.bar.reset_eta();
            metrics.step - 1
        });
        let loss = metrics.loss.unwrap_or(f64::NAN);
        // A light average keeps the number readable without hiding a spike.
        self.loss = if self.loss.is_nan() { loss } else { 0.9 * self.loss + 0.1 * loss };
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        let done = metrics.step - first;
        let speed = (done * self.tokens_per_step) as f64 / seconds;
        self.bar.set_position(metrics.step);
        self.bar.set_message(format!("loss {:.4} {:.0} tok/s", self.loss, speed));
        if self.lines && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let left = (steps - metrics.step) as f64 * seconds / done as f64;
            eprintln!(
                "{}: step {}/{steps}, loss {:.4}, {speed:.0} tokens/s, {left:.0} s left",
                self.name, metrics.step, self.loss
            );
        }
        !self.stop.load(Ordering::SeqCst)
    }

    fn phase(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
    }
}

/// Where a stopped job stands and how to go on.
pub(crate) fn stopped(out: &Path) {
    eprintln!("stopped; every step so far is kept. Continue with");
    eprintln!("  exmy train --resume {}", out.display());
}

/// The results, one line a run.
pub(crate) fn table(out: &Path, comparison: &Comparison, outcomes: &[Option<Outcome>]) {
    let several_seeds = {
        let mut seeds = comparison.runs.iter().flat_map(|e| &e.result).map(|r| r.seed);
        let first = seeds.next();
        seeds.any(|seed| Some(seed) != first)
    };
    let mut rows = vec![["recipe", "train loss", "val loss", "gap", "tokens/s"].map(String::from)];
    let base = comparison.runs.first().and_then(|entry| entry.result.as_ref()?.val_loss);
    for (entry, outcome) in comparison.runs.iter().zip(outcomes) {
        let Some(result) = &entry.result else { continue };
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.4}"));
        let gap = match (result.val_loss, base, result.diverged_at) {
            (_, _, Some(step)) => format!("diverged at step {step}"),
            (Some(loss), Some(base), None) => format!("{:+.2} %", gap_percent(loss, base)),
            _ => "-".into(),
        };
        let speed = match outcome {
            Some(outcome) if outcome.steps > 0 => {
                thousands((outcome.tokens as f64 / outcome.train_seconds) as u64)
            }
            _ => "(earlier)".into(),
        };
        let name = match several_seeds {
            true => format!("{} s{}", result.recipe, result.seed),
            false => result.recipe.clone(),
        };
        rows.push([name, number(result.train_loss), number(result.val_loss), gap, speed]);
    }
    let widths: Vec<usize> =
        (0..5).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    println!();
    for row in &rows {
        let mut line = format!("{:<w$}", row[0], w = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        println!("{}", line.trim_end());
    }
    if let Some(reference) = comparison.reference {
        println!("the language itself: {reference:.4} nats/byte on the validation text");
    }
    println!(
        "loss in nats per token; gap: validation loss above that of {}",
        rows[1.min(rows.len() - 1)][0]
    );
    let curves = out.join("loss.svg");
    if curves.is_file() {
        println!("curves: {}", curves.display());
    }
}
