//! The page of probes (`docs/probes.md`): the table of all names and the definitions at the top of each
//! source, kept there by a test. `EXMY_BLESS=1` writes both anew.

use exmy_train::train::probe::registry::{ALL, Entry};

/// Sources whose tops are definitions, in the order of the table.
const SOURCES: [(&str, &str); 10] = [
    (
        "lastbin.gamma, .weights, .activations",
        include_str!("../../../../src/train/probe/last_bin.rs"),
    ),
    ("rho, cos, eps", include_str!("../../../../src/train/probe/bias.rs")),
    ("norms, gamma, swiglu", include_str!("../../../../src/train/probe/weights.rs")),
    ("rounding", include_str!("../../../../src/train/probe/rounding.rs")),
    ("kurtosis, channels, spikes", include_str!("../../../../src/train/probe/tails.rs")),
    ("hot", include_str!("../../../../src/train/probe/hot.rs")),
    ("products", include_str!("../../../../src/train/probe/products.rs")),
    ("attention", include_str!("../../../../src/train/probe/attention.rs")),
    ("gates, logits, activations", include_str!("../../../../src/train/probe/places.rs")),
    ("sharpness, sharpness_lbfgsb", include_str!("../../../../src/train/probe/sharpness.rs")),
];

fn table() -> String {
    let mut table = String::from("| name | measures | takes |\n|---|---|---|\n");
    for Entry { name, argument, measures, cost, .. } in ALL {
        let argument = match *argument {
            "" => String::new(),
            argument => format!(", `{name}:{argument}`"),
        };
        table += &format!("| `{name}`{argument} | {} | {cost} |\n", measures.replace('|', "\\|"));
    }
    table
}

/// A bar within backticks, which would end the cell of a table, and links of rustdoc.
fn as_markdown(line: &str) -> String {
    let mut inside = false;
    let escaped = line.chars().map(|c| {
        inside ^= c == '`';
        if inside && c == '|' && line.starts_with('|') { "\\|".to_owned() } else { c.to_string() }
    });
    escaped.collect::<String>().replace("[`", "`").replace("`]", "`")
}

fn definitions() -> String {
    let mut text = String::new();
    for (heading, source) in SOURCES {
        text += &format!("\n### {heading}\n\n");
        for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
            text += &as_markdown(line.strip_prefix(' ').unwrap_or(line));
            text += "\n";
        }
    }
    text
}

/// The page with what stands between two marks put in.
fn with(page: &str, (begin, end): (&str, &str), text: &str) -> String {
    let from = page.find(begin).unwrap() + begin.len();
    let to = from + page[from..].find(end).unwrap();
    format!("{}{text}{}", &page[..from], &page[to..])
}

#[test]
fn the_page_has_all_names_and_definitions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/probes.md");
    let page = std::fs::read_to_string(path).unwrap();
    let table_marks = (
        "made from src/train/probe/registry.rs by a test; do not edit -->\n",
        "<!-- end of table -->",
    );
    let definition_marks = (
        "made from the tops of the sources by a test; do not edit -->\n",
        "<!-- end of definitions -->",
    );
    let made = with(&with(&page, table_marks, &table()), definition_marks, &definitions());
    if std::env::var_os("EXMY_BLESS").is_some() {
        std::fs::write(path, made).unwrap();
    } else {
        assert!(page == made, "EXMY_BLESS=1 cargo test -p exmy-train --test unit probe");
    }
}

#[test]
fn bars_of_formulas_do_not_end_cells() {
    assert_eq!(as_markdown("| `a` | `|x| / 2` | b |"), "| `a` | `\\|x\\| / 2` | b |");
    assert_eq!(as_markdown("of [`exmy::gemm`] and `|x|`"), "of `exmy::gemm` and `|x|`");
}
