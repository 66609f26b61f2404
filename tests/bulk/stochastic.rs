//! Stochastic rounding: every number of bits and variant, words by index.

use exmy::block::Statistics;
use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::round::{Flush, Overflow, Rounding, Rules};
use exmy::slice::{Converter, View};

use super::{RANDOM, check, expected, format, formats, inputs, levels, spread, with_level};

fn modes(texts: &[&str]) -> Vec<Rounding> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn every_format_and_policy() {
    let modes = modes(&["sr1", "sr8", "sr17", "sr32", "sr4b", "sr4c"]);
    spread(&formats(), |format| {
        let x = inputs(*format, 100);
        for rounding in &modes {
            for overflow in Overflow::ALL {
                let cast = Cast { format: *format, rounding: *rounding, overflow };
                check(Converter::from(cast).with_random(RANDOM), &x);
            }
        }
    });
}

#[test]
fn every_number_of_bits() {
    let all: Vec<Rounding> = (1..=32).map(Rounding::stochastic).collect();
    let b: Vec<Rounding> =
        modes(&["sr1b", "sr2b", "sr11b", "sr19b", "sr29b", "sr30b", "sr31b", "sr32b"]);
    spread(&["e4m3", "e5m2", "e2m1", "bf16", "f16", "e8m3", "e4m3fnuz", "tf32", "e5m0"], |text| {
        let format = format(text);
        let x = inputs(format, 1000);
        for rounding in all.iter().chain(&b) {
            check(
                Converter::from(Cast::new(format).with_rounding(*rounding)).with_random(RANDOM),
                &x,
            );
            for flush in [Flush::Input, Flush::Candidates, Flush::Output] {
                let rules = Rules::DEFAULT.with_rounding(*rounding).with_flush(flush);
                check(Converter::new(format, rules).with_random(RANDOM), &x[..1000]);
            }
        }
    });
}

/// Element i takes word i, whatever the slice's length or the kernel's stride.
#[test]
fn words_by_index() {
    let x = vec![0.3_f32; 5000];
    let mode = Rounding::stochastic(8);
    let converter =
        Converter::new(Format::E2M1, Rules::SATURATING.with_rounding(mode)).with_random(RANDOM);
    for level in levels() {
        let mut all = x.clone();
        with_level(level, || converter.fake_quantize(&mut all));
        // 0.3 is 0.6 of the way from 0 to 0.5: up iff floor(0.6 * 256) + R >= 256 with R the top
        // byte.
        for (i, y) in all.iter().enumerate() {
            let up = 153 + (RANDOM.word(i as u64) >> 24) >= 256;
            assert_eq!(*y, if up { 0.5 } else { 0.0 }, "{level} {i}");
        }
        // From any element on, also where the counter's lower word overflows.
        for first in [1, 3, 64, (1 << 34) - 101] {
            let part = converter.starting_at(first);
            let codes: Vec<u8> = with_level(level, || part.encode(&x[..300]));
            let wide: Vec<u64> = codes.iter().map(|code| u64::from(*code)).collect();
            assert_eq!(wide, expected(&part, &x[..300], first), "{level} {first}");
        }
    }
}

/// Words of the caller's own round as those of a generator do, if they are the same: on the fast paths,
/// by grids, tables and the definition, of every type, whole and in parts.
#[test]
fn words_of_ones_own() {
    let words: Vec<u32> = (0..3000).map(|i| RANDOM.word(i)).collect();
    for text in ["e4m3", "e2m1", "e8m0", "e5m2", "e8m22", "int8"] {
        let (to, x) = (format(text), inputs(format(text), 3000));
        let x = &x[..3000];
        let wide: Vec<f64> = x.iter().map(|x| f64::from(*x) * 1.0001).collect();
        let small: Vec<u8> = (0..3000).map(|i| (i % 251) as u8).collect();
        for bits in [1, 8, 17, 32] {
            let cast = Cast::new(to).with_rounding(Rounding::stochastic(bits));
            let theirs = Converter::from(cast).with_random(RANDOM);
            let ours = Converter::from(cast).with_words(&words);
            for level in levels() {
                let all = |c: &Converter<'_>| {
                    let part = c.starting_at(100);
                    let mut recoded = vec![0_u32; 3000];
                    c.recode_into(Format::E4M3FN, &small, &mut recoded);
                    let mut data = x.to_vec();
                    c.fake_quantize(&mut data);
                    let data: Vec<u32> = data.iter().map(|x| x.to_bits()).collect();
                    let codes = [c.encode::<f32, u32>(x), c.encode(&wide), recoded, data];
                    (codes, part.encode::<f32, u32>(&x[..2900]))
                };
                let (found, expected) = with_level(level, || (all(&ours), all(&theirs)));
                assert!(found == expected, "{text} sr{bits} {level}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "3 elements from word 2 on need as many random words; 4 were given")]
fn words_must_be_enough() {
    let cast = Cast::new(Format::E4M3FN).with_rounding(Rounding::stochastic(8));
    let converter = Converter::from(cast).with_words(&[0; 4]).starting_at(2);
    converter.encode::<f32, u8>(&[1.0; 2]);
    converter.fake_quantize(&mut [1.0_f32; 3]);
}

/// Indices begin anew after the last one, on the fast path and element by element (`e8m0` has no grid).
#[test]
fn indices_wrap() {
    let x = [0.3_f32, 1.3, -0.6, 5.1, 0.3];
    let mode = Rounding::stochastic(8);
    for (text, start) in [("e2m1", u64::MAX - 1), ("e8m0", u64::MAX - 1), ("e8m0", u64::MAX)] {
        let cast = Cast::new(format(text)).with_rounding(mode);
        let converter = Converter::from(cast).with_random(RANDOM);
        let each: Vec<u8> = (0..5_u64)
            .flat_map(|i| {
                converter
                    .starting_at(start.wrapping_add(i))
                    .encode::<f32, u8>(&x[i as usize..][..1])
            })
            .collect();
        for level in levels() {
            let all: Vec<u8> = with_level(level, || converter.starting_at(start).encode(&x));
            assert_eq!(all, each, "{text} {level}");
        }
        let wide = x.map(f64::from);
        assert_eq!(converter.starting_at(start).encode::<f64, u8>(&wide), each, "{text} f64");
        let found = Statistics::of_cast(View::new(&x, 5, 1), &converter.starting_at(start));
        assert_eq!(found.count, 5);
    }
}

/// The mean over many words is the number, to four standard deviations of a mean of 2^16.
#[test]
fn unbiased() {
    let mode = Rounding::stochastic(20);
    let converter =
        Converter::new(Format::E4M3FN, Rules::SATURATING.with_rounding(mode)).with_random(RANDOM);
    for (x, gap) in [(1.03_f32, 0.125), (-300.7, 32.0), (0.0011, 0.001953125), (0.017, 0.001953125)]
    {
        let mut data = vec![x; 1 << 16];
        converter.fake_quantize(&mut data);
        let mean = data.iter().map(|x| f64::from(*x)).sum::<f64>() / data.len() as f64;
        assert!((mean - f64::from(x)).abs() < 4.0 * gap * 0.5 / 256.0, "{x}: {mean}");
    }
}

#[test]
#[should_panic(expected = "needs random words")]
fn words_must_be_given() {
    let mode = Rounding::stochastic(8);
    let mut codes = [0_u8; 2];
    Converter::new(Format::E4M3FN, Rules::SATURATING.with_rounding(mode))
        .encode_into(&[1.0_f32; 2], &mut codes);
}
