use exmy_train::train::language::grammar::{GrammarBuilder, GrammarError};

/// `S -> a [1/4] | b S [3/4]` with spellings of 1 and 2 bytes: the number of `b` is geometric
/// with mean 3, so 4 choices of entropy H(1/4) and 1 + 3 * 2 bytes.
#[test]
fn closed_forms_of_a_geometric_sentence() {
    let mut g = GrammarBuilder::default();
    let s = g.nonterminal("S");
    let (a, b) = (g.terminal("a"), g.terminal("bb"));
    g.rule(s, 1.0, &[a]);
    g.rule(s, 3.0, &[b, s]);
    let g = g.build().unwrap();
    // H(1/4) = ln 4 - (3/4) ln 3 = 0.562_335_144_618_808_3
    assert!((g.entropy() - 4.0 * 0.562_335_144_618_808_3).abs() < 1e-14);
    assert!((g.expected_bytes() - 7.0).abs() < 1e-14);
    assert_eq!(g.to_string(), "S -> \"a\" [0.2500]\nS -> \"bb\" S [0.7500]\n");
}

#[test]
fn what_is_no_grammar() {
    type Build = fn(&mut GrammarBuilder);
    let cases: [(Build, GrammarError); 9] = [
        (|_| {}, GrammarError::NoStart),
        (|g| _ = g.nonterminal("S"), GrammarError::NoRule("S".into())),
        (
            |g| {
                let s = g.nonterminal("S");
                g.rule(s, 1.0, &[]);
            },
            GrammarError::EmptyRule("S".into()),
        ),
        (
            |g| {
                let (s, a) = (g.nonterminal("S"), g.terminal("a"));
                g.rule(s, -1.0, &[a]);
            },
            GrammarError::Weight("S".into()),
        ),
        (
            |g| {
                let (s, a) = (g.nonterminal("S"), g.terminal("a"));
                g.rule(s, f64::NAN, &[a]);
            },
            GrammarError::Weight("S".into()),
        ),
        (
            |g| {
                let (s, t) = (g.nonterminal("S"), g.nonterminal("T"));
                let a = g.terminal("a");
                g.rule(s, 1.0, &[t]);
                g.rule(t, 1.0, &[t, a]);
                g.rule(t, 9.0, &[a]);
            },
            GrammarError::LeftRecursion("T".into()),
        ),
        (
            |g| {
                let (s, a, b) = (g.nonterminal("S"), g.terminal("a"), g.terminal("ab"));
                g.rule(s, 1.0, &[a, b]);
            },
            GrammarError::NotPrefixFree("a".into(), "ab".into()),
        ),
        (
            |g| {
                let (s, a) = (g.nonterminal("S"), g.terminal("a"));
                g.rule(s, 0.5, &[a, s, s]);
                g.rule(s, 0.5, &[a]);
            },
            GrammarError::Supercritical,
        ),
        (
            |g| {
                let (s, a) = (g.nonterminal("S"), g.terminal("a"));
                g.rule(s, 0.6, &[a, s, s]);
                g.rule(s, 0.4, &[a]);
            },
            GrammarError::Supercritical,
        ),
    ];
    for (build, expected) in cases {
        let mut g = GrammarBuilder::default();
        build(&mut g);
        assert_eq!(g.build().unwrap_err(), expected);
    }
}

#[test]
fn a_terminal_is_found_by_what_the_text_begins_with() {
    let mut g = GrammarBuilder::default();
    let s = g.nonterminal("S");
    let words = ["b ", "ab ", "aba ", "c "].map(|word| g.terminal(word));
    g.rule(s, 1.0, &words);
    let g = g.build().unwrap();
    let cases = [("b c", Some(0)), ("ab ", Some(1)), ("aba b", Some(2)), ("c", None)];
    for (text, terminal) in cases.into_iter().chain([("", None), ("d ", None), ("abb ", None)]) {
        assert_eq!(g.terminal_at(text.as_bytes()), terminal, "{text}");
    }
}
