//! What recipes ask of the device: rounding by the library's twins, packed products, patches.
//!
//! Images of both operands of a product are numbers in memory, as the matrices are stored, without the scales
//! of whole tensors. These stay on the device, too, and the product multiplies by them. What is rare (scales
//! that are given and no powers of two, exponents bumped by position, sums of other orders) is done by the
//! host, to the same bits.

#![allow(unsafe_code)]

use exmy::block::BlockProfile;
use exmy::format::Format;
use exmy::gemm::f32::Output;
use exmy::gemm::{Accumulation, Spec, Sum, gemm};
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::Philox;
use exmy::round::{Rounding, Rules};
use exmy::slice;
use exmy_train::nn::device::{Buffer, Matrix, MatrixMut, SliceMut, Storage};
use exmy_train::nn::site::Product;
use exmy_train::recipe::bump;
use exmy_train::recipe::clip::{Clip, Inner};
use exmy_train::recipe::device::{Quantize, Source};
use exmy_train::recipe::sums::TensorCores;

use super::Cuda;
use super::cores::Codes;
use super::memory::{Memory, Parts};
use super::products::{view, view_mut};
use crate::Result;
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::RECIPES;
use crate::rounder::{Rounder, Write};

/// The images of both operands of a product, or their codes for tensor cores.
#[derive(Debug, Default)]
pub struct Packed {
    sides: [Side; 2],
    product: Option<Product>,
    cores: Option<TensorCores>,
    codes: [Codes; 2],
}

/// The image of one operand, as it is stored.
#[derive(Debug, Default)]
struct Side {
    images: Buffer<Cuda>,
    rows: usize,
    cols: usize,
    /// The scale of the whole tensor is the second of four numbers.
    factor: Option<crate::Buffer<f32>>,
}

impl Side {
    fn image(&self) -> Matrix<'_, Cuda> {
        Matrix::new(self.images.first(self.rows * self.cols), self.rows, self.cols)
    }
}

/// `Clip` of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    numbers: [f64; 3],
    how: [u32; 4],
    exponent: i32,
    gap: u32,
}

// SAFETY: three fields of 64 bits and six of 32, without a gap.
unsafe impl Plain for Range {}

/// The cast of a block format's elements, where a scale that is given is a power of two by which no element
/// underflows that is not zero anyway.
fn simple_element(quantizer: &Quantizer, scale: f32) -> Option<(Format, Rules)> {
    let Quantizer { before: None, rotation: None, target: Target::Block(format), .. } = quantizer
    else {
        return None;
    };
    let exponent = (scale.to_bits() >> 23) as i32 - 127;
    let power = scale.to_bits() & 0x7F_FFFF == 0 && scale > 0.0 && exponent.abs() <= 60;
    let nearest = matches!(quantizer.rounding, Rounding::TiesToEven | Rounding::TiesToAway);
    let narrow = format.element.lsb() > -60 && format.element.emax() < 60;
    let plain = format.scale == Format::E8M0 && format.profile == BlockProfile::Ocp;
    let rules = Rules::DEFAULT.with_rounding(quantizer.rounding);
    (power && nearest && narrow && plain)
        .then(|| (format.element, rules.with_overflow(quantizer.overflow)))
}

/// Rows by warps, several to each where there are many.
fn by_warps(rows: usize) -> Grid {
    Grid::cover(rows * 32, 256)
}

impl Cuda {
    /// The host does it: `work` gets the numbers of `x` and a dense place for those of `out`.
    fn on_host(
        &self,
        x: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        work: impl FnOnce(slice::View<'_, f32>, slice::ViewMut<'_, f32>),
    ) {
        let (rows, cols) = (out.rows(), out.cols());
        let mut numbers = vec![0.0; rows * cols];
        work(self.read_matrix(x).view(), slice::ViewMut::new(&mut numbers, rows, cols));
        let numbers = self.buffer(numbers);
        self.copy(Matrix::new(&numbers, rows, cols), out);
    }

    fn image(
        &self,
        quantizer: &Quantizer,
        x: Matrix<'_, Self>,
        axis: Axis,
        random: Philox,
        out: MatrixMut<'_, Self>,
        whole: bool,
    ) -> Option<crate::Buffer<f32>> {
        let random = quantizer.is_stochastic().then_some(random);
        self.attempt(|| {
            let (Some(x), Some(out)) = (view(x)?, view_mut(out)?) else { return Ok(None) };
            if whole {
                return crate::image_into(quantizer, x, axis, random, out).map(|()| None);
            }
            crate::factored_image_into(quantizer, x, axis, random, out)
        })
        .flatten()
    }

    fn pack_side(&self, side: &mut Side, sources: &[Source<'_, Self>], axis: Axis, beside: bool) {
        let Some(first) = sources.first() else { return };
        let sum = |size: fn(&Source<'_, Self>) -> usize| sources.iter().map(size).sum::<usize>();
        (side.rows, side.cols) = if beside {
            (first.matrix.rows(), sum(|source| source.matrix.cols()))
        } else {
            (sum(|source| source.matrix.rows()), first.matrix.cols())
        };
        let len = side.rows * side.cols;
        self.grow(&mut side.images, len);
        let mut images = MatrixMut::new(side.images.first_mut(len), side.rows, side.cols);
        let (mut row, mut col) = (0, 0);
        for Source { matrix, quantizer, random } in sources {
            let (rows, cols) = (row..row + matrix.rows(), col..col + matrix.cols());
            (row, col) = if beside { (row, cols.end) } else { (rows.end, col) };
            let mut all = images.rows_range(rows);
            side.factor =
                self.image(quantizer, *matrix, axis, *random, all.cols_range(cols), false);
        }
    }

    /// Multiplies a matrix by a number.
    fn times(&self, x: MatrixMut<'_, Self>, factor: f32) {
        let (rows, cols, stride) = (x.rows(), x.cols(), x.stride());
        if rows > 0 && cols > 0 {
            let x = x.into_data();
            self.start(&RECIPES, "scale_rows", by_warps(rows), |launch| {
                let launch = launch.slice(x.read()).value(stride as u64).value(rows as u64);
                launch.value(cols as u32).value(factor)
            });
        }
    }

    /// The bits of the largest magnitude, formed by a kernel.
    fn bits(
        &self,
        form: impl FnOnce(&mut crate::Buffer<u32>) -> Result<()>,
    ) -> Result<crate::Buffer<u32>> {
        let mut bits = self.device().zeros(1)?;
        form(&mut bits)?;
        Ok(bits)
    }
}

impl Quantize for Cuda {
    type Packed = Packed;

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
            None => drop(self.image(quantizer, x, axis, random, out, true)),
            Some(scale) => match simple_element(quantizer, scale) {
                // An exact quotient, a cast, an exact product.
                Some(element) => {
                    let mut out = out;
                    self.copy(x, out.again());
                    self.times(out.again(), 1.0 / scale);
                    self.cast(element, out.again());
                    self.times(out, scale);
                }
                None => self.on_host(x, out, |x, out| {
                    quantizer.image_with(x, axis, random, |_| scale, out);
                }),
            },
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
        self.on_host(x, out, |x, out| {
            bump::image_into(quantizer, x, axis, random, sequence, out);
        });
    }

    fn clip(&self, clip: Clip, x: SliceMut<'_, Self>) {
        if x.is_empty() {
            return;
        }
        let inner = match clip.inner {
            None => 0,
            Some(Inner::Flush) => 1,
            Some(Inner::Subnormal) => 2,
            Some(Inner::Clamp) => 3,
        };
        let range = Range {
            numbers: [clip.max(), clip.min_normal(), clip.min_subnormal()],
            how: [clip.outer.into(), clip.infinite.into(), inner, clip.scaled.into()],
            exponent: (clip.max().to_bits() >> 52) as i32 - 1023,
            gap: 0,
        };
        let (count, grid) = (x.len() as u64, Grid::cover(x.len().div_ceil(8), 256));
        self.attempt(|| {
            let amax = self.bits(|amax| {
                if !clip.scaled {
                    return Ok(());
                }
                let launch = Launch::new(self.device(), &RECIPES, "finite_amax").slice(x.read());
                // SAFETY: it reads the slice and writes one number.
                unsafe { launch.value(count).write(amax).run(grid) }
            })?;
            let launch = Launch::new(self.device(), &RECIPES, "clip").slice(x.read()).value(count);
            // SAFETY: it stays inside of the slice.
            unsafe { launch.read(&amax).value(range).run(grid) }
        });
    }

    fn mask(&self, bits: u8, x: SliceMut<'_, Self>) {
        let keep = 0xFFFF_0000_u32 << (7 - bits);
        if !x.is_empty() {
            self.start(&RECIPES, "mask", Grid::cover(x.len().div_ceil(4), 256), |launch| {
                launch.slice(x.read()).value(x.len() as u64).value(keep)
            });
        }
    }

    fn times(&self, factor: f32, x: SliceMut<'_, Self>) {
        if !x.is_empty() {
            self.start(&RECIPES, "times", Grid::cover(x.len().div_ceil(4), 256), |launch| {
                launch.slice(x.read()).value(x.len() as u64).value(factor)
            });
        }
    }

    fn cast(&self, (format, rules): (Format, Rules), x: MatrixMut<'_, Self>) {
        let (rows, cols, stride) = (x.rows(), x.cols(), x.stride());
        let x = x.into_data();
        if rows == 0 || cols == 0 {
            return;
        }
        self.attempt(|| {
            let rounder = Rounder::new("cast", format, rules, Write::Values)?;
            let launch = Launch::new(self.device(), &RECIPES, "cast_rows").slice(x.read());
            let launch = launch.value(stride as u64).value(rows as u64).value(cols as u32);
            // SAFETY: a matrix lies in its data.
            unsafe { launch.value(rounder).run(by_warps(rows)) }
        });
    }

    fn amax(&self, x: Matrix<'_, Self>, mut to: SliceMut<'_, Self>) {
        let (rows, cols) = (x.rows(), x.cols());
        if rows == 0 || cols == 0 {
            return self.set_all(to, 0.0);
        }
        let count = self.device().properties().processors as usize * 64;
        self.set_all(to.again(), 0.0);
        self.attempt(|| {
            let launch = Launch::new(self.device(), &RECIPES, "amax_rows").matrix(x);
            let launch = launch.value(rows as u64).value(cols as u32).slice(to.read());
            // SAFETY: a matrix lies in its data, and one number is written, which is 0.
            unsafe { launch.run(by_warps(rows.min(count))) }
        });
    }

    fn pack(
        &self,
        packed: &mut Packed,
        cores: Option<TensorCores>,
        product: Product,
        left: &[Source<'_, Self>],
        right: &[Source<'_, Self>],
    ) {
        let [left_axis, right_axis] = product.axes();
        (packed.product, packed.cores) = (Some(product), cores);
        if let Some(cores) = cores {
            let [a, b] = &mut packed.codes;
            self.pack_codes(a, cores, left, left_axis, true);
            return self.pack_codes(b, cores, right, right_axis, false);
        }
        let [a, b] = &mut packed.sides;
        self.pack_side(a, left, left_axis, true);
        self.pack_side(b, right, right_axis, false);
    }

    fn multiply(
        &self,
        packed: &Packed,
        mut out: MatrixMut<'_, Self>,
        mode: Output,
        to: Option<(Format, Rules)>,
    ) {
        let product = packed.product.expect("operands are packed before they are multiplied");
        // The usual cast is part of the product.
        let rounds = to == Some((Format::BF16, Rules::DEFAULT));
        if let Some(cores) = packed.cores {
            self.multiply_codes(cores, product, packed.codes.each_ref(), out.again(), mode, rounds);
        } else {
            let [a, b] = &packed.sides;
            let factors = [a, b].map(|side| side.factor.as_ref());
            self.product(product, a.image(), b.image(), out.again(), mode, Some(factors), rounds);
        }
        if let Some(to) = to.filter(|_| !rounds) {
            self.cast(to, out);
        }
    }

    fn exchange_left(&self, one: &mut Packed, other: &mut Packed) {
        std::mem::swap(&mut one.sides[0], &mut other.sides[0]);
        std::mem::swap(&mut one.codes[0], &mut other.codes[0]);
    }

    fn sums(
        &self,
        sum: Sum,
        random: Philox,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        mut out: MatrixMut<'_, Self>,
        mode: Output,
    ) {
        let (left, right) = (self.read_matrix(left), self.read_matrix(right));
        let (a, b) = (left.view(), right.view());
        let (a, b) = match product {
            Product::Forward => (a, b.t()),
            Product::GradInput => (a, b),
            Product::GradWeight => (a.t(), b),
        };
        let mut spec = Spec::from(Accumulation::Sum(sum));
        spec.random = Some(random);
        let mut sums = gemm(a, b, &spec).unwrap_or_else(|error| panic!("{error}"));
        let (rows, cols) = (out.rows(), out.cols());
        if mode == Output::Accumulate {
            let old = self.read_matrix(out.read());
            let old = old.view();
            for (i, sums) in sums.chunks_mut(cols.max(1)).enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += old.at(i, j);
                }
            }
        }
        let sums = self.buffer(sums);
        self.copy(Matrix::new(&sums, rows, cols), out.again());
    }

    fn column_sums(
        &self,
        x: Matrix<'_, Self>,
        minus: Option<Matrix<'_, Self>>,
        squared: bool,
    ) -> Vec<f64> {
        let (rows, cols) = (x.rows(), x.cols());
        let mut numbers = vec![0.0; cols];
        if rows == 0 || cols == 0 {
            return numbers;
        }
        self.attempt(|| {
            let mut sums = crate::Buffer::<f64>::uninit(self.device(), cols)?;
            let launch = Launch::new(self.device(), &RECIPES, "column_sums").matrix(x);
            let launch = launch.matrix(minus.unwrap_or(x.rows_range(0..0)));
            let launch = launch.value(rows as u64).value(cols as u32).value(u32::from(squared));
            // SAFETY: matrices of one shape lie in their data, and there is a sum for each column.
            unsafe { launch.write(&mut sums).run(Grid::cover(cols, 64))? };
            sums.read(&mut numbers)
        });
        numbers
    }

    fn take_columns(
        &self,
        x: Matrix<'_, Self>,
        minus: Option<Matrix<'_, Self>>,
        columns: &Self::Tokens,
        out: MatrixMut<'_, Self>,
    ) {
        let (rows, count) = (x.rows(), columns.len());
        assert_eq!((out.rows(), out.cols()), (rows, count), "a column for each of the list");
        if rows == 0 || count == 0 {
            return;
        }
        columns.check("take_columns: column", x.cols());
        let stride = out.stride() as u64;
        let out = out.into_data();
        self.start(&RECIPES, "take_columns", by_warps(rows), |launch| {
            let launch = launch.matrix(x).matrix(minus.unwrap_or(x.rows_range(0..0)));
            let launch = launch.tokens(columns).value(count as u32).value(rows as u64);
            launch.slice(out.read()).value(stride)
        });
    }

    fn add_to_columns(
        &self,
        x: Matrix<'_, Self>,
        columns: &Self::Tokens,
        out: MatrixMut<'_, Self>,
    ) {
        let (rows, count) = (x.rows(), columns.len());
        assert_eq!((out.rows(), count), (rows, x.cols()), "a column for each of the list");
        if rows == 0 || count == 0 {
            return;
        }
        columns.check("add_to_columns: column", out.cols());
        let stride = out.stride() as u64;
        let out = out.into_data();
        self.start(&RECIPES, "add_to_columns", Grid::cover(rows, 128), |launch| {
            let launch = launch.matrix(x).tokens(columns).value(count as u32).value(rows as u64);
            launch.slice(out.read()).value(stride)
        });
    }

    fn widen(&self, buffer: &mut Buffer<Self>, rows: usize, cols: usize, wide: usize) {
        let memory = self.attempt(|| self.device().zeros(rows * wide));
        let mut widened = Buffer::of(Memory { buffer: memory }, rows * wide);
        let to = MatrixMut::with_stride(&mut widened, rows, cols, wide);
        self.copy(Matrix::new(buffer.first(rows * cols), rows, cols), to);
        *buffer = widened;
    }
}
