//! Slices of typed numbers against the methods of one.

use super::{RANDOM, at_every_level, f32s};
use exmy::minifloat::{
    Bf16, Binary8p3se, E2M1, E2M3, E4M3, E4M3Fnuz, E5M2, E8M0, ExMy, F16, Finite, FloatFormat,
    Int8, Minifloat,
};
use exmy::quantizer::Cast;
use exmy::round::{Overflow, Rounding, Rules};
use exmy::slice::{Converter, cast};

fn codes_are_valid<F: FloatFormat>(numbers: &[Minifloat<F>]) {
    assert!(cast::from_bits::<F>(cast::as_bits(numbers)).is_ok(), "{}", F::FORMAT);
}

/// From and to `f32` and `f64`, and to E4M3, F16 and E2M1, as one by one.
fn is_scalar<F: FloatFormat>() {
    let (x, y) = (f32s(), super::sources::f64s());
    let mut numbers = vec![Minifloat::<F>::default(); x.len()];
    let mut others = vec![Minifloat::<F>::default(); y.len()];
    let mut decoded = vec![0.0_f32; x.len()];
    let mut wide = vec![0.0_f64; x.len()];
    at_every_level(|level| {
        let place = |i: usize| format!("{} {level}, element {i}", F::FORMAT);
        Minifloat::from_slice(&x, &mut numbers);
        codes_are_valid(&numbers);
        for (i, (x, number)) in x.iter().zip(&numbers).enumerate() {
            assert_eq!(number.to_bits(), Minifloat::<F>::from_f32(*x).to_bits(), "{}", place(i));
        }
        Minifloat::from_slice(&y, &mut others);
        codes_are_valid(&others);
        for (i, (y, number)) in y.iter().zip(&others).enumerate() {
            assert_eq!(number.to_bits(), Minifloat::<F>::from_f64(*y).to_bits(), "{}", place(i));
        }
        Minifloat::to_slice(&numbers, &mut decoded);
        Minifloat::to_slice(&numbers, &mut wide);
        for (i, number) in numbers.iter().enumerate() {
            assert_eq!(decoded[i].to_bits(), number.to_f32().to_bits(), "{}", place(i));
            assert_eq!(wide[i].to_bits(), number.to_f64().to_bits(), "{}", place(i));
        }
        between(&numbers, &mut vec![E4M3::default(); x.len()]);
        between(&numbers, &mut vec![F16::default(); x.len()]);
        between(&numbers, &mut vec![E2M1::default(); x.len()]);
    });
}

fn between<F: FloatFormat, G: FloatFormat>(x: &[Minifloat<F>], out: &mut [Minifloat<G>]) {
    Minifloat::from_minifloat_slice(x, out);
    codes_are_valid(out);
    for (x, out) in x.iter().zip(out) {
        let one = Minifloat::<G>::from_minifloat(*x);
        assert_eq!(out.to_bits(), one.to_bits(), "{:?} to {}", x.to_bits(), G::FORMAT);
    }
}

#[test]
fn slices_are_what_the_methods_give() {
    fn of<F: FloatFormat>(_: &Minifloat<F>) {
        is_scalar::<F>();
    }
    of(&E4M3::default());
    of(&E5M2::default());
    of(&E2M1::default());
    of(&E2M3::default());
    of(&E4M3Fnuz::default());
    of(&E8M0::default());
    of(&Int8::default());
    of(&Binary8p3se::default());
    of(&F16::default());
    of(&Bf16::default());
    is_scalar::<ExMy<8, 3>>();
    is_scalar::<ExMy<3, 3, Finite>>();
}

/// A converter's rules reach typed slices, random words too.
#[test]
fn rules_of_a_converter() {
    let x = [0.3_f32; 700];
    let cast = Cast::new(E2M1::FORMAT).with_rounding(Rounding::stochastic(8));
    let converter = Converter::from(cast).with_random(RANDOM).starting_at(9);
    let mut numbers = [E2M1::default(); 700];
    converter.encode_typed(&x, &mut numbers);
    for (i, number) in numbers.iter().enumerate() {
        // 0.3 is 0.6 of the way to 0.5: up iff floor(0.6 * 256) and the word's top byte carry.
        let up = 153 + (RANDOM.word(i as u64 + 9) >> 24) >= 256;
        assert_eq!(number.to_f32(), if up { 0.5 } else { 0.0 }, "{i}");
    }
    let mut numbers = [E4M3::default(); 2];
    Converter::new(E4M3::FORMAT, Rules::DEFAULT.with_overflow(Overflow::Nan))
        .encode_typed(&[449.0, 465.0_f32], &mut numbers);
    assert!(numbers[0] == E4M3::MAX && numbers[1].is_nan());
}

#[test]
#[should_panic(expected = "numbers of e2m1 cannot hold codes of e4m3")]
fn another_format() {
    let mut numbers = [E2M1::default(); 2];
    Converter::new(E4M3::FORMAT, Rules::SATURATING).encode_typed(&[1.0_f32, 2.0], &mut numbers);
}

/// What is too large, by the format's own overflow and saturating: numbers, slices short and long, codes.
#[test]
fn overflow_has_two_names_everywhere() {
    let numbers = [E4M3::from_f32(1e6), E4M3::from_f64(1e6)];
    assert_eq!(numbers.map(E4M3::to_bits), [0x7F; 2]);
    let numbers = [E4M3::from_f32_saturating(-1e6), E4M3::from_f64_saturating(-1e6)];
    assert_eq!(numbers.map(E4M3::to_f32), [-448.0; 2]);
    let numbers = [E5M2::from_f32(1e6), E5M2::from_f32_saturating(1e6)];
    assert_eq!(numbers.map(E5M2::to_f32), [f32::INFINITY, 57344.0]);
    assert!(E4M3::from_f32_saturating(f32::NAN).is_nan());
    for count in [3, 500] {
        let (x, mut numbers) = (vec![1e6_f32; count], vec![E4M3::default(); count]);
        E4M3::from_slice(&x, &mut numbers);
        assert!(numbers.iter().all(|x| x.is_nan()));
        E4M3::from_slice_saturating(&x, &mut numbers);
        assert!(numbers.iter().all(|x| x.to_f32() == 448.0));
        let codes = |rules| Converter::new(E4M3::FORMAT, rules).encode::<f32, u8>(&x);
        assert_eq!(codes(Rules::DEFAULT), vec![0x7F; count]);
        assert_eq!(codes(Rules::SATURATING), vec![0x7E; count]);
    }
}
