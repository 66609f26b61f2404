//! Functions of slices on memory so small that an interpreter which watches every access (miri)
//! walks through all of them: odd lengths, slices that begin anywhere, bytes behind the end. The
//! results are held against the definitions, which touch one element at a time.
//!
//! `scripts/miri.sh` has the command.

#![cfg(feature = "std")]

use exmy::block::{Axis, BlockFormat, BlockTensor, PlainBlocks};
use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::pack::{Code, pack_into, packed_len, unpack_into};
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding, Rules};
use exmy::slice::{Converter, Real, View, ViewMut, decode_into, decode_plain, words_into};

const RANDOM: Philox = Philox::new(5, Stream::new("small"));
/// Around the groups of eight codes and the registers of 64 bytes.
const LENGTHS: [usize; 10] = [0, 1, 2, 7, 8, 9, 31, 33, 64, 67];
/// What stands around an output and must stay.
const GUARD: u8 = 0xA5;

/// The stream, bit by bit: bit `j` of code `i` is bit `i * width + j`.
fn stream(codes: &[u64], width: u32) -> Vec<u8> {
    let mut bytes = vec![0; (codes.len() * width as usize).div_ceil(8)];
    for (i, code) in codes.iter().enumerate() {
        for j in 0..width as usize {
            let at = i * width as usize + j;
            bytes[at / 8] |= ((code >> j & 1) as u8) << (at % 8);
        }
    }
    bytes
}

fn packing<C: Code + Bits>(width: u32, count: usize, offset: usize) {
    let codes: Vec<u64> = (0..count as u64).map(|i| RANDOM.bits(i, width).into()).collect();
    let expected = stream(&codes, width);
    assert_eq!(packed_len(count, width), Some(expected.len()));
    let mut input = vec![C::from_u64(0); offset];
    input.extend(codes.iter().map(|code| C::from_u64(*code)));
    let mut bytes = vec![GUARD; offset + expected.len() + 9];
    let place = offset..offset + expected.len();
    pack_into(&input[offset..], width, &mut bytes[place.clone()]).unwrap();
    assert_eq!(bytes[place.clone()], expected, "{width} {count} {offset}");
    assert!(bytes[..offset].iter().chain(&bytes[place.end..]).all(|byte| *byte == GUARD));
    let guard = C::from_u64(GUARD.into());
    let mut back = vec![guard; offset + count + 9];
    unpack_into(&bytes[place], width, &mut back[offset..offset + count]).unwrap();
    assert_eq!(back[offset..offset + count], input[offset..], "{width} {count} {offset}");
    assert!(back[..offset].iter().chain(&back[offset + count..]).all(|code| *code == guard));
}

#[test]
fn packing_touches_its_own_bytes() {
    for width in 1..=16 {
        for (i, count) in LENGTHS.into_iter().enumerate() {
            packing::<u16>(width, count, i % 3);
            if width <= 8 {
                packing::<u8>(width, count, i % 5);
            }
        }
    }
}

/// Numbers of all sizes, infinity and NaN.
fn numbers(count: usize) -> Vec<f32> {
    let number = |i: u64| match i % 11 {
        3 => f32::INFINITY,
        5 => f32::NAN,
        7 => -0.0,
        _ => {
            let word = RANDOM.word(i);
            f32::from_bits(word & 0x807F_FFFF | (112 + word % 32) << 23)
        }
    };
    (0..count as u64).map(number).collect()
}

/// To codes and back, from the second element on.
fn conversion<S: Real, C: Bits>(converter: Converter, x: &[S]) {
    let count = x.len() - 1;
    let (x, guard) = (&x[1..], C::from_u64(GUARD.into()));
    let (mut codes, mut expected) = (vec![guard; count + 2], vec![guard; count + 2]);
    converter.encode_into(x, &mut codes[1..=count]);
    converter.encode_plain(x, &mut expected[1..=count]);
    assert_eq!(codes, expected, "{converter:?}");
    let bits = |x: &[S]| x.iter().map(|x| x.to_code()).collect::<Vec<_>>();
    let mut all = vec![x.first().copied().unwrap_or(S::from_code(0)); count + 2];
    let mut plain = all.clone();
    converter.fake_quantize_into(x, &mut all[1..=count]);
    converter.fake_quantize_plain(x, &mut plain[1..=count]);
    assert_eq!(bits(&all), bits(&plain), "{converter:?}");
    all[1..=count].copy_from_slice(x);
    converter.fake_quantize(&mut all[1..=count]);
    assert_eq!(bits(&all), bits(&plain), "in place, {converter:?}");
    decode_into(converter.format(), &codes[1..=count], &mut all[1..=count]);
    decode_plain(converter.format(), &codes[1..=count], &mut plain[1..=count]);
    assert_eq!(bits(&all), bits(&plain), "{converter:?}");
    let mut odd = vec![0_u16; count];
    let mut odd_plain = odd.clone();
    let to = Converter::new(Format::BF16, Rules::DEFAULT);
    to.recode_into(converter.format(), &codes[1..=count], &mut odd);
    to.recode_plain(converter.format(), &codes[1..=count], &mut odd_plain);
    assert_eq!(odd, odd_plain, "{converter:?}");
}

#[test]
fn conversions_touch_their_own_elements() {
    for name in ["e4m3", "e5m2", "e2m1", "e3m2", "e8m0", "int8", "ue4m3", "bf16", "f16", "e8m13"] {
        let format: Format = name.parse().unwrap();
        for mode in [Rounding::TiesToEven, Rounding::TowardZero, "sr8".parse().unwrap()] {
            let cast = Cast::new(format).with_rounding(mode);
            let converter = Converter::from(cast).with_random(RANDOM).starting_at(3);
            for count in [0, 1, 8, 67] {
                let x = numbers(count + 1);
                let wide: Vec<f64> = x.iter().map(|x| f64::from(*x) * 1.000_000_1).collect();
                match format.bits() {
                    ..=8 => conversion::<_, u8>(converter, &x),
                    9..=16 => conversion::<_, u16>(converter, &x),
                    _ => conversion::<_, u32>(converter, &x),
                }
                conversion::<_, u32>(converter, &wide);
            }
        }
    }
}

/// More than [a table](exmy::slice) is made for, and a chunk with a rest.
#[test]
fn longer_slices_too() {
    let x = numbers(1100);
    conversion::<_, u8>(Converter::new(Format::E4M3FN, Rules::SATURATING), &x);
    conversion::<_, u16>(Converter::new(Format::F16, Rules::DEFAULT), &x);
    let mut words = vec![0; 131];
    words_into(RANDOM, 6, &mut words);
    assert!(words.iter().enumerate().all(|(i, word)| *word == RANDOM.word(6 + i as u64)));
}

#[test]
fn blocks_touch_their_own_elements() {
    let (rows, cols) = (3, 37);
    let x: Vec<f32> =
        numbers(1 + rows * cols).iter().map(|x| if x.is_finite() { *x } else { 1.0 }).collect();
    for name in ["mxfp8-e4m3", "mxfp6-e2m3", "mxfp4", "mxint8", "nvfp4"] {
        let format: BlockFormat = name.parse().unwrap();
        for axis in [Axis::Cols, Axis::Rows] {
            let x = View::new(&x[1..], rows, cols);
            let (mode, policy) = (Rounding::TiesToEven, Overflow::Finite);
            let tensor = BlockTensor::quantize(x, axis, format, (mode, policy, RANDOM));
            let plain = PlainBlocks::quantize(x, axis, format, (mode, policy, RANDOM));
            let (found, expected) = (tensor.dequantize(), plain.dequantize());
            assert_eq!(found, expected, "{name} {axis:?}");
        }
    }
}

#[test]
fn views_stay_inside() {
    let mut data: Vec<u16> = (0..40).collect();
    let (rows, cols) = (5, 7);
    let view = View::with_strides(&data[1..], (rows, cols), (8, 1)).unwrap();
    for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
        assert_eq!(view.at(i, j), view.t().at(j, i));
        assert_eq!(usize::from(view.at(i, j)), 1 + 8 * i + j);
    }
    assert!(View::with_strides(&data[2..], (rows, cols), (8, 1)).is_err(), "one short");
    let out = ViewMut::new(&mut data, rows, 8);
    out.into_data().fill(3);
    assert!(data.iter().all(|x| *x == 3));
}

#[test]
fn packed_products_stay_inside() {
    use exmy::gemm::Operand;
    use exmy::gemm::fast::{Packed, Scaling, multiply, multiply_plain};

    let (m, n, k) = (3, 5, 18);
    let (x, w) = (numbers(m * k), numbers(n * k));
    for format in ["e2m1/32:e8m0", "e5m7/16:bf16"] {
        let quantize = |x: &[f32], rows| {
            let (x, format) = (View::new(x, rows, k), format.parse().unwrap());
            let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
            BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM))
        };
        let (x, w) = (quantize(&x, m), quantize(&w, n));
        let (x, w) = (Operand::from(&x), Operand::from(&w).t());
        let (mut found, mut expected) = (vec![1.0; m * n], vec![1.0; m * n]);
        let out = ViewMut::new(&mut found, m, n);
        multiply(&Packed::left(&x), &Packed::right(&w), out, Scaling::ACCUMULATE).unwrap();
        multiply_plain(&x, &w, ViewMut::new(&mut expected, m, n), Scaling::ACCUMULATE);
        assert!(found.iter().zip(&expected).all(|(x, y)| x.to_bits() == y.to_bits()));
    }
}
