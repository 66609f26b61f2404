//! A device and a stream of it: where memory is, and in which order things are done.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "emulated")]
use crate::backend::emulated::Emulation;
use crate::backend::{Backend, Mark, Properties, cuda};
use crate::compile::{self, Architecture};
use crate::module::{self, Module};
use crate::{Buffer, Element, Error, Result};

/// One stream of one device. A clone is the same stream; [`stream`](Self::stream) makes another one.
///
/// What is asked of a stream is done in order, after the call has returned; what needs the result
/// ([`Buffer::read`], [`synchronize`](Self::synchronize)) waits. An operation on buffers of several streams
/// of a device waits for what was asked of these before, and they wait for it.
///
/// ```no_run
/// use exmy_cuda::Device;
///
/// for index in 0..Device::count()? {
///     let device = Device::new(index)?;
///     println!("{}: {}", index, device.properties().name);
/// }
/// # Ok::<(), exmy_cuda::Error>(())
/// ```
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
}

impl Device {
    /// How many GPUs the driver sees.
    ///
    /// # Errors
    /// [`Error::NoDriver`], or if the driver does not start.
    pub fn count() -> Result<usize> {
        cuda::count()
    }

    /// The GPU of a number, from 0, and a stream of it.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::OldDriver`], [`Error::NoDevice`], [`Error::Architecture`] if it is older
    /// than compute capability 8.0, or if the driver does not start.
    pub fn new(index: usize) -> Result<Self> {
        Ok(Self { backend: cuda::open(index)? })
    }

    /// A device whose kernels a C++ compiler has translated for this processor: slow, the same bits, no
    /// tensor cores. For tests. What is compiled is kept in `folder`. `None` if there is no compiler.
    #[cfg(feature = "emulated")]
    #[doc(hidden)]
    pub fn emulated(folder: impl Into<std::path::PathBuf>) -> Option<Self> {
        Self::emulated_with(folder, Emulation::default())?.ok()
    }

    /// The same of another kind, or one that fails.
    ///
    /// # Errors
    /// [`Error::Architecture`], as [`new`](Self::new).
    #[cfg(feature = "emulated")]
    #[doc(hidden)]
    pub fn emulated_with(
        folder: impl Into<std::path::PathBuf>,
        emulation: Emulation,
    ) -> Option<Result<Self>> {
        let backend = crate::backend::emulated::open(folder.into(), emulation)?;
        Some(backend.properties().has_kernels().map(|()| Self { backend }))
    }

    /// By way of another backend.
    #[cfg(all(test, feature = "train"))]
    pub(crate) fn with(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    /// Another stream of the same device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn stream(&self) -> Result<Self> {
        Ok(Self { backend: self.backend.fork()? })
    }

    /// What it is.
    pub fn properties(&self) -> &Properties {
        self.backend.properties()
    }

    /// Whether both are streams of one device.
    pub fn is_same_device(&self, other: &Self) -> bool {
        self.backend.same_device(&*other.backend)
    }

    /// Lets what is asked of this stream from now on wait for what was asked of the other one until now.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], or if the device fails.
    pub fn wait_for(&self, other: &Self) -> Result<()> {
        match self.is_same_device(other) {
            true if Arc::ptr_eq(&self.backend, &other.backend) => Ok(()),
            true => self.backend.wait_for(&*other.backend),
            false => Err(Error::OtherDevice { what: "an order between streams" }),
        }
    }

    /// The point up to which things were asked of this stream.
    pub(crate) fn mark(&self) -> Result<Mark> {
        self.backend.mark()
    }

    /// Lets what is asked of this stream from now on wait for a point of a stream of any device.
    pub(crate) fn after(&self, mark: &Mark) -> Result<()> {
        self.backend.after(mark)
    }

    /// Waits until everything is done that was asked of this stream.
    ///
    /// # Errors
    /// What failed meanwhile.
    pub fn synchronize(&self) -> Result<()> {
        self.backend.synchronize()
    }

    /// Milliseconds that the device takes for what `work` asks of this stream; waits for it.
    ///
    /// # Errors
    /// Those of `work`, or if the device fails.
    pub fn time(&self, mut work: impl FnMut() -> Result<()>) -> Result<f32> {
        self.backend.time(&mut work)
    }

    /// Bytes of memory that are free now.
    ///
    /// # Errors
    /// If the device fails.
    pub fn free_memory(&self) -> Result<usize> {
        self.backend.free_memory()
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// [`Error::Memory`], or if the device fails.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::uninit(self, len)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// A buffer of these numbers.
    ///
    /// # Errors
    /// [`Error::Memory`], or if the device fails.
    pub fn upload<T: Element>(&self, x: &[T]) -> Result<Buffer<T>> {
        let mut buffer = Buffer::uninit(self, x.len())?;
        buffer.write(x)?;
        Ok(buffer)
    }

    /// Whether its kernels are compiled already or can be.
    ///
    /// # Errors
    /// [`Error::NoCompiler`] or [`Error::OldCompiler`], where the folder of compiled kernels lacks some.
    pub fn can_be_used(&self) -> Result<()> {
        compile::possible(Architecture::of(self.properties().capability))
    }

    /// Compiles and loads all kernels that the device has, which otherwise happens at the first use of each.
    ///
    /// # Errors
    /// [`Error::NoCompiler`], [`Error::Compile`], or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        self.ready(module::ALL)
    }

    /// Compiles and loads those of some modules that the device has, several at once.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn ready(&self, modules: &[&'static Module]) -> Result<()> {
        let architecture = Architecture::of(self.properties().capability);
        let modules = modules.iter().copied().filter(|module| architecture.has(module));
        self.backend.ready(&modules.collect::<Vec<_>>())
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Does `work` on this stream, after what was asked of those of its operands, which then wait for it.
    pub(crate) fn together<'a>(
        &self,
        what: &'static str,
        others: impl IntoIterator<Item = &'a Device> + Clone,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let foreign = |other: &&Device| !Arc::ptr_eq(&self.backend, &other.backend);
        for other in others.clone().into_iter().filter(foreign) {
            if !self.is_same_device(other) {
                return Err(Error::OtherDevice { what });
            }
            self.backend.wait_for(&*other.backend)?;
        }
        work()?;
        for other in others.into_iter().filter(foreign) {
            other.backend.wait_for(&*self.backend)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Properties { name, index, .. } = self.properties();
        write!(f, "Device {index} ({name})")
    }
}
