//! Heat maps, bars and intervals.

use super::*;

/// A relative path's box: x, y, width, height, for the rectangles of bars and cells.
fn boxes(data: &str) -> Vec<[f64; 4]> {
    let spaced = data.replace('-', " -").replace(['l', 'M'], " ");
    let parts = spaced
        .split('Z')
        .map(|part| part.split_whitespace().map(|v| v.parse().expect(v)).collect::<Vec<f64>>());
    let rectangle = |v: Vec<f64>| [v[0], v[1], v[2] + v[4], v[3] + v[5]];
    parts.filter(|v| !v.is_empty()).map(rectangle).collect()
}

#[test]
fn a_grid_is_coloured_by_value() {
    // Row by row from below: 1 10 100 above 1 1 NaN.
    let cells = [1.0, 1.0, f64::NAN, 1.0, 10.0, 100.0];
    let heat = Heat::of_categories(Axis::log("loss (nats)"), 3, cells);
    let svg = Figure::new("grid")
        .x(Axis::categories("activations", ["a", "b<", "c"]))
        .panel(Panel::new(Axis::categories("weights", ["low", "high"])).heat(heat))
        .to_svg();
    let document = parse(&svg);
    // Of each colour the bar has one rectangle; the grid's come after it.
    let of = |colour: &str| paths(&document, &format!("c {colour}"));
    assert_eq!((of("c0").len(), of("c15").len(), of("c5").len()), (2, 2, 1));
    // Neighbours of one value are one rectangle: two cells below, one above.
    let lowest = boxes(of("c0")[1]);
    assert_eq!(lowest.len(), 2);
    assert!((lowest[0][2] / lowest[1][2] - 2.0).abs() < 0.01, "{lowest:?}");
    assert!(lowest[0][1] > lowest[1][1], "the first row is the lowest");
    assert_eq!(boxes(of("c8")[1]).len(), 1, "ten is the middle of one to a hundred");
    assert_eq!(paths(&document, "x h0").len(), 1);
    assert!(svg.contains("× a value without a place"));
    let words = description(&document);
    for part in [
        "Horizontal axis: activations.",
        "loss (nats) from 1 at a, low to 100 at c, high, 1 cells without a value",
        "b<, high: 10",
    ] {
        assert!(words.contains(part), "no `{part}` in `{words}`");
    }
    let labels: Vec<String> =
        document.descendants().filter(|n| class(n).starts_with("q ")).map(text).collect();
    for label in ["low", "high", "a", "b<", "c", "1", "10", "100"] {
        assert!(labels.iter().any(|found| found == label), "no {label} in {labels:?}");
    }
}

#[test]
fn odd_grids_give_sane_pictures() {
    let (tiny, huge) = (f64::from_bits(1), f64::MAX);
    let cases: [&[f64]; 7] = [
        &[],
        &[f64::NAN; 4],
        &[0.0; 4],
        &[-huge, huge, 0.0, 1.0],
        &[tiny, huge, f64::INFINITY, 0.0],
        &[7.0; 4],
        &[1e9, 1e9 + 1e-6, 1e9, 1e9],
    ];
    for cells in cases {
        for value in [Axis::linear("v"), Axis::log("v"), Axis::linear("v").range(-1.0, 1.0)] {
            for x in [Axis::linear("x"), Axis::log("x"), Axis::linear("x").range(0.2, 0.3)] {
                let heat = Heat::new(value.clone(), [0.0, 1.0], [-1.0, 1.0], 2, cells.to_vec());
                parse(
                    &Figure::new("odd")
                        .x(x)
                        .panel(Panel::new(Axis::linear("y")).heat(heat))
                        .to_svg(),
                );
            }
        }
    }
}

#[test]
fn a_large_grid_gives_a_small_file() {
    let draw = |n: usize, value: fn(usize) -> f64| {
        let cells: Vec<f64> = (0..n * n).map(value).collect();
        let heat = Heat::new(Axis::linear("v"), [0.0, 1.0], [0.0, 1.0], n, cells);
        Figure::new("").panel(Panel::new(Axis::linear("")).heat(heat)).to_svg()
    };
    // Every cell another colour than its neighbour, and no cell with a value.
    let noise = draw(1000, |i| ((i * 7919) % 1013) as f64);
    assert!(noise.len() < 500_000, "{} bytes", noise.len());
    assert!(draw(1000, |_| f64::NAN).len() < 80_000);
    assert!(draw(21, |i| (i % 21) as f64).len() < 20_000);
}

#[test]
fn bars_and_intervals_stand_side_by_side() {
    let names = ["f32", "mxfp4 & co", "nvfp4"];
    let interval = |x: f64, value: f64| (x, value - 1.0, value, value + 1.0);
    let svg = Figure::new("gap")
        .x(Axis::categories("recipe", names))
        .panel(
            Panel::new(Axis::linear("gap (%)"))
                .bars(Series::new("a", [(0.0, 4.0), (1.0, -2.0), (2.0, f64::NAN)]))
                .bars(Series::new("b", [(0.0, 2.0), (1.0, 2.0), (2.0, 2.0)]))
                .intervals(Intervals::new("a", [interval(0.0, 4.0), interval(1.0, -2.0)]))
                .intervals(Intervals::new("c", [interval(2.0, 3.0)])),
        )
        .to_svg();
    let document = parse(&svg);
    let bars: Vec<Vec<[f64; 4]>> =
        paths(&document, "w ").iter().skip(2).map(|data| boxes(data)).collect();
    assert_eq!(bars.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3], "after the two samples");
    let [up, down] = [bars[0][0], bars[0][1]];
    // From a common base, one up and one half as far down.
    assert!((up[1] + up[3] - down[1]).abs() < 0.21, "{up:?} {down:?}");
    assert!((up[3] / down[3] - 2.0).abs() < 0.01);
    assert!((bars[1][0][3] * 2.0 - up[3]).abs() < 0.31);
    // Bars that are all high still begin at 0.
    let high = Figure::new("")
        .x(Axis::categories("", ["a", "b"]))
        .panel(Panel::new(Axis::linear("")).bars(Series::new("", [(0.0, 50.0), (1.0, 60.0)])));
    let svg = high.to_svg();
    let pair = boxes(paths(&parse(&svg), "w ")[0]);
    assert!((pair[1][3] / pair[0][3] - 1.2).abs() < 0.01, "{pair:?}");
    // Three names: three slots, no overlap, the bar of b right of that of a.
    assert!(bars[1][0][0] >= up[0] + up[2]);
    assert_eq!(paths(&document, "x h0").len(), 1, "the bar without a value");
    assert_eq!(names_of(&document), ["a", "b", "c"]);
    let words = description(&document);
    for part in ["a: f32 4, mxfp4 & co -2, nvfp4 NaN", "c: nvfp4 3 (2 to 4)"] {
        assert!(words.contains(part), "no `{part}` in `{words}`");
    }
}

/// Each seed is seen beside its mean, one seed has no interval, and what lies at the edge is not cut.
#[test]
fn points_stand_beside_intervals() {
    let svg = Figure::new("")
        .x(Axis::categories("", ["a", "b"]))
        .panel(
            Panel::new(Axis::linear("share").range(0.0, 1.0))
                .intervals(Intervals::new("mean", [(0.0, 0.5, 0.75, 1.0), (1.0, 1.0, 1.0, 1.0)]))
                .points(Series::new("seeds", [(0.0, 0.5), (0.0, 1.0), (1.0, 1.0)])),
        )
        .to_svg();
    let document = parse(&svg);
    // Of each shape, where it begins; the first of each is the sample.
    let places = |kind: &str| -> Vec<f64> {
        let data = paths(&document, kind).concat();
        let starts = data.split('M').skip(1).map(|part| part.split([' ', 'm']).next().unwrap());
        starts.map(|x| x.parse().unwrap()).collect()
    };
    let (means, seeds) = (places("p h0"), places("p h1"));
    assert_eq!((means.len(), seeds.len()), (3, 4));
    let off = [(1, 1), (1, 2), (2, 3)].map(|(mean, seed)| seeds[seed] - means[mean]);
    assert!(off.iter().all(|off| (off - 14.0).abs() < 0.11), "{off:?}");
    // A line and two caps for the interval of the sample, and for that of `a`.
    assert_eq!(places("l h0").len(), 6);
    assert!(description(&document).contains("mean: a 0.75 (0.5 to 1), b 1,"), "{svg}");
    assert!(svg.contains("overflow=\"visible\""));
    let beyond = Panel::new(Axis::linear("").range(0.0, 1.0)).line(line("a", [0.5, 1.1]));
    assert!(!Figure::new("").panel(beyond).to_svg().contains("overflow=\"visible\""));
}

#[test]
fn names_of_categories_have_room() {
    let draw = |names: Vec<String>| {
        let values = (0..names.len()).map(|i| (i as f64, 1.0 + i as f64));
        Figure::new("")
            .x(Axis::categories("", names))
            .panel(Panel::new(Axis::linear("loss")).bars(Series::new("", values)))
            .to_svg()
    };
    let slanted = |svg: &str| svg.matches("rotate(-45").count();
    assert_eq!(slanted(&draw(vec!["f32".into(), "bf16".into()])), 0);
    assert_eq!(slanted(&draw((0..8).map(|i| format!("mxfp8-e4m3-{i}")).collect())), 8);
    // Several words stand below each other, and nothing of them is lost.
    let svg = draw(["NVFP4", "HCP", "CHON", "NVFP4, last", "a", "b"].map(String::from).into());
    let document = parse(&svg);
    let lines = |words: &str| -> Vec<String> {
        let of_name = |n: &Node<'_, '_>| n.has_tag_name("text") && text(*n) == words;
        let names = document.descendants().filter(of_name).flat_map(|n| n.children());
        names.filter(|n| n.has_tag_name("tspan")).map(text).collect()
    };
    assert_eq!(slanted(&svg), 0);
    assert_eq!(lines("NVFP4,last"), ["NVFP4,", "last"]);
    // The first of slanted ones is whole as well: the panel begins farther to the right.
    let svg = draw((0..8).map(|i| format!("all the blocks {i}")).collect());
    assert_eq!(
        (slanted(&svg), svg.contains('…'), svg.contains(">all the blocks 0<")),
        (8, false, true)
    );
    // Very long ones are cut: all of the slanted text stays on the page.
    let svg = draw((0..6).map(|i| format!("{i}{}", " a very long name".repeat(5))).collect());
    let document = parse(&svg);
    let size = document.root_element().attribute("viewBox").expect("a view box");
    let height: f64 = size.split(' ').nth(3).and_then(|v| v.parse().ok()).expect("a height");
    for node in document.descendants().filter(|n| n.attribute("transform").is_some()) {
        // As wide as the widest font makes it: 21 units a character at most, at 45 degrees.
        let length = text(node).chars().count() as f64 * 21.0 * 0.63 * 0.71;
        assert!(number(&node, "x") - length > -21.0, "{}", text(node));
        assert!(number(&node, "y") + length < height + 21.0, "{}", text(node));
    }
    // More categories than fit are labelled in part.
    let many = slanted(&draw((0..200).map(|i| format!("name {i}")).collect()));
    assert!((10..=30).contains(&many), "{many}");
    parse(&Figure::new("").x(Axis::categories("", [""; 0])).to_svg());
}
