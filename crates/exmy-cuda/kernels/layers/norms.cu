// Layer and root-mean-square norms, forward and backward, plain and with every step rounded to bfloat16: the
// bits of exmy-train's nn/norm.rs and nn/steps.rs.
//
// Half a warp has a row. Backward a block has the 32 rows whose sums form one block of the gradients of gain
// and bias; afterwards a thread adds the blocks of one column, ascending.
#include "layers/real.cuh"

#define ROW_BLOCK 32

KERNEL(256) norm_rows(
    const float* x, const float* gain, const float* bias, u32 layer, float eps, u64 rows, u32 width, float* y,
    float* means, float* rstds
) {
    u64 row = thread_index() / LANES;
    bool there = row < rows;
    u32 n = there ? width : 0;
    x += row * width;
    y += row * width;
    float per_width = 1.0f / (float)width, mean = 0.0f, square;
    if (layer) {
        mean = row_sum(n, [&](u32 i) { return x[i]; }) * per_width;
        square = row_sum(n, [&](u32 i) { return (x[i] - mean) * (x[i] - mean); });
    } else {
        square = row_sum(n, [&](u32 i) { return x[i] * x[i]; });
    }
    float rstd = 1.0f / __fsqrt_rn(square * per_width + eps);
    auto of = [&](u32 i) {
        float h = (layer ? x[i] - mean : x[i]) * rstd * gain[i];
        return bias ? h + bias[i] : h;
    };
    row_each(n, of, [&](u32 i, float h) { y[i] = h; });
    if (there && lane_of_row() == 0) {
        if (layer) means[row] = mean;
        rstds[row] = rstd;
    }
}
EXPORT(norm_rows)

// A row of `sums` a block: the gradient of the gain, then that of the bias if it is wanted.
KERNEL(512) norm_backward(
    const float* x, const float* gain, const float* means, const float* rstds, const float* dy, u32 layer,
    u32 biased,
    u64 rows, u32 width, float* dx, float* sums
) {
    u64 first = (u64)blockIdx.x * ROW_BLOCK, row = first + threadIdx.x / LANES;
    float per_width = 1.0f / (float)width;
    {
        bool there = row < rows;
        u32 n = there ? width : 0;
        float mean = there && layer ? means[row] : 0.0f, rstd = there ? rstds[row] : 0.0f;
        const float *own_x = x + row * width, *own_dy = dy + row * width;
        float* own_dx = dx + row * width;
        auto put = [&](u32 i, float d) { own_dx[i] = d; };
        if (layer) {
            float mean_g = row_sum(n, [&](u32 i) { return own_dy[i] * gain[i]; }) * per_width;
            float mean_gh = per_width * row_sum(n, [&](u32 i) {
                                return own_dy[i] * gain[i] * ((own_x[i] - mean) * rstd);
                            });
            auto of = [&](u32 i) {
                float h = (own_x[i] - mean) * rstd;
                return rstd * (own_dy[i] * gain[i] - mean_g - h * mean_gh);
            };
            row_each(n, of, put);
        } else {
            float mean_gh =
                per_width * row_sum(n, [&](u32 i) { return own_dy[i] * gain[i] * (own_x[i] * rstd); });
            auto of = [&](u32 i) { return rstd * (own_dy[i] * gain[i] - own_x[i] * rstd * mean_gh); };
            row_each(n, of, put);
        }
    }
    u32 count = rows - first < ROW_BLOCK ? (u32)(rows - first) : ROW_BLOCK;
    float* out = sums + (u64)blockIdx.x * (biased ? 2 * width : width);
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float d_gain = 0.0f, d_bias = 0.0f;
        auto fetch = [&](u32 r) {
            u64 at = (first + r) * width + c;
            return make_float2((layer ? x[at] - means[first + r] : x[at]) * rstds[first + r], dy[at]);
        };
        each_of<16, u32>(0, count, 1, fetch, [&](u32, float2 of) {
            d_gain = d_gain + of.y * of.x;
            d_bias = d_bias + of.y;
        });
        out[c] = d_gain;
        if (biased) out[width + c] = d_bias;
    }
}
EXPORT(norm_backward)

// Adds rows of `sums`, `stride` apart, to `to`, ascending, and rounds the result.
KERNEL(128) add_blocks(const float* sums, u64 blocks, u32 stride, u32 width, float* to, Step step) {
    u64 c = thread_index();
    if (c >= width) return;
    float sum = to[c];
    auto fetch = [&](u64 b) { return sums[b * stride + c]; };
    each_of<32, u64>(0, blocks, 1, fetch, [&](u64, float x) { sum = sum + x; });
    to[c] = step_of(step, sum);
}
EXPORT(add_blocks)

// What the rounded steps make of a row: mean (0 without), the rounded variance, the reciprocal root.
struct Stepped {
    float mean, v, r;
};

struct NormSteps {
    Step head, tail, back;
};

// Without a mean 0 is taken off, and the number stays: it is rounded already, and -0 - 0 is -0.
DEVICE float centred(Step head, float x, float mean) { return step_of(head, step_of(head, x) - mean); }

DEVICE Stepped normalize(NormSteps steps, u32 layer, float eps, u32 count, u32 width, const float* x) {
    Step head = steps.head, tail = steps.tail;
    float n = (float)width, mean = 0.0f;
    if (layer) {
        float sum = row_sum(count, [&](u32 i) { return step_of(head, x[i]); });
        mean = step_of(head, step_of(head, sum) / n);
    }
    float sum = row_sum(count, [&](u32 i) {
        float c = centred(head, x[i], mean);
        return step_of(head, c * c);
    });
    float square = step_of(head, step_of(head, sum) / n);
    float v = step_of(tail, square + eps);
    Stepped stepped = {mean, v, step_of(tail, 1.0f / step_of(tail, __fsqrt_rn(v)))};
    return stepped;
}

KERNEL(256) stepped_norm(
    NormSteps steps, const float* x, const float* gain, const float* bias, u32 layer, float eps, u64 rows,
    u32 width,
    float* y
) {
    u64 row = thread_index() / LANES;
    u32 n = row < rows ? width : 0;
    x += row * width;
    y += row * width;
    Stepped of = normalize(steps, layer, eps, n, width, x);
    Step head = steps.head, tail = steps.tail;
    auto fetch = [&](u32 i) { return make_float2(x[i], gain[i]); };
    row_each(n, fetch, [&](u32 i, float2 at) {
        float h = step_of(tail, centred(head, at.x, of.mean) * of.r);
        float out = step_of(tail, step_of(head, at.y) * h);
        y[i] = bias ? step_of(tail, out + step_of(head, bias[i])) : out;
    });
}
EXPORT(stepped_norm)

KERNEL(512) stepped_norm_backward(
    NormSteps steps, const float* x, const float* gain, const float* dy, u32 layer, float eps, u64 rows,
    u32 width,
    float* dx, float* sums
) {
    SHARED float means[ROW_BLOCK], roots[ROW_BLOCK];
    Step head = steps.head, tail = steps.tail, back = steps.back;
    u64 first = (u64)blockIdx.x * ROW_BLOCK;
    {
        u64 row = first + threadIdx.x / LANES;
        u32 n = row < rows ? width : 0;
        const float *own_x = x + row * width, *own_dy = dy + row * width;
        float* own_dx = dx + row * width;
        Stepped of = normalize(steps, layer, eps, n, width, own_x);
        if (lane_of_row() == 0) {
            means[threadIdx.x / LANES] = of.mean;
            roots[threadIdx.x / LANES] = of.r;
        }
        float sd = step_of(back, __fsqrt_rn(of.v)), r = step_of(back, 1.0f / sd);
        auto normal = [&](u32 i) { return step_of(tail, centred(head, own_x[i], of.mean) * of.r); };
        auto dn = [&](u32 i) { return step_of(back, step_of(back, own_dy[i]) * step_of(back, gain[i])); };
        float sum = row_sum(n, [&](u32 i) { return step_of(back, step_of(back, dn(i) * normal(i)) * sd); });
        float mean = step_of(back, step_of(back, sum) / (float)width);
        float t = step_of(back, mean * step_of(back, 1.0f / of.v));
        auto d = [&](u32 i) {
            return step_of(back, step_of(back, dn(i) * r) + step_of(back, -t * normal(i)));
        };
        float shift = 0.0f;
        if (layer) {
            float sum = row_sum(n, d);
            shift = step_of(back, step_of(back, sum) / (float)width);
        }
        // As for the mean, 0 is taken off where there is nothing to.
        row_each(n, [&](u32 i) { return step_of(back, d(i) - shift); }, [&](u32 i, float x) { own_dx[i] = x; });
    }
    __syncthreads();
    u32 count = rows - first < ROW_BLOCK ? (u32)(rows - first) : ROW_BLOCK;
    float* out = sums + (u64)blockIdx.x * 2 * width;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float d_gain = 0.0f, d_bias = 0.0f;
        auto fetch = [&](u32 r) {
            u64 at = (first + r) * width + c;
            return make_float2(x[at], dy[at]);
        };
        each_of<16, u32>(0, count, 1, fetch, [&](u32 r, float2 of) {
            float g = step_of(back, of.y);
            float h = step_of(tail, centred(head, of.x, means[r]) * roots[r]);
            d_gain = d_gain + step_of(back, g * h);
            d_bias = d_bias + g;
        });
        out[c] = d_gain;
        out[width + c] = d_bias;
    }
}
EXPORT(stepped_norm_backward)
