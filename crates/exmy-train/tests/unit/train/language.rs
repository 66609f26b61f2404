//! The language against definitions that share no code with it: a parser by brute force that
//! counts derivations, sentences listed by hand, samples, and a reader of the agreement that knows
//! word endings only.

mod grammar;

use exmy::random::Stream;
use exmy_train::train::language::grammar::{Grammar, GrammarBuilder, Symbol};
use exmy_train::train::language::parser::ParseErrorKind;
use exmy_train::train::language::{Language, MARKS, parser};
use std::collections::{BTreeMap, HashMap, HashSet};

/// All ends of `symbol` from byte `at`, each with its number of derivations. Works on bytes and
/// tries every rule: no words, no look-ahead.
fn count(
    grammar: &Grammar,
    text: &[u8],
    symbol: Symbol,
    at: usize,
    known: &mut HashMap<(usize, usize), BTreeMap<usize, u64>>,
) -> BTreeMap<usize, u64> {
    let nonterminal = match symbol {
        Symbol::Terminal(t) => {
            let spelling = grammar.spellings()[t].as_bytes();
            let fits = text[at..].starts_with(spelling);
            return fits.then_some((at + spelling.len(), 1)).into_iter().collect();
        }
        Symbol::Nonterminal(n) => n,
    };
    if let Some(ends) = known.get(&(nonterminal, at)) {
        return ends.clone();
    }
    let mut total = BTreeMap::new();
    for rule in grammar.rules().iter().filter(|rule| rule.left == nonterminal) {
        let mut ends = BTreeMap::from([(at, 1)]);
        for &symbol in &rule.right {
            let mut next = BTreeMap::new();
            for (end, ways) in ends {
                for (further, more) in count(grammar, text, symbol, end, known) {
                    *next.entry(further).or_insert(0) += ways * more;
                }
            }
            ends = next;
        }
        for (end, ways) in ends {
            *total.entry(end).or_insert(0) += ways;
        }
    }
    known.insert((nonterminal, at), total.clone());
    total
}

fn count_sentences(grammar: &Grammar, text: &[u8]) -> BTreeMap<usize, u64> {
    count(grammar, text, Symbol::Nonterminal(0), 0, &mut HashMap::new())
}

/// What a derivation spells, by leftmost replacement.
fn spell(grammar: &Grammar, rules: &[usize]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut open = vec![Symbol::Nonterminal(0)];
    let mut rules = rules.iter();
    while let Some(symbol) = open.pop() {
        match symbol {
            Symbol::Terminal(t) => text.extend_from_slice(grammar.spellings()[t].as_bytes()),
            Symbol::Nonterminal(n) => {
                let rule = &grammar.rules()[*rules.next().unwrap()];
                assert_eq!(rule.left, n);
                open.extend(rule.right.iter().rev());
            }
        }
    }
    assert!(rules.next().is_none());
    text
}

#[test]
fn every_sample_has_exactly_one_derivation() {
    let mut longest = 0;
    for seed in 0..3 {
        let language = Language::new(seed);
        for number in 0..150 {
            let text = language.sentence(Stream::new("test"), number);
            longest = longest.max(text.len());
            assert_eq!(
                count_sentences(language.grammar(), &text),
                BTreeMap::from([(text.len(), 1)])
            );
            let derivations = language.parse(&text).unwrap();
            assert_eq!(derivations.len(), 1);
            assert_eq!(derivations[0].bytes, 0..text.len());
            assert_eq!(spell(language.grammar(), &derivations[0].rules), text);
        }
    }
    assert!(longest > 150, "no deeply nested sentence among the samples");
}

/// Both parsers must be able to see a second reading: `a a` is `E(a E(a))` and `E(a a)`.
#[test]
fn ambiguity_is_found() {
    let mut g = GrammarBuilder::default();
    let (s, e) = (g.nonterminal("S"), g.nonterminal("E"));
    let (a, stop) = (g.terminal("a "), g.terminal("."));
    g.rule(s, 1.0, &[e, stop]);
    g.rule(e, 1.0, &[a]);
    g.rule(e, 1.0, &[a, e]);
    g.rule(e, 1.0, &[a, a]);
    let g = g.build().unwrap();
    assert_eq!(count_sentences(&g, b"a a ."), BTreeMap::from([(5, 2)]));
    let error = parser::parse(&g, b"a .a a .").unwrap_err();
    assert_eq!((error.kind, error.sentence), (ParseErrorKind::Ambiguous, 3));
    assert_eq!(parser::parse(&g, b"a .a .").unwrap().len(), 2);
}

#[test]
fn no_spelling_begins_another() {
    for seed in 0..5 {
        let language = Language::new(seed);
        let all = language.grammar().spellings();
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert!(i == j || !b.starts_with(a.as_str()), "{a:?} {b:?}");
            }
            let word = a.trim_end_matches([' ', '\n', '.', '?', '!']);
            assert!(!word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic()), "{a:?}");
        }
    }
}

/// `S -> a [1/4] | b S [3/4]`: `b b a` has probability (3/4)² / 4 = 9/64 and
/// ln 9/64 = 2.197224577336220 - 4.158883083359672 = -1.961658506023452.
#[test]
fn log_probability_of_a_tiny_grammar() {
    let mut g = GrammarBuilder::default();
    let s = g.nonterminal("S");
    let (a, b) = (g.terminal("a"), g.terminal("b"));
    g.rule(s, 1.0, &[a]);
    g.rule(s, 3.0, &[b, s]);
    let language = Language::of(0, g.build().unwrap());
    let close = |text: &[u8], expected: f64| {
        let found = language.log_probability(text).unwrap();
        assert!((found - expected).abs() < 1e-14, "{found} {expected}");
    };
    close(b"bba", -1.961_658_506_023_452);
    // Three sentences: 9/64, 1/4 and 1/4; ln 1/16 = -2.772588722239781.
    close(b"bbaaa", -1.961_658_506_023_452 - 2.772_588_722_239_781);
    close(b"", 0.0);
}

/// Every sentence of a grammar without recursion, listed by its own loop.
#[test]
fn probabilities_of_a_finite_language_sum_to_one() {
    let mut g = GrammarBuilder::default();
    let [s, np, vp, noun, verb] = ["S", "NP", "VP", "N", "V"].map(|name| g.nonterminal(name));
    let nouns = ["cat ", "dog ", "emu "].map(|word| g.terminal(word));
    let verbs = ["sees ", "is "].map(|word| g.terminal(word));
    let (the, stop) = (g.terminal("the "), g.terminal("."));
    g.rule(s, 1.0, &[np, vp, stop]);
    g.rule(np, 1.0, &[noun]);
    g.rule(np, 2.0, &[the, noun]);
    g.rule(vp, 5.0, &[verb]);
    g.rule(vp, 4.0, &[verb, np]);
    for (weight, noun_word) in [7.0, 2.0, 1.0].into_iter().zip(nouns) {
        g.rule(noun, weight, &[noun_word]);
    }
    g.rule(verb, 3.0, &[verbs[0]]);
    g.rule(verb, 2.0, &[verbs[1]]);
    let language = Language::of(0, g.build().unwrap());

    let phrases: Vec<String> = ["", "the "]
        .iter()
        .flat_map(|the| ["cat ", "dog ", "emu "].map(|noun| format!("{the}{noun}")))
        .collect();
    let (mut total, mut entropy, mut bytes, mut sentences) = (0.0, 0.0, 0.0, 0);
    for subject in &phrases {
        for verb in ["sees ", "is "] {
            for object in std::iter::once("").chain(phrases.iter().map(String::as_str)) {
                let text = format!("{subject}{verb}{object}.");
                let log_p = language.log_probability(text.as_bytes()).unwrap();
                let p = libm::exp(log_p);
                total += p;
                entropy -= p * log_p;
                bytes += p * text.len() as f64;
                sentences += 1;
            }
        }
    }
    assert_eq!(sentences, 6 * 2 * 7);
    assert!((total - 1.0).abs() < 1e-13, "{total}");
    assert!((entropy - language.grammar().entropy()).abs() < 1e-13);
    assert!((bytes - language.grammar().expected_bytes()).abs() < 1e-12);
}

/// 100 000 sentences: mean surprise, mean length and the ratio of the two lie within three standard
/// errors of the closed forms.
#[test]
fn closed_forms_agree_with_samples() {
    let language = Language::new(0);
    let (entropy, length) = (language.grammar().entropy(), language.grammar().expected_bytes());
    let rate = language.entropy_rate();
    let n = 100_000;
    let mut sums = [[0.0_f64; 2]; 3];
    for number in 0..n {
        let text = language.sentence(Stream::new("sample"), number);
        let surprise = -language.log_probability(&text).unwrap();
        let bytes = text.len() as f64;
        for (sum, x) in
            sums.iter_mut().zip([surprise - entropy, bytes - length, surprise - rate * bytes])
        {
            sum[0] += x;
            sum[1] += x * x;
        }
    }
    for [sum, squares] in sums {
        let (mean, n) = (sum / n as f64, n as f64);
        let standard_error = (squares / n - mean * mean).sqrt() / n.sqrt();
        assert!(mean.abs() < 3.0 * standard_error, "{mean} +- {standard_error}");
        // The bound is tight enough to see a rate that is off by two percent.
        assert!(standard_error < 0.005 * length);
    }
}

/// Anyone who changes the language changes every run on it; these bytes say so.
#[test]
fn golden_text() {
    let language = Language::new(0);
    let first = |text: Vec<u8>| String::from_utf8(text[..80].to_vec()).unwrap();
    assert_eq!(first(language.training_text(80)), TRAINING);
    assert_eq!(first(language.validation_text(80)), VALIDATION);
    let rate = language.entropy_rate();
    assert!((rate - 0.626_388_602_676_165_1).abs() < 1e-12, "{rate}");
}
const TRAINING: &str =
    "Fuvik siso bopivot tus. Simik sakira fadinat nas? Nizek gala wo duze vagat vute ";
const VALIDATION: &str =
    "Nizek vul rusa papat kadu gudon sus. Nizek pema rokilat zarizi sus. Simik pasin ";

#[test]
fn text_does_not_depend_on_how_it_is_cut() {
    let language = Language::new(5);
    let stream = Stream::new("test");
    let long = language.generate(stream, 20_000);
    let ends: Vec<usize> =
        language.parse(&long).unwrap().into_iter().map(|sentence| sentence.bytes.end).collect();
    for bytes in [0, 1, 100, 5000, 19_999] {
        let short = language.generate(stream, bytes);
        assert!(long.starts_with(&short) && short.len() >= bytes);
        // The first end of a sentence that suffices.
        let end = if bytes == 0 { 0 } else { *ends.iter().find(|&&end| end >= bytes).unwrap() };
        assert_eq!(short.len(), end);
    }
    let pieces: Vec<u8> =
        (0..ends.len() as u64).flat_map(|number| language.sentence(stream, number)).collect();
    assert_eq!(pieces, long);
}

#[test]
fn splits_and_seeds_differ() {
    let languages = [0, 1, u64::MAX].map(Language::new);
    let texts: Vec<Vec<u8>> =
        languages.iter().flat_map(|l| [l.training_text(1000), l.validation_text(1000)]).collect();
    for (i, a) in texts.iter().enumerate() {
        assert!(texts[..i].iter().all(|b| a != b));
    }
    assert!(languages[1].parse(&texts[0]).is_err(), "another seed has other words");
    let log_p = languages[0].log_probability(&languages[0].validation_text(1 << 16)).unwrap();
    assert!(log_p < 0.0);
}

/// Reads one sentence by word endings alone and checks what long-range rules claim.
struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    /// The largest distance in words between a subject and its verb.
    farthest: usize,
}

impl Reader<'_> {
    fn ends_in(&self, letters: &str) -> bool {
        self.words[self.at] != "wo" && self.words[self.at].ends_with(|c| letters.contains(c))
    }

    fn verb(&mut self, subject: (char, bool, usize)) {
        let word: Vec<char> = self.words[self.at].chars().collect();
        let [.., class, number] = word[..] else { panic!("{word:?} is no verb") };
        assert_eq!((class, number), (subject.0, if subject.1 { 'm' } else { 't' }), "{word:?}");
        self.farthest = self.farthest.max(self.at - subject.2);
        self.at += 1;
    }

    fn verb_phrase(&mut self, subject: (char, bool, usize)) {
        self.at += usize::from(self.ends_in("e"));
        self.verb(subject);
        if self.at < self.words.len() && self.ends_in("lunaio") {
            self.noun_phrase();
        }
    }

    fn noun_phrase(&mut self) -> (char, bool, usize) {
        self.at += usize::from(self.ends_in("l"));
        self.at += usize::from(self.ends_in("u"));
        let plural = self.ends_in("n");
        let noun = self.words[self.at].trim_end_matches('n');
        let head = (noun.chars().last().unwrap(), plural, self.at);
        assert!("aio".contains(head.0), "{noun} is no noun");
        self.at += 1;
        if self.words.get(self.at) == Some(&"wo") {
            self.at += 1;
            if self.ends_in("etm") {
                self.verb_phrase(head);
            } else {
                let subject = self.noun_phrase();
                self.verb(subject);
            }
        }
        head
    }
}

#[test]
fn agreement_spans_nested_clauses() {
    let language = Language::new(3);
    let text = String::from_utf8(language.training_text(200_000)).unwrap();
    let mut closing: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut farthest = 0;
    for sentence in text.split_inclusive(['.', '?', '!']) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let [open, inner @ .., close] = &words[..] else { continue };
        closing.entry(open).or_default().insert(close);
        let mut reader = Reader { words: inner.to_vec(), at: 0, farthest: 0 };
        let subject = reader.noun_phrase();
        reader.verb_phrase(subject);
        assert_eq!(reader.at, inner.len(), "{sentence}");
        farthest = farthest.max(reader.farthest);
    }
    assert_eq!(closing.len(), MARKS.len());
    assert!(closing.values().all(|words| words.len() == 1), "{closing:?}");
    assert!(farthest > 20, "{farthest}");
}

#[test]
fn errors_say_where() {
    let language = Language::new(0);
    let text = language.validation_text(100);
    let at = |text: &[u8]| language.parse(text).map_err(|e| (e.kind, e.sentence, e.position));
    // "Nizek vul rusa papat kadu gudon sus. Nizek pema ..."
    assert_eq!(at(b""), Ok(Vec::new()));
    assert_eq!(at(&text[..20]), Err((ParseErrorKind::NotAWord, 0, 15)));
    assert_eq!(at(&text[..21]), Err((ParseErrorKind::Incomplete, 0, 21)));
    assert_eq!(at(b"Nizek vul rusa qapat "), Err((ParseErrorKind::NotAWord, 0, 15)));
    assert_eq!(at(b"Nizek vul vul rusa papat "), Err((ParseErrorKind::Unexpected, 0, 10)));
    let disagreeing = b"Nizek vul rusa papat kadu gudon sus. Nizek vul rusa papam kadu gudon sus. ";
    assert_eq!(at(disagreeing), Err((ParseErrorKind::Unexpected, 37, 52)));
    assert_eq!(at(&[0xFF, 0]), Err((ParseErrorKind::NotAWord, 0, 0)));
    // The sentence of the module's page, and with each of its two verbs in the singular.
    assert_eq!(
        at(b"Nizek gizin wo datudan wo nabam gadam gesim sus. ").map(|all| all.len()),
        Ok(1)
    );
    let singular = b"Nizek gizin wo datudan wo nabam gadam gesit sus. ";
    assert_eq!(at(singular), Err((ParseErrorKind::Unexpected, 0, 38)));
    let singular = b"Nizek gizin wo datudan wo nabam gadat gesim sus. ";
    assert_eq!(at(singular), Err((ParseErrorKind::Unexpected, 0, 32)));
    // A transitive verb whose object has the next clause, without end.
    let nested = format!("Nizek {}", "rusa wo papat ".repeat(20_000));
    assert_eq!(at(nested.as_bytes()).unwrap_err().0, ParseErrorKind::TooDeep);
}

#[test]
fn rules_are_readable() {
    let rules = Language::new(0).rules();
    assert!(rules.contains(&"NP.a.sg -> Core.a.sg Rel.a.sg [0.4000]".to_owned()));
    assert!(rules.contains(&"Rel.o.pl -> \"wo \" VP.o.pl [0.6667]".to_owned()));
}
