use exmy::safetensors::whole;
use exmy_lab::gather::{Names, State, gather, names, not_begun, quantities, states};
use exmy_lab::runner::{Entry, Kind, Manifest};
use exmy_train::train::config::Config;
use exmy_train::train::preset::preset;
use exmy_train::train::run::Folder;
use std::fs;
use std::path::{Path, PathBuf};

fn config(recipe: &str, seed: u64, lr: f64) -> (PathBuf, Config) {
    let mut config = preset("nano").unwrap();
    (config.recipe, config.seed, config.train.lr) = (recipe.parse().unwrap(), seed, lr);
    (PathBuf::from(format!("runs/{recipe}-{seed}-{lr}")), config)
}

#[test]
fn names_say_what_differs() {
    let two = [config("f32", 1, 1e-3), config("mxfp4", 1, 1e-3)];
    assert_eq!(names(&two).runs, ["f32", "mxfp4"]);
    let grid = [config("f32", 1, 1e-3), config("f32", 2, 1e-2)];
    assert_eq!(names(&grid).runs, ["f32 lr 1e-3 seed 1", "f32 lr 1e-2 seed 2"]);
    assert_eq!(names(&grid).conditions, ["f32 lr 1e-3", "f32 lr 1e-2"]);
    let same = [config("f32", 1, 1e-3), config("f32", 1, 1e-3)];
    let Names { runs, conditions } = names(&same);
    assert!(runs[0].starts_with("runs/") && runs == conditions, "{runs:?}");
}

/// Runs of several folders that have the same recipes: what else differs is in the name, and seeds of one
/// configuration keep one name.
#[test]
fn names_say_which_key_or_folder_differs() {
    let of = |folder: &str, seed: u64, batch: usize| {
        let mut config = preset("nano").unwrap();
        (config.seed, config.train.batch) = (seed, batch);
        (PathBuf::from(format!("runs/{folder}/{seed}")), config)
    };
    let two = [of("a", 1, 8), of("a", 2, 8), of("b", 1, 16), of("b", 2, 16)];
    let found = names(&two);
    assert_eq!(found.conditions, ["f32 batch=8", "f32 batch=8", "f32 batch=16", "f32 batch=16"]);
    assert_eq!(found.runs[3], "f32 batch=16 seed 2");
    // No seed is there twice, and yet one name would be of two configurations.
    assert_eq!(names(&[of("a", 1, 8), of("b", 2, 16)]).conditions, ["f32 batch=8", "f32 batch=16"]);
    // The same once more: by the folder.
    let again = [of("a", 1, 8), of("a", 2, 8), of("a/old", 1, 8), of("a/old", 2, 8)];
    let found = names(&again);
    assert_eq!(found.conditions, ["f32 in a", "f32 in a", "f32 in a/old", "f32 in a/old"]);
    // A folder without a name is none for a name.
    let mut bare = [of("a", 1, 8), of("b", 1, 8)];
    bare[1].0 = PathBuf::from("other");
    let found = names(&bare);
    assert_eq!(
        (found.runs, found.conditions.last().unwrap().as_str()),
        (found.conditions.clone(), "other")
    );
    // What is too long for a name is none.
    let mut long = [of("a", 1, 8), of("b", 1, 8)];
    long[1].1.data.source = "a/text/of/a/long/name.txt".parse().unwrap();
    assert_eq!(names(&long).conditions, ["f32 in a", "f32 in b"]);
}

#[test]
fn runs_without_configuration_are_told() {
    let root = tempfile::tempdir().unwrap();
    for name in ["whole", "lost"] {
        Folder::new(root.path().join(name)).create(&preset("nano").unwrap()).unwrap();
    }
    let lost = Folder::new(root.path().join("lost"));
    fs::remove_file(lost.config_file()).unwrap();
    let left_out = || gather(&[root.path().to_owned()]).unwrap().1;
    // A folder without records is none of a run; an output folder's list of runs is no result of one.
    let list = "{\"version\":2,\"data\":\"\",\"reference\":null,\"runs\":[]}";
    fs::write(lost.summary_file(), list).unwrap();
    assert!(left_out().is_empty());
    fs::write(lost.metrics_file(), "").unwrap();
    let error = left_out()[0].to_string();
    assert!(error.contains("lost/config.toml") && error.contains("put it back"), "{error}");
    fs::remove_file(lost.metrics_file()).unwrap();
    let summary = "{\"version\":2,\"recipe\":\"f32\",\"seed\":1,\"lr\":1,\"steps\":1,\"tokens\":1,\
        \"parameters\":1,\"precision\":[]}";
    fs::write(lost.summary_file(), summary).unwrap();
    assert_eq!(left_out().len(), 1);
    // Alone it is the error.
    assert!(gather(&[lost.path().to_owned()]).unwrap_err().to_string().contains("config.toml"));
}

#[test]
fn folders_are_found_below() {
    let root = tempfile::tempdir().unwrap();
    for name in ["b/runs/two", "a/one"] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        Folder::new(&path).create(&preset("nano").unwrap()).unwrap();
    }
    let (found, broken) = gather(&[root.path().to_owned()]).unwrap();
    assert!(broken.is_empty());
    assert_eq!(found.len(), 2);
    assert!(found[0].folder.path().ends_with("a/one"));
    assert_eq!(states(&found), [State::Stopped; 2]);
    assert!(found.iter().all(|run| run.recorded().unwrap().is_empty()));
    let recorded = [["sharpness", "loss"], ["lr", "gap"]];
    let recorded = recorded.map(|names| names.map(str::to_owned).into());
    assert_eq!(quantities(&recorded), ["loss", "lr", "gap", "sharpness"]);
    fs::create_dir(root.path().join("empty")).unwrap();
    let error = gather(&[root.path().join("empty")]).unwrap_err().to_string();
    assert!(error.contains("holds no run"), "{error}");
    assert!(gather(&[root.path().join("nothing")]).is_err());
}

/// Not every folder below can be read, and some are gone before they are looked into: as those of `/dev/fd`,
/// of which one is the look itself.
#[test]
#[cfg(target_os = "linux")]
fn folders_that_cannot_be_read_stop_nothing() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let root = tempfile::tempdir().unwrap();
    let (run, closed) = (root.path().join("run"), root.path().join("closed"));
    Folder::new(&run).create(&preset("nano").unwrap()).unwrap();
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    symlink("/proc/self/fd", root.path().join("fd")).unwrap();
    let (found, broken) = gather(&[root.path().to_owned()]).unwrap();
    assert!(found.iter().any(|known| known.folder.path() == run));
    // Who may do everything may read it.
    let is_closed = fs::read_dir(&closed).is_err();
    let said = broken.iter().any(|error| error.to_string().contains("closed cannot be read"));
    assert_eq!(said, is_closed, "{broken:?}");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

/// A run is found by the hash at the end of its name, whatever the words before it.
#[test]
fn planned_runs_without_a_folder_are_not_begun() {
    let root = tempfile::tempdir().unwrap();
    let entry = |recipe: &str, hash: u64| Entry {
        folder: format!("runs/{recipe}-{hash:016x}"),
        values: vec![recipe.to_owned(), "1".to_owned()],
        result: None,
    };
    let entries = vec![entry("f32", 1), entry("mxfp4", 2), entry("e4m3fn", 3), entry("f32", 4)];
    for name in ["f32-0000000000000001", "e4m3-0000000000000003"] {
        let path = root.path().join("out/runs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        Folder::new(path).create(&preset("nano").unwrap()).unwrap();
    }
    let manifest = Manifest::new(Kind::Sweep, vec!["recipe".into(), "seed".into()], entries);
    manifest.write(&root.path().join("out")).unwrap();
    let of = |path: &Path| not_begun(&[path.to_owned()]).unwrap();
    assert_eq!(of(root.path()), ["mxfp4", "f32"]);
    // Where one run is asked for, the others are none of it.
    assert!(of(&root.path().join("out/runs/f32-0000000000000001")).is_empty());
}

/// A run whose turn has not come is not one that was stopped.
#[test]
fn runs_wait_while_one_is_at_work() {
    let root = tempfile::tempdir().unwrap();
    let [busy, begun, fresh] = ["busy", "begun", "fresh"].map(|name| {
        let folder = Folder::new(root.path().join(name));
        folder.create(&preset("nano").unwrap()).unwrap();
        folder
    });
    fs::write(begun.metrics_file(), "{\"step\":0,\"tokens\":0}\n").unwrap();
    let of = |folder: &Folder| states(&gather(&[folder.path().to_owned()]).unwrap().0)[0];
    assert_eq!(of(&fresh), State::Stopped);
    let held = whole::lock(&busy.config_file()).unwrap();
    let (found, _) = gather(&[root.path().to_owned()]).unwrap();
    // In the order of their names: begun, busy, fresh.
    assert_eq!(states(&found), [State::Stopped, State::AtWork, State::Waiting]);
    // Also where the one at work was not asked for.
    assert_eq!((of(&fresh), of(&begun)), (State::Waiting, State::Stopped));
    let checked =
        [State::Complete, State::Diverged, State::AtWork].map(|state| state.checked(true));
    assert_eq!(checked, [State::Damaged, State::Damaged, State::AtWork]);
    drop(held);
    assert_eq!(of(&fresh), State::Stopped);
}
