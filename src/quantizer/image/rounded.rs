//! Rows of a matrix in low precision, made when they are asked for: what a product packs without
//! the whole image ever being in memory.
//!
//! The values are those of [`Quantizer::image_into`] but for a tensor scale, which stays out: it
//! multiplies the product. So they are code times block scale, rounded once.

use alloc::vec::Vec;
use core::ops::Range;

use super::Cast;
use super::{Chunk, Piece, Preparation};
use crate::block::fast::{Blocks, Part, WalkedRows, common_multiple, largest_in};
use crate::block::scale::TensorFactors;
use crate::format::Sign;
use crate::quantizer::{Axis, Quantizer, Target};
use crate::random::Philox;
use crate::round::Rounding;
use crate::slice::{Converter, View, ViewMut};

/// The largest magnitude of a matrix after a cast, where it is found without casting the matrix. The cast
/// must keep the order of magnitudes, whatever their signs, and all must be finite before and after.
fn largest_after(cast: Option<Cast>, x: View<'_, f32>) -> Option<f32> {
    use Rounding::{AwayFromZero, TiesToAway, TiesToEven, TiesToZero, ToOdd, TowardZero};
    let finite = |amax: f32| amax.is_finite().then_some(amax);
    let amax = finite(f32::from_bits(largest_in(x)))?;
    let Some(cast) = cast else { return Some(amax) };
    let even = matches!(
        cast.rounding,
        TiesToEven | TiesToAway | TiesToZero | TowardZero | AwayFromZero | ToOdd
    );
    if !even || cast.format.sign() != Sign::Magnitude {
        return None;
    }
    let mut amax = [amax];
    Converter::from(cast).fake_quantize(&mut amax);
    finite(amax[0])
}

/// A matrix prepared.
pub(crate) struct RoundedMatrix<'a> {
    x: View<'a, f32>,
    first: Preparation,
    blocks: Option<(Blocks<'a>, TensorFactors)>,
    random: Philox,
    halves: bool,
}

impl<'a> RoundedMatrix<'a> {
    /// Looks at the whole matrix where a scale depends on it; `copy` takes one where something
    /// comes before such a scale.
    ///
    /// # Panics
    /// As [`Quantizer::image_into`].
    #[track_caller]
    pub(crate) fn new(
        quantizer: &Quantizer,
        x: View<'a, f32>,
        axis: Axis,
        random: Philox,
        copy: &'a mut Vec<f32>,
    ) -> Self {
        let (rows, cols) = (x.rows(), x.cols());
        if let Err(error) = quantizer.check_size(rows, cols, axis) {
            panic!("{error}");
        }
        let Quantizer { before, rotation, target, rounding, overflow } = *quantizer;
        let cast = match target {
            Target::Format(format) => Some(Cast { format, rounding, overflow }),
            _ => None,
        };
        let mut first = Preparation {
            before: before.map(|cast| Converter::from(cast).with_random(random)),
            rotation,
            down: axis == Axis::Rows,
            cast: cast.map(|cast| Converter::from(cast).with_random(random)),
        };
        let digits = |format: crate::format::Format| match format.man_bits() {
            0 => 0,
            _ => format.precision(),
        };
        let halves = match (target, before) {
            (Target::Block(format), _) => digits(format.element) + digits(format.scale) <= 8,
            (Target::Format(format), _) => format.precision() <= 8,
            (Target::None, Some(cast)) => cast.format.precision() <= 8 && rotation.is_none(),
            (Target::None, None) => false,
        };
        let Target::Block(format) = target else {
            return Self { x, first, blocks: None, random, halves };
        };
        let blocks = Blocks::new(format, rounding, overflow, axis, (rows, cols), None);
        let mut x = x;
        let looks = (!first.is_none() || x.col_stride() != 1) && blocks.needs_whole((rows, cols));
        let only = blocks.looks_for_largest((rows, cols)) && rotation.is_none();
        let largest = if looks && only { largest_after(before, x) } else { None };
        if looks && largest.is_none() {
            if copy.len() < rows * cols {
                copy.resize(rows * cols, 0.0);
            }
            let copy = &mut copy[..rows * cols];
            super::for_each(
                super::pieces(x, ViewMut::new(copy, rows, cols), first.sides((1, 1))),
                |mut piece| first.write(&mut piece),
            );
            first = Preparation { before: None, rotation: None, down: false, cast: None };
            x = View::new(copy, rows, cols);
        }
        let (of, blocks) = match largest {
            Some(amax) => blocks.after_largest(amax),
            None => blocks.after(x),
        };
        Self { x, first, blocks: Some((blocks, of)), random, halves }
    }

    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.x.rows(), self.x.cols())
    }

    /// What the product is to be multiplied by.
    pub(crate) fn tensor_scale(&self) -> Option<f32> {
        let (blocks, of) = self.blocks.as_ref()?;
        blocks.format.tensor_scale.then_some(of.decode)
    }

    /// Whether the values are bfloat16 numbers, as far as the formats say.
    pub(crate) fn seem_halves(&self) -> bool {
        self.halves
    }

    /// Rows that are made together: ranges begin at its multiples.
    pub(crate) fn step(&self) -> usize {
        let side = self.blocks.as_ref().map_or((1, 1), |(blocks, _)| blocks.side);
        let step = self.first.sides(side).0;
        if step >= self.x.rows() { self.x.rows().max(1) } else { common_multiple(step, 1) }
    }

    /// Writes rows, `stride` numbers apart.
    pub(crate) fn write(&self, rows: Range<usize>, stride: usize, out: &mut [f32]) {
        let cols = self.x.cols();
        let count = rows.len();
        if count == 0 || cols == 0 {
            return;
        }
        let chunk = Chunk { first: (rows.start * cols) as u64, rows: count, cols };
        let x = self.x.rows_range(rows);
        let as_they_are = self.first.is_none() && x.col_stride() == 1;
        if self.blocks.is_none() || !as_they_are {
            let Ok(out) = ViewMut::with_row_stride(&mut *out, count, cols, stride) else {
                unreachable!("the output has these rows")
            };
            self.first.write(&mut Piece { chunk, x, out });
        }
        let Some((blocks, of)) = &self.blocks else { return };
        // Rows that are adjacent on both sides are one long row, where blocks do not notice.
        let joined = blocks.side.0 == 1
            && cols.is_multiple_of(blocks.side.1)
            && stride == cols
            && (!as_they_are || x.row_stride() == cols);
        let chunk = if joined { Chunk { rows: 1, cols: count * cols, ..chunk } } else { chunk };
        let x = match joined {
            _ if !as_they_are => None,
            true => Some(View::new(&x.data()[..chunk.cols], 1, chunk.cols)),
            false => Some(x),
        };
        let mut walked = Scaled { x, stride, out, scratch: [0.0; TILE_COLS] };
        blocks.walk(chunk, of, self.random, &mut walked);
    }
}

/// Elements that are written at once at most.
const TILE_COLS: usize = crate::block::fast::TILE_COLS;

/// To rows of the output, from the input or in place.
struct Scaled<'a> {
    x: Option<View<'a, f32>>,
    stride: usize,
    out: &'a mut [f32],
    scratch: [f32; TILE_COLS],
}

impl WalkedRows for Scaled<'_> {
    fn input(&self, i: usize, range: Range<usize>) -> &[f32] {
        match &self.x {
            Some(x) => &x.row(i).unwrap_or_default()[range],
            None => &self.out[i * self.stride..][range],
        }
    }

    fn write(&mut self, blocks: &Blocks<'_>, part: &Part<'_>, i: usize, range: Range<usize>) {
        let len = range.len();
        let out = &mut self.out[i * self.stride..][range.clone()];
        match &self.x {
            Some(x) => {
                blocks.scaled_values(part, &x.row(i).unwrap_or_default()[range], out);
            }
            None => {
                let x = &mut self.scratch[..len];
                x.copy_from_slice(out);
                blocks.scaled_values(part, x, out);
            }
        }
    }
}
