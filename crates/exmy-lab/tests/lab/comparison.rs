use exmy_lab::comparison::{
    Curves, constant, differences, differences_of, over_seeds, twins, values,
};
use exmy_lab::plot::{Axis, Figure};

fn curves(name: &str, base: Option<usize>, seeds: &[[f64; 3]]) -> Curves {
    let points = |ys: &[f64; 3]| (1..).map(f64::from).zip(ys.iter().copied()).collect();
    let seeds = (1..).zip(seeds.iter().map(points)).collect();
    Curves { name: name.into(), seeds, base, end: None }
}

#[test]
fn differences_are_taken_within_seeds() {
    let all = [
        curves("f32", None, &[[4.0, 2.0, 1.0], [8.0, 4.0, 2.0]]),
        curves("mxfp4", Some(0), &[[4.0, 2.2, 1.2], [8.0, 4.4, 2.2]]),
    ];
    // The means would be 12 % apart in the second panel of means alone: 20 % and 10 % are 15 %.
    let found = differences_of(&all[1], &all, false).unwrap();
    let last: Vec<f64> = found.iter().map(|(_, points)| points[2].1).collect();
    assert!((last[0] - 20.0).abs() < 1e-9 && (last[1] - 10.0).abs() < 1e-9, "{last:?}");
    let svg = Figure::new("").panel(differences(&all, false).unwrap()).to_svg();
    assert!(svg.contains("difference from f32, %") && svg.contains("+15.00 %"));
    assert_eq!(differences(&all[..1], false), None);
    // Nothing is so many per cent above 0.
    let zero = [curves("f32", None, &[[0.0; 3]]), curves("mxfp4", Some(0), &[[1.0; 3]])];
    assert_eq!(differences(&zero, false), None);
    // What fails does not hide the others.
    let failed = curves("e2m1", Some(0), &[[4.0, 90.0, 900.0], [8.0, 90.0, 900.0]]);
    let svg = Figure::new("").panel(differences(&[&all[..], &[failed]].concat(), false).unwrap());
    let svg = svg.to_svg();
    let axis = svg.split("data-y=\"").nth(1).unwrap().split(' ').nth(1).unwrap();
    assert!(axis.parse::<f64>().unwrap() < 30.0, "{axis}");
    // A seed of which only one has a run is not compared.
    let alone =
        [all[0].clone(), Curves { seeds: [(9, vec![(1.0, 1.0)])].into(), ..all[1].clone() }];
    assert_eq!(differences(&alone, false), None);
}

/// How far something was from the others when it diverged is no result.
#[test]
fn what_diverged_says_so_in_place_of_a_difference() {
    let end = Some("diverged at 2".to_owned());
    let lost = Curves { end, ..curves("mxfp4", Some(0), &[[4.0, 3.9, 3.8]]) };
    let all = [curves("f32", None, &[[4.0; 3]]), lost];
    let svg = Figure::new("").panel(differences(&all, false).unwrap()).to_svg();
    assert!(svg.contains("diverged at 2<") && !svg.contains("-5.00 %"), "{svg}");
}

/// At step 3 the mean of the seeds that are there would fall from 6 to 3: that is no progress.
#[test]
fn a_mean_ends_where_one_of_its_seeds_does() {
    let mut one = curves("f32", None, &[[4.0, 4.0, 3.0], [8.0, 8.0, 7.0]]);
    one.seeds[1].1.pop();
    let points = over_seeds(&one.seeds);
    assert_eq!(points, [(1.0, 6.0, 4.0, 8.0), (2.0, 6.0, 4.0, 8.0)]);
    let svg = Figure::new("").panel(values(Axis::linear("y"), &[one.clone()], false)).to_svg();
    assert!(svg.contains("6.00") && !svg.contains("3.00"), "{svg}");
    // Who has not begun does not count, and whose last value is none says nothing of the others.
    one.seeds[0].1.insert(0, (0.0, 9.0));
    one.seeds.push((3, vec![(0.0, 9.0)]));
    one.seeds.push((4, Vec::new()));
    assert_eq!(over_seeds(&one.seeds), points);
    one.seeds[1].1[1].1 = f64::NAN;
    let svg = Figure::new("").panel(values(Axis::linear("y"), &[one], false)).to_svg();
    assert!(svg.contains("> 6.00<"), "{svg}");
}

#[test]
fn what_is_the_same_is_found() {
    let a = curves("a", None, &[[1.0, 2.0, 3.0]]);
    let all =
        [a.clone(), curves("b", Some(0), &[[1.0, 2.0, 3.5]]), Curves { name: "c".into(), ..a }];
    assert_eq!(twins(&all), [None, None, Some(0)]);
    assert_eq!(constant(&all), None);
    assert_eq!(constant(&[curves("a", None, &[[0.0; 3], [0.0; 3]])]), Some(0.0));
}
