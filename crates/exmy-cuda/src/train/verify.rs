//! A GPU compared with the CPU: operations and steps, which [`exmy_train::verify`] lists, and files of runs.

pub mod files;
mod places;

pub use exmy_train::verify::{Difference, Output, differences, layers_on_cpu, runs};

use exmy::error::Result;
use exmy_train::train::config::Config;
use exmy_train::verify;

use super::Cuda;
use crate::launch;

/// All operations on a GPU ([`layers`](verify::layers)), with the kernels that were started for each.
pub fn layers(cuda: &Cuda, scale: usize) -> Vec<Output> {
    verify::layers(cuda, scale, launch::started)
}

/// Steps of training on a GPU ([`run`](runs::run)).
///
/// # Errors
/// As there.
pub fn run(cuda: &Cuda, config: &Config, name: &str, steps: usize) -> Result<Vec<Output>> {
    runs::run(cuda, config, name, steps)
}
