//! Recipes in records that earlier versions wrote: the [names of formats](exmy::text::old) in them.

/// Options of `mxpaper` whose values are names of elements, which never changed their meaning.
const ELEMENTS: [&str; 6] = ["w", "a", "w-bp", "a-bp", "g-ex", "g-os"];

/// Renames the formats in a recipe, or in a part of one.
pub fn renamed(recipe: &str, rename: fn(&str) -> String) -> String {
    let is_element =
        |part: &str| part.split_once('=').is_some_and(|(key, _)| ELEMENTS.contains(&key));
    let part = |part: &str| if is_element(part) { part.to_owned() } else { rename(part) };
    recipe.split('+').map(part).collect::<Vec<_>>().join("+")
}
