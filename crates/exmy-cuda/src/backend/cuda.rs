//! An NVIDIA GPU, by the driver's own interface. The driver's library is looked for when the first device is
//! asked for.

#![allow(unsafe_code)]

use std::any::Any;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUresult};

use super::{Backend, Boxes, Grid, Properties};
use crate::compile::{self, Architecture};
use crate::module::Module;
use crate::{Error, Result};

/// The oldest architecture that the kernels have.
const OLDEST: (u32, u32) = (8, 0);

fn reason(status: CUresult) -> String {
    let mut text = ptr::null();
    // SAFETY: the function writes the address of a constant text, or leaves the null pointer.
    unsafe {
        sys::cuGetErrorString(status, &mut text);
        if text.is_null() {
            format!("{status:?}")
        } else {
            CStr::from_ptr(text).to_string_lossy().into()
        }
    }
}

/// What the driver says while no device is open yet.
fn started(doing: &'static str, status: CUresult) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(Error::Driver { doing, reason: reason(status) }),
    }
}

/// How many devices there are.
pub(crate) fn count() -> Result<usize> {
    // SAFETY: looking for a library and starting it have no conditions; the count is written to `count`.
    unsafe {
        if !sys::is_culib_present() {
            return Err(Error::NoDriver);
        }
        let mut count = 0;
        match sys::cuInit(0) {
            CUresult::CUDA_ERROR_NO_DEVICE => return Ok(0),
            status => started("start", status)?,
        }
        started("count the GPUs", sys::cuDeviceGetCount(&mut count))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// Opens a device, with a stream.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Backend>> {
    let count = count()?;
    if index >= count {
        return Err(Error::NoDevice { index, count });
    }
    Ok(Stream::new(Arc::new(Gpu::open(index)?))?)
}

/// A module's name and a kernel's.
type Key = (&'static str, &'static str);

/// The primary context of a device, which its streams share.
struct Gpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
    properties: Properties,
    /// Loaded modules by name.
    modules: Mutex<HashMap<&'static str, usize>>,
    /// Kernels by name of module and kernel, with the shared memory they are allowed.
    functions: Mutex<HashMap<Key, (usize, u32)>>,
    /// The kernel that was started last.
    last: Mutex<&'static str>,
    wait: bool,
}

// SAFETY: the driver's handles may be used from any thread that makes the context current, as every call
// does.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver locks its own state, and the maps are behind locks.
unsafe impl Sync for Gpu {}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    fn open(index: usize) -> Result<Self> {
        let ask = "ask what a GPU is";
        let (mut device, mut context, mut driver) = (0, ptr::null_mut(), 0);
        let mut name = [0_u8; 256];
        // SAFETY: the driver is started; all pointers are to variables of the asked types, and `name` has the
        // length that is given.
        let properties = unsafe {
            started(ask, sys::cuDeviceGet(&mut device, index as c_int))?;
            started(ask, sys::cuDriverGetVersion(&mut driver))?;
            started(ask, sys::cuDeviceGetName(name.as_mut_ptr().cast(), 256, device))?;
            let get = |attribute| {
                let mut value = 0;
                started(ask, sys::cuDeviceGetAttribute(&mut value, attribute, device))?;
                Ok(value.unsigned_abs())
            };
            let major = get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor = get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let mut memory = 0;
            started(ask, sys::cuDeviceTotalMem_v2(&mut memory, device))?;
            let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
            let driver = driver.unsigned_abs();
            Properties {
                name: name.into_owned(),
                index,
                capability: (major, minor),
                memory,
                processors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
                shared: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
                driver: (driver / 1000, driver % 1000 / 10),
            }
        };
        if properties.capability < OLDEST {
            return Err(Error::Architecture {
                what: "the kernels",
                device: properties.name,
                found: properties.capability,
                needed: "compute capability 8.0 or higher",
            });
        }
        // SAFETY: as above; freed memory stays with the pool of this process, until it is asked for again.
        unsafe {
            let doing = "open a GPU";
            started(doing, sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
            started(doing, sys::cuCtxSetCurrent(context))?;
            let (mut pool, mut keep) = (ptr::null_mut(), u64::MAX);
            let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            started(doing, sys::cuDeviceGetDefaultMemPool(&mut pool, device))?;
            let keep = (&raw mut keep).cast();
            started(doing, sys::cuMemPoolSetAttribute(pool, threshold, keep))?;
        }
        let wait = std::env::var_os("EXMY_CUDA_WAIT").is_some_and(|x| x == "1");
        let (modules, functions) = (Mutex::default(), Mutex::default());
        Ok(Self { device, context, properties, modules, functions, last: Mutex::new("none"), wait })
    }

    /// Makes this device's context the thread's.
    fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        self.check(unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn check(&self, status: CUresult) -> Result<()> {
        match status {
            CUresult::CUDA_SUCCESS => Ok(()),
            CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUresult::CUDA_ERROR_NO_DEVICE
            | CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_SYSTEM_NOT_READY => {
                Err(Error::Lost { device: self.properties.name.clone(), reason: reason(status) })
            }
            status => Err(Error::Kernel {
                name: (*locked(&self.last)).to_owned(),
                reason: reason(status),
            }),
        }
    }

    fn architecture(&self) -> Architecture {
        Architecture::of(self.properties.capability)
    }

    /// Loads several modules, which are compiled at once where they are not on disk.
    fn ready(&self, modules: &[&'static Module]) -> Result<()> {
        let mut loaded = locked(&self.modules);
        let missing: Vec<_> =
            modules.iter().copied().filter(|module| !loaded.contains_key(module.name)).collect();
        for (module, (code, new)) in
            missing.iter().zip(compile::codes(&missing, self.architecture())?)
        {
            loaded.insert(module.name, self.load(module, &code, !new)? as usize);
        }
        Ok(())
    }

    /// Loads machine code; if it is `old` and the driver does not take it, it is made anew.
    fn load(&self, module: &'static Module, code: &[u8], old: bool) -> Result<sys::CUmodule> {
        let mut loaded = ptr::null_mut();
        // SAFETY: the image is a whole file, which the driver checks; a file of another kind is refused.
        let status = unsafe { sys::cuModuleLoadData(&mut loaded, code.as_ptr().cast()) };
        if old && status != CUresult::CUDA_SUCCESS {
            let (code, _) = compile::code(module, self.architecture(), true)?;
            return self.load(module, &code, false);
        }
        self.check(status).map(|()| loaded)
    }

    /// A module, from disk or from its source.
    fn module(&self, module: &'static Module) -> Result<sys::CUmodule> {
        let mut modules = locked(&self.modules);
        if let Some(found) = modules.get(module.name) {
            return Ok(*found as sys::CUmodule);
        }
        let found = self.properties.capability;
        if !self.architecture().has(module) {
            return Err(Error::Architecture {
                what: module.name,
                device: self.properties.name.clone(),
                found,
                needed: if module.exact { "compute capability 9.0 alone" } else { "a newer GPU" },
            });
        }
        let (code, new) = compile::code(module, self.architecture(), false)?;
        let loaded = self.load(module, &code, !new)?;
        modules.insert(module.name, loaded as usize);
        Ok(loaded)
    }

    fn function(
        &self,
        module: &'static Module,
        name: &'static str,
        shared: u32,
    ) -> Result<sys::CUfunction> {
        let key = (module.name, name);
        let found = locked(&self.functions).get(&key).copied();
        if let Some((function, allowed)) = found
            && shared <= allowed
        {
            return Ok(function as sys::CUfunction);
        }
        let loaded = self.module(module)?;
        let text = CString::new(name).map_err(|_| Error::unfit(name, "a name holds NUL"))?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded in this context, the name ends with NUL.
        unsafe {
            self.check(sys::cuModuleGetFunction(&mut function, loaded, text.as_ptr()))?;
            let most =
                sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            if shared > 48 << 10 {
                self.check(sys::cuFuncSetAttribute(function, most, shared as c_int))?;
            }
        }
        let allowed = shared.max(48 << 10);
        locked(&self.functions).insert(key, (function as usize, allowed));
        Ok(function)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let modules = std::mem::take(&mut *locked(&self.modules));
        // SAFETY: nothing uses the context or its modules any more: streams hold this value. What cannot be
        // released goes with the process.
        unsafe {
            sys::cuCtxSetCurrent(self.context);
            for module in modules.into_values() {
                sys::cuModuleUnload(module as sys::CUmodule);
            }
            sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

/// One stream, and the event by which others wait for it.
struct Stream {
    gpu: Arc<Gpu>,
    stream: sys::CUstream,
    reached: sys::CUevent,
}

// SAFETY: as for the device; the event is recorded and waited for under the driver's own locks.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    fn new(gpu: Arc<Gpu>) -> Result<Arc<Self>> {
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
        Ok(Arc::new(Self { gpu, stream, reached }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
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
        self.gpu.enter()?;
        // SAFETY: both handles are alive. A later record of the event does not move what was waited for.
        unsafe {
            self.gpu.check(sys::cuEventRecord(other.reached, other.stream))?;
            self.gpu.check(sys::cuStreamWaitEvent(self.stream, other.reached, 0))
        }
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.gpu.enter()?;
        let mut address = 0;
        // SAFETY: the stream is alive, and the address is written to a variable of its type.
        match unsafe { sys::cuMemAllocAsync(&mut address, bytes, self.stream) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let total = self.gpu.properties.memory;
                Err(Error::Memory { asked: bytes, free: self.free_memory()?, total })
            }
            status => self.gpu.check(status).map(|()| address),
        }
    }

    fn free(&self, address: u64, _: usize) {
        // SAFETY: the address came from `alloc` and is freed once. A failure is one of the device, which the
        // next call reports.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuMemFreeAsync(address, self.stream);
        }
    }

    fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the caller's buffer has room at `to`. The driver copies pageable memory before it returns.
        self.gpu.check(unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream)
        })
    }

    fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        self.gpu.enter()?;
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
        self.gpu.enter()?;
        // SAFETY: the caller's buffers have as many bytes.
        self.gpu.check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream) })
    }

    fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the caller's buffer has as many bytes.
        self.gpu.check(unsafe { sys::cuMemsetD8Async(to, byte, bytes, self.stream) })
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
        *locked(&self.gpu.last) = name;
        let mut pointers: Vec<*mut c_void> =
            args.iter().map(|arg| arg.as_ptr().cast_mut().cast()).collect();
        let [x, y, z] = grid.blocks;
        // SAFETY: the caller's promise; the driver copies the parameters before it returns.
        self.gpu.check(unsafe {
            sys::cuLaunchKernel(
                function,
                x,
                y,
                z,
                grid.threads,
                1,
                1,
                grid.shared,
                self.stream,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        })?;
        if self.gpu.wait { self.synchronize() } else { Ok(()) }
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
        self.gpu.enter()?;
        // SAFETY: the stream is alive.
        self.gpu.check(unsafe { sys::cuStreamSynchronize(self.stream) })
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f32> {
        self.gpu.enter()?;
        let (mut start, mut end, mut milliseconds) = (ptr::null_mut(), ptr::null_mut(), 0.0);
        // SAFETY: events are created, recorded and destroyed here, the first before the second.
        unsafe {
            self.gpu.check(sys::cuEventCreate(&mut start, 0))?;
            self.gpu.check(sys::cuEventCreate(&mut end, 0))?;
            self.gpu.check(sys::cuEventRecord(start, self.stream))?;
            let worked = work();
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
        self.gpu.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current.
        self.gpu.check(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
