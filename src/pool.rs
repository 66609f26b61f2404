//! A pool of buffers for each thread, so that work done step after step allocates nothing.
//!
//! A [`Pooled`] list comes from its thread's pool: the smallest list whose capacity suffices, or else
//! the largest, which grows. Dropped, it goes back. What it held before is never seen. Without `std`
//! there are no threads, and a list is a `Vec`.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A `Vec` whose memory is used again by its thread.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Pooled<T: Poolable>(Vec<T>);

/// What the lists of a pool hold.
#[doc(hidden)]
pub trait Poolable: Copy + Default + 'static {
    /// Calls `work` with the lists in the pool of this thread, unless the thread ends.
    fn lists<R>(work: impl FnOnce(&mut Vec<Vec<Self>>) -> R) -> Option<R>;
}

/// Lists of a kind in a pool, at most; more are not needed at once.
#[cfg(feature = "std")]
const MOST: usize = 64;

/// Gives some types a pool.
macro_rules! poolable {
    ($($type:ty),*) => { $(
        impl $crate::pool::Poolable for $type {
            #[cfg(feature = "std")]
            fn lists<R>(
                work: impl FnOnce(&mut alloc::vec::Vec<alloc::vec::Vec<Self>>) -> R,
            ) -> Option<R> {
                use core::cell::RefCell;
                std::thread_local! {
                    static LISTS: RefCell<alloc::vec::Vec<alloc::vec::Vec<$type>>> =
                        const { RefCell::new(alloc::vec::Vec::new()) };
                }
                LISTS.try_with(|lists| work(&mut lists.borrow_mut())).ok()
            }

            #[cfg(not(feature = "std"))]
            fn lists<R>(
                _: impl FnOnce(&mut alloc::vec::Vec<alloc::vec::Vec<Self>>) -> R,
            ) -> Option<R> {
                None
            }
        }
    )* };
}

/// Defines a function that hands to some work its thread's value of a type: lists whose elements borrow,
/// [emptied], for example. The work takes it out and puts it back, as the thread may come there again while
/// it waits for others.
#[cfg(feature = "gemm")]
macro_rules! per_thread {
    (fn $name:ident($type:ty)) => {
        #[cfg(feature = "std")]
        fn $name<R>(work: impl FnOnce(&mut $type) -> R) -> R {
            use core::cell::RefCell;
            std::thread_local! {
                static VALUE: RefCell<$type> = RefCell::default();
            }
            VALUE.with_borrow_mut(work)
        }

        #[cfg(not(feature = "std"))]
        fn $name<R>(work: impl FnOnce(&mut $type) -> R) -> R {
            work(&mut <$type>::default())
        }
    };
}

#[cfg(feature = "gemm")]
pub(crate) use {per_thread, poolable};
poolable!(f32, u32);

impl<T: Poolable> Pooled<T> {
    /// An empty list with capacity for `count`.
    #[doc(hidden)]
    pub fn with_capacity(count: usize) -> Self {
        if count == 0 {
            return Self(Vec::new());
        }
        let fitting = |lists: &mut Vec<Vec<T>>| {
            let fits = |at: &usize| lists[*at].capacity() >= count;
            let smallest = (0..lists.len()).filter(fits).min_by_key(|&at| lists[at].capacity());
            let any = || (0..lists.len()).max_by_key(|&at| lists[at].capacity());
            smallest.or_else(any).map(|at| lists.swap_remove(at))
        };
        let mut list = T::lists(fitting).flatten().unwrap_or_default();
        list.reserve_exact(count);
        Self(list)
    }

    /// Makes this list empty, with capacity for `count`.
    #[doc(hidden)]
    pub fn reset(&mut self, count: usize) {
        self.clear();
        if self.capacity() < count {
            *self = Self::with_capacity(count);
        }
    }

    /// Makes this list `count` long; what it did not have before is `value`.
    #[doc(hidden)]
    pub fn fit(&mut self, count: usize, value: T) {
        if self.capacity() < count {
            let mut longer = Self::with_capacity(count);
            longer.extend_from_slice(self);
            *self = longer;
        }
        self.resize(count, value);
    }

    /// A list of `count` zeros.
    #[doc(hidden)]
    pub fn zeros(count: usize) -> Self {
        let mut list = Self::with_capacity(count);
        list.resize(count, T::default());
        list
    }
}

impl<T: Poolable> Deref for Pooled<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Poolable> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

#[cfg(feature = "std")]
impl<T: Poolable> Drop for Pooled<T> {
    fn drop(&mut self) {
        let mut list = core::mem::take(&mut self.0);
        if list.capacity() == 0 {
            return;
        }
        list.clear();
        // Where the thread ends, so does the list.
        let _ = T::lists(|lists| {
            if lists.len() < MOST {
                lists.push(list);
            }
        });
    }
}

/// An empty list in the memory of another, whose elements may have borrowed for less long: collecting takes
/// over the memory of a list whose elements have the same size.
#[doc(hidden)]
pub fn emptied<A, B>(mut list: Vec<A>) -> Vec<B> {
    list.clear();
    list.into_iter().map_while(|_| None).collect()
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn emptied_lists_stay_where_they_are() {
        fn fill<'a>(
            mut list: Vec<Option<&'a mut u32>>,
            of: &'a mut [u32],
        ) -> Vec<Option<&'a mut u32>> {
            list.extend(of.iter_mut().map(Some));
            list
        }
        let mut numbers = [1, 2, 3];
        let list = fill(Vec::with_capacity(3), &mut numbers);
        let place = list.as_ptr().addr();
        let list = fill(emptied(list), &mut numbers);
        assert_eq!((list.as_ptr().addr(), list.len()), (place, 3));
    }

    #[test]
    fn the_smallest_that_fits_is_used_again() {
        // A thread of its own, whose pool is empty.
        let work = || {
            let place = |list: &Pooled<u32>| list.as_ptr();
            let (small, mut large) = (Pooled::<u32>::zeros(10), Pooled::<u32>::zeros(1000));
            let places = [place(&small), place(&large)];
            large.fill(7);
            drop((small, large));
            let again = Pooled::<u32>::zeros(9);
            assert_eq!((place(&again), again.len()), (places[0], 9));
            let other = Pooled::<u32>::zeros(500);
            assert_eq!(place(&other), places[1]);
            assert!(other.iter().all(|&number| number == 0), "what it held is seen");
            drop((again, other));
            // None is large enough: the largest grows, and the small one is left.
            drop(Pooled::<u32>::with_capacity(5000));
            assert_eq!(u32::lists(|lists| lists.len()), Some(2));
            assert_eq!(place(&Pooled::zeros(3)), places[0]);
            assert!(Pooled::<u32>::zeros(0).capacity() == 0);
            let mut list = Pooled::<u32>::zeros(2);
            list.fit(4000, 1);
            assert_eq!((list[..4].to_vec(), list.len()), (vec![0, 0, 1, 1], 4000));
            list.reset(9);
            assert!(list.is_empty() && list.capacity() >= 4000);
        };
        std::thread::spawn(work).join().unwrap();
    }
}
