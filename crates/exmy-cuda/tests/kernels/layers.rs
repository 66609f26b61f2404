//! The layers on a device against those of the CPU, bit for bit.

use exmy_cuda::train::{Cuda, verify};
use exmy_train::nn::device::{Buffer, Cpu, Device, MatrixMut};

use super::device;

#[test]
fn layers_have_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    let cuda = Cuda::new(device);
    let found = verify::layers(&cuda, 1);
    cuda.check().unwrap();
    let expected = verify::layers(&Cpu::new(), 1);
    let differences = verify::differences(&expected, &found);
    let first: Vec<_> = differences.iter().take(20).collect();
    assert!(differences.is_empty(), "{} of {}: {first:#?}", differences.len(), found.len());
}

/// The differences of two steps of some recipes, of one or two families each.
fn differences(recipes: impl IntoIterator<Item = &'static str>) -> Vec<verify::Difference> {
    use verify::runs::{FAMILIES, config, run};
    let Some(device) = device() else { return Vec::new() };
    let cuda = Cuda::new(device);
    let mut wrong = Vec::new();
    for (i, recipe) in recipes.into_iter().enumerate() {
        for family in [FAMILIES[i % 4], FAMILIES[(i + 2) % 4]].into_iter().take(1 + i % 2) {
            let config = config(family, recipe).unwrap();
            let name = format!("{} {recipe}", family.0);
            let found = run(&cuda, &config, &name, 2).unwrap();
            let expected = run(&Cpu::new(), &config, &name, 2).unwrap();
            wrong.extend(verify::differences(&expected, &found));
        }
    }
    wrong
}

/// Under recipes of tensor cores, which the emulated device models: what is tested is the way to them.
#[test]
fn training_by_tensor_cores_has_the_bits_of_the_cpu() {
    assert_eq!(differences(verify::runs::TENSOR_CORES), []);
}

/// Every family under four recipes; `exmy device --verify` takes all pairs on a GPU.
#[test]
fn training_has_the_bits_of_the_cpu() {
    assert_eq!(differences(verify::runs::RECIPES), []);
}

/// Runs at once, each on a stream of its own.
#[test]
fn runs_share_a_device() {
    use verify::runs::{FAMILIES, config, run};
    let Some(device) = device() else { return };
    let recipes = ["nvfp4", "mxpaper-e4m3", "msamp-o1", "chon"];
    let trained = &|at: usize| {
        let config = config(FAMILIES[at], recipes[at]).unwrap();
        let cuda = Cuda::new(device.stream().unwrap());
        cuda.ready(&config).unwrap();
        let found = run(&cuda, &config, recipes[at], 2).unwrap();
        (found, run(&Cpu::new(), &config, recipes[at], 2).unwrap())
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
