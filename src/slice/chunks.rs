//! How slices are walked: large ones divided between threads, all of them a chunk at a time.

use super::SPAN;

/// Elements a thread takes at a time, 256 KiB of `f32`; from four times as many on it is worth
/// waking one.
#[cfg(feature = "parallel")]
const CHUNK: usize = 1 << 16;

/// Calls `work(first, x, out)` for the whole, or, with the feature `parallel`, for large pieces on
/// several threads.
pub(super) fn divided<A: Sync, B: Send>(
    x: &[A],
    out: &mut [B],
    work: impl Fn(usize, &[A], &mut [B]) + Sync + Send,
) {
    #[cfg(feature = "parallel")]
    if out.len() >= 4 * CHUNK {
        return crate::parallel::for_each_chunk(out, CHUNK, |i, out| {
            let first = i * CHUNK;
            work(first, &x[first..first + out.len()], out);
        });
    }
    work(0, x, out);
}

/// As [`divided`], in place.
pub(super) fn divided_in_place<T: Send>(
    data: &mut [T],
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    #[cfg(feature = "parallel")]
    if data.len() >= 4 * CHUNK {
        return crate::parallel::for_each_chunk(data, CHUNK, |i, data| work(i * CHUNK, data));
    }
    work(0, data);
}

/// Calls `work(first, x, out)` for chunks of up to [`SPAN`], which stay in the first-level cache
/// with what is made of them.
pub(super) fn spans<A, B>(x: &[A], out: &mut [B], mut work: impl FnMut(usize, &[A], &mut [B])) {
    for (i, (x, out)) in x.chunks(SPAN).zip(out.chunks_mut(SPAN)).enumerate() {
        work(i * SPAN, x, out);
    }
}
