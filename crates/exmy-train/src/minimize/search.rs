//! The search along a line: steps that lower the value enough and flatten its slope (strong Wolfe
//! conditions; Nocedal and Wright, algorithms 3.5 and 3.6 in one loop).

/// A point on the line.
pub struct Trial {
    pub step: f64,
    pub value: f64,
    pub slope: f64,
    pub at: Vec<f64>,
    pub g: Vec<f64>,
}

/// A step at which the value has fallen enough and the slope is flat enough; or at least the first,
/// where the search runs out.
pub fn search(
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
            let rises = match high {
                None => trial.slope >= 0.0,
                Some(high) => trial.slope * (high.0 - low.0) >= 0.0,
            };
            if rises {
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
