//! The random Hadamard transform: a rotation that spreads outliers over a group of elements before
//! they share a scale.
//!
//! `n` consecutive elements `x` along the reduction axis become
//!
//! ```text
//! x'_j = (1 / sqrt n) * sum over i of  s_i x_i (-1)^popcount(i & j)       x' = x diag(s) H / sqrt n
//! ```
//!
//! with Sylvester's Hadamard matrix `H` and signs `s`. The transform is orthogonal, so a product of
//! two operands rotated along their reduction axis is the product of the operands:
//! `(A R)(B R)^T = A B^T` (arXiv 2509.25149, section 4.2; Transformer Engine
//! `get_wgrad_sign_vector`). Image and product stay in rotated coordinates; nothing is rotated
//! back.
//!
//! # Order
//!
//! In binary32, every operation rounded to nearest even. First come the signs, then for
//! `h = 1, 2, 4 .. n/2` the butterflies `(x_i, x_(i+h)) <- (x_i + x_(i+h), x_i - x_(i+h))` of all `i`
//! without the bit `h`. One multiplication by `1 / sqrt n` follows (exact for n = 4, 16, 64), and the
//! result is rounded to bfloat16, unless said otherwise. The bits do not depend on the
//! [`simd`](crate::simd) level.
//!
//! # Text
//!
//! `rht16` is Transformer Engine's: 16 elements and its 16 signs (of other sizes, element `i` has
//! sign `i mod 16`). `ht16` has no signs, `rht16-seed7` signs drawn by Philox under seed 7, and
//! `-f32` at the end leaves out the last rounding.

#![forbid(unsafe_code)]

mod kernel;

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::random::{Philox, Stream};
use crate::slice::{View, ViewMut};
use crate::text::{Short, UnknownName};

/// The signs the elements are multiplied with before the butterflies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signs {
    /// None.
    Plus,
    /// `+++-+-------+-+--` of 16 elements, repeated or cut for other sizes: Transformer Engine's
    /// vector for all layers and steps.
    TransformerEngine,
    /// The top bit of word `i` of the Philox stream `hadamard signs` under a seed is set where sign
    /// `i` is minus.
    Random(u64),
}

/// Transformer Engine's signs, bit `i` set where sign `i` is minus: `+++-+-------+-+--` has
/// minus at 3, 5 to 10, 12, 14 and 15.
const TRANSFORMER_ENGINE: u16 = 0b1101_0111_1110_1000;

/// Which group of elements is rotated, with which signs, and whether bfloat16 comes out.
///
/// ```
/// use exmy::block::hadamard::Hadamard;
///
/// let rotation: Hadamard = "ht4".parse()?;
/// let mut x = [1.0_f32, 0.0, 0.0, 0.0, /* the next group */ 1.0, 1.0, 1.0, 1.00390625];
/// rotation.apply(&mut x);
/// assert_eq!(x[..4], [0.5; 4]);
/// // 2.001953125 is half a bfloat16 place above 2, and ties go to even.
/// assert_eq!(x[4..], [2.0, -0.001953125, -0.001953125, 0.001953125]);
/// # Ok::<(), exmy::text::UnknownName>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hadamard {
    size: u8,
    signs: Signs,
    bf16: bool,
}

impl Hadamard {
    /// The sizes there are.
    pub const SIZES: [usize; 7] = [2, 4, 8, 16, 32, 64, 128];

    /// Transformer Engine's transform of NVFP4's weight gradients: 16 elements, its signs, bfloat16
    /// out.
    pub const TRANSFORMER_ENGINE: Self =
        Self { size: 16, signs: Signs::TransformerEngine, bf16: true };

    /// Of `size` elements; bfloat16 comes out.
    ///
    /// # Errors
    /// If `size` is none of [`SIZES`](Self::SIZES).
    ///
    /// ```
    /// use exmy::block::hadamard::{Hadamard, Signs};
    ///
    /// assert_eq!(Hadamard::new(16, Signs::TransformerEngine), Ok(Hadamard::TRANSFORMER_ENGINE));
    /// let error = Hadamard::new(12, Signs::Plus).unwrap_err().to_string();
    /// assert!(error.contains("2, 4, 8, 16, 32, 64 or 128"));
    /// ```
    pub const fn new(size: usize, signs: Signs) -> Result<Self, HadamardError> {
        if !size.is_power_of_two() || size < 2 || size > 128 {
            return Err(HadamardError::Size(size));
        }
        Ok(Self { size: size as u8, signs, bf16: true })
    }

    /// The same with the result left in binary32.
    ///
    /// ```
    /// use exmy::block::hadamard::{Hadamard, Signs};
    ///
    /// let rotation = Hadamard::new(2, Signs::Plus).unwrap();
    /// let mut x = [[1.0_f32, 0.0]; 2];
    /// rotation.apply(&mut x[0]);
    /// rotation.in_f32().apply(&mut x[1]);
    /// assert_eq!(x, [[0.70703125; 2], [0.5_f32.sqrt(); 2]]); // bfloat16 comes out unless said otherwise
    /// ```
    #[must_use]
    pub const fn in_f32(self) -> Self {
        Self { bf16: false, ..self }
    }

    /// Elements of a group.
    ///
    /// ```
    /// use exmy::block::hadamard::{Hadamard, Signs};
    ///
    /// assert_eq!(Hadamard::TRANSFORMER_ENGINE.size(), 16);
    /// assert!(Hadamard::new(1, Signs::Plus).is_err());
    /// ```
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// The signs.
    pub const fn signs(self) -> Signs {
        self.signs
    }

    /// Whether the result is rounded to bfloat16.
    pub const fn rounds_to_bf16(self) -> bool {
        self.bf16
    }

    /// The sign bits of 128 elements, in the place of binary32's sign.
    #[doc(hidden)]
    pub fn sign_bits(self) -> [u32; 128] {
        let random = match self.signs {
            Signs::Random(seed) => Some(Philox::new(seed, Stream::new("hadamard signs"))),
            _ => None,
        };
        core::array::from_fn(|i| match (self.signs, random) {
            (Signs::Plus, _) => 0,
            (Signs::TransformerEngine, _) => {
                u32::from(TRANSFORMER_ENGINE >> (i % self.size() % 16) & 1) << 31
            }
            (_, Some(random)) => random.word((i % self.size()) as u64) & 0x8000_0000,
            (_, None) => 0,
        })
    }

    /// Rotates each group of [`size`](Self::size) consecutive elements in place: whole rows of a
    /// row-major matrix, or a part of one, along its columns.
    ///
    /// ```
    /// use exmy::block::hadamard::{Hadamard, Signs};
    ///
    /// // One outlier is spread over its group of four, and over no other.
    /// let mut x = [0.0, 8.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    /// Hadamard::new(4, Signs::Plus).unwrap().apply(&mut x);
    /// assert_eq!(x, [4.0, -4.0, 4.0, -4.0, 2.0, 0.0, 0.0, 0.0]);
    /// ```
    ///
    /// # Panics
    /// If the length is no multiple of the size.
    pub fn apply(self, x: &mut [f32]) {
        self.assert_whole(x.len());
        kernel::along(&self.steps(false), x);
    }

    /// The inverse of [`apply`](Self::apply): the butterflies first, the signs last. It is exact only
    /// as far as its roundings are.
    ///
    /// # Panics
    /// If the length is no multiple of the size.
    ///
    /// ```
    /// use exmy::block::hadamard::Hadamard;
    ///
    /// let rotation: Hadamard = "rht16".parse()?;
    /// let mut x: Vec<f32> = (0..32).map(|i| (i % 5) as f32).collect();
    /// rotation.apply(&mut x);
    /// rotation.invert(&mut x);
    /// assert_eq!(x, (0..32).map(|i| (i % 5) as f32).collect::<Vec<f32>>());
    /// # Ok::<(), exmy::text::UnknownName>(())
    /// ```
    pub fn invert(self, x: &mut [f32]) {
        self.assert_whole(x.len());
        kernel::along(&self.steps(true), x);
    }

    /// Rotates each group of [`size`](Self::size) consecutive rows in place, down the columns: rows
    /// of `cols` elements, `stride` apart.
    ///
    /// # Panics
    /// If the number of rows that `x` holds is no multiple of the size, or `stride < cols`.
    ///
    /// ```
    /// use exmy::block::hadamard::Hadamard;
    ///
    /// let mut x = [1.0, 2.0, 9.0, 3.0, 5.0, 9.0]; // two rows of two columns, three apart
    /// let rotation: Hadamard = "ht2-f32".parse()?;
    /// rotation.apply_down(&mut x, 2, 3);
    /// let half = 0.5_f32.sqrt();
    /// assert_eq!(x, [4.0 * half, 7.0 * half, 9.0, -2.0 * half, -3.0 * half, 9.0]);
    /// # Ok::<(), exmy::text::UnknownName>(())
    /// ```
    pub fn apply_down(self, x: &mut [f32], cols: usize, stride: usize) {
        self.down(x, cols, stride, false);
    }

    /// The inverse of [`apply_down`](Self::apply_down).
    ///
    /// ```
    /// use exmy::block::hadamard::{Hadamard, Signs};
    ///
    /// let rotation = Hadamard::new(4, Signs::Random(1)).unwrap();
    /// let mut x = [1.0, 9.0, 2.0, 9.0, 3.0, 9.0, 4.0]; // four rows of one column, the last without its gap
    /// rotation.apply_down(&mut x, 1, 2);
    /// rotation.invert_down(&mut x, 1, 2);
    /// assert_eq!(x, [1.0, 9.0, 2.0, 9.0, 3.0, 9.0, 4.0]);
    /// ```
    ///
    /// # Panics
    /// As there.
    pub fn invert_down(self, x: &mut [f32], cols: usize, stride: usize) {
        self.down(x, cols, stride, true);
    }

    #[track_caller]
    fn down(self, x: &mut [f32], cols: usize, stride: usize, inverse: bool) {
        assert!(stride >= cols, "rows of {cols} elements, {stride} apart");
        if cols == 0 {
            return;
        }
        // The last row may end with its last element.
        self.assert_whole((x.len() + stride - cols) / stride);
        let steps = self.steps(inverse);
        for group in x.chunks_mut(stride * self.size()) {
            kernel::down(&steps, group, cols, stride);
        }
    }

    #[track_caller]
    fn assert_whole(self, length: usize) {
        if let Err(error) = self.check(length) {
            panic!("{error}");
        }
    }

    fn steps(self, inverse: bool) -> kernel::Steps {
        let scale = self.factor();
        kernel::Steps {
            size: self.size(),
            signs: self.sign_bits(),
            scale,
            inverse,
            bf16: self.bf16,
        }
    }

    /// `1 / sqrt n` in binary32.
    #[doc(hidden)]
    pub const fn factor(self) -> f32 {
        match self.size {
            2 => core::f32::consts::FRAC_1_SQRT_2,
            4 => 0.5,
            8 => 0.5 * core::f32::consts::FRAC_1_SQRT_2,
            16 => 0.25,
            32 => 0.25 * core::f32::consts::FRAC_1_SQRT_2,
            64 => 0.125,
            _ => 0.125 * core::f32::consts::FRAC_1_SQRT_2,
        }
    }

    /// Whether groups fill `length` elements.
    ///
    /// # Errors
    /// If not; the error says how many zeros would fill the last one. Zeros add nothing to a product,
    /// as long as the other operand is padded alike.
    ///
    /// ```
    /// use exmy::block::hadamard::Hadamard;
    ///
    /// let error = Hadamard::TRANSFORMER_ENGINE.check(40).unwrap_err();
    /// assert!(error.to_string().contains("8 zeros"));
    /// ```
    pub const fn check(self, length: usize) -> Result<(), HadamardError> {
        if length.is_multiple_of(self.size()) {
            Ok(())
        } else {
            Err(HadamardError::Ragged { size: self.size(), length })
        }
    }

    /// A matrix rotated along its columns (each row by itself), padded with zeros on the right to
    /// whole groups: the values, row-major, and the number of columns they have. For the other axis
    /// pass the transposed view.
    ///
    /// ```
    /// use exmy::block::hadamard::Hadamard;
    /// use exmy::slice::View;
    ///
    /// let rotation: Hadamard = "ht4".parse()?;
    /// let x = [1.0, 2.0, 3.0, 4.0, 8.0];
    /// let (rotated, cols) = rotation.padded(View::new(&x, 1, 5));
    /// assert_eq!((rotated, cols), (vec![5.0, -1.0, -2.0, 0.0, 4.0, 4.0, 4.0, 4.0], 8));
    /// # Ok::<(), exmy::text::UnknownName>(())
    /// ```
    pub fn padded(self, x: View<'_, f32>) -> (Vec<f32>, usize) {
        let cols = x.cols().next_multiple_of(self.size());
        let places = (0..x.rows()).flat_map(|i| (0..cols).map(move |j| (i, j)));
        let value = |(i, j)| if j < x.cols() { x.at(i, j) } else { 0.0 };
        let mut rotated: Vec<f32> = places.map(value).collect();
        self.apply(&mut rotated);
        (rotated, cols)
    }

    /// Rotates a matrix in place, along its columns or, if `down`, along its rows.
    ///
    /// ```
    /// use exmy::block::hadamard::{Hadamard, Signs};
    ///
    /// use exmy::slice::ViewMut;
    ///
    /// let rotation = Hadamard::new(4, Signs::Plus).unwrap();
    /// let mut x = [8.0, 0.0, 0.0, 0.0];
    /// assert!(rotation.apply_matrix(ViewMut::new(&mut x, 1, 4), true).is_err()); // one row is no group
    /// assert_eq!(x, [8.0, 0.0, 0.0, 0.0]);
    /// rotation.apply_matrix(ViewMut::new(&mut x, 1, 4), false).unwrap();
    /// assert_eq!(x, [4.0; 4]);
    /// ```
    ///
    /// # Errors
    /// If groups do not fill the axis, see [`check`](Self::check); nothing is written then.
    pub fn apply_matrix(self, mut x: ViewMut<'_, f32>, down: bool) -> Result<(), HadamardError> {
        let (rows, cols, stride) = (x.rows(), x.cols(), x.row_stride());
        self.check(if down { rows } else { cols })?;
        if rows == 0 || cols == 0 {
            return Ok(());
        }
        let len = (rows - 1) * stride + cols;
        let data = &mut x.data_mut()[..len];
        if down {
            self.apply_down(data, cols, stride);
        } else if stride == cols {
            self.apply(data);
        } else {
            data.chunks_mut(stride).for_each(|row| self.apply(&mut row[..cols]));
        }
        Ok(())
    }
}

/// Why a transform cannot be made or applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HadamardError {
    /// A size there is no transform of.
    Size(usize),
    /// Elements that are left over.
    Ragged {
        /// Elements of a group.
        size: usize,
        /// Elements there are.
        length: usize,
    },
}

impl fmt::Display for HadamardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(
                f,
                "a Hadamard transform of {size} elements: sizes are 2, 4, 8, 16, 32, 64 or 128"
            ),
            Self::Ragged { size, length } => write!(
                f,
                "a Hadamard transform of {size} elements along an axis of {length}: {} zeros at its \
                 end, in both operands of a product, would fill the last group",
                size - length % size
            ),
        }
    }
}

impl core::error::Error for HadamardError {}

impl fmt::Display for Hadamard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size;
        match self.signs {
            Signs::Plus => write!(f, "ht{size}")?,
            Signs::TransformerEngine => write!(f, "rht{size}")?,
            Signs::Random(seed) => write!(f, "rht{size}-seed{seed}")?,
        }
        if self.bf16 { Ok(()) } else { f.write_str("-f32") }
    }
}

impl FromStr for Hadamard {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or_else(|| {
            let names = ["rht16", "ht16", "rht4", "ht4", "rht128", "ht128", "rht16-f32"];
            UnknownName::new("Hadamard transform", text, names, Self::FORMS)
        })
    }
}

impl Hadamard {
    const FORMS: &str = "rhtN (Transformer Engine's signs), htN (none), rhtN-seedS (drawn), each with \
                         -f32 at the end to leave out the rounding to bf16; N of 2, 4, 8, 16, 32, 64, 128";

    /// Whether a text begins as that of a transform does.
    pub(crate) fn is_meant(text: &str) -> bool {
        let text = text.as_bytes();
        let rest = text.strip_prefix(b"r").or_else(|| text.strip_prefix(b"R")).unwrap_or(text);
        rest.len() > 1 && rest[..2].eq_ignore_ascii_case(b"ht")
    }

    fn parse(text: &str) -> Option<Self> {
        fn number(text: &str) -> Option<u64> {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        }
        // The longest has 4 + 3 + 5 + 20 + 4 letters.
        let lower = Short::new(text).as_str().to_ascii_lowercase();
        let mut words = lower.split('-');
        let first = words.next()?;
        let (random, size) = match first.strip_prefix("rht") {
            Some(size) => (true, size),
            None => (false, first.strip_prefix("ht")?),
        };
        let mut signs = if random { Signs::TransformerEngine } else { Signs::Plus };
        let mut word = words.next();
        if let Some(seed) = word.and_then(|word| word.strip_prefix("seed")).filter(|_| random) {
            signs = Signs::Random(number(seed)?);
            word = words.next();
        }
        let hadamard = Self::new(usize::try_from(number(size)?).ok()?, signs).ok()?;
        match (word, words.next()) {
            (None, _) => Some(hadamard),
            (Some("f32"), None) => Some(hadamard.in_f32()),
            _ => None,
        }
    }
}
