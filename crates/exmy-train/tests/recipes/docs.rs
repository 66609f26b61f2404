//! `docs/recipes.md` lists the rules that each bundle is.

use exmy_train::recipe::{NAMED, Recipe};

fn rules(name: &str) -> String {
    let recipe: Recipe = name.parse().unwrap();
    recipe.rules().iter().map(|rule| format!("{rule}\n")).collect()
}

/// The block of a name as the page has to have it; of one that adds to `nv-nvfp4`, what it adds.
fn block(name: &str) -> String {
    let (all, base) = (rules(name), rules("nv-nvfp4"));
    match all.strip_prefix(&base) {
        Some(added) if !added.is_empty() => {
            format!("```rules {name} = nv-nvfp4 and\n{added}```\n")
        }
        _ => format!("```rules {name}\n{all}```\n"),
    }
}

#[test]
fn the_page_has_the_rules_of_every_bundle() {
    let page = include_str!("../../../../docs/recipes.md");
    let own = ["bitred-", "mxpaper-", "msamp", "nv-", "chon", "mxfp8-mix", "mxfp8-weights"];
    let bundles = NAMED.into_iter().filter(|name| own.iter().any(|own| name.starts_with(own)));
    let mut listed = 0;
    let mut missing = String::new();
    for name in bundles {
        // Neighbours differ in a number alone; one of each kind is listed.
        let kin = name.starts_with("bitred-e8m") || name.starts_with("mxpaper-e");
        if kin && !matches!(name, "bitred-e8m3" | "mxpaper-e4m3") {
            assert!(page.contains(name), "{name}");
            continue;
        }
        listed += 1;
        if name != "mxpaper-int8" && !page.contains(&block(name)) {
            missing += &block(name);
        }
    }
    assert!(listed >= 11 && missing.is_empty(), "docs/recipes.md lacks\n{missing}");
}

/// Every text in backquotes behind `--recipe` is one.
#[test]
fn the_examples_of_the_page_are_recipes() {
    let page = include_str!("../../../../docs/recipes.md");
    let lines = page.lines().filter_map(|line| line.trim().strip_prefix("--recipe "));
    let mut count = 0;
    for text in lines {
        let text = text.trim_matches('\'');
        let recipe: Recipe = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.to_string(), text);
        count += 1;
    }
    assert!(count >= 8, "{count} examples");
}
