//! The module graph against the list of layers in `docs/architecture.md`: nothing is imported from
//! above, nothing in a circle, and no module is missing from the list. And the links between pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules outside of the layers, usable by all and using none of them.
const OUTSIDE: i32 = -1;

/// Module name to layer, from the fenced block `layers`.
fn layers(text: &str) -> BTreeMap<String, i32> {
    let block = text.split("```layers\n").nth(1).and_then(|rest| rest.split("```").next());
    let mut layers = BTreeMap::new();
    for line in block.expect("docs/architecture.md has a block ```layers").lines() {
        let mut columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        let number = columns.next().expect("a layer number");
        let number = if number == "-" { OUTSIDE } else { number.parse().expect("a layer number") };
        for module in columns.next().expect("modules").split(", ") {
            layers.insert(module.to_owned(), number);
        }
    }
    layers
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The names that follow `crate::` or, in a crate on top of the library, `exmy::` in the code before the file's tests, outside of comments. A
/// grouped import, `crate::{..}`, gives an empty name, which is no module and so a violation.
fn imports(code: &str) -> BTreeSet<String> {
    let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = code.split("#[cfg(all(test, feature = \"std\"))]\nmod ").next().unwrap_or_default();
    let mut names = BTreeSet::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for rest in line.split("crate::").chain(line.split("exmy::").skip(1)).skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            // A macro lives at the root, whatever module defines it.
            if !rest[name.len()..].starts_with('!') {
                names.insert(name);
            }
        }
    }
    names
}

fn violations(
    layers: &BTreeMap<String, i32>,
    graph: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (module, used) in graph {
        let Some(&layer) = layers.get(module) else {
            found.push(format!("{module} is on no layer"));
            continue;
        };
        for name in used.iter().filter(|name| *name != module) {
            match layers.get(name) {
                None => found.push(format!("{module} imports `{name}`, which is on no layer")),
                Some(&OUTSIDE) => {}
                Some(&below) if below <= layer && layer != OUTSIDE => {}
                Some(above) => found.push(format!("{module} ({layer}) imports {name} ({above})")),
            }
        }
    }
    // Equal layers may import each other, but in one direction.
    for start in graph.keys() {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(module) = open.pop() {
            for next in graph.get(&module).into_iter().flatten().filter(|n| **n != module) {
                if next == start {
                    found.push(format!("{start} imports itself through {module}"));
                } else if graph.contains_key(next) && seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
    }
    found
}

#[test]
fn no_module_imports_from_above_or_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let layers = layers(&fs::read_to_string(root.join("docs/architecture.md")).unwrap());
    let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
    for source in ["src", "crates/exmy-train/src"].map(|folder| root.join(folder)) {
        let mut files = Vec::new();
        sources(&source, &mut files);
        for file in files {
            let inside = file.strip_prefix(&source).unwrap();
            let first = inside.iter().next().unwrap().to_str().unwrap();
            let module = match first {
                "lib.rs" => continue,
                name => name.trim_end_matches(".rs").to_owned(),
            };
            graph.entry(module).or_default().extend(imports(&fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(graph.len() > 10, "found only {:?}", graph.keys());
    let found = violations(&layers, &graph);
    assert!(found.is_empty(), "{found:#?}");
    let missing: Vec<_> = layers.keys().filter(|name| !graph.contains_key(*name)).collect();
    assert!(missing.is_empty(), "listed but not there: {missing:?}");
}

/// What a newcomer has to look through; what is there for the other crates alone is hidden.
#[test]
fn at_most_14_modules_are_public() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let (mut public, mut hidden) = (Vec::new(), false);
    for line in code.lines() {
        if let Some(module) = line.strip_prefix("pub mod ")
            && !hidden
        {
            public.push(module.trim_end_matches([';', ' ', '{']));
        }
        hidden = line == "#[doc(hidden)]" || hidden && line.starts_with("#[");
    }
    assert!(public.contains(&"prelude") && !public.contains(&"simd"), "{public:?}");
    assert!(public.len() <= 14, "{} public modules: {public:?}", public.len());
}

/// The files that allow unsafe code are those that the document names.
#[test]
fn unsafe_code_lives_where_the_document_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let sentence =
        text.split("`unsafe` lives in").nth(1).and_then(|rest| rest.split("\n\n").next());
    let named: BTreeSet<String> = sentence
        .expect("docs/architecture.md says where `unsafe` lives")
        .split('`')
        .filter(|word| word.ends_with(".rs"))
        .map(str::to_owned)
        .collect();
    let (mut files, mut found) = (Vec::new(), BTreeSet::new());
    let source = root.join("src");
    sources(&source, &mut files);
    sources(&root.join("crates"), &mut files);
    for file in files.iter().filter(|file| {
        !file.starts_with(root.join("crates")) || file.iter().any(|part| part == "src")
    }) {
        let code = fs::read_to_string(file).unwrap();
        if code.lines().any(|line| line.contains("allow(unsafe_code)") && !line.contains("//")) {
            let inside =
                file.strip_prefix(&source).or(file.strip_prefix(root)).unwrap().to_str().unwrap();
            found.insert(inside.replace('\\', "/"));
        }
    }
    assert_eq!(found, named);
}

/// Headings as GitHub names them in links: lower case, words joined by hyphens, other marks left out.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = page.lines().filter(|line| {
        fenced ^= line.starts_with("```");
        !fenced && line.starts_with('#')
    });
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name = |line: &str| line.trim_start_matches('#').trim().chars().filter(kept).collect();
    headings.map(name).map(|name: String| name.to_lowercase().replace(' ', "-")).collect()
}

/// Links of a page to files, each with the heading after `#`.
fn links(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.map(|(link, _)| link).filter(|link| !link.contains("://"));
    files.map(|link| link.split_once('#').unwrap_or((link, "")))
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec!["README.md".into(), "CONTRIBUTING.md".into(), "CHANGELOG.md".into()];
    for folder in ["docs", "docs/studies"] {
        let files = fs::read_dir(root.join(folder)).unwrap().flatten();
        pages.extend(files.map(|file| PathBuf::from(folder).join(file.file_name())));
    }
    let (mut count, mut broken) = (0, Vec::new());
    for page in pages.iter().filter(|page| page.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for (file, heading) in links(&text) {
            let target = match file {
                "" => root.join(page),
                file => root.join(page).parent().unwrap().join(file),
            };
            let there = target.exists()
                && (heading.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap()).contains(heading));
            count += 1;
            if !there {
                broken.push(format!("{page:?}: {file}#{heading}"));
            }
        }
    }
    assert!(count > 50 && broken.is_empty(), "{count} links; broken: {broken:#?}");
    let page = "# The `a` of B-c, _d\n[x](y.md#z) [web](https://a.b/c.md) [here](#top)";
    assert_eq!(links(page).collect::<Vec<_>>(), [("y.md", "z"), ("", "top")]);
    assert!(anchors(page).contains("the-a-of-b-c-_d"));
}

/// Lines that not every target without `std` compiles: atomics, which may be missing or be of 32 bits
/// at most, and code for an architecture that takes vectors for granted, which its targets for bare
/// machines do not have. Where `std` is, both are; and `std` names itself in `std::sync::atomic`.
fn presumptuous(code: &str) -> Vec<&str> {
    const STD: [&str; 3] = ["\"std\"", "\"fast-f32\"", "target_feature = "];
    let found = code.lines().filter(|line| {
        let atomics = ["core::sync", "alloc::sync"].iter().any(|path| line.contains(path));
        atomics || line.contains("target_arch") && !STD.iter().any(|word| line.contains(word))
    });
    found.filter(|line| !line.trim_start().starts_with("//")).collect()
}

#[test]
fn without_std_little_is_asked_of_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let list = fs::read_to_string(root.join("lib.rs")).unwrap();
    let modules: Vec<&str> = list
        .lines()
        .zip(list.lines().skip(1))
        .filter(|(gate, _)| {
            let without_std = ["\"alloc\"", "\"block\"", "\"gemm\""];
            !gate.contains("feature = ") || without_std.iter().any(|feature| gate.contains(feature))
        })
        .filter_map(|(_, line)| line.split("mod ").nth(1)?.strip_suffix(';'))
        .collect();
    assert!(modules.contains(&"gemm") && !modules.contains(&"vectors"), "{modules:?}");
    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let inside = file.strip_prefix(&root).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        if modules.contains(&first.trim_end_matches(".rs")) {
            let code = fs::read_to_string(&file).unwrap();
            let found = presumptuous(&code);
            assert!(found.is_empty(), "{inside:?}: {found:#?}");
        }
    }
    let ours = "#[cfg(all(target_arch = \"x86_64\", feature = \"std\"))]\nuse std::sync::atomic::AtomicU8;";
    assert!(presumptuous(ours).is_empty());
    for line in ["use core::sync::atomic::AtomicU64;", "#[cfg(target_arch = \"x86_64\")]"] {
        assert_eq!(presumptuous(line), [line]);
    }
}

#[test]
fn the_check_sees_upward_imports_and_circles() {
    let layers = layers("```layers\n1  high  x\n0  low, base  y\n-  aside  z\n```");
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
        for (from, to) in edges {
            graph.entry((*from).into()).or_default().insert((*to).into());
        }
        graph
    };
    assert!(violations(&layers, &graph(&[("high", "low"), ("low", "base")])).is_empty());
    assert!(violations(&layers, &graph(&[("high", "aside")])).is_empty());
    assert!(!violations(&layers, &graph(&[("low", "high")])).is_empty());
    assert!(!violations(&layers, &graph(&[("aside", "low")])).is_empty());
    assert!(!violations(&layers, &graph(&[("low", "base"), ("base", "low")])).is_empty());
    assert!(!violations(&layers, &graph(&[("unknown", "low")])).is_empty());
    let grouped = imports("use crate::{high, low};");
    assert!(!violations(&layers, &BTreeMap::from([("base".into(), grouped)])).is_empty());
}

/// Circles among modules of one folder that still stand: the folder's module and the circle's members.
/// A circle goes from this list with the change that opens it; none comes in.
const KNOWN_CIRCLES: [(&str, &[&str]); 2] = [
    (
        "crates/exmy-lab/src",
        &[
            "analyses",
            "arm",
            "claim",
            "course",
            "figure",
            "finding",
            "gather",
            "grid",
            "measure",
            "overview",
            "page",
            "paired",
            "papers",
            "provenance",
            "runner",
            "series",
            "store",
            "sweep",
            "tables",
            "view",
        ],
    ),
    ("crates/exmy-lab/src/runner", &["manifest", "old", "out"]),
];

/// The code before a file's tests, without comments, and whatever the file imports by `use` or names in
/// passing by a path from `crate`, `super` or `self`, each as a list of names.
fn paths(code: &str) -> Vec<Vec<String>> {
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let code = code.split("mod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            // Within a longer path or a longer word, it is not where a path starts.
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':')) {
                branches(&code[at..], &[], &mut found);
            }
        }
    }
    found
}

/// Reads one path, `a::b::{c, d::e}`, into all paths it stands for; gives what is behind it.
fn branches<'a>(text: &'a str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let (mut path, mut text) = (prefix.to_vec(), text.trim_start());
    loop {
        if let Some(mut rest) = text.strip_prefix('{') {
            while !rest.trim_start().starts_with('}') && !rest.is_empty() {
                let behind = branches(rest, &path, found).trim_start();
                rest = behind.strip_prefix(',').unwrap_or(behind);
                if rest.len() == behind.len() && !rest.starts_with('}') {
                    return rest;
                }
            }
            return rest.trim_start().strip_prefix('}').unwrap_or(rest);
        }
        let name = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        path.push(text[..name].to_owned());
        text = &text[name..];
        match text.strip_prefix("::") {
            Some(rest) => text = rest,
            None => break,
        }
    }
    found.push(path);
    // A new name in the same list: `a as b`, or a glob's star.
    text.find([',', '}', ';', '\n']).map_or("", |end| &text[end..])
}

/// Which child of each module uses which other child of it, over the files below `source`.
fn siblings(source: &Path) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut files = Vec::new();
    sources(source, &mut files);
    let parts = |file: &PathBuf| -> Vec<String> {
        let inside = file.strip_prefix(source).unwrap().with_extension("");
        inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect()
    };
    let root = |module: &[String]| matches!(module, [name] if name == "lib" || name == "main");
    let modules: BTreeSet<Vec<String>> = files.iter().map(parts).collect();
    let mut graphs = BTreeMap::<_, BTreeMap<String, BTreeSet<String>>>::new();
    for file in &files {
        let module = parts(file);
        // A program in `bin` is a crate of its own.
        if root(&module) || module[0] == "bin" || module.iter().any(|name| name == "tests") {
            continue;
        }
        for path in paths(&fs::read_to_string(file).unwrap()) {
            let mut target = module.clone();
            let mut names = path.iter().peekable();
            while let Some(name) =
                names.next_if(|name| matches!(&name[..], "crate" | "super" | "self"))
            {
                match &name[..] {
                    "crate" => target.clear(),
                    "super" => drop(target.pop()),
                    _ => {}
                }
            }
            // As far as there are files: the rest names things within the last one.
            for name in names {
                target.push(name.clone());
                if !modules.contains(&target) {
                    target.pop();
                    break;
                }
            }
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                let parent = module[..common].join("/");
                let graph = graphs.entry(parent).or_default();
                graph.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    graphs
}

/// The groups of modules in which each one uses each other, at least through others.
fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(module) = open.pop() {
            let next = graph.get(module).into_iter().flatten();
            open.extend(next.filter(|next| seen.insert((*next).clone())));
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|from| (from, reached(from))).collect();
    let circle = |from: &&String| {
        let members =
            reach[*from].iter().filter(|to| reach.get(to).is_some_and(|to| to.contains(*from)));
        members.cloned().collect::<Vec<_>>()
    };
    graph
        .keys()
        .filter_map(|from| Some(circle(&from)).filter(|members| !members.is_empty()))
        .collect()
}

#[test]
fn modules_of_one_folder_use_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    let crates =
        ["src", "crates/exmy-train/src", "crates/exmy-lab/src", "crates/exmy-lab/src/bin/exmy"];
    for source in crates {
        for (parent, graph) in siblings(&root.join(source)) {
            let folder = format!("{source}/{parent}").trim_end_matches('/').to_owned();
            found.extend(circles(&graph).into_iter().map(|circle| (folder.clone(), circle)));
        }
    }
    let known: BTreeSet<(String, Vec<String>)> = KNOWN_CIRCLES
        .iter()
        .map(|(parent, members)| {
            ((*parent).into(), members.iter().map(|&name| name.into()).collect())
        })
        .collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "modules use each other in a circle: {new:#?}");
    let open: Vec<_> = known.difference(&found).collect();
    assert!(open.is_empty(), "circles that no longer stand, to be taken from the list: {open:#?}");
}

#[test]
fn the_check_sees_circles_of_siblings() {
    let read = |code: &str| paths(code).into_iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        read("use super::{a, b::{self, C as D}, e::*};\n// crate::x\nlet y = crate::f::g(1);"),
        ["crate::f::g", "super::a", "super::b::self", "super::b::C", "super::e::"]
    );
    assert_eq!(
        read("x::crate::a; use super::super::b;\n#[cfg(test)]\nmod tests {\nuse super::c;"),
        ["super::super::b"]
    );
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
        for (from, to) in edges {
            graph.entry((*from).into()).or_default().insert((*to).into());
        }
        graph
    };
    assert!(circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = circles(&graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [["a", "b", "c"]]);
}
