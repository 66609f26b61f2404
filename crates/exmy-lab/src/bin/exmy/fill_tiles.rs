//! `exmy fill-tiles`: results of a model for given operands of a matrix unit.

use crate::show;
use crate::verify_tiles::read;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::gemm::unit::Model;
use exmy::safetensors::whole::write_whole;
use exmy::shown::printable_path;
use std::path::PathBuf;

/// Fill the results of a model of a matrix unit into a file of tiles
///
/// Reads operands and addends in the format EXMYTILE (docs/tiles.md), whose results may be anything, and
/// writes the same file with those that the model computes. A test bench drives the operands into a design
/// and compares. The model is found as by `exmy verify-tiles`.
///
/// OUT is written whole or not at all. It may be the file that was read, or - for standard output.
#[derive(Args)]
#[command(after_long_help = crate::verify_tiles::long_help())]
pub(crate) struct Arguments {
    /// File of tiles; - is standard input
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// File to write; - is standard output
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The model: a name, a name with parameters such as hopper,f=14, or a file such as unit.toml
    #[arg(long, value_name = "NAME", value_parser = Model::named)]
    model: Option<Model>,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let Arguments { from, out, model } = arguments;
    let (tiles, model) = read(from, model.as_ref())?;
    let failed = format!("cannot fill {} ({tiles})", printable_path(from));
    let filled = tiles.with_results(&model).map_err(|error| Error::new(failed).because(error))?;
    if out.as_os_str() == "-" {
        show::bytes(filled.as_bytes())?;
        say!("{} results of {model}", filled.results());
    } else {
        write_whole(out, filled.as_bytes())?;
        say!("{} results of {model} in {}", filled.results(), printable_path(out));
    }
    Ok(0)
}
