//! The embedded text: a small language with known entropy.
//!
//! `--data synthetic` needs no file and has what a file cannot have: the exact probability of every
//! text, so that a loss curve can be drawn above the line it can never cross for long. The language
//! is a [probabilistic grammar](grammar) with Zipf-distributed words that are drawn from a seed. Its
//! sentences are pseudo-language, a few to a line:
//!
//! ```
//! let language = exmy_train::train::language::Language::new(0);
//! let text = String::from_utf8(language.training_text(20)).unwrap();
//! assert_eq!(text, "Fuvik siso bopivot tus. ");
//! ```
//!
//! What there is to learn, from near to far: spelling; word frequencies; the order of categories;
//! which verbs take an object; that a verb agrees with its subject in class (three) and number
//! (two), also across relative clauses nested to any depth,
//!
//! > Nizek **gizin** wo *datudan* wo nabam *gadam* **gesim** sus.
//!
//! (as in: the *cats* whom the *dogs* who bark *chase* **hide**; `-in` goes with `-im`, `-an` with
//! `-am`)
//! and that the last word and the mark of a sentence are fixed by its first word. Nouns show class
//! and number by their ending, so agreement is a rule and not a list to remember.
//!
//! Every derivation has one spelling and every spelling one derivation. Words end in a space or a
//! mark, so none begins another. Category shows in the ending. A relative clause belongs to the
//! noun right before it, an adverb to the verb right after it, and each noun phrase has at most one
//! clause. The entropy of derivations is therefore that of the text, and [`Language::entropy_rate`]
//! is its closed form. Since sentences are independent, a finite text scatters about it;
//! [`Language::log_probability`] is the number for the very text at hand.

pub mod grammar;
mod lexicon;
pub mod parser;

use exmy::random::Stream;
use grammar::{Grammar, GrammarBuilder, Symbol};
use lexicon::{Stems, zipf};
pub use parser::{Derivation, ParseError, ParseErrorKind};

/// Noun classes: name and vowel, and how frequent.
const CLASSES: [(&str, f64); 3] = [("a", 5.0), ("i", 3.0), ("o", 2.0)];
/// Numbers: name, ending of the noun, ending of the verb, and how frequent.
const NUMBERS: [(&str, &str, &str, f64); 2] = [("sg", "", "t", 3.0), ("pl", "n", "m", 2.0)];
/// Words per category; nouns per class.
const NOUNS: usize = 40;
const INTRANSITIVES: usize = 32;
const TRANSITIVES: usize = 32;
const ADJECTIVES: usize = 24;
const ADVERBS: usize = 16;
const DETERMINERS: usize = 4;
/// Marks of the sentences that the opening words announce, most frequent first.
pub const MARKS: [char; 8] = ['.', '.', '?', '.', '!', '.', '?', '!'];

/// The embedded language of one seed: the seed draws the words and, with a stream, the text.
#[derive(Clone, Debug)]
pub struct Language {
    seed: u64,
    grammar: Grammar,
}

impl Language {
    /// The language of a seed.
    ///
    /// # Panics
    /// Never: the grammar satisfies its conditions for every seed, since categories are distinguished
    /// by endings and stems are drawn without repetition.
    pub fn new(seed: u64) -> Self {
        let grammar = build(&mut Stems::new(seed)).build();
        Self::of(seed, grammar.expect("the embedded grammar is sound for every seed"))
    }

    /// The language of another grammar, whose text is drawn by `seed`.
    pub const fn of(seed: u64, grammar: Grammar) -> Self {
        Self { seed, grammar }
    }

    /// The rules and the words.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Every rule as a line of text, such as `NP.a.sg -> Core.a.sg Rel.a.sg [0.4000]`.
    pub fn rules(&self) -> Vec<String> {
        self.grammar.to_string().lines().map(str::to_owned).collect()
    }

    /// Sentences `0, 1, ...` of `stream`, as many as make up at least `min_bytes`.
    ///
    /// A sentence depends on seed, stream and its own number alone, so a longer text begins with
    /// the shorter one.
    pub fn generate(&self, stream: Stream, min_bytes: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(min_bytes + 256);
        let mut sentence = 0;
        while text.len() < min_bytes {
            self.grammar.generate(self.seed, stream.with(sentence), &mut text);
            sentence += 1;
        }
        text
    }

    /// Sentence `number` of `stream`.
    pub fn sentence(&self, stream: Stream, number: u64) -> Vec<u8> {
        let mut text = Vec::new();
        self.grammar.generate(self.seed, stream.with(number), &mut text);
        text
    }

    /// At least `min_bytes` of the text that models are trained on.
    pub fn training_text(&self, min_bytes: usize) -> Vec<u8> {
        self.generate(Stream::new("language.training"), min_bytes)
    }

    /// At least `min_bytes` of the text that models are validated on: other sentences than those
    /// of the training text, of the same language.
    pub fn validation_text(&self, min_bytes: usize) -> Vec<u8> {
        self.generate(Stream::new("language.validation"), min_bytes)
    }

    /// The one derivation of each sentence of `text`.
    ///
    /// # Errors
    /// If `text` is not a sequence of whole sentences of this language; with the position.
    pub fn parse(&self, text: &[u8]) -> Result<Vec<Derivation>, ParseError> {
        parser::parse(&self.grammar, text)
    }

    /// `ln p` of `text`, given that it consists of as many sentences as it does: the sum over the
    /// rules of all derivations, in nats. The negative of it per byte is what a perfect model
    /// scores.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn log_probability(&self, text: &[u8]) -> Result<f64, ParseError> {
        let rules = self.grammar.rules();
        let sentences = self.parse(text)?;
        // One sum a sentence keeps the rounding error of long texts small.
        let sum = |sentence: Derivation| -> f64 {
            sentence.rules.into_iter().map(|rule| rules[rule].log_probability).sum()
        };
        Ok(sentences.into_iter().map(sum).sum())
    }

    /// Nats per byte of an endless text: derivation entropy of a sentence over its expected
    /// length, both in closed form.
    pub fn entropy_rate(&self) -> f64 {
        self.grammar.entropy() / self.grammar.expected_bytes()
    }
}

/// The nonterminals of one agreement: a class and a number.
struct Agreement {
    weight: f64,
    np: Symbol,
    core: Symbol,
    noun: Symbol,
    rel: Symbol,
    vp: Symbol,
    intransitive: Symbol,
    transitive: Symbol,
}

/// Adds one rule per word, by Zipf's law.
fn words(g: &mut GrammarBuilder, left: Symbol, spellings: impl IntoIterator<Item = String>) {
    for (rank, spelling) in spellings.into_iter().enumerate() {
        let word = g.terminal(spelling);
        g.rule(left, zipf(rank), &[word]);
    }
}

fn build(stems: &mut Stems) -> GrammarBuilder {
    let mut g = GrammarBuilder::default();
    let sentence = g.nonterminal("S");
    let clause = g.nonterminal("Clause");
    let object = g.nonterminal("Object");
    let gap = g.nonterminal("Gap");
    let [determiner, adjective, adverb] = ["Det", "Adj", "Adv"].map(|name| g.nonterminal(name));
    let wo = g.terminal("wo ");

    // Whatever the first word is, the last one, its mark and nothing else follow from it.
    for (rank, mark) in MARKS.into_iter().enumerate() {
        let mut open = stems.stem("opening", "cvcv");
        open[..1].make_ascii_uppercase();
        let open = g.terminal(format!("{open}k "));
        let close = format!("{}s{mark}", stems.stem("closing", "cv"));
        let end = g.nonterminal(format!("End.{close}"));
        let [same_line, new_line] = [' ', '\n'].map(|after| g.terminal(format!("{close}{after}")));
        g.rule(end, 3.0, &[same_line]);
        g.rule(end, 1.0, &[new_line]);
        g.rule(sentence, zipf(rank), &[open, clause, end]);
    }

    let spell = |ending: &'static str| move |stem: String| format!("{stem}{ending} ");
    words(&mut g, determiner, (0..DETERMINERS).map(|_| stems.stem("det", "cv")).map(spell("l")));
    words(&mut g, adjective, stems.ranked("adjective", ADJECTIVES).into_iter().map(spell("u")));
    words(&mut g, adverb, stems.ranked("adverb", ADVERBS).into_iter().map(spell("e")));
    let intransitives = stems.ranked("verb", INTRANSITIVES);
    let transitives = stems.ranked("verb", TRANSITIVES);

    let mut agreements = Vec::new();
    for (class, class_weight) in CLASSES {
        let nouns = stems.ranked(class, NOUNS);
        for (number, noun_ending, verb_ending, number_weight) in NUMBERS {
            let mut new = |name: &str| g.nonterminal(format!("{name}.{class}.{number}"));
            let a = Agreement {
                weight: class_weight * number_weight,
                np: new("NP"),
                core: new("Core"),
                noun: new("Noun"),
                rel: new("Rel"),
                vp: new("VP"),
                intransitive: new("IV"),
                transitive: new("TV"),
            };
            let inflect = |stems: &[String], ending: &str| -> Vec<String> {
                stems.iter().map(|stem| format!("{stem}{class}{ending} ")).collect()
            };
            words(&mut g, a.noun, inflect(&nouns, noun_ending));
            words(&mut g, a.intransitive, inflect(&intransitives, verb_ending));
            words(&mut g, a.transitive, inflect(&transitives, verb_ending));
            agreements.push(a);
        }
    }

    for a in &agreements {
        g.rule(clause, a.weight, &[a.np, a.vp]);
        g.rule(object, a.weight, &[a.np]);
        // "the house that the cat sees": the object of the verb is the noun before the clause.
        g.rule(gap, a.weight, &[a.np, a.transitive]);

        g.rule(a.np, 3.0, &[a.core]);
        g.rule(a.np, 2.0, &[a.core, a.rel]);
        g.rule(a.core, 4.0, &[a.noun]);
        g.rule(a.core, 3.0, &[determiner, a.noun]);
        g.rule(a.core, 2.0, &[adjective, a.noun]);
        g.rule(a.core, 1.0, &[determiner, adjective, a.noun]);
        g.rule(a.rel, 2.0, &[wo, a.vp]);
        g.rule(a.rel, 1.0, &[wo, gap]);
        g.rule(a.vp, 3.0, &[a.intransitive]);
        g.rule(a.vp, 1.0, &[adverb, a.intransitive]);
        g.rule(a.vp, 3.0, &[a.transitive, object]);
        g.rule(a.vp, 1.0, &[adverb, a.transitive, object]);
    }
    g
}
