use crate::train::probe::registry::{measured, operand};
use exmy::slice::View;
use exmy_train::nn::site::Product;
use exmy_train::recipe::Observer;
use exmy_train::train::probe::Values;
use exmy_train::train::probe::moments::{Powers, elements};
use exmy_train::train::probe::tails::{Kind, Tails};

fn number(values: &Values, name: &str) -> f64 {
    values.parts.get(name).and_then(exmy_train::train::probe::Value::number).unwrap_or(f64::NAN)
}

const INPUT: &str = "layers.1.q_proj.input";

#[test]
fn kurtosis_of_all_and_of_columns() {
    // Columns: two values equally often (-2), one spike in 100, all equal (left out).
    let x: Vec<f32> = (0..100_u8)
        .flat_map(|i| [if i % 2 == 0 { 1.0 } else { -1.0 }, f32::from(i / 99), 0.5])
        .collect();
    let x = View::new(&x, 100, 3);
    let mut probe = Tails::new(Kind::Kurtosis);
    probe.operand(&operand("f32", x, x));
    let values = measured(&mut probe);
    let spike = 98.0 + 1.0 / 99.0 - 3.0;
    assert!((number(&values, &format!("{INPUT}.channels_max")) - spike).abs() < 1e-9);
    assert!((number(&values, &format!("{INPUT}.channels_top")) - spike).abs() < 1e-9);
    assert!(
        (number(&values, &format!("{INPUT}.channels_mean")) - (spike - 2.0) / 2.0).abs() < 1e-9
    );
    let all = Powers::of(elements(x)).excess_kurtosis();
    assert!((number(&values, INPUT) - all).abs() < 1e-9);
    assert_eq!(values.value.unwrap().to_bits(), number(&values, INPUT).to_bits());
    assert_eq!(values.parts.len(), 4);
}

#[test]
fn channels_in_order() {
    let x: Vec<f32> = (0..12_u8)
        .map(f32::from)
        .chain((0..12).map(|j| if j == 3 { -50.0 } else { 0.0 }))
        .collect();
    let x = View::new(&x, 2, 12);
    let mut probe = Tails::new(Kind::Channels);
    probe.operand(&operand("f32", x, x));
    probe.output(operand("f32", x, x).site, Product::Forward, x);
    let values = measured(&mut probe);
    let list = |name: &str| values.parts[name].list().unwrap().to_vec();
    let mut expected: Vec<f64> = (0..12).map(f64::from).collect();
    expected[3] = 50.0;
    assert_eq!(list(INPUT), expected);
    // 0 1 2 4 5 6 7 8 9 10 11 50: the sixth is 6, the tenth from the top is 2.
    assert_eq!(list(&format!("{INPUT}.top")), [50.0, 11.0, 10.0, 2.0, 6.0]);
    assert_eq!(number(&values, "layers.1.q_proj.output.top"), 50.0);
    assert_eq!(number(&values, &format!("{INPUT}.over_p999")), 1.0);
    assert_eq!(values.value, Some(50.0));
}

#[test]
fn spikes_of_blocks() {
    // Four blocks of 16 x 16: ones, ones with one 15, zeros, twos.
    let x: Vec<f32> = (0..32 * 32)
        .map(|at| match (at / 32 / 16, at % 32 / 16) {
            (0, 0) => 1.0,
            (0, _) => {
                if at == 20 {
                    15.0
                } else {
                    1.0
                }
            }
            (_, 0) => 0.0,
            _ => 2.0,
        })
        .collect();
    let x = View::new(&x, 32, 32);
    let mut probe = Tails::new(Kind::Spikes);
    probe.operand(&operand("f32", x, x));
    let values = measured(&mut probe);
    let spike = 15.0 / ((225.0_f64 + 255.0) / 256.0).sqrt();
    assert!((number(&values, &format!("{INPUT}.rms_max")) - spike).abs() < 1e-12);
    assert!((number(&values, &format!("{INPUT}.median_max")) - 15.0 / 2.0).abs() < 1e-12);
    assert!((values.value.unwrap() - spike).abs() < 1e-12);
}
