//! Token embedding, with or without learned absolute positions.
//!
//! `y[n] = table[tokens[n]] + positions[n mod sequence]`: tokens (B, T) flattened, `sequence` is T,
//! table (V, D), positions (context, D) with context at least T. Without positions (rotary models)
//! the row of the table is the result.
//!
//! The backward adds rows in ascending token position: rows of the table are what threads divide,
//! each walks the tokens from the first to the last and takes those that are its own.

use super::real::Real;
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// Into how many ranges the backward divides the table: enough for the threads of a desk-side
/// machine, few because every range reads all the tokens.
const RANGES: usize = 16;

/// D of a call, after everything about its shape was checked.
#[track_caller]
fn width<T>(
    name: &str,
    tokens: &[u32],
    table: &[T],
    positions: Option<&[T]>,
    sequence: usize,
    y: &[T],
) -> usize {
    if tokens.is_empty() {
        assert!(y.is_empty(), "{name}: {} outputs for no token", y.len());
        return 0;
    }
    let width = y.len() / tokens.len();
    assert!(
        width > 0 && width * tokens.len() == y.len() && table.len().is_multiple_of(width),
        "{name}: {} tokens, {} outputs and a table of {} elements share no width",
        tokens.len(),
        y.len(),
        table.len()
    );
    assert!(
        sequence > 0 && tokens.len().is_multiple_of(sequence),
        "{name}: {} tokens are no whole number of sequences of {sequence}",
        tokens.len()
    );
    if let Some(positions) = positions {
        assert!(
            positions.len().is_multiple_of(width) && positions.len() / width >= sequence,
            "{name}: a sequence of {sequence} is longer than the {} learned positions",
            positions.len() / width
        );
    }
    let vocabulary = table.len() / width;
    if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
        panic!("{name}: token {token} is outside the vocabulary of {vocabulary}");
    }
    width
}

/// tokens (N = B T), table (V, D) and positions (context, D) to y (N, D).
///
/// # Panics
/// If the lengths do not fit each other, the sequence is longer than the positions, or a token is
/// outside the vocabulary.
#[track_caller]
pub fn embed<T: Real>(
    tokens: &[u32],
    table: &[T],
    positions: Option<&[T]>,
    sequence: usize,
    y: &mut [T],
) {
    let _lap = lap(Part::Embedding(Direction::Forward));
    let width = width("embed", tokens, table, positions, sequence, y);
    if width == 0 {
        return;
    }
    let rows = ((1 << 15) / width).max(1);
    parallel::for_each_chunk(y, rows * width, |i, y| {
        let tokens = &tokens[i * rows..][..y.len() / width];
        embed_rows(tokens, table, positions, i * rows, sequence, width, y);
    });
}

kernel! {
    fn embed_rows<'a, T: Real>(
        tokens: &'a [u32],
        table: &'a [T],
        positions: Option<&'a [T]>,
        first: usize,
        sequence: usize,
        width: usize,
        y: &'a mut [T],
    ) {
        for (n, (y, &token)) in y.chunks_exact_mut(width).zip(tokens).enumerate() {
            let row = &table[token as usize * width..][..width];
            match positions {
                None => y.copy_from_slice(row),
                Some(positions) => {
                    let position = &positions[(first + n) % sequence * width..][..width];
                    for ((y, &a), &b) in y.iter_mut().zip(row).zip(position) {
                        *y = a + b;
                    }
                }
            }
        }
    }
}

/// Backward of [`embed`] for the table: rows of dy (N, D) are added to d_table (V, D), each row of which
/// receives its terms in ascending token position.
///
/// # Panics
/// As [`embed`].
#[track_caller]
pub fn embed_backward<T: Real>(tokens: &[u32], dy: &[T], d_table: &mut [T]) {
    let _lap = lap(Part::Embedding(Direction::Backward));
    let width = width("embed_backward", tokens, d_table, None, tokens.len(), dy);
    if width == 0 {
        return;
    }
    let rows = (d_table.len() / width).div_ceil(RANGES);
    parallel::for_each_chunk(d_table, rows * width, |i, d_table| {
        add_tokens(tokens, dy, i * rows, width, d_table);
    });
}

/// Backward of [`embed`] for the positions: rows of dy (B T, D) are added to d_positions (context, D). Each
/// row of that receives its terms in ascending order of the sequences.
///
/// # Panics
/// If `dy` is no whole number of sequences of `sequence` rows of `width`, or there are fewer positions.
#[track_caller]
pub fn positions_backward<T: Real>(dy: &[T], width: usize, sequence: usize, d_positions: &mut [T]) {
    let _lap = lap(Part::Embedding(Direction::Backward));
    if dy.is_empty() {
        return;
    }
    let len = sequence * width;
    assert!(
        len > 0 && dy.len().is_multiple_of(len) && d_positions.len() >= len,
        "positions_backward: {} elements are no sequences of {sequence} rows of {width}, or {} \
         elements of positions too few",
        dy.len(),
        d_positions.len()
    );
    let rows = sequence.div_ceil(RANGES);
    parallel::for_each_chunk(&mut d_positions[..len], rows * width, |i, d| {
        add_positions(dy, i * rows, sequence, width, d);
    });
}

kernel! {
    /// Adds the rows of `dy` whose tokens lie in the range of the table that starts at `first`.
    fn add_tokens<'a, T: Real>(
        tokens: &'a [u32],
        dy: &'a [T],
        first: usize,
        width: usize,
        d_table: &'a mut [T],
    ) {
        let rows = d_table.len() / width;
        for (&token, dy) in tokens.iter().zip(dy.chunks_exact(width)) {
            // Below `first` the subtraction wraps to something large.
            let row = (token as usize).wrapping_sub(first);
            if row < rows {
                for (d, &dy) in d_table[row * width..][..width].iter_mut().zip(dy) {
                    *d += dy;
                }
            }
        }
    }
}

kernel! {
    /// Adds to the positions from `first` on what every sequence has there.
    fn add_positions<'a, T: Real>(
        dy: &'a [T],
        first: usize,
        sequence: usize,
        width: usize,
        d_positions: &'a mut [T],
    ) {
        for dy in dy.chunks_exact(sequence * width) {
            for (d, &dy) in d_positions.iter_mut().zip(&dy[first * width..]) {
                *d += dy;
            }
        }
    }
}
