//! Many consecutive random words at a time, for stochastic rounding of slices.
//!
//! The same words as [`Philox::word`], which computes a block of four to return one. Here sixteen
//! blocks run side by side so that the compiler vectorizes across them; `avx512.rs` does it by hand.

use crate::random::Philox;
use crate::simd::kernel;

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod avx512;

/// Blocks of Philox that run side by side.
const LANES: usize = 16;

/// Writes the words of elements `first`, `first + 1`, ...: `out[i] = random.word(first + i)`, with 0
/// behind the last index.
///
/// ```
/// use exmy::slice::words_into;
/// use exmy::random::{Philox, Stream};
///
/// let random = Philox::new(1, Stream::new("doc"));
/// let mut words = [0; 3];
/// words_into(random, 4_294_967_295, &mut words); // in the middle of a block, across 2^32
/// assert_eq!(words[2], random.word(4_294_967_297));
/// ```
pub fn words_into(random: Philox, first: u64, out: &mut [u32]) {
    // Behind the last index follows 0, which is in no block with it.
    let left = usize::try_from(first.wrapping_neg()).unwrap_or(usize::MAX);
    if first != 0 && out.len() > left {
        let (before, behind) = out.split_at_mut(left);
        words_into(random, first, before);
        return words_into(random, 0, behind);
    }
    // Up to three words until a block starts.
    let head = (first.wrapping_neg() % 4).min(out.len() as u64) as usize;
    let (head, body) = out.split_at_mut(head);
    for (i, word) in head.iter_mut().enumerate() {
        *word = random.word(first + i as u64);
    }
    let block = (first.wrapping_add(head.len() as u64)) / 4;
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    let (block, body) = avx512::blocks(random, block, body);
    blocks(random, block, body);
}

kernel! {
    /// Words from the start of block `block` on.
    fn blocks<'a>(random: Philox, block: u64, out: &'a mut [u32]) {
        let mut block = block;
        let mut groups = out.chunks_exact_mut(4 * LANES);
        for group in &mut groups {
            let mut words = [[0_u32; 4]; LANES];
            for (lane, words) in words.iter_mut().enumerate() {
                *words = random.block(block.wrapping_add(lane as u64));
            }
            group.copy_from_slice(words.as_flattened());
            block = block.wrapping_add(LANES as u64);
        }
        for four in groups.into_remainder().chunks_mut(4) {
            four.copy_from_slice(&random.block(block)[..four.len()]);
            block = block.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn words_begin_again_behind_the_last() {
        let random = Philox::new(11, Stream::new("words"));
        for before in 1..9 {
            let (first, mut out) = (u64::MAX - before + 1, [0; 150]);
            words_into(random, first, &mut out);
            for (i, word) in (0..).zip(&out) {
                assert_eq!(*word, random.word(first.wrapping_add(i)), "{before} {i}");
            }
        }
    }

    #[test]
    fn words_are_those_of_their_address() {
        let random = Philox::new(11, Stream::new("words"));
        let mut out = [0; 200];
        // The second start makes the block counter carry into its upper word.
        for first in [0, 1, 2, 3, 4, 61, (1 << 34) - 37] {
            for len in [0, 1, 3, 4, 5, 63, 64, 67, 200] {
                words_into(random, first, &mut out[..len]);
                for (i, word) in out[..len].iter().enumerate() {
                    assert_eq!(*word, random.word(first + i as u64), "{first} {len} {i}");
                }
            }
        }
    }
}
