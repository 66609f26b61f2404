//! Tables of tensors: their names are long, so a table that does not fit gives each a line of its
//! own, and each cell where that does not fit either.

use crate::bar::bar;
use crate::shortened::without_middle;
use crate::stop::Stop;
use exmy::safetensors::{Progress, Watch};
use exmy::shown::printable;
use indicatif::{HumanBytes, ProgressBar};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// Time between lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// One line: a name, cells below the headings, or a remark in their place.
pub(crate) struct Line {
    /// The tensor.
    pub(crate) name: String,
    /// One a heading; fewer where a remark follows.
    pub(crate) cells: Vec<String>,
    /// What stands behind the cells.
    pub(crate) remark: String,
}

/// The columns of the terminal; `None` where there is none, and nothing is broken.
pub(crate) fn width() -> Option<usize> {
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map(|(width, _)| usize::from(width.0))
}

/// Columns that a text takes at most: names and shapes in a file may be of any length.
const LONGEST: usize = 160;

/// The table. The first `left` columns behind the name are aligned to the left, the others to the
/// right. Where not even the cells of a line fit, each gets a line of its own.
pub(crate) fn table(
    headings: &[&str],
    left: usize,
    lines: &[Line],
    width: Option<usize>,
) -> String {
    let heads: Vec<String> = headings[1..].iter().map(|text| (*text).to_owned()).collect();
    let mut rows = vec![(headings[0].to_owned(), heads, "")];
    for Line { name, cells, remark } in lines {
        let cells = cells.iter().map(|cell| without_middle(cell, LONGEST)).collect();
        let most = width.map_or(LONGEST, |width| width.clamp(12, LONGEST));
        rows.push((without_middle(&printable(name), most), cells, remark));
    }
    let column = |i: usize| {
        let cells = rows.iter().filter_map(|(_, cells, _)| cells.get(i));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let columns: Vec<usize> = (0..headings.len() - 1).map(column).collect();
    let names = rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0);
    let beside = columns.iter().map(|width| width + 2).sum::<usize>();
    if width.is_some_and(|width| beside > width) {
        return list(&rows);
    }
    let broken = width.is_some_and(|width| names + beside > width);
    let mut text = String::new();
    for (name, cells, remark) in &rows {
        let mut line = if broken { format!("{name}\n") } else { padded(name, names) };
        for (i, (cell, width)) in cells.iter().zip(&columns).enumerate() {
            line += "  ";
            if i >= left {
                line += &" ".repeat(width.saturating_sub(cell.width()));
            }
            line += &if i < left { padded(cell, *width) } else { cell.clone() };
        }
        if !remark.is_empty() {
            line += &format!("  {remark}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A table for narrow terminals: below each name a line a cell. The first row has the headings.
fn list(rows: &[(String, Vec<String>, &str)]) -> String {
    let Some(((_, heads, _), rows)) = rows.split_first() else { return String::new() };
    let longest = heads.iter().map(|head| head.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, cells, remark) in rows {
        text += &format!("{name}\n");
        for (head, cell) in heads.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            text += &format!("  {}  {cell}\n", padded(head, longest));
        }
        if !remark.is_empty() {
            text += &format!("  {remark}\n");
        }
    }
    text
}

/// With spaces up to a width. The formatter counts characters, and no more than 65535.
pub(crate) fn padded(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.width()))
}

/// The name of a tensor in a line of text.
pub(crate) fn shown(name: &str) -> String {
    without_middle(&printable(name), LONGEST)
}

/// `[768, 3072]`, `[]` for a single number.
pub(crate) fn shape(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", extents.join(","))
}

/// A share in percent: `0` of none, and never 0 of some.
pub(crate) fn percent(part: u64, of: u64) -> String {
    let share = 100.0 * part as f64 / of.max(1) as f64;
    match share {
        _ if part == 0 => "0".into(),
        share if share < 0.001 => "<0.001 %".into(),
        share if share < 1.0 => format!("{share:.3} %"),
        share => format!("{share:.2} %"),
    }
}

/// A number in at most nine characters.
pub(crate) fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (0.001..10_000.0).contains(&size) {
        let text = format!("{x:.4}");
        let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
        return text.trim_end_matches('.').to_owned();
    }
    format!("{x:.2e}")
}

/// The bar, or the lines, that show how far a file is.
pub(crate) struct Bar {
    bar: ProgressBar,
    lines: bool,
    verb: &'static str,
    last_line: Instant,
}

impl Bar {
    /// `verb` as in "quantized 3 GiB of 8 GiB".
    pub(crate) fn new(verb: &'static str, quiet: bool) -> Self {
        let template = "{spinner} {prefix}{bytes}/{total_bytes} {wide_bar:.cyan/dim} {binary_bytes_per_sec} \
                        {eta:>4}";
        let bar = bar(0, template, quiet);
        let lines = !quiet && !std::io::stderr().is_terminal();
        Self { bar, lines, verb, last_line: Instant::now() }
    }

    /// Shows how far it is.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
        if self.lines && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            say!(
                "{} {} of {}, at {}",
                self.verb,
                HumanBytes(progress.done),
                HumanBytes(progress.total),
                shown(progress.tensor)
            );
        }
    }

    /// Says what is done from now on, where that changes.
    #[cfg(feature = "tokenizers")]
    pub(crate) fn begin(&mut self, verb: &'static str) {
        if self.verb != verb {
            self.verb = verb;
            self.bar.set_prefix(format!("{verb} "));
            self.bar.reset_eta();
        }
    }

    /// Clears the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Calls `work` with what shows its progress and passes on the wish to stop.
pub(crate) fn watched<T>(bar: &mut Bar, stop: &Stop, work: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    let done = work(&mut |progress: &Progress<'_>| {
        bar.show(progress);
        match stop.is_asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_lines_of_their_own_where_it_is_narrow() {
        let line = |name: &str, cells: &[&str], remark: &str| Line {
            name: name.into(),
            cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
            remark: remark.into(),
        };
        let lines = [line("model.w", &["[2]", "31.5"], ""), line("b", &["[]"], "kept")];
        let wide = "tensor   shape    dB\nmodel.w  [2]    31.5\nb        []     kept\n";
        let headings = ["tensor", "shape", "dB"];
        assert_eq!(table(&headings, 1, &lines, None), wide);
        assert_eq!(table(&headings, 1, &lines, Some(20)), wide);
        // The cells take 13 columns.
        let listed = "model.w\n  shape  [2]\n  dB     31.5\nb\n  shape  []\n  kept\n";
        assert_eq!(table(&headings, 1, &lines, Some(12)), listed);
        let narrow = "tensor\n  shape    dB\nmodel.w\n  [2]    31.5\nb\n  []     kept\n";
        assert_eq!(table(&headings, 1, &lines, Some(19)), narrow);
    }

    /// Names act on nothing but their own cell, and take the columns that a terminal gives them.
    #[test]
    fn names_are_shown_and_not_obeyed() {
        let line =
            |name: &str| Line { name: name.into(), cells: vec!["1".into()], remark: "".into() };
        let text = table(&["name", "x"], 0, &[line("字字字"), line("abc"), line("\n")], None);
        assert_eq!(text, "name    x\n字字字  1\nabc     1\n\\n      1\n");
    }

    /// The formatter panics beyond 65535 columns.
    #[test]
    fn long_names_are_shortened_in_the_middle() {
        let line = Line {
            name: "a".to_owned() + &"字".repeat(70_000) + "b",
            cells: vec!["1".repeat(70_000)],
            remark: String::new(),
        };
        let text = table(&["name", "x"], 0, &[line], None);
        let expected =
            format!("a{}...{}b  {}...", "字".repeat(38), "字".repeat(38), "1".repeat(78));
        let last = text.lines().last().unwrap();
        assert!(last.starts_with(&expected), "{last}");
        assert!(text.lines().all(|line| line.width() < 330));
        assert_eq!(
            (without_middle("abcdef", 6), without_middle("abcdefgh", 7)),
            ("abcdef".into(), "ab...gh".into())
        );
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (31.41592, "31.4159"),
            (9999.99999, "10000"),
            (1e5, "1.00e5"),
            (-3.4e38, "-3.40e38"),
            (1e-4, "1.00e-4"),
        ];
        for (x, text) in cases {
            assert_eq!(number(x), text);
        }
        assert_eq!(percent(0, 0), "0");
        assert_eq!(percent(1, 1_000_000), "<0.001 %");
        assert_eq!((percent(1, 300), percent(1, 3)), ("0.333 %".into(), "33.33 %".into()));
    }
}
