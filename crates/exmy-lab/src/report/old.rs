//! What earlier versions wrote in place of a manifest of a page: they said by their text what they are.

use crate::finding::Paper;
use crate::overview;
use crate::page::Page;
use crate::runner;
use crate::study_scale::StudyScale;

/// What a page without a manifest shows, if it is of a study.
pub(super) fn page(paper: &Paper, html: &str) -> Option<runner::Page> {
    // A person may give an overview any heading.
    if !html.contains(&Page::tag(paper.title)) || overview::is_page(html) {
        return None;
    }
    let ids = paper.figures.iter().map(|figure| figure.id());
    let figures = ids.filter(|id| html.contains(&Page::anchor(id))).map(str::to_owned);
    let says = |scale: &StudyScale| html.contains(&format!(", scale {scale}.</p>"));
    let scale = StudyScale::ALL.into_iter().find(says);
    Some(runner::Page { study: paper.name.to_owned(), scale, figures: figures.collect() })
}
