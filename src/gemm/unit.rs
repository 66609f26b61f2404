//! Models of matrix units: what tensor cores, matrix cores and AMX compute, bit for bit, where that is
//! known.
//!
//! A matrix unit does not round after every addition. It multiplies exactly and aligns the products
//! of one *fused step* to the largest exponent among them. It cuts what lies below a fixed number of
//! fraction bits, adds exactly and rounds once. A longer dot product is a chain of steps. Others are
//! trees or chains of IEEE operations. [`Parameters`] holds all that differs between them. A
//! [`Preset`] names the parameters that were measured on a device. A [`Unit`] is a preset with
//! operand formats: what one instruction computes.
//!
//! ```
//! use exmy::format::Format;
//! use exmy::gemm::unit::Unit;
//!
//! // 1 + 2^-14, both exact in the operands: Hopper keeps 13 fraction bits of 8-bit products.
//! let unit: Unit = "hopper:e5m2".parse()?;
//! let a = unit.rows(&[0x3C, 0x20], &[], 2)?; // 1, 2^-7
//! let b = unit.columns(&[0x3C, 0x20], &[], 2)?;
//! assert_eq!(f32::from_bits(unit.dot(&a.row(0), &b.row(0), 0) as u32), 1.0);
//!
//! // Blackwell keeps 25.
//! let unit: Unit = "blackwell:e5m2".parse()?;
//! let a = unit.rows(&[0x3C, 0x20], &[], 2)?;
//! let b = unit.columns(&[0x3C, 0x20], &[], 2)?;
//! let exact = 1.0 + 2.0_f32.powi(-14);
//! assert_eq!(f32::from_bits(unit.dot(&a.row(0), &b.row(0), 0) as u32), exact);
//! # Ok::<(), exmy::gemm::unit::UnitError>(())
//! ```
//!
//! The repository's `docs/units.md` lists the presets with their sources, what is tested against
//! silicon and what is open.

#![forbid(unsafe_code)]

mod align; // products aligned to the largest exponent, and cut
mod description; // a unit of one's own, in lines
mod error;
mod exact;
mod explain; // a dot product step by step
mod factor;
mod ieee; // units that round each addition
mod input; // what operands may be
mod lanes; // several results at once
mod name;
mod parameters;
mod parse;
mod preset; // Volta to Blackwell, CDNA, AMX: what was measured
mod register; // sums in fixed point
mod row;
mod rows;
mod steps; // fused steps, plainly

pub use align::AlignedSum;
pub use description::{Description, DescriptionError};
pub use error::UnitError;
pub use explain::{Coded, Event, Explanation, Name, Placed};
pub use factor::{Factor, FactorClass};
pub use input::{Input, Scale};
pub use name::{Formats, Model};
use parameters::MOST_FRACTION;
pub use parameters::{Beyond, Cut, Nan, Parameters, StepOrder, Underflow, UnitFlush};
pub use preset::Preset;
pub use row::Row;
pub use rows::Rows;

use alloc::vec;

use crate::format::Format;
use crate::round::{Operands, Rounding};
use exact::Accumulator;
use explain::Log;
use lanes::LaneJob;
use steps::Step;

/// A matrix unit's dot product: a preset, the formats that enter and leave, and the parameters.
///
/// Its text, `PRESET[,KEY=VALUE...]:A[,B][+RESULT]`, parses and prints: `hopper:e4m3`,
/// `ada:e4m3,e5m2+f16`, `hopper,promote=128:e4m3`, `blackwell:nvfp4`,
/// `custom,l=8,f=24,floor=none:e5m3`. The keys are those of [`Parameters`].
///
/// Codes are those of the formats. Of tf32 they have 19 bits, the upper ones of the binary32 words
/// that instructions read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unit {
    preset: Preset,
    a: Input,
    b: Input,
    result: Format,
    parameters: Parameters,
}

impl Unit {
    /// The unit for operands of certain formats, with addend and result in `result`.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::gemm::unit::{Preset, Unit};
    ///
    /// let wrong = Unit::new(Preset::Volta, Format::BF16, Format::BF16, Format::F32).unwrap_err();
    /// let text = wrong.to_string();
    /// assert!(text.contains("volta does not multiply bf16 by bf16 into f32; it takes f16"));
    /// ```
    ///
    /// # Errors
    /// If it does not take them.
    pub fn new(
        preset: Preset,
        a: impl Into<Input>,
        b: impl Into<Input>,
        result: Format,
    ) -> Result<Self, UnitError> {
        let unit = Self::unchecked(preset, a.into(), b.into(), result)?;
        unit.with_parameters(unit.parameters)
    }

    /// The unit with the preset's parameters, which need not go together with the operands before
    /// others are set.
    fn unchecked(preset: Preset, a: Input, b: Input, result: Format) -> Result<Self, UnitError> {
        let parameters = preset.parameters(a, b, result);
        let parameters = parameters.ok_or(UnitError::Operands { preset, a, b, result })?;
        Ok(Self { preset, a, b, result, parameters })
    }

    /// The same with other parameters.
    ///
    /// # Errors
    /// If they do not go together with the formats, such as groups without scales.
    pub fn with_parameters(self, parameters: Parameters) -> Result<Self, UnitError> {
        let unit = Self { parameters, ..self };
        match unit.conflict() {
            Some(why) => Err(UnitError::Impossible(why)),
            None => Ok(unit),
        }
    }

    /// What is impossible about the parameters, if anything.
    fn conflict(&self) -> Option<&'static str> {
        let Self { a, b, result, parameters: p, .. } = self;
        let register = p.in_register();
        let inside = p.output.precision() <= result.precision()
            && p.output.lsb() >= result.lsb()
            && p.output.emax() <= result.emax()
            && p.output.has_infinity()
            && p.output.is_signed();
        let bounds = [p.products, p.group].iter().all(|count| (1..=256).contains(count));
        let fraction = p.fraction.max(p.late_fraction);
        if !bounds || fraction > MOST_FRACTION || p.promote == Some(0) {
            return Some("steps have 1 to 256 products, sums up to 50 fraction bits");
        }
        if !(inside || register) {
            return Some(
                "out= must be a signed format with infinities inside that of the result, or a fixed-point \
                 one such as int32",
            );
        }
        if let Rounding::Stochastic { bits, .. } = p.rounding {
            if !(1..=32).contains(&bits) {
                return Some("stochastic rounding takes 1 to 32 random bits");
            } else if !(p.order.is_aligned() || register) {
                return Some(
                    "the orders tree, fma and even-odd round at each operation and have no random words \
                     for that; srN works with the orders fused, quarters, late, halves and groups",
                );
            }
        }
        if p.operands == Operands::Away {
            return Some(
                "units read subnormal operands as subnormals=exact, zero or positive-zero",
            );
        }
        if register {
            return self.register_conflict();
        }
        let scales = [a.scale, b.scale];
        let powers = scales.iter().flatten().all(|scale| scale.is_power_of_two());
        if !p.order.is_aligned() {
            let images = scales.iter().all(Option::is_none) || *result == Format::F32;
            return if p.output != *result {
                Some(
                    "the orders tree, fma and even-odd round every operation to the result's format",
                )
            } else if p.order == StepOrder::Tree && !p.products.is_power_of_two() {
                Some("a tree adds 1, 2, 4, and so on up to 256 products")
            } else if !images {
                Some("scaled operands are multiplied in f32, so the result must be f32")
            } else {
                None
            };
        }
        if [a, b].iter().any(|input| !input.format.is_exact_in_f32()) || !result.is_exact_in_f64() {
            return Some(
                "aligned orders take operands whose values are binary32 numbers, so that products have 64 \
                 bits, into results whose values are binary64 numbers",
            );
        }
        if p.order == StepOrder::Groups {
            return self.groups_conflict();
        }
        if !powers {
            return Some("scales that are no powers of two need order=groups");
        }
        let eight = |input: &Input| input.format.bits() <= 8 && input.format.emax() <= 15;
        if p.order == StepOrder::Quarters
            && !(eight(a) && eight(b) && a.scale.is_none() && b.scale.is_none())
        {
            return Some(
                "order=quarters takes 8-bit formats without scales that are binary16 numbers",
            );
        }
        if p.cut == Cut::Exact {
            let with_scales = |place: fn(Format) -> i32, scale: fn(Format) -> i32| {
                let scales = scales.iter().flatten().map(|s| scale(s.format)).sum::<i32>();
                place(a.format) + place(b.format) + scales
            };
            let last = with_scales(Format::lsb, Format::lsb).min(result.lsb());
            let below = with_scales(|f| f.emax() + 1, Format::emax).max(result.emax() + 1);
            if p.order != StepOrder::Fused || !Accumulator::holds(last, below) {
                return Some("align=exact needs order=fused and products from 2^-320 to 2^320");
            }
        }
        None
    }

    fn groups_conflict(&self) -> Option<&'static str> {
        let Self { a, b, parameters: p, .. } = self;
        let (Some(x), Some(y)) = (a.scale, b.scale) else {
            return Some("order=groups needs block scales on both sides");
        };
        // The exact sum of a group and its two scales' significands must fit 62 bits, both as
        // they are and in place.
        let span = |input: &Input| input.format.emax().max(0) + 1 - input.format.lsb().min(0);
        let top = |input: &Input| input.format.emax().max(0) + 1;
        let significands = (x.format.precision() + y.format.precision()) as i32;
        let places = |count: u32| (32 - (count - 1).leading_zeros()) as i32;
        let wide = span(a) + span(b) + places(p.group) + significands > 62;
        let sum = places(p.group) + places(p.products / p.group + 1);
        let high = top(a) + top(b) + sum + 2 + p.fraction as i32 + 2 > 62;
        if wide || high {
            return Some("order=groups takes narrow formats such as e2m1");
        }
        let whole =
            [x, y].iter().all(|scale| scale.block % p.group == 0) && p.products % p.group == 0;
        (!whole || p.cut == Cut::Exact || x.format.is_signed() || y.format.is_signed())
            .then_some("groups must divide blocks and steps, and scales have no sign")
    }

    /// The preset it began as.
    pub const fn preset(&self) -> Preset {
        self.preset
    }

    /// The left operand.
    pub const fn a(&self) -> Input {
        self.a
    }

    /// The right operand.
    pub const fn b(&self) -> Input {
        self.b
    }

    /// The format of addend and result.
    pub const fn result(&self) -> Format {
        self.result
    }

    /// All of them.
    pub const fn formats(&self) -> Formats {
        Formats { a: self.a, b: self.b, result: self.result }
    }

    /// The parameters.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Rows of the left operand, `k` consecutive elements each, and for each its scales.
    ///
    /// # Errors
    /// If the codes are no whole rows, or the scales not one for each block of each row.
    pub fn rows(&self, codes: &[u64], scales: &[u64], k: usize) -> Result<Rows, UnitError> {
        Rows::new(self.a, &self.parameters, codes, scales, k)
    }

    /// Columns of the right operand, `k` consecutive elements each, and for each its scales.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn columns(&self, codes: &[u64], scales: &[u64], k: usize) -> Result<Rows, UnitError> {
        Rows::new(self.b, &self.parameters, codes, scales, k)
    }

    /// Whether it rounds by random words.
    pub const fn is_stochastic(&self) -> bool {
        self.parameters.rounding.is_stochastic()
    }

    /// Random words of a dot product of `k` elements: one for each rounding under a stochastic mode, none
    /// under others. Sums that are aligned are rounded once a step, in the order `quarters` twice, those in
    /// fixed point once at their end; an addition of `promote` is to nearest even and takes none.
    ///
    /// ```
    /// use exmy::gemm::unit::Unit;
    ///
    /// let words = |unit: &str| unit.parse().map(|unit: Unit| unit.words(40));
    /// assert_eq!(words("custom,l=16:e4m3")?, 0);
    /// assert_eq!(words("custom,l=16,out=f32@sr8:e4m3")?, 3);
    /// assert_eq!(words("custom,l=16,out=int40b-14@sr8:e4m3")?, 1);
    /// # Ok::<(), exmy::gemm::unit::UnitError>(())
    /// ```
    pub fn words(&self, k: usize) -> usize {
        let p = &self.parameters;
        if !self.is_stochastic() {
            return 0;
        } else if p.in_register() {
            return 1;
        }
        let steps = |k: usize| k.div_ceil(p.products as usize);
        let steps = match p.promote.map(|every| every as usize) {
            Some(every) => k / every * steps(every) + steps(k % every),
            None => steps(k),
        };
        steps.saturating_mul(p.roundings())
    }

    /// The result's code for a row, a column and the addend's code: the definition.
    ///
    /// # Panics
    /// If row and column differ in length or were made for another unit, or this one is
    /// [stochastic](Self::is_stochastic): there is no word that could stand for random ones.
    pub fn dot(&self, a: &Row<'_>, b: &Row<'_>, addend: u64) -> u64 {
        self.dot_with(a, b, addend, &[])
    }

    /// The same by [`words`](Self::words) random words, the first for the first step. `srN` uses the top N
    /// bits of each; a step with an infinity or a NaN has its word all the same.
    ///
    /// ```
    /// use exmy::gemm::unit::Unit;
    ///
    /// // 1 + 2^-3 between 1 and 1.25, the neighbours in e5m2: half of all words give either.
    /// let unit: Unit = "custom,out=e5m2@sr2:e5m2".parse()?;
    /// let (a, b) = (unit.rows(&[0x3C, 0x30], &[], 2)?, unit.columns(&[0x3C, 0x3C], &[], 2)?);
    /// let sum = |word| f32::from_bits(unit.dot_with(&a.row(0), &b.row(0), 0, &[word]) as u32);
    /// assert_eq!([0, 1, 2, 3].map(|top| sum(top << 30)), [1.0, 1.0, 1.25, 1.25]);
    /// # Ok::<(), exmy::gemm::unit::UnitError>(())
    /// ```
    ///
    /// # Panics
    /// If row and column differ in length or were made for another unit, or the words are fewer or more.
    pub fn dot_with(&self, a: &Row<'_>, b: &Row<'_>, addend: u64, words: &[u32]) -> u64 {
        self.walk(a, b, addend, words, &mut Log::silent())
    }

    /// The same, step by step.
    ///
    /// ```
    /// use exmy::gemm::unit::{Event, Unit};
    ///
    /// let unit: Unit = "volta:f16".parse()?;
    /// let a = unit.rows(&[0x3C00, 0x0C00], &[], 2)?; // 1, 2^-12
    /// let b = unit.columns(&[0x3C00, 0x0C00], &[], 2)?;
    /// let explanation = unit.explain(&a.row(0), &b.row(0), 0);
    /// assert!(explanation.to_string().contains("all bits cut")); // 2^-24 next to 1
    /// # Ok::<(), exmy::gemm::unit::UnitError>(())
    /// ```
    ///
    /// # Panics
    /// As [`dot`](Self::dot).
    pub fn explain(&self, a: &Row<'_>, b: &Row<'_>, addend: u64) -> Explanation {
        self.explain_with(a, b, addend, &[])
    }

    /// [`dot_with`](Self::dot_with) step by step, with the word of each.
    ///
    /// # Panics
    /// As there.
    pub fn explain_with(
        &self,
        a: &Row<'_>,
        b: &Row<'_>,
        addend: u64,
        words: &[u32],
    ) -> Explanation {
        let mut log = Log::new();
        let code = self.walk(a, b, addend, words, &mut log);
        Explanation { events: log.into_events(), format: self.result, code }
    }

    fn walk(&self, a: &Row<'_>, b: &Row<'_>, addend: u64, words: &[u32], log: &mut Log) -> u64 {
        assert!(a.input == self.a && b.input == self.b, "operands of another unit");
        assert_eq!(a.codes.len(), b.codes.len(), "a dot product of operands of different lengths");
        let k = a.codes.len();
        self.check_words(words.len(), 1, k);
        if self.parameters.in_register() {
            return self.register(a, b, addend, words.first().copied(), log);
        }
        let mut words = words.chunks(self.parameters.roundings());
        let mut chain = |range: core::ops::Range<usize>, addend: u64, log: &mut Log| {
            let products = self.parameters.products as usize;
            range.clone().step_by(products).fold(addend, |sum, first| {
                let range = first..range.end.min(first + products);
                let words = words.next().unwrap_or_default();
                let step = Step { a, b, range, result: self.result, addend: sum, words };
                if self.parameters.order.is_aligned() {
                    self.parameters.step(&step, log)
                } else {
                    self.parameters.operate(&step, log)
                }
            })
        };
        let Some(every) = self.parameters.promote else { return chain(0..k, addend, log) };
        (0..k).step_by(every as usize).fold(addend, |sum, first| {
            let part = chain(first..k.min(first + every as usize), 0, log);
            self.parameters.add_nearest(self.result, sum, part, log)
        })
    }

    /// Words of `results` dot products are as many as those need.
    fn check_words(&self, found: usize, results: usize, k: usize) {
        let each = self.words(k);
        assert!(
            results.checked_mul(each) == Some(found),
            "{found} random words for {results} results of {k} elements, where {self} needs {each} for each: \
             dot_with, explain_with and multiply_with take them"
        );
    }

    /// Every dot product of rows and columns: `sums` holds the addends, rows by columns in row-major
    /// order, and then the results. The bits are those of [`dot`](Self::dot), the speed is a
    /// kernel's where there is one for the parameters: the fused orders with truncation, which are
    /// all of NVIDIA's.
    ///
    /// ```
    /// use exmy::gemm::unit::Unit;
    ///
    /// let unit: Unit = "hopper:e4m3".parse()?;
    /// let rows = unit.rows(&[0x38, 0x40, 0x7F, 0x38], &[], 2)?; // 1 2 and NaN 1
    /// let columns = unit.columns(&[0x38, 0x38], &[], 2)?; // 1 1
    /// let mut sums = [0.1_f32, 0.0].map(|c| c.to_bits().into()); // of 0.1 the addend keeps 13 bits
    /// unit.multiply(&rows, &columns, &mut sums);
    /// assert_eq!(sums, [3.099_853_5_f32.to_bits().into(), 0x7FFF_FFFF]);
    /// # Ok::<(), exmy::gemm::unit::UnitError>(())
    /// ```
    ///
    /// # Panics
    /// If rows and columns differ in length or were made for another unit, `sums` has another
    /// length than rows times columns, or the unit is [stochastic](Self::is_stochastic).
    pub fn multiply(&self, a: &Rows, b: &Rows, sums: &mut [u64]) {
        self.multiply_with(a, b, sums, &[]);
    }

    /// The same by [`words`](Self::words) random words for each result, those of the first one first.
    ///
    /// # Panics
    /// If rows and columns differ in length or were made for another unit, `sums` has another
    /// length than rows times columns, or the words are fewer or more.
    pub fn multiply_with(&self, a: &Rows, b: &Rows, sums: &mut [u64], words: &[u32]) {
        let p = &self.parameters;
        assert!(a.are_of(self.a, p) && b.are_of(self.b, p), "operands of another unit");
        assert_eq!(a.k(), b.k(), "rows and columns of different lengths");
        assert_eq!(sums.len(), a.count() * b.count(), "results for rows times columns");
        self.check_words(words.len(), sums.len(), a.k());
        if b.count() == 0 {
            return;
        }
        let each = self.words(a.k());
        let lanes = a.lanes().zip(b.lanes());
        let job = lanes.map(|(a, b)| LaneJob { parameters: p, result: self.result, a, b });
        let mut done = vec![false; b.count()];
        for (i, sums) in sums.chunks_mut(b.count()).enumerate() {
            let words = &words[i * b.count() * each..][..sums.len() * each];
            done.fill(false);
            if let Some(job) = &job {
                lanes::row_into(job, i, sums, &mut done);
            }
            for (j, sum) in sums.iter_mut().enumerate().filter(|(j, _)| !done[*j]) {
                *sum = self.dot_with(&a.row(i), &b.row(j), *sum, &words[j * each..][..each]);
            }
        }
    }
}
