//! What slices larger than the caches need besides arithmetic: memory that is on its way before it
//! is read, and writes that do not read what they overwrite.
//!
//! The processor's own prefetching stops at pages of 4 KiB, and an ordinary store first reads the
//! line it writes to. So a large conversion asks for what comes next itself, and writes results
//! past the caches, from a buffer in the first-level cache. Both are instructions of SSE2, which every
//! x86-64 processor has and all its targets but those of bare machines; elsewhere these functions do
//! without.
//!
//! Lines far ahead are fetched into the second-level cache, which can wait for more lines at a time
//! than the first. Near ones are fetched from there into the first. With AVX-512 a store past the
//! caches is a whole line. The two together, with 2^24 numbers and one thread, made f32 to bf16 a
//! third faster than near requests and stores of 16 bytes did. They made f32 to e4m3 4 to 8 %
//! faster than stores through the caches; for codes of a byte, stores of 16 bytes were not faster.

#![allow(unsafe_code)]

use crate::minifloat::Word;

/// Bytes of input and output from which a conversion counts as larger than the caches: more than
/// any second-level cache holds, and than a core's part of most third-level ones.
const LARGE: usize = 32 << 20;

/// Elements between two looks ahead, and to what is near. Where the input is four times the output,
/// there are half as many. Then f32 to codes of a byte, 2^24 numbers, ran at 3.05 to 3.11 Gelem/s
/// instead of 2.91 to 3.04, 1.04 times as fast in each of four comparisons. With a quarter as many
/// it ran at 2.5.
const STEP: usize = 256;

/// The same where work is heavy and results stay in the caches: what a piece costs by itself is
/// divided among more elements. On one core of an AMD EPYC (Zen 4), 2^24 numbers, f32 to
/// e4m3@sr8 ran at 1.28 to 1.35 Gelem/s instead of 1.07 to 1.10; with 1024 at 1.21 to 1.26.
const HEAVY_STEP: usize = 512;

/// Bytes of input to what is far.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const FAR: usize = 16 << 10;

/// How the memory behind two slices is best treated. Results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// It is, or will be, in the caches.
    Cached,
    /// What is read next is asked for early.
    Ahead,
    /// That, and results are written past the caches.
    Past,
}

impl Traffic {
    /// For the whole of input and output. Work that is not `light` writes through the caches: it
    /// takes long enough for their traffic, and bursts of writes past them would only add to it.
    /// Measured by `cargo bench --bench bulk`, e4m3@rtz of 2^24 numbers: 1.40 against 1.32 Gelem/s.
    /// Nor do results of one byte pay where a store is less than a line.
    pub(crate) fn of<A, B>(x: &[A], out: &[B], light: bool) -> Self {
        let pays = size_of::<B>() >= 2 || crate::simd::level() >= crate::simd::Level::Avx512;
        Self::of_bytes(size_of_val(x) + size_of_val(out), light && pays)
    }

    /// For as many bytes of both, to be written past the caches or not.
    pub(crate) const fn of_bytes(bytes: usize, past: bool) -> Self {
        match cfg!(all(target_arch = "x86_64", target_feature = "sse2")) && bytes >= LARGE {
            false => Self::Cached,
            true if past => Self::Past,
            true => Self::Ahead,
        }
    }

    /// Calls `work(offset, x, out)`, for all of the slices or for short pieces in order.
    #[inline]
    pub(crate) fn pieces<A, B: Word>(
        self,
        x: &[A],
        out: &mut [B],
        mut work: impl FnMut(usize, &[A], &mut [B]),
    ) {
        let Some(any) = out.first().copied().filter(|_| self != Self::Cached) else {
            return work(0, x, out);
        };
        let _fence = Fence::after(self);
        let step = match self {
            Self::Ahead => HEAVY_STEP,
            _ if size_of::<A>() >= 4 * size_of::<B>() => STEP / 2,
            _ => STEP,
        };
        let mut buffer = Line([any; STEP]);
        let buffer = &mut buffer.0[..step.min(STEP)];
        // All pieces but the first begin with a line of the output.
        let mut end = out.as_ptr().align_offset(LINE).min(out.len());
        let mut at = 0;
        while at < out.len() {
            if end == at {
                end = (at + step).min(out.len());
            }
            let (piece, out) = (&x[at..end], &mut out[at..end]);
            fetch(piece, step);
            fetch_far(piece);
            if self == Self::Past && out.len() == step {
                work(at, piece, buffer);
                write_past(buffer, out);
            } else {
                work(at, piece, out);
            }
            at = end;
        }
    }
}

/// Bytes of a line of the caches.
pub(crate) const LINE: usize = 64;

#[repr(align(64))]
struct Line<T>(T);

/// Asks for as many bytes as `x` has, `distance` elements on.
#[inline(always)]
pub(crate) fn fetch<T>(x: &[T], distance: usize) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    lines::<T, { core::arch::x86_64::_MM_HINT_T0 }>(x, distance);
    let _ = (x, distance);
}

/// The same of what is far, into the second-level cache.
#[inline(always)]
fn fetch_far<T>(x: &[T]) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    lines::<T, { core::arch::x86_64::_MM_HINT_T1 }>(x, FAR / size_of::<T>().max(1));
    let _ = x;
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn lines<T, const HINT: i32>(x: &[T], distance: usize) {
    let start = x.as_ptr().wrapping_add(distance).cast::<i8>();
    for line in (0..size_of_val(x)).step_by(LINE) {
        // SAFETY: a hint, for any address.
        unsafe { core::arch::x86_64::_mm_prefetch::<HINT>(start.wrapping_add(line)) };
    }
}

/// Copies without reading the lines of `to` into the caches.
#[inline(always)]
pub(crate) fn write_past<T: Word>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "a copy has as many elements");
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    {
        let bytes = size_of_val(to);
        let whole = |unit: usize| {
            to.as_ptr().cast::<u8>().align_offset(unit) == 0 && bytes.is_multiple_of(unit)
        };
        let (whole_lines, whole_quarters) = (whole(LINE), whole(LINE / 4));
        let (from, to) = (from.as_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>());
        if whole_lines && crate::simd::level() >= crate::simd::Level::Avx512 {
            // SAFETY: the level has AVX-512 F; both slices have as many bytes, all of them
            // initialized, since words have no padding; the output is whole lines.
            return unsafe { stream::lines(from, to, bytes) };
        }
        if whole_quarters {
            // SAFETY: as above, of quarters of lines, which every x86-64 processor writes.
            return unsafe { stream::quarters(from, to, bytes) };
        }
    }
    to.copy_from_slice(from);
}

/// Stores past the caches.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod stream {
    use core::arch::x86_64::*;

    /// # Safety
    /// `bytes` can be read and written; the output is whole lines.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn lines(from: *const u8, to: *mut u8, bytes: usize) {
        for i in (0..bytes).step_by(64) {
            // SAFETY: by the function's condition; the load takes any address.
            unsafe {
                _mm512_stream_si512(to.add(i).cast(), _mm512_loadu_si512(from.add(i).cast()));
            }
        }
    }

    /// # Safety
    /// `bytes` can be read and written; the output is whole quarters of lines.
    #[inline(always)]
    pub(super) unsafe fn quarters(from: *const u8, to: *mut u8, bytes: usize) {
        for i in (0..bytes).step_by(16) {
            // SAFETY: by the function's condition; the load takes any address.
            unsafe { _mm_stream_si128(to.add(i).cast(), _mm_loadu_si128(from.add(i).cast())) };
        }
    }
}

/// Orders the writes past the caches before it before whatever is written after it, when it is
/// dropped: of work that panics too, whose output another thread may still read.
pub(crate) struct Fence(());

impl Fence {
    /// For work treated so, if it writes past the caches.
    #[inline(always)]
    pub(crate) fn after(traffic: Traffic) -> Option<Self> {
        (traffic == Traffic::Past).then(|| Self(()))
    }
}

impl Drop for Fence {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        // SAFETY: an instruction of every x86-64 processor.
        unsafe {
            core::arch::x86_64::_mm_sfence();
        }
        #[cfg(all(test, feature = "std"))]
        tests::FENCES.set(tests::FENCES.get() + 1);
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use core::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{STEP, Traffic};

    std::thread_local! {
        /// Fences of this thread: no program can see whether there was one.
        pub(super) static FENCES: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn writes_past_the_caches_end_with_a_fence() {
        let x = [1_u32; 3 * STEP];
        // Whether the second of the pieces panics, and fences then.
        for (traffic, panics, fences) in [
            (Traffic::Past, false, 1),
            (Traffic::Past, true, 1),
            (Traffic::Ahead, true, 0),
            (Traffic::Cached, false, 0),
        ] {
            let (before, mut out) = (FENCES.get(), [0; 3 * STEP]);
            let done = catch_unwind(AssertUnwindSafe(|| {
                traffic.pieces(&x, &mut out, |at, x, out| {
                    assert!(at == 0 || !panics);
                    out.copy_from_slice(x);
                });
            }));
            assert_eq!((done.is_err(), FENCES.get() - before), (panics, fences), "{traffic:?}");
            assert_eq!((out[0], out[3 * STEP - 1]), (1, u32::from(!panics)), "{traffic:?}");
        }
    }

    /// Whatever the output's alignment and length: whole lines, quarters of them, neither.
    #[test]
    fn copies_past_the_caches_are_copies() {
        #[repr(align(64))]
        struct Aligned([u8; 256]);
        let from: [u8; 256] = core::array::from_fn(|i| i as u8 ^ 0x5A);
        for start in [0, 1, 8, 16, 48, 64] {
            for len in [0, 1, 15, 16, 64, 80, 128, 192] {
                let mut to = Aligned([0; 256]);
                let fence = super::Fence::after(Traffic::Past);
                super::write_past(&from[3..3 + len], &mut to.0[start..start + len]);
                drop(fence);
                assert_eq!(to.0[start..start + len], from[3..3 + len], "{start} {len}");
                assert!(to.0[..start].iter().chain(&to.0[start + len..]).all(|byte| *byte == 0));
            }
        }
    }
}
