//! What can go wrong on the way to a GPU and on it. Every error has what was found as fields, and says in one
//! line what would work.

use std::fmt;

/// The result of operations on a device.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done on a device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The library of NVIDIA's driver is not there.
    NoDriver,
    /// The driver is there and refuses to start.
    Driver {
        /// What was asked of it.
        doing: &'static str,
        /// The driver's name for what is wrong.
        reason: String,
    },
    /// There is no such device.
    NoDevice {
        /// The index that was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The library that compiles kernels, NVRTC, is not there.
    NoCompiler {
        /// The names under which it was looked for.
        tried: Vec<String>,
    },
    /// NVRTC does not compile for an architecture, which is newer or none.
    OldCompiler {
        /// Its version.
        found: (u32, u32),
        /// What was to be compiled for.
        architecture: String,
    },
    /// The driver does not load what a newer NVRTC has compiled.
    NewCompiler {
        /// NVRTC's version.
        found: (u32, u32),
        /// The version of CUDA that the driver has.
        driver: (u32, u32),
    },
    /// The driver is older than the functions that are called.
    OldDriver {
        /// The version of CUDA that it has.
        found: (u32, u32),
    },
    /// The device is of an architecture that the kernels do not have.
    Architecture {
        /// What needs another one: all kernels, or an order of summation.
        what: &'static str,
        /// The device.
        device: String,
        /// Its compute capability.
        found: (u32, u32),
        /// What is needed.
        needed: &'static str,
    },
    /// A kernel's source did not compile, which is a defect of this crate or of the compiler.
    Compile {
        /// The file.
        module: &'static str,
        /// What was compiled for.
        architecture: String,
        /// What the compiler said.
        log: String,
    },
    /// The device's memory is full.
    Memory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes free then.
        free: usize,
        /// Bytes that the device has.
        total: usize,
    },
    /// A kernel failed; what the device's memory holds is lost.
    Kernel {
        /// The last kernel that was started; those started before it may be the culprit, unless
        /// `EXMY_CUDA_WAIT=1` is set.
        name: String,
        /// The driver's name for what is wrong.
        reason: String,
    },
    /// The device does not answer any more: switched off, fallen from the bus, or taken away.
    Lost {
        /// The device.
        device: String,
        /// The driver's name for what is wrong.
        reason: String,
    },
    /// Two operands of one operation are on different devices.
    OtherDevice {
        /// The operation.
        what: &'static str,
    },
    /// The operands of an operation do not fit each other, or the operation is not there.
    Unfit {
        /// The operation.
        what: &'static str,
        /// What does not fit, and what would.
        why: String,
    },
}

impl Error {
    /// An operation whose operands do not fit.
    pub(crate) fn unfit(what: &'static str, why: impl Into<String>) -> Self {
        Self::Unfit { what, why: why.into() }
    }
}

/// Bytes as people read them.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 30 => write!(f, "{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
            bytes if bytes >= 1 << 20 => write!(f, "{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver => {
                f.write_str("no driver of an NVIDIA GPU: its library, libcuda, was not found")
            }
            Self::Driver { doing, reason } => {
                write!(f, "the NVIDIA driver failed to {doing}: {reason}")
            }
            Self::NoDevice { index, count: 0 } => {
                write!(f, "there is no device {index}: the NVIDIA driver sees no GPU")
            }
            Self::NoDevice { index, count: 1 } => {
                write!(f, "there is no device {index}: there is one GPU, number 0")
            }
            Self::NoDevice { index, count } => {
                write!(f, "there is no device {index}: there are {count} GPUs, 0 to {}", count - 1)
            }
            Self::NoCompiler { tried } => write!(
                f,
                "the kernels are compiled by NVRTC, which cannot be loaded (tried {}): it is part of the \
                 CUDA toolkit and of PyPI's nvidia-cuda-nvrtc; EXMY_NVRTC may hold the path of its library",
                exmy::shown::printable(&tried.join(", "))
            ),
            Self::OldCompiler { found: (major, minor), architecture } => write!(
                f,
                "NVRTC {major}.{minor} does not compile for {architecture}; a newer one may, of the CUDA \
                 toolkit or of PyPI's nvidia-cuda-nvrtc: EXMY_NVRTC may hold the path of its library"
            ),
            Self::OldDriver { found: (major, minor) } => write!(
                f,
                "the NVIDIA driver is of CUDA {major}.{minor}, and 12.0 or higher is needed (driver 525)"
            ),
            Self::NewCompiler { found, driver } => write!(
                f,
                "the NVIDIA driver, of CUDA {}.{}, does not load what NVRTC {}.{} compiles: take an NVRTC of \
                 CUDA {}, whose path EXMY_NVRTC may hold, or a newer driver",
                driver.0, driver.1, found.0, found.1, driver.0
            ),
            Self::Architecture { what, device, found: (major, minor), needed } => {
                write!(f, "{what}: {needed}; {device} is {major}.{minor}")
            }
            Self::Compile { module, architecture, log } => {
                write!(f, "the kernels of {module} do not compile for {architecture}: {log}")
            }
            Self::Memory { asked, free, total } => write!(
                f,
                "the device's memory is full: {} were asked for, {} of {} are free",
                Size(*asked),
                Size(*free),
                Size(*total)
            ),
            Self::Kernel { name, reason } => write!(
                f,
                "a kernel failed: {reason}; the last one started was {name} (EXMY_CUDA_WAIT=1 waits for \
                 each, so that this names the culprit)"
            ),
            Self::Lost { device, reason } => {
                write!(f, "{device} does not answer any more: {reason}")
            }
            Self::OtherDevice { what } => {
                write!(f, "{what}: the operands are on different devices")
            }
            Self::Unfit { what, why } => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for exmy::error::Error {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_was_found() {
        let full = Error::Memory { asked: 3 << 30, free: 1 << 20, total: 80 << 30 };
        let text =
            "the device's memory is full: 3.0 GiB were asked for, 1.0 MiB of 80.0 GiB are free";
        assert_eq!(full.to_string(), text);
        let none = Error::NoDevice { index: 2, count: 2 };
        assert_eq!(none.to_string(), "there is no device 2: there are 2 GPUs, 0 to 1");
        let newer = Error::NewCompiler { found: (13, 0), driver: (12, 4) };
        let text = newer.to_string();
        assert!(text.contains("of CUDA 12.4, does not load what NVRTC 13.0 compiles"), "{text}");
        assert!(text.contains("take an NVRTC of CUDA 12"), "{text}");
        for error in [none, Error::NoDriver, full, newer] {
            assert!(!error.to_string().contains('\n'));
        }
    }
}
