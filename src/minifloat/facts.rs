//! What a format has, as types, so that a trait is implemented exactly where its promises hold.
//!
//! Stable Rust cannot make an implementation depend on a constant, but a type may: `Fact<true>`
//! and `Fact<false>` are different types, and the macros that declare formats compute which one
//! from the format itself. So `Zero` exists where zero does, `Eq` where NaN does not, and no list
//! of types has to be kept.

/// A statement about a format that is true or false.
#[derive(Clone, Copy, Debug)]
pub struct Fact<const HOLDS: bool>;

/// What holds.
pub type Yes = Fact<true>;

/// What does not.
pub type No = Fact<false>;

/// What [`Float`](num_traits::Float) and its kin ask of a format, for the message where it is missing.
#[diagnostic::on_unimplemented(
    message = "the format lacks something that `num_traits::Float` promises",
    label = "it needs NaN, infinities, -0, 1 and normal numbers, as E5M2, F16 and Bf16 have",
    note = "the methods of `Minifloat` (`sqrt`, `exp`, ...) exist for all formats, `num_traits::Num` for \
            those with 0 and 1"
)]
pub trait FloatFacts {}
impl FloatFacts for Yes {}

/// The facts of `Self::FORMAT`; written out in each implementation, where no generic parameter
/// stands in the way of a constant in a type.
#[doc(hidden)]
#[macro_export]
macro_rules! facts {
    ($marker:ty) => {
        type Signed = $crate::minifloat::Fact<
            { <$marker as $crate::minifloat::FloatFormat>::FORMAT.is_signed() },
        >;
        type Zero = $crate::minifloat::Fact<
            { <$marker as $crate::minifloat::FloatFormat>::FORMAT.has_zero() },
        >;
        type One = $crate::minifloat::Fact<
            { <$marker as $crate::minifloat::FloatFormat>::FORMAT.one_code().is_some() },
        >;
        type Nan = $crate::minifloat::Fact<
            { <$marker as $crate::minifloat::FloatFormat>::FORMAT.has_nan() },
        >;
        type Full = $crate::minifloat::Fact<
            {
                $crate::minifloat::fills::<<$marker as $crate::minifloat::FloatFormat>::Bits>(
                    <$marker as $crate::minifloat::FloatFormat>::FORMAT,
                )
            },
        >;
        type Elementary = $crate::minifloat::Fact<
            {
                $crate::minifloat::is_elementary(
                    <$marker as $crate::minifloat::FloatFormat>::FORMAT,
                )
            },
        >;
        type Float = $crate::minifloat::Fact<
            { $crate::minifloat::is_float(<$marker as $crate::minifloat::FloatFormat>::FORMAT) },
        >;
    };
}
