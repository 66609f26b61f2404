use exmy_train::minimize::search::{Trial, search};

/// The first step tried leads to a flat place hardly lower than the start.
#[test]
fn a_step_must_be_worth_its_length() {
    let mut tried = 0;
    let mut line = |step: f64| {
        tried += 1;
        let (value, slope) = if step < 1.0 { (-step / 2.0, -0.5) } else { (-1e-4, 0.0) };
        Trial { step, value, slope, at: Vec::new(), g: Vec::new() }
    };
    let found = search(&mut line, 0.0, -1.0, 1.0, 9.0).unwrap();
    assert!(found.step < 1.0 && tried == 2);
}

/// What falls as steeply as it began is followed to the wall.
#[test]
fn a_slope_is_followed() {
    let mut tried = Vec::new();
    let mut line = |step: f64| {
        tried.push(step);
        Trial { step, value: -step, slope: -1.0, at: Vec::new(), g: Vec::new() }
    };
    assert_eq!(search(&mut line, 0.0, -1.0, 1.0, 9.0).unwrap().step, 9.0);
    assert_eq!(tried, [1.0, 4.0, 9.0]);
}
