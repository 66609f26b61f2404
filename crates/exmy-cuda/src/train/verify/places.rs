//! Where two files of a run differ, in the words of the file: the step and the key of a line of records, the
//! tensor and the element of weights, the line of another text, else the byte.
//!
//! Tensors are looked at before the header of their file, which holds a digest of all of them.

use std::fmt;

use exmy::safetensors::{Dtype, Entry, Header};
use serde_json::Value;

/// The first place at which a file of a run differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The file's path in the folder of the run.
    pub file: String,
    /// The line and key, the tensor and element, or the byte.
    pub place: String,
    /// What the CPU's run and the device's have there.
    pub values: [String; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place, values: [cpu, device] } = self;
        write!(f, "{file}, {place}: {cpu} on the CPU, {device} on the device")
    }
}

/// A place and what both files have there.
type Found = (String, [String; 2]);

/// The first difference of a file of the CPU's run and of the device's; `None` is a file that is not there.
pub(super) fn difference(file: &str, [cpu, device]: [Option<&[u8]>; 2]) -> Option<Difference> {
    let (place, values) = match (cpu, device) {
        (Some(a), Some(b)) if a == b => return None,
        (Some(a), Some(b)) => {
            let found = match file.rsplit_once('.') {
                Some((_, "safetensors")) => tensors(a, b),
                Some((_, "jsonl" | "json" | "toml")) => lines(a, b),
                _ => None,
            };
            found.unwrap_or_else(|| byte(a, b))
        }
        both => {
            let has = |bytes: Option<&[u8]>| {
                bytes.map_or("absent".to_owned(), |bytes| format!("{} bytes", bytes.len()))
            };
            ("the whole file".to_owned(), [has(both.0), has(both.1)])
        }
    };
    Some(Difference { file: file.to_owned(), place, values })
}

/// The first byte that differs, or the end of the shorter file.
fn byte(a: &[u8], b: &[u8]) -> Found {
    let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    let has =
        |bytes: &[u8]| bytes.get(at).map_or("the end".to_owned(), |byte| format!("{byte:#04x}"));
    (format!("byte {at}"), [has(a), has(b)])
}

/// The first line that differs; of two objects on it the first key.
fn lines(a: &[u8], b: &[u8]) -> Option<Found> {
    let (a, b) = (str::from_utf8(a).ok()?, str::from_utf8(b).ok()?);
    let (mut first, mut second) = (a.split('\n'), b.split('\n'));
    for number in 1_usize.. {
        let (a, b) = match (first.next(), second.next()) {
            (None, None) => return None,
            (a, b) if a == b => continue,
            (a, b) => (a.unwrap_or("the end"), b.unwrap_or("the end")),
        };
        let place = format!("line {number}");
        return Some(match (serde_json::from_str(a), serde_json::from_str(b)) {
            (Ok(Value::Object(a)), Ok(Value::Object(b))) => {
                let has = |object: &serde_json::Map<String, Value>, key: &str| {
                    object.get(key).map_or("absent".to_owned(), Value::to_string)
                };
                let key = a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key))?;
                let step = format!("{place} (step {}), key {key}", has(&a, "step"));
                (step, [has(&a, key), has(&b, key)])
            }
            _ => (place, [a, b].map(|line| line.trim().to_owned())),
        });
    }
    None
}

/// The header of a file of tensors, and the bytes behind it.
fn opened(file: &[u8]) -> Option<(Header, &[u8])> {
    let (length, rest) = file.split_first_chunk()?;
    let (text, data) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((Header::parse(text, data.len() as u64).ok()?, data))
}

/// The first tensor and element that differ, else what the headers say about the files; `None` where
/// that cannot be said.
fn tensors(a: &[u8], b: &[u8]) -> Option<Found> {
    let ((first, a), (second, b)) = (opened(a)?, opened(b)?);
    let names = first.entries().iter().chain(second.entries());
    for name in names.map(|entry| entry.name.as_str()) {
        let of = |entry: Option<&Entry>| {
            entry.map_or("absent".to_owned(), |entry| {
                format!("{} {:?}", entry.dtype.name(), entry.shape)
            })
        };
        let both = [first.find(name), second.find(name)];
        let [Some(here), Some(there)] = both else {
            return Some((format!("tensor {name}"), both.map(of)));
        };
        if (here.dtype, &here.shape) != (there.dtype, &there.shape) {
            return Some((format!("tensor {name}"), both.map(of)));
        }
        let part = |data: &[u8], entry: &Entry| -> Vec<u8> {
            let range = entry.range.start as usize..entry.range.end as usize;
            data.get(range).unwrap_or_default().to_vec()
        };
        let (x, y) = (part(a, here), part(b, there));
        let width = (here.dtype.bits() as usize / 8).max(1);
        let is_f32 = here.dtype == Dtype::F32;
        let mut pairs = x.chunks(width).zip(y.chunks(width));
        if let Some(at) = pairs.position(|(x, y)| x != y) {
            let shown = |bytes: &[u8]| {
                let bytes = &bytes[at * width..];
                let bytes = &bytes[..width.min(bytes.len())];
                let hex: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
                match number(bytes).filter(|_| is_f32) {
                    Some(value) => format!("{value:?} (0x{hex})"),
                    None => format!("0x{hex}"),
                }
            };
            let place = format!("tensor {name} {:?}, element {at}", here.shape);
            return Some((place, [shown(&x), shown(&y)]));
        }
    }
    let (here, there) = (first.metadata(), second.metadata());
    let key = here.keys().chain(there.keys()).find(|key| here.get(*key) != there.get(*key));
    let has = |of: &std::collections::BTreeMap<String, String>, key: &String| {
        of.get(key).cloned().unwrap_or_else(|| "absent".into())
    };
    key.map(|key| (format!("the header's {key}"), [has(here, key), has(there, key)]))
}

fn number(bytes: &[u8]) -> Option<f32> {
    bytes.try_into().ok().map(f32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy::safetensors::Outline;

    fn file(numbers: &[f32], digest: &str) -> Vec<u8> {
        let outline = Outline::new("w", Dtype::F32, [numbers.len()]);
        let metadata = [("digest".to_owned(), digest.to_owned())].into();
        let mut bytes = Header::lay_out(&[outline], metadata).unwrap().to_bytes();
        bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    fn said(file: &str, a: &[u8], b: &[u8]) -> Option<String> {
        difference(file, [Some(a), Some(b)]).map(|found| found.to_string())
    }

    #[test]
    fn records_name_step_and_key() {
        let a = b"{\"step\":0}\n{\"step\":1,\"loss\":2.5,\"lr\":0.1}\n";
        let b = b"{\"step\":0}\n{\"step\":1,\"loss\":2.75,\"lr\":0.1}\n";
        let text = "metrics.jsonl, line 2 (step 1), key loss: 2.5 on the CPU, 2.75 on the device";
        assert_eq!(said("metrics.jsonl", a, b).as_deref(), Some(text));
        let text = "metrics.jsonl, line 2: {\"step\":1,\"loss\":2.5,\"lr\":0.1} on the CPU, the end on the \
                    device";
        let short = said("metrics.jsonl", a, &a[..10]).unwrap();
        assert_eq!(short, text);
        assert_eq!(said("metrics.jsonl", a, a), None);
        let text = "config.toml, line 2: b = 1 on the CPU, b = 2 on the device";
        assert_eq!(said("config.toml", b"a\nb = 1\n", b"a\nb = 2\n").as_deref(), Some(text));
        let absent = difference("summary.json", [Some(b"{}"), None]).unwrap();
        assert_eq!(absent.values, ["2 bytes", "absent"]);
        assert_eq!(
            said("loss", b"ab", b"ac").unwrap(),
            "loss, byte 1: 0x62 on the CPU, 0x63 on the device"
        );
    }

    #[test]
    fn weights_name_tensor_and_element() {
        let a = file(&[1.0, 2.0, f32::NAN], "x");
        let b = file(&[1.0, -2.0, f32::from_bits(0x7FFF_FFFF)], "y");
        let text = "w.safetensors, tensor w [3], element 1: 2.0 (0x40000000) on the CPU, -2.0 (0xc0000000) \
                    on the device";
        assert_eq!(said("w.safetensors", &a, &b).as_deref(), Some(text));
        let b = file(&[1.0, 2.0, f32::from_bits(0x7FFF_FFFF)], "y");
        let text = said("w.safetensors", &a, &b).unwrap();
        assert!(
            text.contains("element 2: NaN (0x7fc00000)") && text.contains("NaN (0x7fffffff)"),
            "{text}"
        );
        let text = said("w.safetensors", &a, &file(&[1.0, 2.0, f32::NAN], "z")).unwrap();
        assert!(text.contains("the header's digest: x on the CPU, z on the device"), "{text}");
        let text = said("w.safetensors", &a, &file(&[1.0], "x")).unwrap();
        assert!(text.contains("tensor w: F32 [3] on the CPU, F32 [1] on the device"), "{text}");
        assert!(said("w.safetensors", &a, b"short").unwrap().contains("byte 0"));
    }
}
