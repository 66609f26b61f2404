//! What a device must do: memory, copies, kernels, order. Two implementations: [`cuda`] is an NVIDIA GPU;
//! [`emulated`] compiles the same kernels for this processor, so that their bits can be tested without one.
//!
//! A value is one *stream* of a device: what is asked of it is done in order. Addresses are the device's.

#![allow(unsafe_code)]

mod batch;
pub(crate) mod cuda;
#[cfg(feature = "emulated")]
pub(crate) mod emulated;
mod idle;
#[cfg(all(test, feature = "train"))]
pub(crate) mod recorded;

use std::any::Any;
use std::sync::Arc;

use crate::module::Module;
use crate::{Error, Result};

/// The oldest architecture that the kernels have.
const OLDEST: (u32, u32) = (8, 0);

/// Blocks and threads of a launch, and the bytes of shared memory that a block asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Blocks, in three directions.
    pub blocks: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Grid {
    /// `blocks` blocks of `threads` threads.
    pub const fn new(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads, shared: 0 }
    }

    /// As many blocks of `threads` threads as give each of `count` items a thread; at most 2^31 - 1.
    pub fn cover(count: usize, threads: u32) -> Self {
        let blocks = count.div_ceil(threads as usize).clamp(1, i32::MAX as usize);
        Self::new(blocks as u32, threads)
    }

    /// The same with blocks in two directions.
    #[must_use]
    pub const fn planar(x: u32, y: u32, threads: u32) -> Self {
        Self { blocks: [x, y, 1], threads, shared: 0 }
    }

    /// The same with shared memory.
    #[must_use]
    pub const fn with_shared(self, bytes: u32) -> Self {
        Self { shared: bytes, ..self }
    }
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The maker's name of it.
    pub name: String,
    /// Its number, from 0.
    pub index: usize,
    /// Compute capability: 9.0 is Hopper.
    pub capability: (u32, u32),
    /// Bytes of memory.
    pub memory: usize,
    /// Streaming multiprocessors.
    pub processors: u32,
    /// Bytes of shared memory that one block may ask for.
    pub shared: u32,
    /// The driver's version, as CUDA counts: (13, 0).
    pub driver: (u32, u32),
}

impl Properties {
    /// Whether the kernels are made for such a device.
    ///
    /// # Errors
    /// [`Error::Architecture`] if they are not.
    pub(crate) fn has_kernels(&self) -> Result<()> {
        if self.capability >= OLDEST {
            return Ok(());
        }
        Err(Error::Architecture {
            what: "the kernels",
            device: self.name.clone(),
            found: self.capability,
            needed: "compute capability 8.0 or higher",
        })
    }
}

/// A matrix as the copying unit of Hopper is to read it: boxes of 128 bytes along its rows, and some rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boxes {
    /// Where it begins, a multiple of 16 bytes.
    pub(crate) address: u64,
    /// Bytes of an element, 1 or 2.
    pub(crate) size: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Bytes from a row to the next, a multiple of 16.
    pub(crate) pitch: usize,
    /// Rows of a box.
    pub(crate) tall: u32,
}

/// A point in what was asked of a stream; the backend knows what it is.
pub(crate) type Mark = Arc<dyn Any + Send + Sync>;

/// One stream of a device.
pub(crate) trait Backend: Send + Sync {
    fn properties(&self) -> &Properties;
    /// Another stream of the same device.
    fn fork(&self) -> Result<Arc<dyn Backend>>;
    /// Whether both are streams of one device, so that one may read the other's memory.
    fn same_device(&self, other: &dyn Backend) -> bool;
    /// Lets what is asked of this stream from now on wait for what was asked of the other until now.
    fn wait_for(&self, other: &dyn Backend) -> Result<()>;
    /// The driver's own handle of this stream, to which nothing waits any more; its context is the thread's.
    fn handle(&self) -> Result<usize>;
    /// The point up to which things were asked of this stream.
    fn mark(&self) -> Result<Mark>;
    /// Lets what is asked of this stream from now on wait for a point of a stream of any device of its kind.
    fn after(&self, mark: &Mark) -> Result<()>;
    /// Lets another device of its kind read this one's memory by itself, where the machine can do that.
    fn lend_to(&self, other: &dyn Backend) -> Result<()>;
    /// Copies from the memory of another device of its kind.
    fn copy_from(&self, other: &dyn Backend, to: u64, from: u64, bytes: usize) -> Result<()>;
    fn alloc(&self, bytes: usize) -> Result<u64>;
    fn free(&self, address: u64, bytes: usize);
    fn upload(&self, to: u64, from: &[u8]) -> Result<()>;
    /// Waits until `to` is written.
    fn download(&self, to: &mut [u8], from: u64) -> Result<()>;
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;
    fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()>;
    /// Makes modules ready, several at once, so that no launch waits for their compilation.
    fn ready(&self, modules: &[&'static Module]) -> Result<()>;
    /// Makes the kernel ready, so that the first launch is not slower than the others.
    fn prepare(&self, module: &'static Module, name: &'static str) -> Result<()>;
    /// Starts a kernel.
    ///
    /// # Safety
    /// `args` are the kernel's parameters in order and size, and with this grid it stays inside of the memory
    /// they point to.
    unsafe fn launch(
        &self,
        module: &'static Module,
        name: &'static str,
        grid: Grid,
        args: &[&[u8]],
    ) -> Result<()>;
    /// The description of a matrix that kernels take, for the copying unit of Hopper.
    fn tensor_map(&self, of: Boxes) -> Result<[u64; 16]>;
    fn synchronize(&self) -> Result<()>;
    /// Whether everything is done that was asked of this stream.
    fn is_done(&self) -> Result<bool>;
    /// Milliseconds that the device takes for what `work` asks of this stream.
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f32>;
    fn free_memory(&self) -> Result<usize>;
    fn as_any(&self) -> &dyn Any;
}
