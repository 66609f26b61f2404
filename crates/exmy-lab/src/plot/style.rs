//! Colours, dash patterns and the style sheet.
//!
//! Eight hues, searched for per background under two conditions that a test keeps. Each has a contrast
//! of at least 3:1 with the background (WCAG 2.2, 1.4.11). Any two have a CIELAB distance of at least
//! 29, as seen by normal, protanope, deuteranope and tritanope eyes alike. Eight dash patterns make
//! the same difference in print. Series `i` takes hue `i mod 8`; the pattern walks on one more after
//! each round of hues, so that the first 64 series all differ.
//!
//! The sheet uses plain classes and media queries, no variables and no ids. Several figures can stand in one
//! HTML page, and converters that know neither query fall back to the light, wide form.

use std::{format, string::String};

/// Hues on a light and on a dark background.
pub const HUES: [[&str; 2]; 8] = [
    ["#24292f", "#e6edf3"],
    ["#4829c8", "#3b51f2"],
    ["#10a2b6", "#08c9fb"],
    ["#c28470", "#c92412"],
    ["#126302", "#82aa67"],
    ["#b376f5", "#784aaf"],
    ["#691d79", "#b43970"],
    ["#7e9e1f", "#d7bc15"],
];

/// SVG `stroke-dasharray` of each pattern, in units of the view box.
pub const DASHES: [&str; 8] =
    ["none", "10 3.5", "3 2.5", "13 4 2 4", "22 5", "7 2.5 2 2.5 2 2.5", "1.5 4.5", "12 2 5 2 5 2"];

/// Colours of a grid's values from the lowest on, on a light and on a dark background: the one nearest to
/// the background first. Lightness (CIELAB) goes from 95 to 18 and from 17 to 93 in even steps, the hue
/// from yellow by green to blue.
pub const RAMP: [[&str; STEPS]; 2] = [
    [
        "#faf1c7", "#e1e7af", "#c2dd9d", "#9fd391", "#76c98c", "#43be8c", "#03b092", "#029f94",
        "#009092", "#06808c", "#037185", "#00637d", "#025574", "#00476b", "#003964", "#002b5f",
    ],
    [
        "#00295b", "#003760", "#004468", "#005270", "#006079", "#026e81", "#037c88", "#008c8e",
        "#019b90", "#04ab8e", "#01bc83", "#4bc976", "#80d470", "#acdd6f", "#d5e674", "#fbee80",
    ],
];
/// How many there are.
pub(super) const STEPS: usize = 16;

pub const BACKGROUND: [&str; 2] = ["#ffffff", "#0d1117"];
pub const INK: [&str; 2] = ["#24292f", "#e6edf3"];
pub const MUTED: [&str; 2] = ["#59636e", "#9198a1"];
const GRID: [&str; 2] = ["#e4e7eb", "#262c34"];
const FRAME: [&str; 2] = ["#b1b8c0", "#4a525c"];

/// Width of a figure's view box.
pub(super) const WIDTH: f64 = 720.0;
/// From the edge of the figure to what is drawn.
pub(super) const PAD: f64 = 14.0;
/// Font sizes in units of the view box: on a wide screen, on a narrow one. The layout leaves space
/// for the second, which is the larger: 23 units are 11.4 px when the figure is 358 px wide.
pub(super) const TITLE: [i64; 2] = [20, 28];
/// As [`TITLE`], for all other text.
const TEXT: [i64; 2] = [14, 23];
/// The font size for which space is reserved.
pub(super) const FONT: i64 = TEXT[1];
/// The least distance of two baselines.
pub(super) const LINE: f64 = 26.0;

/// The number of the hue of the `index`-th series.
pub const fn hue(index: usize) -> usize {
    index % HUES.len()
}

/// The classes of the `index`-th series: hue and dash.
pub fn classes(index: usize) -> String {
    format!("h{} d{}", hue(index), (index + index / HUES.len()) % DASHES.len())
}

/// The style sheet, the same for every figure but for the colours of grids, which only those with one
/// need.
pub(super) fn sheet(grids: bool) -> String {
    let mut css = String::from(
        ".exmy{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",\"Noto \
         Sans\",\"DejaVu Sans\",sans-serif;font-variant-numeric:tabular-nums}\n.exmy \
         .t{font-weight:600}\n.exmy .l,.exmy .f,.exmy .k,.exmy \
         .u{fill:none;stroke-linejoin:round;stroke-linecap:butt}\n.exmy .l{stroke-width:1.8}.exmy \
         .f{stroke-width:1;opacity:.28}.exmy .k{stroke-width:2.6}.exmy .u{stroke-width:1;opacity:.6}\n.exmy \
         .b{stroke:none;opacity:.16}.exmy .w{stroke-width:1.5;fill-opacity:.45}.exmy \
         .c{shape-rendering:crispEdges}.exmy .x{fill:none;stroke-width:2.6}\n.exmy .g{stroke-width:1}.exmy \
         .n{opacity:.45}.exmy .a{stroke-width:1;fill:none}\n.exmy .r{stroke-width:1.4;stroke-dasharray:2 \
         4;stroke-linecap:round}\n.exmy .e{text-anchor:end}.exmy .m{text-anchor:middle}\n.exmy \
         .o{paint-order:stroke;stroke-width:5;stroke-linejoin:round}\n",
    );
    for (i, dash) in DASHES.iter().enumerate().skip(1) {
        css += &format!(".exmy .d{i}{{stroke-dasharray:{dash}}}");
    }
    css += "\n.exmy .f,.exmy .x{stroke-dasharray:none}.exmy .v{stroke-dasharray:1 5}\n";
    css += &sizes(0);
    css += &colours(0, grids);
    css += "@media (max-width:600px){\n";
    css += &sizes(1);
    css += "}\n@media (prefers-color-scheme:dark){\n";
    css += &colours(1, grids);
    css += "}\n";
    css
}

fn sizes(narrow: usize) -> String {
    format!(".exmy text{{font-size:{}px}}.exmy .t{{font-size:{}px}}\n", TEXT[narrow], TITLE[narrow])
}

fn colours(dark: usize, grids: bool) -> String {
    let mut css = format!(
        ".exmy:root{{background:{bg}}}.exmy .bg{{fill:{bg}}}.exmy text{{fill:{}}}\
         .exmy .q{{fill:{muted}}}.exmy .g{{stroke:{}}}.exmy .a{{stroke:{}}}\
         .exmy .r{{stroke:{muted}}}.exmy .o{{stroke:{bg}}}\n",
        INK[dark],
        GRID[dark],
        FRAME[dark],
        bg = BACKGROUND[dark],
        muted = MUTED[dark],
    );
    for (i, hue) in HUES.iter().enumerate() {
        css += &format!(
            ".exmy .h{i}{{stroke:{0}}}.exmy .p.h{i},.exmy .b.h{i},.exmy .w.h{i}{{fill:{0}}}",
            hue[dark]
        );
    }
    // The band's outline would double its edge.
    css += "\n.exmy .b{stroke:none}\n";
    if grids {
        for (i, colour) in RAMP[dark].iter().enumerate() {
            css += &format!(".exmy .c{i}{{fill:{colour}}}");
        }
        css.push('\n');
    }
    css
}
