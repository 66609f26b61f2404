//! Single keys from the terminal, without Enter and without echo.
//!
//! The terminal is changed for as long as [`Keys`] lives, and is as it was before after every end of the
//! program that a program can see: of itself, by a panic, by a signal that [`stop`](crate::stop) waits for.
//! Ctrl-C and Ctrl-Z keep their meaning. A process in the background leaves the terminal to who has it.
//!
//! A program that listens for Ctrl-C also takes the echo away: terminals show it as `^C` where the cursor is,
//! and that is at the end of a line that is drawn again.

#[cfg(unix)]
pub(crate) use unix::{Keys, no_echo, restore};

#[cfg(unix)]
mod unix {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::termios::{
        LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
    };
    use nix::unistd::{getpgrp, read, tcgetpgrp};
    use std::io::{IsTerminal, stderr, stdin};
    use std::os::fd::AsFd;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    /// The terminal as it was.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// Whether the terminal is this process's now; who changes it in the background is stopped.
    fn is_ours() -> bool {
        let of_input = tcgetpgrp(stdin()).or_else(|_| tcgetpgrp(stderr()));
        of_input.is_ok_and(|group| group == getpgrp())
    }

    /// Puts the terminal back as it was, if it was changed.
    pub(crate) fn restore() {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before.filter(|_| is_ours()) {
            // Nobody is left to hear that it cannot be.
            let _ = tcsetattr(stdin(), SetArg::TCSANOW, &before)
                .or_else(|_| tcsetattr(stderr(), SetArg::TCSANOW, &before));
        }
    }

    /// What is to be put back, unless that is known: the terminal as it is now.
    fn keep(now: &Termios) {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        before.get_or_insert_with(|| now.clone());
    }

    /// Takes the echo away, where errors go to a terminal that is this process's.
    pub(crate) fn no_echo() {
        let Ok(mut now) = tcgetattr(stderr()) else { return };
        if is_ours() && now.local_flags.contains(LocalFlags::ECHO) {
            keep(&now);
            now.local_flags.remove(LocalFlags::ECHO);
            let _ = tcsetattr(stderr(), SetArg::TCSANOW, &now);
        }
    }

    /// Keys as they are pressed.
    pub(crate) struct Keys(());

    impl Keys {
        /// Begins, where the input is a terminal that is this process's.
        pub(crate) fn begin() -> Option<Self> {
            if !stdin().is_terminal() || !is_ours() {
                return None;
            }
            keep(&tcgetattr(stdin()).ok()?);
            Self::change();
            Some(Self(()))
        }

        /// Takes lines and echo away, again also after a shell put them back.
        fn change() {
            let Ok(mut now) = tcgetattr(stdin()) else { return };
            if now.local_flags.contains(LocalFlags::ICANON) {
                now.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
                now.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
                now.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
                // The key of SIGQUIT, which ends a program at once.
                now.control_chars[SpecialCharacterIndices::VQUIT as usize] = DISABLED;
                let _ = tcsetattr(stdin(), SetArg::TCSANOW, &now);
            }
        }

        /// Waits so long for one of some keys; whether it was pressed.
        pub(crate) fn pressed(&mut self, keys: &[u8], time: Duration) -> bool {
            if !is_ours() {
                std::thread::sleep(time);
                return false;
            }
            Self::change();
            let input = stdin();
            let mut of = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
            if !poll(&mut of, timeout).is_ok_and(|count| count > 0) {
                return false;
            }
            let mut typed = [0; 64];
            let count = read(input.as_fd(), &mut typed).unwrap_or(0);
            if count == 0 {
                // The terminal is gone.
                std::thread::sleep(time);
            }
            typed[..count].iter().any(|key| keys.contains(key))
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            restore();
        }
    }

    /// No key.
    const DISABLED: u8 = nix::libc::_POSIX_VDISABLE;
}

#[cfg(not(unix))]
pub(crate) use other::{Keys, no_echo, restore};

/// Where there is no such interface no key is seen.
#[cfg(not(unix))]
mod other {
    use std::time::Duration;

    pub(crate) fn restore() {}

    pub(crate) fn no_echo() {}

    pub(crate) struct Keys(());

    impl Keys {
        pub(crate) fn begin() -> Option<Self> {
            None
        }

        pub(crate) fn pressed(&mut self, _: &[u8], time: Duration) -> bool {
            std::thread::sleep(time);
            false
        }
    }
}
