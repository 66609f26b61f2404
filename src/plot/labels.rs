//! Text in a picture that cannot ask the font: widths are estimated, lines wrapped, and labels
//! that want the same place moved apart.

use alloc::{string::String, vec, vec::Vec};

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
        ' ' | ',' | '.' | ':' | ';' | '!' | 'I' | 'f' | 't' | '/' | '\\' => 0.36,
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

/// Moves labels apart: places, in tenths of a unit, at least `gap` from each other, within
/// `low..=high`, in the order of `wanted`, with the least sum of squared moves.
///
/// With `z_i = y_i - i * gap` the condition reads `z_i <= z_{i+1}`, so this is isotonic regression,
/// solved exactly by pooling adjacent violators (Barlow et al., 1972). Where `n` labels need
/// more than the room, they run over `high`; callers ask [`fits`] first.
pub(super) fn spread(wanted: &[i64], gap: i64, low: i64, high: i64) -> Vec<i64> {
    // Ties keep their order: the sort is stable.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted[i]);
    // Blocks of (sum, count); compared as fractions, so that no rounding enters.
    let mut blocks: Vec<(i64, i64)> = Vec::new();
    for (rank, &i) in order.iter().enumerate() {
        blocks.push((wanted[i] - rank as i64 * gap, 1));
        while let [.., (a, n), (b, m)] = blocks[..]
            && a * m >= b * n
        {
            blocks.truncate(blocks.len() - 2);
            blocks.push((a + b, n + m));
        }
    }
    let last = wanted.len() as i64 - 1;
    let mut places = vec![0; wanted.len()];
    let mut rank = 0;
    for (sum, count) in blocks {
        let base = sum.div_euclid(count).min(high - last * gap).max(low);
        for _ in 0..count {
            places[order[rank as usize]] = base + rank * gap;
            rank += 1;
        }
    }
    places
}

/// Whether `n` labels of height `gap` have room in `low..=high`.
pub(super) fn fits(n: usize, gap: i64, low: i64, high: i64) -> bool {
    (n as i64 - 1) * gap <= high - low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Philox, Stream};

    #[test]
    fn labels_apart_stay_and_labels_together_share_the_move() {
        assert_eq!(spread(&[100, 500, 300], 100, 0, 1000), [100, 500, 300]);
        // Two at 300: 250 and 350; with a third at 320 the mean of (300, 200, 120) is 206.
        assert_eq!(spread(&[300, 300], 100, 0, 1000), [250, 350]);
        assert_eq!(spread(&[320, 300, 300], 100, 0, 1000), [406, 206, 306]);
        assert_eq!(spread(&[0, 0, 0], 100, 0, 1000), [0, 100, 200]);
        assert_eq!(spread(&[990, 1000], 100, 0, 1000), [900, 1000]);
        assert!(spread(&[], 100, 0, 1000).is_empty());
    }

    #[test]
    fn labels_never_touch_and_stay_inside() {
        let random = Philox::new(1, Stream::new("labels"));
        for case in 0..500_u64 {
            let n = 1 + random.word(case) as usize % 12;
            let wanted: Vec<i64> = (0..n as u64)
                .map(|i| i64::from(random.word(1000 + case * 16 + i) % 3000))
                .collect();
            let placed = spread(&wanted, 230, 0, 3000);
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
}
