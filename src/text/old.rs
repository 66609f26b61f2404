//! The names that earlier versions gave to formats, in the records that they wrote.
//!
//! They called the IEEE-like format `e4m3` and OCP's `e4m3fn`; now `e4m3` is OCP's, and the other is
//! `e4m3-ieee`. The class `ieee` of other shapes stood without its hyphen, and is still read so. Only the
//! bare shape changed its meaning, with a bias or not: `e4m3fn`, `e4m3fnuz` and `mxfp8-e4m3` are as before.
//!
//! These functions work on the text of a format, a block format, a quantizer or anything composed of them.

use alloc::string::String;

const SHAPE: &str = "e4m3";
const IEEE: &str = "-ieee";

/// The places behind each signed shape `e4m3` and its bias, if it stands as a word of its own.
fn shapes(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).filter_map(move |at| {
        let behind = at + SHAPE.len();
        let begins = bytes.get(at..behind)?.eq_ignore_ascii_case(SHAPE.as_bytes())
            && !at.checked_sub(1).is_some_and(|before| is_inner(bytes[before]));
        let mut end = behind;
        if let Some(b'b' | b'B') = bytes.get(end) {
            end += 1 + usize::from(bytes.get(end + 1) == Some(&b'-'));
            let digits = bytes[end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            end = if digits == 0 { behind } else { end + digits };
        }
        begins.then_some(end)
    })
}

/// Whether a word that has this before it began earlier, as `ue4m3`, `mxfp8-e4m3` and `float8_e4m3` do.
fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_ieee(rest: &str) -> bool {
    rest.get(..IEEE.len()).is_some_and(|word| word.eq_ignore_ascii_case(IEEE))
}

/// The text with `class` behind each shape `e4m3` that has none.
fn with_class(text: &str, class: &str) -> String {
    let mut out = String::new();
    let mut done = 0;
    for end in shapes(text) {
        let rest = &text[end..];
        let goes_on =
            rest.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !goes_on && !is_ieee(rest) {
            out += &text[done..end];
            out += class;
            done = end;
        }
    }
    out + &text[done..]
}

/// What an earlier version wrote, in the names of today.
///
/// ```
/// use exmy::text::old::modern;
///
/// assert_eq!(modern("e4m3/32:e8m0"), "e4m3-ieee/32:e8m0");
/// assert_eq!(modern("bf16>e4m3fn@sr8"), "bf16>e4m3@sr8");
/// ```
pub fn modern(text: &str) -> String {
    let text = with_class(text, IEEE);
    let mut out = String::new();
    let mut done = 0;
    for end in shapes(&text) {
        let rest = &text.as_bytes()[end..];
        let is_fn = rest.get(..2).is_some_and(|class| class.eq_ignore_ascii_case(b"fn"));
        if is_fn && !rest.get(2).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            out += &text[done..end];
            done = end + 2;
        }
    }
    out + &text[done..]
}

/// The text with OCP's format written `e4m3fn`, which every version reads as that: for records that
/// do not say which version wrote them.
///
/// ```
/// use exmy::text::old::explicit;
///
/// assert_eq!(explicit("e4m3/32:e8m0"), "e4m3fn/32:e8m0");
/// assert_eq!(explicit("e4m3-ieee"), "e4m3-ieee");
/// ```
pub fn explicit(text: &str) -> String {
    with_class(text, "fn")
}

/// What an earlier version would have written for what is written so today.
///
/// ```
/// use exmy::text::old::former;
///
/// assert_eq!(former("e4m3>e4m3-ieee"), "e4m3fn>e4m3");
/// assert_eq!(former("e3m2-ieee"), "e3m2ieee");
/// ```
pub fn former(text: &str) -> String {
    let text = explicit(text);
    let mut out = String::new();
    let mut done = 0;
    for end in shapes(&text).filter(|&end| is_ieee(&text[end..])) {
        out += &text[done..end];
        done = end + IEEE.len();
    }
    (out + &text[done..]).replace(IEEE, "ieee")
}
