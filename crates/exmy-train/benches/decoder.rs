//! One training step of the reference model and its parts on 2 threads: batch 12, context 64,
//! d 128, 4 heads, 4 layers, GELU of 512, 256 tokens, tied head, f32. Each part is benched as often
//! as the step runs it, so that the parts' times add up to the step's.
//!
//! `cargo bench -p exmy-train --bench decoder`

use criterion::{Criterion, criterion_group, criterion_main};
use exmy::parallel::with_threads;
use exmy::random::{Philox, Stream};
use exmy_train::nn::activation::{add_assign, gelu, gelu_backward};
use exmy_train::nn::attention::{Shape, attention, attention_backward};
use exmy_train::nn::decoder::{Config, Decoder, InitScheme, Mlp, Norm, Position};
use exmy_train::nn::device::{Cpu, Matrix, MatrixMut};
use exmy_train::nn::embedding::{embed, embed_backward, positions_backward};
use exmy_train::nn::linear::{Group, Products, Unquantized};
use exmy_train::nn::loss::cross_entropy;
use exmy_train::nn::norm::{layer_norm, layer_norm_backward};
use exmy_train::nn::site::Operator;

const BATCH: usize = 12;
const LAYERS: usize = 4;
const D: usize = 128;
const HIDDEN: usize = 512;
const VOCAB: usize = 256;
const SEQUENCE: usize = 64;
const N: usize = BATCH * SEQUENCE;

fn config() -> Config {
    Config {
        vocab: VOCAB,
        context: SEQUENCE,
        layers: LAYERS,
        d_model: D,
        heads: 4,
        kv_heads: 4,
        hidden: HIDDEN,
        norm: Norm::LayerNorm,
        norm_bias: false,
        norm_eps: 1e-5,
        position: Position::Learned,
        mlp: Mlp::Gelu,
        tied: true,
        init: InitScheme::Gpt2,
        ..Config::default()
    }
}

fn random(len: usize) -> Vec<f32> {
    let philox = Philox::new(1, Stream::new("bench"));
    (0..len as u64).map(|i| philox.uniform(i) as f32 - 0.5).collect()
}

fn tokens() -> Vec<u32> {
    let philox = Philox::new(2, Stream::new("bench"));
    (0..N as u64).map(|i| philox.below(i, VOCAB as u64) as u32).collect()
}

/// (outputs, inputs, how often a step has it).
const LINEARS: [(usize, usize, usize); 5] =
    [(3 * D, D, LAYERS), (D, D, LAYERS), (HIDDEN, D, LAYERS), (D, HIDDEN, LAYERS), (VOCAB, D, 1)];

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    let tokens = tokens();

    let mut decoder = Decoder::<Cpu>::new(config()).expect("a model");
    let params = decoder.layout().initialize(1);
    let mut grads = vec![0.0; params.len()];
    group.bench_function("forward_backward", |b| {
        b.iter(|| {
            let products = &mut Unquantized;
            decoder.forward_backward(&params, &mut grads, &tokens, &tokens, BATCH, products)
        });
    });
    let mut losses = vec![0.0; N];
    group.bench_function("losses", |b| {
        b.iter(|| {
            let products = &mut Unquantized;
            decoder.losses(&params, &tokens, &tokens, BATCH, products, &mut losses);
        });
    });

    let (x, g, w) = (random(N * HIDDEN), random(N * HIDDEN), random(HIDDEN * D));
    let (mut y, mut dw) = (random(N * HIDDEN), random(HIDDEN * D));
    let cpu = &Cpu::new();
    for which in 0..3 {
        let name = ["forward", "grad_input", "grad_weight"][which];
        group.bench_function(format!("products {name}"), |b| {
            b.iter(|| {
                for (outputs, inputs, times) in LINEARS {
                    let members = [(Operator::Q, outputs)];
                    let site = Group { layer: None, members: &members };
                    let (x, g) = (Matrix::new(&x, N, inputs), Matrix::new(&g, N, outputs));
                    let w = Matrix::new(&w, outputs, inputs);
                    for _ in 0..times {
                        let y_cols = if which == 0 { outputs } else { inputs };
                        let y = MatrixMut::new(&mut y, N, y_cols);
                        let dw = MatrixMut::new(&mut dw, outputs, inputs);
                        match which {
                            0 => Unquantized.forward(cpu, &site, x, w, y),
                            1 => Unquantized.grad_input(cpu, &site, g, w, y),
                            _ => Unquantized.grad_weight(cpu, &site, g, x, dw),
                        }
                    }
                }
            });
        });
    }

    let shape = Shape { batch: BATCH, sequence: SEQUENCE, heads: 4, kv_heads: 4, head_dim: D / 4 };
    let qkv = random(N * 3 * D);
    let mut dqkv = random(N * 3 * D);
    let mut attended = random(N * D);
    let mut probabilities = random(shape.probabilities());
    let mut scratch = random(shape.scratch());
    group.bench_function("attention", |b| {
        b.iter(|| {
            for _ in 0..LAYERS {
                attention(&shape, &qkv, &mut attended, &mut probabilities, &mut scratch);
            }
        });
    });
    let dy = random(N * D);
    group.bench_function("attention backward", |b| {
        b.iter(|| {
            for _ in 0..LAYERS {
                attention_backward(&shape, &qkv, &probabilities, &dy, &mut dqkv, &mut scratch);
            }
        });
    });

    let (mut mean, mut rstd, mut gain) = (vec![0.0; N], vec![1.0; N], vec![1.0; D]);
    let x = random(N * D);
    group.bench_function("norms", |b| {
        b.iter(|| {
            for _ in 0..2 * LAYERS + 1 {
                let gain = &gain[..];
                layer_norm(&x, gain, None, 1e-5, &mut attended, &mut mean, &mut rstd);
            }
        });
    });
    let fixed = vec![1.0; D];
    group.bench_function("norms backward", |b| {
        b.iter(|| {
            for _ in 0..2 * LAYERS + 1 {
                let dx = &mut attended;
                layer_norm_backward(&x, &fixed, &mean, &rstd, &dy, dx, &mut gain, None);
            }
        });
    });
    group.bench_function("residual additions", |b| {
        b.iter(|| (0..4 * LAYERS).for_each(|_| add_assign(&mut attended, &x)));
    });

    let (x, mut y) = (random(N * HIDDEN), random(N * HIDDEN));
    group.bench_function("gelu", |b| b.iter(|| (0..LAYERS).for_each(|_| gelu(&x, &mut y))));
    // In place it shrinks the gradient; without the copy that would soon be subnormal and slow.
    group.bench_function("gelu backward, with a copy", |b| {
        b.iter(|| {
            for _ in 0..LAYERS {
                y.copy_from_slice(&x);
                gelu_backward(&x, &mut y);
            }
        });
    });

    let (table, positions) = (random(VOCAB * D), random(SEQUENCE * D));
    let (mut d_table, mut d_positions) = (table.clone(), positions.clone());
    group.bench_function("embedding, both ways", |b| {
        b.iter(|| {
            embed(&tokens, &table, Some(&positions), SEQUENCE, &mut attended);
            embed_backward(&tokens, &dy, &mut d_table);
            positions_backward(&dy, D, SEQUENCE, &mut d_positions);
        });
    });
    let mut logits = random(N * VOCAB);
    group.bench_function("loss", |b| {
        b.iter(|| cross_entropy(&mut logits, VOCAB, &tokens, Some(1.0 / N as f32), &mut losses));
    });
    group.finish();
}

fn on_two_threads(c: &mut Criterion) {
    // Criterion is not `Send`; its own copy lives on the pool's thread.
    let _ = c;
    with_threads(2, || bench(&mut Criterion::default().configure_from_args())).expect("2 threads");
}

criterion_group!(benches, on_two_threads);
criterion_main!(benches);
