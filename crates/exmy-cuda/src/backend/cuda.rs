//! An NVIDIA GPU, by the driver's own interface. The driver's library is looked for when the first device is
//! asked for.

#![allow(unsafe_code)]

mod graph;
mod stream;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUresult};

use super::{Backend, Properties};
use crate::compile::{self, Architecture};
use crate::module::Module;
use crate::{Error, Result};

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

/// The version of CUDA that a driver has, from the number that it gives: 12040 is 12.4. In 12.0 are all
/// functions that are called.
fn supported(driver: c_int) -> Result<(u32, u32)> {
    let driver = driver.unsigned_abs();
    let found = (driver / 1000, driver % 1000 / 10);
    if found < (12, 0) { Err(Error::OldDriver { found }) } else { Ok(found) }
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
    Ok(stream::Stream::new(Arc::new(Gpu::open(index)?))?)
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
    /// Where `cuMemAllocAsync` takes memory from.
    pool: sys::CUmemoryPool,
    wait: bool,
    /// Whether launches are put together and begun as graphs.
    graphs: bool,
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
            Properties {
                name: name.into_owned(),
                index,
                capability: (major, minor),
                memory,
                processors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
                shared: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
                driver: supported(driver)?,
            }
        };
        properties.has_kernels()?;
        let mut pool = ptr::null_mut();
        // SAFETY: as above; freed memory stays with the pool of this process, until it is asked for again.
        unsafe {
            let doing = "open a GPU";
            started(doing, sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
            started(doing, sys::cuCtxSetCurrent(context))?;
            let mut keep = u64::MAX;
            let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            started(doing, sys::cuDeviceGetDefaultMemPool(&mut pool, device))?;
            let keep = (&raw mut keep).cast();
            started(doing, sys::cuMemPoolSetAttribute(pool, threshold, keep))?;
        }
        let is = |name, value| std::env::var_os(name).is_some_and(|x| x == value);
        let wait = is("EXMY_CUDA_WAIT", "1");
        let graphs = !wait && !is("EXMY_CUDA_GRAPHS", "0");
        let (modules, functions, last) = (Mutex::default(), Mutex::default(), Mutex::new("none"));
        Ok(Self { device, context, properties, modules, functions, last, pool, wait, graphs })
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
        let driver = self.properties.driver;
        match (self.check(status), compile::version()) {
            // A driver loads what any compiler of its own major version made, and of those before.
            (Err(Error::Kernel { .. }), Ok(found)) if found.0 > driver.0 => {
                Err(Error::NewCompiler { found, driver })
            }
            (checked, _) => checked.map(|()| loaded),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_is_refused() {
        assert_eq!(supported(12000), Ok((12, 0)));
        assert_eq!(supported(13010), Ok((13, 1)));
        let error = supported(11080).unwrap_err();
        assert_eq!(error, Error::OldDriver { found: (11, 8) });
        assert!(error.to_string().contains("of CUDA 11.8, and 12.0 or higher"));
    }
}
