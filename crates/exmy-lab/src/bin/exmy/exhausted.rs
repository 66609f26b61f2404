//! Memory that cannot be had, where nobody looked for it: the last line of defence.
//!
//! What may be large is [asked for](exmy::reserve) before it is used, and refused with what would fit. Any
//! other allocation that fails ends a Rust program by `abort`, which to whoever started it looks like a fault
//! of the program. So the allocator, which is the system's, ends it as after any other input that cannot be
//! used.
//!
//! It does so in the thread that asked for memory, which may hold any lock of the program. So nothing here
//! waits for one, and only what was set aside beforehand is used.

#![allow(unsafe_code)]

use crate::MISUSE;
use exmy::reserve::{may_fail, reserve};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use exmy_train::train::memory;
use nix::libc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The system's allocator, which ends the program where it has no memory.
struct Ending;

#[global_allocator]
static ALLOCATOR: Ending = Ending;

/// The thread that ends the program; 0 before.
static THREAD: AtomicUsize = AtomicUsize::new(0);

/// What is to be done at the end, and what is to be said after it.
type Work = Box<dyn FnOnce() -> Option<String> + Send>;

/// That, and the memory for it.
static LAST: Mutex<Option<(Vec<u8>, Work)>> = Mutex::new(None);

/// Bytes that are enough to read a few small files and to remove a folder.
const SET_ASIDE: usize = 1 << 19;

/// What was allocated, unless that is nothing and nobody is there to be told.
fn checked(found: *mut u8, size: usize) -> *mut u8 {
    if found.is_null() && !may_fail() {
        end(size);
    }
    found
}

// SAFETY: the system's allocator does it all; what it returns is passed on.
unsafe impl GlobalAlloc for Ending {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that it wants.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Writes to stderr, past all locks.
fn say(text: &[u8]) {
    // SAFETY: the pointer is to that many bytes.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Ends the program.
#[cold]
fn end(size: usize) -> ! {
    // SAFETY: it gives a number and nothing else.
    let this = unsafe { libc::pthread_self() } as usize;
    match THREAD.compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            let mut text = [0; 200];
            let mut rest = &mut text[..];
            // It is shorter.
            let _ = write!(
                rest,
                "\nerror: memory did not suffice: {size} bytes more cannot be had\n  \
                 hint: free some, raise the limit (ulimit -v), or take fewer --threads or a smaller model\n"
            );
            let left = rest.len();
            say(&text[..text.len() - left]);
            if let Ok(mut last) = LAST.try_lock()
                && let Some((memory, work)) = last.take()
            {
                drop(memory);
                work().iter().for_each(|text| say(text.as_bytes()));
            }
        }
        // What was set aside did not suffice either.
        Err(thread) if thread == this => {}
        Err(_) => loop {
            // SAFETY: it waits, until the other thread ends the program.
            unsafe { libc::pause() };
        },
    }
    // SAFETY: it may be called anywhere, and does not return.
    unsafe { libc::_exit(MISUSE.into()) }
}

/// Has one heap for all threads where addresses are limited: the C library would reserve 64 MiB for each of
/// them, of which nothing is left for others.
pub(crate) fn begin() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if memory::is_limited() {
        // SAFETY: no thread was begun; what it refuses changes nothing.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Does this too when memory ends the program, and then says what it returns.
pub(crate) fn before_the_end(work: impl FnOnce() -> Option<String> + Send + 'static) {
    let mut memory = Vec::new();
    if reserve(&mut memory, SET_ASIDE).is_ok() {
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((memory, Box::new(work)));
    }
}
