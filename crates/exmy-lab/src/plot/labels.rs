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

/// `text` cut to at most `room` wide, with an ellipsis where something is missing.
pub(super) fn shorten(text: &str, size: i64, room: f64) -> String {
    if width(text, size) <= room {
        return text.into();
    }
    let room = room - width("…", size);
    let mut used = 0.0;
    let fits = |c: &char| {
        used += advance(*c) * size as f64;
        used <= room
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// `text` broken at spaces into the fewest lines of at most `room`, about equally long; a longer
/// word is shortened.
pub(super) fn wrap(text: &str, size: i64, room: f64) -> Vec<String> {
    let lines = fill(text, size, room);
    (10..20)
        .map(|twentieths| fill(text, size, room * f64::from(twentieths) / 20.0))
        .find(|narrower| lines.len() > 1 && narrower.len() == lines.len() && !cut(narrower))
        .unwrap_or(lines)
}

fn cut(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains('…'))
}

fn fill(text: &str, size: i64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = shorten(word, size, room);
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(&word, size) <= room => {
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

/// `text` broken between its parts into the fewest lines of at most `room`; nothing is added or left
/// out. None where a part is longer.
pub(super) fn broken(text: &str, size: i64, room: f64) -> Option<Vec<String>> {
    let fits = |line: &str| width(line.trim_end(), size) <= room;
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

/// A remark in at most `room`. Where it is too long, the words before its number go first, those
/// behind it next: the number is what it is for.
pub(super) fn shorten_note(note: &str, size: i64, room: f64) -> String {
    if width(note, size) <= room {
        return note.into();
    }
    let mut words =
        note.split_whitespace().skip_while(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let Some(number) = words.next() else { return shorten(note, size, room) };
    if width(number, size) > room {
        let value = number.parse().map_or_else(|_| number.to_owned(), short);
        return shorten(&value, size, room);
    }
    let mut kept = number.to_owned();
    for word in words {
        let more = format!("{kept} {word}");
        if width(&more, size) > room {
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
/// more than the room, they run over `high`; callers ask [`fits`] first.
pub(super) fn spread(wanted: &[i64], lines: &[usize], gap: i64, low: i64, high: i64) -> Vec<i64> {
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

/// Whether `n` lines of height `gap` have room in `low..=high`.
pub(super) fn fits(n: usize, gap: i64, low: i64, high: i64) -> bool {
    (n as i64 - 1) * gap <= high - low
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy::random::{Philox, Stream};

    #[test]
    fn labels_apart_stay_and_labels_together_share_the_move() {
        let spread = |wanted: &[i64]| spread(wanted, &vec![1; wanted.len()], 100, 0, 1000);
        assert_eq!(spread(&[100, 500, 300]), [100, 500, 300]);
        // Two at 300: 250 and 350; with a third at 320 the mean of (300, 200, 120) is 206.
        assert_eq!(spread(&[300, 300]), [250, 350]);
        assert_eq!(spread(&[320, 300, 300]), [406, 206, 306]);
        assert_eq!(spread(&[0, 0, 0]), [0, 100, 200]);
        assert_eq!(spread(&[990, 1000]), [900, 1000]);
        assert!(spread(&[]).is_empty());
    }

    #[test]
    fn labels_of_several_lines_take_their_room() {
        // The second needs two lines above the third, and the last one room for three below its first.
        assert_eq!(spread(&[0, 300, 300], &[1, 2, 1], 100, 0, 1000), [0, 200, 400]);
        assert_eq!(spread(&[1000], &[3], 100, 0, 1000), [800]);
        assert_eq!(spread(&[1000, 900], &[1, 3], 100, 0, 1000), [1000, 700]);
    }

    #[test]
    fn labels_never_touch_and_stay_inside() {
        let random = Philox::new(1, Stream::new("labels"));
        for case in 0..500_u64 {
            let n = 1 + random.word(case) as usize % 12;
            let wanted: Vec<i64> = (0..n as u64)
                .map(|i| i64::from(random.word(1000 + case * 16 + i) % 3000))
                .collect();
            let placed = spread(&wanted, &vec![1; n], 230, 0, 3000);
            for (i, &a) in placed.iter().enumerate() {
                assert!((0..=3000).contains(&a));
                for (j, &b) in placed.iter().enumerate().take(i) {
                    assert!((a - b).abs() >= 230, "{wanted:?} -> {placed:?}");
                    assert!(wanted[i] == wanted[j] || (wanted[i] > wanted[j]) == (a > b));
                }
            }
        }
        assert!(fits(12, 230, 0, 2530) && !fits(12, 230, 0, 2529));
    }

    #[test]
    fn text_is_cut_and_wrapped_to_its_room() {
        assert_eq!(shorten("f32", 10, 100.0), "f32");
        // 'a' is 6.3 wide and the ellipsis 10.5: three letters fit beside it in 30.
        assert_eq!(shorten("aaaaaaaa", 10, 30.0), "aaa…");
        assert_eq!(wrap("aa aa  aa", 10, 30.0), ["aa aa", "aa"]);
        assert_eq!(wrap("aa aa aa aa", 10, 47.0), ["aa aa", "aa aa"]);
        assert!(wrap(" ", 10, 30.0).is_empty());
    }

    #[test]
    fn names_are_broken_at_their_joints() {
        let broken = |text: &str, room: f64| broken(text, 10, room).unwrap_or_default();
        assert_eq!(broken("BF16 for the last third", 100.0), ["BF16 for the last ", "third"]);
        assert_eq!(broken("mx+bias=low+clip", 70.0), ["mx+", "bias=low+", "clip"]);
        assert_eq!(broken("bf16_act_all", 60.0), ["bf16_act_", "all"]);
        assert_eq!(broken("a-3 b,2+5_6 -7", 45.0), ["a-3 ", "b,2+5_6 ", "-7"]);
        assert_eq!(broken("a", 10.0), ["a"]);
        assert_eq!(broken("", 10.0), [""]);
        assert!(broken("aaaaaaaa bb", 30.0).is_empty());
    }

    #[test]
    fn notes_keep_their_numbers() {
        let note = |text: &str, room: f64| shorten_note(text, 10, room);
        assert_eq!(note("diverged at 1234", 120.0), "diverged at 1234");
        assert_eq!(note("diverged at 1234", 80.0), "1234");
        assert_eq!(note("gap of -0.25 nats in the end", 80.0), "-0.25 nats in");
        assert_eq!(note("12345", 20.0), "1…");
        assert_eq!(note(&format!("{:.3}", 1e40), 90.0), short(1e40));
        assert_eq!(note("no values at all", 60.0), "no value…");
    }

    /// Names cut to so many characters.
    fn shortened(names: &[&str], most: usize) -> Vec<String> {
        let texts = distinguish(names, |_, text| text.chars().count() <= most, |_, _| false);
        for (i, a) in texts.iter().enumerate() {
            assert!(a.chars().count() <= most || most < 8, "{a}");
            for (j, b) in texts.iter().enumerate().take(i) {
                assert_eq!(names[i] == names[j], a == b, "{names:?} -> {texts:?}");
            }
        }
        texts
    }

    #[test]
    fn long_names_lose_what_they_share() {
        let names = ["f32", "e7m7+bias=low+clip=outer", "e7m7+bias=low+clip=inner+rne"];
        assert_eq!(shortened(&names, 40), names);
        assert_eq!(shortened(&names, 20), ["f32", "…clip=outer", "…clip=inner+rne"]);
        let names = ["e7m7+bias=low+clip", "e8m6+bias=low+clip"];
        assert_eq!(shortened(&names, 15), ["e7m7+…", "e8m6+…"]);
        let names = ["all bf16_act of layers", "all bf16_act_all of layers"];
        assert_eq!(shortened(&names, 14), ["…act …", "…act_all …"]);
        // One alone shares nothing.
        assert_eq!(shortened(&["f32", "weight decay 0.01"], 12), ["f32", "weigh…y 0.01"]);
    }

    #[test]
    fn names_that_differ_in_their_middle_show_it() {
        let [a, b] = ["x", "y"].map(|middle| format!("{0}{middle}{0}", "a".repeat(30)));
        let texts = shortened(&[&a, &b, &a], 12);
        assert!(
            texts[0].contains('x') && texts[1].contains('y') && texts[2] == texts[0],
            "{texts:?}"
        );
        // No room for anything: numbers.
        assert_eq!(shortened(&["aaaa", "aaab", "aaac"], 1), ["…#2", "…#3", "…"]);
        // A text that another name has already.
        let taken = |_: usize, text: &str| text == "ab…ef";
        assert_ne!(distinguish(&["abcdef"], |_, text| text.len() <= 7, taken), ["ab…ef"]);
    }

    #[test]
    fn names_told_apart_differ_whatever_they_are() {
        let random = Philox::new(2, Stream::new("names"));
        for case in 0..300_u64 {
            let word = |i: u64| random.word(case * 1000 + i) as usize;
            let some = |i: u64, of: &[&'static str]| of[word(i) % of.len()];
            let names: Vec<String> = (0..8)
                .map(|n| {
                    (0..word(n) as u64 % 12)
                        .map(|k| {
                            some(100 + n * 20 + k, &["a", "bb", "+", "_", " ", "-1", "…", "é"])
                        })
                        .collect()
                })
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            shortened(&names, 4 + case as usize % 9);
        }
    }
}
