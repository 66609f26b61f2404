//! What the kernels of block formats need to know: `Blocks` of `kernels/scale.cuh`, made here from a
//! quantizer.

#![allow(unsafe_code)]

use exmy::block::scale::{
    Above, BlockError, Choices, Elements, Exponent, Infinity, Order, RoundUp, ScaleRule, Smallest,
    Zeros,
};
use exmy::block::{Axis, BlockFormat, Shape};
use exmy::format::{Format, Sign, Value};
use exmy::quantizer::{Quantizer, Target};
use exmy::random::Philox;
use exmy::round::{Rounding, Rules};

use crate::Result;
use crate::launch::Plain;
use crate::rounder::{Rounder, Words, Write, kind};

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocks {
    element: Rounder,
    scale: Rounder,
    pub(crate) before: Rounder,
    rule: u32,
    exponent: u32,
    round_up: u32,
    infinity: u32,
    above_is_largest: u32,
    smallest: u32,
    flush: u32,
    zeros: u32,
    in_binary32: u32,
    order: u32,
    emax: i32,
    emin: i32,
    bottom: i32,
    top: i32,
    powers_alone: u32,
    nan_scale: u32,
    smallest_scale: u32,
    half_place: u32,
    threshold: u32,
    squared: u32,
    has_tensor: u32,
    pub(crate) tensor_in_image: u32,
    multiplies: u32,
    pub(crate) down: u32,
    largest: f32,
    reciprocal: f32,
    bound: f32,
    lowest: f32,
    highest: f32,
    pub(crate) rows: u32,
    pub(crate) cols: u32,
    pub(crate) block_rows: u32,
    pub(crate) block_cols: u32,
    pub(crate) blocks_across: u32,
    scale_bytes: u32,
    pub(crate) rotation: u32,
    rotation_to_bf16: u32,
    signs: [u32; 4],
    rotation_scale: f32,
    pub(crate) turned: u32,
    /// The structure's 64-bit fields begin at a multiple of 8.
    gap: [u32; GAP],
    pub(crate) x_stride: u64,
    pub(crate) out_stride: u64,
    random: Words,
}

/// Fields of 32 bits before the gap: 3 rounders and 43 others.
const BEFORE: usize = 3 * (size_of::<Rounder>() / 4) + 43;
const GAP: usize = BEFORE % 2;
const _: () = assert!(std::mem::offset_of!(Blocks, x_stride) == 4 * (BEFORE + GAP));

// SAFETY: fields of 32 bits, then of 64, with the gap between them as a field of its own.
unsafe impl Plain for Blocks {}

impl Blocks {
    /// Where there are no blocks: a cast and a rotation before others. Also what all others begin with.
    pub(crate) fn first(
        what: &'static str,
        quantizer: &Quantizer,
        axis: Axis,
        (rows, cols): (usize, usize),
        random: Option<Philox>,
    ) -> Result<Self> {
        let before = Rounder::of_cast(what, quantizer.before)?;
        let mut blocks = Self {
            before,
            down: u32::from(axis == Axis::Rows),
            rows: rows as u32,
            cols: cols as u32,
            random: Words::new(random, 0),
            ..Self::default()
        };
        if let Some(rotation) = quantizer.rotation {
            blocks.rotation = rotation.size() as u32;
            blocks.rotation_to_bf16 = u32::from(rotation.rounds_to_bf16());
            blocks.rotation_scale = rotation.factor();
            for (i, sign) in rotation.sign_bits().into_iter().enumerate() {
                blocks.signs[i / 32] |= sign >> 31 << (i % 32);
            }
        }
        Ok(blocks)
    }

    /// Of a quantizer to a block format.
    pub(crate) fn new(
        what: &'static str,
        quantizer: &Quantizer,
        format: BlockFormat,
        axis: Axis,
        shape: (usize, usize),
        random: Option<Philox>,
        write: Write,
    ) -> Result<Self> {
        let BlockFormat { element, scale, rule, tensor_scale, profile, .. } = format;
        let Choices {
            exponent,
            round_up,
            infinity,
            above,
            smallest,
            flush,
            zeros,
            elements,
            order,
        } = profile.choices(rule);
        let rules =
            Rules::DEFAULT.with_rounding(quantizer.rounding).with_overflow(quantizer.overflow);
        let rounder = Rounder::new(what, element, rules, write)?;
        let to = if rule == ScaleRule::Nearest { with_sign(scale) } else { scale };
        let nearest_scale = Rounder::new(what, to, Rules::SATURATING, Write::Codes)?;
        let (block_rows, block_cols) = sides(format.shape, axis, shape);
        let (bound, squared) = match rule {
            ScaleRule::FourOverSix(four) => (four.bound.value(), four.error == BlockError::Squared),
            _ => (scale.max().to_f32(), false),
        };
        let (bottom, top) = power_range(scale);
        let largest = element.max().to_f32();
        let first = Self::first(what, quantizer, axis, shape, random)?;
        Ok(Self {
            element: rounder,
            scale: nearest_scale,
            rule: match rule {
                ScaleRule::Floor => 0,
                ScaleRule::Ceil => 1,
                ScaleRule::Even => 2,
                ScaleRule::RCeil => 3,
                ScaleRule::Nearest => 4,
                ScaleRule::MaxAbs => 5,
                ScaleRule::FourOverSix(_) => 6,
                other => unreachable!("{other} is a rule of the library that kernels lack"),
            },
            exponent: match exponent {
                Exponent::Exact => 0,
                Exponent::Field => 1,
                Exponent::Log2 => 2,
            },
            round_up: match round_up {
                RoundUp::Exact => 0,
                RoundUp::Reciprocal => 1,
                RoundUp::Log2 => 2,
            },
            infinity: match infinity {
                Infinity::Nan => 0,
                Infinity::Largest => 1,
                Infinity::AsPower => 2,
            },
            above_is_largest: u32::from(above == Above::Largest),
            smallest: match smallest {
                Smallest::Scale => 0,
                Smallest::MinNormal => 1,
                Smallest::One => 2,
            },
            flush: u32::from(flush),
            zeros: match zeros {
                Zeros::Signed => 0,
                Zeros::PositiveInput => 1,
                Zeros::Positive => 2,
            },
            in_binary32: u32::from(
                elements == Elements::Binary32 && has_binary32(quantizer.rounding),
            ),
            order: match order {
                Order::Folded => 0,
                Order::Divided => 1,
                Order::Torchao => 2,
            },
            emax: element.emax(),
            emin: element.emin(),
            bottom,
            top,
            powers_alone: u32::from(scale.man_bits() == 0),
            nan_scale: scale.nan_code().unwrap_or(scale.max_code()) as u32,
            smallest_scale: scale.min_positive_code() as u32,
            half_place: half_place(element),
            threshold: threshold(element),
            squared: u32::from(squared),
            has_tensor: u32::from(tensor_scale),
            tensor_in_image: u32::from(tensor_scale),
            multiplies: u32::from(is_exact_by_a_factor(&rounder, element)),
            largest,
            reciprocal: 1.0 / largest,
            bound,
            lowest: scale.min_normal().unwrap_or(scale.min_positive()).to_f32(),
            highest: scale.max().to_f32(),
            block_rows: block_rows as u32,
            block_cols: block_cols as u32,
            blocks_across: shape.1.div_ceil(block_cols) as u32,
            scale_bytes: scale.storage_bits() / 8,
            ..first
        })
    }

    /// The same for matrices whose rows are so far apart.
    pub(crate) fn with_strides(self, x_stride: usize, out_stride: usize) -> Self {
        Self { x_stride: x_stride as u64, out_stride: out_stride as u64, ..self }
    }

    /// The same with one block.
    pub(crate) fn as_one_block(self) -> Self {
        Self { block_rows: self.rows, block_cols: self.cols, blocks_across: 1, ..self }
    }

    /// The same without a cast and a rotation, which have been done.
    pub(crate) fn prepared(self) -> Self {
        Self { before: Rounder::none(), rotation: 0, ..self }
    }

    pub(crate) fn has_first(&self) -> bool {
        self.before.kind != kind::NONE || self.rotation != 0
    }

    /// Whether the quick kernels have images in this format: elements on a grid, scales that are all powers
    /// of two with exact products, or that round the usual way, NaN blocks by NaN scales, and none of the
    /// orders of operations that round in between.
    pub(crate) fn is_quick(&self, format: BlockFormat) -> bool {
        let exact = format.element.lsb() >= -90 && self.bottom >= -127 && self.top <= 127;
        let whole = self.powers_alone == 1 && !format.scale.has_zero();
        let powers = self.rule < 4 && self.zeros != 1 && whole && exact;
        let short = self.scale.kind == kind::NEAREST || format.scale == Format::F32;
        let nearest = self.rule == 4 && self.order != 2 && short;
        format.scale.has_nan()
            && self.in_binary32 == 0
            && self.element.is_grid()
            && (self.before.kind == kind::NONE || self.before.is_cut())
            && (powers || nearest)
    }

    pub(crate) fn is_stochastic(&self) -> bool {
        self.element.kind == kind::DITHER
    }

    pub(crate) fn is_four_over_six(&self) -> bool {
        self.rule == 6
    }
}

/// Rows and columns of a block of a matrix, no larger than the matrix.
pub(super) fn sides(shape: Shape, axis: Axis, (rows, cols): (usize, usize)) -> (usize, usize) {
    let (across, along) = if axis == Axis::Cols { (rows, cols) } else { (cols, rows) };
    let (across, along) = match shape {
        Shape::Along(n) => (1, n as usize),
        Shape::Across(n) => (n as usize, 1),
        Shape::Tile(m, n) => (m as usize, n as usize),
        Shape::Row => (1, along.max(1)),
        Shape::Tensor => (across.max(1), along.max(1)),
        other => unreachable!("{other:?} is a shape of the library that kernels lack"),
    };
    if axis == Axis::Cols { (across, along) } else { (along, across) }
}

/// The modes that microxcaling's order of operations has.
fn has_binary32(rounding: Rounding) -> bool {
    matches!(rounding, Rounding::TiesToAway | Rounding::TowardZero | Rounding::TiesToEven)
}

/// Whether an element may be multiplied by the power of two instead of having its exponent changed. The
/// product is exact unless it is subnormal, and what is so small becomes zero by the modes that have a short
/// way.
fn is_exact_by_a_factor(rounder: &Rounder, element: Format) -> bool {
    matches!(rounder.kind, kind::NEAREST | kind::DITHER) && element.lsb() >= -90
}

/// The exponents of the smallest and the largest power of two among a scale format's values.
fn power_range(scale: Format) -> (i32, i32) {
    let bottom = match scale.min_positive() {
        Value::Finite { significand, exponent, .. } => {
            exponent + significand.ilog2() as i32 + i32::from(!significand.is_power_of_two())
        }
        _ => unreachable!("the smallest positive value is finite"),
    };
    (bottom, scale.emax())
}

/// A format with the codes and values of a scale's and, beyond those, a sign: scales have none, and numbers
/// with one are rounded in a shorter way. The format itself where there is no such one.
fn with_sign(scale: Format) -> Format {
    let twin = Format::builder(Sign::Magnitude, scale.exp_bits(), scale.man_bits())
        .bias(scale.bias())
        .specials(scale.specials())
        .zero(scale.has_zero())
        .subnormals(scale.has_subnormals())
        .build();
    let of = |format: Format| {
        let ends = (format.min_positive(), format.max());
        (ends, format.min_positive_code(), format.max_code(), format.nan_code())
    };
    twin.ok().filter(|twin| !scale.is_signed() && of(*twin) == of(scale)).unwrap_or(scale)
}

/// Half a place of the largest element, in the significand of binary32; 0 if that is no number of it.
fn half_place(element: Format) -> u32 {
    let place = element.emax().max(element.emin()) - element.man_bits() as i32;
    let below = 22 - (element.emax() - place);
    if (0..=23).contains(&below) { 1 << below } else { 0 }
}

/// The significand of 24 bits above which `rceil` doubles the scale: that of the largest element.
fn threshold(element: Format) -> u32 {
    match element.max() {
        Value::Finite { significand, .. } => {
            ((u128::from(significand) << 23) >> significand.ilog2()) as u32
        }
        _ => unreachable!("the largest element is finite"),
    }
}

/// The target of a quantizer that has blocks.
pub(super) fn block_format(quantizer: &Quantizer) -> Option<BlockFormat> {
    match quantizer.target {
        Target::Block(format) => Some(format),
        _ => None,
    }
}
