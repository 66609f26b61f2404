//! Memory that was freed and waits to be used again. Working memory that an operation asks for and frees
//! comes back without a call of the driver. In a step it comes at the addresses that it had in the step
//! before.

use std::collections::{BTreeSet, HashMap};

/// Blocks of more bytes go back to the driver at once, and so do any beyond this sum.
const LARGEST: usize = 16 << 20;
const MOST: usize = 48 << 20;

/// Blocks by size.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    blocks: HashMap<usize, BTreeSet<u64>>,
    bytes: usize,
}

impl Idle {
    /// The size that memory of so many bytes is asked for with.
    pub(crate) const fn rounded(bytes: usize) -> usize {
        match bytes.checked_next_multiple_of(512) {
            Some(rounded) => rounded,
            None => bytes,
        }
    }

    /// A block of a rounded size. Of several the lowest: then a step that asks in the same order as the one
    /// before gets the same blocks.
    pub(crate) fn take(&mut self, size: usize) -> Option<u64> {
        let address = self.blocks.get_mut(&size)?.pop_first()?;
        self.bytes -= size;
        Some(address)
    }

    /// Keeps a block, unless it is too large.
    pub(crate) fn keep(&mut self, address: u64, size: usize) -> bool {
        let fits = size <= LARGEST && self.bytes + size <= MOST;
        if fits {
            self.blocks.entry(size).or_default().insert(address);
            self.bytes += size;
        }
        fits
    }

    /// All blocks, which are no longer here.
    pub(crate) fn drain(&mut self) -> Vec<u64> {
        self.bytes = 0;
        self.blocks.drain().flat_map(|(_, blocks)| blocks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_lowest_first() {
        let mut idle = Idle::default();
        assert_eq!((Idle::rounded(1), Idle::rounded(512), Idle::rounded(513)), (512, 512, 1024));
        assert!(idle.keep(0x2000, 512) && idle.keep(0x1000, 512) && idle.keep(0x3000, 1024));
        assert_eq!(
            (idle.take(512), idle.take(512), idle.take(512)),
            (Some(0x1000), Some(0x2000), None)
        );
        assert_eq!((idle.drain(), idle.take(1024)), (vec![0x3000], None));
    }

    #[test]
    fn little_waits() {
        let mut idle = Idle::default();
        assert!(!idle.keep(1, LARGEST + 512));
        let kept = (0..100).filter(|&at| idle.keep(at, LARGEST)).count();
        assert_eq!(kept, MOST / LARGEST);
        assert_eq!(idle.drain().len(), kept);
        assert!(idle.keep(7, LARGEST));
    }
}
