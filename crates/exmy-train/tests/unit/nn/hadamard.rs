//! Hadamard matrices of all orders that are offered: each product of two rows is exact.

use exmy_train::nn::hadamard::{is_known, matrix};

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
