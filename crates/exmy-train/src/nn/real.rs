//! The number type of a layer: f32 to train, f64 to check gradients, one source for both.
//!
//! Central differences need more digits than an f32 has, so every layer is generic over [`Real`]
//! and the check runs the very code that trains. The f32 functions are [`super::elementary`]'s, the
//! f64 ones `libm`'s: pure Rust both, so the same bits on every platform.
//!
//! The module also holds the one way in which a layer sums along a row: sixteen written lanes
//! (`sum`), whatever the width of the machine's registers.

use core::cell::RefCell;
use core::fmt::Debug;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use std::thread::LocalKey;

use super::elementary;
use exmy::gemm::f32::Output;
use exmy::slice::{View, ViewMut};

/// An f32 or f64, with exactly the operations layers use.
///
/// Every method is branch-free for f32 and rounds as documented there, so generic loops vectorize.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// +0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The nearest value, ties to even.
    fn from_f64(x: f64) -> Self;
    /// The same value in f64.
    fn to_f64(self) -> f64;
    /// `self * a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// e to this power.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Distribution function and density of the standard normal, together.
    fn normal(self) -> (Self, Self);
    /// Absolute value.
    fn abs(self) -> Self;

    /// The same slice if this type is f32: for kernels that only f32 has.
    fn singles(_: &[Self]) -> Option<&[f32]> {
        None
    }

    /// As [`singles`](Self::singles), to write.
    fn singles_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }

    /// `self` if it is the larger, else `other` (also when one of them is NaN).
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// `self` if it is the smaller, else `other` (also when one of them is NaN).
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if self < other { self } else { other }
    }

    /// Hands `work` memory of the calling thread, kept from call to call, that holds anything.
    fn with_scratch<R>(len: usize, work: impl FnOnce(&mut [Self]) -> R) -> R;

    /// `c = a b` or `c += a b`, divided between threads; see [`exmy::gemm::f32`] for the order.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    fn matmul(a: View<'_, Self>, b: View<'_, Self>, c: ViewMut<'_, Self>, output: Output);

    /// [`Self::matmul`] on the calling thread; the same bits.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    fn matmul_serial(a: View<'_, Self>, b: View<'_, Self>, c: ViewMut<'_, Self>, output: Output);
}

/// What both types have, with their `exp`, `ln` and `tanh`.
macro_rules! shared {
    ($number:ident, $exp:path, $ln:path, $tanh:path) => {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;

        #[inline(always)]
        fn from_f64(x: f64) -> Self {
            x as Self
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            self as f64
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            Self::mul_add(self, a, b)
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            Self::sqrt(self)
        }
        #[inline(always)]
        fn exp(self) -> Self {
            $exp(self)
        }
        #[inline(always)]
        fn ln(self) -> Self {
            $ln(self)
        }
        #[inline(always)]
        fn tanh(self) -> Self {
            $tanh(self)
        }
        #[inline(always)]
        fn abs(self) -> Self {
            Self::abs(self)
        }
        fn with_scratch<R>(len: usize, work: impl FnOnce(&mut [Self]) -> R) -> R {
            std::thread_local! {
                static SCRATCH: RefCell<Vec<Vec<$number>>> = const { RefCell::new(Vec::new()) };
            }
            with_thread_memory(&SCRATCH, len, work)
        }
    };
}

impl Real for f32 {
    shared!(f32, elementary::exp, elementary::ln, elementary::tanh);

    #[inline(always)]
    fn normal(self) -> (Self, Self) {
        elementary::normal(self)
    }
    #[inline(always)]
    fn singles(x: &[Self]) -> Option<&[f32]> {
        Some(x)
    }
    #[inline(always)]
    fn singles_mut(x: &mut [Self]) -> Option<&mut [f32]> {
        Some(x)
    }
    #[track_caller]
    fn matmul(a: View<'_, Self>, b: View<'_, Self>, c: ViewMut<'_, Self>, output: Output) {
        exmy::gemm::f32::matmul(a, b, c, output);
    }
    #[track_caller]
    fn matmul_serial(a: View<'_, Self>, b: View<'_, Self>, c: ViewMut<'_, Self>, output: Output) {
        exmy::gemm::f32::matmul_serial(a, b, c, output);
    }
}

impl Real for f64 {
    shared!(f64, libm::exp, libm::log, libm::tanh);

    #[inline(always)]
    fn normal(self) -> (Self, Self) {
        use core::f64::consts::{FRAC_1_SQRT_2, TAU};
        (0.5 * libm::erfc(-self * FRAC_1_SQRT_2), libm::exp(-0.5 * self * self) / TAU.sqrt())
    }
    #[track_caller]
    fn matmul(a: View<'_, Self>, b: View<'_, Self>, c: ViewMut<'_, Self>, output: Output) {
        Self::matmul_serial(a, b, c, output);
    }
    #[track_caller]
    fn matmul_serial(
        a: View<'_, Self>,
        b: View<'_, Self>,
        mut c: ViewMut<'_, Self>,
        output: Output,
    ) {
        let (rows, cols, depth, stride) = (c.rows(), c.cols(), a.cols(), c.row_stride());
        assert!(
            depth == b.rows() && a.rows() == rows && b.cols() == cols,
            "matmul: ({} x {depth}) times ({} x {}) into ({rows} x {cols}): the inner sizes must \
             be equal and the outer ones those of the output",
            a.rows(),
            b.rows(),
            b.cols()
        );
        for i in 0..rows {
            for j in 0..cols {
                let mut sum = 0.0;
                for k in 0..depth {
                    sum = a.at(i, k).mul_add(b.at(k, j), sum);
                }
                let out = &mut c.data_mut()[i * stride + j];
                *out = if output == Output::Accumulate { *out + sum } else { sum };
            }
        }
    }
}

/// Memory of the thread, taken out while it is in use: work may ask for more within, and a thread may come
/// here again while it waits for others.
fn with_thread_memory<T: Real, R>(
    lists: &'static LocalKey<RefCell<Vec<Vec<T>>>>,
    len: usize,
    work: impl FnOnce(&mut [T]) -> R,
) -> R {
    let mut memory = lists.with_borrow_mut(Vec::pop).unwrap_or_default();
    if memory.len() < len {
        memory.resize(len, T::ZERO);
    }
    let result = work(&mut memory[..len]);
    // The last given back is the first handed out: work that repeats itself finds what it had.
    lists.with_borrow_mut(|lists| lists.push(memory));
    result
}

/// Number of partial sums along a row. It is one AVX-512 register of f32, so that no level has to split a
/// lane, and few enough that a row of 64 still fills them.
pub(crate) const LANES: usize = 16;

/// Folds the lanes: the upper half onto the lower half, until one is left.
#[inline(always)]
pub(crate) fn fold<T: Real>(mut lanes: [T; LANES], combine: impl Fn(T, T) -> T) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Changes the lanes that the last `len` elements of a row meet. Each lane has a constant place, so that they
/// stay in a register; those of a loop over `len` were in memory, which cost a row of 64 half of its time.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "as in the loops over whole rows")]
fn last<T: Real>(lanes: &mut [T; LANES], len: usize, change: impl Fn(T, usize) -> T) {
    if len > 0 {
        for i in 0..LANES {
            if i < len {
                lanes[i] = change(lanes[i], i);
            }
        }
    }
}

/// The sum of `term` over a row: element `i` goes to lane `i mod 16`, ascending; then [`fold`].
#[inline(always)]
pub(crate) fn sum<T: Real>(x: &[T], term: impl Fn(T) -> T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            lanes[i] += term(x[i]);
        }
    }
    last(&mut lanes, rest.len(), |lane, i| lane + term(rest[i]));
    fold(lanes, |a, b| a + b)
}

/// The sum of `term` over three rows of equal length, in the order of [`sum`].
#[inline(always)]
pub(crate) fn sum_of_three<T: Real>(x: &[T], y: &[T], z: &[T], term: impl Fn(T, T, T) -> T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let (zs, z_rest) = z.as_chunks::<LANES>();
    for ((x, y), z) in xs.iter().zip(ys).zip(zs) {
        for i in 0..LANES {
            lanes[i] += term(x[i], y[i], z[i]);
        }
    }
    let rest = x_rest.len().min(y_rest.len()).min(z_rest.len());
    last(&mut lanes, rest, |lane, i| lane + term(x_rest[i], y_rest[i], z_rest[i]));
    fold(lanes, |a, b| a + b)
}

/// The largest element of a row by [`Real::max`] in sixteen lanes; -infinity for an empty one.
#[inline(always)]
pub(crate) fn largest<T: Real>(x: &[T]) -> T {
    let mut lanes = [T::from_f64(f64::NEG_INFINITY); LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            lanes[i] = lanes[i].max(x[i]);
        }
    }
    last(&mut lanes, rest.len(), |lane, i| lane.max(rest[i]));
    fold(lanes, T::max)
}
