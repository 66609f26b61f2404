//! Names in configuration files and records: the vocabulary serializes as its text.

use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use serde::de::{Error, Visitor};

use crate::format::Format;
use crate::round::{Overflow, Rounding};

/// Reads any string as a `T`.
pub(crate) struct AsText<T>(pub(crate) &'static str, pub(crate) PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for AsText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of {}", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Serializes types as what they display, and reads them by their [`FromStr`].
macro_rules! as_text {
    ($($type:ty: $what:literal),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::text::AsText::<Self>($what, core::marker::PhantomData))
            }
        }
    )*};
}

#[cfg(feature = "block")]
pub(crate) use as_text;

as_text!(Format: "a number format", Rounding: "a rounding mode", Overflow: "an overflow policy");

#[cfg(all(test, feature = "safetensors"))]
mod tests {
    use super::*;

    #[test]
    fn through_json() {
        let json = serde_json::to_string(&(Format::E4M3FN, Rounding::stochastic(8), Overflow::Nan));
        assert_eq!(json.unwrap(), r#"["e4m3","sr8","to-nan"]"#);
        let back: (Format, Rounding) = serde_json::from_str(r#"["F8_E4M3","rtz"]"#).unwrap();
        assert_eq!(back, (Format::E4M3FN, Rounding::TowardZero));
        let error = serde_json::from_str::<Format>("\"e4m3fm\"").unwrap_err();
        assert_eq!(error.classify(), serde_json::error::Category::Data);
    }
}
