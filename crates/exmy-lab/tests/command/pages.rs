//! Pages as a browser lays them out: on a phone and on a desktop, light and dark, with their script and
//! without.

use crate::{TINY, exmy, succeed, text_file};
use exmy_lab::page::Page;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A phone and a desktop.
const WIDTHS: [u32; 2] = [390, 1440];

/// A browser, where there is one.
fn browser() -> Option<&'static str> {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    browsers.into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    })
}

/// What is measured of some pages in frames of [`WIDTHS`], with scripts and without, in one colour scheme.
/// Frames, as windows of browsers are no narrower than 500.
fn measured(browser: &str, pages: &[String], dark: bool, axe: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    // No text ends the script that holds it.
    let json = |value: &Value| value.to_string().replace("</", "<\\/").replace("<!--", "<\\!--");
    let outer = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><title></title><body><script>const PAGES = {}, WIDTHS = {}, \
         AXE = {};\n{}</script></body>",
        json(&pages.into()),
        json(&WIDTHS.as_slice().into()),
        json(&axe.into()),
        include_str!("pages/measure.js")
    );
    let path = folder.path().join("outer.html");
    fs::write(&path, outer).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--virtual-time-budget=60000", "--window-size=1600,2000"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").to_str().unwrap()))
        .arg(format!("file://{}", path.to_str().unwrap()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.unwrap_or_default();
    let title = title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}"))
}

/// Pages of some figures of each study, one of runs, and one of the pictures that are committed.
fn pages(folder: &Path) -> Vec<String> {
    let some = [
        ("bit-reduction", "BR-3,BR-4,BR-17"),
        ("mx-instabilities", "F2b,F3,T3"),
        ("nvfp4-outliers", "E1"),
    ];
    let mut pages: Vec<String> = some
        .iter()
        .map(|(study, figures)| {
            let one = ["study", study, "--figure", figures, "--scale", "smoke", "--quiet"];
            succeed(exmy(&one).arg("--out").arg(folder.join(study)));
            fs::read_to_string(folder.join(study).join("report.html")).unwrap()
        })
        .collect();
    let data = text_file(folder);
    let train = ["train", "--data", &data, "--quiet", "--recipe", "f32,mxfp4", "--seeds", "2"];
    succeed(exmy(&train).args(TINY).args(["--out", "runs"]).current_dir(folder));
    succeed(exmy(&["report", "runs"]).current_dir(folder));
    pages.push(fs::read_to_string(folder.join("runs/report.html")).unwrap());
    let mut committed = Page::new("Pictures that are committed");
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies/pictures");
    for entry in fs::read_dir(pictures).into_iter().flatten().map(Result::unwrap) {
        committed.picture(&fs::read_to_string(entry.path()).unwrap());
    }
    pages.push(committed.to_html());
    pages
}

/// Nothing reaches beyond the window, what stands in pictures can be read, nothing is asked for from
/// elsewhere, axe-core finds nothing wrong, and the script does what it says. Without it the same text is
/// there.
#[test]
fn pages_can_be_read_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let pages = pages(folder.path());
    for page in &pages {
        // The name space of SVG is a name, and a link to a paper waits for the reader.
        let without = page.replace("http://www.w3.org/2000/svg", "");
        let without = without.replace("href=\"https://arxiv.org/abs/", "href=\"");
        for foreign in ["http:", "https:", "src=", "url(", "@import", "<link", "import("] {
            assert!(!without.contains(foreign), "{foreign}");
        }
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains("default-src 'none'"), "the page lets nothing in");
    }
    let Some(browser) = browser() else {
        crate::skipped("Chromium, which lays pages out");
        return;
    };
    let axe = std::env::var_os("EXMY_AXE").map(|path| fs::read_to_string(path).unwrap());
    if axe.is_none() {
        crate::skipped(
            "axe-core, which finds what keeps people from reading a page (scripts/axe.sh)",
        );
    }
    let axe = axe.unwrap_or_default();
    let mut backgrounds = Vec::new();
    for dark in [false, true] {
        let found = measured(browser, &pages, dark, &axe);
        assert_eq!(found.len(), pages.len() * WIDTHS.len() * 2);
        for pair in found.chunks(2) {
            let (one, plain) = (&pair[0], &pair[1]);
            let place = format!("page {}, {}, dark {dark}", one["page"], one["width"]);
            let width = one["width"].as_f64().unwrap();
            for view in pair {
                assert_eq!(view["dark"], dark, "{place}");
                let wide = view["wide"].as_f64().unwrap();
                assert!(wide <= width, "{place}: {wide} wide");
                let text = view["text"].as_f64().unwrap();
                assert!(text >= 11.0, "{place}: text of {text} pixels");
                let unequal = view["unequal"].as_f64().unwrap();
                assert!(unequal < 1.05, "{place}: pictures of one group, {unequal} times as wide");
            }
            assert_eq!(
                one["violations"].as_array().unwrap().len(),
                0,
                "{place}: {}",
                one["violations"]
            );
            let read = [plain, one].map(|view| view["read"].as_u64().unwrap());
            assert!(0 < read[0] && read[0] <= read[1], "{place}: {read:?} characters to read");
            if pages[one["page"].as_u64().unwrap() as usize].contains("exmy report") {
                let used = one["used"].as_object().unwrap();
                let works = |(_, done): (&String, &Value)| done == true || done.is_string();
                assert!(used.len() == 11 && used.iter().all(works), "{place}: {used:?}");
                let tip = used["tip"].as_str().unwrap();
                // Halfway from step 1 to step 40.
                assert!(tip.starts_with("step 21") && tip.contains("mxfp4"), "{place}: {tip}");
                assert!(tip.contains(" %") || tip.contains(" nats per token"), "{place}: {tip}");
            }
            backgrounds.push(one["background"].clone());
        }
    }
    let half = backgrounds.len() / 2;
    assert!(backgrounds[..half].iter().all(|light| !backgrounds[half..].contains(light)));
}
