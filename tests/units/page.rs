//! `docs/units.md` against the code: the parameters with their defaults, the presets, and how many
//! recorded results there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use exmy::format::Format;
use exmy::gemm::unit::{Model, Preset, Unit};
use exmy::vectors::tiles::Tiles;

const PAGE: &str = include_str!("../../docs/units.md");

/// The cells below a heading that begins so, row by row.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<_>> =
        rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert!(!rows.is_empty(), "no table {heading}");
    rows
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The column `custom` is what a unit of one's own has where nothing else is said.
#[test]
fn every_parameter_is_listed_with_its_default() {
    let rows = table("| key | values | `custom` |");
    let mut settings = Vec::new();
    for row in &rows {
        let [key, default] = [quoted(row[0])[0], quoted(row[2])[0]];
        settings.push(format!("{key}={default}"));
        for value in quoted(row[1]).into_iter().filter(|value| *value != "FORMAT@MODE") {
            let model: Result<Model, _> = format!("custom,{key}={value}").parse();
            assert!(model.is_ok(), "{key}={value}");
        }
    }
    let all = format!("custom,{}:e4m3", settings.join(","));
    let unit: Unit = all.parse().unwrap_or_else(|error| panic!("{all}: {error}"));
    assert_eq!(unit.to_string(), "custom:e4m3", "{all}");
    // The keys of the message are the table's.
    let message = "custom,q=1:f16".parse::<Unit>().unwrap_err().to_string();
    let (_, possible) = message.split_once("; possible: ").unwrap();
    let keys: Vec<&str> = rows.iter().map(|row| quoted(row[0])[0]).collect();
    assert_eq!(possible.strip_suffix(", each as KEY=VALUE"), Some(keys.join(", ").as_str()));
}

/// The numbers of a cell, without those that belong to formats and remarks.
fn numbers(cell: &str) -> Vec<i32> {
    let words = cell.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn every_preset_has_a_row_with_its_numbers() {
    let rows = table("| preset |");
    for preset in Preset::ALL {
        let name = preset.name();
        let mine: Vec<_> = rows.iter().filter(|row| quoted(row[0]) == [name]).collect();
        assert!(!mine.is_empty(), "no row of {name}");
        for format in [Format::F16, Format::BF16, Format::TF32, Format::E4M3FN, Format::E4M3FNUZ] {
            let Ok(unit) = Unit::new(preset, format, format, Format::F32) else { continue };
            let parameters = unit.parameters();
            let has = |column: usize, number: i32| {
                mine.iter().any(|row| numbers(row[column]).contains(&number))
            };
            if !mine[0][1].starts_with("the same") {
                assert!(has(1, parameters.products as i32), "{unit}: l={}", parameters.products);
            }
            if !numbers(mine[0][2]).is_empty() {
                assert!(has(2, parameters.fraction as i32), "{unit}: f={}", parameters.fraction);
            }
            if let Some(floor) = parameters.floor {
                assert!(has(3, floor), "{unit}: floor={floor}");
            }
        }
    }
    for row in rows {
        let preset: Result<Preset, _> = quoted(row[0])[0].parse();
        assert!(preset.is_ok(), "{}", row[0]);
    }
}

/// Files of tiles in a folder of `tests/data`.
fn recordings(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "tiles")).collect()
}

fn results(files: &[PathBuf]) -> usize {
    files.iter().map(|path| Tiles::parse(fs::read(path).unwrap()).unwrap().results()).sum()
}

/// What is said to be recorded is what is there.
#[test]
fn the_recorded_results_are_counted() {
    let (hopper, amx) = (recordings("h200"), recordings("amx"));
    // Other operands of the same instruction have a word more.
    let instructions: BTreeSet<String> = hopper
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap())
        .map(|name| name.trim_end_matches("_extreme").trim_end_matches("_tiny").to_owned())
        .collect();
    let thousands = |n: usize, mark: &str| format!("{}{mark}{:03}", n / 1000, n % 1000);
    let said = format!(
        "holds {} results of {} Hopper instructions and library calls, and {} of one of AMX",
        thousands(results(&hopper), ","),
        instructions.len(),
        results(&amx)
    );
    let page = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&said), "docs/units.md does not say: {said}");
    let said = format!(
        "{} recorded results of {} instructions and library calls",
        thousands(results(&hopper) + results(&amx), " "),
        instructions.len() + 1
    );
    let verification = include_str!("../../docs/verification.md");
    assert!(verification.contains(&said), "docs/verification.md does not say: {said}");
}
