//! Memory that may be refused, asked for before it is used.
//!
//! An allocation that fails ends a program, in words of the standard library and by an abort. An allocator
//! that ends it in words of its own lets pass what is asked for here, where the answer is an error.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use std::cell::Cell;
use std::hint::black_box;

std::thread_local! {
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Makes room for so many elements more.
///
/// ```
/// let mut numbers = Vec::<f32>::new();
/// assert!(exmy::reserve::reserve(&mut numbers, 8).is_ok() && numbers.capacity() >= 8);
/// assert!(exmy::reserve::reserve(&mut numbers, usize::MAX / 8).is_err());
/// ```
///
/// # Errors
/// If there is no memory for them.
pub fn reserve<T>(into: &mut Vec<T>, more: usize) -> Result<(), TryReserveError> {
    MAY_FAIL.set(true);
    // What nobody looks at the compiler need not allocate.
    let done = black_box(into).try_reserve(more);
    MAY_FAIL.set(false);
    done
}

/// Whether this thread asks for memory that may be refused.
pub fn may_fail() -> bool {
    MAY_FAIL.get()
}
