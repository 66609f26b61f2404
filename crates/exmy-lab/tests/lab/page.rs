use exmy_lab::finding::{Part, Table, Verdict};
use exmy_lab::page::{Download, Page, SCRIPT, STYLE};
use exmy_lab::plot;

#[test]
fn a_page_stands_alone_and_escapes_what_it_shows() {
    let mut page = Page::new("Bits & <blocks>");
    page.answer("1 < 2");
    page.heading_of("BR-1", "Seeds <1>", &Verdict::Reproduced(String::new()));
    let mut table = Table::new("a < b", &["x"]);
    table.row(["<script>".into()]);
    let picture = plot::Figure::new("loss").panel(plot::Panel::new(plot::Axis::linear("y")));
    page.verdict(&Verdict::NotSeen("0 of 20 \"diverged\"".into()), &[]);
    page.parts(
        &[
            Part::Text("1 < 2, after arXiv 2405.18710, arXiv:1.2 and arXiv".into()),
            Part::Picture(picture),
            Part::Table(table.clone()),
        ],
        "BR-1",
    );
    let parts = [Verdict::Reproduced("1 < 2".into()), Verdict::Contradicted("a".into())];
    page.verdict(&Verdict::Contradicted("1 < 2; a".into()), &parts);
    page.folded("config", "a = \"b\"");
    page.text("\u{1b}[31m\u{202e}");
    page.table(&table, Download::Embedded("own"));
    let html = page.to_html();
    assert!(html.contains("Bits &amp; &lt;blocks&gt;") && html.contains("href=\"#BR-1\""));
    assert!(html.contains("<p>\\u{1b}[31m\\u{202e}</p>"));
    assert!(html.contains("not seen at this scale</span> 0 of 20"));
    assert!(html.contains("contradicted</span> 1 of 2 parts reproduced, 1 contradicted.</p>"));
    assert!(html.contains("<li><span class=\"badge contradicted\">contradicted</span> a</li>"));
    let link = "after <a href=\"https://arxiv.org/abs/2405.18710\">arXiv 2405.18710</a>, arXiv:1.2 and \
                arXiv<";
    assert!(html.contains(link), "{html}");
    assert!(
        html.contains("href=\"figures/BR-1-1.svg\"") && html.contains("href=\"tables/BR-1-1.csv\"")
    );
    assert!(
        html.contains(
            "download=\"own.csv\" href=\"data:text/csv;charset=utf-8,x%0A%3Cscript%3E%0A\""
        )
    );
    assert_eq!(html.matches("<div class=\"grid\">").count(), 2);
    // Of scripts there is that of the page, and nothing is asked for from elsewhere; the name space of
    // SVG is a name, a link waits for the reader.
    assert!(html.contains("<svg") && html.matches("<script").count() == 1);
    let without =
        html.replace("http://www.w3.org/2000/svg", "").replace("https://arxiv.org/abs/", "");
    assert!(!without.contains("http:") && !without.contains("https:"));
    assert!(!without.contains("src=") && !without.contains("@import") && !without.contains("url("));
}

/// Of three pictures the last one is alone in its row, as is one before a wide table.
#[test]
fn what_is_alone_in_a_row_has_all_of_it() {
    let mut wide = Table::new("wide", &["x"; 7]);
    wide.row((0..7).map(|_| "12345".to_owned()));
    let mut page = Page::new("");
    ["a", "b", "c"].iter().for_each(|name| page.picture(name));
    page.table(&wide, Download::Embedded("wide"));
    ["d", "e"].iter().for_each(|name| page.picture(name));
    page.table(&wide, Download::Embedded("wide"));
    page.picture("f");
    let html = page.to_html();
    for name in ["c", "f"] {
        assert!(html.contains(&format!("<figure class=\"alone\">{name}<")), "{html}");
    }
    assert_eq!(html.matches("class=\"alone\"").count(), 2);
    assert_eq!(html.matches("<figure class=\"all\">").count(), 2);
    // Cells have groups of digits, and the file has plain numbers.
    assert!(html.contains("<td>12\u{202f}345</td>") && html.contains("12345,12345"), "{html}");
}

/// The script is read by everyone who gets a page.
#[test]
fn the_script_is_small() {
    assert!(SCRIPT.len() <= 15 * 1024, "{} bytes", SCRIPT.len());
    assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
}
