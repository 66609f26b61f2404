//! Amounts as people read them: counts, times and operations, each with the unit that keeps it short. None is
//! written as zero that is not.

/// 1234567 as "1 234 567".
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `1 bit`, `2 bits`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// A text in which whole numbers of five digits and more are in groups of three, kept together by narrow
/// spaces.
#[doc(hidden)]
pub fn grouped(text: &str) -> String {
    let word = |word: &str| {
        let digits = word.trim_start_matches(['(', '+', '-', '\u{2212}']);
        let digits = digits.trim_end_matches([',', ';', ':', '.', ')', '%']);
        let is_long = digits.len() > 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(number) if is_long => {
                word.replace(digits, &thousands(number).replace(' ', "\u{202f}"))
            }
            _ => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Seconds in the unit that a person would take.
pub fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => "<1 s".into(),
        ..100.0 => format!("{seconds:.0} s"),
        ..6_000.0 => format!("{:.0} min", seconds / 60.0),
        ..360_000.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

/// Floating-point operations.
pub fn operations(flops: f64) -> String {
    let units = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    match units.into_iter().find(|(size, _)| flops >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}FLOP", flops / size),
        None => "<1 MFLOP".into(),
    }
}
