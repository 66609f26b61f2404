use exmy_train::nn::relu::{Function, apply, apply_backward};

#[test]
fn values_and_slopes_by_hand() {
    let x = [-2.0, -0.0, 0.5, 3.0];
    let both = |function| {
        let (mut y, mut d) = ([9.0; 4], [1.0, 1.0, 1.0, 2.0]);
        apply(function, &x, &mut y);
        apply_backward(function, &x, &mut d);
        (y, d)
    };
    assert_eq!(both(Function::Relu), ([0.0, 0.0, 0.5, 3.0], [0.0, 0.0, 1.0, 2.0]));
    assert_eq!(both(Function::SquaredRelu), ([0.0, 0.0, 0.25, 9.0], [0.0, 0.0, 1.0, 12.0]));
    assert_eq!(both(Function::Linear), (x, [1.0, 1.0, 1.0, 2.0]));
    let (y, d) = both(Function::Tanh);
    assert!((y[2] - 0.462_117_157_260_009_8_f64).abs() < 1e-15);
    assert!((d[2] - 0.786_447_732_965_927_5).abs() < 1e-15);
    let mut y = [0.0; 1];
    apply(Function::SquaredRelu, &[f64::NAN], &mut y);
    assert!(y[0].is_nan());
}
