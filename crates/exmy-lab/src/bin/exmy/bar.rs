//! Progress bars: one on a terminal, none elsewhere.
//!
//! Whatever is printed stands above the bar, and whatever ends the program takes the bar away first. It fills
//! its line, so an echo of Ctrl-C would move the cursor to the next one; [`keys`](crate::keys) turns the echo
//! off.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time between turns of what shows that work goes on.
const TICK: Duration = Duration::from_millis(250);

/// Columns below which a bar leaves no room for numbers.
const NARROW: u16 = 72;

/// Those that are shown.
static SHOWN: Mutex<Vec<WeakProgressBar>> = Mutex::new(Vec::new());

fn shown() -> Vec<ProgressBar> {
    let all = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(WeakProgressBar::upgrade).collect()
}

/// The columns of the terminal.
pub(crate) fn columns() -> u16 {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0)
}

/// Whether the terminal has room for numbers alone.
pub(crate) fn is_narrow() -> bool {
    columns() < NARROW
}

/// Of `length`, as the template says ([`ProgressStyle`]); a narrow terminal has neither the bar in it nor a
/// speed.
pub(crate) fn bar(length: u64, template: &str, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let wide = ["{wide_bar:.cyan/dim} ", "{binary_bytes_per_sec} "];
    let template = match is_narrow() {
        true => wide.iter().fold(template.to_owned(), |text, part| text.replace(part, "")),
        false => template.to_owned(),
    };
    let style = ProgressStyle::with_template(&template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
    if !bar.is_hidden() {
        // A step may take seconds.
        bar.enable_steady_tick(TICK);
        let mut all = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.upgrade().is_some());
        all.push(bar.downgrade());
    }
    bar
}

/// Prints while no bar stands there.
pub(crate) fn aside<T>(print: impl FnOnce() -> T) -> T {
    match &shown()[..] {
        [bar, ..] if !bar.is_finished() => bar.suspend(print),
        _ => print(),
    }
}

/// Takes all away, for good.
pub(crate) fn clear() {
    shown().iter().for_each(ProgressBar::finish_and_clear);
}
