//! What probes measured, as lines of `probes.jsonl`.
//!
//! One JSON object for each probe and step it measured after: `step`, `probe`, `value` (the probe's
//! one number, if it has one) and `parts` (numbers and lists by name, of sites, tensors or groups).
//! Numbers that are not finite are left out: JSON has no word for them. The file is written and cut
//! back as `metrics.jsonl` is.

use super::key::Key;
use crate::train::{old, record};
use exmy::error::Result;
use exmy::safetensors::{given, whole};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::Path;

/// One thing measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// Several that belong together, as the channels of a set.
    List(#[serde(serialize_with = "whole_as_such")] Vec<f64>),
}

/// Whole numbers, as channels are, without a point.
fn whole_as_such<S: Serializer>(
    list: &[f64],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    const MOST: f64 = (1_u64 << 53) as f64;
    let is_whole =
        |x: &f64| x.fract() == 0.0 && x.abs() < MOST && (*x != 0.0 || x.is_sign_positive());
    if list.iter().all(is_whole) {
        return serializer.collect_seq(list.iter().map(|x| *x as i64));
    }
    serializer.collect_seq(list)
}

impl Value {
    /// The number, if it is one.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::List(_) => None,
        }
    }

    /// The list, if it is one.
    pub fn list(&self) -> Option<&[f64]> {
        match self {
            Self::Number(_) => None,
            Self::List(list) => Some(list),
        }
    }
}

/// What a probe measures after one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Values {
    /// The probe's one number: what rules of `[[when]]` decide on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<f64>,
    /// Numbers and lists by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub parts: BTreeMap<Key, Value>,
}

impl Values {
    /// Sets the one number; nothing if it is not finite.
    pub fn set(&mut self, value: f64) {
        self.value = value.is_finite().then_some(value);
    }

    /// Notes a number under a name; nothing if it is not finite.
    pub fn part(&mut self, name: impl Into<Key>, value: f64) {
        if value.is_finite() {
            self.parts.insert(name.into(), Value::Number(value));
        }
    }

    /// Notes a list under a name; nothing if one of its numbers is not finite.
    pub fn list(&mut self, name: impl Into<Key>, values: Vec<f64>) {
        if values.iter().all(|value| value.is_finite()) {
            self.parts.insert(name.into(), Value::List(values));
        }
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.value.is_none() && self.parts.is_empty()
    }
}

/// A line of `probes.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Steps done.
    pub step: u64,
    /// The probe's name, also where an earlier version gave it another one.
    #[serde(deserialize_with = "old::name")]
    pub probe: String,
    /// What it measured.
    #[serde(flatten)]
    pub values: Values,
}

/// The bytes of the whole lines up to `step`.
///
/// # Errors
/// If the file cannot be read.
pub(in crate::train) fn lines_up_to(path: &Path, step: u64) -> Result<Vec<u8>> {
    Ok(split(path, Some(step))?.0)
}

/// The bytes of the whole lines up to `step`, and those after it.
fn split(path: &Path, step: Option<u64>) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut text = record::bytes(path)?;
    let mut kept = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let read = serde_json::from_slice::<Line>(line);
        match read {
            Ok(read) if line.ends_with(b"\n") && Some(read.step) <= step => kept += line.len(),
            _ => break,
        }
    }
    let after = text.split_off(kept);
    Ok((text, after))
}

/// `probes.jsonl`, open for appending.
#[derive(Debug)]
pub struct Lines(record::Lines);

impl Lines {
    /// Opens the file at `path` after its lines up to `step`; `None` leaves none. What was cut off is
    /// returned.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path, step: Option<u64>) -> Result<(Self, Vec<u8>)> {
        let (kept, after) = split(path, step)?;
        if !after.is_empty() {
            whole::write_whole(path, &kept)?;
        }
        Ok((Self(record::Lines::append(path)?), after))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, line: &Line) -> Result<()> {
        self.0.push(line)
    }

    /// The digest of the lines so far.
    pub fn digest(&self) -> String {
        self.0.digest()
    }

    /// Makes all lines so far survive a power cut.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn sync(&mut self) -> Result<()> {
        self.0.sync()
    }
}

/// Reads `probes.jsonl`, ignoring a torn last line; there are no lines where there is no file.
///
/// # Errors
/// If the file cannot be read or a whole line is not one of a probe.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    match given::lines(path) {
        Ok(text) => record::parsed(path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(record::unreadable(path, error)),
    }
}
