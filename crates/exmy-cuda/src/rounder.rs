//! The parameters by which one kernel rounds to any format: `Rounder` of `kernels/round.cuh`, made here.
//!
//! What becomes of overflow, infinity, NaN and zero is asked of the library's rounding core, for each sign,
//! so policies are defined in one place. Which of the short ways serves a format and mode is decided as in
//! the library's `slice::fast`; their bits are those of the general way.

#![allow(unsafe_code)]

use exmy::format::{Format, Sign, Specials};
use exmy::math::{Context, Operand};
use exmy::quantizer::Cast;
use exmy::random::Philox;
use exmy::round::{Exact, Flush, Operands, Payload, Rounding, Rules, SignRule, StochasticVariant};

use crate::launch::Plain;
use crate::{Error, Result};

const SIGN: u32 = 0x8000_0000;
const INFINITE: u32 = 0x7F80_0000;

/// Bits of `Rounder::is`.
mod is {
    pub(super) const HAS_ZERO: u32 = 1;
    pub(super) const FIELD_ZERO_IS_LOW: u32 = 2;
    pub(super) const HAS_NORMAL: u32 = 4;
    pub(super) const UNSIGNED: u32 = 8;
    pub(super) const TWOS_COMPLEMENT: u32 = 16;
    pub(super) const NAN_IS_NEGATIVE_ZERO: u32 = 32;
    pub(super) const ONE_ZERO: u32 = 64;
}

/// Values of `Rounder::kind`.
pub(crate) mod kind {
    pub(crate) const GENERAL: u32 = 0;
    pub(crate) const NEAREST: u32 = 1;
    pub(crate) const DITHER: u32 = 2;
    pub(crate) const CUT: u32 = 3;
    /// Leaves numbers as they are.
    pub(crate) const NONE: u32 = 4;
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Edge {
    over: u32,
    infinity: u32,
    nan: u32,
    zero: u32,
    exact_zero: u32,
}

/// A format with its rules, as kernels take it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rounder {
    pub(crate) kind: u32,
    mode: u32,
    random_bits: u32,
    is: u32,
    is_short: u32,
    man_bits: i32,
    lsb: i32,
    flush: u32,
    operands: u32,
    sign_rule: u32,
    payload: u32,
    min_normal: u32,
    max_code: u32,
    infinity_magnitude: u32,
    mask: u32,
    magnitude_mask: u32,
    sign_bit: u32,
    beyond: [u32; 2],
    codes: [Edge; 2],
    values: [Edge; 2],
    places: u32,
    normal: u32,
    rebias: u32,
    add: [u32; 2],
    shifted_add: [u32; 2],
    rest: u32,
    dither_rebias: u32,
    keep: u32,
    largest: u32,
    over: u32,
    unit: f32,
    magic: f32,
    clamp: [f32; 2],
    nan_code: [u32; 2],
    nan_value: [u32; 2],
}

// SAFETY: fields of 32 bits alone, in the order of the kernels' structure.
unsafe impl Plain for Rounder {}

/// Random words by address, as kernels take them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Words {
    key: [u32; 2],
    stream: [u32; 2],
    first: u64,
}

// SAFETY: four fields of 32 bits and one of 64, without a gap.
unsafe impl Plain for Words {}

impl Words {
    pub(crate) fn new(random: Option<Philox>, first: u64) -> Self {
        let (seed, stream) = random.map_or((0, 0), |random| random.seed_and_stream());
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        Self { key: halves(seed), stream: halves(stream), first }
    }
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Codes,
    Values,
}

impl Rounder {
    /// Numbers stay as they are.
    pub(crate) fn none() -> Self {
        Self { kind: kind::NONE, ..Self::default() }
    }

    /// A format for decoding and rounding. `what` is the operation, for errors.
    pub(crate) fn new(what: &'static str, to: Format, rules: Rules, write: Write) -> Result<Self> {
        if to.bits() > 32 || to.max_code() >= u64::from(u32::MAX) {
            return Err(Error::unfit(what, format!("{to} has codes of more than 32 bits")));
        }
        if write == Write::Values && !to.is_exact_in_f32() {
            return Err(Error::unfit(what, format!("{to} has values that binary32 does not have")));
        }
        let general = Self::general(to, rules);
        Ok(general.shortened(to, rules, write))
    }

    /// A cast to values, or nothing.
    pub(crate) fn of_cast(what: &'static str, cast: Option<Cast>) -> Result<Self> {
        match cast {
            Some(cast) => Self::new(what, cast.format, cast.rules(), Write::Values),
            None => Ok(Self::none()),
        }
    }

    /// How a code is read alone.
    pub(crate) fn decoder(what: &'static str, from: Format) -> Result<Self> {
        Self::new(what, from, Rules::DEFAULT, Write::Values)
    }

    fn general(to: Format, rules: Rules) -> Self {
        let mut is = 0;
        let mut set = |bit, on| is |= if on { bit } else { 0 };
        set(is::HAS_ZERO, to.has_zero());
        set(is::FIELD_ZERO_IS_LOW, to.emin() + to.bias() == 1);
        set(is::HAS_NORMAL, to.min_normal_code().is_some());
        set(is::UNSIGNED, to.sign() == Sign::Unsigned);
        set(is::TWOS_COMPLEMENT, to.sign() == Sign::TwosComplement);
        let p3109 = matches!(to.specials(), Specials::P3109 { .. });
        set(is::NAN_IS_NEGATIVE_ZERO, to.is_signed() && (p3109 || to.specials() == Specials::Fnuz));
        set(is::ONE_ZERO, !to.has_negative_zero());
        let (mode, random_bits) = match rules.rounding {
            Rounding::TiesToEven => (0, 0),
            Rounding::TiesToAway => (1, 0),
            Rounding::TiesToZero => (2, 0),
            Rounding::TowardZero => (3, 0),
            Rounding::TowardPositive => (4, 0),
            Rounding::TowardNegative => (5, 0),
            Rounding::AwayFromZero => (6, 0),
            Rounding::ToOdd => (7, 0),
            Rounding::Stochastic { variant, bits } => match variant {
                StochasticVariant::A => (8, u32::from(bits)),
                StochasticVariant::B => (9, u32::from(bits)),
                StochasticVariant::C => (10, u32::from(bits)),
            },
            other => unreachable!("{other} is a mode of the library that kernels lack"),
        };
        let bits = to.bits();
        let sign_bit = if to.is_signed() { 1 << (bits - 1) } else { 0 };
        let mask = (u64::MAX >> (64 - bits)) as u32;
        let infinity = to.infinity_code(false).map_or(u32::MAX, |code| code as u32);
        let edges = [false, true].map(|negative| edges(to, rules, negative));
        let codes = edges.map(|(_, edge)| edge);
        Self {
            kind: kind::GENERAL,
            mode,
            random_bits,
            is,
            man_bits: to.man_bits() as i32,
            lsb: to.lsb(),
            flush: match rules.flush {
                Flush::None => 0,
                Flush::Input => 1,
                Flush::Candidates => 2,
                Flush::Output => 3,
            },
            operands: match rules.operands {
                Operands::Exact => 0,
                Operands::Zero => 1,
                Operands::PositiveZero => 2,
                Operands::Away => 3,
            },
            sign_rule: match rules.sign {
                SignRule::Keep => 0,
                SignRule::Magnitude => 1,
                SignRule::Relu => 2,
            },
            payload: match rules.nan.payload {
                _ if to.specials() != Specials::Ieee => 0,
                Payload::Drop => 0,
                Payload::Keep => 1,
                Payload::Truncate => 2,
            },
            min_normal: to.min_normal_code().unwrap_or(0) as u32,
            max_code: to.max_code() as u32,
            infinity_magnitude: infinity,
            mask,
            magnitude_mask: mask & !sign_bit,
            sign_bit,
            beyond: edges.map(|(beyond, _)| beyond),
            codes,
            values: codes.map(|edge| Edge {
                over: value(to, edge.over),
                infinity: value(to, edge.infinity),
                nan: value(to, edge.nan),
                zero: value(to, edge.zero),
                exact_zero: value(to, edge.exact_zero),
            }),
            ..Self::default()
        }
    }

    /// One of the short ways, if it serves.
    fn shortened(self, to: Format, rules: Rules, write: Write) -> Self {
        let plain = rules.flush == Flush::None
            && rules.operands == Operands::Exact
            && rules.sign == SignRule::Keep
            && self.payload == 0;
        let Some(lattice) = Lattice::new(to).filter(|_| plain) else { return self };
        // Where the kernels find these even if no short way serves.
        let largest = to.max().to_f32().to_bits();
        let Lattice { places, normal, .. } = lattice;
        let is_short = u32::from(to.man_bits() <= 7 && to.lsb() >= -133);
        let this = Self { places, normal, largest, is_short, ..self };
        this.by_lattice(to, rules, write, &lattice)
    }

    /// Whether elements can be rounded by adding and subtracting a power of two. The format needs a sign and
    /// zeros of both; what is too large becomes the largest value, and the power is a number.
    pub(crate) fn is_grid(&self) -> bool {
        let [plus, minus] = self.values;
        let saturates = (plus.over, plus.infinity) == (self.largest, self.largest)
            && (minus.over, minus.infinity) == (self.largest | SIGN, self.largest | SIGN)
            && (plus.zero, minus.zero) == (0, SIGN);
        let nearest = matches!(self.mode, 0 | 1 | 3) && self.man_bits > 0;
        saturates
            && self.places > 0
            && self.normal > 0
            && (self.largest >> 23) + self.places <= 254
            && (nearest || self.kind == kind::DITHER && self.rest > 0)
    }

    /// Whether a cast to values is an addition and a mask: the exponents of binary32, infinities and zeros of
    /// both signs, and nothing that saturates.
    pub(crate) fn is_cut(&self) -> bool {
        let [plus, minus] = self.values;
        let natural = (plus.infinity, minus.infinity) == (INFINITE, INFINITE | SIGN)
            && (self.mode == 3 || (plus.over, minus.over) == (INFINITE, INFINITE | SIGN))
            && (plus.zero, minus.zero) == (0, SIGN);
        let keep = u32::MAX << self.places;
        matches!(self.mode, 0 | 1 | 3)
            && (1..23).contains(&self.places)
            && self.normal == 0x0080_0000
            && self.largest == 0x7F7F_FFFF & keep
            && self.flush == 0
            && self.operands == 0
            && self.sign_rule == 0
            && natural
    }

    fn by_lattice(self, to: Format, rules: Rules, write: Write, lattice: &Lattice) -> Self {
        let keep = u32::MAX << lattice.places;
        let nan_value = [self.values[0].nan, self.values[1].nan];
        if write == Write::Values && self.is_cut() {
            return Self { kind: kind::CUT, keep, nan_value, ..self };
        }
        let Some(clamp) = self.clamp_of(to, lattice) else { return self };
        let Lattice { places, normal, rebias, unit } = *lattice;
        let common = Self {
            places,
            normal,
            rebias,
            unit,
            keep,
            clamp: clamp.at,
            largest: to.max().to_f32().to_bits(),
            over: clamp.over,
            nan_code: [self.codes[0].nan, self.codes[1].nan],
            nan_value,
            ..self
        };
        let magic = |exponent: u32| f32::from_bits(exponent << 23);
        match rules.rounding {
            Rounding::TiesToEven if places > 0 && (normal >> 23) + places <= 254 => {
                let half = 1_u32 << (places - 1);
                // Parity is the code's. Without a significand field the last place is the exponent's, and
                // rebiasing may change it.
                let odd_is_one = self.man_bits > 0 || (rebias >> 23) & 1 == 0;
                let add = if odd_is_one { [half - 1, half] } else { [half, half - 1] };
                let shifted_add = add.map(|add| add.wrapping_sub(rebias));
                let magic = magic((normal >> 23) + places);
                Self { kind: kind::NEAREST, add, shifted_add, magic, ..common }
            }
            Rounding::Stochastic { variant: StochasticVariant::A, bits } if !clamp.one_zero => {
                let Some(rest) = places.checked_sub(u32::from(bits)) else { return self };
                if (normal >> 23) + rest > 254 {
                    return self;
                }
                let magic = magic((normal >> 23) + rest);
                Self { kind: kind::DITHER, rest, dither_rebias: rebias >> rest, magic, ..common }
            }
            _ => self,
        }
    }

    /// It is where both signs have the same cases, NaN aside, infinity that of overflow, and the code of that
    /// is the largest or the next. Then an operand beyond the value of that code may be replaced by it and
    /// rounded as any other.
    fn clamp_of(&self, to: Format, lattice: &Lattice) -> Option<Clamp> {
        if to.sign() != Sign::Magnitude {
            return None;
        }
        let one_zero = self.codes[1].zero == 0;
        let (sign, largest) = (self.sign_bit, self.max_code);
        let (mut at, mut over_code) = ([0.0; 2], largest);
        for (negative, at) in at.iter_mut().enumerate() {
            let (bit, value_bit) = if negative == 1 { (sign, SIGN) } else { (0, 0) };
            let (code, value) = (self.codes[negative], self.values[negative]);
            let over = code.over ^ bit;
            let as_plus = (one_zero || code.zero == bit && value.zero == value_bit)
                && code.infinity == code.over
                && (over == largest || over == largest + 1);
            if !as_plus {
                return None;
            }
            over_code = over_code.max(over);
            *at = lattice.value(self.man_bits as u32, over);
        }
        let beyond = |i: usize| self.values[i].over & !SIGN;
        let over = if over_code == largest || at[0] > at[1] { beyond(0) } else { beyond(1) };
        // The kernels clamp both signs at one place.
        (at[0] == at[1]).then_some(Clamp { at, over, one_zero })
    }
}

struct Clamp {
    at: [f32; 2],
    over: u32,
    one_zero: bool,
}

/// The grid of a format's values in the bits of binary32; see the library's `slice::fast`.
struct Lattice {
    places: u32,
    normal: u32,
    rebias: u32,
    unit: f32,
}

impl Lattice {
    fn new(format: Format) -> Option<Self> {
        let (man_bits, emin) = (format.man_bits(), format.emin());
        let unit = emin - man_bits as i32;
        let regular = format.has_zero()
            && (format.has_subnormals() || man_bits == 0)
            && format.is_exact_in_f32()
            && man_bits <= 23
            && (-126..=127).contains(&emin)
            && (unit >= -126 || emin == -126);
        let normal = ((emin + 127) as u32) << 23;
        regular.then(|| Self {
            places: 23 - man_bits,
            normal,
            rebias: normal - 0x0080_0000,
            unit: f32::from_bits(((unit.max(-126) + 127) as u32) << 23),
        })
    }

    /// The value that a magnitude would have if every code were a number.
    fn value(&self, man_bits: u32, code: u32) -> f32 {
        if code >> man_bits == 0 {
            return match self.rebias {
                0 => f32::from_bits(code << self.places),
                _ => code as f32 * self.unit,
            };
        }
        f32::from_bits((code << self.places) + self.rebias)
    }
}

fn value(to: Format, code: u32) -> u32 {
    to.to_f32(code.into()).to_bits()
}

/// The first magnitude that is too large, and the special cases, of operands of a sign.
fn edges(to: Format, rules: Rules, negative: bool) -> (u32, Edge) {
    // Special cases are the same whatever the random word.
    let context = Context::new(to, rules).with_random(0);
    let sign = if negative { SIGN } else { 0 };
    let code =
        |bits: u32| context.convert(Operand::new(Format::F32, (bits | sign).into())).code as u32;
    // Signs are dropped by the kernel before they get here.
    let exact = |significand, exponent, sticky| Exact { negative, significand, exponent, sticky };
    let over = to.round_by(exact(1, 1 << 24, false), &rules, 0).code as u32;
    // A number that rounds to zero, which may be another zero than that of an exact zero.
    let toward_zero = rules.with_rounding(Rounding::TowardZero).with_flush(Flush::None);
    let zero = match to.has_zero() {
        true => to.round_by(exact(0, -(1 << 24), true), &toward_zero, 0).code as u32,
        false => 0,
    };
    let largest = match to.sign() {
        // Every number with a minus is outside.
        Sign::Unsigned if negative => return (0, edge(over, &code, zero)),
        // The negative end is where the policy says, one further than the positive.
        Sign::TwosComplement if negative => {
            let mask = (u64::MAX >> (64 - to.bits())) as u32;
            over.wrapping_neg() & mask
        }
        _ => to.max_code() as u32,
    };
    (largest + 1, edge(over, &code, zero))
}

fn edge(over: u32, code: &dyn Fn(u32) -> u32, zero: u32) -> Edge {
    Edge { over, infinity: code(INFINITE), nan: code(0x7FC0_0000), zero, exact_zero: code(0) }
}
