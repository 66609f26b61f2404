//! The one call: operands and a [`Spec`] in, results out.

mod fast;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::accumulation::Accumulation;
use super::error::{GemmError, Side, Why};
use super::exact::{Factors, Ready};
use super::operand::Operand;
use super::rows::ExactRows;
use super::spec::{NonFinite, Spec};
use super::sums::{Chains, ColumnSums, Pair, Words};
use super::te;
use super::units::{self, UnitProduct};
use crate::block::fast::for_each;
use crate::format::{Format, Value};
use crate::math::Operand as Number;
use crate::minifloat::Bits;
use crate::round::{Exact, Rules};
use crate::slice::{ViewMut, view, words_into};
use fast::Packs;

/// What is known about a product besides its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProductReport {
    /// Results that were infinite or NaN, before or after they were rounded to the output's format:
    /// a saturating format hides some.
    pub non_finite: u64,
}

/// The product of two operands, row-major.
///
/// A is M x K and B is K x N. The blocks of A run along its columns and those of B along its rows, as
/// the sum does.
///
/// ```
/// use exmy::block::{Axis, BlockFormat, BlockTensor};
/// use exmy::gemm::{Operand, Spec, gemm};
/// use exmy::round::Rounding;
/// use exmy::slice::View;
///
/// let quantize = |x: &[f32], rows, cols| {
///     let x = View::new(x, rows, cols);
///     let format = BlockFormat::MXFP4;
///     BlockTensor::quantize(x, Axis::Cols, format, Rounding::TiesToEven)
/// };
/// let x = quantize(&[1.0, 2.6], 1, 2); // 2.6 becomes 3
/// let w = quantize(&[4.0, -0.5, 0.25, 1.0], 2, 2); // two outputs of two inputs
/// let y = gemm(&x, Operand::from(&w).t(), &Spec::parse("exact")?)?;
/// assert_eq!(y, [2.5, 3.25]);
///
/// let wrong = gemm(&x, &w, &Spec::parse("exact")?).unwrap_err();
/// assert!(wrong.to_string().contains("quantize it with Axis::Rows"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the shapes do not fit, blocks do not run along the sum, or the accumulation does not take a
/// format or length. If the spec asks for what is not there. With [`NonFinite::Error`], also for an
/// infinity or NaN.
pub fn gemm<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
    spec: &Spec,
) -> Result<Vec<f32>, GemmError> {
    let (a, b) = (a.into(), b.into());
    let product = Product::new(&a, &b, spec, false, 0)?;
    Ok(product.numbers(&mut Packs::default())?.0)
}

/// The product into C, which is read if beta is not 0.
///
/// ```
/// use exmy::gemm::{Spec, gemm_into};
/// use exmy::slice::{View, ViewMut};
///
/// let (a, b) = (View::new(&[3.0], 1, 1), View::new(&[4.0], 1, 1));
/// let mut c = [100.0];
/// let spec = Spec::parse("exact")?.with_beta(0.5);
/// gemm_into(a, b, &spec, ViewMut::new(&mut c, 1, 1))?;
/// assert_eq!(c, [62.0]);
/// // Without beta C is not read: a NaN in it means nothing.
/// c = [f32::NAN];
/// gemm_into(a, b, &Spec::parse("exact")?, ViewMut::new(&mut c, 1, 1))?;
/// assert_eq!(c, [12.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`gemm`], and if C has another shape. Nothing is written then.
pub fn gemm_into<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
    spec: &Spec,
    mut c: ViewMut<'_, f32>,
) -> Result<ProductReport, GemmError> {
    let (a, b) = (a.into(), b.into());
    let (rows, cols, stride) = (c.rows(), c.cols(), c.row_stride());
    if (rows, cols) != (a.rows(), b.cols()) && a.cols() == b.rows() {
        return Err(GemmError::new(&a, &b, Why::Output((rows, cols))));
    }
    let mut product = Product::new(&a, &b, spec, true, 0)?;
    if product.is_in_place() {
        return product.fast_into(c);
    }
    // A matrix without columns may have rows all the same, and none of them a place in memory.
    let old: Vec<f32> = match spec.beta == 0.0 || cols == 0 {
        true => Vec::new(),
        false => (0..rows).flat_map(|i| c.data()[i * stride..][..cols].to_vec()).collect(),
    };
    product.c = &old;
    let (numbers, report) = product.numbers(&mut Packs::default())?;
    for (i, numbers) in numbers.chunks(cols.max(1)).enumerate() {
        c.data_mut()[i * stride..][..cols].copy_from_slice(numbers);
    }
    Ok(report)
}

/// The product as codes of the output's format, whatever that is.
///
/// ```
/// use exmy::format::Format;
/// use exmy::gemm::{Spec, gemm_codes};
/// use exmy::slice::View;
///
/// // 2^60 + 2^-60 is no binary32 number, and no binary64 number: the sum is rounded to odd.
/// let big = 2.0_f32.powi(60);
/// let (a, b) = ([big, 1.0 / big], [1.0, 1.0]);
/// let (a, b) = (View::new(&a, 1, 2), View::new(&b, 2, 1));
/// let spec = Spec::parse("exact")?.with_output(Format::F64).with_rounding("odd".parse()?);
/// let codes: Vec<u64> = gemm_codes(a, b, &spec)?;
/// assert_eq!(f64::from_bits(codes[0]), 2.0_f64.powi(60) + 256.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`gemm`], and if the integers are too narrow for the codes.
pub fn gemm_codes<'a, 'b, C: Bits>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
    spec: &Spec,
) -> Result<Vec<C>, GemmError> {
    let (a, b) = (a.into(), b.into());
    let product = Product::new(&a, &b, spec, false, 0)?;
    let (format, width) = (spec.output.format, C::WIDTH);
    if format.bits() > width {
        return Err(GemmError::new(&a, &b, Why::Codes { format, width }));
    }
    Ok(product.codes()?.0.into_iter().map(C::from_u64).collect())
}

/// Many products one after the other: as many left as right operands, or one of either for all.
///
/// Results stand one product after the other, and their random words are numbered through.
///
/// ```
/// use exmy::gemm::{Operand, Spec, gemm_batched};
/// use exmy::slice::View;
///
/// let x = [1.0, 2.0, 3.0, 4.0];
/// let heads: Vec<Operand> = x.chunks(2).map(|x| View::new(x, 1, 2).into()).collect();
/// let shared = [View::new(&[1.0, 1.0], 2, 1).into()];
/// assert_eq!(gemm_batched(&heads, &shared, &Spec::parse("exact")?)?, [3.0, 7.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`gemm`], and if the numbers of operands do not fit; the error says which product it was.
pub fn gemm_batched(
    a: &[Operand<'_>],
    b: &[Operand<'_>],
    spec: &Spec,
) -> Result<Vec<f32>, GemmError> {
    let count = if a.len() == 1 { b.len() } else { a.len() };
    if ![1, count].contains(&a.len()) || ![1, count].contains(&b.len()) {
        let why = Why::Batch(a.len(), b.len());
        let shape = |all: &[Operand<'_>]| all.first().map_or((0, 0), Operand::shape);
        return Err(GemmError::of(shape(a), shape(b), why));
    }
    let (mut all, mut packs) = (Vec::new(), Packs::default());
    for batch in 0..count {
        let of = |all: &[Operand<'_>]| if all.len() == 1 { 0 } else { batch };
        packs.keep([a, b].map(|all| all.len() == 1 && batch > 0));
        let (a, b) = (&a[of(a)], &b[of(b)]);
        let results = Product::new(a, b, spec, false, all.len() as u64).and_then(|product| {
            all.extend(product.numbers(&mut packs)?.0);
            Ok(())
        });
        results.map_err(|error| GemmError { batch: Some(batch), ..error })?;
    }
    Ok(all)
}

/// A product that can be formed.
struct Product<'a> {
    a: &'a Operand<'a>,
    b: &'a Operand<'a>,
    spec: &'a Spec,
    /// What C holds, dense; empty if it is not read.
    c: &'a [f32],
    /// The number of the first output among all of a batch.
    first: u64,
    /// Random words of an output.
    words: u64,
}

/// Operands prepared for one kind of sum.
enum Engine {
    Exact(Box<Ready>, Factors),
    Chains(Chains),
    Columns(ColumnSums),
    Plain(ExactRows, ExactRows),
    Te(te::TeOperand, te::TeOperand),
    Unit(Box<UnitProduct>),
}

/// What a sum became before it is rounded to the output's format.
enum Sum {
    Number(Number),
    Exact(Result<Exact, Value>),
}

impl<'a> Product<'a> {
    fn new(
        a: &'a Operand<'a>,
        b: &'a Operand<'a>,
        spec: &'a Spec,
        has_c: bool,
        first: u64,
    ) -> Result<Self, GemmError> {
        let mut product = Self { a, b, spec, c: &[], first, words: 1 };
        if let Some(why) = product.wrong(has_c) {
            return Err(GemmError::new(a, b, why));
        }
        product.words += product.roundings().map_err(|why| GemmError::new(a, b, why))?;
        Ok(product)
    }

    /// Random words of an output's sum.
    fn roundings(&self) -> Result<u64, Why> {
        let k = self.a.cols();
        // Without results K may be any number, as no operand has to hold so many elements.
        if self.a.rows() == 0 || self.b.cols() == 0 {
            return Ok(0);
        }
        Ok(match &self.spec.accumulation {
            Accumulation::Unit { model, result } if model.is_stochastic() => {
                units::unit(model, *result, self.a, self.b)?.words(k) as u64
            }
            other if other.is_stochastic() => other.roundings(k as u64),
            _ => 0,
        })
    }

    fn wrong(&self, has_c: bool) -> Option<Why> {
        let Self { a, b, spec, .. } = self;
        if a.cols() != b.rows() {
            return Some(Why::Inner);
        }
        // Empty operands may have any sizes; codes of a result take up to 8 bytes.
        if view::count((a.rows(), b.cols())).is_none() {
            return Some(Why::Large);
        }
        if let Some(why) = a.across(Side::Left).or_else(|| b.across(Side::Right)) {
            return Some(why);
        }
        if let Accumulation::TeNvfp4(_) = spec.accumulation {
            let accumulation = || Box::new(spec.accumulation.clone());
            for (side, rows) in [(Side::Left, **a), (Side::Right, b.t())] {
                if !te::takes(&rows) {
                    let takes = "e2m1 in blocks of 16 along the sum with e4m3 scales: nvfp4, \
                                 nvfp4-16x16";
                    return Some(Why::Format { side, accumulation: accumulation(), takes });
                }
            }
            if !a.cols().is_multiple_of(te::BLOCK) {
                return Some(Why::Length { accumulation: accumulation(), multiple: te::BLOCK });
            }
        }
        if let Accumulation::Unit { model, result } = &spec.accumulation
            && let Err(why) = units::unit(model, *result, a, b)
        {
            return Some(why);
        }
        if spec.beta != 0.0 && !has_c {
            return Some(Why::Beta(spec.beta));
        }
        let stochastic = spec.accumulation.is_stochastic() || spec.output.rounding.is_stochastic();
        (stochastic && spec.random.is_none()).then_some(Why::Random)
    }

    /// The values of all results, row-major.
    fn numbers(&self, packs: &mut Packs) -> Result<(Vec<f32>, ProductReport), GemmError> {
        let format = self.spec.output.format;
        if !format.is_exact_in_f32() {
            return Err(GemmError::new(self.a, self.b, Why::Wide(format)));
        }
        if self.is_fast() {
            return self.fast_numbers(packs);
        }
        let (codes, report) = self.codes()?;
        let number = |code| match format {
            Format::F32 => f32::from_bits(code as u32),
            format => format.to_f32(code),
        };
        Ok((codes.into_iter().map(number).collect(), report))
    }

    fn engine(&self) -> Result<Engine, Why> {
        let Self { a, b, spec, .. } = self;
        let numbers = || (ExactRows::rows(a), ExactRows::columns(b));
        let columns = |part: &_, promote| {
            let (x, y) = numbers();
            match ColumnSums::new(part, promote, &x, &y) {
                Some(columns) => Engine::Columns(columns),
                None => Engine::Plain(x, y),
            }
        };
        Ok(match &spec.accumulation {
            Accumulation::Exact => {
                let (x, y) = numbers();
                let scale = |operand: &Operand<'_>| operand.tensor_scale().unwrap_or(1.0);
                let scales = [scale(a), scale(b), spec.alpha];
                let factors = Factors { scales, beta: spec.beta };
                Engine::Exact(Box::new(Ready::new(x, y)), factors)
            }
            Accumulation::TeNvfp4(_) => {
                Engine::Te(te::TeOperand::rows(a), te::TeOperand::rows(&b.t()))
            }
            Accumulation::Sum(sum) if sum.is_binary32() => {
                let (x, y) = numbers();
                match Chains::new(sum.order, &x, &y) {
                    Some(chains) => Engine::Chains(chains),
                    None => Engine::Plain(x, y),
                }
            }
            Accumulation::Unit { model, result } => {
                let unit = units::unit(model, *result, a, b)?;
                Engine::Unit(Box::new(UnitProduct::new(unit, a, b)?))
            }
            Accumulation::Sum(sum) => columns(sum, None),
            Accumulation::Promote { every, part, into } => columns(part, Some((*every, *into))),
        })
    }

    /// Alpha and the tensor scales as one factor; see [`Spec`].
    fn scale(&self) -> f32 {
        let Self { a, b, spec, .. } = self;
        if let (Accumulation::TeNvfp4(way), Some(amaxes)) = (&spec.accumulation, spec.amaxes) {
            return te::alpha(*way, spec.alpha, amaxes);
        }
        let scale = |operand: &Operand<'_>| operand.tensor_scale().unwrap_or(1.0);
        (spec.alpha * scale(a)) * scale(b)
    }

    /// The codes of all results, row-major.
    fn codes(&self) -> Result<(Vec<u64>, ProductReport), GemmError> {
        /// Rows that are formed together.
        const BAND: usize = 8;
        let (rows, cols) = (self.a.rows(), self.b.cols());
        if self.is_fast() {
            return self.fast_codes();
        }
        let mut codes = vec![0; rows * cols];
        if codes.is_empty() {
            return Ok((codes, ProductReport::default()));
        }
        let wrong = |why| GemmError::new(self.a, self.b, why);
        let (engine, scale) = (self.engine().map_err(wrong)?, self.scale());
        // Of each band how many results are not finite, and the first of them.
        let mut odd = vec![(0_u64, usize::MAX); rows.div_ceil(BAND)];
        let bands = codes.chunks_mut(BAND * cols).zip(&mut odd).enumerate();
        for_each(bands, |(band, (codes, (non_finite, earliest)))| {
            let start = band * BAND * cols;
            self.band(&engine, band * BAND, codes.len() / cols, |at, sum| {
                let (code, finite) = self.finish(start + at, sum, scale);
                codes[at] = code;
                if !finite {
                    *non_finite += 1;
                    *earliest = (start + at).min(*earliest);
                }
            });
        });
        let (count, first) = odd
            .into_iter()
            .fold((0, usize::MAX), |(count, first), (more, at)| (count + more, first.min(at)));
        Ok((codes, self.report(count, first)?))
    }

    /// What is said of so many results that are infinite or NaN, the first of which is given.
    fn report(&self, non_finite: u64, first: usize) -> Result<ProductReport, GemmError> {
        if non_finite > 0 && self.spec.non_finite == NonFinite::Error {
            let at = (first / self.b.cols(), first % self.b.cols());
            return Err(GemmError::new(self.a, self.b, Why::NonFinite { at, count: non_finite }));
        }
        Ok(ProductReport { non_finite })
    }

    /// Calls `done` for every sum of some rows, with its place among them.
    fn band(&self, engine: &Engine, row: usize, rows: usize, mut done: impl FnMut(usize, Sum)) {
        let cols = self.b.cols();
        let first_word = |at: usize| (self.first + (row * cols + at) as u64) * self.words;
        match engine {
            Engine::Exact(ready, factors) => {
                // A column stays in the first-level cache while all rows of the band read it.
                for j in 0..cols {
                    for i in 0..rows {
                        let c = self.old((row + i) * cols + j);
                        let total = ready.sum(row + i, j);
                        done(i * cols + j, Sum::Exact(total.finish(factors, c)));
                    }
                }
            }
            Engine::Chains(chains) => {
                let mut sums = vec![0.0; cols];
                for i in 0..rows {
                    chains.row_into(row + i, &mut sums);
                    for (j, sum) in sums.iter().enumerate() {
                        done(i * cols + j, Sum::Number(Number::f32(*sum)));
                    }
                }
            }
            Engine::Columns(columns) => {
                let mut sums = vec![0.0; cols];
                for i in 0..rows {
                    columns.row_into(row + i, &mut sums);
                    for (j, sum) in sums.iter().enumerate() {
                        let sum = Number::new(Format::F64, sum.to_bits());
                        done(i * cols + j, Sum::Number(sum));
                    }
                }
            }
            Engine::Plain(a, b) => {
                for at in 0..rows * cols {
                    let (i, j) = (row + at / cols, at % cols);
                    let pair = Pair { a: (a, a.row(i)), b: (b, b.row(j)) };
                    let mut words = Words::new(self.spec.random, first_word(at));
                    let sum = match &self.spec.accumulation {
                        Accumulation::Sum(sum) => sum.of(pair, &mut words),
                        Accumulation::Promote { every, part, into } => {
                            part.promoted(*every, *into, pair, &mut words)
                        }
                        other => unreachable!("{other} has an engine of its own"),
                    };
                    done(at, Sum::Number(sum));
                }
            }
            Engine::Unit(tiles) => {
                let draw = |at: usize, words: &mut [u32]| {
                    if let Some(random) = self.spec.random {
                        words_into(random, first_word(at), words);
                    }
                };
                tiles.band(row, rows, draw, |at, number| done(at, Sum::Number(number)));
            }
            Engine::Te(a, b) => {
                for at in 0..rows * cols {
                    let sum = te::sum(a, b, row + at / cols, at % cols);
                    done(at, Sum::Number(Number::f32(sum)));
                }
            }
        }
    }

    fn old(&self, at: usize) -> f32 {
        self.c.get(at).copied().unwrap_or(0.0)
    }

    /// The code of a result, and whether it is finite.
    fn finish(&self, at: usize, sum: Sum, scale: f32) -> (u64, bool) {
        let spec = self.spec;
        let (format, rules) = (spec.output.format, spec.output.rules());
        let word = match (spec.output.rounding.is_stochastic(), spec.random) {
            (true, Some(random)) => {
                random.word((self.first + at as u64) * self.words + self.words - 1)
            }
            _ => 0,
        };
        let value = match sum {
            Sum::Exact(Ok(exact)) => {
                let code = format.round_by(exact, &rules, word).code;
                return (code, format.decode(code).is_finite());
            }
            Sum::Exact(Err(value)) => value,
            Sum::Number(number) if scale == 1.0 && spec.beta == 0.0 => {
                // Most results are what they are already.
                let plain = format == Format::F32 && rules == Rules::DEFAULT;
                if plain && number.format == Format::F32 {
                    let x = f32::from_bits(number.code as u32);
                    // Of a matrix unit, which NaN it gives is part of the model.
                    if !x.is_nan() || matches!(spec.accumulation, Accumulation::Unit { .. }) {
                        return (number.code, x.is_finite());
                    }
                }
                number.value()
            }
            Sum::Number(number) => {
                let mut y = scaled(scale, number.value().to_f32());
                if spec.beta != 0.0 {
                    y += spec.beta * self.old(at);
                }
                Value::from_f32(y)
            }
        };
        // A NaN has no sign that means anything.
        let value = if value.is_nan() { Value::Nan { negative: false } } else { value };
        let code = format.encode_by(value, &rules, word).code;
        (code, value.is_finite() && format.decode(code).is_finite())
    }
}

fn scaled(scale: f32, y: f32) -> f32 {
    if scale == 1.0 { y } else { scale * y }
}
