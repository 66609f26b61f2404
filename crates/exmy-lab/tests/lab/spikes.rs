use exmy::random::{Philox, Stream};
use exmy_lab::spikes::{Curve, Detected, Factor, Heuristics, Nats, Spike, curves};
use exmy_train::train::record::Metrics;

fn curve(n: u64, loss: impl Fn(u64) -> f64) -> Curve {
    (1..=n).map(|step| (step, loss(step))).collect()
}

fn nats(losses: &[(u64, f64)]) -> Detected {
    Nats::default().judge(losses, &[])
}

/// Uniform in -1 to 1.
fn noise(step: u64) -> f64 {
    2.0 * Philox::new(1, Stream::new("detect")).uniform(step) - 1.0
}

#[test]
fn quiet_curves_have_nothing() {
    for losses in [
        curve(400, |_| 2.0),
        curve(400, |t| 2.0 + 3.0 / t as f64 + 0.05 * noise(t)),
        // The scatter of an oscillation grows with it.
        curve(400, |t| 3.0 + libm::sin(t as f64 / 6.0)),
        curve(400, |t| 3.0 + noise(t)),
        Vec::new(),
        curve(1, |_| 2.0),
        // Nine losses are no level.
        curve(10, |t| if t == 10 { 50.0 } else { 2.0 })[..9].to_vec(),
    ] {
        assert_eq!(nats(&losses), Detected::default());
        assert_eq!(Factor::default().judge(&losses, &[]), Detected::default());
    }
    assert_eq!(nats(&curve(10, |t| if t == 9 { 50.0 } else { 2.0 })).spikes, []);
    assert_eq!(nats(&curve(12, |t| if t == 11 { 50.0 } else { 2.0 })).spikes.len(), 1);
}

#[test]
fn spikes_are_joined_and_recover() {
    let height = |t: u64| match t {
        100 | 103 | 112 => 1.0,
        200 => 0.21,
        300 => 0.19,
        _ => 0.0,
    };
    let verdict = nats(&curve(400, |t| 2.0 + height(t)));
    let spike = |first, last, peak| Spike { first, last, level: 2.0, peak, recovered: true };
    assert_eq!(verdict.spikes, [spike(100, 112, 3.0), spike(200, 200, 2.21)]);
    assert_eq!(verdict.diverged, None);
    assert_eq!(verdict.spikes_per_thousand(400), 5.0);
    // Ten steps apart are two.
    let apart = nats(&curve(400, |t| if t == 100 || t == 110 { 3.0 } else { 2.0 }));
    assert_eq!(apart.spikes.len(), 2);
    // Scatter: 6 x 1.4826 x 0.1 is 0.89.
    let rough = |high: f64| {
        nats(&curve(400, |t| match t {
            200 => 2.0 + high,
            _ => 2.0 + 0.1 * [-1.0, 0.0, 1.0, 0.0, -1.0, 1.0][t as usize % 6],
        }))
    };
    assert_eq!((rough(0.87).spikes.len(), rough(0.91).spikes.len()), (0, 1));
}

#[test]
fn a_step_up_does_not_recover() {
    // 0.3 above for good: a spike until the level has followed, and no divergence.
    let verdict = nats(&curve(400, |t| if t < 200 { 2.0 } else { 2.3 }));
    assert_eq!(verdict.diverged, None);
    assert_eq!(verdict.spikes.len(), 1);
    // The median of 50 moves with the 25th.
    let spike = verdict.spikes[0];
    assert_eq!((spike.first, spike.last, spike.recovered), (200, 224, false));
    // Back after 60 steps is too late, after 40 is not.
    let back = |at| nats(&curve(400, |t| if t < 200 || t >= at { 2.0 } else { 2.3 })).spikes[0];
    assert_eq!((back(260).recovered, back(240).recovered), (false, true));
}

#[test]
fn divergence_by_drift_or_by_no_number() {
    // A slow drift by 0.6 nats from step 500 to 800, and by 0.4.
    let drift = |by: f64| {
        nats(&curve(1000, move |t| 2.0 + by * ((t as f64 - 500.0) / 300.0).clamp(0.0, 1.0)))
    };
    let found = drift(0.6);
    assert_eq!(found.spikes, []);
    // Half a nat is reached at step 750; the average of twenty follows some twenty later.
    assert!(found.diverged.is_some_and(|step| (760..780).contains(&step)), "{found:?}");
    // From 501 on 4: the average is 4 - 2 x 0.95^k after k steps, above 2.5 from the sixth on.
    let jump = nats(&curve(1000, |t| if t <= 500 { 2.0 } else { 4.0 }));
    assert_eq!(jump.diverged, Some(506));
    assert_eq!(drift(0.4).diverged, None);
    for bad in [f64::NAN, f64::INFINITY] {
        let losses = curve(300, |t| if t < 250 { 2.0 } else { bad });
        assert_eq!(nats(&losses).diverged, Some(250));
        assert_eq!(Factor::default().judge(&losses, &[]).diverged, Some(250));
        let norms = curve(300, |t| if t == 240 { bad } else { 1.0 });
        assert_eq!(Nats::default().judge(&losses, &norms).diverged, Some(240));
    }
    // High only for a while, and back at the end.
    assert_eq!(
        nats(&curve(1000, |t| if (500..800).contains(&t) { 4.0 } else { 2.0 })).diverged,
        None
    );
}

#[test]
fn who_never_learnt_failed() {
    let failed = |loss: f64, vocab| Nats::default().failed_to_train(&curve(100, |_| loss), vocab);
    // ln 256 is 5.545, nine tenths of it 4.991.
    assert_eq!((failed(5.0, 256), failed(4.98, 256)), (Some(true), Some(false)));
    assert_eq!(Nats::default().failed_to_train(&[], 256), None);
}

#[test]
fn factors_count_from_the_lowest_level() {
    let judge = |loss: &dyn Fn(u64) -> f64| Factor::default().judge(&curve(600, loss), &[]);
    let falling = |t: u64| 1.0 / t as f64;
    assert_eq!(judge(&falling), Detected::default());
    let spike = judge(&|t| if (400..405).contains(&t) { 0.5 } else { falling(t) });
    assert_eq!(spike.diverged, None);
    assert_eq!((spike.spikes[0].first, spike.spikes[0].last), (400, 404));
    assert!(spike.spikes[0].recovered && spike.spikes.len() == 1);
    let high = judge(&|t| if t >= 400 { 0.5 } else { falling(t) });
    assert_eq!((high.diverged, high.spikes[0].recovered), (Some(400), false));
    // Nine times the level is none.
    assert_eq!(judge(&|t| if t >= 400 { 0.009 } else { 0.001 }).spikes, []);
    // Diverged before there is a window of ten: the first loss is what was reached.
    let early = judge(&|t| if t < 5 { 1.0 } else { 1e5 });
    assert_eq!(early.diverged, Some(5));
    assert_eq!(judge(&|t| if t < 5 { 1.0 } else { 9.0 }), Detected::default());
}

#[test]
fn the_notebooks_rules() {
    let rules = Heuristics::default();
    let step = |by: f64| curve(300, move |t| if t < 250 { 2.0 } else { 2.0 + by });
    // A hundredth of 0.9 is above 0.008, of 0.7 not.
    assert_eq!((rules.onset(&step(0.9)), rules.onset(&step(0.7))), (Some(250), None));
    assert_eq!(rules.onset(&curve(99, |t| t as f64)), None);
    // A valley at 200.5: the average of the fifty up to step t turns when t - 24.5 passes it.
    let valley = curve(400, |t| (t as f64 - 200.5).abs());
    assert_eq!(rules.reversal(&valley), Some(226));
    assert_eq!(rules.reversal(&curve(400, |t| t as f64)), None);
    // What turned before step 120 does not count.
    assert_eq!(rules.reversal(&curve(400, |t| (t as f64 - 60.5).abs())), None);
    let variances = rules.variances(&curve(101, |t| t as f64));
    // Of 1..=100: 100 x 101 / 12.
    assert_eq!(variances.len(), 2);
    assert_eq!(variances[0].0, 100);
    assert!((variances[0].1 - 100.0 * 101.0 / 12.0).abs() < 1e-9);
}

#[test]
fn records_become_curves() {
    let line = |step, loss| Metrics { step, loss, grad_norm: Some(1.0), ..Metrics::default() };
    let (losses, norms) = curves(&[line(0, Some(9.0)), line(1, Some(2.0)), line(2, None)]);
    assert_eq!(losses[0], (1, 2.0));
    assert!(losses.len() == 2 && losses[1].1.is_nan());
    assert_eq!(norms, [(1, 1.0), (2, 1.0)]);
}
