use exmy_lab::curves::is_kept;
use exmy_lab::spikes::Curve;
use exmy_lab::studies::mx_instabilities::lasting::judge;
use exmy_lab::studies::mx_instabilities::leaving::{Leaving, tens};
use exmy_lab::studies::mx_instabilities::survival::Ends;

/// A power of two, so that means are exact.
const LOW: f64 = 0.015625;

/// A loss at each of so many steps after those before.
fn curve(parts: &[(u64, f64)]) -> Curve {
    let values = parts.iter().flat_map(|&(steps, loss)| vec![loss; steps as usize]);
    (1..).zip(values).collect()
}

#[test]
fn a_run_leaves_its_lowest_loss_where_three_of_five_means_are_far_above_it() {
    let learns = [(100, 3.0), (200, LOW)];
    let of = |more: &[(u64, f64)]| Leaving::of(&curve(&[&learns[..], more].concat())).unwrap();
    assert_eq!(of(&[]), Leaving { lowest: LOW, at: None, end: LOW });
    // Ten times is not above ten times. Two high means are not the middle one of five.
    assert_eq!(of(&[(100, 10.0 * LOW)]).at, None);
    assert_eq!(of(&[(20, 3.0), (80, LOW)]).at, None);
    // The third one is, at 330, and stays where the loss comes back.
    let back = of(&[(30, 3.0), (170, 2.0 * LOW)]);
    assert_eq!(back, Leaving { lowest: LOW, at: Some(330), end: 2.0 * LOW });
    // A loss that is not finite is far from any; a new low does not hide that.
    assert_eq!(of(&[(1, f64::NAN), (99, LOW / 2.0)]).at, Some(310));
    assert_eq!(of(&[(40, 0.5), (200, LOW / 2.0)]).at, Some(330));
    assert_eq!(Leaving::of(&curve(&[(49, 1.0)])), None);
}

#[test]
fn runs_with_noise_hold_out_longer_where_they_leave_later() {
    let ends = |runs: u64, leave: u64| -> Ends {
        (0..runs).map(|i| if i < leave { (11_000 + i, true) } else { (20_000, false) }).collect()
    };
    let (verdict, power) = judge(&ends(10, 0), &ends(5, 4));
    assert_eq!(verdict.word(), "reproduced");
    assert!(verdict.reason().starts_with("0 of 10 runs"), "{}", verdict.reason());
    assert!(power > 0.9, "{power}");
    assert_eq!(judge(&ends(10, 10), &ends(5, 0)).0.word(), "contradicted");
    assert_eq!(judge(&ends(10, 7), &ends(5, 4)).0.word(), "not seen at this scale");
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
