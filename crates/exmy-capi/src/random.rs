//! Random words by address: the words that stochastic modes take where the caller has none.

#![allow(unsafe_code)] // the caller's arrays

use std::ffi::c_char;
use std::fmt;

use exmy::random::{Philox, Stream};
use exmy::slice::words_into;

use crate::arrays::{Arrays, optional_text};
use crate::status::{ExmyStatus, Failure, given, guard};

/// A sequence of random words: Philox4x32-10 under a seed, of the stream of a name. Word `i` belongs to
/// element `i`, whatever the threads, and `srN` takes its top N bits.
#[repr(C)]
pub struct ExmyRandom {
    /// The seed.
    pub seed: u64,
    /// The name of the stream; null is the empty one.
    pub stream: *const c_char,
}

/// The generator, or none where none is given and nothing needs it.
///
/// # Safety
/// The name is null or a text.
pub(crate) unsafe fn philox(
    random: Option<&ExmyRandom>,
    needed_by: Option<&dyn fmt::Display>,
) -> Result<Option<Philox>, Failure> {
    let Some(random) = random else {
        return needed_by.map_or(Ok(None), |it| {
            Err(Failure::argument(format_args!("random is null, and {it} needs random words")))
        });
    };
    // SAFETY: the caller's word.
    let name = unsafe { optional_text(random.stream, "stream") }?;
    Ok(Some(Philox::new(random.seed, Stream::new(name.unwrap_or_default()))))
}

/// Writes the words of `count` elements from the element `first` on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_random_words(
    random: Option<&ExmyRandom>,
    first: u64,
    count: usize,
    words: *mut u32,
) -> ExmyStatus {
    guard(|| {
        // SAFETY: the contract of the crate.
        let (random, words) =
            unsafe { (philox(random, None)?, Arrays::default().write(words, count, "words")?) };
        words_into(given(random, "random")?, first, words);
        Ok(())
    })
}
