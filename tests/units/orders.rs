//! The other orders, each written once more: groups and late addends with integers of any length, the
//! orders of IEEE operations with the machine's own.

use num_bigint::BigInt;

use crate::oracle::{F32, PLACES, Step, read, scaled};
use crate::{Random, near, unit};
use exmy::format::Format;
use exmy::gemm::unit::Unit;

/// Random operands of a length, near one another so that little is cut, or far apart.
fn operands(random: &mut Random, unit: &Unit, k: usize) -> (Vec<u64>, Vec<u64>, u64) {
    let width = [1, 4, 12, 40][random.below(4) as usize];
    let fields = |format: Format| (format.max_code() >> format.man_bits()) + 1;
    let mut some = |format: Format, k: usize| -> Vec<u64> {
        (0..k).map(|_| near(random, format, fields(format) / 2, width)).collect()
    };
    let a = some(unit.a().format, k);
    let mut b = some(unit.b().format, k);
    if k.is_multiple_of(4) {
        for j in k / 2..k {
            b[j] = b[j - k / 2] ^ 1 << (unit.b().format.bits() - 1);
            if unit.b().format.decode(b[j]).is_nan() {
                b[j] = 0;
            }
        }
    }
    let c = match random.below(3) {
        0 => 0,
        _ => near(random, unit.result(), fields(unit.result()) / 2, width),
    };
    (a, b, c)
}

fn run(unit: &Unit, a: &[u64], b: &[u64], scales: [&[u64]; 2], c: u64) -> u64 {
    let rows = unit.rows(a, scales[0], a.len()).unwrap();
    let columns = unit.columns(b, scales[1], b.len()).unwrap();
    unit.dot(&rows.row(0), &columns.row(0), c)
}

#[test]
fn groups_of_blackwell() {
    for (text, block) in [
        ("blackwell:nvfp4", 16),
        ("blackwell:mxfp4", 32),
        ("blackwell:e2m1/32:ue4m3", 32),
        ("custom,order=groups,l=64,f=35:nvfp4", 16),
    ] {
        let unit = unit(text);
        let format = unit.a().scale.unwrap().format;
        let step = Step::new(64, 35, Some(-133), F32);
        let mut random = Random(3);
        for i in 0..3000 {
            let k = [64, 128, 16, 70][i % 4];
            let (a, b, c) = operands(&mut random, &unit, k);
            let mut scales = || -> Vec<u64> {
                let low = if i % 3 == 0 { 1 } else { 8 };
                let scale = |random: &mut Random| match format {
                    // Two of them are mostly below the least exponent, and others where that cuts.
                    Format::E8M0 if i % 4 == 1 => 36 + random.below(28),
                    Format::E8M0 => 120 + random.below(2 * low),
                    _ => random.below(0x7F) >> (if low == 1 { 3 } else { 0 }),
                };
                (0..k.div_ceil(block)).map(|_| scale(&mut random)).collect()
            };
            let (x, y) = (scales(), scales());
            // A scale of E8M0 is a power of two, one of UE4M3 a significand of four bits.
            let scale = |code: u64| match format {
                Format::E8M0 => (1, code as i32 - 127, code as i32 - 127),
                _ => read(format, code),
            };
            let mut sum = c;
            for first in (0..k).step_by(64) {
                let mut terms = Vec::new();
                for group in (first..k.min(first + 64)).step_by(16) {
                    // Quarters of the elements' unit, 1/2.
                    let halves = |code: u64| (Format::E2M1.to_f64(code) * 2.0) as i64;
                    let exact: i64 =
                        (group..k.min(group + 16)).map(|k| halves(a[k]) * halves(b[k])).sum();
                    let ((s, unit_s, es), (t, unit_t, et)) =
                        (scale(x[group / block]), scale(y[group / block]));
                    terms.push((scaled(exact * s * t, unit_s + unit_t - 2), es + et));
                }
                let (z, unit_z, ez) = read(Format::F32, sum);
                terms.push((scaled(z, unit_z), ez));
                sum = step.round(&step.add(&terms), Format::F32);
            }
            assert_eq!(
                run(&unit, &a, &b, [&x, &y], c),
                sum,
                "{unit} {a:x?} {b:x?} {x:x?} {y:x?} {c:x}"
            );
        }
    }
}

/// Toward negative infinity to a multiple of `2^last`, which is what the shift of a signed integer does.
fn floor(value: &BigInt, last: i32) -> BigInt {
    let places = (last + PLACES) as usize;
    (value.clone() >> places) << places
}

#[test]
fn late_addends_of_cdna3() {
    let zero = BigInt::ZERO;
    for (text, l, halves) in [
        ("cdna3:f16", 8, false),
        ("cdna3:bf16", 8, false),
        ("cdna3:tf32", 4, false),
        ("cdna3:e4m3fnuz", 16, true),
        ("cdna3:e5m2fnuz,e4m3fnuz", 16, true),
    ] {
        let unit = unit(text);
        let mut random = Random(4);
        let products = Step::new(l, 24, None, F32);
        let rounding = Step { signed: true, ..Step::new(l, 24, None, (23, -126, true)) };
        for i in 0..3000 {
            let k = [l, 2 * l, l / 2, l + 1][i % 4];
            let (a, b, c) = operands(&mut random, &unit, k);
            let mut sum = c;
            for first in (0..k).step_by(l) {
                let product = |j: usize| {
                    let (x, unit_x, ex) = read(unit.a().format, a[j]);
                    let (y, unit_y, ey) = read(unit.b().format, b[j]);
                    (scaled(x * y, unit_x + unit_y), ex + ey)
                };
                // A sum of products, and the exponent that they were aligned to, if there are any.
                let aligned = |every: usize, offset: usize| {
                    let range = (first + offset..k.min(first + l)).step_by(every);
                    let terms: Vec<(BigInt, i32)> = range.map(product).collect();
                    let top =
                        terms.iter().filter(|(value, _)| *value != zero).map(|(_, e)| *e).max();
                    (products.add(&terms), top)
                };
                let (total, top) = if halves {
                    let [(even, e), (odd, f)] = [aligned(2, 0), aligned(2, 1)];
                    let top = e.max(f);
                    let cut = |half: &BigInt| top.map_or(zero.clone(), |top| floor(half, top - 24));
                    (cut(&even) + cut(&odd), top)
                } else {
                    aligned(1, 0)
                };
                let (z, unit_z, ez) = read(Format::F32, sum);
                let addend = scaled(z, unit_z);
                let of_addend = (z != 0).then_some(ez);
                let Some(top) = top.max(of_addend) else {
                    sum = 0;
                    continue;
                };
                let far = halves && ez < top - 25;
                let addend = if far { zero.clone() } else { floor(&addend, top - 24) };
                sum = rounding.round(&(floor(&total, top - 31) + addend), Format::F32);
            }
            if Format::F32.decode(sum).is_finite() {
                assert_eq!(run(&unit, &a, &b, [&[], &[]], c), sum, "{unit} {a:x?} {b:x?} {c:x}");
            }
        }
    }
}

/// The machine's binary32 operations, with what MI200 flushes.
#[test]
fn trees_and_chains_on_the_machine() {
    for (text, l, flush) in [
        ("cdna1-tree:f16", 4, false),
        ("cdna1-tree:bf16", 2, false),
        ("cdna2:f16", 4, true),
        ("cdna2:bf16", 4, true),
        ("cdna2-bf16:bf16", 2, true),
        ("fast:e5m2", 32, false),
        ("fast:bf16,f16", 32, false),
        ("cdna3:f32", 1, false),
    ] {
        let unit = unit(text);
        let mut random = Random(5);
        let flushed = |x: f32| if flush && x.abs() < f32::MIN_POSITIVE { x * 0.0 } else { x };
        for i in 0..2000 {
            let k = [2 * l, 3 * l, 64, 96][i % 4];
            let (mut a, b, c) = operands(&mut random, &unit, k);
            if i % 5 == 0 && unit.a().format == Format::BF16 {
                // Products around the smallest normal number.
                a.iter_mut().for_each(|code| *code = *code & 0x80FF | 0x0080);
            }
            let read = |format: Format, code: &u64| {
                let x = format.to_f32(*code);
                let normal = format.to_f32(format.min_normal_code().unwrap());
                if flush && x.abs() < normal { 0.0 } else { x }
            };
            let x: Vec<f32> = a.iter().map(|code| read(unit.a().format, code)).collect();
            let y: Vec<f32> = b.iter().map(|code| read(unit.b().format, code)).collect();
            let mut sum = read(Format::F32, &c);
            for first in (0..k).step_by(l) {
                let product = |j: usize| flushed(x[first + j] * y[first + j]);
                let pair = |j: usize| flushed(product(j) + product(j + 1));
                sum = match l {
                    1 => x[first].mul_add(y[first], sum),
                    2 => flushed(sum + pair(0)),
                    4 => flushed(sum + flushed(pair(0) + pair(2))),
                    _ => {
                        let chain = |odd: usize| {
                            (0..l / 2).fold(0.0_f32, |sum, j| {
                                let at = first + 2 * j + odd;
                                if at < k { x[at].mul_add(y[at], sum) } else { sum }
                            })
                        };
                        sum + (chain(0) + chain(1))
                    }
                };
            }
            let found = run(&unit, &a, &b, [&[], &[]], c);
            assert_eq!(found, u64::from(sum.to_bits()), "{unit} {a:x?} {b:x?} {c:x}");
        }
    }
}
