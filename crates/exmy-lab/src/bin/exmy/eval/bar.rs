//! The progress of an evaluation, as a bar or, where there is no terminal, as lines.

use crate::bar::bar;
use exmy_lab::amounts::{duration, thousands};
use exmy_train::evaluate::Measures;
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// What is shown while windows are measured.
pub(super) struct Bar {
    bar: ProgressBar,
    lines: bool,
    quiet: bool,
    begun: Instant,
    last: Instant,
    all: usize,
}

impl Bar {
    pub(super) fn new(all: usize, quiet: bool) -> Self {
        let template = "{spinner} {wide_bar:.cyan/dim} window {pos}/{len} {msg} {eta:>4}";
        let bar = bar(all as u64, template, quiet);
        let (now, lines) = (Instant::now(), !quiet && !std::io::stderr().is_terminal());
        Self { bar, lines, quiet, begun: now, last: now, all }
    }

    pub(super) fn done<'a>(
        &mut self,
        done: usize,
        mut measures: impl Iterator<Item = &'a Measures>,
    ) {
        let first = measures.next().map_or(f64::NAN, |first| libm::exp(first.loss().mean));
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("perplexity {first:.4}"));
        if self.lines && self.last.elapsed() >= Duration::from_secs(5) {
            self.last = Instant::now();
            let left = self.begun.elapsed().as_secs_f64() / done as f64 * (self.all - done) as f64;
            let (all, left) = (self.all, duration(left));
            say!("window {done}/{all}, perplexity {first:.4}, {left} left");
        }
    }

    /// All are done.
    pub(super) fn end<'a>(&self, measures: impl Iterator<Item = &'a Measures>) {
        self.bar.finish_and_clear();
        let tokens: usize = measures.map(Measures::count).sum();
        let seconds = self.begun.elapsed().as_secs_f64();
        if !self.quiet {
            let speed = tokens as f64 / seconds.max(1e-9);
            say!(
                "scored   {} tokens in {seconds:.2} s: {speed:.1} a second",
                thousands(tokens as u64)
            );
        }
    }
}
