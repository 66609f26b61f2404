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

/// A text in which whole numbers of five digits and more are in groups of three, kept together by narrow spaces.
pub(crate) fn grouped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_and_are_never_zero() {
        let of = [0.2, 1.4, 99.0, 120.0, 5_400.0, 7_200.0, 400_000.0].map(duration);
        assert_eq!(of, ["<1 s", "1 s", "99 s", "2 min", "90 min", "2.0 h", "5 days"]);
        let of = [4e3, 4e7, 1.25e9, 3e12, 2e15, 7e18].map(operations);
        let shown = ["<1 MFLOP", "40.0 MFLOP", "1.2 GFLOP", "3.0 TFLOP", "2.0 PFLOP", "7.0 EFLOP"];
        assert_eq!(of, shown);
        let text = "9999 to (1234567), of s-12345 0.12345 12345.5 12345x -20000.";
        let shown =
            "9999 to (1\u{202f}234\u{202f}567), of s-12345 0.12345 12345.5 12345x -20\u{202f}000.";
        assert_eq!(grouped(text), shown);
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1 000", "1 234 567"]);
    }
}
