use exmy_train::nn::site::{Operator, Product};
use exmy_train::nn::stopwatch::{Direction, Part, Stage, lap, measure};

#[test]
fn laps_add_up_by_part_and_are_off_outside() {
    drop(lap(Part::Loss));
    let ((), laps) = measure(|| {
        drop(lap(Part::Residual));
        drop(lap(Part::Batch));
        drop(lap(Part::Residual));
    });
    let seen: Vec<_> = laps.iter().map(|laps| (laps.part, laps.count)).collect();
    assert_eq!(seen, [(Part::Batch, 1), (Part::Residual, 2)]);
    assert_eq!(measure(|| ()).1, []);
}

#[test]
fn a_measurement_within_another_is_its_own() {
    let (inner, outer) = measure(|| {
        drop(lap(Part::Loss));
        measure(|| drop(lap(Part::Batch))).1
    });
    assert_eq!((inner.len(), inner[0].part), (1, Part::Batch));
    assert_eq!((outer.len(), outer[0].part), (1, Part::Loss));
}

#[test]
fn names_say_product_and_stage() {
    let part = Part::Linear(Operator::Q, Product::GradInput, Stage::Multiply);
    assert_eq!(part.to_string(), "q_proj grad_input multiply");
    assert_eq!(Part::Norm(Direction::Backward).to_string(), "norm backward");
    assert_eq!(Part::Residual.to_string(), "residual sums");
}
