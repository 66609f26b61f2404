use exmy_train::train::config::Config;
use exmy_train::train::precision::spans;
use exmy_train::train::preset::preset;
use exmy_train::train::record::{Event, Metrics};
use exmy_train::train::trigger::{At, RecipeChange};

fn config(recipe: &str) -> Config {
    let mut config = preset("nano").unwrap();
    config.recipe = recipe.parse().unwrap();
    config
}

fn line(step: u64, events: Vec<Event>) -> Metrics {
    Metrics { step, events, ..Metrics::default() }
}

fn texts(config: &Config, lines: &[Metrics], end: u64) -> Vec<(u64, String)> {
    let spans = spans(config, lines, end).unwrap();
    spans.iter().map(|span| (span.from, span.to_string())).collect()
}

#[test]
fn a_run_of_one_recipe_is_one_span() {
    let own = |text: &str| vec![(0, text.to_owned())];
    assert_eq!(texts(&config("f32"), &[], 600), own("f32 100.0 %"));
    assert_eq!(
        texts(&config("mxfp8-mix"), &[], 600),
        own("forward mxfp8-e4m3 100.0 %; backward mxfp8-e5m2 x mxfp8-e4m3 100.0 %")
    );
}

#[test]
fn late_switches_and_events_divide_a_run() {
    let recipe = |text: &str| text.to_owned();
    let mxfp4 = config("mxfp4+from100:all=bf16");
    let expected = [(0, "mxfp4 100.0 %"), (100, "bf16 100.0 %")];
    assert_eq!(texts(&mxfp4, &[], 600), expected.map(|(from, text)| (from, text.to_owned())));
    // A run that ended before.
    assert_eq!(texts(&mxfp4, &[], 100).len(), 1);
    let lines = [
        line(10, vec![Event::At { rule: 1, recipe: recipe("bf16") }]),
        line(20, vec![Event::At { rule: 2, recipe: recipe("bf16+out=bf16") }]),
        line(
            31,
            vec![Event::Rollback {
                rule: 1,
                metric: "loss".into(),
                value: None,
                from: 50,
                to: 30,
                recipe: recipe("f32"),
            }],
        ),
    ];
    let mut config = config("mxfp4");
    for (step, then) in [(10, "bf16"), (20, "+out=bf16")] {
        config.at.push(At { step, then: RecipeChange::Text(then.into()) });
    }
    let when = toml::from_str("metric = \"loss\"\nabove = 1.0\nthen = \"f32\"\n");
    config.when.push(when.unwrap());
    let expected = [(0, "mxfp4 100.0 %"), (10, "bf16 100.0 %"), (30, "f32 100.0 %")];
    assert_eq!(texts(&config, &lines, 600), expected.map(|(from, text)| (from, text.to_owned())));
}

#[test]
fn a_branch_begins_under_its_own_recipe() {
    let mut branch = config("f32");
    (branch.start.run, branch.start.step) = ("elsewhere".into(), 20);
    let lines = [line(10, vec![Event::At { rule: 1, recipe: "mxfp4".into() }])];
    assert_eq!(texts(&branch, &lines, 600), [(20, "f32 100.0 %".to_owned())]);
}

#[test]
fn full_recipes_keep_a_quarter_in_high_precision_at_most() {
    for name in ["nv-nvfp4", "chon"] {
        let spans = spans(&config(name), &[], 600).unwrap();
        for shares in [&spans[0].forward, &spans[0].grad_input, &spans[0].grad_weight] {
            let sum: f64 = shares.values().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{name}: {shares:?}");
        }
        assert_eq!(spans[0].patches > 0.0, name == "chon");
    }
    let spans = spans(&config("nv-nvfp4"), &[], 600).unwrap();
    assert!(spans[0].forward["bf16"] <= 0.25, "{}", spans[0]);
}
