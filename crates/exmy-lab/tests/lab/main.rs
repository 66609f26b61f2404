//! Tests of single modules, one file for each, with the name that the module has in `src`.

mod amounts;
mod claim;
mod compare;
mod comparison;
#[cfg(feature = "tokenizers")]
mod corpus;
mod curves;
mod device;
mod device_slots;
mod export;
mod finding;
mod gather;
mod grid;
mod landscape;
mod listing;
mod measure;
mod overview;
mod page;
mod plot;
#[cfg(feature = "tokenizers")]
mod published;
mod remaining;
mod run_config;
mod run_name;
mod runner;
mod scaling;
mod sensitivity;
mod series;
mod spikes;
mod statistics;
mod store;
mod studies;
mod study_scale;
mod sweep;
mod table;
mod test_result;
mod timing;
#[cfg(feature = "tokenizers")]
mod tokenizer;
