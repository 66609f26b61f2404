use exmy_lab::curves::is_kept;
use exmy_lab::spikes::Curve;
use exmy_lab::studies::mx_instabilities::before::{Values, aligned, tens};

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

/// Thinned or not, a curve has the same means: of every tenth step, and of all near a divergence at 505,
/// where the first and the last of them stand between two tens.
#[test]
fn means_of_ten_steps_are_those_of_the_whole_curve() {
    let whole: Curve = (1..=1000).map(|step| (step, (step * step % 997) as f64)).collect();
    let mut thinned = Curve::new();
    let mut since = Vec::new();
    for &(step, value) in &whole {
        since.push(value);
        if is_kept(step, Some(505), 1000) {
            thinned.push((step, since.iter().sum::<f64>() / since.len() as f64));
            since.clear();
        }
    }
    let (all, few) = (tens(&whole), tens(&thinned));
    assert_eq!((all.len(), all[1].0), (100, 20.0));
    // 121 + 144 + ... + 400.
    assert_eq!(all[1].1, 248.5);
    for (all, few) in all.iter().zip(&few) {
        assert!(all.0 == few.0 && (all.1 - few.1).abs() < 1e-9, "{all:?} {few:?}");
    }
    assert_eq!(all.len(), few.len());
}
