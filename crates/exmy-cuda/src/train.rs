//! The device `cuda` of exmy-train: decoder, proxy, loss and optimizer on a GPU, with the bits of the CPU.
//!
//! [`Cuda`] implements exmy-train's [`Device`](exmy_train::nn::device::Device). Each operation starts kernels
//! of `kernels/layers` on one stream and returns; only what the trait says waits. What fails is remembered,
//! as the trait asks, and [`check`](exmy_train::nn::device::Storage::check) reports it.
//!
//! NaN is the one value whose bits may differ from a CPU's: a GPU makes 0x7FFFFFFF of every arithmetic NaN.

mod attention;
mod cores;
mod device;
mod gla;
mod instances;
mod layers;
mod memory;
pub mod nccl;
mod norms;
mod products;
mod recipes;
mod ring;
mod sums;
pub mod verify;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use memory::{Memory, Scalar, Tokens};
pub use recipes::Packed;
pub use ring::{Ring, ring};

use crate::module::{
    ATTENTION, BLOCKS, CONVERT, ELEMENTWISE, F32, FAST_F32, GLA, HOPPER, LOSS, MOVE, NORMS, QUICK,
    RECIPES, SUMS,
};
use crate::{Buffer, Device, Error, Result};
use exmy_train::nn::decoder::{self, Mixer};
use exmy_train::recipe::Recipe;
use exmy_train::train::config::Config;

/// One stream of a GPU, and what went wrong on it. A clone is the same stream.
#[derive(Clone)]
pub struct Cuda {
    shared: Arc<Shared>,
}

struct Shared {
    device: Device,
    /// Whether there is something in `failure`, to be asked often.
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Working memory of operations that need some.
    scratch: Mutex<Option<Buffer<f32>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cuda {
    /// On a stream of a device.
    pub fn new(device: Device) -> Self {
        let (failed, failure, scratch) =
            (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { device, failed, failure, scratch }) }
    }

    /// Compiles and loads what a run needs, several modules at once; a kernel that is missing here is
    /// compiled at its first launch.
    ///
    /// # Errors
    /// [`Error::NoCompiler`], [`Error::Compile`], or if the device fails.
    pub fn ready(&self, config: &Config) -> Result<()> {
        self.ready_for(config.model.decoder(), std::slice::from_ref(&config.recipe))
    }

    /// The same for a model under some recipes.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn ready_for(&self, decoder: Option<&decoder::Config>, recipes: &[Recipe]) -> Result<()> {
        let mut modules = vec![&ELEMENTWISE, &NORMS, &SUMS, &LOSS, &F32, &MOVE];
        if let Some(model) = decoder {
            let mixers = || (0..model.layers).map(|layer| model.mixer.of(layer));
            modules.extend(mixers().any(|mixer| mixer == Mixer::Attention).then_some(&ATTENTION));
            modules.extend(mixers().any(|mixer| mixer == Mixer::Gla).then_some(&GLA));
        }
        if recipes.iter().any(|recipe| !recipe.rules().is_empty()) {
            modules.extend([&RECIPES, &CONVERT, &BLOCKS, &QUICK]);
            let has_cores = |recipe: &Recipe| recipe.cores().is_some();
            modules.extend(recipes.iter().any(has_cores).then_some(&HOPPER));
            modules.extend((!recipes.iter().all(has_cores)).then_some(&FAST_F32));
        }
        self.device().ready(&modules)
    }

    /// The device and its stream.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// What went wrong first, taken out of the way: operations are done again.
    pub fn take_failure(&self) -> Option<Error> {
        let failure = locked(&self.shared.failure).take();
        self.shared.failed.store(false, Ordering::Release);
        failure
    }

    /// Does `work` unless something went wrong before, and remembers what goes wrong in it.
    fn attempt<T>(&self, work: impl FnOnce() -> Result<T>) -> Option<T> {
        if self.shared.failed.load(Ordering::Acquire) {
            return None;
        }
        match work() {
            Ok(done) => Some(done),
            Err(error) => {
                locked(&self.shared.failure).get_or_insert(error);
                self.shared.failed.store(true, Ordering::Release);
                None
            }
        }
    }

    /// Working memory of at least `len` numbers, kept from call to call; what it holds is anything.
    fn with_scratch(&self, len: usize, work: impl FnOnce(&mut Buffer<f32>) -> Result<()>) {
        self.attempt(|| {
            let mut scratch = locked(&self.shared.scratch);
            if scratch.as_ref().is_none_or(|scratch| scratch.len() < len) {
                // The old memory goes first, so that both need not fit.
                *scratch = None;
                *scratch = Some(Buffer::uninit(self.device(), len)?);
            }
            work(scratch.as_mut().expect("made above"))
        });
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shared.device)
    }
}
