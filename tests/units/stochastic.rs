//! Units that round by random words: against exact sums in integers, over all words of few bits, and by hand.

use crate::{Random, code, near, rows, unit};
use exmy::format::Format;
use exmy::gemm::unit::{Preset, Unit};
use exmy::round::Rounding;

/// Every number of the oracle is a multiple of 2^-PLACES.
const PLACES: i32 = 60;

/// A format by its fields: bits of exponent and mantissa, and the bias.
type Fields = (u32, u32, i32);

/// The number of a code, in units of 2^-PLACES, and the exponent of its field.
fn read((exponent, mantissa, bias): Fields, code: u64) -> (i128, i32) {
    let field = (code >> mantissa & ((1 << exponent) - 1)) as i32;
    let digits = i128::from(code & ((1 << mantissa) - 1));
    let digits = if field == 0 { digits } else { digits | 1 << mantissa };
    let e = field.max(1) - bias;
    let value = digits << (e - mantissa as i32 + PLACES);
    (if code >> (exponent + mantissa) & 1 == 1 { -value } else { value }, e)
}

/// What P3109 says of srN, variants A, B and C: whether `rest / whole` of a gap goes up under `random`.
fn goes_up(variant: char, n: u32, rest: i128, whole: i128, random: i128) -> bool {
    let cut = (rest << n) / whole;
    match variant {
        'a' => cut + random >= 1 << n,
        'b' => (rest << (n + 1)) / whole + 2 * random + 1 >= 2 << n,
        _ => {
            let left = 2 * ((rest << n) - cut * whole);
            let nearest = cut + i128::from(left > whole || (left == whole && cut % 2 == 1));
            nearest + random >= 1 << n
        }
    }
}

/// A chain of fused steps that cut at `f` bits and round to e5m2 by four random bits; the number, in units of
/// 2^-PLACES. `None` if one overflows.
fn chain(
    (l, f, variant): (usize, i32, char),
    products: &[(i128, i32)],
    addend: (i128, i32),
    words: &[u32],
) -> Option<i128> {
    let mut sum = addend;
    for (terms, word) in products.chunks(l).zip(words) {
        let all = || terms.iter().chain([&sum]).filter(|(value, _)| *value != 0);
        let Some(top) = all().map(|(_, e)| *e).max() else {
            sum = (0, 0);
            continue;
        };
        let cut = top - f + PLACES;
        let exact: i128 =
            all().map(|(value, _)| value.signum() * (value.abs() >> cut << cut)).sum();
        let magnitude = exact.abs();
        if magnitude == 0 {
            sum = (0, 0);
            continue;
        }
        // Three significant bits, no finer than 2^-16.
        let last = (magnitude.ilog2() as i32 - 2).max(PLACES - 16);
        let (whole, rest) = (magnitude >> last, magnitude & ((1 << last) - 1));
        let up = goes_up(variant, 4, rest, 1 << last, i128::from(word >> 28));
        let rounded = (whole + i128::from(up)) << last;
        if rounded > 57344 << PLACES {
            return None;
        }
        let exponent = if rounded == 0 { 0 } else { rounded.ilog2() as i32 - PLACES };
        // The next step aligns what f16 holds, whose exponents end at -14.
        sum = (exact.signum() * rounded, exponent.max(-14));
    }
    Some(sum.0)
}

#[test]
fn steps_are_exact_sums_rounded_by_their_words() {
    let mut random = Random(17);
    let (e2m1, e3m2, f16) = ((2, 1, 1), (3, 2, 3), (5, 10, 15));
    let (mut compared, mut by_words) = (0, 0);
    for (l, f, variant) in [(3, 5, 'a'), (3, 5, 'b'), (2, 4, 'c'), (1, 12, 'a'), (4, 20, 'c')] {
        let text = format!("custom,l={l},f={f},floor=none,out=e5m2@sr4{variant}:e2m1,e3m2+f16");
        let unit = unit(&text);
        for _ in 0..2000 {
            let k = 1 + random.below(8) as usize;
            let a: Vec<u64> = (0..k).map(|_| random.below(16)).collect();
            let b: Vec<u64> = (0..k).map(|_| random.below(64)).collect();
            let c = near(&mut random, Format::F16, 15, 8);
            let steps = k.div_ceil(l);
            assert_eq!(unit.words(k), steps, "{text}");
            let words: Vec<u32> = (0..steps).map(|_| random.word() as u32).collect();
            let (x, y) = (unit.rows(&a, &[], k).unwrap(), unit.columns(&b, &[], k).unwrap());
            let found = unit.dot_with(&x.row(0), &y.row(0), c, &words);
            let explained = unit.explain_with(&x.row(0), &y.row(0), c, &words);
            let mut many = [c];
            unit.multiply_with(&x, &y, &mut many, &words);
            assert_eq!((explained.code, many[0]), (found, found), "{text}");
            let products: Vec<(i128, i32)> = a
                .iter()
                .zip(&b)
                .map(|(a, b)| {
                    let ((x, ex), (y, ey)) = (read(e2m1, *a), read(e3m2, *b));
                    ((x >> 30) * (y >> 30), ex + ey)
                })
                .collect();
            let of = |words: &[u32]| chain((l, f, variant), &products, read(f16, c), words);
            let Some(expected) = of(&words) else { continue };
            let number = unit.result().to_f64(found);
            let wanted = expected as f64 / (1_u64 << PLACES) as f64;
            assert_eq!(number, wanted, "{text} {a:x?} {b:x?} {c:x} {words:x?}");
            assert!(number != 0.0 || found == 0, "what rounds to zero is +0");
            compared += 1;
            by_words += u32::from(of(&vec![0; steps]) != of(&vec![u32::MAX; steps]));
        }
    }
    assert!(compared > 9000 && by_words > 3000, "{compared} {by_words}");
}

/// Of all words of four bits as many round up as the exact fraction says, cut or rounded to sixteenths.
#[test]
fn the_share_of_words_that_round_up_is_the_fraction() {
    for (variant, share) in [
        ('a', (|j| j / 4) as fn(u32) -> u32),
        ('b', |j| (2 * j + 4) / 8),
        ('c', |j| j / 4 + u32::from(j % 4 == 3 || (j % 4 == 2 && j / 4 % 2 == 1))),
    ] {
        let unit = unit(&format!("custom,l=1,out=e5m2@sr4{variant}:e5m2"));
        let (a, b) = (rows(&unit, true, &[1.0], &[]), rows(&unit, false, &[1.0], &[]));
        for j in 0..64 {
            // 1 + j/256, j 64ths of the way from 1 to 1.25.
            for sign in [1.0, -1.0] {
                let c = code(Format::F32, sign * (1.0 + f64::from(j) / 256.0) - 1.0);
                let up = (0..16_u32).filter(|random| {
                    let result = |low| {
                        let word = random << 28 | low;
                        let bits = unit.dot_with(&a.row(0), &b.row(0), c, &[word]);
                        f64::from(f32::from_bits(bits as u32))
                    };
                    // Bits below the top four mean nothing.
                    assert_eq!(result(0), result(0x0FFF_FFFF));
                    assert!([1.0, 1.25].contains(&(sign * result(0))));
                    sign * result(0) == 1.25
                });
                assert_eq!(up.count() as u32, share(j), "sr4{variant}, {j} of 64, sign {sign}");
            }
        }
    }
}

/// The number of a dot product, its scales all one.
fn number(unit: &Unit, a: &[f64], b: &[f64], c: f64, words: &[u32]) -> f64 {
    let scales = |k: usize, left: bool| {
        let input = if left { unit.a() } else { unit.b() };
        vec![1.0; input.scales(k)]
    };
    let (a, b) = (
        rows(unit, true, a, &scales(a.len(), true)),
        rows(unit, false, b, &scales(b.len(), false)),
    );
    let found = unit.dot_with(&a.row(0), &b.row(0), code(unit.result(), c), words);
    unit.result().to_f64(found)
}

/// Up and down, by one random bit.
const UP: u32 = 1 << 31;
const DOWN: u32 = 0;

#[test]
fn each_step_has_its_word() {
    // 1.125 is half way from 1 to 1.25; half of one more is exact.
    let chained = unit("custom,l=1,out=e5m2@sr1:e5m2");
    for (words, sum) in
        [([DOWN, DOWN], 1.5), ([DOWN, UP], 1.5), ([UP, DOWN], 1.75), ([UP, UP], 1.75)]
    {
        assert_eq!(number(&chained, &[1.0, 0.5], &[1.0, 1.0], 0.125, &words), sum, "{words:x?}");
    }
    // Quarters: the products 0 and 1 and then 2 and 3, each with a rounding.
    let quarters = unit("custom,order=quarters,l=8,out=e5m2@sr1:e5m2+f16");
    assert_eq!([1, 8, 9].map(|k| quarters.words(k)), [2, 2, 4]);
    let of = |a: [f64; 4], words: [u32; 2]| number(&quarters, &a, &[1.0; 4], 0.0, &words);
    assert_eq!(of([1.0, 0.125, 0.5, 0.0], [UP, DOWN]), 1.75);
    assert_eq!(of([1.0, 0.125, 0.5, 0.0], [DOWN, UP]), 1.5);
    assert_eq!(of([1.0, 0.0, 0.125, 0.0], [UP, DOWN]), 1.0);
    assert_eq!(of([1.0, 0.0, 0.125, 0.0], [DOWN, UP]), 1.25);
    // Sums of four in steps of two and one of two, each added to nearest: the third step's word decides.
    let promoted = unit("custom,l=2,promote=4,out=e5m2@sr1:e5m2");
    assert_eq!([4, 5, 6, 7, 8].map(|k| promoted.words(k)), [2, 3, 3, 4, 4]);
    let a = [0.0, 0.0, 0.0, 0.0, 1.0, 0.125];
    for (words, sum) in [([UP, UP, DOWN], 1.0), ([DOWN, DOWN, UP], 1.25)] {
        assert_eq!(number(&promoted, &a, &[1.0; 6], 0.0, &words), sum);
    }
    assert_eq!(unit("hopper,promote=40,out=e8m13@sr8:e4m3").words(100), 5);
}

/// 1.5 times 1.5 is half way from 2 to 2.5 in e5m2, whatever adds it.
#[test]
fn every_aligned_order_takes_words() {
    for text in [
        "custom,out=e5m2@sr1:e2m1",
        "custom,align=exact,out=e5m2@sr1:e2m1",
        "custom,align=sticky,out=e5m2@sr1:e2m1",
        "custom,order=late,out=e5m2@sr1:e2m1",
        "custom,order=halves,out=e5m2@sr1:e2m1",
        "custom,order=groups,l=64,f=35,out=e5m2@sr1:nvfp4",
        "custom,out=e5m2@sr1:mxfp4",
        "hopper,out=e5m2@sr1:e4m3",
    ] {
        let unit = unit(text);
        assert!(unit.is_stochastic() && unit.words(1) == 1, "{text}");
        for (word, sum) in [(DOWN, 2.0), (UP, 2.5)] {
            assert_eq!(number(&unit, &[1.5], &[1.5], 0.0, &[word]), sum, "{text}");
        }
        assert_eq!(unit.to_string().parse::<Unit>(), Ok(unit), "{text}");
    }
    // Beyond the largest number, up is infinity: half way from 57344 to 65536.
    let unit = unit("custom,out=e5m2@sr1:e5m2");
    for (word, sum) in [(DOWN, 57344.0), (UP, f64::INFINITY)] {
        assert_eq!(number(&unit, &[57344.0, 4096.0], &[1.0, 1.0], 0.0, &[word]), sum);
    }
}

#[test]
fn a_register_takes_one_word_at_its_end() {
    // 2049 is half way from 2048 to 2050, the neighbours in f16.
    let halfway = unit("custom,l=1,out=int24b-14@sr2:int8b-6+f16");
    assert_eq!([1, 2, 100].map(|k| halfway.words(k)), [1; 3]);
    for (top, sum) in [(0, 2048.0), (1, 2048.0), (2, 2050.0), (3, 2050.0)] {
        assert_eq!(number(&halfway, &[64.0, 1.0], &[32.0, 1.0], 0.0, &[top << 30]), sum);
    }
    // A result in fixed point: three quarters of the way from 1 to 2.
    let fixed = unit("custom,out=int24b-14@sr2:int8+int8b-6");
    for (top, sum) in [(0, 1.0), (1, 2.0), (2, 2.0), (3, 2.0)] {
        assert_eq!(number(&fixed, &[1.75], &[1.0], 0.0, &[top << 30]), sum);
    }
}

#[test]
fn words_of_many_results_stand_one_result_after_another() {
    let mut random = Random(3);
    for text in ["hopper,l=4,out=e8m13@sr8:e4m3", "custom,out=int30b-20@sr3:e5m2+bf16"] {
        let unit = unit(text);
        let (m, n, k) = (3, 5, 9);
        let mut codes = |count: usize| -> Vec<u64> {
            (0..count).map(|_| near(&mut random, unit.a().format, 8, 4)).collect()
        };
        let a = unit.rows(&codes(m * k), &[], k);
        let b = unit.columns(&codes(n * k), &[], k);
        let (a, b) = (a.unwrap(), b.unwrap());
        let each = unit.words(k);
        let words: Vec<u32> = (0..m * n * each).map(|_| random.word() as u32).collect();
        let mut sums = vec![0; m * n];
        unit.multiply_with(&a, &b, &mut sums, &words);
        for (e, (sum, words)) in sums.iter().zip(words.chunks(each)).enumerate() {
            assert_eq!(*sum, unit.dot_with(&a.row(e / n), &b.row(e % n), 0, words), "{text}");
        }
    }
}

#[test]
fn the_steps_show_their_words() {
    let unit = unit("custom,l=1,out=e5m2@sr4:e5m2");
    let (a, b) = (rows(&unit, true, &[1.0, 0.5], &[]), rows(&unit, false, &[1.0, 1.0], &[]));
    let words = [0x8123_4567, 0xF000_0000];
    let text =
        unit.explain_with(&a.row(0), &b.row(0), code(Format::F32, 0.125), &words).to_string();
    for part in [
        "\nrandom word 0x81234567: 8 of 16\nround sr4 to e5m2: 0x3d = 1.25\n",
        "\nrandom word 0xf0000000: 15 of 16\nround sr4 to e5m2: 0x3f = 1.75, exact\n",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

/// Without words there is no result that could be meant.
#[test]
fn words_must_be_there_and_no_more() {
    let stochastic = unit("custom,l=2,out=f32@sr8:e5m2");
    let fixed = unit("custom,l=2:e5m2");
    // What the three calls say, with words or without.
    let refused = |unit: &Unit, words: Option<&[u32]>| {
        let (x, y) = (rows(unit, true, &[1.0; 3], &[]), rows(unit, false, &[1.0; 3], &[]));
        let (a, b) = (x.row(0), y.row(0));
        let calls: [&dyn Fn() -> u64; 3] = match words {
            None => [&|| unit.dot(&a, &b, 0), &|| unit.explain(&a, &b, 0).code, &|| {
                let mut sums = [0];
                unit.multiply(&x, &y, &mut sums);
                sums[0]
            }],
            Some(words) => [
                &|| unit.dot_with(&a, &b, 0, words),
                &|| unit.explain_with(&a, &b, 0, words).code,
                &|| {
                    let mut sums = [0];
                    unit.multiply_with(&x, &y, &mut sums, words);
                    sums[0]
                },
            ],
        };
        calls.map(|call| {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
            caught.err().map(|why| *why.downcast::<String>().unwrap())
        })
    };
    for words in [None, Some(&[][..]), Some(&[1]), Some(&[1, 2, 3])] {
        for why in refused(&stochastic, words) {
            let why = why.expect("is refused");
            assert!(why.contains("needs 2 for each"), "{words:?}: {why}");
        }
    }
    assert_eq!(refused(&stochastic, Some(&[1, 2])), [None, None, None]);
    assert_eq!(refused(&fixed, Some(&[])), [None, None, None]);
    assert!(refused(&fixed, Some(&[1]))[0].is_some());
}

#[test]
fn orders_of_ieee_operations_are_refused() {
    for text in [
        "fast,out=f32@sr8:bf16",
        "amx,out=f32@sr8:bf16",
        "custom,order=tree,out=f32@sr16:bf16",
        "custom,order=fma,out=f32@sr32c:bf16",
    ] {
        let error = text.parse::<Unit>().unwrap_err().to_string();
        assert!(error.contains("fused, quarters, late, halves and groups"), "{text}: {error}");
    }
    for (text, part) in [
        ("custom,out=f32@sr0:bf16", "N from 1 to 32"),
        ("custom,out=f32@sr33:bf16", "N from 1 to 32"),
        ("custom,out=f64@sr8:bf16", "inside that of the result"),
    ] {
        let error = text.parse::<Unit>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let unit = Unit::new(Preset::Custom, Format::E5M2, Format::E5M2, Format::F32).unwrap();
    let mut parameters = *unit.parameters();
    parameters.rounding = match Rounding::stochastic(8) {
        Rounding::Stochastic { variant, .. } => Rounding::Stochastic { variant, bits: 33 },
        other => other,
    };
    let error = unit.with_parameters(parameters).unwrap_err().to_string();
    assert!(error.contains("1 to 32 random bits"), "{error}");
}
