//! The catalog as a page of documentation: `docs/formats.md` is this text.

use super::page::{constants, misunderstandings, names, summary};
use super::table::{HEAD, row};
use exmy::format::Format;

const OPENING: &str = "\
# The formats

`exmy formats --markdown` prints this page. The definitions are those of OCP OFP8 1.0 and MX 1.0, IEEE
754-2019, the FNUZ formats of arXiv 2206.02915 and IEEE P3109 (Interim Report 4.0). `smallest` is the
smallest value above zero, a subnormal one where there are any. Values of many digits are rounded to four.

More formats go by their shape. `[u]e{E}m{M}` may have a bias (`b11`) and a class (`ieee`, `fn`, `fnuz`,
`finite`), and lack subnormals (`-nosub`), zero (`-nozero`) or negative zero (`-onezero`). P3109's are
`binary{K}p{P}{s|u}{e|f}`, two's complement is `int{K}`. There are up to 16 exponent bits (E), up to 52
significand bits (M, P - 1, K - 1 of `int{K}`), and up to 64 bits of a code, the sign included: e11m52
and e16m47 are the widest of their kinds, and e16m48 is none.

";

pub(super) fn text(formats: &[Format]) -> String {
    let mut text = OPENING.to_owned();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    text += &line(&HEAD.map(str::to_owned));
    text += &line(&HEAD.map(|_| "---".to_owned()));
    for format in formats {
        text += &line(&row(*format));
    }
    for format in formats {
        text += &format!("\n## {format}\n\n{}.\n\n", summary(*format));
        text += "| | value | exactly | code |\n| --- | --- | --- | --- |\n";
        for cells in constants(*format) {
            text += &line(&cells);
        }
        let names = names(*format);
        if !names.is_empty() {
            text += "\nCalled";
            for (i, (name, projects)) in names.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                text += &format!("{comma} `{name}` ({})", projects.join("; "));
            }
            text += ".\n";
        }
        for (name, meaning) in misunderstandings(*format) {
            text += &format!("\nAlso called `{name}`: {meaning}.\n");
        }
    }
    text
}
