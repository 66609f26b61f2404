//! The kernels' sources: each module is one `.cu` file, compiled as a whole at first use, and the headers
//! that it may include. The texts are part of the program.

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
headers! {
    "prelude.cuh" "product.cuh" "product_panel.cuh" "random.cuh" "rotate.cuh" "round.cuh" "scale.cuh"
    "wgmma.cuh" "layers/real.cuh" "layers/tile.cuh"
}

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
    /// Slices to formats and back.
    CONVERT = "convert.cu": encode_u8 encode_u16 encode_u32 round_f32 round_bf16
        decode_u8 decode_u16 decode_u32 dequantize random_words;
    /// Block formats.
    BLOCKS = "blocks.cu": rows_f32 columns_f32 any_f32 four_f32 rows_bf16 columns_bf16
        any_bf16 four_bf16 rows_u8 columns_u8 any_u8 four_u8 rows_u16 columns_u16
        any_u16 four_u16
        block_amax tensor_amax tensor_scale prepare;
    /// Images of common block formats.
    QUICK = "blocks_quick.cu": quick_rows_amax quick_rows_f32 quick_rows_bf16
        quick_rows_random_f32 quick_rows_random_bf16
        quick_columns16_amax quick_columns16_f32 quick_columns16_bf16
        quick_columns16_random_f32 quick_columns16_random_bf16
        quick_columns32_amax quick_columns32_f32 quick_columns32_bf16
        quick_columns32_random_f32 quick_columns32_random_bf16;
    /// Packing, transposes, copies.
    MOVE = "move.cu": pack_u8 pack_u16 unpack_u8 unpack_u16 transpose_u8 transpose_u16 transpose_u32
        copy_u8 copy_u16 copy_u32;
    /// Products in the order `fast` of images in binary32.
    FAST_F32 = "product_fast_f32.cu": fast_f32_nt_large fast_f32_nn_large fast_f32_tn_large
        fast_f32_nt_tall fast_f32_nn_tall fast_f32_tn_tall fast_f32_nt_small fast_f32_nn_small
        fast_f32_tn_small;
    /// Products in the order `fast` of images in bfloat16.
    FAST_BF16 = "product_fast_bf16.cu": fast_bf16_nt_large fast_bf16_nn_large fast_bf16_tn_large
        fast_bf16_nt_tall fast_bf16_nn_tall fast_bf16_tn_tall fast_bf16_nt_small fast_bf16_nn_small
        fast_bf16_tn_small;
    /// Products by Hopper's tensor cores.
    HOPPER = "product_hopper.cu" [9, 0, true]: hopper_bf16_wide hopper_bf16_narrow hopper_e4m3_wide
        hopper_e4m3_narrow;
    /// Products in the order of `gemm::f32`.
    F32 = "product_f32.cu": f32_nt_large f32_nn_large f32_tn_large f32_nt_tall f32_nn_tall f32_tn_tall
        f32_nt_small f32_nn_small f32_tn_small;
    /// What layers do to each element by itself.
    ELEMENTWISE = "layers/elementwise.cu": fill copy fill_rows copy_rows add_assign round_all add_bias
        activate
        activate_backward stepped_gelu stepped_gelu_backward swiglu swiglu_backward stepped_swiglu
        stepped_swiglu_backward rotate butterflies decay decay_backward swish_gate swish_gate_backward adamw
        sgd sgd_momentum squared_error_backward embed normals;
    /// Norms and their backward.
    NORMS = "layers/norms.cu": norm_rows norm_backward add_blocks stepped_norm stepped_norm_backward;
    /// Sums over rows, tokens or elements.
    SUMS = "layers/sums.cu": bias_backward embed_backward positions_backward mean square_sums
        root_of_sums;
    /// Losses of rows, and where rows are largest.
    LOSS = "layers/loss.cu": cross_entropy squared_error divergence divergence_backward likeliest;
    /// Causal softmax attention.
    ATTENTION = "layers/attention.cu": scores_wide scores_small lower_wide lower_small
        transposed_wide transposed_small softmax_256 softmax_1024 softmax_any softmax_backward_256
        softmax_backward_1024 softmax_backward_any cached_scores cached_softmax cached_values split_scores
        split_softmax split_softmax_backward;
    /// What recipes do to tensors apart from block formats.
    RECIPES = "layers/recipes.cu": mask times cast_rows scale_rows finite_amax amax_rows clip take_columns
        add_to_columns column_sums;
    /// Gated linear attention.
    GLA = "layers/gla.cu": gla gla_backward;
}
