//! Philox as a generator of the crate rand: the words of a stream one after the other.

use core::convert::Infallible;

use rand::TryRng;
use rand::rand_core::utils::{fill_bytes_via_next_word, next_u64_via_u32};

use super::Philox;

/// The words of a [`Philox`] in order, for code that takes a generator of the crate rand.
///
/// A `u64` is two words, the low one first, and bytes are words in little-endian order, of which the
/// last may be used in part. So draws do not depend on the machine.
///
/// ```
/// use exmy::random::{Philox, PhiloxRng, Stream};
/// use rand::{Rng, RngExt};
///
/// let philox = Philox::new(7, Stream::new("doc"));
/// let mut rng = PhiloxRng::new(philox);
/// assert_eq!((rng.next_u32(), rng.next_u64()), (philox.word(0), {
///     u64::from(philox.word(1)) | u64::from(philox.word(2)) << 32
/// }));
/// assert_eq!(rng.position(), 3);
/// let die = rng.random_range(1..=6);
/// assert!((1..=6).contains(&die));
/// ```
#[derive(Clone, Debug)]
pub struct PhiloxRng {
    philox: Philox,
    next: u64,
    /// The block that the next word lies in, if it is not its first one.
    block: [u32; 4],
}

impl PhiloxRng {
    /// Begins with word 0.
    pub const fn new(philox: Philox) -> Self {
        Self::starting_at(philox, 0)
    }

    /// Begins with the word `index`, as a generator does that has made as many.
    pub const fn starting_at(philox: Philox, index: u64) -> Self {
        Self { philox, next: index, block: philox.block(index / 4) }
    }

    /// The index of the next word.
    pub const fn position(&self) -> u64 {
        self.next
    }
}

impl TryRng for PhiloxRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let at = (self.next % 4) as usize;
        if at == 0 {
            self.block = self.philox.block(self.next / 4);
        }
        self.next = self.next.wrapping_add(1);
        Ok(self.block[at])
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        next_u64_via_u32(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        fill_bytes_via_next_word(bytes, || self.try_next_u32())
    }
}
