//! What overflow, infinity, NaN and zero become, computed by the rounding core.

use super::{INFINITY, Lattice, SIGN};
use crate::format::{Format, Sign, low_bits};
use crate::math::{Context, Operand};
use crate::round::{Exact, Rules, SignRule};

/// The special cases of one sign of the operand, as codes or as bits of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// In place of magnitudes beyond the largest.
    pub(super) over: u32,
    /// In place of infinity.
    pub(super) infinity: u32,
    /// In place of NaN.
    pub(super) nan: u32,
    /// In place of what rounds to zero.
    pub(super) zero: u32,
}

/// The special cases of both signs, that of plus first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    /// The largest magnitude that is kept, counted in codes from zero.
    pub(super) largest: [u32; 2],
    pub(super) codes: [Edge; 2],
    pub(super) values: [Edge; 2],
}

/// What a NaN becomes, and which bits of that its sign changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NanCode {
    plus: u32,
    flip: u32,
}

impl NanCode {
    pub(super) const NONE: Self = Self { plus: 0, flip: 0 };

    const fn new(plus: u32, minus: u32) -> Self {
        Self { plus, flip: plus ^ minus }
    }

    /// That of an operand with the bits `x`.
    #[inline(always)]
    pub(super) const fn of(self, x: u32) -> u32 {
        self.plus ^ ((x as i32 >> 31) as u32 & self.flip)
    }
}

/// Limits that make the special cases ordinary ones; see [`Edges::clamp`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Clamp {
    /// What larger operands are replaced by, of either sign.
    pub(super) at: [f32; 2],
    /// In place of NaN: code, and bits of the value.
    pub(super) nan: NanCode,
    pub(super) nan_value: NanCode,
    /// In place of values beyond the largest, without the sign; bits of values.
    pub(super) largest: u32,
    pub(super) over: u32,
    /// The bit of a code that is its sign.
    pub(super) sign: u32,
    /// Whether zero has no sign.
    pub(super) one_zero: bool,
}

impl Edges {
    pub(super) fn new(to: Format, rules: Rules) -> Self {
        // Special cases are the same whatever the random word.
        let context = Context::new(to, rules).with_random(0);
        let of = |negative: bool| {
            let sign = if negative { SIGN } else { 0 };
            let code = |bits: u32| context.convert(Operand::new(Format::F32, (bits | sign).into()));
            let kept = match rules.sign {
                SignRule::Keep => negative,
                SignRule::Magnitude | SignRule::Relu => false,
            };
            // No binary32 number need be large enough.
            let beyond = Exact { negative: kept, significand: 1, exponent: 1 << 24, sticky: false };
            let zero = code(0).code as u32;
            let over = match rules.sign {
                SignRule::Relu if negative => zero,
                _ => to.round_by(beyond, &rules, 0).code as u32,
            };
            let largest = match (to.sign(), rules.sign) {
                (_, SignRule::Relu) if negative => 0,
                (Sign::Unsigned, SignRule::Keep) if negative => 0,
                // The negative end is where the policy says, one further than the positive.
                (Sign::TwosComplement, _) if kept => {
                    over.wrapping_neg() & low_bits(to.bits()) as u32
                }
                _ => to.max_code() as u32,
            };
            let (infinity, nan) = (code(INFINITY).code as u32, code(0x7FC0_0000).code as u32);
            (largest, Edge { over, infinity, nan, zero })
        };
        let value = |code: u32| to.to_f32(code.into()).to_bits();
        let ((largest, plus), (largest_minus, minus)) = (of(false), of(true));
        let codes = [plus, minus];
        let values = codes.map(|edge| Edge {
            over: value(edge.over),
            infinity: value(edge.infinity),
            nan: value(edge.nan),
            zero: value(edge.zero),
        });
        Self { largest: [largest, largest_minus], codes, values }
    }

    /// The value of what a NaN becomes.
    pub(super) const fn nan_value(&self) -> NanCode {
        NanCode::new(self.values[0].nan, self.values[1].nan)
    }

    /// The values that operands beyond them may be replaced by, to be rounded as any other. They exist if
    /// both signs have the same cases, NaN aside, infinity becomes what overflow becomes, and the code of
    /// that is the largest or the next.
    pub(super) fn clamp(&self, to: Format, lattice: &Lattice) -> Option<Clamp> {
        if to.sign() != Sign::Magnitude {
            return None;
        }
        let one_zero = self.codes[1].zero == 0;
        let (sign, largest) = (1_u32 << (to.bits() - 1), to.max_code() as u32);
        let mut at = [0.0; 2];
        let mut over_code = largest;
        for (negative, at) in [false, true].into_iter().zip(&mut at) {
            let (bit, value_bit) = if negative { (sign, SIGN) } else { (0, 0) };
            let (code, value) =
                (self.codes[usize::from(negative)], self.values[usize::from(negative)]);
            let over = code.over ^ bit;
            let as_plus = (one_zero || code.zero == bit && value.zero == value_bit)
                && code.infinity == code.over
                && (over == largest || over == largest + 1);
            if !as_plus {
                return None;
            }
            over_code = over_code.max(over);
            *at = lattice.value(over);
        }
        // Beyond the largest value only one sign may go, to the value that both would have.
        let beyond = |i: usize| self.values[i].over & !SIGN;
        let over = if over_code == largest || at[0] > at[1] { beyond(0) } else { beyond(1) };
        Some(Clamp {
            at,
            nan: NanCode::new(self.codes[0].nan, self.codes[1].nan),
            nan_value: self.nan_value(),
            largest: to.max().to_f32().to_bits(),
            over,
            sign,
            one_zero,
        })
    }
}

impl Lattice {
    /// The value that a magnitude would have if every code were a number.
    pub(super) fn value(&self, code: u32) -> f32 {
        if code >> self.man_bits == 0 {
            // A product of numbers that have no more than 24 bits together, and exact.
            return if self.rebias == 0 {
                f32::from_bits(code << self.places)
            } else {
                code as f32 * self.unit
            };
        }
        f32::from_bits((code << self.places) + self.rebias)
    }
}
