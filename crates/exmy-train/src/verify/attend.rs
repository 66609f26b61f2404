//! Softmax attention, whole and in steps, and gated linear attention.

use crate::nn::device::{Buffer, Device};
use crate::nn::{attention, gla};

use super::Trial;

impl<D: Device<Real = f32>> Trial<'_, D> {
    pub(super) fn attention(&mut self, scale: usize) {
        for (i, [batch, sequence, heads, kv_heads, head_dim]) in [
            [1, 1, 1, 1, 1],
            [2, 37, 2, 1, 20],
            [1, 70, 4, 2, 8],
            [2, 16, 3, 3, 16],
            [1, 129 * scale, 1, 1, 66],
            [3, 64, 2, 2, 64],
        ]
        .into_iter()
        .enumerate()
        {
            let shape = attention::Shape { batch, sequence, heads, kv_heads, head_dim };
            for keeps in [false, true] {
                self.whole(&shape, keeps);
            }
            if i < 4 {
                self.in_steps(&shape);
            }
        }
        for (past, [sequence, heads, kv_heads, head_dim]) in [
            (0, [1, 1, 1, 1]),
            (15, [1, 4, 2, 20]),
            (37, [5, 3, 3, 16]),
            (300 * scale, [2, 2, 1, 66]),
        ] {
            self.cached(past, &attention::Shape { batch: 1, sequence, heads, kv_heads, head_dim });
        }
    }

    fn cached(&mut self, past: usize, shape: &attention::Shape) {
        let (device, tokens) = (self.device, shape.sequence);
        let keys = shape.kv_heads * shape.head_dim;
        let (qkv, cache) =
            (self.draw(tokens * shape.qkv_width()), self.draw((past + tokens) * 2 * keys));
        let mut y = self.draw(tokens * shape.width());
        device.attention_cached(shape, qkv.all(), cache.all(), y.all_mut());
        self.keep(format!("{shape:?} behind {past}"), &y);
    }

    fn whole(&mut self, shape: &attention::Shape, keeps: bool) {
        let (device, tokens) = (self.device, shape.batch * shape.sequence);
        let (qkv, dy) = (self.draw(tokens * shape.qkv_width()), self.draw(tokens * shape.width()));
        let [mut y, mut dqkv] = [shape.width(), shape.qkv_width()].map(|n| self.draw(tokens * n));
        let mut p = self.draw(if keeps { shape.probabilities() } else { 0 });
        let mut scratch = Buffer::default();
        device.grow(&mut scratch, device.attention_scratch(shape));
        device.attention(shape, qkv.all(), y.all_mut(), p.all_mut(), scratch.all_mut());
        device.attention_backward(
            shape,
            qkv.all(),
            p.all(),
            dy.all(),
            dqkv.all_mut(),
            scratch.all_mut(),
        );
        self.keep(format!("{shape:?}, kept {keeps}"), &y);
        // Of each row as many as it has positions.
        let (rows, row) = (p.len() / shape.row(), shape.row());
        let seen: Vec<bool> =
            (0..rows * row).map(|at| at % row <= at / row % shape.sequence).collect();
        let numbers = device.read(p.all());
        let numbers = numbers.iter().zip(seen).filter_map(|(&p, seen)| seen.then_some(p)).collect();
        self.push(format!("{shape:?}, kept {keeps}, probabilities"), numbers);
        self.keep(format!("{shape:?}, kept {keeps}, backward"), &dqkv);
    }

    fn in_steps(&mut self, shape: &attention::Shape) {
        let (device, tokens) = (self.device, shape.batch * shape.sequence);
        let (qkv, dy) = (self.draw(tokens * shape.qkv_width()), self.draw(tokens * shape.width()));
        let [mut y, mut dqkv] = [shape.width(), shape.qkv_width()].map(|n| self.draw(tokens * n));
        let [mut s, mut d] = [shape.probabilities(); 2].map(|n| self.draw(n));
        device.scores(shape, qkv.all(), s.all_mut());
        self.keep(format!("{shape:?}, scores"), &s);
        device.softmax(shape, s.all_mut());
        self.keep(format!("{shape:?}, softmax"), &s);
        device.weigh(shape, qkv.all(), s.all(), y.all_mut());
        self.keep(format!("{shape:?}, weighted values"), &y);
        device.weigh_backward(shape, qkv.all(), s.all(), dy.all(), dqkv.all_mut(), d.all_mut());
        self.keep(format!("{shape:?}, weighted values backward"), &dqkv);
        self.keep(format!("{shape:?}, gradient of probabilities"), &d);
        device.softmax_backward(shape, s.all(), d.all_mut());
        self.keep(format!("{shape:?}, softmax backward"), &d);
        device.scores_backward(shape, qkv.all(), d.all(), dqkv.all_mut());
        self.keep(format!("{shape:?}, scores backward"), &dqkv);
    }

    pub(super) fn recurrence(&mut self, scale: usize) {
        for ([batch, sequence, heads, key, value], more) in [
            ([1, 1, 1, 1, 1], 0),
            ([2, 37, 2, 20, 24], 5),
            ([1, 16, 3, 16, 32], 0),
            ([1, 50 * scale, 1, 33, 17], 3),
            // Does not fit into shared memory.
            ([2, 20, 1, 256, 256], 0),
        ] {
            let shape = gla::Shape { batch, sequence, heads, key, value };
            let (device, tokens) = (self.device, batch * sequence);
            let stride = shape.qkv_width() + more;
            let (qkv, z) = (self.draw(tokens * stride), self.draw(tokens * shape.keys()));
            let mut alpha = self.draw(tokens * shape.keys());
            device.decay(z.all(), 16.0, -3.0, alpha.all_mut());
            let (dy, mut dga) = (self.draw(tokens * shape.values()), self.draw(z.len()));
            let (mut y, mut dqkv) = (self.draw(dy.len()), self.draw(qkv.len()));
            let mut scratch = Buffer::default();
            device.grow(&mut scratch, device.gla_scratch(&shape));
            let mut states = Buffer::default();
            for held in [0, shape.states()] {
                if held > 0 {
                    states = self.draw(held);
                }
                let (to, held_by, scratch) = (y.all_mut(), states.all_mut(), scratch.all_mut());
                device.gla(&shape, qkv.all(), stride, alpha.all(), to, held_by, scratch);
                self.keep(format!("{shape:?}, {held} states"), &y);
            }
            self.keep(format!("{shape:?}, states behind"), &states);
            device.gla_backward(
                &shape,
                qkv.all(),
                stride,
                alpha.all(),
                dy.all(),
                dqkv.all_mut(),
                dga.all_mut(),
                scratch.all_mut(),
            );
            self.keep(format!("{shape:?} backward"), &dqkv);
            self.keep(format!("{shape:?} backward, decays"), &dga);
        }
    }
}
