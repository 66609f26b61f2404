//! Tensors of the caller's own as a file: numbers, and blocks whose codes and scales the caller chose.

use std::collections::BTreeMap;
use std::path::Path;

use super::record::describe;
use super::{Dtype, FileLayout, Outline, Record, Writer};
use crate::block::{Axis, BlockTensor};
use crate::error::Result;
use crate::quantizer::{Quantizer, Target};

/// What is stored under a name.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'a> {
    /// Numbers of this shape, as F32.
    Numbers(&'a [usize], &'a [f32]),
    /// Codes and scales.
    Blocks(&'a BlockTensor),
}

/// Writes a file of these tensors, as [`quantize()`](super::quantize()) writes it of tensors that it rounds.
///
/// ```
/// use exmy::block::{Axis, BlockTensor};
/// use exmy::safetensors::{FileLayout, Reader, Stored, store};
/// use exmy::{BlockFormat, Rounding, View};
///
/// let x = [1.0, -0.3, 70.0, 0.0];
/// let by_own_scale = BlockTensor::quantize_with(
///     View::new(&x, 2, 2), Axis::Cols, BlockFormat::MXFP4, Rounding::TiesToEven, |_| 0.5,
/// );
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("own.safetensors");
/// let tensors = [("w", Stored::Blocks(&by_own_scale)), ("gain", Stored::Numbers(&[2], &[1.0, 2.0]))];
/// store(&path, &tensors, FileLayout::Safetensors)?;
/// let mut reader = Reader::open(&path)?;
/// assert_eq!(reader.read_values("w")?, [1.0, -0.25, 3.0, 0.0]);
/// assert_eq!(reader.read_f32("gain")?, [1.0, 2.0]);
/// # Ok::<(), exmy::error::Error>(())
/// ```
///
/// # Errors
/// If a format cannot be stored in that layout, a name would occur twice, or the file cannot be written. Then
/// there is none, or the one that was there before.
///
/// # Panics
/// If numbers have not their shape.
pub fn store(
    path: impl AsRef<Path>,
    tensors: &[(&str, Stored<'_>)],
    layout: FileLayout,
) -> Result<()> {
    let (mut outlines, mut records, mut metadata) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for (name, tensor) in tensors {
        match tensor {
            Stored::Numbers(shape, numbers) => {
                let count: usize = shape.iter().product();
                assert_eq!(count, numbers.len(), "numbers of {name} have their shape");
                outlines.push(Outline::new(*name, Dtype::F32, *shape));
            }
            Stored::Blocks(tensor) => {
                let record = Record {
                    quantizer: Quantizer::new(Target::Block(tensor.format())),
                    axis: usize::from(tensor.axis() == Axis::Cols),
                    shape: vec![tensor.rows(), tensor.cols()],
                    dtype: Dtype::F32,
                    layout,
                    seed: None,
                };
                outlines.extend(record.parts(name)?.iter().cloned());
                records.insert((*name).to_owned(), record);
            }
        }
    }
    describe(&mut metadata, &records);
    let mut writer = Writer::create(path.as_ref(), &outlines, metadata)?;
    for (name, tensor) in tensors {
        match tensor {
            Stored::Numbers(_, numbers) => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                writer.write(name, &bytes)?;
            }
            Stored::Blocks(tensor) => {
                let record = &records[*name];
                writer.write_blocks(&record.parts(name)?, record, (*tensor).clone())?;
            }
        }
    }
    writer.finish()
}
