use exmy_lab::series::{distinct, late};

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
    assert_eq!(said.unwrap(), "Lines that coincide: a = c; b = e.");
    assert_eq!(distinct(lines[..2].to_vec()).1, None);
}

#[test]
fn the_last_part_is_by_steps() {
    let series = [(100.0, 1.0), (200.0, 5.0), (300.0, 7.0)];
    assert_eq!(late(&series, 2.0 / 3.0), 6.0);
    assert_eq!(late(&series, 0.0), 13.0 / 3.0);
    assert!(late(&[], 0.5).is_nan());
}
