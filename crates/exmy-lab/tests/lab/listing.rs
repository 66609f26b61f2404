use exmy_lab::listing::plan;
use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::studies::ALL;
use exmy_lab::study_scale::StudyScale;
use exmy_train::train::config::Config;

/// Reads the plan of each study with another reader of TOML, and makes the configurations from it again.
#[test]
fn plans_hold_every_configuration() {
    for paper in ALL {
        let setting = Setting::unread(StudyScale::Small);
        let runs: Vec<RunConfig> =
            paper.figures.iter().flat_map(|figure| figure.runs(&setting)).collect();
        let runs = exmy_lab::store::distinct(&runs);
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
