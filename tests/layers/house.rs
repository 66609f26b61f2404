//! What no compiler checks: that a test which waits to be asked for has its command in the documents, and
//! that the tests of a package run with all of its features.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources;

const CRATES: [&str; 5] =
    ["", "crates/exmy-train", "crates/exmy-cuda", "crates/exmy-lab", "crates/exmy-capi"];

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
            let is =
                |line: &&str| line.trim_start().starts_with("#[ignore") && !line.contains(LONG);
            if !text.lines().any(|line| is(&line)) {
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

/// Why a test waits for CI: a first visit is to be short.
const LONG: &str = "long: .ci/run runs it";

/// CI asks for the tests that it runs apart from the others by the name of their module.
#[test]
fn long_tests_are_run_by_ci() {
    const COMMAND: &str = "cargo test --workspace -- --ignored long::";
    for page in [".ci/run", "docs/verification.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert!(text.lines().any(|line| line.starts_with(COMMAND)), "{page} lacks {COMMAND:?}");
    }
    let mut seen = 0;
    for path in CRATES.iter().flat_map(|package| files_of(package)) {
        let text = fs::read_to_string(&path).unwrap();
        let ignored = |text: &str| text.matches("#[ignore = \"long: ").count();
        let (before, long) = text.split_once("\nmod long {\n").unwrap_or((&text, ""));
        let long = match path.file_name().is_some_and(|name| name == "long.rs") {
            true => before,
            false => {
                assert_eq!(ignored(before), 0, "{path:?}: not in a module `long`");
                long
            }
        };
        assert_eq!(ignored(long), long.matches(LONG).count(), "{path:?}");
        assert_eq!(ignored(long), long.matches("#[test]").count(), "{path:?}");
        seen += ignored(long);
    }
    assert!(seen > 5, "{seen} long tests");
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

/// A library whose manifest says `test = false` is not compiled for tests, so tests in it would never run.
#[test]
fn tests_stand_where_they_run() {
    let mut untested = 0;
    for package in CRATES {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        let lib = manifest.split("\n[").find_map(|table| table.strip_prefix("lib]\n"));
        if !lib.is_some_and(|lib| lib.lines().any(|line| line == "test = false")) {
            continue;
        }
        untested += 1;
        let program = root().join(package).join("src/bin");
        let mut files = Vec::new();
        sources(&root().join(package).join("src"), &mut files);
        for path in files.iter().filter(|path| !path.starts_with(&program)) {
            let text = fs::read_to_string(path).unwrap();
            let never = text.lines().any(|line| ["#[cfg(test)]", "#[test]"].contains(&line.trim()));
            assert!(!never, "{path:?} has tests that never run: they belong to {package}/tests");
        }
    }
    assert_eq!(untested, 2, "of exmy-train and exmy-lab");
}
