//! Conversions from and to `f32`, `f64`, bytes and other formats.
//!
//! Narrowing has a name (`from_f32`), widening without loss is `From`. To nearest even there is a
//! short way for formats inside of binary64; it gives what [`Format`](crate::format::Format)'s conversions
//! give.

use super::fast::{By32, By64, Table};
use super::{Bits, FloatFormat, Minifloat};
use crate::format::{Specials, Value};
use crate::math::{Context, Operand};
use crate::round::{Flags, NanRules, Overflow, Rounded, Rounding, Rules, Standard};

impl<F: FloatFormat> Minifloat<F> {
    pub(super) const BY32: By32 = By32::of(F::FORMAT);
    pub(super) const BY64: By64 = By64::of(F::FORMAT);
    const SMALL: bool = F::FORMAT.bits() <= 8 && F::FORMAT.is_exact_in_f32();

    /// The rules of the operators: to nearest even, with the format's natural overflow and the
    /// canonical NaN. Tables of special cases are those of IEEE P3109 for its formats, of IEEE
    /// 754-2019 for all others.
    pub const RULES: Rules = Rules {
        nan: NanRules { keep_sign: false, ..NanRules::CANONICAL },
        standard: match F::FORMAT.specials() {
            Specials::P3109 { .. } => Standard::P3109,
            _ => Standard::Ieee754,
        },
        ..Rules::DEFAULT
    };

    /// An operation by any rules, with its flags: `op` gets the [`Context`] of this format and
    /// `rules`, whose methods take numbers of any formats and round once.
    ///
    /// ```
    /// use exmy::minifloat::{Bf16, E4M3, F16};
    /// use exmy::round::{Flags, Rounding};
    ///
    /// let up = E4M3::RULES.with_rounding(Rounding::TowardPositive);
    /// let (x, y) = (F16::from_f32(1.0), Bf16::from_f32(1.0 / 1024.0));
    /// let (sum, flags) = E4M3::with_rules(up, |context| context.add(x.into(), y.into()));
    /// assert_eq!((sum.to_f32(), flags), (1.125, Flags::INEXACT));
    /// ```
    #[inline]
    pub fn with_rules(rules: Rules, op: impl FnOnce(&Context) -> Rounded) -> (Self, Flags) {
        let Rounded { code, flags } = op(&Context::new(Self::FORMAT, rules));
        (Self::of(code), flags)
    }

    /// The context of the operators.
    pub(super) const CONTEXT: Context = Context::new(F::FORMAT, Self::RULES);

    /// The number as an operand of [`Context`]'s operations.
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    /// use exmy::minifloat::E4M3;
    ///
    /// let x = E4M3::from_f32(0.1); // 13 x 2^-7
    /// assert_eq!((x.operand().format, x.operand().code), (Format::E4M3FN, 0x1D));
    /// assert_eq!(x.value(), Value::from_f64(0.1015625));
    /// ```
    #[inline]
    pub fn operand(self) -> Operand {
        Operand::new(Self::FORMAT, self.code())
    }

    /// The exact value.
    #[inline]
    pub fn value(self) -> Value {
        Self::FORMAT.decode(self.code())
    }

    /// The nearest number, ties to even, with the format's natural overflow: infinity or NaN where
    /// there is one, else the largest value ([`Overflow::None`]). OCP's E4M3 has NaN and no infinity, so what
    /// is too large is NaN; [`from_f32_saturating`](Self::from_f32_saturating) gives 448. NaN becomes the
    /// format's NaN, or its largest value if it has none: 6 of E2M1.
    ///
    /// ```
    /// use exmy::minifloat::{E2M1, E4M3, E5M2};
    ///
    /// assert_eq!(E4M3::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(E5M2::from_f32(1e6), E5M2::INFINITY.unwrap());
    /// assert!(E4M3::from_f32(1e6).is_nan());
    /// assert_eq!(E2M1::from_f32(1e6), E2M1::MAX);
    /// ```
    #[inline]
    pub fn from_f32(x: f32) -> Self {
        if Self::BY32.takes(x) {
            Self::of(Self::BY32.encode(x).into())
        } else if !x.is_nan() && Self::BY64.takes(x.into()) {
            Self::of(Self::BY64.encode(x.into()))
        } else {
            Self::from_f32_with(x, Rounding::TiesToEven, Overflow::None)
        }
    }

    /// The nearest number, ties to even; the largest value for whatever is too large, infinity included
    /// ([`Overflow::Finite`]). NaN stays NaN where there is one. Frameworks cast tensors to FP8 like this.
    ///
    /// ```
    /// use exmy::minifloat::{E4M3, E5M2};
    ///
    /// let saturating = |x| E4M3::from_f32_saturating(x).to_f32();
    /// assert_eq!([1e6, -1e6, 0.3].map(saturating), [448.0, -448.0, 0.3125]);
    /// assert_eq!(E5M2::from_f32_saturating(f32::INFINITY), E5M2::MAX);
    /// assert!(E4M3::from_f32_saturating(f32::NAN).is_nan());
    /// ```
    #[inline]
    pub fn from_f32_saturating(x: f32) -> Self {
        Self::from_f32_with(x, Rounding::TiesToEven, Overflow::Finite)
    }

    /// The number that `mode` and `overflow` choose. Stochastic modes need random bits besides:
    /// [`from_f32_stochastic_with`](Self::from_f32_stochastic_with).
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    /// use exmy::round::{Overflow, Rounding};
    ///
    /// let max = E4M3::from_f32_with(1e6, Rounding::TiesToEven, Overflow::Finite);
    /// assert_eq!(max, E4M3::MAX);
    /// assert_eq!(E4M3::from_f32_with(1e6, Rounding::TowardZero, Overflow::None), max); // toward zero
    /// assert!(E4M3::from_f32_with(1e6, Rounding::TowardPositive, Overflow::None).is_nan());
    /// assert_eq!(E4M3::from_f64_with(1e-300, Rounding::TowardPositive, Overflow::None), E4M3::MIN_POSITIVE);
    /// ```
    ///
    /// # Panics
    /// If `mode` is stochastic.
    #[inline]
    #[track_caller]
    pub fn from_f32_with(x: f32, mode: Rounding, overflow: Overflow) -> Self {
        assert!(
            !mode.is_stochastic(),
            "{mode} rounding needs random bits: from_f32_stochastic_with takes them"
        );
        Self::of(Self::FORMAT.encode_f32(x, mode, overflow, 0).code)
    }

    /// Stochastic rounding, variant A, with natural overflow, by the top `bits` bits of the word
    /// `random`.
    ///
    /// ```
    /// use exmy::minifloat::E2M1;
    ///
    /// let with = |random| E2M1::from_f32_stochastic(2.25, random, 2).to_f32(); // a quarter above 2
    /// assert_eq!([0, 1 << 30, 2 << 30, 3 << 30].map(with), [2.0, 2.0, 2.0, 3.0]);
    /// assert_eq!(E2M1::from_f64_stochastic(2.0, u32::MAX, 32).to_f32(), 2.0); // exact numbers stay
    /// ```
    ///
    /// # Panics
    /// If `bits` is not in 1..=32.
    #[inline]
    pub fn from_f32_stochastic(x: f32, random: u32, bits: u32) -> Self {
        Self::from_f32_stochastic_with(x, Rounding::stochastic(bits), Overflow::None, random)
    }

    /// The number that `mode` and `overflow` choose, by the top bits of the word `random` if the mode
    /// is stochastic, of any variant.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    /// use exmy::round::{Overflow, Rounding};
    ///
    /// let number = |x, random| {
    ///     E4M3::from_f32_stochastic_with(x, Rounding::stochastic(8), Overflow::Finite, random).to_f32()
    /// };
    /// assert_eq!([0, u32::MAX].map(|random| number(1.1, random)), [1.0, 1.125]);
    /// assert_eq!(number(1e6, 0), 448.0);
    /// ```
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    #[inline]
    pub fn from_f32_stochastic_with(
        x: f32,
        mode: Rounding,
        overflow: Overflow,
        random: u32,
    ) -> Self {
        Self::of(Self::FORMAT.encode_f32(x, mode, overflow, random).code)
    }

    /// The nearest number, ties to even, with natural overflow; not by way of `f32`.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// let x = 1.0625 + 2.0_f64.powi(-40); // just above a tie
    /// assert_eq!((E4M3::from_f64(x).to_f32(), E4M3::from_f32(x as f32).to_f32()), (1.125, 1.0));
    /// ```
    #[inline]
    pub fn from_f64(x: f64) -> Self {
        if Self::BY64.takes(x) {
            Self::of(Self::BY64.encode(x))
        } else {
            Self::from_f64_with(x, Rounding::TiesToEven, Overflow::None)
        }
    }

    /// The nearest number, ties to even; the largest value for whatever is too large, infinity included.
    #[inline]
    pub fn from_f64_saturating(x: f64) -> Self {
        Self::from_f64_with(x, Rounding::TiesToEven, Overflow::Finite)
    }

    /// The number that `mode` and `overflow` choose. Stochastic modes need random bits besides:
    /// [`from_f64_stochastic_with`](Self::from_f64_stochastic_with).
    ///
    /// # Panics
    /// If `mode` is stochastic.
    #[inline]
    #[track_caller]
    pub fn from_f64_with(x: f64, mode: Rounding, overflow: Overflow) -> Self {
        assert!(
            !mode.is_stochastic(),
            "{mode} rounding needs random bits: from_f64_stochastic_with takes them"
        );
        Self::of(Self::FORMAT.encode_f64(x, mode, overflow, 0).code)
    }

    /// Stochastic rounding, variant A, with natural overflow, by the top `bits` bits of the word
    /// `random`.
    ///
    /// # Panics
    /// If `bits` is not in 1..=32.
    #[inline]
    pub fn from_f64_stochastic(x: f64, random: u32, bits: u32) -> Self {
        Self::from_f64_stochastic_with(x, Rounding::stochastic(bits), Overflow::None, random)
    }

    /// The number that `mode` and `overflow` choose, by the top bits of the word `random` if the mode
    /// is stochastic, of any variant.
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    #[inline]
    pub fn from_f64_stochastic_with(
        x: f64,
        mode: Rounding,
        overflow: Overflow,
        random: u32,
    ) -> Self {
        Self::of(Self::FORMAT.encode_f64(x, mode, overflow, random).code)
    }

    /// The number of this format nearest to one of another, ties to even, rounded once.
    ///
    /// ```
    /// use exmy::minifloat::{Bf16, E4M3, E5M2};
    ///
    /// assert_eq!(E5M2::from_minifloat(E4M3::from_f32(1.125)).to_f32(), 1.0); // a tie
    /// assert!(E4M3::from_minifloat(Bf16::from_f32(500.0)).is_nan());
    /// ```
    #[inline]
    pub fn from_minifloat<G: FloatFormat>(x: Minifloat<G>) -> Self {
        Self::of(Self::FORMAT.encode(x.value(), Rounding::TiesToEven, Overflow::None, 0).code)
    }

    /// As `f32`; exact where [`Format::is_exact_in_f32`](crate::format::Format::is_exact_in_f32) says so,
    /// else nearest even.
    ///
    /// ```
    /// use exmy::minifloat::{ExMy, Minifloat};
    ///
    /// type Wide = Minifloat<ExMy<9, 1>>;
    /// assert_eq!(Wide::MAX.to_f32(), f32::INFINITY); // 1.5 x 2^255
    /// assert_eq!(Wide::MAX.to_f64(), 1.5 * 2.0_f64.powi(255));
    /// ```
    #[inline]
    pub fn to_f32(self) -> f32 {
        if Self::SMALL {
            (const { &Table::<F>::F32 })[self.code() as usize & 0xFF]
        } else if Self::BY32.decodes {
            Self::BY32.decode(self.code() as u32, F::FORMAT)
        } else {
            self.value().to_f32()
        }
    }

    /// As `f64`; exact for every shape of up to 11 exponent and 52 significand bits with a usual
    /// bias, else nearest even.
    #[inline]
    pub fn to_f64(self) -> f64 {
        if Self::SMALL && !F::FORMAT.has_nan() {
            self.to_f32().into()
        } else if Self::BY64.decodes {
            Self::BY64.decode(self.code(), F::FORMAT)
        } else {
            self.value().to_f64()
        }
    }

    /// The code's bytes, low ones first.
    ///
    /// ```
    /// use exmy::minifloat::{E4M3, F16};
    ///
    /// assert_eq!(F16::from_f32(1.5).to_le_bytes(), [0x00, 0x3E]);
    /// assert_eq!(E4M3::from_le_bytes([0x38]).to_f32(), 1.0);
    /// ```
    #[inline]
    pub fn to_le_bytes(self) -> <F::Bits as Bits>::Bytes {
        self.to_bits().to_le_bytes()
    }

    /// The code's bytes, high ones first.
    #[inline]
    pub fn to_be_bytes(self) -> <F::Bits as Bits>::Bytes {
        self.to_bits().to_be_bytes()
    }

    /// The code's bytes in the machine's order.
    #[inline]
    pub fn to_ne_bytes(self) -> <F::Bits as Bits>::Bytes {
        if cfg!(target_endian = "big") { self.to_be_bytes() } else { self.to_le_bytes() }
    }

    /// From the code's bytes, low ones first.
    #[inline]
    pub fn from_le_bytes(bytes: <F::Bits as Bits>::Bytes) -> Self {
        Self::from_bits(F::Bits::from_le_bytes(bytes))
    }

    /// From the code's bytes, high ones first.
    #[inline]
    pub fn from_be_bytes(bytes: <F::Bits as Bits>::Bytes) -> Self {
        Self::from_bits(F::Bits::from_be_bytes(bytes))
    }

    /// From the code's bytes in the machine's order.
    #[inline]
    pub fn from_ne_bytes(bytes: <F::Bits as Bits>::Bytes) -> Self {
        if cfg!(target_endian = "big") {
            Self::from_be_bytes(bytes)
        } else {
            Self::from_le_bytes(bytes)
        }
    }
}

impl<F: FloatFormat> From<Minifloat<F>> for Operand {
    fn from(x: Minifloat<F>) -> Self {
        x.operand()
    }
}

impl<F: FloatFormat> From<Minifloat<F>> for Value {
    fn from(x: Minifloat<F>) -> Self {
        x.value()
    }
}
