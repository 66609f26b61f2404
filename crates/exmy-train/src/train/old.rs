//! Names that probes had in earlier versions. They are read wherever a name stands, in configurations and in
//! records, and mean the probe of today; hashes of configurations have them, so that runs keep their names.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The word that names began with, and that of today.
const FORMER: [(&str, &str); 2] = [("phi", "sharpness"), ("phi_lbfgsb", "sharpness_lbfgsb")];

/// Today's name of a probe (`sharpness:5e-4`) or of one of its parts (`sharpness/each`).
pub fn modern(name: &str) -> String {
    renamed(name, |(former, modern)| (former, modern))
}

/// The name that an earlier version gave it.
pub fn former(name: &str) -> String {
    renamed(name, |(former, modern)| (modern, former))
}

type Words = (&'static str, &'static str);

fn renamed(name: &str, from_to: fn(Words) -> Words) -> String {
    let (word, rest) = name.split_at(name.find([':', '/']).unwrap_or(name.len()));
    let found = FORMER.into_iter().map(from_to).find(|(from, _)| *from == word);
    found.map_or(word, |(_, to)| to).to_owned() + rest
}

/// Reads a name, as `deserialize_with` of serde.
pub(in crate::train) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|name| modern(&name))
}

/// Reads a list of names.
pub(in crate::train) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Vec::<String>::deserialize(from).map(|names| names.iter().map(|name| modern(name)).collect())
}

/// Reads values by name.
pub(in crate::train) fn values<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, f64>, D::Error> {
    let read = BTreeMap::<String, f64>::deserialize(from)?;
    Ok(read.into_iter().map(|(name, value)| (modern(&name), value)).collect())
}
