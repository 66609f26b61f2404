use exmy_train::nn::device::{Cpu, Matrix, MatrixMut};
use exmy_train::nn::linear::{Group, Products, Unquantized};
use exmy_train::nn::site::Operator;

#[test]
fn members_share_the_rows() {
    let members = [(Operator::Q, 6), (Operator::K, 2), (Operator::V, 2)];
    let group = Group { layer: Some(1), members: &members };
    assert_eq!(group.outputs(), 10);
    let sites: Vec<_> =
        group.sites().map(|(site, rows)| (site.to_string(), rows.start, rows.end)).collect();
    let expected =
        [("layers.1.q_proj", 0, 6), ("layers.1.k_proj", 6, 8), ("layers.1.v_proj", 8, 10)];
    assert_eq!(sites, expected.map(|(name, start, end)| (name.to_owned(), start, end)));
}

/// One token, two inputs, a group of 1 + 2 outputs, by hand.
#[test]
fn three_products_by_hand() {
    let members = [(Operator::Gate, 1), (Operator::Up, 2)];
    let group = Group { layer: Some(0), members: &members };
    let (x, w, g) = ([2.0_f32, 3.0], [1.0_f32, 0.0, 0.0, 1.0, 1.0, -1.0], [1.0_f32, 10.0, 100.0]);
    let (x, w, g) = (Matrix::new(&x, 1, 2), Matrix::new(&w, 3, 2), Matrix::new(&g, 1, 3));
    let cpu = &Cpu::new();
    let (mut y, mut dx, mut dw) = ([9.0; 3], [9.0; 2], [1.0; 6]);
    Unquantized.forward(cpu, &group, x, w, MatrixMut::new(&mut y, 1, 3));
    Unquantized.grad_input(cpu, &group, g, w, MatrixMut::new(&mut dx, 1, 2));
    Unquantized.grad_weight(cpu, &group, g, x, MatrixMut::new(&mut dw, 3, 2));
    assert_eq!(y, [2.0, 3.0, -1.0]);
    assert_eq!(dx, [101.0, -90.0]);
    assert_eq!(dw, [3.0, 4.0, 21.0, 31.0, 201.0, 301.0]);
}
