//! Lines of hexadecimal words, read at the speed of a pipe.
//!
//! Input is read into one buffer of a megabyte and cut at line ends; nothing is copied or
//! allocated for a line. Before a read that may have to wait, the consumer is called, so that a
//! program that asks line by line gets its answers. Unix and Windows line ends, a last line
//! without one, and blanks around the words are accepted.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;

use crate::text::Short;

/// The longest line, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// Takes lines.
pub trait Sink {
    /// One line without its end; `None` for one longer than [`MAX_LINE`]. Lines count from 1.
    ///
    /// # Errors
    /// Whatever stops the stream: of the output, for example.
    fn line(&mut self, number: u64, text: Option<&[u8]>) -> io::Result<ControlFlow<()>>;

    /// Everything that has arrived is dealt with, and reading more may have to wait.
    ///
    /// # Errors
    /// Whatever stops the stream.
    fn idle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hands every line of `source` to `sink`, until it breaks off.
///
/// # Errors
/// Those of reading, and the sink's own.
pub fn each_line(mut source: impl Read, sink: &mut impl Sink) -> io::Result<()> {
    let mut buffer = vec![0; MAX_LINE];
    // The buffer's part in use; `scanned` is behind what is known to hold no line end.
    let (mut start, mut scanned, mut end) = (0, 0, 0);
    let mut number = 0;
    let mut skipping = false;
    loop {
        while let Some(length) = newline(&buffer[scanned..end]) {
            let line = &buffer[start..scanned + length];
            scanned += length + 1;
            start = scanned;
            number += 1;
            let text = if std::mem::take(&mut skipping) { None } else { Some(line) };
            if sink.line(number, text)?.is_break() {
                return sink.idle();
            }
        }
        buffer.copy_within(start..end, 0);
        (start, end) = (0, end - start);
        if end == buffer.len() {
            (end, skipping) = (0, true);
        }
        scanned = end;
        sink.idle()?;
        let read = loop {
            match source.read(&mut buffer[end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if read == 0 {
            break;
        }
        end += read;
    }
    if skipping || end > 0 {
        let text = if skipping { None } else { Some(&buffer[..end]) };
        let _ = sink.line(number + 1, text)?;
    }
    sink.idle()
}

/// Where the first line ends, eight bytes at a time.
fn newline(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (words, _) = text.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        // A byte equal to '\n' becomes zero, and only zero bytes (the lowest for certain) borrow
        // into their top bit.
        let x = u64::from_le_bytes(*word) ^ (ONES * b'\n' as u64);
        let zero = x.wrapping_sub(ONES) & !x & (ONES << 7);
        if zero != 0 {
            return Some(8 * i + zero.trailing_zeros() as usize / 8);
        }
    }
    let rest = 8 * words.len();
    text[rest..].iter().position(|byte| *byte == b'\n').map(|i| rest + i)
}

/// The words of a line: what stands between blanks.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// The words of a line.
    pub fn new(line: &'a [u8]) -> Self {
        Self(line)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let mut text = self.0;
        while let [first, rest @ ..] = text
            && blank(first)
        {
            text = rest;
        }
        let length = text.iter().take_while(|byte| !blank(byte)).count();
        let (word, rest) = text.split_at(length);
        self.0 = rest;
        if word.is_empty() { None } else { Some(word) }
    }
}

/// Values of hexadecimal digits; others 255.
const DIGITS: [u8; 256] = {
    let mut table = [255; 256];
    let mut i = 0;
    while i < 16 {
        let digit = b"0123456789abcdef"[i];
        table[digit as usize] = i as u8;
        table[digit.to_ascii_uppercase() as usize] = i as u8;
        i += 1;
    }
    table
};

/// A hexadecimal word of at most `bits` (1..=128) bits, with or without `0x`; zeros in front are
/// accepted.
///
/// # Errors
/// What is wrong with it.
#[inline]
pub fn hexadecimal(word: &[u8], bits: u32) -> Result<u128, Wrong> {
    // Up to 16 digits without a prefix, the usual case, fit one register.
    if word.len() <= 16 {
        let (mut value, mut bad) = (0_u64, 0);
        for byte in word {
            let digit = DIGITS[usize::from(*byte)];
            bad |= digit;
            value = value << 4 | u64::from(digit & 15);
        }
        if bad <= 15 && !word.is_empty() && (bits >= 64 || value >> bits == 0) {
            return Ok(value.into());
        }
    }
    long_hexadecimal(word, bits)
}

#[cold]
fn long_hexadecimal(word: &[u8], bits: u32) -> Result<u128, Wrong> {
    let digits = match word {
        [b'0', b'x' | b'X', digits @ ..] => digits,
        digits => digits,
    };
    if digits.is_empty() {
        return Err(Wrong::NoDigits);
    }
    let mut value = 0_u128;
    let mut wide = false;
    for byte in digits {
        let digit = DIGITS[usize::from(*byte)];
        if digit > 15 {
            return Err(Wrong::NoDigit(*byte));
        }
        wide |= value >> 124 != 0;
        value = value << 4 | u128::from(digit);
    }
    if wide || (bits < 128 && value >> bits != 0) { Err(Wrong::Wide) } else { Ok(value) }
}

/// Writes `digits` hexadecimal digits of a word.
#[inline]
pub fn write_hexadecimal(out: &mut Vec<u8>, word: u128, digits: usize, upper: bool) {
    let table = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    if digits <= 16 {
        let word = word as u64;
        for place in (0..digits).rev() {
            out.push(table[(word >> (4 * place) & 15) as usize]);
        }
    } else {
        for place in (0..digits).rev() {
            out.push(table[(word >> (4 * place) & 15) as usize]);
        }
    }
}

/// What is wrong with a word or a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A word without digits.
    NoDigits,
    /// A byte that is no hexadecimal digit.
    NoDigit(u8),
    /// Bits beyond the width.
    Wide,
    /// Another number of words than expected.
    Words {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A line longer than [`MAX_LINE`].
    Long,
}

/// A line that is not what was expected: what was found, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub wrong: Wrong,
    /// The word, or the whole line if their number is wrong.
    found: Short,
}

impl Malformed {
    /// The complaint about `found`, a word or a line.
    #[cold]
    pub fn new(line: u64, wrong: Wrong, found: &[u8]) -> Self {
        // 56 characters are shown.
        let found = Short::new(&found[..found.len().min(60)].escape_ascii().to_string());
        Self { line, wrong, found }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, wrong, found } = self;
        write!(f, "line {line}: ")?;
        match wrong {
            Wrong::NoDigits => write!(f, "\"{found}\" has no digits"),
            Wrong::NoDigit(byte) if byte.is_ascii_graphic() => {
                write!(f, "\"{found}\": {:?} is no hexadecimal digit", char::from(*byte))
            }
            Wrong::NoDigit(byte) => {
                write!(f, "\"{found}\": byte 0x{byte:02x} is no hexadecimal digit")
            }
            Wrong::Wide => write!(f, "\"{found}\" has bits beyond the width"),
            Wrong::Words { found: count, expected } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(f, "{count} word{plural} instead of {expected}: \"{found}\"")
            }
            Wrong::Long => write!(f, "longer than {MAX_LINE} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[derive(Default)]
    struct Collect(Vec<Option<Vec<u8>>>, usize);

    impl Sink for Collect {
        fn line(&mut self, number: u64, text: Option<&[u8]>) -> io::Result<ControlFlow<()>> {
            assert_eq!(number, self.0.len() as u64 + 1);
            self.0.push(text.map(<[u8]>::to_vec));
            Ok(ControlFlow::Continue(()))
        }

        fn idle(&mut self) -> io::Result<()> {
            self.1 += 1;
            Ok(())
        }
    }

    #[test]
    fn lines_are_those_of_split() {
        let mut text = Vec::new();
        for i in 0..200_usize {
            text.extend(std::iter::repeat_n(b'a' + (i % 26) as u8, i * 7 % 40));
            text.push(b'\n');
        }
        for end in ["", "x", "\n", "last\r"] {
            let mut text = text.clone();
            text.extend(end.bytes());
            let mut expected: Vec<_> =
                text.split(|b| *b == b'\n').map(|line| Some(line.to_vec())).collect();
            if expected.last() == Some(&Some(Vec::new())) {
                expected.pop();
            }
            for step in [1, 3, 8, 64, 5000] {
                let mut lines = Collect::default();
                each_line(Slow(&text, step), &mut lines).unwrap();
                assert_eq!(lines.0, expected);
                assert!(lines.1 > text.len() / step, "the sink hears of every wait");
            }
        }
        let mut none = Collect::default();
        each_line(Slow(b"", 1), &mut none).unwrap();
        assert!(none.0.is_empty());
    }

    #[test]
    fn line_ends_are_found_at_every_place() {
        for length in 0..40 {
            for place in 0..length {
                let mut text = vec![b'\n' + 1; length];
                text[place] = b'\n';
                assert_eq!(newline(&text), Some(place));
                text[place..].fill(b'\n');
                assert_eq!(newline(&text), Some(place));
            }
            assert_eq!(newline(&vec![b'\n' ^ 0x80; length]), None);
        }
    }

    #[test]
    fn a_line_beyond_the_limit_is_one_line() {
        for excess in [0, 1, 3 * MAX_LINE] {
            let mut text = b"1\n".to_vec();
            text.extend(vec![b'0'; MAX_LINE + excess]);
            let mut lines = Collect::default();
            each_line(&text[..], &mut lines).unwrap();
            assert_eq!(lines.0, [Some(b"1".to_vec()), None]);
            text.extend(b"\n2\n");
            let mut lines = Collect::default();
            each_line(&text[..], &mut lines).unwrap();
            assert_eq!(lines.0, [Some(b"1".to_vec()), None, Some(b"2".to_vec())]);
        }
    }

    #[test]
    fn words_and_digits() {
        let words = |text: &'static str| Words::new(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(words(" 1f\t0X2  zz \r"), [&b"1f"[..], b"0X2", b"zz"]);
        assert!(words(" \t\r").is_empty() && words("").is_empty());
        let read = |text: &str, bits| hexadecimal(text.as_bytes(), bits);
        assert_eq!(read("7f", 7), Ok(0x7F));
        assert_eq!(read("80", 7), Err(Wrong::Wide));
        assert_eq!(read("0x007F", 7), Ok(0x7F));
        assert_eq!(read("0X", 7), Err(Wrong::NoDigits));
        assert_eq!(read("", 7), Err(Wrong::NoDigits));
        assert_eq!(read("7g", 8), Err(Wrong::NoDigit(b'g')));
        assert_eq!(read("-1", 8), Err(Wrong::NoDigit(b'-')));
        assert_eq!(read("FFFFFFFFffffffff", 64), Ok(u64::MAX.into()));
        assert_eq!(read("1ffffffffffffffff", 64), Err(Wrong::Wide));
        assert_eq!(read(&"f".repeat(32), 128), Ok(u128::MAX));
        assert_eq!(read(&"f".repeat(33), 128), Err(Wrong::Wide));
        assert_eq!(read(&format!("{}1", "0".repeat(90)), 1), Ok(1));
        let mut out = Vec::new();
        write_hexadecimal(&mut out, 0x1E, 3, false);
        write_hexadecimal(&mut out, u128::MAX - 1, 32, true);
        assert_eq!(out, b"01eFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE");
    }

    #[test]
    fn complaints_say_what_was_found() {
        let say = |wrong, found: &[u8]| Malformed::new(7, wrong, found).to_string();
        assert_eq!(say(Wrong::NoDigit(b'g'), b"7g"), "line 7: \"7g\": 'g' is no hexadecimal digit");
        assert!(say(Wrong::NoDigit(0xFF), b"\xFF\x00").contains("byte 0xff"));
        assert!(say(Wrong::Wide, &[b'1'; 5000]).len() < 120);
        let words = Wrong::Words { found: 1, expected: 4 };
        assert_eq!(say(words, b"12"), "line 7: 1 word instead of 4: \"12\"");
    }
}
