//! Elements a second of casts and block quantization, one thread. Criterion's `elem/s` is the
//! figure to read; the input is normal-like with a few outliers and stays the same.
//!
//! `cargo bench --bench quantize`; `EXMY_SIMD=avx2` measures another level.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::view::{View, ViewMut};

/// Square matrices of 2^16 elements (in cache) and 2^22 (in memory).
const SIDES: [usize; 2] = [256, 2048];

fn input(n: usize) -> Vec<f32> {
    let random = Philox::new(0, Stream::new("bench"));
    let normal = |i: usize| (0..4).map(|k| random.uniform(4 * i as u64 + k) - 0.5).sum::<f64>();
    (0..n).map(|i| normal(i) as f32 * if i % 1000 == 7 { 50.0 } else { 1.0 }).collect()
}

fn quantize(c: &mut Criterion) {
    let cases = [
        ("e4m3fn", Axis::Cols),
        ("e8m3", Axis::Cols),
        ("bf16", Axis::Cols),
        ("e4m3fn@rtz", Axis::Cols),
        ("e8m3@rtz", Axis::Cols),
        ("bf16>e8m3@rtz", Axis::Cols),
        ("e4m3fn@sr8", Axis::Cols),
        ("mxfp8-e4m3", Axis::Cols),
        ("mxfp8-e4m3", Axis::Rows),
        ("mxfp4@sr8", Axis::Cols),
        ("nvfp4", Axis::Cols),
        ("nvfp4", Axis::Rows),
        ("nvfp4-16x16", Axis::Cols),
        ("nvfp4@sr8", Axis::Cols),
    ];
    let random = Philox::new(1, Stream::new("sr"));
    for side in SIDES {
        let x = input(side * side);
        let mut out = vec![0.0; side * side];
        let mut group = c.benchmark_group(format!("quantize/{}", side * side));
        group.throughput(Throughput::Elements((side * side) as u64));
        for (text, axis) in cases {
            let quantizer: Quantizer = text.parse().expect("a quantizer");
            let id = BenchmarkId::new(text, format!("{axis:?}"));
            group.bench_function(id, |b| {
                b.iter(|| {
                    let (x, out) = (View::new(&x, side, side), ViewMut::new(&mut out, side, side));
                    quantizer.image_into(x, axis, random, out);
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(700));
    targets = quantize
}
criterion_main!(benches);
