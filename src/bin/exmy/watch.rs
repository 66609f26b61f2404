//! `exmy watch`: how runs stand, in the terminal, until all are done.

use crate::show;
use crate::train::listen;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::plot::cut_middle;
use exmy::study::gather::{Found, State, gather};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Follow runs while they train: step, loss, speed, what happened
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// Seconds between looks
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// Look once
    #[arg(long)]
    once: bool,
}

/// Losses of the last steps are averaged over so many.
const AVERAGED: usize = 20;

/// When a run was first seen, and at which step.
type Begun = HashMap<PathBuf, (Instant, u64)>;

fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A line about a run that is at most `width` wide.
fn line(run: &Found, begun: &mut Begun, width: usize) -> String {
    let step = run.metrics.last().map_or(0, |line| line.step);
    let steps = run.config.train.steps;
    let losses: Vec<f64> = run.metrics.iter().rev().filter_map(|l| l.loss).take(AVERAGED).collect();
    let loss = losses.iter().sum::<f64>() / losses.len() as f64;
    let loss = if losses.is_empty() { "-".to_owned() } else { format!("{loss:.4}") };
    let known = begun.entry(run.folder.path().to_owned()).or_insert((Instant::now(), step));
    let (seconds, done) = (known.0.elapsed().as_secs_f64(), step.saturating_sub(known.1));
    let state = match run.state() {
        State::AtWork if done > 0 => {
            let left = (steps - step.min(steps)) as f64 * seconds / done as f64;
            format!("{:.1} steps/s, {left:.0} s left", done as f64 / seconds)
        }
        state if run.is_cut_short() => format!("{}, metrics.jsonl cut short", state.word()),
        state => state.word().to_owned(),
    };
    let rest = format!(" {step:>6}/{steps:<6} {loss:>8} {state}");
    let room = width.saturating_sub(rest.chars().count()).max(8);
    let name = cut_middle(&run.name, |name| name.chars().count() <= room);
    let pad = room.saturating_sub(name.chars().count()).min(40);
    shorten(&format!("{name}{}{rest}", " ".repeat(pad)), width)
}

/// What is wrong with a run, on one line.
fn one_line(error: &Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let stop = listen()?;
    let terminal = std::io::stdout().is_terminal();
    let mut begun = Begun::new();
    let mut drawn = 0;
    // Looks in a row at which nobody was at work: a run is created a moment before it begins.
    let mut idle = 0;
    loop {
        let (runs, broken) = gather(&arguments.runs)?;
        let (height, width) = console();
        let room = height.saturating_sub(2 + broken.len()).max(1);
        let shown = if terminal && !arguments.once { room } else { runs.len() };
        // What is at work first, where there is no room for all.
        let mut order: Vec<&Found> = runs.iter().collect();
        if runs.len() > shown {
            order.sort_by_key(|run| run.state() != State::AtWork);
        }
        let mut lines: Vec<String> =
            order.iter().take(shown).map(|run| line(run, &mut begun, width)).collect();
        let count = |state| runs.iter().filter(|run| run.state() == state).count();
        let at_work = count(State::AtWork);
        lines.extend(broken.iter().map(|error| shorten(&one_line(error), width)));
        lines.push(shorten(
            &format!(
                "{} runs: {} complete, {} diverged, {at_work} at work, {} stopped",
                runs.len(),
                count(State::Complete),
                count(State::Diverged),
                count(State::Stopped)
            ),
            width,
        ));
        let mut text = String::new();
        if terminal && drawn > 0 {
            text += &format!("\x1b[{drawn}A\x1b[J");
        }
        for line in &lines {
            text += line;
            text.push('\n');
        }
        drawn = lines.len();
        show::result(&text)?;
        let _ = std::io::stdout().flush();
        idle = if at_work == 0 { idle + 1 } else { 0 };
        let over = count(State::Stopped) == 0 || idle > 2;
        if arguments.once || !terminal || at_work == 0 && over {
            return Ok(0);
        }
        let until = Instant::now() + Duration::from_secs(arguments.every);
        while Instant::now() < until {
            if stop.load(Ordering::SeqCst) {
                return Ok(0);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Lines and columns of the terminal.
fn console() -> (usize, usize) {
    match terminal_size::terminal_size() {
        Some((width, height)) => (usize::from(height.0), usize::from(width.0).max(20)),
        None => (usize::MAX, 120),
    }
}
