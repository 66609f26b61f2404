use exmy_lab::claim::pooled::{Paired, by_seed, in_percent, result, what};
use exmy_lab::measure::Metric;

fn word(first: &[Vec<f64>], second: &[Vec<f64>]) -> (bool, bool) {
    let result = result(&[by_seed(first), by_seed(second)], false, String::new());
    (result.holds, result.opposite)
}

#[test]
fn a_result_says_what_it_is_of() {
    let words = what(Metric::LogTail, &["without norms"], &["with norms"], true);
    assert_eq!(
        words,
        "logarithm of the loss of without norms minus that of with norms, claimed below 0"
    );
    assert_eq!(in_percent(Metric::LogTail, &[0.214]), "; the loss differs by +24 %");
    assert_eq!(in_percent(Metric::Loss, &[0.214]), "");
}

#[test]
fn signs_alone_decide_nothing() {
    let (high, low) = ([vec![1.0, 1.1, 1.2]], [vec![0.0; 3]]);
    assert_eq!(word(&high, &low), (true, false));
    assert_eq!(word(&low, &high), (false, true));
    // Nine of ten are above (p 0.02), but the interval of their mean includes 0.
    let mut most = [0.1; 10];
    most[3] = -3.0;
    let compared = Paired::of(&most, &[0.0; 10]);
    assert!(compared.signs.is_some_and(|signs| signs.p_two_sided < 0.05));
    assert_eq!(word(&[most.to_vec()], &[vec![0.0; 10]]), (false, false));
    assert_eq!(word(&[vec![1.0]], &[vec![0.0]]), (false, false));
}

/// Means of two grid points differ by 2, 3 and 5.5: 3.5 with an interval that reaches 4.48 to each side.
/// The interval of six pairs would exclude 0.
#[test]
fn each_seed_counts_once() {
    let mx = [vec![11.0, 22.0, 33.0], vec![12.0, 23.0, 38.0]];
    let base = [vec![10.0, 20.0, 30.0], vec![9.0, 19.0, 30.0]];
    assert_eq!(word(&mx, &base), (false, false));
    let words = Paired::of(&by_seed(&mx), &by_seed(&base)).words();
    assert_eq!(words, "+3.500 (-0.978 to +7.978), 3 of 3 pairs above 0");
    assert_eq!(
        word(&[mx.concat()], &[base.concat()]),
        (true, false),
        "as if they were independent"
    );
}
