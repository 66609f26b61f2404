//! Codes of any width, eight at a time.
//!
//! Within a 64-bit word of eight bytes (or each of two words of four 16-bit codes) neighbours are joined
//! in steps, each halving the number of fields. The `w` bytes that result are stored as one word of 8
//! bytes (or two), whose surplus the next group overwrites. So the last groups, where that would exceed
//! the slice, are left over. The words are made a few dozen at a time in a buffer: without the overlapping
//! stores between them, the compiler vectorizes the steps.

use crate::simd::kernel;

/// Groups whose words are in flight together.
const BATCH: usize = 32;

/// The eight bytes from `at` on as one word.
#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

/// How many groups of `width` bytes can be read or written if one takes `word` bytes from its start.
#[inline(always)]
fn whole_groups(codes: usize, bytes: usize, width: usize, word: usize) -> usize {
    match bytes.checked_sub(word) {
        Some(slack) => (codes / 8).min(slack / width + 1),
        None => 0,
    }
}

/// Joins the fields of `width` bits at multiples of `from` bits, pairwise, where `low` masks the
/// even fields: field `2i + 1` moves down to `width` bits above field `2i`.
#[inline(always)]
fn join(x: u64, low: u64, from: u32, width: u32) -> u64 {
    (x & low) | (x >> from & low) << width
}

/// The way back; `low` masks `width` bits at multiples of `2 from` bits.
#[inline(always)]
fn part(x: u64, low: u64, from: u32, width: u32) -> u64 {
    (x & low) | (x >> width & low) << from
}

/// `width` ones at every multiple of `every` bits.
#[inline(always)]
fn fields(width: u32, every: u32) -> u64 {
    let one = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let mut all = one;
    let mut at = every;
    while at < 64 {
        all |= one << at;
        at += every;
    }
    all
}

kernel! {
    /// Packs codes of at most 8 bits.
    pub(super) fn pack_bytes<'a>(codes: &'a [u8], width: u32, bytes: &'a mut [u8]) -> usize {
        let w = width as usize;
        let groups = whole_groups(codes.len(), bytes.len(), w, 8);
        let (f2, f4, f8) = (fields(width, 16), fields(2 * width, 32), fields(4 * width, 64));
        let codes = &codes.as_chunks::<8>().0[..groups];
        let mut words = [0_u64; BATCH];
        for (i, codes) in codes.chunks(BATCH).enumerate() {
            for (word, codes) in words.iter_mut().zip(codes) {
                let x = join(u64::from_le_bytes(*codes), f2, 8, width);
                *word = join(join(x, f4, 16, 2 * width), f8, 32, 4 * width);
            }
            let mut at = i * BATCH * w;
            for word in &words[..codes.len()] {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += w;
            }
        }
        groups * 8
    }
}

kernel! {
    /// Unpacks codes of at most 8 bits.
    pub(super) fn unpack_bytes<'a>(bytes: &'a [u8], width: u32, codes: &'a mut [u8]) -> usize {
        let w = width as usize;
        let groups = whole_groups(codes.len(), bytes.len(), w, 8);
        let (f2, f4, f8) = (fields(width, 16), fields(2 * width, 32), fields(4 * width, 64));
        let codes = &mut codes.as_chunks_mut::<8>().0[..groups];
        let mut words = [0_u64; BATCH];
        for (i, codes) in codes.chunks_mut(BATCH).enumerate() {
            let mut at = i * BATCH * w;
            for word in &mut words[..codes.len()] {
                *word = word_at(bytes, at);
                at += w;
            }
            for (codes, word) in codes.iter_mut().zip(&words) {
                let x = part(part(*word, f8, 32, 4 * width), f4, 16, 2 * width);
                *codes = part(x, f2, 8, width).to_le_bytes();
            }
        }
        groups * 8
    }
}

/// Four codes as one word, the first lowest.
#[inline(always)]
fn word_of(codes: [u16; 4]) -> u64 {
    let [a, b, c, d] = codes.map(u64::from);
    a | b << 16 | c << 32 | d << 48
}

// The second four of eight codes begin `4 w` bits into the group: at byte `w / 2`, and where `w` is
// odd at its upper nibble, which the first four leave free.

kernel! {
    /// Packs codes of at most 15 bits.
    pub(super) fn pack_pairs<'a>(codes: &'a [u16], width: u32, bytes: &'a mut [u8]) -> usize {
        let w = width as usize;
        let groups = whole_groups(codes.len(), bytes.len(), w, 8 + w / 2);
        let (f2, f4, nibble) = (fields(width, 32), fields(2 * width, 64), 4 * (width % 2));
        let codes = &codes[..groups * 8].as_chunks::<4>().0;
        let mut words = [0_u64; 2 * BATCH];
        for (i, codes) in codes.chunks(2 * BATCH).enumerate() {
            for (word, codes) in words.iter_mut().zip(codes) {
                *word = join(join(word_of(*codes), f2, 16, width), f4, 32, 2 * width);
            }
            let mut at = i * BATCH * w;
            for [low, high] in words[..codes.len()].as_chunks().0 {
                let high = high << nibble | low >> (4 * width - nibble);
                bytes[at..at + 8].copy_from_slice(&low.to_le_bytes());
                bytes[at + w / 2..at + w / 2 + 8].copy_from_slice(&high.to_le_bytes());
                at += w;
            }
        }
        groups * 8
    }
}

kernel! {
    /// Unpacks codes of at most 15 bits.
    pub(super) fn unpack_pairs<'a>(bytes: &'a [u8], width: u32, codes: &'a mut [u16]) -> usize {
        let w = width as usize;
        let groups = whole_groups(codes.len(), bytes.len(), w, 8 + w / 2);
        let (f2, f4, nibble) = (fields(width, 32), fields(2 * width, 64), 4 * (width % 2));
        let codes = codes[..groups * 8].as_chunks_mut::<4>().0;
        let mut words = [0_u64; 2 * BATCH];
        for (i, codes) in codes.chunks_mut(2 * BATCH).enumerate() {
            let mut at = i * BATCH * w;
            for [low, high] in words[..codes.len()].as_chunks_mut().0 {
                *low = word_at(bytes, at);
                *high = word_at(bytes, at + w / 2) >> nibble;
                at += w;
            }
            for (codes, word) in codes.iter_mut().zip(&words) {
                let x = part(part(*word, f4, 32, 2 * width), f2, 16, width);
                *codes = [x as u16, (x >> 16) as u16, (x >> 32) as u16, (x >> 48) as u16];
            }
        }
        groups * 8
    }
}
