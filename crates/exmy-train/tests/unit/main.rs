//! Tests of single modules, one file for each, with the name that the module has in `src`.

mod minimize;
mod nn;
mod recipe;
mod train;
