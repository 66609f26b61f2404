use exmy_lab::plot::axis::{Axis, Scale};
use exmy_lab::plot::heat::{Heat, step};
use std::vec;
use std::vec::Vec;

#[test]
fn large_grids_are_drawn_by_groups() {
    let scale = Scale { low: 0.0, high: 1.0, log: false };
    // 300 columns: groups of three; 2 rows stay.
    let mut cells: Vec<f64> = (0..600).map(|i| f64::from(i % 3)).collect();
    cells[4] = f64::NAN;
    let heat = Heat::new(Axis::linear(""), [0.0, 1.0], [0.0, 1.0], 300, cells);
    let (columns, rows, means) = heat.grouped(&scale);
    assert_eq!((columns.len(), rows.as_slice(), means.len()), (101, &[0, 1, 2][..], 200));
    assert_eq!((means[0], means[199]), (1.0, 1.0));
    assert!(means[1].is_nan(), "a value that is missing is not averaged away");
    // The last group may be smaller: 130 = 65 groups of two, 257 = 85 of three and one of two.
    let edges = |n: usize| {
        let heat = Heat::new(Axis::linear(""), [0.0, 1.0], [0.0, 1.0], n, vec![0.5; n]);
        heat.grouped(&scale).0
    };
    assert_eq!((edges(128).len(), edges(130).len()), (129, 66));
    assert_eq!(edges(257)[84..], [252, 255, 257]);
}

#[test]
fn steps_are_even_and_go_on_beyond_the_range() {
    let scale = Scale { low: 1.0, high: 17.0, log: false };
    let found = [0.0, 1.0, 1.99, 2.0, 16.9, 17.0, 99.0].map(|value| step(&scale, value));
    assert_eq!(found, [0, 0, 0, 1, 15, 15, 15]);
    let log = Scale { low: 1.0, high: 65536.0, log: true };
    assert_eq!([1.5, 3.0, 48.0].map(|value| step(&log, value)), [0, 1, 5]);
}

#[test]
#[should_panic(expected = "5 cells in rows of 2")]
fn rows_are_whole() {
    let _ = Heat::new(Axis::linear(""), [0.0, 1.0], [0.0, 1.0], 2, [0.0; 5]);
}

#[test]
#[should_panic(expected = "a grid over [1.0, 1.0]")]
fn a_grid_has_an_area() {
    let _ = Heat::new(Axis::linear(""), [1.0, 1.0], [0.0, 1.0], 2, [0.0; 4]);
}
