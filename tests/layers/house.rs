//! What no compiler checks: that a test which waits to be asked for has its command in the documents, and
//! that the tests of a package run with all of its features.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources;

const CRATES: [&str; 4] = ["", "crates/exmy-train", "crates/exmy-cuda", "crates/exmy-lab"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_of(package: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        let folder = root().join(package).join(folder);
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    files
}

#[test]
fn ignored_tests_have_their_commands_in_the_documents() {
    let page = fs::read_to_string(root().join("docs/verification.md")).unwrap();
    let mut seen = 0;
    for package in CRATES {
        for path in files_of(package) {
            let text = fs::read_to_string(&path).unwrap();
            if !text.lines().any(|line| line.trim_start().starts_with("#[ignore")) {
                continue;
            }
            let within = path.strip_prefix(root().join(package)).unwrap();
            let names: Vec<_> = within.iter().map(|name| name.to_str().unwrap()).collect();
            let target = match names[..] {
                ["tests", name, ..] => format!("--test {}", name.trim_end_matches(".rs")),
                _ => "--lib".into(),
            };
            let words =
                ["cargo test", &target, "-- --ignored", package.trim_start_matches("crates/")];
            let shown = page.lines().any(|line| words.iter().all(|word| line.contains(word)));
            assert!(shown, "docs/verification.md has no command with {words:?}: {within:?}");
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} files with ignored tests");
}

/// The words in quotation marks.
fn quoted(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split('"').skip(1).step_by(2).map(str::to_owned)
}

/// The features of a manifest, and those that each brings with it.
fn features(manifest: &str) -> BTreeMap<String, Vec<String>> {
    let section = manifest.split_once("[features]\n").map_or("", |(_, rest)| rest);
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let lines =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    lines.map(|(name, brings)| (name.to_owned(), quoted(brings).collect())).collect()
}

/// The list of tests that `cargo test --workspace` runs is that of `--all-features`: each package asks for
/// its features by a development dependency on itself.
#[test]
fn tests_run_with_all_features() {
    for package in CRATES {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        let features = features(&manifest);
        let own = manifest.split_once("path = \".\", features = [").map_or("", |(_, rest)| rest);
        let mut open: Vec<String> = quoted(own.split(']').next().unwrap()).collect();
        open.push("default".into());
        let mut on = BTreeSet::new();
        while let Some(feature) = open.pop() {
            if on.insert(feature.clone()) {
                open.extend(features.get(&feature).into_iter().flatten().cloned());
            }
        }
        let off: Vec<_> = features.keys().filter(|feature| !on.contains(*feature)).collect();
        assert!(off.is_empty(), "{package}: tests run without {off:?}");
    }
    let library = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(features(&library).len() > 10);
}
