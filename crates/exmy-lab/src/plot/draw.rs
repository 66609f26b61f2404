//! The layout of a figure, top to bottom.
//!
//! All lengths are units of a view box 720 wide. Space is reserved for the larger, narrow-screen
//! font, so that one layout serves both sizes.

use super::{
    Figure, Mark, Panel,
    axis::{Scale, Tick, Ticks, with_factor},
    bars::{from_zero, listed},
    crowd::uncrowded,
    frame::{Frame, ROWS_RIGHT, SLANT, SLANTED, flat},
    heat::HEAD,
    labels::{distinguish, fits, shorten, width, wrap},
    legend::{Entry, GAP, KEY, Key, LINES, NAME, SAMPLE},
    number::short,
    style::{self, FONT, LINE, PAD, TITLE, WIDTH},
    svg::{Svg, escape, tenths, to_tenths},
};
use std::{format, string::String, vec::Vec};

/// The most lines in rows above a panel that whole names may take: more would push the panel off the
/// screen of a phone.
const ROWS: usize = 16;

/// The part of the horizontal axis whose values a settled axis may leave out.
const UNSETTLED: f64 = 0.1;

pub(super) fn figure(figure: &Figure) -> String {
    let panels = figure.panels.iter().map(uncrowded).collect();
    let figure = &Figure { panels, ..figure.clone() };
    let mut body = Svg::default();
    let mut y = PAD;
    // Bold type is about an eighth wider than the estimate for regular type.
    for line in wrap(&figure.title, TITLE[1], (WIDTH - 2.0 * PAD) / 1.125) {
        body.text("t", PAD, y + 24.0, &line);
        y += 33.0;
    }
    for line in wrap(&figure.subtitle, FONT, WIDTH - 2.0 * PAD) {
        body.text("q", PAD, y + 18.0, &line);
        y += LINE;
    }
    let (frames, x_ticks, bottom) = place(figure, y);
    let mut missing = false;
    for (i, frame) in frames.iter().enumerate() {
        let title = with_factor(&frame.panel.y.label, frame.ticks.factor);
        missing |= frame.draw(&mut body, &title, &x_ticks, i + 1 == frames.len());
    }
    let mut y = bottom;
    if let Some(frame) = frames.last() {
        y += names_below(frame, &x_ticks);
        let label = with_factor(&figure.x.label, x_ticks.factor);
        if !label.is_empty() {
            let label = shorten(&label, FONT, WIDTH - 2.0 * PAD);
            // Centred under the frame, unless that would leave the page.
            let half = width(&label, FONT) / 2.0;
            let middle = (frame.left + frame.right) / 2.0;
            let middle = if middle < PAD + half { PAD + half } else { middle };
            body.text("q m", middle, y + 20.0, &label);
            y += LINE + 4.0;
        }
    }
    if missing {
        body.text(
            "q",
            PAD,
            y + 20.0,
            "× a value without a place here: NaN, ±∞, or ≤ 0 on a log axis",
        );
        y += LINE;
    }
    let height = tenths(y + PAD);
    let title = escape(&figure.title);
    let tokens = figure.tokens.map_or_else(String::new, |n| format!(" data-tokens=\"{n}\""));
    let mut svg = Svg::default();
    svg.raw(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"exmy\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"100%\" style=\"max-width:1080px;height:auto\" role=\"img\" aria-label=\"{title}\"{tokens}>"
    ));
    svg.raw(&format!("<title>{title}</title>"));
    svg.raw(&format!("<desc>{}</desc>", escape(&describe(figure, &frames))));
    svg.raw("<style>");
    svg.0.push_str(&style::sheet(figure.panels.iter().any(has_grid)));
    svg.raw("</style>");
    svg.raw(&format!("<rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>"));
    svg.0.push_str(&body.0);
    svg.raw("</svg>");
    svg.0
}

/// Fits the axes and gives every panel its place below `y`; also the shared ticks and the bottom.
fn place(figure: &Figure, mut y: f64) -> (Vec<Frame<'_>>, Ticks, f64) {
    let mut names: Vec<&str> = figure.order.iter().map(String::as_str).collect();
    let mut xs = Vec::new();
    for mark in figure.panels.iter().flat_map(|panel| &panel.marks) {
        if let Some(name) = mark.name()
            && !names.contains(&name)
        {
            names.push(name);
        }
        mark.for_each_point(|x, _| xs.extend(x));
    }
    let x = figure.x.fit(xs.into_iter(), [0.0; 2]);

    let shares: f64 = figure.panels.iter().map(|panel| panel.share).sum();
    // Grids are about as high as they are wide.
    let grids = figure.panels.iter().filter(|panel| has_grid(panel)).count() as f64;
    let total = 240.0 + 110.0 * figure.panels.len() as f64 + 150.0 * grids;
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut written_notes: Vec<(&str, String)> = Vec::new();
    for panel in &figure.panels {
        let mut ys = Vec::new();
        panel.marks.iter().for_each(|mark| {
            mark.for_each_point(|at, y| {
                if at.is_none_or(|at| x.contains(at)) {
                    ys.push(y);
                }
            });
        });
        if panel.settled {
            ys = settled(panel, &x).unwrap_or(ys);
        }
        if from_zero(&panel.marks) {
            ys.push(0.0);
        }
        let share = total * panel.share / shares;
        let height = if share < 72.0 { 72.0 } else { share };
        // The label of the lowest rule may need space below it.
        let labelled = |mark: &Mark| matches!(mark, Mark::Rule { label, .. } if !label.is_empty());
        let margin = if panel.marks.iter().any(labelled) { (LINE + 6.0) / height } else { 0.05 };
        let margin = [if margin < 0.15 { margin } else { 0.15 }, 0.05];
        let scale = panel.y.fit(ys.into_iter(), if has_grid(panel) { [0.0; 2] } else { margin });
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for mark in &panel.marks {
            let Some((name, note)) = mark.entry().filter(|(name, _)| !name.is_empty()) else {
                continue;
            };
            let known = entries.iter().position(|entry| entry.name == name);
            let index = known.unwrap_or_else(|| {
                entries.push(Entry::new(name, number(&names, name)));
                entries.len() - 1
            });
            entries[index].add(mark, note);
            mark.for_each_point(|at, y| {
                entries[index].empty &= !(at.is_some_and(|at| x.shows(at)) && scale.shows(y));
            });
        }
        let shown = |name: &str| frames.iter().any(|f| f.entries.iter().any(|e| e.name == name));
        // Marks of categories have no ends that names could stand beside.
        let stands = figure.x.is_categorical() || panel.marks.iter().any(Mark::stands);
        let beside = |lines: usize| !stands && fits(lines, to_tenths(LINE), 0, to_tenths(height));
        let lines = entries.iter().map(|entry| entry.whole(NAME).filter(|&n| n <= LINES));
        let whole = lines.sum::<Option<usize>>().is_some_and(beside);
        let known = entries.iter().all(|entry| shown(entry.name));
        let noted = entries.iter().any(|entry| !entry.note().is_empty());
        let key = if whole {
            Key::Ends
        } else if known && noted && beside(entries.len()) {
            // What the notes say here stands nowhere else; the names do.
            Key::Ends
        } else if known {
            Key::Elsewhere
        } else {
            Key::Rows
        };
        if key == Key::Ends {
            let most = if whole { LINES } else { 1 };
            write(&mut entries, &names, &mut written_notes, NAME, most);
        }
        let space = if panel.y.is_categorical() { LINE } else { 56.0 };
        let mut ticks = panel.y.ticks(&scale, (height / space) as usize);
        shorten_ticks(&mut ticks, |_| NAME);
        let styles = panel.marks.iter().map(|m| m.name().map_or(0, |name| number(&names, name)));
        let mut clip = false;
        panel.marks.iter().for_each(|mark| {
            mark.for_each_point(|at, y| {
                let inside = at.is_none_or(|at| x.contains(at)) && scale.contains(y);
                clip |= y.is_finite() && !inside;
            });
        });
        frames.push(Frame {
            panel,
            styles: styles.collect(),
            x,
            y: scale,
            ticks,
            entries,
            key,
            clip,
            categorical: figure.x.is_categorical(),
            slanted: false,
            left: 0.0,
            right: 0.0,
            top: 0.0,
            bottom: height,
        });
    }

    let widest =
        |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, |a, b| if b > a { b } else { a });
    let mut left = PAD
        + 8.0
        + widest(
            &mut frames
                .iter()
                .flat_map(|f| &f.ticks.ticks)
                .flat_map(|t| &t.label)
                .map(|l| width(l, FONT)),
        );
    let named = widest(
        &mut frames
            .iter()
            .filter(|f| f.key == Key::Ends)
            .flat_map(|f| &f.entries)
            .map(Entry::width),
    );
    let mut right = if named > 0.0 { WIDTH - PAD - KEY - named } else { WIDTH - PAD };
    // Fewer ticks until their labels have air; the last one needs half its width beyond the frame.
    let mut x_ticks = figure.x.ticks(&x, ((right - left) / (LINE + 4.0)) as usize);
    let slot = (right - left) / (x.high - x.low);
    let wide = |tick: &Tick| tick.label.as_ref().is_some_and(|l| flat(l, slot).is_none());
    let slanted = figure.x.is_categorical() && x_ticks.ticks.iter().any(wide);
    let targets = if figure.x.is_categorical() { 0..0 } else { 2..9 };
    for target in targets.rev() {
        let ticks = figure.x.ticks(&x, target);
        let text = widest(&mut ticks.ticks.iter().flat_map(|t| &t.label).map(|l| width(l, FONT)));
        let edge = WIDTH - PAD - text / 2.0;
        let inside = if right < edge { right } else { edge };
        let count = ticks.ticks.iter().filter(|t| t.label.is_some()).count();
        if target == 2 || (text + 16.0) * count as f64 <= inside - left {
            (x_ticks, right) = (ticks, inside);
            break;
        }
    }

    if slanted {
        // The first names reach to the left of the panel, which leaves them space.
        for tick in &x_ticks.ticks {
            let wanted = tick.label.as_ref().map_or(0.0, |label| width(label, FONT));
            let wanted = if wanted < SLANTED { wanted } else { SLANTED };
            let unit = x.unit(tick.value);
            let needed = (PAD + SLANT * wanted - unit * right) / (1.0 - unit);
            let needed = if needed < WIDTH / 4.0 { needed } else { WIDTH / 4.0 };
            left = if needed > left { needed } else { left };
        }
        let at = |value: f64| left + x.unit(value) * (right - left);
        shorten_ticks(&mut x_ticks, |value| {
            let space = (at(value) - PAD) / SLANT;
            if space < SLANTED { space } else { SLANTED }
        });
    }
    for frame in &mut frames {
        (frame.left, frame.right, frame.slanted) = (left, right, slanted);
        if frame.key == Key::Rows {
            let space = ROWS_RIGHT - left - SAMPLE - GAP;
            let lines = frame.entries.iter().map(|entry| entry.whole(space).filter(|&n| n <= 2));
            let few = lines.sum::<Option<usize>>().is_some_and(|lines| lines <= ROWS);
            write(&mut frame.entries, &names, &mut written_notes, space, if few { 2 } else { 1 });
        }
        y += if frame.panel.y.label.is_empty() && frame.ticks.factor == 0 {
            10.0
        } else {
            6.0 + LINE + 12.0
        };
        if frame.key == Key::Rows {
            y += frame.rows().1;
        }
        if has_grid(frame.panel) {
            y += HEAD;
        }
        (frame.top, frame.bottom) = (y, y + frame.bottom);
        y = frame.bottom + 12.0;
    }
    (frames, x_ticks, y - 12.0)
}

/// Breaks the names of a panel into lines of at most `space`. What is written of a name differs from all
/// other `names` of the figure and from what was already written (`written_notes`).
fn write<'a>(
    entries: &mut [Entry<'a>],
    names: &[&str],
    written_notes: &mut Vec<(&'a str, String)>,
    space: f64,
    most: usize,
) {
    let here: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
    let fits = |i: usize, text: &str| entries[i].fits(text, space, most);
    let taken = |i: usize, text: &str| {
        let other = |name: &str| name != here[i];
        names.iter().any(|&name| other(name) && name == text)
            || written_notes.iter().any(|(name, known)| other(name) && known == text)
    };
    let texts = distinguish(&here, fits, taken);
    for (entry, text) in entries.iter_mut().zip(texts) {
        entry.write(&text, space, most);
        written_notes.push((entry.name, text));
    }
}

/// Shortens labels of an axis to the space that each has.
fn shorten_ticks(ticks: &mut Ticks, space: impl Fn(f64) -> f64) {
    let labelled =
        || ticks.ticks.iter().filter_map(|t| Some((t.label.as_deref()?, space(t.value))));
    let (labels, rooms): (Vec<&str>, Vec<f64>) = labelled().unzip();
    let fits = |i: usize, text: &str| width(text, FONT) <= rooms[i];
    let mut texts = distinguish(&labels, fits, |_, _| false).into_iter();
    for label in ticks.ticks.iter_mut().filter_map(|tick| tick.label.as_mut()) {
        *label = texts.next().unwrap_or_default();
    }
}

/// What a [settled](Panel::settled) axis shows: the middle 96 % of the values of each line and the middle
/// 90 % of the edges of each band in the last nine tenths of the horizontal axis, the last value of each
/// line, and all rules. None where nothing is there.
fn settled(panel: &Panel, x: &Scale) -> Option<Vec<f64>> {
    let from = x.low + (x.high - x.low) * UNSETTLED;
    let mut ys = Vec::new();
    for mark in &panel.marks {
        let mut own = Vec::new();
        mark.for_each_point(|at, y| {
            if y.is_finite() && at.is_none_or(|at| at >= from && x.contains(at)) {
                own.push(y);
            }
        });
        let share = match mark {
            Mark::Faint(_) => continue,
            Mark::Line(_) => 50,
            Mark::Band(_) => 20,
            _ => usize::MAX,
        };
        if let (Mark::Line(_), Some(&last)) = (mark, own.last()) {
            ys.push(last);
        }
        own.sort_by(f64::total_cmp);
        let cut = own.len() / share;
        ys.extend(&own[cut..own.len() - cut]);
    }
    let curves = panel.marks.iter().filter(|mark| !matches!(mark, Mark::Rule { .. }));
    let mut inside = false;
    curves.for_each(|m| m.for_each_point(|at, y| inside |= y.is_finite() && at >= Some(from)));
    inside.then_some(ys)
}

fn has_grid(panel: &Panel) -> bool {
    panel.marks.iter().any(|mark| matches!(mark, Mark::Heat(_)))
}

/// The height of the names below the last panel.
fn names_below(frame: &Frame<'_>, x_ticks: &Ticks) -> f64 {
    let names = || x_ticks.ticks.iter().filter_map(|tick| tick.label.as_ref());
    if !frame.slanted {
        return 8.0 + LINE * names().map(|name| frame.lines(name).len()).max().unwrap_or(1) as f64;
    }
    16.0 + SLANT * names().map(|name| width(name, FONT)).fold(0.0, |a, b| if b > a { b } else { a })
        + 8.0
}

fn number(names: &[&str], name: &str) -> usize {
    names.iter().position(|&known| known == name).unwrap_or(0)
}

/// The figure in words, for readers who do not see it.
fn describe(figure: &Figure, frames: &[Frame<'_>]) -> String {
    let mut text = String::new();
    if !figure.subtitle.is_empty() {
        text += &format!("{}. ", figure.subtitle);
    }
    if let Some(frame) = frames.first() {
        let (low, high) = (short(frame.x.low), short(frame.x.high));
        text += &match figure.x.is_categorical() {
            false => format!("Horizontal axis: {} from {low} to {high}. ", figure.x.label),
            true => format!("Horizontal axis: {}. ", figure.x.label()),
        };
    }
    for frame in frames {
        let (low, high) = (short(frame.y.low), short(frame.y.high));
        text += &format!("{} from {low} to {high}: ", frame.panel.y.label);
        let parts: Vec<String> =
            frame.panel.marks.iter().filter_map(|m| describe_mark(m, figure, frame)).collect();
        text += &parts.join(", ");
        text += ". ";
    }
    text.truncate(text.trim_end().len());
    text
}

fn describe_mark(mark: &Mark, figure: &Figure, frame: &Frame<'_>) -> Option<String> {
    match mark {
        Mark::Bars(series) => {
            let value = |&(x, y): &(f64, f64)| format!("{} {}", figure.x.name(x), short(y));
            let values: Vec<String> = series.points.iter().map(value).collect();
            Some(listed(&series.name, &values))
        }
        Mark::Intervals(intervals) => Some(intervals.describe(|x| figure.x.name(x))),
        Mark::Heat(heat) => {
            frame.colours().map(|scale| heat.describe(&figure.x, &frame.panel.y, &scale))
        }
        Mark::Line(series) | Mark::Points(series) => {
            let drawn = |&&(x, y): &&(f64, f64)| frame.x.shows(x) && frame.y.shows(y);
            // At the right end, as its label.
            let last = series.points.iter().filter(drawn).max_by(|a, b| a.0.total_cmp(&b.0));
            Some(match last {
                None => format!("{} has no values", series.name),
                Some(&(_, y)) => format!("{} ends at {}", series.name, short(y)),
            })
        }
        Mark::Band(band) => Some(format!("{} as a band", band.name)),
        Mark::Rule { value, label } => Some(format!("{label} at {}", short(*value))),
        Mark::Faint(_) => None,
    }
}
