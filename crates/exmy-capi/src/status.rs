//! What became of a call: the status that it returns, and the sentence about it.
//!
//! Every exported function does its work inside [`guard`] or [`make`], which turn an error or a panic into a
//! status. The sentence is kept for the thread, so that threads do not read each other's.

#![allow(unsafe_code)] // names for the linker

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What became of a call. `exmy_message` has the sentence about a failure.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum ExmyStatus {
    /// It did what was asked.
    Ok = 0,
    /// A text is no name of what was asked for, or no UTF-8.
    Name = 1,
    /// A pointer is null or not aligned, arrays overlap, or a number is out of range.
    Argument = 2,
    /// Names that go together with nothing: formats that an operation does not take, shapes that do not fit.
    Unsupported = 3,
    /// A fault of the library, which should be reported.
    Internal = 4,
}

/// A failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    status: ExmyStatus,
    text: String,
}

impl Failure {
    /// A text that is no name.
    pub(crate) fn name(error: impl fmt::Display) -> Self {
        Self { status: ExmyStatus::Name, text: error.to_string() }
    }

    /// An argument that cannot be used.
    pub(crate) fn argument(text: impl fmt::Display) -> Self {
        Self { status: ExmyStatus::Argument, text: text.to_string() }
    }

    /// Arguments that do not go together.
    pub(crate) fn unsupported(error: impl fmt::Display) -> Self {
        Self { status: ExmyStatus::Unsupported, text: error.to_string() }
    }

    fn panic(payload: &(dyn Any + Send)) -> Self {
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = format!("a fault of exmy, please report it: {}", words.unwrap_or("no words"));
        Self { status: ExmyStatus::Internal, text }
    }
}

thread_local! {
    static MESSAGE: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Does the work of an exported function.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> ExmyStatus {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return ExmyStatus::Ok,
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::panic(&*payload),
    };
    let mut bytes = failure.text.into_bytes();
    bytes.retain(|byte| *byte != 0);
    if let Ok(text) = CString::new(bytes) {
        // A thread that ends has no message any more.
        let _ = MESSAGE.try_with(|message| *message.borrow_mut() = Some(text));
    }
    failure.status
}

/// Does the work of a function that makes a handle: null where it fails.
pub(crate) fn make<T>(
    out: Option<&mut MaybeUninit<Option<Box<T>>>>,
    work: impl FnOnce() -> Result<T, Failure>,
) -> ExmyStatus {
    guard(|| {
        let out = given(out, "out")?;
        out.write(None);
        out.write(Some(Box::new(work()?)));
        Ok(())
    })
}

/// An argument that may not be null.
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| Failure::argument(format_args!("{name} is null")))
}

/// The sentence about the last call of this thread that failed; empty if none has. It is valid until the next
/// one fails or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_message() -> *const c_char {
    let text = MESSAGE.try_with(|message| message.borrow().as_ref().map(|text| text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// The version of exmy, as "0.1.0". It is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    match CStr::from_bytes_with_nul(VERSION.as_bytes()) {
        Ok(version) => version.as_ptr(),
        Err(_) => c"".as_ptr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        let text = MESSAGE.with(|message| message.borrow().clone());
        text.unwrap_or_default().into_string().unwrap()
    }

    #[test]
    fn a_panic_ends_at_the_border() {
        assert_eq!(guard(|| panic!("{} apples", 3)), ExmyStatus::Internal);
        assert_eq!(message(), "a fault of exmy, please report it: 3 apples");
        assert_eq!(guard(|| Err(Failure::name("a\0b"))), ExmyStatus::Name);
        assert_eq!(message(), "ab");
        assert_eq!(guard(|| Ok(())), ExmyStatus::Ok);
        assert_eq!(message(), "ab");
        std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
    }

    #[test]
    fn a_handle_that_cannot_be_made_is_null() {
        let mut out = MaybeUninit::new(Some(Box::new(1)));
        assert_eq!(make(Some(&mut out), || Err(Failure::argument("no"))), ExmyStatus::Argument);
        // SAFETY: it was written at both ends of the call.
        assert!(unsafe { out.assume_init() }.is_none());
        assert_eq!(make::<u32>(None, || Ok(1)), ExmyStatus::Argument);
        assert_eq!(message(), "out is null");
    }
}
