//! The smallest value of a smooth function of many variables, by its gradient, within a box or
//! without one: L-BFGS-B.
//!
//! Where: Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained optimization",
//! SIAM J. Sci. Comput. 16, 1995 (equation numbers below are of that paper), with the subspace step
//! projected onto the box as in Morales and Nocedal's remark (ACM Trans. Math. Softw. 38, 2011). The
//! inverse of what the gradients of the last steps say of the curvature is kept in compact form,
//! `B = theta I - W M W^T`. A step
//! 1. follows the projected gradient to the first minimum of the quadratic model, the generalized
//!    Cauchy point, which says which variables are at their bounds;
//! 2. minimizes the model over the others;
//! 3. searches the line to there by the strong Wolfe conditions (Nocedal and Wright, Numerical
//!    Optimization, 2006, algorithms 3.5 and 3.6), with the constants of the published program: 1e-3
//!    and 0.9.
//!
//! Without bounds that is L-BFGS. Every operation is `+ - * /` or a square root in a written order, so
//! the search visits the same points on every machine.
//!
//! Of the crates at hand in 2026, `argmin` (0.11) has L-BFGS and no bounds, `lbfgs` (0.3) a direction
//! only, `lbfgsb` (0.1.1) binds C, and `lbfgsb-rs-pure` (0.1.2), a translation of the published program,
//! ended at its first line search on the boxes of `nn::sharpness`, where this one reaches the maximum.

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
/// use exmy::minimize::{minimize, Options};
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
            let empty = low.iter().zip(high).position(|(low, high)| !(low <= high));
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

/// The last steps `s` and changes of the gradient `y`, and the compact form that follows.
struct Memory {
    most: usize,
    s: Vec<Vec<f64>>,
    y: Vec<Vec<f64>>,
    theta: f64,
    /// Row-major, of twice as many rows as there are steps.
    m: Vec<f64>,
}

impl Memory {
    fn new(most: usize) -> Self {
        Self { most, s: Vec::new(), y: Vec::new(), theta: 1.0, m: Vec::new() }
    }

    /// The columns of W.
    fn width(&self) -> usize {
        2 * self.s.len()
    }

    /// Row `i` of `W = [Y, theta S]`.
    fn row(&self, i: usize) -> Vec<f64> {
        let y = self.y.iter().map(|y| y[i]);
        y.chain(self.s.iter().map(|s| self.theta * s[i])).collect()
    }

    /// `M v`.
    fn times(&self, v: &[f64]) -> Vec<f64> {
        self.m.chunks(v.len().max(1)).map(|row| dot(row, v)).collect()
    }

    /// Adds a step, unless the curvature along it is too small to divide by (section 4).
    fn remember(&mut self, s: Vec<f64>, y: Vec<f64>) {
        let (sy, yy) = (dot(&s, &y), dot(&y, &y));
        if sy <= f64::EPSILON * yy || self.most == 0 {
            return;
        }
        if self.s.len() == self.most {
            self.s.remove(0);
            self.y.remove(0);
        }
        self.s.push(s);
        self.y.push(y);
        self.theta = yy / sy;
        // M is the inverse of [[-D, L^T], [L, theta S^T S]] (3.4).
        let k = self.s.len();
        let mut inverse = vec![0.0; 4 * k * k];
        for i in 0..k {
            for j in 0..k {
                let sy = dot(&self.s[i], &self.y[j]);
                if i == j {
                    inverse[i * 2 * k + j] = -sy;
                } else if i > j {
                    inverse[(k + i) * 2 * k + j] = sy;
                    inverse[j * 2 * k + k + i] = sy;
                }
                inverse[(k + i) * 2 * k + k + j] = self.theta * dot(&self.s[i], &self.s[j]);
            }
        }
        let mut identity = vec![0.0; 4 * k * k];
        (0..2 * k).for_each(|i| identity[i * 2 * k + i] = 1.0);
        match solve(inverse, identity, 2 * k) {
            Some(m) => self.m = m,
            None => *self = Self::new(self.most),
        }
    }
}

/// `A X = B` for a square `A` of `n` rows, by elimination with pivots of the column; `None` if `A` is
/// singular. All row-major.
fn solve(mut a: Vec<f64>, mut b: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    let columns = b.len() / n.max(1);
    for k in 0..n {
        let size = |row: &usize| a[row * n + k].abs();
        let pivot = (k..n).max_by(|p, q| size(p).total_cmp(&size(q)))?;
        if !(size(&pivot) > 0.0 && size(&pivot).is_finite()) {
            return None;
        }
        (0..n).for_each(|j| a.swap(k * n + j, pivot * n + j));
        (0..columns).for_each(|j| b.swap(k * columns + j, pivot * columns + j));
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[i * n + k] / a[k * n + k];
            if factor != 0.0 {
                (k..n).for_each(|j| a[i * n + j] -= factor * a[k * n + j]);
                (0..columns).for_each(|j| b[i * columns + j] -= factor * b[k * columns + j]);
            }
        }
    }
    for k in 0..n {
        (0..columns).for_each(|j| b[k * columns + j] /= a[k * n + k]);
    }
    Some(b)
}

/// The generalized Cauchy point (algorithm CP), `c = W^T (cauchy - x)`, and which variables are free.
fn cauchy_point(
    space: &Space<'_>,
    memory: &Memory,
    x: &[f64],
    g: &[f64],
) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    let theta = memory.theta;
    let mut cauchy = x.to_vec();
    // When each variable meets its bound, and its direction until then.
    let mut walls: Vec<(f64, usize)> = Vec::new();
    let mut d: Vec<f64> = g.iter().map(|g| -g).collect();
    for i in 0..x.len() {
        let (low, high) = space.of(i);
        let wall = if g[i] < 0.0 { high } else { low };
        let time = if g[i] == 0.0 { f64::INFINITY } else { (x[i] - wall) / g[i] };
        if time <= 0.0 {
            d[i] = 0.0;
        } else {
            walls.push((time, i));
        }
    }
    walls.sort_by(|a, b| a.0.total_cmp(&b.0));
    let w = memory.width();
    let mut p = vec![0.0; w];
    for k in 0..memory.s.len() {
        p[k] = dot(&memory.y[k], &d);
        p[memory.s.len() + k] = theta * dot(&memory.s[k], &d);
    }
    let mut c = vec![0.0; w];
    let mut slope = -dot(&d, &d);
    let mut curvature = -theta * slope - dot(&p, &memory.times(&p));
    let mut from = 0.0;
    let mut met = 0;
    while met < walls.len() && slope < 0.0 {
        let best = -slope / curvature;
        let (time, i) = walls[met];
        let dt = time - from;
        if best < dt || time.is_infinite() {
            break;
        }
        // Variable i stops at its bound; the others go on.
        let (low, high) = space.of(i);
        cauchy[i] = if d[i] > 0.0 { high } else { low };
        let z = cauchy[i] - x[i];
        c.iter_mut().zip(&p).for_each(|(c, p)| *c += dt * p);
        let row = memory.row(i);
        let (g_i, m_row) = (g[i], memory.times(&row));
        slope += dt * curvature + g_i * g_i + theta * g_i * z - g_i * dot(&m_row, &c);
        curvature -=
            theta * g_i * g_i + 2.0 * g_i * dot(&m_row, &p) + g_i * g_i * dot(&m_row, &row);
        curvature = curvature.max(f64::EPSILON * theta * g_i * g_i);
        p.iter_mut().zip(&row).for_each(|(p, row)| *p += g_i * row);
        d[i] = 0.0;
        (from, met) = (time, met + 1);
    }
    let rest = if slope < 0.0 && met < walls.len() { -slope / curvature } else { 0.0 };
    let rest = if rest.is_finite() { rest } else { 0.0 };
    let mut free: Vec<usize> = walls[met..].iter().map(|&(_, i)| i).collect();
    free.sort_unstable();
    for &i in &free {
        cauchy[i] = space.inside(i, x[i] + (from + rest) * d[i]);
    }
    c.iter_mut().zip(&p).for_each(|(c, p)| *c += rest * p);
    (cauchy, c, free)
}

/// The minimum of the model over the free variables (section 5.1, direct primal method), projected
/// onto the box; where that points uphill, cut off at the first bound instead.
fn subspace(
    space: &Space<'_>,
    memory: &Memory,
    x: &[f64],
    g: &[f64],
    cauchy: Vec<f64>,
    c: &[f64],
    free: &[usize],
) -> Vec<f64> {
    let (w, theta) = (memory.width(), memory.theta);
    if free.is_empty() || w == 0 {
        return cauchy;
    }
    let mc = memory.times(c);
    let rows: Vec<Vec<f64>> = free.iter().map(|&i| memory.row(i)).collect();
    let r: Vec<f64> = free
        .iter()
        .zip(&rows)
        .map(|(&i, row)| g[i] + theta * (cauchy[i] - x[i]) - dot(row, &mc))
        .collect();
    // (I - M N) v' = M W^T r, with N = W^T W / theta over the free variables.
    let (mut wr, mut n) = (vec![0.0; w], vec![0.0; w * w]);
    for (row, r) in rows.iter().zip(&r) {
        for a in 0..w {
            wr[a] += row[a] * r;
            (0..w).for_each(|b| n[a * w + b] += row[a] * row[b] / theta);
        }
    }
    let mut system = vec![0.0; w * w];
    for a in 0..w {
        for b in 0..w {
            let mn: f64 = (0..w).map(|k| memory.m[a * w + k] * n[k * w + b]).sum();
            system[a * w + b] = f64::from(u8::from(a == b)) - mn;
        }
    }
    let Some(v) = solve(system, memory.times(&wr), w) else { return cauchy };
    let du: Vec<f64> =
        rows.iter().zip(&r).map(|(row, r)| -r / theta - dot(row, &v) / (theta * theta)).collect();
    let mut target = cauchy.clone();
    for (&i, du) in free.iter().zip(&du) {
        target[i] = space.inside(i, cauchy[i] + du);
    }
    let downhill: f64 = (0..x.len()).map(|i| (target[i] - x[i]) * g[i]).sum();
    if downhill < 0.0 {
        return target;
    }
    let mut share = 1.0_f64;
    for (&i, &du) in free.iter().zip(&du) {
        let (low, high) = space.of(i);
        let wall = if du < 0.0 { low } else { high };
        if du != 0.0 {
            share = share.min((wall - cauchy[i]) / du);
        }
    }
    let mut target = cauchy;
    for (&i, du) in free.iter().zip(&du) {
        target[i] = space.inside(i, target[i] + share.max(0.0) * du);
    }
    target
}

/// A point on the line.
#[derive(Clone)]
struct Trial {
    step: f64,
    value: f64,
    slope: f64,
    at: Vec<f64>,
    g: Vec<f64>,
}

/// A step at which the value has fallen enough and the slope is flat enough; or at least the first,
/// where the search runs out.
fn search(
    try_at: &mut impl FnMut(f64) -> Trial,
    value: f64,
    slope: f64,
    first: f64,
    reach: f64,
) -> Option<Trial> {
    const FALL: f64 = 1e-3;
    const FLAT: f64 = 0.9;
    const MOST: usize = 20;
    let fallen = |trial: &Trial| trial.value <= value + FALL * trial.step * slope;
    let flat = |trial: &Trial| trial.slope.abs() <= -FLAT * slope;
    // Step, value and slope of the lower and the higher end of what brackets a good step.
    let mut low = (0.0, value, slope);
    let mut high: Option<(f64, f64, f64)> = None;
    let mut best: Option<Trial> = None;
    let mut step = first;
    for _ in 0..MOST {
        let trial = try_at(step);
        let this = (trial.step, trial.value, trial.slope);
        if !fallen(&trial) || trial.value >= low.1 {
            high = Some(this);
        } else {
            if flat(&trial) || (high.is_none() && trial.slope < 0.0 && step >= reach) {
                return Some(trial);
            }
            let turned = match high {
                None => trial.slope >= 0.0,
                Some(high) => trial.slope * (high.0 - low.0) >= 0.0,
            };
            if turned {
                high = Some(low);
            }
            low = this;
            best = Some(trial);
        }
        step = match high {
            None => (4.0 * step).min(reach),
            Some(high) => between(low, high),
        };
        if high.is_some_and(|high| (high.0 - low.0).abs() <= 1e-14 * high.0.abs().max(low.0.abs()))
        {
            break;
        }
    }
    best
}

/// The minimum of the cubic through two ends, kept a tenth of their distance away from both.
fn between(a: (f64, f64, f64), b: (f64, f64, f64)) -> f64 {
    let d = a.2 + b.2 - 3.0 * (a.1 - b.1) / (a.0 - b.0);
    let root = (d * d - a.2 * b.2).sqrt() * (b.0 - a.0).signum();
    let cubic = b.0 - (b.0 - a.0) * (b.2 + root - d) / (b.2 - a.2 + 2.0 * root);
    let (low, high) = (a.0.min(b.0), a.0.max(b.0));
    let margin = 0.1 * (high - low);
    if cubic.is_finite() {
        cubic.clamp(low + margin, high - margin)
    } else {
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests;
