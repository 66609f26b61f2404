//! The generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), and words of it by index.

use super::Stream;

/// Multipliers and Weyl increments of Philox4x32 (SC 2011, table 2 and section 4.3).
pub(crate) const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
pub(crate) const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Ten rounds of Philox4x32: 128 bits of counter and 64 bits of key to 128 random bits.
///
/// ```
/// use exmy::random::philox4x32_10;
///
/// // A known answer of Random123: no bits in are not no bits out.
/// assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]);
/// ```
#[inline(always)]
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    let mut round = 0;
    while round < 10 {
        let p0 = (MULTIPLIERS[0] as u64) * (c0 as u64);
        let p1 = (MULTIPLIERS[1] as u64) * (c2 as u64);
        (c0, c1, c2, c3) =
            ((p1 >> 32) as u32 ^ c1 ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c3 ^ k1, p0 as u32);
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// Philox4x32-10 at one key and stream: random words by element index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
    stream: u64,
}

impl Philox {
    /// The generator of `stream` under `seed`.
    pub const fn new(seed: u64, stream: Stream) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], stream: stream.id() }
    }

    /// The seed and the stream's [`id`](Stream::id), for those who compute the words elsewhere.
    #[doc(hidden)]
    pub const fn seed_and_stream(&self) -> (u64, u64) {
        (self.key[0] as u64 | (self.key[1] as u64) << 32, self.stream)
    }

    /// What [`philox4x32_10`] takes besides the block: the stream's two words and the key.
    #[inline(always)]
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    pub(crate) const fn stream_and_key(&self) -> ([u32; 2], [u32; 2]) {
        ([self.stream as u32, (self.stream >> 32) as u32], self.key)
    }

    /// The four words of elements `4 * block ..= 4 * block + 3`.
    #[inline(always)]
    pub const fn block(&self, block: u64) -> [u32; 4] {
        let counter =
            [block as u32, (block >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32];
        philox4x32_10(counter, self.key)
    }

    /// The word of element `index`.
    ///
    /// ```
    /// use exmy::random::{Philox, Stream};
    ///
    /// let philox = Philox::new(7, Stream::new("doc"));
    /// assert_eq!(philox.word(6), philox.block(1)[2]);
    /// assert_eq!(philox.bits(6, 8), philox.word(6) >> 24); // the top ones
    /// assert_eq!(philox.bits(6, 0), 0);
    /// assert_eq!(philox.word64(3) as u32, philox.word(6)); // of words 6 and 7
    /// assert!(philox.uniform(3) < 1.0);
    /// assert_eq!(philox.below(3, 1), 0);
    /// ```
    #[inline]
    pub const fn word(&self, index: u64) -> u32 {
        self.block(index / 4)[(index % 4) as usize]
    }

    /// The top `bits` (0..=32) bits of the word of element `index`.
    #[inline]
    pub const fn bits(&self, index: u64, bits: u32) -> u32 {
        debug_assert!(bits <= 32);
        if bits == 0 { 0 } else { self.word(index) >> (32 - bits) }
    }

    /// A 64-bit word: elements `2 * index` (low half) and `2 * index + 1`.
    #[inline]
    pub const fn word64(&self, index: u64) -> u64 {
        self.word(2 * index) as u64 | (self.word(2 * index + 1) as u64) << 32
    }

    /// Uniform in `[0, 1)` with 53 bits, from [`word64`](Self::word64).
    #[inline]
    pub const fn uniform(&self, index: u64) -> f64 {
        (self.word64(index) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..bound`, by the high half of a 64 x 64-bit product; the bias is below
    /// `bound / 2^64`.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub const fn below(&self, index: u64, bound: u64) -> u64 {
        assert!(bound > 0, "a number below 0 was asked for");
        ((self.word64(index) as u128 * bound as u128) >> 64) as u64
    }
}
