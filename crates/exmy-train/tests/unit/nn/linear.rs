use exmy::slice::{View, ViewMut};
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
    let (x, w, g) = (View::new(&x, 1, 2), View::new(&w, 3, 2), View::new(&g, 1, 3));
    let (mut y, mut dx, mut dw) = ([9.0; 3], [9.0; 2], [1.0; 6]);
    Unquantized.forward(&group, x, w, ViewMut::new(&mut y, 1, 3));
    Unquantized.grad_input(&group, g, w, ViewMut::new(&mut dx, 1, 2));
    Unquantized.grad_weight(&group, g, x, ViewMut::new(&mut dw, 3, 2));
    assert_eq!(y, [2.0, 3.0, -1.0]);
    assert_eq!(dx, [101.0, -90.0]);
    assert_eq!(dw, [3.0, 4.0, 21.0, 31.0, 201.0, 301.0]);
}
