//! Hashes of much data: XXH64 at the speed of memory, so that a flipped bit of a checkpoint is noticed, and
//! SHA-256 for what goes to other people.
//!
//! XXH64 (Yann Collet; `doc/xxhash_spec.md` at github.com/Cyan4973/xxHash), the same on every platform. A
//! change within one word of 8 bytes always changes the hash; any other goes unnoticed once in 2^64. It
//! guards against damage, not against malice.

use std::fmt;
use xxhash_rust::xxh64::{Xxh64, xxh64};

/// A hash in the making.
#[derive(Clone)]
pub struct Digest(Xxh64);

impl Digest {
    /// Of nothing yet.
    pub fn new(seed: u64) -> Self {
        Self(Xxh64::new(seed))
    }

    /// Of one text.
    ///
    /// ```
    /// use exmy_train::train::digest::Digest;
    ///
    /// assert_eq!(Digest::of(b"", 0), 0xEF46_DB37_51D8_E999);
    /// assert_ne!(Digest::of(b"", 1), Digest::of(b"", 0)); // a seed makes it another function
    /// ```
    pub fn of(bytes: &[u8], seed: u64) -> u64 {
        xxh64(bytes, seed)
    }

    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all that was added.
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({:016x})", self.finish())
    }
}

/// SHA-256 (FIPS 180-4) in the making: what people compare with `sha256sum`.
#[derive(Clone, Debug, Default)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    /// Of one text, in hexadecimal.
    ///
    /// ```
    /// use exmy_train::train::digest::Sha256;
    ///
    /// let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; // FIPS 180-4
    /// assert_eq!(Sha256::of(b"abc"), abc);
    /// ```
    pub fn of(bytes: &[u8]) -> String {
        let mut hash = Self::default();
        hash.feed(bytes);
        hash.finish()
    }

    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        sha2::Digest::update(&mut self.0, bytes);
    }

    /// The hash of all that was added, in hexadecimal.
    pub fn finish(self) -> String {
        sha2::Digest::finalize(self.0).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
