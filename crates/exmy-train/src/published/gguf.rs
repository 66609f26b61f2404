//! The table of contents of a GGUF file: metadata and tensors.
//!
//! The format is that of ggml's `docs/gguf.md` (<https://github.com/ggml-org/ggml>), versions 2 and 3,
//! little-endian: keys with values, then names, extents, types and places of tensors, then their bytes, each
//! tensor's aligned. [`Gguf::parse`] checks every claim against the bytes there are before anything is
//! allocated by it; what it holds is at most a few times as large as the part of the file that says so.

pub mod blocks;

use std::collections::BTreeMap;
use std::ops::Range;

use blocks::Type;
use exmy::error::{Error, Result};
use exmy::safetensors::quoted;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// A whole number of any width.
    Integer(i128),
    /// f32 or f64.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Numbers of one kind, truth values among them.
    Numbers(Vec<f64>),
}

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// How its elements are stored.
    pub dtype: Type,
    /// Its extents, row-major: the last is the one along which elements are neighbours.
    pub shape: Vec<usize>,
    /// Its bytes in the file.
    pub range: Range<usize>,
}

/// What a GGUF file says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gguf {
    metadata: BTreeMap<String, MetadataValue>,
    tensors: BTreeMap<String, Tensor>,
}

/// The first bytes of a file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// Extents that a tensor may have, as ggml's `GGML_MAX_DIMS`.
const AXES: u32 = 4;

impl Gguf {
    /// Reads the beginning of a file, all of whose bytes are given.
    ///
    /// # Errors
    /// If it is no whole GGUF file of these versions.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let mut left = Cursor { file, at: 0 };
        if left.take(4, "the magic")? != MAGIC {
            return Err(Error::new("it does not begin with `GGUF`"));
        }
        let version = left.u32("the version")?;
        if !(2..=3).contains(&version) {
            return Err(Error::new(format!("its version is {version}; 2 and 3 are read")).hint(
                "a big-endian file looks like version 33554432 or 50331648: convert it anew",
            ));
        }
        let tensors = left.u64("the number of tensors")?;
        let keys = left.u64("the number of keys")?;
        let mut metadata = BTreeMap::new();
        for _ in 0..keys {
            let key = left.text("a key")?;
            let kind = left.u32("the type of a value")?;
            let value = left.value(kind).map_err(|error| {
                Error::new(format!("the value of {}", quoted(&key))).because(error)
            })?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(Error::new(format!("the key {} is there twice", quoted(&key))));
            }
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(MetadataValue::Integer(alignment @ 1..=65536)) => *alignment as usize,
            Some(_) => {
                let works = "general.alignment is no number from 1 to 65536";
                return Err(Error::new(works));
            }
        };
        let mut found = Vec::new();
        for _ in 0..tensors {
            found.push(left.tensor()?);
        }
        let data = left.at.next_multiple_of(alignment);
        let mut table = BTreeMap::new();
        for (name, dtype, shape, offset) in found {
            let fault = |what: &str| Error::new(format!("tensor {}: {what}", quoted(&name)));
            let bytes = dtype.bytes(&shape).map_err(|error| fault(&error.to_string()))?;
            let start = usize::try_from(offset).ok().and_then(|offset| data.checked_add(offset));
            let end = start.and_then(|start| start.checked_add(bytes));
            let (Some(start), Some(end)) = (start, end.filter(|&end| end <= file.len())) else {
                return Err(fault("its bytes end behind the end of the file")
                    .hint("the file was cut off: copy or download it again"));
            };
            if table.insert(name.clone(), Tensor { dtype, shape, range: start..end }).is_some() {
                return Err(fault("it is there twice"));
            }
        }
        Ok(Self { metadata, tensors: table })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.metadata.get(key)
    }

    /// The value of a key that is a text, if there is one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetadataValue::Text(text)) => Ok(Some(text)),
            Some(_) => Err(Error::new(format!("{} is no text", quoted(key)))),
        }
    }

    /// The value of a key that is a number, if there is one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetadataValue::Integer(number)) => Ok(Some(*number as f64)),
            Some(MetadataValue::Float(number)) => Ok(Some(*number)),
            Some(_) => Err(Error::new(format!("{} is no number", quoted(key)))),
        }
    }

    /// The value of a key that is a list of texts, if there is one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn texts(&self, key: &str) -> Result<Option<&[String]>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetadataValue::Texts(texts)) => Ok(Some(texts)),
            Some(_) => Err(Error::new(format!("{} is no list of texts", quoted(key)))),
        }
    }

    /// The value of a key that is a list of numbers, if there is one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn numbers(&self, key: &str) -> Result<Option<&[f64]>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetadataValue::Numbers(numbers)) => Ok(Some(numbers)),
            Some(_) => Err(Error::new(format!("{} is no list of numbers", quoted(key)))),
        }
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// The tensors by name.
    pub fn tensors(&self) -> &BTreeMap<String, Tensor> {
        &self.tensors
    }
}

/// What is left of a file that is read from its beginning.
struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: u64, what: &str) -> Result<&'a [u8]> {
        let left = &self.file[self.at..];
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= left.len());
        let Some(bytes) = bytes else {
            return Err(Error::new(format!("it ends within {what}"))
                .hint("the file was cut off: copy or download it again"));
        };
        self.at += bytes;
        Ok(&left[..bytes])
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let taken = self.take(N as u64, what)?;
        Ok(taken.try_into().expect("as many bytes as were taken"))
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.bytes(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        self.bytes(what).map(u64::from_le_bytes)
    }

    fn text(&mut self, what: &str) -> Result<String> {
        let length = self.u64(what)?;
        let bytes = self.take(length, what)?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned)
            .map_err(|error| Error::new(format!("{what} is no UTF-8")).because(error))
    }

    /// A number of a type of the metadata.
    fn scalar(&mut self, kind: u32) -> Result<MetadataValue> {
        const WHAT: &str = "a value";
        Ok(match kind {
            0 => MetadataValue::Integer(u8::from_le_bytes(self.bytes(WHAT)?).into()),
            1 => MetadataValue::Integer(i8::from_le_bytes(self.bytes(WHAT)?).into()),
            2 => MetadataValue::Integer(u16::from_le_bytes(self.bytes(WHAT)?).into()),
            3 => MetadataValue::Integer(i16::from_le_bytes(self.bytes(WHAT)?).into()),
            4 => MetadataValue::Integer(self.u32(WHAT)?.into()),
            5 => MetadataValue::Integer(i32::from_le_bytes(self.bytes(WHAT)?).into()),
            6 => MetadataValue::Float(f32::from_le_bytes(self.bytes(WHAT)?).into()),
            7 => match self.bytes(WHAT)? {
                [0] => MetadataValue::Bool(false),
                [1] => MetadataValue::Bool(true),
                [other] => return Err(Error::new(format!("{other} is no truth value"))),
            },
            10 => MetadataValue::Integer(self.u64(WHAT)?.into()),
            11 => MetadataValue::Integer(i64::from_le_bytes(self.bytes(WHAT)?).into()),
            12 => MetadataValue::Float(f64::from_le_bytes(self.bytes(WHAT)?)),
            _ => return Err(Error::new(format!("no value has the type {kind}"))),
        })
    }

    fn value(&mut self, kind: u32) -> Result<MetadataValue> {
        match kind {
            8 => Ok(MetadataValue::Text(self.text("a text")?)),
            9 => self.list(),
            _ => self.scalar(kind),
        }
    }

    fn list(&mut self) -> Result<MetadataValue> {
        let kind = self.u32("the type of a list")?;
        let length = self.u64("the length of a list")?;
        if kind == 9 {
            return Err(Error::new("a list of lists is not read"));
        }
        if kind == 8 {
            // Each takes bytes of the file, so a false length ends at the file's end.
            let mut texts = Vec::new();
            for _ in 0..length {
                texts.push(self.text("a text of a list")?);
            }
            return Ok(MetadataValue::Texts(texts));
        }
        let mut numbers = Vec::new();
        for _ in 0..length {
            numbers.push(match self.scalar(kind)? {
                MetadataValue::Integer(number) => number as f64,
                MetadataValue::Float(number) => number,
                MetadataValue::Bool(truth) => truth.into(),
                MetadataValue::Text(_) | MetadataValue::Texts(_) | MetadataValue::Numbers(_) => {
                    unreachable!("a scalar")
                }
            });
        }
        Ok(MetadataValue::Numbers(numbers))
    }

    /// Name, type, extents and place of a tensor.
    fn tensor(&mut self) -> Result<(String, Type, Vec<usize>, u64)> {
        let name = self.text("the name of a tensor")?;
        let fault = |what: String| Error::new(format!("tensor {}: {what}", quoted(&name)));
        let axes = self.u32("the axes of a tensor")?;
        if axes > AXES {
            return Err(fault(format!("it has {axes} axes; at most {AXES} are possible")));
        }
        let mut shape = Vec::new();
        for _ in 0..axes {
            let extent = self.u64("the extents of a tensor")?;
            shape.push(
                usize::try_from(extent).map_err(|_| fault(format!("an extent of {extent}")))?,
            );
        }
        // ggml has the extent of neighbours first.
        shape.reverse();
        let number = self.u32("the type of a tensor")?;
        let dtype = Type::of(number).map_err(|error| fault(error.to_string()))?;
        Ok((name.clone(), dtype, shape, self.u64("the place of a tensor")?))
    }
}
