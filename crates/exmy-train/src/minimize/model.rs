//! The quadratic model of the last steps, and its minimum in the box.

use super::{Space, dot};

/// The last steps `s` and changes of the gradient `y`, and the compact form that follows.
pub(super) struct Memory {
    most: usize,
    pub(super) s: Vec<Vec<f64>>,
    y: Vec<Vec<f64>>,
    theta: f64,
    /// Row-major, of twice as many rows as there are steps.
    m: Vec<f64>,
}

impl Memory {
    pub(super) fn new(most: usize) -> Self {
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
    pub(super) fn remember(&mut self, s: Vec<f64>, y: Vec<f64>) {
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
pub(super) fn cauchy_point(
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
pub(super) fn subspace(
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
