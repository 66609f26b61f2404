//! Number formats once more, from the papers' formulas and without the crate: what images are compared with.

/// To bfloat16, ties to even.
pub(crate) fn bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
}

/// To bfloat16, ties away from zero.
pub(crate) fn bf16_away(x: f32) -> f32 {
    f32::from_bits((x.to_bits() + 0x8000) & 0xFFFF_0000)
}

/// `floor(log2 |x|)` of a normal number.
pub(crate) fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52 & 0x7FF) as i32) - 1023
}

/// Two to the power of `exponent`.
pub(crate) fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// E, M, the exponent of the largest number, and it.
pub(crate) type Element = (i32, i32, i32, f64);
pub(crate) const E4M3: Element = (4, 3, 8, 448.0);
pub(crate) const E5M2: Element = (5, 2, 15, 57344.0);
pub(crate) const E2M3: Element = (2, 3, 2, 7.5);
pub(crate) const E2M1: Element = (2, 1, 2, 6.0);

/// One MX block as arXiv 2506.20752's code has it: half away from zero, clamped; `bump` raises the exponent
/// where the largest element is above max / 2^emax of its binade.
pub(crate) fn mx(block: &[f32], (e, m, emax, max): Element, bump: bool) -> Vec<f32> {
    let largest = block.iter().fold(0.0_f64, |a, &b| a.max(f64::from(b.abs())));
    let largest = if largest == 0.0 { power(-126) } else { largest };
    let top = exponent(largest);
    let saturates = largest > max / power(emax) * power(top);
    let s = (top - emax + i32::from(bump && saturates)).max(-127);
    let value = |&v: &f32| {
        let y = f64::from(v.abs()) / power(s);
        let p = if y == 0.0 { 0 } else { exponent(y).max(2 - (1 << (e - 1))) };
        let q = ((y * power(m - p) + 0.5).floor() * power(p - m)).min(max);
        ((q * power(s)) as f32).copysign(v)
    };
    block.iter().map(value).collect()
}

/// To E4M3 from 0 to 448, ties to even.
fn e4m3(d: f32) -> f32 {
    let d = f64::from(d);
    if d == 0.0 {
        return 0.0;
    }
    let place = power(exponent(d).max(-6) - 3);
    ((d / place).round_ties_even() * place).min(448.0) as f32
}

/// To E2M1, ties to even.
fn e2m1(y: f32) -> f32 {
    let a = y.abs();
    let value = match a {
        _ if a <= 0.25 => 0.0,
        _ if a < 0.75 => 0.5,
        _ if a <= 1.25 => 1.0,
        _ if a < 1.75 => 1.5,
        _ if a <= 2.5 => 2.0,
        _ if a < 3.5 => 3.0,
        _ if a <= 5.0 => 4.0,
        _ => 6.0,
    };
    f32::copysign(value, y)
}

/// To E2M1 stochastically, with 8 random bits, as Transformer Engine's software does.
fn e2m1_stochastic(y: f32, bits: u32) -> f32 {
    let step = |a: f32| {
        if a >= 4.0 {
            2.0
        } else if a >= 2.0 {
            1.0
        } else {
            0.5
        }
    };
    let a = y.abs().min(6.0);
    let t = (bits as f32 / 256.0).mul_add(step(a), a);
    let value = ((t / step(t)).floor() * step(t)).min(6.0);
    value.copysign(y)
}

/// NVFP4 in blocks of `tile.0` rows and `tile.1` columns of a row-major matrix: second order of operations;
/// random words by element, if any. What is left of magnitudes is as Transformer Engine decodes it, one
/// binary32 product after the other.
pub(crate) fn nvfp4(
    x: &[f32],
    cols: usize,
    tile: (usize, usize),
    words: Option<&[u32]>,
) -> Vec<f32> {
    let amax = x.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
    let encode = 2688.0 / amax;
    let decode = 1.0 / encode;
    let rows = x.len() / cols;
    let mut image = vec![0.0; x.len()];
    for row in (0..rows).step_by(tile.0) {
        for col in (0..cols).step_by(tile.1) {
            let places = || {
                (row..(row + tile.0).min(rows))
                    .flat_map(move |i| (col..(col + tile.1).min(cols)).map(move |j| i * cols + j))
            };
            let largest = places().fold(0.0_f32, |a, i| a.max(x[i].abs()));
            let scale = e4m3((largest * (encode * (1.0 / 6.0_f32))).min(448.0));
            let factor = (1.0 / (scale * decode)).min(f32::MAX);
            for i in places() {
                let y = (x[i] * factor).clamp(-6.0, 6.0);
                let code = match words {
                    None => e2m1(y),
                    Some(words) => e2m1_stochastic(y, words[i] >> 24),
                };
                image[i] = code * scale * decode;
            }
        }
    }
    image
}

/// Groups of 16 down the columns of a row-major matrix times `H diag(s) / 4`, in f64, to bfloat16.
/// Sylvester's matrix has the sign of the parity of i & j.
pub(crate) fn rotated_down(x: &[f32], cols: usize) -> Vec<f32> {
    const MINUS: [usize; 10] = [3, 5, 6, 7, 8, 9, 10, 12, 14, 15];
    let rows = x.len() / cols;
    let mut image = vec![0.0; x.len()];
    for start in (0..rows).step_by(16) {
        for col in 0..cols {
            for j in 0..16 {
                let mut sum = 0.0_f64;
                for i in 0..16 {
                    let sign = if MINUS.contains(&i) { -1.0 } else { 1.0 };
                    let parity = if (i & j).count_ones() % 2 == 1 { -1.0 } else { 1.0 };
                    sum += sign * parity * f64::from(x[(start + i) * cols + col]);
                }
                image[(start + j) * cols + col] = bf16((sum / 4.0) as f32);
            }
        }
    }
    image
}

/// The transpose of a row-major matrix.
pub(crate) fn transposed<T: Copy>(x: &[T], cols: usize) -> Vec<T> {
    let rows = x.len() / cols;
    (0..cols).flat_map(|j| (0..rows).map(move |i| x[i * cols + j])).collect()
}
