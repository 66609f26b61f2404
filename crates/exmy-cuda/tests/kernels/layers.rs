//! The layers on a device against those of the CPU, bit for bit.

use exmy_cuda::train::{Cuda, verify};
use exmy_train::nn::device::{Buffer, Layers, MatrixMut, Storage, Training};
use exmy_train::train::checkpoint;
use exmy_train::train::run::{Folder, load_data};
use exmy_train::train::trainer::Trainer;

use super::device;

#[test]
fn layers_have_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    let cuda = Cuda::new(device);
    let found = verify::layers(&cuda, 1);
    cuda.check().unwrap();
    let expected = verify::layers_on_cpu(1);
    let differences = verify::differences(&expected, &found);
    let first: Vec<_> = differences.iter().take(20).collect();
    assert!(differences.is_empty(), "{} of {}: {first:#?}", differences.len(), found.len());

    // A bit that is changed is found, with kernel, shape, tensor, element and both values.
    let at = found.iter().position(|output| output.name.starts_with("swiglu")).unwrap();
    let mut wrong = found;
    let value = wrong[at + 1].numbers[7];
    wrong[at + 1].numbers[7] = f32::from_bits(value.to_bits() ^ 1);
    let said = verify::differences(&expected, &wrong);
    let text = said[0].to_string();
    let begin =
        "swiglu 7 x 65 None backward (kernels: swiglu, swiglu_backward), element 7 of 910: ";
    assert!(said.len() == 1 && text.starts_with(begin), "{text}");
    let bits = format!("{value:?} ({:#010x}) on the CPU, ", value.to_bits());
    assert!(text.contains(&bits) && text.ends_with("on the device"), "{text}");
}

/// Every method of both traits is called by what is compared, but for those that compute nothing.
#[test]
fn every_operation_of_a_device_is_compared() {
    let at = |path: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let read = |path: &str| std::fs::read_to_string(at(path)).unwrap();
    let cases = ["attend", "elements", "recipes", "rows"]
        .map(|name| read(&format!("../exmy-train/src/verify/{name}.rs")))
        .concat()
        + &read("../exmy-train/src/verify.rs");
    let mut count = 0;
    for file in ["nn/device.rs", "recipe/device.rs"] {
        let source = read(&format!("../exmy-train/src/{file}"));
        let traits = source.split("\npub trait ").skip(1);
        let traits = traits.map(|rest| rest.split("\n}").next().expect("a trait's text"));
        for method in traits.flat_map(|text| text.split("\n    fn ").skip(1)) {
            let name = method.split(['(', '<']).next().expect("its name");
            count += 1;
            let computes = !["name", "check", "fits_in_memory"].contains(&name);
            assert!(!computes || cases.contains(&format!("device.{name}(")), "{name}");
        }
    }
    assert!(count > 55, "a test of nothing: {count}");
}

/// The differences of two steps of some recipes, of one or two families each, on two threads.
fn differences(recipes: impl IntoIterator<Item = &'static str>) -> Vec<verify::Difference> {
    use verify::run;
    use verify::runs::{FAMILIES, config, run_on_cpu};
    let Some(device) = device() else { return Vec::new() };
    let families =
        |i: usize| [i, i + 3].into_iter().take(1 + i % 2).map(|at| FAMILIES[at % FAMILIES.len()]);
    let recipes = recipes.into_iter().enumerate();
    let cases: Vec<_> =
        recipes.flat_map(|(i, recipe)| families(i).map(move |family| (family, recipe))).collect();
    let of = |first: usize| {
        let cuda = Cuda::new(device.stream().unwrap());
        let mut wrong = Vec::new();
        for (family, recipe) in cases.iter().skip(first).step_by(2).copied() {
            let config = config(family, recipe).unwrap();
            let name = format!("{} {recipe}", family.0);
            let found = run(&cuda, &config, &name, 2).unwrap();
            let expected = run_on_cpu(&config, &name, 2).unwrap();
            wrong.extend(verify::differences(&expected, &found));
        }
        wrong
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| of(1));
        let mut wrong = of(0);
        wrong.extend(other.join().unwrap());
        wrong
    })
}

/// Under recipes of tensor cores, which the emulated device models: what is tested is the way to them.
#[test]
fn training_by_tensor_cores_has_the_bits_of_the_cpu() {
    assert_eq!(differences(verify::runs::TENSOR_CORES), []);
}

/// No pair of a family and a recipe is refused, where `exmy device --verify` would come to it.
#[test]
fn every_recipe_goes_with_every_family() {
    use verify::runs::{FAMILIES, RECIPES, TENSOR_CORES, config};
    for family in FAMILIES {
        let data = load_data(&mut config(family, "f32").unwrap()).unwrap();
        for recipe in RECIPES.into_iter().chain(TENSOR_CORES) {
            let config = config(family, recipe).unwrap();
            if let Err(error) = Trainer::new(&config, &data) {
                panic!("{}, {recipe}: {error}", family.0);
            }
        }
    }
}

/// Runs at once, each on a stream of its own.
#[test]
fn runs_share_a_device() {
    use verify::run;
    use verify::runs::{FAMILIES, config, run_on_cpu};
    let Some(device) = device() else { return };
    let recipes = ["nvfp4", "mxpaper-e4m3", "msamp-o1", "chon"];
    let trained = &|at: usize| {
        let config = config(FAMILIES[at], recipes[at]).unwrap();
        let cuda = Cuda::new(device.stream().unwrap());
        cuda.ready(&config).unwrap();
        let found = run(&cuda, &config, recipes[at], 2).unwrap();
        (found, run_on_cpu(&config, recipes[at], 2).unwrap())
    };
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|at| scope.spawn(move || trained(at))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (found, expected) in &all {
        assert_eq!(verify::differences(expected, found), []);
    }
}

/// What goes wrong is remembered: operations do nothing, numbers read are zeros, `check` says what happened.
#[test]
fn a_device_without_memory_says_so_once() {
    let Some(device) = device() else { return };
    let cuda = Cuda::new(device);
    let mut small = cuda.buffer(vec![1.0; 8]);
    let mut large = Buffer::default();
    cuda.grow(&mut large, 1 << 61);
    assert_eq!(large.len(), 1 << 61);
    cuda.fill(MatrixMut::new(large.first_mut(8), 1, 8), 3.0);
    cuda.add_assign(small.all_mut(), large.first(8));
    let mut tokens = Default::default();
    cuda.set_tokens(&[2, 0], &mut tokens);
    cuda.cross_entropy(large.first_mut(6), 3, &tokens, None, small.first_mut(2));
    assert_eq!(*cuda.read(large.first(3)), [0.0; 3]);
    let error = cuda.check().unwrap_err().to_string();
    assert!(error.contains("memory is full"), "{error}");
    assert!(matches!(cuda.take_failure(), Some(exmy_cuda::Error::Memory { .. })));
    cuda.check().unwrap();
    assert_eq!(*cuda.read(small.all()), [1.0; 8]);
}

mod long {
    use super::*;

    /// Runs with all that can happen to one, on the CPU, on the device and on both in turns.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn files_of_runs_are_those_of_the_cpu() {
        let Some(device) = device() else { return };
        let (cuda, folder) = (Cuda::new(device), tempfile::tempdir().unwrap());
        let compared = verify::files::compare(&cuda, folder.path(), &mut |_| ()).unwrap();
        assert!(compared.iter().all(|run| run.first.is_none()), "{compared:#?}");
        // Configuration, metrics, probes, three checkpoints or four, weights, summary, what was undone.
        assert!(compared.len() == 5 && compared.iter().all(|run| run.files >= 7), "{compared:#?}");
        let whole = Folder::new(folder.path().join("diverging-cpu"));
        let (diverged, layout) =
            (whole.summary().unwrap().unwrap(), whole.config().unwrap().model.layout());
        let reason = diverged.reason.clone().unwrap_or_default();
        assert!(diverged.steps > 3 && reason.contains("loss NaN"), "{diverged:?}");
        let path = checkpoint::path(&whole.checkpoints(), diverged.steps);
        let state = checkpoint::load(&path, &layout).unwrap().0;
        let has_nan = |numbers: &[f32]| numbers.iter().any(|x| x.is_nan());
        assert!([&state.params, &state.m, &state.v].into_iter().all(|x| has_nan(x)), "{reason}");
        let mut windows = state.memory.windows.values();
        assert!(windows.any(|window| has_nan(&window.amax)), "a test of nothing");
        let undone = folder.path().join("device/discarded/rollback-01.jsonl");
        assert!(undone.is_file(), "a test of nothing");
    }

    /// Every family under two recipes or three; `exmy device --verify` takes all pairs on a GPU.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn training_has_the_bits_of_the_cpu() {
        assert_eq!(differences(verify::runs::RECIPES), []);
    }
}
