//! Operations on codes of formats, element by element: each result rounded once.

use std::sync::OnceLock;

use exmy::quantizer::Cast;
use exmy::random::Philox;
use exmy::vectors::evaluate::Settings;
use exmy::vectors::function::{Kind, TestFunction};
use pyo3::prelude::*;

use crate::array::{Input, Output};
use crate::format::{Address, random};
use crate::{compute, value_error};

/// Results that a thread computes at a time.
const CHUNK: usize = 1 << 12;

/// Writes the results of the function of a name as `exmy compute` writes it (`e4m3_add`,
/// `e4m3,e5m2_mul_to_bf16`, `f32_to_e4m3`, `bf16_exp`) of codes as 64-bit integers, and returns the format of
/// the results; None if they are truth values. Beyond the range becomes what encoding has there. Element `i`
/// takes random word `i` of the seed and the stream.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    name: &str,
    rounding: Option<&str>,
    overflow: Option<&str>,
    seed: Option<u64>,
    stream: Address,
    operands: Vec<Bound<'_, PyAny>>,
    out: &Bound<'_, PyAny>,
) -> PyResult<Option<String>> {
    let function: TestFunction = name.parse().map_err(value_error)?;
    let format = match function.result() {
        Kind::Format(format) => Some(format),
        Kind::Truth => None,
        Kind::Integer { .. } => {
            return Err(value_error(format_args!(
                "{name} gives integers; apply gives numbers or truth values, as \"roundToInt\" does"
            )));
        }
    };
    let mut settings = Settings {
        rounding: rounding.map(str::parse).transpose().map_err(value_error)?,
        overflow: format.map(|format| Cast::new(format).overflow),
        ..Settings::default()
    };
    if let Some(policy) = overflow {
        settings.overflow = Some(policy.parse().map_err(value_error)?);
    }
    let evaluator = function.evaluator(&settings).map_err(value_error)?;
    let random: Option<Philox> = random(evaluator.random_bits() > 0, seed, stream, &name)?;
    if operands.len() != function.operands().len() {
        let (needed, found) = (function.operands().len(), operands.len());
        return Err(value_error(format_args!("{name} is of {needed} operands, not {found}")));
    }
    let inputs = operands.iter().map(|any| Input::<u64>::new(any, "an operand"));
    let inputs = inputs.collect::<PyResult<Vec<_>>>()?;
    let count = inputs[0].elements().len();
    if inputs.iter().any(|input| input.elements().len() != count) {
        return Err(value_error("operands have different sizes"));
    }
    let mut out = Output::<u64>::new(out, "out", count)?;
    for input in &inputs {
        out.apart_from(input, ["out", "an operand"])?;
    }
    let words: Vec<&[u64]> = inputs.iter().map(Input::elements).collect();
    let failure = OnceLock::new();
    compute(py, || {
        exmy::parallel::for_each_chunk(out.elements(), CHUNK, |chunk, out| {
            for (i, out) in out.iter_mut().enumerate() {
                let at = chunk * CHUNK + i;
                let mut operands = [0; 3];
                for (operand, words) in operands.iter_mut().zip(&words) {
                    *operand = words[at].into();
                }
                let word = random.map_or(0, |random| random.word(at as u64));
                match evaluator.evaluate(operands, word) {
                    // Formats have at most 64 bits.
                    Ok(outcome) => *out = outcome.word as u64,
                    Err(error) => _ = failure.set(error),
                }
            }
        });
    });
    match failure.into_inner() {
        Some(error) => Err(value_error(error)),
        None => Ok(format.map(|format| format.to_string())),
    }
}
