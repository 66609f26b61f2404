//! What the program does while nothing else is to be seen: one line on a terminal, which is replaced.
//!
//! Reading a large text or drawing a page takes seconds, in which a person asks whether the program hangs.
//! The line comes after half a second, so that short work shows nothing, and says for how long it has been
//! so. It is on stderr, and only where that is a terminal.

use crate::bar::columns;
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Whether a line stands there.
static DRAWN: AtomicBool = AtomicBool::new(false);

const FIRST: Duration = Duration::from_millis(500);
const NEXT: Duration = Duration::from_millis(200);

/// Takes the line away, before anything else is written.
pub(crate) fn clear() {
    if DRAWN.swap(false, Ordering::SeqCst) {
        // Nobody is left to hear that it cannot be.
        let _ = write!(stderr(), "\r\x1b[2K");
    }
}

/// As long as it lives, the line says what is done.
#[derive(Debug)]
pub(crate) struct Phase(Option<(Sender<()>, JoinHandle<()>)>);

impl Phase {
    /// Begins; nothing is shown where nobody sees it, or where there is no thread to be had.
    pub(crate) fn begin(what: &'static str, quiet: bool) -> Self {
        if quiet || !stderr().is_terminal() {
            return Self(None);
        }
        let begun = Instant::now();
        let (sender, receiver) = channel();
        let show = move || {
            let mut wait = FIRST;
            let mut turns = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".chars().cycle();
            while receiver.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = NEXT;
                let (turn, seconds) = (turns.next().unwrap_or(' '), begun.elapsed().as_secs());
                let width = columns();
                let line = format!("{turn} {what}, {seconds} s");
                let line: String = line.chars().take(usize::from(width).max(2) - 1).collect();
                DRAWN.store(true, Ordering::SeqCst);
                let _ = write!(stderr(), "\r\x1b[2K{line}");
            }
            clear();
        };
        Self(Builder::new().spawn(show).ok().map(|thread| (sender, thread)))
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            // It ends at once, and has nothing to say.
            let _ = thread.join();
        }
    }
}
