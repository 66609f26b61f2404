//! `exmy watch`: how runs stand, in the terminal, until all are done.

use crate::PARTLY;
use crate::rows::padded;
use crate::settings::counted;
use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable;
use exmy_lab::gather::{RecordedRun, State, gather, states};
use exmy_lab::plot::distinguish;
use std::collections::{HashMap, HashSet};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// Follow runs while they train: step, loss, speed, what happened
///
/// On a terminal the lines are drawn again until nobody is at work; into a pipe or a file runs are looked at
/// once. The exit code is 1 if a run is damaged.
#[derive(Args)]
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

/// Losses of the last steps are averaged over so many.
const AVERAGED: usize = 20;

/// When a run was first seen, and at which step.
type Begun = HashMap<PathBuf, (Instant, u64)>;

/// Columns below which names lose their beginning, or their middle, only where there is no more room.
const NAME: usize = 24;

fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// What a line says about a run.
struct Row {
    name: String,
    step: String,
    loss: String,
    state: &'static str,
    /// Steps a second and seconds that are left.
    speed: Option<(f64, f64)>,
    missing: Option<String>,
}

fn row(run: &RecordedRun, state: State, begun: &mut Begun) -> Row {
    let step = run.metrics.last().map_or(0, |line| line.step);
    let steps = run.config.train.steps;
    let losses: Vec<f64> = run.metrics.iter().rev().filter_map(|l| l.loss).take(AVERAGED).collect();
    let loss = losses.iter().sum::<f64>() / losses.len() as f64;
    let loss = if losses.is_empty() { "-".to_owned() } else { format!("{loss:.4}") };
    let known = begun.entry(run.folder.path().to_owned()).or_insert((Instant::now(), step));
    let (seconds, done) = (known.0.elapsed().as_secs_f64(), step.saturating_sub(known.1));
    let speed = (state == State::AtWork && done > 0).then(|| {
        let left = (steps - step.min(steps)) as f64;
        (done as f64 / seconds, left * seconds / done as f64)
    });
    // As wide at the first step as at the last.
    let digits = steps.to_string().len();
    let step = format!("{step:>digits$}/{steps}");
    let (name, state) = (printable(&run.name), state.word());
    Row { name, step, loss, state, speed, missing: run.missing() }
}

/// Characters of the hash at the end of the name of a study's run.
const HASH: usize = 16;

/// The recipe and the hash of a run's folder that a study named, without the folders above.
fn split_hash(name: &str) -> Option<(&str, &str)> {
    let (recipe, hash) = name.rsplit('/').next()?.rsplit_once('-')?;
    let is_hash = hash.len() == HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && !recipe.is_empty()).then_some((recipe, hash))
}

/// Names of a study's runs in `room` characters: the beginning of the recipe says more than the folders above
/// and than the hash, of which there is only as much as distinguishes the runs. Names that fit, and other
/// names, stay as they are.
fn recipes_first(names: &[&str], room: usize) -> Vec<String> {
    let whole = || names.iter().map(|&name| name.to_owned()).collect();
    if names.iter().all(|name| name.chars().count() <= room) {
        return whole();
    }
    let differ = |texts: &[String]| texts.iter().collect::<HashSet<_>>().len() == texts.len();
    let cut = |(recipe, hash): (&str, &str), kept: usize| {
        let hash = if kept > 0 { format!("-{}", &hash[..kept]) } else { String::new() };
        shorten(recipe, room.saturating_sub(hash.len())) + &hash
    };
    // Fewer characters than four are no name for a run.
    let mut ways = [0].into_iter().chain(4..=HASH).filter(|kept| kept + 3 <= room);
    let text = |name: &&str, kept| match split_hash(name) {
        Some(parts) => cut(parts, kept),
        None => (*name).to_owned(),
    };
    let texts = |kept| names.iter().map(|name| text(name, kept)).collect::<Vec<_>>();
    ways.find_map(|kept| Some(texts(kept)).filter(|texts| differ(texts))).unwrap_or_else(whole)
}

/// The rows as lines of at most `width` characters below a heading, each number in its column, wherever the
/// runs stand.
fn lines(rows: &[Row], width: usize) -> Vec<String> {
    let longest =
        |of: fn(&Row) -> usize, head: &str| rows.iter().map(of).max().unwrap_or(0).max(head.len());
    let step = longest(|row| row.step.len(), "step");
    let loss = longest(|row| row.loss.len(), "12.3456");
    let name = longest(|row| row.name.chars().count(), "run");
    let state = "complete".len();
    let beside = 2 + step + 2 + loss + 2 + state;
    // Steps a second and seconds left, where names keep enough of themselves.
    let speed = "  steps/s  s left".len();
    let with_speed = width >= beside + speed + name.min(NAME);
    let room = width.saturating_sub(beside + if with_speed { speed } else { 0 }).max(8);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let names = recipes_first(&names, room);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let names = distinguish(&names, |_, text| text.chars().count() <= room, |_, _| false);
    let name = names.iter().map(|name| name.width()).max().unwrap_or(0).max("run".len());
    let line = |texts: [&str; 4], rest: &str| {
        let [a, b, c, d] = texts;
        let line = format!("{}  {b:>step$}  {c:>loss$}  {d:<state$}{rest}", padded(a, name));
        shorten(line.trim_end(), width)
    };
    let head = if with_speed { "  steps/s  s left" } else { "" };
    let mut lines = vec![line(["run", "step", "loss", "state"], head)];
    for (row, name) in rows.iter().zip(&names) {
        let rest = match (&row.missing, row.speed) {
            (Some(missing), _) => format!("  {missing}"),
            (None, Some((speed, left))) if with_speed => format!("  {speed:>7.1}  {left:>6.0}"),
            _ => String::new(),
        };
        lines.push(line([name, &row.step, &row.loss, row.state], &rest));
    }
    lines
}

/// What is wrong with a run, on one line.
fn one_line(error: &Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let terminal = std::io::stdout().is_terminal();
    let mut begun = Begun::new();
    let mut drawn = 0;
    // Looks in a row at which nobody was at work: a run is created a moment before it begins.
    let mut idle = 0;
    loop {
        let (runs, broken) = gather(&arguments.runs)?;
        let (height, width) = console();
        let room = height.saturating_sub(3 + broken.len()).max(1);
        let shown = if terminal && !arguments.once { room } else { runs.len() };
        // What is at work first, where there is no room for all.
        let states = states(&runs);
        let mut order: Vec<(&RecordedRun, State)> =
            runs.iter().zip(states.iter().copied()).collect();
        if runs.len() > shown {
            order.sort_by_key(|(_, state)| *state != State::AtWork);
        }
        let shown = order.iter().take(shown);
        let rows: Vec<Row> = shown.map(|&(run, state)| row(run, state, &mut begun)).collect();
        let mut lines = lines(&rows, width);
        let count = |state| states.iter().filter(|known| **known == state).count();
        let (at_work, waiting) = (count(State::AtWork), count(State::Waiting));
        // Most of the time nobody waits, and there is no word about it.
        let wait = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
        lines.extend(broken.iter().map(|error| shorten(&printable(&one_line(error)), width)));
        lines.push(shorten(
            &format!(
                "{}: {} complete, {} diverged, {at_work} at work{wait}, {} stopped",
                counted(runs.len() as u64, "run"),
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
        // The names in it were made printable, and what moves the cursor is the program's own.
        show::raw(&text)?;
        let _ = std::io::stdout().flush();
        idle = if at_work + waiting == 0 { idle + 1 } else { 0 };
        let over = count(State::Stopped) == 0 || idle > 2;
        if arguments.once || !terminal || at_work + waiting == 0 && over {
            let is_whole = broken.is_empty() && rows.iter().all(|row| row.missing.is_none());
            return Ok(if is_whole { 0 } else { PARTLY });
        }
        std::thread::sleep(Duration::from_secs(arguments.every));
    }
}

/// Lines and columns of the terminal.
fn console() -> (usize, usize) {
    match terminal_size::terminal_size() {
        Some((width, height)) => (usize::from(height.0), usize::from(width.0).max(20)),
        None => (usize::MAX, 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(name: &str, step: u64, speed: Option<(f64, f64)>) -> Row {
        let (step, loss) = (format!("{step:>5}/10000"), "2.5".to_owned());
        let state = if speed.is_some() { "at work" } else { "complete" };
        Row { name: name.into(), step, loss, state, speed, missing: None }
    }

    /// Whatever the width and the state of the runs, numbers stand below each other and names differ.
    #[test]
    fn columns_line_up_at_any_width() {
        let long = "bitred-e7m7+bias=keep-high+clip=outer lr 1e-3 seed 7";
        let names = [
            "bitred-e7m7+bias=centred+clip=both",
            long,
            "bitred-e7m7+bias=keep-high+clip=both",
            "bitred-e7m7",
        ];
        for width in [40, 60, 80, 120, 200] {
            let columns = |speed| {
                let mut rows: Vec<Row> = names.iter().map(|name| of(name, 10000, None)).collect();
                rows[1] = of(long, 7, Some(speed));
                let lines = lines(&rows, width);
                let at = |line: &String, what: &str| {
                    let found = line.find(what).unwrap_or_else(|| panic!("{what}: {lines:#?}"));
                    line[..found].chars().count()
                };
                assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
                let (slash, state) = (at(&lines[1], "/10000"), at(&lines[1], "complete"));
                assert!(lines[1..].iter().all(|line| at(line, "/10000") == slash), "{lines:#?}");
                assert_eq!((at(&lines[0], "state"), at(&lines[2], "at work")), (state, state));
                assert_eq!(at(&lines[0], "loss"), at(&lines[1], "2.5") - 1, "{lines:#?}");
                let shown = lines[1..].iter().map(|line| line.split("  ").next().unwrap());
                assert_eq!(shown.collect::<BTreeSet<_>>().len(), names.len(), "{lines:#?}");
                assert_eq!(lines[0].contains("s left"), width > 60, "{lines:#?}");
                assert_eq!(width >= 120, lines[2].starts_with(long), "{lines:#?}");
                (slash, state)
            };
            assert_eq!(columns((0.5, 19986.0)), columns((1234.5, 8.0)));
        }
    }
    #[test]
    fn runs_of_a_study_keep_the_beginning_of_their_recipe() {
        let name = |recipe: &str, hash: &str| format!("s-bit-reduction/runs/{recipe}-{hash}");
        let cells = [
            name("bitred-e7m7+bias=centred+clip=both", "112b7f630047286e"),
            name("bitred-e7m7+bias=centred+clip=both", "112b8f630047286e"),
            name("f32", "0123456789abcdef"),
        ];
        let shown = |names: &[String], width: usize| -> Vec<String> {
            let rows: Vec<Row> = names.iter().map(|name| of(name, 1, None)).collect();
            let lines = lines(&rows, width);
            lines[1..].iter().map(|line| line.split("  ").next().unwrap().to_owned()).collect()
        };
        assert_eq!(
            shown(&cells, 60),
            ["bitred-e7m7+bias=cent…-112b7", "bitred-e7m7+bias=cent…-112b8", "f32-01234"]
        );
        assert_eq!(
            shown(&cells, 120),
            [
                "bitred-e7m7+bias=centred+clip=both-112b7",
                "bitred-e7m7+bias=centred+clip=both-112b8",
                "f32-01234"
            ]
        );
        // Recipes that differ need no hash, and names that fit stay whole.
        assert_eq!(shown(&cells[1..], 80), ["bitred-e7m7+bias=centred+clip=…", "f32"]);
        assert_eq!(shown(&cells, 200), cells);
        // Of what was not named by a study nothing is known.
        let others =
            ["a/run-of-mine", "b/0123456789abcdef-and-a-name-that-is-long"].map(str::to_owned);
        assert!(shown(&others, 60)[0].contains("run-of-mine"));
    }
}
