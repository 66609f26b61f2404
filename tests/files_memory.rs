//! Files larger than the memory that is used for them. A test of its own, since what it counts is
//! the memory of the whole process.

#![cfg(feature = "safetensors")]

use exmy::safetensors::{
    Dtype, Outline, Output, Progress, QuantizeOptions, Reader, Writer, quantize,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with the bytes in use and the most there ever were.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; what is added touches no memory of
// the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        MOST.fetch_max(used, Ordering::SeqCst);
        // SAFETY: the caller's promise is the one that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `work` had in use beyond those before it.
fn most(work: impl FnOnce()) -> usize {
    let before = USED.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    work();
    MOST.load(Ordering::SeqCst) - before
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    // 32 MiB in one tensor that is copied or cast, and 32 MiB in 32 that get blocks. Zeros, and no
    // pattern in them: what counts is how much is held at a time.
    let mut tensors = vec![Outline::new("large", Dtype::F32, [1 << 23])];
    tensors.extend((0..32).map(|i| Outline::new(format!("w{i}"), Dtype::F32, [512, 512])));
    let mut writer = Writer::create(&input, &tensors, Default::default()).unwrap();
    for tensor in &tensors {
        for _ in 0..(tensor.shape.iter().product::<usize>() * 4) >> 20 {
            writer.write(&tensor.name, &[0; 1 << 20]).unwrap();
        }
    }
    writer.finish().unwrap();
    assert_eq!(File::open(&input).unwrap().metadata().unwrap().len() >> 20, 64);

    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    // 1 MiB of numbers, their codes and pieces, and 12 MiB that are only tried for; never the 32 MiB
    // of the large one.
    let blocks = QuantizeOptions::new("mxfp4".parse().unwrap());
    let used = most(|| {
        quantize(&input, &output, &blocks, &mut go_on).unwrap().unwrap();
    });
    assert!(used < 20 << 20, "{} KiB for tensors of 1 MiB", used >> 10);

    let cast = QuantizeOptions {
        include: vec!["large".parse().unwrap()],
        output: Output::Values(Some(Dtype::BF16)),
        ..QuantizeOptions::new("e4m3".parse().unwrap())
    };
    let used = most(|| {
        quantize(&input, &output, &cast, &mut go_on).unwrap().unwrap();
    });
    assert!(used < 16 << 20, "{} KiB to cast a tensor of 32 MiB in pieces", used >> 10);

    // A piece, and again what is only tried for.
    let used = most(|| {
        let mut reader = Reader::open(&input).unwrap();
        assert_eq!(reader.survey("large").unwrap().zeros, 1 << 23);
    });
    assert!(used < 16 << 20, "{} KiB to survey a tensor of 32 MiB in pieces", used >> 10);
}
