// Products by Hopper's tensor cores, in their own order: per output one chain of instructions along ascending
// positions, 16 of bfloat16 or 32 of E4M3 each, the first onto zero. What an instruction computes is the
// library's model `hopper`; positions behind the end are zeros, which take no part in it.
//
// A block has a tile of 128 x WIDTH outputs. Its first four warps copy: one thread asks for boxes of 128
// bytes along the positions, which arrive in shared memory swizzled as the instructions read them, STAGES
// boxes ahead. The other two groups of four warps multiply, 64 rows each.
#include "product.cuh"
#include "wgmma.cuh"

// What describes a matrix to the copying unit, as the driver has made it.
struct __align__(64) TensorMap { u64 of[16]; };

#define BOXES 4
#define TALL 128

DEVICE u32 shared_address(const void* x) { return (u32)__cvta_generic_to_shared(x); }

DEVICE void barrier_init(u64* barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count));
}

DEVICE void barrier_expect(u64* barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

DEVICE void barrier_arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

DEVICE void barrier_wait(u64* barrier, u32 parity) {
    u32 done;
    do {
        asm volatile(
            "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!done);
}

// A box that begins at a position and a row.
DEVICE void copy_box(void* to, const TensorMap* map, u32 position, u32 row, u64* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3, %4}], [%2];" ::"r"(shared_address(to)),
                 "l"((u64)map), "r"(shared_address(barrier)), "r"(position), "r"(row)
                 : "memory");
}

// A matrix of rows of 128 swizzled bytes in shared memory, eight rows each 1024 bytes apart.
DEVICE u64 described(const void* x) {
    u64 address = shared_address(x);
    return ((address & 0x3FFFF) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

template <bool E4M3, int WIDTH> DEVICE void product_on_tensor_cores(const TensorMap* a, const TensorMap* b,
                                                                    float* c, const float* a_scale,
                                                                    const float* b_scale, const Gemm& g) {
    const u32 POSITIONS_OF_BOX = E4M3 ? 128 : 64, LEFT = TALL * 128, STAGE = (TALL + WIDTH) * 128;
    DYNAMIC_SHARED(boxes);
    SHARED __align__(8) u64 full[BOXES], empty[BOXES];
    u32 row, col, steps = (g.k + POSITIONS_OF_BOX - 1) / POSITIONS_OF_BOX, group = threadIdx.x / 128;
    tile_of(blockIdx.x, (g.m + TALL - 1) / TALL, (g.n + WIDTH - 1) / WIDTH, row, col);
    row *= TALL;
    col *= WIDTH;
    if (threadIdx.x == 0) {
        for (int i = 0; i < BOXES; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (u32 t = 0; t < steps; t++) {
                u32 at = t % BOXES;
                barrier_wait(empty + at, (t / BOXES & 1) ^ 1);
                barrier_expect(full + at, STAGE);
                copy_box(boxes + at * STAGE, a, t * POSITIONS_OF_BOX, row, full + at);
                copy_box(boxes + at * STAGE + LEFT, b, t * POSITIONS_OF_BOX, col, full + at);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum[WIDTH / 2];
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++) sum[i] = 0.0f;
        for (u32 t = 0; t < steps; t++) {
            u32 at = t % BOXES;
            barrier_wait(full + at, t / BOXES & 1);
            u64 x = described(boxes + at * STAGE + (group - 1) * 64 * 128);
            u64 y = described(boxes + at * STAGE + LEFT);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; k++) {
                // 32 bytes further along the positions.
                if (E4M3) multiply_e4m3(sum, x + 2 * k, y + 2 * k, t + k);
                else multiply_bf16(sum, x + 2 * k, y + 2 * k, t + k);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // The step before has read its boxes once only this one is under way.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (t > 0 && threadIdx.x % 128 == 0) barrier_arrive(empty + (t - 1) % BOXES);
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        float factor = g.alpha;
        if (a_scale != nullptr) factor *= *a_scale;
        if (b_scale != nullptr) factor *= *b_scale;
        u32 lane = threadIdx.x % 32, r = row + (group - 1) * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
        // Which NaN the tensor cores give is part of their model; behind a factor there is one.
        bool plain = factor == 1.0f && g.beta == 0.0f;
        bool pairs = g.c_stride % 2 == 0 && (u64)c % 8 == 0;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
            u32 q = col + j * 8 + lane % 4 * 2;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u32 at = r + half * 8;
                if (at >= g.m || q >= g.n) continue;
                float* out = c + at * g.c_stride + q;
                float y = factor * sum[j * 4 + half * 2], z = factor * sum[j * 4 + half * 2 + 1];
                bool both = q + 1 < g.n;
                if (g.beta != 0.0f) {
                    y += g.beta * out[0];
                    if (both) z += g.beta * out[1];
                }
                if (g.rounds) {
                    y = nearest_bf16(y);
                    z = nearest_bf16(z);
                } else if (!plain) {
                    y = canonical(y);
                    z = canonical(z);
                }
                if (both && pairs) {
                    *(float2*)out = make_float2(y, z);
                } else {
                    out[0] = y;
                    if (both) out[1] = z;
                }
            }
        }
    }
}

#define HOPPER(NAME, E4M3, WIDTH)                                                              \
    extern "C" __global__ void __launch_bounds__(384, 1)                                       \
        NAME(PARAMETERS(TensorMap) a, PARAMETERS(TensorMap) b, float* c, const float* a_scale, \
             const float* b_scale, PARAMETERS(Gemm) g) {                                       \
        product_on_tensor_cores<E4M3, WIDTH>(&a, &b, c, a_scale, b_scale, g);                  \
    }

HOPPER(hopper_bf16_wide, false, 256)
EXPORT(hopper_bf16_wide)
HOPPER(hopper_bf16_narrow, false, 128)
EXPORT(hopper_bf16_narrow)
HOPPER(hopper_e4m3_wide, true, 256)
EXPORT(hopper_e4m3_wide)
HOPPER(hopper_e4m3_narrow, true, 128)
EXPORT(hopper_e4m3_narrow)
