//! The tables of `docs/blocks.md` against the code.

use exmy::block::scale::ScaleRule;
use exmy::block::{BlockFormat, BlockProfile};

use super::rules::{power, quantize};

/// The code of the scale of a block with this largest magnitude.
fn code(text: &str, amax: f32) -> String {
    let code = quantize(text, &[0.0, -amax], 2).scales[0];
    let format: BlockFormat = text.parse().unwrap();
    let value = format.scale.to_f32(u64::from(code));
    format!("`{code:02x}`{}", if value.is_nan() { " NaN" } else { "" })
}

/// Rows of equal cells are joined under all their names.
fn rows(found: Vec<(String, String)>) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for (name, cells) in found {
        match rows.iter_mut().find(|(_, other)| *other == cells) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => rows.push((name, cells)),
        }
    }
    rows.into_iter().map(|(names, cells)| format!("| {names} | {cells} |\n")).collect()
}

fn powers(name: &str) -> String {
    let format: BlockFormat = name.parse().unwrap();
    let max = format.element.max().to_f32();
    let next = |x: f32| f32::from_bits(x.to_bits() + 1);
    let inputs = [
        ("0", 0.0),
        ("2^-149", f32::from_bits(1)),
        ("max 2^-127 (1+2^-23)", next(max * power(-127))),
        ("max 2^-126", max * power(-126)),
        ("pred of 8", f32::from_bits(8_f32.to_bits() - 1)),
        ("8", 8.0),
        ("succ of max 2^100", next(max * power(100))),
        ("largest", f32::MAX),
        ("inf", f32::INFINITY),
        ("NaN", f32::NAN),
    ];
    let header = inputs.map(|(name, _)| name).join(" | ");
    let mut text = format!("## {name}: scales\n\n| rule, profiles | {header} |\n");
    text += &format!("|{}\n", "---|".repeat(inputs.len() + 1));
    for rule in [ScaleRule::Floor, ScaleRule::Ceil, ScaleRule::Even, ScaleRule::RCeil] {
        let profiles = BlockProfile::NAMED.into_iter().filter(|(_, profile)| profile.has(rule));
        let cells = profiles.map(|(profile, _)| {
            let full = format!("{name}@{rule}@{profile}");
            (format!("`{profile}`"), inputs.map(|(_, amax)| code(&full, amax)).join(" | "))
        });
        text += &rows(cells.collect()).replace("\n| `", &format!("\n| `{rule}`: `")).replacen(
            "| `",
            &format!("| `{rule}`: `"),
            1,
        );
    }
    text + "\n"
}

/// What becomes of the second of two blocks, the first being of ones unless it says otherwise.
fn nvfp4() -> String {
    let two = |first: f32, second: [f32; 2]| {
        let mut x = [first; 32];
        x[16..].fill(0.0);
        (x[16], x[17]) = (second[0], second[1]);
        x
    };
    let inputs = [
        ("zeros beside zeros", two(0.0, [0.0; 2])),
        ("zeros beside ones", two(1.0, [0.0; 2])),
        ("-0, -2^-10", two(1.0, [-0.0, -power(-10)])),
        ("1e-7", two(1.0, [1e-7, -1e-7])),
        ("inf, 1", two(1.0, [f32::INFINITY, 1.0])),
        ("1, -5/6 beside inf", two(f32::INFINITY, [1.0, -5.0 / 6.0])),
        ("1, -5/6", two(1.0, [1.0, -5.0 / 6.0])),
        ("NaN, 1", two(1.0, [f32::NAN, 1.0])),
    ];
    let header = inputs.map(|(name, _)| name).join(" | ");
    let mut text = format!(
        "## nvfp4\n\nScale code of a block of 16, codes of its first two elements and their images.\n\n\
         | rule, profiles | {header} |\n"
    );
    text += &format!("|{}\n", "---|".repeat(inputs.len() + 1));
    let mut found = Vec::new();
    for rule in ["nearest", "4over6", "4over6-448"] {
        let wanted: ScaleRule = rule.parse().unwrap();
        for (profile, _) in
            BlockProfile::NAMED.into_iter().filter(|(_, profile)| profile.has(wanted))
        {
            let cell = |x: [f32; 32]| {
                let tensor = quantize(&format!("nvfp4@{rule}@{profile}"), &x, 32);
                let image = tensor.dequantize();
                let number = |x: f32| match x {
                    _ if x != 0.0 && x.abs() < 1e-3 => format!("{x:.3e}"),
                    _ if x.abs() > 1e6 => format!("{x:e}"),
                    _ => format!("{x}"),
                };
                let (codes, values) = (&tensor.codes, [number(image[16]), number(image[17])]);
                format!(
                    "`{:02x}` `{:x}{:x}` {} {}",
                    tensor.scales[1], codes[16], codes[17], values[0], values[1]
                )
            };
            found
                .push((format!("`{rule}`: `{profile}`"), inputs.map(|(_, x)| cell(x)).join(" | ")));
        }
    }
    text + &rows(found)
}

#[test]
fn the_page_of_blocks_is_what_the_code_does() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/blocks.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (text, found) = page.split_at(page.find("## ").unwrap_or(page.len()));
    let wanted = powers("mxfp8-e4m3") + &powers("mxfp4") + &powers("mxint8") + &nvfp4();
    if std::env::var_os("EXMY_BLESS").is_some() {
        std::fs::write(&path, format!("{text}{}\n", wanted.trim_end())).unwrap();
        return;
    }
    assert!(
        found.trim_end() == wanted.trim_end(),
        "docs/blocks.md is out of date: EXMY_BLESS=1 cargo test --test blocks_rules page writes it anew"
    );
    for name in BlockProfile::NAMED
        .map(|(name, _)| name)
        .into_iter()
        .chain(ScaleRule::NAMED.map(|(name, _)| name))
    {
        assert!(text.contains(&format!("`{name}`")), "{name} has no source on the page");
    }
}
