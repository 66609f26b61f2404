//! Memory of a device, as vectors of numbers.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use exmy::minifloat::Bf16;

use crate::{Device, Error, Result};

/// What a [`Buffer`] may hold: numbers of the same bytes here and on the device.
///
/// # Safety
/// The type has no padding and no pointer, and any bytes that the device writes are a value of it.
pub unsafe trait Element:
    Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static
{
}

macro_rules! element {
    ($($type:ty)*) => {$(
        // SAFETY: numbers, without padding, any bits of which are a value.
        unsafe impl Element for $type {}
    )*};
}
element! { f32 f64 u8 u16 u32 u64 i32 Bf16 }

/// The bytes of numbers.
fn bytes<T: Element>(x: &[T]) -> &[u8] {
    // SAFETY: an element has no padding, so all its bytes are initialized.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), std::mem::size_of_val(x)) }
}

fn bytes_mut<T: Element>(x: &mut [T]) -> &mut [u8] {
    // SAFETY: an element has no padding, and any bytes are a value of it.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), std::mem::size_of_val(x)) }
}

/// Where the memory of others must begin: at a multiple of so many bytes, as what the driver hands out does.
pub const ALIGNMENT: u64 = 256;

/// A vector in the memory of a device; freed when dropped, after what was asked of its stream.
///
/// ```no_run
/// use exmy_cuda::Device;
///
/// let device = Device::new(0)?;
/// let x = device.upload(&[1.0_f32, 2.0])?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), exmy_cuda::Error>(())
/// ```
pub struct Buffer<T: Element> {
    device: Device,
    address: u64,
    len: usize,
    /// Whether the memory is another's.
    borrowed: bool,
    holds: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Room for `len` numbers, which hold anything.
    pub(crate) fn uninit(device: &Device, len: usize) -> Result<Self> {
        let size = len.checked_mul(size_of::<T>()).filter(|size| *size <= isize::MAX as usize);
        let Some(size) = size else {
            return Err(Error::Memory {
                asked: usize::MAX,
                free: 0,
                total: device.properties().memory,
            });
        };
        let address = if size == 0 { 0 } else { device.backend().alloc(size)? };
        Ok(Self { device: device.clone(), address, len, borrowed: false, holds: PhantomData })
    }

    /// Memory of another library, which is not freed here. What is asked of the device's stream knows nothing
    /// of other streams: wait for those before, and for this one ([`Device::synchronize`]) after.
    ///
    /// # Errors
    /// If the address is no multiple of [`ALIGNMENT`].
    ///
    /// # Safety
    /// At `address` the device has as many numbers in memory of its primary context. Until the stream has
    /// done what was asked of it with this buffer, they stay there; nobody else writes to them, nor reads
    /// them where this buffer is written.
    pub unsafe fn borrowed(device: &Device, address: u64, len: usize) -> Result<Self> {
        if len > 0 && (address == 0 || !address.is_multiple_of(ALIGNMENT)) {
            let why = format!("it begins at {address:#x}, which is no multiple of {ALIGNMENT}");
            return Err(Error::unfit("memory of another library", why));
        }
        let address = if len == 0 { 0 } else { address };
        Ok(Self { device: device.clone(), address, len, borrowed: true, holds: PhantomData })
    }

    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device, and the stream that it was made on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Where it begins in the device's memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    fn size(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Overwrites it with numbers from here.
    ///
    /// # Errors
    /// If there are more or fewer of them, or the device fails.
    pub fn write(&mut self, x: &[T]) -> Result<()> {
        self.same_length("a copy to the device", x.len())?;
        if x.is_empty() { Ok(()) } else { self.device.backend().upload(self.address, bytes(x)) }
    }

    /// Copies it to `out`, and waits for that.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn read(&self, out: &mut [T]) -> Result<()> {
        self.same_length("a copy from the device", out.len())?;
        if out.is_empty() {
            Ok(())
        } else {
            self.device.backend().download(bytes_mut(out), self.address)
        }
    }

    /// Copies the numbers from `first` on to `out`, and waits for that.
    ///
    /// # Errors
    /// If there are fewer, or the device fails.
    pub fn read_part(&self, first: usize, out: &mut [T]) -> Result<()> {
        if first > self.len || out.len() > self.len - first {
            let why = format!("{} numbers from {first} on of {}", out.len(), self.len);
            return Err(Error::unfit("a copy from the device", why));
        }
        if out.is_empty() {
            return Ok(());
        }
        let from = self.address + (first * size_of::<T>()) as u64;
        self.device.backend().download(bytes_mut(out), from)
    }

    /// Copies it to a new vector.
    ///
    /// # Errors
    /// If the device fails.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut out = vec![T::default(); self.len];
        self.read(&mut out)?;
        Ok(out)
    }

    /// Overwrites it with another buffer of the same device.
    ///
    /// # Errors
    /// If that is longer or shorter, or on another device, or the device fails.
    pub fn copy_from(&mut self, from: &Self) -> Result<()> {
        self.same_length("a copy on the device", from.len)?;
        if self.is_empty() {
            return Ok(());
        }
        self.device.together("a copy on the device", [&from.device], || {
            self.device.backend().copy(self.address, from.address, self.size())
        })
    }

    /// A copy on the device.
    ///
    /// # Errors
    /// If the device's memory is full, or it fails.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::uninit(&self.device, self.len)?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// Overwrites every byte with `byte`: with 0 all numbers are zero.
    ///
    /// # Errors
    /// If the device fails.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        if self.is_empty() {
            Ok(())
        } else {
            self.device.backend().fill(self.address, byte, self.size())
        }
    }

    fn same_length(&self, what: &'static str, other: usize) -> Result<()> {
        if self.len == other {
            return Ok(());
        }
        Err(Error::unfit(what, format!("{} numbers and {other} do not fit each other", self.len)))
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.address != 0 && !self.borrowed {
            self.device.backend().free(self.address, self.size());
        }
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, index) = (std::any::type_name::<T>(), self.device.properties().index);
        write!(f, "Buffer of {} {name} on device {index}", self.len)
    }
}
