//! Operations on single numbers, with flags: arithmetic, comparisons, elementary functions, conversions.

#![allow(unsafe_code)] // the caller's texts and arrays

use std::ffi::c_char;
use std::mem::MaybeUninit;

use exmy::vectors::evaluate::Evaluator;
use exmy::vectors::function::TestFunction;

use crate::arrays::{Arrays, optional_text, text};
use crate::settings;
use crate::status::{ExmyStatus, Failure, given, guard, make};

/// The result is not the exact number.
pub const EXMY_FLAG_INEXACT: u8 = 1;
/// The number was below the smallest normal one, and the result is inexact.
pub const EXMY_FLAG_UNDERFLOW: u8 = 2;
/// The rounded number was above the largest finite one.
pub const EXMY_FLAG_OVERFLOW: u8 = 4;
/// An infinite result of finite operands was exact.
pub const EXMY_FLAG_DIVIDE_BY_ZERO: u8 = 8;
/// There is no such value, or an operand is a signaling NaN.
pub const EXMY_FLAG_INVALID: u8 = 16;
/// The result is the end of the range in place of something beyond it. Not one of IEEE 754's.
pub const EXMY_FLAG_SATURATED: u8 = 32;

/// An operation on formats, with everything settled.
pub struct ExmyFunction(pub(crate) Evaluator);

/// What a function takes and returns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExmyFunctionFacts {
    /// How many operands there are, 1 to 3.
    pub operands: u32,
    /// Bits of each operand; 0 behind the last.
    pub operand_bits: [u32; 3],
    /// Bits of the result: of a code, an integer, or 1 of a comparison.
    pub result_bits: u32,
    /// How many of the top bits of a random word are used, 0 to 32.
    pub random_bits: u32,
}

/// The function of a name as Berkeley TestFloat writes it, on any formats: `e4m3_mulAdd`, `f16_add_to_f32`,
/// `f32_to_e4m3`, `e4m3,e5m2,f32_mulAdd_to_f32`, `bf16_exp`, `f16_le_quiet`, `f32_to_i32`. Settings, which
/// may be null, say what the name leaves open: `round=rtz,overflow=sat-finite`. In `*out`; null if it
/// fails.
///
/// round: rne rna rnz rtz rup rdn raz odd, srN srNb srNc. overflow: sat-none sat-finite sat-propagate
/// to-nan to-inf onnx. profile: ieee p3109 ocp-sat ocp-nonsat cuda-satfinite torch x86 riscv and others.
/// tininess: after before. flush: flush-none flush-input flush-candidates flush-output. subnormals (of
/// operands): exact zero positive-zero. exact (whether rounding to an integer raises inexact): yes no.
/// int-invalid: x86 riscv arm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_function_new(
    name: *const c_char,
    settings: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<ExmyFunction>>>>,
) -> ExmyStatus {
    make(out, || {
        // SAFETY: the contract of the crate.
        let (name, open) = unsafe { (text(name, "name")?, optional_text(settings, "settings")?) };
        let function: TestFunction = name.parse().map_err(Failure::name)?;
        let mut kinds = function.operands().iter().copied().chain([function.result()]);
        if let Some(wide) = kinds.find(|kind| kind.bits() > 64) {
            return Err(Failure::unsupported(format_args!(
                "{wide} has more than the 64 bits of a word: integers of up to 64 bits work"
            )));
        }
        let evaluator = function.evaluator(&settings::read(open)?);
        evaluator.map(ExmyFunction).map_err(Failure::unsupported)
    })
}

/// Frees a function.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_function_free(function: Option<Box<ExmyFunction>>) {
    drop(function);
}

/// What a function takes and returns.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_function_describe(
    function: Option<&ExmyFunction>,
    facts: Option<&mut MaybeUninit<ExmyFunctionFacts>>,
) -> ExmyStatus {
    guard(|| {
        let evaluator = &given(function, "function")?.0;
        let function = evaluator.function();
        let mut found = ExmyFunctionFacts {
            operands: function.operands().len() as u32,
            operand_bits: [0; 3],
            result_bits: function.result().bits(),
            random_bits: evaluator.random_bits(),
        };
        for (bits, kind) in found.operand_bits.iter_mut().zip(function.operands()) {
            *bits = kind.bits();
        }
        given(facts, "facts")?.write(found);
        Ok(())
    })
}

/// One result: of the codes `a`, `b` and `c`, of which those beyond the function's operands do not count, and
/// the random word of stochastic modes, whose top bits are used. Integers are two's complement; a comparison
/// gives 0 or 1. `flags`, which may be null, has the bits EXMY_FLAG_*.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_evaluate(
    function: Option<&ExmyFunction>,
    a: u64,
    b: u64,
    c: u64,
    random: u32,
    result: Option<&mut MaybeUninit<u64>>,
    flags: Option<&mut MaybeUninit<u8>>,
) -> ExmyStatus {
    guard(|| {
        let evaluator = &given(function, "function")?.0;
        let outcome = evaluator.evaluate([a, b, c].map(u128::from), random);
        let outcome = outcome.map_err(Failure::unsupported)?;
        // A word of at most 64 bits.
        given(result, "result")?.write(outcome.word as u64);
        if let Some(flags) = flags {
            flags.write(outcome.flags.bits());
        }
        Ok(())
    })
}

/// `count` results. Arrays of operands that the function does not have may be null; so may `random` unless
/// the mode is stochastic, and `flags`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_evaluate_array(
    function: Option<&ExmyFunction>,
    count: usize,
    a: *const u64,
    b: *const u64,
    c: *const u64,
    random: *const u32,
    results: *mut u64,
    flags: *mut u8,
) -> ExmyStatus {
    guard(|| {
        let evaluator = &given(function, "function")?.0;
        let arity = evaluator.function().operands().len();
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (operands, random, results, mut flags) = unsafe {
            let mut operands: [&[u64]; 3] = [&[]; 3];
            for (i, (start, name)) in [(a, "a"), (b, "b"), (c, "c")].into_iter().enumerate() {
                if i < arity {
                    operands[i] = arrays.read(start, count, name)?;
                }
            }
            let random = match evaluator.random_bits() {
                0 => None,
                _ => Some(arrays.read(random, count, "random")?),
            };
            let results = arrays.write(results, count, "results")?;
            (operands, random, results, arrays.write_optional(flags, count, "flags")?)
        };
        for (i, result) in results.iter_mut().enumerate() {
            let words = operands.map(|all| all.get(i).copied().unwrap_or(0).into());
            let outcome = evaluator.evaluate(words, random.map_or(0, |words| words[i]));
            let outcome = outcome.map_err(Failure::unsupported)?;
            *result = outcome.word as u64;
            if let Some(flags) = &mut flags {
                flags[i] = outcome.flags.bits();
            }
        }
        Ok(())
    })
}
