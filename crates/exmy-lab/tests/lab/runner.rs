mod labels;
mod out;
mod shard;

use exmy::error::Result;
use exmy_lab::runner::{
    End, Kind, LATER, OutFolder, Progress, Run, Runner, Shard, Silent, Train, content_name,
    find_run, share,
};
use exmy_train::train::config::{Config, sealed};
use exmy_train::train::data::Dataset;
use exmy_train::train::preset::preset;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{self, Folder, Outcome, Watch};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run of a few steps in moments, with a checkpoint of step 2.
fn tiny(recipe: &str, seed: u64) -> Run {
    let changes = format!(
        "recipe = {recipe:?}\nseed = {seed}\ntrain.steps = 4\ntrain.warmup = 0\ntrain.batch = 4\n\
         record.checkpoint_at = [2]\nmodel.width = 8\nmodel.layers = 1\n\
         model.validation_rows = 8\nrecord.eval_every = 0"
    );
    let config = preset("proxy-nano").unwrap().overlaid(&changes).unwrap();
    let name = content_name((recipe, 60), &config, "");
    Run { name, config, parent: None }
}

/// Three runs, and a branch of the second.
fn four() -> Vec<Run> {
    let mut runs: Vec<Run> = (1..=3).map(|seed| tiny("f32", seed)).collect();
    let mut config = runs[1].config.overlaid("recipe = \"bf16\"").unwrap();
    config.record.checkpoint_at.clear();
    let (name, parent) = ("bf16-branch".to_owned(), Some((runs[1].name.clone(), 2)));
    runs.push(Run { name, config, parent });
    runs
}

/// Counts runs, and stops at a step of one.
#[derive(Default)]
struct Counted {
    runs: AtomicUsize,
    stop_at: Option<usize>,
}

impl Progress for Counted {
    fn run(&self, index: usize, _: &Dataset, train: Train<'_>) -> Result<Outcome> {
        struct Stop;
        impl Watch for Stop {
            fn step(&mut self, _: &Metrics, _: u64) -> bool {
                false
            }
            fn phase(&mut self, _: &str) {}
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        if self.stop_at == Some(index) { train(&mut Stop) } else { train(&mut Silent) }
    }

    fn goes_on(&self) -> bool {
        true
    }
}

/// Locks belong to opened files, so that two runners of one process meet as two processes do.
#[test]
fn two_processes_train_each_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let (runs, counted) = (four(), Counted::default());
    let runner = Runner::new(folder.path()).waiting();
    let end = std::thread::scope(|scope| {
        let other = scope.spawn(|| runner.clone().with_jobs(2).work(&runs, None, &counted));
        assert_eq!(runner.work(&runs, None, &counted).unwrap(), End::default());
        other.join().unwrap().unwrap()
    });
    assert_eq!((end, counted.runs.into_inner()), (End::default(), 4));
    assert!(runs.iter().all(|run| runner.folder(&run.name).summary().unwrap().is_some()));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4, "nothing but the runs is left");
}

#[test]
fn what_another_process_has_is_left_and_taken_over_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (runs, counted) = (four(), Counted::default());
    let runner = Runner::new(folder.path());
    let held = runner.folder(&runs[1].name);
    held.create(&runs[1].config).unwrap();
    let lock = run::lock(&held).unwrap().unwrap();
    let end = runner.work(&runs, None, &counted).unwrap();
    assert_eq!(end.left, [runs[1].name.clone(), runs[3].name.clone()], "the run and its branch");
    // Who waits goes on with it when its process is gone, however that ended.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| runner.clone().waiting().work(&runs, None, &counted));
        std::thread::sleep(LATER);
        drop(lock);
        assert_eq!(other.join().unwrap().unwrap(), End::default());
    });
    assert_eq!(counted.runs.into_inner(), 4);
}

#[test]
fn a_request_to_stop_is_not_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let runs = four();
    let runner = Runner::new(folder.path());
    let stopped = Counted { stop_at: Some(1), ..Counted::default() };
    assert!(runner.work(&runs, None, &stopped).unwrap().stopped);
    assert_eq!(stopped.runs.into_inner(), 2, "the third is not begun");
    let rest = Counted::default();
    assert_eq!(runner.work(&runs, None, &rest).unwrap(), End::default());
    assert_eq!(rest.runs.into_inner(), 3);
}

/// Nobody's run is another's too, and a branch is its parent's shard's.
#[test]
fn shards_divide_roots_with_their_branches() {
    let runs = four();
    let of = |index, count| share(&runs, Shard::new(index, count).unwrap());
    assert_eq!([of(0, 2), of(1, 2)], [vec![0, 2], vec![1, 3]]);
    assert_eq!(of(0, 1), [0, 1, 2, 3]);
    let folder = tempfile::tempdir().unwrap();
    let runner = Runner::new(folder.path()).with_shard(Shard::new(1, 2).unwrap());
    let counted = Counted::default();
    runner.work(&runs, None, &counted).unwrap();
    assert_eq!(counted.runs.load(Ordering::Relaxed), 2);
    runner.stealing(true).work(&runs, None, &counted).unwrap();
    assert_eq!(counted.runs.into_inner(), 4);
}

#[test]
fn an_error_names_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let runs = four();
    let runner = Runner::new(folder.path());
    std::fs::write(folder.path().join(&runs[0].name), "mine").unwrap();
    let error = runner.work(&runs, None, &Silent).unwrap_err().to_string();
    assert!(error.contains(&runs[0].name) && error.contains("is a file"), "{error}");
    std::fs::remove_file(folder.path().join(&runs[0].name)).unwrap();
    // What a kill of an earlier version left holds nothing.
    std::fs::create_dir_all(folder.path().join(&runs[0].name).join("checkpoints")).unwrap();
    assert_eq!(runner.work(&runs, None, &Silent).unwrap(), End::default());
    // A run whose configuration is lost is not begun anew over its records.
    let lost = runner.folder(&runs[0].name);
    std::fs::remove_file(lost.summary_file()).unwrap();
    std::fs::remove_file(lost.config_file()).unwrap();
    let error = runner.work(&runs, None, &Silent).unwrap_err().to_string();
    assert!(error.contains("put it back") && lost.metrics_file().exists(), "{error}");
}

/// The layout of earlier versions, made by hand of a folder of this one.
#[test]
fn folders_of_earlier_versions_are_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("old");
    let configs: Vec<Config> = [1, 2].map(|seed| tiny("f32", seed).config).into();
    OutFolder::create(&path, &configs, "rows", None).unwrap();
    for (name, seed) in [("f32-s1", 1), ("f32-s2", 2)] {
        std::fs::rename(find_run(&path.join(name)), path.join(name)).unwrap();
        assert!(path.join(name).join("config.toml").is_file(), "seed {seed}");
    }
    std::fs::remove_file(path.join("manifest.json")).unwrap();
    let list = "{\"version\":2,\"data\":\"rows\",\"reference\":null,\"runs\":[{\"folder\":\"f32-s2\",\
                \"result\":null},{\"folder\":\"f32-s1\",\"result\":null}]}";
    std::fs::write(path.join("summary.json"), list).unwrap();
    let mut out = OutFolder::open(&path).unwrap().remove(0);
    let names: Vec<String> = out.manifest().runs.iter().map(|run| run.folder.clone()).collect();
    assert_eq!(names, ["f32-s2", "f32-s1"]);
    assert_eq!(out.manifest().keys, ["recipe", "seed"]);
    let kind = Kind::Train { data: "rows".into(), reference: None };
    assert_eq!(out.manifest().kind, kind);
    let run = |name: &String| {
        let config = Folder::new(path.join(name)).config().unwrap();
        Run { name: name.clone(), config, parent: None }
    };
    let runs: Vec<Run> = names.iter().map(run).collect();
    Runner::new(&path).work(&runs, None, &Silent).unwrap();
    out.conclude().unwrap();
    assert!(!path.join("summary.json").exists() && path.join("manifest.json").is_file());
    let again = OutFolder::open(&path).unwrap().remove(0);
    assert!(again.manifest().runs.iter().all(|run| run.result.is_some()));
    assert_eq!(again.status().unwrap().done, names);
}

/// As are those of sweeps, with their files of states; a list that is somebody's own stays.
#[test]
fn sweeps_of_earlier_versions_are_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    let runs = vec![tiny("f32", 1), tiny("f32", 2)];
    Runner::new(path.join("runs")).work(&runs[..1], None, &Silent).unwrap();
    for (state, name) in
        [("done", &runs[0].name), ("claims", &runs[1].name), ("queue", &runs[1].name)]
    {
        std::fs::create_dir(path.join(state)).unwrap();
        std::fs::write(path.join(state).join(name), "").unwrap();
    }
    let entry = |run: &Run| {
        format!(
            "{{\"name\":{:?},\"values\":[\"f32\",\"{}\"],\"result\":null}}",
            run.name, run.config.seed
        )
    };
    let entries: Vec<String> = runs.iter().map(entry).collect();
    let list = format!(
        "{{\"version\":2,\"keys\":[\"recipe\",\"seed\"],\"runs\":[{}]}}",
        entries.join(",")
    );
    std::fs::write(path.join("sweep.json"), list).unwrap();
    std::fs::write(path.join("summary.json"), "{\"mine\":1}").unwrap();
    let (keys, seeds) = (["recipe", "seed"].map(str::to_owned), ["1", "2"]);
    let values = seeds.map(|seed| vec!["f32".to_owned(), seed.to_owned()]).to_vec();
    let plan = exmy_lab::sweep::Plan { keys: keys.to_vec(), runs, values };
    let mut out = OutFolder::of_sweep(path, &plan).unwrap();
    assert!(!path.join("sweep.json").exists() && !path.join("queue").exists());
    assert!(path.join("summary.json").exists());
    assert_eq!(out.status().unwrap().fresh.len(), 1);
    let counted = Counted::default();
    Runner::new(path.join("runs")).work(&plan.runs, None, &counted).unwrap();
    assert_eq!(counted.runs.into_inner(), 1, "the other one was complete");
    out.conclude().unwrap();
    assert!(
        out.table().contains("f32         2") || out.table().contains("f32"),
        "{}",
        out.table()
    );
    let other = exmy_lab::sweep::Plan { values: plan.values[..1].to_vec(), ..plan };
    let other = exmy_lab::sweep::Plan { runs: other.runs[..1].to_vec(), ..other };
    let error = OutFolder::of_sweep(path, &other).unwrap_err().to_string();
    assert!(error.contains("folder of another plan"), "{error}");
}

/// A run of the version before, whose recipe had another name, is gone on with in its folder, and is the same
/// run.
#[test]
fn runs_with_former_names_of_formats_are_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (root.path().join("old"), root.path().join("new"));
    std::fs::create_dir(&old).unwrap();
    for (recipe, was) in [("e4m3", "e4m3fn"), ("e4m3-ieee", "e4m3")] {
        let run = tiny(recipe, 1);
        let (words, hash) = run.name.rsplit_once('-').unwrap();
        assert_eq!(words, recipe);
        let folder = Folder::new(old.join(format!("{was}-{hash}")));
        folder.create(&run.config).unwrap();
        let text = run.config.former_toml();
        assert!(text.contains(&format!("version = 2\nrecipe = {was:?}\n")), "{text}");
        std::fs::write(folder.config_file(), sealed(&text)).unwrap();
        let runs = [run];
        for path in [&old, &new] {
            assert_eq!(Runner::new(path).work(&runs, None, &Silent).unwrap(), End::default());
        }
        let fresh = Folder::new(new.join(&runs[0].name));
        assert_eq!(folder.metrics().unwrap(), fresh.metrics().unwrap());
        assert_eq!(folder.summary().unwrap(), fresh.summary().unwrap());
        // A summary that the version before wrote reads in today's names.
        let summary = std::fs::read_to_string(folder.summary_file()).unwrap();
        let summary = summary
            .replace("\"version\": 3", "\"version\": 2")
            .replace(&format!("{recipe:?}"), &format!("{was:?}"));
        assert!(summary.contains(&format!("\"recipe\": {was:?}")), "{summary}");
        std::fs::write(folder.summary_file(), summary).unwrap();
        assert_eq!(folder.summary().unwrap(), fresh.summary().unwrap());
        std::fs::write(folder.path().join("mark"), "").unwrap();
        assert!(Runner::new(&old).folder(&runs[0].name).path().join("mark").is_file());
    }
    assert_eq!(std::fs::read_dir(&old).unwrap().count(), 2, "nothing was begun anew");
    // Manifests, too.
    let list = r#"{"version":1,"kind":"sweep","keys":["recipe","seed"],
        "runs":[{"folder":"runs/e4m3-1","values":["e4m3","1"]}]}"#;
    std::fs::write(root.path().join("manifest.json"), list).unwrap();
    let found = exmy_lab::runner::Manifest::read(root.path()).unwrap().unwrap();
    assert_eq!(found.runs[0].values, ["e4m3-ieee", "1"]);
}
