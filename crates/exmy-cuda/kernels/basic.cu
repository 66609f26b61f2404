// Small operations by which memory, launches, barriers and shuffles are tested.
#include "prelude.cuh"

KERNEL(256) fill_u32(u32* out, u64 count, u32 value) {
    for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = value;
}
EXPORT(fill_u32)

KERNEL(256) add_f32(const float* a, const float* b, float* out, u64 count) {
    for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = a[i] + b[i];
}
EXPORT(add_f32)

// Each block of 64 numbers backwards, by way of shared memory of both kinds.
KERNEL(64) reverse_blocks(const u32* x, u32* out) {
    SHARED u32 fixed[64];
    DYNAMIC_SHARED(dynamic);
    u32* other = (u32*)dynamic;
    u32 i = threadIdx.x, at = blockIdx.x * 64;
    fixed[i] = x[at + i];
    __syncthreads();
    other[i] = fixed[63 - i];
    __syncthreads();
    out[at + 63 - i] = other[63 - i];
}
EXPORT(reverse_blocks)

// The sum of 32 numbers, by halves.
KERNEL(32) warp_sum(const float* x, float* out) {
    float sum = x[blockIdx.x * 32 + threadIdx.x];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, half);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
EXPORT(warp_sum)
