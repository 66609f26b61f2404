//! A hash of much data at the speed of memory, so that a flipped bit of a checkpoint is noticed.
//!
//! XXH64 (Yann Collet, BSD; the algorithm is public at github.com/Cyan4973/xxHash,
//! `doc/xxhash_spec.md`): four sums of 8 bytes each side by side, the same on every platform. Each step is
//! a bijection of the sum and of the bytes it takes, so a change within one word of 8 bytes always
//! changes the hash; any other goes unnoticed once in 2^64. It guards against damage, not against malice.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// Bytes that the four sums take at a time.
const STRIPE: usize = 32;

/// A hash in the making.
#[derive(Clone, Debug)]
pub struct Digest {
    seed: u64,
    sums: [u64; 4],
    /// What does not fill a stripe yet.
    rest: [u8; STRIPE],
    length: u64,
}

const fn round(sum: u64, word: u64) -> u64 {
    sum.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

impl Digest {
    /// Of nothing yet.
    pub fn new(seed: u64) -> Self {
        let first = seed.wrapping_add(P1).wrapping_add(P2);
        let sums = [first, seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
        Self { seed, sums, rest: [0; STRIPE], length: 0 }
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
        let mut digest = Self::new(seed);
        digest.feed(bytes);
        digest.finish()
    }

    /// Adds bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        let held = (self.length % STRIPE as u64) as usize;
        self.length += bytes.len() as u64;
        if held > 0 {
            let taken = bytes.len().min(STRIPE - held);
            self.rest[held..held + taken].copy_from_slice(&bytes[..taken]);
            if held + taken < STRIPE {
                return;
            }
            bytes = &bytes[taken..];
            let full = self.rest;
            self.stripes(&[full]);
        }
        let (stripes, rest) = bytes.as_chunks::<STRIPE>();
        self.stripes(stripes);
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    fn stripes(&mut self, stripes: &[[u8; STRIPE]]) {
        let mut sums = self.sums;
        for stripe in stripes {
            for (sum, word) in sums.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *sum = round(*sum, u64::from_le_bytes(*word));
            }
        }
        self.sums = sums;
    }

    /// The hash of all that was added.
    pub fn finish(&self) -> u64 {
        let mut hash = if self.length < STRIPE as u64 {
            self.seed.wrapping_add(P5)
        } else {
            let [a, b, c, d] = self.sums;
            let sum = a.rotate_left(1).wrapping_add(b.rotate_left(7));
            let sum = sum.wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
            self.sums
                .iter()
                .fold(sum, |hash, &sum| (hash ^ round(0, sum)).wrapping_mul(P1).wrapping_add(P4))
        };
        hash = hash.wrapping_add(self.length);
        let (words, rest) = self.rest[..(self.length % STRIPE as u64) as usize].as_chunks::<8>();
        for word in words {
            hash ^= round(0, u64::from_le_bytes(*word));
            hash = hash.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        }
        let (halves, rest) = rest.as_chunks::<4>();
        for half in halves {
            hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(P1);
            hash = hash.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        }
        for &byte in rest {
            hash ^= u64::from(byte).wrapping_mul(P5);
            hash = hash.rotate_left(11).wrapping_mul(P1);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
        hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
        hash ^ (hash >> 32)
    }
}
