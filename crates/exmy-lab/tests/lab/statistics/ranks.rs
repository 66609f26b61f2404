use exmy::random::{Philox, Stream};
use exmy_lab::statistics::ranks::{Roc, jaccard, mann_kendall, midranks, roc, spearman};

#[test]
fn ranks_correlate() {
    // Without ties 1 - 6 sum d^2 / (n (n^2 - 1)): d = 1 1 1 1 0 gives 0.8.
    let a = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert!((spearman(&a, &[2.0, 1.0, 4.0, 3.0, 5.0]).unwrap() - 0.8).abs() < 1e-15);
    assert_eq!(spearman(&a, &[5.0, 4.0, 3.0, 2.0, 1.0]), Some(-1.0));
    // Ranks 1.5 1.5 3 against 1 2 3: 1.5 / sqrt(1.5 * 2).
    let tied = spearman(&[0.0, -0.0, 7.0], &[1.0, 2.0, 3.0]).unwrap();
    assert!((tied - 0.75_f64.sqrt()).abs() < 1e-15);
    assert_eq!(midranks(&[2.0, 9.0, 2.0, 2.0]).unwrap(), [2.0, 4.0, 2.0, 2.0]);
    assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
    assert_eq!((spearman(&[], &[]), spearman(&[f64::NAN, 1.0], &[1.0, 2.0])), (None, None));
}

#[test]
fn sets_overlap() {
    assert_eq!(jaccard(&[1, 2], &[2, 1]), 1.0);
    assert_eq!(jaccard(&[1, 2], &[3]), 0.0);
    assert_eq!(jaccard::<usize>(&[], &[]), 1.0);
    assert_eq!(jaccard(&[1, 1, 1, 2], &[1]), 0.5);
}

/// Five rising values: var = 5 4 15 / 18. One tied pair takes 2 1 9 / 18 from it.
#[test]
fn trends_by_hand() {
    let rising = mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert!((rising.z - 9.0 / (300.0_f64 / 18.0).sqrt()).abs() < 1e-14);
    assert!((rising.p_rising - 0.013_743_168).abs() < 1e-9, "{rising:?}");
    let falling = mann_kendall(&[5.0, 4.0, 3.0, 2.0, 1.0]).unwrap();
    assert_eq!((falling.s, falling.z, falling.p_falling), (-10, -rising.z, rising.p_rising));
    let tied = mann_kendall(&[1.0, 2.0, 2.0, 3.0]).unwrap();
    assert_eq!(tied.s, 5);
    assert!((tied.z - 4.0 / ((4.0 * 3.0 * 13.0 - 18.0) / 18.0_f64).sqrt()).abs() < 1e-14);
    let none = mann_kendall(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0]).unwrap();
    assert!(none.p_rising > 0.2 && none.p_falling > 0.2);
    let nothing = [&[1.0, 2.0][..], &[1.0, 1.0, 1.0], &[1.0, 2.0, f64::NAN]];
    assert!(nothing.iter().all(|values| mann_kendall(values).is_none()));
}

/// The area is the share of pairs, counted one by one.
#[test]
fn the_area_counts_pairs() {
    let random = Philox::new(3, Stream::new("roc"));
    for case in 0..20 {
        let scored: Vec<(f64, bool)> = (0..40)
            .map(|i| {
                let positive = random.bits(100 * case + i, 1) == 1;
                (f64::from(random.bits(5000 + 100 * case + i, 4)), positive)
            })
            .collect();
        let of = |kind| scored.iter().filter(move |s| s.1 == kind).map(|s| s.0);
        let pairs: f64 = of(true)
            .flat_map(|p| {
                of(false).map(move |n| {
                    if p > n {
                        1.0
                    } else if p == n {
                        0.5
                    } else {
                        0.0
                    }
                })
            })
            .sum();
        let found = roc(&scored).unwrap();
        let share = pairs / (of(true).count() * of(false).count()) as f64;
        assert!((found.area - share).abs() < 1e-14);
        let trapezoids: f64 =
            found.points.windows(2).map(|p| (p[1].0 - p[0].0) * (p[1].1 + p[0].1) / 2.0).sum();
        assert!((found.area - trapezoids).abs() < 1e-12);
    }
    assert_eq!(roc(&[(1.0, true)]), None);
    assert_eq!(roc(&[(1.0, true), (f64::NAN, false)]), None);
    assert_eq!(roc(&[(2.0, true), (f64::INFINITY, false)]).unwrap().area, 0.0);
}

/// The paper's own example: 51 and 58 cases, an area of 0.893 and a standard error of 0.032.
#[test]
fn areas_have_intervals() {
    let roc = |area, counts| Roc { points: vec![], area, counts };
    let found = roc(0.893, (51, 58)).interval(0.95);
    assert!((found.high - found.low - 2.0 * 1.96 * 0.0325).abs() < 1e-3, "{found:?}");
    // One pair shows nothing, however it comes out.
    let found = roc(1.0, (1, 1)).interval(0.95);
    assert!(found.low < 0.5 && (found.estimate, found.high) == (1.0, 1.0), "{found:?}");
}
