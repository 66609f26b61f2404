//! Hadamard matrices of all orders that are offered: each product of two rows is exact.

use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};
use exmy_train::nn::device::Cpu;
use exmy_train::nn::device_rotation::DeviceRotation;
use exmy_train::nn::hadamard::{Rotation, butterflies, held, is_known, matrix};

/// Whether all elements are signs, and rows are orthogonal: 64 signs a word.
fn is_hadamard(n: usize, matrix: &[i8]) -> bool {
    let word =
        |signs: &[i8]| signs.iter().fold(0_u64, |word, &sign| word << 1 | u64::from(sign > 0));
    let rows: Vec<Vec<u64>> =
        matrix.chunks_exact(n).map(|row| row.chunks(64).map(word).collect()).collect();
    let differences =
        |a: &[u64], b: &[u64]| -> u32 { a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum() };
    let are_orthogonal =
        |i: usize| rows[..i].iter().all(|row| 2 * differences(row, &rows[i]) as usize == n);
    matrix.len() == n * n && matrix.iter().all(|x| x.abs() == 1) && (0..n).all(are_orthogonal)
}

#[test]
fn every_order_has_orthogonal_rows() {
    let known: Vec<usize> = (0..=700).filter(|&n| is_known(n)).collect();
    for &n in &known {
        assert!(is_hadamard(n, &matrix(n).unwrap()), "{n}");
    }
    assert!(!is_hadamard(2, &[1, 1, 1, 1]) && !is_hadamard(2, &[1, 0, 1, -1]));
    // Those that no construction here gives, of the orders there may be.
    let missing: Vec<usize> = (4..=256).step_by(4).filter(|n| !known.contains(n)).collect();
    assert_eq!(missing, [188, 236]);
    assert!(known.iter().all(|n| [1, 2].contains(n) || n.is_multiple_of(4)));
}

/// Widths of the MLPs of models that are in use: Llama's and Qwen's.
#[test]
fn widths_of_published_models_are_known() {
    for hidden in [172, 344, 5632, 8960, 11008, 13824, 14336, 18944, 27648, 28672, 29568] {
        assert!(is_known(hidden), "{hidden}");
    }
    assert!(!is_known(13696) && matrix(188).is_none());
}

/// Rows that a device rotates, by the rotation itself: to the bit where no number is rounded, that is of
/// whole numbers and orders that are powers of four; else within `k + part + 2` roundings of the sum of
/// magnitudes.
#[test]
fn a_device_rotates_as_the_rotation_does() {
    let numbers = |n: usize, seed: u64| -> Vec<f64> {
        let philox = Philox::new(seed, Stream::new("rows to rotate"));
        (0..n as u64).map(|i| f64::from(philox.word(i) % 2001) - 1000.0).collect()
    };
    for n in [1, 2, 4, 12, 24, 64, 256, 344, 384, 1024, 1536] {
        let rotation = Rotation::new(n, 3, Stream::new("example")).unwrap();
        let rows = numbers(5 * n, n as u64);
        let mut expected = rows.clone();
        expected.chunks_mut(n).for_each(|row| rotation.apply(row));
        let mut x: Vec<f32> = rows.iter().map(|&x| x as f32).collect();
        let mut y = vec![f32::NAN; x.len()];
        let device = Cpu::new();
        DeviceRotation::new(&device, &rotation).apply(&device, (&mut x).into(), (&mut y).into());
        let bound = |row: &[f64]| {
            let sum: f64 = row.iter().map(|x| x.abs()).sum();
            let (k, part) = (f64::from(n.ilog2()), 128.min(n) as f64);
            (k + part + 2.0) * sum / (n as f64).sqrt() * f64::from(f32::EPSILON)
        };
        for (i, (y, expected)) in y.iter().zip(&expected).enumerate() {
            let row = &rows[i / n * n..][..n];
            let bound = if n.is_power_of_two() && n.ilog2() % 2 == 0 { 0.0 } else { bound(row) };
            assert!((f64::from(*y) - expected).abs() <= bound, "{n}, {i}: {y} {expected}");
        }
    }
}

#[test]
fn threads_and_levels_change_no_bit() {
    let (n, part) = (384, 96);
    let philox = Philox::new(8, Stream::new("rows to rotate"));
    let rows: Vec<f32> = (0..70 * n as u64).map(|i| philox.uniform(i) as f32 - 0.5).collect();
    let signs: Vec<f32> = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
    // As one reads it.
    let mut expected = rows.clone();
    for row in expected.chunks_mut(n) {
        for (x, sign) in row.iter_mut().zip(&signs) {
            *x *= sign;
        }
        for half in [96, 192] {
            for at in (0..n).filter(|at| at / half % 2 == 0) {
                (row[at], row[at + half]) = (row[at] + row[at + half], row[at] - row[at + half]);
            }
        }
    }
    let run = || {
        let mut rows = rows.clone();
        butterflies(&mut rows, &signs, part);
        rows
    };
    assert!(exmy::parallel::with_threads(1, run).unwrap() == expected);
    assert!(exmy::parallel::with_threads(3, run).unwrap() == expected);
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        assert!(with_level(level, run) == expected, "{level}");
    }
}

/// A width of which the matrix that is no multiple would be large is refused: of order 4100 = 4099 + 1 it
/// would have 17 million elements.
#[test]
fn large_matrices_are_none() {
    assert!(is_known(4092) && is_known(4096 * 12) && !is_known(4100) && !is_known(1 << 40 | 4));
    assert!(Rotation::new(4100, 1, Stream::new("example")).is_none());
    assert_eq!([held(1536), held(6), held(14336)], [1536 + 96 * 96, 0, 14336 + 112 * 112]);
}
