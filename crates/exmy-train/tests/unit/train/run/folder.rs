use exmy_train::train::config;
use exmy_train::train::preset::preset;
use exmy_train::train::run::folder::{ALONE, Folder};
use std::fs;

#[test]
fn a_lost_configuration_is_told_with_what_would_work() {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::new(root.path().join("run"));
    folder.create(&preset("nano").unwrap()).unwrap();
    folder.config().unwrap();
    let message = |text: &str| {
        fs::write(folder.config_file(), text).unwrap();
        folder.config().unwrap_err().to_string()
    };
    for (text, fault) in [("", "version"), ("not a config", "config.toml"), ("x = 1", "x")] {
        let error = message(text);
        assert!(error.contains(fault) && error.contains(ALONE), "{error}");
    }
    // A whole one of another version lost nothing.
    let older = message(&config::sealed("version = 1\n"));
    assert!(older.contains("version 1") && !older.contains(ALONE), "{older}");
    fs::remove_file(folder.config_file()).unwrap();
    assert!(folder.config().unwrap_err().to_string().contains(ALONE));
}
