//! Figures as a reader meets them: the finished SVG, read back by an XML parser.
//!
//! `tests/plot/small.svg` is a figure compared byte by byte. After a wanted change of the drawing,
//! write it anew with `EXMY_BLESS=1 cargo test -p exmy-lab --test plot` and look at it.

mod crowd;
mod grids;

use exmy_lab::plot::{Axis, Band, Figure, Heat, Intervals, Panel, Series};
use roxmltree::{Document, Node};
use std::path::Path;

fn line(name: &str, ys: impl IntoIterator<Item = f64>) -> Series {
    Series::new(name, ys.into_iter().enumerate().map(|(i, y)| (i as f64, y)))
}

/// Reads a figure; `Document::parse` fails on anything that is not well-formed XML.
fn parse(svg: &str) -> Document<'_> {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(
                !value.contains("NaN") && !value.contains("inf"),
                "{}={value}",
                attribute.name()
            );
        }
        if node.has_tag_name("path") {
            assert!(node.attribute("d").is_some_and(|d| d.starts_with('M') && d.len() > 4));
        }
    }
    document
}

fn class<'a>(node: &Node<'a, '_>) -> &'a str {
    node.attribute("class").unwrap_or("")
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|n| n.text()).collect()
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|value| value.parse().ok()).expect(name)
}

/// The texts beside the curves or in the rows above, with their places.
fn names(document: &Document<'_>) -> Vec<(f64, f64, String)> {
    let is_name = |n: &Node<'_, '_>| n.has_tag_name("text") && class(n).is_empty();
    document
        .descendants()
        .filter(is_name)
        .map(|n| (number(&n, "x"), number(&n, "y"), text(n)))
        .collect()
}

fn small() -> Figure {
    let f32 = [5.5, 3.0, 2.25, 2.0, 1.95];
    let fp4 = [5.5, 3.2, f64::NAN, f64::NAN, f64::NAN];
    Figure::new("Loss")
        .subtitle("a small figure")
        .x(Axis::linear("step"))
        .panel(
            Panel::new(Axis::linear("loss (nats/byte)"))
                .height_share(2.0)
                .band(Band::new(
                    "f32",
                    (0..5).map(|i| (f64::from(i), f32[i as usize] - 0.2, f32[i as usize] + 0.2)),
                ))
                .faint(line("f32", [5.6, 2.9, 2.3, 1.9, 2.0]))
                .line(line("f32", f32).note("1.950"))
                .line(line("mxfp4", fp4))
                .rule(1.8, "entropy"),
        )
        .panel(Panel::new(Axis::log("norm")).points(line("f32", [1.0, 3.0, 10.0, 30.0, 100.0])))
}

#[test]
fn a_small_figure_has_these_bytes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plot/small.svg");
    let svg = small().to_svg();
    parse(&svg);
    if std::env::var_os("EXMY_BLESS").is_some() {
        std::fs::write(path, &svg).expect("the golden figure can be written");
    }
    let golden = std::fs::read_to_string(path).expect("the golden figure is committed");
    let first = svg.lines().zip(golden.lines()).find(|(new, old)| new != old);
    assert!(svg == golden, "the drawing has changed, first at {first:?}");
}

#[test]
fn equal_figures_give_equal_bytes() {
    assert_eq!(small().to_svg(), small().to_svg());
    assert_eq!(small().clone().to_svg(), small().to_svg());
}

#[test]
fn a_figure_describes_itself_and_needs_nothing_else() {
    let svg = small().to_svg();
    let document = parse(&svg);
    let root = document.root_element();
    assert_eq!((root.attribute("role"), root.attribute("aria-label")), (Some("img"), Some("Loss")));
    assert_eq!(root.attribute("width"), Some("100%"));
    let mut children = root.children().filter(Node::is_element);
    assert_eq!(children.next().map(text).as_deref(), Some("Loss"));
    let description = children.next().map(text).expect("a description");
    for part in ["step from 0 to 4", "f32 ends at 1.95", "mxfp4 ends at 3.2", "entropy at 1.8"] {
        assert!(description.contains(part), "no `{part}` in `{description}`");
    }
    assert!(svg.contains("prefers-color-scheme:dark"));
    for foreign in ["href", "url(", "@import", "<script", " id="] {
        assert!(!svg.contains(foreign), "{foreign}");
    }
}

#[test]
fn names_may_hold_markup() {
    let name = "a<b>&\"c\"'\u{0}]]>";
    let svg = Figure::new(name)
        .subtitle(name)
        .x(Axis::linear(name))
        .panel(
            Panel::new(Axis::linear(name))
                .line(line(name, [1.0, 2.0, f64::NAN]).note("<&"))
                .points(line(name, [1.0]))
                .rule(1.0, name),
        )
        .to_svg();
    let document = parse(&svg);
    let wanted = name.replace('\0', "\\u{0}");
    assert_eq!(document.root_element().attribute("aria-label"), Some(wanted.as_str()));
    assert!(names(&document)[0].2.starts_with(&wanted));
}

#[test]
fn names_of_coinciding_curves_do_not_touch() {
    for count in 1..=30 {
        let panel = (0..count).fold(Panel::new(Axis::linear("loss")), |panel, i| {
            // Ends differ by a thousandth of a unit of the picture.
            let gap = f64::from(i * 7 % 30) * 1e-5;
            panel.line(line(
                &format!("series {i}"),
                (0..50).map(|k| 2.0 + gap + 3.0 / f64::from(k + 1)),
            ))
        });
        let svg = Figure::new("many").panel(panel).to_svg();
        let document = parse(&svg);
        let found = names(&document);
        assert_eq!(found.len(), count as usize);
        let beside = found.iter().all(|name| name.0 == found[0].0);
        assert!(beside || count > 12, "{count} names do not fit beside the panel");
        for (i, a) in found.iter().enumerate() {
            assert!((0.0..720.0).contains(&a.0));
            for b in &found[..i] {
                let apart = (a.1 - b.1).abs() >= 24.0 || (a.0 - b.0).abs() >= 60.0;
                assert!(apart, "{a:?} and {b:?}");
            }
        }
        if beside {
            // From top to bottom as the curves end.
            let mut by_height = found.clone();
            by_height.sort_by(|a, b| a.1.total_cmp(&b.1));
            let gaps = by_height.iter().map(|name| name.2[7..].parse::<i32>().unwrap() * 7 % 30);
            assert!(gaps.clone().zip(gaps.skip(1)).all(|(upper, lower)| upper > lower));
        }
    }
}

#[test]
fn the_same_name_looks_the_same_in_every_panel() {
    let svg = Figure::new("")
        .panel(
            Panel::new(Axis::linear("a"))
                .line(line("f32", [1.0, 2.0]))
                .line(line("bf16", [2.0, 2.0])),
        )
        .panel(Panel::new(Axis::linear("b")).line(line("bf16", [0.1, 0.2])))
        .to_svg();
    let document = parse(&svg);
    let styles: Vec<(String, &str)> = document
        .descendants()
        .filter(|n| n.has_tag_name("path") && class(n).starts_with("l "))
        .map(|n| (text(n), class(&n)))
        .collect();
    let expected = [("f32", "l h0 d0"), ("bf16", "l h1 d1"), ("bf16", "l h1 d1")];
    assert_eq!(styles, expected.map(|(name, style)| (name.to_string(), style)));
}

#[test]
fn a_diverged_run_is_marked_where_it_ends() {
    let crosses = |svg: &str| {
        let document = parse(svg);
        let found: Vec<_> =
            document.descendants().filter(|n| class(n).starts_with("x ")).map(text).collect();
        (found, svg.contains("NaN, ±∞"))
    };
    let draw = |axis: Axis, ys: &[f64]| {
        Figure::new("").panel(Panel::new(axis).line(line("e2m1", ys.iter().copied()))).to_svg()
    };
    let marked = (vec!["e2m1: no value".to_string()], true);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(crosses(&draw(Axis::linear("loss"), &[3.0, 2.0, bad, bad])), marked);
        assert_eq!(crosses(&draw(Axis::linear("loss"), &[bad, 2.0, 3.0])), marked);
    }
    assert_eq!(crosses(&draw(Axis::log("loss"), &[3.0, 0.0, 2.0])), marked);
    assert_eq!(crosses(&draw(Axis::linear("loss"), &[3.0, 0.0, 2.0])), (vec![], false));
    // Nothing but NaN: the series is still named, and said to be empty.
    let svg = draw(Axis::linear("loss"), &[f64::NAN; 3]);
    assert_eq!(names(&parse(&svg))[0].2, "e2m1 no values");
    assert!(svg.contains("nothing to draw"));
}

#[test]
fn odd_data_give_sane_pictures() {
    let (tiny, huge) = (f64::from_bits(1), f64::MAX);
    let cases: [&[f64]; 12] = [
        &[],
        &[1.0],
        &[0.0, 0.0],
        &[7.0, 7.0, 7.0],
        &[f64::NAN],
        &[-huge, huge],
        &[huge],
        &[tiny],
        &[tiny, huge],
        &[1e300, -1e-300, f64::INFINITY],
        &[1e9, 1e9 + 1e-6],
        &[-3.0, -2.0],
    ];
    for ys in cases {
        for y_axis in [Axis::linear("y"), Axis::log("y"), Axis::log("y").range(0.5, 2.0)] {
            for x_axis in [Axis::linear("x"), Axis::log("x"), Axis::linear("x").range(0.5, 0.75)] {
                let swapped = Series::new("b", ys.iter().map(|&y| (y, 1.0)));
                let panel = Panel::new(y_axis.clone())
                    .line(line("a", ys.iter().copied()))
                    .points(swapped)
                    .band(Band::new("c", ys.iter().map(|&y| (y, y, 2.0 * y))))
                    .rule(ys.first().copied().unwrap_or(f64::NAN), "rule");
                let svg = Figure::new("odd").x(x_axis).panel(panel).to_svg();
                let document = parse(&svg);
                let ticks = document.descendants().filter(|n| class(n) == "q e").count();
                assert!((1..=24).contains(&ticks), "{ticks} ticks for {ys:?}");
                assert_eq!(names(&document).len(), 3);
            }
        }
    }
    parse(&Figure::new("").to_svg());
    parse(&Figure::new("no marks").panel(Panel::new(Axis::linear(""))).to_svg());
}

#[test]
fn a_long_series_gives_a_short_file_with_its_peak() {
    // A sawtooth in 0..=1 with one peak of 2, which must touch the top of the fitted range.
    let ys = |n: u32| (0..n).map(move |i| if i == n / 3 { 2.0 } else { f64::from(i % 97) / 96.0 });
    let draw = |n: u32| {
        let axis = Axis::linear("").range(0.0, 2.0);
        Figure::new("").panel(Panel::new(axis).line(line("", ys(n)))).to_svg()
    };
    let svg = draw(100_000);
    assert!(svg.len() < 40_000, "{} bytes", svg.len());
    assert!(draw(1_000_000).len() < 40_000);
    let document = parse(&svg);
    let path = document.descendants().find(|n| class(n).starts_with("l ")).expect("the line");
    let numbers = path.attribute("d").expect("data").replace('-', " -").replace(['M', 'l'], " ");
    let numbers: Vec<f64> = numbers.split_whitespace().map(|v| v.parse().expect(v)).collect();
    let mut y = 0.0;
    let mut top = f64::MAX;
    for step in numbers.chunks(2) {
        y += step[1];
        top = top.min(y);
    }
    let frame = document.descendants().filter(|n| n.has_tag_name("svg")).nth(1).expect("the frame");
    assert!((top - number(&frame, "y")).abs() < 0.05, "peak at {top}");
}

#[test]
fn axes_of_counts_have_no_fractions() {
    let ticks = |axis: Axis| {
        let panel = Panel::new(Axis::log("loss")).line(line("a", [1.0, 10.0, 100.0]));
        let svg = Figure::new("").x(axis).panel(panel).to_svg();
        let document = parse(&svg);
        let below =
            document.descendants().filter(|n| class(n) == "q m" && n.attribute("dy").is_some());
        below.map(text).collect::<Vec<_>>()
    };
    assert!(ticks(Axis::linear("x")).contains(&"0.5".into()));
    assert_eq!(ticks(Axis::whole("x")), ["0", "1", "2"]);
}

/// The vertical axis is fitted to where curves end up, with two labels there, whatever they did before.
#[test]
fn settled_axes_show_the_end() {
    let ys = |i: u32| 1.4 + 0.02 * f64::from(i % 2) + 60.0 / f64::from(1 + i * i);
    let spike = |i: u32| if i == 700 { 1e9 } else { ys(i) };
    let points = |of: &dyn Fn(u32) -> f64| -> Vec<(f64, f64)> {
        (0..1000).map(|i| (f64::from(i), of(i))).collect()
    };
    for axis in [Axis::linear("loss"), Axis::log("loss")] {
        let panel = Panel::new(axis)
            .faint(Series::new("a", points(&|i| 9.0 * ys(i))))
            .line(Series::new("a", points(&ys)))
            .line(Series::new("b", points(&spike)))
            .settled();
        let svg = Figure::new("").panel(panel).to_svg();
        let document = parse(&svg);
        let group = document.descendants().find(|n| class(n) == "panel").expect("a panel");
        let ends: Vec<f64> = group
            .attribute("data-y")
            .expect("its axis")
            .split(' ')
            .take(2)
            .map(|end| end.parse().unwrap())
            .collect();
        assert!(1.39 < ends[0] && ends[0] < 1.4 && 1.42 < ends[1] && ends[1] < 1.44, "{ends:?}");
        let labels = document.descendants().filter(|n| class(n) == "q e").map(text);
        let inside = labels.filter(|text| text.parse().is_ok_and(|y| ends[0] < y && y < ends[1]));
        assert!(inside.count() >= 2);
    }
    // A run that ends in the first tenth leaves nothing to fit to.
    let early = Panel::new(Axis::linear("")).line(Series::new("a", [(0.0, 3.0), (1.0, 2.0)]));
    let svg = Figure::new("").x(Axis::linear("").range(0.0, 100.0)).panel(early.settled()).to_svg();
    assert!(!svg.contains("nothing to draw"));
}

/// What is drawn stands in the table, a row for each place and a column for each line.
#[test]
fn pictures_are_tables_too() {
    let csv = small().to_csv(100);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "step,loss (nats/byte): f32 low,loss (nats/byte): f32 high,loss (nats/byte): f32,\
         loss (nats/byte): mxfp4,norm: f32"
    );
    assert_eq!(lines[1], "0,5.3,5.7,5.5,5.5,1");
    assert_eq!((lines[3], lines.len()), ("2,2.05,2.45,2.25,NaN,10", 6));
    let long = Figure::new("").panel(
        Panel::new(Axis::linear("y")).line(line("a, \"b\"", (0..1000).map(|i| f64::from(i) / 3.0))),
    );
    let csv = long.to_csv(100);
    assert!(
        csv.starts_with("x,\"a, \"\"b\"\"\"\n9,3\n19,6.33333\n") && csv.ends_with("\n999,333\n")
    );
    let seeds = Figure::new("").x(Axis::categories("recipe", ["f32", "a,b"])).panel(
        Panel::new(Axis::linear("gap"))
            .intervals(Intervals::new("mean", [(0.0, -1.0, 0.0, 1.0), (1.0, 1.0, 2.0, 3.0)]))
            .points(Series::new("seeds", [(0.0, -0.5), (0.0, 0.5), (1.0, 2.0)])),
    );
    assert_eq!(
        seeds.to_csv(9),
        "recipe,mean,mean low,mean high,seeds,seeds 2\nf32,0,-1,1,-0.5,0.5\n\"a,b\",2,1,3,2,\n"
    );
    let heat = Heat::of_categories(Axis::linear("loss"), 2, [1.0, 2.0, 3.0, 4.0]);
    let grid = Figure::new("")
        .x(Axis::categories("wide", ["l", "r"]))
        .panel(Panel::new(Axis::categories("high", ["low", "top"])).heat(heat));
    assert_eq!(grid.to_csv(9), "wide,low,top\nl,1,3\nr,2,4\n");
}

#[test]
fn many_names_stand_in_rows_once() {
    let panel = |label: &str| {
        (0..20).fold(Panel::new(Axis::linear(label)), |panel, i| {
            panel.line(line(&format!("s{i}"), [1.0, 2.0]))
        })
    };
    let svg = Figure::new("").panel(panel("a")).panel(panel("b")).to_svg();
    assert_eq!(names(&parse(&svg)).len(), 20);
}

/// A figure of two panels with the same names and other notes.
fn noted(names: &[String], note: impl Fn(usize) -> String) -> String {
    let panel = |share: f64| {
        names.iter().enumerate().fold(
            Panel::new(Axis::linear("loss")).height_share(share),
            |panel, (i, name)| {
                let end = share * i as f64;
                panel.line(line(name, [3.0, 2.0 + end]).note(note(i * 10 + share as usize)))
            },
        )
    };
    Figure::new("").panel(panel(2.0)).panel(panel(1.0)).to_svg()
}

#[test]
fn long_names_stay_apart_and_notes_keep_their_numbers() {
    let recipe = "bitred-e7m7+bias=keep-low+clip=outer";
    let sets: [fn(&str, usize) -> String; 6] = [
        |_, i| {
            format!("BF16 for the {} third of the run", ["first", "last", "second", "other"][i % 4])
        },
        |_, i| format!("bf16_{}", ["act", "act_all", "weights_of_all_layers", "norms"][i % 4]),
        |recipe, i| format!("{recipe}+rate={i}+seed=7"),
        |recipe, i| format!("seed {i}: {recipe}+round=stochastic {}", recipe.repeat(i % 3)),
        |recipe, i| format!("{}{i}{}", recipe.replace('+', "x"), "y".repeat(60)),
        |_, i| format!("{}{}", "z".repeat(100), if i == 0 { "" } else { "a" }),
    ];
    for (set, count) in sets.iter().flat_map(|set| [1, 2, 4, 10, 20].map(|count| (set, count))) {
        let mut wanted: Vec<String> = (0..count).map(|i| set(recipe, i)).collect();
        wanted.sort();
        wanted.dedup();
        let svg = noted(&wanted, |i| format!("diverged at {}", 1000 + i));
        let document = parse(&svg);
        let legend: Vec<_> = document
            .descendants()
            .filter(|n| n.has_tag_name("text") && class(n).is_empty())
            .collect();
        assert!(legend.len() >= wanted.len());
        let mut found: Vec<(String, String)> = Vec::new();
        for entry in legend {
            let note: String = entry.children().filter(|n| class(n) == "q").map(text).collect();
            let name: String = entry.children().filter(|n| class(n) != "q").map(text).collect();
            let digits: String = note.chars().filter(char::is_ascii_digit).collect();
            assert_eq!(digits.len(), 4, "{name}: {note}");
            // No line leaves the page.
            let lines = entry.children().filter(|n| n.is_text() || n.has_tag_name("tspan"));
            for part in lines {
                let longest = text(part).trim_end().chars().count() as f64 * 21.0 * 0.63;
                assert!(number(&entry, "x") + longest < 760.0, "{}", text(part));
            }
            found.push((digits, name.trim_end().into()));
        }
        for (i, (a, name)) in found.iter().enumerate() {
            for (b, other) in &found[..i] {
                // The last digit is the panel's; panels may have other room for the same name.
                assert!(a[..3] == b[..3] || name != other, "{name} of {a} and {b}");
            }
        }
    }
}

#[test]
fn long_names_are_whole_where_there_is_room() {
    let names =
        ["first and last layer in f32", "BF16 for the first third", "BF16 for the last third"];
    let svg = noted(&names.map(String::from), |i| format!("diverged at {}", 1000 + i));
    let found = names_of(&parse(&svg));
    for (i, name) in names.iter().enumerate() {
        assert!(found.contains(&format!("{name} diverged at {}", 1002 + i * 10)), "{found:?}");
    }
    // The lower panel has no room for two lines of each, but for all numbers.
    let short = found.iter().filter(|name| name.contains('…'));
    let numbers: Vec<bool> = short.map(|name| name.contains(" 10")).collect();
    assert_eq!(numbers, [true; 3], "{found:?}");
    // Twelve of three lines have no room beside the panel: rows above it.
    let many: Vec<String> = (0..12).map(|i| format!("{} in run {i}", names[0])).collect();
    let svg = noted(&many, |_| String::new());
    let document = parse(&svg);
    let found = names_of(&document);
    assert!(found == many, "{found:?}");
}

#[test]
fn long_categories_stay_apart() {
    let names = ["low", "high"].map(|end| format!("weights of all layers but the {end} ones"));
    let values = [(0.0, 1.0), (1.0, 2.0)];
    let cells = [1.0, 2.0, 3.0, 4.0];
    let svg = Figure::new("")
        .x(Axis::categories("", names.clone()))
        .panel(Panel::new(Axis::linear("loss")).bars(Series::new("", values)))
        .panel(Panel::new(Axis::categories("", names)).heat(Heat::of_categories(
            Axis::linear("v"),
            2,
            cells,
        )))
        .to_svg();
    let document = parse(&svg);
    let of = |wanted: &str| -> Vec<String> {
        document.descendants().filter(|n| class(n) == wanted).map(text).collect()
    };
    let cut: Vec<String> = of("q e").into_iter().filter(|label| label.contains('…')).collect();
    assert_eq!(cut.len(), 2, "{cut:?}");
    for end in ["low", "high"] {
        assert_eq!(cut.iter().filter(|label| label.contains(end)).count(), 1, "{cut:?}");
        // Below the panel there is room for lines.
        let whole = format!("weights of all layersbut the {end} ones");
        assert!(of("q m").contains(&whole), "{:?}", of("q m"));
    }
}

#[test]
fn rules_at_one_place_are_named_once() {
    let panel = Panel::new(Axis::linear("cos").range(0.0, 1.0)).line(line("a", [0.0, 1.0]));
    let panel = [0.0, 0.001, 0.9].into_iter().fold(panel, |p, y| p.rule(y, "random directions"));
    let svg = Figure::new("").panel(panel).to_svg();
    let document = parse(&svg);
    assert_eq!(document.descendants().filter(|n| class(n) == "q o").count(), 2);
    assert_eq!(paths(&document, "r").len(), 3);
    // A label stands beside a line that has no point near it: at the left it would be crossed.
    let steep = Series::new("a", [(0.0, 0.55), (2.0, 0.3), (10.0, 0.0)]);
    let panel = Panel::new(Axis::linear("gain").range(0.0, 1.0)).line(steep);
    let svg = Figure::new("").panel(panel.rule(0.5, "7/8 of all").rule(1.0, "top")).to_svg();
    let document = parse(&svg);
    let left = |words: &str| {
        let mut labels = document.descendants().filter(|n| class(n) == "q o");
        labels.find(|n| text(*n) == words).map(|n| number(&n, "x")).expect("a label")
    };
    assert!(left("7/8 of all") > left("top") + 100.0, "{svg}");
    // The axis says `0.4` already.
    let panel = Panel::new(Axis::linear("cos").range(0.0, 1.0)).line(line("a", [0.0, 1.0]));
    let svg = Figure::new("").panel(panel.rule(0.4, "0.4").rule(0.25, "1/4")).to_svg();
    let document = parse(&svg);
    let labels = document.descendants().filter(|n| class(n) == "q o").map(text);
    assert_eq!(labels.collect::<Vec<_>>(), ["1/4"]);
}

/// Pictures of the studies that are committed: no two names of a panel read the same, and each stands on a
/// page that has no more than six.
#[test]
fn committed_pictures_tell_their_names_apart() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies");
    // A packaged crate has no documents.
    let Ok(pictures) = std::fs::read_dir(studies.join("pictures")) else { return };
    let pages = ["bit-reduction", "mx-instabilities", "nvfp4-outliers"]
        .map(|page| std::fs::read_to_string(studies.join(format!("{page}.md"))).expect(page));
    for page in &pages {
        assert!((1..=6).contains(&page.matches("](pictures/").count()), "{page}");
    }
    for path in pictures.map(|picture| picture.unwrap().path()) {
        let svg = std::fs::read_to_string(&path).expect("a committed picture can be read");
        distinguish(&svg, &path);
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in ASCII");
        let link = format!("](pictures/{name})");
        assert_eq!(pages.iter().filter(|page| page.contains(&link)).count(), 1, "{name}");
    }
}

fn distinguish(svg: &str, path: &Path) {
    let document = parse(svg);
    // The sample of a line precedes its name, and says by hue and dashes which series that is.
    let mut found: Vec<(String, [Option<String>; 2])> = Vec::new();
    let mut style = [None, None];
    for node in document.descendants() {
        if node.has_tag_name("path") {
            let part = |start| {
                let mut parts = class(&node).split(' ').skip(1);
                parts.find(|part| part.starts_with(start)).map(str::to_owned)
            };
            style = ['h', 'd'].map(part);
        } else if node.has_tag_name("text") && class(&node).is_empty() {
            let name = node.children().filter(|n| class(n) != "q").map(text).collect::<String>();
            found.push((name.trim_end().into(), style.clone()));
        }
    }
    for (i, (name, style)) in found.iter().enumerate() {
        let differs = |other: &[Option<String>; 2]| {
            style.iter().zip(other).any(|(a, b)| a.is_some() && b.is_some() && a != b)
        };
        let other = found[..i].iter().find(|(known, other)| known == name && differs(other));
        assert!(other.is_none(), "{path:?}: two names read `{name}`");
    }
}

/// Paths of a class, with their data.
fn paths<'a>(document: &'a Document<'_>, wanted: &str) -> Vec<&'a str> {
    let of_class = |n: &Node<'_, '_>| n.has_tag_name("path") && class(n).starts_with(wanted);
    document.descendants().filter(of_class).filter_map(|n| n.attribute("d")).collect()
}

fn description<'a>(document: &'a Document<'_>) -> &'a str {
    document.descendants().find(|n| n.has_tag_name("desc")).and_then(|n| n.text()).expect("desc")
}

fn names_of(document: &Document<'_>) -> Vec<String> {
    names(document).into_iter().map(|(_, _, name)| name).collect()
}
