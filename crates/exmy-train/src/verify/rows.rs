//! Operations on rows: norms, losses, and the numbers that are formed of them.

use crate::nn::device::{Device, NormSteps};
use crate::nn::loss::RowLoss;
use crate::nn::norm::Norm;
use crate::nn::optimizer::CHUNK;

use super::elements::roundings;
use super::{Trial, bits};

impl<D: Device<Real = f32>> Trial<'_, D> {
    pub(super) fn rows(&mut self, scale: usize) {
        for [rows, width] in [[1, 1], [33, 17], [70 * scale, 160], [32, 16]] {
            for norm in [Norm::LayerNorm, Norm::RmsNorm] {
                for (i, rounding) in roundings().into_iter().enumerate() {
                    let parts = if i % 3 == 0 { [rounding; 3] } else { [None, rounding, None] };
                    self.norm(norm, [rows, width], parts, i % 2 == 0);
                }
                self.norm(norm, [rows, width], [None, None, roundings()[1]], true);
            }
            self.losses_of_rows(rows, width);
        }
        self.scalars(scale);
    }

    fn norm(
        &mut self,
        norm: Norm,
        [rows, width]: [usize; 2],
        [head, tail, back]: [Option<exmy::round::Rounding>; 3],
        biased: bool,
    ) {
        let (device, n) = (self.device, rows * width);
        let steps = NormSteps { norm, eps: 1e-5, head, tail, back };
        let (x, gain, bias) = (self.draw(n), self.draw(width), self.draw(width));
        let [mut y, mut dx] = [n; 2].map(|n| self.draw(n));
        let [mut mean, mut rstd] = [rows; 2].map(|n| self.draw(n));
        let [mut d_gain, mut d_bias] = [width; 2].map(|n| self.draw(n));
        let dy = self.draw(n);
        let bias = (biased && norm == Norm::LayerNorm).then(|| bias.all());
        let statistics = [mean.all_mut(), rstd.all_mut()];
        device.norm(&steps, x.all(), gain.all(), bias, y.all_mut(), statistics);
        device.norm_backward(
            &steps,
            x.all(),
            gain.all(),
            [mean.all(), rstd.all()],
            dy.all(),
            dx.all_mut(),
            d_gain.all_mut(),
            bias.map(|_| d_bias.all_mut()),
        );
        let name = format!("{norm:?} {rows} x {width} {head:?} {tail:?} {back:?}");
        for (what, kept) in [
            ("", &y),
            (", mean", &mean),
            (", rstd", &rstd),
            (" backward", &dx),
            (" backward, gain", &d_gain),
            (" backward, bias", &d_bias),
        ] {
            self.keep(format!("{name}{what}"), kept);
        }
    }

    fn losses_of_rows(&mut self, rows: usize, width: usize) {
        let device = self.device;
        let (a, y) = (self.draw(rows * width), self.draw(rows * width));
        for loss in [RowLoss::Mse, RowLoss::Kl] {
            let (mut losses, mut da) = (self.draw(rows), self.draw(rows * width));
            device.row_loss(loss, a.all(), y.all(), width, losses.all_mut());
            device.row_loss_backward(loss, a.all(), y.all(), width, da.all_mut());
            self.keep(format!("{loss:?} {rows} x {width}"), &losses);
            self.keep(format!("{loss:?} {rows} x {width} backward"), &da);
        }
        // Equal ones, too.
        let steps = |numbers: Vec<f32>| numbers.into_iter().map(|x| (4.0 * x).round()).collect();
        let logits = [self.numbers(rows * width), steps(self.numbers(rows * width))];
        let logits = logits.map(|numbers| device.buffer(numbers));
        let places = logits.each_ref().map(|logits| device.likeliest(logits.all(), width));
        let numbers = places.concat().into_iter().map(|place| place as f32).collect();
        self.push(format!("likeliest of {rows} x {width}"), numbers);
        let (_, targets) = self.tokens(rows, width as u64);
        for scale in [None, Some([0.25, 0.0]), Some([1.0 / 3.0, 1e-3])] {
            let (mut logits, mut losses) = (self.draw(rows * width), self.draw(rows));
            device.cross_entropy(logits.all_mut(), width, &targets, scale, losses.all_mut());
            self.keep(format!("cross-entropy {rows} x {width} {scale:?}"), &losses);
            self.keep(format!("cross-entropy {rows} x {width} {scale:?} backward"), &logits);
        }
    }

    /// Numbers in f64.
    fn scalars(&mut self, scale: usize) {
        let device = self.device;
        for n in [1, 3000 * scale, CHUNK, 2 * CHUNK + 77] {
            let x = self.draw(n);
            for (name, scalar) in
                [("mean", device.mean(x.all())), ("global norm", device.global_norm(x.all()))]
            {
                let value = device.value(&scalar);
                self.push(format!("{name} of {n}, bits of f64"), bits(value));
            }
        }
    }
}
