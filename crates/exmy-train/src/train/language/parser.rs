//! Text back to derivations, and with them its probability.
//!
//! A memoized top-down parser: for a nonterminal and a position it finds all ends and *counts* the
//! derivations of each, so that a second reading of a sentence is an error rather than overlooked.
//! Each nonterminal is visited once a position, and only rules that can begin with the word there
//! are tried. The result is exact for any [`Grammar`] whose sentences do not begin one another.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::grammar::{Grammar, Symbol};

/// How many rules may be open inside each other. It is far beyond what a sub-critical grammar draws (the
/// embedded one nests by about four rules a relative clause), and far below the call stack.
const DEEPEST: usize = 1000;

/// One sentence and how it was derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// The bytes of the text that it covers.
    pub bytes: Range<usize>,
    /// Indices into [`Grammar::rules`], in the order of the leftmost derivation.
    pub rules: Vec<usize>,
}

/// Why a text is not a sequence of sentences of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The byte of the text at which it shows.
    pub position: usize,
    /// The byte at which the sentence began.
    pub sentence: usize,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// See [`ParseError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// No word of the language begins here.
    NotAWord,
    /// The word here, known as such, cannot continue the sentence.
    Unexpected,
    /// The text ends within a sentence.
    Incomplete,
    /// The sentence has more than one derivation.
    Ambiguous,
    /// The sentence is nested too deeply to be read.
    TooDeep,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, sentence, kind } = self;
        match kind {
            ParseErrorKind::NotAWord => {
                write!(f, "no word of the language begins at byte {position}")
            }
            ParseErrorKind::Unexpected => write!(
                f,
                "the word at byte {position} cannot continue the sentence that begins at byte \
                 {sentence}"
            ),
            ParseErrorKind::Incomplete => write!(
                f,
                "the text ends at byte {position} within the sentence that begins at byte {sentence}"
            ),
            ParseErrorKind::Ambiguous => {
                write!(f, "the sentence that begins at byte {sentence} has several derivations")
            }
            ParseErrorKind::TooDeep => write!(
                f,
                "the sentence that begins at byte {sentence} nests more than {DEEPEST} rules at \
                 byte {position}"
            ),
        }
    }
}

impl std::error::Error for ParseError {}

/// Reads `text` as sentences of `grammar`, one after another.
///
/// # Errors
/// If it is anything else, or a sentence has more than one derivation.
pub fn parse(grammar: &Grammar, text: &[u8]) -> Result<Vec<Derivation>, ParseError> {
    let mut words = Vec::new();
    let mut starts = vec![0];
    let mut at = 0;
    while at < text.len() {
        // Where a word cannot be read, parsing goes on without it: an earlier sentence may have an
        // error of its own, which is the one to report.
        let Some(word) = grammar.terminal_at(&text[at..]) else { break };
        words.push(word);
        at += grammar.spellings()[word].len();
        starts.push(at);
    }
    let unread = at < text.len();

    let mut sentences = Vec::new();
    let mut first = 0;
    while first < words.len() || unread {
        let fail = |word: usize, kind| {
            Err(ParseError { position: starts[word], sentence: starts[first], kind })
        };
        let mut chart =
            Chart { grammar, words: &words, first, found: HashMap::new(), furthest: first };
        let spans = match chart.spans(0, first, 0) {
            Ok(spans) => spans,
            Err(word) => return fail(word, ParseErrorKind::TooDeep),
        };
        match &spans[..] {
            [] if chart.furthest < words.len() => {
                return fail(chart.furthest, ParseErrorKind::Unexpected);
            }
            [] if unread => return fail(words.len(), ParseErrorKind::NotAWord),
            [] => return fail(words.len(), ParseErrorKind::Incomplete),
            [span] if span.ways == 1 => {
                let mut rules = Vec::new();
                chart.derivation(0, first, span.end, &mut rules);
                sentences.push(Derivation { bytes: starts[first]..starts[span.end], rules });
                first = span.end;
            }
            _ => return fail(first, ParseErrorKind::Ambiguous),
        }
    }
    Ok(sentences)
}

/// A nonterminal's reading from one position to `end`.
struct Span {
    end: usize,
    /// How many derivations there are, up to saturation.
    ways: u32,
    /// The first one: its rule and where each symbol of its right side ends.
    rule: usize,
    ends: Vec<usize>,
}

struct Chart<'a> {
    grammar: &'a Grammar,
    words: &'a [usize],
    first: usize,
    found: HashMap<(usize, usize), Rc<[Span]>>,
    /// The last word at which something else was needed.
    furthest: usize,
}

impl Chart<'_> {
    /// All readings of `nonterminal` from word `at`; `Err` with the word at which it gets too deep.
    fn spans(&mut self, nonterminal: usize, at: usize, depth: usize) -> Result<Rc<[Span]>, usize> {
        if let Some(known) = self.found.get(&(nonterminal, at)) {
            return Ok(Rc::clone(known));
        }
        if depth > DEEPEST {
            return Err(at);
        }
        let grammar = self.grammar;
        let rules = match self.words.get(at) {
            Some(&word) => grammar.rules_at(nonterminal, word),
            None => &[],
        };
        if rules.is_empty() {
            self.furthest = self.furthest.max(at);
        }
        let mut spans: Vec<Span> = Vec::new();
        for &rule in rules {
            let mut partial = vec![Span { end: at, ways: 1, rule, ends: Vec::new() }];
            for &symbol in &grammar.rules()[rule].right {
                let mut longer = Vec::new();
                for begun in partial {
                    match symbol {
                        Symbol::Terminal(t) if self.words.get(begun.end) == Some(&t) => {
                            longer.push(begun.then(begun.end + 1, 1));
                        }
                        Symbol::Terminal(_) => self.furthest = self.furthest.max(begun.end),
                        Symbol::Nonterminal(n) => {
                            for next in self.spans(n, begun.end, depth + 1)?.iter() {
                                longer.push(begun.then(next.end, next.ways));
                            }
                        }
                    }
                }
                partial = longer;
            }
            for span in partial {
                match spans.iter_mut().find(|other| other.end == span.end) {
                    Some(other) => other.ways = other.ways.saturating_add(span.ways),
                    None => spans.push(span),
                }
            }
        }
        let spans: Rc<[Span]> = spans.into();
        self.found.insert((nonterminal, at), Rc::clone(&spans));
        Ok(spans)
    }

    /// Appends the rules of the first derivation of a span that was found.
    fn derivation(&self, nonterminal: usize, at: usize, end: usize, rules: &mut Vec<usize>) {
        debug_assert!(at >= self.first);
        let spans = &self.found[&(nonterminal, at)];
        let Some(span) = spans.iter().find(|span| span.end == end) else { return };
        rules.push(span.rule);
        let mut from = at;
        for (&symbol, &to) in self.grammar.rules()[span.rule].right.iter().zip(&span.ends) {
            if let Symbol::Nonterminal(n) = symbol {
                self.derivation(n, from, to, rules);
            }
            from = to;
        }
    }
}

impl Span {
    /// This reading, followed by one up to `end` that has `ways` derivations.
    fn then(&self, end: usize, ways: u32) -> Self {
        let mut ends = self.ends.clone();
        ends.push(end);
        Self { end, ways: self.ways.saturating_mul(ways), rule: self.rule, ends }
    }
}
