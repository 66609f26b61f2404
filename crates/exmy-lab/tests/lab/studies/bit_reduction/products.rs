use exmy_lab::studies::bit_reduction::products::gain;

#[test]
fn gains_are_those_of_the_definition() {
    assert_eq!(gain(7, "rtz", 100).unwrap(), (1.0, 0.0));
    let (truncated, noise) = gain(3, "rtz", 50_000).unwrap();
    assert!((truncated - 0.9194).abs() < 0.002 && (noise - 0.036).abs() < 0.002);
    let (nearest, _) = gain(3, "rne", 50_000).unwrap();
    assert!((nearest - 1.0).abs() < 0.002);
}
