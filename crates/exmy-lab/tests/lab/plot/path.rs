use exmy_lab::plot::path::{Curve, Place, outline, polyline, thin};
use std::string::String;
use std::vec;
use std::vec::Vec;

#[test]
fn breaks_split_and_are_marked_once() {
    let curve =
        Curve::new([None, Some((1.0, 1.0)), Some((2.0, 2.0)), None, None, Some((5.0, 5.0)), None]);
    assert_eq!(curve.runs, [vec![(1.0, 1.0), (2.0, 2.0)], vec![(5.0, 5.0)]]);
    assert_eq!(curve.breaks, [(1.0, 1.0), (2.0, 2.0), (5.0, 5.0)]);
    assert_eq!(curve.draw(), ("M1 1l1 1".into(), vec![(5.0, 5.0)]));
    assert_eq!(Curve::new([None, None]), Curve::default());
}

/// A label on the right belongs to what lies there, whichever way the points are joined.
#[test]
fn the_end_is_the_rightmost_place() {
    let of = |points: &[Place]| Curve::new(points.iter().copied().map(Some)).end();
    assert_eq!(of(&[(1.0, 5.0), (2.0, 6.0), (3.0, 7.0)]), Some((3.0, 7.0)));
    assert_eq!(of(&[(3.0, 7.0), (2.0, 6.0), (1.0, 5.0)]), Some((3.0, 7.0)));
    assert_eq!(of(&[(3.0, 7.0), (1.0, 6.0), (3.0, 5.0)]), Some((3.0, 5.0)));
    assert_eq!(of(&[]), None);
}

#[test]
fn thinning_keeps_the_extremes_of_each_column() {
    // 100 000 points in 100 columns: a saw of period 7, one spike up and one down.
    let mut points: Vec<Place> =
        (0..100_000_u32).map(|i| (f64::from(i) / 1000.0, f64::from(i % 7))).collect();
    points[31_415].1 = -50.0;
    points[77_777].1 = 99.0;
    let kept = thin(&points);
    assert!(kept.len() <= 400, "{} points", kept.len());
    assert!(kept.contains(&points[31_415]) && kept.contains(&points[77_777]));
    assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[99_999]));
    assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for column in 0..100 {
        let inside = |p: &&Place| (p.0 as i32) == column;
        let extremes = |points: &[Place]| {
            let ys: Vec<f64> = points.iter().filter(inside).map(|p| p.1).collect();
            (
                ys.iter().copied().fold(f64::MAX, f64::min),
                ys.iter().copied().fold(f64::MIN, f64::max),
            )
        };
        assert_eq!(extremes(&points), extremes(&kept), "column {column}");
    }
    // Few points stay as they are.
    assert_eq!(thin(&points[..4]), points[..4]);
}

#[test]
fn a_path_of_equal_points_is_still_a_path() {
    let mut data = String::new();
    polyline(&mut data, &[(1.0, 1.0), (1.01, 1.0), (1.02, 1.0), (3.0, 2.26)]);
    assert_eq!(data, "M1 1l0 0 2 1.3");
    data.clear();
    outline(&mut data, &[(0.0, 1.0, 2.0), (5.0, 1.0, 3.0)]);
    assert_eq!(data, "M0 1l5 0 0 2-5-1Z");
}
