//! A training step on one thread allocates nothing once its memory is there, whatever rounds its operands:
//! plain formats, blocks, rotations, tensor scales, random bits, windows, hot channels. (Where norms are made in
//! steps of bfloat16, as `mxpaper-*` has them, their backward pass takes a few lists of the width.)
//!
//! With several threads rayon allocates: a list of what is handed out for each division of work, and blocks of its
//! queues. So does the packing of what lies along the rows, a list of which thread's work a slab is.

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

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
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

/// Calls in the fourth and fifth step.
fn allocations(recipe: &str, name: &str) -> usize {
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
        trainer.step(None);
        trainer.step(None);
        CALLS.load(Relaxed)
    };
    with_threads(1, steps).unwrap()
}

/// One test, as what one counts another must not add to.
#[test]
fn steps_allocate_nothing() {
    let recipes = [
        "f32",
        "bf16",
        "bitred-e8m3",
        "mxfp8-e4m3",
        "mxfp4@sr8+out=bf16",
        "msamp-o1",
        "nvfp4",
        "nvfp4@4over6",
        "nv-nvfp4",
        "chon",
    ];
    let mut found = String::new();
    for name in ["nano", "gpt-nano", "gla-nano", "proxy-nano"] {
        for recipe in recipes {
            match allocations(recipe, name) {
                0 => {}
                calls => found += &format!("{name} {recipe}: {calls}\n"),
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
