use crate::train::probe::registry::{measured, operand};
use exmy::slice::View;
use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::{Observer, Rounded};
use exmy_train::train::probe::products::Products;

/// X (1 x 2), W (2 x 2): Y = (3, 4) from (1, 2) and rows (1, 1), (0, 2), given as (3, 3).
#[test]
fn products_by_hand() {
    let mut probe = Products::default();
    let (x, w) = ([1.0, 2.0], [1.0, 1.0, 0.0, 2.0]);
    let input = operand("f32", View::new(&x, 1, 2), View::new(&x, 1, 2));
    let weight = operand("f32", View::new(&w, 2, 2), View::new(&w, 2, 2));
    probe.operand(&input);
    probe.operand(&Rounded { operand: Operand::Weight, ..weight });
    probe.output(input.site, Product::Forward, View::new(&[3.0, 3.0], 1, 2));
    // Two operators' grad_input is one sum: (1) (5) + (2) (7) = 19, given as 20.
    for (operator, g, w) in [(Operator::Q, 1.0, 5.0), (Operator::K, 2.0, 7.0)] {
        let (g, w) = ([g], [w]);
        let shown = |operand_, values| Rounded {
            site: Site { operator, ..input.site },
            product: Product::GradInput,
            operand: operand_,
            ..operand("f32", values, values)
        };
        probe.operand(&shown(Operand::GradOutput, View::new(&g, 1, 1)));
        probe.operand(&shown(Operand::Weight, View::new(&w, 1, 1)));
    }
    probe.output(input.site, Product::GradInput, View::new(&[20.0], 1, 1));
    let values = measured(&mut probe);
    let part =
        |name: &str| values.parts[format!("layers.1.q_proj.{name}").as_str()].number().unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    close(part("forward.error"), 1.0 / 5.0);
    close(part("forward.cos"), 21.0 / (18.0_f64.sqrt() * 5.0));
    let (x, w) = (5.0_f64.sqrt(), 2.0_f64.sqrt());
    close(part("alignment"), (3.0 / (w * x) + 3.0 / (2.0 * x)) / 2.0);
    close(part("grad_input.error"), 1.0 / 19.0);
    close(values.value.unwrap(), 0.2);
    assert!(measured(&mut probe).is_empty());
}
