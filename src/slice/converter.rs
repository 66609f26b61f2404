//! A conversion prepared for slices.

use alloc::vec;
use alloc::vec::Vec;

use super::chunks::{divided, divided_in_place, spans};
use super::fast::Fast;
use super::grid::{self, Grid};
use super::memory::Traffic;
use super::plain::image;
use super::real::sealed::{Reals, RealsMut};
use super::{Real, SHORT, SPAN, recode, sources, words_into};
use crate::format::Format;
use crate::math::Operand;
use crate::minifloat::{Bits, Word};
use crate::random::Philox;
use crate::round::{Rounding, Rules};

/// A format and its rules, prepared for slices.
///
/// ```
/// use exmy::slice::Converter;
/// use exmy::format::Format;
/// use exmy::round::Rules;
///
/// let converter = Converter::new(Format::E4M3FN, Rules::SATURATING);
/// let mut codes = [0_u8; 4];
/// converter.encode_into(&[1.0_f32, 464.0, 465.0, f32::NAN], &mut codes);
/// assert_eq!(codes, [0x38, 0x7E, 0x7E, 0x7F]); // 465 saturates; by the default rules it is NaN
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Converter<'w> {
    pub(super) to: Format,
    pub(super) rules: Rules,
    random: Option<Random<'w>>,
    first: u64,
    fast: Option<Fast>,
    grid: Option<Grid>,
}

/// Where random words come from, found by their index.
#[derive(Clone, Copy, Debug)]
enum Random<'w> {
    Philox(Philox),
    /// As many as there are indices.
    Given(&'w [u32]),
}

impl Random<'_> {
    fn word(self, index: u64) -> u32 {
        match self {
            Self::Philox(random) => random.word(index),
            Self::Given(words) => words[index as usize],
        }
    }

    fn words_into(self, first: u64, out: &mut [u32]) {
        match self {
            Self::Philox(random) => words_into(random, first, out),
            Self::Given(words) => out.copy_from_slice(&words[first as usize..][..out.len()]),
        }
    }
}

impl<'w> Converter<'w> {
    /// Conversion to the format `to` by `rules`.
    ///
    /// # Panics
    /// If the rounding mode is stochastic with a bit count outside 1..=32.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// // The default rules do not saturate: E4M3FN has no infinity, so NaN takes its place.
    /// let codes: Vec<u8> = Converter::new(Format::E4M3FN, Rules::DEFAULT).encode(&[464.0_f32, 465.0]);
    /// assert_eq!(codes, [0x7E, 0x7F]); // the tie goes to the even 448, what lies above to NaN
    /// ```
    pub fn new(to: Format, rules: Rules) -> Self {
        if let Rounding::Stochastic { bits, .. } = rules.rounding {
            assert!((1..=32).contains(&bits), "stochastic rounding takes 1 to 32 random bits");
        }
        let fast = Fast::new(to, rules);
        let plain =
            rules == Rules::DEFAULT.with_rounding(rules.rounding).with_overflow(rules.overflow);
        let grid = (plain && fast.is_none())
            .then(|| Grid::new(to, rules.rounding, rules.overflow))
            .flatten();
        Self { to, rules, random: None, first: 0, fast, grid }
    }

    /// The same with random words: element `i` of a slice uses word `i`.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::random::{Philox, Stream};
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let rules = Rules::SATURATING.with_rounding(Rounding::stochastic(16));
    /// let random = |seed| Philox::new(seed, Stream::new("doc"));
    /// let convert = |seed| Converter::new(Format::E2M1, rules).with_random(random(seed));
    /// let x = [0.25_f32; 64]; // halfway between 0 and 0.5
    /// let y: Vec<u8> = convert(1).encode(&x);
    /// assert!(y.contains(&0) && y.contains(&1));
    /// assert_eq!(convert(1).encode::<f32, u8>(&x[..9]), y[..9]); // the same words for the same elements
    /// assert_ne!(convert(2).encode::<f32, u8>(&x), y);
    /// ```
    #[must_use]
    pub const fn with_random(self, random: Philox) -> Self {
        Self { random: Some(Random::Philox(random)), ..self }
    }

    /// The same with random words of one's own: element `i` of a slice uses `words[i]`, of which srN
    /// takes the *top* N bits.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let rules = Rules::SATURATING.with_rounding(Rounding::stochastic(2));
    /// let words = [0, 1 << 30, 2 << 30, 3 << 30]; // the four numbers of two bits
    /// let mut y = [2.25_f32; 4]; // a quarter of the way from 2 to 3
    /// Converter::new(Format::E2M1, rules).with_words(&words).fake_quantize(&mut y);
    /// assert_eq!(y, [2.0, 2.0, 2.0, 3.0]);
    /// ```
    ///
    /// With [`starting_at`](Self::starting_at) they are those of the larger whole. A conversion of more
    /// elements than there are words panics.
    #[must_use]
    pub const fn with_words<'a>(self, words: &'a [u32]) -> Converter<'a>
    where
        'w: 'a,
    {
        Converter { random: Some(Random::Given(words)), ..self }
    }

    /// The same for a slice that is a part of something larger: element `i` uses random word
    /// `first + i`.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::random::{Philox, Stream};
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let rules = Rules::SATURATING.with_rounding(Rounding::stochastic(8));
    /// let converter = Converter::new(Format::E2M1, rules).with_random(Philox::new(1, Stream::new("doc")));
    /// let x = [0.3_f32; 100];
    /// let whole = converter.encode::<f32, u8>(&x);
    /// assert_eq!(converter.starting_at(33).encode::<f32, u8>(&x[33..]), whole[33..]);
    /// ```
    #[must_use]
    pub const fn starting_at(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// The random word of a slice's first element.
    pub const fn start(&self) -> u64 {
        self.first
    }

    /// The target format.
    pub const fn format(&self) -> Format {
        self.to
    }

    /// The rules.
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// Writes to `codes` the codes to which the elements of `x` round. Long slices of `f32` are
    /// divided between threads, with the feature `parallel`.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let x = [0.25_f32, 0.75, -0.0, 7.0, f32::INFINITY, f32::NAN];
    /// let mut codes = [0_u8; 6];
    /// // Ties go to even codes, and E2M1 has its largest value in place of infinity and of NaN.
    /// Converter::new(Format::E2M1, Rules::SATURATING).encode_into(&x, &mut codes);
    /// assert_eq!(codes, [0x0, 0x2, 0x8, 0x7, 0x7, 0x7]);
    /// // E4M3FN without saturation has NaN in place of both.
    /// Converter::new(Format::E4M3FN, Rules::DEFAULT).encode_into(&x, &mut codes);
    /// assert_eq!(codes, [0x28, 0x34, 0x80, 0x4E, 0x7F, 0x7F]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, the codes are wider than their integer, or the mode is stochastic and
    /// no random words were given, or too few.
    pub fn encode_into<S: Real, C: Bits>(&self, x: &[S], codes: &mut [C]) {
        self.check::<C>(x.len(), codes.len());
        match S::reals(x) {
            Reals::F32(x) => sources::encode_f32(self, x, codes),
            Reals::F64(x) => sources::encode_f64(self, x, codes),
            Reals::Codes(x) => recode::recode(self, S::FORMAT, x, codes),
        }
    }

    /// As [`encode_into`](Self::encode_into), of slices that its checks have passed.
    pub(super) fn encode_f32<C: Bits>(&self, x: &[f32], codes: &mut [C]) {
        match &self.fast {
            Some(fast) if C::WIDTH <= 32 => self.in_chunks(x, codes, |first, x, words, codes| {
                fast.encode(x, words, codes);
                self.patch_nan(fast, first, x, codes, |code| C::from_u64(code));
            }),
            _ => self.encode_plain(x, codes),
        }
    }

    /// The codes to which the elements of `x` round.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let to_bf16 = Converter::new(Format::BF16, Rules::DEFAULT);
    /// assert_eq!(to_bf16.encode::<f32, u16>(&[1.0, 1.00390625, 3.4e38]), [0x3F80, 0x3F80, 0x7F80]);
    /// ```
    ///
    /// # Panics
    /// As [`encode_into`](Self::encode_into), but for the lengths.
    pub fn encode<S: Real, C: Bits>(&self, x: &[S]) -> Vec<C> {
        let mut codes = vec![C::from_u64(0); x.len()];
        self.encode_into(x, &mut codes);
        codes
    }

    /// Writes to `out` the codes to which the values of `codes`, codes of the format `from`, round.
    ///
    /// # Panics
    /// As [`encode_into`](Self::encode_into).
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// // 448 is more than 6, 0.25 a tie of 0 and 0.5, and E2M1 has no NaN.
    /// let to_fp4 = Converter::new(Format::E2M1, Rules::SATURATING);
    /// let mut codes = [0_u8; 4];
    /// to_fp4.recode_into(Format::E4M3FN, &[0x7E_u8, 0x28, 0xB8, 0x7F], &mut codes);
    /// assert_eq!(codes, [0x7, 0x0, 0xA, 0x7]);
    /// ```
    pub fn recode_into<C: Bits, D: Bits>(&self, from: Format, codes: &[C], out: &mut [D]) {
        self.check::<D>(codes.len(), out.len());
        recode::recode(self, from, codes, out);
    }

    /// Writes to `out` the values to which the elements of `x` round; values that the type cannot
    /// hold (of formats wider than it) are rounded once more, to nearest even.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::{Flush, Rules};
    ///
    /// let x = [0.1_f32, 0.01, -1e9];
    /// let mut y = [0.0; 3];
    /// Converter::new(Format::E4M3FN, Rules::SATURATING).fake_quantize_into(&x, &mut y);
    /// assert_eq!(y, [0.1015625, 0.009765625, -448.0]);
    /// // Numbers below 2^-6 may be flushed.
    /// let rules = Rules::SATURATING.with_flush(Flush::Input);
    /// Converter::new(Format::E4M3FN, rules).fake_quantize_into(&x, &mut y);
    /// assert_eq!(y, [0.1015625, 0.0, -448.0]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or the mode is stochastic and no random words were given, or too few.
    pub fn fake_quantize_into<S: Real>(&self, x: &[S], out: &mut [S]) {
        self.check::<u64>(x.len(), out.len());
        match (S::reals(x), S::reals_mut(out)) {
            (Reals::F32(x), RealsMut::F32(out)) => self.round_into(x, out),
            _ => sources::fake_quantize_into(self, x, out),
        }
    }

    /// Rounds every element in place; see [`fake_quantize_into`](Self::fake_quantize_into).
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let mut x = [1.9_f32, -1.9, f32::MAX];
    /// let rules = Rules::DEFAULT.with_rounding(Rounding::TowardZero);
    /// Converter::new("e8m1".parse()?, rules).fake_quantize(&mut x);
    /// assert_eq!(x, [1.5, -1.5, 1.5 * 2.0_f32.powi(127)]); // toward zero nothing overflows
    /// # Ok::<(), exmy::text::ParseFormatError>(())
    /// ```
    ///
    /// # Panics
    /// If the mode is stochastic and no random words were given, or too few.
    pub fn fake_quantize<S: Real>(&self, data: &mut [S]) {
        self.check_words(data.len());
        match S::reals_mut(data) {
            RealsMut::F32(data) => self.round(data),
            _ => sources::fake_quantize(self, data),
        }
    }

    /// As [`fake_quantize_into`](Self::fake_quantize_into), of slices of one length.
    pub(crate) fn round_into(&self, x: &[f32], out: &mut [f32]) {
        match (&self.fast, &self.grid) {
            (Some(fast), _) => self.in_chunks(x, out, |first, x, words, out| {
                fast.round(x, words, out);
                self.patch_nan(fast, first, x, out, |code| image(self.to, code));
            }),
            (None, Some(grid)) => self.in_chunks(x, out, |_, x, words, out| {
                out.copy_from_slice(x);
                if words.is_empty() {
                    grid::cast(grid, out);
                } else {
                    grid::cast_stochastic(grid, words, out);
                }
            }),
            (None, None) => self.fake_quantize_plain(x, out),
        }
    }

    /// As [`fake_quantize`](Self::fake_quantize).
    pub(crate) fn round(&self, data: &mut [f32]) {
        // To clear a copy of a whole span took longer than to round a row of an attention head.
        if data.len() <= SHORT {
            return self.round_by_copies::<SHORT>(data);
        }
        divided_in_place(data, |first, data| {
            self.at_element(first).round_by_copies::<SPAN>(data);
        });
    }

    /// The kernels read one slice and write another. So `N` elements are copied first: they stay in the
    /// first-level cache, where a copy costs little.
    fn round_by_copies<const N: usize>(&self, data: &mut [f32]) {
        let mut copy = [0.0; N];
        for (i, data) in data.chunks_mut(N).enumerate() {
            let copy = &mut copy[..data.len()];
            copy.copy_from_slice(data);
            self.at_element(i * N).round_into(copy, data);
        }
    }

    /// The same for what begins `offset` elements further on.
    pub(super) const fn at_element(self, offset: usize) -> Self {
        Self { first: self.first.wrapping_add(offset as u64), ..self }
    }

    /// Calls `work` for parts of the slices, with the place of their first element and the random
    /// words of all if the mode needs them. Long slices are divided between threads.
    fn in_chunks<T: Word>(
        &self,
        x: &[f32],
        out: &mut [T],
        work: impl Fn(usize, &[f32], &[u32], &mut [T]) + Sync + Send,
    ) {
        let random = self.rules.rounding.is_stochastic().then(|| self.generator());
        let light = self.fast.is_some_and(|fast| fast.is_light());
        let traffic = Traffic::of(x, out, light);
        divided(x, out, |first, x, out| {
            let Some(random) = random else {
                return traffic.pieces(x, out, |at, x, out| work(first + at, x, &[], out));
            };
            // Made once: to clear it for each of `pieces`, which are a fraction of it, took longer
            // than to convert them.
            let mut words = [0; SPAN];
            traffic.pieces(x, out, |at, x, out| {
                spans(x, out, |offset, x, out| {
                    let first = first + at + offset;
                    let words = &mut words[..x.len()];
                    random.words_into(self.first.wrapping_add(first as u64), words);
                    work(first, x, words, out);
                });
            });
        });
    }

    /// Writes anew what became of NaN where it keeps a payload.
    fn patch_nan<T>(
        &self,
        fast: &Fast,
        first: usize,
        x: &[f32],
        out: &mut [T],
        from: impl Fn(u64) -> T,
    ) {
        if !fast.patches_nan {
            return;
        }
        for (i, (x, out)) in x.iter().zip(out).enumerate() {
            if x.is_nan() {
                *out = from(self.code(Operand::f32(*x), first + i));
            }
        }
    }

    #[track_caller]
    fn generator(&self) -> Random<'w> {
        let Some(random) = self.random else {
            let mode = self.rules.rounding;
            panic!("{mode} rounding needs random words: Converter::with_random or with_words")
        };
        random
    }

    /// The random word of element `i` of a slice, which deterministic modes do not need.
    #[track_caller]
    pub(super) fn word(&self, i: usize) -> u32 {
        if !self.rules.rounding.is_stochastic() {
            return 0;
        }
        self.generator().word(self.first.wrapping_add(i as u64))
    }

    #[track_caller]
    pub(super) fn check<C: Bits>(&self, from: usize, to: usize) {
        assert_eq!(from, to, "input and output of a conversion have different lengths");
        let (width, bits) = (self.to.bits(), C::WIDTH);
        assert!(width <= bits, "codes of {} have {width} bits and do not fit {bits}", self.to);
        self.check_words(from);
    }

    /// Whether there are words for as many elements, if the mode needs any.
    #[track_caller]
    fn check_words(&self, count: usize) {
        let Some(Random::Given(words)) = self.random else { return };
        let (given, first) = (words.len(), self.first);
        let enough = first.checked_add(count as u64).is_some_and(|end| end <= given as u64);
        assert!(
            enough || !self.rules.rounding.is_stochastic(),
            "{count} elements from word {first} on need as many random words; {given} were given"
        );
    }
}
