//! Several runs side by side: what is learned from them.
//!
//! The [`runner`] trains a list of named configurations in a folder, shared by any number of processes:
//! recipes that share seed, initial weights and batches (`exmy train`), the grid of a [`sweep`], the runs of
//! a study. A [`table`] sets their losses side by side; [`gather`] finds runs wherever they lie,
//! [`inventory`] lists them, [`compare`](mod@compare) says how they differ, [`overview`] draws them, and
//! [`standing`] keeps what stands where something is to be written.
//!
//! With the feature `tokenizers`, [`tokenizer`] divides text into tokens, and [`corpus`] makes token files of
//! it.
//!
//! A study is what a paper measured, run again: [`studies`] lists them. Each [`finding::Experiment`] asks for
//! [runs](run_config), which lie in a [`store`], and the [`report`] shows what they say, with
//! verdicts. Each study is a table of figures as values: a grid of runs, the claim that is judged, what is
//! shown. [`statistics`] says how sure a difference is, [`spikes`] what became of a run,
//! [`sensitivity`] how much the learning rate matters, [`scaling`] what larger runs would reach,
//! [`landscape`] how the loss lies about the weights.

#![deny(unsafe_code)]

pub mod amounts;
#[doc(hidden)]
pub mod claim;
#[doc(hidden)]
pub mod comparison;
pub mod run_config;
#[doc(hidden)]
pub mod run_name;
pub mod study_scale;

pub mod compare;
#[cfg(feature = "tokenizers")]
pub mod corpus;
#[doc(hidden)]
pub mod criterion;
pub mod curves;
pub mod device;
#[doc(hidden)]
pub mod device_slots;
pub mod estimate;
pub mod export;
#[doc(hidden)]
pub mod figure;
pub mod finding;
pub mod gather;
#[doc(hidden)]
pub mod grid;
pub mod inventory;
#[doc(hidden)]
pub mod keys;
pub mod landscape;
#[doc(hidden)]
pub mod listing;
pub mod loss_figure;
#[doc(hidden)]
pub mod measure;
#[doc(hidden)]
pub mod outcome;
pub mod overview;
pub mod page;
pub mod plot;
#[doc(hidden)]
pub mod provenance;
pub mod remaining;
pub mod report;
pub mod runner;
pub mod scaling;
pub mod sensitivity;
#[doc(hidden)]
pub mod series;
pub mod spikes;
pub mod standing;
pub mod statistics;
pub mod store;
pub mod studies;
pub mod sweep;
pub mod table;
#[doc(hidden)]
pub mod test_result;
#[doc(hidden)]
pub mod thin;
#[doc(hidden)]
pub mod timing;
#[cfg(feature = "tokenizers")]
pub mod tokenizer;
mod view;
