//! Recipes as commands are given them: names divided by commas, and options that stand for rules. Whatever is
//! wrong is told alike by all of them: a recipe by its name, an option's value by the option.

use exmy::error::{Error, Result};
use exmy_train::recipe::Recipe;
#[cfg(feature = "tokenizers")]
use exmy_train::{
    nn::site::{Operand, Place},
    recipe::TensorFormat,
    recipe::rule::{Rule, Selector, Subject},
};

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

/// The rules that options stand for.
#[cfg(feature = "tokenizers")]
pub(crate) fn rules(weights_only: bool, kv: Option<&str>, sums: Option<&str>) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    if weights_only {
        rules.push(Selector::operand(Operand::Input).to(TensorFormat::NONE));
    }
    if let Some(numbers) = kv {
        for place in [Place::K, Place::V] {
            let on = Selector::of(Subject::Places(vec![place], Some(false)));
            rules.push(rule("--kv", on, numbers)?);
        }
    }
    if let Some(sum) = sums {
        rules.push(rule("--sums", Selector::of(Subject::Sums), sum)?);
    }
    Ok(rules)
}

/// The rule that an option stands for.
#[cfg(feature = "tokenizers")]
fn rule(option: &str, on: Selector, value: &str) -> Result<Rule> {
    Rule::of(on, value).map_err(|error| Error::new(format!("{option} {value:?}: {error}")))
}
