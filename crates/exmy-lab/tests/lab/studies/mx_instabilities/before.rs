use exmy_lab::studies::mx_instabilities::before::{Values, aligned};

/// Three runs that diverge at other steps: within 100 steps each counts with its median, and what a run has
/// at its divergence counts as after it.
#[test]
fn runs_are_aligned_at_their_own_divergence() {
    let first: Values = vec![(899.0, 7.0), (910.0, 910.0), (930.0, 930.0), (999.0, 999.0)];
    let second: Values =
        vec![(299.0, 9.0), (300.0, 1.0), (350.0, 5.0), (399.0, 3.0), (400.0, 100.0)];
    let third: Values = vec![(19.0, 8.0), (20.0, 2.0)];
    let runs = [(1000, &first), (400, &second), (120, &third)];
    assert_eq!(
        aligned(&runs),
        [(-150.0, [7.0, 8.0, 9.0]), (-50.0, [2.0, 3.0, 930.0]), (50.0, [100.0; 3])]
    );
    assert_eq!(aligned(&[]), []);
}
