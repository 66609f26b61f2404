//! The definition of every conversion of slices: one call of the core an element.

use super::{Converter, Real};
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::minifloat::Bits;
use crate::round::Rules;

impl Converter<'_> {
    /// The definition of [`encode_into`](Self::encode_into).
    ///
    /// # Panics
    /// As there.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let mut codes = [0_u8; 3];
    /// Converter::new(Format::E2M1, Rules::SATURATING).encode_plain(&[0.25_f32, 0.75, -9.0], &mut codes);
    /// assert_eq!(codes, [0x0, 0x2, 0xF]); // both ties go to even
    /// ```
    pub fn encode_plain<S: Real, C: Bits>(&self, x: &[S], codes: &mut [C]) {
        self.check::<C>(x.len(), codes.len());
        for (i, (x, code)) in x.iter().zip(codes).enumerate() {
            *code = C::from_u64(self.code(Operand::new(S::FORMAT, x.to_code()), i));
        }
    }

    /// The definition of [`recode_into`](Self::recode_into).
    ///
    /// # Panics
    /// As there.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let mut codes = [0_u8; 2];
    /// let converter = Converter::new(Format::E4M3FN, Rules::SATURATING);
    /// converter.recode_plain(Format::E5M2, &[0x7C_u8, 0x01], &mut codes);
    /// assert_eq!(codes, [0x7E, 0x00]); // infinity saturates; 2^-16 is below half of 2^-9
    /// ```
    pub fn recode_plain<C: Bits, D: Bits>(&self, from: Format, codes: &[C], out: &mut [D]) {
        self.check::<D>(codes.len(), out.len());
        for (i, (code, out)) in codes.iter().zip(out).enumerate() {
            *out = D::from_u64(self.code(Operand::new(from, code.to_u64()), i));
        }
    }

    /// The definition of [`fake_quantize_into`](Self::fake_quantize_into).
    ///
    /// # Panics
    /// As there.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let mut out = [0.0_f32; 3];
    /// Converter::new(Format::E2M1, Rules::SATURATING).fake_quantize_plain(&[2.5_f32, 5.0, -0.1], &mut out);
    /// assert_eq!(out, [2.0, 4.0, -0.0]);
    /// assert!(out[2].is_sign_negative());
    /// ```
    pub fn fake_quantize_plain<S: Real>(&self, x: &[S], out: &mut [S]) {
        self.check::<u64>(x.len(), out.len());
        for (i, (x, out)) in x.iter().zip(out).enumerate() {
            let code = self.code(Operand::new(S::FORMAT, x.to_code()), i);
            *out = image(self.to, code);
        }
    }

    /// The code of element `i` of a slice.
    pub(super) fn code(&self, x: Operand, i: usize) -> u64 {
        Context::new(self.to, self.rules).with_random(self.word(i)).convert(x).code
    }
}

/// The definition of [`decode_into`](super::decode_into).
///
/// # Panics
/// As there.
///
/// ```
/// use exmy::slice::decode_plain;
/// use exmy::format::Format;
///
/// let mut x = [0.0_f64; 3];
/// decode_plain(Format::E8M0, &[0x00_u8, 0x7F, 0xFF], &mut x);
/// assert_eq!(x[..2], [2.0_f64.powi(-127), 1.0]); // no zero
/// assert!(x[2].is_nan());
/// ```
pub fn decode_plain<C: Bits, T: Real>(format: Format, codes: &[C], out: &mut [T]) {
    assert_eq!(codes.len(), out.len(), "input and output of a conversion have different lengths");
    for (code, out) in codes.iter().zip(out) {
        *out = image(format, code.to_u64());
    }
}

/// The value of a code as another type, to nearest even where that has to round.
pub(super) fn image<T: Real>(format: Format, code: u64) -> T {
    let context = Context::new(T::FORMAT, Rules::DEFAULT);
    T::from_code(context.convert(Operand::new(format, code)).code)
}
