//! `plan.toml` of a report: every run's configuration under its name, written as what differs from another's.
//!
//! Many hundred runs differ in a key or two, so a run is written whole only if no run before it has the same
//! keys. The others name that one as `base` and hold, as `change`, TOML that
//! [`Config::overlaid`](exmy_train::train::config::Config::overlaid) puts over it.

use crate::keys::{Keys, keys};
use crate::run_config::RunConfig;
use exmy_train::train::config::Config;
use exmy_train::train::trigger::{At, When};
use serde::Serialize;
use std::fmt::Write;
use toml::Value;

/// Rules as a configuration has them.
#[derive(Serialize)]
struct Rules<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    at: &'a [At],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    when: &'a [When],
}

/// What of a configuration differs from another one, if both have the same keys.
fn change(config: &Config, own: &Keys, base: &Keys) -> Option<String> {
    if !own.keys().eq(base.keys()) {
        return None;
    }
    let differs = |key: &str| own[key] != base[key];
    let is_rules =
        |value: &Value| value.as_array().is_some_and(|list| list.iter().any(Value::is_table));
    let plain = own.iter().filter(|(key, value)| differs(key) && !is_rules(value));
    let mut text: String = plain.map(|(key, value)| format!("{key} = {value}\n")).collect();
    // Tables end what stands at the top, so lists of them come last.
    let rules = Rules {
        at: if differs("at") { &config.at } else { &[] },
        when: if differs("when") { &config.when } else { &[] },
    };
    let rules = toml::to_string(&rules).ok()?;
    text.extend(rules.lines().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]));
    Some(text)
}

/// The plan as a file.
pub fn plan(runs: &[RunConfig]) -> String {
    let mut text = "# The runs of this study by name. `config` is a run's config.toml; where there is none, \
                    it is that of the\n# run `base` with the keys of `change`. A branch goes on from a \
                    checkpoint of the run it names.\n"
        .to_owned();
    let mut whole: Vec<(String, Keys)> = Vec::new();
    for run in runs {
        let (name, own) = (run.name(), keys(&run.config));
        let _ = write!(text, "\n[\"{name}\"]\n");
        if let Some((parent, step)) = &run.parent {
            let _ = writeln!(text, "branch = \"{}@{step}\"", parent.name());
        }
        let found =
            whole.iter().find_map(|(base, keys)| Some((base, change(&run.config, &own, keys)?)));
        match found {
            Some((base, change)) => {
                let _ = writeln!(text, "base = \"{base}\"\nchange = '''\n{change}'''");
            }
            None => {
                let _ = writeln!(text, "config = '''\n{}'''", run.config.to_toml());
                whole.push((name, own));
            }
        }
    }
    text
}
