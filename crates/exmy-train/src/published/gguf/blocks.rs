//! How GGUF stores the elements of tensors, as values.
//!
//! The definitions are ggml's (`ggml-common.h`, `ggml-quants.c`, <https://github.com/ggml-org/ggml>): a row
//! is whole blocks of 32 or 256 neighbours, each with scales of its own. Values are formed in f32, every step
//! rounded, in the order in which ggml's Python package `gguf` forms them, whose bits they are.
//!
//! | type | elements, bytes of a block | an element |
//! |---|---|---|
//! | Q8_0 | 32, 34 | `d q`, d in f16, q from -128 to 127 |
//! | Q4_0 | 32, 18 | `d (q - 8)`, q of 4 bits |
//! | Q4_1 | 32, 20 | `d q + m`, d and m in f16 |
//! | Q4_K | 256, 144 | `(d s) q - (m t) `; s and t, of 6 bits, for each 32 of them |
//! | Q6_K | 256, 210 | `(d s) (q - 32)`, q of 6 bits; s, of 8 bits, for each 16 of them |
//! | MXFP4 | 32, 17 | E2M1 times E8M0, which has no NaN here |

use exmy::error::{Error, Result};
use exmy::format::Format;
use exmy::safetensors::extents;

/// How elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table above has them")]
pub enum Type {
    F32,
    F16,
    Bf16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q4K,
    Q6K,
    Mxfp4,
}

/// Types that ggml has and that are not read, by their numbers, for the message.
const OTHERS: [(u32, &str); 22] = [
    (6, "Q5_0"),
    (7, "Q5_1"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (13, "Q5_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
];

impl Type {
    /// The type of a number in a file.
    ///
    /// # Errors
    /// If it is not read.
    pub fn of(number: u32) -> Result<Self> {
        Ok(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            8 => Self::Q8_0,
            12 => Self::Q4K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            39 => Self::Mxfp4,
            _ => {
                let name = OTHERS.iter().find(|(other, _)| *other == number);
                let name = name.map_or("unknown", |(_, name)| name);
                return Err(Error::new(format!("its type {number} ({name}) is not read")).hint(
                    "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K and MXFP4 are; llama-quantize \
                     writes others as F16",
                ));
            }
        })
    }

    /// Elements and bytes of a block.
    pub const fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q8_0 => (32, 34),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q4K => (256, 144),
            Self::Q6K => (256, 210),
            Self::Mxfp4 => (32, 17),
        }
    }

    /// Bytes of a tensor.
    ///
    /// # Errors
    /// If its rows are no whole blocks, or there is no such number.
    pub fn bytes(self, shape: &[usize]) -> Result<usize> {
        let (elements, bytes) = self.block();
        let row = shape.last().copied().unwrap_or(1);
        let count = shape.iter().try_fold(1_usize, |count, extent| count.checked_mul(*extent));
        let bytes = count.and_then(|count| (count / elements).checked_mul(bytes));
        if !row.is_multiple_of(elements) {
            return Err(Error::new(format!(
                "rows of {row} are no whole blocks of {elements} elements, as {self:?} has them"
            )));
        }
        bytes.ok_or_else(|| Error::new(format!("{} is too large", extents(shape))))
    }

    /// The values of whole blocks.
    ///
    /// # Panics
    /// If `bytes` are not those of `values`.
    pub fn dequantize(self, bytes: &[u8], values: &mut [f32]) {
        let (elements, length) = self.block();
        assert!(
            values.len().is_multiple_of(elements)
                && bytes.len() == values.len() / elements * length,
            "{} bytes are not {} elements of {self:?}",
            bytes.len(),
            values.len()
        );
        let blocks = bytes.chunks_exact(length).zip(values.chunks_exact_mut(elements));
        match self {
            Self::F32 => blocks.for_each(|(from, to)| to[0] = f32::from_bits(word(from))),
            Self::F16 => blocks.for_each(|(from, to)| to[0] = half(from)),
            Self::Bf16 => {
                blocks.for_each(|(from, to)| to[0] = f32::from_bits(u32::from(short(from)) << 16));
            }
            Self::Q8_0 => blocks.for_each(|(from, to)| q8_0(from, to)),
            Self::Q4_0 => blocks.for_each(|(from, to)| q4_0(from, to)),
            Self::Q4_1 => blocks.for_each(|(from, to)| q4_1(from, to)),
            Self::Q4K => blocks.for_each(|(from, to)| q4_k(from, to)),
            Self::Q6K => blocks.for_each(|(from, to)| q6_k(from, to)),
            Self::Mxfp4 => blocks.for_each(|(from, to)| mxfp4(from, to)),
        }
    }
}

fn short(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn half(bytes: &[u8]) -> f32 {
    Format::F16.to_f32(short(bytes).into())
}

fn q8_0(block: &[u8], to: &mut [f32]) {
    let d = half(block);
    for (to, &q) in to.iter_mut().zip(&block[2..]) {
        *to = f32::from(q as i8) * d;
    }
}

/// Low nibbles of 16 bytes are the first half of a block, high ones the second.
fn nibbles(bytes: &[u8], to: &mut [f32], value: impl Fn(u8) -> f32) {
    let (first, second) = to.split_at_mut(bytes.len());
    for ((first, second), byte) in first.iter_mut().zip(second).zip(bytes) {
        (*first, *second) = (value(byte & 0xF), value(byte >> 4));
    }
}

fn q4_0(block: &[u8], to: &mut [f32]) {
    let d = half(block);
    nibbles(&block[2..], to, |q| (f32::from(q) - 8.0) * d);
}

fn q4_1(block: &[u8], to: &mut [f32]) {
    let (d, m) = (half(block), half(&block[2..]));
    nibbles(&block[4..], to, |q| f32::from(q) * d + m);
}

fn mxfp4(block: &[u8], to: &mut [f32]) {
    // Twice the elements of E2M1, times half the scale: both are whole numbers or powers of two.
    const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
    let half = libm::ldexpf(1.0, i32::from(block[0]) - 128);
    nibbles(&block[1..], to, |q| f32::from(DOUBLED[usize::from(q)]) * half);
}

fn q4_k(block: &[u8], to: &mut [f32]) {
    let (d, m) = (half(block), half(&block[2..]));
    let (packed, codes) = block[4..].split_at(12);
    // Eight scales and eight offsets of 6 bits: the first four of each lie in bytes of their own, whose two
    // upper bits are those of the others.
    let pair = |j: usize| match j {
        0..4 => (packed[j] & 63, packed[j + 4] & 63),
        _ => (
            packed[j + 4] & 0xF | packed[j - 4] >> 6 << 4,
            packed[j + 4] >> 4 | packed[j] >> 6 << 4,
        ),
    };
    for (part, (codes, to)) in codes.chunks_exact(32).zip(to.chunks_exact_mut(64)).enumerate() {
        let factors = [2 * part, 2 * part + 1].map(|j| {
            let (scale, offset) = pair(j);
            (d * f32::from(scale), m * f32::from(offset))
        });
        let (low, high) = to.split_at_mut(32);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(codes) {
            *low = factors[0].0 * f32::from(byte & 0xF) - factors[0].1;
            *high = factors[1].0 * f32::from(byte >> 4) - factors[1].1;
        }
    }
}

fn q6_k(block: &[u8], to: &mut [f32]) {
    let (low, rest) = block.split_at(128);
    let (high, rest) = rest.split_at(64);
    let (scales, d) = (&rest[..16], half(&rest[16..]));
    for (i, to) in to.iter_mut().enumerate() {
        // Halves of 128 elements: 64 bytes of low bits, of which the first two 32 take the low nibbles, and
        // 32 bytes of high bits, two for each 32.
        let (part, place) = (i / 128, i % 128);
        let (quarter, l) = (place / 32, place % 32);
        let nibble = low[64 * part + 32 * (quarter % 2) + l] >> (4 * (quarter / 2)) & 0xF;
        let upper = high[32 * part + l] >> (2 * quarter) & 3;
        let scale = d * f32::from(scales[i / 16] as i8);
        *to = scale * (f32::from(nibble | upper << 4) - 32.0);
    }
}
