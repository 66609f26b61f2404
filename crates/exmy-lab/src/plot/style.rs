//! Colours, dash patterns and the style sheet.
//!
//! Eight hues, searched for per background under two conditions that a test keeps. Each has a contrast
//! of at least 3:1 with the background (WCAG 2.2, 1.4.11). Any two have a CIELAB distance of at least
//! 29, as seen by normal, protanope, deuteranope and tritanope eyes alike. Eight dash patterns make
//! the same difference in print. Series `i` takes hue `i mod 8`; the pattern walks on one more after
//! each round of hues, so that the first 64 series all differ.
//!
//! The sheet uses plain classes and media queries, no variables and no ids: several figures can
//! stand in one HTML page, and converters that know neither query fall back to the light, wide form.

use std::{format, string::String};

/// Hues on a light and on a dark background.
const HUES: [[&str; 2]; 8] = [
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
const DASHES: [&str; 8] =
    ["none", "10 3.5", "3 2.5", "13 4 2 4", "22 5", "7 2.5 2 2.5 2 2.5", "1.5 4.5", "12 2 5 2 5 2"];

/// Colours of a grid's values from the lowest on, on a light and on a dark background: the one nearest to
/// the background first. Lightness (CIELAB) goes from 95 to 18 and from 17 to 93 in even steps, the hue
/// from yellow by green to blue.
const RAMP: [[&str; STEPS]; 2] = [
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

const BACKGROUND: [&str; 2] = ["#ffffff", "#0d1117"];
const INK: [&str; 2] = ["#24292f", "#e6edf3"];
const MUTED: [&str; 2] = ["#59636e", "#9198a1"];
const GRID: [&str; 2] = ["#e4e7eb", "#262c34"];
const FRAME: [&str; 2] = ["#b1b8c0", "#4a525c"];

/// Width of a figure's view box.
pub(super) const WIDTH: f64 = 720.0;
/// From the edge of the figure to what is drawn.
pub(super) const PAD: f64 = 14.0;
/// Font sizes in units of the view box: on a wide screen, on a narrow one. The layout leaves room
/// for the second, which is the larger: 23 units are 11.4 px when the figure is 358 px wide.
pub(super) const TITLE: [i64; 2] = [20, 28];
/// As [`TITLE`], for all other text.
const TEXT: [i64; 2] = [14, 23];
/// The font size for which room is reserved.
pub(super) const FONT: i64 = TEXT[1];
/// The least distance of two baselines.
pub(super) const LINE: f64 = 26.0;

/// The number of the hue of the `index`-th series.
pub(super) const fn hue(index: usize) -> usize {
    index % HUES.len()
}

/// The classes of the `index`-th series: hue and dash.
pub(super) fn classes(index: usize) -> String {
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
        ".exmy:root{{background:{bg}}}.exmy .bg{{fill:{bg}}}.exmy text{{fill:{}}}.exmy .q{{fill:{muted}}}.exmy .g{{stroke:{}}}.exmy \
         .a{{stroke:{}}}.exmy .r{{stroke:{muted}}}.exmy .o{{stroke:{bg}}}\n",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear red, green and blue of an sRGB colour.
    #[expect(clippy::disallowed_methods, reason = "a bound is tested, no bit depends on it")]
    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at: usize| {
            let c = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn apply(matrix: [[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
    }

    /// Relative luminance of WCAG 2.2.
    fn luminance(hex: &str) -> f64 {
        let [r, g, b] = linear(hex);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// CIELAB (1976) at white point D65.
    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        const XYZ: [[f64; 3]; 3] =
            [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
        let [x, y, z] = apply(XYZ, rgb.map(|c| c.clamp(0.0, 1.0)));
        let [x, y, z] = [x / 0.9505, y, z / 1.089]
            .map(|t| if t > 0.008856 { cube_root(t) } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Newton's iteration for the cube root of a number in (0, 1].
    fn cube_root(t: f64) -> f64 {
        (0..60).fold(1.0, |r, _| r - (r * r * r - t) / (3.0 * r * r))
    }

    #[test]
    fn hues_differ_for_colour_blind_readers() {
        // Full dichromacy: Machado, Oliveira, Fernandes, IEEE TVCG 15(6), 2009, table 1.
        let eyes = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ];
        for scheme in 0..2 {
            for eye in eyes {
                let seen = HUES.map(|hue| lab(apply(eye, linear(hue[scheme]))));
                for (i, a) in seen.iter().enumerate() {
                    for (b, hue) in seen[..i].iter().zip(HUES) {
                        let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
                        assert!(
                            square >= 29.0 * 29.0,
                            "{} {}: {square}",
                            HUES[i][scheme],
                            hue[scheme]
                        );
                    }
                }
            }
        }
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn lines_and_text_stand_out_from_the_background() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
        for (scheme, background) in BACKGROUND.iter().enumerate() {
            for hue in HUES {
                assert!(
                    contrast(hue[scheme], background) >= 3.0,
                    "{} on {background}",
                    hue[scheme]
                );
            }
            for text in [INK[scheme], MUTED[scheme]] {
                assert!(contrast(text, background) >= 4.5, "{text} on {background}");
            }
        }
    }

    /// Values are shown by lightness, which every eye sees, and neighbours of the ramp can be distinguished.
    #[test]
    fn the_ramp_goes_one_way() {
        for (scheme, ramp) in RAMP.iter().enumerate() {
            let lightness = ramp.map(|colour| lab(linear(colour))[0]);
            let steps: Vec<f64> = lightness.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let sign = if scheme == 0 { -1.0 } else { 1.0 };
            assert!(steps.iter().all(|step| (4.0..6.5).contains(&(sign * step))), "{steps:?}");
            // The first is the nearest to the background, and even that is seen against it.
            let by_contrast = ramp.map(|colour| contrast(colour, BACKGROUND[scheme]));
            assert!(by_contrast.is_sorted() && by_contrast[0] > 1.1, "{by_contrast:?}");
        }
    }

    /// Two lines of the first sixteen that share a hue, and any two of eight in print without colour, differ
    /// in dashes: in how often they break or in how much of them is drawn.
    #[test]
    fn dashes_differ_where_hues_do_not() {
        // Strokes in a hundred units, and the share that is drawn.
        let pattern = |index: usize| {
            let class = classes(index);
            let dash: usize = class.split_once(" d").unwrap().1.parse().unwrap();
            let parts: Vec<f64> =
                DASHES[dash].split(' ').filter_map(|part| part.parse().ok()).collect();
            let (whole, drawn) = (parts.iter().sum::<f64>(), parts.iter().step_by(2).sum::<f64>());
            match parts.len() {
                0 => (0.0, 1.0),
                count => (100.0 * count as f64 / 2.0 / whole, drawn / whole),
            }
        };
        for i in 0..16 {
            for j in 0..i {
                if hue(i) == hue(j) || (i < 8 && j < 8) {
                    let (a, b) = (pattern(i), pattern(j));
                    let differ = (a.0 - b.0).abs() > 1.5 || (a.1 - b.1).abs() > 0.08;
                    assert!(differ, "{i} {a:?} and {j} {b:?}");
                }
            }
        }
    }

    #[test]
    fn sixty_four_series_all_differ() {
        let all: std::collections::BTreeSet<_> = (0..64).map(classes).collect();
        assert_eq!(all.len(), 64);
        assert_eq!((classes(0), classes(9)), ("h0 d0".into(), "h1 d2".into()));
    }
}
