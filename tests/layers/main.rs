//! The module graph against the list of layers in `docs/architecture.md`: nothing is imported from
//! above, nothing in a circle, and no module is missing from the list. And the links between pages.

mod house;
mod tiles;
mod tokens;

use proc_macro2::{Delimiter, Group, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tokens::{Item, asks, each_level, holds, paths, words};

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

/// The modules that a file uses: the names that follow `crate` or, in a crate on top of the library, `exmy`.
fn imports(code: &[Item]) -> BTreeSet<String> {
    let paths = code.iter().flat_map(|item| paths(&item.tokens, &["crate", "exmy"]));
    paths.filter_map(|path| path.into_iter().nth(1)).collect()
}

/// The modules that a file of exmy-cuda uses. What the library has at its root belongs to modules below.
fn imports_of_cuda(code: &[Item]) -> BTreeSet<String> {
    let roots = ["crate", "exmy", "exmy_train"];
    let paths = code.iter().flat_map(|item| paths(&item.tokens, &roots));
    let modules = paths.filter_map(|path| match &path[..] {
        [root, name, ..] if root == "crate" => Some(cuda(name).to_owned()),
        [_, name, ..] if name.starts_with(char::is_lowercase) => Some(name.clone()),
        _ => None,
    });
    modules.collect()
}

/// Which of the two modules that exmy-cuda is in the list has a file or folder of its source.
fn cuda(name: &str) -> &'static str {
    if name.trim_end_matches(".rs") == "train" { "exmy_cuda::train" } else { "exmy_cuda" }
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
    let crates = ["src", "crates/exmy-train/src", "crates/exmy-cuda/src"];
    for source in crates.map(|folder| root.join(folder)) {
        let is_cuda = source.ends_with("exmy-cuda/src");
        let mut files = Vec::new();
        sources(&source, &mut files);
        for file in files {
            let inside = file.strip_prefix(&source).unwrap();
            let first = inside.iter().next().unwrap().to_str().unwrap();
            let module = match first {
                "lib.rs" => continue,
                name if is_cuda => cuda(name).to_owned(),
                name => name.trim_end_matches(".rs").to_owned(),
            };
            let code = tokens::file(&file);
            let used = if is_cuda { imports_of_cuda(&code) } else { imports(&code) };
            graph.entry(module).or_default().extend(used);
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
    let public: Vec<String> = tokens::file(&root.join("src/lib.rs"))
        .iter()
        .filter(|item| {
            item.attributes.iter().all(|attribute| !is_attribute(attribute, "doc", "hidden"))
        })
        .filter(|item| matches!(words(&item.tokens).as_slice(), [first, ..] if first == "pub"))
        .filter_map(Item::module)
        .collect();
    let has = |name: &str| public.iter().any(|module| module == name);
    assert!(has("prelude") && !has("simd"), "{public:?}");
    assert!(public.len() <= 14, "{} public modules: {public:?}", public.len());
}

/// Whether the attribute is `name(.., argument, ..)`.
fn is_attribute(attribute: &[TokenTree], name: &str, argument: &str) -> bool {
    let [TokenTree::Ident(found), TokenTree::Group(group)] = attribute else { return false };
    found == name
        && words(&group.stream().into_iter().collect::<Vec<_>>()).contains(&argument.to_owned())
}

/// Whether some code is unsafe, or may be by an attribute of its own.
fn allows_unsafe(code: &[Item]) -> bool {
    code.iter().any(|item| {
        let mut found = item.attributes.iter().any(|attribute| {
            ["allow", "expect", "warn"]
                .iter()
                .any(|name| is_attribute(attribute, name, "unsafe_code"))
        });
        each_level(&item.tokens, &mut |level| found |= words(level).contains(&"unsafe".to_owned()));
        found
    })
}

/// The files with unsafe code are those that the document names.
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
        if allows_unsafe(&tokens::file(file)) {
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

/// The features of the library that bring `std` with them, as `Cargo.toml` says.
fn features_with_std(manifest: &str) -> BTreeSet<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let entries: Vec<(&str, &str)> = lines
        .filter_map(|line| line.split_once(" = ["))
        .filter(|(name, _)| *name != "default")
        .collect();
    let mut with = BTreeSet::from(["std".to_owned()]);
    while let Some((name, _)) = entries.iter().find(|(name, brings)| {
        !with.contains(*name) && brings.split('"').any(|part| with.contains(part))
    }) {
        with.insert((*name).to_owned());
    }
    with
}

/// What not every target without `std` compiles: atomics, which may be missing or be of 32 bits at most, and
/// code for an architecture that takes vectors for granted, which its targets for bare machines do not
/// have. Where `std` is, both are; and `std` names itself in `std::sync::atomic`.
fn presumptuous(code: &[Item], with_std: &BTreeSet<String>) -> Vec<String> {
    let is_architecture = |words: &[String]| words[0] == "target_arch";
    let is_fine = |words: &[String]| match words {
        [key, value] if key == "feature" => with_std.contains(value.trim_matches('"')),
        [key, ..] => key == "target_feature",
        [] => false,
    };
    let mut found = Vec::new();
    for item in code {
        let attributes = item.attributes.iter().flat_map(|attribute| {
            [TokenTree::Group(Group::new(Delimiter::Bracket, attribute.iter().cloned().collect()))]
        });
        let tokens: Vec<TokenTree> = attributes.chain(item.tokens.iter().cloned()).collect();
        let paths = paths(&tokens, &["core", "alloc"]).into_iter();
        let atomics = paths.filter(|path| path.get(1).is_some_and(|name| name == "sync"));
        found.extend(atomics.map(|path| path.join("::")));
        each_level(&tokens, &mut |level| {
            // Of an attribute, and of the macro.
            for (at, token) in level.iter().enumerate() {
                let TokenTree::Ident(name) = token else { continue };
                let rest = level[at + 1..].iter().find(|next| !matches!(next, TokenTree::Punct(_)));
                if let (true, Some(TokenTree::Group(group))) =
                    (name == "cfg" || name == "cfg_attr", rest)
                {
                    let condition: Vec<TokenTree> = group.stream().into_iter().collect();
                    let condition =
                        condition.split(|token| token.to_string() == ",").next().unwrap_or(&[]);
                    if asks(condition, &is_architecture, &is_fine) {
                        found.push(group.to_string());
                    }
                }
            }
        });
    }
    found
}

#[test]
fn without_std_little_is_asked_of_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let with_std = features_with_std(&fs::read_to_string(root.join("Cargo.toml")).unwrap());
    let expected = [("vectors", true), ("parallel", true), ("block", false), ("half", false)];
    let found = expected.map(|(name, _)| (name, with_std.contains(name)));
    assert_eq!(found, expected, "{with_std:?}");
    let is_std = |value: &str| with_std.contains(value.trim_matches('"'));
    let needs_std =
        |words: &[String]| matches!(words, [key, value] if key == "feature" && is_std(value));
    let root = root.join("src");
    let modules: Vec<String> = tokens::file(&root.join("lib.rs"))
        .iter()
        .filter(|item| !item.conditions().any(|condition| holds(&condition, &needs_std)))
        .filter_map(Item::module)
        .collect();
    let has = |name: &str| modules.iter().any(|module| module == name);
    assert!(has("gemm") && has("slice") && !has("vectors") && !has("error"), "{modules:?}");
    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let inside = file.strip_prefix(&root).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        if has(first.trim_end_matches(".rs")) {
            let found = presumptuous(&tokens::file(&file), &with_std);
            assert!(found.is_empty(), "{inside:?}: {found:#?}");
        }
    }
    let found = |code: &str| presumptuous(&tokens::code(code), &with_std).len();
    for fine in [
        "#[cfg(all(target_arch = \"x86_64\", feature = \"std\"))]\nuse std::sync::atomic::AtomicU8;",
        "#[cfg(not(all(target_arch = \"x86_64\", feature = \"std\")))]\nfn plain() {}",
        "#[cfg(all(target_arch = \"x86_64\", target_feature = \"sse2\"))]\nfn f() {}",
    ] {
        assert_eq!(found(fine), 0, "{fine}");
    }
    for odd in [
        "use core::sync::atomic::AtomicU64;",
        "use core::{mem, sync::atomic};",
        "fn f() -> core\n::sync::atomic::AtomicU8 {}",
        "#[cfg(target_arch = \"x86_64\")]\nfn f() {}",
        "#[cfg(any(target_arch = \"x86_64\", feature = \"std\"))]\nfn f() {}",
        "#[cfg(all(target_arch = \"x86_64\", not(feature = \"std\")))]\nfn f() {}",
        "#[cfg(all(target_arch = \"x86_64\", feature = \"block\"))] // \"std\"\nfn f() {}",
        "fn f() { if cfg!(target_arch = \"x86_64\") {} }",
        "#[cfg_attr(target_arch = \"x86_64\", inline)]\nfn f() {}",
    ] {
        assert_eq!(found(odd), 1, "{odd}");
    }
}

#[test]
fn unsafe_code_is_seen() {
    let seen = |code: &str| allows_unsafe(&tokens::code(code));
    for code in [
        "#![allow(unsafe_code)] // why",
        "#[expect(dead_code, unsafe_code)]\nfn f() {}",
        "fn f() { g(|| unsafe { h() }) }",
        "macro_rules! m { () => { unsafe { f() } } }",
    ] {
        assert!(seen(code), "{code}");
    }
    for code in [
        "#![deny(unsafe_code)]",
        "// unsafe\nconst A: &str = \"unsafe\";",
        "#[cfg(test)]\nmod t { unsafe fn f() {} }",
    ] {
        assert!(!seen(code), "{code}");
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
    let of_cuda = imports_of_cuda(&tokens::code(
        "use crate::train::layers; use crate::Buffer; use exmy::{Format, gemm}; use exmy_train::nn::norm;",
    ));
    assert_eq!(of_cuda, ["exmy_cuda", "exmy_cuda::train", "gemm", "nn"].map(str::to_owned).into());
    let grouped = imports(&tokens::code("use crate::{high, low};"));
    assert!(!violations(&layers, &BTreeMap::from([("base".into(), grouped)])).is_empty());
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
        let code = tokens::file(file);
        for path in code.iter().flat_map(|item| paths(&item.tokens, &["crate", "super", "self"])) {
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
    let crates = [
        "src",
        "crates/exmy-train/src",
        "crates/exmy-cuda/src",
        "crates/exmy-lab/src",
        "crates/exmy-lab/src/bin/exmy",
        "crates/exmy-capi/src",
        "crates/exmy-python/src",
    ];
    for source in crates {
        for (parent, graph) in siblings(&root.join(source)) {
            let folder = format!("{source}/{parent}").trim_end_matches('/').to_owned();
            found.extend(circles(&graph).into_iter().map(|circle| (folder.clone(), circle)));
        }
    }
    assert!(found.is_empty(), "modules use each other in a circle: {found:#?}");
}

#[test]
fn the_check_sees_circles_of_siblings() {
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
