//! Several runs side by side: what is learned from them.
//!
//! [`compare`] trains recipes that share seed, initial weights and batches, and sets their losses
//! beside each other.

pub mod compare;
pub mod loss_figure;
