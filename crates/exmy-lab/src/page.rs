//! A report as one HTML page that stands alone: pictures, tables and sentences, readable offline on a phone
//! and on a desktop.
//!
//! No scripts, no fonts, no links to other places; wide tables scroll inside their frame, so the page never
//! does; colours follow the reader's dark mode, as those of the [pictures](crate::plot) do.

use crate::finding::{Findings, Part, Table, Verdict};
use exmy::shown::printable_lines;
use std::fmt::Write;

/// Colours and measures; widths are those of a column of text.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--back:#fff;--pale:#f6f8fa;\
--good:#1a7f37;--bad:#b42318;--none:#8a6100}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;--line:#3d444d;--back:#0d1117;\
--pale:#161b22;--good:#4ac26b;--bad:#ff7b72;--none:#d9a520}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:1080px;margin:0 auto;padding:1rem}\
h1{font-size:1.6rem;line-height:1.2;overflow-wrap:anywhere}\
h2{font-size:1.25rem;margin:2.5rem 0 .25rem;border-top:1px solid var(--line);padding-top:1rem}\
p{max-width:72ch;overflow-wrap:anywhere}.soft{color:var(--soft);font-size:.9rem}\
.verdict{border-left:4px solid var(--none);padding:.25rem .75rem;background:var(--pale);max-width:100%;\
overflow-wrap:anywhere}.verdict p{margin:0}.verdict ul{margin:.25rem 0;padding-left:1.2rem;max-width:72ch}\
.reproduced{border-color:var(--good)}.contradicted{border-color:var(--bad)}.shown{border-color:var(--line)}\
.wide{overflow-x:auto;max-width:100%}\
table{border-collapse:collapse;font-size:.9rem}figure{margin:1rem 0}\
figcaption{font-size:.9rem;color:var(--soft);padding:.25rem 0;max-width:72ch}\
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child,.w{text-align:left}\
svg.exmy{display:block;height:auto;margin:1rem 0;max-width:800px!important}\
pre{overflow-x:auto;background:var(--pale);padding:.75rem;font-size:.85rem}\
a{color:inherit}nav ul{padding-left:1.2rem}details{margin:.5rem 0}summary{cursor:pointer}";

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    let text = printable_lines(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A page that is being written.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    maker: &'static str,
    contents: String,
    body: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), maker: "", contents: String::new(), body: String::new() }
    }

    /// The same, whose head says what made it.
    pub(crate) fn made_by(self, maker: &'static str) -> Self {
        Self { maker, ..self }
    }

    /// Adds a heading that the contents lead to, with a remark there.
    pub fn heading(&mut self, id: &str, title: &str, remark: &str) {
        let (id, title) = (escape(id), escape(title));
        let _ = writeln!(self.body, "{}{title}</h2>", Self::anchor(&id));
        let remark = match remark {
            "" => String::new(),
            remark => format!(" <span class=\"soft\">{}</span>", escape(remark)),
        };
        let _ = writeln!(self.contents, "<li><a href=\"#{id}\">{title}</a>{remark}</li>");
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Adds a paragraph in a quieter voice.
    pub fn soft(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"soft\">{}</p>", escape(text));
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        // Columns of words begin where their heads do, numbers end there.
        let is_word = |cell: &String| {
            cell.len() > 1 && !cell.starts_with(|c: char| "+-.0123456789".contains(c))
        };
        let words: Vec<bool> = (0..table.header.len())
            .map(|j| {
                table.rows.iter().filter_map(|row| row.get(j)).filter(|c| is_word(c)).count() * 2
                    > table.rows.len()
            })
            .collect();
        let cells = |cells: &[String], tag: &str| -> String {
            let class = |j: usize| if words.get(j) == Some(&true) { " class=\"w\"" } else { "" };
            let cell = |(j, cell): (usize, &String)| {
                format!("<{tag}{}>{}</{tag}>", class(j), escape(cell))
            };
            cells.iter().enumerate().map(cell).collect()
        };
        let _ = writeln!(
            self.body,
            "<figure><figcaption>{}</figcaption><div class=\"wide\" tabindex=\"0\"><table>",
            escape(&table.caption)
        );
        let _ =
            writeln!(self.body, "<thead><tr>{}</tr></thead><tbody>", cells(&table.header, "th"));
        for row in &table.rows {
            let _ = writeln!(self.body, "<tr>{}</tr>", cells(row, "td"));
        }
        self.body.push_str("</tbody></table></div></figure>\n");
    }

    /// Adds a picture.
    pub fn picture(&mut self, svg: &str) {
        let _ = writeln!(self.body, "{svg}");
    }

    /// Adds text as it stands, folded away under a summary.
    pub fn folded(&mut self, summary: &str, text: &str) {
        let (summary, text) = (escape(summary), escape(text));
        let _ =
            writeln!(self.body, "<details><summary>{summary}</summary><pre>{text}</pre></details>");
    }

    /// Adds what a figure says about its claim.
    pub fn verdict(&mut self, verdict: &Verdict) {
        let class = match verdict {
            Verdict::Reproduced(_) => "reproduced",
            Verdict::NotSeen(_) | Verdict::Untested(_) => "not-seen",
            Verdict::Contradicted(_) => "contradicted",
            Verdict::Shown(_) | Verdict::NotRun(_) => "shown",
        };
        let (word, clauses) = (verdict.word(), verdict.reason().split("; "));
        // Several findings read better one below the other.
        let said = match clauses.clone().count() {
            0..3 => format!("<p><strong>{word}</strong>: {}</p>", escape(verdict.reason())),
            _ => {
                let items: String =
                    clauses.map(|clause| format!("<li>{}</li>", escape(clause))).collect();
                format!("<p><strong>{word}</strong></p><ul>{items}</ul>")
            }
        };
        let _ = writeln!(self.body, "<div class=\"verdict {class}\">{said}</div>");
    }

    /// Adds the parts of a figure after its verdict.
    pub fn findings(&mut self, findings: &Findings) {
        self.verdict(&findings.verdict);
        for part in &findings.parts {
            match part {
                Part::Text(text) => self.text(text),
                Part::Picture(figure) => self.picture(&figure.to_svg()),
                Part::Table(table) => self.table(table),
            }
        }
    }

    /// How a heading begins that the contents lead to; no text of a page does.
    pub(crate) fn anchor(id: &str) -> String {
        format!("<h2 id=\"{id}\">")
    }

    /// What a page of this title has in its head, and no other.
    pub(crate) fn tag(title: &str) -> String {
        format!("<title>{}</title>", escape(title))
    }

    /// What a page has in its head that says what made it, and no text of a page has.
    pub(crate) fn mark(maker: &str) -> String {
        format!("<meta name=\"generator\" content=\"{}\">", escape(maker))
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let (title, tag) = (escape(&self.title), Self::tag(&self.title));
        let mark = match self.maker {
            "" => String::new(),
            maker => Self::mark(maker) + "\n",
        };
        let Self { contents, body, .. } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             {mark}{tag}<style>{STYLE}</style></head>\n<body><main><h1>{title}</h1>\n\
             <nav><ul>\n{contents}</ul></nav>\n{body}</main></body></html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot;

    #[test]
    fn a_page_stands_alone_and_escapes_what_it_shows() {
        let mut page = Page::new("Bits & <blocks>");
        page.heading("BR-1", "Seeds <1>", "reproduced");
        let mut table = Table::new("a < b", &["x"]);
        table.row(["<script>".into()]);
        page.findings(&Findings {
            verdict: Verdict::NotSeen("0 of 20 \"diverged\"".into()),
            parts: vec![
                Part::Text("1 < 2".into()),
                Part::Picture(
                    plot::Figure::new("loss").panel(plot::Panel::new(plot::Axis::linear("y"))),
                ),
                Part::Table(table),
            ],
        });
        page.verdict(&Verdict::Shown("1 < 2; a; b".into()));
        page.folded("config", "a = \"b\"");
        page.text("\u{1b}[31m\u{202e}");
        let html = page.to_html();
        assert!(html.contains("Bits &amp; &lt;blocks&gt;") && html.contains("href=\"#BR-1\""));
        assert!(html.contains("<p>\\u{1b}[31m\\u{202e}</p>"));
        assert!(html.contains("not seen at this scale") && html.contains("&lt;script&gt;"));
        assert!(html.contains("<strong>not seen at this scale</strong>: 0 of 20"));
        assert!(html.contains("<ul><li>1 &lt; 2</li><li>a</li><li>b</li></ul>"));
        assert!(html.contains("<svg") && !html.contains("<script"));
        // Nothing is asked for from elsewhere; the name space of SVG is a name.
        let without = html.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !without.contains("http") && !without.contains("src=") && !without.contains("@import")
        );
    }
}
