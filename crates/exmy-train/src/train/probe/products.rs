//! `products`: how far each product of each linear operator is from that of its unrounded operands.
//!
//! | part | is |
//! |---|---|
//! | `SITE.PRODUCT.error` | `|Y - R| / |R|` in Frobenius norms |
//! | `SITE.PRODUCT.cos` | the cosine of the angle between Y and R |
//! | `SITE.alignment` | of the forward product: mean over outputs of `mean |y| / (mean |w| |x|)` |
//!
//! Y is the product by the recipe, patched and rounded, R that of the unrounded operands by
//! [`exmy::gemm::f32`]. `|w|` is the norm of an output's weights, `|x|` are those of the tokens. The value
//! is the mean of `error` over forward products. Operators that share an input have one `grad_input`, under
//! the first of them.

use super::moments::elements;
use super::{Key, Of, Probe, Snapshot, Values};
use crate::nn::site::{Product, Site};
use crate::recipe::{Observer, Rounded};
use exmy::gemm::f32::{Output, matmul};
use exmy::slice::{View, ViewMut};

/// A matrix of one's own.
struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

impl Matrix {
    fn of(x: View<'_, f32>) -> Self {
        let data = (0..x.rows()).flat_map(|i| (0..x.cols()).map(move |j| x.at(i, j))).collect();
        Self { rows: x.rows(), cols: x.cols(), data }
    }

    fn view(&self) -> View<'_, f32> {
        View::new(&self.data, self.rows, self.cols)
    }
}

/// What was shown of one product of one operator.
struct Pair {
    site: Site,
    product: Product,
    operands: [Option<Matrix>; 2],
}

#[derive(Default)]
pub struct Products {
    pairs: Vec<Pair>,
    seen: Values,
    errors: Vec<f64>,
}

/// `out = a b`, or added to it.
fn multiply(product: Product, [a, b]: [View<'_, f32>; 2], out: &mut Matrix, mode: Output) {
    let target = ViewMut::new(&mut out.data, out.rows, out.cols);
    match product {
        Product::Forward => matmul(a, b.t(), target, mode),
        Product::GradInput => matmul(a, b, target, mode),
        Product::GradWeight => matmul(a.t(), b, target, mode),
    }
}

/// Sums of the squares of y, of r, of their differences, and of their products.
fn sums(y: View<'_, f32>, r: View<'_, f32>) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for (y, r) in elements(y).zip(elements(r)) {
        for (sum, term) in sums.iter_mut().zip([y * y, r * r, (y - r) * (y - r), y * r]) {
            *sum += term;
        }
    }
    sums
}

fn norms(x: View<'_, f32>) -> Vec<f64> {
    let at = |i: usize, j: usize| f64::from(x.at(i, j));
    let square = |i: usize| (0..x.cols()).map(|j| at(i, j) * at(i, j)).sum::<f64>();
    (0..x.rows()).map(|i| square(i).sqrt()).collect()
}

/// Mean over columns of y of `mean |y| / (|w| mean |x|)`.
fn alignment(x: View<'_, f32>, w: View<'_, f32>, y: View<'_, f32>) -> f64 {
    let (tokens, weights) = (norms(x), norms(w));
    let token = tokens.iter().sum::<f64>() / tokens.len() as f64;
    let each = weights.iter().enumerate().map(|(j, weight)| {
        let sum: f64 = (0..y.rows()).map(|i| f64::from(y.at(i, j)).abs()).sum();
        sum / y.rows() as f64 / (weight * token)
    });
    each.sum::<f64>() / weights.len() as f64
}

impl Products {
    /// Takes what was shown of a product of `site`, or, of `grad_input`, of all operators.
    fn take(&mut self, site: Site, product: Product) -> Vec<Pair> {
        let wanted = |pair: &Pair| {
            pair.product == product && (product == Product::GradInput || pair.site == site)
        };
        let (taken, rest) = std::mem::take(&mut self.pairs).into_iter().partition(wanted);
        self.pairs = rest;
        taken
    }
}

impl Observer for Products {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, product, operand, before, .. } = *seen;
        let at = usize::from(product.operands()[1] == operand);
        let known = |pair: &&mut Pair| pair.site == site && pair.product == product;
        let pair = match self.pairs.iter_mut().find(known) {
            Some(pair) => pair,
            None => {
                self.pairs.push(Pair { site, product, operands: [None, None] });
                let last = self.pairs.len() - 1;
                &mut self.pairs[last]
            }
        };
        pair.operands[at] = Some(Matrix::of(before));
    }

    fn output(&mut self, site: Site, product: Product, values: View<'_, f32>) {
        let (rows, cols) = (values.rows(), values.cols());
        let mut reference = Matrix { rows, cols, data: vec![0.0; rows * cols] };
        let pairs = self.take(site, product);
        for (i, pair) in pairs.iter().enumerate() {
            let [Some(a), Some(b)] = &pair.operands else { return };
            let mode = if i == 0 { Output::Overwrite } else { Output::Accumulate };
            multiply(product, [a.view(), b.view()], &mut reference, mode);
        }
        let [y, r, difference, both] = sums(values, reference.view());
        let error = (difference / r).sqrt();
        let key = |part| Key::new(Of::Operator(site, Some(product), None), part);
        self.seen.part(key("error"), error);
        self.seen.part(key("cos"), both / (y * r).sqrt());
        if product == Product::Forward {
            self.errors.extend(Some(error).filter(|error| error.is_finite()));
            if let Some([Some(x), Some(w)]) = pairs.first().map(|pair| &pair.operands) {
                let alignment = alignment(x.view(), w.view(), values);
                self.seen.part(Key::new(site, "alignment"), alignment);
            }
        }
    }
}

impl Probe for Products {
    fn name(&self) -> &str {
        "products"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        let Self { seen, errors, .. } = std::mem::take(self);
        *values = seen;
        values.set(errors.iter().sum::<f64>() / errors.len() as f64);
    }
}
