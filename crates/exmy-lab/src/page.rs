//! A report as one HTML page that stands alone: the answer, pictures, tables and sentences, readable offline
//! on a phone, on a desktop and on paper.
//!
//! Nothing is asked for from elsewhere, which the page's own policy forbids; links lead to papers, to files
//! beside the page and within it. A script of the page's own shows values under the pointer, and without it
//! everything is there to read. Wide tables scroll inside their frame, so the page never does; colours follow
//! the reader's dark mode, as those of the [pictures](crate::plot) do.

use crate::amounts::grouped;
use crate::finding::{Part, Table, Verdict};
use crate::plot;
use exmy::shown::printable_lines;
use std::fmt::Write;

/// Colours and measures.
#[doc(hidden)]
pub const STYLE: &str = include_str!("page/page.css");
/// Values under the pointer, zoom, lines that can be hidden, sortable tables: everything that the page shows
/// stands there without it.
#[doc(hidden)]
pub const SCRIPT: &str = include_str!("page/page.js");
/// What a page may ask for: nothing from elsewhere. Who serves it may let it ask the place it came from.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";
/// The most rows of the numbers of a picture that stand in the page itself.
const ROWS: usize = 200;

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    let text = printable_lines(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text as HTML shows it, in which papers of arXiv are links.
fn linked(text: &str) -> String {
    let mut out = String::new();
    let text = grouped(&escape(text));
    let mut rest = text.as_str();
    while let Some(at) = rest.find("arXiv") {
        let (before, found) = rest.split_at(at);
        let number = found["arXiv".len()..].trim_start_matches([':', ' ']);
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let end = number.find(|c| !is_part(c)).unwrap_or(number.len());
        let name = number[..end].trim_end_matches('.');
        let shown = &found[..found.len() - number.len() + name.len()];
        out += before;
        match name.split_once('.') {
            Some((year, paper)) if year.len() == 4 && paper.len() >= 4 => {
                let _ = write!(out, "<a href=\"https://arxiv.org/abs/{name}\">{shown}</a>");
            }
            _ => out += shown,
        }
        rest = &found[shown.len()..];
    }
    out + rest
}

/// Text as the address of a file that the page itself holds.
fn data_address(text: &str) -> String {
    let mut out = "data:text/csv;charset=utf-8,".to_owned();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b',' | b':' => {
                out.push(char::from(byte));
            }
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Where the numbers of a picture or table are to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Download<'a> {
    /// In the page itself, to be saved under this name, without ending.
    Embedded(&'a str),
    /// In a file next to the page, whose path this is without ending: a table in `.csv`, a picture in `.svg`
    /// and its numbers in `-values.csv`.
    File(&'a str),
}

/// A link to a file that the page itself holds.
fn saved(name: &str, address: &str) -> String {
    format!("<a download=\"{}\" href=\"{address}\">CSV</a>", escape(name))
}

/// A link to a file beside the page.
fn beside(path: &str, ending: &str) -> String {
    format!("<a href=\"{}.{ending}\">{}</a>", escape(path), ending.to_uppercase())
}

/// A page that is being written.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    maker: &'static str,
    answer: String,
    contents: String,
    body: String,
    /// Pictures and tables that stand next to each other as far as there is room.
    cells: Vec<Cell>,
}

/// A picture or table.
#[derive(Clone, Debug)]
struct Cell {
    /// Attributes of its element, each with a space before it.
    attributes: String,
    /// Whether it takes a whole row.
    wide: bool,
    html: String,
}

/// How a word for a verdict is coloured.
fn badge(verdict: &Verdict) -> String {
    let class = match verdict {
        Verdict::Reproduced(_) | Verdict::Holds(_) => "reproduced",
        Verdict::NotSeen(_) | Verdict::Untested(_) => "not-seen",
        Verdict::Contradicted(_) | Verdict::Fails(_) => "contradicted",
        Verdict::Shown(_) | Verdict::NotRun(_) => "shown",
    };
    format!("<span class=\"badge {class}\">{}</span>", verdict.word())
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Self {
        let (answer, contents, body) = (String::new(), String::new(), String::new());
        Self { title: title.to_owned(), maker: "", answer, contents, body, cells: Vec::new() }
    }

    /// The same, whose head says what made it.
    pub(crate) fn made_by(self, maker: &'static str) -> Self {
        Self { maker, ..self }
    }

    /// Says what the page comes to, in a sentence or two, above everything else.
    pub fn answer(&mut self, text: &str) {
        if !text.is_empty() {
            self.answer = format!("<p class=\"answer\">{}</p>\n", grouped(&escape(text)));
        }
    }

    /// Adds a heading that the contents lead to, with a remark there.
    pub fn heading(&mut self, id: &str, title: &str, remark: &str) {
        let remark = match remark {
            "" => String::new(),
            remark => format!(" <span class=\"soft\">{}</span>", escape(remark)),
        };
        self.headed(id, title, &remark);
    }

    /// Adds a heading that the contents lead to, with the verdict there.
    pub fn heading_of(&mut self, id: &str, title: &str, verdict: &Verdict) {
        self.headed(id, title, &format!(" {}", badge(verdict)));
    }

    fn headed(&mut self, id: &str, title: &str, remark: &str) {
        self.close();
        self.up();
        let (id, title) = (escape(id), escape(title));
        let _ = writeln!(self.body, "{}{title}</h2>", Self::anchor(&id));
        let _ = writeln!(self.contents, "<li><a href=\"#{id}\">{title}</a>{remark}</li>");
    }

    /// Ends a section, if one was begun.
    fn up(&mut self) {
        if !self.contents.is_empty() {
            self.body.push_str("<p class=\"up\"><a href=\"#top\">back to the top</a></p>\n");
        }
    }

    /// Adds a picture or table, next to the one before it where there is room.
    fn cell(&mut self, id: &str, wide: bool, html: String) {
        let attributes = if id.is_empty() { String::new() } else { format!(" id=\"{id}\"") };
        self.cells.push(Cell { attributes, wide, html });
    }

    /// Ends the pictures and tables that stand next to each other. What is left alone in a row takes all of
    /// it.
    fn close(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        if cells.is_empty() {
            return;
        }
        self.body.push_str("<div class=\"grid\">\n");
        let mut before = 0;
        for (i, Cell { attributes, wide, html }) in cells.iter().enumerate() {
            before = if *wide { 0 } else { before + 1 };
            let is_last = cells.get(i + 1).is_none_or(|next| next.wide);
            let class = match (wide, before % 2 == 1 && is_last) {
                (true, _) => " class=\"all\"",
                (false, true) => " class=\"alone\"",
                (false, false) => "",
            };
            let _ = writeln!(self.body, "<figure{attributes}{class}>{html}</figure>");
        }
        self.body.push_str("</div>\n");
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        self.close();
        let _ = writeln!(self.body, "<p>{}</p>", linked(text));
    }

    /// Adds a paragraph in a quieter voice.
    pub fn soft(&mut self, text: &str) {
        self.close();
        let _ = writeln!(self.body, "<p class=\"soft\">{}</p>", linked(text));
    }

    /// Adds a paragraph of links: where each leads, and its words.
    pub fn links(&mut self, links: &[(String, String)]) {
        self.close();
        let link = |(to, words): &(String, String)| {
            format!("<a href=\"{}\">{}</a>", escape(to), escape(words))
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let _ = writeln!(self.body, "<p class=\"soft\">{}</p>", links.join(" · "));
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table, download: Download<'_>) {
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
            let class = |j: usize, cell: &str| match (words.get(j), cell.chars().count() > 60) {
                (Some(true), true) => " class=\"w long\"",
                (Some(true), false) => " class=\"w\"",
                _ => "",
            };
            let cell = |(j, cell): (usize, &String)| {
                // A head without words is none.
                let tag = if cell.is_empty() { "td" } else { tag };
                let scope = if tag == "th" { " scope=\"col\"" } else { "" };
                format!("<{tag}{scope}{}>{}</{tag}>", class(j, cell), grouped(&escape(cell)))
            };
            cells.iter().enumerate().map(cell).collect()
        };
        let is_wide =
            table.header.len() > 6 || table.rows.iter().any(|row| row.iter().any(|c| c.len() > 60));
        let caption = escape(&table.caption);
        let csv = match download {
            Download::Embedded(name) => saved(&format!("{name}.csv"), &data_address(&table.csv())),
            Download::File(path) => beside(path, "csv"),
        };
        let mut html = format!(
            "<figcaption>{caption} {csv}</figcaption><div class=\"wide\" tabindex=\"0\" \
             role=\"group\" aria-label=\"{caption}\"><table>\n"
        );
        let _ = writeln!(html, "<thead><tr>{}</tr></thead><tbody>", cells(&table.header, "th"));
        for row in &table.rows {
            let _ = writeln!(html, "<tr>{}</tr>", cells(row, "td"));
        }
        self.cell("", is_wide, html + "</tbody></table></div>");
    }

    /// Adds a picture as it stands.
    pub fn picture(&mut self, svg: &str) {
        self.cell("", false, svg.to_owned());
    }

    /// Adds a picture with its numbers.
    pub fn figure(&mut self, figure: &plot::Figure, download: Download<'_>) {
        self.figure_at("", figure, download);
    }

    /// The same, which the contents lead to.
    pub fn figure_of(&mut self, id: &str, figure: &plot::Figure, download: Download<'_>) {
        let (id, title) = (escape(id), escape(figure.title()));
        let _ = writeln!(self.contents, "<li><a href=\"#{id}\">{title}</a></li>");
        self.figure_at(&id, figure, download);
    }

    fn figure_at(&mut self, id: &str, figure: &plot::Figure, download: Download<'_>) {
        let links = match download {
            Download::Embedded(name) => {
                saved(&format!("{name}.csv"), &data_address(&figure.to_csv(ROWS)))
            }
            Download::File(path) => {
                beside(&format!("{path}-values"), "csv") + " · " + &beside(path, "svg")
            }
        };
        let svg = figure.to_svg();
        self.cell(id, false, format!("{}<figcaption>{links}</figcaption>", svg.trim_end()));
    }

    /// Adds text as it stands, folded away under a summary. On paper it is there, unless it is folded twice.
    pub fn folded(&mut self, summary: &str, text: &str) {
        self.close();
        let (summary, text) = (escape(summary), escape(text));
        let _ = writeln!(
            self.body,
            "<details><summary>{summary}</summary><pre tabindex=\"0\">{text}</pre></details>"
        );
    }

    /// Adds what `part` adds, folded away under a summary.
    pub fn folded_part(&mut self, summary: &str, part: impl FnOnce(&mut Self)) {
        self.close();
        let _ = writeln!(self.body, "<details><summary>{}</summary>", escape(summary));
        part(self);
        self.close();
        self.body.push_str("</details>\n");
    }

    /// Adds what a figure says about its claim, and about each part of it.
    pub fn verdict(&mut self, verdict: &Verdict, parts: &[Verdict]) {
        self.close();
        let item = |one: &Verdict| format!("<li>{} {}</li>", badge(one), linked(one.reason()));
        let _ = match parts {
            [] | [_] => {
                writeln!(self.body, "<p>{} {}</p>", badge(verdict), linked(verdict.reason()))
            }
            parts => {
                let items: String = parts.iter().map(item).collect();
                let sentence = Verdict::summary(parts);
                writeln!(
                    self.body,
                    "<p>{} {sentence}</p><ul class=\"parts\">{items}</ul>",
                    badge(verdict)
                )
            }
        };
    }

    /// Adds what a figure shows, with files that are called `stem`, a dash and a number.
    pub fn parts(&mut self, parts: &[Part], stem: &str) {
        let (mut pictures, mut tables) = (0, 0);
        for part in parts {
            match part {
                Part::Text(text) => self.text(text),
                Part::Picture(figure) => {
                    pictures += 1;
                    self.figure(figure, Download::File(&format!("figures/{stem}-{pictures}")));
                }
                Part::Table(table) => {
                    tables += 1;
                    self.table(table, Download::File(&format!("tables/{stem}-{tables}")));
                }
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
        let end = {
            let mut end = Self { body: String::new(), ..self.clone() };
            end.close();
            end.up();
            end.body
        };
        let Self { answer, contents, body, .. } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             {mark}{tag}<style>{STYLE}</style></head>\n<body id=\"top\"><main><h1>{title}</h1>\n\
             {answer}<nav aria-label=\"contents\"><ul>\n{contents}</ul></nav>\n{body}{end}</main>\n\
             <script>{SCRIPT}</script></body></html>\n"
        )
    }
}
