//! `exmy watch`: how runs stand, in the terminal, until all are done.

mod rows;

use crate::PARTLY;
use crate::keys::Keys;
use crate::phase::Phase;
use crate::show::{self, shortened};
use crate::stop::Stop;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable;
use exmy_lab::amounts::{counted, duration};
use exmy_lab::gather::{RecordedRun, State, gather, not_begun, states};
use exmy_lab::remaining::{Looks, Remaining};
use rows::{Lines, Row, lines, row};
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
    #[arg(long, value_name = "S", default_value_t = 1)]
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

loss, val: training and validation loss of the result; until then the mean of the last 20 training losses,
and the last validation loss. gap: val above that of the first recipe with the same seed, at the last step of
both. curve: training loss, on a logarithmic scale.
left: what a run still takes once somebody works on it; of all: also runs that are planned and not begun,
taken to be as long as others of their recipe, as many at a time as now.
With NO_COLOR set there are no colours.";

/// A run as it is seen.
struct WatchedRun<'a> {
    run: &'a RecordedRun,
    state: State,
    /// What is wrong with its records.
    missing: Option<String>,
}

/// What is wrong with a run, on one line.
fn one_line(error: &Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A line with the word of the state in a colour.
fn coloured(line: &str, at: usize, state: State) -> String {
    let code = match state {
        State::Complete => 32,
        State::Diverged | State::Damaged => 31,
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

/// How all runs stand, in a line: of what there is none there is no word.
fn sum(states: &[State], left: &Remaining) -> String {
    let count = |state| states.iter().filter(|known| **known == state).count();
    let of = |state: State| (state.word(), count(state));
    let all = [
        State::Complete,
        State::Diverged,
        State::Damaged,
        State::AtWork,
        State::Waiting,
        State::Stopped,
    ];
    let counts = all.map(of).into_iter().chain([("not begun", left.not_begun)]);
    let words =
        counts.filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}"));
    let time =
        left.all.map_or_else(String::new, |left| format!(", {} left of all", duration(left)));
    let runs = counted((states.len() + left.not_begun) as u64, "run");
    format!("{runs}{time}: {}", words.collect::<Vec<_>>().join(", "))
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    let terminal = std::io::stdout().is_terminal();
    let follows = terminal && !arguments.once;
    let stop = stop.looked_at();
    let mut keys = if follows { Keys::begin() } else { None };
    let colours = terminal && has_colours();
    let mut looks = Looks::default();
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
        let missing: Vec<Option<String>> = runs.iter().map(RecordedRun::missing).collect();
        let found = states(&runs).into_iter().zip(&missing);
        let states: Vec<State> = found.map(|(found, what)| found.checked(what.is_some())).collect();
        let left = looks.look(&runs, &states, &not_begun(&arguments.runs)?);
        let is_whole = broken.is_empty() && missing.iter().all(Option::is_none);
        let of = |((run, &state), missing)| WatchedRun { run, state, missing };
        let mut order: Vec<WatchedRun<'_>> =
            runs.iter().zip(&states).zip(missing).map(of).collect();
        if runs.len() > shown {
            order.sort_by_key(|seen| seen.state != State::AtWork);
        }
        let row = |seen: &WatchedRun<'_>| row(seen, &runs, &left);
        let rows: Vec<Row> = order.iter().take(shown).map(row).collect();
        drop(reading);
        let Lines { mut lines, state_at } = lines(&rows, width, terminal);
        if colours {
            for (line, row) in lines[1..].iter_mut().zip(&rows) {
                *line = coloured(line, state_at, row.state);
            }
        }
        lines.extend(broken.iter().map(|error| shortened(&printable(&one_line(error)), width)));
        lines.push(shortened(&sum(&states, &left), width));
        let is_busy = states.iter().any(|state| matches!(state, State::AtWork | State::Waiting));
        idle = if is_busy { 0 } else { idle + 1 };
        let over = !states.contains(&State::Stopped) && left.not_begun == 0 || idle > 2;
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
        let code = if is_whole { 0 } else { PARTLY };
        if ends {
            return Ok(code);
        }
        match wait(Duration::from_secs(arguments.every), &mut keys, stop) {
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
