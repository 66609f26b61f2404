use exmy_lab::statistics::counts::{coins, fisher, sign_test, wilson};

/// Four equal coins by the binomial formula; certain ones only shift.
#[test]
fn coins_fall_together() {
    let [none, one, two, three, four] = coins(&[0.25; 4])[..] else { panic!("five counts") };
    for (found, of_256) in [(none, 81.0), (one, 108.0), (two, 54.0), (three, 12.0), (four, 1.0)] {
        close(found, of_256 / 256.0, 1e-15);
    }
    assert_eq!(coins(&[1.0, 0.0, 0.5]), [0.0, 0.5, 0.5, 0.0]);
    assert_eq!(coins(&[]), [1.0]);
}

fn close(found: f64, expected: f64, by: f64) {
    assert!((found - expected).abs() < by, "{found}, not {expected}");
}

/// By the formula in Python's binary64; 18 of 188 and 0 of 70 are the published counts of "To FP8
/// and Back Again" (arXiv 2405.18710).
#[test]
fn shares_have_their_intervals() {
    let found = wilson(18, 188, 0.95).unwrap();
    close(found.estimate, 0.095_744_681, 1e-9);
    close(found.low, 0.061_422_932, 1e-9);
    close(found.high, 0.146_256_154, 1e-9);
    close(wilson(0, 70, 0.95).unwrap().high, 0.052_023_062, 1e-9);
    let all = wilson(5, 5, 0.95).unwrap();
    close(all.low, 0.565_517_535, 1e-9);
    assert_eq!(all.high, 1.0);
    close(wilson(1, 10, 0.95).unwrap().high, 0.404_150_027, 1e-9);
    for none in [wilson(0, 0, 0.95), wilson(2, 1, 0.95), wilson(1, 2, 1.0), wilson(1, 2, -1.0)] {
        assert_eq!(none, None);
    }
}

/// The lady tasting tea (Fisher, The Design of Experiments, 1935): 1 in 70 for all four, 17 in 70
/// for at least three.
#[test]
fn fishers_tea() {
    close(fisher((4, 4), (0, 4)).unwrap(), 1.0 / 70.0, 1e-14);
    close(fisher((3, 4), (1, 4)).unwrap(), 17.0 / 70.0, 1e-14);
    assert_eq!(fisher((0, 4), (4, 4)), Some(1.0));
    // C(188, 18) / C(258, 18) in whole numbers.
    close(fisher((18, 188), (0, 70)).unwrap(), 0.002_656_521_096, 1e-12);
    assert_eq!((fisher((0, 0), (3, 5)), fisher((2, 1), (0, 1))), (Some(1.0), None));
    // All hits on both sides: there is one way to divide them.
    assert_eq!(fisher((3, 3), (2, 2)), Some(1.0));
}

#[test]
fn signs_by_counting() {
    // 6, 7 or 8 of 8: (28 + 8 + 1) / 256; at least 2 of 8: 1 - 9 / 256.
    let found = sign_test(&[1.0, 1.0, -1.0, 1.0, 0.0, 1.0, 1.0, -1.0, f64::INFINITY]).unwrap();
    assert_eq!((found.negative, found.positive, found.ties), (2, 6, 1));
    close(found.p_positive, 37.0 / 256.0, 1e-13);
    close(found.p_negative, 247.0 / 256.0, 1e-13);
    close(found.p_two_sided, 74.0 / 256.0, 1e-13);
    let even = sign_test(&[1.0, -1.0]).unwrap();
    assert_eq!((even.p_two_sided, sign_test(&[]).unwrap().p_two_sided), (1.0, 1.0));
    assert_eq!(sign_test(&[1.0]).unwrap().p_negative, 1.0);
    assert_eq!(sign_test(&[1.0, f64::NAN]), None);
    // 2^-2000 is no number; 1000 heads of 2000 are.
    let many: Vec<f64> = (0..2000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    close(sign_test(&many).unwrap().p_positive, 0.508_919_505_573, 1e-10);
}
