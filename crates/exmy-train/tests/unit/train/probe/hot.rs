use crate::train::probe::registry::{measured, operand};
use exmy::slice::View;
use exmy_train::nn::site::Operand;
use exmy_train::recipe::{Observer, Rounded};
use exmy_train::train::probe::Key;
use exmy_train::train::probe::hot::Hot;

#[test]
fn sets_by_hand() {
    // Magnitudes 1, 9, 4, 4; errors of the input 0, 0.5, 0, 1, of the weight 0.75, 0, 0, 0.
    let x = [1.0_f32, 9.0, 4.0, 0.0, -1.0, 0.0, 0.0, 4.0];
    let mut xq = x;
    (xq[1], xq[7]) = (8.0, 2.0);
    let w = [1.0_f32, 1.0, 1.0, 1.0];
    let wq = [0.25_f32, 1.0, 1.0, 1.0];
    let mut probe = Hot::new("hot:2", Some("2")).unwrap();
    probe.operand(&operand("e2m1", View::new(&x, 2, 4), View::new(&xq, 2, 4)));
    let weight = operand("e2m1", View::new(&w, 1, 4), View::new(&wq, 1, 4));
    probe.operand(&Rounded { operand: Operand::Weight, ..weight });
    let values = measured(&mut probe);
    let list = |name: &str| {
        values.parts[format!("layers.1.q_proj.{name}").as_str()].list().unwrap().to_vec()
    };
    assert_eq!(list("magnitude"), [1.0, 2.0], "4 is there twice: the lower channel");
    assert_eq!(list("error"), [3.0, 0.0]);
    assert_eq!(values.value, Some(0.0));
    assert!(Hot::new("hot:0", Some("0")).is_err() && Hot::new("hot:x", Some("x")).is_err());
}

#[test]
fn nothing_rounded_has_no_errors() {
    let x = [1.0_f32; 40];
    let mut probe = Hot::new("hot", None).unwrap();
    let x = View::new(&x, 1, 40);
    probe.operand(&operand("f32", x, x));
    let values = measured(&mut probe);
    assert_eq!(
        values.parts.keys().map(Key::as_str).collect::<Vec<_>>(),
        ["layers.1.q_proj.magnitude"]
    );
    assert_eq!(values.parts["layers.1.q_proj.magnitude"].list().unwrap().len(), 16);
    assert_eq!(values.value, None);
}
