//! The definition of every conversion of slices: one call of the core an element.

use super::{Converter, Real};
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::minifloat::Bits;
use crate::round::Rules;

impl Converter {
    /// The definition of [`encode_into`](Self::encode_into).
    ///
    /// # Panics
    /// As there.
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
