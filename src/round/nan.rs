//! NaN: which code a result has, and what a NaN becomes where the target has none.
//!
//! Standards and devices agree on little here; [`NanRules`](super::NanRules) holds the choices.

use super::{AbsentNan, Flags, NanCode, Payload, Rounded, Rules};
use crate::format::{Format, Specials, low_bits};

impl Format {
    /// Whether a code is a signaling NaN: under IEEE conventions, one without the quiet bit.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert!(Format::E5M2.is_signaling(0x7D) && !Format::E5M2.is_signaling(0x7E)); // the quiet bit
    /// assert!(!Format::E5M2.is_signaling(0x7C)); // infinity
    /// assert!(!Format::E4M3FN.is_signaling(0x7F)); // its only NaN is quiet
    /// ```
    #[inline]
    pub const fn is_signaling(self, code: u64) -> bool {
        matches!(self.specials(), Specials::Ieee)
            && self.decode(code).is_nan()
            && code >> (self.man_bits() - 1) & 1 == 0
    }

    /// The payload of a NaN code, quiet bit included, with its first bit at the top of the word.
    /// Only the IEEE-like formats have one; elsewhere, and of numbers, it is 0.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let payload = Format::F32.nan_payload(0x7FC0_0001); // 23 bits, at the top
    /// assert_eq!(payload, 1 << 63 | 1 << 41);
    /// assert_eq!(Format::E4M3FN.nan_payload(0x7F), 0);
    /// ```
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
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{NanRules, Payload, Rules};
    ///
    /// let nan = NanRules::CANONICAL.with_payload(Payload::Keep);
    /// let keep = Rules::DEFAULT.with_nan(nan);
    /// let payload = Format::F32.nan_payload(0x7F80_2001); // signaling, with bits 13 and 0
    /// assert_eq!(Format::F16.round_nan(false, payload, &keep).code, 0x7E01); // quieted; bit 13 is left
    /// assert_eq!(Format::F16.round_nan(false, payload, &Rules::DEFAULT).code, 0x7E00);
    /// assert_eq!(Format::E2M1.round_nan(true, payload, &keep).code, 0x7); // no NaN: the largest number
    /// ```
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
                let negative = negative && self.nan_has_sign();
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
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Profile, Rules};
    ///
    /// assert_eq!(Format::F32.made_nan(&Rules::DEFAULT).code, 0x7FC0_0000);
    /// assert_eq!(Format::F32.made_nan(&Profile::X86.rules(Format::F32)).code, 0xFFC0_0000); // "indefinite"
    /// ```
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
