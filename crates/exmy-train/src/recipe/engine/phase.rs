//! What products are for: a training step, an evaluation, a sample.

use exmy::random::Stream;

/// What the products are for; each has random streams of its own, so that an evaluation changes no
/// later training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A training step (0-based).
    Train(u64),
    /// A further part (from 1) of the sequences of a training step whose gradients accumulate.
    TrainPart {
        /// The step (0-based).
        step: u64,
        /// Which part.
        part: u64,
    },
    /// One forward pass of an evaluation.
    Evaluate {
        /// Steps trained before it.
        step: u64,
        /// Which pass of the evaluation.
        pass: u64,
    },
    /// The drawing of the token at this position.
    Sample(u64),
}

impl Phase {
    /// The stream that layers and sites branch off from.
    pub fn stream(self) -> Stream {
        match self {
            Self::Train(step) => Stream::new("quantize").with(step),
            Self::TrainPart { step, part } => Stream::new("quantize part").with(step).with(part),
            Self::Evaluate { step, pass } => {
                Stream::new("quantize evaluation").with(step).with(pass)
            }
            Self::Sample(position) => Stream::new("quantize sample").with(position),
        }
    }

    /// The training step that this is part of, if any: only these change what a recipe remembers.
    pub const fn trains(self) -> Option<u64> {
        match self {
            Self::Train(step) | Self::TrainPart { step, .. } => Some(step),
            Self::Evaluate { .. } | Self::Sample(_) => None,
        }
    }

    /// The step whose rules are in force: an evaluation has those of the next step, a sample those of
    /// the last.
    pub const fn step(self) -> u64 {
        match self {
            Self::Train(step) | Self::TrainPart { step, .. } | Self::Evaluate { step, .. } => step,
            Self::Sample(_) => u64::MAX,
        }
    }
}
