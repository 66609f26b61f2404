//! Patterns for names of tensors: `*` is any text, `?` any character, `[a-z]` one of several,
//! `[!a-z]` none of them. Dots and slashes are characters like all others.

use core::fmt;
use core::str::FromStr;

/// A pattern that a whole name does or does not match.
///
/// ```
/// use exmy::safetensors::Glob;
///
/// let glob: Glob = "model.layers.[0-3].*.weight".parse()?;
/// assert!(glob.matches("model.layers.2.mlp.up_proj.weight"));
/// assert!(!glob.matches("model.layers.12.mlp.up_proj.weight")); // one character in brackets
/// assert!(!glob.matches("model.layers.2.mlp.up_proj.weight_scale"));
/// assert!("layer[0".parse::<Glob>().is_err());
/// # Ok::<(), exmy::safetensors::ParseGlobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Char(char),
    Set { inverted: bool, ranges: Vec<(char, char)> },
}

impl Part {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Char(own) => *own == c,
            Self::Set { inverted, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *inverted
            }
        }
    }
}

impl Glob {
    /// Whether the whole of `name` is of this pattern.
    ///
    /// ```
    /// use exmy::safetensors::Glob;
    ///
    /// let glob: Glob = "*.weight".parse()?;
    /// assert!(glob.matches("a.b.weight") && glob.matches(".weight")); // `*` takes dots, and nothing
    /// assert!(!glob.matches("weight") && !glob.matches("a.weight_scale")); // the whole name counts
    /// # Ok::<(), exmy::safetensors::ParseGlobError>(())
    /// ```
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // Where the last `*` was, and how much it has matched so far. Only the last one ever needs
        // to match more, so the time is at most the product of the lengths.
        let mut star: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.parts.get(part) {
                Some(Part::Any) => {
                    star = Some((part, at));
                    part += 1;
                }
                Some(own) if own.takes(name[at]) => (part, at) = (part + 1, at + 1),
                _ => match &mut star {
                    Some((place, taken)) => {
                        *taken += 1;
                        (part, at) = (*place + 1, *taken);
                    }
                    None => return false,
                },
            }
        }
        self.parts[part..].iter().all(|part| *part == Part::Any)
    }
}

/// The pattern that this name alone matches.
pub(super) fn literal(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            '*' | '?' | '[' => text.extend(['[', c, ']']),
            _ => text.push(c),
        }
    }
    text
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseGlobError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: GlobFault,
}

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobFault {
    /// It is empty.
    Empty,
    /// A `[` has no `]` behind it.
    Unclosed,
    /// A range begins behind its end.
    Range {
        /// Where it begins.
        from: char,
        /// Where it ends.
        to: char,
    },
}

impl fmt::Display for ParseGlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, why } = self;
        write!(f, "{text:?} is no pattern: ")?;
        match why {
            GlobFault::Empty => f.write_str("it is empty")?,
            GlobFault::Unclosed => f.write_str("a `[` has no `]` behind it")?,
            GlobFault::Range { from, to } => {
                write!(f, "the range {from}-{to} begins behind its end")?;
            }
        }
        f.write_str(
            "; `*` is any text, `?` any character, `[a-z]` one of several, and `[*]` a star",
        )
    }
}

impl std::error::Error for ParseGlobError {}

impl FromStr for Glob {
    type Err = ParseGlobError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why| ParseGlobError { text: text.to_owned(), why };
        let unclosed = || refuse(GlobFault::Unclosed);
        let chars: Vec<char> = text.chars().collect();
        if chars.is_empty() {
            return Err(refuse(GlobFault::Empty));
        }
        let (mut parts, mut at) = (Vec::new(), 0);
        while let Some(&c) = chars.get(at) {
            at += 1;
            parts.push(match c {
                '*' => Part::Any,
                '?' => Part::One,
                '[' => {
                    let inverted = matches!(chars.get(at), Some('!' | '^'));
                    at += usize::from(inverted);
                    let mut ranges = Vec::new();
                    // A `]` that comes first is one of the set, as in a shell.
                    while ranges.is_empty() || chars.get(at) != Some(&']') {
                        let from = *chars.get(at).ok_or_else(unclosed)?;
                        let (to, taken) = match (chars.get(at + 1), chars.get(at + 2)) {
                            (Some('-'), Some(&to)) if to != ']' => (to, 3),
                            _ => (from, 1),
                        };
                        if from > to {
                            return Err(refuse(GlobFault::Range { from, to }));
                        }
                        at += taken;
                        ranges.push((from, to));
                    }
                    at += 1;
                    Part::Set { inverted, ranges }
                }
                c => Part::Char(c),
            });
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matched_by_hand() {
        let cases = [
            ("*", "", true),
            ("*", "a.b/c", true),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--b--b--", false),
            ("?", "", false),
            ("?", "\u{e9}", true),
            ("[ab]x", "bx", true),
            ("[!ab]x", "bx", false),
            ("[!ab]x", "cx", true),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("[a-]", "b", false),
            ("[a-c]", "b", true),
            ("[*]", "*", true),
            ("[*]", "a", false),
            ("a", "ab", false),
            ("ab", "a", false),
            ("**a", "bba", true),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(glob.parse::<Glob>().unwrap().matches(name), expected, "{glob} {name}");
        }
        let reversed = |from, to| GlobFault::Range { from, to };
        let refused = [
            ("", GlobFault::Empty),
            ("[", GlobFault::Unclosed),
            ("[a", GlobFault::Unclosed),
            ("[]", GlobFault::Unclosed),
            ("[!]", GlobFault::Unclosed),
            ("x[a-", GlobFault::Unclosed),
            ("[z-a]", reversed('z', 'a')),
            ("x[09-0]", reversed('9', '0')),
        ];
        for (text, why) in refused {
            let error = text.parse::<Glob>().unwrap_err();
            assert_eq!(error, ParseGlobError { text: text.to_owned(), why });
        }
    }

    /// Names in hints are patterns that match them.
    #[test]
    fn literal_by_hand() {
        assert_eq!(literal("w[0].?*]"), "w[[]0].[?][*]]");
        let glob: Glob = literal("w[0].?*]").parse().unwrap();
        assert!(glob.matches("w[0].?*]") && !glob.matches("w0.xy]"));
    }

    /// Exponential in a naive matcher.
    #[test]
    fn many_stars_take_no_time() {
        let glob: Glob = "*a".repeat(40).parse().unwrap();
        assert!(!glob.matches(&("a".repeat(2000) + "b")));
    }
}
