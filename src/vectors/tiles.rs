//! Recorded tiles of matrix units: the file format `EXMYTILE`, and the verdict on a file.
//!
//! A file holds operands, addends and results of one instruction, as a device computed them. Its name or
//! the caller says which [`Model`] should give the same bits. [`Tiles::verify`] computes every result anew,
//! [`Tiles::with_results`] fills results in, and [`Tiles::drawn`] makes operands for a unit of any formats.
//! The repository's `docs/tiles.md` describes the format, so that anyone can record a device in it.
//!
//! ```
//! use exmy::vectors::tiles::{Tiles, model_of};
//!
//! let model = model_of("wgmma_m64n8k32_f32_e4m3_e4m3.tiles").expect("a known name");
//! assert_eq!(model.to_string(), "hopper");
//! // A file that ends within its header.
//! let error = Tiles::parse(b"EXMYTILE\x01\0\0\0".to_vec()).unwrap_err();
//! assert!(error.to_string().contains("12 bytes"));
//! ```

mod coverage;
mod draw;
mod file;
mod text;
mod verdict;

pub use draw::TilesRequest;
pub use file::{TileOperands, Tiles, TilesError};
pub use verdict::{TileMismatch, TilesVerdict};

use crate::gemm::unit::{Model, Preset};

/// The model that a file's name asks for.
///
/// * `MODEL_...`, where MODEL is a preset's name, alone or with parameters: `ampere_m16n8k16.tiles`,
///   `hopper,promote=128_anything.tiles`;
/// * NVIDIA's names of Hopper's instructions: `wgmma_...` is `hopper`, `mma_...` is `hopper-mma` if
///   two 8-bit formats follow, else `hopper`; `cublas_...` is `hopper`, with sums promoted every N
///   columns if a word of it is `promoteN`.
///
/// `None` if it begins otherwise. A folder before the name and an ending behind it do not matter.
pub fn model_of(name: &str) -> Option<Model> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = name.strip_suffix(".tiles").unwrap_or(name);
    let (first, rest) = stem.split_once('_').unwrap_or((stem, ""));
    let narrow = |text: &str| {
        let words = text.split('_').filter(|word| matches!(*word, "e4m3" | "e5m2"));
        words.count() >= 2
    };
    match first {
        "wgmma" => Some(Preset::Hopper.into()),
        "mma" if narrow(rest) => Some(Preset::HopperMma.into()),
        "mma" => Some(Preset::Hopper.into()),
        "cublas" => match rest.split('_').find_map(|word| word.strip_prefix("promote")) {
            Some(every) => alloc::format!("hopper,promote={every}").parse().ok(),
            None => Some(Preset::Hopper.into()),
        },
        _ => first.parse().ok(),
    }
}

/// What a kind of tile draws, for the kinds that the recordings of an H200 have and those of
/// [`Tiles::drawn`].
pub const KINDS: [&str; 22] = [
    "normal",
    "random bits",
    "exponent window",
    "cancellation",
    "one large, many small",
    "c sweep",
    "subnormal",
    "special",
    "sparse",
    "overflow",
    "deep cancellation",
    "zero partner",
    "extreme: uniform exponents",
    "extreme: huge cancelling pair",
    "extreme: near 2^128",
    "extreme: tiny products",
    "extreme: around the alignment bound",
    "extreme: around the alignment bound, all positive",
    "scales apart",
    "scales at their ends",
    "around the smallest normal number",
    "negative zeros",
];
