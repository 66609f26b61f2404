//! Matrices to multiply: usual numbers, extremes, specials, in all stores and layouts.

use exmy::block::{Axis, BlockFormat, BlockTensor, NAMED};
use exmy::format::Format;
use exmy::gemm::{Operand, Store};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::slice::View;

/// Xorshift.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f32 {
        self.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// What numbers are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Around 1, bfloat16.
    Usual,
    /// Around 1, binary32.
    Single,
    /// Any bits.
    Any,
    /// Any bfloat16 bits.
    AnyHalf,
    /// Exponents whose products are about the smallest normal number, some zero.
    Tiny,
    /// Subnormal bfloat16 numbers among usual ones.
    Subnormal,
    /// A few infinities and NaN among usual ones.
    Specials,
    /// Zeros of both signs and ones.
    Zeros,
    /// Near the largest, so that sums overflow.
    Huge,
    /// Slabs of 256 positions of other kinds each.
    Slabs,
    /// A named block format, quantized.
    Quantized,
    /// A named block format, any codes and scales.
    Wild,
}

pub(crate) const KINDS: [Kind; 12] = [
    Kind::Usual,
    Kind::Single,
    Kind::Any,
    Kind::AnyHalf,
    Kind::Tiny,
    Kind::Subnormal,
    Kind::Specials,
    Kind::Zeros,
    Kind::Huge,
    Kind::Slabs,
    Kind::Quantized,
    Kind::Wild,
];

fn half(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xFFFF_0000)
}

fn number(random: &mut Random, kind: Kind) -> f32 {
    let rare = random.below(60) == 0;
    let bits = random.next() as u32;
    let sign = bits & 0x8000_0000;
    match kind {
        Kind::Usual => half(random.unit()),
        Kind::Single => random.unit(),
        Kind::Any => f32::from_bits(bits),
        Kind::AnyHalf => f32::from_bits(bits & 0xFFFF_0000),
        Kind::Tiny if rare => f32::from_bits(sign),
        // Exponents -67 to -60.
        Kind::Tiny => f32::from_bits(sign | (60 + (bits >> 20 & 7)) << 23 | bits & 0x7F_0000),
        Kind::Subnormal if rare => f32::from_bits(bits & 0x807F_0000),
        Kind::Specials if rare => {
            [f32::INFINITY, -f32::INFINITY, f32::NAN, -0.0][random.below(4) as usize]
        }
        Kind::Zeros => [0.0, -0.0, 1.0, -1.0][random.below(4) as usize],
        Kind::Huge => f32::from_bits(sign | (188 + (bits >> 20 & 3)) << 23 | bits & 0x7F_0000),
        _ => half(random.unit()),
    }
}

/// A matrix and how it is stored.
pub(crate) enum Matrix {
    /// Rows, columns, strides.
    Singles(Vec<f32>, [usize; 4]),
    Bytes(Format, Vec<u8>, [usize; 4]),
    Pairs(Format, Vec<u16>, [usize; 4]),
    Words(Format, Vec<u32>, [usize; 4]),
    Longs(Format, Vec<u64>, [usize; 4]),
    /// And whether it enters transposed.
    Blocks(BlockTensor, bool),
}

/// Row-major, column-major, with gaps, or neither stride 1; and the elements that takes.
fn strides(random: &mut Random, (rows, cols): (usize, usize)) -> ([usize; 4], usize) {
    let (down, right) = match random.below(5) {
        0 => (1, rows.max(1)),
        1 => (1, rows + 3),
        2 => (cols + 2, 1),
        3 => (2 * cols + 1, 2),
        _ => (cols.max(1), 1),
    };
    ([rows, cols, down, right], rows * down + cols * right + 1)
}

impl Matrix {
    pub(crate) fn random(
        random: &mut Random,
        kind: Kind,
        shape: (usize, usize),
        axis: Axis,
    ) -> Self {
        if matches!(kind, Kind::Quantized | Kind::Wild) {
            let format = NAMED[random.below(NAMED.len() as u64) as usize].1;
            let transposed = random.below(2) == 0;
            return Self::blocks(random, format, shape, axis, kind == Kind::Wild, transposed);
        }
        let (strides, len) = strides(random, shape);
        let mut values: Vec<f32> = (0..len).map(|_| number(random, kind)).collect();
        if kind == Kind::Slabs {
            let kinds: Vec<Kind> = (0..8).map(|_| KINDS[random.below(9) as usize]).collect();
            for (i, j) in (0..shape.0).flat_map(|i| (0..shape.1).map(move |j| (i, j))) {
                let slab = if axis == Axis::Cols { j } else { i } / 256;
                let [_, _, down, right] = strides;
                values[i * down + j * right] = number(random, kinds[slab % 8]);
            }
        }
        if values.iter().all(|x| x.to_bits() & 0xFFFF == 0) && random.below(2) == 0 {
            let halves = values.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
            return Self::Pairs(Format::BF16, halves, strides);
        }
        Self::Singles(values, strides)
    }

    /// Any codes of a format, in integers of some width.
    pub(crate) fn codes(random: &mut Random, format: Format, shape: (usize, usize)) -> Self {
        let (strides, len) = strides(random, shape);
        let least = format.bits().next_power_of_two().trailing_zeros().max(3);
        let width = u64::from(least) + random.below(u64::from(7 - least));
        let codes = (0..len).map(|_| random.next() << 32 ^ random.next());
        match width {
            3 => Self::Bytes(format, codes.map(|code| code as u8).collect(), strides),
            4 => Self::Pairs(format, codes.map(|code| code as u16).collect(), strides),
            5 => Self::Words(format, codes.map(|code| code as u32).collect(), strides),
            _ => Self::Longs(format, codes.collect(), strides),
        }
    }

    /// A block tensor for a sum along `axis`; `wild` with any codes and scales; `transposed` stored the
    /// other way round.
    pub(crate) fn blocks(
        random: &mut Random,
        format: BlockFormat,
        (rows, cols): (usize, usize),
        axis: Axis,
        wild: bool,
        transposed: bool,
    ) -> Self {
        let ((rows, cols), axis) = match (transposed, axis) {
            (false, axis) => ((rows, cols), axis),
            (true, Axis::Cols) => ((cols, rows), Axis::Rows),
            (true, Axis::Rows) => ((cols, rows), Axis::Cols),
        };
        let x: Vec<f32> = (0..rows * cols).map(|_| random.unit()).collect();
        let philox = Philox::new(0, Stream::new("unused"));
        let x = View::new(&x, rows, cols);
        let tensor = BlockTensor::quantize(
            x,
            axis,
            format,
            (Rounding::TiesToEven, Overflow::Finite, philox),
        );
        if !wild {
            return Self::Blocks(tensor, transposed);
        }
        let (mut codes, mut scales, tensor_scale) = tensor.into_parts();
        codes.iter_mut().for_each(|code| *code = random.next() as u8);
        // Any scales, or only some of the largest or smallest.
        let (base, some) = [(0, 256), (0, 4), (120, 16), (250, 6)][random.below(4) as usize];
        let mask = if format.scale.bits() >= 8 { 0xFF } else { (1 << format.scale.bits()) - 1 };
        for scale in &mut scales {
            *scale = (base + random.below(some)) as u8 & mask;
        }
        let shape = (rows, cols);
        let tensor = BlockTensor::from_parts(format, axis, shape, codes, scales, tensor_scale);
        Self::Blocks(tensor.unwrap(), transposed)
    }

    pub(crate) fn operand(&self) -> Operand<'_> {
        fn view<'a, T>(x: &'a [T], [rows, cols, down, right]: [usize; 4]) -> View<'a, T> {
            View::with_strides(x, (rows, cols), (down, right)).unwrap()
        }
        match self {
            Self::Singles(x, strides) => view(x, *strides).into(),
            Self::Bytes(format, x, strides) => Store::U8(*format, view(x, *strides)).into(),
            Self::Pairs(format, x, strides) => Store::U16(*format, view(x, *strides)).into(),
            Self::Words(format, x, strides) => Store::U32(*format, view(x, *strides)).into(),
            Self::Longs(format, x, strides) => Store::U64(*format, view(x, *strides)).into(),
            Self::Blocks(tensor, false) => tensor.into(),
            Self::Blocks(tensor, true) => Operand::from(tensor).t(),
        }
    }
}
