use exmy_lab::plot::{Axis, Panel};
use exmy_lab::series::{distinct, late, with_seeds};
use exmy_lab::statistics::median;

#[test]
fn lines_that_coincide_are_drawn_once() {
    let line = |name: &str, ys: [f64; 3]| {
        (name.to_owned(), (1..).map(f64::from).zip(ys).collect::<Vec<_>>())
    };
    let all = vec![
        line("a", [4.0, 1.0, f64::NAN]),
        line("b", [0.0, 0.0, 0.0]),
        line("c", [4.01, 1.0, f64::NAN]),
        line("d", [4.0, 1.1, f64::NAN]),
        line("e", [0.0, 0.0, 0.01]),
        line("f", [4.0, 1.0, 4.0]),
    ];
    let (lines, said) = distinct(all);
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "d", "f"]);
    assert_eq!(said.unwrap(), "a = c; b = e");
    assert_eq!(distinct(lines[..2].to_vec()).1, None);
}

#[test]
fn the_last_part_is_by_steps() {
    let series = [(100.0, 1.0), (200.0, 5.0), (300.0, 7.0)];
    assert_eq!(late(&series, 2.0 / 3.0), 6.0);
    assert_eq!(late(&series, 0.0), 13.0 / 3.0);
    assert!(late(&[], 0.5).is_nan());
}

/// Thinned curves have steps that others lack: the middle of all is drawn where all have one.
#[test]
fn seeds_meet_at_the_steps_that_they_share() {
    let curve = |(seed, steps): (u32, &&[u32])| -> Vec<(f64, f64)> {
        steps.iter().map(|&step| (f64::from(step), f64::from(step * step + seed))).collect()
    };
    let drawn = |seeds: &[&[u32]]| {
        let seeds: Vec<_> = (0..).zip(seeds).map(curve).collect();
        with_seeds(Panel::new(Axis::linear("y")), "a", &seeds, median, |last| last.to_string())
    };
    // One ends early, and is drawn as far as it goes.
    let thinned = drawn(&[&[1, 10, 18, 19, 20, 30], &[1, 8, 9, 10, 20], &[1, 10, 20, 30]]);
    assert_eq!(thinned, drawn(&[&[1, 10, 20, 30], &[1, 10, 20], &[1, 10, 20, 30]]));
}
