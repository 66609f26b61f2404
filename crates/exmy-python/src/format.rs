//! Formats: what they are, and codes of whole arrays.

use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::slice::{Converter, decode_into};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::{Input, Output};
use crate::gpu::Gpu;
use crate::{compute, value_error};

/// A floating-point format: `Format("e4m3")`, `Format("bf16")`, `Format("e6m9")`, `Format("binary8p3se")`.
#[pyclass(frozen, eq, hash, subclass, module = "exmy._exmy")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Format(pub(crate) exmy::Format);

/// Calls `$work` with the type of codes of so many bits as `$code`.
macro_rules! by_width {
    ($bits:expr, $code:ident => $work:expr) => {
        match $bits {
            0..=8 => {
                type $code = u8;
                $work
            }
            9..=16 => {
                type $code = u16;
                $work
            }
            17..=32 => {
                type $code = u32;
                $work
            }
            _ => {
                type $code = u64;
                $work
            }
        }
    };
}

impl Format {
    /// How numbers are rounded to it, and the random words if the mode takes some.
    fn how(
        &self,
        rounding: Option<&str>,
        overflow: Option<&str>,
        seed: Option<u64>,
        stream: Address,
    ) -> PyResult<(Cast, Option<Philox>)> {
        let mut cast = Cast::new(self.0);
        if let Some(mode) = rounding {
            cast = cast.with_rounding(mode.parse().map_err(value_error)?);
        }
        if let Some(policy) = overflow {
            cast.overflow = policy.parse().map_err(value_error)?;
        }
        Ok((cast, random(cast.rounding.is_stochastic(), seed, stream, &cast)?))
    }
}

#[pymethods]
impl Format {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        name.parse().map(Self).map_err(value_error)
    }

    /// The canonical name.
    #[getter]
    fn name(&self) -> String {
        self.0.to_string()
    }

    /// Bits of a code.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// Bits of the exponent field.
    #[getter]
    fn exponent_bits(&self) -> u32 {
        self.0.exp_bits()
    }

    /// Bits of the mantissa field.
    #[getter]
    fn mantissa_bits(&self) -> u32 {
        self.0.man_bits()
    }

    /// The exponent bias.
    #[getter]
    fn bias(&self) -> i32 {
        self.0.bias()
    }

    /// Whether there is a sign bit.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }

    /// Whether there are infinities.
    #[getter]
    fn has_infinity(&self) -> bool {
        self.0.has_infinity()
    }

    /// Whether there is a NaN.
    #[getter]
    fn has_nan(&self) -> bool {
        self.0.has_nan()
    }

    /// The largest finite value.
    #[getter]
    fn max(&self) -> f64 {
        self.0.to_f64(self.0.max_code())
    }

    /// The lowest finite value.
    #[getter]
    fn min(&self) -> f64 {
        self.0.to_f64(self.0.min_code())
    }

    /// From 1 to the next larger value, if 1 is one: 2^-M with M mantissa bits.
    #[getter]
    fn eps(&self) -> f64 {
        1.0 / (1_u64 << self.0.man_bits()) as f64
    }

    /// The smallest positive normal value; None if there is none.
    #[getter]
    fn smallest_normal(&self) -> Option<f64> {
        self.0.min_normal_code().map(|code| self.0.to_f64(code))
    }

    /// The smallest positive value.
    #[getter]
    fn smallest_subnormal(&self) -> f64 {
        self.0.to_f64(self.0.min_positive_code())
    }

    /// The value of one code, rounded to nearest even where the format is wider than binary64.
    fn value(&self, code: u64) -> PyResult<f64> {
        let last = *self.0.codes().end();
        if code > last {
            return Err(value_error(format_args!(
                "{code:#x} is no code of {}: the last is {last:#x}",
                self.0
            )));
        }
        Ok(self.0.to_f64(code))
    }

    /// Writes the codes of binary32 numbers, or of binary64 if they are wide. Element `i` takes random word
    /// `i` of the seed and the stream.
    fn _encode(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        rounding: Option<&str>,
        overflow: Option<&str>,
        seed: Option<u64>,
        stream: Address,
        wide: bool,
    ) -> PyResult<()> {
        let (cast, random) = self.how(rounding, overflow, seed, stream)?;
        let converter = Converter::from(cast);
        let converter = random.map_or(converter, |random| converter.with_random(random));
        macro_rules! encode {
            ($number:ty) => {{
                let x = Input::<$number>::new(x, "x")?;
                by_width!(self.0.bits(), Code => {
                    let mut out = Output::<Code>::new(out, "out", x.elements().len())?;
                    out.apart_from(&x, ["out", "x"])?;
                    compute(py, || converter.encode_into(x.elements(), out.elements()));
                    Ok(())
                })
            }};
        }
        if wide { encode!(f64) } else { encode!(f32) }
    }

    /// Whether binary32 has all values.
    #[getter]
    fn _fits_f32(&self) -> bool {
        self.0.is_exact_in_f32()
    }

    /// Writes the values of codes, as binary32 numbers if that has all of them, else as binary64.
    fn _decode(
        &self,
        py: Python<'_>,
        codes: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        by_width!(self.0.bits(), Code => {
            let codes = Input::<Code>::new(codes, "codes")?;
            macro_rules! decode {
                ($number:ty) => {{
                    let mut out = Output::<$number>::new(out, "out", codes.elements().len())?;
                    out.apart_from(&codes, ["out", "codes"])?;
                    compute(py, || decode_into(self.0, codes.elements(), out.elements()));
                    Ok(())
                }};
            }
            if self.0.is_exact_in_f32() { decode!(f32) } else { decode!(f64) }
        })
    }

    /// As `_encode`, of binary32 numbers on a GPU of this number; `x` and `out` are addresses in its memory.
    fn _encode_on(
        &self,
        py: Python<'_>,
        device: usize,
        x: &Bound<'_, PyAny>,
        count: usize,
        out: &Bound<'_, PyAny>,
        rounding: Option<&str>,
        overflow: Option<&str>,
        seed: Option<u64>,
        stream: Address,
    ) -> PyResult<()> {
        let how = self.how(rounding, overflow, seed, stream)?;
        Gpu::of(device)?.encode(py, how, count, [x, out])
    }

    /// As `_decode`, of codes on a GPU of this number, to binary32 numbers.
    fn _decode_on(
        &self,
        py: Python<'_>,
        device: usize,
        codes: &Bound<'_, PyAny>,
        count: usize,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Gpu::of(device)?.decode(py, self.0, count, [codes, out])
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

/// A stream of random words: a label, or a label and coordinates, as `("quantize", 3, 1)`.
pub(crate) struct Address(pub(crate) Stream);

impl<'py> FromPyObject<'_, 'py> for Address {
    type Error = PyErr;

    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let wrong = |_| {
            PyTypeError::new_err(format!(
                "stream is {any:?}; a stream is a text, or a tuple of a text and integers from 0 up"
            ))
        };
        let Ok(parts) = any.cast::<PyTuple>() else {
            let label = any.extract::<String>().map_err(wrong)?;
            return Ok(Self(Stream::new(&label)));
        };
        let label = parts.get_item(0).and_then(|label| label.extract::<String>()).map_err(wrong)?;
        let stream = Stream::new(&label);
        let with =
            |stream: Stream, part: Bound<'_, PyAny>| part.extract().map(|at| stream.with(at));
        parts.iter().skip(1).try_fold(stream, with).map(Self).map_err(wrong)
    }
}

/// The random words of a seed, where some are needed.
pub(crate) fn random(
    needed: bool,
    seed: Option<u64>,
    stream: Address,
    what: &dyn std::fmt::Display,
) -> PyResult<Option<Philox>> {
    match (needed, seed) {
        (false, _) => Ok(None),
        (true, Some(seed)) => Ok(Some(Philox::new(seed, stream.0))),
        (true, None) => {
            Err(value_error(format_args!("{what} rounds stochastically and needs a seed: seed=1")))
        }
    }
}
