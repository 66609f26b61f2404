//! Which instruction set a slice kernel is compiled for, chosen once a call.
//!
//! A kernel is *one* scalar body, written without branches so that the compiler vectorizes it,
//! and instantiated for a few coherent [`Level`]s. No level may change a bit. Bodies use only
//! integer operations and those that IEEE 754 defines (`+ - * /`, `sqrt`, `mul_add`), reductions
//! run over a fixed number of lanes, and Rust never contracts `a * b + c`. The module holds the
//! crate's dispatch and nothing else; a kernel lives next to its plain version.
//!
//! `scalar` is what every CPU of the target has: SSE2 on x86-64, NEON on aarch64, for which the same
//! bodies are compiled and no other level exists.
//!
//! The level is the best the CPU has, unless the environment variable `EXMY_SIMD` names a lower
//! one (`scalar`, `avx2`, `avx512`, `avx512bf16`, `amx`, in any case); [`with_level`] does the same for a
//! test. The last two are AVX-512 to all kernels but those of [`gemm::fast`](crate::gemm::fast). That
//! module alone asks Linux for matrix tiles, for the whole process, when it first multiplies at the level
//! `amx`.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux", feature = "std"))]
mod amx;

use core::fmt;
#[cfg(feature = "std")]
use std::sync::atomic::{AtomicU8, Ordering};

/// A coherent set of instructions, from the least to the most preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// What every CPU of the target has.
    Scalar = 1,
    /// x86-64 with AVX2 and FMA (x86-64-v3).
    Avx2 = 2,
    /// x86-64 with AVX-512 F, BW, CD, DQ, VL (x86-64-v4).
    Avx512 = 3,
    /// The same and dot products of pairs of bfloat16 numbers (AVX-512 BF16).
    Avx512Bf16 = 4,
    /// AVX-512 and matrix tiles of bfloat16 (AMX), where Linux knows them.
    Amx = 5,
}

impl Level {
    /// All levels, ascending.
    pub const ALL: [Self; 5] =
        [Self::Scalar, Self::Avx2, Self::Avx512, Self::Avx512Bf16, Self::Amx];

    /// The word `EXMY_SIMD` accepts.
    ///
    /// ```
    /// use exmy::simd::Level;
    ///
    /// assert_eq!(Level::ALL.map(Level::name), ["scalar", "avx2", "avx512", "avx512bf16", "amx"]);
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Bf16 => "avx512bf16",
            Self::Amx => "amx",
        }
    }

    /// Whether this CPU can run the level.
    ///
    /// ```
    /// use exmy::simd::Level;
    ///
    /// assert!(Level::Scalar.is_available()); // on every CPU
    /// assert!(Level::Avx2.is_available() || !Level::Avx512.is_available()); // AVX-512 needs those below
    /// ```
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx512Bf16 => {
                Self::Avx512.is_available() && is_x86_feature_detected!("avx512bf16")
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux", feature = "std"))]
            Self::Amx => Self::Avx512.is_available() && amx::is_there(),
            #[allow(unreachable_patterns, reason = "what is above depends on the target")]
            _ => false,
        }
    }

    /// The best level of this CPU.
    ///
    /// ```
    /// use exmy::simd::Level;
    ///
    /// assert!(Level::best().is_available());
    /// assert!(Level::ALL.iter().filter(|level| level.is_available()).all(|level| *level <= Level::best()));
    /// ```
    pub fn best() -> Self {
        let available = Self::ALL.into_iter().rev().find(|level| level.is_available());
        available.unwrap_or(Self::Scalar)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// 0 while undecided, else the level in force.
#[cfg(feature = "std")]
static CURRENT: AtomicU8 = AtomicU8::new(0);

/// What `EXMY_SIMD` asks for and this CPU or program cannot do.
#[cfg(feature = "std")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    word: String,
}

#[cfg(feature = "std")]
impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = crate::shown::printable(&self.word);
        write!(f, "EXMY_SIMD={word}: the levels of this machine are")?;
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            write!(f, " {level}")?;
        }
        Ok(())
    }
}

#[cfg(feature = "std")]
impl core::error::Error for LevelError {}

/// The level that `EXMY_SIMD` names, in any case, or the best if it is not set.
///
/// ```
/// use exmy::simd::{Level, wanted};
///
/// match wanted() {
///     Ok(level) => assert!(level.is_available()),
///     // `EXMY_SIMD=avx3`, say. Kernels run at the best level then; a program refuses to start.
///     Err(error) => assert!(error.to_string().contains("the levels of this machine are scalar")),
/// }
/// # let _ = Level::best();
/// ```
///
/// # Errors
/// If it holds a word that is no level, or a level this CPU lacks. [`level`] falls back to the best one
/// then, so this is where a program or a test learns of it.
#[cfg(feature = "std")]
pub fn wanted() -> Result<Level, LevelError> {
    let Some(word) = std::env::var_os("EXMY_SIMD") else { return Ok(Level::best()) };
    let word = word.to_string_lossy().into_owned();
    let level = Level::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(&word));
    level.filter(|level| level.is_available()).ok_or(LevelError { word })
}

/// The level in force: [`wanted`], unless [`with_level`] says otherwise; the best where `EXMY_SIMD` cannot
/// be followed, since no call of a library should end a program for that.
///
/// ```
/// use exmy::simd::{Level, level, with_level};
///
/// // Kernels of other threads follow too; results are the same at every level.
/// let seen = with_level(Level::Scalar, || std::thread::spawn(level).join().unwrap());
/// assert_eq!(seen, Level::Scalar);
/// ```
#[cfg(feature = "std")]
#[inline]
pub fn level() -> Level {
    match CURRENT.load(Ordering::Relaxed) {
        1 => Level::Scalar,
        2 => Level::Avx2,
        3 => Level::Avx512,
        4 => Level::Avx512Bf16,
        5 => Level::Amx,
        _ => {
            let level = wanted().unwrap_or_else(|_| Level::best());
            CURRENT.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// Without `std` nothing can be detected.
#[cfg(not(feature = "std"))]
pub fn level() -> Level {
    Level::Scalar
}

/// The level in force for matrix products: without tiles if Linux refuses them to this process, which
/// it is asked for here.
pub(crate) fn level_of_products() -> Level {
    match level() {
        #[cfg(all(target_arch = "x86_64", target_os = "linux", feature = "std"))]
        Level::Amx if !amx::is_permitted() => match Level::Avx512Bf16.is_available() {
            true => Level::Avx512Bf16,
            false => Level::Avx512,
        },
        level => level,
    }
}

/// Runs `work` with `level` in force for the whole process, then restores what was before, also if
/// `work` panics.
///
/// Meant for tests: calls wait for each other and must not be nested. Since no level changes a
/// result, other threads that run kernels meanwhile see only another speed.
///
/// # Panics
/// If this CPU lacks the level.
///
/// ```
/// use exmy::simd::{Level, level, with_level};
///
/// let before = level();
/// assert_eq!(with_level(Level::Scalar, level), Level::Scalar);
/// assert_eq!(level(), before);
/// ```
#[cfg(feature = "std")]
pub fn with_level<R>(level: Level, work: impl FnOnce() -> R) -> R {
    assert!(level.is_available(), "this CPU has no {level}");
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _restore = Restore(CURRENT.swap(level as u8, Ordering::Relaxed));
    work()
}

/// Puts a level back when it is dropped, whether work ended or panicked.
#[cfg(feature = "std")]
struct Restore(u8);

#[cfg(feature = "std")]
impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.store(self.0, Ordering::Relaxed);
    }
}

/// A kernel with its arguments; `run` must be `#[inline(always)]` so that each instantiation below
/// is compiled for its level. Use [`kernel!`](crate::simd::kernel) instead of writing one.
#[doc(hidden)]
pub trait Kernel {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs a kernel at the level in force.
#[inline]
#[doc(hidden)]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    match level() {
        // SAFETY: `level` returns a level only if `is_available` said yes for this CPU.
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        Level::Avx512 | Level::Avx512Bf16 | Level::Amx => unsafe { avx512(kernel) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        Level::Avx2 => unsafe { avx2(kernel) },
        _ => kernel.run(),
    }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// Defines a function whose body is compiled for every level and dispatched once a call.
///
/// The signature names one lifetime and uses it in every reference:
/// `kernel! { pub(crate) fn scale<'a>(x: &'a mut [f32], by: f32) { .. } }`.
/// Functions called from the body must be `#[inline(always)]`.
#[doc(hidden)]
#[macro_export]
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$life:lifetime $(, $gen:ident : $bound:path)?>(
        $($arg:ident : $ty:ty),* $(,)?
    ) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name<$life $(, $gen: $bound)?>($($arg: $ty),*) $(-> $ret)? {
            struct Call<$life $(, $gen: $bound)?> {
                $($arg: $ty,)*
                _life: core::marker::PhantomData<&$life ()>,
            }
            #[allow(unused_parens)]
            impl<$life $(, $gen: $bound)?> $crate::simd::Kernel for Call<$life $(, $gen)?> {
                type Output = ($($ret)?);
                #[inline(always)]
                fn run(self) -> Self::Output {
                    let Self { $($arg,)* _life } = self;
                    $body
                }
            }
            $crate::simd::dispatch(Call $(::<$gen>)? { $($arg,)* _life: core::marker::PhantomData })
        }
    };
}
#[doc(hidden)]
pub use kernel;

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    kernel! {
        fn axpy<'a>(y: &'a mut [f32], a: f32, x: &'a [f32]) {
            for (y, x) in y.iter_mut().zip(x) {
                *y += a * x;
            }
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let x: Vec<f32> = (0..1000).map(|i| (i * 37 % 101) as f32 / 7.0).collect();
        let mut results = Vec::new();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut y = vec![0.1_f32; x.len()];
            with_level(level, || axpy(&mut y, 1.0 / 3.0, &x));
            results.push(y);
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    /// And what it should not hold is reported. In processes of their own, since the level is decided once in
    /// each.
    #[test]
    fn the_variable_is_read_in_any_case() {
        const CHILD: &str = "EXMY_TEST_LEVEL_OF_VARIABLE";
        if let Ok(expected) = std::env::var(CHILD) {
            assert_eq!((level().name(), wanted().is_ok()), (&*expected, level() == Level::Scalar));
            return;
        }
        let best = Level::best().name();
        for (word, expected) in [("SCALAR", "scalar"), ("Scalar", "scalar"), ("avx3", best)] {
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "simd::tests::the_variable_is_read_in_any_case"])
                .envs([(CHILD, expected), ("EXMY_SIMD", word)])
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success() && printed.contains("1 passed"), "{word}: {printed}");
        }
    }

    /// In a process of its own, since other tests of this one set levels too.
    #[test]
    fn a_panic_leaves_no_level_behind() {
        const CHILD: &str = "EXMY_TEST_LEVEL_AFTER_PANIC";
        if std::env::var_os(CHILD).is_some() {
            let before = level();
            for other in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let work = || with_level(other, || panic!("work at {other}"));
                assert!(std::panic::catch_unwind(work).is_err());
                assert_eq!(level(), before, "after a panic at {other}");
            }
            return;
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "simd::tests::a_panic_leaves_no_level_behind"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && printed.contains("1 passed"), "{printed}");
    }
}
