//! Matrix tiles (AMX) in the source: assembly that touches them names all eight as overwritten, which no
//! compiler checks, and one function asks the system for them, which products alone call.

use crate::sources;
use crate::tokens::{self, Item, each_level, words};
use proc_macro2::TokenTree;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What stands in each `asm!`, or in one of its relatives.
fn assembly(code: &[Item]) -> Vec<Vec<TokenTree>> {
    let mut found = Vec::new();
    for item in code {
        each_level(&item.tokens, &mut |level| {
            for three in level.windows(3) {
                if let [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(group)] =
                    three
                    && mark.as_char() == '!'
                    && name.to_string().ends_with("asm")
                {
                    found.push(group.stream().into_iter().collect());
                }
            }
        });
    }
    found
}

/// Whether an instruction reads, writes or configures tiles.
fn touches_tiles(assembly: &[TokenTree]) -> bool {
    let beginnings = ["ldtilecfg", "sttilecfg", "tile", "tdp", "tcmm", "tmm"];
    words(assembly).iter().filter_map(|word| word.strip_prefix('"')).any(|text| {
        let mut names = text.split(|c: char| !c.is_ascii_alphanumeric());
        names.any(|name| beginnings.iter().any(|beginning| name.starts_with(beginning)))
    })
}

/// The tiles that it does not name as overwritten, by `out("tmm0") _`.
fn not_named(assembly: &[TokenTree]) -> Vec<String> {
    let names = |tile: &str| {
        assembly.windows(3).any(|three| {
            let [TokenTree::Ident(out), TokenTree::Group(group), TokenTree::Ident(nothing)] = three
            else {
                return false;
            };
            out == "out" && group.stream().to_string() == tile && nothing == "_"
        })
    };
    (0..8).map(|tile| format!("\"tmm{tile}\"")).filter(|tile| !names(tile)).collect()
}

/// The files in which a name or a number stands.
fn files_with<'a>(files: &'a [(PathBuf, Vec<Item>)], word: &str) -> BTreeSet<&'a str> {
    let has = |code: &[Item]| {
        let mut has = false;
        for item in code {
            each_level(&item.tokens, &mut |level| has |= words(level).iter().any(|w| w == word));
        }
        has
    };
    let with = files.iter().filter(|(_, code)| has(code));
    with.map(|(file, _)| file.to_str().unwrap()).collect()
}

/// The source of the library and the crates above it, as far as it has one of some texts.
fn files(texts: &[&str]) -> Vec<(PathBuf, Vec<Item>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates"), &mut files);
    let read = |file: PathBuf| {
        let source = fs::read_to_string(&file).unwrap();
        let has = texts.iter().any(|text| source.contains(text));
        has.then(|| (file.strip_prefix(root).unwrap().to_owned(), tokens::code(&source)))
    };
    files.into_iter().filter_map(read).collect()
}

#[test]
fn assembly_names_the_tiles_that_it_overwrites() {
    let mut with_tiles = 0;
    for (file, code) in files(&["asm"]) {
        for assembly in assembly(&code).iter().filter(|one| touches_tiles(one)) {
            let missing = not_named(assembly);
            assert!(missing.is_empty(), "{file:?} does not name {missing:?} as overwritten");
            with_tiles += 1;
        }
    }
    // Configured, computed with and released.
    assert!(with_tiles >= 3, "{with_tiles}");
}

/// The request enlarges the frames of signals of the whole process, so no other kernel may make it.
#[test]
fn products_alone_ask_for_tiles() {
    let looked_for = ["ARCH_REQ_XCOMP_PERM", "0x1023", "is_permitted", "level_of_products"];
    let files = files(&looked_for);
    let [by_name, by_number, permitted, callers] = looked_for.map(|word| files_with(&files, word));
    let one = |file| BTreeSet::from([file]);
    // The number is Linux's.
    assert_eq!((by_name, by_number), (one("src/simd/amx.rs"), one("src/simd/amx.rs")));
    assert_eq!(permitted, BTreeSet::from(["src/simd.rs", "src/simd/amx.rs"]));
    let code = &files.iter().find(|(file, _)| file.ends_with("src/simd.rs")).unwrap().1;
    let asking = code.iter().filter(|item| {
        let mut asks = false;
        each_level(&item.tokens, &mut |level| {
            asks |= words(level).contains(&"is_permitted".to_owned());
        });
        asks
    });
    let names: Vec<String> = asking.map(|item| words(&item.tokens).join(" ")).collect();
    assert!(names.len() == 1 && names[0].contains("fn level_of_products"), "{names:?}");
    let elsewhere: Vec<_> =
        callers.iter().filter(|file| !file.starts_with("src/gemm/fast")).collect();
    assert_eq!(elsewhere, [&"src/simd.rs"]);
    assert!(callers.len() > 1);
}

#[test]
fn the_check_sees_tiles() {
    let all: String = (0..8).map(|tile| format!(", out(\"tmm{tile}\") _")).collect();
    let of = |text: String| {
        let found = assembly(&tokens::code(&format!("fn f() {{ unsafe {{ {text} }} }}")));
        assert_eq!(found.len(), 1, "{text}");
        (touches_tiles(&found[0]), not_named(&found[0]).len())
    };
    for instruction in
        ["ldtilecfg [{}]", "tilerelease", "tdpbf16ps tmm0, tmm4, tmm6", "2: tilezero tmm1"]
    {
        assert_eq!(of(format!("asm!({instruction:?})")), (true, 8), "{instruction}");
        assert_eq!(of(format!("core::arch::asm!({instruction:?}{all})")), (true, 0));
    }
    let but_one = all.replace("out(\"tmm3\") _, ", "");
    assert_eq!(of(format!("asm!(\"tilerelease\"{but_one})")), (true, 1));
    // Read is not overwritten, and its value goes nowhere.
    let read = all.replace("out(\"tmm3\") _", "in(\"tmm3\") x");
    assert_eq!(of(format!("asm!(\"tilerelease\"{read})")), (true, 1));
    assert!(!of("asm!(\"syscall\", lateout(\"rcx\") _)".into()).0);
}
