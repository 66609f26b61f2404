//! Powers, logarithms to any base and cube roots of the typed scalars, against binary64 and by
//! exact midpoints.

use exmy::minifloat::*;

fn all<F: FloatFormat>() -> impl Iterator<Item = Minifloat<F>> {
    F::FORMAT.codes().map(|code| Minifloat::from_bits(F::Bits::from_u64(code)))
}

fn same<F: FloatFormat>(found: Minifloat<F>, expected: Minifloat<F>) -> bool {
    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
}

/// Against binary64's power, whose own error is below an ulp; exact ones and ties included.
fn powers<F: FloatFormat<Elementary = Yes>>() {
    for x in all::<F>() {
        for y in all::<F>() {
            let expected = Minifloat::<F>::from_f64(libm::pow(x.to_f64(), y.to_f64()));
            let found = x.powf(y);
            assert!(
                same(found, expected),
                "{} {x:?} to {y:?}: {found:?}, not {expected:?}",
                F::FORMAT
            );
            if y.is_finite() && y.to_f64() % 1.0 == 0.0 {
                assert!(same(x.powi(y.to_f32() as i32), found), "{} {x:?} to {y:?}", F::FORMAT);
            }
        }
    }
}

#[test]
fn powers_of_all_pairs_are_those_of_binary64() {
    powers::<Int8Format>();
    powers::<ExMy<4, 3, Fnuz>>();
    powers::<ExMy<5, 2>>();
    powers::<Binary8p3seFormat>();
}

#[test]
fn negative_powers_of_integers_saturate_at_their_end() {
    let x = Int8::from_f32(-0.75);
    assert_eq!(x.powi(-3).to_f32(), -2.0); // -2.37
    assert_eq!(x.powi(-2).to_f32(), 1.78125); // 1.777... = 113.8 / 64
    assert_eq!(x.powi(-4).to_f32(), 1.984375); // 3.16
}

/// `ln(x) / ln(base)` of binary64: what `f32::log` is, special values included.
#[test]
fn logarithms_to_every_base_are_those_of_binary64() {
    for x in all::<ExMy<4, 3>>() {
        for base in all::<ExMy<4, 3>>() {
            let quotient = libm::log(x.to_f64()) / libm::log(base.to_f64());
            let (found, expected) = (x.log(base), E4M3Ieee::from_f64(quotient));
            assert!(same(found, expected), "{x:?} to {base:?}: {found:?}, not {expected:?}");
        }
    }
    let [zero, half, two, four, infinity] = [0.0, 0.5, 2.0, 4.0, f32::INFINITY].map(F16::from_f32);
    assert_eq!(zero.log(half).to_f32(), f32::INFINITY);
    assert_eq!(infinity.log(half).to_f32(), f32::NEG_INFINITY);
    assert_eq!(four.log(infinity).to_bits(), 0);
    assert_eq!(four.log(zero).to_bits(), 0x8000);
    assert_eq!(four.log(half).to_f32(), -2.0);
    assert_eq!(zero.log(two).to_f32(), f32::NEG_INFINITY);
    assert!((-four).log(two).is_nan() && four.log(-two).is_nan() && zero.log(zero).is_nan());
}

/// The number lies between the cubes of the middles around its root. Middles have at most 16 bits
/// and their cubes 48, so binary64 has them exactly; no number is such a cube.
fn cube_roots<F: FloatFormat<Elementary = Yes, Signed = Yes>>() {
    let cube = |x: f64| x * x * x;
    let mut exact = 0;
    for x in all::<F>().filter(|x| x.is_finite() && !x.is_zero() && x.is_sign_positive()) {
        let y = x.cbrt();
        let middle = |other: Minifloat<F>| {
            let other = if other.is_nan() { f64::INFINITY } else { other.to_f64() };
            (y.to_f64() + other) / 2.0
        };
        let (low, high) = (middle(y.next_down()), middle(y.next_up()));
        assert!(cube(low) < x.to_f64() && x.to_f64() < cube(high), "{} {x:?}: {y:?}", F::FORMAT);
        assert_eq!((-x).cbrt().to_bits(), (-y).to_bits(), "{} {x:?}", F::FORMAT);
        exact += usize::from(cube(y.to_f64()) == x.to_f64());
    }
    assert!(exact > 0, "{}: not one exact cube", F::FORMAT);
}

#[test]
fn cube_roots_are_rounded_once() {
    cube_roots::<ExMy<5, 10>>();
    cube_roots::<ExMy<8, 7>>();
    cube_roots::<ExMy<1, 14>>();
    cube_roots::<ExMy<2, 13>>();
    cube_roots::<ExMy<2, 13, Fnuz>>();
    cube_roots::<ExMy<4, 3, Fn>>();
    cube_roots::<Binary8p3seFormat>();
    assert!(F16::NAN.unwrap().cbrt().is_nan());
    assert_eq!(F16::NEG_INFINITY.unwrap().cbrt(), F16::NEG_INFINITY.unwrap());
    assert_eq!(F16::from_f32(-0.0).cbrt().to_bits(), 0x8000);
    assert_eq!(Int8::MIN.cbrt().to_f32(), -1.265625); // -1.2599 = -80.6 / 64
}
