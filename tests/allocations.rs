//! A training step in `f32` allocates nothing once its memory is there; one with rounded operands
//! allocates lists of pieces, and no memory of the size of a tensor.

#![cfg(feature = "train")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use exmy::parallel::with_threads;
use exmy::train::data::{DataOptions, Dataset, Source};
use exmy::train::preset::preset;
use exmy::train::trainer::Trainer;

/// The system's allocator, counted.
struct Counted;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Calls and largest size of the fourth and fifth step.
fn allocations(recipe: &str, name: &str) -> (usize, usize) {
    let mut config = preset(name).unwrap();
    config.recipe = recipe.parse().unwrap();
    config.train.batch = 4;
    let data = Dataset::load(&Source::default(), &DataOptions::default()).unwrap();
    let steps = move || {
        let mut trainer = Trainer::new(&config, &data).unwrap();
        (0..3).for_each(|_| {
            trainer.step(None);
        });
        CALLS.store(0, Relaxed);
        LARGEST.store(0, Relaxed);
        trainer.step(None);
        trainer.step(None);
        (CALLS.load(Relaxed), LARGEST.load(Relaxed))
    };
    with_threads(1, steps).unwrap()
}

/// One test, as what one counts another must not add to.
#[test]
fn steps_allocate_nothing_of_weight() {
    for name in ["nano", "gpt-nano"] {
        assert_eq!(allocations("f32", name).0, 0, "{name}");
    }
    for recipe in ["mxfp8-e4m3", "nvfp4"] {
        let (calls, largest) = allocations(recipe, "nano");
        // What a thread needs to make tiles; 256 tokens of 64 numbers would be 64 KiB.
        assert!(largest <= 32 << 10, "{recipe}: {calls} calls, {largest} bytes");
    }
}
