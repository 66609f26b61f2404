//! What a number format is: a [`Format`] says which numbers exist, and which code each has.
//!
//! A format is data - sign convention, field widths, bias, special values - so that a sweep over a
//! hundred formats is a loop, not a hundred types. The parameters and their meaning are those of
//! OCP OFP8 1.0 and MX 1.0 (FP8, FP6, FP4, INT8, E8M0) and IEEE 754-2019 (binary16/32/64). The FNUZ
//! formats are those of arXiv 2206.02915, the P3109 family that of IEEE P3109 Interim Report 4.0.
//!
//! A finite magnitude code is read as exponent field `e` and trailing significand `T` of `M` bits:
//! `(1 + T / 2^M) * 2^(e - B)` for `e > 0` and `T / 2^M * 2^(1 - B)` for `e = 0`. Without
//! subnormals `e = 0` is one more binade, of which code 0 is zero unless the format has no zero.
//! Magnitude codes ascend with their values; reserved codes (NaN, infinity) lie above all finite
//! ones or take the place of negative zero. How a real number becomes a code is in
//! [`round`](crate::round).

#![forbid(unsafe_code)]

mod builder; // formats of one's own, checked
mod catalog; // the named formats, with their sources
mod codes; // which code is what
mod decode; // codes to values
mod error;
mod value; // exact values

pub use builder::FormatBuilder;
pub use catalog::NAMED;
pub use error::FormatError;
pub use value::Value;

/// How a code carries its sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sign {
    /// The top bit is the sign, the rest the magnitude.
    Magnitude,
    /// No sign bit: nothing below zero exists.
    Unsigned,
    /// The whole code is a two's complement integer, scaled by a power of two (MX INT8).
    TwosComplement,
}

/// Which codes are NaN and infinity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Specials {
    /// The top exponent holds infinity (`T = 0`) and NaNs (`T != 0`), as in IEEE 754.
    Ieee,
    /// Finite and NaN: only the all-ones magnitude is NaN; there is no infinity (OCP E4M3).
    Fn,
    /// As [`Fn`](Self::Fn), unsigned zero: the one NaN takes the code of negative zero.
    Fnuz,
    /// IEEE P3109: one NaN, one zero, and, if `infinite`, infinity above the largest finite value.
    P3109 {
        /// Whether the domain is extended (`e` in the name) rather than finite (`f`).
        infinite: bool,
    },
    /// Every code is a finite number (MX FP6, FP4, INT8).
    Finite,
}

impl Specials {
    /// All classes.
    pub const ALL: [Self; 6] = [
        Self::Ieee,
        Self::Fn,
        Self::Fnuz,
        Self::P3109 { infinite: true },
        Self::P3109 { infinite: false },
        Self::Finite,
    ];
}

/// A number format: which values exist and how they are encoded.
///
/// ```
/// use exmy::format::{Format, Value};
///
/// assert_eq!(Format::E4M3FN.max(), Value::from_f64(448.0));
/// assert_eq!(Format::E4M3FN.decode(0x38), Value::from_f64(1.0));
/// assert_eq!(Format::ieee(8, 5)?.bits(), 14);
/// # Ok::<(), exmy::format::FormatError>(())
/// ```
///
/// The queries of P3109 (Interim Report 4.0, Annex G) under their names here:
///
/// | P3109 | `Format` |
/// |---|---|
/// | BitwidthOf, PrecisionOf | [`bits`](Self::bits), [`precision`](Self::precision) |
/// | SignednessOf, DomainOf | [`is_signed`](Self::is_signed), [`has_infinity`](Self::has_infinity) |
/// | ExponentBitwidthOf | [`exp_bits`](Self::exp_bits) |
/// | TrailingSignificandBitwidthOf | [`man_bits`](Self::man_bits) |
/// | ExponentBiasOf | [`bias`](Self::bias) |
/// | MaxFiniteOf, MinFiniteOf | [`max`](Self::max), [`min`](Self::min) |
/// | MinPositiveOf | [`min_positive`](Self::min_positive) |
/// | MaxSubnormalOf, MinNormalOf | [`max_subnormal`](Self::max_subnormal), [`min_normal`](Self::min_normal) |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    sign: Sign,
    exp_bits: u8,
    man_bits: u8,
    bias: i32,
    specials: Specials,
    zero: bool,
    negative_zero: bool,
    subnormals: bool,
}

impl Format {
    /// The signed format with the conventions of IEEE 754: bias `2^(E-1) - 1`, infinities, NaNs,
    /// subnormals. `ieee(5, 10)` is binary16, `ieee(8, 7)` bfloat16, `ieee(8, 3)` E8M3.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Format::ieee(5, 10), Ok(Format::F16));
    /// assert!(Format::ieee(8, 0).is_err()); // infinity and NaN need a significand field
    /// ```
    ///
    /// # Errors
    /// If `exp_bits` is not in 1..=16 or `man_bits` not in 1..=52, or a code would have more than 64
    /// bits.
    pub const fn ieee(exp_bits: u32, man_bits: u32) -> Result<Self, FormatError> {
        Self::builder(Sign::Magnitude, exp_bits, man_bits).build()
    }

    /// `Binary{k}p{p}{s|u}{e|f}` of IEEE P3109: `k` bits in all, precision `p`.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let binary8p3se = Format::p3109(8, 3, true, true)?;
    /// assert_eq!(binary8p3se.bias(), 16); // one more than of E5M2
    /// assert_eq!(binary8p3se.max().to_f32(), 49152.0); // infinity takes one code, not a binade
    /// assert!(Format::p3109(8, 8, true, true).is_err()); // no bit is left for the exponent
    /// assert!(Format::p3109(8, 8, false, true).is_ok()); // without a sign one is
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If `k` is not in 3..=64 or `p` not in `1..k` (signed) or `1..=k` (unsigned). Also if a field
    /// is wider than this crate has (16 exponent and 52 trailing significand bits).
    pub const fn p3109(k: u32, p: u32, signed: bool, infinite: bool) -> Result<Self, FormatError> {
        if k <= 2 || k > 64 || p == 0 || p > k - signed as u32 {
            return Err(FormatError::NotP3109 { k, p, signed });
        }
        let (sign, exp_bits) =
            if signed { (Sign::Magnitude, k - p) } else { (Sign::Unsigned, k - p + 1) };
        Self::builder(sign, exp_bits, p - 1).specials(Specials::P3109 { infinite }).build()
    }

    /// Bits of a code. TF32 has 19; unsigned E4M3 has 7.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let fields = |f: Format| [f.bits(), f.storage_bits(), f.exp_bits(), f.man_bits(), f.precision()];
    /// assert_eq!(fields(Format::TF32), [19, 32, 8, 10, 11]);
    /// assert_eq!(fields(Format::UE4M3), [7, 8, 4, 3, 4]); // no sign bit
    /// assert_eq!(fields(Format::E8M0), [8, 8, 8, 0, 1]); // powers of two have one significant bit
    /// ```
    #[inline]
    pub const fn bits(self) -> u32 {
        self.magnitude_bits() + !matches!(self.sign, Sign::Unsigned) as u32
    }

    /// Bits of the smallest unsigned integer type that holds a code: 8, 16, 32 or 64. Codes lie in
    /// its low bits; the rest is zero in every code this crate produces and ignored in those it
    /// reads.
    pub const fn storage_bits(self) -> u32 {
        match self.bits() {
            0..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            _ => 64,
        }
    }

    /// Width of the exponent field, E.
    #[inline]
    pub const fn exp_bits(self) -> u32 {
        self.exp_bits as u32
    }

    /// Width of the trailing significand field, M.
    #[inline]
    pub const fn man_bits(self) -> u32 {
        self.man_bits as u32
    }

    /// Significant bits of a normal number, `M + 1`.
    #[inline]
    pub const fn precision(self) -> u32 {
        self.man_bits as u32 + 1
    }

    /// The exponent bias, B.
    ///
    /// ```
    /// use exmy::format::{Format, Sign, Specials};
    ///
    /// let named = [Format::E4M3_IEEE, Format::E4M3FNUZ, Format::E4M3B11FNUZ].map(Format::bias);
    /// assert_eq!(named, [7, 8, 11]);
    /// assert_eq!((Format::INT8.sign(), Format::INT8.bias()), (Sign::TwosComplement, 0));
    /// assert_eq!(Format::E2M1.specials(), Specials::Finite);
    /// ```
    #[inline]
    pub const fn bias(self) -> i32 {
        self.bias
    }

    /// The sign convention.
    #[inline]
    pub const fn sign(self) -> Sign {
        self.sign
    }

    /// The class of special values.
    #[inline]
    pub const fn specials(self) -> Specials {
        self.specials
    }

    /// Whether negative values exist.
    #[inline]
    pub const fn is_signed(self) -> bool {
        !matches!(self.sign, Sign::Unsigned)
    }

    /// Whether zero exists. Only scale formats such as E8M0 lack it.
    #[inline]
    pub const fn has_zero(self) -> bool {
        self.zero
    }

    /// Whether there is a second zero with the sign bit set. Where there could be one and the
    /// format declines it ([`FormatBuilder::negative_zero`]), that code reads as zero and is never
    /// produced.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let facts = |f: Format| [f.is_signed(), f.has_zero(), f.has_negative_zero(), f.has_subnormals()];
    /// assert_eq!(facts(Format::E4M3FN), [true; 4]);
    /// assert_eq!(facts(Format::E4M3FNUZ), [true, true, false, true]); // NaN has its code
    /// assert_eq!(facts(Format::E8M0), [false; 4]);
    /// assert!(!Format::E2M1.has_nan() && Format::E4M3FN.has_nan() && Format::E8M0.has_nan());
    /// assert!(!Format::E4M3FN.has_infinity() && Format::E4M3_IEEE.has_infinity());
    /// ```
    #[inline]
    pub const fn has_negative_zero(self) -> bool {
        self.negative_zero
    }

    /// Whether any code is NaN.
    #[inline]
    pub const fn has_nan(self) -> bool {
        !matches!(self.specials, Specials::Finite)
    }

    /// Whether infinity exists.
    #[inline]
    pub const fn has_infinity(self) -> bool {
        matches!(self.specials, Specials::Ieee | Specials::P3109 { infinite: true })
    }

    /// Whether subnormal numbers exist: numbers below [`emin`](Self::emin) with fewer significant
    /// bits.
    #[inline]
    pub const fn has_subnormals(self) -> bool {
        self.subnormals
    }

    /// Exponent of the lowest binade with full precision: `1 - B` where exponent field 0 holds
    /// zero (and subnormals), `-B` where it holds normal numbers.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let exponents = |f: Format| (f.lsb(), f.emin(), f.emax());
    /// assert_eq!(exponents(Format::E4M3FN), (-9, -6, 8)); // its last binade holds 448, not 480
    /// assert_eq!(exponents(Format::E8M0), (-127, -127, 127));
    /// assert_eq!(exponents(Format::INT8), (-6, 1, 0)); // all below 2: 127/64 and -2
    /// ```
    #[inline]
    pub const fn emin(self) -> i32 {
        self.field_zero_is_low() as i32 - self.bias
    }

    /// Exponent of the largest finite value, `floor(log2(max))`; 8 for E4M3FN, 2 for E2M1.
    pub const fn emax(self) -> i32 {
        match self.max() {
            Value::Finite { significand, exponent, .. } => exponent + significand.ilog2() as i32,
            _ => unreachable!(),
        }
    }

    /// Exponent of the last place of the smallest values: every value is a multiple of `2^lsb`.
    #[inline]
    pub const fn lsb(self) -> i32 {
        self.emin() - self.man_bits as i32
    }

    /// Number of codes, special ones included: `2^bits`.
    pub const fn code_count(self) -> u128 {
        1 << self.bits()
    }

    /// All codes, ascending.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Format::E2M1.codes().map(|code| Format::E2M1.to_f32(code)).sum::<f32>(), 0.0);
    /// assert_eq!((Format::F64.codes(), Format::F64.code_count()), (0..=u64::MAX, 1 << 64));
    /// ```
    pub const fn codes(self) -> core::ops::RangeInclusive<u64> {
        core::ops::RangeInclusive::new(0, low_bits(self.bits()))
    }

    /// Whether every value is a binary32 value, so that [`to_f32`](Self::to_f32) never rounds.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert!(Format::BF16.is_exact_in_f32() && Format::E8M0.is_exact_in_f32());
    /// let wide = Format::ieee(9, 1)?; // exponents of nine bits
    /// assert!(!wide.is_exact_in_f32() && wide.is_exact_in_f64());
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    pub const fn is_exact_in_f32(self) -> bool {
        self.fits(24, -149, 127)
    }

    /// Whether every value is a binary64 value, so that [`to_f64`](Self::to_f64) never rounds.
    pub const fn is_exact_in_f64(self) -> bool {
        self.fits(53, -1074, 1023)
    }

    const fn fits(self, precision: u32, lsb: i32, emax: i32) -> bool {
        // Of a format without normal numbers no significand has its hidden bit.
        let widest = self.man_bits() + self.min_normal_code().is_some() as u32;
        let lowest = match self.sign {
            // -2^M units is one binade above the largest positive value.
            Sign::TwosComplement => self.emax() + 1,
            _ => self.emax(),
        };
        widest <= precision && self.lsb() >= lsb && lowest <= emax
    }

    /// Width of the magnitude, `E + M`.
    #[inline]
    pub(crate) const fn magnitude_bits(self) -> u32 {
        self.exp_bits as u32 + self.man_bits as u32
    }

    /// The all-ones magnitude.
    #[inline]
    pub(crate) const fn magnitude_mask(self) -> u64 {
        low_bits(self.magnitude_bits())
    }

    /// Magnitude codes at the top that are not finite.
    #[inline]
    const fn reserved(self) -> u64 {
        match self.specials {
            Specials::Ieee => 1 << self.man_bits,
            Specials::Fn => 1,
            Specials::P3109 { infinite } => infinite as u64 + !self.is_signed() as u64,
            Specials::Fnuz | Specials::Finite => 0,
        }
    }

    /// Whether exponent field 0 lies *below* the first binade: zero alone, or zero and
    /// subnormals. Otherwise it is a binade of its own.
    #[inline]
    pub(crate) const fn field_zero_is_low(self) -> bool {
        self.zero && (self.subnormals || self.man_bits == 0)
    }

    /// The largest exponent field.
    const fn exp_field_max(self) -> i64 {
        (1 << self.exp_bits) - 1
    }
}

/// A mask of the lowest `bits` (0..=64) bits.
#[inline]
pub(crate) const fn low_bits(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}
