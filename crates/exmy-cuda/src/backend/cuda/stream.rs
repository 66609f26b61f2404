//! One stream of an NVIDIA GPU. Launches wait here until there is a batch of them, or until something else is
//! asked for. Memory that was freed waits to be used again.

#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUmemPool_attribute_enum as Of, CUresult};

use super::graph::{Graph, Queue};
use super::{Gpu, locked};
use crate::backend::batch::{self, Batch, Graphs, Starter};
use crate::backend::idle::Idle;
use crate::backend::{Backend, Boxes, Grid, Mark, Properties};
use crate::module::Module;
use crate::{Error, Result};

/// One stream, the event by which others wait for it, and what it holds back.
pub(super) struct Stream {
    gpu: Arc<Gpu>,
    stream: sys::CUstream,
    reached: sys::CUevent,
    held: Mutex<Held>,
}

/// What was asked and has not begun, and memory that nobody uses.
#[derive(Default)]
struct Held {
    batch: Batch,
    graphs: Graphs<Graph>,
    /// Freed by the host, and maybe used by what has not begun.
    freed: Vec<u64>,
    idle: Idle,
}

/// An event of its own for each mark.
struct Reached {
    gpu: Arc<Gpu>,
    event: sys::CUevent,
}

// SAFETY: as for the device.
unsafe impl Send for Reached {}
// SAFETY: as above; nothing records the event again.
unsafe impl Sync for Reached {}

impl Drop for Reached {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own. Who waits for the event goes on waiting.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuEventDestroy_v2(self.event);
        }
    }
}

// SAFETY: as for the device; the event is recorded and waited for under the driver's own locks.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    fn queue(&self) -> Queue<'_> {
        Queue { gpu: &self.gpu, stream: self.stream }
    }

    pub(super) fn new(gpu: Arc<Gpu>) -> Result<Arc<Self>> {
        gpu.enter()?;
        let (mut stream, mut reached) = (ptr::null_mut(), ptr::null_mut());
        // Not ordered with the default stream, which nothing here uses; an event without a clock.
        let (own, untimed) = (
            sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32,
            sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32,
        );
        // SAFETY: the context is current, and the handles are written to variables of their types.
        unsafe {
            gpu.check(sys::cuStreamCreate(&mut stream, own))?;
            gpu.check(sys::cuEventCreate(&mut reached, untimed))?;
        }
        Ok(Arc::new(Self { gpu, stream, reached, held: Mutex::default() }))
    }

    /// Begins what waits.
    fn begin(&self, held: &mut Held) -> Result<()> {
        let Held { batch, graphs, freed, .. } = held;
        let begun = graphs.start(batch, &self.queue());
        batch.clear();
        freed.drain(..).for_each(|address| self.release(address));
        begun
    }

    /// Begins what waits; this device's context is the thread's from then on.
    fn flush(&self) -> Result<()> {
        self.gpu.enter()?;
        self.begin(&mut locked(&self.held))
    }

    /// Gives memory back to the driver, after what has begun.
    fn release(&self, address: u64) {
        // SAFETY: the address came from `cuMemAllocAsync` and is released once. A failure is one of the
        // device, which the next call reports.
        unsafe { sys::cuMemFreeAsync(address, self.stream) };
    }

    /// Asks for a launch, which begins with its batch.
    fn ask(&self, launch: impl FnOnce(&mut Batch)) -> Result<()> {
        let held = &mut *locked(&self.held);
        launch(&mut held.batch);
        if self.gpu.graphs && held.batch.len() < batch::MOST {
            return Ok(());
        }
        self.begin(held)?;
        if self.gpu.wait { self.queue().settle() } else { Ok(()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.flush());
        for address in locked(&self.held).idle.drain() {
            self.release(address);
        }
        // The graphs go before the context may.
        drop(std::mem::take(&mut *locked(&self.held)));
        // SAFETY: the handles are this value's own. Destroying a stream lets what was asked of it be done
        // first.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuEventDestroy_v2(self.reached);
            sys::cuStreamDestroy_v2(self.stream);
        }
    }
}

impl Backend for Stream {
    fn properties(&self) -> &Properties {
        &self.gpu.properties
    }

    fn fork(&self) -> Result<Arc<dyn Backend>> {
        Ok(Self::new(self.gpu.clone())?)
    }

    fn same_device(&self, other: &dyn Backend) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| Arc::ptr_eq(&self.gpu, &other.gpu))
    }

    fn wait_for(&self, other: &dyn Backend) -> Result<()> {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return Err(Error::OtherDevice { what: "an order between streams" });
        };
        other.flush()?;
        self.flush()?;
        // SAFETY: both handles are alive. A later record of the event does not move what was waited for.
        unsafe {
            self.gpu.check(sys::cuEventRecord(other.reached, other.stream))?;
            self.gpu.check(sys::cuStreamWaitEvent(self.stream, other.reached, 0))
        }
    }

    fn handle(&self) -> Result<usize> {
        self.flush()?;
        Ok(self.stream as usize)
    }

    fn mark(&self) -> Result<Mark> {
        self.flush()?;
        let mut event = ptr::null_mut();
        let untimed = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the context is current, the stream alive, and the handle is written to a variable of its
        // type.
        unsafe {
            self.gpu.check(sys::cuEventCreate(&mut event, untimed))?;
            let event = Reached { gpu: self.gpu.clone(), event };
            self.gpu.check(sys::cuEventRecord(event.event, self.stream))?;
            Ok(Arc::new(event))
        }
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        let Some(reached) = mark.downcast_ref::<Reached>() else {
            return Err(Error::OtherDevice { what: "an order between streams" });
        };
        self.flush()?;
        // SAFETY: both handles are alive; an event of another device may be waited for.
        self.gpu.check(unsafe { sys::cuStreamWaitEvent(self.stream, reached.event, 0) })
    }

    fn lend_to(&self, other: &dyn Backend) -> Result<()> {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return Err(Error::OtherDevice { what: "memory lent" });
        };
        let mut can = 0;
        // SAFETY: the devices are open; the description lies in a variable of its type.
        unsafe {
            self.gpu.enter()?;
            let (here, there) = (self.gpu.device, other.gpu.device);
            self.gpu.check(sys::cuDeviceCanAccessPeer(&mut can, there, here))?;
            if can == 0 || here == there {
                // The driver copies by way of the host then.
                return Ok(());
            }
            let access = sys::CUmemAccessDesc {
                location: sys::CUmemLocation {
                    type_: sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE,
                    id: there,
                },
                flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            self.gpu.check(sys::cuMemPoolSetAccess(self.gpu.pool, &access, 1))
        }
    }

    fn copy_from(&self, other: &dyn Backend, to: u64, from: u64, bytes: usize) -> Result<()> {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return Err(Error::OtherDevice { what: "a copy between devices" });
        };
        self.flush()?;
        // SAFETY: the caller's buffers have as many bytes, each in the context of its device.
        self.gpu.check(unsafe {
            let (here, there) = (self.gpu.context, other.gpu.context);
            sys::cuMemcpyPeerAsync(to, here, from, there, bytes, self.stream)
        })
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let size = Idle::rounded(bytes);
        if let Some(address) = locked(&self.held).idle.take(size) {
            return Ok(address);
        }
        self.gpu.enter()?;
        let mut address = 0;
        // SAFETY: the stream is alive, and the address is written to a variable of its type.
        let mut ask = || unsafe { sys::cuMemAllocAsync(&mut address, size, self.stream) };
        let mut status = ask();
        if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            // Once more without what waits.
            let held = &mut *locked(&self.held);
            self.begin(held)?;
            held.idle.drain().into_iter().for_each(|address| self.release(address));
            status = ask();
        }
        if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let total = self.gpu.properties.memory;
            return Err(Error::Memory { asked: bytes, free: self.free_memory()?, total });
        }
        self.gpu.check(status).map(|()| address)
    }

    fn free(&self, address: u64, bytes: usize) {
        let held = &mut *locked(&self.held);
        // What is asked of this stream next comes after all that uses the block, begun or not.
        if held.idle.keep(address, Idle::rounded(bytes)) {
            return;
        }
        // A failure is one of the device, which the next call reports.
        drop(self.gpu.enter());
        held.freed.push(address);
        drop(self.begin(held));
    }

    fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.flush()?;
        // SAFETY: the caller's buffer has room at `to`. The driver copies pageable memory before it returns.
        self.gpu.check(unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream)
        })
    }

    fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        self.flush()?;
        // SAFETY: the caller's buffer has as many bytes at `from`; `to` is borrowed until the stream is
        // through.
        unsafe {
            let copied =
                sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, to.len(), self.stream);
            let done = sys::cuStreamSynchronize(self.stream);
            self.gpu.check(copied)?;
            self.gpu.check(done)
        }
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.flush()?;
        // SAFETY: the caller's buffers have as many bytes.
        self.gpu.check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream) })
    }

    fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()> {
        self.gpu.enter()?;
        self.ask(|batch| batch.fill(to, byte, bytes))
    }

    fn ready(&self, modules: &[&'static Module]) -> Result<()> {
        self.gpu.enter()?;
        self.gpu.ready(modules)
    }

    fn prepare(&self, module: &'static Module, name: &'static str) -> Result<()> {
        self.gpu.enter()?;
        self.gpu.function(module, name, 0).map(drop)
    }

    unsafe fn launch(
        &self,
        module: &'static Module,
        name: &'static str,
        grid: Grid,
        args: &[&[u8]],
    ) -> Result<()> {
        self.gpu.enter()?;
        let function = self.gpu.function(module, name, grid.shared)?;
        self.ask(|batch| batch.kernel((name, function as usize), grid, args))
    }

    fn tensor_map(&self, of: Boxes) -> Result<[u64; 16]> {
        self.gpu.enter()?;
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let sizes = [of.cols as u64, of.rows as u64];
        let (pitches, boxes) = ([of.pitch as u64], [(128 / of.size) as u32, of.tall]);
        let kind = match of.size {
            1 => sys::CUtensorMapDataType_enum::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            _ => sys::CUtensorMapDataType_enum::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        };
        // SAFETY: all arrays have the lengths that a matrix has; the driver checks their values.
        self.gpu.check(unsafe {
            sys::cuTensorMapEncodeTiled(
                &mut map,
                kind,
                2,
                of.address as *mut c_void,
                sizes.as_ptr(),
                pitches.as_ptr(),
                boxes.as_ptr(),
                [1, 1].as_ptr(),
                sys::CUtensorMapInterleave_enum::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle_enum::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion_enum::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill_enum::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        })?;
        Ok(map.opaque)
    }

    fn synchronize(&self) -> Result<()> {
        self.flush()?;
        self.queue().settle()
    }

    fn is_done(&self) -> Result<bool> {
        self.flush()?;
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => self.gpu.check(status).map(|()| true),
        }
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f32> {
        self.flush()?;
        let (mut start, mut end, mut milliseconds) = (ptr::null_mut(), ptr::null_mut(), 0.0);
        // SAFETY: events are created, recorded and destroyed here, the first before the second.
        unsafe {
            self.gpu.check(sys::cuEventCreate(&mut start, 0))?;
            self.gpu.check(sys::cuEventCreate(&mut end, 0))?;
            self.gpu.check(sys::cuEventRecord(start, self.stream))?;
            let worked = work().and_then(|()| self.flush());
            self.gpu.check(sys::cuEventRecord(end, self.stream))?;
            self.gpu.check(sys::cuEventSynchronize(end))?;
            let timed = self.gpu.check(sys::cuEventElapsedTime(&mut milliseconds, start, end));
            sys::cuEventDestroy_v2(start);
            sys::cuEventDestroy_v2(end);
            worked.and(timed)?;
        }
        Ok(milliseconds)
    }

    fn free_memory(&self) -> Result<usize> {
        self.flush()?;
        let (mut free, mut total, mut held, mut used) = (0, 0, 0_u64, 0_u64);
        let (of_held, of_used) =
            (Of::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, Of::CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        // SAFETY: the context is current, and both attributes are numbers of 64 bits.
        unsafe {
            self.gpu.check(sys::cuMemGetInfo_v2(&mut free, &mut total))?;
            let (pool, to) = (self.gpu.pool, (&raw mut held).cast());
            self.gpu.check(sys::cuMemPoolGetAttribute(pool, of_held, to))?;
            self.gpu.check(sys::cuMemPoolGetAttribute(pool, of_used, (&raw mut used).cast()))?;
        }
        // What this process has freed is there to be used again.
        Ok(free + held.saturating_sub(used) as usize)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
