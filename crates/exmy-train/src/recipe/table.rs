//! Recipes in files: a line of text, or a table of rules that is read into one.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::Recipe;

/// A line, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
enum Either {
    Line(String),
    Table(toml::Table),
}

/// `[recipe]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default = "f32")]
    base: String,
    #[serde(default)]
    rule: Vec<Row>,
}

fn f32() -> String {
    "f32".into()
}

/// One word or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Several(Vec<String>),
}

impl Default for Words {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

/// A step, or a share of the run.
#[derive(Deserialize)]
#[serde(untagged)]
enum From {
    Step(u64),
    Share(String),
}

/// `[[recipe.rule]]`: the kinds of words, each by itself, and the value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(default)]
    layers: Words,
    #[serde(default)]
    operators: Words,
    #[serde(default)]
    products: Words,
    #[serde(default)]
    operands: Words,
    #[serde(default)]
    places: Words,
    #[serde(default)]
    operations: Words,
    gradient: Option<bool>,
    from: Option<From>,
    numbers: Option<String>,
    output: Option<String>,
    sums: Option<String>,
    hcp: Option<String>,
}

impl Row {
    fn line(self) -> Result<String, String> {
        let mut words = Vec::new();
        match self.from {
            None => {}
            Some(From::Step(step)) => words.push(format!("from{step}")),
            Some(From::Share(share)) => words.push(format!("from{share}")),
        }
        let lists = [
            self.layers,
            self.operators,
            self.products,
            self.operands,
            self.places,
            self.operations,
        ];
        for list in lists {
            match list {
                Words::One(word) => words.push(word),
                Words::Several(some) => words.extend(some),
            }
        }
        words.extend(self.gradient.map(|is| if is { "gradient" } else { "tensor" }.to_owned()));
        let values = [
            (None, self.numbers),
            (Some("output"), self.output),
            (Some("sums"), self.sums),
            (Some("hcp"), self.hcp),
        ];
        let mut set = values.into_iter().filter_map(|(word, value)| Some((word, value?)));
        let (Some((word, value)), None) = (set.next(), set.next()) else {
            return Err("a rule sets one of `numbers`, `output`, `sums` and `hcp`".into());
        };
        words.extend(word.map(str::to_owned));
        if words.is_empty() {
            words.push("all".into());
        }
        Ok(format!("{}={value}", words.join(":")))
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Either::deserialize(deserializer)? {
            Either::Line(text) => text,
            Either::Table(table) => {
                let table: Table = table.try_into().map_err(|error: toml::de::Error| {
                    de::Error::custom(format!("[recipe]: {}", error.message()))
                })?;
                let mut text = table.base;
                for row in table.rule {
                    text.push('+');
                    text += &row.line().map_err(de::Error::custom)?;
                }
                text
            }
        };
        text.parse().map_err(de::Error::custom)
    }
}
