//! Scaling laws: the loss as a function of parameters and tokens, fitted to runs, and what they say of
//! the best size for a budget.
//!
//! Two forms, with `N` parameters (embeddings included) and `D` tokens:
//! - [`Form::Chinchilla`]: `L = A / N^alpha + B / D^beta + E` (Hoffmann et al., arXiv 2203.15556,
//!   equation 2);
//! - [`Form::Kaplan`]: `L = ((A / N)^(alpha / beta) + B / D)^beta + E` (Kaplan et al., arXiv 2001.08361,
//!   equation 1.5, with a floor `E`).
//!
//! The fit is the one behind the laws of arXiv 2506.20752 (`utils_scaling.py` of
//! github.com/Hither1/systems-scaling), as Hoffmann et al. do it. Over `(ln A, ln B, ln E, alpha, beta)` it
//! minimizes the mean Huber loss (delta 1e-3) of the difference of `ln L`, by L-BFGS of at most 200 steps.
//! It begins at sixteen points, `ln A` and `ln B` in {5, 10, 15, 20}, `ln E = 0.5`, `alpha = beta = 0.4`,
//! and takes the lowest result.

use crate::statistics::mean;
use exmy::error::{Error, Result};
use exmy_train::minimize::{Options, minimize};

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Parameters.
    pub n: f64,
    /// Tokens trained on.
    pub d: f64,
    /// Its loss, in nats.
    pub loss: f64,
}

/// Which formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `A / N^alpha + B / D^beta + E`.
    Chinchilla,
    /// `((A / N)^(alpha / beta) + B / D)^beta + E`.
    Kaplan,
}

/// A formula with its coefficients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// The formula.
    pub form: Form,
    /// Of parameters.
    pub a: f64,
    /// Of tokens.
    pub b: f64,
    /// What remains, in nats.
    pub e: f64,
    /// Exponent of parameters.
    pub alpha: f64,
    /// Exponent of tokens.
    pub beta: f64,
}

impl Law {
    fn of(form: Form, x: &[f64]) -> Self {
        let [a, b, e] = [x[0], x[1], x[2]].map(libm::exp);
        Self { form, a, b, e, alpha: x[3], beta: x[4] }
    }

    /// The loss it predicts, in nats.
    pub fn loss(&self, n: f64, d: f64) -> f64 {
        let x = [libm::log(self.a), libm::log(self.b), libm::log(self.e), self.alpha, self.beta];
        libm::exp(ln_loss(self.form, &x, libm::log(n), libm::log(d)).0)
    }

    /// Where the best number of parameters for a budget of `flops = 6 N D` is, of the Chinchilla form:
    /// `N* = G (C / 6)^a` with `G = (alpha A / (beta B))^(1 / (alpha + beta))`, `a = beta / (alpha + beta)`
    /// (Hoffmann et al., equation 4). The optimum of the Kaplan form,
    /// `alpha (A / N)^(alpha / beta) = beta B / D`, is found likewise, with `G = (alpha / (beta B)
    /// A^(alpha / beta))^(beta / (alpha + beta))` and the same `a`.
    ///
    /// ```
    /// use exmy_lab::scaling::{Form, Law};
    ///
    /// // Weights in MX E4M3, activations in bfloat16 (arXiv 2506.20752).
    /// let (a, b, e) = (2822.5, 20445.4, 0.5353);
    /// let law = Law { form: Form::Chinchilla, a, b, e, alpha: 0.5236, beta: 0.5534 };
    /// assert!((law.exponent() - 0.514).abs() < 5e-4);
    /// let (best, budget) = (law.best_parameters(2.2e19), 2.2e19);
    /// let loss = |n: f64| law.loss(n, budget / (6.0 * n));
    /// assert!(loss(best) < loss(1.05 * best) && loss(best) < loss(best / 1.05));
    /// ```
    pub fn best_parameters(&self, flops: f64) -> f64 {
        let ratio = match self.form {
            Form::Chinchilla => {
                let ln = libm::log(self.alpha * self.a) - libm::log(self.beta * self.b);
                ln / (self.alpha + self.beta)
            }
            Form::Kaplan => {
                let ln = libm::log(self.alpha) - libm::log(self.b)
                    + self.alpha / self.beta * libm::log(self.a)
                    - libm::log(self.beta);
                ln * self.beta / (self.alpha + self.beta)
            }
        };
        libm::exp(ratio + self.exponent() * libm::log(flops / 6.0))
    }

    /// The exponent with which the best number of parameters grows with the budget.
    pub fn exponent(&self) -> f64 {
        self.beta / (self.alpha + self.beta)
    }

    /// Whether the exponents are of a law: positive, `beta` at most 1. Runs that diverge give others
    /// (`beta` of 1.7 to 4.5 were printed for unstable pairs of formats).
    pub fn is_valid(&self) -> bool {
        self.alpha > 0.0 && self.beta > 0.0 && self.beta <= 1.0
    }
}

/// A law with how well it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The law.
    pub law: Law,
    /// The mean Huber loss of `ln L`.
    pub huber: f64,
    /// The share of the variance of `L` that it explains.
    pub r2: f64,
}

/// `ln(e^a + e^b)` and the weights of the two.
fn ln_sum(a: f64, b: f64) -> (f64, f64, f64) {
    let most = if a > b { a } else { b };
    let sum = most + libm::log(libm::exp(a - most) + libm::exp(b - most));
    (sum, libm::exp(a - sum), libm::exp(b - sum))
}

/// `ln L` at `(ln A, ln B, ln E, alpha, beta)` and its gradient in them.
#[doc(hidden)]
pub fn ln_loss(form: Form, x: &[f64], ln_n: f64, ln_d: f64) -> (f64, [f64; 5]) {
    let (ln_a, ln_b, ln_e, alpha, beta) = (x[0], x[1], x[2], x[3], x[4]);
    match form {
        Form::Chinchilla => {
            let (both, w_n, w_d) = ln_sum(ln_a - alpha * ln_n, ln_b - beta * ln_d);
            let (loss, w, w_e) = ln_sum(both, ln_e);
            (loss, [w * w_n, w * w_d, w_e, -w * w_n * ln_n, -w * w_d * ln_d])
        }
        Form::Kaplan => {
            let ratio = alpha / beta;
            let (both, w_n, w_d) = ln_sum(ratio * (ln_a - ln_n), ln_b - ln_d);
            let (loss, w, w_e) = ln_sum(beta * both, ln_e);
            let by_ratio = beta * w_n * (ln_a - ln_n);
            let by_beta = both - by_ratio * alpha / (beta * beta);
            (loss, [w * alpha * w_n, w * beta * w_d, w_e, w * by_ratio / beta, w * by_beta])
        }
    }
}

/// The width of the quadratic part of the Huber loss.
const DELTA: f64 = 1e-3;
/// Where `ln A` and `ln B` start.
const STARTS: [f64; 4] = [5.0, 10.0, 15.0, 20.0];

/// Fits a law to runs.
///
/// ```
/// use exmy_lab::scaling::{Form, Law, Point, fit};
///
/// let truth = Law { form: Form::Chinchilla, a: 400.0, b: 410.0, e: 1.7, alpha: 0.34, beta: 0.28 };
/// let sizes = [1e7, 3e7, 1e8, 3e8, 1e9];
/// let grid = sizes.iter().flat_map(|&n| [1e9, 1e10, 1e11].map(|d| (n, d)));
/// let runs: Vec<Point> = grid.map(|(n, d)| Point { n, d, loss: truth.loss(n, d) }).collect();
/// let found = fit(Form::Chinchilla, &runs)?;
/// assert!((found.law.alpha - 0.34).abs() < 1e-3 && found.r2 > 0.999_999);
/// # Ok::<(), exmy::error::Error>(())
/// ```
///
/// # Errors
/// If there are fewer than six runs for the five coefficients, all of one size or of one length, or with
/// numbers that are not finite and positive.
pub fn fit(form: Form, runs: &[Point]) -> Result<Fit> {
    let bad = |run: &&Point| [run.n, run.d, run.loss].iter().any(|v| !(v.is_finite() && *v > 0.0));
    if let Some(run) = runs.iter().find(bad) {
        return Err(Error::new(format!("a run with {run:?} cannot be fitted"))
            .hint("leave out runs that diverged, and say so"));
    }
    let varies = |of: fn(&Point) -> f64| runs.iter().any(|run| of(run) != of(&runs[0]));
    if runs.len() < 6 || !varies(|run| run.n) || !varies(|run| run.d) {
        return Err(Error::new(format!("{} runs do not determine five coefficients", runs.len()))
            .hint("six or more, of several sizes and several numbers of tokens"));
    }
    let logs: Vec<[f64; 3]> =
        runs.iter().map(|run| [run.n, run.d, run.loss].map(libm::log)).collect();
    let huber = |x: &[f64], g: &mut [f64]| {
        g.fill(0.0);
        let mut sum = 0.0;
        for &[ln_n, ln_d, ln_l] in &logs {
            let (predicted, slopes) = ln_loss(form, x, ln_n, ln_d);
            let off = predicted - ln_l;
            sum += if off.abs() <= DELTA {
                off * off / 2.0
            } else {
                DELTA * (off.abs() - DELTA / 2.0)
            };
            let slope = off.clamp(-DELTA, DELTA);
            g.iter_mut().zip(slopes).for_each(|(g, s)| *g += slope * s / logs.len() as f64);
        }
        sum / logs.len() as f64
    };
    // The loss is far below 1: only steps that gain nothing at all end a search.
    let options = Options { iterations: 200, gradient: 1e-15, decrease: 0.0, ..Options::default() };
    let starts = STARTS.iter().flat_map(|&a| STARTS.map(|b| [a, b, 0.5, 0.4, 0.4]));
    let ends = starts.map(|start| minimize(huber, &start, None, &options));
    let best = ends.min_by(|a, b| a.value.total_cmp(&b.value));
    let best = best.filter(|best| best.value.is_finite()).ok_or_else(|| {
        Error::new("no start of the fit has a finite loss").hint("check the units of the runs")
    })?;
    let law = Law::of(form, &best.point);
    let losses: Vec<f64> = runs.iter().map(|run| run.loss).collect();
    let middle = mean(&losses).unwrap_or(f64::NAN);
    let square = |off: f64| off * off;
    let rest: f64 = runs.iter().map(|run| square(run.loss - law.loss(run.n, run.d))).sum();
    let all: f64 = losses.iter().map(|loss| square(loss - middle)).sum();
    Ok(Fit { law, huber: best.value, r2: 1.0 - rest / all })
}
