//! Where the time of a step goes: laps that the parts of a model take, added up on the thread that
//! calls them.
//!
//! Off unless [`measure`] is at work on this thread; then a part's function adds the time between
//! its entry and its end. Parts do not contain each other, so their times add up to the whole but
//! for what no part claims. A clock changes no result, and nothing that is measured is recorded.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use crate::nn::site::{Operator, Product};

/// What a lap belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Drawing tokens and targets.
    Batch,
    /// Token and position tables.
    Embedding(Direction),
    /// Layer and root-mean-square norms.
    Norm(Direction),
    /// A product of a linear operator, or of a group by its first operator.
    Linear(Operator, Product, Stage),
    /// Rotary positions.
    Rope(Direction),
    /// Softmax attention.
    Attention(Direction),
    /// Gated linear attention: the gates and the recurrence.
    Recurrence(Direction),
    /// GELU, `SwiGLU` and the like.
    Activation(Direction),
    /// Sums of the residual stream.
    Residual,
    /// Softmax and cross-entropy, both ways.
    Loss,
    /// The norm of the gradient and the update.
    Optimizer,
}

/// Downwards or upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From inputs to outputs.
    Forward,
    /// From gradients of outputs to those of inputs.
    Backward,
}

/// The stages of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Rounding the operands, and bringing them into the order in which they are multiplied.
    Quantize,
    /// Multiplying.
    Multiply,
    /// Rounding the result.
    Store,
}

impl Part {
    /// Every kind in the order of a step, with its name: what a table has rows for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Embedding(_) => "embedding",
            Self::Norm(_) => "norm",
            Self::Linear(operator, ..) => operator.name(),
            Self::Rope(_) => "rope",
            Self::Attention(_) => "attention",
            Self::Recurrence(_) => "recurrence",
            Self::Activation(_) => "activation",
            Self::Residual => "residual sums",
            Self::Loss => "loss",
            Self::Optimizer => "optimizer",
        }
    }

    /// The half of the step, or the product and its stage; empty where there is but one.
    pub fn detail(self) -> String {
        match self {
            Self::Embedding(direction)
            | Self::Norm(direction)
            | Self::Rope(direction)
            | Self::Attention(direction)
            | Self::Recurrence(direction)
            | Self::Activation(direction) => match direction {
                Direction::Forward => "forward".into(),
                Direction::Backward => "backward".into(),
            },
            Self::Linear(_, product, work) => {
                let work = match work {
                    Stage::Quantize => "quantize",
                    Stage::Multiply => "multiply",
                    Stage::Store => "store",
                };
                format!("{product} {work}")
            }
            _ => String::new(),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.detail();
        if detail.is_empty() { f.pad(self.name()) } else { write!(f, "{} {detail}", self.name()) }
    }
}

/// The laps of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laps {
    /// Which part.
    pub part: Part,
    /// How many.
    pub count: u64,
    /// Their sum.
    pub time: Duration,
}

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static LAPS: RefCell<Vec<Laps>> = const { RefCell::new(Vec::new()) };
}

/// A lap that ends when this is dropped.
#[derive(Debug)]
#[must_use = "a lap ends when it is dropped"]
pub struct Lap(Option<(Part, Instant)>);

/// Begins a lap; without [`measure`] this reads one flag.
#[inline]
pub fn lap(part: Part) -> Lap {
    Lap(ON.get().then(|| (part, Instant::now())))
}

impl Drop for Lap {
    fn drop(&mut self) {
        let Some((part, start)) = self.0.take() else { return };
        let time = start.elapsed();
        LAPS.with_borrow_mut(|laps| match laps.iter_mut().find(|laps| laps.part == part) {
            Some(laps) => {
                laps.count += 1;
                laps.time += time;
            }
            None => laps.push(Laps { part, count: 1, time }),
        });
    }
}

/// Does `work` and says what laps it took on this thread, sorted by part.
///
/// ```
/// use exmy_train::nn::activation::gelu;
/// use exmy_train::nn::stopwatch::{Part, Direction, measure};
///
/// let mut y = [0.0_f32; 3];
/// let ((), laps) = measure(|| (0..2).for_each(|_| gelu(&[1.0, 2.0, 3.0], &mut y)));
/// assert_eq!((laps.len(), laps[0].count), (1, 2));
/// assert_eq!(laps[0].part, Part::Activation(Direction::Forward));
/// ```
pub fn measure<R>(work: impl FnOnce() -> R) -> (R, Vec<Laps>) {
    /// Puts back what was, also when work panics.
    struct Before(bool, Vec<Laps>);
    impl Drop for Before {
        fn drop(&mut self) {
            ON.set(self.0);
            LAPS.replace(std::mem::take(&mut self.1));
        }
    }
    let before = Before(ON.replace(true), LAPS.take());
    let result = work();
    let mut laps = LAPS.take();
    drop(before);
    laps.sort_by_key(|laps| laps.part);
    (result, laps)
}
