//! A short hash of contents, to notice changes and to name what is defined by its contents.
//!
//! 64-bit FNV-1a (Fowler, Noll, Vo; RFC 9923): a byte at a time, the same on every platform. It guards
//! against mistakes, not against malice.

/// A hash in the making.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Fingerprint {
    /// Of one text.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = Self::default();
        hash.feed(bytes);
        hash
    }

    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Sixteen hexadecimal digits.
impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
