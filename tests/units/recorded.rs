//! What devices computed: the tiles in `tests/data`, bit for bit, and that they decide.

use std::fs;
use std::path::{Path, PathBuf};

use exmy::gemm::unit::Model;
use exmy::vectors::tiles::{Tiles, model_of};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tiles"))
        .collect();
    files.sort();
    files
}

fn mismatches(path: &Path, model: &Model) -> (usize, usize) {
    let verdict = Tiles::parse(fs::read(path).unwrap()).unwrap().verify(model).unwrap();
    (verdict.mismatches, verdict.elements)
}

fn named(path: &Path) -> Model {
    model_of(path.file_name().unwrap().to_str().unwrap()).unwrap()
}

#[test]
fn every_recorded_result_is_the_models() {
    for (folder, files_there, elements_there) in [("h200", 17, 2720), ("amx", 2, 282)] {
        let files = files(folder);
        let mut elements = 0;
        for path in &files {
            let (wrong, all) = mismatches(path, &named(path));
            assert_eq!(wrong, 0, "{path:?}");
            elements += all;
        }
        assert_eq!((files.len(), elements), (files_there, elements_there), "{folder}");
    }
}

/// Each parameter one step off, the recordings say so.
#[test]
fn the_recordings_decide_each_parameter() {
    let decide = |part: &str, model: &str| {
        let model: Model = model.parse().unwrap();
        let mut wrong = 0;
        for path in files("h200").iter().chain(&files("amx")) {
            if path.to_str().unwrap().contains(part) {
                wrong += mismatches(path, &model).0;
            }
        }
        assert!(wrong > 0, "{part}: {model} is not refuted");
    };
    for part in ["wgmma_m64n8k16_f32_f16", "wgmma_m64n8k16_f32_bf16", "k8_f32_tf32"] {
        for model in [
            "f=24",
            "f=26",
            "align=rd",
            "align=sticky",
            "align=exact",
            "out=f32@rne",
            "zeros=0",
            "product=normal",
        ] {
            decide(part, &format!("hopper,{model}"));
        }
    }
    decide("k16_f32_f16", "hopper,l=8");
    decide("k8_f32_tf32", "hopper,l=4");
    for part in ["k32_f32_e4m3", "k32_f32_e5m2"] {
        for model in
            ["f=12", "f=14", "l=16", "out=e8m12@rtz", "out=e8m14@rtz", "align=rd", "zeros=0"]
        {
            decide(&format!("wgmma_m64n8{part}"), &format!("hopper,{model}"));
        }
    }
    for part in ["k16_f32_bf16_bf16_extreme", "k8_f32_tf32_tf32_extreme"] {
        for floor in ["-132", "-134", "none"] {
            decide(part, &format!("hopper,floor={floor}"));
        }
    }
    for floor in ["-20", "-22", "-133"] {
        decide("f16_f16_f16_tiny", &format!("hopper,floor={floor}"));
    }
    for model in
        ["hopper", "hopper-mma,f=24", "hopper-mma,f=26", "hopper-mma,align=rd", "hopper-mma,l=16"]
    {
        decide("mma_m16n8k32_f32_e4m3", model);
    }
    decide("promote128", "hopper");
    decide("promote128", "hopper,promote=64");
    for model in
        ["flush=none", "flush=cdna2", "nan=quiet", "nan=ones", "l=16", "order=fma", "order=tree"]
    {
        decide("amx_", &format!("amx,{model}"));
    }
}

/// What a recording of any size and place says:
/// `EXMY_TILES=folder cargo test --release --test units -- --ignored recordings_elsewhere`.
#[test]
#[ignore = "needs a folder of recordings"]
fn recordings_elsewhere() {
    let folder = std::env::var("EXMY_TILES").expect("EXMY_TILES names a folder");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tiles") {
            assert_eq!(mismatches(&path, &named(&path)).0, 0, "{path:?}");
        }
    }
}
