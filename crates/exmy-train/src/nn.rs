//! Layers as explicit pairs of forward and backward functions.
//!
//! A layer here is two functions on slices. The forward writes its output and whatever the backward
//! needs and cannot cheaply form again (a row's mean, its reciprocal deviation). The backward turns
//! the gradient of the output into gradients of input and parameters. There is no tape and no
//! tensor type; a model is the list of its calls, read once downwards and once upwards.
//!
//! Shapes are dense and row-major: activations (N, C) with N = B T tokens (batch, time), C channels.
//! Gradients of activations are overwritten, gradients of parameters are accumulated, so that
//! several batches or several uses of one parameter add up.
//!
//! The order of every sum is written down and does not depend on the machine. Along a row there are
//! sixteen lanes, folded by halves ([`real`]). Over rows there are blocks of a fixed number of rows,
//! whose sums are added in ascending order. Hence the same bits for any number of threads and any
//! [`Level`](exmy::simd::Level). Sizes that do not fit each other are a programmer's error and
//! panic.
//!
//! A layer of one's own is such a pair, too. It hands its matrix products to a
//! [`Products`](linear::Products), under the names of [`Operator`](site::Operator)s, so that every recipe
//! applies to them. An [`Engine`](crate::recipe::Engine) computes them by a recipe,
//! [`Unquantized`](linear::Unquantized) as they are. `examples/own_layer.rs` of this crate trains a stack of
//! such layers. A layer for the models here also becomes an operation of [`Device`].

pub mod activation;
pub mod attention;
#[doc(hidden)]
pub mod batch;
pub mod bias;
pub mod chain;
pub mod decoder;
pub mod device;
pub mod device_rotation;
pub mod elementary;
pub mod embedding;
pub mod gla;
pub mod hadamard;
pub mod linear;
pub mod loss;
pub mod model;
pub mod norm;
#[doc(hidden)]
pub mod normal;
pub mod optimizer;
pub mod parameters;
#[doc(hidden)]
pub mod parts;
pub mod proxy;
pub mod real;
pub mod relu;
pub mod rope;
pub mod sharpness;
pub mod site;
#[doc(hidden)]
pub mod steps;
pub mod stopwatch;

pub use device::{Cpu, Device};
pub use real::Real;

/// Stops at a slice whose length is not what the other arguments say.
#[track_caller]
fn expect(name: &str, what: &str, len: usize, expected: usize) {
    assert!(len == expected, "{name}: {what} has {len} elements, not {expected}");
}
