//! NaN: which code a result has, and what a NaN becomes where the target has none.
//!
//! Standards and devices agree on little here; [`NanRules`](super::NanRules) holds the choices.

use super::{AbsentNan, Flags, NanCode, Payload, Rounded, Rules};
use crate::format::{Format, Specials, low_bits};

impl Format {
    /// Whether a code is a signaling NaN: under IEEE conventions, one without the quiet bit.
    #[inline]
    pub const fn is_signaling(self, code: u64) -> bool {
        matches!(self.specials(), Specials::Ieee)
            && self.decode(code).is_nan()
            && code >> (self.man_bits() - 1) & 1 == 0
    }

    /// The payload of a NaN code, quiet bit included, with its first bit at the top of the word.
    /// Only the IEEE-like formats have one; elsewhere, and of numbers, it is 0.
    #[inline]
    pub const fn nan_payload(self, code: u64) -> u64 {
        if matches!(self.specials(), Specials::Ieee) && self.decode(code).is_nan() {
            (code & low_bits(self.man_bits())) << (64 - self.man_bits())
        } else {
            0
        }
    }

    /// The code of a NaN operand's result. `payload` is that of
    /// [`nan_payload`](Self::nan_payload), 0 if the operand's format has none. Formats without NaN
    /// give a number, by [`NanRules::absent`](super::NanRules::absent), and say
    /// [`Flags::INVALID`].
    #[inline]
    pub const fn round_nan(self, negative: bool, payload: u64, rules: &Rules) -> Rounded {
        let nan = rules.nan;
        if !self.has_nan() {
            let code = match nan.absent {
                AbsentNan::Max => self.max_code(),
                AbsentNan::SignedMax => {
                    self.signed_code(negative && self.is_signed(), self.max_code())
                }
                AbsentNan::OppositeZero => {
                    self.signed_code(!negative && self.has_negative_zero(), 0)
                }
            };
            return Rounded { code, flags: Flags::INVALID };
        }
        let negative = negative && nan.keep_sign;
        if matches!(self.specials(), Specials::Ieee) && payload != 0 {
            let top = payload >> (64 - self.man_bits());
            let quiet = 1 << (self.man_bits() - 1);
            let trailing = match nan.payload {
                Payload::Drop => None,
                Payload::Keep => Some(top | quiet),
                Payload::Truncate => Some(top),
            };
            if let Some(trailing) = trailing {
                let infinity = self.magnitude_mask() ^ low_bits(self.man_bits());
                let code = self.signed_code(negative, infinity | trailing);
                return Rounded { code, flags: Flags::NONE };
            }
        }
        match self.nan_of(negative, nan.code) {
            Some(code) => Rounded { code, flags: Flags::NONE },
            None => unreachable!(),
        }
    }

    /// The code of a NaN that an invalid operation makes: [`Flags::INVALID`], and where the format
    /// has no NaN what [`NanRules::absent`](super::NanRules::absent) says.
    #[inline]
    pub const fn made_nan(self, rules: &Rules) -> Rounded {
        let negative = rules.nan.made_negative;
        let code = match self.nan_of(negative, rules.nan.code) {
            Some(code) => code,
            None => self.round_nan(negative, 0, rules).code,
        };
        Rounded { code, flags: Flags::INVALID }
    }

    /// The NaN of a sign, if there is one.
    #[inline]
    pub(super) const fn nan_of(self, negative: bool, code: NanCode) -> Option<u64> {
        let Some(quiet) = self.nan_code() else { return None };
        let nan = match code {
            NanCode::AllOnes if self.nan_has_sign() => self.magnitude_mask(),
            NanCode::Magnitude(given) if self.nan_has_sign() && self.decode(given).is_nan() => {
                given & self.magnitude_mask()
            }
            _ => quiet,
        };
        let sign = (negative && self.nan_has_sign()) as u64;
        Some(nan | sign << self.magnitude_bits())
    }
}
