//! The layers on a device against those of the CPU, bit for bit.

use exmy_cuda::train::{Cuda, verify};
use exmy_train::nn::device::{Cpu, Device};

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

/// Two steps of every family under four recipes each; `exmy device --verify` takes all pairs on a GPU.
#[test]
fn training_has_the_bits_of_the_cpu() {
    use verify::runs::{FAMILIES, RECIPES, config, run};
    let Some(device) = device() else { return };
    let cuda = Cuda::new(device);
    let mut wrong = Vec::new();
    for (i, recipe) in RECIPES.into_iter().enumerate() {
        for family in [FAMILIES[i % 4], FAMILIES[(i + 2) % 4]].into_iter().take(1 + i % 2) {
            let config = config(family, recipe).unwrap();
            let name = format!("{} {recipe}", family.0);
            let found = run(&cuda, &config, &name, 2).unwrap();
            let expected = run(&Cpu::new(), &config, &name, 2).unwrap();
            wrong.extend(verify::differences(&expected, &found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
