//! Every code of every format of up to 8 bits decodes as the model says, and encodes back.

use crate::common::{Meaning, Model, Num};
use crate::{meaning, small};
use exmy::format::Format;
use exmy::round::{Flags, Overflow, Rounding};

pub(crate) fn check_decoding(format: Format, model: &Model) {
    assert_eq!(format.bits(), model.bits(), "{format}");
    for code in 0..1_u64 << model.bits() {
        let (ours, theirs) = (format.decode(code), model.decode(code));
        assert_eq!(meaning(ours), theirs, "{format} {code:#x}");
        let expected = match theirs {
            Meaning::Nan(_) => f64::NAN,
            Meaning::Infinite(negative) => {
                if negative {
                    -f64::INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Meaning::Finite(negative, n) => {
                if negative {
                    -n.to_f64()
                } else {
                    n.to_f64()
                }
            }
        };
        let x = format.to_f64(code);
        assert!(x.to_bits() == expected.to_bits() || x.is_nan() && expected.is_nan(), "{format}");
        if format.is_exact_in_f32() && !x.is_nan() {
            assert_eq!(f64::from(format.to_f32(code)).to_bits(), x.to_bits(), "{format} {code:#x}");
        }
        let back = format.encode(ours, Rounding::TiesToEven, Overflow::None, 0);
        if theirs != Meaning::Nan(true) && theirs != Meaning::Nan(false) {
            assert_eq!((back.code, back.flags), (code, Flags::NONE), "{format} {code:#x}");
        }
    }
    let finite = |code: Option<u64>| code.map(|code| meaning(format.decode(code)));
    assert_eq!(
        finite(Some(format.max_code())),
        Some(Meaning::Finite(false, model.magnitudes()[model.max_code() as usize]))
    );
    let one =
        model.magnitudes()[..=model.max_code() as usize].iter().position(|n| *n == Num::new(1, 0));
    assert_eq!(format.one_code(), one.map(|code| code as u64), "{format}");
    assert_eq!(format.nan_code(), model.nan(false), "{format}");
    for negative in [false, true] {
        assert_eq!(format.infinity_code(negative), model.infinity(negative), "{format}");
    }
    // The smallest value is normal if its successor is not twice it, or it is alone in its binade.
    let normal = model.magnitudes()[..=model.max_code() as usize]
        .iter()
        .position(|n| n.integer >> model.man_bits != 0);
    let normal = if model.twos_complement { None } else { normal };
    assert_eq!(format.min_normal_code(), normal.map(|code| code as u64), "{format}");
    let exact = |code| {
        let x = format.to_f64(code);
        x.is_nan() || f64::from(x as f32) == x
    };
    assert_eq!(format.is_exact_in_f32(), format.codes().all(exact), "{format}");
}

#[test]
fn codes_mean_what_the_definitions_say() {
    for (format, model) in small(true).into_iter().chain(small(false)) {
        check_decoding(format, &model);
    }
}
