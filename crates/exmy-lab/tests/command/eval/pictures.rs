//! Pictures of `exmy eval`, by the texts that are written in them.

use super::{model, refused};
use crate::printed;
use roxmltree::Document;
use std::fs;
use std::path::Path;

/// The texts of a picture that an evaluation draws.
fn texts(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let all = ["model", "--data", "text", "--out", "picture.svg", "-q"];
    printed(folder, "eval", &[&all[..], arguments].concat());
    let svg = fs::read_to_string(folder.join("picture.svg")).unwrap();
    let picture = Document::parse(&svg).unwrap();
    let texts = picture.descendants().filter(|node| node.has_tag_name("text"));
    let written = |text: roxmltree::Node<'_, '_>| {
        let parts = text.descendants().filter(|node| node.is_text());
        parts.filter_map(|node| node.text().map(str::to_owned)).collect()
    };
    texts.map(written).collect()
}

/// Of one window there is no standard error, and none is promised.
#[test]
fn a_picture_of_one_window_promises_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for (tokens, has_error) in [("40", false), ("200", true)] {
        let found = texts(folder, &["--recipe", "f32,mxfp4", "--tokens", tokens]);
        let has = |text: &str| found.iter().any(|one| one == text);
        assert_eq!(has("2 standard errors"), has_error, "{found:?}");
        assert_eq!(has("one window: no standard error"), !has_error, "{found:?}");
    }
}

/// Recipes that differ in keys and values alone have whole names, in bars and beside lines.
#[test]
fn names_of_caches_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let of = |numbers: &str| format!("f32+k:tensor={numbers}+v:tensor={numbers}");
    let formats = ["mxfp8-e4m3", "mxfp6-e2m3", "mxfp4"];
    let recipes = format!("f32,{},f32+k:tensor=e4m3+v:tensor=e5m2", formats.map(of).join(","));
    let few = ["--recipe", &recipes, "--tokens", "40"];
    for more in [&[][..], &["--layers"]] {
        // A name may be broken at its spaces.
        let found = texts(folder, &[&few, more].concat()).join(" ");
        for format in formats {
            assert!(found.contains(&format!("f32, kv {format}")), "{found}");
        }
    }
}

/// Thousands have a space, at which no line ends.
#[test]
fn a_number_stays_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let text: String = (0..90).map(|i| format!("Line {i} of {}.\n", i * i % 17)).collect();
    fs::write(folder.join("text"), text).unwrap();
    let few = ["--sensitivity", "mxfp4", "--each", "layer,operator,site", "--tokens", "1100"];
    let found = texts(folder, &few);
    assert!(found.iter().any(|line| line.contains("1 099 tokens")), "{found:?}");
}

/// A recipe alone is compared with nothing: what is inside of it can be drawn, what it costs cannot.
#[test]
fn a_recipe_alone_shows_what_is_inside() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let alone = ["--recipe", "f32", "--tokens", "40"];
    let all = [&["eval", "model", "--data", "text", "--out", "costs.svg"], &alone[..]].concat();
    let error = refused(folder, &all);
    let parts = ["--out draws", "--recipe f32,mxfp8-e4m3", "--layers"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    assert!(!folder.join("costs.svg").exists());
    let found = texts(folder, &[&alone[..], &["--layers"]].concat()).join("\n");
    assert!(found.contains("channels' median") && !found.contains("distance"), "{found}");
    let all = [&["model", "--data", "text", "--layers", "-q"], &alone[..]].concat();
    let table = printed(folder, "eval", &all);
    let inside = table.split_once("operators under f32").unwrap().1;
    assert!(!table.contains("the stream after each block"), "{table}");
    let head = inside.lines().find(|line| line.starts_with("lm_head")).unwrap();
    // Nothing is lost, so there is no ratio to what is.
    assert_eq!(head.split_whitespace().collect::<Vec<_>>()[1..4], ["0.00000", "-", "-"]);
}
