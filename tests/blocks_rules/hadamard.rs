//! The Hadamard transform against a product with the matrix in f64, and its algebra.

use exmy::block::hadamard::{Hadamard, HadamardError, Signs};
use exmy::quantizer::{Axis, Quantizer};
use exmy::simd::{Level, with_level};
use exmy::slice::{View, ViewMut};

use super::{RANDOM, bits, uniform};

/// Transformer Engine's `get_wgrad_sign_vector`.
const SIGNS: [f64; 16] = [1., 1., 1., -1., 1., -1., -1., -1., -1., -1., -1., 1., -1., 1., -1., -1.];

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// `diag(s) H / sqrt n`, H by the recursion of Sylvester.
fn matrix(n: usize, sign: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
    let mut h = vec![vec![1.0]];
    while h.len() < n {
        let top = h.iter().map(|row| [row.clone(), row.clone()].concat());
        let bottom = h
            .iter()
            .map(|row| row.iter().copied().chain(row.iter().map(|x| -x)).collect::<Vec<f64>>());
        h = top.chain(bottom.collect::<Vec<_>>()).collect();
    }
    let scale = 1.0 / (n as f64).sqrt();
    h.iter().enumerate().map(|(i, row)| row.iter().map(|x| x * sign(i) * scale).collect()).collect()
}

fn times(x: &[f32], m: &[Vec<f64>]) -> Vec<f64> {
    (0..m.len()).map(|j| x.iter().zip(m).map(|(x, row)| f64::from(*x) * row[j]).sum()).collect()
}

#[test]
fn is_the_matrix_product() {
    for size in Hadamard::SIZES {
        for (signs, sign) in [
            (Signs::Plus, Box::new(|_| 1.0) as Box<dyn Fn(usize) -> f64>),
            (Signs::TransformerEngine, Box::new(|i| SIGNS[i % 16])),
        ] {
            let m = matrix(size, sign);
            let rotation = Hadamard::new(size, signs).unwrap();
            // Lengths with and without a remainder of vectors of 16.
            for groups in [1, 3, 8, 33] {
                let x: Vec<f32> = (0..size * groups).map(uniform).collect();
                let (mut full, mut short) = (x.clone(), x.clone());
                rotation.in_f32().apply(&mut full);
                rotation.apply(&mut short);
                for (g, x) in x.chunks(size).enumerate() {
                    for (j, want) in times(x, &m).into_iter().enumerate() {
                        let found = full[g * size + j];
                        // log2 n additions and one product of numbers below sqrt n.
                        let tolerance = 8.0 * (size as f64).sqrt() / 16_777_216.0;
                        assert!((f64::from(found) - want).abs() < tolerance, "{rotation} {g} {j}");
                        let half = half::bf16::from_f32(found).to_f32();
                        assert_eq!(short[g * size + j].to_bits(), half.to_bits(), "{rotation}");
                    }
                }
            }
        }
    }
}

/// The written order, one butterfly after another in the plainest way.
#[test]
fn has_one_order_at_every_level_and_along_both_axes() {
    let plain = |rotation: Hadamard, x: &mut [f32], sign: &dyn Fn(usize) -> bool| {
        let n = rotation.size();
        for x in x.chunks_mut(n) {
            for (i, x) in x.iter_mut().enumerate() {
                *x = if sign(i) { -*x } else { *x };
            }
            let mut h = 1;
            while h < n {
                for i in 0..n {
                    if i & h == 0 {
                        (x[i], x[i + h]) = (x[i] + x[i + h], x[i] - x[i + h]);
                    }
                }
                h *= 2;
            }
            let scale = (1.0 / (n as f64).sqrt()) as f32;
            x.iter_mut().for_each(|x| *x *= scale);
        }
    };
    let random = exmy::random::Philox::new(7, exmy::random::Stream::new("hadamard signs"));
    let drawn = move |i: usize| random.word(i as u64) >> 31 == 1;
    assert!((0..128).any(drawn) && !(0..128).all(drawn));
    for size in Hadamard::SIZES {
        let rotation = Hadamard::new(size, Signs::Random(7)).unwrap().in_f32();
        // Sums that cancel, specials, zeros of both signs, subnormals.
        let x: Vec<f32> = (0..size * 11)
            .map(|i| match i % 97 {
                5 => -0.0,
                6 => 1e-40,
                7 if i > 5 * size => f32::INFINITY,
                8 => 3e7,
                _ => uniform(i),
            })
            .collect();
        let mut want = x.clone();
        plain(rotation, &mut want, &drawn);
        let same = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        };
        for level in levels() {
            let mut found = x.clone();
            with_level(level, || rotation.apply(&mut found));
            assert!(same(&found, &want), "{rotation} {level}");
            // The same groups as columns of a matrix, with a gap after each row.
            for cols in [1, 11] {
                let (rows, stride) = (x.len() / cols, cols + 2);
                let mut down = vec![9.0; (rows - 1) * stride + cols];
                for (k, x) in x.iter().enumerate() {
                    down[k % rows * stride + k / rows] = *x;
                }
                with_level(level, || rotation.apply_down(&mut down, cols, stride));
                let found: Vec<f32> =
                    (0..x.len()).map(|k| down[k % rows * stride + k / rows]).collect();
                assert!(same(&found, &want), "{rotation} {level} down {cols}");
                assert!(down.chunks(stride).all(|row| row[cols..].iter().all(|x| *x == 9.0)));
            }
        }
    }
}

/// Integers survive the transform and its inverse exactly where `1 / sqrt n` is a power of two; others
/// to a few places. That is orthogonality.
#[test]
fn inverts() {
    for text in
        ["rht4-f32", "ht16-f32", "rht16-f32", "rht16-seed3-f32", "rht64-f32", "rht64-seed9-f32"]
    {
        let rotation: Hadamard = text.parse().unwrap();
        let x: Vec<f32> = (0..rotation.size() * 5).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
        let mut y = x.clone();
        rotation.apply(&mut y);
        assert_ne!(x, y);
        rotation.invert(&mut y);
        assert_eq!(x, y, "{text}");
        rotation.apply_down(&mut y, 5, 5);
        rotation.invert_down(&mut y, 5, 5);
        assert_eq!(x, y, "{text} down");
    }
    for size in [2, 8, 32, 128] {
        let rotation = Hadamard::new(size, Signs::TransformerEngine).unwrap().in_f32();
        let x: Vec<f32> = (0..size * 3).map(uniform).collect();
        let mut y = x.clone();
        rotation.apply(&mut y);
        rotation.invert(&mut y);
        for (x, y) in x.iter().zip(&y) {
            assert!((x - y).abs() < 1e-6, "{rotation}: {x} {y}");
        }
    }
}

/// `(A R)(B R)^T = A B^T`, exactly for small integers.
#[test]
fn products_do_not_change() {
    let rotation: Hadamard = "rht16-f32".parse().unwrap();
    let k = 48;
    let small = |seed: usize, n: usize| -> Vec<f32> {
        (0..n * k).map(|i| ((i * 31 + seed) % 17) as f32 - 8.0).collect()
    };
    let (mut a, mut b) = (small(1, 5), small(2, 3));
    let product = |a: &[f32], b: &[f32]| -> Vec<f32> {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum();
        a.chunks(k).flat_map(|a| b.chunks(k).map(move |b| dot(a, b))).collect()
    };
    let want = product(&a, &b);
    rotation.apply(&mut a);
    rotation.apply(&mut b);
    assert_eq!(product(&a, &b), want);
}

/// A group of Transformer Engine's: an outlier spreads, by hand. Row 3 of `diag(s) H / 4` is
/// `-(1 -1 -1 1 1 -1 -1 1 ...) / 4`.
#[test]
fn transformer_engine_by_hand() {
    let mut x = [0.0_f32; 16];
    x[3] = 100.0;
    Hadamard::TRANSFORMER_ENGINE.apply(&mut x);
    let row = [-25.0, 25.0, 25.0, -25.0];
    assert_eq!(x.to_vec(), row.repeat(4));
    // 1.00390625 * 0.25 = 0.2509765625 needs 9 bits; bfloat16 has 8, and the tie goes to 0.25.
    let mut x = [0.0_f32; 16];
    x[0] = 257.0 / 256.0;
    Hadamard::TRANSFORMER_ENGINE.apply(&mut x);
    assert_eq!(x, [0.25; 16]);
    let mut x = [0.0_f32; 16];
    x[0] = 257.001 / 256.0;
    Hadamard::TRANSFORMER_ENGINE.apply(&mut x);
    assert_eq!(x, [129.0 / 512.0; 16]);
    // A NaN takes its group, and no other.
    let mut x = [1.0_f32; 48];
    x[20] = f32::NAN;
    Hadamard::TRANSFORMER_ENGINE.apply(&mut x);
    assert!((0..48).all(|i| x[i].is_nan() == (16..32).contains(&i)));
}

#[test]
fn ragged_lengths() {
    let rotation = Hadamard::TRANSFORMER_ENGINE;
    assert_eq!(rotation.check(0), Ok(()));
    assert_eq!(rotation.check(33), Err(HadamardError::Ragged { size: 16, length: 33 }));
    assert!(rotation.check(33).unwrap_err().to_string().contains("15 zeros"));
    let x: Vec<f32> = (0..2 * 20).map(uniform).collect();
    let (padded, cols) = rotation.padded(View::new(&x, 2, 20));
    assert_eq!((padded.len(), cols), (64, 32));
    let mut want = [&x[20..], &[0.0; 12]].concat();
    rotation.apply(&mut want);
    assert_eq!(bits(&padded[32..]), bits(&want));
    let mut wide = x.clone();
    let unchanged = rotation.apply_matrix(ViewMut::new(&mut wide, 2, 20), false);
    assert!(unchanged.is_err() && wide == x);
    let refused = std::panic::catch_unwind(|| Hadamard::TRANSFORMER_ENGINE.apply(&mut [0.0; 17]));
    assert!(refused.is_err());
}

/// A quantizer casts, rotates and then rounds, along either axis and into rows apart.
#[test]
fn in_a_quantizer() {
    let (rows, cols) = (32, 48);
    let x: Vec<f32> =
        (0..rows * cols).map(|i| uniform(i) * if i % 50 == 7 { 30.0 } else { 1.0 }).collect();
    for (text, before, rotation, target) in [
        ("rht16>nvfp4", "none", "rht16", "nvfp4"),
        ("bf16>rht16>nvfp4@sr8", "bf16", "rht16", "nvfp4@sr8"),
        ("ht4-f32>e8m3@rtz", "none", "ht4-f32", "e8m3@rtz"),
        ("rht8>none", "none", "rht8", "none"),
    ] {
        for axis in [Axis::Cols, Axis::Rows] {
            let round = |text: &str, x: &[f32]| {
                let quantizer: Quantizer = text.parse().unwrap();
                let mut out = vec![0.0; rows * cols];
                let to = ViewMut::new(&mut out, rows, cols);
                quantizer.image_into(View::new(x, rows, cols), axis, RANDOM, to);
                out
            };
            let mut steps = round(before, &x);
            let rotation: Hadamard = rotation.parse().unwrap();
            let down = axis == Axis::Rows;
            rotation.apply_matrix(ViewMut::new(&mut steps, rows, cols), down).unwrap();
            assert_eq!(bits(&round(text, &x)), bits(&round(target, &steps)), "{text} {axis:?}");

            let quantizer: Quantizer = text.parse().unwrap();
            let stride = cols + 3;
            let mut apart = vec![7.0; (rows - 1) * stride + cols];
            let out = ViewMut::with_row_stride(&mut apart, rows, cols, stride).unwrap();
            quantizer.image_into(View::new(&x, rows, cols), axis, RANDOM, out);
            let joined: Vec<f32> =
                apart.chunks(stride).flat_map(|row| row[..cols].to_vec()).collect();
            assert_eq!(bits(&joined), bits(&round(text, &x)), "{text} {axis:?} apart");
            assert!(apart.chunks(stride).all(|row| row[cols..].iter().all(|x| *x == 7.0)));
        }
    }
}
