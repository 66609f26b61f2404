use exmy_lab::run_config::Setting;
use exmy_lab::studies::nvfp4_outliers::patches::{
    COUNTS, Errors, check, claims, draw_operands, error, exact, loss, planted_channels,
};
use exmy_lab::studies::nvfp4_outliers::weights::data;
use exmy_lab::study_scale::StudyScale;
use exmy_lab::test_result::verdict;
use exmy_train::recipe::hot::{Count, Patch, Terms};

fn errors(a: f64, b: f64, falling: bool) -> Errors {
    let mut found = Errors { base: vec![1.0; 3], ..Errors::default() };
    for (form, level) in [(0, a), (1, 1.1 * a), (2, b)] {
        for (i, k) in (0..).zip(COUNTS) {
            let fall = if falling { -0.02 } else { 0.02 } * f64::from(i);
            let values = [0.0, 0.001, 0.003].map(|noise| level + fall + noise * f64::from(1 + i));
            found.forms.insert((form, k), values.into());
        }
    }
    found
}

#[test]
fn the_check_holds_where_every_step_and_both_residuals_leave_less() {
    let word = |a, b, falling| check(&errors(a, b, falling)).word();
    assert_eq!(word(0.9, 0.5, true), "check holds");
    assert_eq!(word(0.5, 0.9, true), "check fails");
    assert_eq!(word(0.9, 0.5, false), "check fails");
    assert_eq!(word(0.5, 0.5, true), "check fails");
}

/// Both channels that are 16 times as large and those that are 64 times must cost less.
#[test]
fn planted_gaps_reach_each_verdict() {
    let word = |sixteen: f64, most: f64| {
        let seeds = |gap: f64| vec![gap, gap + 0.1, gap - 0.2];
        let plain = vec![seeds(0.3), seeds(0.3), seeds(2.0), vec![60.0, 61.0, 62.0]];
        let patched = vec![seeds(9.0), seeds(9.0), seeds(sixteen), seeds(most)];
        verdict(&claims(&[plain, patched])).word()
    };
    assert_eq!((word(1.0, 20.0), word(3.0, 20.0)), ("reproduced", "contradicted"));
    assert_eq!(word(2.0, 20.0), "not seen at this scale");
}

/// What is planted changes no loss by a bit in f32.
#[test]
fn planting_is_no_change_of_function() {
    let setting = Setting::unread(StudyScale::Smoke);
    let mut config = setting.config("gla-nano");
    config.record.eval_windows = 4;
    let text = data(&setting).unwrap();
    let model = *config.model.decoder().unwrap();
    let params = config.model.initialize(1);
    let mut hot = params.clone();
    model.plant(&mut hot, &planted_channels(64), 16.0);
    assert_ne!(params, hot);
    let of = |params: &[f32]| loss(&config, "f32", params, &text).unwrap();
    assert_eq!(of(&params), of(&hot));
}

#[test]
fn a_product_is_better_patched() {
    let drawn = draw_operands(1);
    let of = |terms, k| Some(Patch { count: Some(Count::Channels(k)), ..exact(terms) });
    let [base, both, full] = [None, of(Terms::Both, 128), of(Terms::Full, 512)]
        .map(|patch| error(&drawn, patch).unwrap());
    assert!((0.13..0.15).contains(&base) && both < 0.07 && full < 0.004, "{base} {both} {full}");
}
