//! Rust source as its tokens: which paths it names, what its items are and under which `cfg` they stand.
//!
//! Texts and comments are no code here, names are whole, and groups have their ends; so what a check finds
//! does not hang on how a line is broken or what it happens to contain. Macros are not expanded; what stands
//! in their calls and definitions is read as it stands there.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::Path;

/// An item of a module: its attributes (what stands between the brackets), and all its other tokens.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) attributes: Vec<Vec<TokenTree>>,
    pub(crate) tokens: Vec<TokenTree>,
}

impl Item {
    /// Whether it is there in tests alone.
    fn is_test(&self) -> bool {
        self.conditions().any(|condition| holds(&condition, &|words| words == ["test"]))
    }

    /// What stands in `cfg(..)` of its attributes.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = Vec<TokenTree>> + '_ {
        self.attributes.iter().filter_map(|attribute| match attribute.as_slice() {
            [TokenTree::Ident(name), TokenTree::Group(group)] if name == "cfg" => {
                Some(group.stream().into_iter().collect())
            }
            _ => None,
        })
    }

    /// The name after `mod`, if it is a module.
    pub(crate) fn module(&self) -> Option<String> {
        let names = words(&self.tokens);
        let at = names.iter().position(|name| name == "mod")?;
        names.get(at + 1).cloned().filter(|_| at <= 1 || names[0] == "pub")
    }
}

/// The items of a file or of a module's braces. Inner attributes (`#![..]`) are those of an item without
/// tokens.
pub(crate) fn items(tokens: TokenStream) -> Vec<Item> {
    let mut found = Vec::new();
    let (mut attributes, mut own) = (Vec::new(), Vec::new());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let mut ends = false;
        match &token {
            TokenTree::Punct(mark) if mark.as_char() == '#' && own.is_empty() => {
                let is_inner = tokens.next_if(|next| is(next, '!')).is_some();
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    attributes.push(group.stream().into_iter().collect());
                }
                ends = is_inner;
            }
            TokenTree::Punct(mark) => {
                ends = mark.as_char() == ';';
                own.push(token);
            }
            TokenTree::Group(group) => {
                ends = group.delimiter() == Delimiter::Brace;
                own.push(token);
            }
            _ => own.push(token),
        }
        if ends {
            let (attributes, tokens) = (std::mem::take(&mut attributes), std::mem::take(&mut own));
            found.push(Item { attributes, tokens });
        }
    }
    found.push(Item { attributes, tokens: own });
    found
}

/// The items of some source, without those of tests.
pub(crate) fn code(text: &str) -> Vec<Item> {
    let tokens = text.parse().unwrap_or_else(|error| panic!("{error}"));
    items(tokens).into_iter().filter(|item| !item.is_test()).collect()
}

/// The same of a file.
pub(crate) fn file(path: &Path) -> Vec<Item> {
    code(&fs::read_to_string(path).unwrap())
}

fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == mark)
}

/// The names and literals among some tokens, without what is within groups.
pub(crate) fn words(tokens: &[TokenTree]) -> Vec<String> {
    let is_word = |token: &&TokenTree| matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
    tokens.iter().filter(is_word).map(ToString::to_string).collect()
}

/// Parts between commas.
fn parts(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let parts = tokens.split(|token| is(token, ',')).map(<[TokenTree]>::to_vec);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Whether a condition of `cfg` cannot be met without one of those that `is_one` knows by its words, as
/// `["feature", "\"std\""]`.
pub(crate) fn holds(condition: &[TokenTree], is_one: &dyn Fn(&[String]) -> bool) -> bool {
    match condition {
        [TokenTree::Ident(name), TokenTree::Group(group)] => {
            let mut parts = parts(group.stream()).into_iter();
            match name.to_string().as_str() {
                "all" => parts.any(|part| holds(&part, is_one)),
                "any" => parts.all(|part| holds(&part, is_one)),
                _ => false,
            }
        }
        _ => is_one(&words(condition)),
    }
}

/// Whether a condition of `cfg` can be met by one of those alone that `is_one` knows, with none that `but`
/// knows.
pub(crate) fn asks(
    condition: &[TokenTree],
    is_one: &dyn Fn(&[String]) -> bool,
    but: &dyn Fn(&[String]) -> bool,
) -> bool {
    match condition {
        [TokenTree::Ident(name), TokenTree::Group(group)] => {
            let mut parts = parts(group.stream()).into_iter();
            match name.to_string().as_str() {
                "all" | "any" if holds(condition, but) => false,
                "all" | "any" => parts.any(|part| asks(&part, is_one, but)),
                _ => false,
            }
        }
        _ => is_one(&words(condition)),
    }
}

/// Calls with all that stands in groups, and with `tokens` themselves.
pub(crate) fn each_level(tokens: &[TokenTree], seen: &mut dyn FnMut(&[TokenTree])) {
    seen(tokens);
    for token in tokens {
        if let TokenTree::Group(group) = token {
            each_level(&group.stream().into_iter().collect::<Vec<_>>(), seen);
        }
    }
}

/// The paths from one of `roots`, each as a list of names, whether a `use` or something else names them:
/// `a::b::{c, d::e}` is two. Names of macros are left out, for those live at the root.
pub(crate) fn paths(tokens: &[TokenTree], roots: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    each_level(tokens, &mut |level| {
        for (at, token) in level.iter().enumerate() {
            let is_root =
                matches!(token, TokenTree::Ident(name) if roots.iter().any(|root| name == root));
            let is_within = at > 0 && is(&level[at - 1], ':') && at > 1 && is(&level[at - 2], ':');
            if is_root
                && !is_within
                && matches!(&level[at + 1..], [a, b, ..] if is(a, ':') && is(b, ':'))
            {
                branches(&level[at..], Vec::new(), &mut found);
            }
        }
    });
    found
}

/// Reads one path into all paths it stands for.
fn branches(tokens: &[TokenTree], mut path: Vec<String>, found: &mut Vec<Vec<String>>) {
    match tokens {
        [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::Brace => {
            for part in parts(group.stream()) {
                branches(&part, path.clone(), found);
            }
        }
        [TokenTree::Ident(name), rest @ ..] => {
            path.push(name.to_string());
            match rest {
                [a, b, rest @ ..] if is(a, ':') && is(b, ':') => branches(rest, path, found),
                [a, TokenTree::Group(_), ..] if is(a, '!') => {
                    path.pop();
                    found.push(path);
                }
                _ => found.push(path),
            }
        }
        // A glob's star, or the types of a function.
        _ => found.push(path),
    }
}

#[test]
fn tokens_are_read_as_rust_reads_them() {
    let item = |text: &str| code(text).into_iter().flat_map(|item| item.tokens).collect::<Vec<_>>();
    let read = |text: &str| {
        let paths = paths(&item(text), &["crate", "super", "self"]).into_iter();
        paths.map(|path| path.join("::")).collect::<Vec<_>>()
    };
    assert_eq!(
        read("use super::{a, b::{self, C as D}, e::*};\n// crate::x\nfn g() { crate::f::g(1) }"),
        ["super::a", "super::b::self", "super::b::C", "super::e", "crate::f::g"]
    );
    // Broken lines, texts, longer words, comments behind code, tests anywhere.
    assert_eq!(read("use crate\n  ::a\n  ::b;"), ["crate::a::b"]);
    let nothing = "const A: &str = \"crate::x\"; /* crate::y */ use mycrate::z; // crate::w\n";
    assert!(read(nothing).is_empty(), "{:?}", read(nothing));
    assert_eq!(
        read(
            "#[cfg(test)]\nuse super::c; use super::super::b;\n\
             #[cfg(all(test, unix))] mod tests { use super::d; }"
        ),
        ["super::super::b"]
    );
    assert_eq!(read("#[cfg(any(test, unix))] use super::c;"), ["super::c"]);
    assert_eq!(
        read("m!(crate::a::X, [crate::b!(1)]); crate::c::m!(1); a(x != crate::e)"),
        ["crate::c", "crate::a::X", "crate", "crate::e",]
    );
}
