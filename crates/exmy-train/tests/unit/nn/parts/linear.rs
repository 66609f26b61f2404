use exmy::round::Rounding;
use exmy_train::nn::device::{Cpu, Matrix, MatrixMut};
use exmy_train::nn::linear::{Group, Products, Unquantized};
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::nn::parts::Context;
use exmy_train::nn::parts::linear::Linear;
use exmy_train::nn::site::{Operator, Vector};

/// Plain products, one vector operation in bfloat16 on the way of which the flag is set.
pub(crate) struct Watch {
    pub operation: Vector,
    pub ways: [bool; 2],
    /// What the weight gradient of the last product read.
    pub read: Vec<f32>,
}

impl Products<Cpu> for Watch {
    fn forward(
        &mut self,
        cpu: &Cpu,
        group: &Group<'_>,
        x: Matrix<'_, Cpu>,
        w: Matrix<'_, Cpu>,
        y: MatrixMut<'_, Cpu>,
    ) {
        Unquantized.forward(cpu, group, x, w, y);
    }

    fn grad_input(
        &mut self,
        cpu: &Cpu,
        group: &Group<'_>,
        g: Matrix<'_, Cpu>,
        w: Matrix<'_, Cpu>,
        dx: MatrixMut<'_, Cpu>,
    ) {
        Unquantized.grad_input(cpu, group, g, w, dx);
    }

    fn grad_weight(
        &mut self,
        cpu: &Cpu,
        group: &Group<'_>,
        g: Matrix<'_, Cpu>,
        x: Matrix<'_, Cpu>,
        dw: MatrixMut<'_, Cpu>,
    ) {
        if group.members[0].0 == Operator::Down {
            self.read = x.data().numbers().to_vec();
        }
        Unquantized.grad_weight(cpu, group, g, x, dw);
    }

    fn vector(&self, _: Option<u32>, operation: Vector, gradient: bool) -> Option<Rounding> {
        let rounds = operation == self.operation && self.ways[usize::from(gradient)];
        rounds.then_some(Rounding::TiesToAway)
    }
}

/// 1 + 2^-8 is a tie between two bfloat16 numbers, which goes away from zero, to 1 + 2^-7. Its sum with the
/// bias 2^-8 + 2^-17, which is 2^-8 in bfloat16, is rounded once more. The gradients 1 + 2^-8 and 2^-8 are
/// rounded before they are summed, and their sum 1 + 3 2^-8 again. What was in the gradient stays.
#[test]
fn biases_by_hand() {
    let mut layout = Layout::default();
    layout.push("w".into(), &[1, 1], Role::Matrix, Init::Zeros);
    layout.push("b".into(), &[1], Role::Bias, Init::Zeros);
    let members = [(Operator::Down, 1)];
    let linear = Linear::new(&layout, Some(0), &members, 1, ["w", "w"]);
    let linear = linear.with_bias(&layout, ["b"; 2]);
    let unit = 1.0 / 256.0;
    let params = [1.0, unit + unit / 512.0];
    let run = |ways: [bool; 2]| {
        let (x, mut y, mut dx) = ([1.0, 1.0 + 2.0 * unit], [0.0_f32; 2], [0.0_f32; 2]);
        let (g, mut grads) = ([1.0 + unit, unit], [0.0, 10.0_f32]);
        let mut products = Watch { operation: Vector::Bias, ways, read: Vec::new() };
        let cx =
            &mut Context { device: &Cpu::new(), products: &mut products, params: (&params).into() };
        linear.forward(cx, (&x).into(), (&mut y).into());
        let sums = &mut (&mut grads).into();
        linear.backward(cx, sums, (&g).into(), (&x).into(), (&mut dx).into());
        (y, grads[1])
    };
    let (y, db) = run([true; 2]);
    assert_eq!((y, db), ([1.0 + 2.0 * unit, 1.0 + 4.0 * unit], 11.0 + 4.0 * unit));
    let (y, db) = run([false; 2]);
    let bias = unit + unit / 512.0;
    assert_eq!((y, db), ([1.0 + bias, 1.0 + 2.0 * unit + bias], 11.0 + 2.0 * unit));
    assert_eq!(run([true, false]), ([1.0 + 2.0 * unit, 1.0 + 4.0 * unit], 11.0 + 2.0 * unit));
}
