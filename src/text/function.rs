//! Names of the elementary functions: IEEE P3109's in snake case, with the short forms of C for the
//! inverse ones (`asin_pi` is ArcSinPi).

use core::fmt;
use core::str::FromStr;

use super::UnknownName;
use crate::math::elementary::Function;

const NAMES: [&str; 28] = [
    "exp", "exp2", "expm1", "log", "log2", "log1p", "softplus", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sin_pi", "cos_pi",
    "tan_pi", "asin_pi", "acos_pi", "atan_pi", "atan2", "atan2_pi", "pow",
];

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = NAMES.iter().zip(Self::ALL);
        let name = names.into_iter().find(|(_, function)| function == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Function {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = NAMES.iter().position(|name| name.eq_ignore_ascii_case(text));
        place.map(|place| Self::ALL[place]).ok_or_else(|| {
            let forms = "exp, exp2, expm1, log, log2, log1p, softplus, sin, cos, tan, asin, acos, \
                         atan, atan2 and these six with _pi, sinh, cosh, tanh, asinh, acosh, atanh, pow";
            UnknownName::new("elementary function", text, NAMES, forms)
        })
    }
}
