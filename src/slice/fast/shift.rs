//! Any mode by one integer shift, for numbers of every size.
//!
//! The significand, an integer of 24 bits, loses `23 - M` places in the normal range and one more
//! for each binade below it. Before the shift something is added: half a unit, all but one, nothing,
//! as the mode says, and under stochastic rounding the random integer. All of these are the upper
//! bits of one fraction of 31 bits. So a carry is a shift of a constant or of the random word, and
//! the modes differ in data alone. What is left, in units of the last place, plus the number's
//! binades above the lowest one in the place of the exponent field, is the code.

use core::marker::PhantomData;

use super::edges::{Clamp, Edges, NanCode};
use super::nearest::at_most;
use super::{Body, INFINITY, Lattice, NORMAL, Out, SIGN};
use crate::format::{Format, Sign, low_bits};
use crate::round::{Flush, Operands, Rounding, Rules, SignRule, StochasticVariant};

/// Half a unit, just less, and all but one, as fractions of 31 bits.
const HALF: u32 = 0x4000_0000;
const BELOW_HALF: u32 = 0x3FFF_FFFF;
const BELOW_ONE: u32 = 0x7FFF_FFFF;

/// The constants of [`Shift`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    lattice: Lattice,
    /// What is added, by sign, where the lower neighbour is even and where it is odd.
    carry: [[u32; 2]; 2],
    /// All ones where M is 0: the parity of a code is then that of its exponent field.
    no_man: u32,
    /// The random bits that count, of the word's upper 31; 0 in deterministic modes.
    random: u32,
    /// Added to these: half of the last of them, in variant B.
    random_half: u32,
    /// Magnitudes below this are read as zero.
    zero_below: u32,
    /// Codes below this become zero.
    code_below: u32,
    /// M if nothing lies between zero and the smallest normal value, else 0.
    gap: u32,
    /// How a magnitude becomes the code of a negative number: these bits are changed, this is
    /// added, these are kept.
    flip: [u32; 2],
    add: [u32; 2],
    keep: u32,
    edges: Edges,
    clamp: Option<Clamp>,
}

impl Params {
    pub(super) fn new(
        to: Format,
        lattice: Lattice,
        rules: Rules,
        edges: Edges,
        clamp: Option<Clamp>,
    ) -> Self {
        let same = |even, odd| [[even, odd]; 2];
        let directed = [[BELOW_ONE; 2], [0; 2]];
        let [away, inward] = directed;
        let mut random = 0;
        let mut random_half = 0;
        let carry = match rules.rounding {
            Rounding::TiesToEven => same(BELOW_HALF, HALF),
            Rounding::TiesToAway => same(HALF, HALF),
            Rounding::TiesToZero => same(BELOW_HALF, BELOW_HALF),
            Rounding::TowardZero => same(0, 0),
            Rounding::TowardPositive => [away, inward],
            Rounding::TowardNegative => [inward, away],
            Rounding::AwayFromZero => same(BELOW_ONE, BELOW_ONE),
            Rounding::ToOdd => same(BELOW_ONE, 0),
            Rounding::Stochastic { variant, bits } => {
                random = (u32::MAX << (32 - u32::from(bits))) >> 1;
                if variant == StochasticVariant::B {
                    random_half = 1 << (30 - bits);
                }
                same(0, 0)
            }
        };
        let positive_only = rules.sign != SignRule::Keep;
        let carry = if positive_only { [carry[0], carry[0]] } else { carry };
        let negative =
            |flip, add| if positive_only { ([0, 0], [0, 0]) } else { ([0, flip], [0, add]) };
        let (flip, add) = match to.sign() {
            Sign::Magnitude => negative(1 << (to.bits() - 1), 0),
            Sign::TwosComplement => negative(u32::MAX, 1),
            Sign::Unsigned => ([0, 0], [0, 0]),
        };
        let has_normal = to.min_normal_code().is_some();
        let flush = if has_normal { rules.flush } else { Flush::None };
        let mut zero_below = if rules.operands == Operands::Zero { NORMAL } else { 0 };
        if flush == Flush::Input {
            zero_below = zero_below.max(lattice.normal);
        }
        Self {
            lattice,
            carry,
            no_man: if lattice.man_bits == 0 { u32::MAX } else { 0 },
            random,
            random_half,
            zero_below,
            code_below: if flush == Flush::Output { 1 << lattice.man_bits } else { 0 },
            gap: if flush == Flush::Candidates { lattice.man_bits } else { 0 },
            flip,
            add,
            keep: low_bits(to.bits()) as u32,
            edges,
            clamp,
        }
    }

    pub(super) const fn is_stochastic(&self) -> bool {
        self.random != 0
    }

    pub(super) const fn has_clamp(&self) -> bool {
        self.clamp.is_some()
    }
}

/// Any mode; `RANDOM` if stochastic. `EDGES`: with every special case by itself, and all flushes;
/// else with the clamp.
#[derive(Clone, Copy)]
pub(super) struct Shift<O, const RANDOM: bool, const EDGES: bool> {
    params: Params,
    /// The clamp's constants, zero where there is none.
    clamp: Clamp,
    /// Codes below this are subnormal and not in the place of binary32's.
    small: u32,
    _out: PhantomData<O>,
}

impl<O: Out, const RANDOM: bool, const EDGES: bool> Shift<O, RANDOM, EDGES> {
    pub(super) fn new(params: Params) -> Self {
        let (at, nan) = ([0.0; 2], NanCode::NONE);
        let none = Clamp { at, nan, nan_value: nan, largest: 0, over: 0, sign: 0, one_zero: false };
        let lattice = params.lattice;
        let small = if lattice.rebias == 0 { 0 } else { 1 << lattice.man_bits };
        Self { params, clamp: params.clamp.unwrap_or(none), small, _out: PhantomData }
    }

    /// The magnitude's code, unbounded.
    #[inline(always)]
    fn code(&self, y: u32, negative: bool, word: u32) -> u32 {
        let p = &self.params;
        let Lattice { places, rebias, .. } = p.lattice;
        // The exponent in place, with subnormal numbers in the lowest binade; less its first value,
        // it leaves the hidden bit in the significand.
        let exponent = (y & INFINITY).max(NORMAL) - NORMAL;
        let significand = y - exponent;
        let above = exponent.saturating_sub(rebias) >> places;
        let below = rebias.saturating_sub(exponent) >> 23;
        let gap = if EDGES && y < p.lattice.normal { p.gap } else { 0 };
        let shift = places + below + gap;
        let units = if RANDOM {
            // All places beyond 31 are below the random bits.
            let rest = significand >> shift.saturating_sub(31).min(31);
            let shift = shift.min(31);
            let carry = (word >> 1 & p.random) | p.random_half;
            (rest + (carry >> (31 - shift))) >> shift
        } else {
            // From 26 places on the result is the same: the number is less than a quarter unit.
            let shift = shift.min(26);
            let odd = ((significand >> shift) + (above & p.no_man)) & 1 != 0;
            let [plus, minus] = p.carry;
            let [even_carry, odd_carry] = [
                if negative { minus[0] } else { plus[0] },
                if negative { minus[1] } else { plus[1] },
            ];
            let carry = if odd { odd_carry } else { even_carry };
            (significand + (carry >> (31 - shift))) >> shift
        };
        (units << gap) + above
    }

    /// The bits of a magnitude's value.
    #[inline(always)]
    fn value(&self, code: u32) -> u32 {
        let Lattice { places, rebias, unit, .. } = self.params.lattice;
        let normal = (code << places).wrapping_add(rebias);
        let small = (code as i32 as f32 * unit).to_bits();
        if code < self.small { small } else { normal }
    }
}

impl<O: Out, const RANDOM: bool, const EDGES: bool> Body for Shift<O, RANDOM, EDGES> {
    type Out = O;

    #[inline(always)]
    fn apply(self, x: u32, word: u32) -> O {
        let (magnitude, negative) = (x & !SIGN, x & SIGN != 0);
        if !EDGES {
            let c = &self.clamp;
            let limit = if negative && !RANDOM { c.at[1] } else { c.at[0] };
            let code = self.code(at_most(limit, magnitude), negative, word);
            return O::new(if O::VALUE {
                let value = self.value(code);
                let value = if value > c.largest { c.over } else { value };
                let value = value | (x & SIGN);
                if magnitude > INFINITY { c.nan_value.of(x) } else { value }
            } else {
                let code = code | (((x as i32) >> 31) as u32 & c.sign);
                if magnitude > INFINITY { c.nan.of(x) } else { code }
            });
        }
        let p = &self.params;
        let y = if magnitude < p.zero_below { 0 } else { magnitude };
        let code = self.code(y, negative, word);
        let code = if code < p.code_below { 0 } else { code };
        let pick = |both: [u32; 2]| if negative { both[1] } else { both[0] };
        let edges = if O::VALUE { p.edges.values } else { p.edges.codes };
        let mut bits = if O::VALUE {
            self.value(code) | (if pick(p.flip) != 0 { SIGN } else { 0 })
        } else {
            (code ^ pick(p.flip)).wrapping_add(pick(p.add)) & p.keep
        };
        bits = if code == 0 { pick(edges.map(|edge| edge.zero)) } else { bits };
        bits = if code > pick(p.edges.largest) { pick(edges.map(|edge| edge.over)) } else { bits };
        bits = if magnitude == INFINITY { pick(edges.map(|edge| edge.infinity)) } else { bits };
        bits = if magnitude > INFINITY { pick(edges.map(|edge| edge.nan)) } else { bits };
        O::new(bits)
    }
}
