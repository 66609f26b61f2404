//! What a file says of its quantized tensors, in its metadata: the keys are listed at [`Record`].

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fault::{extents, quoted};
use super::values::damaged;
use super::{Dtype, Fault, FileLayout, Header, Outline};
use crate::error::Result;
use crate::quantizer::{Quantizer, Target};
use crate::shown::printable;
use crate::text::old;

pub(super) const FORMAT: &str = "exmy.format";
pub(super) const TENSORS: &str = "exmy.tensors";
const BITS_KEY: &str = "exmy.bits";

/// The value of `exmy.bits`. The format itself does not say it.
pub const BITS: &str = "little-endian stream: code i of width w is bits i*w to (i+1)*w-1, \
                        bit j is bit j%8 of byte j/8";

/// One quantized tensor: what it was and what was made of it. A file says so in its metadata:
///
/// * `exmy.format`: the textual form of the format or block format, of the whole quantizer where it rotates
///   (decoded values stay rotated); of several, separated by `, `.
/// * `exmy.bits`: how codes lie in bytes, [`BITS`].
/// * `exmy.tensors`, JSON: name to [`Record`], as `{"format":"mxfp4","axis":1,"shape":[4,64],"dtype":"BF16",
///   "layout":"safetensors"}`, and `quantizer` and `seed` where they say more.
///
/// OCP's E4M3 is written `e4m3fn`, the IEEE-like format `e4m3-ieee`: a bare `e4m3` was written by an earlier
/// version and is the IEEE-like one.
///
/// From it and the rules of its [`FileLayout`] all tensors of the file follow, so that reading them
/// back guesses nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How it was quantized; the target is a format or a block format.
    pub quantizer: Quantizer,
    /// The axis along which blocks lie.
    pub axis: usize,
    /// Its shape before.
    pub shape: Vec<usize>,
    /// The type of its elements before.
    pub dtype: Dtype,
    /// How codes and scales are stored.
    pub layout: FileLayout,
    /// The seed of its random bits, if there were any.
    pub seed: Option<u64>,
}

#[derive(Deserialize)]
struct Raw {
    format: String,
    axis: usize,
    shape: Vec<usize>,
    dtype: String,
    layout: String,
    quantizer: Option<String>,
    seed: Option<u64>,
}

impl Record {
    /// Number of elements.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, FileLayout, Record};
    ///
    /// let record = Record {
    ///     quantizer: "mxfp4".parse().unwrap(),
    ///     axis: 1,
    ///     shape: vec![3, 33],
    ///     dtype: Dtype::F32,
    ///     layout: FileLayout::Torch,
    ///     seed: None,
    /// };
    /// assert_eq!(record.count(), 99); // elements, not the bytes or codes with their padding
    /// ```
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The format or block format.
    pub fn target(&self) -> Target {
        self.quantizer.target
    }

    /// What the codes mean, as text: the target, and all of the quantizer where it rotated.
    fn label(&self) -> String {
        old::explicit(&match self.quantizer.rotation {
            Some(_) => self.quantizer.to_string(),
            None => self.target().to_string(),
        })
    }

    fn to_json(&self) -> serde_json::Value {
        let format = old::explicit(&self.target().to_string());
        let quantizer = old::explicit(&self.quantizer.to_string());
        let mut value = serde_json::json!({
            "format": format,
            "axis": self.axis,
            "shape": self.shape,
            "dtype": self.dtype.name(),
            "layout": self.layout.to_string(),
        });
        if quantizer != format {
            value["quantizer"] = quantizer.into();
        }
        if let Some(seed) = self.seed {
            value["seed"] = seed.into();
        }
        value
    }

    fn checked(name: &str, raw: Raw) -> Result<Self> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| {
            Fault::damaged(format!("{TENSORS} says of {}: {what}: {error}", quoted(name)))
        };
        let text = raw.quantizer.as_deref().unwrap_or(&raw.format);
        let quantizer: Quantizer =
            old::modern(text).parse().map_err(|error| wrong("format", &error))?;
        let is_said =
            || old::former(&quantizer.target.to_string()) == old::former(&old::modern(&raw.format));
        if quantizer.target == Target::None || !is_said() {
            return Err(wrong("format", &format!("{:?} is not that of {text:?}", raw.format)));
        }
        let dtype: Dtype = raw.dtype.parse().map_err(|error| wrong("dtype", &error))?;
        if !dtype.is_wide_float() {
            let what = format!("{dtype}, and only F16, BF16, F32 and F64 are quantized");
            return Err(wrong("dtype", &what));
        }
        let layout = raw.layout.parse().map_err(|error| wrong("layout", &error))?;
        if raw.axis >= raw.shape.len().max(1) {
            return Err(wrong("axis", &format!("{} of {} axes", raw.axis, raw.shape.len())));
        }
        // All that is computed from a shape later has at most 64 bits and a scale an element.
        let mut axes = raw.shape.iter();
        if axes.try_fold(1_usize, |n, &d| n.checked_mul(d.max(1))).is_none_or(|n| n >> 55 != 0) {
            return Err(wrong("shape", &format!("{} has too many elements", extents(&raw.shape))));
        }
        let (axis, shape, seed) = (raw.axis, raw.shape, raw.seed);
        let record = Self { quantizer, axis, shape, dtype, layout, seed };
        let (rows, cols, way) = record.fold().matrix();
        let fits = quantizer.check_size(rows, cols, way);
        fits.map_err(|error| wrong("shape", &error))?;
        if quantizer.rotation.is_some() && !matches!(quantizer.target, Target::Block(_)) {
            return Err(wrong("format", &format!("{quantizer} rotates before a plain format")));
        }
        // What no layout holds has no parts either.
        record.parts(name).map_err(|error| wrong("layout", &error.without_hint()))?;
        Ok(record)
    }
}

impl Header {
    /// The quantized tensors of a file that this crate wrote, by name; none of any other file.
    ///
    /// ```
    /// use exmy::safetensors::Header;
    ///
    /// assert!(Header::parse(b"{}", 0)?.records()?.is_empty());
    /// let text = br#"{"__metadata__":{"exmy.tensors":"[]"}}"#;
    /// let error = Header::parse(text, 0)?.records().unwrap_err().to_string();
    /// assert!(error.contains("exmy.tensors"), "{error}");
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the metadata has the keys and cannot be understood, or tensors are not there as it says.
    pub fn records(&self) -> Result<BTreeMap<String, Record>> {
        let Some(text) = self.metadata().get(TENSORS) else { return Ok(BTreeMap::new()) };
        self.described(text).map_err(|error| {
            error.hint(format!(
                "make the file again from the one that was quantized; without {TENSORS} in its \
                 metadata its tensors are read as they are stored"
            ))
        })
    }

    /// What the metadata says, held against the tensors there are.
    fn described(&self, text: &str) -> Result<BTreeMap<String, Record>> {
        let raw: BTreeMap<String, Raw> = serde_json::from_str(text).map_err(|error| {
            Fault::damaged(format!("cannot read {TENSORS}: {}", printable(&error.to_string())))
        })?;
        let checked =
            |(name, raw): (String, Raw)| Record::checked(&name, raw).map(|record| (name, record));
        let records = raw.into_iter().map(checked).collect::<Result<BTreeMap<_, _>>>()?;
        let mut owners = BTreeMap::new();
        for (name, record) in &records {
            for part in record.parts(name)?.iter() {
                self.check(name, part)?;
                if let Some(owner) = owners.insert(part.name.clone(), name) {
                    let (part, owner) = (quoted(&part.name), quoted(owner));
                    return Err(damaged(name, format!("{part} belongs to {owner}")));
                }
            }
        }
        Ok(records)
    }

    /// Refuses a part of tensor `name` that is not as its record says.
    fn check(&self, name: &str, part: &Outline) -> Result<()> {
        let found = self.find(&part.name);
        if found.is_some_and(|e| e.dtype == part.dtype && e.shape == part.shape) {
            return Ok(());
        }
        let found = found.map(|e| format!("{} of shape {}", e.dtype, extents(&e.shape)));
        let (wanted, dtype, shape) = (quoted(&part.name), part.dtype, &part.shape);
        let found = found.as_deref().unwrap_or("none");
        let what = format!("{wanted} must be {dtype} of shape {}, found {found}", extents(shape));
        Err(damaged(name, what))
    }
}

/// Puts records into a file's metadata, or takes the keys out if there are none.
pub(super) fn describe(
    metadata: &mut BTreeMap<String, String>,
    records: &BTreeMap<String, Record>,
) {
    for key in [FORMAT, TENSORS, BITS_KEY] {
        metadata.remove(key);
    }
    if records.is_empty() {
        return;
    }
    let mut formats: Vec<String> = records.values().map(Record::label).collect();
    formats.sort_unstable();
    formats.dedup();
    let tensors: serde_json::Map<_, _> =
        records.iter().map(|(name, record)| (name.clone(), record.to_json())).collect();
    metadata.insert(FORMAT.into(), formats.join(", "));
    metadata.insert(TENSORS.into(), serde_json::Value::Object(tensors).to_string());
    metadata.insert(BITS_KEY.into(), BITS.into());
}
