//! The layers at the sizes of the reference step: 12 x 64 tokens, D 128, hidden 512, vocabulary 256,
//! 850 000 parameters. `step` is everything but products and attention of one training step of a
//! model of four layers. Bytes are what a call must read and write at least once.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use exmy::parallel;
use exmy::random::{Philox, Stream};
use exmy_train::nn::{activation, embedding, loss, norm};
use exmy_train::train::optimizer::{AdamW, clip_scale, global_norm};

const TOKENS: usize = 768;
const SEQUENCE: usize = 64;
const D: usize = 128;
const HIDDEN: usize = 512;
const VOCAB: usize = 256;
const PARAMETERS: usize = 850_000;
const EPS: f32 = 1e-5;

fn random(len: usize) -> Vec<f32> {
    let philox = Philox::new(1, Stream::new("layers bench"));
    (0..len as u64).map(|i| 4.0 * philox.uniform(i) as f32 - 2.0).collect()
}

fn tokens() -> Vec<u32> {
    (0..TOKENS as u32).map(|i| i * 97 % VOCAB as u32).collect()
}

/// Times `work` with 1 and with 2 threads; `bytes` is what one call moves.
fn both(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    bytes: usize,
    mut work: impl FnMut() + Send,
) {
    for threads in [1, 2] {
        if threads > 1 && !cfg!(feature = "parallel") {
            continue;
        }
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("{name}/{threads}"), |bencher| {
            let work = &mut work;
            parallel::with_threads(threads, || {
                // The pool's threads exist only inside; criterion's timer runs there too.
                bencher.iter(&mut *work);
            })
            .expect("threads");
        });
    }
}

fn layers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("layers");
    group.sample_size(20).measurement_time(std::time::Duration::from_secs(1));
    group.warm_up_time(std::time::Duration::from_millis(300));
    let (x, dy, gamma) = (random(TOKENS * D), random(TOKENS * D), random(D));
    let (mut y, mut dx) = (random(TOKENS * D), random(TOKENS * D));
    let (mut mean, mut rstd, mut dgamma) = (random(TOKENS), random(TOKENS), random(D));
    let row_bytes = TOKENS * D * 4;

    both(&mut group, "layer_norm", 2 * row_bytes, || {
        norm::layer_norm(black_box(&x), &gamma, None, EPS, &mut y, &mut mean, &mut rstd);
    });
    norm::layer_norm(&x, &gamma, None, EPS, &mut y, &mut mean, &mut rstd);
    both(&mut group, "layer_norm_backward", 3 * row_bytes, || {
        let x = black_box(&x);
        norm::layer_norm_backward(x, &gamma, &mean, &rstd, &dy, &mut dx, &mut dgamma, None);
    });
    both(&mut group, "rms_norm", 2 * row_bytes, || {
        norm::rms_norm(black_box(&x), &gamma, EPS, &mut y, &mut rstd);
    });
    both(&mut group, "rms_norm_backward", 3 * row_bytes, || {
        norm::rms_norm_backward(black_box(&x), &gamma, &rstd, &dy, &mut dx, &mut dgamma);
    });

    let h = random(TOKENS * HIDDEN);
    let mut a = h.clone();
    both(&mut group, "gelu", 8 * h.len(), || activation::gelu(black_box(&h), &mut a));
    both(&mut group, "gelu_backward", 12 * h.len(), || {
        // Scaling in place many times over would end in subnormals, which are slow.
        a.copy_from_slice(&h);
        activation::gelu_backward(black_box(&h), &mut a);
    });
    let gate_up = random(2 * TOKENS * HIDDEN);
    let mut d_gate_up = gate_up.clone();
    both(&mut group, "swiglu", 12 * h.len(), || {
        activation::swiglu(black_box(&gate_up), HIDDEN, &mut a);
    });
    both(&mut group, "swiglu_backward", 20 * h.len(), || {
        activation::swiglu_backward(black_box(&gate_up), HIDDEN, &h, &mut d_gate_up);
    });
    both(&mut group, "add_assign", 3 * row_bytes, || {
        y.fill(0.0);
        activation::add_assign(&mut y, black_box(&x));
    });

    let (tokens, table, positions) = (tokens(), random(VOCAB * D), random(SEQUENCE * D));
    let (mut d_table, mut d_positions) = (table.clone(), positions.clone());
    both(&mut group, "embed", 2 * row_bytes, || {
        embedding::embed(black_box(&tokens), &table, Some(&positions), SEQUENCE, &mut y);
    });
    both(&mut group, "embed_backward", 2 * row_bytes, || {
        embedding::embed_backward(black_box(&tokens), &dy, &mut d_table);
        embedding::positions_backward(&dy, D, SEQUENCE, &mut d_positions);
    });

    let logits = random(TOKENS * VOCAB);
    let (mut work, mut losses) = (logits.clone(), vec![0.0; TOKENS]);
    let scale = Some(1.0 / TOKENS as f32);
    both(&mut group, "cross_entropy", 8 * logits.len(), || {
        work.copy_from_slice(&logits);
        loss::cross_entropy(black_box(&mut work), VOCAB, &tokens, scale, &mut losses);
    });

    let (mut params, grads) = (random(PARAMETERS), random(PARAMETERS));
    let (mut m, mut v) = (vec![0.0; PARAMETERS], vec![0.0; PARAMETERS]);
    let adam = AdamW { beta2: 0.99, weight_decay: 0.1, ..AdamW::default() };
    both(&mut group, "global_norm", 4 * PARAMETERS, || {
        black_box(global_norm(black_box(&grads)));
    });
    both(&mut group, "adamw", 28 * PARAMETERS, || {
        adam.step(9, 1e-4, true, &mut params, black_box(&grads), &mut m, &mut v, 1.0);
    });

    both(&mut group, "step", 1, || {
        embedding::embed(&tokens, &table, Some(&positions), SEQUENCE, &mut y);
        for _ in 0..9 {
            norm::layer_norm(black_box(&x), &gamma, None, EPS, &mut y, &mut mean, &mut rstd);
        }
        for _ in 0..4 {
            activation::gelu(black_box(&h), &mut a);
        }
        work.copy_from_slice(&logits);
        loss::cross_entropy(&mut work, VOCAB, &tokens, scale, &mut losses);
        black_box(loss::mean(&losses));
        for _ in 0..4 {
            a.copy_from_slice(&h);
            activation::gelu_backward(black_box(&h), &mut a);
        }
        for _ in 0..9 {
            let x = black_box(&x);
            norm::layer_norm_backward(x, &gamma, &mean, &rstd, &dy, &mut dx, &mut dgamma, None);
        }
        y.fill(0.0);
        // Eight residual sums downwards, eight upwards.
        for _ in 0..16 {
            activation::add_assign(&mut y, black_box(&x));
        }
        embedding::embed_backward(&tokens, &dy, &mut d_table);
        embedding::positions_backward(&dy, D, SEQUENCE, &mut d_positions);
        let clip = clip_scale(global_norm(&grads), 1e9);
        adam.step(9, 1e-4, true, &mut params, &grads, &mut m, &mut v, clip);
    });
    group.finish();
}

criterion_group!(benches, layers);
criterion_main!(benches);
