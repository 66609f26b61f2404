//! Memory that cannot be had, where nobody looked for it: the last line of defence.
//!
//! What may be large is asked for before it is used, and refused with what would fit. Any other allocation
//! that fails ends a Rust program by `abort`, which to whoever started it looks like a fault of the program.
//! So the signal of `abort` is taken here, and the program ends as after any other input that cannot be used.

#![allow(unsafe_code)]

use crate::MISUSE;
use nix::libc::{self, c_int};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something in the program went wrong that is no lack of memory.
static PANICKED: AtomicBool = AtomicBool::new(false);

const SAID: &str = "\nerror: memory did not suffice, the line above says for what; steps that were trained \
                    are kept\n  hint: free some, raise the limit (ulimit -v), take fewer --threads or a smaller \
                    model\n";

/// Ends the program, or lets the abort take its course where it is a panic's.
extern "C" fn ended(_: c_int) {
    if PANICKED.load(Ordering::Relaxed) {
        // The handler is taken once: `abort` raises the signal again, which ends the program.
        return;
    }
    // SAFETY: both functions may be called in a handler, and the pointer is to that many bytes.
    unsafe {
        libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
        libc::_exit(MISUSE.into());
    }
}

/// Takes the signal from now on.
pub(crate) fn listen() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        usual(panic);
    }));
    let action = SigAction::new(SigHandler::Handler(ended), SaFlags::SA_RESETHAND, SigSet::empty());
    // SAFETY: the handler reads an atomic and calls what may be called in one; it allocates and locks nothing.
    // Without it an abort is what it was before.
    let _ = unsafe { sigaction(Signal::SIGABRT, &action) };
}
