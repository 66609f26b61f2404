//! How a page is made, as far as this process knows.

use exmy_lab::report::Provenance;

/// The command and the machine of this process; how many threads trained the runs, where that is known.
pub(crate) fn provenance(threads: Option<usize>) -> Provenance {
    Provenance { command: command(), machine: machine(threads) }
}

/// The command as it was given.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word,
    });
    std::iter::once("exmy".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The machine, as far as the operating system says.
fn machine(threads: Option<usize>) -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unnamed processor", |(_, name)| name.trim());
    let level = exmy::simd::level().name();
    let threads = match threads {
        None => String::new(),
        Some(1) => "1 thread of ".into(),
        Some(n) => format!("{n} threads of "),
    };
    format!("{threads}{model} ({}, SIMD level {level}).", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_those_of_the_runs() {
        assert!(machine(Some(1)).starts_with("1 thread of "));
        assert!(machine(Some(2)).starts_with("2 threads of "));
        assert!(!machine(None).contains("thread"));
    }
}
