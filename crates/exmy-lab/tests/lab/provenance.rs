use exmy_lab::provenance::seconds;
use exmy_train::train::run::Folder;
use std::fs;

#[test]
fn seconds_are_those_of_all_processes() {
    let root = tempfile::tempdir().unwrap();
    let lines = [1.5, 4.0, 0.5, 2.0].map(|now| format!("{{\"train_seconds\":{now}}}\n"));
    fs::write(root.path().join("timing.jsonl"), lines.concat()).unwrap();
    let runs = [root.path().to_owned(), root.path().join("none")].map(Folder::new);
    assert_eq!(seconds(runs.into_iter()), 6.0);
}
