//! Random bits by address, not by sequence.
//!
//! Stochastic rounding, initialization, batches and sampling all draw from one counter-based
//! generator, Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011). A word is found by its *address* `(seed, stream, index)`, so a result does
//! not depend on threads, on the order of evaluation or on where a run was resumed.
//!
//! * key = seed (`u64`, low word first);
//! * counter = (block `u64`, stream `u64`), low words first;
//! * element `i` uses word `i mod 4` of block `i div 4`; `N` bits means the *top* `N` bits of it.
//!
//! A [`Stream`] is a written-out 64-bit hash of whatever names the consumer.

#![forbid(unsafe_code)]

mod philox;
#[cfg(feature = "rand")]
mod sequence;

#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(crate) use philox::{MULTIPLIERS, WEYL};
pub use philox::{Philox, philox4x32_10};
#[cfg(feature = "rand")]
pub use sequence::PhiloxRng;

/// The finalizer of `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64-bit words
/// in which every input bit reaches every output bit.
const fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Names one independent sequence of random words.
///
/// A stream is built from a label and any number of coordinates, for example
/// `Stream::new("batch").with(step)`. Equal parts in equal order give equal streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(u64);

impl Stream {
    /// The stream of a purpose: FNV-1a over the label's bytes, then mixed.
    ///
    /// ```
    /// use exmy::random::Stream;
    ///
    /// assert_ne!(Stream::new(""), Stream::new("a")); // no label is one, too
    /// assert_ne!(Stream::new("a").with(0), Stream::new("a")); // and 0 a coordinate
    /// assert_ne!(Stream::new("a").with(1).with(2), Stream::new("a").with(2).with(1));
    /// ```
    pub const fn new(label: &str) -> Self {
        let bytes = label.as_bytes();
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01B3);
            i += 1;
        }
        Self(mix64(hash))
    }

    /// The sub-stream at one more coordinate (a step, a layer, an operand, ...).
    #[must_use]
    pub const fn with(self, coordinate: u64) -> Self {
        let weyl = coordinate.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(mix64(self.0.rotate_left(17) ^ mix64(weyl)))
    }

    /// The 64-bit value that enters Philox' counter.
    pub const fn id(self) -> u64 {
        self.0
    }
}
