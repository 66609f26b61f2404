//! The f32 product of few outputs with long sums, divided between many threads: weights' gradients.
//!
//! Both operands of such a product are as long as the batch, and each piece of the output needs a strip of
//! all of both. Sixteen threads that divide the output read everything many times, most of it packed by
//! another core. Here a thread makes whole blocks of K instead: what it reads is its own, and read once. The
//! blocks' sums are kept apart and then added in the order of [`f32`](super), so the bits are the same.

use std::cell::Cell;
use std::ops::Range;

use super::{K_BLOCK, Output, matmul_serial};
use crate::parallel;
use crate::slice::{View, ViewMut};

/// With fewer threads the sums' way through memory costs more than it saves.
const THREADS: usize = 8;
/// Numbers of the sums that one thread keeps: 4 MiB.
const KEPT: usize = 1 << 20;

thread_local! {
    /// The sums of blocks, whose memory serves call after call: what is there is overwritten.
    static SUMS: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Whether [`matmul`] is the faster way to make `rows` x `cols` sums of `depth` products. Threads must
/// share the blocks about evenly.
pub(super) fn pays((rows, cols): (usize, usize), depth: usize) -> bool {
    let (blocks, threads) = (depth.div_ceil(K_BLOCK), parallel::threads());
    let turns = blocks.div_ceil(threads);
    threads >= THREADS
        && blocks * 8 >= turns * threads * 7
        && (1..=KEPT / 64).contains(&rows)
        && cols > 0
}

/// `c = a b` or `c += a b`: some columns at a time, and of these as many blocks of K as there are threads.
pub(super) fn matmul(a: View<'_, f32>, b: View<'_, f32>, mut c: ViewMut<'_, f32>, output: Output) {
    let (rows, cols, depth, stride) = (c.rows(), c.cols(), a.cols(), c.row_stride());
    let turn = parallel::threads() * K_BLOCK;
    let parts = (rows * cols).div_ceil(KEPT);
    let wide = cols.div_ceil(parts).next_multiple_of(48);
    // A nested call on this thread finds none, and makes its own.
    let mut sums = SUMS.take();
    for columns in ranges(cols, wide) {
        let width = columns.len();
        let b = b.cols_range(columns.clone());
        for turn in ranges(depth, turn) {
            let blocks = turn.len().div_ceil(K_BLOCK);
            sums.resize(sums.len().max(blocks * rows * width), 0.0);
            let sums = &mut sums[..blocks * rows * width];
            parallel::for_each_chunk(sums, rows * width, |i, sums| {
                let first = turn.start + i * K_BLOCK;
                let k = first..turn.end.min(first + K_BLOCK);
                let out = ViewMut::new(sums, rows, width);
                matmul_serial(a.cols_range(k.clone()), b.rows_range(k), out, Output::Overwrite);
            });
            let stored = turn.start == 0 && output == Output::Overwrite;
            let data = c.data_mut();
            let len = data.len().min(rows * stride);
            parallel::for_each_chunk(&mut data[..len], stride, |row, out| {
                let out = &mut out[columns.clone()];
                let rows =
                    sums.chunks_exact(rows * width).map(|sums| &sums[row * width..][..width]);
                for (block, sums) in rows.enumerate() {
                    if block == 0 && stored {
                        out.copy_from_slice(sums);
                    } else {
                        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                    }
                }
            });
        }
    }
    SUMS.set(sums);
}

/// `0..end` in pieces of `len`.
fn ranges(end: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(len).map(move |first| first..end.min(first + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::f32::matmul_reference;

    /// Ragged shapes, blocks that are not shared evenly, and more columns than are made at once.
    #[test]
    fn bits_are_those_of_the_definition() {
        let fill = |len: usize, step: usize| -> Vec<f32> {
            (0..len).map(|i| ((i * step % 1009) as f32 - 504.0) / 3.0).collect()
        };
        for (rows, cols, depth) in [(7, 5, 8 * 256 - 3), (33, 50, 11 * 256 + 9), (1100, 1001, 300)]
        {
            let (a, b) = (fill(rows * depth, 37), fill(depth * cols, 53));
            let (a, b) = (View::new(&a, depth, rows).t(), View::new(&b, depth, cols));
            let old = fill(rows * (cols + 2), 11);
            for output in [Output::Overwrite, Output::Accumulate] {
                let (mut expected, mut got) = (old.clone(), old.clone());
                let view = |c| ViewMut::with_row_stride(c, rows, cols, cols + 2).unwrap();
                matmul_reference(a, b, view(&mut expected), output);
                parallel::with_threads(8, || matmul(a, b, view(&mut got), output)).unwrap();
                let bits = |c: &[f32]| c.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert!(bits(&expected) == bits(&got), "{rows} x {cols} x {depth}, {output:?}");
            }
        }
    }

    /// By hand: 32 blocks are two for each of 16 threads, and 33 would be three for one of them.
    #[test]
    fn it_pays_where_threads_share_blocks_evenly() {
        let of =
            |threads, depth| parallel::with_threads(threads, || pays((768, 768), depth)).unwrap();
        assert!(of(16, 32 * 256) && of(16, 28 * 256) && of(8, 8 * 256));
        assert!(!of(16, 33 * 256) && !of(16, 27 * 256) && !of(4, 32 * 256) && !of(16, 256));
    }
}
