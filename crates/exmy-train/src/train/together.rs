//! Runs of several [ranks](crate::train::ranks): what each of them does, as threads of a process or as
//! processes.

mod cpu;
mod process;
mod serve;
mod threads;

pub use serve::serve;
pub use threads::train_together;
