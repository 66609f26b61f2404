//! The lines of `exmy watch`: a row a run, in columns of which a narrow terminal has fewer.

use super::WatchedRun;
use crate::rows::padded;
use crate::show::shortened;
use exmy::shown::printable;
use exmy_lab::amounts::duration;
use exmy_lab::compare::gap;
use exmy_lab::gather::{RecordedRun, State};
use exmy_lab::plot::distinguish;
use exmy_lab::remaining::Remaining;
use exmy_lab::run_name::{DIGITS, NoHash, RunName};
use std::collections::HashSet;
use unicode_width::UnicodeWidthStr;

/// Columns below which names lose their beginning, or their middle, only where there is no more room.
const NAME: usize = 24;

/// The same, for columns that say less.
const LONG: usize = 40;

/// Cells of a curve.
const CURVE: usize = 12;

/// What a line says about a run.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) step: String,
    pub(super) loss: String,
    pub(super) val_loss: String,
    pub(super) gap: String,
    pub(super) curve: String,
    pub(super) state: State,
    /// Steps a second.
    pub(super) speed: Option<f64>,
    /// Seconds that it still takes.
    pub(super) left: Option<f64>,
    pub(super) missing: Option<String>,
}

/// Losses as a row of bars, on a logarithmic scale, as long as the run has come.
pub(super) fn curve(losses: &[f64], done: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let losses: Vec<f64> =
        losses.iter().filter(|loss| **loss > 0.0).map(|l| libm::log(*l)).collect();
    let cells = ((done * CURVE as f64).ceil() as usize).clamp(1, CURVE).min(losses.len());
    let means: Vec<f64> = (0..cells)
        .map(|i| &losses[i * losses.len() / cells..(i + 1) * losses.len() / cells])
        .map(|part| part.iter().sum::<f64>() / part.len() as f64)
        .collect();
    let (low, high) = means
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let bar = |x: &f64| match high > low {
        true => BARS[((x - low) / (high - low) * (BARS.len() - 1) as f64).round() as usize],
        false => BARS[0],
    };
    means.iter().map(bar).collect()
}

/// The row of a run among others.
pub(super) fn row(seen: &WatchedRun<'_>, runs: &[RecordedRun], left: &Remaining) -> Row {
    let (run, state) = (seen.run, seen.state);
    let step = run.metrics.last().map_or(0, |line| line.step);
    let steps = run.config.train.steps;
    let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    let losses: Vec<f64> = run.metrics.iter().filter_map(|line| line.loss).collect();
    let [loss, val_loss] = run.losses();
    let gap = run.base(runs).and_then(|base| gap(&base.validated(), &run.validated()));
    // As wide at the first step as at the last.
    let digits = steps.to_string().len();
    Row {
        name: printable(&run.name),
        step: format!("{step:>digits$}/{steps}"),
        loss: of(loss),
        val_loss: of(val_loss),
        gap: gap.map_or_else(|| "-".to_owned(), |(gap, _)| format!("{gap:+.2} %")),
        curve: curve(&losses, step as f64 / steps.max(1) as f64),
        state,
        speed: left.speed(&run.folder),
        left: left.of(&run.folder),
        missing: seen.missing.clone(),
    }
}

/// Names of a study's runs in `room` characters. The beginning of the recipe says more than the folders above
/// and than the hash, of which there is only as much as distinguishes the runs. Names that fit, and other
/// names, stay as they are.
fn recipes_first(names: &[&str], room: usize) -> Vec<String> {
    let whole = || names.iter().map(|&name| name.to_owned()).collect();
    if names.iter().all(|name| name.chars().count() <= room) {
        return whole();
    }
    let differ = |texts: &[String]| texts.iter().collect::<HashSet<_>>().len() == texts.len();
    let cut = |name: RunName, kept: usize| {
        let hash = if kept > 0 { format!("-{}", &name.hash[..kept]) } else { String::new() };
        shortened(&name.words, room.saturating_sub(hash.len())) + &hash
    };
    // Fewer characters than four are no name for a run.
    let mut ways = [0].into_iter().chain(4..=DIGITS).filter(|kept| kept + 3 <= room);
    let text = |name: &&str, kept| match name.rsplit('/').next().unwrap_or(name).parse() {
        Ok(parts) => cut(parts, kept),
        Err(NoHash) => (*name).to_owned(),
    };
    let texts = |kept| names.iter().map(|name| text(name, kept)).collect::<Vec<_>>();
    ways.find_map(|kept| Some(texts(kept)).filter(|texts| differ(texts))).unwrap_or_else(whole)
}

/// The lines of some rows.
pub(super) struct Lines {
    /// A heading, and a line for each row.
    pub(super) lines: Vec<String>,
    /// Where the word of the state begins, in characters.
    pub(super) state_at: usize,
}

/// The rows as lines of at most `width` characters below a heading, each number in its column, wherever the
/// runs stand. Without `curves` there are none.
pub(super) fn lines(rows: &[Row], width: usize, curves: bool) -> Lines {
    let longest =
        |of: fn(&Row) -> usize, head: &str| rows.iter().map(of).max().unwrap_or(0).max(head.len());
    let step = longest(|row| row.step.len(), "step");
    let loss = longest(|row| row.loss.len(), "12.3456");
    let val = longest(|row| row.val_loss.len(), "12.3456");
    let gap = longest(|row| row.gap.len(), "gap");
    let name = longest(|row| row.name.chars().count(), "run");
    let state = "complete".len();
    let mut taken = 2 + step + 2 + loss + 2 + state;
    // More columns where names keep enough of themselves, what says most first.
    let mut fits = |more: usize, kept: usize| {
        let fits = width >= taken + more + name.min(kept);
        taken += if fits { more } else { 0 };
        fits
    };
    let with_val = fits(2 + val, NAME);
    let with_gap = with_val && rows.iter().any(|row| row.gap != "-") && fits(2 + gap, NAME);
    let has_left = rows.iter().any(|row| row.left.is_some());
    let with_left = has_left && fits("  99 min".len(), NAME);
    let with_curve = curves && fits(2 + CURVE, LONG);
    let with_speed = with_left && fits("  steps/s".len(), LONG);
    let room = width.saturating_sub(taken).max(8);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let names = recipes_first(&names, room);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let names = distinguish(&names, |_, text| text.chars().count() <= room, |_, _| false);
    let name = names.iter().map(|name| name.width()).max().unwrap_or(0).max("run".len());
    let mut state_at = 0;
    let mut line = |cells: [&str; 6], end: &str, rest: &str| {
        let [a, b, c, d, e, f] = cells;
        let mut line = format!("{}  {b:>step$}  {c:>loss$}", padded(a, name));
        if with_val {
            line += &format!("  {d:>val$}");
        }
        if with_gap {
            line += &format!("  {e:>gap$}");
        }
        if with_curve {
            line += &format!("  {f:<CURVE$}");
        }
        state_at = line.chars().count() + 2;
        line += &format!("  {end:<state$}{rest}");
        shortened(line.trim_end(), width)
    };
    let head = match (with_left, with_speed) {
        (true, true) => "  steps/s    left",
        (true, false) => "    left",
        _ => "",
    };
    let mut lines = vec![line(["run", "step", "loss", "val", "gap", "curve"], "state", head)];
    for (row, name) in rows.iter().zip(&names) {
        let rest = match (&row.missing, row.left) {
            (Some(missing), _) => format!("  {missing}"),
            (None, Some(left)) if with_left => {
                let speed = row.speed.map_or_else(String::new, |speed| format!("{speed:.1}"));
                let speed = if with_speed { format!("  {speed:>7}") } else { String::new() };
                format!("{speed}  {:>6}", duration(left))
            }
            _ => String::new(),
        };
        let cells = [&**name, &row.step, &row.loss, &row.val_loss, &row.gap, &row.curve];
        lines.push(line(cells, row.state.word(), &rest));
    }
    Lines { lines, state_at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(name: &str, step: u64, speed: Option<(f64, f64)>) -> Row {
        let (step, loss) = (format!("{step:>5}/10000"), "2.5".to_owned());
        let state = if speed.is_some() { State::AtWork } else { State::Complete };
        let (val_loss, gap, curve) = (loss.clone(), "-".into(), "█▁".into());
        let (name, left, missing) = (name.into(), speed.map(|speed| speed.1), None);
        let speed = speed.map(|speed| speed.0);
        Row { name, step, loss, val_loss, gap, curve, state, speed, left, missing }
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
                let Lines { lines, state_at } = lines(&rows, width, false);
                let at = |line: &String, what: &str| {
                    let found = line.find(what).unwrap_or_else(|| panic!("{what}: {lines:#?}"));
                    line[..found].chars().count()
                };
                assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
                let (slash, state) = (at(&lines[1], "/10000"), at(&lines[1], "complete"));
                assert!(lines[1..].iter().all(|line| at(line, "/10000") == slash), "{lines:#?}");
                assert_eq!((at(&lines[0], "state"), at(&lines[2], "at work")), (state, state));
                assert_eq!(state_at, state);
                assert_eq!(at(&lines[0], "loss"), at(&lines[1], "2.5") - 1, "{lines:#?}");
                let shown = lines[1..].iter().map(|line| line.split("  ").next().unwrap());
                assert_eq!(shown.collect::<BTreeSet<_>>().len(), names.len(), "{lines:#?}");
                assert_eq!(lines[0].contains(" left"), width > 60, "{lines:#?}");
                assert_eq!(width >= 120, lines[2].starts_with(long), "{lines:#?}");
                (slash, state)
            };
            assert_eq!(columns((0.5, 19986.0)), columns((1234.5, 8.0)));
        }
    }

    #[test]
    fn curves_fall_and_grow_with_the_run() {
        let losses: Vec<f64> = (0..600).map(|step| 5.0 - f64::from(step) * 0.005).collect();
        let whole = curve(&losses, 1.0);
        assert_eq!((whole.chars().count(), curve(&losses, 0.26).chars().count()), (CURVE, 4));
        assert!(whole.starts_with('█') && whole.ends_with('▁'), "{whole}");
        assert_eq!((curve(&[], 0.5).as_str(), curve(&[2.0, 2.0], 1.0).as_str()), ("", "▁▁"));
    }

    /// On a terminal as wide as most a row has all but the curve; a wide one has that, too. Where nothing
    /// goes on there is no time left.
    #[test]
    fn a_wide_terminal_has_more_columns() {
        let mut row = of("mxfp8-e4m3", 7, Some((1234.5, 8.0)));
        row.gap = "+0.61 %".into();
        let head = |width| lines(&[of("mxfp8-e4m3", 7, Some((1234.5, 8.0)))], width, true);
        assert!(!head(40).lines[0].contains("curve"));
        let shown = lines(std::slice::from_ref(&row), 80, true).lines;
        let words: Vec<&str> = shown[0].split_whitespace().collect();
        let some = ["run", "step", "loss", "val", "gap", "state", "steps/s", "left"];
        assert_eq!(words, some, "{shown:#?}");
        let over = lines(&[of("mxfp8-e4m3", 7, None)], 80, true).lines;
        assert!(!over[0].contains("left") && over[0].contains("curve"), "{over:#?}");
        let shown = lines(std::slice::from_ref(&row), 120, true).lines;
        let words: Vec<&str> = shown[0].split_whitespace().collect();
        let all = ["run", "step", "loss", "val", "gap", "curve", "state", "steps/s", "left"];
        assert_eq!(words, all, "{shown:#?}");
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
            let lines = lines(&rows, width, false).lines;
            lines[1..].iter().map(|line| line.split("  ").next().unwrap().to_owned()).collect()
        };
        assert_eq!(
            shown(&cells, 60),
            ["bitred-e7m7+bias=cent…-112b7", "bitred-e7m7+bias=cent…-112b8", "f32-01234"]
        );
        assert_eq!(
            shown(&cells, 112),
            [
                "bitred-e7m7+bias=centred+clip=both-112b7",
                "bitred-e7m7+bias=centred+clip=both-112b8",
                "f32-01234"
            ]
        );
        // Recipes that differ need no hash, and names that fit stay whole.
        assert_eq!(shown(&cells[1..], 72), ["bitred-e7m7+bias=centred+clip=…", "f32"]);
        assert_eq!(shown(&cells, 200), cells);
        // Of what was not named by a study nothing is known.
        let others =
            ["a/run-of-mine", "b/0123456789abcdef-and-a-name-that-is-long"].map(str::to_owned);
        assert!(shown(&others, 60)[0].contains("run-of-mine"));
    }
}
