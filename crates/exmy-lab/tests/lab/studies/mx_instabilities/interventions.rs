use exmy_lab::run_config::Setting;
use exmy_lab::studies::mx_instabilities::grids::STRESSES;
use exmy_lab::studies::mx_instabilities::interventions::{Effect, NULL, judge};
use exmy_lab::study_scale::StudyScale;
use exmy_train::train::config::{Config, Train};

#[test]
fn effects_compare_divergences() {
    let of = |control, branch| Effect::of(control, branch, 100);
    assert_eq!(of(Some(200), None), Effect::Averted);
    assert_eq!(of(Some(200), Some(260)), Effect::Delayed(60));
    assert_eq!(of(Some(200), Some(205)), Effect::None);
    assert_eq!(of(Some(200), Some(194)), Effect::Hastened(6));
    assert_eq!(of(Some(100), None), Effect::TooLate);
    assert_eq!(of(None, None), Effect::None);
    assert_eq!(of(None, Some(150)), Effect::Caused);
}

#[test]
fn the_null_changes_nothing_but_the_rate() {
    let setting = Setting::unread(StudyScale::Small);
    let grid = &STRESSES[0].branches;
    let [control, null] = ["control", NULL].map(|name| {
        let points = grid.points(StudyScale::Small);
        let point = points.iter().find(|point| point.has(name)).unwrap();
        grid.runs_of(&setting, point).remove(0).config
    });
    let (rate, raised) = (control.train.lr, null.train.lr);
    assert_eq!((rate, raised), (0.06, 0.06 * (1.0 + 1.0 / 4_194_304.0)));
    assert_ne!(rate as f32, raised as f32);
    assert_eq!(null.train.lr_min, raised);
    let train = Train { lr: rate, lr_min: rate, ..null.train.clone() };
    assert_eq!(Config { train, ..null }, control);
}

#[test]
fn verdicts_compare_shares_of_diverging_runs() {
    use Effect::{Averted, Caused, Delayed, None, TooLate};
    let word = |seeds: &[(bool, &[Effect])]| {
        let seeds: Vec<_> = seeds.iter().map(|(diverged, all)| (*diverged, all.to_vec())).collect();
        judge("E2M1", &seeds, Option::None, &[]).word()
    };
    let (saved, calm): (&[Effect], &[Effect]) = (&[Averted, Averted, None], &[None; 3]);
    assert_eq!(word(&[(true, saved), (true, &[Averted; 3]), (true, saved)]), "reproduced");
    // Half of the seeds are saved as often as the other half are harmed.
    let harmed: &[Effect] = &[Caused, Caused, None];
    assert_eq!(
        word(&[(true, saved), (false, harmed), (true, saved), (false, harmed)]),
        "not seen at this scale"
    );
    assert_eq!(word(&[(false, harmed), (false, &[Caused; 3]), (false, harmed)]), "contradicted");
    assert_eq!(word(&[(true, &[Delayed(9); 3]), (true, calm)]), "not seen at this scale");
    assert_eq!(word(&[(true, &[TooLate; 3]), (true, &[TooLate; 3])]), "untested at this size");
    assert_eq!(word(&[]), "untested at this size");
}
