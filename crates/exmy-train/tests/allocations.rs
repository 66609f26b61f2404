//! A training step allocates nothing once its memory is there, whatever rounds its operands: plain formats,
//! blocks, rotations, tensor scales, random bits, windows, hot channels, norms in steps of bfloat16.
//!
//! On one thread memory is there after three steps. With several it depends on which of them takes what. Each
//! keeps its own, and one that comes to a piece of work for the first time asks the system for it. So there
//! the test waits for two steps in a row without a call.
//!
//! Without vectors of sixteen, products of f32 are those of the crate `matrixmultiply`, which asks for memory
//! to pack in at each. So models and recipes that have such products are left out on processors without
//! AVX-512.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use exmy::parallel::with_threads;
use exmy::simd::{Level, level};
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;
use exmy_train::train::trainer::Trainer;

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

/// Calls in two steps in a row: the least of all such within as many steps, the first three apart.
fn allocations(data: &Dataset, recipe: &str, name: &str, threads: usize, most: usize) -> usize {
    let mut config = preset(name).unwrap();
    config.recipe = recipe.parse().unwrap();
    config.train.batch = 4;
    let steps = move || {
        let mut trainer = Trainer::new(&config, data).unwrap();
        (0..3).for_each(|_| {
            trainer.step(None);
        });
        let mut least = usize::MAX;
        for _ in (3..most).step_by(2) {
            CALLS.store(0, Relaxed);
            trainer.step(None);
            trainer.step(None);
            least = least.min(CALLS.load(Relaxed));
            if least == 0 {
                break;
            }
        }
        least
    };
    with_threads(threads, steps).unwrap()
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
        "mxpaper-e4m3",
        "mxpaper-mix",
    ];
    let data = Dataset::load(&Source::default(), &DataOptions::default()).unwrap();
    let mut found = String::new();
    let is_own = level() >= Level::Avx512;
    for name in ["nano", "gpt-nano", "gla-nano", "proxy-nano"] {
        for recipe in recipes {
            // Of the proxy it is the teacher, of `chon` what is protected.
            if !is_own && (name == "proxy-nano" || ["f32", "chon"].contains(&recipe)) {
                continue;
            }
            for (threads, most) in [(1, 5), (2, 60)] {
                match allocations(&data, recipe, name, threads, most) {
                    0 => {}
                    calls => found += &format!("{name} {recipe}, threads: {threads}: {calls}\n"),
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
