//! One panel drawn: its grid, its marks, and the names beside or above it.

use super::{
    Mark,
    axis::{Scale, Ticks},
    frame::Frame,
    heat,
    labels::{shorten, spread, width},
    legend::{Entry, Key, LEADER},
    path::{Curve, Place, distinct, draw_dots, outline, polyline},
    style::{self, FONT, LINE, PAD, WIDTH, hue},
    svg::{Svg, escape, tenths, to_tenths},
};
use std::{format, string::String, vec::Vec};

/// Whether a straight line enters an area of left, top, right and bottom.
fn passes(area: [f64; 4], from: Place, to: Place) -> bool {
    let (from, to) = if from.0 <= to.0 { (from, to) } else { (to, from) };
    let low = if from.0 > area[0] { from.0 } else { area[0] };
    let high = if to.0 < area[2] { to.0 } else { area[2] };
    if low > high {
        return false;
    }
    let at = |x: f64| from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0);
    // An upright one has all of its length at one place.
    let [a, b] = if to.0 > from.0 { [at(low), at(high)] } else { [from.1, to.1] };
    let (top, bottom) = if a < b { (a, b) } else { (b, a) };
    top <= area[3] && area[1] <= bottom
}

/// A line of a name, the first of which stands where the text does.
fn below(i: usize, x: &str, line: &str) -> String {
    let dy = if i > 0 { " dy=\"1.1em\"" } else { "" };
    format!("<tspan x=\"{x}\"{dy}>{}</tspan>", escape(line.trim_end()))
}

impl Frame<'_> {
    /// Draws the panel; returns whether some value had no place.
    pub(super) fn draw(&self, svg: &mut Svg, title: &str, x_ticks: &Ticks, last: bool) -> bool {
        svg.raw(&self.group());
        let (rows, height) = if self.key == Key::Rows { self.rows() } else { (Vec::new(), 0.0) };
        let colours = self.colours();
        let below = if colours.is_some() { heat::HEAD } else { 0.0 };
        let head = below + height;
        if !title.is_empty() {
            let title = shorten(title, FONT, WIDTH - 2.0 * PAD);
            svg.text("q", 14.0, self.top - head - 16.0, &title);
        }
        for (entry, (x, y)) in self.entries.iter().zip(rows) {
            entry.draw(svg, self.left + x, self.top - head + y + LINE / 2.0 - 4.0);
        }
        self.draw_colours(svg);
        self.draw_axes(svg, x_ticks, last);
        let [x, y] = [self.left, self.top].map(tenths);
        let [w, h] = [self.right - self.left, self.bottom - self.top].map(tenths);
        let clip = if self.clip { "" } else { " overflow=\"visible\"" };
        svg.raw(&format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\"{clip}>"
        ));
        let mut missing = false;
        if let Some(scale) = &colours {
            for heat in self.heats() {
                missing |= self.draw_heat(svg, heat, scale);
            }
        }
        self.draw_rules(svg);
        let curves = self.draw_marks(svg);
        svg.raw("</svg>");
        self.draw_rule_labels(svg, &curves);
        if self.key == Key::Ends {
            self.draw_ends(svg, &curves);
        }
        let cells = self.heats().any(|heat| !heat.cells.is_empty());
        if !cells && curves.iter().all(|(_, curve)| curve.runs.is_empty()) {
            let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
            svg.text("q m", middle.0, middle.1, "nothing to draw");
        }
        svg.raw("</g>");
        missing || curves.iter().any(|(_, curve)| !curve.breaks.is_empty())
    }

    /// The beginning of the panel's group: from places to values, for programs that read the picture. For
    /// each direction the ends of the axis as values, `log` or `linear`, and the ends as places; last the
    /// power of ten that was taken out of the labels.
    fn group(&self) -> String {
        let axis = |scale: &Scale, from: f64, to: f64| {
            let kind = if scale.log { "log" } else { "linear" };
            format!("{:e} {:e} {kind} {} {}", scale.low, scale.high, tenths(from), tenths(to))
        };
        let x = axis(&self.x, self.left, self.right);
        let y = format!("{} {}", axis(&self.y, self.bottom, self.top), self.ticks.factor);
        let named = if self.categorical { " data-categories=\"x\"" } else { "" };
        format!("<g class=\"panel\" data-x=\"{x}\" data-y=\"{y}\"{named}>")
    }

    fn curve(&self, points: &[(f64, f64)]) -> Curve {
        Curve::new(points.iter().map(|&(x, y)| {
            (self.x.shows(x) && self.y.shows(y)).then(|| (self.at_x(x), self.at_y(y)))
        }))
    }

    fn draw_axes(&self, svg: &mut Svg, x_ticks: &Ticks, last: bool) {
        let (mut grid, mut minor, mut labels) = (String::new(), String::new(), Svg::default());
        for tick in &self.ticks.ticks {
            let y = self.at_y(tick.value);
            let lines = if tick.label.is_some() { &mut grid } else { &mut minor };
            polyline(lines, &[(self.left, y), (self.right, y)]);
            if let Some(label) = &tick.label {
                let (x, y) = (tenths(self.left - 8.0), tenths(y));
                labels.raw(&format!(
                    "<text class=\"q e\" x=\"{x}\" y=\"{y}\" dy=\".35em\">{}</text>",
                    escape(label)
                ));
            }
        }
        for tick in &x_ticks.ticks {
            let x = self.at_x(tick.value);
            // Categories are apart by themselves.
            if !self.categorical {
                let lines = if tick.label.is_some() { &mut grid } else { &mut minor };
                polyline(lines, &[(x, self.top), (x, self.bottom)]);
            }
            if let (Some(label), true, true) = (&tick.label, last, self.slanted) {
                let label = escape(label);
                let (x, y) = (tenths(x + 6.0), tenths(self.bottom + 16.0));
                labels.raw(&format!(
                    "<text class=\"q e\" x=\"{x}\" y=\"{y}\" transform=\"rotate(-45 {x} {y})\">{label}</text>"
                ));
            } else if let (Some(label), true) = (&tick.label, last) {
                let (x, y) = (tenths(x), tenths(self.bottom + 8.0));
                let lines = self.lines(label);
                let text: String = match &lines[..] {
                    [one] => escape(one),
                    lines => lines.iter().enumerate().map(|(i, line)| below(i, &x, line)).collect(),
                };
                labels.raw(&format!(
                    "<text class=\"q m\" x=\"{x}\" y=\"{y}\" dy=\".9em\">{text}</text>"
                ));
            }
        }
        svg.path("g n", &minor, "");
        svg.path("g", &grid, "");
        let mut axis = String::new();
        polyline(&mut axis, &[(self.left, self.bottom), (self.right, self.bottom)]);
        svg.path("a", &axis, "");
        svg.0.push_str(&labels.0);
    }

    /// Draws bands, faint lines, lines and points in this order; returns the curve of each name.
    fn draw_marks(&self, svg: &mut Svg) -> Vec<(usize, Curve)> {
        let mut curves = Vec::new();
        let marks = || self.panel.marks.iter().zip(&self.styles);
        for (mark, &style) in marks() {
            match mark {
                Mark::Band(band) => {
                    let curve = self.draw_band(svg, &band.points, &band.name, style);
                    curves.push((style, curve));
                }
                Mark::Faint(series) => {
                    let (data, _) = self.curve(&series.points).draw();
                    svg.path(&format!("f {}", style::classes(style)), &data, &series.name);
                }
                _ => {}
            }
        }
        // Bars lie below lines and points, whatever was added first.
        let (mut bars, mut upper, mut crosses) = (Svg::default(), Svg::default(), Svg::default());
        for (mark, &style) in marks() {
            let (name, curve) = match mark {
                Mark::Bars(series) => (&series.name, self.draw_bars(&mut bars, series, style)),
                Mark::Intervals(all) => (&all.name, self.draw_intervals(&mut upper, all, style)),
                Mark::Line(series) | Mark::Points(series) => {
                    let curve = self.curve(&series.points);
                    let dots = if let Mark::Line(_) = mark {
                        let (data, alone) = curve.draw();
                        upper.path(&format!("l {}", style::classes(style)), &data, &series.name);
                        alone
                    } else {
                        let aside = self.aside();
                        let beside = curve.runs.concat().into_iter().map(|(x, y)| (x + aside, y));
                        distinct(&beside.collect::<Vec<_>>())
                    };
                    draw_dots(&mut upper, &dots, &series.name, style);
                    (&series.name, curve)
                }
                _ => continue,
            };
            let mut data = String::new();
            for &(x, y) in &curve.breaks {
                polyline(&mut data, &[(x - 5.0, y - 5.0), (x + 5.0, y + 5.0)]);
                polyline(&mut data, &[(x - 5.0, y + 5.0), (x + 5.0, y - 5.0)]);
            }
            crosses.path(&format!("x h{}", hue(style)), &data, &format!("{name}: no value"));
            curves.push((style, curve));
        }
        [bars, upper, crosses].iter().for_each(|layer| svg.0.push_str(&layer.0));
        curves
    }

    /// Draws a band; its curve runs along the middle.
    fn draw_band(
        &self,
        svg: &mut Svg,
        points: &[(f64, f64, f64)],
        name: &str,
        style: usize,
    ) -> Curve {
        let places: Vec<Option<(f64, f64, f64)>> = points
            .iter()
            .map(|&(x, low, high)| {
                (self.x.shows(x) && self.y.shows(low) && self.y.shows(high))
                    .then(|| (self.at_x(x), self.at_y(high), self.at_y(low)))
            })
            .collect();
        let mut data = String::new();
        for run in places.split(Option::is_none).filter(|run| run.len() > 1) {
            outline(&mut data, &run.iter().flatten().copied().collect::<Vec<_>>());
        }
        svg.path(&format!("b h{}", hue(style)), &data, name);
        Curve::new(places.iter().map(|place| place.map(|(x, a, b)| (x, (a + b) / 2.0))))
    }

    /// The reference values with a place in the frame.
    fn rules(&self) -> impl Iterator<Item = (f64, &str)> {
        self.panel.marks.iter().filter_map(|mark| match mark {
            Mark::Rule { value, label } if self.y.contains(*value) => {
                Some((self.at_y(*value), label.as_str()))
            }
            _ => None,
        })
    }

    fn draw_rules(&self, svg: &mut Svg) {
        for (y, label) in self.rules() {
            let mut data = String::new();
            polyline(&mut data, &[(self.left, y), (self.right, y)]);
            svg.path("r", &data, label);
        }
    }

    /// Writes the labels of the rules above or below their lines, at the left, right or middle: where they
    /// hide the fewest points and lines of curves and no other label. Rules of one label that lie so near
    /// that it could stand for each, as those of several runs do, have it once.
    fn draw_rule_labels(&self, svg: &mut Svg, curves: &[(usize, Curve)]) {
        let mut boxes: Vec<[f64; 4]> = Vec::new();
        let mut labelled: Vec<(f64, &str)> = Vec::new();
        // The axis says it where a label is the value itself.
        let is_tick = |y: f64, label: &str| {
            let mut ticks = self.ticks.ticks.iter();
            ticks.any(|tick| tick.label.as_deref() == Some(label) && self.at_y(tick.value) == y)
        };
        let labelled_rules =
            self.rules().filter(|(y, label)| !label.is_empty() && !is_tick(*y, label));
        for (rule, label) in labelled_rules {
            let near = |&(y, text): &(f64, &str)| text == label && (y - rule).abs() < LINE;
            if labelled.iter().any(near) {
                continue;
            }
            labelled.push((rule, label));
            let label = shorten(label, FONT, self.right - self.left - 16.0);
            let size = width(&label, FONT);
            let space = self.right - self.left - 16.0 - size;
            let mut best: Option<(u64, [f64; 4])> = None;
            for share in [0.0, 1.0, 0.5] {
                for top in [rule - LINE, rule + 1.0] {
                    let x = self.left + 8.0 + space * share;
                    let area = [x, top, x + size, top + LINE];
                    let outside = top < self.top || top + LINE > self.bottom;
                    let taken = boxes.iter().any(|&other| {
                        area[0] < other[2]
                            && other[0] < area[2]
                            && area[1] < other[3]
                            && other[1] < area[3]
                    });
                    let hides = |run: &Vec<Place>| {
                        let ends = run.windows(2).filter(|ends| passes(area, ends[0], ends[1]));
                        ends.count() + run.iter().filter(|&&at| passes(area, at, at)).count()
                    };
                    let runs = curves.iter().flat_map(|(_, curve)| &curve.runs);
                    let cost = runs.map(hides).sum::<usize>() as u64
                        + if taken { 1 << 40 } else { 0 }
                        + if outside { 1 << 30 } else { 0 };
                    if best.is_none_or(|(least, _)| cost < least) {
                        best = Some((cost, area));
                    }
                }
            }
            if let Some((_, area)) = best {
                svg.text("q o", area[0], area[1] + LINE - 6.0, &label);
                boxes.push(area);
            }
        }
    }

    /// Writes the names beside the ends of their curves.
    fn draw_ends(&self, svg: &mut Svg, curves: &[(usize, Curve)]) {
        let end = |entry: &Entry<'_>| {
            let mine = curves.iter().filter(|(style, _)| *style == entry.style);
            mine.rev().find_map(|(_, curve)| curve.end())
        };
        // Sorted before rounding to tenths, so that ends a hair apart still stand in their order.
        let mut ends: Vec<_> = self.entries.iter().map(|entry| (entry, end(entry))).collect();
        let height = |end: Option<Place>| end.map_or(self.bottom, |at| at.1);
        ends.sort_by(|a, b| height(a.1).total_cmp(&height(b.1)));
        let inside = |y: f64| y.clamp(self.top, self.bottom);
        let wanted: Vec<i64> =
            ends.iter().map(|&(_, end)| to_tenths(inside(height(end)))).collect();
        let lines: Vec<usize> = ends.iter().map(|(entry, _)| entry.height()).collect();
        let [gap, top, bottom] = [LINE, self.top, self.bottom].map(to_tenths);
        let places = spread(&wanted, &lines, gap, top, bottom);
        for ((entry, end), y) in ends.into_iter().zip(places) {
            let y = y as f64 / 10.0;
            if let Some((x, from)) = end {
                let mut data = String::new();
                let x = if x < self.right { x } else { self.right };
                let from = inside(from);
                polyline(
                    &mut data,
                    &[(x, from), (self.right + 2.0, from), (self.right + LEADER - 2.0, y)],
                );
                // Dotted where the curve ends early, so that nobody takes the leader for data.
                let early = if x < self.right - 1.0 { "u v" } else { "u" };
                svg.path(&format!("{early} h{}", hue(entry.style)), &data, entry.name);
            }
            entry.draw(svg, self.right + LEADER, y);
        }
    }
}
