//! Sharpness of the loss in the logits: how much a change of each logit by at most `eps (|x_i| + 1)` can
//! raise it, in percent of one plus the loss:
//!
//! `sharpness = 100 (max over |d_i| <= eps (|x_i| + 1) of L(x + d) - L(x)) / (1 + L(x))`
//!
//! x are the logits of the last token of each sequence, L is the mean of their cross-entropies. The part
//! `each` is the mean of the same number of single sequences. `eps` is 1e-3 without an argument; it is not
//! published.
//!
//! The measure is Keskar's (arXiv 1609.04836, section 2.2.2), of the last token's logits as in arXiv
//! 2405.18710, Eq. 2. The maximum is where the target's logit is lowered and the others are raised as far
//! as they may be. The study's few iterations of L-BFGS-B end below it where the vocabulary is large.

use super::{Argument, Ending, Needs, Probe, Snapshot, Values};
use crate::nn::sharpness::by_search;

/// The half-width of the box over `|x_i| + 1`.
const EPS: f64 = 1e-3;

/// The cross-entropy of logits moved by `move_by` of `(is the target, logit)`, in nats.
pub fn cross_entropy(ending: &Ending, move_by: impl Fn(bool, f64) -> f64) -> f64 {
    let moved = || {
        ending.logits.iter().enumerate().map(|(i, &x)| {
            let x = f64::from(x);
            x + move_by(i == ending.target as usize, x)
        })
    };
    let most = moved().fold(f64::NEG_INFINITY, f64::max);
    let sum = moved().map(|x| libm::exp(x - most)).sum::<f64>();
    let target = moved().nth(ending.target as usize).unwrap_or(f64::NAN);
    libm::log(sum) - (target - most)
}

/// The sharpness of the mean loss of some logits, each with a box of its own.
pub fn sharpness(endings: &[Ending], eps: f64) -> Option<f64> {
    let mean = |losses: &dyn Fn(&Ending) -> f64| {
        endings.iter().map(losses).sum::<f64>() / endings.len() as f64
    };
    let loss = mean(&|ending| cross_entropy(ending, |_, _| 0.0));
    let vertex = |target: bool, x: f64| {
        let reach = eps * (x.abs() + 1.0);
        if target { -reach } else { reach }
    };
    let most = mean(&|ending| cross_entropy(ending, vertex));
    (!endings.is_empty()).then(|| 100.0 * (most - loss) / (1.0 + loss))
}

/// The mean of the sharpnesses of each of them alone; NaN of none.
pub fn each(endings: &[Ending], eps: f64) -> f64 {
    let alone = |one| sharpness(std::slice::from_ref(one), eps).unwrap_or(f64::NAN);
    endings.iter().map(alone).sum::<f64>() / endings.len() as f64
}

/// How the maximum is found.
enum Method {
    /// At the vertex of a box of this half-width.
    Vertex(f64),
    /// By so many iterations of a search, as it was published.
    Search(usize),
}

/// `sharpness`, `sharpness:EPS`, `sharpness_lbfgsb`, `sharpness_lbfgsb:ITERATIONS`.
pub struct Sharpness {
    name: String,
    method: Method,
}

impl Sharpness {
    pub fn new(name: &str, argument: Argument<'_>) -> Result<Self, String> {
        let eps = argument.map_or(Ok(EPS), |text| {
            let eps = text.parse::<f64>().ok().filter(|eps| *eps > 0.0 && eps.is_finite());
            eps.ok_or_else(|| format!("`{text}` is no half-width of a box; write one as 5e-4"))
        })?;
        Ok(Self { name: name.to_owned(), method: Method::Vertex(eps) })
    }

    pub fn searched(name: &str, argument: Argument<'_>) -> Result<Self, String> {
        let iterations = argument.map_or(Ok(10), |text| {
            let iterations =
                text.parse::<usize>().ok().filter(|count| (1..=10_000).contains(count));
            iterations.ok_or_else(|| format!("`{text}` is no number of iterations from 1 to 10000"))
        })?;
        Ok(Self { name: name.to_owned(), method: Method::Search(iterations) })
    }
}

impl Probe for Sharpness {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> Needs {
        Needs { endings: true, ..Needs::default() }
    }

    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values) {
        let Some(endings) = seen.endings else { return };
        match self.method {
            Method::Vertex(eps) => {
                if let Some(value) = sharpness(endings, eps) {
                    values.set(value);
                    values.part("each", each(endings, eps));
                }
            }
            Method::Search(iterations) => {
                let logits = endings.iter().flat_map(|ending| &ending.logits);
                let logits: Vec<f64> = logits.map(|&x| f64::from(x)).collect();
                let targets: Vec<u32> = endings.iter().map(|ending| ending.target).collect();
                if let Some(found) = by_search(&logits, &targets, EPS, iterations) {
                    values.set(found.sharpness);
                    values.part("loss", found.loss);
                    values.part("iterations", found.iterations as f64);
                }
            }
        }
    }
}
