//! Matrix products, each with a stated order of summation.
//!
//! [`gemm`] multiplies two [`Operand`]s, whatever they are stored as. Its [`Spec`] has an [`Accumulation`],
//! which says how the products become one number: exactly rounded, in chains and trees in any accumulator, or
//! as Transformer Engine's NVFP4. [`mod@f32`] is the f32 product that layers use. [`mod@fast`] is that of
//! quantized operands, as fast as the machine can in one order. [`mod@unit`] is what matrix units compute
//! (tensor cores of Volta to Blackwell, CDNA, AMX).
//!
//! ```
//! use exmy::gemm::{Spec, gemm};
//! use exmy::slice::View;
//!
//! // 1 + 2^-24 + 2^-24: binary32 cannot add 2^-24 to 1, but the exact sum is a binary32 number.
//! let tiny = 2.0_f32.powi(-24);
//! let (a, b) = ([1.0, tiny, tiny], [1.0; 3]);
//! let (a, b) = (View::new(&a, 1, 3), View::new(&b, 3, 1));
//! let by = |accumulation: &str| gemm(a, b, &Spec::parse(accumulation).unwrap()).unwrap()[0];
//! assert_eq!(by("exact"), 1.0 + 2.0 * tiny);
//! assert_eq!(by("fma"), 1.0);
//! ```

mod accumulation;
mod error;
mod exact;
pub mod f32;
pub mod fast;
mod operand;
mod product;
mod rows;
mod spec;
mod sums;
mod te;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod transpose;
pub mod unit;
mod units;

pub use accumulation::{Accumulation, Order, ParseAccumulationError, Sum, TeAlpha};
pub use error::{GemmError, Side, Why};
pub use operand::{Operand, Store, WidthError};
pub use product::{ProductReport, gemm, gemm_batched, gemm_codes, gemm_into};
pub use spec::{NonFinite, Spec};
