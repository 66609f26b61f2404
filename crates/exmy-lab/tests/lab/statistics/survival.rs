use exmy_lab::statistics::{kaplan_meier, log_rank, log_rank_trend};

/// Weeks in remission of leukaemia under 6-mercaptopurine and under a placebo (Freireich and others, Blood
/// 21, 1963), the textbooks' example.
const DRUG: [(u64, bool); 21] = [
    (6, true),
    (6, true),
    (6, true),
    (6, false),
    (7, true),
    (9, false),
    (10, true),
    (10, false),
    (11, false),
    (13, true),
    (16, true),
    (17, false),
    (19, false),
    (20, false),
    (22, true),
    (23, true),
    (25, false),
    (32, false),
    (32, false),
    (34, false),
    (35, false),
];
const PLACEBO: [u64; 21] = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23];

#[test]
fn remissions_of_leukaemia() {
    let curve = kaplan_meier(&DRUG, 0.95);
    let expected = [
        (6, 0.857_14, 0.0764),
        (7, 0.806_72, 0.0869),
        (10, 0.752_94, 0.0963),
        (13, 0.690_20, 0.1068),
        (16, 0.627_45, 0.1141),
        (22, 0.537_82, 0.1282),
        (23, 0.448_18, 0.1346),
    ];
    assert_eq!(curve.len(), expected.len());
    for ((step, found), (week, share, error)) in curve.iter().zip(expected) {
        assert_eq!(*step, week);
        assert!((found.estimate - share).abs() < 1e-5, "{found:?}");
        // The delta method takes the standard error to the scale of ln(-ln).
        let reach = 1.959_964 * error / (share * -libm::log(share));
        let low = libm::pow(share, libm::exp(reach));
        assert!((found.low - low).abs() < 2e-3, "{found:?}, {low}");
        assert!(0.0 < found.low && found.low < share && share < found.high && found.high < 1.0);
    }
    let placebo = PLACEBO.map(|week| (week, true));
    assert_eq!(kaplan_meier(&placebo, 0.95).last().unwrap().1.estimate, 0.0);

    let found = log_rank(&placebo, &DRUG).unwrap();
    assert!((found.observed - 21.0).abs() < 1e-12 && (found.expected - 10.75).abs() < 5e-3);
    assert!((found.z * found.z - 16.793).abs() < 5e-4, "{found:?}");
    assert!((found.p_two_sided - 4.17e-5).abs() < 1e-7, "{found:?}");
    // (21 - 10.7492)^2 / 6.2570 is the chi-squared above.
    assert!((found.variance - 6.2570).abs() < 5e-4, "{found:?}");
    let hazard = found.hazard(0.95);
    for (found, expected) in [(hazard.estimate, 5.147), (hazard.low, 2.351), (hazard.high, 11.27)] {
        assert!((found / expected - 1.0).abs() < 1e-3, "{hazard:?}");
    }
    let other = log_rank(&DRUG, &placebo).unwrap();
    assert!((other.z + found.z).abs() < 1e-12 && other.p_sooner > 0.999);
}

#[test]
fn without_events_nothing_is_said() {
    assert_eq!(kaplan_meier(&[(9, false)], 0.95), []);
    assert_eq!(log_rank(&[(9, false)], &[(9, false)]), None);
    assert_eq!(log_rank(&[], &[(9, true)]), None);
}

/// Two runs with dose 2, two with 1 and two with 0, one of each with the event, at 10, 20 and 30. At 10 six
/// are at risk with doses of 6 in sum and 10 in squares, at 20 five with 4 and 6, at 30 four with 3 and 5.
#[test]
fn the_more_the_sooner_is_a_trend() {
    let group = |step| [(step, true), (40, false)];
    let (two, one, none) = (group(10), group(20), group(30));
    let found = log_rank_trend(&[(2.0, &two), (1.0, &one), (0.0, &none)]).unwrap();
    assert!((found.observed - 3.0).abs() < 1e-12);
    assert!((found.expected - (6.0 / 6.0 + 4.0 / 5.0 + 3.0 / 4.0)).abs() < 1e-12, "{found:?}");
    let variance = (10.0 / 6.0 - 1.0) + (6.0 / 5.0 - 0.64) + (5.0 / 4.0 - 9.0 / 16.0);
    assert!((found.variance - variance).abs() < 1e-12, "{found:?}");
    assert!(found.z > 0.0 && found.p_sooner < 0.5);
    assert_eq!(log_rank_trend(&[]), None);
}
