//! The operations a test vector can be of, and their names.
//!
//! Names are Berkeley TestFloat 3e's where it has the operation, else IEEE 754-2019's (clauses 5
//! and 9) or P3109's. They are read without regard to case and underscores, so that
//! `minimum_number` and `minimumNumber` are one name.

use crate::math::elementary::Function as Elementary;

/// What is computed. The formats are in [`TestFunction`](super::function::TestFunction).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// From one format to another, `F_to_G`.
    Convert,
    /// From a format to an integer type, `F_to_i32`.
    ToInteger,
    /// From an integer type to a format, `i32_to_F`.
    FromInteger,
    /// To an integer of the format, IEEE `roundToIntegral`.
    RoundToInt,
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a * b + c`, rounded once.
    MulAdd,
    /// `a / b`.
    Div,
    /// IEEE remainder: the quotient is rounded to nearest even.
    Rem,
    /// Square root.
    Sqrt,
    /// `a == b`; signaling NaN is invalid.
    Eq,
    /// `a <= b`; any NaN is invalid.
    Le,
    /// `a < b`; any NaN is invalid.
    Lt,
    /// `a == b`; any NaN is invalid.
    EqSignaling,
    /// `a <= b`; signaling NaN is invalid.
    LeQuiet,
    /// `a < b`; signaling NaN is invalid.
    LtQuiet,
    /// C's `fmod`: the quotient is truncated.
    Fmod,
    /// `a + b + c`, rounded once.
    Faa,
    /// `1 / a`.
    Recip,
    /// `1 / sqrt(a)`.
    Rsqrt,
    /// `sqrt(a^2 + b^2)`.
    Hypot,
    /// `-a`.
    Negate,
    /// `|a|`.
    Abs,
    /// `a` with the sign of `b`.
    CopySign,
    /// The smaller; NaN wins.
    Minimum,
    /// The larger; NaN wins.
    Maximum,
    /// The smaller; a number wins over NaN.
    MinimumNumber,
    /// The larger; a number wins over NaN.
    MaximumNumber,
    /// The smaller in magnitude; NaN wins.
    MinimumMagnitude,
    /// The larger in magnitude; NaN wins.
    MaximumMagnitude,
    /// The smaller in magnitude; a number wins over NaN.
    MinimumMagnitudeNumber,
    /// The larger in magnitude; a number wins over NaN.
    MaximumMagnitudeNumber,
    /// The smaller; a finite number wins over infinity, infinity over NaN.
    MinimumFinite,
    /// The larger; a finite number wins over infinity, infinity over NaN.
    MaximumFinite,
    /// `a` limited to `b..=c`.
    Clamp,
    /// The next larger value of the format.
    NextUp,
    /// The next smaller value of the format.
    NextDown,
    /// `a * 2^n`, `n` a signed 32-bit integer.
    ScaleB,
    /// `floor(log2(|a|))`.
    LogB,
    /// Whether `a` is not after `b` in the total order of the standard that the profile follows.
    TotalOrder,
    /// An elementary function, correctly rounded.
    Elementary(Elementary),
}

/// What an operation returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Returns {
    /// A number of the result's format.
    Number,
    /// A number of the operand's own format.
    Same,
    /// 0 or 1.
    Truth,
}

/// Name, number of operands and result of every operation that is not a conversion.
const TABLE: &[(&str, Operation, usize, Returns)] = {
    use Operation as O;
    use Returns::{Number, Same, Truth};
    &[
        ("roundToInt", O::RoundToInt, 1, Number),
        ("add", O::Add, 2, Number),
        ("sub", O::Sub, 2, Number),
        ("mul", O::Mul, 2, Number),
        ("mulAdd", O::MulAdd, 3, Number),
        ("div", O::Div, 2, Number),
        ("rem", O::Rem, 2, Number),
        ("sqrt", O::Sqrt, 1, Number),
        ("eq", O::Eq, 2, Truth),
        ("le", O::Le, 2, Truth),
        ("lt", O::Lt, 2, Truth),
        ("eq_signaling", O::EqSignaling, 2, Truth),
        ("le_quiet", O::LeQuiet, 2, Truth),
        ("lt_quiet", O::LtQuiet, 2, Truth),
        ("fmod", O::Fmod, 2, Number),
        ("faa", O::Faa, 3, Number),
        ("recip", O::Recip, 1, Number),
        ("rsqrt", O::Rsqrt, 1, Number),
        ("hypot", O::Hypot, 2, Number),
        ("negate", O::Negate, 1, Number),
        ("abs", O::Abs, 1, Number),
        ("copySign", O::CopySign, 2, Number),
        ("minimum", O::Minimum, 2, Number),
        ("maximum", O::Maximum, 2, Number),
        ("minimumNumber", O::MinimumNumber, 2, Number),
        ("maximumNumber", O::MaximumNumber, 2, Number),
        ("minimumMagnitude", O::MinimumMagnitude, 2, Number),
        ("maximumMagnitude", O::MaximumMagnitude, 2, Number),
        ("minimumMagnitudeNumber", O::MinimumMagnitudeNumber, 2, Number),
        ("maximumMagnitudeNumber", O::MaximumMagnitudeNumber, 2, Number),
        ("minimumFinite", O::MinimumFinite, 2, Number),
        ("maximumFinite", O::MaximumFinite, 2, Number),
        ("clamp", O::Clamp, 3, Number),
        ("nextUp", O::NextUp, 1, Same),
        ("nextDown", O::NextDown, 1, Same),
        ("scaleB", O::ScaleB, 2, Number),
        ("logB", O::LogB, 1, Number),
        ("totalOrder", O::TotalOrder, 2, Truth),
    ]
};

/// Second names, as `math::Context` and C have them.
const SYNONYMS: [(&str, &str); 5] = [
    ("fma", "mulAdd"),
    ("neg", "negate"),
    ("roundToIntegral", "roundToInt"),
    ("fmin", "minimumNumber"),
    ("fmax", "maximumNumber"),
];

/// The names of [`Elementary::ALL`].
const ELEMENTARY: [&str; 28] = [
    "exp", "exp2", "expm1", "log", "log2", "log1p", "softplus", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sin_pi", "cos_pi",
    "tan_pi", "asin_pi", "acos_pi", "atan_pi", "atan2", "atan2_pi", "pow",
];

/// Whether two names are equal but for case and underscores.
fn same(a: &str, b: &str) -> bool {
    let plain = |text| {
        let bytes = str::bytes(text).filter(|byte| *byte != b'_');
        bytes.map(|byte| byte.to_ascii_lowercase())
    };
    plain(a).eq(plain(b))
}

impl Operation {
    /// The operation of a name; conversions have none.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        if name.starts_with('_') || name.ends_with('_') {
            return None;
        }
        let second = SYNONYMS.iter().find(|(synonym, _)| same(name, synonym));
        let name = second.map_or(name, |(_, name)| name);
        TABLE.iter().find(|row| same(name, row.0)).map(|row| row.1).or_else(|| {
            let mut functions = ELEMENTARY.iter().zip(Elementary::ALL);
            functions.find(|row| same(name, row.0)).map(|row| Self::Elementary(row.1))
        })
    }

    /// All that stand by their name behind a format, which conversions do not.
    ///
    /// ```
    /// use exmy::vectors::function::Operation;
    ///
    /// let three: Vec<_> = Operation::all().filter(|operation| operation.arity() == 3).collect();
    /// assert_eq!(three, [Operation::MulAdd, Operation::Faa, Operation::Clamp]);
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.1).chain(Elementary::ALL.into_iter().map(Self::Elementary))
    }

    /// All names.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        Self::all().map(Self::name)
    }

    /// The second names that are read, each with the operation.
    ///
    /// ```
    /// use exmy::vectors::function::Operation;
    ///
    /// assert!(Operation::synonyms().any(|synonym| synonym == ("fma", Operation::MulAdd)));
    /// ```
    pub fn synonyms() -> impl Iterator<Item = (&'static str, Self)> {
        let named = |name| Self::from_name(name).map(|operation| (name, operation));
        SYNONYMS.iter().filter_map(move |(synonym, _)| named(*synonym))
    }

    fn row(self) -> Option<&'static (&'static str, Self, usize, Returns)> {
        TABLE.iter().find(|row| row.1 == self)
    }

    /// The canonical name; `to` of conversions.
    pub fn name(self) -> &'static str {
        if let Self::Elementary(function) = self {
            let place = Elementary::ALL.iter().position(|other| *other == function);
            return place.map_or("", |place| ELEMENTARY[place]);
        }
        self.row().map_or("to", |row| row.0)
    }

    /// The number of operands.
    pub fn arity(self) -> usize {
        if let Self::Elementary(function) = self {
            return function.operands() as usize;
        }
        self.row().map_or(1, |row| row.2)
    }

    /// Whether the result is 0 or 1.
    ///
    /// ```
    /// use exmy::vectors::function::Operation;
    ///
    /// assert!(Operation::LeQuiet.is_predicate() && !Operation::Minimum.is_predicate());
    /// ```
    pub fn is_predicate(self) -> bool {
        self.returns() == Returns::Truth
    }

    pub(super) fn returns(self) -> Returns {
        self.row().map_or(Returns::Number, |row| row.3)
    }

    /// Whether the result is an integer in value, so that a mode may be part of the name
    /// (`_r_minMag`).
    pub(super) fn rounds_to_integer(self) -> bool {
        matches!(self, Self::ToInteger | Self::RoundToInt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_elementary_ones_in_order() {
        for (name, function) in ELEMENTARY.into_iter().zip(Elementary::ALL) {
            assert_eq!(function.to_string(), name);
            assert_eq!(Operation::from_name(name), Some(Operation::Elementary(function)));
        }
        let names: Vec<_> = Operation::names().collect();
        for (i, name) in names.iter().enumerate() {
            assert!(names[..i].iter().all(|other| !same(name, other)), "{name}");
            assert_eq!(Operation::from_name(name).map(Operation::name), Some(*name));
        }
    }
}
