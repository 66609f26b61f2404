use exmy_lab::plot::style::{BACKGROUND, DASHES, HUES, INK, MUTED, RAMP, classes, hue};

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
                    assert!(square >= 29.0 * 29.0, "{} {}: {square}", HUES[i][scheme], hue[scheme]);
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
            assert!(contrast(hue[scheme], background) >= 3.0, "{} on {background}", hue[scheme]);
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
