//! Starting a kernel: its parameters, put together one after another, and its grid.

#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::backend::Grid;
use crate::module::Module;
use crate::{Buffer, Device, Element, Result, times};

/// What a kernel may take by value: numbers, and `#[repr(C)]` structures of numbers.
///
/// # Safety
/// The type has no padding and no pointer, and the kernel's parameter has the same layout.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty)*) => {$(
        // SAFETY: numbers have no padding, and the same layout in C++.
        unsafe impl Plain for $type {}
    )*};
}
plain! { u32 i32 u64 f32 f64 [u64; 16] }

thread_local! {
    /// Kernels that this thread has started since [`started`] was called last.
    static STARTED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// The kernels that this thread has started since the last call, each once, in order. For comparisons, which
/// name them.
pub(crate) fn started() -> Vec<&'static str> {
    STARTED.take()
}

/// A kernel and the parameters it is given so far.
#[must_use = "a kernel starts with `run`"]
pub struct Launch<'a> {
    device: &'a Device,
    module: &'static Module,
    name: &'static str,
    /// The parameters, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    streams: Vec<Device>,
}

impl<'a> Launch<'a> {
    /// The kernel `name` of `module`, on the stream of `device`.
    pub fn new(device: &'a Device, module: &'static Module, name: &'static str) -> Self {
        debug_assert!(module.kernels.contains(&name), "{name} is no kernel of {}", module.name);
        Self { device, module, name, bytes: Vec::new(), ends: Vec::new(), streams: Vec::new() }
    }

    fn push(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        self
    }

    fn of(mut self, device: &Device) -> Self {
        if !self.streams.iter().any(|other| std::ptr::eq(other.backend(), device.backend())) {
            self.streams.push(device.clone());
        }
        self
    }

    /// A buffer that is read.
    pub fn read<T: Element>(self, buffer: &Buffer<T>) -> Self {
        self.read_at(buffer, 0)
    }

    /// A buffer that is read or written by way of another parameter.
    pub fn after<T: Element>(self, buffer: &Buffer<T>) -> Self {
        self.of(buffer.device())
    }

    /// A buffer that is read from element `first` on.
    pub fn read_at<T: Element>(self, buffer: &Buffer<T>, first: usize) -> Self {
        debug_assert!(first <= buffer.len());
        let address = buffer.address() + (first * size_of::<T>()) as u64;
        self.of(buffer.device()).push(&address.to_ne_bytes())
    }

    /// A buffer that is read if it is there; else the kernel sees a null pointer.
    pub fn read_if<T: Element>(self, buffer: Option<&Buffer<T>>) -> Self {
        match buffer {
            Some(buffer) => self.read(buffer),
            None => self.push(&0_u64.to_ne_bytes()),
        }
    }

    /// A buffer that is written.
    pub fn write<T: Element>(self, buffer: &mut Buffer<T>) -> Self {
        self.write_at(buffer, 0)
    }

    /// A buffer that is written from element `first` on.
    pub fn write_at<T: Element>(self, buffer: &mut Buffer<T>, first: usize) -> Self {
        self.read_at(buffer, first)
    }

    /// A buffer that is written if it is there; else the kernel sees a null pointer.
    pub fn write_if<T: Element>(self, buffer: Option<&mut Buffer<T>>) -> Self {
        self.read_if(buffer.map(|buffer| &*buffer))
    }

    /// A number, or a structure of numbers.
    pub fn value<T: Plain>(self, value: T) -> Self {
        // SAFETY: without padding all bytes are initialized.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        self.push(bytes)
    }

    /// Starts it.
    ///
    /// # Errors
    /// If the module does not compile, an operand is on another device, or the device fails.
    ///
    /// # Safety
    /// The parameters are the kernel's in order and type, and with this grid it stays inside of the buffers.
    pub unsafe fn run(self, grid: Grid) -> Result<()> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let args: Vec<&[u8]> =
            starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end]).collect();
        let start = || {
            // SAFETY: the caller's promise is the same.
            unsafe { self.device.backend().launch(self.module, self.name, grid, &args) }
        };
        STARTED.with_borrow_mut(|names| {
            if !names.contains(&self.name) {
                names.push(self.name);
            }
        });
        self.device.together(self.name, &self.streams, || {
            if !times::is_on() {
                return start();
            }
            // What is compiled or loaded first is no time of the kernel's.
            self.device.backend().prepare(self.module, self.name)?;
            times::of(self.name, self.device, start)
        })
    }
}
