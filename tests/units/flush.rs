//! Units that read subnormal operands as zero and flush subnormal results: fused steps against exact sums in
//! integers of any length, the other orders against themselves on operands without subnormal numbers, and by
//! hand.

use num_bigint::{BigInt, Sign};

use crate::oracle::{PLACES, Step, read, scaled};
use crate::{Random, code, near, rows, unit};
use exmy::format::Format;
use exmy::gemm::unit::{Description, Formats, Input, Unit};
use exmy::vectors::tiles::{Tiles, TilesRequest};

const FLUSHES: [&str; 5] =
    ["flush-none", "flush-input", "flush-candidates", "flush-output", "flush-tiny"];

/// A sum as binary16 to nearest even, by what docs/units.md says of `flush`, and its sign of zero of
/// `underflow`.
fn rounded(step: &Step, sum: &BigInt, flush: &str) -> u64 {
    let kept = step.round(sum, Format::F16);
    let normal = 0x0400;
    let magnitude = BigInt::from(sum.magnitude().clone());
    let least: BigInt = BigInt::from(1) << (PLACES - 14) as usize;
    let below = magnitude < least;
    let zero = match flush {
        "flush-input" => below,
        // Half way from 0 to the smallest normal number is a tie, and 0 is even.
        "flush-candidates" if below && magnitude.clone() * 2 > least => {
            return kept & 0x8000 | normal;
        }
        "flush-candidates" => below,
        "flush-output" => kept & 0x7FFF < normal,
        // Eleven bits as if the exponent went on: 2^-14 is the next number from half a place below it on.
        "flush-tiny" => magnitude < least - (BigInt::from(1) << (PLACES - 26) as usize),
        _ => return kept,
    };
    let negative = sum.sign() == Sign::Minus;
    match zero {
        true if step.signed && negative => 0x8000,
        true => 0,
        false => kept,
    }
}

/// Chains of fused steps around the smallest normal number of binary16, 2^-14.
#[test]
fn fused_steps_are_exact_sums_that_are_flushed() {
    let mut random = Random(29);
    for (number, flush) in FLUSHES.into_iter().enumerate() {
        for (subnormals, zeroed) in [("exact", false), ("zero", true), ("positive-zero", true)] {
            for signed in [false, true] {
                let (l, f) = [(1, 30), (3, 24), (4, 12)][number % 3];
                let underflow = if signed { "signed" } else { "positive" };
                let text = format!(
                    "custom,l={l},f={f},floor=none,out=f16@rne,flush={flush},subnormals={subnormals},\
                     underflow={underflow}:e5m2,e4m3+f16"
                );
                let unit = unit(&text);
                let step = Step { signed, ..Step::new(l, f, None, (10, -14, true)) };
                // A number's significand, last place and exponent; of a zero only that it is one.
                let operand = |format: Format, code: u64| {
                    let (x, place, e) = read(format, code);
                    let subnormal = x != 0 && x.unsigned_abs() >> format.man_bits() == 0;
                    (if subnormal && zeroed { 0 } else { x }, place, e)
                };
                let mut changed = 0;
                for _ in 0..1500 {
                    let k = 1 + random.below(7) as usize;
                    let mut some = |format: Format, centre: u64, width: u64| -> Vec<u64> {
                        (0..k).map(|_| near(&mut random, format, centre, width)).collect()
                    };
                    let (a, b) = (some(Format::E5M2, 5, 5), some(Format::E4M3FN, 3, 3));
                    let c = near(&mut random, Format::F16, 0, 2);
                    let mut sum = c;
                    for first in (0..k).step_by(l) {
                        let mut terms = Vec::new();
                        for at in first..k.min(first + l) {
                            let (x, place_x, ex) = operand(Format::E5M2, a[at]);
                            let (y, place_y, ey) = operand(Format::E4M3FN, b[at]);
                            terms.push((scaled(x * y, place_x + place_y), ex + ey));
                        }
                        let (z, place, ez) = operand(Format::F16, sum);
                        terms.push((scaled(z, place), ez));
                        sum = rounded(&step, &step.add(&terms), flush);
                    }
                    let x = unit.rows(&a, &[], k).unwrap();
                    let y = unit.columns(&b, &[], k).unwrap();
                    let found = unit.dot(&x.row(0), &y.row(0), c);
                    assert_eq!(found, sum, "{text} {a:x?} {b:x?} {c:x}");
                    let mut many = [c];
                    unit.multiply(&x, &y, &mut many);
                    assert_eq!(many, [sum], "many: {text}");
                    let plain = text.replace(flush, "flush-none").replace(subnormals, "exact");
                    let plain: Unit = plain.parse().unwrap();
                    let x = plain.rows(&a, &[], k).unwrap();
                    let y = plain.columns(&b, &[], k).unwrap();
                    changed += u32::from(plain.dot(&x.row(0), &y.row(0), c) != sum);
                }
                let expected = flush != "flush-none" || zeroed;
                assert_eq!(changed > 100, expected, "{text}: {changed} changed");
            }
        }
    }
}

/// Without its subnormal numbers a format's code is zero of some sign; so a unit that reads them as zero
/// gives what the same one gives for those, and one step's flushed result is that of no flush or zero.
#[test]
fn every_aligned_order_zeroes_operands_and_flushes_results() {
    let mut random = Random(3);
    for (model, formats, l) in [
        ("custom,l=4", "bf16+bf16", 4),
        ("custom,l=4,align=exact,out=f16@rne", "e5m2+f16", 4),
        ("custom,l=4,zeros=-20,out=f16@rup", "e5m2+f16", 4),
        ("hopper", "e5m2+f16", 32),
        ("hopper-mma", "e5m2,e4m3+f16", 32),
        ("custom,order=late,l=4,out=f16@rne", "e5m2+f16", 4),
        ("custom,order=halves,l=4,out=f16@rne", "e5m2+f16", 4),
        ("custom,order=groups,l=64,f=35,out=f16@rne", "nvfp4+f16", 64),
        ("custom,l=4,out=int30b-10@rne", "e5m2+f16", 4),
    ] {
        let of = |keys: &str| unit(&format!("{model}{keys}:{formats}"));
        let (plain, zeroed) = (of(""), of(",subnormals=zero"));
        let (flushed, both) =
            (of(",flush=flush-output"), of(",flush=flush-output,subnormals=zero"));
        let result = plain.result();
        let zero = |format: Format, code: u64| {
            let magnitude = code & !(u64::from(format.is_signed()) << (format.bits() - 1));
            if magnitude < format.min_normal_code().unwrap() { 0 } else { code }
        };
        let mut counts = [0; 2];
        for i in 0..600 {
            let k = if i % 2 == 0 { l } else { 3 * l };
            let some = |random: &mut Random, input: Input| -> Vec<u64> {
                let fields = (input.format.max_code() >> input.format.man_bits()) + 1;
                (0..k)
                    .map(|_| match random.below(4) {
                        0 => near(random, input.format, 0, 0),
                        1 if i % 3 == 0 => near(random, input.format, 0, 0),
                        _ if random.below(k as u64 / 2) == 0 => {
                            near(random, input.format, fields / 4, 2)
                        }
                        _ => 0,
                    })
                    .collect()
            };
            let scales = |random: &mut Random, input: Input| -> Vec<u64> {
                let format = input.scale.map(|scale| scale.format);
                (0..input.scales(k)).map(|_| near(random, format.unwrap(), 0, 2) & 0x7F).collect()
            };
            let (a, b) = (some(&mut random, plain.a()), some(&mut random, plain.b()));
            let (x, y) = (scales(&mut random, plain.a()), scales(&mut random, plain.b()));
            let c = near(&mut random, result, 0, 1);
            let run = |unit: &Unit, [a, x, b, y]: [&[u64]; 4], c: u64| {
                let (rows, columns) = (unit.rows(a, x, k).unwrap(), unit.columns(b, y, k).unwrap());
                let found = unit.dot(&rows.row(0), &columns.row(0), c);
                let explained = unit.explain(&rows.row(0), &columns.row(0), c);
                let mut many = [c];
                unit.multiply(&rows, &columns, &mut many);
                assert_eq!([explained.code, many[0]], [found; 2], "{unit}");
                found
            };
            let zeroes = |codes: &[u64], format: Option<Format>| -> Vec<u64> {
                codes.iter().map(|code| zero(format.unwrap(), *code)).collect()
            };
            let scale = |input: Input| input.scale.map(|scale| scale.format);
            let others = [
                zeroes(&a, Some(plain.a().format)),
                zeroes(&x, scale(plain.a())),
                zeroes(&b, Some(plain.b().format)),
                zeroes(&y, scale(plain.b())),
            ];
            let others = others.each_ref().map(Vec::as_slice);
            let own = [&a[..], &x, &b, &y];
            // A flushed sum is no subnormal addend, so all steps of it agree.
            assert_eq!(
                run(&both, own, c),
                run(&flushed, others, zero(result, c)),
                "{both} {a:x?} {b:x?} {x:x?} {y:x?} {c:x}"
            );
            if k == l {
                let read = run(&plain, others, zero(result, c));
                let kept = run(&plain, own, c);
                let expected = zero(result, kept);
                counts[0] += u32::from(read != kept);
                counts[1] += u32::from(expected != kept);
                // Quarters round three times a step, and read what they rounded.
                if model != "hopper-mma" {
                    let found = run(&zeroed, own, c);
                    assert_eq!(found, read, "{zeroed} {a:x?} {b:x?} {x:x?} {y:x?} {c:x}");
                    assert_eq!(run(&flushed, own, c), expected, "{flushed} {a:x?} {b:x?} {c:x}");
                }
            }
        }
        assert!(counts.into_iter().all(|count| count > 10), "{zeroed}: {counts:?}");
    }
}

/// One product and one addend, as codes.
fn step(text: &str, a: &[u64], b: &[u64], c: u64) -> u64 {
    let unit = unit(text);
    let (x, y) = (unit.rows(a, &[], a.len()).unwrap(), unit.columns(b, &[], b.len()).unwrap());
    unit.dot(&x.row(0), &y.row(0), c)
}

/// The table of docs/verification.md in binary16, whose smallest normal number 2^-14 is 0x0400: 2^-14 less
/// 3 x 2^-27, 5/8 and 1/2 of it.
#[test]
fn the_five_ways_to_flush() {
    for (flush, results) in [
        ("flush-none", [0x0400, 0x0280, 0x0200]),
        ("flush-input", [0, 0, 0]),
        ("flush-candidates", [0x0400, 0x0400, 0]),
        ("flush-output", [0x0400, 0, 0]),
        ("flush-tiny", [0, 0, 0]),
    ] {
        // e5m2: 1 is 0x3C, 2^-14 0x04, -2^-12 0x8C, 1.5 x 2^-14 0x06, 1.25 0x3D, 1/2 0x38.
        let sums = [([0x3C, 0x8C], [0x04, 0x06]), ([0x3D, 0], [0x02, 0]), ([0x38, 0], [0x04, 0])];
        for ((a, b), result) in sums.into_iter().zip(results) {
            for (sign, negative) in [("signed", 0x8000), ("positive", 0)] {
                let text = format!("custom,out=f16@rne,flush={flush},underflow={sign}:e5m2+f16");
                assert_eq!(step(&text, &a, &b, 0), result, "{text} {a:x?}");
                let wanted = if result == 0 { negative } else { result | 0x8000 };
                assert_eq!(step(&text, &a.map(|x| x ^ 0x80), &b, 0), wanted, "{text} -{a:x?}");
            }
        }
    }
}

#[test]
fn worked_out_by_hand() {
    let both = "flush=flush-output,subnormals=zero";
    // An infinity times a subnormal number, which e5m2's 0x01 is and which counts as zero.
    assert_eq!(step("custom:e5m2", &[0x7C], &[0x01], 0), 0x7F80_0000);
    assert_eq!(step("custom,subnormals=zero:e5m2", &[0x7C], &[0x01], 0), 0x7FFF_FFFF);
    // 2^-16 times 2^15, and 1 as addend: subnormal elements are gone however large their partner is.
    assert_eq!(step("custom:e5m2", &[0x01], &[0x78], 0x3F80_0000), 0x3FC0_0000);
    assert_eq!(step("custom,subnormals=zero:e5m2", &[0x01], &[0x78], 0x3F80_0000), 0x3F80_0000);
    // A subnormal addend, which is kept as a result, read as zero, or flushed.
    assert_eq!(step("custom:e5m2", &[0], &[0], 0x007F_FFFF), 0x007F_FFFF);
    assert_eq!(step("custom,subnormals=zero:e5m2", &[0], &[0], 0x007F_FFFF), 0);
    assert_eq!(step("custom,flush=flush-output:e5m2", &[0], &[0], 0x007F_FFFF), 0);
    assert_eq!(step(&format!("custom,{both}:e5m2"), &[0], &[0], 0x0080_0000), 0x0080_0000);
    // 2^-16 is subnormal in e5m2, the format of the sum, and normal in f32, which holds it.
    let narrow = |keys: &str| step(&format!("custom,out=e5m2@rne{keys}:e4m3"), &[0x01], &[0x04], 0);
    assert_eq!(narrow(""), 0x3780_0000);
    assert_eq!(narrow(",flush=flush-output"), 0);
    // Steps of one: 2^-15 and then 2^-15 are 2^-14 in f16, but for what the first step leaves of its own.
    let steps = |keys: &str| {
        step(&format!("custom,l=1,out=f16@rne{keys}:e5m2+f16"), &[0x38, 0x38], &[0x04, 0x04], 0)
    };
    assert_eq!(steps(""), 0x0400);
    assert_eq!(steps(",flush=flush-output"), 0);
    assert_eq!(steps(",subnormals=zero"), 0x0200);
    // The sum of two halves, each of them flushed, is added to the addend by an addition that flushes too.
    let promoted = |keys: &str, c: u64| {
        step(&format!("custom,l=1,promote=1,out=f16@rne{keys}:e5m2+f16"), &[0x38], &[0x04], c)
    };
    assert_eq!([promoted("", 0x8400), promoted("", 0x0100)], [0x8200, 0x0300]);
    assert_eq!(promoted(",flush=flush-output", 0x8400), 0x8400);
    assert_eq!(promoted(",subnormals=zero", 0x8400), 0x8400);
    // In e4m3 2^-9 is subnormal, in binary16, which quarters have of it, it is not.
    assert_eq!(step("hopper-mma:e4m3", &[0x01], &[0x38], 0), 0x3B00_0000);
    assert_eq!(step("hopper-mma,subnormals=zero:e4m3", &[0x01], &[0x38], 0), 0);
    // Each quarter's sum is flushed for itself, and then that with the addend: 2^-15 in quarters 0 and 2.
    let quarters = |keys: &str, c: u64| {
        step(&format!("hopper-mma{keys}:e4m3+f16"), &[0x01, 0, 0x01], &[0x08, 0, 0x08], c)
    };
    assert_eq!([quarters("", 0), quarters("", 0x8600)], [0x0400, 0x8200]);
    assert_eq!(quarters(",flush=flush-output", 0x0600), 0x0600);
    let flushed =
        |b: [u64; 3], c| step("hopper-mma,flush=flush-output:e4m3+f16", &[0x01, 0, 0x01], &b, c);
    assert_eq!([flushed([0x10, 0, 0x08], 0), flushed([0x10, 0, 0x08], 0x8800)], [0x0600, 0x8000]);
    // A register rounds to f16 at its end: 2^-14 + 2^-14 - 2^-15, and less 2^-14 once more.
    let register = |keys: &str, b: [u64; 4]| {
        let text = format!("custom,l=1,out=int30b-2@rne{keys}:e5m2+f16");
        step(&text, &[0x04, 0x04, 0x84, 0x84], &b, 0)
    };
    for (keys, results) in [("", [0x0600, 0x0200]), (",flush=flush-output", [0x0600, 0])] {
        assert_eq!(register(keys, [0x3C, 0x3C, 0x38, 0]), results[0], "{keys}");
        assert_eq!(register(keys, [0x3C, 0x3C, 0x38, 0x3C]), results[1], "{keys}");
    }
    // A subnormal scale of NVFP4 is an operand: 0x01 is 2^-9 of ue4m3, and 1 is 0x2 of e2m1.
    for (keys, sum) in [("", 1.0 / 512.0), (",subnormals=zero", 0.0)] {
        for model in ["custom,order=groups,l=64,f=35", "fast"] {
            let unit = unit(&format!("{model}{keys}:nvfp4"));
            let a = unit.rows(&[0x2], &[0x01], 1).unwrap();
            let b = rows(&unit, false, &[1.0], &[1.0]);
            assert_eq!(Format::F32.to_f64(unit.dot(&a.row(0), &b.row(0), 0)), sum, "{unit}");
        }
    }
    // By one random bit 3/4 of 2^-14 goes to 0 or 2^-14 among the candidates.
    let unit = unit("custom,out=f16@sr1,flush=flush-candidates:e5m2+f16");
    let (x, y) = (rows(&unit, true, &[0.75], &[]), rows(&unit, false, &[1.0 / 16384.0], &[]));
    let sum = |word| unit.dot_with(&x.row(0), &y.row(0), code(Format::F16, 0.0), &[word]);
    assert_eq!([sum(0), sum(1 << 31)], [0, 0x0400]);
}

#[test]
fn a_file_sets_both() {
    let said: Description =
        "a = 'e5m2'\nresult = 'f16'\nflush = 'flush-input'\nsubnormals = 'zero'".parse().unwrap();
    let Formats { a, b, result } = said.formats.unwrap();
    let unit = said.model.unit(a, b, result).unwrap();
    assert_eq!(unit.to_string(), "custom,flush=flush-input,subnormals=zero:e5m2+f16");
    // The lines of a file have no order.
    for text in ["flush = 'none'\nsubnormals = 'zero'", "subnormals = 'zero'\nflush = 'none'"] {
        let said: Description = text.parse().unwrap();
        let unit = said.model.unit(a, b, result).unwrap();
        assert_eq!(unit.to_string(), "custom,subnormals=zero:e5m2+f16", "{text}");
    }
}

#[test]
fn the_steps_say_what_is_zeroed_and_flushed() {
    let of = |text: &str, c: u64| {
        let unit = unit(text);
        let a = unit.rows(&[0x01, 0x3C, 0x04], &[], 3).unwrap();
        let b = unit.columns(&[0x3C, 0x3C, 0x38], &[], 3).unwrap();
        unit.explain(&a.row(0), &b.row(0), c).to_string()
    };
    let text = of("custom,l=2,out=f16@rne,flush=flush-output,subnormals=zero:e5m2+f16", 0xBC00);
    for part in [
        "subnormal operands read as zero in a0*b0\nalign to 2^0",
        "round rne to f16: 0x0000 = 0, exact\n",
        "round rne to f16: 0x0000 = 0, flushed\nresult 0x0000 = 0",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let text = of("custom,subnormals=zero,out=int30b-2@rne:e5m2+f16", 0x0001);
    assert!(text.starts_with("subnormal operands read as zero in a0*b0 c\nregister 0"), "{text}");
    assert!(!of("custom:e5m2+f16", 0x0001).contains("subnormal"));
    // Of IEEE operations, too, and tiles count them.
    for order in ["fma", "tree,l=2", "even-odd,l=2"] {
        let text = of(&format!("custom,order={order},out=f16@rne,subnormals=zero:e5m2+f16"), 1);
        assert!(text.starts_with("subnormal operands read as zero in a0*b0 c\n"), "{text}");
    }
    // 2^-10 times 2^-127, its scale, is subnormal before it is multiplied.
    let unit = unit("fast,subnormals=zero:bf16/1:e8m0");
    let a = unit.rows(&[0x3A80], &[0], 1).unwrap();
    let b = unit.columns(&[0x3F80], &[127], 1).unwrap();
    let text = unit.explain(&a.row(0), &b.row(0), 0).to_string();
    assert!(text.starts_with("subnormal operands read as zero in a0*b0\n"), "{text}");
    for unit in ["amx:bf16", "cdna2:f16", "fast,subnormals=zero:e4m3"] {
        let unit: Unit = unit.parse().unwrap();
        let coverage = Tiles::drawn(&unit, &TilesRequest::default()).unwrap().coverage(&unit);
        let coverage = coverage.unwrap().to_string();
        let line = coverage.lines().find(|line| line.contains("operand read as zero")).unwrap();
        assert!(!line.contains("never"), "{unit}: {line}");
    }
}
