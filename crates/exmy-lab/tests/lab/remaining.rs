use exmy_lab::gather::{RecordedRun, State};
use exmy_lab::remaining::{Looks, Remaining};
use exmy_train::train::preset::preset;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Summary};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A run of 100 steps that has come to `step`; one that is complete took `seconds`.
fn run(root: &Path, recipe: &str, step: u64, seconds: Option<f64>) -> RecordedRun {
    let mut config = preset("nano").unwrap();
    config.recipe = recipe.parse().unwrap();
    config.train = config.train.with_steps(100);
    let folder = Folder::new(root.join(recipe));
    let summary = seconds.map(|seconds| {
        fs::create_dir_all(folder.path()).unwrap();
        fs::write(folder.timing_file(), format!("{{\"train_seconds\":{seconds}}}\n")).unwrap();
        Summary {
            version: 2,
            recipe: recipe.into(),
            seed: 1,
            lr: 1.0,
            steps: 100,
            tokens: 1,
            parameters: 1,
            train_loss: None,
            val_loss: None,
            val_bits_per_byte: None,
            diverged_at: None,
            reason: None,
            precision: Vec::new(),
            records: None,
        }
    });
    let metrics = vec![Metrics { step, ..Metrics::default() }];
    let (name, condition) = (recipe.to_owned(), recipe.to_owned());
    RecordedRun { name, condition, folder, config, metrics, summary }
}

#[test]
fn planned_runs_count_as_those_of_their_recipe() {
    let root = tempfile::tempdir().unwrap();
    let of = |recipe, step, seconds| run(root.path(), recipe, step, seconds);
    // 0.5 and 2 seconds a step; of bf16 nothing is known, so it is taken at 1.25.
    let runs = [
        of("f32", 100, Some(50.0)),
        of("mxfp4", 100, Some(200.0)),
        of("bf16", 60, None),
        of("e4m3", 0, None),
    ];
    let states = [State::Complete, State::Complete, State::AtWork, State::Waiting];
    let planned = ["f32", "mxfp4", "nvfp4"].map(str::to_owned);
    let left = Looks::default().look(&runs, &states, &planned);
    assert_eq!((left.of(&runs[2].folder), left.of(&runs[3].folder)), (Some(50.0), Some(125.0)));
    assert_eq!((left.of(&runs[0].folder), left.speed(&runs[2].folder)), (None, None));
    // All of f32, all of mxfp4, and of what nobody has tried as long as the mean of the four.
    assert_eq!((left.all, left.not_begun), (Some(50.0 + 125.0 + 50.0 + 200.0 + 125.0), 3));
    // Two at a time.
    let states = [State::Complete, State::Complete, State::AtWork, State::AtWork];
    assert_eq!(Looks::default().look(&runs, &states, &planned).all, Some(550.0 / 2.0));
    // Where nobody is at work there is no end to wait for.
    let left = Looks::default().look(&runs[..2], &states[..2], &planned);
    assert_eq!((left.all, left.not_begun), (None, 3));
    // Of the first run ever nothing is known at the first look.
    assert_eq!(Looks::default().look(&runs[2..3], &states[2..3], &[]), Remaining::default());
}

#[test]
fn what_was_seen_counts_more_than_records() {
    let root = tempfile::tempdir().unwrap();
    let of = |recipe, step, seconds| run(root.path(), recipe, step, seconds);
    let states = [State::Complete, State::AtWork];
    let mut looks = Looks::default();
    looks.look(&[of("f32", 100, Some(1e-9)), of("bf16", 0, None)], &states, &[]);
    std::thread::sleep(Duration::from_millis(20));
    let runs = [of("f32", 100, Some(1e-9)), of("bf16", 10, None)];
    let left = looks.look(&runs, &states, &["bf16".to_owned()]);
    // Ten steps took 20 ms or more.
    let speed = left.speed(&runs[1].folder).unwrap();
    assert!(speed <= 500.0, "{speed}");
    let (own, all) = (left.of(&runs[1].folder).unwrap(), left.all.unwrap());
    assert!((own * speed - 90.0).abs() < 1e-6 && (all * speed - 190.0).abs() < 1e-6);
}
