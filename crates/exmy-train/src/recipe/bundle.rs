//! Recipes with a name: the papers', as rules.
//!
//! A bundle has knobs, written behind its name: `nv-nvfp4+last=0+sr-bits=4`. Which it has, what they are
//! when not written, and where each number comes from is told in `docs/recipes.md`, whose lists of rules are
//! tested against this code.

mod bitred;
mod mxpaper;
mod nv;

use exmy::text::Nearest;

/// The options behind a name, and which of them a bundle has taken.
pub(super) struct Options<'a> {
    items: Vec<(&'a str, &'a str)>,
    taken: Vec<bool>,
    /// The knobs that were asked for, for suggestions.
    asked: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(super) fn new(items: Vec<(&'a str, &'a str)>) -> Self {
        Self { taken: vec![false; items.len()], items, asked: Vec::new() }
    }

    /// The value of a knob, "" where there is none behind it. The last one counts.
    fn get(&mut self, key: &'static str) -> Option<&'a str> {
        self.asked.push(key);
        let mut value = None;
        for (item, taken) in self.items.iter().zip(&mut self.taken) {
            if item.0 == key {
                (value, *taken) = (Some(item.1), true);
            }
        }
        value
    }

    /// A knob without value.
    fn flag(&mut self, key: &'static str) -> Result<bool, String> {
        match self.get(key) {
            None => Ok(false),
            Some("") => Ok(true),
            Some(value) => Err(format!("+{key}={value}: the option {key} takes no value")),
        }
    }

    /// One of some words, the first of them where none is written.
    fn choice(
        &mut self,
        key: &'static str,
        words: &[&'static str],
    ) -> Result<&'static str, String> {
        let Some(value) = self.get(key) else { return Ok(words[0]) };
        words.iter().copied().find(|word| *word == value).ok_or_else(|| {
            let near = Nearest::new(value, words.iter().copied());
            let meant = if near.names().is_empty() {
                String::new()
            } else {
                format!("; did you mean {near}?")
            };
            format!("+{key}={value}{meant} {key} is one of {}", words.join(", "))
        })
    }

    /// A whole number from 1.
    fn number(&mut self, key: &'static str, default: u32) -> Result<u32, String> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("+{key}={value}: a whole number from 1"))
    }

    /// Index and parts of each option, and whether a bundle has taken it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str, bool)> {
        self.items.iter().zip(&self.taken).map(|(&(key, value), &taken)| (key, value, taken))
    }

    /// The knobs the bundle has.
    pub(super) fn knobs(&self) -> &[&'static str] {
        &self.asked
    }
}

/// Rules as text: where, what.
pub(super) type Rules = Vec<(String, String)>;

fn rules<const N: usize>(all: [(&str, &str); N]) -> Rules {
    all.into_iter().map(|(on, value)| (on.to_owned(), value.to_owned())).collect()
}

/// The rules of a bundle, if there is one of that name.
pub(super) fn find(name: &str, options: &mut Options<'_>) -> Result<Option<Rules>, String> {
    if let Some(shape) = name.strip_prefix("bitred-") {
        return bitred::rules(shape, options).map(Some);
    }
    if let Some(elements) = name.strip_prefix("mxpaper-") {
        return mxpaper::rules(elements, options).map(Some);
    }
    Ok(Some(match name {
        "mxfp8-mix" => rules([("all", "mxfp8-e4m3"), ("grad_output", "mxfp8-e5m2")]),
        "mxfp8-weights" => rules([("all", "bf16"), ("weight", "mxfp8-e4m3")]),
        "msamp-o1" => msamp(options)?,
        "nv-nvfp4" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::None, options)?,
        "nv-mxfp4" => nv::rules(nv::Blocks::Mxfp4, nv::Patches::None, options)?,
        "nv-post-qk" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::PostQk, options)?,
        "nv-hcp" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::Hot, options)?,
        "chon" => nv::rules(nv::Blocks::Nvfp4, nv::Patches::Chon, options)?,
        _ => return Ok(None),
    }))
}

/// MS-AMP 0.3.0 at level O1 (arXiv 2310.18313; `msamp/nn/functional.py`): every linear operator in FP8 with one
/// power of two a tensor.
fn msamp(options: &mut Options<'_>) -> Result<Rules, String> {
    let window = options.number("window", 16)?;
    if window > 255 {
        return Err(format!("+window={window}: at most 255 steps"));
    }
    let scaled = |element: &str| {
        // A window of one step is scaling in time.
        let window = if window == 1 { String::new() } else { format!("@window{window}") };
        format!("{element}/tensor:e8m0@rceil@shared{window}")
    };
    let mut all = rules([
        ("weight", "f16/tensor:e8m0@rceil>>e4m3fn/tensor:e8m0@rceil"),
        ("forward:grad_input:output", "bf16"),
        ("grad_weight:output", "bf16>e4m3fn/tensor:e8m0@rceil"),
    ]);
    all.push(("input".into(), scaled("e4m3fn")));
    all.push(("grad_output".into(), scaled("e5m2")));
    Ok(all)
}
