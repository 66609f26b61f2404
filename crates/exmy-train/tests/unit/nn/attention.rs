use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};
use exmy_train::nn::attention::{Shape, attention, attention_backward};

fn random(len: usize, stream: u64) -> Vec<f32> {
    let philox = Philox::new(3, Stream::new("attention").with(stream));
    (0..len as u64).map(|i| 4.0 * philox.uniform(i) as f32 - 2.0).collect()
}

/// Tiles of any kernel, ragged in both sizes, and memory that holds NaN beforehand.
#[test]
fn levels_give_the_same_bits() {
    for (sequence, head_dim, heads, kv_heads) in [(37, 12, 2, 1), (64, 64, 2, 2), (19, 70, 1, 1)] {
        let shape = Shape { batch: 2, sequence, heads, kv_heads, head_dim };
        let tokens = 2 * sequence;
        let (qkv, dy) = (random(tokens * shape.qkv_width(), 1), random(tokens * shape.width(), 2));
        let (mut results, mut probabilities) = (Vec::new(), Vec::new());
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let nan = |len: usize| vec![f32::NAN; len];
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            // Probabilities kept and not; room for all pairs, and for some.
            let pairs = 2 * shape.kv_heads;
            for (kept, pairs) in [(true, pairs), (false, pairs), (true, 1), (false, 3)] {
                let len = if kept { shape.probabilities() } else { 0 };
                let (mut y, mut p) = (nan(dy.len()), nan(len));
                let len = pairs * (shape.workspace() + shape.results());
                let (mut scratch, mut dqkv) = (nan(len + 5), nan(qkv.len()));
                with_level(level, || {
                    attention(&shape, &qkv, &mut y, &mut p, &mut scratch);
                    attention_backward(&shape, &qkv, &p, &dy, &mut dqkv, &mut scratch);
                });
                results.push([bits(&y), bits(&dqkv)]);
                probabilities.extend(kept.then(|| bits(&p)));
            }
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{shape:?}");
        assert!(probabilities.windows(2).all(|pair| pair[0] == pair[1]), "{shape:?}");
        assert!(results[0][1].iter().all(|bits| f32::from_bits(*bits).is_finite()));
    }
}
