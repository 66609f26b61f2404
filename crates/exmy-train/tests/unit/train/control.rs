use exmy_train::recipe::Recipe;
use exmy_train::train::config::Config;
use exmy_train::train::control::{Control, NextAction};
use exmy_train::train::preset::preset;
use exmy_train::train::record::{Event, Metrics};
use exmy_train::train::trigger::RecipeChange;
use std::collections::BTreeMap;
use toml::Table;

/// A run of `nano` with rules.
fn config(rules: &str) -> Config {
    let config = preset("nano").unwrap().overlaid(rules).unwrap();
    config.validate().unwrap();
    config
}

fn line(step: u64, loss: f64, grad_norm: f64) -> Metrics {
    Metrics { step, loss: Some(loss), grad_norm: Some(grad_norm), ..Metrics::default() }
}

/// Reads lines as they come; the steps at which a rule changed the recipe, and to what.
fn changes(config: &Config, lines: &[Metrics]) -> Vec<(u64, String)> {
    let mut control = Control::new(config);
    let mut found = Vec::new();
    for line in lines {
        let before = control.recipe().to_string();
        let decision = control.decide(line, None).unwrap();
        if control.recipe().to_string() != before || !decision.events.is_empty() {
            found.push((line.step, control.recipe().to_string()));
        }
    }
    found
}

fn owned(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter().map(|(step, recipe)| (*step, (*recipe).to_owned())).collect()
}

#[test]
fn parts_of_recipes() {
    let recipe: Recipe = "mxfp4".parse().unwrap();
    let change = |part: &str| {
        let table: Table = format!("then = {part}").parse().unwrap();
        let part: RecipeChange = table["then"].clone().try_into().unwrap();
        part.change(&recipe).map(|recipe| recipe.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(change("\"bf16\""), Ok("bf16".into()));
    assert_eq!(change("\"+out=bf16\""), Ok("mxfp4+out=bf16".into()));
    let appended = RecipeChange::Text("+out=bf16".into());
    let once = appended.change(&recipe).unwrap();
    assert_eq!(appended.change(&once).unwrap(), once);
    // Also under another spelling, and where the base has an option of that name.
    assert_eq!(RecipeChange::Text("+out=bfloat16".into()).change(&once).unwrap(), once);
    let chon: Recipe = "chon".parse().unwrap();
    let changed = RecipeChange::Text("+last=0".into()).change(&chon).unwrap();
    assert_eq!(changed, "chon+last=0".parse().unwrap());
    assert_ne!(changed.rules(), chon.rules());
    assert!(change("\"+tensor\"").unwrap_err().contains("begins with a plus sign and an option"));
    // What is appended by turns is not kept for ever.
    let other = RecipeChange::Text("+out=f16".into());
    let mut grown = Ok(recipe.clone());
    for i in 0..300 {
        let part = [&appended, &other][i % 2];
        grown = grown.and_then(|recipe| part.change(&recipe));
    }
    let error = grown.unwrap_err().to_string();
    assert!(error.contains("257 rules, of 256") && error.contains("whole recipe"), "{error}");
    assert!(change("\"mxpf8-e4m3\"").unwrap_err().contains("mxfp8-e4m3"));
}

#[test]
fn at_a_step() {
    let config =
        config("[[at]]\nstep = 3\nthen = \"+out=bf16\"\n[[at]]\nstep = 0\nthen = \"mxfp4\"\n");
    let lines: Vec<_> = (0..6).map(|step| line(step, 1.0, 1.0)).collect();
    assert_eq!(changes(&config, &lines), owned(&[(0, "mxfp4"), (3, "mxfp4+out=bf16")]));
}

/// Each recipe is planned once and each step finds its own rules: for a model of many layers planning every
/// rule would take many minutes, and so would looking at all rules in every step.
#[test]
fn very_many_rules() {
    let count = 100_000;
    let recipes = ["bf16", "mxfp8-e4m3", "mxfp4"];
    let recipe = |i: u64| recipes[i as usize % recipes.len()];
    let mut rules = format!("[model]\nlayers = 512\n[train]\nsteps = {}\n", count + 1);
    for i in 0..count {
        rules += &format!("[[at]]\nstep = {i}\nthen = {:?}\n", recipe(i));
    }
    let config = config(&rules);
    assert_eq!(config.at.len() as u64, count);
    let lines: Vec<_> = (0..count).map(|step| line(step, 1.0, 1.0)).collect();
    let expected: Vec<_> = (0..count).map(|step| (step, recipe(step).to_owned())).collect();
    assert!(changes(&config, &lines) == expected);
}

/// `for` counts records in a row, `cooldown` steps without a look, `times` actions.
#[test]
fn when_a_value_stays_above() {
    let rule = |more: &str| {
        config(&format!(
            "[[when]]\nmetric = \"grad_norm\"\nabove = 2.0\nfor = 3\nthen = \"bf16\"\n{more}"
        ))
    };
    let norms = [3.0, 3.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0];
    let lines: Vec<_> = (1..).zip(norms).map(|(step, norm)| line(step, 1.0, norm)).collect();
    // 2.0 is not above 2.0 and breaks the first row.
    assert_eq!(changes(&rule(""), &lines), owned(&[(6, "bf16"), (9, "bf16"), (12, "bf16")]));
    assert_eq!(changes(&rule("times = 1\n"), &lines), owned(&[(6, "bf16")]));
    // Steps 7 and 8 are not seen; 9, 10, 11 are.
    assert_eq!(changes(&rule("cooldown = 2\n"), &lines), owned(&[(6, "bf16"), (11, "bf16")]));
}

#[test]
fn records_without_the_value_do_not_count() {
    let config =
        config("[[when]]\nmetric = \"lastbin.gamma\"\nabove = 0.5\nfor = 2\nthen = \"bf16\"\n");
    let lines: Vec<_> = (1..=5)
        .map(|step| {
            let value = (step % 2 == 1).then(|| ("lastbin.gamma".to_owned(), 0.75));
            Metrics { probes: BTreeMap::from_iter(value), ..line(step, 1.0, 1.0) }
        })
        .collect();
    assert_eq!(changes(&config, &lines), owned(&[(3, "bf16")]));
}

/// A spike is the loss over the median of those before it, from the tenth on.
#[test]
fn a_spike_is_seen_against_the_median_before_it() {
    let config = config("[[when]]\nmetric = \"spike\"\nabove = 1.5\nthen = \"bf16\"\n");
    let spiky = |at: u64| -> Vec<_> {
        (1..=30).map(|step| line(step, if step == at { 3.1 } else { 2.0 }, 1.0)).collect()
    };
    assert_eq!(changes(&config, &spiky(10)), []);
    assert_eq!(changes(&config, &spiky(11)), owned(&[(11, "bf16")]));
    assert_eq!(changes(&config, &spiky(30)), owned(&[(30, "bf16")]));
}

/// Two rules that turn precision up and down; whatever is read back decides the same.
#[test]
fn replayed_lines_leave_the_same_state() {
    let config = config(
        "recipe = \"mxfp4\"\n[[when]]\nmetric = \"grad_norm\"\nabove = 2.0\nfor = 2\nthen = \"bf16\"\n\
         cooldown = 3\n[[when]]\nmetric = \"grad_norm\"\nbelow = 1.0\nthen = \"mxfp4\"\ntimes = 2\n",
    );
    let norm = |step: u64| 1.5 + 1.2 * libm::sin(step as f64);
    let mut control = Control::new(&config);
    let mut lines = Vec::new();
    for step in 1..60 {
        let mut line = line(step, 1.0, norm(step));
        line.events = control.decide(&line, None).unwrap().events;
        lines.push(line);
        // As a resume after this step would.
        let mut again = Control::new(&config);
        for line in &lines {
            let text = serde_json::to_string(line).unwrap();
            again.replay(&serde_json::from_str(&text).unwrap()).unwrap();
        }
        assert_eq!(again.recipe(), control.recipe(), "after {step}");
        assert_eq!(again.rules, control.rules, "after {step}");
    }
    assert!(lines.iter().filter(|line| !line.events.is_empty()).count() > 4);
}

#[test]
fn rollbacks_name_the_first_sight() {
    let config = config(
        "[[when]]\nmetric = \"loss\"\nabove = 2.0\nfor = 3\nthen = \"bf16\"\nrollback = true\n\
         cooldown = 2\n",
    );
    let mut control = Control::new(&config);
    for step in 1..=2 {
        assert_eq!(control.decide(&line(step, 1.0, 1.0), None).unwrap().verdict, NextAction::GoOn);
        assert_eq!(control.suspicion(), None);
    }
    for step in 3..=4 {
        assert_eq!(control.decide(&line(step, 3.0, 1.0), None).unwrap().verdict, NextAction::GoOn);
        assert_eq!(control.suspicion(), Some(3));
    }
    let decision = control.decide(&line(5, 3.5, 1.0), None).unwrap();
    let NextAction::RollBack { since: 3, event } = decision.verdict else {
        panic!("{decision:?}");
    };
    // At the checkpoint: the change holds, and the rule is silent up to step 5 + 2.
    let mut control = Control::new(&config);
    control.rolled_back(&event).unwrap();
    assert_eq!(control.recipe().to_string(), "bf16");
    for step in 1..=9 {
        let verdict = control.decide(&line(step, 3.0, 1.0), None).unwrap().verdict;
        assert_eq!(verdict, NextAction::GoOn, "step {step}");
    }
    assert!(matches!(
        control.decide(&line(10, 3.0, 1.0), None).unwrap().verdict,
        NextAction::RollBack { since: 8, .. }
    ));
}

/// What is no number ends a run, unless a rule with rollback looks at it.
#[test]
fn what_is_no_number_is_above_every_limit() {
    let broken = Metrics { step: 1, ..Metrics::default() };
    let plain = config("[[when]]\nmetric = \"loss\"\nabove = 9.0\nfor = 5\nthen = \"bf16\"\n");
    let decision = Control::new(&plain).decide(&broken, Some("loss NaN")).unwrap();
    assert_eq!(decision.verdict, NextAction::Stop);
    assert_eq!(decision.events, [Event::Diverged { reason: "loss NaN".into() }]);
    let back = config(
        "[[when]]\nmetric = \"loss\"\nabove = 9.0\nfor = 5\nthen = \"bf16\"\nrollback = true\n",
    );
    let decision = Control::new(&back).decide(&broken, Some("loss NaN")).unwrap();
    assert!(matches!(decision.verdict, NextAction::RollBack { since: 1, .. }), "{decision:?}");
    assert_eq!(decision.events, []);
}

#[test]
fn a_branch_begins_under_its_own_recipe() {
    let mut config = config(
        "recipe = \"nvfp4\"\n[[at]]\nstep = 2\nthen = \"e5m2\"\n[[at]]\nstep = 6\nthen = \"bf16\"\n\
         [[when]]\nmetric = \"loss\"\nabove = 2.0\nfor = 3\nthen = \"f32\"\n",
    );
    config.start.run = "elsewhere".into();
    config.start.step = 4;
    // Three high losses end with step 4, the other run's: they change nothing here.
    let losses = [1.0, 3.0, 3.0, 3.0, 3.0, 1.0, 3.0, 3.0, 3.0];
    let lines: Vec<_> = (1..).zip(losses).map(|(step, loss)| line(step, loss, 1.0)).collect();
    assert_eq!(changes(&config, &lines), owned(&[(6, "bf16"), (9, "f32")]));
    // The row that began with steps 3 and 4 goes on.
    config.start.step = 3;
    assert_eq!(changes(&config, &lines)[0], (4, "f32".into()));
}

#[test]
fn rules_that_cannot_work_are_refused() {
    let refused = |rules: &str, parts: &[&str]| {
        let config = preset("nano").unwrap().overlaid(rules);
        let error = config.and_then(|config| config.validate()).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{rules}: {error}");
    };
    let rule = |metric: &str, rest: &str| {
        format!("[[when]]\nmetric = \"{metric}\"\nthen = \"bf16\"\n{rest}")
    };
    refused(&rule("grad_nrom", "above = 1.0"), &["grad_nrom", "did you mean grad_norm?"]);
    refused(&rule("loss", ""), &["rule 1 of [[when]]", "one of them"]);
    refused(&rule("loss", "above = 1.0\nbelow = 2.0"), &["one of them"]);
    refused(&rule("loss", "above = nan"), &["one of them, a number"]);
    refused(&rule("loss", "above = 1.0\nfor = 0"), &["for = 0"]);
    refused(&rule("loss", "above = 1.0\nuntil = 3"), &["until"]);
    refused("[[at]]\nstep = 600\nthen = \"bf16\"\n", &["rule 1 of [[at]]", "600"]);
    refused("[[at]]\nstep = 6\nthen = \"bf61\"\n", &["rule 1 of [[at]]", "bf16"]);
}

/// Every key of a rule survives its file.
#[test]
fn rules_survive_their_toml() {
    let config = config(
        "[[at]]\nstep = 2\nthen = \"e5m2\"\n[[when]]\nmetric = \"spike\"\nabove = 3\nfor = 4\n\
         then = \"+out=bf16\"\ncooldown = 5\ntimes = 6\nrollback = true\n",
    );
    assert_eq!(config.when[0].above, Some(3.0));
    assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config);
}
