//! Sharpness of the loss in the logits: how much a change of each logit by at most `eps (|x_i| + 1)` can
//! raise it, in percent of one plus the loss:
//!
//! `phi = 100 (max over |d_i| <= eps (|x_i| + 1) of L(x + d) - L(x)) / (1 + L(x))`
//!
//! x are the logits of the last token of each sequence, L is the mean of their cross-entropies. The part
//! `each` is the mean of the same number of single sequences. `eps` is 1e-3 without an argument; it is not
//! published.
//!
//! The measure is Keskar's (arXiv 1609.04836, section 2.2.2), applied to the last token's logits as in "To
//! FP8 and Back Again" (arXiv 2405.18710, Eq. 2). The cross-entropy is convex in the logits, falls with the
//! target's and rises with all others. So the maximum is at the vertex where the target's logit is lowered
//! and the others are raised as far as they may be. The study searched by a few iterations of L-BFGS-B,
//! which end below this maximum where the vocabulary is large.

use super::{Argument, Ending, Needs, Probe, Seen, Values};
use crate::nn::sharpness::by_search;

/// The half-width of the box over `|x_i| + 1`.
const EPS: f64 = 1e-3;

/// The cross-entropy of logits moved by `move_by` of `(is the target, logit)`, in nats.
fn cross_entropy(ending: &Ending, move_by: impl Fn(bool, f64) -> f64) -> f64 {
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
pub(super) fn phi(endings: &[Ending], eps: f64) -> Option<f64> {
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
fn each(endings: &[Ending], eps: f64) -> f64 {
    let alone = |one| phi(std::slice::from_ref(one), eps).unwrap_or(f64::NAN);
    endings.iter().map(alone).sum::<f64>() / endings.len() as f64
}

/// `phi`, `phi:EPS`.
pub(super) struct Sharpness {
    name: String,
    eps: f64,
}

impl Sharpness {
    pub(super) fn new(name: &str, argument: Argument<'_>) -> Result<Self, String> {
        let eps = argument.map_or(Ok(EPS), |text| {
            let eps = text.parse::<f64>().ok().filter(|eps| *eps > 0.0 && eps.is_finite());
            eps.ok_or_else(|| format!("`{text}` is no half-width of a box; write one as 5e-4"))
        })?;
        Ok(Self { name: name.to_owned(), eps })
    }
}

impl Probe for Sharpness {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> Needs {
        Needs { endings: true, ..Needs::default() }
    }

    fn measure(&mut self, seen: &Seen<'_>, values: &mut Values) {
        let Some(endings) = seen.endings else { return };
        if let Some(phi) = phi(endings, self.eps) {
            values.set(phi);
            values.part("each", each(endings, self.eps));
        }
    }
}

/// `phi_lbfgsb`, `phi_lbfgsb:ITERATIONS`: the same by search, as it was published.
pub(super) struct Searched {
    name: String,
    iterations: usize,
}

impl Searched {
    pub(super) fn new(name: &str, argument: Argument<'_>) -> Result<Self, String> {
        let iterations = argument.map_or(Ok(10), |text| {
            let iterations =
                text.parse::<usize>().ok().filter(|count| (1..=10_000).contains(count));
            iterations.ok_or_else(|| format!("`{text}` is no number of iterations from 1 to 10000"))
        })?;
        Ok(Self { name: name.to_owned(), iterations })
    }
}

impl Probe for Searched {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> Needs {
        Needs { endings: true, ..Needs::default() }
    }

    fn measure(&mut self, seen: &Seen<'_>, values: &mut Values) {
        let Some(endings) = seen.endings else { return };
        let logits = endings.iter().flat_map(|ending| &ending.logits).map(|&x| f64::from(x));
        let logits: Vec<f64> = logits.collect();
        let targets: Vec<u32> = endings.iter().map(|ending| ending.target).collect();
        if let Some(found) = by_search(&logits, &targets, EPS, self.iterations) {
            values.set(found.phi);
            values.part("loss", found.loss);
            values.part("iterations", found.iterations as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy::random::{Philox, Stream};

    fn of(logits: &[f32], target: u32) -> Ending {
        Ending { logits: logits.to_vec(), target }
    }

    /// By 30-digit arithmetic (Python's `decimal`) from the formula above.
    #[test]
    fn known_values() {
        for (logits, target, eps, expected) in [
            (&[0.0, 0.0][..], 0, 1e-3, 0.059_091_14),
            (&[2.0, -1.0, 0.5, 3.0], 3, 1e-3, 0.154_694_65),
            (&[2.0, -1.0, 0.5, 3.0], 1, 5e-4, 0.051_401_87),
            (&[20.0, -10.0, 5.0, 30.0], 1, 1e-3, 0.102_437_81),
        ] {
            let found = phi(&[of(logits, target)], eps).unwrap();
            assert!((found - expected).abs() < 1e-8, "{logits:?}: {found}, not {expected}");
        }
    }

    /// No vertex of the box is above the one that the formula takes.
    #[test]
    fn no_vertex_is_higher() {
        let random = Philox::new(1, Stream::new("vertices"));
        let logits: Vec<f32> = (0..12).map(|i| 8.0 * random.uniform(i) as f32 - 4.0).collect();
        let ending = of(&logits, 5);
        let loss = cross_entropy(&ending, |_, _| 0.0);
        let highest = phi(&[of(&logits, 5)], 0.1).unwrap();
        for vertex in 0..1_u32 << 12 {
            let moved: Vec<f32> = logits.clone();
            // Exact in f64: the signs are looked up by the logit, all of which differ.
            let sign = |x: f64| {
                let at = moved.iter().position(|&y| f64::from(y) == x).unwrap();
                if vertex >> at & 1 == 1 { 1.0 } else { -1.0 }
            };
            let there = cross_entropy(&ending, |_, x| sign(x) * 0.1 * (x.abs() + 1.0));
            assert!(100.0 * (there - loss) / (1.0 + loss) <= highest + 1e-12);
        }
    }

    #[test]
    fn zero_without_a_box_and_growing_with_it() {
        let endings = [of(&[1.0, 2.0, -3.0], 0), of(&[0.0, -40.0, 7.0], 2)];
        let at = |eps| phi(&endings, eps).unwrap();
        assert_eq!(at(0.0), 0.0);
        assert!(0.0 < at(1e-4) && at(1e-4) < at(1e-3) && at(1e-3) < at(1e-2));
        assert_eq!(phi(&[], 1e-3), None);
        // The mean of losses, not of sharpnesses.
        let alone = endings.each_ref().map(|e| phi(std::slice::from_ref(e), 1e-3).unwrap());
        let mean = (alone[0] + alone[1]) / 2.0;
        assert!((at(1e-3) - mean).abs() > 1e-6);
        assert!((each(&endings, 1e-3) - mean).abs() < 1e-15);
    }

    /// Where both look, the search ends at most at the vertex, and near it for a small vocabulary.
    #[test]
    fn the_search_ends_below_the_vertex() {
        use super::super::registry::tests::{proxy, seen};
        use crate::nn::parameters::Layout;
        let random = Philox::new(5, Stream::new("endings"));
        let endings: Vec<Ending> = (0..1)
            .map(|i| Ending {
                logits: (0..256).map(|j| 6.0 * random.uniform(256 * i + j) as f32 - 3.0).collect(),
                target: 17 * i as u32,
            })
            .collect();
        let (model, layout) = (proxy(), Layout::default());
        let seen = Seen { endings: Some(&endings), ..seen(&model, &layout, &[]) };
        let of = |probe: &mut dyn Probe| {
            let mut values = Values::default();
            probe.measure(&seen, &mut values);
            values
        };
        let vertex = of(&mut Sharpness::new("phi", None).unwrap()).value.unwrap();
        let found = of(&mut Searched::new("phi_lbfgsb", None).unwrap());
        let phi = found.value.unwrap();
        assert!(phi <= vertex * (1.0 + 1e-9) && phi > 0.995 * vertex, "{phi} {vertex}");
        assert!(found.parts["iterations"].number().unwrap() <= 10.0);
    }
}
