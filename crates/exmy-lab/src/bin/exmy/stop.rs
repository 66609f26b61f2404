//! Requests to end: Ctrl-C (SIGINT), of batch systems (SIGTERM) and of terminals that go away (SIGHUP).
//!
//! Every command listens, from before it reads its arguments. Work that looks whether it is to stop has half
//! a second to come to a good end; then the program ends, for every file is whole at any moment. While a run
//! is trained that end waits for the step under way and its checkpoint. A second request waits for nothing.
//! The exit code is 128 and the signal's number, as shells report it.

use exmy::error::{Error, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
#[cfg(unix)]
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The exit code after SIGTERM.
pub(crate) const STOPPED: u8 = 143;

/// How long what looks whether it is to stop has for it, in ticks.
const PATIENCE: u32 = 10;
const TICK: Duration = Duration::from_millis(50);

/// A folder that is written and is of no use before it is whole.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Names such a folder, which is removed if the program ends while it is written, or that there is none.
#[cfg(feature = "tokenizers")]
pub(crate) fn unfinished(folder: Option<&std::path::Path>) {
    *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = folder.map(PathBuf::from);
}

/// Removes it. Its writer goes on meanwhile, and may make one more file in it.
fn remove_unfinished() {
    let folder = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(folder) = folder else { return };
    for _ in 0..10 {
        let removed = std::fs::remove_dir_all(&folder);
        if removed.is_ok() || !folder.exists() {
            return;
        }
    }
}

/// Ends the program with the terminal as it was; where nobody reads what it shows, with a line left there.
fn exit(code: u8) -> ! {
    remove_unfinished();
    crate::keys::restore();
    let late = move || {
        thread::sleep(4 * TICK);
        std::process::exit(code.into())
    };
    if thread::Builder::new().spawn(late).is_ok() {
        crate::phase::clear();
        crate::bar::clear();
    }
    std::process::exit(code.into())
}

/// Whether the program is to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    /// The exit code that is asked for; 0 as long as none is.
    code: AtomicU8,
    /// Whether the work looks at that.
    looked_at: AtomicBool,
    /// What must come to its own end.
    held: AtomicUsize,
}

impl Stop {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Arc<Self>> {
        let stop = Arc::new(Self::default());
        let listener = Arc::clone(&stop);
        listen(move |code| Self::ask(&listener, code))
            .map_err(|error| Error::new("cannot listen for Ctrl-C").because(error))?;
        Ok(stop)
    }

    fn ask(stop: &Arc<Self>, code: u8) {
        if stop.code.swap(code, Ordering::SeqCst) != 0 {
            exit(code);
        }
        let stop = Arc::clone(stop);
        let waiting = thread::Builder::new().spawn(move || stop.end());
        if waiting.is_err() {
            exit(code);
        }
    }

    /// Ends the program when nothing holds it any more and who looks has had the time.
    fn end(&self) -> ! {
        let patience = if self.looked_at.load(Ordering::SeqCst) { PATIENCE } else { 0 };
        let mut ticks = 0;
        while ticks < patience {
            thread::sleep(TICK);
            ticks = if self.held.load(Ordering::SeqCst) == 0 { ticks + 1 } else { 0 };
        }
        exit(self.code());
    }

    /// For work that looks, which has the time for it, and draws lines again, in which an echo would stand.
    pub(crate) fn looked_at(&self) -> &Self {
        crate::keys::no_echo();
        self.looked_at.store(true, Ordering::SeqCst);
        self
    }

    /// Whether somebody asked for the end.
    pub(crate) fn is_asked(&self) -> bool {
        self.code() != 0
    }

    /// The exit code of a command that stopped because of it.
    pub(crate) fn code(&self) -> u8 {
        self.code.load(Ordering::SeqCst)
    }

    /// As long as the result lives, the first request waits.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.held.fetch_add(1, Ordering::SeqCst);
        Held(self)
    }
}

/// Work that must come to its own end.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a Stop);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls `ask` with the exit code of each signal that asks for the end. They are blocked in this thread and
/// all that it begins, and one thread waits for them, so that what it does is bound by no rules of handlers.
#[cfg(unix)]
fn listen(ask: impl Fn(u8) + Send + 'static) -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, Signal};
    let mut signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    if !is_ignored(Signal::SIGHUP as u32) {
        signals.add(Signal::SIGHUP);
    }
    signals.thread_block()?;
    // A thread that begins when the rest of the program has taken all memory ends the process.
    let (begun, begins) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _ = begun.send(());
        while let Ok(signal) = signals.wait() {
            ask(128 + signal as u8);
        }
    })?;
    let _ = begins.recv();
    Ok(())
}

/// Whether whoever started the program wants a signal to be ignored, as `nohup` does with SIGHUP; Linux alone
/// says.
#[cfg(unix)]
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(not(unix))]
fn listen(ask: impl Fn(u8) + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(move || ask(130))
}

#[cfg(all(test, feature = "tokenizers"))]
mod tests {
    use super::*;

    /// With all that is in it, and once.
    #[test]
    fn an_unfinished_folder_is_removed_at_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("b"), "part").unwrap();
        unfinished(Some(&folder));
        remove_unfinished();
        assert!(!folder.exists());
        std::fs::create_dir(&folder).unwrap();
        remove_unfinished();
        assert!(folder.exists(), "it is somebody else's now");
    }
}
