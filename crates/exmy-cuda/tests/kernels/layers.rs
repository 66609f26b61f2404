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
