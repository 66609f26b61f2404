//! What a person sees: a header, progress, a table, an error.
//!
//! On a terminal progress is a bar that fits its width; elsewhere (a pipe, a log) it is one line
//! every few seconds. Progress and messages go to stderr, results to stdout.

use crate::bar::{self, bar, columns, is_narrow};
use crate::phase;
use crate::shortened::without_middle;
use crate::stop::{Held, STOPPED, Stop};
use crate::{PARTLY, rows};
use exmy::error::{Error, Result};
use exmy::shown::{printable, printable_json, printable_lines, printable_path};
use exmy_lab::amounts::{counted, duration, grouped, thousands};
use exmy_lab::device::Place;
use exmy_lab::runner::{Kind, OutFolder};
use exmy_lab::table;
use exmy_train::nn::model;
use exmy_train::recipe::Recipe;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::precision::{Span, spans};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Outcome, Summary, Watch, intact};
use exmy_train::train::start::Matching;
use exmy_train::train::{fit, memory};
use indicatif::ProgressBar;
use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// Time between lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Columns that a line about the work has at most: what was given, and is repeated in it, may have any
/// length.
const LONGEST: usize = 2000;

/// Says something about the work, on stderr. Names in it are shown and not obeyed, and long lines lose their
/// middle. That nobody reads any more is no reason to end the work.
pub(crate) fn say(text: Arguments<'_>) {
    phase::clear();
    let text = printable_lines(&text.to_string());
    let lines: Vec<String> = text.split('\n').map(|line| without_middle(line, LONGEST)).collect();
    let _ = bar::aside(|| writeln!(std::io::stderr(), "{}", lines.join("\n")));
}

/// Prints an error the way every command does.
pub(crate) fn error(error: &Error) {
    say!("error: {error}");
}

/// The exit code of a command that left out so many files.
pub(crate) fn code(unwritten: &[Error]) -> u8 {
    if unwritten.is_empty() { 0 } else { PARTLY }
}

/// Tells of runs whose records may have been changed since without a sign of it.
pub(crate) fn unchecked(folders: &[Folder]) {
    // What cannot be read is reported when it is needed.
    let is_without = |folder: &&Folder| matches!(intact::has_digests(folder), Ok(false));
    let count = folders.iter().filter(is_without).count();
    if count > 0 {
        say!(
            "note: {count} of {} runs have no digests of metrics.jsonl and probes.jsonl, as earlier \
             versions wrote none: whether these are as they were is not checked",
            folders.len()
        );
    }
}

/// A text in lines of at most so many columns, broken between words; all but the first begin with blanks. A
/// word that is longer has a line of its own.
pub(crate) fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_inclusive(' ') {
        let width = line.width() + word.trim_end().width();
        if width > columns && !line.trim().is_empty() {
            lines += line.trim_end();
            lines.push('\n');
            line = " ".repeat(indent);
        }
        line += word;
    }
    lines + line.trim_end()
}

/// A text on the terminal that errors go to: [`wrapped`], where there is one.
fn fitted(text: &str, indent: usize) -> String {
    let width = terminal_size::terminal_size_of(std::io::stderr());
    let width = width.map_or(usize::MAX, |(width, _)| usize::from(width.0));
    wrapped(text, width, indent).replace('\u{202f}', " ")
}

/// What is about to be trained, on what, into where.
pub(crate) fn header(out: &Path, config: &Config, data: &Dataset, runs: usize) {
    let line = |head: &str, text: &str| say!("{}", fitted(&format!("{head:<9}{text}"), 9));
    // Narrow spaces keep a number on its line.
    let number = |number: u64| thousands(number).replace(' ', "\u{202f}");
    let parameters = number(config.model.layout().len() as u64);
    line("data", &grouped(&data.description));
    if let Some(reference) = &data.reference {
        let text = format!(
            "its entropy rate {:.4} nats/byte, its -log p on the validation text {:.4}",
            reference.entropy_rate, reference.validation
        );
        line("", &text);
    }
    let text = match &config.model {
        model::Config::Decoder(model) => format!(
            "{} layers, d {}, {} heads, context {}: {parameters} parameters",
            model.layers, model.d_model, model.heads, model.context
        ),
        model::Config::Proxy(model) => format!(
            "student of {} blocks, width {}, teacher of {}: {parameters} parameters",
            model.layers,
            model.width,
            model.teacher_depth()
        ),
    };
    line("model", &text);
    let train = &config.train;
    let text = format!(
        "{} of {} steps x {} tokens, {}, SIMD {}",
        counted(runs as u64, "run"),
        train.steps,
        number((train.batch * config.model.context()) as u64),
        threads(),
        exmy::simd::level()
    );
    line("training", &text);
    say!("writing  {}", printable_path(out));
}

fn threads() -> String {
    match exmy::parallel::threads() {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    }
}

/// A name of at most so many characters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Shows one run's progress and passes on the wish to stop.
pub(crate) struct Watcher<'a> {
    bar: ProgressBar,
    /// The columns behind what stands before the message, on a narrow terminal.
    room: Option<usize>,
    name: String,
    stop: &'a Stop,
    /// While it is trained.
    held: Option<Held<'a>>,
    lines: bool,
    begun: Instant,
    last_line: Instant,
    steps_done: u64,
    tokens_per_step: u64,
    loss: f64,
}

impl<'a> Watcher<'a> {
    /// For run `index` of `count`, called `name`, of which those before had the recipes `known`.
    pub(crate) fn new<'r>(
        (name, config): (&str, &Config),
        (index, count): (usize, usize),
        known: impl IntoIterator<Item = &'r Recipe>,
        quiet: bool,
        stop: &'a Stop,
    ) -> Self {
        let place = if count == 1 { String::new() } else { format!("{}/{count} ", index + 1) };
        let name = format!("{place}{name}, seed {}", config.seed);
        if !quiet && !known.into_iter().any(|known| *known == config.recipe) {
            // Before there is a bar, whose line it would stand in. A recipe that does not go with the
            // model is reported by the run.
            let spans = spans(config, &[], config.train.steps).unwrap_or_default();
            for span in spans.iter().filter(|_| !is_plain(&spans)) {
                say!("{place}{}{}: linear layers multiply in {span}", config.recipe, from(span));
            }
        }
        let template = match is_narrow() {
            false => "{spinner} {prefix} {wide_bar:.cyan/dim} {pos}/{len} {msg} {eta:>4}",
            true => "{prefix} {pos}/{len} {wide_msg}",
        };
        let steps = config.train.steps;
        let bar = bar(steps, template, quiet);
        let shown = shortened(&name, usize::from(columns() / 2));
        let taken = shown.width() + format!(" {steps}/{steps} ").len();
        let room = usize::from(columns()).saturating_sub(taken);
        bar.set_prefix(shown);
        // Before the first step checkpoints are read and the first validation is done.
        bar.set_message("preparing");
        let now = Instant::now();
        Self {
            bar,
            room: is_narrow().then_some(room),
            name,
            stop,
            held: None,
            lines: !quiet && !std::io::stderr().is_terminal(),
            begun: now,
            last_line: now,
            steps_done: 0,
            tokens_per_step: (config.train.batch * config.model.context()) as u64,
            loss: f64::NAN,
        }
    }

    /// Clears the bar; without a terminal leaves a last line.
    pub(crate) fn finish(&self, outcome: &Outcome) {
        self.bar.finish_and_clear();
        if self.lines && outcome.steps > 0 {
            say!(
                "{}: {} steps in {:.1} s of training",
                self.name,
                outcome.steps,
                outcome.train_seconds
            );
        }
    }
}

impl Watch for Watcher<'_> {
    fn begin(&mut self) {
        self.held = Some(self.stop.hold());
    }

    fn step(&mut self, metrics: &Metrics, steps: u64) -> bool {
        if self.steps_done == 0 {
            self.bar.set_position(metrics.step);
            self.bar.reset_eta();
            // The first validation, which may take longer than all steps of a short run, is over.
            self.begun = Instant::now();
        }
        // Not the difference of step numbers: a run may go back. The first step was not timed.
        let done = self.steps_done;
        self.steps_done += 1;
        let loss = metrics.loss.unwrap_or(f64::NAN);
        // A light average keeps the number readable without hiding a spike.
        self.loss = if self.loss.is_nan() { loss } else { 0.9 * self.loss + 0.1 * loss };
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        let speed = (done * self.tokens_per_step) as f64 / seconds;
        self.bar.set_position(metrics.step);
        let mut text = format!("loss {:.4}", self.loss);
        let speed_shown = format!(" {speed:.0} tok/s");
        match self.room {
            None if done > 0 => text += &speed_shown,
            Some(room) if done > 0 => {
                // No number loses its end.
                let left = format!(" {}", duration(self.bar.eta().as_secs_f64()));
                for more in [left, speed_shown] {
                    text += if text.len() + more.len() <= room { &more } else { "" };
                }
            }
            _ => {}
        }
        self.bar.set_message(text);
        for event in &metrics.events {
            if self.lines || !self.bar.is_hidden() {
                say!("{}: step {}: {}", self.name, metrics.step, event);
            }
        }
        if self.lines && done > 0 && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let left = (steps - metrics.step) as f64 * seconds / done as f64;
            say!(
                "{}: step {}/{steps}, loss {:.4}, {} tokens/s, {} left",
                self.name,
                metrics.step,
                self.loss,
                thousands(speed as u64),
                duration(left)
            );
        }
        !self.stop.is_asked()
    }

    fn phase(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
    }
}

/// Where a stopped job stands and how to go on.
pub(crate) fn stopped(out: &Path) {
    say!("{}", fitted("stopped; every step so far is kept. Continue with", 0));
    say!("  exmy train --resume {}", printable_path(out));
}

/// The exit code of a command that stopped, because this process or another rank of its run was asked to end.
pub(crate) fn code_of_stop(stop: &Stop) -> u8 {
    if stop.is_asked() {
        return stop.code();
    }
    say!("another rank was asked to end");
    STOPPED
}

/// Warns of a run that will not fit into memory, or that the device does slowly.
pub(crate) fn cost(config: &Config, place: &Place) {
    if let Some(error) = memory::available().and_then(|bytes| fit::shortage(config, bytes)) {
        say!("warning: {}: {error}", config.recipe);
    }
    if let Some(slow) = place.slow(&config.recipe) {
        say!("note: {slow}");
    }
}

/// Prints results. Names in them are shown and not obeyed.
///
/// # Errors
/// If they cannot be written. A reader that has seen enough (`| head`) is no error.
pub(crate) fn result(text: &str) -> Result<()> {
    raw(&printable_lines(text))
}

/// Prints a value as JSON. Names in it are shown and not obeyed.
///
/// # Errors
/// As [`result`].
pub(crate) fn json(value: &serde_json::Value) -> Result<()> {
    raw(&printable_json(&format!("{value:#}\n")))
}

/// Prints what is no text for people alone, byte for byte.
///
/// # Errors
/// As [`result`].
pub(crate) fn raw(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// The same of what is no text.
///
/// # Errors
/// As [`result`].
pub(crate) fn bytes(of: &[u8]) -> Result<()> {
    phase::clear();
    let mut out = std::io::stdout().lock();
    match bar::aside(|| out.write_all(of).and_then(|()| out.flush())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new("cannot write the result").because(error))
        }
        _ => Ok(()),
    }
}

/// The results, one line a recipe and learning rate.
pub(crate) fn table(
    out: &OutFolder,
    outcomes: &[Option<Outcome>],
    unit: &str,
    place: &Place,
) -> String {
    let manifest = out.manifest();
    let results = || manifest.runs.iter().filter_map(|entry| entry.result.as_ref());
    let (header, labels, rows) = out.rows();
    let mut speeds = Vec::<(&Vec<String>, u64, f64)>::new();
    for (labels, outcome) in labels.iter().zip(outcomes) {
        if let Some(outcome) = outcome.as_ref().filter(|outcome| outcome.steps > 0) {
            speeds.push((labels, outcome.tokens, outcome.train_seconds));
        }
    }
    let mut cells = table::cells(&header, &rows);
    cells[0].push(format!("{:>10}", "tokens/s"));
    for (row, cells) in rows.iter().zip(&mut cells[1..]) {
        let same = speeds.iter().filter(|(labels, ..)| **labels == row.labels);
        let (tokens, seconds) =
            same.fold((0, 0.0), |(tokens, sum), (_, n, seconds)| (tokens + n, sum + seconds));
        cells.push(match tokens {
            0 => "(earlier)".to_owned(),
            _ => thousands((tokens as f64 / seconds) as u64),
        });
    }
    let mut shown = String::from("\n") + &listed(&cells, header.len(), rows::width());
    let mut notes = Vec::new();
    if let Kind::Train { reference: Some(reference), .. } = &manifest.kind {
        notes.push(format!("the language itself: {reference:.4} nats/byte on the validation text"));
    }
    if let Some(first) = rows.first() {
        let first = &first.labels[0];
        notes.push(format!("loss in {unit}; gap: validation loss above that of {first}"));
    }
    if !matches!(place, Place::Cpu) && !speeds.is_empty() {
        notes.push(format!("trained on {place}"));
    }
    let columns = rows::width().unwrap_or(usize::MAX);
    notes.iter().for_each(|note| shown += &(wrapped(note, columns, 2) + "\n"));
    shown += &formats(results());
    if let Some(curves) = out.picture() {
        shown += &format!("curves: {}\n", printable_path(&curves));
    }
    // Last, where it is seen.
    for entry in &manifest.runs {
        if let Some(reason) = entry.result.as_ref().and_then(|result| result.reason.as_ref()) {
            shown += &format!("{} diverged: {reason}\n", printable(&entry.folder));
        }
    }
    shown
}

/// Cells below their headings; a row of a terminal that is too narrow for that has a line for each.
fn listed(cells: &[Vec<String>], left: usize, columns: Option<usize>) -> String {
    let text = table::aligned(cells, left);
    if columns.is_none_or(|columns| text.lines().all(|line| line.width() <= columns)) {
        return text;
    }
    let heads: Vec<&str> = cells[0].iter().map(|head| head.trim()).collect();
    let line = |cells: &Vec<String>| rows::Line {
        name: cells[0].clone(),
        cells: cells[1..].to_vec(),
        remark: String::new(),
    };
    rows::table(&heads, left - 1, &cells[1..].iter().map(line).collect::<Vec<_>>(), columns)
}

/// Whether all linear layers multiply in one format all the time, as the recipe's name says.
fn is_plain(spans: &[Span]) -> bool {
    let [span] = spans else { return false };
    let is_one = span.forward.len() == 1 && span.patches == 0.0;
    is_one && span.forward == span.grad_input && span.forward == span.grad_weight
}

/// In which formats linear layers multiplied, where that is more than one: a line for each recipe and each
/// time it changed.
fn formats<'a>(results: impl Iterator<Item = &'a Summary>) -> String {
    let (mut seen, mut shown) = (Vec::new(), String::new());
    for Summary { recipe, precision, .. } in results {
        if seen.contains(&(recipe, precision)) || is_plain(precision) {
            continue;
        }
        if seen.is_empty() {
            shown += "multiplications of linear layers:\n";
        }
        seen.push((recipe, precision));
        for span in precision {
            shown += &format!("  {recipe}{}: {span}\n", from(span));
        }
    }
    shown
}

/// From which step, if not from the first.
fn from(span: &Span) -> String {
    if span.from == 0 { String::new() } else { format!(" from step {}", span.from) }
}

/// What of a file became the model's, and what did not.
pub(crate) fn matching(path: &Path, matching: &Matching) {
    let Matching { loaded, fresh, unused } = matching;
    let all = loaded.len() + fresh.len();
    say!("weights  {} of {all} parameters from {}", loaded.len(), printable_path(path));
    for (what, names) in [("not in the file", fresh), ("of no parameter", unused)] {
        for name in names {
            say!("         {what}: {}", printable(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("data     a bc def", 13, 9), "data     a bc\n         def");
        assert_eq!(wrapped("data     abcdefgh i", 12, 9), "data\n         abcdefgh\n         i");
        assert_eq!(wrapped("  a b", usize::MAX, 9), "  a b");
    }
}
