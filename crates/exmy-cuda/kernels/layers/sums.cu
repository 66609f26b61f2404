// Sums whose order is that of rows, tokens or elements: gradients of biases, of tables, the mean loss, the
// norm of a gradient. The bits of exmy-train's nn/bias.rs, embedding.rs, loss.rs (`mean`) and optimizer.rs
// (`global_norm`).
#include "layers/real.cuh"

// A block has 32 columns: its warps fetch 128 rows at a time, and the first one adds them, ascending. With
// steps the chain starts at 0, and its rounded end is added.
#define AT_ONCE 128

KERNEL(256) bias_backward(const float* dy, u64 rows, u32 width, float* d_bias, Step step) {
    SHARED float fetched[2][AT_ONCE][32];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, c = blockIdx.x * 32 + lane;
    bool there = c < width, plain = is_none(step);
    float own[AT_ONCE / 8];
    auto fetch = [&](u64 first) {
        EACH_ROUND
        for (u32 i = 0; i < AT_ONCE / 8; i++) {
            u64 row = first + warp * (AT_ONCE / 8) + i;
            own[i] = there && row < rows ? dy[row * width + c] : 0.0f;
        }
    };
    float sum = plain && there ? d_bias[c] : 0.0f;
    fetch(0);
    u32 s = 0;
    for (u64 first = 0; first < rows; first += AT_ONCE, s ^= 1) {
        EACH_ROUND
        for (u32 i = 0; i < AT_ONCE / 8; i++) {
            fetched[s][warp * (AT_ONCE / 8) + i][lane] = step_of(step, own[i]);
        }
        __syncthreads();
        fetch(first + AT_ONCE);
        if (warp == 0) {
            u32 count = rows - first < AT_ONCE ? (u32)(rows - first) : AT_ONCE;
#pragma unroll 16
            for (u32 r = 0; r < count; r++) sum = sum + fetched[s][r][lane];
        }
    }
    if (warp == 0 && there) d_bias[c] = plain ? sum : d_bias[c] + step_of(step, sum);
}
EXPORT(bias_backward)

// Tokens sorted by value and then position: block x has the x-th value, whose positions lie in
// order[starts[x]..starts[x + 1]]; a thread has a column.
KERNEL(128) embed_backward(
    const u32* tokens, const u32* order, const u32* starts, const float* dy, u32 width, float* d_table
) {
    u32 c = blockIdx.y * blockDim.x + threadIdx.x;
    if (c >= width) return;
    u32 first = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    float* to = d_table + (u64)tokens[order[first]] * width + c;
    float sum = *to;
#pragma unroll 8
    for (u32 i = first; i < end; i++) sum = sum + dy[(u64)order[i] * width + c];
    *to = sum;
}
EXPORT(embed_backward)

KERNEL(256) positions_backward(const float* dy, u64 sequences, u64 len, float* d) {
    for (u64 i = thread_index(); i < len; i += thread_count()) {
        float sum = d[i];
#pragma unroll 4
        for (u64 s = 0; s < sequences; s++) sum = sum + dy[s * len + i];
        d[i] = sum;
    }
}
EXPORT(positions_backward)

// In f64 from the first to the last: one thread adds what its block has fetched.
KERNEL(256) mean(const float* losses, u64 count, double* out) {
    SHARED float fetched[2048];
    double sum = 0.0;
    for (u64 first = 0; first < count; first += 2048) {
        u32 here = count - first < 2048 ? (u32)(count - first) : 2048;
        __syncthreads();
        for (u32 i = threadIdx.x; i < here; i += blockDim.x) fetched[i] = losses[first + i];
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll 16
            for (u32 i = 0; i < here; i++) sum = sum + (double)fetched[i];
        }
    }
    if (threadIdx.x == 0) *out = sum / (double)count;
}
EXPORT(mean)

// Squares in f64, chunks of 16384 elements, each in sixteen lanes; half a warp has a chunk.
#define CHUNK 16384

KERNEL(128) square_sums(const float* x, u64 count, double* sums) {
    u64 chunk = thread_index() / LANES, first = chunk * CHUNK;
    u32 n = first >= count ? 0 : count - first < CHUNK ? (u32)(count - first) : CHUNK;
    x += first;
    double sum = 0.0;
    auto square = [&](u32 i) { return (double)x[i] * (double)x[i]; };
    each_of<16, u32>(lane_of_row(), n, LANES, square, [&](u32, double y) { sum = sum + y; });
    sum = fold_sum(sum);
    if (n > 0 && lane_of_row() == 0) sums[chunk] = sum;
}
EXPORT(square_sums)

KERNEL(256) root_of_sums(const double* sums, u64 count, double* out) {
    SHARED double fetched[1024];
    double sum = 0.0;
    for (u64 first = 0; first < count; first += 1024) {
        u32 here = count - first < 1024 ? (u32)(count - first) : 1024;
        __syncthreads();
        for (u32 i = threadIdx.x; i < here; i += blockDim.x) fetched[i] = sums[first + i];
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll 16
            for (u32 i = 0; i < here; i++) sum = sum + fetched[i];
        }
    }
    if (threadIdx.x == 0) *out = __dsqrt_rn(sum);
}
EXPORT(root_of_sums)
