//! The kernel against the definition, at every level, on codes of any kind.

use crate::{Random, near, unit};
use exmy::simd::{Level, with_level};

#[test]
fn the_kernel_gives_the_bits_of_the_definition() {
    let mut random = Random(1);
    for (text, k) in [
        ("volta:f16+f16", 21),
        ("turing:f16", 40),
        ("ampere:tf32", 10),
        ("ada:e4m3,e5m2", 50),
        ("hopper:f16", 33),
        ("hopper:bf16", 64),
        ("hopper:tf32", 24),
        ("hopper:e4m3", 32),
        ("hopper:e4m3", 100),
        ("hopper:e5m2+f16", 96),
        ("hopper,promote=64:e5m2", 150),
        ("hopper,promote=48:e5m2", 150),
        ("hopper-mma:e4m3", 70),
        ("hopper-mma:e5m2,e4m3+f16", 32),
        ("blackwell:e4m3,e2m1", 64),
        ("blackwell:mxfp8-e5m2", 70),
        ("blackwell:nvfp4", 130),
        ("custom,l=64,f=26,floor=none:e4m3,f16", 130),
        ("custom,l=64,f=26,out=f32@rup:bf16", 70),
        ("cdna3:e4m3fnuz", 40),
    ] {
        let unit = unit(text);
        let (m, n) = (6, 7);
        for round in 0..8 {
            let mut codes = |format: exmy::format::Format, count: usize| -> Vec<u64> {
                let fields = (format.max_code() >> format.man_bits()) + 1;
                (0..count)
                    .map(|_| match round {
                        // Any codes at all; then few that are not finite.
                        0 | 1 => random.below(1 << format.bits()),
                        _ if random.below(300) == 0 => random.below(1 << format.bits()),
                        _ => near(&mut random, format, fields / 2, 3 * round),
                    })
                    .collect()
            };
            let a = codes(unit.a().format, m * k);
            let b = codes(unit.b().format, n * k);
            let c = codes(unit.result(), m * n);
            let scales = |random: &mut Random, input: exmy::gemm::unit::Input, rows: usize| {
                let count = rows * input.scales(k);
                let scale = input.scale.map(|scale| scale.format);
                (0..count)
                    .map(|_| {
                        scale.map_or(0, |format| match random.below(20) {
                            0 => random.below(1 << format.bits()),
                            _ => near(random, format, 1 << (format.exp_bits() - 1), 4) & 0xFF,
                        })
                    })
                    .collect::<Vec<u64>>()
            };
            let (x, y) = (scales(&mut random, unit.a(), m), scales(&mut random, unit.b(), n));
            let rows = unit.rows(&a, &x, k).unwrap();
            let columns = unit.columns(&b, &y, k).unwrap();
            let plain: Vec<u64> = (0..m * n)
                .map(|at| unit.dot(&rows.row(at / n), &columns.row(at % n), c[at]))
                .collect();
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let mut sums = c.clone();
                with_level(level, || unit.multiply(&rows, &columns, &mut sums));
                assert_eq!(sums, plain, "{unit} at {level}");
            }
        }
    }
}

#[test]
fn empty_sums() {
    let unit = unit("hopper:e4m3");
    let (rows, columns) = (unit.rows(&[], &[], 0).unwrap(), unit.columns(&[], &[], 0).unwrap());
    assert_eq!((rows.count(), rows.k()), (1, 0));
    let mut sum = [u64::from(1.1_f32.to_bits())];
    unit.multiply(&rows, &columns, &mut sum);
    // Without an instruction nothing rounds the addend.
    assert_eq!(sum[0], u64::from(1.1_f32.to_bits()));
    assert_eq!(unit.dot(&rows.row(0), &columns.row(0), sum[0]), sum[0]);
}
