//! Describing a format of one's own, and which descriptions are formats.

use super::{Format, FormatError, Sign, Specials};

/// A [`Format`] being described; [`build`](Self::build) checks it.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct FormatBuilder {
    sign: Sign,
    exp_bits: u32,
    man_bits: u32,
    bias: Option<i32>,
    specials: Specials,
    zero: bool,
    negative_zero: Option<bool>,
    subnormals: bool,
}

impl FormatBuilder {
    /// The exponent bias; otherwise `2^(E-1) - 1`, or `2^(E-1)` for FNUZ and P3109 (0 for `E = 0`).
    pub const fn bias(mut self, bias: i32) -> Self {
        self.bias = Some(bias);
        self
    }

    /// Which codes are special; otherwise [`Specials::Ieee`] ([`Specials::Finite`] for two's
    /// complement).
    pub const fn specials(mut self, specials: Specials) -> Self {
        self.specials = specials;
        self
    }

    /// Whether code 0 is zero (it is, unless said otherwise) or the number `2^-B`.
    pub const fn zero(mut self, zero: bool) -> Self {
        self.zero = zero;
        self
    }

    /// Whether there is a negative zero; otherwise there is one wherever it can be: in signed
    /// formats of the classes [`Ieee`](Specials::Ieee), [`Fn`](Specials::Fn) and
    /// [`Finite`](Specials::Finite) with a zero. Without it the code with nothing but the sign bit
    /// set reads as zero and is never produced (DLFloat16).
    pub const fn negative_zero(mut self, negative_zero: bool) -> Self {
        self.negative_zero = Some(negative_zero);
        self
    }

    /// Whether exponent field 0 holds subnormal numbers (it does, unless said otherwise) or a
    /// binade of normal ones. Without a significand field there are none in either case.
    pub const fn subnormals(mut self, subnormals: bool) -> Self {
        self.subnormals = subnormals;
        self
    }

    /// The format described.
    ///
    /// ```
    /// use exmy::format::{Format, Sign, Specials};
    ///
    /// let format = Format::builder(Sign::Magnitude, 4, 3).bias(11).specials(Specials::Fnuz).build();
    /// assert_eq!(format, Ok(Format::E4M3B11FNUZ));
    /// // DLFloat16: no subnormals, and one zero.
    /// let builder = Format::builder(Sign::Magnitude, 6, 9).specials(Specials::Fn);
    /// let format = builder.subnormals(false).negative_zero(false).build()?;
    /// assert_eq!(format.decode(1 << 15), format.decode(0)); // the code of -0 reads as 0
    /// // Subnormals lie between zero and the first binade, so there are none without a zero.
    /// assert!(Format::builder(Sign::Unsigned, 4, 3).specials(Specials::Fn).zero(false).build().is_err());
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If no such format exists; the error names the parameter and what is possible.
    pub const fn build(self) -> Result<Format, FormatError> {
        let Self { sign, exp_bits, man_bits, specials, zero, .. } = self;
        if exp_bits > 16 || man_bits > 52 {
            return Err(FormatError::FieldTooWide { exp_bits, man_bits });
        }
        let magnitude_bits = exp_bits + man_bits;
        let bits = magnitude_bits + !matches!(sign, Sign::Unsigned) as u32;
        if bits > 64 {
            return Err(FormatError::TooManyBits { bits });
        }
        if matches!(sign, Sign::TwosComplement)
            && (exp_bits != 0 || !matches!(specials, Specials::Finite) || !zero || !self.subnormals)
        {
            return Err(FormatError::TwosComplementIsFixedPoint);
        }
        if matches!(specials, Specials::Ieee) && (exp_bits == 0 || man_bits == 0) {
            return Err(FormatError::NoRoomForNan { exp_bits, man_bits });
        }
        let nan_is_negative_zero = match specials {
            Specials::Fnuz => {
                if matches!(sign, Sign::Unsigned) {
                    return Err(FormatError::FnuzNeedsSign);
                }
                true
            }
            Specials::P3109 { .. } => matches!(sign, Sign::Magnitude),
            _ => false,
        };
        if !zero && nan_is_negative_zero {
            return Err(FormatError::NanNeedsZero);
        }
        if !zero && self.subnormals && man_bits > 0 {
            return Err(FormatError::SubnormalsNeedZero);
        }
        let natural = zero
            && matches!(sign, Sign::Magnitude)
            && matches!(specials, Specials::Ieee | Specials::Fn | Specials::Finite);
        let negative_zero = match self.negative_zero {
            Some(true) if !natural => return Err(FormatError::NoRoomForNegativeZero),
            Some(asked) => asked,
            None => natural,
        };
        let bias = match self.bias {
            Some(bias) => bias,
            None => {
                let half = (1_i32 << exp_bits) >> 1;
                match specials {
                    Specials::Fnuz | Specials::P3109 { .. } => half,
                    _ if exp_bits == 0 => 0,
                    _ => half - 1,
                }
            }
        };
        if bias < -Format::BIAS_LIMIT || bias > Format::BIAS_LIMIT {
            return Err(FormatError::BiasOutOfRange { bias });
        }
        let format = Format {
            sign,
            exp_bits: exp_bits as u8,
            man_bits: man_bits as u8,
            bias,
            specials,
            zero,
            negative_zero,
            // Without trailing bits there is nothing between zero and the first binade.
            subnormals: self.subnormals && man_bits > 0,
        };
        // What remains above the reserved codes must hold at least one number that is not zero.
        let codes = if magnitude_bits == 64 { u128::MAX >> 64 } else { (1 << magnitude_bits) - 1 };
        if codes < format.reserved() as u128 + zero as u128 {
            return Err(FormatError::NothingButZero { exp_bits, man_bits });
        }
        Ok(format)
    }
}

impl Format {
    /// The largest magnitude a bias may have. The widest exponent field (16 bits) needs 2^15.
    pub const BIAS_LIMIT: i32 = 1 << 20;

    /// The format whose every code stands for `2^power` times the number, if its bias may be that large.
    pub(crate) const fn times_power(self, power: i32) -> Option<Self> {
        let Some(bias) = self.bias.checked_sub(power) else { return None };
        if bias < -Self::BIAS_LIMIT || bias > Self::BIAS_LIMIT {
            return None;
        }
        Some(Self { bias, ..self })
    }

    /// Starts the description of a format of `exp_bits` (0..=16) and `man_bits` (0..=52), whose codes
    /// may have 64 bits with the sign.
    pub const fn builder(sign: Sign, exp_bits: u32, man_bits: u32) -> FormatBuilder {
        FormatBuilder {
            sign,
            exp_bits,
            man_bits,
            bias: None,
            specials: match sign {
                Sign::TwosComplement => Specials::Finite,
                _ => Specials::Ieee,
            },
            zero: true,
            negative_zero: None,
            subnormals: true,
        }
    }
}
