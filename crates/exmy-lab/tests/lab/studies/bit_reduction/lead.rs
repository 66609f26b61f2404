use exmy_lab::studies::bit_reduction::lead::{Points, Risen, around, count, risen, scatter};

fn curve(values: &[f64]) -> Points {
    values.iter().enumerate().map(|(i, value)| (25.0 * i as f64, *value)).collect()
}

#[test]
fn curves_rise_where_they_leave_the_scatter_of_the_reference() {
    // At each step two seeds 0.2 apart: a standard deviation of 0.2 / sqrt 2.
    let seeds = [curve(&[1.0, 2.0, 3.0, 2.0]), curve(&[1.2, 2.2, 2.8, 2.2])];
    let found = scatter(&seeds).unwrap();
    assert!((found - 0.02f64.sqrt()).abs() < 1e-12, "{found}");
    assert_eq!(scatter(&seeds[..1]), None, "one seed has none");
    let flat = curve(&[1.0; 6]);
    let limit = 0.5;
    assert_eq!(risen(&curve(&[1.0, 1.6, 1.2, 1.6, 1.7, 2.0]), &flat, limit, true), Some(75.0));
    assert_eq!(risen(&curve(&[1.0, 1.6, 1.2, 1.6, 1.2, 2.0]), &flat, limit, true), None);
    // The run ends after three measurements.
    assert_eq!(risen(&curve(&[1.0, 1.0, 1.1]), &flat, limit, true), Some(75.0));
    assert_eq!(risen(&curve(&[1.0, 1.0, 1.1]), &flat, limit, false), None);
}

#[test]
fn what_rises_first_is_counted() {
    let run = |sharpness, loss| Risen { sharpness, loss };
    let (first, alone) = (run(Some(50.0), Some(100.0)), run(Some(50.0), None));
    let (later, tie) = (run(None, Some(25.0)), run(Some(25.0), Some(25.0)));
    let groups = |seeds: [&[Risen]; 3]| -> Vec<Vec<Risen>> {
        (0..seeds[0].len()).map(|i| seeds.map(|runs| runs[i]).to_vec()).collect()
    };
    let (holds, text) = count(&groups([&[first, first, alone], &[first, tie, tie], &[first; 3]]));
    assert!(!holds, "1, 1/3 and 1 scatter too much: {text}");
    assert!(text.starts_with("of 8 runs") && text.contains("before in 6"), "{text}");
    assert!(text.contains("in 1 runs sharpness rises and"), "{text}");
    let five = [first, first, first, first, tie];
    assert!(count(&groups([&[first; 5], &five, &five])).0);
    assert!(!count(&groups([&[later; 5]; 3].map(|runs| &runs[..]))).0);
    assert!(!count(&groups([&[alone; 2]; 3].map(|runs| &runs[..]))).0);
    assert!(!count(&[]).0);
}

#[test]
fn losses_are_means_around_a_measurement() {
    let losses: Vec<(f64, f64)> = (1..=100).map(|i| (f64::from(i), f64::from(i))).collect();
    // Steps 39 to 61 are nearer than 12 to 50; after 100 there are none.
    assert_eq!(around(&losses, &[50.0, 150.0], 12.0), [(50.0, 50.0)]);
    let mut broken = losses;
    broken[54].1 = f64::NAN;
    assert_eq!(around(&broken, &[50.0, 75.0], 12.0), [(50.0, 46.5)]);
}
