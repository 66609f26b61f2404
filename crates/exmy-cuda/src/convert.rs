//! Slices on the device to a format and back: the twins of the library's [`Converter`](exmy::Converter).

#![allow(unsafe_code)]

use exmy::format::Format;
use exmy::minifloat::Bf16;
use exmy::quantizer::Cast;
use exmy::random::Philox;
use exmy::round::Rules;

use crate::launch::Launch;
use crate::module::CONVERT;
use crate::rounder::{Rounder, Words, Write};
use crate::{Buffer, Device, Element, Error, Grid, Result};

/// Integers that codes are stored in on the device.
pub trait Code: Element {
    /// Their width.
    const BITS: u32;
    #[doc(hidden)]
    const ENCODE: &'static str;
    #[doc(hidden)]
    const DECODE: &'static str;
}

macro_rules! code {
    ($($type:ident $encode:literal $decode:literal)*) => {$(
        impl Code for $type {
            const BITS: u32 = $type::BITS;
            const ENCODE: &'static str = $encode;
            const DECODE: &'static str = $decode;
        }
    )*};
}
code! { u8 "encode_u8" "decode_u8" u16 "encode_u16" "decode_u16" u32 "encode_u32" "decode_u32" }

/// Threads that keep a large GPU busy with loops of four numbers.
pub(crate) fn stride_grid(device: &Device, count: usize) -> Grid {
    let most = device.properties().processors as usize * 16;
    let grid = Grid::cover(count.div_ceil(4), 256);
    Grid::new(grid.blocks[0].min(most as u32), 256)
}

/// A format and its rules made ready for buffers: the twin of [`exmy::Converter`], with its bits.
///
/// ```no_run
/// use exmy::{Format, Rules};
/// use exmy_cuda::{Converter, Device};
///
/// let device = Device::new(0)?;
/// let x = device.upload(&[1.0_f32, 464.0, 465.0, f32::NAN])?;
/// let codes = Converter::new(Format::E4M3FN, Rules::SATURATING).encode::<u8>(&x)?;
/// assert_eq!(codes.to_vec()?, [0x38, 0x7E, 0x7E, 0x7F]);
/// # Ok::<(), exmy_cuda::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Converter {
    to: Format,
    rules: Rules,
    random: Option<Philox>,
    first: u64,
    /// A cast that comes first.
    before: Option<Cast>,
    nothing: bool,
}

impl Converter {
    /// Leaves numbers as they are, payloads of NaN too.
    pub(crate) const fn nothing() -> Self {
        Self { nothing: true, ..Self::new(Format::F32, Rules::DEFAULT) }
    }

    /// Conversion to the format `to` by `rules`; as [`exmy::Converter::new`].
    pub const fn new(to: Format, rules: Rules) -> Self {
        Self { to, rules, random: None, first: 0, before: None, nothing: false }
    }

    /// The same with random words: element `i` uses word `i`; as [`exmy::Converter::with_random`].
    #[must_use]
    pub const fn with_random(self, random: Philox) -> Self {
        Self { random: Some(random), ..self }
    }

    /// The same for a part of something larger: element `i` uses word `first + i`.
    #[must_use]
    pub const fn starting_at(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// The same of numbers that a cast has rounded, by the same random words.
    pub(crate) const fn after(self, before: Option<Cast>) -> Self {
        Self { before, ..self }
    }

    /// Target, what comes before, random words.
    fn parts(&self, what: &'static str, write: Write) -> Result<(Rounder, Rounder, Words)> {
        let before = Rounder::of_cast(what, self.before)?;
        if self.nothing {
            return Ok((Rounder::none(), before, Words::new(self.random, self.first)));
        }
        let rounder = Rounder::new(what, self.to, self.rules, write)?;
        let mode = self.rules.rounding;
        if mode.is_stochastic() && self.random.is_none() {
            return Err(Error::unfit(
                what,
                format!("{mode} rounding needs random words: with_random"),
            ));
        }
        Ok((rounder, before, Words::new(self.random, self.first)))
    }

    fn run<T: Element>(
        &self,
        (what, kernel): (&'static str, &'static str),
        write: Write,
        x: &Buffer<f32>,
        out: &mut Buffer<T>,
    ) -> Result<()> {
        if x.len() != out.len() {
            let why = format!("{} numbers and room for {}", x.len(), out.len());
            return Err(Error::unfit(what, why));
        }
        self.run_at((what, kernel), write, (x, 0), (out, 0), x.len())
    }

    /// The same of `count` numbers from one place on to another, multiples of eight, which the buffers have.
    pub(crate) fn run_at<T: Element>(
        &self,
        (what, kernel): (&'static str, &'static str),
        write: Write,
        (x, first): (&Buffer<f32>, usize),
        (out, to): (&mut Buffer<T>, usize),
        count: usize,
    ) -> Result<()> {
        let (rounder, before, words) = self.parts(what, write)?;
        let fit = |len: usize, first: usize| {
            first.is_multiple_of(8) && first <= len && count <= len - first
        };
        if !fit(x.len(), first) || !fit(out.len(), to) {
            let why =
                format!("{count} numbers from {first} of {} to {to} of {}", x.len(), out.len());
            return Err(Error::unfit(what, why));
        }
        if count == 0 {
            return Ok(());
        }
        let device = out.device().clone();
        let grid = stride_grid(&device, count);
        let launch = Launch::new(&device, &CONVERT, kernel);
        let launch = launch.read_at(x, first).write_at(out, to).value(count as u64);
        // SAFETY: both buffers have as many elements as the kernel is told, and begin where eight numbers
        // may.
        unsafe { launch.value(rounder).value(before).value(words).run(grid) }
    }

    /// Writes to `codes` the codes to which the elements of `x` round; as [`exmy::Converter::encode_into`].
    ///
    /// # Errors
    /// If the lengths differ, the codes are wider than their integer, the mode is stochastic and has no
    /// random words, the format has more than 32 bits, or the device fails.
    pub fn encode_into<C: Code>(&self, x: &Buffer<f32>, codes: &mut Buffer<C>) -> Result<()> {
        let (width, bits) = (self.to.bits(), C::BITS);
        if width > bits {
            let why = format!("codes of {} have {width} bits and do not fit {bits}", self.to);
            return Err(Error::unfit("encode", why));
        }
        self.run(("encode", C::ENCODE), Write::Codes, x, codes)
    }

    /// The codes to which the elements of `x` round; as [`exmy::Converter::encode`].
    ///
    /// # Errors
    /// As [`encode_into`](Self::encode_into), or if memory is full.
    pub fn encode<C: Code>(&self, x: &Buffer<f32>) -> Result<Buffer<C>> {
        let mut codes = Buffer::uninit(x.device(), x.len())?;
        self.encode_into(x, &mut codes)?;
        Ok(codes)
    }

    /// Writes to `out` the values to which the elements of `x` round; as
    /// [`exmy::Converter::fake_quantize_into`].
    ///
    /// # Errors
    /// If the lengths differ, the format has values that binary32 lacks, the mode is stochastic and has no
    /// random words, or the device fails.
    pub fn fake_quantize_into(&self, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
        self.run(("fake_quantize", "round_f32"), Write::Values, x, out)
    }

    /// The same rounded once more, to the nearest bfloat16, ties to even: for formats within bfloat16 their
    /// values, in half the memory.
    ///
    /// # Errors
    /// As [`fake_quantize_into`](Self::fake_quantize_into).
    pub fn fake_quantize_bf16(&self, x: &Buffer<f32>, out: &mut Buffer<Bf16>) -> Result<()> {
        self.run(("fake_quantize", "round_bf16"), Write::Values, x, out)
    }
}

/// Writes to `out` the values of codes of a format; as [`exmy::slice::decode_into`].
///
/// # Errors
/// If the lengths differ, the format has values that binary32 lacks, or the device fails.
pub fn decode_into<C: Code>(from: Format, codes: &Buffer<C>, out: &mut Buffer<f32>) -> Result<()> {
    let rounder = Rounder::decoder("decode", from)?;
    if codes.len() != out.len() {
        let why = format!("{} codes and room for {}", codes.len(), out.len());
        return Err(Error::unfit("decode", why));
    }
    if codes.is_empty() {
        return Ok(());
    }
    let device = out.device().clone();
    let launch = Launch::new(&device, &CONVERT, C::DECODE).read(codes).write(out);
    // SAFETY: both buffers have as many elements as the kernel is told.
    unsafe {
        launch.value(codes.len() as u64).value(rounder).run(stride_grid(&device, codes.len()))
    }
}

/// Writes the words of elements `first`, `first + 1`, ...; as [`exmy::slice::words_into`].
///
/// # Errors
/// If the device fails.
pub fn words_into(random: Philox, first: u64, out: &mut Buffer<u32>) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let (device, count) = (out.device().clone(), out.len());
    let launch = Launch::new(&device, &CONVERT, "random_words").write(out).value(count as u64);
    // SAFETY: the buffer has as many elements as the kernel is told.
    unsafe { launch.value(Words::new(Some(random), first)).run(stride_grid(&device, count)) }
}
