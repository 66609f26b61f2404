use exmy::round::Rounding;
use exmy::slice::{View, ViewMut};
use exmy_train::nn::linear::{Group, Products, Unquantized};
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::nn::parts::linear::Linear;
use exmy_train::nn::site::{Operator, Vector};

/// Plain products, one vector operation in bfloat16 on the way of which the flag is set.
pub(crate) struct Watch {
    pub operation: Vector,
    pub ways: [bool; 2],
    /// What the weight gradient of the last product read.
    pub read: Vec<f32>,
}

impl Products<f32> for Watch {
    fn forward(
        &mut self,
        group: &Group<'_>,
        x: View<'_, f32>,
        w: View<'_, f32>,
        y: ViewMut<'_, f32>,
    ) {
        Unquantized.forward(group, x, w, y);
    }

    fn grad_input(
        &mut self,
        group: &Group<'_>,
        g: View<'_, f32>,
        w: View<'_, f32>,
        dx: ViewMut<'_, f32>,
    ) {
        Unquantized.grad_input(group, g, w, dx);
    }

    fn grad_weight(
        &mut self,
        group: &Group<'_>,
        g: View<'_, f32>,
        x: View<'_, f32>,
        dw: ViewMut<'_, f32>,
    ) {
        if group.members[0].0 == Operator::Down {
            self.read = x.data().to_vec();
        }
        Unquantized.grad_weight(group, g, x, dw);
    }

    fn vector(&self, _: Option<u32>, operation: Vector, gradient: bool) -> Option<Rounding> {
        let rounds = operation == self.operation && self.ways[usize::from(gradient)];
        rounds.then_some(Rounding::TiesToAway)
    }
}

/// 1 + 2^-8 is a tie between two bfloat16 numbers, which goes away from zero, to 1 + 2^-7; its sum with the bias
/// 2^-8 + 2^-17, which is 2^-8 in bfloat16, is rounded once more. The gradients 1 + 2^-8 and 2^-8 are
/// rounded before they are summed, and their sum 1 + 3 2^-8 again. What was in the gradient stays.
#[test]
fn biases_by_hand() {
    let mut layout = Layout::default();
    layout.push("w".into(), &[1, 1], Role::Matrix, Init::Zeros);
    layout.push("b".into(), &[1], Role::Bias, Init::Zeros);
    let members = [(Operator::Down, 1)];
    let linear = Linear::new(&layout, Some(0), &members, 1, ["w", "w"]);
    let linear = linear.with_bias(&layout, "b");
    let unit = 1.0 / 256.0;
    let params = [1.0, unit + unit / 512.0];
    let run = |ways: [bool; 2]| {
        let (x, mut y, mut dx) = ([1.0, 1.0 + 2.0 * unit], [0.0_f32; 2], [0.0_f32; 2]);
        let (g, mut grads) = ([1.0 + unit, unit], [0.0, 10.0_f32]);
        let mut products = Watch { operation: Vector::Bias, ways, read: Vec::new() };
        linear.forward(&mut products, &params, &x, &mut y);
        linear.backward(&mut products, &params, &mut grads, &g, &x, &mut dx);
        (y, grads[1])
    };
    let (y, db) = run([true; 2]);
    assert_eq!((y, db), ([1.0 + 2.0 * unit, 1.0 + 4.0 * unit], 11.0 + 4.0 * unit));
    let (y, db) = run([false; 2]);
    let bias = unit + unit / 512.0;
    assert_eq!((y, db), ([1.0 + bias, 1.0 + 2.0 * unit + bias], 11.0 + 2.0 * unit));
    assert_eq!(run([true, false]), ([1.0 + 2.0 * unit, 1.0 + 4.0 * unit], 11.0 + 2.0 * unit));
}
