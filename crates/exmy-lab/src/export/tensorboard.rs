//! Event files of TensorBoard: records of `TFRecord`, each a protocol buffer `Event`.
//!
//! A record is `u64 length, u32 crc(length), bytes, u32 crc(bytes)`, little-endian; the checksum is CRC-32C,
//! rotated right by 15 bits plus `0xa282ead8` (tensorflow/core/lib/io/record_writer.h and lib/hash/crc32c.h).
//! Of the message (tensorflow/core/util/event.proto and framework/summary.proto) four fields are needed:
//!
//! ```text
//! Event          1 wall_time: double   2 step: int64   3 file_version: string   5 summary: Summary
//! Summary        1 value: repeated Value
//! Summary.Value  1 tag: string         2 simple_value: float
//! ```
//!
//! The first event says the version. Values are rounded to binary32, as the field asks. Records have no
//! clock, so the wall time of a step is its number in seconds: TensorBoard's axes `Step` and `Relative` show
//! steps.

use crc::{CRC_32_ISCSI, Crc};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// CRC-32C goes by the name of iSCSI, which has it, too.
#[doc(hidden)]
pub static CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// The checksum of a record.
#[doc(hidden)]
pub fn masked(bytes: &[u8]) -> u32 {
    CRC32C.checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Writes one record.
fn record(message: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let length = (message.len() as u64).to_le_bytes();
    out.write_all(&length)?;
    out.write_all(&masked(&length).to_le_bytes())?;
    out.write_all(message)?;
    out.write_all(&masked(message).to_le_bytes())
}

/// Appends a number in seven bits a byte, the low ones first.
#[doc(hidden)]
pub fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a field whose contents have a length: text or a message.
fn field(number: u8, contents: &[u8], to: &mut Vec<u8>) {
    const LENGTH: u8 = 2;
    to.push(number << 3 | LENGTH);
    varint(contents.len() as u64, to);
    to.extend_from_slice(contents);
}

/// The beginning of an event of a step.
fn event(step: u64) -> Vec<u8> {
    const DOUBLE: u8 = 1;
    let mut message = vec![1 << 3 | DOUBLE];
    message.extend((step as f64).to_le_bytes());
    message.push(2 << 3);
    varint(step, &mut message);
    message
}

/// The message `Value` of a scalar.
fn scalar(tag: &str, value: f64) -> Vec<u8> {
    const FLOAT: u8 = 5;
    let mut message = Vec::new();
    field(1, tag.as_bytes(), &mut message);
    message.push(2 << 3 | FLOAT);
    message.extend((value as f32).to_le_bytes());
    message
}

/// Writes the event file of a run: an event a step, with the scalars of that step.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    steps: impl Iterator<Item = (u64, BTreeMap<String, f64>)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut version = event(0);
    field(3, b"brain.Event:2", &mut version);
    record(&version, out)?;
    for (step, values) in steps {
        let mut summary = Vec::new();
        for (tag, value) in values {
            field(1, &scalar(&tag, value), &mut summary);
        }
        let mut message = event(step);
        field(5, &summary, &mut message);
        record(&message, out)?;
    }
    Ok(())
}
