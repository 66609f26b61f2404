//! The header of a safetensors file: which tensors there are and where.
//!
//! A file is the header's length as 8 little-endian bytes, the header as JSON, and the tensors'
//! bytes, of which the header covers every one exactly once
//! (<https://github.com/huggingface/safetensors>, "Format"). [`Header::parse`] checks all of it
//! against the number of bytes there are, so that whoever holds a `Header` can read and allocate
//! by it. The limit of 100 MB is that of the reference implementation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};

use super::fault::{did_you_mean, extents, quoted};
use super::{Dtype, Fault};
use crate::error::{Error, Result};
use crate::shown::printable;
use crate::text::Nearest;

/// Bytes that a header may have.
pub const MAX_HEADER: u64 = 100_000_000;

/// The key of the header that is no tensor.
const METADATA: &str = "__metadata__";

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, unique in the file.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extent along each axis; none for a single number. Row-major ("C order").
    pub shape: Vec<usize>,
    /// Where its bytes are, counted from the end of the header.
    pub range: Range<u64>,
}

impl Entry {
    /// Number of elements.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// let tensors = [Outline::new("one", Dtype::F32, []), Outline::new("none", Dtype::F32, [3, 0])];
    /// let header = Header::lay_out(&tensors, Default::default())?;
    /// assert_eq!(header.get("one")?.count(), 1); // no axes: a single number
    /// assert_eq!(header.get("none")?.count(), 0);
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Number of bytes.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// let tensors = [Outline::new("w", Dtype::F6E3M2, [2, 4])];
    /// let header = Header::lay_out(&tensors, Default::default())?;
    /// assert_eq!(header.get("w")?.bytes(), 6); // 8 elements of 6 bits
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// A tensor that is to be written: everything but its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its name, unique in the file.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extent along each axis.
    pub shape: Vec<usize>,
}

impl Outline {
    /// A tensor of this name, type and shape.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// // Any text is a name, but for the key of the metadata.
    /// let odd = [Outline::new("", Dtype::U8, [1]), Outline::new("a \"b\"\n", Dtype::U8, [1])];
    /// assert!(Header::lay_out(&odd, Default::default()).is_ok());
    /// let taken = [Outline::new("__metadata__", Dtype::U8, [1])];
    /// assert!(Header::lay_out(&taken, Default::default()).is_err());
    /// ```
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: impl Into<Vec<usize>>) -> Self {
        Self { name: name.into(), dtype, shape: shape.into() }
    }
}

/// The tensors of a file, in the order of their bytes, and its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    entries: Vec<Entry>,
    metadata: BTreeMap<String, String>,
    places: HashMap<String, usize>,
}

impl Header {
    /// Reads the JSON text of a header, behind which there are `data` bytes.
    ///
    /// # Errors
    /// If it is no header, or does not describe these bytes; the error names the tensor.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header};
    ///
    /// let text = br#"{"w":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]}}  "#;
    /// let header = Header::parse(text, 2)?;
    /// assert_eq!(header.get("w")?.dtype, Dtype::F4);
    /// let error = Header::parse(text, 3).unwrap_err().to_string(); // a byte of no tensor
    /// assert!(error.contains("describes 2 bytes"), "{error}");
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn parse(text: &[u8], data: u64) -> Result<Self> {
        let text = std::str::from_utf8(text)
            .map_err(|error| Fault::damaged(format!("the header is not UTF-8: {error}")))?;
        if !text.starts_with('{') {
            return Err(Fault::damaged("the header does not begin with `{`")
                .hint("a safetensors file has a JSON object behind its first 8 bytes"));
        }
        let Parsed { tensors, metadata } =
            serde_json::from_str(text).map_err(|error: serde_json::Error| {
                let error = printable(&error.to_string()).to_string();
                Fault::damaged(format!("the header is no list of tensors: {error}"))
            })?;
        let mut entries = Vec::new();
        for (name, raw) in tensors {
            entries.push(raw.check(name, data)?);
        }
        entries.sort_by_key(|entry| (entry.range.start, entry.range.end));
        let mut end = 0;
        for entry in &entries {
            if entry.range.start != end {
                let what = if entry.range.start > end { "a gap before" } else { "an overlap at" };
                return Err(Fault::damaged(format!(
                    "there is {what} tensor {}, which begins at byte {} where byte {end} is due",
                    quoted(&entry.name),
                    entry.range.start
                )));
            }
            end = entry.range.end;
        }
        if end != data {
            return Err(Fault::damaged(format!(
                "the header describes {end} bytes of tensors, and there are {data}"
            ))
            .hint("the file was cut off, or something was appended to it"));
        }
        Ok(Self::indexed(entries, metadata))
    }

    /// Lays out tensors that are to be written, as the reference implementation does. Those of the
    /// widest elements come first, so that each is aligned for its type; equals are ordered by
    /// name.
    ///
    /// # Errors
    /// If a name occurs twice or is `__metadata__`, a tensor's bits are no whole number of bytes,
    /// or the header would be too long.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// let tensors = [Outline::new("a", Dtype::F4, [3]), Outline::new("b", Dtype::F32, [])];
    /// let error = Header::lay_out(&tensors, Default::default()).unwrap_err().to_string();
    /// assert!(error.contains("12 bits"), "{error}");
    /// let header = Header::lay_out(&tensors[1..], Default::default())?;
    /// assert_eq!(header.get("b")?.range, 0..4);
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn lay_out(tensors: &[Outline], metadata: BTreeMap<String, String>) -> Result<Self> {
        let mut sorted: Vec<&Outline> = tensors.iter().collect();
        sorted.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(&b.name)));
        let mut entries: Vec<Entry> = Vec::new();
        let mut names = BTreeSet::new();
        let mut end = 0_u64;
        for Outline { name, dtype, shape } in sorted {
            let tensor = quoted(name);
            if name == METADATA {
                return Err(Error::new(format!("a tensor cannot be called {tensor}")));
            }
            if !names.insert(name) {
                return Err(Error::new(format!("two tensors would be called {tensor}")));
            }
            let bytes = size(*dtype, shape).map_err(|why| {
                Error::new(format!("tensor {tensor}, {dtype} of shape {}, {why}", extents(shape)))
            })?;
            let too_large = || Error::new(format!("the file is too large at tensor {tensor}"));
            let range = end..end.checked_add(bytes).ok_or_else(too_large)?;
            end = range.end;
            entries.push(Entry { name: name.clone(), dtype: *dtype, shape: shape.clone(), range });
        }
        let header = Self::indexed(entries, metadata);
        let bytes = header.to_bytes().len() as u64 - 8;
        if bytes > MAX_HEADER {
            return Err(Error::new(format!(
                "the header would have {bytes} bytes; the format allows {MAX_HEADER}"
            )));
        }
        Ok(header)
    }

    fn indexed(entries: Vec<Entry>, metadata: BTreeMap<String, String>) -> Self {
        let places = entries.iter().enumerate().map(|(i, entry)| (entry.name.clone(), i)).collect();
        Self { entries, metadata, places }
    }

    /// The tensors, in the order of their bytes.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// let tensors = ["b", "a", "c"].map(|name| Outline::new(name, Dtype::U8, [1]));
    /// let wide = Outline::new("z", Dtype::F32, [1]);
    /// let header = Header::lay_out(&[&tensors[..], &[wide]].concat(), Default::default())?;
    /// let names: Vec<_> = header.entries().iter().map(|entry| &*entry.name).collect();
    /// assert_eq!(names, ["z", "a", "b", "c"]); // the widest elements first, then by name
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What else the file says of itself.
    ///
    /// ```
    /// use exmy::safetensors::Header;
    ///
    /// let text = br#"{"__metadata__":{"format":"pt"}}"#;
    /// assert_eq!(Header::parse(text, 0)?.metadata()["format"], "pt");
    /// assert!(Header::parse(br#"{"__metadata__":{"step":1}}"#, 0).is_err()); // texts only
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The tensor `name`, if there is one.
    ///
    /// ```
    /// use exmy::safetensors::Header;
    ///
    /// let header = Header::parse(b"{}", 0)?;
    /// assert_eq!(header.find("w"), None);
    /// assert_eq!(header.find("__metadata__"), None); // no tensor
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.places.get(name).map(|&place| &self.entries[place])
    }

    /// The tensor `name`.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// let tensors = [Outline::new("head.weight", Dtype::F32, [1])];
    /// let header = Header::lay_out(&tensors, Default::default())?;
    /// let error = header.get("head.wieght").unwrap_err().to_string();
    /// assert!(error.contains("did you mean \"head.weight\"?"), "{error}");
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is none; the error has the nearest names.
    pub fn get(&self, name: &str) -> Result<&Entry> {
        self.find(name).ok_or_else(|| {
            let nearest = Nearest::new(name, self.entries.iter().map(|entry| &*entry.name));
            let error = Error::from(Fault::NoTensor { name: name.to_owned() });
            match nearest.names() {
                [] => error,
                _ => error.hint(did_you_mean(&nearest)),
            }
        })
    }

    /// Number of bytes behind the header.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Header, Outline};
    ///
    /// let tensors = [Outline::new("a", Dtype::F4, [4]), Outline::new("b", Dtype::F32, [0])];
    /// assert_eq!(Header::lay_out(&tensors, Default::default())?.data_bytes(), 2);
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn data_bytes(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.range.end)
    }

    /// The beginning of the file: length and JSON text, with spaces up to a multiple of 8.
    ///
    /// ```
    /// use exmy::safetensors::Header;
    ///
    /// let bytes = Header::parse(b"{}", 0)?.to_bytes();
    /// assert_eq!(bytes, *b"\x08\0\0\0\0\0\0\0{}      "); // the length counts the spaces
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::from("{");
        let json = |text: &str| serde_json::Value::from(text).to_string();
        if !self.metadata.is_empty() {
            let pairs = self.metadata.iter().map(|(key, value)| json(key) + ":" + &json(value));
            let pairs: Vec<String> = pairs.collect();
            text += &format!("\"{METADATA}\":{{{}}}", pairs.join(","));
        }
        for Entry { name, dtype, shape, range } in &self.entries {
            let comma = if text.len() > 1 { "," } else { "" };
            let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{comma}{}:{{\"dtype\":\"{dtype}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                json(name),
                shape.join(","),
                range.start,
                range.end
            );
        }
        text.push('}');
        let padded = text.len().next_multiple_of(8);
        let mut bytes = (padded as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(8 + padded, b' ');
        bytes
    }
}

/// Bytes of a tensor, or what is wrong with it.
fn size(dtype: Dtype, shape: &[usize]) -> Result<u64, String> {
    // Also of a tensor without elements: the axes other than the one of length 0 are multiplied too.
    let product = shape.iter().try_fold(1_u64, |n, &d| n.checked_mul(d.max(1) as u64));
    let count = product.filter(|&count| count.checked_mul(64).is_some());
    let count = count.ok_or("has more elements than can be counted")?;
    let count = if shape.contains(&0) { 0 } else { count };
    dtype.bytes(count).ok_or_else(|| {
        let bits = count * u64::from(dtype.bits());
        format!("has {bits} bits: no whole number of bytes")
    })
}

/// What the JSON text says, unchecked.
struct Parsed {
    tensors: Vec<(String, Raw)>,
    metadata: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(expecting = "what a tensor has: an object with dtype, shape and data_offsets")]
struct Raw {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl Raw {
    fn check(self, name: String, data: u64) -> Result<Entry> {
        let tensor = quoted(&name);
        let dtype: Dtype = self.dtype.parse().map_err(|error: crate::text::UnknownName| {
            Fault::damaged(format!("tensor {tensor}: {error}"))
        })?;
        let shape = self.shape.iter().map(|&extent| usize::try_from(extent).ok());
        let shape: Option<Vec<usize>> = shape.collect();
        let wrong = |why: String| {
            let shape = extents(&self.shape);
            Fault::damaged(format!("tensor {tensor}, {dtype} of shape {shape}, {why}"))
        };
        let shape = shape.ok_or_else(|| wrong("has more elements than can be counted".into()))?;
        let needed = size(dtype, &shape).map_err(wrong)?;
        let [start, end] = self.data_offsets;
        if start > end {
            return Err(wrong(format!("ends at byte {end}, before it begins at {start}")));
        }
        if end > data {
            return Err(wrong(format!(
                "ends at byte {end}, and there are {data} bytes behind the header"
            ))
            .hint("the file was cut off, or its header is damaged"));
        }
        if end - start != needed {
            return Err(wrong(format!("takes {needed} bytes, not the {} it has", end - start)));
        }
        Ok(Entry { name, dtype, shape, range: start..end })
    }
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Parsed;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let (mut tensors, mut metadata) = (Vec::new(), None);
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format!("{} stands there twice", quoted(&name))));
            }
            if name == METADATA {
                metadata = Some(map.next_value_seed(Texts)?);
                continue;
            }
            // The name is worth more than the position that serde_json adds.
            let raw = map
                .next_value::<Raw>()
                .map_err(|error| A::Error::custom(format!("tensor {}: {error}", quoted(&name))))?;
            tensors.push((name, raw));
        }
        Ok(Parsed { tensors, metadata: metadata.unwrap_or_default() })
    }
}

/// The object of texts below `__metadata__`.
struct Texts;

impl<'de> DeserializeSeed<'de> for Texts {
    type Value = BTreeMap<String, String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Texts {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of texts below __metadata__")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some((key, text)) = map.next_entry::<String, String>()? {
            if texts.contains_key(&key) {
                let key = quoted(&key);
                return Err(A::Error::custom(format!("{key} stands twice in __metadata__")));
            }
            texts.insert(key, text);
        }
        Ok(texts)
    }
}
