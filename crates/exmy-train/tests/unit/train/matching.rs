use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::published::names::transposed;
use exmy_train::train::matching::load_matching;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use std::fs;
use std::path::Path;

/// Two blocks' worth of names: an embedding, one layer's q, k, v, o and a norm.
fn layout() -> Layout {
    let mut layout = Layout::default();
    let mut push = |name: &str, shape: &[usize]| {
        layout.push(name.into(), shape, Role::Matrix, Init::Ones);
    };
    push("model.embed_tokens.weight", &[3, 2]);
    for part in ["q", "k", "v", "o"] {
        push(&format!("model.layers.0.self_attn.{part}_proj.weight"), &[2, 2]);
    }
    push("model.norm.weight", &[2]);
    layout
}

fn file(folder: &Path, tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) -> std::path::PathBuf {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (*name, TensorView::new(*dtype, shape.to_vec(), bytes).unwrap())
    });
    let path = folder.join("weights.safetensors");
    fs::write(&path, serialize(views, None).unwrap()).unwrap();
    path
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn part<'a>(layout: &Layout, params: &'a [f32], name: &str) -> &'a [f32] {
    &params[layout.find(name).unwrap().range.clone()]
}

#[test]
fn names_with_and_without_wrappers_and_all_widths() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout();
    let path = file(
        folder.path(),
        &[
            (
                "_orig_mod.module.model.embed_tokens.weight",
                Dtype::BF16,
                &[3, 2],
                // 1, -2, 0.5, 0, 3, 1.0078125
                [0x3F80_u16, 0xC000, 0x3F00, 0, 0x4040, 0x3F81]
                    .iter()
                    .flat_map(|b| b.to_le_bytes())
                    .collect(),
            ),
            (
                "layers.0.self_attn.q_proj.weight",
                Dtype::F64,
                &[2, 2],
                [1.0_f64, 0.1, -3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
            ),
            (
                "model.norm.weight",
                Dtype::F16,
                &[2],
                [0x3C00_u16, 0xBC01].iter().flat_map(|b| b.to_le_bytes()).collect(),
            ),
            ("model.layers.0.mlp.rotary.inv_freq", Dtype::F32, &[1], f32s(&[1.0])),
        ],
    );
    let mut params = layout.initialize(1);
    let matching = load_matching(&path, &layout, &mut params).unwrap();
    let embedding = part(&layout, &params, "model.embed_tokens.weight");
    assert_eq!(embedding, [1.0, -2.0, 0.5, 0.0, 3.0, 1.007_812_5]);
    let q = part(&layout, &params, "model.layers.0.self_attn.q_proj.weight");
    assert_eq!(q, [1.0, 0.1, -3.0, 4.0]);
    assert_eq!(part(&layout, &params, "model.norm.weight"), [1.0, -1.000_976_6]);
    assert_eq!(part(&layout, &params, "model.layers.0.self_attn.o_proj.weight"), [1.0; 4]);
    assert_eq!(matching.loaded.len(), 3);
    assert_eq!(matching.fresh.len(), 3);
    assert_eq!(matching.unused, ["model.layers.0.mlp.rotary.inv_freq"]);
}

/// Hugging Face's GPT-2 stores (in, out), nanoGPT (out, in); both come to the same.
#[test]
fn fused_matrices_are_divided_and_turned() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout();
    let fused: Vec<f32> = (0..12_u8).map(f32::from).collect();
    let o = [20.0, 21.0, 22.0, 23.0];
    let turned_fused = transposed(&fused, 6, 2);
    assert_eq!(turned_fused[..6], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    let mut results = Vec::new();
    for (prefix, shape, qkv, out) in [
        ("", [6, 2], f32s(&fused), f32s(&o)),
        ("transformer.", [2, 6], f32s(&turned_fused), f32s(&transposed(&o, 2, 2))),
    ] {
        let name = |rest: &str| format!("{prefix}{rest}");
        let path = file(
            folder.path(),
            &[
                (&name("h.0.attn.c_attn.weight"), Dtype::F32, &shape, qkv),
                (&name("h.0.attn.c_proj.weight"), Dtype::F32, &[2, 2], out),
                (&name("ln_f.weight"), Dtype::F32, &[2], f32s(&[7.0, 8.0])),
            ],
        );
        let mut params = layout.initialize(1);
        assert_eq!(load_matching(&path, &layout, &mut params).unwrap().fresh.len(), 1);
        results.push(params);
    }
    assert_eq!(results[0], results[1]);
    let k = part(&layout, &results[0], "model.layers.0.self_attn.k_proj.weight");
    assert_eq!(k, [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(part(&layout, &results[0], "model.layers.0.self_attn.o_proj.weight"), o);
    assert_eq!(part(&layout, &results[0], "model.norm.weight"), [7.0, 8.0]);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout();
    let refused = |tensors: &[(&str, Dtype, &[usize], Vec<u8>)], parts: &[&str]| {
        let path = file(folder.path(), tensors);
        let mut params = layout.initialize(1);
        let error = load_matching(&path, &layout, &mut params).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert_eq!(params, layout.initialize(1));
    };
    let norm = ("model.norm.weight", Dtype::F32, &[2][..], f32s(&[1.0, 2.0]));
    let long = ("norm.weight", Dtype::F32, &[3][..], f32s(&[1.0; 3]));
    refused(&[norm.clone(), long], &["norm.weight\" is [3]", "is [2]"]);
    let twin = ("norm.weight", Dtype::F32, &[2][..], f32s(&[1.0; 2]));
    refused(&[norm, twin], &["both", "norm.weight"]);
    refused(&[("x", Dtype::F32, &[1], f32s(&[1.0]))], &["no tensor of this model", "like \"x\""]);
    refused(&[("norm.weight", Dtype::I8, &[2], vec![1, 2])], &["I8", "BF16"]);
    let path = folder.path().join("weights.safetensors");
    fs::write(&path, "no safetensors").unwrap();
    let error = load_matching(&path, &layout, &mut layout.initialize(1)).unwrap_err().to_string();
    assert!(error.contains("no whole safetensors file"), "{error}");
}
