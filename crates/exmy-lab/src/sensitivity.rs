//! How much the learning rate matters: one number for a curve of final losses over rates, and the
//! interval of rates that work.
//!
//! The number is the learning rate sensitivity of Wortsman et al. ("Small-scale proxies for large-scale
//! Transformer training instabilities", arXiv 2309.14322, section 2.3),
//! `S = mean over eta of [min(l(eta), l_0) - l*]`, with the loss `l_0` before training and the best
//! loss `l*` of any rate: what one loses on average by not having tuned. Their grid is 3e-4 to 3e-1,
//! evenly spaced in the logarithm; the mean over such a grid weighs decades alike. The claim that fewer
//! bits leave a narrower margin ("To FP8 and Back Again", arXiv 2405.18710) is the width of
//! [`stable`], in decades, that shrinks.

use crate::statistics::mean;

/// The runs made with one learning rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The peak learning rate.
    pub lr: f64,
    /// The final losses of its seeds, in nats; NaN where there is none.
    pub losses: Vec<f64>,
    /// How many of them diverged, with a final loss or without.
    pub diverged: usize,
}

impl Rate {
    /// The mean of the losses, each at most `initial`: a diverged run has learnt nothing.
    fn loss(&self, initial: f64) -> Option<f64> {
        // A comparison with NaN is false.
        let at_most = |loss: &f64| if *loss < initial { *loss } else { initial };
        mean(&self.losses.iter().map(at_most).collect::<Vec<f64>>())
    }

    /// The mean of the losses where all runs have one and none diverged.
    fn sound(&self) -> Option<f64> {
        let sound = self.diverged == 0 && self.losses.iter().all(|loss| loss.is_finite());
        mean(&self.losses).filter(|_| sound)
    }
}

/// What [`sensitivity`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// The mean of what rates of the grid lose against the best, in nats.
    pub s: f64,
    /// The best rate,
    pub best_lr: f64,
    /// and its loss.
    pub best: f64,
}

/// Whether rates are a grid: positive and ascending.
fn is_grid(rates: &[Rate]) -> bool {
    let positive = rates.iter().all(|rate| rate.lr > 0.0 && rate.lr.is_finite());
    positive && rates.windows(2).all(|pair| pair[0].lr < pair[1].lr)
}

/// The learning rate sensitivity; `initial` is the loss before training. Losses of several seeds are
/// averaged, each cut to `initial` first.
///
/// `None` without rates, where a rate has no runs, or where rates are not positive and ascending.
///
/// ```
/// use exmy_lab::sensitivity::{Rate, sensitivity};
///
/// let rate = |lr, loss| Rate { lr, losses: vec![loss], diverged: 0 };
/// // The last one diverged to far above the loss before training, and counts as that.
/// let rates = [rate(1e-3, 3.0), rate(1e-2, 2.0), rate(1e-1, f64::INFINITY)];
/// assert_eq!(sensitivity(&rates, 5.0).unwrap().s, (1.0 + 0.0 + 3.0) / 3.0);
/// ```
pub fn sensitivity(rates: &[Rate], initial: f64) -> Option<Sensitivity> {
    if !is_grid(rates) || !initial.is_finite() {
        return None;
    }
    let losses: Vec<f64> = rates.iter().map(|rate| rate.loss(initial)).collect::<Option<_>>()?;
    let (best, rate) = losses.iter().zip(rates).min_by(|a, b| a.0.total_cmp(b.0))?;
    let excess: Vec<f64> = losses.iter().map(|loss| loss - best).collect();
    Some(Sensitivity { s: mean(&excess)?, best_lr: rate.lr, best: *best })
}

/// The rates that work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stable {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// From one to the other in decades; 0 where only one rate of the grid works.
    pub decades: f64,
    /// Whether the grid ends at the lowest, so that lower ones may work, too.
    pub open_below: bool,
    /// Whether the grid ends at the highest.
    pub open_above: bool,
}

/// The neighbouring rates about the best one at which no run diverged and the mean loss is at most
/// `within` nats above the best. Rates that work beyond one that does not are not counted.
///
/// `None` if there is none, or where rates are not positive and ascending.
///
/// ```
/// use exmy_lab::sensitivity::{Rate, stable};
///
/// let rate = |lr, loss, diverged| Rate { lr, losses: vec![loss], diverged };
/// let rates = [rate(1e-3, 2.05, 0), rate(1e-2, 2.0, 0), rate(1e-1, 1.9, 1)];
/// let found = stable(&rates, 0.1).unwrap();
/// assert_eq!((found.low, found.high), (1e-3, 1e-2)); // the lowest loss is of a run that diverged
/// assert!(found.open_below && !found.open_above && (found.decades - 1.0).abs() < 1e-12);
/// ```
pub fn stable(rates: &[Rate], within: f64) -> Option<Stable> {
    if !is_grid(rates) {
        return None;
    }
    let losses: Vec<Option<f64>> = rates.iter().map(Rate::sound).collect();
    let known = losses.iter().enumerate().filter_map(|(i, loss)| Some((i, (*loss)?)));
    let (centre, best) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let works = |loss: &&Option<f64>| loss.is_some_and(|loss| loss <= best + within);
    let first = centre - losses[..centre].iter().rev().take_while(works).count();
    let last = centre + losses[centre + 1..].iter().take_while(works).count();
    let (low, high) = (rates[first].lr, rates[last].lr);
    Some(Stable {
        low,
        high,
        decades: libm::log10(high / low),
        open_below: first == 0,
        open_above: last + 1 == rates.len(),
    })
}
