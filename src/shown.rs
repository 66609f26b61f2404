//! Texts of others as they may be shown: paths, names of tensors, names of runs.
//!
//! A name from a file may hold what acts on a terminal (escape sequences), breaks a line, or turns the
//! reading direction around. Whoever prints or draws such a text passes it through here first, and what
//! cannot be seen stands there as Rust writes it: `\u{1b}`.

use alloc::format;
use alloc::string::String;

/// Whether a character acts on what shows it, or cannot be seen. These are Unicode's categories Cc, Cf,
/// Zl and Zp, without the marks of numbers in some scripts, and code points that are no characters.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E007F}')
        || c.is_control()
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) && !keeps(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// A text on one line, what cannot be seen in it escaped.
///
/// ```
/// use exmy::shown::printable;
///
/// assert_eq!(printable("läuft \"1\""), "läuft \"1\"");
/// assert_eq!(printable("\u{1b}[31mred\r\n"), "\\u{1b}[31mred\\r\\n");
/// ```
pub fn printable(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same of a text whose line breaks are its own.
///
/// ```
/// use exmy::shown::printable_lines;
///
/// assert_eq!(printable_lines("a\n\u{202e}b"), "a\n\\u{202e}b");
/// ```
pub fn printable_lines(text: &str) -> String {
    escaped(text, |c| c == '\n')
}

/// A text of JSON that says the same; what cannot be seen in its strings is escaped as JSON does it. The line
/// breaks and spaces between its values stay.
///
/// ```
/// use exmy::shown::printable_json;
///
/// assert_eq!(printable_json("{\"a\": \"\u{9b}\"}\n"), "{\"a\": \"\\u009b\"}\n");
/// ```
pub fn printable_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if !is_hidden(c) || c == '\n' {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown += &format!("\\u{unit:04x}");
        }
    }
    shown
}

/// A path in a line of text; `Path::display` leaves in it what acts on a terminal.
///
/// ```
/// # #[cfg(feature = "std")]
/// assert_eq!(exmy::shown::printable_path("a\n.txt"), "a\\n.txt");
/// ```
#[cfg(feature = "std")]
#[expect(clippy::disallowed_methods, reason = "it is escaped here")]
pub fn printable_path(path: &(impl AsRef<std::path::Path> + ?Sized)) -> String {
    printable(&path.as_ref().display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_letters_are_not() {
        let kept = "a.\"b\"\\ü字e\u{301}\u{3000}नमस्ते🙂\u{fe0f}";
        assert_eq!(printable(kept), kept);
        assert_eq!(printable("\u{1b}[2J\r\n\t"), "\\u{1b}[2J\\r\\n\\t");
        assert_eq!(printable("\u{9b}A\u{202e}B\u{200b}"), "\\u{9b}A\\u{202e}B\\u{200b}");
        assert_eq!(printable("\0\u{7f}\u{2067}"), "\\u{0}\\u{7f}\\u{2067}");
        assert_eq!(printable_lines("a\r\nb\u{1b}"), "a\\r\nb\\u{1b}");
        assert_eq!(printable_json("\u{9b}ü\n\u{e0041}"), "\\u009bü\n\\udb40\\udc41");
    }
}
