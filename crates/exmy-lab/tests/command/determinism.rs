//! Same seed, same bits: whatever the number of threads, the SIMD level, the repetition.

use crate::{TINY, assert_same, exmy, succeed, text_file};
use std::path::{Path, PathBuf};

/// Every named recipe, and stochastic ones.
fn recipes() -> String {
    let mut recipes = exmy_train::recipe::NAMED.to_vec();
    recipes.extend(["e4m3fn@sr8", "mxfp4@sr8", "nvfp4@sr4", "bf16+out=bf16", "nvfp4-16x16"]);
    recipes.join(",")
}

fn train(folder: &Path, name: &str, threads: &str, simd: Option<&str>) -> PathBuf {
    let (data, out) = (text_file(folder), folder.join(name));
    let recipes = recipes();
    let mut command = exmy(&["train", "--data", &data, "--recipe", &recipes]);
    command.args(TINY).args(["--set", "train.steps=12", "--threads", threads, "--out"]).arg(&out);
    if let Some(level) = simd {
        command.env("EXMY_SIMD", level);
    }
    succeed(&mut command);
    out
}

/// The tiny network of the long test is below the size at which products are divided; this one is
/// not.
#[test]
fn a_network_whose_products_are_divided_is_byte_equal_too() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let run = |threads: &str| {
        let out = folder.path().join(threads);
        let mut command = exmy(&["train", "--data", &data, "--recipe", "f32,mxfp8-e4m3,nvfp4@sr8"]);
        command.args(["--preset", "gpt-nano", "--steps", "6", "--threads", threads, "--out"]);
        succeed(command.arg(&out));
        out
    };
    let expected = run("1");
    for threads in ["2", "3"] {
        assert_same(&expected, &run(threads), threads);
    }
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn folders_are_byte_equal_for_any_threads_and_simd_level() {
        let folder = tempfile::tempdir().unwrap();
        let expected = train(folder.path(), "one", "1", None);
        let again = train(folder.path(), "two", "2", None);
        assert_same(&expected, &again, "2 threads");
        for level in exmy::simd::Level::ALL.into_iter().filter(|level| level.is_available()) {
            let name = level.name();
            let other = train(folder.path(), name, "2", Some(name));
            assert_same(&expected, &other, name);
        }
    }
}
