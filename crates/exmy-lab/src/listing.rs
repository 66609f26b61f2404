//! `plan.toml` of a report: every run's configuration under its name, written as what differs from another's.
//!
//! Many hundred runs differ in a key or two, so a run is written whole only if no run before it has the same
//! keys; the others name that one as `base` and hold, as `change`, TOML that
//! [`Config::overlaid`](exmy_train::train::config::Config::overlaid) puts over it.

use crate::run_config::RunConfig;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The keys of a configuration, dotted, with their values; of a list of tables, as rules are, its lines.
/// `None` if anything but such lists stands behind one.
fn keys(toml: &str) -> Option<BTreeMap<String, String>> {
    let mut section = String::new();
    let mut list: Option<String> = None;
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    for line in toml.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("[[").and_then(|line| line.strip_suffix("]]")) {
            list = Some(name.to_owned());
        } else if line.starts_with('[') && list.is_none() {
            section = format!("{}.", line.strip_prefix('[')?.strip_suffix(']')?);
            continue;
        }
        if let Some(name) = &list {
            // No table of its own within a rule.
            (!line.starts_with('[') || line.starts_with("[[")).then_some(())?;
            let lines = keys.entry(name.clone()).or_default();
            *lines += &format!("{line}\n");
        } else {
            let (key, value) = line.split_once(" = ")?;
            let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            plain.then(|| keys.insert(format!("{section}{key}"), value.to_owned()))?;
        }
    }
    Some(keys)
}

/// What of the first differs from the second, if both have the same keys.
fn change(own: &BTreeMap<String, String>, base: &BTreeMap<String, String>) -> Option<String> {
    if !own.keys().eq(base.keys()) {
        return None;
    }
    let different = own.iter().filter(|(key, value)| base[*key] != **value);
    // Tables end what stands at the top, so lists of them come last.
    let (lists, plain): (Vec<_>, Vec<_>) = different.partition(|(_, value)| value.ends_with('\n'));
    let plain = plain.into_iter().map(|(key, value)| format!("{key} = {value}\n"));
    Some(plain.chain(lists.into_iter().map(|(_, lines)| lines.clone())).collect())
}

/// The plan as a file.
pub(super) fn plan(runs: &[RunConfig]) -> String {
    let mut text = "# The runs of this study by name. `config` is a run's config.toml; where there is none, \
                    it is that of the\n# run `base` with the keys of `change`. A branch goes on from a \
                    checkpoint of the run it names.\n"
        .to_owned();
    let mut whole: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    for run in runs {
        let (name, toml) = (run.name(), run.config.to_toml());
        let _ = write!(text, "\n[\"{name}\"]\n");
        if let Some((parent, step)) = &run.parent {
            let _ = writeln!(text, "branch = \"{}@{step}\"", parent.name());
        }
        let own = keys(&toml);
        let found =
            whole.iter().find_map(|(base, keys)| Some((base, change(own.as_ref()?, keys)?)));
        match found {
            Some((base, change)) => {
                let _ = writeln!(text, "base = \"{base}\"\nchange = '''\n{change}'''");
            }
            None => {
                let _ = writeln!(text, "config = '''\n{toml}'''");
                whole.extend(own.map(|keys| (name, keys)));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_config::Setting;
    use crate::scale::Scale;
    use crate::studies::ALL;
    use exmy_train::train::config::Config;

    /// Reads the plan of each study with another reader of TOML, and makes the configurations from it again.
    #[test]
    fn plans_hold_every_configuration() {
        for paper in ALL {
            let setting = Setting::unread(Scale::Small);
            let runs: Vec<RunConfig> =
                paper.figures.iter().flat_map(|figure| figure.runs(&setting)).collect();
            let runs = crate::store::distinct(&runs);
            let read: toml::Table = plan(&runs).parse().unwrap();
            assert_eq!(read.len(), runs.len());
            let text = |name: &str, key: &str| {
                read[name].get(key).map(|value| value.as_str().unwrap().to_owned())
            };
            for run in &runs {
                let name = run.name();
                let config = match text(&name, "config") {
                    Some(config) => Config::from_toml(&config).unwrap(),
                    None => {
                        let base = text(&text(&name, "base").unwrap(), "config").unwrap();
                        let change = text(&name, "change").unwrap();
                        Config::from_toml(&base).unwrap().overlaid(&change).unwrap()
                    }
                };
                assert_eq!(config, run.config, "{name}");
                assert_eq!(text(&name, "branch").is_some(), run.parent.is_some());
            }
        }
    }
}
