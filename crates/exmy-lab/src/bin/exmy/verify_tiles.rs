//! `exmy verify-tiles`: recorded dot products of matrix units against the models of this crate.

use crate::inputs;
use crate::rows::width;
use crate::settings::quiet_pipe;
use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::gemm::unit::{Model, Preset};
use exmy::shown::printable_path;
use exmy::vectors::tiles::{Tiles, TilesVerdict, model_of};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Exit code where a recorded result is not the computed one.
const MISMATCH: u8 = 1;

/// Compare recorded tiles of matrix units with a model of them
///
/// Reads files in the format EXMYTILE (docs/tiles.md) - operands, addends and results of one
/// instruction - computes every result anew and prints `FILE: N elements, M mismatches`, then the
/// first mismatch step by step. Of a folder all files are read whose names end in `.tiles`.
///
/// The model is the one that --model names, else the one that the file's name begins with:
/// `ampere_anything.tiles`, `hopper,promote=128_x.tiles`. NVIDIA's names of Hopper's instructions,
/// wgmma_..., mma_... and cublas_..., are understood too.
///
/// Exit code 0 if every result matches, 1 if one does not, 2 if a file cannot be used.
#[derive(Args)]
#[command(after_long_help = long_help())]
pub(crate) struct Arguments {
    /// Files of tiles, or folders of them; - is standard input
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,
    /// The model to compare with: a name, a name with parameters such as hopper,f=14, or a file such as
    /// unit.toml
    #[arg(long, value_name = "NAME", value_parser = Model::named)]
    model: Option<Model>,
}

pub(crate) fn long_help() -> String {
    let mut text = String::from("Models, and the operands they take:\n");
    for preset in Preset::ALL {
        text += &format!("  {:<18} {}\n", preset.name(), preset.takes());
    }
    text + "Parameters, what is known of each model, and files that describe one: docs/units.md\n"
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let mut code = 0;
    let (mut files, mut elements, mut mismatches) = (0, 0, 0);
    for path in &arguments.paths {
        let found = match inputs::files(path, "tiles") {
            Ok(found) => found,
            Err(error) => {
                show::error(&error);
                code = crate::MISUSE;
                continue;
            }
        };
        for file in found {
            match verify(&file, arguments.model.as_ref()) {
                Ok(verdict) => {
                    if !print(&line(&file, &verdict))? {
                        return Ok(code);
                    }
                    files += 1;
                    elements += verdict.elements;
                    mismatches += verdict.mismatches;
                    if verdict.mismatches > 0 {
                        code = code.max(MISMATCH);
                    }
                }
                // The other files are still worth a look.
                Err(error) => {
                    show::error(&error);
                    code = crate::MISUSE;
                }
            }
        }
    }
    if files > 1 {
        print(&format!("{files} files: {elements} elements, {mismatches} mismatches\n"))?;
    }
    Ok(code)
}

fn verify(path: &Path, model: Option<&Model>) -> Result<TilesVerdict> {
    let (tiles, model) = read(path, model)?;
    let failed = |error| {
        Error::new(format!("cannot verify {} ({tiles})", printable_path(path))).because(error)
    };
    tiles.verify(&model).map_err(failed)
}

/// The tiles of a file, or of standard input for `-`, and the model that is named or that the file's name
/// asks for.
pub(crate) fn read(path: &Path, model: Option<&Model>) -> Result<(Tiles, Model)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let from_name = || {
        model_of(&name).ok_or_else(|| {
            Error::new(format!("no model is known by the name of {}", printable_path(path))).hint(
                "say --model NAME, or let the file's name begin with one and an underscore, as \
                 ampere_m16n8k16.tiles does; `exmy verify-tiles --help` lists the models",
            )
        })
    };
    let tiles = if path.as_os_str() == "-" {
        Tiles::read(io::stdin().lock())
    } else {
        Tiles::read(inputs::open(path)?)
    };
    let tiles = tiles.map_err(|error| Error::io("use", path, error))?;
    Ok((tiles, model.cloned().map_or_else(from_name, Ok)?))
}

fn line(path: &Path, verdict: &TilesVerdict) -> String {
    match width() {
        Some(width) => format!("{}: {verdict:width$}\n", printable_path(path)),
        None => format!("{}: {verdict}\n", printable_path(path)),
    }
}

/// To stdout; false if the reader has gone away.
fn print(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(quiet_pipe(printed)?.is_some())
}
