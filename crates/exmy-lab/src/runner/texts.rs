//! The data of runs, of which many learn the same.

use super::lock;
use exmy::error::Result;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::run;
use std::sync::{Arc, Mutex};

/// Data sets by their fingerprints, loaded once as long as somebody learns them.
pub(super) struct Texts {
    loaded: Mutex<Vec<(String, Arc<Dataset>)>>,
}

impl Texts {
    /// With one that is there already.
    pub(super) fn new(known: Option<Arc<Dataset>>) -> Self {
        let known = known.map(|data| (format!("{:016x}", data.fingerprint), data));
        Self { loaded: Mutex::new(known.into_iter().collect()) }
    }

    /// What a configuration names.
    pub(super) fn of(&self, config: &Config) -> Result<Arc<Dataset>> {
        if config.model.decoder().is_none() {
            return Ok(Arc::new(Dataset::drawn()));
        }
        // While one thread loads them the others wait: most want the same.
        let mut loaded = lock(&self.loaded);
        let fingerprint = &config.data.fingerprint;
        if let Some((_, data)) = loaded.iter().find(|(known, _)| known == fingerprint) {
            return Ok(Arc::clone(data));
        }
        loaded.retain(|(_, data)| Arc::strong_count(data) > 1);
        let data = Arc::new(run::load_data(&mut config.clone())?);
        loaded.push((format!("{:016x}", data.fingerprint), Arc::clone(&data)));
        Ok(data)
    }
}
