use exmy_lab::compare::{Records, compare, differences, gap, records};
use exmy_lab::gather::NamedRun;
use exmy_train::train::preset::preset;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::Folder;
use std::collections::BTreeMap;

fn line(step: u64, loss: f64) -> Metrics {
    let val_loss = step.is_multiple_of(2).then_some(loss);
    Metrics { step, loss: Some(loss), val_loss, ..Metrics::default() }
}

#[test]
fn the_first_step_that_differs_is_found() {
    let first: Vec<Metrics> = (0..5).map(|step| line(step, 2.0)).collect();
    assert_eq!(records(&first, &first), Records::Same);
    assert_eq!(records(&first, &first[..3]), Records::SameUpTo { step: 2 });
    let mut other = first.clone();
    other[3].loss = Some(2.0 + f64::EPSILON * 2.0);
    other[4].lr = Some(1.0);
    let keys = vec!["loss".to_owned()];
    assert_eq!(records(&first, &other), Records::Differ { step: 3, keys });
}

#[test]
fn gaps_are_of_the_last_step_of_both() {
    let first = BTreeMap::from([0, 2, 4, 6].map(|step| (step, 2.0)));
    let other = BTreeMap::from([0, 2, 4].map(|step| (step, 2.5)));
    assert_eq!(gap(&first, &other), Some((25.0, 4)));
    assert_eq!(gap(&first, &BTreeMap::new()), None);
}

#[test]
fn runs_are_compared_within_their_seeds() {
    let root = tempfile::tempdir().unwrap();
    let run = |recipe: &str, seed: u64, loss: f64| {
        let name = format!("{recipe} seed {seed}");
        let mut config = preset("nano").unwrap();
        (config.recipe, config.seed) = (recipe.parse().unwrap(), seed);
        let folder = Folder::new(root.path().join(&name));
        std::fs::create_dir(folder.path()).unwrap();
        std::fs::write(folder.config_file(), config.to_toml()).unwrap();
        let line = serde_json::to_string(&line(2, loss)).unwrap() + "\n";
        std::fs::write(folder.metrics_file(), line).unwrap();
        NamedRun { name, folder, config }
    };
    // Within seed 2 the gap is 10 %; from seed 1 it would be 120 %. Seed 3 has no run to be compared with.
    let runs = [("f32", 1, 2.0), ("mxfp4", 2, 4.4), ("f32", 2, 4.0), ("mxfp4", 3, 3.0)];
    let runs = runs.map(|(recipe, seed, loss)| run(recipe, seed, loss));
    let (found, broken) = compare(&runs);
    assert!(broken.is_empty(), "{broken:?}");
    let gaps = found.runs.iter().map(|run| run.gap_percent.map(f64::round));
    assert_eq!(gaps.collect::<Vec<_>>(), [None, Some(10.0), Some(100.0), Some(50.0)]);
    let others = found.runs.iter().map(|run| run.other_seed);
    assert_eq!(others.collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(found.runs[1].compared_with.as_deref(), Some(runs[2].folder.path()));
}

#[test]
fn keys_are_those_that_differ() {
    let one = preset("nano").unwrap();
    let mut other = one.clone();
    assert!(differences(&[&one, &other]).is_empty());
    (other.recipe, other.train.batch) = ("mxfp4".parse().unwrap(), 3);
    let found = differences(&[&one, &other, &one]);
    let keys: Vec<&str> = found.iter().map(|found| found.key.as_str()).collect();
    assert_eq!(keys, ["recipe", "train.batch"]);
    assert_eq!(found[0].values[1].as_deref(), Some("\"mxfp4\""));
    assert_eq!(found[1].values[1].as_deref(), Some("3"));
}
