//! Code to value: the definition of what each code means.

use super::{Format, Sign, Specials, Value, low_bits};

impl Format {
    /// The value of a code, exactly. Bits above [`bits`](Self::bits) are ignored, such as the top
    /// bit of a byte that holds an unsigned E4M3 scale.
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    ///
    /// assert_eq!(Format::E4M3FN.decode(0x7E), Value::from_f32(448.0));
    /// assert!(Format::E4M3FN.decode(0x7F).is_nan());
    /// assert_eq!(Format::INT8.decode(0x80), Value::from_f32(-2.0)); // no number of its size above zero
    /// assert_eq!(Format::UE4M3.decode(0xB8), Value::from_f32(1.0)); // the top bit is no part of a code
    /// ```
    #[inline]
    pub const fn decode(self, code: u64) -> Value {
        let code = code & low_bits(self.bits());
        let magnitude = code & self.magnitude_mask();
        let negative = code != magnitude;
        if matches!(self.sign, Sign::TwosComplement) {
            let sign = 1_u64 << self.man_bits;
            let significand = if negative { sign - magnitude } else { magnitude };
            return Value::Finite { negative, significand, exponent: self.lsb() };
        }
        if negative
            && magnitude == 0
            && matches!(self.specials, Specials::Fnuz | Specials::P3109 { .. })
        {
            return Value::Nan { negative: false };
        }
        if magnitude > self.max_code() {
            return match self.infinity_code(false) {
                Some(infinity) if magnitude == infinity => Value::Infinite { negative },
                _ => Value::Nan { negative },
            };
        }
        self.decode_finite(negative, magnitude)
    }

    #[inline]
    const fn decode_finite(self, negative: bool, magnitude: u64) -> Value {
        let field = magnitude >> self.man_bits;
        let trailing = magnitude & low_bits(self.man_bits());
        if magnitude == 0 && self.zero {
            let negative = negative && self.negative_zero;
            return Value::Finite { negative, significand: 0, exponent: self.lsb() };
        }
        // Fields at and above `first` have the hidden bit; the field below shares the lowest scale.
        let first = self.field_zero_is_low() as u64;
        let (hidden, above) = if field >= first { (1, field - first) } else { (0, 0) };
        Value::Finite {
            negative,
            significand: trailing | hidden << self.man_bits,
            exponent: self.lsb() + above as i32,
        }
    }
}
