use exmy_train::train::record::Metrics;
use exmy_train::train::stop::{Stop, Watchdog};

/// The step at which a curve ends, and why.
fn end(stop: &Stop, losses: impl IntoIterator<Item = f64>) -> Option<(usize, String)> {
    let mut dog = Watchdog::new(stop, 5);
    let line = |loss| Metrics { loss: Some(loss), grad_norm: Some(1.0), ..Metrics::default() };
    losses.into_iter().enumerate().find_map(|(i, loss)| Some((i, dog.bark(&line(loss))?)))
}

#[test]
fn curves_end_where_they_should() {
    let off = Stop::default();
    let spike = || (0..40).map(|i| if i == 20 { 100.0 } else { 2.0 });
    let rise = || (0..40).map(|i| if i < 20 { 2.0 } else { 2.6 });
    assert_eq!(end(&off, spike()), None);
    let above = Stop { loss_above: 50.0, ..off.clone() };
    assert_eq!(end(&above, spike()), Some((20, "loss 100 above 50".into())));
    let patient = Stop { patience: 2, ..above };
    assert_eq!(end(&patient, spike()), None);
    let by_nats = Stop { loss_rise: 0.5, ..off.clone() };
    assert_eq!(end(&by_nats, spike()), None, "one spike does not move the median");
    // The median of 5 follows with the third high loss.
    let text = "median loss 2.6, lowest 2: more than 0.5 above".to_owned();
    assert_eq!(end(&by_nats, rise()), Some((22, text)));
    assert_eq!(end(&Stop { loss_factor: 1.4, ..off.clone() }, rise()), None);
    assert_eq!(end(&Stop { loss_factor: 1.25, ..off }, rise()).map(|found| found.0), Some(22));
}

#[test]
fn norms_count_too() {
    let mut dog = Watchdog::new(&Stop { grad_norm_above: 3.0, ..Stop::default() }, 5);
    let line = |norm| Metrics { loss: Some(1.0), grad_norm: Some(norm), ..Metrics::default() };
    assert_eq!(dog.bark(&line(3.0)), None);
    assert_eq!(dog.bark(&line(4.0)).unwrap(), "gradient norm 4 above 3");
}
