//! `exmy watch`: how runs stand, in the terminal, until all are done.

mod rows;

use crate::PARTLY;
use crate::keys::Keys;
use crate::phase::Phase;
use crate::settings::counted;
use crate::show::{self, duration, shortened};
use crate::stop::Stop;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable;
use exmy_lab::gather::{RecordedRun, State, gather, states};
use rows::{Lines, Row, lines, row};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Follow runs while they train: step, losses, gap to the first recipe, speed, time left
///
/// Written into a pipe or a file it is one look; on a terminal the lines are drawn again until nobody is at
/// work or q is pressed. The exit code is 1 if a run is damaged.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Arguments {
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// Seconds between looks
    #[arg(long, value_name = "S", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// Look once, as where the output is no terminal
    #[arg(long)]
    once: bool,
}

const HELP: &str = "\
Examples:
  exmy watch runs/0001
  exmy watch runs --every 10
  exmy watch runs/0001 | cat        # once, without colours

loss: mean of the last 20 training losses. val: the last validation loss. gap: val above that of the first
recipe with the same seed and rate, at the last step of both. curve: training loss, on a logarithmic scale.
With NO_COLOR set there are no colours.";

/// When runs were first seen at work, and at which step.
type Begun = HashMap<PathBuf, (Instant, u64)>;

/// Steps a second of a run at work, and the seconds that it will take.
fn speed(run: &RecordedRun, state: State, begun: &mut Begun) -> Option<(f64, f64)> {
    let (step, steps) = (run.metrics.last().map_or(0, |line| line.step), run.config.train.steps);
    let known = begun.entry(run.folder.path().to_owned()).or_insert((Instant::now(), step));
    let (seconds, done) = (known.0.elapsed().as_secs_f64(), step.saturating_sub(known.1));
    (state == State::AtWork && done > 0).then(|| {
        let left = steps.saturating_sub(step) as f64;
        (done as f64 / seconds, left * seconds / done as f64)
    })
}

/// A run as it is seen.
#[derive(Clone, Copy)]
struct Seen<'a> {
    run: &'a RecordedRun,
    state: State,
    /// Steps a second and seconds that are left, once it was seen at two steps.
    speed: Option<(f64, f64)>,
}

/// Seconds until all runs are done that are at work or wait for their turn, as many at a time as now: those
/// that wait at the mean speed of the others.
fn left_of_all(runs: &[Seen<'_>]) -> Option<f64> {
    let known: Vec<(f64, f64)> = runs.iter().filter_map(|seen| seen.speed).collect();
    let at_work = runs.iter().filter(|seen| seen.state == State::AtWork).count();
    if known.is_empty() {
        return None;
    }
    let a_step = known.iter().map(|(speed, _)| 1.0 / speed).sum::<f64>() / known.len() as f64;
    let left = |seen: &Seen<'_>| {
        let done = seen.run.metrics.last().map_or(0, |line| line.step);
        match (seen.state, seen.speed) {
            (_, Some((_, left))) => left,
            (State::AtWork | State::Waiting, None) => {
                seen.run.config.train.steps.saturating_sub(done) as f64 * a_step
            }
            _ => 0.0,
        }
    };
    Some(runs.iter().map(left).sum::<f64>() / at_work.max(1) as f64)
}

/// What is wrong with a run, on one line.
fn one_line(error: &Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A line with the word of the state in a colour.
fn coloured(line: &str, at: usize, state: State) -> String {
    let code = match state {
        State::Complete => 32,
        State::Diverged => 31,
        State::AtWork => 36,
        State::Waiting => 2,
        State::Stopped => 33,
    };
    let cut = |chars| line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
    let (begin, end) = (cut(at), cut(at + state.word().len()));
    if line[begin..end] != *state.word() {
        // Cut off by a narrow terminal.
        return line.to_owned();
    }
    format!("{}\x1b[{code}m{}\x1b[0m{}", &line[..begin], &line[begin..end], &line[end..])
}

/// Whether a terminal is to have colours (no-color.org).
fn has_colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How all runs stand, in a line.
fn sum(states: &[State], left: Option<f64>) -> String {
    let count = |state| states.iter().filter(|known| **known == state).count();
    // Most of the time nobody waits, and there is no word about it.
    let waiting = count(State::Waiting);
    let wait = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
    let left = left.map_or_else(String::new, |left| format!(", {} left of all", duration(left)));
    format!(
        "{}{left}: {} complete, {} diverged, {} at work{wait}, {} stopped",
        counted(states.len() as u64, "run"),
        count(State::Complete),
        count(State::Diverged),
        count(State::AtWork),
        count(State::Stopped)
    )
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let terminal = std::io::stdout().is_terminal();
    let follows = terminal && !arguments.once;
    let stop = Stop::listen()?;
    let mut keys = if follows { Keys::begin() } else { None };
    let colours = terminal && has_colours();
    let mut begun = Begun::new();
    let mut drawn = 0;
    // Looks in a row at which nobody was at work: a run is created a moment before it begins.
    let mut idle = 0;
    loop {
        let reading = Phase::begin("reading the runs", drawn > 0);
        let (runs, broken) = gather(&arguments.runs)?;
        let (height, width) = console();
        let room = height.saturating_sub(3 + broken.len()).max(1);
        let shown = if follows { room } else { runs.len() };
        // What is at work first, where there is no room for all.
        let states = states(&runs);
        let look =
            |(run, &state): (_, &State)| Seen { run, state, speed: speed(run, state, &mut begun) };
        let mut order: Vec<Seen<'_>> = runs.iter().zip(&states).map(look).collect();
        let left = left_of_all(&order);
        if runs.len() > shown {
            order.sort_by_key(|seen| seen.state != State::AtWork);
        }
        let row = |seen: &Seen<'_>| row(seen.run, &runs, seen.state, seen.speed);
        let rows: Vec<Row> = order.iter().take(shown).map(row).collect();
        drop(reading);
        let Lines { mut lines, state_at } = lines(&rows, width, terminal);
        if colours {
            for (line, row) in lines[1..].iter_mut().zip(&rows) {
                *line = coloured(line, state_at, row.state);
            }
        }
        lines.extend(broken.iter().map(|error| shortened(&printable(&one_line(error)), width)));
        lines.push(shortened(&sum(&states, left), width));
        let is_busy = states.iter().any(|state| matches!(state, State::AtWork | State::Waiting));
        idle = if is_busy { 0 } else { idle + 1 };
        let over = !states.contains(&State::Stopped) || idle > 2;
        let ends = !follows || !is_busy && over;
        if keys.is_some() && !ends {
            lines.push(shortened("q: quit", width));
        }
        let mut text = String::new();
        if terminal && drawn > 0 {
            text += &format!("\x1b[{drawn}A\x1b[J");
        }
        for line in &lines {
            text += line;
            text.push('\n');
        }
        drawn = lines.len();
        // The names in it were made printable, and what moves the cursor is the program's own.
        show::raw(&text)?;
        let _ = std::io::stdout().flush();
        let is_whole = broken.is_empty() && rows.iter().all(|row| row.missing.is_none());
        let code = if is_whole { 0 } else { PARTLY };
        if ends {
            return Ok(code);
        }
        match wait(Duration::from_secs(arguments.every), &mut keys, &stop) {
            Wanted::More => {}
            Wanted::End => return Ok(code),
            Wanted::Stop => return Ok(stop.code()),
        }
    }
}

/// What is wanted after a wait.
enum Wanted {
    More,
    End,
    Stop,
}

/// Waits for the time of the next look, a key or a signal.
fn wait(time: Duration, keys: &mut Option<Keys>, stop: &Stop) -> Wanted {
    const TICK: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    while begun.elapsed() < time {
        let is_over = match keys {
            Some(keys) => keys.pressed(b"qQ", TICK),
            None => {
                std::thread::sleep(TICK);
                false
            }
        };
        if stop.is_asked() {
            return Wanted::Stop;
        }
        if is_over {
            return Wanted::End;
        }
    }
    Wanted::More
}

/// Lines and columns of the terminal.
fn console() -> (usize, usize) {
    match terminal_size::terminal_size() {
        Some((width, height)) => (usize::from(height.0), usize::from(width.0).max(20)),
        None => (usize::MAX, 120),
    }
}
