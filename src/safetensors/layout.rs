//! How the codes and scales of a quantized tensor are stored: names, types and shapes, by the table
//! at [`FileLayout`].

use core::fmt;
use core::str::FromStr;

use super::fault::{extents, quoted};
use super::fold::Fold;
use super::glob::literal;
use super::record::Record;
use super::{Dtype, Fault, Outline};
use crate::block::{BlockFormat, Shape};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::pack::{self, ScaleLayout, ggml, gpt_oss};
use crate::quantizer::Target;
use crate::text::UnknownName;

/// How a file stores quantized tensors.
///
/// Of a tensor `NAME` of shape `[.., K]`, with `G` blocks along K:
///
/// * `safetensors`: codes in `NAME`, of the format's own type and the tensor's shape; block scales in
///   `NAME_scale`, the same with G for K. For readers that know `F4` and `F6_*`.
/// * `torch`: the same, but FP4 as `U8` `[.., K/2]`, two codes a byte, low nibble first, and FP6 as `U8`, one
///   a byte. For PyTorch, ModelOpt, torchao, vLLM.
/// * `cublas`: codes as `safetensors`, scales in `NAME_scale` in tiles of 128 x 4, padded with zeros:
///   `[rows, columns]`. For cuBLAS, CUTLASS, `torch._scaled_mm`.
/// * `gpt-oss`: codes in `NAME_blocks`, `U8` `[.., G, 16]`, scales in `NAME_scales`, `U8` `[.., G]`. MXFP4 as
///   in the gpt-oss checkpoints.
/// * `ggml`: `NAME`, `U8` `[.., G * 17]`: `block_mxfp4`, scale and codes together. MXFP4 as in GGUF files.
/// * `stream`, `byte`, `fp6-padded4`, `fp6-padded32`, `tma16`: codes in `NAME`, `U8`, each row along the last
///   axis in this container of [`pack::Layout`](crate::pack::Layout); scales as `safetensors`.
///
/// The scale of the tensor is `NAME_scale_2`, a single `F32`, by which decoded values are
/// multiplied last. Scales have the type of their format, `F8_E4M3` for E4M3 without sign, or the unsigned
/// integer of as many bytes. Scales of 4 or 6 bits have the types `F4` and `F6_*` in the layout
/// `safetensors` and are a `U8` each in the others. Blocks that do not lie along the axis alone (tiles,
/// whole tensors) have scales of shape `[rows of blocks, columns of blocks]`.
///
/// ```
/// use exmy::safetensors::FileLayout;
///
/// assert_eq!("gpt-oss".parse(), Ok(FileLayout::GptOss));
/// let error = "gptoss".parse::<FileLayout>().unwrap_err();
/// assert_eq!(error.nearest(), ["gpt-oss"]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileLayout {
    /// The types that the file format has for codes, scales row by row.
    #[default]
    Safetensors,
    /// Types that PyTorch has.
    Torch,
    /// Scales as tensor cores read them.
    Cublas,
    /// The two arrays of gpt-oss.
    GptOss,
    /// The blocks of ggml.
    Ggml,
    /// Each row in a container of codes.
    Rows(pack::Layout),
}

impl FileLayout {
    /// All layouts and their names.
    pub const NAMED: [(&str, Self); 10] = [
        ("safetensors", Self::Safetensors),
        ("torch", Self::Torch),
        ("cublas", Self::Cublas),
        ("gpt-oss", Self::GptOss),
        ("ggml", Self::Ggml),
        ("stream", Self::Rows(pack::Layout::Stream)),
        ("byte", Self::Rows(pack::Layout::Byte)),
        ("fp6-padded4", Self::Rows(pack::Layout::Fp6Padded4)),
        ("fp6-padded32", Self::Rows(pack::Layout::Fp6Padded32)),
        ("tma16", Self::Rows(pack::Layout::Tma16)),
    ];

    /// The order of block scales.
    pub(super) const fn scales(self) -> ScaleLayout {
        match self {
            Self::Cublas => ScaleLayout::Tiled,
            _ => ScaleLayout::Linear,
        }
    }
}

impl fmt::Display for FileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, layout)| layout == self);
        f.pad(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for FileLayout {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, layout)| *layout).ok_or_else(|| {
            let names = Self::NAMED.iter().map(|(name, _)| *name);
            const FORMS: &str = "safetensors, torch, cublas, gpt-oss, ggml, stream, byte, \
                                 fp6-padded4, fp6-padded32, tma16";
            UnknownName::new("layout", text, names, FORMS)
        })
    }
}

/// The tensors that hold a quantized one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) codes: Outline,
    pub(super) scales: Option<Outline>,
    pub(super) tensor_scale: Option<Outline>,
}

impl Parts {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Outline> {
        [Some(&self.codes), self.scales.as_ref(), self.tensor_scale.as_ref()].into_iter().flatten()
    }
}

/// Rows and columns of a block, and how many there are each way.
pub(super) fn blocks(format: BlockFormat, fold: Fold) -> ((usize, usize), (usize, usize)) {
    let (rows, cols, axis) = fold.matrix();
    let block = axis.block(format.shape, rows, cols);
    (block, (rows.div_ceil(block.0), cols.div_ceil(block.1)))
}

/// The type in which a layout stores scales of a format. Scales of 4 or 6 bits have a type of their
/// own only where codes have; elsewhere each is in a byte.
fn scale_dtype(scale: Format, layout: FileLayout) -> Dtype {
    let own = Dtype::holding(scale);
    own.filter(|own| own.bits() >= 8 || layout == FileLayout::Safetensors).unwrap_or(
        match scale.storage_bits() {
            8 => Dtype::U8,
            16 => Dtype::U16,
            _ => Dtype::U32,
        },
    )
}

impl Record {
    pub(super) fn fold(&self) -> Fold {
        Fold::new(&self.shape, self.axis)
    }

    /// The names of the tensors that hold this one, called `name` before it was quantized: codes,
    /// block scales, the tensor's scale, as far as there are any.
    ///
    /// # Errors
    /// If its layout cannot hold it.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, FileLayout, Record};
    ///
    /// let mut record = Record {
    ///     quantizer: "mxfp4".parse().unwrap(),
    ///     axis: 1,
    ///     shape: vec![4, 64],
    ///     dtype: Dtype::BF16,
    ///     layout: FileLayout::GptOss,
    ///     seed: None,
    /// };
    /// assert_eq!(record.part_names("w")?, ["w_blocks", "w_scales"]);
    /// record.shape = vec![4, 65]; // no whole number of blocks
    /// assert!(record.part_names("w").unwrap_err().to_string().contains("65"));
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    pub fn part_names(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.parts(name)?.iter().map(|part| part.name.clone()).collect())
    }

    /// The tensors that hold this one, called `name` before it was quantized.
    pub(super) fn parts(&self, name: &str) -> Result<Parts> {
        let Target::Block(format) = self.target() else {
            let Target::Format(format) = self.target() else {
                return Err(Error::new("`none` is no format that a file can hold"));
            };
            if matches!(self.layout, FileLayout::Cublas | FileLayout::GptOss | FileLayout::Ggml) {
                return Err(self.refused(name, "is for blocks with scales"));
            }
            let codes = self.codes(name, format)?;
            return Ok(Parts { codes, scales: None, tensor_scale: None });
        };
        let scale_name = match self.layout {
            FileLayout::GptOss => format!("{name}_scales"),
            _ => format!("{name}_scale"),
        };
        let codes = self.codes(name, format.element)?;
        let (block, blocks) = blocks(format, self.fold());
        let last = self.axis + 1 >= self.shape.len();
        let (dtype, shape) = match self.layout {
            FileLayout::GptOss | FileLayout::Ggml => {
                let expected = BlockFormat::MXFP4;
                let blocks = (format.element, format.scale, format.shape, format.tensor_scale);
                if blocks != (expected.element, expected.scale, expected.shape, false) || !last {
                    return Err(self.refused(name, "is for e2m1/32:e8m0 along the last axis"));
                }
                let shapes =
                    gpt_oss::shapes(&self.shape).map_err(|error| self.cannot(name, error))?;
                (Dtype::U8, shapes.scales)
            }
            FileLayout::Cublas => {
                let along = matches!(format.shape, Shape::Along(_));
                if !along || !last || format.scale.storage_bits() != 8 {
                    let what = "is for scales of 8 bits in blocks along the last axis";
                    return Err(self.refused(name, what));
                }
                let padded = ScaleLayout::Tiled.padded(blocks.0, blocks.1);
                let too_large = || Fault::misfit(name, format!("{} is too large", quoted(name)));
                let (rows, cols) = padded.ok_or_else(too_large)?;
                (scale_dtype(format.scale, self.layout), vec![rows, cols])
            }
            _ => (
                scale_dtype(format.scale, self.layout),
                self.fold().scales(&self.shape, self.axis, block, blocks),
            ),
        };
        if dtype.bytes(shape.iter().product::<usize>() as u64).is_none() {
            let bits = shape.iter().product::<usize>() as u64 * u64::from(dtype.bits());
            let what = format!("stores {bits} bits of scales, which are no whole number of bytes");
            return Err(self.unpaired(name, &what));
        }
        let scales = Outline { name: scale_name, dtype, shape };
        let tensor_scale = Outline::new(format!("{name}_scale_2"), Dtype::F32, []);
        Ok(Parts {
            codes,
            scales: (self.layout != FileLayout::Ggml).then_some(scales),
            tensor_scale: format.tensor_scale.then_some(tensor_scale),
        })
    }

    /// The tensor of codes.
    fn codes(&self, name: &str, element: Format) -> Result<Outline> {
        if element.bits() > 16 {
            let (text, bits) = (quoted(name), element.bits());
            let why = format!(
                "{text}: codes have at most 16 bits, and those of {element} are {bits} bits wide"
            );
            return Err(Fault::misfit(name, why)
            .hint(
                "--dequantize writes the rounded values instead, as f32, bf16, f16 or in the type they \
                 have",
            ));
        }
        let mut shape = self.shape.clone();
        let own = || Dtype::holding(element).ok_or_else(|| self.no_dtype(name, element));
        let (name, dtype) = match (self.layout, element.bits()) {
            (FileLayout::GptOss, _) => {
                shape = gpt_oss::shapes(&shape).map_err(|error| self.cannot(name, error))?.blocks;
                (format!("{name}_blocks"), Dtype::U8)
            }
            (FileLayout::Ggml, _) => {
                if let Some(last) = shape.last_mut() {
                    *last = ggml::len(*last).map_err(|error| self.cannot(name, error))?;
                }
                (name.to_owned(), Dtype::U8)
            }
            (FileLayout::Rows(layout), width) => {
                let last = self.shape.last().copied().unwrap_or(1);
                let bytes = layout.len(last, width).map_err(|error| self.cannot(name, error))?;
                match shape.last_mut() {
                    Some(last) => *last = bytes,
                    None => shape.push(bytes),
                }
                (name.to_owned(), Dtype::U8)
            }
            (FileLayout::Torch, 4) => {
                match shape.last_mut() {
                    Some(last) if last.is_multiple_of(2) => *last /= 2,
                    _ => {
                        let what = "puts two codes along the last axis into a byte";
                        return Err(self.unpaired(name, what));
                    }
                }
                (name.to_owned(), Dtype::U8)
            }
            (FileLayout::Torch, 6) => (name.to_owned(), Dtype::U8),
            _ => (name.to_owned(), own()?),
        };
        if dtype.bytes(shape.iter().product::<usize>() as u64).is_none() {
            let bits = self.count() * dtype.bits() as usize;
            let what = format!("stores {bits} bits, which are no whole number of bytes");
            return Err(self.unpaired(&name, &what));
        }
        Ok(Outline { name, dtype, shape })
    }

    fn no_dtype(&self, name: &str, element: Format) -> Error {
        let (text, bits) = (quoted(name), element.bits());
        let why = format!(
            "{text}: there is no type for codes of {element}, {bits} bits wide, in safetensors files"
        );
        Fault::misfit(name, why).hint(
            "--dequantize writes the rounded values instead; types there are for e2m1, e2m3, e3m2 \
             and for any format of 8 or 16 bits, and --layout stream packs any up to 16 into U8",
        )
    }

    fn refused(&self, name: &str, what: &str) -> Error {
        let Self { layout, shape, .. } = self;
        let shape = extents(shape);
        let (text, target) = (quoted(name), self.target());
        Fault::misfit(name, format!("{text}, {shape} in {target}: the layout `{layout}` {what}"))
            .hint(
                "take another --layout, leave it out by --exclude, or write values by --dequantize",
            )
    }

    /// As [`refused`](Self::refused), of codes that end within a byte; containers of rows take any.
    fn unpaired(&self, name: &str, what: &str) -> Error {
        self.refused(name, what).hint(format!(
            "leave it out by --exclude {:?}, store all tensors by --layout stream or --layout \
             byte, which pad each row to whole bytes, or write values by --dequantize",
            literal(name)
        ))
    }

    fn cannot(&self, name: &str, error: pack::PackError) -> Error {
        self.refused(name, &format!("cannot hold it: {error}"))
    }
}
