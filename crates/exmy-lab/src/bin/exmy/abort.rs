//! Memory that cannot be had, where nobody looked for it: the last line of defence.
//!
//! What may be large is asked for before it is used, and refused with what would fit. Any other allocation
//! that fails ends a Rust program by `abort`, which to whoever started it looks like a fault of the program.
//! So the signal of `abort` is taken here, and the program ends as after any other input that cannot be used.
//!
//! The signal comes from the thread that asked for memory, after the allocator has answered. So the handler
//! may do what that thread may, within the memory that was set aside for it.

#![allow(unsafe_code)]

use crate::MISUSE;
use nix::libc::{self, c_int};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether something in the program went wrong that is no lack of memory.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The thread that ends the program; 0 before.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// What is to be done at the end.
type Work = Box<dyn FnOnce() + Send>;

/// That, and the memory for it.
static LAST: Mutex<Option<(Vec<u8>, Work)>> = Mutex::new(None);

/// Bytes that are enough to read a few small files and to remove a folder.
const SET_ASIDE: usize = 1 << 19;

const SAID: &str = "\nerror: memory did not suffice, the line above says for what; steps that were trained \
                    are kept\n  hint: free some, raise the limit (ulimit -v), take fewer --threads or a \
                    smaller model\n";

/// Ends the program, or lets the abort take its course where it is a panic's.
extern "C" fn ended(_: c_int) {
    if PANICKED.load(Ordering::Relaxed) {
        // The handler returns, and `abort` then ends the program.
        return;
    }
    // SAFETY: it gives a number and nothing else.
    let this = unsafe { libc::pthread_self() } as usize;
    match ENDING.compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            // SAFETY: the pointer is to that many bytes.
            unsafe { libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len()) };
            if let Ok(mut last) = LAST.try_lock()
                && let Some((memory, work)) = last.take()
            {
                drop(memory);
                work();
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

/// Does this too when memory ends the program.
pub(crate) fn before_the_end(work: impl FnOnce() + Send + 'static) {
    let mut memory = Vec::new();
    if memory.try_reserve_exact(SET_ASIDE).is_ok() {
        *LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            Some((memory, Box::new(work)));
    }
}

/// Takes the signal from now on.
pub(crate) fn listen() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        usual(panic);
    }));
    let action = SigAction::new(SigHandler::Handler(ended), SaFlags::empty(), SigSet::empty());
    // SAFETY: `abort` raises the signal in the thread that calls it, when neither it nor the allocator holds
    // a lock of that thread; the handler waits for no lock. Without it an abort is what it was before.
    let _ = unsafe { sigaction(Signal::SIGABRT, &action) };
}
