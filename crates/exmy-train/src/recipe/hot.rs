//! Hot-channel patches: a few input channels of a quantized product are given back what quantization took.
//!
//! With `X = Xq + RX` and `W = Wq + RW`, `X Wᵀ = Xq Wqᵀ + RX Wqᵀ + Xq RWᵀ + RX RWᵀ`. A patch adds some of
//! these terms on a set I of channels (columns of X and W) alone (CHON, arXiv 2602.02047):
//!
//! | text | added to `Xq Wqᵀ` | what remains wrong on I |
//! |---|---|---|
//! | `o1-a` | `RX_I Wq_Iᵀ` | `Xq RWᵀ + RX RWᵀ` |
//! | `o1-w` | `Xq_I RW_Iᵀ` | `RX Wqᵀ + RX RWᵀ` |
//! | `o2-b` | both: the paper's | `RX RWᵀ` |
//! | `full` | all three | nothing |
//! | `literal` | `RX_I RW_Iᵀ` alone | nearly everything |
//!
//! The last would be a one-block reading of the paper's augmentation.
//!
//! `s-` is a single product over `[Xq | RX_I | Xq_I]` and `[Wq | Wq_I | RW_I]`, `d-` a second product whose
//! result is added.
//!
//! # Text
//!
//! `s-o2-b` or `d-o2-b`, then any of these, joined by `-`. Neither the paper's k, nor how often I is chosen
//! anew, nor the numbers of the residuals could be read; the defaults are this crate's.
//!
//! - `k32`, `k5%`: that many channels, rounded up to a multiple of 16; `k0` patches nothing. Default 5 %, at
//!   least 16.
//! - `r100`: I is chosen anew every 100 steps, which is the default; `freeze500`: but not from step 500 on.
//! - `raw`, `normalized`, `product`: the score of channel j. `raw`, the default, is the mean abs of `RX_j`
//!   plus the mean abs of `RW_j`. `normalized` divides each by its mean over all channels first. `product`
//!   is `‖RX_j‖ ‖Wq_j‖ + ‖Xq_j‖ ‖RW_j‖`.
//! - `block16`: whole groups of 16 channels by summed score, which keep their codes and block scales; the
//!   default of `s-`. `channel`: single channels, which are quantized again; the default of `d-`.
//! - `same`, `bf16`, `exact`: the numbers of the residuals. They are the operand's own with its tensor scale
//!   (the default of `s-`), bfloat16 (of `d-`), or f32.
//! - `ema`: scores are averaged over the choices, with decay 0.9.
//! - `dgrad`, `wgrad`: the backward products are patched, too: `dX_I += dYq RW_I`, `dW_I += dYqᵀ RX_I`.

use std::fmt;
use std::str::FromStr;

use exmy::slice::View;
use exmy::text::UnknownName;

/// The terms that are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terms {
    /// The activation's residual.
    Input,
    /// The weight's residual.
    Weight,
    /// Both.
    Both,
    /// Both and their product.
    Full,
    /// The product of the residuals alone.
    Literal,
}

/// How channels are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Score {
    /// Mean abs of both residuals, added.
    Raw,
    /// Each divided by its mean first.
    Normalized,
    /// The quantity of the error bound.
    Product,
}

/// The numbers of residuals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Residual {
    /// The operand's, with its tensor scale.
    Same,
    /// Bfloat16.
    Bf16,
    /// As they are.
    Exact,
}

/// How many channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// So many.
    Channels(u32),
    /// So many percent of all.
    Percent(u32),
}

/// A patch; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Patch {
    /// Whether one product does it all.
    pub single: bool,
    /// What is added.
    pub terms: Terms,
    /// k; `None`: 5 %, at least 16.
    pub count: Option<Count>,
    /// Steps between choices.
    pub refresh: u32,
    /// The step from which the choice stays.
    pub freeze: Option<u64>,
    /// How channels are ranked.
    pub score: Score,
    /// Whether channels come in groups of 16.
    pub blocks: bool,
    /// The numbers of the residuals.
    pub residual: Residual,
    /// Whether scores are averaged over the choices.
    pub average: bool,
    /// Whether `grad_input` is patched.
    pub grad_input: bool,
    /// Whether `grad_weight` is patched.
    pub grad_weight: bool,
}

/// Channels of a group.
const GROUP: usize = 16;

impl Patch {
    /// `s-` or `d-` of these terms, with defaults.
    pub const fn new(single: bool, terms: Terms) -> Self {
        Self {
            single,
            terms,
            count: None,
            refresh: 100,
            freeze: None,
            score: Score::Raw,
            blocks: single,
            residual: if single { Residual::Same } else { Residual::Bf16 },
            average: false,
            grad_input: false,
            grad_weight: false,
        }
    }

    /// k among `channels`: a multiple of 16 or all.
    pub fn channels(&self, channels: usize) -> usize {
        let share = |percent: u32| (channels as u64 * u64::from(percent)).div_ceil(100) as usize;
        let wanted = match self.count {
            None => share(5).max(GROUP),
            Some(Count::Channels(k)) => k as usize,
            Some(Count::Percent(percent)) => share(percent),
        };
        wanted.next_multiple_of(GROUP).min(channels)
    }

    /// Products of k channels that it adds to the three of an operator.
    pub const fn products(&self) -> usize {
        let forward = match self.terms {
            Terms::Input | Terms::Weight | Terms::Literal => 1,
            Terms::Both => 2,
            Terms::Full => 3,
        };
        forward + self.grad_input as usize + self.grad_weight as usize
    }

    /// Whether the channels are chosen anew at a step, given the step of the last choice.
    pub fn is_due(&self, step: u64, last: Option<u64>) -> bool {
        match last {
            None => true,
            Some(last) if last == step => false,
            Some(_) => {
                step.is_multiple_of(u64::from(self.refresh))
                    && self.freeze.is_none_or(|freeze| step < freeze)
            }
        }
    }

    /// The channels of the highest scores, ascending; of equal scores the first.
    pub fn choose(&self, scores: &[f64]) -> Vec<u32> {
        let k = self.channels(scores.len());
        let width = if self.blocks { GROUP } else { 1 };
        let sums: Vec<f64> = scores.chunks(width).map(|group| group.iter().sum()).collect();
        let mut order: Vec<usize> = (0..sums.len()).collect();
        order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]).then(a.cmp(&b)));
        order.truncate(k.div_ceil(width));
        order.sort_unstable();
        let channels =
            order.into_iter().flat_map(|i| i * width..((i + 1) * width).min(scores.len()));
        channels.map(|channel| channel as u32).collect()
    }

    /// The score of each channel from what `sums` gives of the first and the second operand (rows, channels):
    /// the [sums of columns](column_sums) of what rounding took (`residual`) or of what it left, of squares
    /// if [`squares`](Self::squares) says so. `rows` are those of each operand.
    pub fn scores(&self, rows: [usize; 2], sums: impl Fn(usize, bool) -> Vec<f64>) -> Vec<f64> {
        let mean = |sums: Vec<f64>, rows: usize| -> Vec<f64> {
            sums.into_iter().map(|sum| sum / rows as f64).collect()
        };
        let relative = |sums: Vec<f64>| -> Vec<f64> {
            let mean = sums.iter().sum::<f64>() / sums.len() as f64;
            if mean > 0.0 { sums.into_iter().map(|sum| sum / mean).collect() } else { sums }
        };
        let add = |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a + b).collect();
        let times = |a: &[f64], b: &[f64]| -> Vec<f64> {
            a.iter().zip(b).map(|(a, b)| libm::sqrt(a * b)).collect()
        };
        match self.score {
            Score::Raw | Score::Normalized => {
                let a = mean(sums(0, true), rows[0]);
                let b = mean(sums(1, true), rows[1]);
                match self.score {
                    Score::Raw => add(a, b),
                    _ => add(relative(a), relative(b)),
                }
            }
            Score::Product => {
                let (rx, rw) = (sums(0, true), sums(1, true));
                let (qx, qw) = (sums(0, false), sums(1, false));
                add(times(&rx, &qw), times(&qx, &rw))
            }
        }
    }

    /// Whether scores are of squares.
    pub fn squares(&self) -> bool {
        self.score == Score::Product
    }
}

/// The sum of the magnitudes, or of the squares, of each column of `a`, or of `a - b`: in f64, rows
/// ascending.
pub fn column_sums(a: View<'_, f32>, b: Option<View<'_, f32>>, squared: bool) -> Vec<f64> {
    let mut sums = vec![0.0; a.cols()];
    for i in 0..a.rows() {
        for (j, sum) in sums.iter_mut().enumerate() {
            let value = f64::from(a.at(i, j)) - b.map_or(0.0, |b| f64::from(b.at(i, j)));
            *sum += if squared { value * value } else { value.abs() };
        }
    }
    sums
}

const FORMS: &str = "s- or d- and one of o1-a, o1-w, o2-b, full, literal; then any of -kN, -kN%, -rN, \
                     -freezeN, -raw, -normalized, -product, -block16, -channel, -same, -bf16, -exact, -ema, \
                     -dgrad, -wgrad";

impl FromStr for Patch {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse(&text.to_ascii_lowercase()).ok_or_else(|| {
            let names = ["s-o2-b", "d-o2-b", "s-o1-a", "s-o1-w", "s-full", "d-full", "off"];
            UnknownName::new("hot-channel patch", text, names, FORMS)
        })
    }
}

const TERMS: [(&str, Terms); 5] = [
    ("o1-a", Terms::Input),
    ("o1-w", Terms::Weight),
    ("o2-b", Terms::Both),
    ("full", Terms::Full),
    ("literal", Terms::Literal),
];

fn parse(text: &str) -> Option<Patch> {
    let (single, rest) = match text.split_at_checked(2)? {
        ("s-", rest) => (true, rest),
        ("d-", rest) => (false, rest),
        _ => return None,
    };
    let (name, terms) = TERMS.into_iter().find(|(name, _)| rest.starts_with(name))?;
    let mut patch = Patch::new(single, terms);
    let rest = &rest[name.len()..];
    if rest.is_empty() {
        return Some(patch);
    }
    for word in rest.strip_prefix('-')?.split('-') {
        let number = |prefix: &str, suffix: &str| -> Option<u64> {
            let digits = word.strip_prefix(prefix)?.strip_suffix(suffix)?;
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok())?
        };
        match word {
            "raw" => patch.score = Score::Raw,
            "normalized" => patch.score = Score::Normalized,
            "product" => patch.score = Score::Product,
            "block16" => patch.blocks = true,
            "channel" => patch.blocks = false,
            "same" => patch.residual = Residual::Same,
            "bf16" => patch.residual = Residual::Bf16,
            "exact" => patch.residual = Residual::Exact,
            "ema" => patch.average = true,
            "dgrad" => patch.grad_input = true,
            "wgrad" => patch.grad_weight = true,
            _ => {
                if let Some(percent) = number("k", "%").filter(|percent| *percent <= 100) {
                    patch.count = Some(Count::Percent(percent as u32));
                } else if let Some(k) = number("k", "") {
                    patch.count = Some(Count::Channels(u32::try_from(k).ok()?));
                } else if let Some(steps) = number("r", "").filter(|steps| *steps > 0) {
                    patch.refresh = u32::try_from(steps).ok()?;
                } else {
                    patch.freeze = Some(number("freeze", "")?);
                }
            }
        }
    }
    Some(patch)
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::new(self.single, self.terms);
        let (name, _) = TERMS[self.terms as usize];
        write!(f, "{}{name}", if self.single { "s-" } else { "d-" })?;
        match self.count {
            None => {}
            Some(Count::Channels(k)) => write!(f, "-k{k}")?,
            Some(Count::Percent(percent)) => write!(f, "-k{percent}%")?,
        }
        if self.refresh != default.refresh {
            write!(f, "-r{}", self.refresh)?;
        }
        if let Some(step) = self.freeze {
            write!(f, "-freeze{step}")?;
        }
        if self.score != default.score {
            f.write_str(if self.score == Score::Product { "-product" } else { "-normalized" })?;
        }
        if self.blocks != default.blocks {
            f.write_str(if self.blocks { "-block16" } else { "-channel" })?;
        }
        if self.residual != default.residual {
            f.write_str(match self.residual {
                Residual::Same => "-same",
                Residual::Bf16 => "-bf16",
                Residual::Exact => "-exact",
            })?;
        }
        for (is, word) in
            [(self.average, "-ema"), (self.grad_input, "-dgrad"), (self.grad_weight, "-wgrad")]
        {
            f.write_str(if is { word } else { "" })?;
        }
        Ok(())
    }
}
