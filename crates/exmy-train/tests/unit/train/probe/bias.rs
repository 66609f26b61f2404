use crate::train::probe::registry::{proxy, seen};
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::train::probe::bias::{cosine, rho};
use exmy_train::train::probe::registry::by_name;
use exmy_train::train::probe::{Snapshot, Values};

#[test]
fn by_hand() {
    // g = (3, 4), h = (4, 3): |g - h| = sqrt 2, |h| = 5, <g, h> = 24.
    let (g, h) = ([3.0, 4.0], [4.0, 3.0]);
    assert!((rho(&g, &h) - 2.0_f64.sqrt() / 5.0).abs() < 1e-12);
    assert!((cosine(&g, &h) - 24.0 / 25.0).abs() < 1e-12);
    // Twice the gradient is off by all of it, in its direction; the opposite one by twice.
    assert!((rho(&[8.0, 6.0], &h) - 1.0).abs() < 1e-12);
    assert!((cosine(&[8.0, 6.0], &h) - 1.0).abs() < 1e-12);
    assert!((rho(&[-4.0, -3.0], &h) - 2.0).abs() < 1e-12);
    assert!((cosine(&[-4.0, -3.0], &h) + 1.0).abs() < 1e-12);
    assert_eq!([rho(&[0.0; 2], &[0.0; 2]), cosine(&[0.0; 2], &[0.0; 2])], [0.0; 2]);
}
/// By hand: the mean of g = (1, 2, 2, 4) is 2.25 and its norm 5. The same batch in f32 has h = (0, 3, 0, 4),
/// mean 1.75 and norm 5, the run in f32 (2, 2, 2, 2), mean 2 and norm 4.
#[test]
fn eps_is_the_difference_of_means() {
    let mut layout = Layout::default();
    layout.push("a".into(), &[2], Role::Matrix, Init::Ones);
    layout.push("b".into(), &[2], Role::Matrix, Init::Ones);
    let model = proxy();
    let (g, same, run) = ([1.0, 2.0, 2.0, 4.0], [0.0, 3.0, 0.0, 4.0], [2.0; 4]);
    let seen = Snapshot { shadow: Some(&same), twin: Some(&run), ..seen(&model, &layout, &g) };
    let of = |name: &str, seen: &Snapshot<'_>| {
        let mut values = Values::default();
        by_name(name, &model).unwrap().measure(seen, &mut values);
        let part = |name: &str| values.parts.get(name).and_then(|part| part.number());
        [values.value, part("a"), part("b"), part("bound")]
    };
    assert_eq!(of("eps_same", &seen), [0.5, 0.0, 1.0, 10.0].map(Some));
    assert_eq!(of("eps_traj", &seen), [0.25, -0.5, 1.0, 9.0].map(Some));
    // Without the other gradient there is nothing to compare with.
    assert_eq!(of("eps_same", &Snapshot { shadow: None, ..seen }), [None; 4]);
    assert_eq!(of("eps_traj", &Snapshot { twin: None, ..seen }), [None; 4]);
}
