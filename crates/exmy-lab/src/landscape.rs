//! Loss landscapes: the loss over a plane through a model's weights.
//!
//! `L(alpha, beta) = loss(theta + alpha d1 + beta d2)` over two random directions whose every filter has the
//! length of the weights' own, so that surfaces of differently scaled weights compare (Li, Xu, Taylor,
//! Studer, Goldstein, "Visualizing the loss landscape of neural nets", arXiv 1712.09913, section 4). A
//! filter is an output row of a matrix, or a token's row of an embedding; gains of norms and biases do
//! not move. Directions come from a seed and the tensors' names and shapes alone, and are scaled by the
//! weights they are laid through. The same seed shows checkpoints and number formats from the same side.
//!
//! "To FP8 and Back Again" (arXiv 2405.18710) draws them of a run that is about to diverge and finds them
//! smooth, that is, no diagnostic; [`Landscape::minima`] puts a number to it.

use crate::plot::{Axis, Figure, Heat, Panel, Series};
use exmy::random::Stream;
use exmy_train::nn::parameters::{Init, Layout, Role};

/// A direction in the space of the parameters of `layout`: number `index` of `seed`, its filters as long
/// as those of `params`.
///
/// ```
/// use exmy_train::nn::parameters::{Init, Layout, Role};
/// use exmy_lab::landscape::direction;
///
/// let mut layout = Layout::default();
/// layout.push("w".into(), &[2, 2], Role::Matrix, Init::Zeros);
/// layout.push("gain".into(), &[2], Role::Norm, Init::Ones);
/// // The second row has no length, and the gains do not move.
/// let d = direction(&layout, &[3.0, 4.0, 0.0, 0.0, 1.0, 1.0], 7, 0);
/// assert!((d[0] * d[0] + d[1] * d[1] - 25.0).abs() < 1e-4);
/// assert_eq!(d[2..], [0.0; 4]);
/// ```
///
/// # Panics
/// If `params` has another length than `layout`.
pub fn direction(layout: &Layout, params: &[f32], seed: u64, index: u64) -> Vec<f32> {
    assert_eq!(params.len(), layout.len(), "parameters of another layout");
    // Normal values by name and shape; the stream of the seed is none that weights start from.
    let mut normal = Layout::default();
    for entry in layout {
        let init = match entry.role {
            Role::Matrix | Role::Tokens | Role::Embedding => Init::Normal { std: 1.0 },
            Role::Norm | Role::NormBias | Role::Bias => Init::Zeros,
        };
        normal.push(entry.name.clone(), &entry.shape, entry.role, init);
    }
    let stream = Stream::new("landscape").with(seed).with(index);
    let mut direction = normal.initialize(stream.id());
    for entry in layout {
        let filter: usize = entry.shape.iter().skip(1).product();
        if filter == 0 || matches!(entry.role, Role::Norm | Role::NormBias | Role::Bias) {
            continue;
        }
        let weights = params[entry.range.clone()].chunks(filter);
        for (d, weights) in direction[entry.range.clone()].chunks_mut(filter).zip(weights) {
            let (own, wanted) = (length(d), length(weights));
            let factor = if own > 0.0 { wanted / own } else { 0.0 };
            d.iter_mut().for_each(|d| *d = (f64::from(*d) * factor) as f32);
        }
    }
    direction
}

#[doc(hidden)]
pub fn length(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt()
}

/// Losses over a square of the plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Landscape {
    /// Points a side.
    pub side: usize,
    /// `alpha` and `beta` run from minus this to this.
    pub range: f64,
    /// The losses, row by row from the lowest `beta`, `alpha` changing fastest.
    pub losses: Vec<f64>,
}

/// The loss at each of `side` x `side` points about `params`. An odd side has the parameters themselves
/// in its middle, to the bit; of a side of 1 they are all.
///
/// `loss` is called once a point, in the order of [`Landscape::losses`].
///
/// ```
/// use exmy_lab::landscape::grid;
///
/// let bowl = |p: &[f32]| p.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
/// let found = grid(&[0.0, 0.0], &[1.0, 0.0], &[0.0, 2.0], 3, 1.0, bowl);
/// assert_eq!(found.losses, [5.0, 4.0, 5.0, 1.0, 0.0, 1.0, 5.0, 4.0, 5.0]);
/// ```
///
/// # Panics
/// If a direction has another length than the parameters.
pub fn grid(
    params: &[f32],
    first: &[f32],
    second: &[f32],
    side: usize,
    range: f64,
    mut loss: impl FnMut(&[f32]) -> f64,
) -> Landscape {
    assert!(params.len() == first.len() && params.len() == second.len(), "a direction of a model");
    let mut at = params.to_vec();
    let mut losses = Vec::with_capacity(side * side);
    for row in 0..side {
        for column in 0..side {
            let (alpha, beta) = (place(side, range, column), place(side, range, row));
            for (((at, &p), &a), &b) in at.iter_mut().zip(params).zip(first).zip(second) {
                *at = (f64::from(p) + alpha * f64::from(a) + beta * f64::from(b)) as f32;
            }
            losses.push(loss(&at));
        }
    }
    Landscape { side, range, losses }
}

/// Where point `i` of a side lies.
fn place(side: usize, range: f64, i: usize) -> f64 {
    // Twice the distance from the middle is a whole number, 0 in the middle.
    let twice = 2.0 * i as f64 - (side.max(1) - 1) as f64;
    if side > 1 { range * twice / (side - 1) as f64 } else { 0.0 }
}

impl Landscape {
    /// `(alpha, beta)` of a point by its place among [`losses`](Self::losses).
    pub fn at(&self, index: usize) -> (f64, f64) {
        let place = |i| place(self.side, self.range, i);
        (place(index % self.side), place(index / self.side))
    }

    /// The loss in the middle: that of the parameters themselves. `None` of an even side.
    pub fn centre(&self) -> Option<f64> {
        (self.side % 2 == 1).then(|| self.losses[self.losses.len() / 2])
    }

    /// How many inner points are lower than all their eight neighbours: a smooth bowl has one, a rough
    /// surface many. What is no number is no neighbour and no minimum.
    pub fn minima(&self) -> usize {
        self.lowest().count()
    }

    /// Whether all losses are numbers and one inner point is the only minimum and below all others: what
    /// weights in a smooth valley have around them. A slope, whose lowest point lies at the edge, is none.
    pub fn is_valley(&self) -> bool {
        let mut minima = self.lowest();
        let (Some(lowest), None) = (minima.next(), minima.next()) else { return false };
        let above = |(at, loss): (usize, &f64)| at == lowest || *loss > self.losses[lowest];
        self.losses.iter().all(|loss| loss.is_finite()) && self.losses.iter().enumerate().all(above)
    }

    /// The places of the inner minima.
    fn lowest(&self) -> impl Iterator<Item = usize> {
        let n = self.side;
        let inner = move |i: usize| (1..n.saturating_sub(1)).contains(&i);
        let is_minimum = move |index: &usize| {
            let (row, column) = (index / n, index % n);
            let near =
                (row - 1..=row + 1).flat_map(|r| (column - 1..=column + 1).map(move |c| r * n + c));
            let here = self.losses[*index];
            let others = near.filter(|other| other != index).map(|other| self.losses[other]);
            here.is_finite() && others.filter(|loss| !loss.is_nan()).all(|loss| here < loss)
        };
        let inside = (0..n * n).filter(move |index| inner(index / n) && inner(index % n));
        inside.filter(is_minimum)
    }

    /// The grid as a picture: `conditions` below the title, `unit` of the loss, colours by its logarithm
    /// if `log`. `None` of no points.
    pub fn draw(&self, title: &str, conditions: &str, unit: &str, log: bool) -> Option<Figure> {
        if self.side == 0 {
            return None;
        }
        // Points stand in the middle of their cells.
        let half = if self.side > 1 { self.range / (self.side - 1) as f64 } else { 1.0 };
        let reach = if self.side > 1 { self.range + half } else { half };
        let label = format!("loss, {unit}");
        let value = if log { Axis::log(label) } else { Axis::linear(label) };
        let sides = [-reach, reach];
        let heat = Heat::new(value, sides, sides, self.side, self.losses.iter().copied());
        let axis = |label| Axis::linear(label).range(-reach, reach);
        let panel = Panel::new(axis("beta")).heat(heat).points(Series::new("", [(0.0, 0.0)]));
        let figure = Figure::new(title).subtitle(conditions).x(axis("alpha"));
        Some(figure.panel(panel))
    }
}
