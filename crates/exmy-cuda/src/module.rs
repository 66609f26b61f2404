//! The kernels' sources: each module is one `.cu` file, compiled as a whole at first use, and the headers that
//! it may include. The texts are part of the program.

/// A `.cu` file.
#[derive(Debug)]
pub struct Module {
    /// Its name under `kernels/`.
    pub name: &'static str,
    /// Its text.
    pub source: &'static str,
    /// Its kernels.
    pub kernels: &'static [&'static str],
    /// The lowest compute capability it compiles for; `(9, 0)` with `exact`: tensor cores of Hopper.
    pub needs: (u32, u32),
    /// Whether it compiles for that architecture alone.
    pub exact: bool,
}

/// A text that modules include, by its name under `kernels/`.
pub type Header = (&'static str, &'static str);

macro_rules! headers {
    ($($name:literal)*) => {
        /// What modules may include.
        pub const HEADERS: &[Header] = &[
            $(($name, include_str!(concat!("../kernels/", $name)))),*
        ];
    };
}
headers! { "prelude.cuh" "layers/real.cuh" "layers/tile.cuh" }

macro_rules! modules {
    ($($(#[$doc:meta])* $id:ident = $name:literal $([$major:literal, $minor:literal, $exact:literal])?:
        $($kernel:ident)*;)*) => {
        $(
            $(#[$doc])*
            pub static $id: Module = Module {
                name: $name,
                source: include_str!(concat!("../kernels/", $name)),
                kernels: &[$(stringify!($kernel)),*],
                needs: modules!(@needs $($major, $minor)?),
                exact: modules!(@exact $($exact)?),
            };
        )*
        /// All of them.
        pub static ALL: &[&Module] = &[$(&$id),*];
    };
    (@needs $major:literal, $minor:literal) => { ($major, $minor) };
    (@needs) => { (8, 0) };
    (@exact $exact:literal) => { $exact };
    (@exact) => { false };
}
modules! {
    /// Small operations by which the runtime is tested.
    BASIC = "basic.cu": fill_u32 add_f32 reverse_blocks warp_sum;
    /// What layers do to each element by itself.
    ELEMENTWISE = "layers/elementwise.cu": fill copy fill_rows copy_rows add_assign round_all add_bias activate
        activate_backward stepped_gelu stepped_gelu_backward swiglu swiglu_backward stepped_swiglu
        stepped_swiglu_backward rotate decay decay_backward swish_gate swish_gate_backward adamw sgd
        sgd_momentum squared_error_backward embed normals;
    /// Norms and their backward.
    NORMS = "layers/norms.cu": norm_rows norm_backward add_blocks stepped_norm stepped_norm_backward;
    /// Sums over rows, tokens or elements.
    SUMS = "layers/sums.cu": bias_backward embed_backward positions_backward mean square_sums
        root_of_sums;
    /// Losses of rows.
    LOSS = "layers/loss.cu": cross_entropy squared_error divergence divergence_backward;
    /// Causal softmax attention.
    ATTENTION = "layers/attention.cu": scores_wide scores_small lower_wide lower_small
        transposed_wide transposed_small softmax softmax_backward split_scores split_softmax
        split_softmax_backward;
    /// Products in f32.
    PRODUCTS = "layers/products.cu": f32_forward_wide f32_forward_small fast_forward_wide
        fast_forward_small f32_grad_input_wide f32_grad_input_small fast_grad_input_wide
        fast_grad_input_small f32_grad_weight_wide f32_grad_weight_small fast_grad_weight_wide
        fast_grad_weight_small;
    /// Gated linear attention.
    GLA = "layers/gla.cu": gla gla_backward;
}
