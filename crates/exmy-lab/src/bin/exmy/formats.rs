//! `exmy formats`: which numbers a format has, what they are called and who calls it what.

mod csv;
mod markdown;
mod page;
mod table;
mod words;

use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::format::{Format, NAMED};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Formats by any of their names; one is shown in full, none: the catalog
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print every code of one format of up to 16 bits as `code,value,class`: the value exactly, as
    /// C's hexadecimal floating-point text, NaN, Inf or -Inf; the class one of nan, inf, zero,
    /// subnormal, normal
    #[arg(long, conflicts_with = "markdown")]
    csv: bool,
    /// Print the catalog with the constants and names of every format as a Markdown page
    #[arg(long, conflicts_with = "names")]
    markdown: bool,
}

/// Formats in the table in addition to the catalog's: the shapes between bfloat16 and E8M0 that papers
/// use, the accumulator of FP8 products on Hopper, and P3109's formats of conformance.
const FURTHER: [&str; 9] = [
    "e8m3",
    "e8m4",
    "e8m5",
    "e8m6",
    "e8m13",
    "binary8p3se",
    "binary8p4se",
    "binary4p2sf",
    "binary8p1uf",
];

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let named: Result<Vec<Format>> = arguments.names.iter().map(|name| parse(name)).collect();
    let formats = named?;
    let text = match formats[..] {
        [format] if arguments.csv => csv::text(format)?,
        _ if arguments.csv => {
            return Err(Error::new(format!("--csv takes one format, not {}", formats.len()))
                .hint("for example: exmy formats e4m3 --csv"));
        }
        _ if arguments.markdown => markdown::text(&catalog()),
        [] => table::text(&catalog()) + table::NOTE,
        [format] => page::text(format, page::width()),
        _ => table::text(&formats),
    };
    show::result(&text)?;
    Ok(0)
}

fn parse(name: &str) -> Result<Format> {
    name.parse().map_err(|error| Error::new(format!("{error}")))
}

fn catalog() -> Vec<Format> {
    let further = FURTHER.iter().map(|name| name.parse().expect("a format named above"));
    NAMED.iter().map(|(_, format)| *format).chain(further).collect()
}
