use exmy_lab::finding::Verdict;
use exmy_lab::landscape::Landscape;
use exmy_lab::studies::bit_reduction::surface::judge;

/// A surface by its formula, at -1, -0.75 and so on to 1.
fn made(loss: impl Fn(f64, f64) -> f64) -> Landscape {
    let empty = Landscape { side: 9, range: 1.0, losses: Vec::new() };
    let losses = (0..81).map(|index| empty.at(index)).map(|(x, y)| loss(x, y)).collect();
    Landscape { losses, ..empty }
}

fn bowl() -> Landscape {
    made(|x, y| x * x + y * y)
}

fn of(second: Landscape) -> Verdict {
    judge(&[("a".into(), bowl()), ("b".into(), second)])
}

#[test]
fn each_verdict_can_be_reached() {
    assert_eq!(of(bowl()).word(), "reproduced");
    // Two valleys, at -0.5 and at 0.5.
    let two = made(|x, y| (x * x - 0.25) * (x * x - 0.25) + y * y);
    assert_eq!((two.minima(), of(two).word()), (2, "not seen at this scale"));
    // Holes at all multiples of a half, nine of them inside.
    let is_half = |x: f64| (2.0 * x).fract() == 0.0;
    let rough = made(|x, y| if is_half(x) && is_half(y) { 0.0 } else { 1.0 });
    assert_eq!(rough.minima(), 9);
    let verdict = judge(&[("a".into(), rough.clone()), ("b".into(), rough)]);
    assert_eq!(verdict.word(), "contradicted");
}

#[test]
fn what_is_no_valley_is_not_smooth() {
    let not = "not seen at this scale";
    for nothing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(of(made(|_, _| nothing)).word(), not);
        // One point at the corner, far from the valley.
        let mut one = bowl();
        one.losses[0] = nothing;
        let verdict = of(one);
        assert_eq!(verdict.word(), not);
        assert!(verdict.reason().ends_with("b: 1 (80 of 81 losses are finite)"));
    }
    assert_eq!(of(made(|x, _| x)).word(), not, "a slope");
    assert_eq!(of(made(|_, _| 1.0)).word(), not, "a plain");
    // A hole of 0.3 in a slope that falls to -1.
    let hole = made(|x, y| if (x, y) == (0.0, 0.0) { -0.3 } else { x });
    let verdict = of(hole);
    assert_eq!(verdict.word(), not);
    assert!(verdict.reason().ends_with("b: 1 (and lower points at the edge)"));
}
