use exmy_lab::runner::out::{OutFolder, find_run, folder_name, next_free};
use exmy_train::train::config::Config;
use exmy_train::train::preset::preset;
use std::fs;
use std::path::Path;

#[test]
fn folder_names_are_plain() {
    let name = |text: &str, several_lrs| {
        let config = preset("nano").unwrap();
        let config = Config { recipe: text.parse().unwrap(), seed: 3, ..config };
        let name = folder_name(&config, several_lrs);
        name.rsplit_once('-').unwrap().0.to_owned()
    };
    assert_eq!(name("mxfp8-e4m3", false), "mxfp8-e4m3-s3");
    assert_eq!(name("e2m1/16:e8m0", false), "e2m1_16_e8m0-s3");
    assert_eq!(name("f32", true), "f32-lr1e-3-s3");
}

#[test]
fn a_name_without_its_hash_means_the_only_one() {
    let parent = tempfile::tempdir().unwrap();
    let place = |name: &str| parent.path().join(name);
    let (one, other) = (place("f32-s1-0123456789abcdef"), place("f32-s1-0123456789abcde0"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(place("f32-s10-0123456789abcdef")).unwrap();
    assert_eq!(find_run(&place("f32-s1")), one);
    assert_eq!(find_run(&place("f32")), place("f32"));
    fs::create_dir(&other).unwrap();
    assert_eq!(find_run(&place("f32-s1")), place("f32-s1"), "two have this name");
    assert_eq!(find_run(&other), other);
    fs::remove_dir(&other).unwrap();
    assert_eq!(find_run(&place("f32-s1/a/b")), place("f32-s1/a/b"), "no such file");
    fs::write(one.join("model"), "").unwrap();
    assert_eq!(find_run(&place("f32-s1/model")), one.join("model"));
    assert_eq!(find_run(Path::new("")), Path::new(""));
}

#[test]
fn the_next_number_is_above_all_others() {
    let parent = tempfile::tempdir().unwrap();
    assert_eq!(next_free(parent.path()).file_name().unwrap(), "0001");
    for name in ["0001", "0007", "notes"] {
        fs::create_dir(parent.path().join(name)).unwrap();
    }
    assert_eq!(next_free(parent.path()).file_name().unwrap(), "0008");
    assert_eq!(next_free(&parent.path().join("absent")).file_name().unwrap(), "0001");
}

#[test]
fn a_used_folder_is_refused_and_untouched() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("config.toml"), "x").unwrap();
    let error = OutFolder::create(parent.path(), &[], "", None).unwrap_err().to_string();
    assert!(error.contains("already holds a run"), "{error}");
    assert_eq!(fs::read(parent.path().join("config.toml")).unwrap(), b"x");
}
