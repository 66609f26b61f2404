//! Block formats of every rule, profile, scale, shape and mode; casts and rotations before them; packing,
//! transposes.

use exmy::block::{Axis, BlockProfile, scale::ScaleRule};
use exmy::format::Format;
use exmy::quantizer::{Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding, Rules, StochasticVariant};
use exmy::{View as HostView, ViewMut as HostViewMut};

use super::{Trial, inputs};
use crate::{Result, View, ViewMut, image_into, pack, quantize, transpose_into, unpack};

const SHAPES: [&str; 18] = [
    "mxfp8-e4m3",
    "mxfp4",
    "nvfp4",
    "nvfp4-16x16",
    "mxint8",
    "e4m3fn/32x1:e8m0",
    "e4m3fn/row:e8m0",
    "e4m3fn/tensor:f32",
    "e2m1/4:e4m3fn",
    "e3m2/128:e8m0",
    "e4m3fn/3x5:e8m0",
    "e2m1/8:e8m0",
    "e5m2/16x16:e8m0",
    "e4m3fn/128x128:f32",
    "nvfp4@4over6",
    "nvfp4-16x16@4over6-mse",
    "e8m3/32:e8m0",
    "e2m1/256:e4m3fn",
];

const MODES: [&str; 7] = [
    "mxfp8-e4m3",
    "mxfp4",
    "nvfp4",
    "e5m2/16x16:e8m0",
    "e4m3fn/16:e4m3fn@max-abs",
    "mxint8",
    "e8m3/32:e8m0",
];

const FIRST: [&str; 18] = [
    "bf16>e8m3@rtz",
    "bf16>rht16>nvfp4@sr8",
    "rht16>mxfp4",
    "ht32-f32>mxfp8-e4m3",
    "rht128>e4m3fn/128:e8m0",
    "ht2>mxfp4",
    "rht4-seed7>mxfp4",
    "bf16@rna>mxfp8-e4m3@rna",
    "rht16>nvfp4-16x16",
    "e5m2@sr8>mxfp4",
    "rht8>none",
    "e8m3",
    "e4m3fn@sr8",
    "none",
    "rht64>e5m2",
    "bf16>nvfp4@4over6",
    "rht16>nvfp4@4over6",
    "bf16>e4m3fn/row:e8m0",
];

fn quantizers(names: &[&str]) -> impl Iterator<Item = Quantizer> {
    names.iter().map(|name| name.parse().expect("a quantizer named above"))
}

/// Blocks of all magnitudes, with zeros, and if asked for infinities and NaN in some of them.
fn matrix(rows: usize, cols: usize, specials: bool) -> Vec<f32> {
    let random = Philox::new(9, Stream::new("matrix"));
    let edges = inputs(0);
    let number = |i: usize| {
        let word = random.word(i as u64);
        // Each group of 16 around a power of two of its own; every 13th group among subnormal numbers.
        let group = random.word((i / 16) as u64 + (1 << 40));
        let field = match group % 13 {
            0 => 0,
            1 => group >> 8 & 0xFF,
            _ => 110 + (group >> 8 & 31),
        };
        let field = (field as i32 - (word >> 28) as i32 % 5).clamp(0, 254) as u32;
        let value = f32::from_bits(word & 0x807F_FFFF | field << 23);
        match word {
            _ if specials && group.is_multiple_of(11) && word.is_multiple_of(7) => {
                edges[(word >> 9) as usize % edges.len()]
            }
            _ if word.is_multiple_of(31) => 0.0_f32.copysign(value),
            _ => value,
        }
    };
    (0..rows * cols).map(number).collect()
}

impl Trial<'_> {
    pub(super) fn blocks(&mut self) -> Result<()> {
        self.shapes()?;
        self.rules()?;
        self.modes()?;
        self.casts_and_rotations()?;
        self.moves()
    }

    fn shapes(&mut self) -> Result<()> {
        let small =
            [(32, 256, false), (33, 70, true), (1, 64, true), (7, 1, false), (48, 36, false)];
        let large = [(512, 1024, false), (257, 4100, true), (1000, 333, false)];
        let large: &[_] = if self.full() { &large } else { &[] };
        for &(rows, cols, specials) in small.iter().chain(large) {
            let x = matrix(rows, cols, specials);
            for quantizer in quantizers(&SHAPES) {
                for axis in [Axis::Cols, Axis::Rows] {
                    self.quantizer(
                        "block formats: shapes and axes",
                        &quantizer,
                        &x,
                        (rows, cols),
                        axis,
                    )?;
                }
            }
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<()> {
        let (odd, finite) = (matrix(8, 128, true), matrix(8, 128, false));
        let name = "block formats: rules, profiles, scales";
        for profile in BlockProfile::NAMED {
            for rule in ScaleRule::NAMED {
                for element in ["e4m3fn", "e2m1", "e5m2", "int8", "e3m4", "e2m3"] {
                    for scale in ["e8m0", "ue4m3", "e4m3fn", "f32", "e5m3", "ue5m3"] {
                        for tensor in ["", "+tensor"] {
                            let text =
                                format!("{element}/32:{scale}{tensor}@{}@{}", rule.0, profile.0);
                            let Ok(quantizer) = text.parse::<Quantizer>() else { continue };
                            let Target::Block(format) = quantizer.target else { continue };
                            if format.check().is_ok() {
                                // One NaN makes a tensor of NaN.
                                let x = if format.tensor_scale { &finite } else { &odd };
                                self.quantizer(name, &quantizer, x, (8, 128), Axis::Cols)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn modes(&mut self) -> Result<()> {
        let side = if self.full() { 256 } else { 32 };
        let (odd, finite) = (matrix(side, side, true), matrix(side, side, false));
        let mut modes = Rounding::DETERMINISTIC.to_vec();
        let stochastic = |variant, bits| Rounding::Stochastic { variant, bits };
        modes.extend([1, 8, 16, 32].map(Rounding::stochastic));
        modes.extend([StochasticVariant::B, StochasticVariant::C].map(|one| stochastic(one, 8)));
        for quantizer in quantizers(&MODES) {
            for rounding in &modes {
                for overflow in [Overflow::Finite, Overflow::None, Overflow::Nan] {
                    let quantizer = quantizer.with_rounding(*rounding).with_overflow(overflow);
                    for (x, axis) in [(&odd, Axis::Cols), (&finite, Axis::Rows)] {
                        let name = "block formats: modes and policies";
                        self.quantizer(name, &quantizer, x, (side, side), axis)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn casts_and_rotations(&mut self) -> Result<()> {
        let rows = if self.full() { 1024 } else { 128 };
        for specials in [false, true] {
            let x = matrix(rows, 128, specials);
            for quantizer in quantizers(&FIRST) {
                for axis in [Axis::Cols, Axis::Rows] {
                    self.quantizer("casts and rotations", &quantizer, &x, (rows, 128), axis)?;
                }
            }
        }
        Ok(())
    }

    /// Images in binary32 and bfloat16, codes, scales, values and the tensor's scale of one quantizer.
    fn quantizer(
        &mut self,
        name: &'static str,
        quantizer: &Quantizer,
        x: &[f32],
        (rows, cols): (usize, usize),
        axis: Axis,
    ) -> Result<()> {
        let device = self.device;
        let random = Philox::new(4, Stream::new("blocks"));
        let host = HostView::new(x, rows, cols);
        let input = device.upload(x)?;
        let view = View::new(&input, rows, cols)?;
        let case = |what: &str| format!("{what} of {quantizer}, {rows} x {cols} {axis:?}");
        // A rotation makes NaN, whose sign is the machine's, and a cast keeps it.
        let any_nan = quantizer.rotation.is_some();
        let mut expected = vec![0.0; x.len()];
        quantizer.image_into(host, axis, random, HostViewMut::new(&mut expected, rows, cols));
        let mut out = device.zeros::<f32>(x.len())?;
        image_into(quantizer, view, axis, random, ViewMut::new(&mut out, rows, cols)?)?;
        let found = out.to_vec()?;
        let row = self.row(name, "blocks.cu");
        row.compare_f32(|| case("images"), &found, &expected, any_nan);
        let mut narrow = device.zeros::<exmy::minifloat::Bf16>(x.len())?;
        image_into(quantizer, view, axis, random, ViewMut::new(&mut narrow, rows, cols)?)?;
        let wide = |bits: u16| f32::from_bits(u32::from(bits) << 16);
        let found: Vec<f32> = narrow.to_vec()?.iter().map(|x| wide(x.to_bits())).collect();
        let to_bf16 = exmy::Converter::new(Format::BF16, Rules::DEFAULT);
        let expected: Vec<f32> =
            to_bf16.encode::<f32, u16>(&expected).into_iter().map(wide).collect();
        row.compare_f32(|| case("images in bfloat16"), &found, &expected, any_nan);
        if any_nan && !matches!(quantizer.target, Target::Block(_)) {
            return Ok(());
        }
        let Ok(expected) = quantizer.quantize(host, axis, random) else { return Ok(()) };
        let found = quantize(quantizer, view, axis, random)?;
        row.compare(|| case("scales"), &found.packed_scales().to_vec()?, expected.packed_scales());
        row.compare(|| case("codes"), &found.packed_codes().to_vec()?, expected.packed_codes());
        let mut values = device.zeros::<f32>(x.len())?;
        found.dequantize_into(&mut values)?;
        row.compare_f32(|| case("values"), &values.to_vec()?, &expected.dequantize(), false);
        // Which NaN the scale of a tensor with a NaN is, the processor says.
        let (found, expected) = (found.tensor_scale()?, expected.tensor_scale());
        row.compare_f32(
            || case("scale of the tensor"),
            found.as_slice(),
            expected.as_slice(),
            true,
        );
        Ok(())
    }

    fn moves(&mut self) -> Result<()> {
        let device = self.device;
        for width in 1..=16_u32 {
            for count in [1_u32, 7, 8, 9, 1000] {
                let codes: Vec<u16> =
                    (0..count).map(|i| (i * 40503 % (1 << width)) as u16).collect();
                let Ok(expected) = exmy::pack::pack(&codes, width) else { continue };
                let packed = pack(&device.upload(&codes)?, width)?;
                let found = packed.to_vec()?;
                let back = unpack::<u16>(&packed, width, count as usize)?.to_vec()?;
                let row = self.row("packed codes", "move.cu");
                row.compare(|| format!("{count} of {width} bits"), &found, &expected);
                row.compare(|| format!("{count} of {width} bits, unpacked"), &back, &codes);
            }
        }
        for (rows, cols) in [(37, 70), (1, 5), (64, 256)] {
            let x: Vec<u16> = (0..rows * cols).map(|i| i as u16).collect();
            let input = device.upload(&x)?;
            let mut out = device.zeros::<u16>(x.len())?;
            transpose_into(View::new(&input, rows, cols)?, ViewMut::new(&mut out, cols, rows)?)?;
            let expected: Vec<u16> =
                (0..cols).flat_map(|j| (0..rows).map(move |i| (i * cols + j) as u16)).collect();
            let found = out.to_vec()?;
            self.row("transposes", "move.cu").compare(
                || format!("{rows} x {cols}"),
                &found,
                &expected,
            );
        }
        Ok(())
    }
}
