//! Memory, launches, barriers and shuffles.

#![allow(unsafe_code)]

use exmy_cuda::launch::Launch;
use exmy_cuda::module::BASIC;
use exmy_cuda::{Buffer, Device, Emulation, Error, Grid};

use super::device;

#[test]
fn numbers_go_there_and_back() {
    let Some(device) = device() else { return };
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let (a, b) = (device.upload(&x).unwrap(), device.upload(&x).unwrap());
    let mut out = device.zeros::<f32>(1000).unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.0; 1000]);
    let launch =
        Launch::new(&device, &BASIC, "add_f32").read(&a).read(&b).write(&mut out).value(1000_u64);
    // SAFETY: the buffers have 1000 elements.
    unsafe { launch.run(Grid::cover(1000, 256)).unwrap() };
    assert_eq!(out.to_vec().unwrap(), x.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert!(matches!(out.write(&x[1..]), Err(Error::Unfit { .. })));
    let copy = out.try_clone().unwrap();
    assert_eq!(copy.to_vec().unwrap(), out.to_vec().unwrap());
    assert!(device.zeros::<u8>(0).unwrap().to_vec().unwrap().is_empty());
}

#[test]
fn threads_meet_at_barriers() {
    let Some(device) = device() else { return };
    let x: Vec<u32> = (0..64 * 5).collect();
    let expected: Vec<u32> = x.chunks(64).flat_map(|block| block.iter().rev().copied()).collect();
    // Warps run in both orders by turns.
    for _ in 0..2 {
        let a = device.upload(&x).unwrap();
        let mut out = device.zeros::<u32>(x.len()).unwrap();
        let launch = Launch::new(&device, &BASIC, "reverse_blocks").read(&a).write(&mut out);
        // SAFETY: five blocks of 64 numbers, and 256 bytes of shared memory.
        unsafe { launch.run(Grid::new(5, 64).with_shared(256)).unwrap() };
        assert_eq!(out.to_vec().unwrap(), expected);
    }
}

#[test]
fn lanes_give_each_other_numbers() {
    let Some(device) = device() else { return };
    let x: Vec<f32> = (0..96).map(|i| 0.1 * i as f32).collect();
    let halves = |x: &[f32]| {
        let mut x = x.to_vec();
        for half in [16, 8, 4, 2, 1] {
            (0..half).for_each(|i| x[i] += x[i + half]);
        }
        x[0]
    };
    let a = device.upload(&x).unwrap();
    let mut out = device.zeros::<f32>(3).unwrap();
    let launch = Launch::new(&device, &BASIC, "warp_sum").read(&a).write(&mut out);
    // SAFETY: three blocks of 32 numbers.
    unsafe { launch.run(Grid::new(3, 32)).unwrap() };
    assert_eq!(out.to_vec().unwrap(), x.chunks(32).map(halves).collect::<Vec<_>>());
}

#[test]
fn streams_of_a_device_share_its_memory() {
    let Some(device) = device() else { return };
    let other = device.stream().unwrap();
    let a = device.upload(&[1.0_f32, 2.0]).unwrap();
    let mut b = other.zeros::<f32>(2).unwrap();
    b.copy_from(&a).unwrap();
    assert_eq!(b.to_vec().unwrap(), [1.0, 2.0]);
    let strange = Device::emulated(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut far = strange.zeros::<f32>(2).unwrap();
    assert_eq!(far.copy_from(&a), Err(Error::OtherDevice { what: "a copy on the device" }));
}

/// Memory of others is read and written where it lies, and stays theirs.
#[test]
fn memory_of_others_is_borrowed() {
    let Some(device) = device() else { return };
    let theirs = device.upload(&[1.0_f32, 2.0, 3.0]).unwrap();
    // SAFETY: the numbers of a buffer that lives longer, and that nobody else uses meanwhile.
    let mut ours = unsafe { Buffer::<f32>::borrowed(&device, theirs.address(), 3).unwrap() };
    assert_eq!(ours.to_vec().unwrap(), [1.0, 2.0, 3.0]);
    ours.write(&[4.0, 5.0, 6.0]).unwrap();
    drop(ours);
    assert_eq!(theirs.to_vec().unwrap(), [4.0, 5.0, 6.0]);
    // SAFETY: refused.
    let beside = unsafe { Buffer::<f32>::borrowed(&device, theirs.address() + 4, 2) };
    assert!(beside.unwrap_err().to_string().contains("multiple of 256"));
    // SAFETY: there are no numbers.
    assert!(unsafe { Buffer::<f32>::borrowed(&device, 4, 0) }.unwrap().is_empty());
}

#[test]
fn a_gpu_that_is_too_old_is_refused_in_one_line() {
    let opened = |capability| {
        let emulation = Emulation { capability, ..Emulation::default() };
        Device::emulated_with(env!("CARGO_TARGET_TMPDIR"), emulation)
    };
    for capability in [(7, 5), (6, 1)] {
        let Some(device) = opened(capability) else { return };
        let error = device.unwrap_err();
        let Error::Architecture { found, .. } = error else { panic!("{error}") };
        assert_eq!(found, capability);
        let (major, minor) = capability;
        let text =
            format!("the kernels: compute capability 8.0 or higher; emulated is {major}.{minor}");
        assert_eq!(error.to_string(), text);
    }
    assert!(opened((8, 0)).is_none_or(|device| device.is_ok()));
}

#[test]
fn without_a_gpu_one_line_says_so() {
    // On a machine with one, that there is no such number.
    let error = Device::new(1000).unwrap_err();
    assert!(
        matches!(error, Error::NoDriver | Error::NoDevice { .. } | Error::Driver { .. }),
        "{error}"
    );
    assert!(!error.to_string().contains('\n'));
}
