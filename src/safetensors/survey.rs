//! What the numbers of a tensor look like: their range and their outliers. The measures are defined at
//! [`Survey`].
//!
//! There are two passes over the elements. Sums are `f64`, over pieces of fixed length one after
//! the other, so they are the same bits wherever the program runs. The formulae are those of Chan,
//! Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample
//! variances", 1979.

use std::io::{Read, Seek};

use super::values::{Floats, Piece};
use super::{Fault, Reader};
use crate::error::Result;
use crate::format::Format;

/// Range and outliers of a tensor's elements.
///
/// With `n` finite elements of mean `m` and standard deviation `sigma = sqrt(mean((x - m)^2))`:
///
/// * **excess kurtosis** `mean((x - m)^4) / sigma^4 - 3`: 0 for a normal distribution, 3 for a
///   Laplace distribution, larger the more the tails weigh;
/// * **beyond 6 sigma**: the share of elements with `|x - m| > 6 sigma` (normal: 2e-9);
/// * **channel ratio**: a channel is an index along the last axis, its size the largest finite `|x|`
///   in it. The ratio is that of the largest channel to the median one (of an even number, the mean
///   of the two middle ones, as numpy's). It is large where a few channels have the outliers. Only
///   for tensors with two axes or more.
///
/// Sums are `f64` in a written order, so the figures are the same bits wherever the program runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// Number of elements.
    pub count: u64,
    /// Smallest finite element; `None` if there is none.
    pub min: Option<f64>,
    /// Largest finite element.
    pub max: Option<f64>,
    /// Largest magnitude of a finite element; 0 if there is none.
    pub amax: f64,
    /// Elements that are zero, of either sign.
    pub zeros: u64,
    /// Elements that are NaN.
    pub nans: u64,
    /// Elements that are infinite.
    pub infinities: u64,
    /// Mean of the finite elements; NaN if there is none.
    pub mean: f64,
    /// Standard deviation of the finite elements.
    pub sigma: f64,
    /// Excess kurtosis; NaN if all elements are equal.
    pub kurtosis: f64,
    /// Finite elements with `|x - mean| > 6 sigma`.
    pub beyond: u64,
    /// Largest over median channel; `None` with fewer than two axes, or if the median is 0.
    pub channel_ratio: Option<f64>,
}

impl Survey {
    /// Of numbers in memory; `channels` is the length of the last axis, `None` if there are fewer
    /// than two.
    ///
    /// ```
    /// use exmy::safetensors::Survey;
    ///
    /// let mut x = [1.0_f32, -1.0, 1.0, -1.0, 1.0, -9.0, f32::NAN, -0.0];
    /// let survey = Survey::of(&x, Some(2));
    /// assert_eq!((survey.min, survey.amax, survey.nans, survey.zeros), (Some(-9.0), 9.0, 1, 1));
    /// assert_eq!(survey.channel_ratio, Some(1.8)); // the NaN's channel has size 1: 9 / (10 / 2)
    /// x.fill(0.5);
    /// assert!(Survey::of(&x, None).kurtosis.is_nan()); // no spread, no tails
    /// ```
    pub fn of(x: &[f32], channels: Option<usize>) -> Self {
        let mut first = First::new(vec![0.0; channels.unwrap_or(0)]);
        let pieces = || x.chunks(super::reader::PIECE / 4);
        for piece in pieces() {
            first.add(piece.iter().map(|x| f64::from(*x)));
        }
        let mut second = Second::new(&first);
        for piece in pieces() {
            second.add(piece.iter().map(|x| f64::from(*x)));
        }
        first.survey(second)
    }
}

/// What the first pass finds.
struct First {
    count: u64,
    finite: u64,
    min: f64,
    max: f64,
    zeros: u64,
    nans: u64,
    infinities: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
    channels: Vec<f64>,
    at: usize,
}

impl First {
    /// With a zero for each channel.
    fn new(channels: Vec<f64>) -> Self {
        Self {
            count: 0,
            finite: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            zeros: 0,
            nans: 0,
            infinities: 0,
            mean: 0.0,
            squares: 0.0,
            channels,
            at: 0,
        }
    }

    fn take(&mut self, piece: Floats<'_>) {
        match piece {
            Floats::Single(x) => self.add(x.iter().map(|x| f64::from(*x))),
            Floats::Double(x) => self.add(x.iter().copied()),
        }
    }

    fn add(&mut self, piece: impl Iterator<Item = f64> + Clone) {
        let (mut finite, mut sum) = (0_u64, 0.0);
        for x in piece.clone() {
            self.count += 1;
            if let Some(channel) = self.channels.get_mut(self.at) {
                if x.is_finite() {
                    *channel = channel.max(x.abs());
                }
                self.at = if self.at + 1 == self.channels.len() { 0 } else { self.at + 1 };
            }
            if x.is_finite() {
                finite += 1;
                sum += x;
                self.min = self.min.min(x);
                self.max = self.max.max(x);
                self.zeros += u64::from(x == 0.0);
            } else {
                self.nans += u64::from(x.is_nan());
                self.infinities += u64::from(x.is_infinite());
            }
        }
        if finite == 0 {
            return;
        }
        let mean = sum / finite as f64;
        let distances = piece.filter(|x| x.is_finite()).map(|x| (x - mean) * (x - mean));
        let squares: f64 = distances.sum();
        let total = (self.finite + finite) as f64;
        let apart = mean - self.mean;
        let share = finite as f64 / total;
        self.squares += squares + apart * apart * self.finite as f64 * share;
        self.mean += apart * share;
        self.finite += finite;
    }

    fn survey(mut self, second: Second) -> Survey {
        let finite = self.finite as f64;
        let sigma = (self.squares / finite).sqrt();
        let Second { fourth, beyond, .. } = second;
        // In place, for there may be as many channels as elements.
        self.channels.sort_unstable_by(f64::total_cmp);
        let channels = &self.channels;
        let middle = (channels.len().wrapping_sub(1) / 2, channels.len() / 2);
        let median = channels.get(middle.0).zip(channels.get(middle.1));
        // Halves are added: the sum of the largest numbers would be infinite.
        let median = median.map(|(lower, upper)| 0.5 * lower + 0.5 * upper);
        let ratio = median.zip(channels.last()).filter(|(median, _)| *median > 0.0);
        Survey {
            count: self.count,
            min: (self.finite > 0).then_some(self.min),
            max: (self.finite > 0).then_some(self.max),
            amax: if self.finite > 0 { self.max.max(-self.min) } else { 0.0 },
            zeros: self.zeros,
            nans: self.nans,
            infinities: self.infinities,
            mean: if self.finite > 0 { self.mean } else { f64::NAN },
            sigma,
            kurtosis: fourth / finite / (sigma * sigma * sigma * sigma) - 3.0,
            beyond,
            channel_ratio: ratio.map(|(median, largest)| largest / median),
        }
    }
}

/// What the second pass sums, with mean and deviation known.
struct Second {
    mean: f64,
    limit: f64,
    fourth: f64,
    beyond: u64,
}

impl Second {
    fn new(first: &First) -> Self {
        let sigma = (first.squares / first.finite as f64).sqrt();
        Self { mean: first.mean, limit: 6.0 * sigma, fourth: 0.0, beyond: 0 }
    }

    fn take(&mut self, piece: Floats<'_>) {
        match piece {
            Floats::Single(x) => self.add(x.iter().map(|x| f64::from(*x))),
            Floats::Double(x) => self.add(x.iter().copied()),
        }
    }

    fn add(&mut self, piece: impl Iterator<Item = f64>) {
        let mut fourth = 0.0;
        for x in piece.filter(|x| x.is_finite()) {
            let apart = x - self.mean;
            fourth += apart * apart * (apart * apart);
            self.beyond += u64::from(apart.abs() > self.limit);
        }
        self.fourth += fourth;
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Range and outliers of a floating-point tensor, read in pieces, twice. Elements of narrow
    /// types count as their own values, without the scale that another tensor may hold.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Reader, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a");
    /// let tensors = [Outline::new("x", Dtype::F32, [4]), Outline::new("i", Dtype::I8, [1])];
    /// let mut writer = Writer::create(&path, &tensors, Default::default())?;
    /// writer.write("x", &[1.0, -3.0, f32::NAN, f32::INFINITY].map(f32::to_le_bytes).concat())?;
    /// writer.write("i", &[1])?;
    /// writer.finish()?;
    ///
    /// let mut reader = Reader::open(&path)?;
    /// let survey = reader.survey("x")?;
    /// assert_eq!((survey.nans, survey.infinities), (1, 1)); // counted, and no part of the range:
    /// assert_eq!((survey.min, survey.max), (Some(-3.0), Some(1.0)));
    /// assert!(reader.survey("i").is_err()); // integers
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor, it does not hold floating-point numbers, or it cannot be read.
    pub fn survey(&mut self, name: &str) -> Result<Survey> {
        let entry = self.entry(name)?;
        let dtype = entry.dtype;
        let some = entry.shape.len() > 1 && entry.count() > 0;
        let channels = entry.shape.last().filter(|_| some).copied();
        let format = dtype
            .format()
            .ok_or_else(|| self.fault(Fault::NotFloat { name: name.to_owned(), dtype }))?;
        self.survey_codes(name, format, channels)
    }

    /// As [`survey`](Self::survey), of elements that are codes of `format`.
    pub(super) fn survey_codes(
        &mut self,
        name: &str,
        format: Format,
        channels: Option<usize>,
    ) -> Result<Survey> {
        let width = self.entry(name)?.dtype.bits();
        let mut piece = Piece::default();
        let mut sizes = Vec::new();
        self.reserve(name, &mut sizes, channels.unwrap_or(0))?;
        sizes.resize(channels.unwrap_or(0), 0.0);
        let mut first = First::new(sizes);
        self.pieces(name, |bytes| {
            first.take(piece.decode(format, width, bytes));
            Ok(())
        })?;
        let mut second = Second::new(&first);
        self.pieces(name, |bytes| {
            second.take(piece.decode(format, width, bytes));
            Ok(())
        })?;
        Ok(first.survey(second))
    }

    /// Range and outliers of a tensor's values, quantized or not, decoded in pieces, twice. Unlike
    /// [`read_values`](Self::read_values) it rounds nothing, also of formats wider than `f32`.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, QuantizeOptions, Outline, Progress, Reader, Writer, quantize};
    /// use std::ops::ControlFlow;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    /// let mut writer = Writer::create(&from, &[Outline::new("w", Dtype::F64, [1, 2])], Default::default())?;
    /// writer.write("w", &[1e300_f64, -1.5].map(f64::to_le_bytes).concat())?;
    /// writer.finish()?;
    ///
    /// let options = QuantizeOptions::new("e11m4".parse().unwrap());
    /// quantize(&from, &to, &options, &mut |_: &Progress<'_>| ControlFlow::Continue(()))?;
    /// let mut reader = Reader::open(&to)?;
    /// let survey = reader.survey_values("w")?;
    /// assert_eq!((survey.infinities, survey.min), (0, Some(-1.5)));
    /// assert!(survey.amax > 9e299); // beyond f32, and 1.0045e300 all the same
    /// assert_eq!(reader.read_values("w")?[0], f32::INFINITY);
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`read_values`](Self::read_values).
    pub fn survey_values(&mut self, name: &str) -> Result<Survey> {
        let Some(record) = self.records()?.get(name).cloned() else { return self.survey(name) };
        let some = record.shape.len() > 1 && record.count() > 0;
        let channels = record.shape.last().filter(|_| some).copied();
        let mut maxima = Vec::new();
        self.reserve(name, &mut maxima, channels.unwrap_or(0))?;
        maxima.resize(channels.unwrap_or(0), 0.0);
        let mut first = First::new(maxima);
        self.each_values(name, &record, |piece| {
            first.take(piece);
            Ok(())
        })?;
        let mut second = Second::new(&first);
        self.each_values(name, &record, |piece| {
            second.take(piece);
            Ok(())
        })?;
        Ok(first.survey(second))
    }
}
