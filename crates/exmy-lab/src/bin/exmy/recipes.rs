//! Recipes as commands are given them: names divided by commas, and options that stand for rules. Whatever is
//! wrong is told alike by all of them: a recipe by its name, an option's value by the option.

use exmy::error::{Error, Result};
use exmy_train::recipe::Recipe;
#[cfg(feature = "tokenizers")]
use exmy_train::recipe::rule::Rule;

/// The recipe of a name.
pub(crate) fn one(name: &str) -> Result<Recipe> {
    name.trim().parse().map_err(|error| {
        let words: Vec<&str> = name.split_whitespace().collect();
        match words.len() > 1 && words.iter().all(|word| word.parse::<Recipe>().is_ok()) {
            true => Error::new(format!("{:?} is several recipes", name.trim()))
                .hint(format!("separate them by commas: --recipe {}", words.join(","))),
            false => Error::from_cause(error),
        }
    })
}

/// The recipes of `--recipe`.
pub(crate) fn list(names: &str) -> Result<Vec<Recipe>> {
    let of = |name: &str| match name.trim() {
        "" => Err(Error::new(format!("--recipe {names:?} has an empty name"))
            .hint("separate recipes by single commas, with none at the end")),
        name => one(name),
    };
    names.split(',').map(of).collect()
}

/// A recipe with more rules behind it, or with none.
#[cfg(feature = "tokenizers")]
pub(crate) fn with(recipe: Recipe, rules: &str) -> Result<Recipe> {
    if rules.is_empty() { Ok(recipe) } else { recipe.with(rules).map_err(Error::from_cause) }
}

/// The rules that options stand for. A value of theirs is one rule's and no more.
#[cfg(feature = "tokenizers")]
pub(crate) fn rules(weights_only: bool, kv: Option<&str>, sums: Option<&str>) -> Result<String> {
    let mut rules = String::new();
    if weights_only {
        rules += "+input=f32";
    }
    if let Some(numbers) = kv {
        fits("--kv", "k:tensor", numbers)?;
        rules += &format!("+k:tensor={numbers}+v:tensor={numbers}");
    }
    if let Some(sum) = sums {
        fits("--sums", "sums", sum)?;
        rules += &format!("+sums={sum}");
    }
    Ok(rules)
}

/// Refuses a value of an option that is none of the rule that the option stands for.
#[cfg(feature = "tokenizers")]
pub(crate) fn fits(option: &str, on: &str, value: &str) -> Result<()> {
    let rule = format!("{on}={value}").parse::<Rule>();
    rule.map(drop).map_err(|error| Error::new(format!("{option} {value:?}: {error}")))
}
