// Products of matrices in f32, as they are stored, in two orders of the library: gemm::f32 (along the chain
// blocks of 256, each from +0, the first stored or added, each further one added) and `fast` (blocks of 32, a
// chain of the even and one of the odd positions, each from +0, their sum added to a sum that begins at +0).
#include "layers/tile.cuh"

struct Product {
    u64 left_stride, right_stride, out_stride;
    u32 rows, cols, depth, add;
};

template <int BM, int TM> struct Sums : Tile<BM, BM, TM, TM> {
    typedef Tile<BM, BM, TM, TM> Base;
    float total[TM][TM];

    template <class Each> DEVICE void outputs(Product p, Each each) {
        u32 m0 = blockIdx.x * BM, n0 = blockIdx.y * BM;
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            EACH_ROUND
            for (int j = 0; j < TM; j++) {
                u32 r = m0 + Base::row(i), c = n0 + Base::col(j);
                if (r < p.rows && c < p.cols) each(total[i][j], r * p.out_stride + c);
            }
        }
    }
};

template <int BM, int TM, bool LEFT_TURNED, bool RIGHT_TURNED>
DEVICE void in_blocks(const float* left, const float* right, float* out, Product p) {
    Sums<BM, TM> of;
    of.clear();
    EACH_ROUND
    for (int i = 0; i < TM; i++) {
        EACH_ROUND
        for (int j = 0; j < TM; j++) of.total[i][j] = -0.0f;
    }
    // What is added to -0 stays as it is: the first block is stored.
    if (p.add) of.outputs(p, [&](float& total, u64 at) { total = out[at]; });
    auto fuse = [&](u32, u32, bool, const float(&a)[TM], const float(&b)[TM]) {
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            EACH_ROUND
            for (int j = 0; j < TM; j++) of.sums[i][j] = fma_rn(a[i], b[j], of.sums[i][j]);
        }
    };
    auto after = [&](u32 k) {
        if (k % 256 != 0 && k < p.depth) return;
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            EACH_ROUND
            for (int j = 0; j < TM; j++) {
                of.total[i][j] = of.total[i][j] + of.sums[i][j];
                of.sums[i][j] = 0.0f;
            }
        }
    };
    // A product over nothing is +0.
    if (p.depth == 0) after(0);
    of.template walk<LEFT_TURNED, RIGHT_TURNED>(
        left, p.left_stride, blockIdx.x * BM, p.rows, right, p.right_stride, blockIdx.y * BM, p.cols, 0,
        p.depth, p.depth, 1.0f, fuse, after, [](u32) { return true; }
    );
    of.outputs(p, [&](float& total, u64 at) { out[at] = total; });
}

template <int BM, int TM, bool LEFT_TURNED, bool RIGHT_TURNED>
DEVICE void fast(
    const float* left, const float* right, float* out, const float* left_factor, const float* right_factor,
    Product p
) {
    Sums<BM, TM> of;
    float odd[TM][TM];
    EACH_ROUND
    for (int i = 0; i < TM; i++) {
        EACH_ROUND
        for (int j = 0; j < TM; j++) of.total[i][j] = of.sums[i][j] = odd[i][j] = 0.0f;
    }
    auto fuse = [&](u32, u32 k, bool, const float(&a)[TM], const float(&b)[TM]) {
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            EACH_ROUND
            for (int j = 0; j < TM; j++) {
                if (k % 2) odd[i][j] = fma_rn(a[i], b[j], odd[i][j]);
                else of.sums[i][j] = fma_rn(a[i], b[j], of.sums[i][j]);
            }
        }
    };
    auto after = [&](u32 k) {
        if (k % 32 != 0 && k < p.depth) return;
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            EACH_ROUND
            for (int j = 0; j < TM; j++) {
                of.total[i][j] = of.total[i][j] + (of.sums[i][j] + odd[i][j]);
                of.sums[i][j] = odd[i][j] = 0.0f;
            }
        }
    };
    of.template walk<LEFT_TURNED, RIGHT_TURNED>(
        left, p.left_stride, blockIdx.x * BM, p.rows, right, p.right_stride, blockIdx.y * BM, p.cols, 0,
        p.depth, p.depth, 1.0f, fuse, after, [](u32) { return true; }
    );
    // Scales of whole tensors, the left one first.
    float factor = left_factor ? left_factor[1] : 1.0f;
    factor = right_factor ? factor * right_factor[1] : factor;
    of.outputs(p, [&](float& total, u64 at) {
        float product = factor * total;
        out[at] = canonical(p.add ? product + out[at] : product);
    });
}

#define PRODUCTS(kind, left_turned, right_turned)                                                           \
    KERNEL(256) f32_##kind##_wide(const float* left, const float* right, float* out, Product p) {           \
        in_blocks<128, 8, left_turned, right_turned>(left, right, out, p);                                  \
    }                                                                                                       \
    KERNEL(256) f32_##kind##_small(const float* left, const float* right, float* out, Product p) {          \
        in_blocks<64, 4, left_turned, right_turned>(left, right, out, p);                                   \
    }                                                                                                       \
    KERNEL(256) fast_##kind##_wide(                                                                         \
        const float* left, const float* right, float* out, const float* of_left, const float* of_right,     \
        Product p                                                                                           \
    ) {                                                                                                     \
        fast<128, 8, left_turned, right_turned>(left, right, out, of_left, of_right, p);                    \
    }                                                                                                       \
    KERNEL(256) fast_##kind##_small(                                                                        \
        const float* left, const float* right, float* out, const float* of_left, const float* of_right,     \
        Product p                                                                                           \
    ) {                                                                                                     \
        fast<64, 4, left_turned, right_turned>(left, right, out, of_left, of_right, p);                     \
    }
PRODUCTS(forward, false, true)
PRODUCTS(grad_input, false, false)
PRODUCTS(grad_weight, true, false)

EXPORT(f32_forward_wide)
EXPORT(f32_forward_small)
EXPORT(fast_forward_wide)
EXPORT(fast_forward_small)
EXPORT(f32_grad_input_wide)
EXPORT(f32_grad_input_small)
EXPORT(fast_grad_input_wide)
EXPORT(fast_grad_input_small)
EXPORT(f32_grad_weight_wide)
EXPORT(f32_grad_weight_small)
EXPORT(fast_grad_weight_wide)
EXPORT(fast_grad_weight_small)
