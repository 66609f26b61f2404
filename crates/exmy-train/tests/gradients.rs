//! Layers against finite differences, against literals, against themselves in f32, at every level
//! and for every number of threads.

use exmy::parallel::with_threads;
use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};
use exmy_train::nn::Real;
use exmy_train::nn::activation::{add_assign, gelu, gelu_backward, swiglu, swiglu_backward};
use exmy_train::nn::embedding::{embed, embed_backward, positions_backward};
use exmy_train::nn::loss::{
    self, cross_entropy, cross_entropy_and_z, divergence, divergence_backward,
};
use exmy_train::nn::norm::{
    ROW_BLOCK, layer_norm, layer_norm_backward, rms_norm, rms_norm_backward,
};
use exmy_train::train::optimizer::{AdamW, clip_scale, global_norm};

/// Values in [-2, 2) that an f32 holds exactly, so that f32 and f64 start from the same numbers.
fn random<T: Real>(len: usize, stream: u64) -> Vec<T> {
    let philox = Philox::new(7, Stream::new("gradients").with(stream));
    (0..len as u64).map(|i| T::from_f64(f64::from(4.0 * philox.uniform(i) as f32 - 2.0))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Compares `gradient` with the five-point difference quotient of `f`, whose error is
/// `h^4 f^(5) / 30` in truncation and about `1e-16 |f| / h` in rounding: below 1e-10 here.
#[track_caller]
fn check_gradient(name: &str, x: &[f64], gradient: &[f64], f: impl Fn(&[f64]) -> f64) {
    const H: f64 = 1e-3;
    assert_eq!(x.len(), gradient.len(), "{name}");
    let mut at = x.to_vec();
    for i in 0..x.len() {
        let mut shifted = |by: f64| {
            at[i] = x[i] + by;
            let value = f(&at);
            at[i] = x[i];
            value
        };
        let near = shifted(H) - shifted(-H);
        let far = shifted(2.0 * H) - shifted(-2.0 * H);
        let quotient = (8.0 * near - far) / (12.0 * H);
        let error = (quotient - gradient[i]).abs();
        assert!(
            error <= 1e-8 * (1.0 + quotient.abs()),
            "{name}, element {i}: backward says {}, differences {quotient}",
            gradient[i]
        );
    }
}

/// Rows and widths: fewer elements than lanes, a whole number of lanes, one more, and more rows
/// than one block.
const SHAPES: [(usize, usize); 5] = [(3, 5), (2, 16), (3, 33), (1, 1), (ROW_BLOCK + 3, 6)];

#[test]
fn layer_norm_gradient() {
    for (rows, width) in SHAPES {
        let len = rows * width;
        let (x, w) = (random::<f64>(len, 1), random::<f64>(len, 2));
        let (gamma, beta) = (random::<f64>(width, 3), random::<f64>(width, 4));
        let eps = 0.01;
        let forward = |x: &[f64], gamma: &[f64], beta: &[f64]| {
            let (mut y, mut mean, mut rstd) = (vec![0.0; len], vec![0.0; rows], vec![0.0; rows]);
            layer_norm(x, gamma, Some(beta), eps, &mut y, &mut mean, &mut rstd);
            (y, mean, rstd)
        };
        let (_, mean, rstd) = forward(&x, &gamma, &beta);
        // Input gradients overwrite (NaN must vanish), parameter gradients add to what is there.
        let mut dx = vec![f64::NAN; len];
        let (mut dgamma, mut dbeta) = (vec![3.0; width], vec![-5.0; width]);
        layer_norm_backward(&x, &gamma, &mean, &rstd, &w, &mut dx, &mut dgamma, Some(&mut dbeta));
        dgamma.iter_mut().for_each(|d| *d -= 3.0);
        dbeta.iter_mut().for_each(|d| *d += 5.0);
        check_gradient("dx", &x, &dx, |x| dot(&forward(x, &gamma, &beta).0, &w));
        check_gradient("dgamma", &gamma, &dgamma, |g| dot(&forward(&x, g, &beta).0, &w));
        check_gradient("dbeta", &beta, &dbeta, |b| dot(&forward(&x, &gamma, b).0, &w));
        // Without beta dx and dgamma are the same.
        let (mut dx2, mut dgamma2) = (vec![0.0; len], vec![3.0; width]);
        layer_norm_backward(&x, &gamma, &mean, &rstd, &w, &mut dx2, &mut dgamma2, None);
        dgamma2.iter_mut().for_each(|d| *d -= 3.0);
        assert_eq!((dx, dgamma), (dx2, dgamma2));
    }
}

#[test]
fn rms_norm_gradient() {
    for (rows, width) in SHAPES {
        let len = rows * width;
        let (x, w) = (random::<f64>(len, 1), random::<f64>(len, 2));
        let gamma = random::<f64>(width, 3);
        let forward = |x: &[f64], gamma: &[f64]| {
            let (mut y, mut rstd) = (vec![0.0; len], vec![0.0; rows]);
            rms_norm(x, gamma, 0.01, &mut y, &mut rstd);
            (y, rstd)
        };
        let (mut dx, mut dgamma) = (vec![f64::NAN; len], vec![3.0; width]);
        rms_norm_backward(&x, &gamma, &forward(&x, &gamma).1, &w, &mut dx, &mut dgamma);
        dgamma.iter_mut().for_each(|d| *d -= 3.0);
        check_gradient("dx", &x, &dx, |x| dot(&forward(x, &gamma).0, &w));
        check_gradient("dgamma", &gamma, &dgamma, |g| dot(&forward(&x, g).0, &w));
    }
}

#[test]
fn gelu_gradient() {
    let x: Vec<f64> = random::<f64>(37, 1).iter().map(|x| 3.0 * x).collect();
    let w = random::<f64>(37, 2);
    let mut dx = w.clone();
    gelu_backward(&x, &mut dx);
    check_gradient("dx", &x, &dx, |x| {
        let mut y = vec![0.0; x.len()];
        gelu(x, &mut y);
        dot(&y, &w)
    });
}

#[test]
fn swiglu_gradient() {
    for (rows, hidden) in [(3, 5), (2, 16), (1, 33)] {
        let (x, w) = (random::<f64>(2 * rows * hidden, 1), random::<f64>(rows * hidden, 2));
        let mut dx = vec![f64::NAN; x.len()];
        swiglu_backward(&x, hidden, &w, &mut dx);
        check_gradient("d_gate_up", &x, &dx, |x| {
            let mut y = vec![0.0; rows * hidden];
            swiglu(x, hidden, &mut y);
            dot(&y, &w)
        });
    }
}

#[test]
fn embedding_gradient() {
    let (vocab, sequence, width) = (40, 4, 5);
    // Token 7 repeats within and across sequences; 39 is the last row; 0 never occurs.
    let tokens = [7, 7, 39, 1, 20, 7, 2, 33];
    let (table, positions) = (random::<f64>(vocab * width, 1), random::<f64>(6 * width, 2));
    let w = random::<f64>(tokens.len() * width, 3);
    let forward = |table: &[f64], positions: Option<&[f64]>| {
        let mut y = vec![0.0; w.len()];
        embed(&tokens, table, positions, sequence, &mut y);
        dot(&y, &w)
    };
    let (mut d_table, mut d_positions) = (vec![0.0; table.len()], vec![0.0; positions.len()]);
    embed_backward(&tokens, &w, &mut d_table);
    positions_backward(&w, width, sequence, &mut d_positions);
    check_gradient("d_table", &table, &d_table, |t| forward(t, Some(&positions)));
    check_gradient("d_table", &table, &d_table, |t| forward(t, None));
    check_gradient("d_positions", &positions, &d_positions, |p| forward(&table, Some(p)));
}

#[test]
fn cross_entropy_gradient() {
    for vocab in [1, 5, 16, 33] {
        let targets = [0, vocab as u32 - 1, vocab as u32 / 2];
        let logits: Vec<f64> = random::<f64>(3 * vocab, 1).iter().map(|x| 4.0 * x).collect();
        let (mut d, mut losses) = (logits.clone(), [0.0; 3]);
        cross_entropy(&mut d, vocab, &targets, Some(0.25), &mut losses);
        check_gradient("logits", &logits, &d, |logits| {
            let (mut work, mut losses) = (logits.to_vec(), [0.0; 3]);
            cross_entropy(&mut work, vocab, &targets, None, &mut losses);
            assert_eq!(work, logits, "without a scale the logits stay");
            0.25 * losses.iter().sum::<f64>()
        });
    }
}

/// The z-loss restated: the mean of the squared logarithm of the sum of exponentials. What is reported stays
/// the cross-entropy.
#[test]
fn z_loss_gradient() {
    for vocab in [1, 5, 16, 33] {
        let targets = [0, vocab as u32 - 1, vocab as u32 / 2];
        let logits: Vec<f64> = random::<f64>(3 * vocab, 1).iter().map(|x| 4.0 * x).collect();
        let (mut d, mut losses) = (logits.clone(), [0.0; 3]);
        cross_entropy_and_z(&mut d, vocab, &targets, Some((1.0 / 3.0, 0.07)), &mut losses);
        let logarithms = |logits: &[f64]| -> [f64; 3] {
            let row = |r: usize| logits[r * vocab..][..vocab].iter();
            core::array::from_fn(|r| libm::log(row(r).map(|l| libm::exp(*l)).sum::<f64>()))
        };
        let at = |logits: &[f64], r: usize| logits[r * vocab + targets[r] as usize];
        for (r, log) in logarithms(&logits).into_iter().enumerate() {
            let expected = log - at(&logits, r);
            assert!((losses[r] - expected).abs() < 1e-13, "{} {expected}", losses[r]);
        }
        check_gradient("logits", &logits, &d, |logits| {
            let rows = logarithms(logits).into_iter().enumerate();
            rows.map(|(r, log)| log - at(logits, r) + 0.07 * log * log).sum::<f64>() / 3.0
        });
    }
}

/// Against `sum p ln(p / q)`; equal rows, shifted ones too, have none.
#[test]
fn divergence_gradient() {
    for (rows, width) in [(1, 1), (3, 5), (2, 16), (70, 33)] {
        let (a, y) = (random::<f64>(rows * width, 1), random::<f64>(rows * width, 2));
        let softmax = |x: &[f64]| -> Vec<f64> {
            let sum: f64 = x.iter().map(|x| libm::exp(*x)).sum();
            x.iter().map(|x| libm::exp(*x) / sum).collect()
        };
        let row = |a: &[f64], r: usize| -> f64 {
            let range = r * width..(r + 1) * width;
            let (p, q) = (softmax(&y[range.clone()]), softmax(&a[range]));
            p.iter().zip(&q).map(|(p, q)| p * libm::log(p / q)).sum()
        };
        let mut losses = vec![0.0; rows];
        divergence(&a, &y, width, &mut losses);
        for (r, loss) in losses.iter().enumerate() {
            assert!((loss - row(&a, r)).abs() < 1e-13, "{loss} {}", row(&a, r));
        }
        let mut d = vec![f64::NAN; a.len()];
        divergence_backward(&a, &y, width, 0.25, &mut d);
        let sum = |a: &[f64]| 0.25 * (0..rows).map(|r| row(a, r)).sum::<f64>();
        check_gradient("outputs", &a, &d, sum);
        let shifted: Vec<f64> = y.iter().map(|y| y + 3.0).collect();
        divergence(&shifted, &y, width, &mut losses);
        divergence_backward(&shifted, &y, width, 1.0, &mut d);
        assert!(losses.iter().chain(&d).all(|x| x.abs() < 1e-14), "{losses:?} {d:?}");
    }
}

#[track_caller]
fn assert_close<T: Real>(got: &[T], expected: &[f64], relative: f64) {
    assert_eq!(got.len(), expected.len());
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got.to_f64() - expected).abs();
        assert!(error <= relative * expected.abs() + 1e-20, "element {i}: {got:?}, not {expected}");
    }
}

/// Computed in f64 by PyTorch 2.15: `functional.{gelu, silu, layer_norm, rms_norm, cross_entropy}`
/// and, for gelu and cross-entropy, `backward` of the sum (halved for cross-entropy).
fn agrees_with_pytorch<T: Real>(relative: f64) {
    let numbers = |x: &[f64]| x.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();

    let x = numbers(&[-3.0, -1.5, -0.5, -0.001, 0.0, 0.25, 0.75, 1.0, 2.5, 5.0]);
    let mut y = numbers(&[9.0; 10]);
    gelu(&x, &mut y);
    // Below -1 the tail of Phi is 1 + erf, which cancels: the absolute error is what stays small.
    let tail = [-0.004_049_694_094_890_31, -0.100_210_801_903_287_06];
    for (y, tail) in y.iter().zip(tail) {
        assert!((y.to_f64() - tail).abs() <= relative * 3.0, "{y:?}, not {tail}");
    }
    let rest = [
        -0.154_268_769_362_993_44,
        -0.000_499_601_057_786_089,
        0.0,
        0.149_676_581_420_730_93,
        0.580_029_485_717_348_9,
        0.841_344_746_068_543,
        2.484_475_836_685_559_7,
        4.999_998_566_742_141,
    ];
    assert_close(&y[2..], &rest, relative);
    let mut d = numbers(&[1.0; 10]);
    gelu_backward(&x, &mut d);
    let slopes = [
        -0.011_945_647_204_183_92,
        -0.127_469_192_229_979_6,
        0.132_504_875_343_837_12,
        0.499_202_115_705_158_6,
        0.5,
        0.695_373_354_883_636,
        0.999_225_721_739_235_2,
        1.083_315_470_587_686_4,
        1.037_611_085_908_145,
        1.000_007_146_946_002,
    ];
    for (d, slope) in d.iter().zip(slopes) {
        assert!((d.to_f64() - slope).abs() <= relative, "{d:?}, not {slope}");
    }

    let mut y = numbers(&[0.0; 3]);
    swiglu(&numbers(&[-2.0, 0.5, 3.0, 1.5, -1.0, 0.25]), 3, &mut y);
    let expected = [-0.357_608_766_066_352_6, -0.311_229_665_600_927_3, 0.714_430_595_116_824_9];
    assert_close(&y, &expected, relative);

    let x = numbers(&[1.0, 2.0, -3.0, 0.5, 4.0]);
    let gamma = numbers(&[0.5, 1.0, 2.0, -1.0, 1.5]);
    let beta = numbers(&[0.1, 0.2, 0.3, 0.4, 0.5]);
    let (mut y, mut mean, mut rstd) = (numbers(&[0.0; 5]), [T::ZERO], [T::ZERO]);
    layer_norm(&x, &gamma, Some(&beta), T::from_f64(1e-5), &mut y, &mut mean, &mut rstd);
    let expected = [
        0.121_842_580_574_378_86,
        0.680_536_772_636_334_9,
        -3.107_442_569_603_102,
        0.574_740_644_595_030_9,
        2.531_359_993_417_233_5,
    ];
    assert_close(&y, &expected, 2.0 * relative);
    rms_norm(&x, &gamma, T::from_f64(1e-6), &mut y, &mut rstd);
    let expected = [
        0.203_278_890_245_527_87,
        0.813_115_560_982_111_5,
        -2.439_346_682_946_334_6,
        -0.203_278_890_245_527_87,
        2.439_346_682_946_334_6,
    ];
    assert_close(&y, &expected, relative);

    let mut logits = numbers(&[1.0, -2.0, 0.5, 10.0, 0.0, -10.0, 0.25, 0.25, 0.25]);
    let mut losses = numbers(&[0.0; 3]);
    cross_entropy(&mut logits, 3, &[2, 1, 0], Some(T::from_f64(0.5)), &mut losses);
    let expected = [1.004_596_902_342_283_4, 10.000_045_400_960_277, 1.098_612_288_668_109_8];
    assert_close(&losses, &expected, relative);
    assert!((loss::mean(&losses) - expected.iter().sum::<f64>() / 3.0).abs() < 10.0 * relative);
    let gradient = [
        0.301_874_448_074_312_9,
        0.015_029_443_784_787_011,
        -0.316_903_891_859_099,
        0.499_977_300_035_165_5,
        -0.499_977_301_065_695_55,
        1.030_530_023_104_529_7e-9,
        -1.0 / 3.0,
        1.0 / 6.0,
        1.0 / 6.0,
    ];
    assert_close(&logits, &gradient, 2.0 * relative);
}

#[test]
fn literals_of_pytorch() {
    agrees_with_pytorch::<f64>(1e-14);
    // Two or three roundings in addition to those of erf and exp: 4 units of 2^-23.
    agrees_with_pytorch::<f32>(4.8e-7);
}

/// Everything the layers compute, one vector a result, on shapes that need several chunks.
fn outputs<T: Real>(rows: usize, width: usize, elements: usize) -> Vec<(&'static str, Vec<T>)> {
    let len = rows * width;
    let (x, dy, gamma) = (random::<T>(len, 1), random::<T>(len, 2), random::<T>(width, 3));
    let (beta, eps) = (random::<T>(width, 4), T::from_f64(0.01));
    let zeros = |len: usize| vec![T::ZERO; len];
    let mut results = Vec::new();

    let (mut y, mut means, mut rstd) = (zeros(len), zeros(rows), zeros(rows));
    layer_norm(&x, &gamma, Some(&beta), eps, &mut y, &mut means, &mut rstd);
    let (mut dx, mut dgamma, mut dbeta) = (zeros(len), zeros(width), zeros(width));
    let d = Some(&mut dbeta[..]);
    layer_norm_backward(&x, &gamma, &means, &rstd, &dy, &mut dx, &mut dgamma, d);
    add_assign(&mut y, &x);
    results.extend([("layer_norm + x", y), ("mean", means), ("rstd", rstd)]);
    results.extend([("layer_norm dx", dx), ("dgamma", dgamma), ("dbeta", dbeta)]);

    let (mut y, mut rstd) = (zeros(len), zeros(rows));
    rms_norm(&x, &gamma, eps, &mut y, &mut rstd);
    let (mut dx, mut dgamma) = (zeros(len), zeros(width));
    rms_norm_backward(&x, &gamma, &rstd, &dy, &mut dx, &mut dgamma);
    results.extend([("rms_norm", y), ("rms_norm dx", dx), ("rms_norm dgamma", dgamma)]);

    let long: Vec<T> = random::<T>(elements, 5).iter().map(|&x| x * T::from_f64(3.0)).collect();
    let (mut y, mut d) = (zeros(elements), random::<T>(elements, 6));
    gelu(&long, &mut y);
    gelu_backward(&long, &mut d);
    results.extend([("gelu", y), ("gelu dx", d)]);
    let hidden = elements / 2 / 7;
    let gate_up = &long[..2 * 7 * hidden];
    let (mut y, mut d) = (zeros(7 * hidden), zeros(2 * 7 * hidden));
    swiglu(gate_up, hidden, &mut y);
    swiglu_backward(gate_up, hidden, &random::<T>(7 * hidden, 7), &mut d);
    results.extend([("swiglu", y), ("swiglu d_gate_up", d)]);

    let vocab = 61;
    let tokens: Vec<u32> = (0..rows as u32).map(|i| i * i % vocab).collect();
    let mut logits = random::<T>(rows * vocab as usize, 8);
    let mut losses = zeros(rows);
    cross_entropy(&mut logits, vocab as usize, &tokens, Some(T::ONE), &mut losses);
    results.extend([("losses", losses), ("dlogits", logits)]);
    let (table, positions) = (random::<T>(vocab as usize * width, 9), random::<T>(len, 10));
    let (mut y, mut d_table, mut d_positions) = (zeros(len), zeros(table.len()), zeros(len));
    embed(&tokens, &table, Some(&positions), rows / 2, &mut y);
    embed_backward(&tokens, &dy, &mut d_table);
    positions_backward(&dy, width, rows / 2, &mut d_positions);
    results.extend([("embed", y), ("d_table", d_table), ("d_positions", d_positions)]);
    results
}

fn training_bits() -> Vec<u32> {
    let mut bits = Vec::new();
    for (_, values) in outputs::<f32>(2 * ROW_BLOCK + 6, 37, 70_001) {
        bits.extend(values.iter().map(|x| x.to_bits()));
    }
    let len = 40_001;
    let (mut params, grads) = (random::<f32>(len, 1), random::<f32>(len, 2));
    let (mut m, mut v) = (vec![0.0; len], vec![0.0; len]);
    let norm = global_norm(&grads);
    bits.extend([norm.to_bits() as u32, (norm.to_bits() >> 32) as u32]);
    let scale = clip_scale(norm, 1.0);
    for t in 1..=2 {
        AdamW::default().step(t, 1e-2, true, &mut params, &grads, &mut m, &mut v, scale);
    }
    bits.extend([params, m, v].iter().flatten().map(|x| x.to_bits()));
    bits
}

#[test]
fn no_level_and_no_number_of_threads_changes_a_bit() {
    let expected = with_level(Level::Scalar, training_bits);
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        assert_eq!(with_level(level, training_bits), expected, "{level}");
    }
    for threads in [1, 2, 3] {
        let bits = with_threads(threads, training_bits).expect("threads");
        assert_eq!(bits, expected, "{threads} threads");
    }
}

/// What several chunks give is what a call for each piece gives: no chunk reads another's input.
#[test]
fn chunks_do_not_show() {
    let (x, mut d) = (random::<f32>(70_001, 1), random::<f32>(70_001, 2));
    let (mut y, mut whole) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    gelu(&x, &mut whole);
    x.chunks(1000).zip(y.chunks_mut(1000)).for_each(|(x, y)| gelu(x, y));
    assert_eq!(whole, y, "gelu");
    whole.copy_from_slice(&d);
    gelu_backward(&x, &mut whole);
    x.chunks(1000).zip(d.chunks_mut(1000)).for_each(|(x, d)| gelu_backward(x, d));
    assert_eq!(whole, d, "gelu_backward");
    add_assign(&mut whole, &x);
    x.chunks(1000).zip(d.chunks_mut(1000)).for_each(|(x, d)| add_assign(d, x));
    assert_eq!(whole, d, "add_assign");

    let hidden = 500;
    let x = &x[..70 * 2 * hidden];
    let (mut y, mut whole) = (vec![0.0; 70 * hidden], vec![0.0; 70 * hidden]);
    swiglu(x, hidden, &mut whole);
    x.chunks(2 * hidden).zip(y.chunks_mut(hidden)).for_each(|(x, y)| swiglu(x, hidden, y));
    assert_eq!(whole, y, "swiglu");
    let (mut d, mut whole) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    swiglu_backward(x, hidden, &y, &mut whole);
    for ((x, y), d) in x.chunks(2 * hidden).zip(y.chunks(hidden)).zip(d.chunks_mut(2 * hidden)) {
        swiglu_backward(x, hidden, y, d);
    }
    assert_eq!(whole, d, "swiglu_backward");

    let targets: Vec<u32> = (0..70).map(|i| i * 31 % 1000).collect();
    let (mut rows, mut whole) = (x.to_vec(), x.to_vec());
    let (mut losses, mut whole_losses) = (vec![0.0; 70], vec![0.0; 70]);
    cross_entropy(&mut whole, 1000, &targets, Some(0.5), &mut whole_losses);
    for ((row, target), loss) in rows.chunks_mut(1000).zip(targets.chunks(1)).zip(&mut losses) {
        cross_entropy(row, 1000, target, Some(0.5), std::slice::from_mut(loss));
    }
    assert_eq!((whole, whole_losses), (rows, losses), "cross_entropy");

    // 70 tokens of width 500 in two sequences, a table of 70 rows, 35 positions.
    let (table, positions) = (&x[..70 * hidden], &x[1..][..35 * hidden]);
    let tokens: Vec<u32> = (0..70).map(|i| i * i % 70).collect();
    let mut embedded = vec![0.0; 70 * hidden];
    embed(&tokens, table, Some(positions), 35, &mut embedded);
    for (n, row) in embedded.chunks(hidden).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            let token = tokens[n] as usize;
            assert_eq!(value, table[token * hidden + j] + positions[n % 35 * hidden + j]);
        }
    }

    let (x, grads) = (random::<f32>(40_001, 1), random::<f32>(40_001, 2));
    let (mut whole, mut params) = (x.clone(), x);
    let (mut m, mut v) = (vec![0.0; whole.len()], vec![0.0; whole.len()]);
    let adam = AdamW::default();
    adam.step(1, 1e-2, true, &mut whole, &grads, &mut m, &mut v, 0.5);
    for (p, g) in params.chunks_mut(1000).zip(grads.chunks(1000)) {
        let (mut m, mut v) = (vec![0.0; p.len()], vec![0.0; p.len()]);
        adam.step(1, 1e-2, true, p, g, &mut m, &mut v, 0.5);
    }
    assert_eq!(whole, params, "AdamW");
}

/// The same source in f32 and f64 from the same numbers. An output is at most a few dozen roundings of terms
/// no larger than `scale`. A sum of 37 terms has a chain of 3 additions a lane and 4 folds, one of 70 rows a
/// chain of 32 and 3 blocks, each growing with the partial sums.
#[test]
fn f32_follows_f64() {
    let single = outputs::<f32>(2 * ROW_BLOCK + 6, 37, 2_000);
    let double = outputs::<f64>(2 * ROW_BLOCK + 6, 37, 2_000);
    for ((name, single), (_, double)) in single.iter().zip(&double) {
        let scale = double.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
        for (a, b) in single.iter().zip(double) {
            let error = (f64::from(*a) - b).abs();
            assert!(
                error <= 12.0 * f64::from(f32::EPSILON) * scale,
                "{name}: {a} in f32, {b} in f64"
            );
        }
    }
}

/// The order of sums, written once more without blocks, lanes or slices of the code under test.
#[test]
fn sums_have_the_written_order() {
    let (rows, width) = (2 * ROW_BLOCK + 5, 37);
    let (x, dy) = (random::<f32>(rows * width, 1), random::<f32>(rows * width, 2));
    let gamma = vec![1.0; width];
    let (mut y, mut mean, mut rstd) = (x.clone(), vec![0.0; rows], vec![0.0; rows]);
    layer_norm(&x, &gamma, None, 0.0, &mut y, &mut mean, &mut rstd);
    for (row, mean) in mean.iter().enumerate() {
        let mut lanes = [0.0_f32; 16];
        for j in 0..width {
            lanes[j % 16] += x[row * width + j];
        }
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        assert_eq!(*mean, lanes[0] * (1.0 / 37.0));
    }
    let (mut dx, mut dgamma, mut dbeta) = (y.clone(), vec![0.5; width], vec![0.5; width]);
    layer_norm_backward(&x, &gamma, &mean, &rstd, &dy, &mut dx, &mut dgamma, Some(&mut dbeta));
    for j in 0..width {
        let (mut sum, mut block, mut in_block) = (0.5_f32, 0.0, 0);
        for row in 0..rows {
            block += dy[row * width + j];
            in_block += 1;
            if in_block == 32 || row + 1 == rows {
                sum += block;
                (block, in_block) = (0.0, 0);
            }
        }
        assert_eq!(dbeta[j], sum);
    }
}

#[test]
fn loss_of_extreme_logits() {
    let mut losses = [0.0_f32; 3];
    let mut logits = [3e38_f32, -3e38, f32::NEG_INFINITY, 5.0, f32::NAN, 0.0];
    cross_entropy(&mut logits, 2, &[0, 1, 1], None, &mut losses);
    assert_eq!(losses[0], 0.0);
    assert_eq!(losses[1], 0.0);
    assert!(losses[2].is_nan(), "a NaN among the logits must reach the loss");
}

#[test]
#[should_panic(expected = "token 4 is outside the vocabulary of 4")]
fn a_token_outside_the_table_is_named() {
    embed(&[0, 4], &[0.0_f32; 12], None, 2, &mut [0.0; 6]);
}

#[test]
#[should_panic(expected = "layer_norm: rstd has 3 elements, not 2")]
fn a_wrong_length_is_named() {
    let (mut y, mut mean, mut rstd) = ([0.0_f32; 6], [0.0; 2], [0.0; 3]);
    layer_norm(&[0.0; 6], &[1.0; 3], None, 1e-5, &mut y, &mut mean, &mut rstd);
}
