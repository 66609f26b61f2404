//! The exact sum as its definition reads.

use super::Total;
use super::big::Big;
use crate::format::Value;
use crate::gemm::numbers::ExactRows;

/// The sum of the products of two vectors: big integers, one product at a time.
pub(in crate::gemm) fn sum(a: (&ExactRows, &[u64]), b: (&ExactRows, &[u64])) -> Total {
    let (mut total, mut infinities, mut nan) = (Big::ZERO, [false; 2], false);
    for (x, y) in a.1.iter().zip(b.1) {
        let (x, y) = (a.0.value(*x), b.0.value(*y));
        let negative = x.is_sign_negative() != y.is_sign_negative();
        match (x, y) {
            (Value::Finite { .. }, Value::Finite { .. }) => {
                let mut product = Big::from(x);
                product.multiply(y);
                total = total.plus(&product);
            }
            _ if x.is_nan() || y.is_nan() || x.is_zero() || y.is_zero() => nan = true,
            _ => infinities[usize::from(negative)] = true,
        }
    }
    match infinities {
        _ if nan => Total::Nan,
        [true, true] => Total::Nan,
        [false, false] => Total::Finite(total),
        [_, negative] => Total::Infinite { negative },
    }
}
