//! One arena of parameters and the table of their names.
//!
//! All parameters of a model lie in one slice, their gradients and the optimizer's moments in
//! others of the same layout. A [`Layout`] says which range is which tensor, under the names that
//! Hugging Face's Llama uses, whether weight decay applies, and how it is initialized. Normal
//! values come from the addressed generator ([`exmy::random`]) by Box and Muller's transform (Ann.
//! Math. Statist. 29, 1958) in f64 with `libm`: a tensor's values depend on the seed and on its
//! name and shape alone, not on threads, platform or what else the model holds.

use core::ops::Range;
use std::collections::HashMap;

use exmy::parallel;
use exmy::random::{Philox, Stream};

/// What a parameter is, which decides whether weight decay applies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The weight of a linear operator, (out, in).
    Matrix,
    /// A table of vectors, by token or by position.
    Embedding,
    /// The gain of a norm.
    Norm,
    /// An additive vector.
    Bias,
}

/// How a parameter starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Independent normal values of mean 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
    /// Independent normal values of mean 0, drawn again where they lie beyond three standard
    /// deviations (OLMo's `mitchell`, PyTorch's `trunc_normal_` at these bounds).
    Truncated {
        /// Standard deviation before the tails are cut.
        std: f64,
    },
    /// Independent values, uniform from `-bound` to `bound` (PyTorch's default of `nn.Linear`, with
    /// `1 / sqrt(fan_in)`).
    Uniform {
        /// The largest magnitude.
        bound: f64,
    },
    /// Independent normal values about a mean other than 0: gains.
    Around {
        /// Mean.
        mean: f64,
        /// Standard deviation; 0 gives the mean itself.
        std: f64,
    },
    /// 1.
    Ones,
    /// 0.
    Zeros,
}

/// One tensor of the arena.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// For example `model.layers.0.self_attn.q_proj.weight`.
    pub name: String,
    /// Sizes, row-major.
    pub shape: Vec<usize>,
    /// Where its elements lie.
    pub range: Range<usize>,
    /// What it is.
    pub role: Role,
    /// How it starts.
    pub init: Init,
}

/// The table of an arena's tensors, in the order of their ranges, without gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    entries: Vec<Entry>,
    /// Where the entry of a name is.
    places: HashMap<String, usize>,
}

impl Layout {
    /// Appends a tensor and returns its range.
    ///
    /// # Panics
    /// If the name is taken already, or the arena would exceed the address space.
    pub fn push(&mut self, name: String, shape: &[usize], role: Role, init: Init) -> Range<usize> {
        let taken = self.places.insert(name.clone(), self.entries.len());
        assert!(taken.is_none(), "two parameters are called {name}");
        let size = shape.iter().try_fold(1_usize, |size, n| size.checked_mul(*n));
        let start = self.len();
        let end = size.and_then(|size| start.checked_add(size)).expect("an arena in memory");
        self.entries.push(Entry { name, shape: shape.to_vec(), range: start..end, role, init });
        start..end
    }

    /// The tensor of that name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.places.get(name).map(|&place| &self.entries[place])
    }

    /// The tensors, in the order of their ranges.
    pub fn iter(&self) -> core::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The number of elements of the arena (not of tensors).
    pub fn len(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.range.end)
    }

    /// Whether the arena holds no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fresh parameters under `seed`: each tensor from the stream of its name.
    pub fn initialize(&self, seed: u64) -> Vec<f32> {
        let mut arena = vec![0.0; self.len()];
        for entry in &self.entries {
            let values = &mut arena[entry.range.clone()];
            match entry.init {
                Init::Zeros => {}
                Init::Ones => values.fill(1.0),
                init => {
                    let stream = Stream::new("init").with(Stream::new(&entry.name).id());
                    fill(values, init, seed, stream);
                }
            }
        }
        arena
    }
}

impl<'a> IntoIterator for &'a Layout {
    type Item = &'a Entry;
    type IntoIter = core::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Fills one tensor; element `i` depends on the seed, the stream and `i` alone.
fn fill(values: &mut [f32], init: Init, seed: u64, stream: Stream) {
    const CHUNK: usize = 1 << 14;
    let philox = Philox::new(seed, stream);
    parallel::for_each_chunk(values, CHUNK, |chunk, values| {
        let first = (chunk * CHUNK) as u64;
        if let Init::Uniform { bound } = init {
            for (i, value) in (first..).zip(values) {
                *value = (bound * (2.0 * philox.uniform(i) - 1.0)) as f32;
            }
            return;
        }
        for (j, pair) in (first / 2..).zip(values.chunks_mut(2)) {
            let (radius, directions) = normal_pair(&philox, j);
            for (half, (value, direction)) in pair.iter_mut().zip(directions).enumerate() {
                *value = match init {
                    Init::Normal { std } => (std * radius * direction) as f32,
                    Init::Around { mean, std } => (mean + std * radius * direction) as f32,
                    Init::Truncated { std } => {
                        let again = |attempt| {
                            let philox = Philox::new(seed, stream.with(attempt));
                            let (radius, directions) = normal_pair(&philox, j);
                            radius * directions[half]
                        };
                        let mut draws =
                            core::iter::once(radius * direction).chain((1..).map(again));
                        let z = draws.find(|z| z.abs() <= 3.0);
                        (std * z.expect("an endless supply of draws")) as f32
                    }
                    Init::Ones | Init::Zeros | Init::Uniform { .. } => unreachable!(),
                };
            }
        }
    });
}

/// Box and Muller's pair from the two 53-bit uniforms of Philox block `j`: the radius, and the
/// cosine and sine that make it elements `2 j` and `2 j + 1`.
fn normal_pair(philox: &Philox, j: u64) -> (f64, [f64; 2]) {
    // 1 - u is in (0, 1], so that the logarithm is finite: at most 8.57 deviations.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - philox.uniform(2 * j)));
    let (sin, cos) = libm::sincos(2.0 * core::f64::consts::PI * philox.uniform(2 * j + 1));
    (radius, [cos, sin])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(len: usize) -> Layout {
        let mut layout = Layout::default();
        let init = Init::Normal { std: 0.02 };
        layout.push("a.weight".into(), &[len / 2, 2], Role::Matrix, init);
        layout.push("gain".into(), &[3], Role::Norm, Init::Ones);
        layout.push("shift".into(), &[2], Role::Bias, Init::Zeros);
        layout.push("b.weight".into(), &[len / 2, 2], Role::Embedding, init);
        layout
    }

    /// The expected values are from an independent implementation of Philox, of the stream's hash
    /// and of the transform in Python's integers and f64; the last ones lie in a second chunk.
    #[test]
    fn golden_values() {
        let layout = two(16_386);
        let arena = layout.initialize(1);
        let part = |name: &str| &arena[layout.find(name).unwrap().range.clone()];
        let golden = [
            (
                "a.weight",
                [-0.036_888_898, 0.022_358_847, -0.017_577_765, 0.003_233_255, -0.008_508_339],
                0.001_150_666_6,
            ),
            (
                "b.weight",
                [-0.016_131_032, -0.030_064_637, 0.001_637_721_3, 0.011_510_374, -0.017_622_769],
                -0.006_185_075,
            ),
        ];
        for (name, first, last) in golden {
            let values = part(name);
            let five = [0, 1, 2, 3, 16_384].map(|i| values[i]);
            for (got, expected) in five.into_iter().zip(first) {
                assert!((got - expected).abs() <= 2e-9_f32, "{name}: {got} {expected}");
            }
            assert!((values[16_385] - last).abs() <= 2e-10_f32, "{name}: {}", values[16_385]);
        }
        assert_eq!(part("gain"), [1.0; 3]);
        assert_eq!(part("shift"), [0.0; 2]);
        // The high half of the seed counts.
        let other = layout.initialize((7 << 32) + 1);
        assert!((other[5] - 0.042_749_31).abs() <= 4e-9, "{}", other[5]);
    }

    /// Of 200 000 values mean, variance and fourth moment lie within 5 standard errors of those of
    /// N(0, 1): 1, sqrt 2 and sqrt 96 over sqrt n.
    #[test]
    fn moments_are_normal() {
        let n = 200_000;
        let arena = two(n).initialize(3);
        let values = arena[..n].iter().map(|value| f64::from(*value) / 0.02);
        let mean = |power: usize| {
            let powers = values.clone().map(|z| std::iter::repeat_n(z, power).product::<f64>());
            powers.sum::<f64>() / n as f64
        };
        let error = 5.0 / (n as f64).sqrt();
        assert!(mean(1).abs() < error, "{}", mean(1));
        assert!((mean(2) - 1.0).abs() < error * 2.0_f64.sqrt(), "{}", mean(2));
        assert!((mean(4) - 3.0).abs() < error * 96.0_f64.sqrt(), "{}", mean(4));
        // Neighbours come from one pair, whose halves must not depend on each other.
        let pairs = arena[..n].chunks(2);
        let product: f64 = pairs.map(|p| f64::from(p[0]) * f64::from(p[1]) / 4e-4).sum();
        assert!((product / (n / 2) as f64).abs() < error * 2.0_f64.sqrt());
    }

    /// 200 000 values of each: none beyond the bound, and the mean square within 5 standard errors
    /// of the distribution's, from the moments of the cut normal (variance 0.973 337, fourth
    /// moment 2.680 06) and of the uniform (1/3, 1/5).
    #[test]
    fn bounded_values_have_their_moments() {
        let n = 200_000;
        let cases = [
            (Init::Truncated { std: 0.5 }, 0.5, 3.0, 0.973_337, 2.680_06),
            (Init::Uniform { bound: 0.25 }, 0.25, 1.0, 1.0 / 3.0, 0.2),
        ];
        for (init, size, bound, square, fourth) in cases {
            let mut layout = Layout::default();
            layout.push("w".into(), &[n], Role::Matrix, init);
            let values = layout.initialize(5);
            let values = values.iter().map(|value| f64::from(*value) / size);
            assert!(values.clone().all(|z| z.abs() <= bound), "{init:?}");
            assert!(values.clone().any(|z| z.abs() > 0.99 * bound), "{init:?}");
            let found = values.map(|z| z * z).sum::<f64>() / n as f64;
            let error = 5.0 * libm::sqrt((fourth - square * square) / n as f64);
            assert!((found - square).abs() < error, "{init:?}: {found}");
        }
        let mut layout = Layout::default();
        let init = Init::Around { mean: 0.95, std: 0.0 };
        layout.push("gain".into(), &[3], Role::Norm, init);
        assert_eq!(layout.initialize(5), [0.95; 3]);
    }

    /// A tensor's values depend on its name and the seed, not on what lies before it.
    #[test]
    fn a_tensor_does_not_depend_on_the_others() {
        let layout = two(10);
        let b = layout.find("b.weight").unwrap();
        let mut alone = Layout::default();
        alone.push(b.name.clone(), &b.shape, b.role, b.init);
        assert_eq!(layout.initialize(9)[b.range.clone()], alone.initialize(9));
        assert_ne!(layout.initialize(9)[b.range.clone()], alone.initialize(10));
    }

    #[test]
    #[should_panic(expected = "two parameters are called a.weight")]
    fn names_are_unique() {
        two(2).push("a.weight".into(), &[1], Role::Bias, Init::Zeros);
    }
}
