//! Text in a picture that cannot ask the font: widths are estimated, lines wrapped, names that are
//! too long shortened so that they still differ, and labels that want the same place moved apart.

use super::number::short;
use std::{borrow::ToOwned, format, string::String, vec, vec::Vec};

/// An upper estimate of the width of `text` at font size `size`, in the units of `size`.
///
/// Classes of advance widths in DejaVu Sans, the widest of the fonts in the style sheet's list;
/// narrower fonts leave a little air.
pub(super) fn width(text: &str, size: i64) -> f64 {
    let em: f64 = text.chars().map(advance).sum();
    em * size as f64
}

fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' => 0.28,
        ' ' | '\u{202f}' | ',' | '.' | ':' | ';' | '!' | 'I' | 'f' | 't' | '/' | '\\' => 0.36,
        '(' | ')' | '[' | ']' | 'r' | '-' | '"' | '*' => 0.41,
        'a'..='h' | 'k' | 'n'..='q' | 's' | 'u' | 'v' | 'x'..='z' | '0'..='9' | '_' => 0.63,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.98,
        'A'..='Z' | '&' | '+' | '=' | '<' | '>' | '\u{2212}' | '×' | '#' | '~' => 0.8,
        '⁰'..='⁹' | '²' | '³' | '¹' | '⁻' => 0.45,
        _ if c < '\u{1100}' => 0.7,
        _ => 1.05,
    }
}

/// `text` cut to at most `space` wide, with an ellipsis where something is missing.
pub fn shorten(text: &str, size: i64, space: f64) -> String {
    if width(text, size) <= space {
        return text.into();
    }
    let space = space - width("…", size);
    let mut used = 0.0;
    let fits = |c: &char| {
        used += advance(*c) * size as f64;
        used <= space
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// `text` broken at spaces into the fewest lines of at most `space`, about equally long; a longer
/// word is shortened. A number stays in one line, with the spaces between its thousands.
pub fn wrap(text: &str, size: i64, space: f64) -> Vec<String> {
    let lines = fill(text, size, space);
    (10..20)
        .map(|twentieths| fill(text, size, space * f64::from(twentieths) / 20.0))
        .find(|narrower| lines.len() > 1 && narrower.len() == lines.len() && !cut(narrower))
        .unwrap_or(lines)
}

fn cut(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains('…'))
}

/// What a line does not break: words, and numbers with the spaces between their thousands.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        match words
            .last_mut()
            .filter(|last| digits == 3 && last.ends_with(|c: char| c.is_ascii_digit()))
        {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.into()),
        }
    }
    words
}

fn fill(text: &str, size: i64, space: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        let word = shorten(&word, size, space);
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(&word, size) <= space => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Where names may be taken apart, the best places first.
const JOINTS: [&str; 4] = [" ", " +,", " +,_", " +,_/:-"];

/// The parts of a name, each with what joins it to the next. Only a space parts a number from what
/// stands before it: a minus may be its sign.
fn parts<'a>(text: &'a str, joints: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for ((_, c), (at, next)) in text.char_indices().zip(text.char_indices().skip(1)) {
        let number = c != ' ' && next.is_ascii_digit();
        if joints.contains(c) && !joints.contains(next) && !number {
            parts.push(&text[from..at]);
            from = at;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// `text` broken between its parts into the fewest lines of at most `space`; nothing is added or left
/// out. None where a part is longer.
pub fn broken(text: &str, size: i64, space: f64) -> Option<Vec<String>> {
    let fits = |line: &str| width(line.trim_end(), size) <= space;
    let ways = JOINTS.iter().filter_map(|joints| {
        let mut lines: Vec<String> = Vec::new();
        for part in parts(text, joints) {
            match lines.last_mut() {
                Some(line) if fits(&format!("{line}{part}")) => line.push_str(part),
                _ => lines.push(part.into()),
            }
        }
        lines.iter().all(|line| fits(line)).then_some(lines)
    });
    ways.min_by_key(Vec::len)
}

/// A remark in at most `space`. Where it is too long, the words before its number go first, those
/// behind it next: the number is what it is for.
pub fn shorten_note(note: &str, size: i64, space: f64) -> String {
    if width(note, size) <= space {
        return note.into();
    }
    let mut words =
        note.split_whitespace().skip_while(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let Some(number) = words.next() else { return shorten(note, size, space) };
    if width(number, size) > space {
        let value = number.parse().map_or_else(|_| number.to_owned(), short);
        return shorten(&value, size, space);
    }
    let mut kept = number.to_owned();
    for word in words {
        let more = format!("{kept} {word}");
        if width(&more, size) > space {
            break;
        }
        kept = more;
    }
    kept
}

/// `text` without its middle, where it is too long: the longest that `fits`. Ends of names say
/// them apart.
fn cut_middle(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.into();
    }
    let chars: Vec<char> = text.chars().collect();
    longest(chars.len(), |kept| {
        let (head, tail) = (kept / 2, kept - kept / 2);
        let cut = || chars[..head].iter().chain(['…'].iter()).chain(&chars[chars.len() - tail..]);
        Some(cut().collect()).filter(|cut: &String| fits(cut))
    })
}

/// The text of most characters kept, fewer than `count`, of which there is one.
fn longest(count: usize, text: impl Fn(usize) -> Option<String>) -> String {
    // By halves: a name may be as long as its file is.
    let (mut low, mut high) = (0, count);
    let mut best = "…".into();
    while low < high {
        let middle = low + (high - low) / 2;
        match text(middle) {
            Some(found) => (best, low) = (found, middle + 1),
            None => high = middle,
        }
    }
    best
}

/// As much of `text` about its character `at` as `fits`.
fn cut_around(text: &str, at: usize, fits: &dyn Fn(&str) -> bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    longest(chars.len(), |kept| {
        let from = at.saturating_sub(kept / 3).min(chars.len() - kept);
        let mut cut = String::from(if from > 0 { "…" } else { "" });
        cut.extend(&chars[from..from + kept]);
        cut.push_str(if from + kept < chars.len() { "…" } else { "" });
        Some(cut).filter(|cut| fits(cut))
    })
}

/// How many characters two texts begin with alike.
fn alike(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// How many bytes all `names` have in common at their beginnings and ends, in whole parts; something is
/// left of each.
fn shared(names: &[&str]) -> [usize; 2] {
    let split: Vec<Vec<&str>> = names.iter().map(|name| parts(name, JOINTS[2])).collect();
    let Some((first, rest)) = split.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return [0; 2];
    };
    let most = split.iter().map(Vec::len).min().unwrap_or(1) - 1;
    let head = (0..most).take_while(|&i| rest.iter().all(|other| other[i] == first[i])).count();
    let end = |parts: &[&'_ str], i: usize| parts[parts.len() - 1 - i].to_owned();
    let same = |&i: &usize| rest.iter().all(|other| end(other, i) == end(first, i));
    let tail = (0..most - head).take_while(same).count();
    let bytes = |parts: &[&str]| parts.iter().map(|part| part.len()).sum();
    [bytes(&first[..head]), bytes(&first[first.len() - tail..])]
}

/// Names of one picture as they are written: whole where they fit, else without what all the long ones
/// share, else without their middle. Different names stay different texts, and none becomes one that is
/// `taken`. Both questions are about the name of that number.
pub fn distinguish(
    names: &[&str],
    fits: impl Fn(usize, &str) -> bool,
    taken: impl Fn(usize, &str) -> bool,
) -> Vec<String> {
    let mut texts: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let long: Vec<usize> = (0..names.len()).filter(|&i| !fits(i, names[i])).collect();
    let mut different: Vec<&str> = long.iter().map(|&i| names[i]).collect();
    different.sort_unstable();
    different.dedup();
    let [head, tail] = shared(&different);
    let without = |i: usize, [head, tail]: [usize; 2]| {
        let name = names[i];
        let marks = [head, tail].map(|bytes| if bytes > 0 { "…" } else { "" });
        format!("{}{}{}", marks[0], &name[head..name.len() - tail], marks[1])
    };
    let ways = [[head, 0], [0, tail], [head, tail]];
    let enough = |way: &[usize; 2]| long.iter().all(|&i| fits(i, &without(i, *way)));
    let way = ways.into_iter().find(enough).unwrap_or([head, tail]);
    for &i in &long {
        texts[i] = cut_middle(&without(i, way), |text| fits(i, text));
    }
    // Names that have become the same show where they differ.
    let same = |texts: &[String], i: usize, text: &str| {
        taken(i, text) || (0..names.len()).any(|j| names[j] != names[i] && texts[j] == text)
    };
    let alone = texts.clone();
    for &i in &long {
        if same(&alone, i, &alone[i]) {
            let others = long.iter().filter(|&&j| names[j] != names[i] && alone[j] == alone[i]);
            let at = others.map(|&j| alike(names[i], names[j])).max().unwrap_or(0);
            texts[i] = cut_around(names[i], at, &|text| fits(i, text));
        }
    }
    // Where no cut does it, numbers do.
    for (k, &i) in long.iter().enumerate() {
        if let Some(j) = long[..k].iter().find(|&&j| names[j] == names[i]) {
            texts[i] = texts[*j].clone();
            continue;
        }
        let mut number = 2;
        while same(&texts, i, &texts[i]) {
            let cut = cut_middle(names[i], |text| fits(i, &format!("{text}#{number}")));
            texts[i] = format!("{cut}#{number}");
            number += 1;
        }
    }
    texts
}

/// Moves labels apart: places, in tenths of a unit, of the first lines of labels of some `lines` that
/// are `gap` high, within `low..=high`, in the order of `wanted`, with the least sum of squared moves.
///
/// With `z_i = y_i - gap * (lines before i)` the condition reads `z_i <= z_{i+1}`, so this is isotonic
/// regression, solved exactly by pooling adjacent violators (Barlow et al., 1972). Where the labels need
/// more than the space, they run over `high`; callers ask [`fits`] first.
pub fn spread(wanted: &[i64], lines: &[usize], gap: i64, low: i64, high: i64) -> Vec<i64> {
    // Ties keep their order: the sort is stable.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted[i]);
    let before: Vec<i64> = order
        .iter()
        .scan(0, |sum, &i| Some(core::mem::replace(sum, *sum + gap * lines[i] as i64)))
        .collect();
    // Blocks of (sum, count); compared as fractions, so that no rounding enters.
    let mut blocks: Vec<(i64, i64)> = Vec::new();
    for (rank, &i) in order.iter().enumerate() {
        blocks.push((wanted[i] - before[rank], 1));
        while let [.., (a, n), (b, m)] = blocks[..]
            && a * m >= b * n
        {
            blocks.truncate(blocks.len() - 2);
            blocks.push((a + b, n + m));
        }
    }
    let last = lines.iter().sum::<usize>() as i64 - 1;
    let mut places = vec![0; wanted.len()];
    let mut rank = 0;
    for (sum, count) in blocks {
        let base = sum.div_euclid(count).min(high - last * gap).max(low);
        for _ in 0..count {
            places[order[rank]] = base + before[rank];
            rank += 1;
        }
    }
    places
}

/// Whether `n` lines of height `gap` have space in `low..=high`.
pub fn fits(n: usize, gap: i64, low: i64, high: i64) -> bool {
    (n as i64 - 1) * gap <= high - low
}
