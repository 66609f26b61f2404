//! The codes people ask for by name: ends of the range, one, NaN, infinity.

use super::{Format, Sign, Specials, Value, low_bits};

impl Format {
    /// Code of the largest finite value.
    #[inline]
    pub const fn max_code(self) -> u64 {
        self.magnitude_mask() - self.reserved()
    }

    /// The largest finite value.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let ends = |f: Format| (f.max_code(), f.max().to_f32(), f.min_code(), f.min().to_f32());
    /// assert_eq!(ends(Format::E4M3FN), (0x7E, 448.0, 0xFE, -448.0)); // 0x7F is NaN
    /// assert_eq!(ends(Format::INT8), (0x7F, 1.984375, 0x80, -2.0));
    /// assert_eq!(ends(Format::UE4M3), (0x7E, 448.0, 0x00, 0.0));
    /// ```
    pub const fn max(self) -> Value {
        self.decode(self.max_code())
    }

    /// Code of the smallest finite value: the negative of the largest, -2 of INT8, and code 0
    /// without a sign.
    pub const fn min_code(self) -> u64 {
        match self.sign {
            Sign::Magnitude => self.max_code() | 1 << self.magnitude_bits(),
            Sign::Unsigned => 0,
            Sign::TwosComplement => 1 << self.man_bits,
        }
    }

    /// The smallest finite value: the most negative one, or that of code 0 without a sign.
    pub const fn min(self) -> Value {
        self.decode(self.min_code())
    }

    /// Code of the smallest value above zero.
    #[inline]
    pub const fn min_positive_code(self) -> u64 {
        self.zero as u64
    }

    /// The smallest value above zero, subnormal or not.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Format::E5M2.min_positive().to_f32(), 2.0_f32.powi(-16)); // subnormal
    /// assert_eq!(Format::E5M2.min_positive_code(), 1);
    /// assert_eq!(Format::E8M0.min_positive_code(), 0); // code 0 is 2^-127
    /// ```
    pub const fn min_positive(self) -> Value {
        self.decode(self.min_positive_code())
    }

    /// Code of the smallest positive normal value, if there is one.
    pub const fn min_normal_code(self) -> Option<u64> {
        let code = if !self.field_zero_is_low() {
            self.zero as u64
        } else if self.exp_bits == 0 {
            return None;
        } else {
            1 << self.man_bits
        };
        if code <= self.max_code() { Some(code) } else { None }
    }

    /// The smallest positive normal value. `None` where all values are subnormal: without an
    /// exponent field, and for one exponent bit under IEEE conventions.
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    ///
    /// let e2m1 = Format::E2M1;
    /// assert_eq!((e2m1.min_normal_code(), e2m1.min_normal()), (Some(2), Some(Value::from_f32(1.0))));
    /// assert_eq!((e2m1.max_subnormal_code(), e2m1.max_subnormal()), (Some(1), Some(Value::from_f32(0.5))));
    /// assert_eq!(Format::ieee(1, 2)?.min_normal_code(), None); // its upper binade is infinity and NaN
    /// assert_eq!(Format::INT8.max_subnormal_code(), None); // integers have no exponent to be below
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    pub const fn min_normal(self) -> Option<Value> {
        match self.min_normal_code() {
            Some(code) => Some(self.decode(code)),
            None => None,
        }
    }

    /// Code of the largest positive subnormal value, if there is one.
    pub const fn max_subnormal_code(self) -> Option<u64> {
        if !self.subnormals || matches!(self.sign, Sign::TwosComplement) {
            return None;
        }
        let below_normal = low_bits(self.man_bits());
        // Without normal values the largest value of all.
        Some(if below_normal < self.max_code() { below_normal } else { self.max_code() })
    }

    /// The largest subnormal value. `None` where there is none: without a significand field, by
    /// choice, and in two's complement, whose integers have no exponent to be below.
    pub const fn max_subnormal(self) -> Option<Value> {
        match self.max_subnormal_code() {
            Some(code) => Some(self.decode(code)),
            None => None,
        }
    }

    /// The canonical NaN, positive where NaN has a sign. It is the one ml_dtypes produces: under
    /// IEEE conventions only the quiet bit is set (E5M2: 0x7E).
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let nans = |f: Format| (f.nan_code(), f.nan_count(), f.nan_has_sign());
    /// assert_eq!(nans(Format::E5M2), (Some(0x7E), 6, true)); // 0x7D is signaling
    /// assert_eq!(nans(Format::E4M3FN), (Some(0x7F), 2, true));
    /// assert_eq!(nans(Format::E4M3FNUZ), (Some(0x80), 1, false)); // in the place of -0
    /// assert_eq!(nans(Format::E2M1), (None, 0, false));
    /// ```
    pub const fn nan_code(self) -> Option<u64> {
        let all = self.magnitude_mask();
        match self.specials {
            Specials::Ieee => Some((all ^ low_bits(self.man_bits())) | 1 << (self.man_bits - 1)),
            Specials::Fn => Some(all),
            Specials::Fnuz => Some(all + 1),
            Specials::P3109 { .. } if self.is_signed() => Some(all + 1),
            Specials::P3109 { .. } => Some(all),
            Specials::Finite => None,
        }
    }

    /// Whether NaN has a sign bit of its own, so that there is a negative NaN.
    #[inline]
    pub const fn nan_has_sign(self) -> bool {
        self.is_signed() && matches!(self.specials, Specials::Ieee | Specials::Fn)
    }

    /// How many codes are NaN, of both signs together.
    pub const fn nan_count(self) -> u64 {
        let signs = 1 + self.nan_has_sign() as u64;
        match self.specials {
            Specials::Ieee => signs * low_bits(self.man_bits()),
            Specials::Fn => signs,
            Specials::Fnuz | Specials::P3109 { .. } => 1,
            Specials::Finite => 0,
        }
    }

    /// How many codes are infinite: 0, 1 or 2.
    pub const fn infinity_count(self) -> u64 {
        self.infinity_code(false).is_some() as u64 + self.infinity_code(true).is_some() as u64
    }

    /// Code of positive or negative infinity, if it exists.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Format::E5M2.infinity_code(true), Some(0xFC));
    /// assert_eq!(Format::E4M3FN.infinity_count(), 0);
    /// let unsigned = Format::p3109(8, 3, false, true)?;
    /// assert_eq!((unsigned.infinity_code(false), unsigned.infinity_code(true)), (Some(0xFE), None));
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    pub const fn infinity_code(self, negative: bool) -> Option<u64> {
        if negative && !self.is_signed() {
            return None;
        }
        let magnitude = match self.specials {
            Specials::Ieee => self.magnitude_mask() ^ low_bits(self.man_bits()),
            Specials::P3109 { infinite: true } => self.magnitude_mask() - !self.is_signed() as u64,
            _ => return None,
        };
        Some(magnitude | (negative as u64) << self.magnitude_bits())
    }

    /// Code of 1.0, if the format has it: a bias far from the usual one can put it out of reach.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!((Format::E4M3FN.one_code(), Format::E4M3FN.epsilon_code()), (Some(0x38), Some(0x20)));
    /// assert_eq!(Format::INT8.one_code(), Some(0x40)); // 64/64
    /// assert_eq!(Format::E8M0.epsilon_code(), Some(0x7F)); // from 1 to 2, which is 1
    /// ```
    pub const fn one_code(self) -> Option<u64> {
        let lsb = self.lsb();
        let code = if self.emin() <= 0 {
            // 2^0 starts the binade `-emin` above the lowest one.
            let binades = self.field_zero_is_low() as i64 - self.emin() as i64;
            if binades > self.exp_field_max() {
                return None;
            }
            (binades as u64) << self.man_bits
        } else if lsb <= 0 && self.field_zero_is_low() {
            1 << -lsb
        } else {
            return None;
        };
        let in_range = code <= self.max_code() && !(code == 0 && self.zero);
        if in_range { Some(code) } else { None }
    }

    /// Code of the distance from 1.0 to the next larger value, if both and the distance exist.
    pub const fn epsilon_code(self) -> Option<u64> {
        let Some(one) = self.one_code() else { return None };
        if one == self.max_code() {
            return None;
        }
        // The last place of 1.0: that of its binade, or of the lowest one if 1.0 is subnormal.
        let place =
            if self.lsb() > -(self.man_bits as i32) { self.lsb() } else { -(self.man_bits as i32) };
        // Code of 2^place: subnormal places count from the lowest, binades follow above.
        let above = place as i64 - self.emin() as i64;
        let first = self.field_zero_is_low() as i64;
        let code = if above >= 0 {
            ((above + first) as u64) << self.man_bits
        } else if self.field_zero_is_low() {
            1 << (place - self.lsb())
        } else {
            return None;
        };
        if code <= self.max_code() && !(code == 0 && self.zero) { Some(code) } else { None }
    }
}
