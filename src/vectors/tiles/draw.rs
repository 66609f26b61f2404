//! Operands for the tiles of a unit, aimed at what goes wrong in one: cancellation, terms that alignment cuts
//! just there and just not, extremes of elements and scales, addends that leave the last bit of a sum.
//!
//! A tile is a function of the unit, the shape, the seed and its number alone, so a file of more tiles begins
//! as one of fewer.

use alloc::vec::Vec;

use super::verdict::impossible;
use super::{TileOperands, Tiles, TilesError};
use crate::error::Error;
use crate::format::{Format, Sign, Value};
use crate::gemm::unit::{Cut, Input, Unit};
use crate::random::{Philox, Stream};
use crate::round::{Exact, Operands, Overflow, Rounding};

/// Which tiles are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TilesRequest {
    /// M, N and K; `None` is [`TilesRequest::usual_shape`].
    pub shape: Option<[u32; 3]>,
    /// How many.
    pub count: u32,
    /// The seed.
    pub seed: u64,
}

impl Default for TilesRequest {
    fn default() -> Self {
        Self { shape: None, count: 64, seed: 1 }
    }
}

impl TilesRequest {
    /// 8 x 8 results of sums that a unit takes two steps for or more, and more than one promotion, of whole
    /// blocks.
    pub fn usual_shape(unit: &Unit) -> [u32; 3] {
        let p = unit.parameters();
        let steps = p.promote.map_or(0, |every| every.min(512)) + 2 * p.products;
        let block = |input: Input| input.scale.map_or(1, |scale| scale.block.clamp(1, 1024));
        [8, 8, steps.max(4).next_multiple_of(block(unit.a()).max(block(unit.b())))]
    }
}

/// What is drawn, by its place in [`KINDS`](super::KINDS).
mod kind {
    pub(super) const NORMAL: u8 = 0;
    pub(super) const RANDOM_BITS: u8 = 1;
    pub(super) const WINDOW: u8 = 2;
    pub(super) const CANCELLATION: u8 = 3;
    pub(super) const LARGE_AND_SMALL: u8 = 4;
    pub(super) const SWEEP: u8 = 5;
    pub(super) const SUBNORMAL: u8 = 6;
    pub(super) const SPECIAL: u8 = 7;
    pub(super) const SPARSE: u8 = 8;
    pub(super) const OVERFLOW: u8 = 9;
    pub(super) const DEEP: u8 = 10;
    pub(super) const ZEROS: u8 = 11;
    pub(super) const TINY: u8 = 15;
    pub(super) const BOUND: u8 = 16;
    pub(super) const SCALES_APART: u8 = 18;
    pub(super) const SCALES_AT_ENDS: u8 = 19;
    pub(super) const SMALLEST: u8 = 20;
    pub(super) const SIGNS: u8 = 21;
}

impl Tiles {
    /// Tiles for a unit with its results.
    ///
    /// ```
    /// use exmy::gemm::unit::Unit;
    /// use exmy::vectors::tiles::{Tiles, TilesRequest};
    ///
    /// let unit: Unit = "blackwell:nvfp4".parse()?;
    /// let tiles = Tiles::drawn(&unit, &TilesRequest::default())?;
    /// assert_eq!((tiles.count(), tiles.shape()), (64, [8, 8, 128]));
    /// assert_eq!(tiles.verify(&"blackwell".parse()?)?.mismatches, 0);
    /// assert!(tiles.verify(&"blackwell,f=34".parse()?)?.mismatches > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the shape is empty, or more than a memory holds.
    pub fn drawn(unit: &Unit, request: &TilesRequest) -> Result<Self, Error> {
        let wrong = |error: TilesError| Error::new("such tiles cannot be made").because(error);
        let shape = request.shape.unwrap_or_else(|| TilesRequest::usual_shape(unit));
        // Checked before anything is drawn for it.
        let words = unit.words(shape[2] as usize);
        let each = u32::try_from(words).unwrap_or(u32::MAX);
        Self::size_of(unit.formats(), shape, request.count, each).map_err(wrong)?;
        let p = unit.parameters();
        let [a, b] = [unit.a(), unit.b()];
        let least =
            |input: Input| input.format.lsb() + input.scale.map_or(0, |scale| scale.format.lsb());
        let kinds: Vec<u8> = (kind::NORMAL..=kind::SIGNS)
            .filter(|kind| match *kind {
                kind::SUBNORMAL => [a, b].iter().any(|input| input.format.has_subnormals()),
                kind::TINY => least(a) + least(b) <= unit.result().lsb(),
                kind::SMALLEST => {
                    let format = summed(unit);
                    format.sign() != Sign::TwosComplement && format.min_normal_code().is_some()
                }
                // Where terms are aligned, a sum of zeros is +0 whatever their signs.
                kind::SIGNS => {
                    let signs = a.format.has_negative_zero() && unit.result().has_negative_zero();
                    p.operands != Operands::Exact && !p.order.is_aligned() && signs
                }
                kind::BOUND => {
                    p.order.is_aligned()
                        && p.floor.is_some_and(|floor| least(a) + least(b) <= floor)
                }
                kind::SCALES_APART | kind::SCALES_AT_ENDS => a.scale.is_some() || b.scale.is_some(),
                kind => kind <= kind::ZEROS,
            })
            .collect();
        let tiles: Vec<_> = (0..request.count)
            .map(|tile| {
                let draw = |label| {
                    let philox = Philox::new(request.seed, Stream::new(label).with(tile.into()));
                    Draw { unit, shape: shape.map(|side| side as usize), philox, at: 0 }
                };
                // Random words have a stream of their own, so they change no operand.
                let mut random = draw("random words of tiles");
                let words = random.words(words);
                let kind = kinds[tile as usize % kinds.len()];
                let mut tile = draw("tiles").tile(kind, words);
                random.aim(&mut tile);
                tile
            })
            .collect();
        let mut drawn = Self::with_operands(unit.formats(), shape, &tiles).map_err(wrong)?;
        for tile in 0..drawn.count() {
            let results = drawn.computed(unit, tile).map_err(impossible)?.results;
            drawn.set_results(tile, &results);
        }
        Ok(drawn)
    }
}

struct Draw<'a> {
    unit: &'a Unit,
    shape: [usize; 3],
    philox: Philox,
    at: u64,
}

/// The exponents of a format's numbers, from that of its last place.
fn reach(format: Format) -> [i32; 2] {
    [format.lsb(), format.emax()]
}

/// What sums are rounded to: the result's format where they are kept in fixed point.
fn summed(unit: &Unit) -> Format {
    let output = unit.parameters().output;
    if output.sign() == Sign::TwosComplement { unit.result() } else { output }
}

/// The code of a number, as near as the format has it toward zero.
fn code(format: Format, negative: bool, significand: u64, exponent: i32) -> u64 {
    let negative = negative && format.is_signed();
    let exact = Exact { negative, significand: significand.into(), exponent, sticky: false };
    format.round(exact, Rounding::TowardZero, 0, Overflow::Finite).code
}

/// The number of the other sign; what is none stays.
fn negated(format: Format, number: u64) -> u64 {
    match format.decode(number) {
        Value::Finite { negative, significand, exponent } => {
            code(format, !negative, significand, exponent)
        }
        _ => number,
    }
}

/// The number of the sign that is wanted.
fn signed(format: Format, negative: bool, number: u64) -> u64 {
    match format.decode(number) {
        Value::Finite { negative: found, .. } if found != negative => negated(format, number),
        _ => number,
    }
}

impl Draw<'_> {
    fn word(&mut self) -> u64 {
        self.at += 1;
        self.philox.word64(self.at - 1)
    }

    /// A number from `from` to `to`.
    fn between(&mut self, [from, to]: [i32; 2]) -> i32 {
        let count = (i64::from(to) - i64::from(from) + 1).max(1) as u64;
        from + (self.word() % count) as i32
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.word().is_multiple_of(count)
    }

    /// Any code.
    fn any(&mut self, format: Format) -> u64 {
        self.word() & format.codes().end()
    }

    /// A number of an exponent, or the nearest that the format has: some with few digits, some with all.
    fn number(&mut self, format: Format, exponent: i32) -> u64 {
        let [low, high] = reach(format);
        let exponent = exponent.clamp(low, high);
        let places = format.precision() - 1;
        let rest = self.word() & ((1 << places) - 1);
        let rest = match self.word() % 8 {
            0 => 0,
            1 => (1 << places) - 1,
            _ => rest,
        };
        let negative = self.one_in(2);
        code(format, negative, 1 << places | rest, exponent - places as i32)
    }

    /// What is no ordinary number, or the last that is one.
    fn end(&mut self, format: Format) -> u64 {
        let ends = [
            format.nan_code(),
            format.infinity_code(false),
            format.infinity_code(true),
            Some(format.max_code()),
            Some(format.min_code()),
            Some(format.min_positive_code()),
            format.min_normal_code(),
            Some(negated(format, format.min_positive_code())),
            Some(0),
        ];
        let ends: Vec<u64> = ends.into_iter().flatten().collect();
        ends[self.word() as usize % ends.len()]
    }

    /// Bits that alignment keeps of a term below the largest one.
    fn kept(&self) -> i32 {
        let p = self.unit.parameters();
        let register = matches!(p.output.sign(), Sign::TwosComplement);
        let aligned = p.order.is_aligned() && p.cut != Cut::Exact && !register;
        if aligned { p.fraction as i32 } else { p.output.precision() as i32 }
    }

    /// Rows of one operand, element by element.
    fn rows(
        &mut self,
        input: Input,
        rows: usize,
        mut draw: impl FnMut(&mut Self, usize) -> u64,
    ) -> [Vec<u64>; 2] {
        let k = self.shape[2];
        let codes = (0..rows * k).map(|i| draw(self, i % k)).collect();
        let scales = (0..rows * input.scales(k)).map(|_| self.scale(input, [-2, 2])).collect();
        [codes, scales]
    }

    /// A scale with an exponent between two.
    fn scale(&mut self, input: Input, exponents: [i32; 2]) -> u64 {
        let exponent = self.between(exponents);
        input.scale.map_or(0, |scale| self.number(scale.format, exponent))
    }

    fn tile(&mut self, kind: u8, words: Vec<u32>) -> TileOperands {
        let [m, n, k] = self.shape;
        let ([a, b], result) = ([self.unit.a(), self.unit.b()], self.unit.result());
        let kept = self.kept();
        let (tops, bottoms) =
            ([a, b].map(|x| reach(x.format)[1]), [a, b].map(|x| reach(x.format)[0]));
        let largest = self.word() as usize % k;
        // A window of exponents somewhere in each format's.
        let windows = [a, b].map(|input| {
            let low = self.between(reach(input.format));
            [low, low + self.between([0, 8])]
        });
        // For each place of the sum the exponents of two factors, where their product has a meaning.
        let floor = self.unit.parameters().floor.unwrap_or(0);
        let sums = summed(self.unit);
        let product = |draw: &mut Self, at: usize| match kind {
            kind::LARGE_AND_SMALL if at == largest => Some(tops[0] + tops[1]),
            kind::LARGE_AND_SMALL => Some(tops[0] + tops[1] - kept + draw.between([-2, 2])),
            // One term that the bound lifts above its own exponent, and others about the last place.
            kind::BOUND if at == largest => Some(floor + draw.between([-12, 1])),
            kind::BOUND => Some(floor - kept + draw.between([-2, 1])),
            kind::TINY => Some(result.lsb() + draw.between([-3, 1])),
            kind::SMALLEST if at == largest => Some(sums.emin() + draw.between([-2, 0])),
            kind::SMALLEST => Some(sums.lsb() + draw.between([-2, 2])),
            _ => None,
        };
        let products: Vec<Option<i32>> = (0..k).map(|at| product(self, at)).collect();
        // Small products are those of scales, and of elements as large as there are.
        let scaled = [a, b].iter().filter(|input| input.scale.is_some()).count() as i32;
        let small = matches!(kind, kind::TINY | kind::BOUND | kind::SMALLEST) && scaled > 0;
        let shares = [a, b].map(|input| -> Vec<i32> {
            let Some(scale) = input.scale.filter(|_| small) else {
                return alloc::vec![0; input.scales(k)];
            };
            let [low, high] = reach(scale.format);
            let blocks = products.chunks(scale.block as usize);
            let most = blocks.map(|block| block.iter().flatten().copied().max().unwrap_or(0));
            most.map(|most| ((most - tops[0] - tops[1]) / scaled).clamp(low, high)).collect()
        });
        let share = |side: usize, at: usize| {
            let block = [a, b][side].scale.map_or(usize::MAX, |scale| scale.block as usize);
            shares[side].get(at / block).copied().unwrap_or(0)
        };
        let factors: Vec<Option<[i32; 2]>> = (0..k)
            .map(|at| {
                let product = products[at]? - share(0, at) - share(1, at);
                let least = (product - tops[1]).max(bottoms[0]);
                let first = self.between([least, (product - bottoms[1]).min(tops[0]).max(least)]);
                Some([first, product - first])
            })
            .collect();
        let subnormal = |draw: &mut Self, format: Format| {
            let most = format.max_subnormal_code().unwrap_or(format.min_positive_code());
            let code = 1 + draw.word() % most.max(1);
            if draw.one_in(2) { code } else { negated(format, code) }
        };
        let element = |draw: &mut Self, input: Input, side: usize, at: usize| {
            let format = input.format;
            match kind {
                kind::RANDOM_BITS => draw.any(format),
                kind::WINDOW => {
                    let exponent = draw.between(windows[side]);
                    draw.number(format, exponent)
                }
                kind::SUBNORMAL if side == 0 || at.is_multiple_of(2) => subnormal(draw, format),
                kind::SPECIAL if draw.one_in(k as u64 * 2) => draw.end(format),
                kind::TINY | kind::BOUND if at != largest && draw.one_in(2) => 0,
                kind::SMALLEST if draw.one_in(2) => 0,
                // Its last place is far from the others', so that it is they who decide.
                kind::BOUND if at == largest => {
                    let exponent = factors[at].map_or(0, |exponents| exponents[side]);
                    code(format, draw.one_in(2), 1, exponent)
                }
                kind::SPARSE if !draw.one_in(4) => code(format, draw.one_in(2), 0, 0),
                kind::OVERFLOW => draw.number(format, tops[side]),
                kind::ZEROS if at % 2 == side => draw.number(format, tops[side]),
                kind::ZEROS if at % 2 == 1 => code(format, draw.one_in(2), 0, 0),
                _ => {
                    let exponent = factors[at].map(|exponents| exponents[side]);
                    let exponent = exponent.unwrap_or_else(|| draw.between([-3, 3]));
                    draw.number(format, exponent)
                }
            }
        };
        let [mut left, mut left_scales] = self.rows(a, m, |draw, at| element(draw, a, 0, at));
        let [mut right, mut right_scales] = self.rows(b, n, |draw, at| element(draw, b, 1, at));
        if matches!(kind, kind::CANCELLATION | kind::DEEP) {
            // Neighbours cancel, but for a few: where the sum begins anew they may not be neighbours.
            for row in left.chunks_mut(k) {
                row.chunks_exact_mut(2).for_each(|pair| pair[1] = pair[0]);
            }
            for row in right.chunks_mut(k) {
                for pair in row.chunks_exact_mut(2) {
                    let other = if self.one_in(8) { pair[1] } else { negated(b.format, pair[0]) };
                    pair[1] = other;
                }
            }
        }
        if kind == kind::SMALLEST {
            // In every other row the addend is all that there is.
            left.chunks_mut(k).step_by(2).for_each(|row| row.fill(code(a.format, false, 0, 0)));
        }
        if kind == kind::SIGNS {
            self.negative_zeros(&mut left, &mut right, sums.emin() / 2 - 2);
        }
        for (side, (input, scales)) in
            [(a, &mut left_scales), (b, &mut right_scales)].into_iter().enumerate()
        {
            let Some(scale) = input.scale else { continue };
            for (at, code) in scales.iter_mut().enumerate() {
                match kind {
                    _ if small => {
                        let share = &shares[side];
                        *code = self.number(scale.format, share[at % share.len()]);
                    }
                    kind::RANDOM_BITS => *code = self.any(scale.format),
                    kind::SCALES_APART => *code = self.scale(input, [-kept - 3, kept + 3]),
                    kind::SCALES_AT_ENDS => *code = self.end(scale.format),
                    kind::OVERFLOW => *code = self.number(scale.format, reach(scale.format)[1]),
                    _ => {}
                }
            }
        }
        let addend = |draw: &mut Self, at: usize| match kind {
            kind::RANDOM_BITS => draw.any(result),
            kind::SWEEP => {
                let width = 2 * (kept + 4);
                draw.number(result, at as i32 % width - width / 2)
            }
            kind::SPECIAL if draw.one_in(8) => draw.end(result),
            kind::OVERFLOW => draw.number(result, reach(result)[1]),
            kind::LARGE_AND_SMALL => {
                let exponent = tops[0] + tops[1] - kept + draw.between([-2, 2]);
                draw.number(result, exponent)
            }
            kind::SPARSE | kind::TINY | kind::BOUND | kind::SUBNORMAL if draw.one_in(2) => 0,
            kind::SIGNS if draw.one_in(4) => code(result, draw.one_in(2), 0, 0),
            kind::SIGNS => signed(result, true, subnormal(draw, result)),
            kind::SMALLEST if draw.one_in(4) => 0,
            kind::SMALLEST if draw.one_in(2) => {
                // The smallest normal number, and last places of the result more or less.
                let places = result.precision() as i32 - 1;
                let significand = (1_i64 << places) + i64::from(draw.between([-2, 2]));
                code(result, draw.one_in(2), significand.unsigned_abs(), sums.emin() - places)
            }
            kind::SMALLEST => {
                let exponent = draw.between([sums.lsb() - 1, sums.emin()]);
                draw.number(result, exponent)
            }
            kind::BOUND => {
                let exponent = floor + draw.between([-12, 1]);
                draw.number(result, exponent)
            }
            kind::TINY | kind::SUBNORMAL => subnormal(draw, result),
            _ => {
                let exponent = draw.between([-3, 6]);
                draw.number(result, exponent)
            }
        };
        let mut c: Vec<u64> = (0..m * n).map(|at| addend(self, at)).collect();
        if kind == kind::DEEP {
            self.cancel([&left, &left_scales, &right, &right_scales], &mut c, &words);
        }
        TileOperands {
            kind,
            a: left,
            a_scales: left_scales,
            b: right,
            b_scales: right_scales,
            c,
            words,
        }
    }

    /// Elements whose products all are negative zeros, by what the left one is: a subnormal number that may
    /// be read as one or as +0, a zero, a number of an exponent so small that the product is flushed.
    fn negative_zeros(&mut self, left: &mut [u64], right: &mut [u64], exponent: i32) {
        let ([a, b], k) = ([self.unit.a().format, self.unit.b().format], self.shape[2]);
        let mut number = |format: Format, negative| {
            let number = self.number(format, exponent.max(format.emin()));
            signed(format, negative, number)
        };
        right.iter_mut().for_each(|code| *code = number(b, false));
        for (i, row) in left.chunks_mut(k).enumerate() {
            row.iter_mut().for_each(|element| {
                *element = match i % 3 {
                    0 => signed(a, true, a.min_positive_code()),
                    1 => code(a, true, 0, 0),
                    _ => number(a, true),
                }
            });
        }
    }

    /// Random words of a tile's results, `each` for each: any, or an end.
    fn words(&mut self, each: usize) -> Vec<u32> {
        let [m, n, _] = self.shape;
        let any = |draw: &mut Self| match draw.word() {
            word if word % 8 == 0 => 0,
            word if word % 8 == 1 => u32::MAX,
            word => (word >> 32) as u32,
        };
        (0..m * n * each).map(|_| any(self)).collect()
    }

    /// Last words of every other result that are the least to round it up, or one less: a design that
    /// compares otherwise is not found by words far from there.
    fn aim(&mut self, tile: &mut TileOperands) {
        let [_, n, k] = self.shape;
        let (unit, each) = (self.unit, self.unit.words(k));
        let Rounding::Stochastic { bits, .. } = unit.parameters().rounding else { return };
        let (Ok(rows), Ok(columns)) =
            (unit.rows(&tile.a, &tile.a_scales, k), unit.columns(&tile.b, &tile.b_scales, k))
        else {
            return;
        };
        let results = tile.words.chunks_exact_mut(each.max(1)).zip(&tile.c).enumerate();
        for (at, (words, addend)) in results.step_by(2) {
            let (row, column) = (rows.row(at / n), columns.row(at % n));
            let mut code = |random: u64| {
                words[each - 1] = (random << (32 - bits)) as u32;
                unit.dot_with(&row, &column, *addend, words)
            };
            let (mut below, mut up) = (0, (1_u64 << bits) - 1);
            let least = code(below);
            if code(up) == least {
                continue;
            }
            while up - below > 1 {
                let middle = below.midpoint(up);
                *(if code(middle) == least { &mut below } else { &mut up }) = middle;
            }
            let aimed = if self.one_in(2) { up } else { below };
            words[each - 1] = (aimed << (32 - bits)) as u32 | self.word() as u32 >> (bits - 1) >> 1;
        }
    }

    /// Addends that leave nothing of a sum, or its last place.
    fn cancel(&mut self, [a, a_scales, b, b_scales]: [&[u64]; 4], c: &mut [u64], words: &[u32]) {
        let (unit, k) = (self.unit, self.shape[2]);
        let (Ok(rows), Ok(columns)) = (unit.rows(a, a_scales, k), unit.columns(b, b_scales, k))
        else {
            return;
        };
        c.fill(0);
        unit.multiply_with(&rows, &columns, c, words);
        for code in c {
            let other = negated(unit.result(), *code);
            let next = other.wrapping_add(self.word() % 3).wrapping_sub(1);
            let known =
                next <= *unit.result().codes().end() && unit.result().decode(next).is_finite();
            *code = if known { next } else { other };
        }
    }
}
