//! The operations of recipes on the CPU: those of the library and of this module's neighbours.

mod cores;

use super::{MOST_SOURCES, Quantize, Source};
use crate::nn::Cpu;
use crate::nn::device::{Buffer, Matrix, MatrixMut, SliceMut};
use crate::nn::site::Product;
use crate::recipe::clip::Clip;
use crate::recipe::sums::TensorCores;
use crate::recipe::{bump, hot, mask};
use exmy::format::Format;
use exmy::gemm::f32::Output;
use exmy::gemm::fast::{Packed, Scaling, Side, multiply_and_round};
use exmy::gemm::{Accumulation, Spec, Sum, fast, gemm};
use exmy::parallel;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::Philox;
use exmy::round::Rules;
use exmy::slice::{Converter, View};

/// Packed operands, whose memory is used again.
#[derive(Clone, Debug)]
pub struct Packs {
    left: Packed,
    right: Packed,
    /// What is multiplied by tensor cores, in place of both.
    cores: Option<(TensorCores, Product)>,
    codes: [cores::Codes; 2],
}

impl Default for Packs {
    fn default() -> Self {
        let (left, right) = (Packed::nothing(Side::Left), Packed::nothing(Side::Right));
        Self { left, right, cores: None, codes: Default::default() }
    }
}

impl Quantize for Cpu {
    type Packed = Packs;

    fn quantize(
        &self,
        quantizer: &Quantizer,
        x: Matrix<'_, Self>,
        axis: Axis,
        random: Philox,
        scale: Option<f32>,
        out: MatrixMut<'_, Self>,
    ) {
        match scale {
            None => quantizer.image_into(x.view(), axis, random, out.view()),
            Some(scale) => quantizer.image_with(x.view(), axis, random, |_| scale, out.view()),
        }
    }

    fn quantize_by_position(
        &self,
        quantizer: &Quantizer,
        x: Matrix<'_, Self>,
        axis: Axis,
        random: Philox,
        sequence: usize,
        out: MatrixMut<'_, Self>,
    ) {
        bump::image_into(quantizer, x.view(), axis, random, sequence, out.view());
    }

    fn clip(&self, clip: Clip, x: SliceMut<'_, Self>) {
        clip.apply(x.numbers());
    }

    fn mask(&self, bits: u8, x: SliceMut<'_, Self>) {
        mask::apply(bits, x.numbers());
    }

    fn times(&self, factor: f32, x: SliceMut<'_, Self>) {
        x.numbers().iter_mut().for_each(|x| *x *= factor);
    }

    fn cast(&self, (format, rules): (Format, Rules), x: MatrixMut<'_, Self>) {
        let converter = Converter::new(format, rules);
        let (rows, cols, stride) = (x.rows(), x.cols(), x.stride());
        let numbers = x.into_data().numbers();
        if cols == stride {
            return converter.fake_quantize(&mut numbers[..rows * cols]);
        }
        for row in numbers.chunks_mut(stride.max(1)).take(rows) {
            converter.fake_quantize(&mut row[..cols]);
        }
    }

    fn amax(&self, x: Matrix<'_, Self>, to: SliceMut<'_, Self>) {
        to.numbers()[0] = amax(x.view());
    }

    fn pack(
        &self,
        packed: &mut Packs,
        cores: Option<TensorCores>,
        product: Product,
        left: &[Source<'_, Self>],
        right: &[Source<'_, Self>],
    ) {
        packed.cores = cores.map(|cores| (cores, product));
        if let Some(cores) = cores {
            let [a, b] = &mut packed.codes;
            let [left_axis, right_axis] = product.axes();
            a.pack(cores, left, left_axis, true);
            return b.pack(cores, right, right_axis, false);
        }
        // Stored matrices are transposed in these places: Y = X Wᵀ, dX = dY W, dW = dYᵀ X.
        let transposed = [product == Product::GradWeight, product == Product::Forward];
        let Packs { left: a, right: b, .. } = packed;
        let mut pack_left = || with_sources(left, |left| a.round(left, transposed[0], true));
        let mut pack_right = || with_sources(right, |right| b.round(right, transposed[1], false));
        if left.is_empty() || right.is_empty() {
            pack_left();
            pack_right();
        } else {
            parallel::both(pack_left, pack_right);
        }
    }

    fn multiply(
        &self,
        packed: &Packs,
        out: MatrixMut<'_, Self>,
        mode: Output,
        to: Option<(Format, Rules)>,
    ) {
        if let Some((cores, product)) = packed.cores {
            let mut out = out;
            cores::multiply(cores, product, packed.codes.each_ref(), out.again(), mode);
            return to.map_or((), |to| self.cast(to, out));
        }
        let with = match mode {
            Output::Accumulate => Scaling::ACCUMULATE,
            Output::Overwrite => Scaling::OVERWRITE,
        };
        let round = to.map(|(format, rules)| Converter::new(format, rules));
        let Packs { left, right, .. } = packed;
        if let Err(error) = multiply_and_round(left, right, out.view(), with, round) {
            panic!("{error}");
        }
    }

    fn exchange_left(&self, one: &mut Packs, other: &mut Packs) {
        core::mem::swap(&mut one.left, &mut other.left);
        core::mem::swap(&mut one.codes[0], &mut other.codes[0]);
    }

    fn sums(
        &self,
        sum: Sum,
        random: Philox,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
    ) {
        let (a, b) = (left.view(), right.view());
        let (a, b) = match product {
            Product::Forward => (a, b.t()),
            Product::GradInput => (a, b),
            Product::GradWeight => (a.t(), b),
        };
        let mut spec = Spec::from(Accumulation::Sum(sum));
        spec.random = Some(random);
        let sums = gemm(a, b, &spec).unwrap_or_else(|error| panic!("{error}"));
        let (cols, stride) = (out.cols(), out.stride());
        let rows = out.into_data().numbers().chunks_mut(stride);
        for (out, sums) in rows.zip(sums.chunks(cols)) {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = if mode == Output::Overwrite { *sum } else { *out + sum };
            }
        }
    }

    fn column_sums(
        &self,
        x: Matrix<'_, Self>,
        minus: Option<Matrix<'_, Self>>,
        squared: bool,
    ) -> Vec<f64> {
        hot::column_sums(x.view(), minus.map(Matrix::view), squared)
    }

    fn take_columns(
        &self,
        x: Matrix<'_, Self>,
        minus: Option<Matrix<'_, Self>>,
        columns: &Vec<u32>,
        out: MatrixMut<'_, Self>,
    ) {
        let (x, minus) = (x.view(), minus.map(Matrix::view));
        let (cols, stride) = (out.cols(), out.stride());
        assert_eq!((out.rows(), cols), (x.rows(), columns.len()), "a column for each of the list");
        if cols == 0 {
            return;
        }
        for (i, out) in out.into_data().numbers().chunks_mut(stride).enumerate() {
            for (out, &j) in out.iter_mut().zip(columns) {
                *out = x.at(i, j as usize) - minus.map_or(0.0, |minus| minus.at(i, j as usize));
            }
        }
    }

    fn add_to_columns(&self, x: Matrix<'_, Self>, columns: &Vec<u32>, out: MatrixMut<'_, Self>) {
        let (x, stride) = (x.view(), out.stride());
        assert_eq!(
            (x.rows(), x.cols()),
            (out.rows(), columns.len()),
            "a column for each of the list"
        );
        for (i, out) in out.into_data().numbers().chunks_mut(stride.max(1)).enumerate() {
            for (k, &j) in columns.iter().enumerate() {
                out[j as usize] += x.at(i, k);
            }
        }
    }

    fn widen(&self, buffer: &mut Buffer<Self>, rows: usize, cols: usize, wide: usize) {
        let mut numbers = core::mem::take(buffer).into_memory();
        if numbers.len() < rows * wide {
            numbers.reserve_exact(rows * wide - numbers.len());
            numbers.resize(rows * wide, 0.0);
        }
        // The last row first: where a row goes, those before it are not.
        for i in (0..rows).rev() {
            numbers.copy_within(i * cols..(i + 1) * cols, i * wide);
        }
        *buffer = numbers.into();
    }
}

/// Hands the sources to some work as the library has them.
fn with_sources(sources: &[Source<'_, Cpu>], work: impl FnOnce(&[fast::Source<'_>])) {
    let Some(first) = sources.first() else { return };
    fn of<'a>(source: &Source<'a, Cpu>) -> fast::Source<'a> {
        let Source { matrix, quantizer, random } = *source;
        fast::Source { matrix: matrix.view(), quantizer, random }
    }
    assert!(sources.len() <= MOST_SOURCES, "at most {MOST_SOURCES} matrices in an operand");
    let mut few = [of(first); MOST_SOURCES];
    for (to, source) in few.iter_mut().zip(sources) {
        *to = of(source);
    }
    work(&few[..sources.len()]);
}

/// The largest magnitude; NaN if there is one.
fn amax(x: View<'_, f32>) -> f32 {
    let mut amax = 0.0_f32;
    for i in 0..x.rows() {
        for j in 0..x.cols() {
            let value = x.at(i, j).abs();
            amax = if value.is_nan() || value > amax { value } else { amax };
            if amax.is_nan() {
                return amax;
            }
        }
    }
    amax
}
