//! What stands where a file is to be written: only what is of the same making is replaced.
//!
//! Names as `loss.svg` are taken by others as well, and what they hold may have taken a night.

use exmy::error::{Error, Result};
use exmy::safetensors::given;
use std::io::Read;
use std::path::Path;

/// The beginning of a file, where it says what it is; `None` where no plain file is.
fn beginning(path: &Path) -> Result<Option<String>> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = given::open(path).and_then(|file| file.take(1 << 12).read_to_end(&mut bytes));
    read.map_err(|error| Error::io("read", path, error))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// What a file is not that its replacement would be, in words; `None` where nothing would be lost. A file is
/// of the same making if its beginning is.
///
/// # Errors
/// If it cannot be read.
pub fn lost(
    path: &Path,
    is_own: fn(&str) -> bool,
    what: &'static str,
) -> Result<Option<&'static str>> {
    let found = beginning(path)?.filter(|found| !found.is_empty());
    Ok(found.filter(|found| !is_own(found)).map(|_| what))
}

/// As [`lost`], of a picture.
///
/// # Errors
/// As [`lost`].
pub fn lost_picture(path: &Path) -> Result<Option<&'static str>> {
    lost(path, is_picture, "is no picture of exmy")
}

/// Whether a picture is one of this crate.
fn is_picture(svg: &str) -> bool {
    let tag = svg.split('>').next().unwrap_or_default();
    tag.starts_with("<svg ") && tag.contains("class=\"exmy\"")
}
