use exmy::safetensors::{Dtype, Outline, Writer};
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::recipe::state::RecipeState;
use exmy_train::train::checkpoint::{
    PIECE, Progress, State, load, load_model, path, records, save, save_model, save_recorded,
};
use exmy_train::train::digest::Digest;
use exmy_train::train::record::Digests;
use safetensors::tensor::TensorView;
use std::borrow::Cow;
use std::fs;

/// Tensors of several pieces and of none, byte for byte as the format's own library writes
/// them, and read back.
#[test]
fn files_are_those_of_the_reference_implementation() {
    let mut layout = Layout::default();
    layout.push("b".into(), &[3, PIECE], Role::Matrix, Init::Zeros);
    layout.push("a".into(), &[PIECE + 1], Role::Norm, Init::Zeros);
    let arena = |start: usize| -> Vec<f32> {
        (start..start + layout.len()).map(|i| i as f32 * -0.37).collect()
    };
    let memory = RecipeState::from_text("hot layers.0.up_proj 3 1 7\n").unwrap();
    let [params, m, v] = [0, 1, 2].map(|i| arena(i).into());
    let state = State { params, m, v, memory: Cow::Owned(memory) };
    let folder = tempfile::tempdir().unwrap();
    let digests = Digests { metrics: "m".into(), probes: None };
    let progress = Progress { step: 8, tokens: 99 };
    save_recorded(folder.path(), &layout, &state, progress, Some(digests.clone())).unwrap();
    assert_eq!(records(&path(folder.path(), 8)).unwrap(), Some(digests));

    let mut tensors = Vec::new();
    for (prefix, values) in [("", &state.params), ("adamw.m.", &state.m), ("adamw.v.", &state.v)] {
        for entry in layout.iter() {
            let numbers = &values[entry.range.clone()];
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            tensors.push((format!("{prefix}{}", entry.name), entry.shape.clone(), bytes));
        }
    }
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes);
        (name, view.unwrap())
    });
    let text = r#"{"step":8,"tokens":99,"memory":"hot layers.0.up_proj 3 1 7\n","records":{"metrics":"m"}}"#;
    let sum = tensors.iter().fold(Digest::of(text.as_bytes(), 0), |sum, (name, _, bytes)| {
        sum.wrapping_add(Digest::of(bytes, Digest::of(name.as_bytes(), 0)))
    });
    let text = format!(r#"{},"digest":"{sum:016x}"}}"#, &text[..text.len() - 1]);
    let metadata = [("exmy".to_owned(), text)].into();
    let expected = safetensors::serialize(views, Some(metadata)).unwrap();
    let file = path(folder.path(), 8);
    assert!(fs::read(&file).unwrap() == expected);
    let (again, progress) = load(&file, &layout).unwrap();
    assert!(again == state && progress == Progress { step: 8, tokens: 99 });
}

/// A buffer alone and no moments at all come back as they were, with no tensor of zeros in the file.
#[test]
fn moments_that_are_not_kept_are_not_written() {
    let mut layout = Layout::default();
    layout.push("a".into(), &[2, 3], Role::Matrix, Init::Zeros);
    let params: Vec<f32> = (0..6).map(|i| i as f32).collect();
    for (count, m) in [(1, vec![]), (2, vec![0.5; 6])] {
        let state = State { params: (&params).into(), m: m.into(), ..State::default() };
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &layout, &state, Progress { step: 3, tokens: 7 }).unwrap();
        let file = fs::read(path(folder.path(), 3)).unwrap();
        let names = safetensors::SafeTensors::deserialize(&file).unwrap();
        assert_eq!(names.len(), count, "{:?}", names.names());
        assert!(load(&path(folder.path(), 3), &layout).unwrap().0 == state);
    }
}

/// NaNs of other signs and payloads, as other machines make them, leave the same files; so do those that were
/// read back. Infinities and a number next to them stay.
#[test]
fn every_nan_is_written_as_one() {
    let (layout, state) = small();
    let with = |nans: [u32; 3]| {
        let arena = |arena: &[f32]| -> Cow<'static, [f32]> {
            let mut arena = arena.to_vec();
            let bits = nans.into_iter().chain([0x7F80_0000, 0xFF80_0000, 0xFF7F_FFFF]);
            arena.iter_mut().zip(bits).for_each(|(x, bits)| *x = f32::from_bits(bits));
            arena.into()
        };
        let [params, m, v] = [&state.params, &state.m, &state.v].map(|x| arena(x));
        State { params, m, v, ..state.clone() }
    };
    let written = |state: &State<'_>| {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoint, model) = (path(folder.path(), 8), folder.path().join("model"));
        save(folder.path(), &layout, state, Progress { step: 8, tokens: 99 }).unwrap();
        save_model(&model, &layout, &state.params).unwrap();
        let files = [&checkpoint, &model].map(|file| fs::read(file).unwrap());
        (files, load(&checkpoint, &layout).unwrap().0)
    };
    let (expected, again) = written(&with([0x7FC0_0000; 3]));
    for made in [[0x7FFF_FFFF, 0xFFC0_0000, 0x7F80_0001], [0xFFFF_FFFF, 0xFF80_0001, 0x7FC0_0001]] {
        assert!(written(&with(made)).0 == expected);
    }
    assert!(written(&again).0 == expected);
    let bits =
        [&again.params, &again.m, &again.v].map(|x| [x[2], x[3], x[4], x[5]].map(f32::to_bits));
    assert_eq!(bits, [[0x7FC0_0000, 0x7F80_0000, 0xFF80_0000, 0xFF7F_FFFF]; 3]);
}

/// A small layout with its state, the memory of a recipe among it.
fn small() -> (Layout, State<'static>) {
    let mut layout = Layout::default();
    layout.push("model.layers.0.mlp.up_proj.weight".into(), &[3, 4], Role::Matrix, Init::Zeros);
    layout.push("model.norm.weight".into(), &[4], Role::Norm, Init::Zeros);
    let arena =
        |start: usize| (start..start + layout.len()).map(|i| i as f32).collect::<Vec<f32>>();
    let memory = RecipeState::from_text("hot layers.0.up_proj 3 1 7\n").unwrap();
    let [params, m, v] = [0, 20, 40].map(|i| arena(i).into());
    let state = State { params, m, v, memory: Cow::Owned(memory) };
    (layout, state)
}

/// Every bit of a checkpoint, flipped, is an error; of a file of weights it is one or changes no
/// weight (the key of the metadata, say).
#[test]
fn a_flipped_bit_is_noticed() {
    let (layout, state) = small();
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &layout, &state, Progress { step: 8, tokens: 99 }).unwrap();
    let (checkpoint, model) = (path(folder.path(), 8), folder.path().join("model"));
    save_model(&model, &layout, &state.params).unwrap();
    let mut noticed = [0; 2];
    for (kind, file) in [&checkpoint, &model].into_iter().enumerate() {
        let whole = fs::read(file).unwrap();
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, &bytes).unwrap();
            let said = if file == &checkpoint {
                load(file, &layout).err()
            } else {
                match load_model(file, &layout) {
                    Ok(params) => {
                        assert!(state.params == params, "bit {bit} of the weights");
                        continue;
                    }
                    Err(error) => Some(error),
                }
            };
            let said = said.unwrap_or_else(|| panic!("bit {bit} of {file:?}"));
            assert!(said.to_string().contains(&*file.to_string_lossy()), "{said}");
            noticed[kind] += 1;
        }
        fs::write(file, &whole).unwrap();
    }
    assert!(noticed[1] > 8 * 4 * state.params.len());
}

/// Files of before there were digests, and of other programs.
#[test]
fn a_file_without_a_digest_is_read() {
    let (layout, state) = small();
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), 8);
    let outlines: Vec<_> = ["", "adamw.m.", "adamw.v."]
        .iter()
        .flat_map(|prefix| layout.iter().map(move |entry| (prefix, entry)))
        .map(|(p, e)| Outline::new(format!("{p}{}", e.name), Dtype::F32, e.shape.clone()))
        .collect();
    let text = r#"{"step":8,"tokens":99}"#.to_owned();
    let mut writer = Writer::create(&file, &outlines, [("exmy".to_owned(), text)].into()).unwrap();
    for outline in &outlines {
        let count: usize = outline.shape.iter().product();
        writer.write(&outline.name, &vec![0; 4 * count]).unwrap();
    }
    writer.finish().unwrap();
    let (again, progress) = load(&file, &layout).unwrap();
    assert_eq!(progress, Progress { step: 8, tokens: 99 });
    assert!(again.params == vec![0.0; state.params.len()] && again.memory.is_empty());
}
