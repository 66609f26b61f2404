//! Texts of any length, as names in files and arguments are, in the room that there is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text of at most so many columns: of a longer one the beginning and the end.
pub(crate) fn without_middle(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let half = (most - 3) / 2;
    let fitting = |c: &char, left: &mut usize| {
        *left = left.checked_sub(c.width().unwrap_or(0))?;
        Some(*c)
    };
    let head = text.chars().scan(half, |left, c| fitting(&c, left));
    let tail = text.chars().rev().scan(half, |left, c| fitting(&c, left));
    let (head, tail): (String, Vec<char>) = (head.collect(), tail.collect());
    head + "..." + &tail.iter().rev().collect::<String>()
}
