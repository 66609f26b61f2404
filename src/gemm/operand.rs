//! One operand of a product: a matrix of numbers as it is stored.
//!
//! In C = A B, A is M x K, B is K x N and C is M x N, and the sum runs over A's columns and B's
//! rows. Nothing is transposed unless [`Operand::t`] says so: weights that are stored N x K, with
//! blocks along their columns, enter as `Operand::from(&weights).t()`.

use alloc::boxed::Box;
use core::fmt;

use super::accumulation::Accumulation;
use super::error::{GemmError, Side, Why};
use super::unit::{Model, Preset};
use crate::block::{Axis, BlockFormat, BlockTensor};
use crate::format::Format;
use crate::slice::View;

/// How an operand's numbers are held.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Store<'a> {
    /// binary32 numbers.
    F32(View<'a, f32>),
    /// binary64 numbers.
    F64(View<'a, f64>),
    /// Codes of a format of up to 8 bits, one a byte; bits above the format's width do not count.
    U8(Format, View<'a, u8>),
    /// Codes of a format of up to 16 bits; bits above the format's width do not count.
    U16(Format, View<'a, u16>),
    /// Codes of a format of up to 32 bits; bits above the format's width do not count.
    U32(Format, View<'a, u32>),
    /// Codes of any format; bits above the format's width do not count.
    U64(Format, View<'a, u64>),
    /// Packed codes with their scales.
    Blocks(&'a BlockTensor),
}

/// One operand of a product.
///
/// ```
/// use exmy::format::Format;
/// use exmy::gemm::Operand;
/// use exmy::slice::View;
///
/// let codes = View::new(&[0x38_u8, 0x40, 0xB8, 0x00, 0x38, 0x7E], 2, 3); // 1 2 -1, 0 1 448
/// let a = Operand::codes8(Format::E4M3FN, codes)?;
/// assert_eq!((a.rows(), a.cols(), a.t().rows()), (2, 3, 3));
/// let wrong = Operand::codes8(Format::BF16, codes).unwrap_err();
/// assert_eq!(wrong.to_string(), "bf16 has 16 bits, which codes of 8 bits cannot hold");
/// # Ok::<(), exmy::gemm::WidthError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    store: Store<'a>,
    /// Of blocks only: a view is transposed by itself.
    transposed: bool,
}

/// Codes in integers that are too narrow for their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WidthError {
    /// The format.
    pub format: Format,
    /// Bits of the integers.
    pub width: u32,
}

impl fmt::Display for WidthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, width } = self;
        write!(f, "{format} has {} bits, which codes of {width} bits cannot hold", format.bits())
    }
}

impl core::error::Error for WidthError {}

impl GemmError {
    pub(super) fn new(a: &Operand<'_>, b: &Operand<'_>, why: Why) -> Self {
        Self::of(a.shape(), b.shape(), why)
    }
}

impl<'a> Operand<'a> {
    /// binary32 numbers; as [`From`].
    pub fn f32(numbers: View<'a, f32>) -> Self {
        Store::F32(numbers).into()
    }

    /// binary64 numbers. They enter by name, not by [`From`], so that literals stay binary32 where
    /// nothing else is said.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::gemm::{Operand, Spec, gemm, gemm_codes};
    /// use exmy::slice::View;
    ///
    /// // 1 + 2^-30 is no binary32 number, and its square needs 61 bits.
    /// let x = [1.0 + 2.0_f64.powi(-30)];
    /// let a = Operand::f64(View::new(&x, 1, 1));
    /// assert_eq!(gemm(a, Operand::f32(View::new(&[2.0], 1, 1)), &Spec::parse("exact")?)?, [2.0]);
    /// assert_eq!(gemm(a, a, &Spec::parse("exact")?)?, [1.0]);
    /// let spec = Spec::parse("exact")?.with_output(Format::F64);
    /// assert_eq!(f64::from_bits(gemm_codes::<u64>(a, a, &spec)?[0]), 1.0 + 2.0_f64.powi(-29));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn f64(numbers: View<'a, f64>) -> Self {
        Store::F64(numbers).into()
    }

    /// Codes of a format of up to 8 bits, one a byte.
    ///
    /// # Errors
    /// If the format is wider.
    pub fn codes8(format: Format, codes: View<'a, u8>) -> Result<Self, WidthError> {
        Self::fitting(format, 8, Store::U8(format, codes))
    }

    /// Codes of a format of up to 16 bits.
    ///
    /// # Errors
    /// If the format is wider.
    pub fn codes16(format: Format, codes: View<'a, u16>) -> Result<Self, WidthError> {
        Self::fitting(format, 16, Store::U16(format, codes))
    }

    /// Codes of a format of up to 32 bits.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::gemm::{Operand, Spec, gemm};
    /// use exmy::slice::View;
    ///
    /// // A TF32 number has 19 bits, and its code is those: a binary32 number's first ones.
    /// let one = 1.0_f32.to_bits() >> 13;
    /// let codes = [one, one + 1]; // 1, 1 + 2^-10
    /// let a = Operand::codes32(Format::TF32, View::new(&codes, 1, 2))?;
    /// let square = gemm(a, a.t(), &Spec::parse("hopper")?)?;
    /// assert_eq!(square, [2.0 + 2.0_f32.powi(-9) + 2.0_f32.powi(-20)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the format is wider.
    pub fn codes32(format: Format, codes: View<'a, u32>) -> Result<Self, WidthError> {
        Self::fitting(format, 32, Store::U32(format, codes))
    }

    /// Codes of any format, none of which has more than 64 bits.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::gemm::{Operand, Spec, gemm};
    /// use exmy::slice::View;
    ///
    /// // Exponents of 15 bits: the number is far beyond binary64, its product with the other is not.
    /// let wide = Format::ieee(15, 48)?;
    /// let codes = [wide.max_code(), wide.min_normal_code().expect("some")];
    /// let a = Operand::codes64(wide, View::new(&codes[..1], 1, 1));
    /// let b = Operand::codes64(wide, View::new(&codes[1..], 1, 1));
    /// assert_eq!(gemm(a, b, &Spec::parse("exact")?)?, [4.0]); // the number just below it, rounded
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn codes64(format: Format, codes: View<'a, u64>) -> Self {
        Store::U64(format, codes).into()
    }

    fn fitting(format: Format, width: u32, store: Store<'a>) -> Result<Self, WidthError> {
        match format.bits() <= width {
            true => Ok(store.into()),
            false => Err(WidthError { format, width }),
        }
    }

    /// The same numbers with rows and columns exchanged; nothing is moved.
    #[must_use]
    pub fn t(self) -> Self {
        let Self { store, transposed } = self;
        match store {
            Store::F32(view) => Store::F32(view.t()).into(),
            Store::F64(view) => Store::F64(view.t()).into(),
            Store::U8(format, view) => Store::U8(format, view.t()).into(),
            Store::U16(format, view) => Store::U16(format, view.t()).into(),
            Store::U32(format, view) => Store::U32(format, view.t()).into(),
            Store::U64(format, view) => Store::U64(format, view.t()).into(),
            Store::Blocks(_) => Self { store, transposed: !transposed },
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.shape().0
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.shape().1
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self.store {
            Store::F32(view) => (view.rows(), view.cols()),
            Store::F64(view) => (view.rows(), view.cols()),
            Store::U8(_, view) => (view.rows(), view.cols()),
            Store::U16(_, view) => (view.rows(), view.cols()),
            Store::U32(_, view) => (view.rows(), view.cols()),
            Store::U64(_, view) => (view.rows(), view.cols()),
            Store::Blocks(tensor) => self.exchanged((tensor.rows(), tensor.cols())),
        }
    }

    /// How the numbers are held.
    pub const fn store(&self) -> Store<'a> {
        self.store
    }

    /// Whether the rows of this operand are the columns of its [`store`](Self::store): of block
    /// tensors only, since views are transposed by themselves.
    pub const fn is_transposed(&self) -> bool {
        self.transposed
    }

    /// The format of the elements.
    pub fn format(&self) -> Format {
        match self.store {
            Store::F32(_) => Format::F32,
            Store::F64(_) => Format::F64,
            Store::U8(format, _)
            | Store::U16(format, _)
            | Store::U32(format, _)
            | Store::U64(format, _) => format,
            Store::Blocks(tensor) => tensor.format().element,
        }
    }

    /// The block format, of a block tensor.
    pub fn block_format(&self) -> Option<BlockFormat> {
        match self.store {
            Store::Blocks(tensor) => Some(tensor.format()),
            _ => None,
        }
    }

    /// The scale of the whole tensor, if it has one.
    pub fn tensor_scale(&self) -> Option<f32> {
        match self.store {
            Store::Blocks(tensor) => tensor.tensor_scale(),
            _ => None,
        }
    }

    /// Rows and columns of this operand that share a block scale, of a block tensor.
    pub fn block(&self) -> Option<(usize, usize)> {
        match self.store {
            Store::Blocks(tensor) => Some(self.exchanged(tensor.block())),
            _ => None,
        }
    }

    /// Whether a product can sum along `axis` of this operand: its blocks are those that its block
    /// format has for such a sum, or it has none. Square tiles serve both axes.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::gemm::Operand;
    ///
    /// let (format, codes) = (BlockFormat::MXFP4, vec![0x22; 64]);
    /// let weights = BlockTensor::from_parts(format, Axis::Cols, (2, 64), codes, vec![127; 4], None)?;
    /// let weights = Operand::from(&weights);
    /// assert!(weights.sums_along(Axis::Cols) && weights.t().sums_along(Axis::Rows));
    /// assert!(!weights.sums_along(Axis::Rows));
    /// # Ok::<(), exmy::block::PartsError>(())
    /// ```
    pub fn sums_along(&self, axis: Axis) -> bool {
        let Store::Blocks(tensor) = self.store else { return true };
        let (rows, cols) = self.shape();
        self.exchanged(tensor.block()) == axis.block(tensor.format().shape, rows, cols)
    }

    /// The axis of this operand that its blocks were made to be summed along.
    pub fn axis(&self) -> Option<Axis> {
        let Store::Blocks(tensor) = self.store else { return None };
        Some(match (tensor.axis(), self.transposed) {
            (axis, false) => axis,
            (Axis::Cols, true) => Axis::Rows,
            (Axis::Rows, true) => Axis::Cols,
        })
    }

    /// What is wrong about the operand's blocks as one of a side's; `None` if they run along the sum.
    pub(super) fn across(&self, side: Side) -> Option<Why> {
        let (format, block) = (self.block_format()?, self.block()?);
        let needed = match (side.axis(), self.transposed) {
            (axis, false) => axis,
            (Axis::Cols, true) => Axis::Rows,
            (Axis::Rows, true) => Axis::Cols,
        };
        (!self.sums_along(side.axis())).then_some(Why::Blocks { side, format, block, needed })
    }

    /// What is wrong about the operand as one of a side's of the [fast](super::fast) product.
    pub(super) fn not_fast(&self, side: Side) -> Option<Why> {
        if self.format().is_exact_in_f32() {
            return self.across(side);
        }
        let (model, result) = (Model::from(Preset::Fast), Format::F32);
        let accumulation = Box::new(Accumulation::Unit { model, result });
        Some(Why::Format { side, accumulation, takes: Preset::Fast.takes() })
    }

    fn exchanged(&self, (rows, cols): (usize, usize)) -> (usize, usize) {
        if self.transposed { (cols, rows) } else { (rows, cols) }
    }
}

impl<'a> From<Store<'a>> for Operand<'a> {
    fn from(store: Store<'a>) -> Self {
        Self { store, transposed: false }
    }
}

impl<'a> From<&Operand<'a>> for Operand<'a> {
    fn from(operand: &Operand<'a>) -> Self {
        *operand
    }
}

impl<'a> From<View<'a, f32>> for Operand<'a> {
    fn from(view: View<'a, f32>) -> Self {
        Self::f32(view)
    }
}

impl<'a> From<&'a BlockTensor> for Operand<'a> {
    fn from(tensor: &'a BlockTensor) -> Self {
        Store::Blocks(tensor).into()
    }
}

/// A matrix of the crate `half`'s numbers, as codes.
#[cfg(feature = "half")]
macro_rules! from_half {
    ($($number:ty: $format:expr;)*) => {$(
        impl<'a> From<View<'a, $number>> for Operand<'a> {
            fn from(view: View<'a, $number>) -> Self {
                use half::slice::HalfFloatSliceExt;
                let codes: &[u16] = view.data().reinterpret_cast();
                let (down, right) = (view.row_stride(), view.col_stride());
                match View::with_strides(codes, (view.rows(), view.cols()), (down, right)) {
                    Ok(codes) => Store::U16($format, codes).into(),
                    Err(_) => unreachable!("as many codes as numbers"),
                }
            }
        }
    )*};
}

#[cfg(feature = "half")]
from_half! {
    half::bf16: Format::BF16;
    half::f16: Format::F16;
}
