//! The instructions that multiply bfloat16 numbers in pairs, by the level in force: matrix tiles or dot
//! products. Both follow the order of [`fast`](super) and differ from it in subnormal numbers alone; they
//! differ from each other in which two numbers are a pair.

use super::Side;
use super::amx::Tiles;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::dots::Dots;
use super::panel::{Line, PAIR_LINES};
use crate::simd::{Level, kernel};

/// How bfloat16 numbers of a panel lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairOrder {
    /// Words are neighbours along the sum, the first in the low half: what tiles multiply.
    Neighbours,
    /// Words are neighbours in a chain, the first in the high half, of each four numbers the even word
    /// before the odd one: what dot products multiply.
    Chains,
}

impl PairOrder {
    /// Of what is packed at a level; none if it has no such instructions.
    pub(super) fn of(level: Level) -> Option<Self> {
        match level {
            Level::Amx => Some(Self::Neighbours),
            Level::Avx512Bf16 => Some(Self::Chains),
            _ => None,
        }
    }

    /// Brings blocks from the order of neighbours into this one.
    pub(super) fn arrange(self, side: Side, blocks: &mut [Line]) {
        match (self, side) {
            (Self::Neighbours, _) => {}
            (Self::Chains, Side::Left) => chains_of_lanes(blocks),
            (Self::Chains, Side::Right) => chains_of_pairs(blocks),
        }
    }

    /// Brings a block back into the order of neighbours.
    pub(super) fn restore(self, side: Side, block: &mut [Line; PAIR_LINES]) {
        let back = |even: &mut u32, odd: &mut u32| {
            (*even, *odd) = (*even >> 16 | *odd & 0xFFFF_0000, *even & 0xFFFF | *odd << 16);
        };
        match (self, side) {
            (Self::Neighbours, _) => {}
            (Self::Chains, Side::Left) => {
                for line in block {
                    line.words()
                        .as_chunks_mut()
                        .0
                        .iter_mut()
                        .for_each(|[even, odd]| back(even, odd));
                }
            }
            (Self::Chains, Side::Right) => {
                for [even, odd] in block.as_chunks_mut().0 {
                    even.words()
                        .iter_mut()
                        .zip(odd.words())
                        .for_each(|(even, odd)| back(even, odd));
                }
            }
        }
    }
}

/// Two words of neighbours as two words of chains.
#[inline(always)]
fn chains(first: u32, second: u32) -> (u32, u32) {
    (first << 16 | second & 0xFFFF, first & 0xFFFF_0000 | second >> 16)
}

kernel! {
    /// Lines are lanes.
    fn chains_of_lanes<'a>(blocks: &'a mut [Line]) {
        for line in blocks {
            for [first, second] in line.words().as_chunks_mut().0 {
                (*first, *second) = chains(*first, *second);
            }
        }
    }
}

kernel! {
    /// Lines are words of 16 lanes.
    fn chains_of_pairs<'a>(blocks: &'a mut [Line]) {
        for [first, second] in blocks.as_chunks_mut().0 {
            for (first, second) in first.words().iter_mut().zip(second.words()) {
                (*first, *second) = chains(*first, *second);
            }
        }
    }
}

/// The instructions themselves.
pub(super) enum Pairs {
    Tiles(Tiles),
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    Dots(Dots),
}

impl Pairs {
    /// What the level in force has.
    pub(super) fn new() -> Option<Self> {
        let tiles = Tiles::new().map(Self::Tiles);
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        let tiles = tiles.or_else(|| Dots::new().map(Self::Dots));
        tiles
    }

    /// The order that operands must have.
    pub(super) fn order(&self) -> PairOrder {
        match self {
            Self::Tiles(_) => PairOrder::Neighbours,
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Dots(_) => PairOrder::Chains,
        }
    }

    /// Sums over the blocks of a left and a right panel, to 32 rows of 32 numbers that are `stride`
    /// apart; onto what these hold, or from +0.
    ///
    /// # Panics
    /// If the panels have different lengths, are no whole blocks, or the output is too short.
    pub(super) fn sums(
        &self,
        left: &[Line],
        right: &[Line],
        out: &mut [f32],
        stride: usize,
        onto: bool,
    ) {
        match self {
            Self::Tiles(tiles) => tiles.sums(left, right, out, stride, onto),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Dots(dots) => dots.sums(left, right, out, stride, onto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::fast::panel::{halves, halves_mut};

    #[test]
    fn chains_are_what_neighbours_were() {
        for side in [Side::Left, Side::Right] {
            let mut block = [Line::ZERO; PAIR_LINES];
            halves_mut(&mut block).iter_mut().zip(0..).for_each(|(half, i)| *half = i);
            let before = block;
            PairOrder::Neighbours.arrange(side, &mut block);
            assert_eq!(halves(&block), halves(&before));
            PairOrder::Chains.arrange(side, &mut block);
            let at = |line: usize, half: usize| halves(&block)[32 * line + half];
            match side {
                // Lane 3, positions 0 to 7 in the order 2 0 3 1, 6 4 7 5.
                Side::Left => assert_eq!(
                    [0, 1, 2, 3, 4, 5, 6, 7].map(|half| at(3, half)),
                    [98, 96, 99, 97, 102, 100, 103, 101]
                ),
                // Lines 4 and 5 held positions 8, 9 and 10, 11 of lane 1 at halves 2 and 3.
                Side::Right => assert_eq!(
                    [at(4, 2), at(4, 3), at(5, 2), at(5, 3)],
                    [5 * 32 + 2, 4 * 32 + 2, 5 * 32 + 3, 4 * 32 + 3]
                ),
            }
            PairOrder::Chains.restore(side, &mut block);
            assert_eq!(halves(&block), halves(&before));
        }
    }
}
