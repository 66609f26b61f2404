//! The kernels on this processor, for tests: a C++ compiler translates them behind `kernels/emulate.h`, which
//! plays blocks, threads, barriers and shuffles. Memory is this process's own. The same bits; tensor cores
//! are the library's model of them.

#![allow(unsafe_code)]

mod cores;

use std::alloc::{Layout, alloc, dealloc};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use libloading::Library;

use super::{Backend, Boxes, Grid, Mark, Properties};
use crate::module::{HEADERS, Module};
use crate::{Error, Result, cache};

const HARNESS: &str = include_str!("../../kernels/emulate.h");
/// Nothing is visible but the kernels: else variables within functions that two libraries have would be one,
/// which their launches would share.
const OPTIONS: [&str; 9] = [
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fvisibility=hidden",
    "-w",
];

/// What is emulated: a device of a kind, and when it fails.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// Compute capability.
    pub capability: (u32, u32),
    /// Bytes of memory.
    pub memory: usize,
    /// After so many launches every call fails in this way.
    pub fails: Option<(u64, Error)>,
}

impl Default for Emulation {
    /// An H100 with 16 GiB that does not fail.
    fn default() -> Self {
        Self { capability: (9, 0), memory: 1 << 34, fails: None }
    }
}

/// The emulated device, or `None` without a C++ compiler.
pub(crate) fn open(folder: PathBuf, emulation: Emulation) -> Option<Arc<dyn Backend>> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let compiler = ["g++", "c++"].into_iter().find(there)?;
    let properties = Properties {
        name: "emulated".into(),
        index: 0,
        capability: emulation.capability,
        memory: emulation.memory,
        processors: 4,
        shared: 227 << 10,
        driver: (0, 0),
    };
    Some(Arc::new(Emulated(Arc::new(Shared {
        compiler,
        folder,
        properties,
        libraries: Mutex::default(),
        fails: emulation.fails,
        launches: AtomicU64::new(0),
        held: AtomicUsize::new(0),
    }))))
}

/// The kernels of a module, translated. One launch at a time: its harness has one set of threads.
type Translated = Arc<Mutex<Option<Library>>>;

/// Those of this process by their files, which devices share.
static TRANSLATED: Mutex<BTreeMap<PathBuf, Translated>> = Mutex::new(BTreeMap::new());

struct Shared {
    compiler: &'static str,
    folder: PathBuf,
    properties: Properties,
    libraries: Mutex<HashMap<&'static str, Translated>>,
    fails: Option<(u64, Error)>,
    launches: AtomicU64,
    /// Bytes that are allocated.
    held: AtomicUsize,
}

struct Emulated(Arc<Shared>);

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const ALIGN: usize = 256;

impl Shared {
    fn failed(&self, module: &'static Module, log: impl Into<String>) -> Error {
        Error::Compile {
            module: module.name,
            architecture: "this processor".into(),
            log: log.into(),
        }
    }

    /// What every call returns once the device has failed.
    fn state(&self) -> Result<()> {
        match &self.fails {
            Some((after, error)) if self.launches.load(Ordering::Relaxed) >= *after => {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    fn free_memory(&self) -> usize {
        self.properties.memory.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// A module's library, which is translated and loaded when it is first asked for.
    fn library<T>(
        &self,
        module: &'static Module,
        work: impl FnOnce(&Library) -> Result<T>,
    ) -> Result<T> {
        let known = locked(&self.libraries).get(module.name).cloned();
        if let Some(known) = known
            && let Some(library) = &*locked(&known)
        {
            return work(library);
        }
        let parts = [module.name, module.source, HARNESS, self.compiler]
            .into_iter()
            .chain(OPTIONS)
            .chain(HEADERS.iter().flat_map(|(name, source)| [*name, *source]));
        let name = format!("{}-{}.so", module.name.replace(['.', '/'], "-"), cache::hash(parts));
        let path = self.folder.join(&name);
        let entry = locked(&TRANSLATED).entry(path.clone()).or_default().clone();
        locked(&self.libraries).insert(module.name, entry.clone());
        let mut place = locked(&entry);
        if place.is_none() {
            if !path.exists() {
                self.translate(module, &name)?;
            }
            // SAFETY: the library is what was just compiled from this crate's sources, without initializers
            // that do anything but set variables.
            let library = unsafe { Library::new(&path) };
            *place = Some(library.map_err(|error| self.failed(module, error.to_string()))?);
        }
        work(place.as_ref().expect("it was just loaded"))
    }

    fn translate(&self, module: &'static Module, name: &str) -> Result<()> {
        let failed = |error: std::io::Error| self.failed(module, error.to_string());
        // Devices of one process translate the same kernels at the same time.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let sources = self.folder.join(format!("{name}.{}.{count}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = sources.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            std::fs::write(path, text)
        };
        for (name, text) in HEADERS.iter().copied().chain([("emulate.h", HARNESS)]) {
            write(name, text).map_err(failed)?;
        }
        write(module.name, module.source).map_err(failed)?;
        let out = sources.join("out.so");
        let mut command = Command::new(self.compiler);
        command.args(OPTIONS);
        if cfg!(target_arch = "x86_64") {
            command.arg("-mfma");
        }
        let folder = Path::new(module.name).parent().map(|folder| sources.join(folder));
        command.arg("-include").arg(sources.join("emulate.h")).arg("-I").arg(&sources);
        command.arg("-x").arg("c++").arg(sources.join(module.name)).arg("-o").arg(&out);
        let output =
            command.current_dir(folder.as_deref().unwrap_or(&sources)).output().map_err(failed)?;
        if !output.status.success() {
            let log = String::from_utf8_lossy(&output.stderr).into_owned();
            drop(std::fs::remove_dir_all(&sources));
            return Err(self.failed(module, log));
        }
        std::fs::rename(&out, self.folder.join(name)).map_err(failed)?;
        drop(std::fs::remove_dir_all(&sources));
        Ok(())
    }
}

impl Backend for Emulated {
    fn properties(&self) -> &Properties {
        &self.0.properties
    }

    fn fork(&self) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(Self(self.0.clone())))
    }

    fn same_device(&self, other: &dyn Backend) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| Arc::ptr_eq(&self.0, &other.0))
    }

    fn wait_for(&self, _: &dyn Backend) -> Result<()> {
        Ok(())
    }

    fn handle(&self) -> Result<usize> {
        Err(Error::unfit("NCCL", "it needs a GPU"))
    }

    fn mark(&self) -> Result<Mark> {
        self.0.state()?;
        Ok(Arc::new(()))
    }

    fn after(&self, _: &Mark) -> Result<()> {
        Ok(())
    }

    fn lend_to(&self, _: &dyn Backend) -> Result<()> {
        Ok(())
    }

    fn copy_from(&self, _: &dyn Backend, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.0.state()?;
        self.copy(to, from, bytes)
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.0.state()?;
        let (free, total) = (self.0.free_memory(), self.0.properties.memory);
        let full = || Error::Memory { asked: bytes, free, total };
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| full())?;
        if bytes > free {
            return Err(full());
        }
        // SAFETY: the size is not 0. What is there is written over, so that reading it is no accident.
        unsafe {
            let address = alloc(layout);
            if address.is_null() {
                return Err(full());
            }
            self.0.held.fetch_add(bytes, Ordering::Relaxed);
            address.write_bytes(0xA5, bytes);
            Ok(address as u64)
        }
    }

    fn free(&self, address: u64, bytes: usize) {
        let Ok(layout) = Layout::from_size_align(bytes, ALIGN) else { return };
        // SAFETY: the address came from `alloc` with this layout.
        unsafe { dealloc(address as *mut u8, layout) }
        self.0.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: the caller's buffer has room for as many bytes.
        unsafe { (to as *mut u8).copy_from(from.as_ptr(), from.len()) }
        Ok(())
    }

    fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        self.0.state()?;
        // SAFETY: the caller's buffer has as many bytes.
        unsafe { (from as *const u8).copy_to(to.as_mut_ptr(), to.len()) }
        Ok(())
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's buffers have as many bytes.
        unsafe { (from as *const u8).copy_to(to as *mut u8, bytes) }
        Ok(())
    }

    fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's buffer has as many bytes.
        unsafe { (to as *mut u8).write_bytes(byte, bytes) }
        Ok(())
    }

    fn ready(&self, _: &[&'static Module]) -> Result<()> {
        Ok(())
    }

    fn prepare(&self, module: &'static Module, _: &'static str) -> Result<()> {
        if module.exact { Ok(()) } else { self.0.library(module, |_| Ok(())) }
    }

    unsafe fn launch(
        &self,
        module: &'static Module,
        name: &'static str,
        grid: Grid,
        args: &[&[u8]],
    ) -> Result<()> {
        self.0.launches.fetch_add(1, Ordering::Relaxed);
        self.0.state()?;
        if module.exact {
            // SAFETY: the caller's promise is the same.
            return unsafe { cores::launch(name, args) };
        }
        let symbol = format!("emulated_{name}\0");
        // Structures may ask for alignment: each parameter is copied to where it is aligned.
        let mut copies: Vec<Vec<u128>> = args
            .iter()
            .map(|arg| {
                let mut copy = vec![0_u128; arg.len().div_ceil(16)];
                // SAFETY: the vector has at least as many bytes.
                unsafe { copy.as_mut_ptr().cast::<u8>().copy_from(arg.as_ptr(), arg.len()) };
                copy
            })
            .collect();
        let mut pointers: Vec<*mut c_void> =
            copies.iter_mut().map(|copy| copy.as_mut_ptr().cast()).collect();
        let [x, y, z] = grid.blocks;
        let shape = [x, y, z, grid.threads, grid.shared];
        // SAFETY: the harness defines this function for each kernel with that type, and the caller promises
        // that the parameters are the kernel's.
        let status = self.0.library(module, |library| unsafe {
            type Run = unsafe extern "C" fn(*const u32, *mut *mut c_void) -> c_int;
            let run = library.get::<Run>(symbol.as_bytes());
            let run = run.map_err(|_| self.0.failed(module, format!("no EXPORT({name}) in it")))?;
            Ok(run(shape.as_ptr(), pointers.as_mut_ptr()))
        })?;
        if status == 0 { Ok(()) } else { Err(Error::unfit(name, format!("a grid of {shape:?}"))) }
    }

    fn tensor_map(&self, of: Boxes) -> Result<[u64; 16]> {
        Ok(cores::tensor_map(of))
    }

    fn synchronize(&self) -> Result<()> {
        self.0.state()
    }

    fn is_done(&self) -> Result<bool> {
        self.0.state().map(|()| true)
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f32> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_secs_f32() * 1e3)
    }

    fn free_memory(&self) -> Result<usize> {
        Ok(self.0.free_memory())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
