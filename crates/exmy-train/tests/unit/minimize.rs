mod search;

use exmy::random::{Philox, Stream};
use exmy_train::minimize::{End, Options, minimize};

fn quadratic(scales: &[f64], centre: &[f64]) -> impl Fn(&[f64], &mut [f64]) -> f64 {
    move |x, g| {
        let mut value = 0.0;
        for i in 0..x.len() {
            let off = x[i] - centre[i];
            g[i] = scales[i] * off;
            value += scales[i] * off * off / 2.0;
        }
        value
    }
}

fn exact() -> Options {
    Options { gradient: 1e-10, decrease: 0.0, iterations: 500, ..Options::default() }
}

#[test]
fn a_bowl_of_many_scales() {
    let scales: Vec<f64> = (0..30).map(|i| f64::from(1 + i * i)).collect();
    let centre: Vec<f64> = (0..30).map(|i| f64::from(i) - 7.5).collect();
    let found = minimize(quadratic(&scales, &centre), &[0.0; 30], None, &exact());
    let off = found.point.iter().zip(&centre).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off < 1e-8 && found.iterations < 400, "{off} {} {:?}", found.iterations, found.end);
}

/// In a box the minimum of separate variables is the centre moved into it.
#[test]
fn a_bowl_in_a_box() {
    let scales: Vec<f64> = (0..30).map(|i| f64::from(1 + i * i)).collect();
    let centre: Vec<f64> = (0..30).map(|i| f64::from(i) - 7.5).collect();
    let (low, high) = ([-3.0; 30], [4.0; 30]);
    let found = minimize(quadratic(&scales, &centre), &[0.0; 30], Some((&low, &high)), &exact());
    for (x, c) in found.point.iter().zip(&centre) {
        assert!((x - c.clamp(-3.0, 4.0)).abs() < 1e-6, "{x} for {c}");
    }
    // From outside, and with one variable that has no room at all.
    let (low, high) = ([2.0, 1.0], [2.0, f64::INFINITY]);
    let centre = [0.0, 0.0];
    let found =
        minimize(quadratic(&[1.0, 1.0], &centre), &[9.0, -9.0], Some((&low, &high)), &exact());
    assert_eq!(found.point, [2.0, 1.0]);
}

/// Coupled variables in a box: nothing in the box near the found point is lower, by steps that an
/// exhaustive search of the faces takes.
#[test]
fn coupled_variables_in_a_box() {
    let random = Philox::new(5, Stream::new("box"));
    for case in 0..20_u64 {
        const N: usize = 6;
        let at = |i: usize| 2.0 * random.uniform(case * 100 + i as u64) - 1.0;
        // A = R R^T + I / 10, b: f = x A x / 2 - b x.
        let mut a = [[0.0; N]; N];
        for (i, row) in a.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                *entry = (0..N).map(|k| at(i * N + k) * at(j * N + k)).sum();
            }
            row[i] += 0.1;
        }
        let b: [f64; N] = core::array::from_fn(|i| 3.0 * at(60 + i));
        let function = |x: &[f64], g: &mut [f64]| {
            let mut value = 0.0;
            for i in 0..N {
                let ax: f64 = (0..N).map(|j| a[i][j] * x[j]).sum();
                g[i] = ax - b[i];
                value += x[i] * (ax / 2.0 - b[i]);
            }
            value
        };
        let (low, high) = ([-1.0; N], [0.7; N]);
        let found = minimize(function, &[0.0; N], Some((&low, &high)), &exact());
        // Projected coordinate descent, which for a convex quadratic converges.
        let mut x = [0.0; N];
        for _ in 0..20_000 {
            for i in 0..N {
                let rest: f64 = (0..N).filter(|&j| j != i).map(|j| a[i][j] * x[j]).sum();
                x[i] = ((b[i] - rest) / a[i][i]).clamp(-1.0, 0.7);
            }
        }
        for (found, x) in found.point.iter().zip(x) {
            assert!((found - x).abs() < 1e-7, "case {case}: {found} {x}");
        }
    }
}

#[test]
fn a_search_ends_where_it_should() {
    let bowl = quadratic(&[1.0, 4.0], &[1.0, 1.0]);
    let stopped = minimize(&bowl, &[9.0, -3.0], None, &Options { iterations: 1, ..exact() });
    assert_eq!((stopped.iterations, stopped.end), (1, End::Iterations));
    let there = minimize(&bowl, &[1.0, 1.0], None, &exact());
    assert_eq!((there.iterations, there.end, there.evaluations), (0, End::Gradient, 1));
    let nowhere = minimize(|_: &[f64], _: &mut [f64]| f64::NAN, &[1.0], None, &exact());
    assert_eq!((nowhere.end, &nowhere.point[..]), (End::Start, &[1.0][..]));
    // A gradient that lies: nothing is lower where it points.
    let liar = |x: &[f64], g: &mut [f64]| {
        g[0] = -1.0;
        x[0].abs()
    };
    let lied = minimize(liar, &[0.0], None, &exact());
    assert_eq!((lied.end, lied.value), (End::Search, 0.0));
    // Where the function has no value the search turns back.
    let wall = |x: &[f64], g: &mut [f64]| {
        g[0] = 1.0 - 1.0 / x[0];
        if x[0] > 0.0 { x[0] - libm::log(x[0]) } else { f64::NAN }
    };
    let stopped = minimize(wall, &[20.0], None, &exact());
    assert!((stopped.point[0] - 1.0).abs() < 1e-6, "{stopped:?}");
    assert!(minimize(&bowl, &[], None, &exact()).point.is_empty());
}

/// Where the model is the function, the Cauchy point is the minimum: one step. A wall that everything runs
/// into takes two evaluations.
#[test]
fn the_cauchy_point_is_that_of_the_model() {
    let centre = [5.0, -0.3, 0.2, -7.0, 0.9];
    let (low, high) = ([-1.0, -2.0, -0.1, -0.5, -1.0], [0.4, 1.0, 0.1, 2.0, 1.0]);
    let found = minimize(quadratic(&[1.0; 5], &centre), &[0.0; 5], Some((&low, &high)), &exact());
    assert_eq!(found.iterations, 1);
    for (found, expected) in found.point.iter().zip([0.4, -0.3, 0.1, -0.5, 0.9]) {
        assert!((found - expected).abs() < 1e-12);
    }
    let slope = |x: &[f64], g: &mut [f64]| {
        g[0] = -1e-3;
        -1e-3 * x[0]
    };
    let options = Options { gradient: 0.0, ..exact() };
    let found = minimize(slope, &[0.9995], Some((&[0.0], &[1.0])), &options);
    assert_eq!((found.point[0], found.evaluations), (1.0, 2));
}

/// A point with a value and without a gradient is no place to go on from.
#[test]
fn a_gradient_is_needed() {
    let bowl = |x: &[f64], g: &mut [f64]| {
        let off = x[0] - 1.0;
        g[0] = if x[0] < 0.7 { f64::NAN } else { 2.0 * off };
        off * off
    };
    let found = minimize(bowl, &[1.6], None, &exact());
    assert!((found.point[0] - 1.0).abs() < 1e-6, "{found:?}");
}

#[test]
fn the_same_bits_each_time_and_never_above_the_start() {
    let random = Philox::new(9, Stream::new("waves"));
    for case in 0..50_u64 {
        let start: Vec<f64> = (0..8).map(|i| 6.0 * random.uniform(case * 8 + i) - 3.0).collect();
        let waves = |x: &[f64], g: &mut [f64]| {
            let mut value = 0.0;
            for (g, &x) in g.iter_mut().zip(x) {
                value += libm::cos(3.0 * x) + 0.1 * x * x;
                *g = -3.0 * libm::sin(3.0 * x) + 0.2 * x;
            }
            value
        };
        let (low, high) = ([-2.0; 8], [2.5; 8]);
        let run = || minimize(waves, &start, Some((&low, &high)), &Options::default());
        let found = run();
        assert_eq!(found, run());
        let inside: Vec<f64> = start.iter().map(|x| x.clamp(-2.0, 2.5)).collect();
        assert!(found.value <= waves(&inside, &mut [0.0; 8]));
        assert!(found.point.iter().all(|x| (-2.0..=2.5).contains(x)));
    }
}

#[test]
#[should_panic(expected = "lower bound above")]
fn a_box_has_an_inside() {
    let _ = minimize(quadratic(&[1.0], &[0.0]), &[0.0], Some((&[1.0], &[0.0])), &exact());
}
