//! Several runs side by side: what is learned from them.
//!
//! [`compare`] trains recipes that share seed, initial weights and batches, and sets their losses
//! beside each other in a [`table`]; [`sweep`] does the same with a grid of configurations, divided
//! among any number of processes. [`statistics`] says how sure a difference is,
//! [`detect`] what became of a run, [`sensitivity`] how much the learning rate matters,
//! [`scaling`] what larger runs would reach, [`landscape`] how the loss lies about the weights.

pub mod compare;
pub mod detect;
pub mod landscape;
pub mod loss_figure;
pub mod scaling;
pub mod sensitivity;
pub mod statistics;
pub mod sweep;
pub mod table;
