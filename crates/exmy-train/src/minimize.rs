//! The smallest value of a smooth function of many variables, by its gradient, within a box or
//! without one: L-BFGS-B.
//!
//! Where: Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained optimization",
//! SIAM J. Sci. Comput. 16, 1995 (equation numbers below are of that paper), with the subspace step
//! projected onto the box as in Morales and Nocedal's remark (ACM Trans. Math. Softw. 38, 2011). The
//! inverse of what the gradients of the last steps say of the curvature is kept in compact form,
//! `B = theta I - W M W^T`. A step has three parts.
//! 1. It follows the projected gradient to the first minimum of the quadratic model. This generalized
//!    Cauchy point says which variables are at their bounds.
//! 2. It minimizes the model over the others.
//! 3. It searches the line to there by the strong Wolfe conditions (Nocedal and Wright, Numerical
//!    Optimization, 2006, algorithms 3.5 and 3.6), with the constants of the published program, 1e-3
//!    and 0.9.
//!
//! Without bounds that is L-BFGS. Every operation is `+ - * /` or a square root in a written order, so
//! the search visits the same points on every machine.
//!
//! Of the crates at hand in 2026, `argmin` (0.11) has L-BFGS and no bounds, `lbfgs` (0.3) a direction
//! only, and `lbfgsb` (0.1.1) binds C. `lbfgsb-rs-pure` (0.1.2), a translation of the published program,
//! ended at its first line search on the boxes of `nn::sharpness`, where this one reaches the maximum.

pub mod model;
#[doc(hidden)]
pub mod search;

use model::{Memory, cauchy_point, subspace};
use search::{Trial, search};

/// When to stop, and how much to remember.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Steps of which the curvature is remembered.
    pub history: usize,
    /// The most steps.
    pub iterations: usize,
    /// Enough where no variable can move further than this along its negative gradient: the largest
    /// component of the projected gradient.
    pub gradient: f64,
    /// Enough where a step lowers the value by less than this share of it (or of 1).
    pub decrease: f64,
}

impl Default for Options {
    /// Ten steps remembered, otherwise as SciPy: 15 000 steps, 1e-5, and 1e7 units of the last place.
    fn default() -> Self {
        Self { history: 10, iterations: 15_000, gradient: 1e-5, decrease: 1e7 * f64::EPSILON }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The projected gradient is small enough.
    Gradient,
    /// The last step lowered the value by too little.
    Decrease,
    /// There were enough steps.
    Iterations,
    /// No lower point was found along the last direction, nor along the gradient.
    Search,
    /// The value or gradient at the start is no finite number.
    Start,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// Where.
    pub point: Vec<f64>,
    /// The value there; never above that of the start.
    pub value: f64,
    /// Steps.
    pub iterations: usize,
    /// How often the function was computed.
    pub evaluations: usize,
    /// Why no further step was made.
    pub end: End,
}

/// Searches from `start`, first moved into the box, for a minimum of `function`, which writes its
/// gradient into the second slice and returns its value. `bounds` are the lower and the upper
/// ones; infinite ones bind nothing. A point where the function is no finite number counts as higher
/// than any other.
///
/// ```
/// use exmy_train::minimize::{minimize, Options};
///
/// // Rosenbrock's valley, from its customary start.
/// let valley = |x: &[f64], g: &mut [f64]| {
///     let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
///     g.copy_from_slice(&[-2.0 * a - 400.0 * x[0] * b, 200.0 * b]);
///     a * a + 100.0 * b * b
/// };
/// let free = minimize(valley, &[-1.2, 1.0], None, &Options::default());
/// assert!((free.point[0] - 1.0).abs() < 1e-3 && free.iterations < 60);
///
/// // In the box x <= 0.5 the best is on its wall.
/// let (low, high) = ([-2.0, -2.0], [0.5, 2.0]);
/// let boxed = minimize(valley, &[-1.2, 1.0], Some((&low, &high)), &Options::default());
/// assert_eq!(boxed.point[0], 0.5);
/// assert!((boxed.point[1] - 0.25).abs() < 1e-6);
/// ```
///
/// # Panics
/// If a bound's number of values is not that of `start`, or a lower bound is above the upper one.
pub fn minimize(
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
    start: &[f64],
    bounds: Option<(&[f64], &[f64])>,
    options: &Options,
) -> Minimum {
    let n = start.len();
    let space = Space::new(n, bounds);
    let mut x: Vec<f64> = start.iter().enumerate().map(|(i, &x)| space.inside(i, x)).collect();
    let mut g = vec![0.0; n];
    let mut value = function(&x, &mut g);
    let mut evaluations = 1;
    let finite = |value: f64, g: &[f64]| value.is_finite() && g.iter().all(|g| g.is_finite());
    let mut end = if finite(value, &g) { End::Iterations } else { End::Start };
    let mut memory = Memory::new(options.history);
    let mut iterations = 0;
    while end == End::Iterations && iterations < options.iterations {
        if space.slope(&x, &g) <= options.gradient {
            end = End::Gradient;
            break;
        }
        let (cauchy, c, free) = cauchy_point(&space, &memory, &x, &g);
        let target = subspace(&space, &memory, &x, &g, cauchy, &c, &free);
        let direction: Vec<f64> = target.iter().zip(&x).map(|(t, x)| t - x).collect();
        let downhill = dot(&direction, &g);
        let mut try_at = |step: f64| {
            let place = |i: usize| space.inside(i, x[i] + step * direction[i]);
            let at: Vec<f64> = (0..n).map(place).collect();
            let mut g = vec![0.0; n];
            let value = function(&at, &mut g);
            evaluations += 1;
            let value = if finite(value, &g) { value } else { f64::INFINITY };
            Trial { step, value, slope: dot(&direction, &g), at, g }
        };
        // The first direction has the gradient's length, which says nothing of how far to go.
        let reach = space.reach(&x, &direction);
        let length = dot(&direction, &direction).sqrt();
        let first =
            if memory.s.is_empty() && !space.is_box() { (1.0 / length).min(reach) } else { 1.0 };
        let found =
            if downhill < 0.0 { search(&mut try_at, value, downhill, first, reach) } else { None };
        let Some(found) = found else {
            // What is remembered may be misleading; without it the direction is the gradient's.
            if memory.s.is_empty() {
                end = End::Search;
            } else {
                memory = Memory::new(options.history);
            }
            continue;
        };
        let s: Vec<f64> = found.at.iter().zip(&x).map(|(new, old)| new - old).collect();
        let y: Vec<f64> = found.g.iter().zip(&g).map(|(new, old)| new - old).collect();
        memory.remember(s, y);
        let gained = value - found.value;
        let size = value.abs().max(found.value.abs()).max(1.0);
        (x, g, value) = (found.at, found.g, found.value);
        iterations += 1;
        if gained <= options.decrease * size {
            end = End::Decrease;
        }
    }
    if end == End::Iterations && space.slope(&x, &g) <= options.gradient {
        end = End::Gradient;
    }
    Minimum { point: x, value, iterations, evaluations, end }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The box.
struct Space<'a> {
    bounds: Option<(&'a [f64], &'a [f64])>,
}

impl<'a> Space<'a> {
    fn new(n: usize, bounds: Option<(&'a [f64], &'a [f64])>) -> Self {
        if let Some((low, high)) = bounds {
            assert!(low.len() == n && high.len() == n, "bounds of another number of variables");
            let empty =
                low.iter().zip(high).position(|(l, h)| l.partial_cmp(h).is_none_or(|o| o.is_gt()));
            assert!(empty.is_none(), "variable {empty:?} has a lower bound above its upper one");
        }
        Self { bounds }
    }

    fn of(&self, i: usize) -> (f64, f64) {
        self.bounds.map_or((f64::NEG_INFINITY, f64::INFINITY), |(low, high)| (low[i], high[i]))
    }

    fn inside(&self, i: usize, value: f64) -> f64 {
        let (low, high) = self.of(i);
        value.clamp(low, high)
    }

    /// Whether every variable has two bounds.
    fn is_box(&self) -> bool {
        let finite = |bounds: &[f64]| bounds.iter().all(|bound| bound.is_finite());
        self.bounds.is_some_and(|(low, high)| finite(low) && finite(high))
    }

    /// The largest component of the projected gradient: how far a variable could move.
    fn slope(&self, x: &[f64], g: &[f64]) -> f64 {
        let move_of = |(i, (&x, &g)): (usize, (&f64, &f64))| (self.inside(i, x - g) - x).abs();
        x.iter().zip(g).enumerate().map(move_of).fold(0.0, f64::max)
    }

    /// The longest step along `d` that stays inside.
    fn reach(&self, x: &[f64], d: &[f64]) -> f64 {
        let mut reach = 1e10_f64;
        for (i, (&x, &d)) in x.iter().zip(d).enumerate() {
            let (low, high) = self.of(i);
            let wall = if d < 0.0 { low } else { high };
            if d != 0.0 {
                reach = reach.min((wall - x) / d);
            }
        }
        // The direction ends at a point of the box, whatever rounding says.
        reach.max(1.0)
    }
}
