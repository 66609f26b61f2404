//! One arena of parameters and the table of their names.
//!
//! All parameters of a model lie in one slice, their gradients and the optimizer's moments in
//! others of the same layout. A [`Layout`] says which range is which tensor, under the names that
//! Hugging Face's Llama uses, whether weight decay applies, and how it is initialized. Normal
//! values come from the addressed generator ([`exmy::random`]) by Box and Muller's transform (Ann.
//! Math. Statist. 29, 1958) in f64 with `libm`: A tensor's values depend on the seed and on its name and
//! shape alone, not on threads, platform or what else the model holds.

use core::ops::Range;
use std::collections::HashMap;

use crate::nn::site::Site;
use exmy::parallel;
use exmy::random::{Philox, Stream};

/// What a parameter is, which decides whether weight decay applies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The weight of a linear operator, (out, in).
    Matrix,
    /// The table of vectors by token, which a head without a weight of its own shares.
    Tokens,
    /// Another table of vectors, as by position.
    Embedding,
    /// The gain of a norm.
    Norm,
    /// The additive vector of a norm.
    NormBias,
    /// Another additive vector.
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
    /// The linear operator whose weight it is, if it is one's.
    pub site: Option<Site>,
    /// How it starts.
    pub init: Init,
}

/// What the names of a group's tensors begin with: up to the layer's number, else up to the last dot.
fn group_of(name: &str) -> &str {
    let layer = name.split('.').scan(0, |end, word| {
        *end += word.len() + 1;
        Some((*end - 1, word))
    });
    let mut layer = layer.filter(|(_, word)| word.parse::<u32>().is_ok());
    let end = layer.next().map(|(end, _)| end).or_else(|| name.rfind('.'));
    &name[..end.unwrap_or(name.len())]
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
        let site = Site::of_weight(&name).filter(|_| role == Role::Matrix);
        let shape = shape.to_vec();
        self.entries.push(Entry { name, shape, range: start..end, role, site, init });
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

    /// Ranges of tensors that belong together: those of a layer, else weight and bias of one operator.
    pub(crate) fn groups(&self) -> Vec<Range<usize>> {
        let mut groups: Vec<(&str, Range<usize>)> = Vec::new();
        for Entry { name, range, .. } in &self.entries {
            let group = group_of(name);
            match groups.last_mut() {
                Some((last, so_far)) if *last == group => so_far.end = range.end,
                _ => groups.push((group, range.clone())),
            }
        }
        groups.into_iter().map(|(_, range)| range).collect()
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
