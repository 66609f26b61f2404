// What is done to each element by itself: fills, copies, biases, activation functions, gates, rotary
// positions, the update of optimizers. The bits are those of exmy-train's nn/activation.rs, relu.rs,
// steps.rs, gla/gates.rs, rope.rs, bias.rs and optimizer.rs.
#include "layers/real.cuh"
#include "random.cuh"

// Elements of a launch, and rows by warps.
#define EACH(i, count) _Pragma("unroll 4") for (u64 i = thread_index(); i < (count); i += thread_count())
#define EACH_ROW(row, rows) for (u64 row = thread_index() / 32; row < (rows); row += thread_count() / 32)
#define EACH_COLUMN(c, width) _Pragma("unroll 4") for (u32 c = threadIdx.x % 32; c < (width); c += 32)

KERNEL(256) fill(float* x, u64 count, float value) {
    EACH(i, count) x[i] = value;
}
EXPORT(fill)

KERNEL(256) copy(const float* from, float* to, u64 count) {
    EACH(i, count) to[i] = from[i];
}
EXPORT(copy)

KERNEL(256) fill_rows(float* x, u64 rows, u32 cols, u64 stride, float value) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, cols) x[row * stride + c] = value;
}
EXPORT(fill_rows)

KERNEL(256) copy_rows(const float* from, u64 from_stride, float* to, u64 rows, u32 cols, u64 to_stride) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, cols) to[row * to_stride + c] = from[row * from_stride + c];
}
EXPORT(copy_rows)

KERNEL(256) add_assign(float* y, const float* x, u64 count) {
    EACH(i, count) y[i] = y[i] + x[i];
}
EXPORT(add_assign)

KERNEL(256) round_all(float* x, u64 count, Step step) {
    EACH(i, count) x[i] = step_of(step, x[i]);
}
EXPORT(round_all)

KERNEL(256) add_bias(float* x, u64 rows, const float* bias, u32 width, Step step) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, width) {
            u64 at = row * width + c;
            x[at] = step_of(step, x[at] + step_of(step, bias[c]));
        }
}
EXPORT(add_bias)

// Functions of one number, in the order of exmy-train's `Function`.
enum Function { GELU, RELU, SQUARED_RELU, LINEAR, TANH };

DEVICE float activated(u32 function, float x) {
    switch (function) {
        case GELU: return x * normal_of(x).cdf;
        case RELU: return x < 0.0f ? 0.0f : x;
        case SQUARED_RELU: return x < 0.0f ? 0.0f : x * x;
        case TANH: return tanh_of(x);
        default: return x;
    }
}

DEVICE float through(u32 function, float x, float d) {
    switch (function) {
        case GELU: {
            Normal normal = normal_of(x);
            return d * fma_rn(x, normal.pdf, normal.cdf);
        }
        case RELU: return x > 0.0f ? d : 0.0f;
        case SQUARED_RELU: return d * (x > 0.0f ? x + x : 0.0f);
        case TANH: {
            float y = tanh_of(x);
            return d * fma_rn(-y, y, 1.0f);
        }
        default: return d;
    }
}

KERNEL(256) activate(u32 function, Step step, const float* x, float* y, u64 count) {
    EACH(i, count) y[i] = step_of(step, activated(function, x[i]));
}
EXPORT(activate)

KERNEL(256) activate_backward(u32 function, Step step, const float* x, float* d, u64 count) {
    EACH(i, count) d[i] = step_of(step, through(function, x[i], d[i]));
}
EXPORT(activate_backward)

// GELU whose steps are rounded: x sigmoid(1.59375 (x + 0.044677734375 x^3)).
DEVICE float stepped_phi(Step step, float x) {
    float cube = step_of(step, step_of(step, x * x) * x);
    float u = step_of(step, step_of(step, step_of(step, cube * 0.044677734375f) + x) * 1.59375f);
    return step_of(step, 1.0f / step_of(step, step_of(step, exp_of(-u)) + 1.0f));
}

KERNEL(256) stepped_gelu(Step step, const float* x, float* y, u64 count) {
    EACH(i, count) {
        float rounded = step_of(step, x[i]);
        y[i] = step_of(step, rounded * stepped_phi(step, rounded));
    }
}
EXPORT(stepped_gelu)

KERNEL(256) stepped_gelu_backward(Step forward, Step step, const float* x, float* d, u64 count) {
    EACH(i, count) {
        float phi = stepped_phi(forward, step_of(forward, x[i]));
        float own = step_of(step, x[i]);
        float slope = step_of(step, step_of(step, step_of(step, own * own) * 0.2138671875f) + 1.59375f);
        float inner = step_of(step, slope * step_of(step, phi * step_of(step, 1.0f - phi)));
        d[i] = step_of(step, step_of(step, phi + step_of(step, own * inner)) * step_of(step, d[i]));
    }
}
EXPORT(stepped_gelu_backward)

KERNEL(256) swiglu(const float* gate_up, u64 rows, u32 hidden, float* y) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, hidden) {
            float gate = gate_up[row * 2 * hidden + c], up = gate_up[row * 2 * hidden + hidden + c];
            y[row * hidden + c] = gate / (1.0f + exp_of(-gate)) * up;
        }
}
EXPORT(swiglu)

KERNEL(256) swiglu_backward(
    const float* gate_up, u64 rows, u32 hidden, const float* dy, float* d, Step step
) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, hidden) {
            u64 at = row * 2 * hidden + c;
            float gate = gate_up[at], up = gate_up[at + hidden], own = dy[row * hidden + c];
            float s = 1.0f / (1.0f + exp_of(-gate));
            d[at + hidden] = step_of(step, own * (gate * s));
            d[at] = step_of(step, own * up * (s * fma_rn(gate, 1.0f - s, 1.0f)));
        }
}
EXPORT(swiglu_backward)

DEVICE float stepped_sigmoid(Step step, float gate) {
    return step_of(step, 1.0f / step_of(step, step_of(step, exp_of(-gate)) + 1.0f));
}

KERNEL(256) stepped_swiglu(Step step, Step last, const float* gate_up, u64 rows, u32 hidden, float* y) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, hidden) {
            u64 at = row * 2 * hidden + c;
            float gate = step_of(step, gate_up[at]), up = step_of(step, gate_up[at + hidden]);
            float swish = step_of(step, gate * stepped_sigmoid(step, gate));
            y[row * hidden + c] = step_of(last, swish * up);
        }
}
EXPORT(stepped_swiglu)

KERNEL(256) stepped_swiglu_backward(
    Step forward, Step step, const float* gate_up, u64 rows, u32 hidden, const float* dy, float* d
) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, hidden) {
            u64 at = row * 2 * hidden + c;
            float gate = step_of(forward, gate_up[at]), own = step_of(step, dy[row * hidden + c]);
            float s = stepped_sigmoid(forward, gate);
            float y = step_of(forward, gate * s);
            float slope = step_of(step, s + step_of(step, y * step_of(step, 1.0f - s)));
            float up = step_of(step, gate_up[at + hidden]);
            d[at + hidden] = step_of(step, own * y);
            d[at] = step_of(step, step_of(step, own * up) * slope);
        }
}
EXPORT(stepped_swiglu_backward)

// The first heads of rows, a warp a row; `sign` -1 turns back.
KERNEL(256) rotate(
    float* x, u64 rows, u32 width, u32 heads, u32 half, u32 sequence, const float* cos, const float* sin,
    float sign
) {
    EACH_ROW(row, rows) {
        u64 angle = row % sequence * half;
        float* of_row = x + row * width;
        EACH_COLUMN(c, heads * half) {
            u32 head = c / half, i = c % half;
            float* a = of_row + head * 2 * half + i;
            float* b = a + half;
            float low = *a, high = *b, co = cos[angle + i], si = sin[angle + i] * sign;
            *a = low * co - high * si;
            *b = high * co + low * si;
        }
    }
}
EXPORT(rotate)

DEVICE float log_decay(float z, float rate) {
    return (smaller(z, 0.0f) - ln_of(1.0f + exp_of(-magnitude(z)))) * rate;
}

KERNEL(256) decay(const float* z, float rate, float least, float* alpha, u64 count) {
    EACH(i, count) {
        float log = log_decay(z[i], rate);
        alpha[i] = exp_of(log < least ? least : log);
    }
}
EXPORT(decay)

KERNEL(256) decay_backward(const float* z, float rate, float least, float* d, u64 count) {
    EACH(i, count) {
        float e = exp_of(-magnitude(z[i]));
        float share = (z[i] < 0.0f ? 1.0f : e) / (1.0f + e);
        share = log_decay(z[i], rate) < least ? 0.0f : share;
        d[i] = d[i] * (share * rate);
    }
}
EXPORT(decay_backward)

KERNEL(256) swish_gate(const float* x, const float* gates, u64 stride, u64 rows, u32 width, float* y) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, width) {
            float g = gates[row * stride + c];
            y[row * width + c] = x[row * width + c] * (g / (1.0f + exp_of(-g)));
        }
}
EXPORT(swish_gate)

KERNEL(256) swish_gate_backward(
    const float* x, const float* gates, u64 stride, u64 rows, u32 width, float* d, float* d_gates
) {
    EACH_ROW(row, rows)
        EACH_COLUMN(c, width) {
            u64 at = row * width + c;
            float g = gates[row * stride + c], own = d[at];
            float s = 1.0f / (1.0f + exp_of(-g));
            d_gates[row * stride + c] = own * x[at] * (s * fma_rn(g, 1.0f - s, 1.0f));
            d[at] = own * (g * s);
        }
}
EXPORT(swish_gate_backward)

struct AdamW {
    float keep, rise1, beta2, rise2, step, correction2, eps, grad_scale;
};

KERNEL(256) adamw(AdamW c, float* params, const float* grads, float* m, float* v, u64 count) {
    EACH(i, count) {
        float g = grads[i] * c.grad_scale;
        float first = m[i] + (g - m[i]) * c.rise1;
        float second = v[i] * c.beta2 + c.rise2 * g * g;
        float denominator = __fsqrt_rn(second) / c.correction2 + c.eps;
        params[i] = params[i] * c.keep + c.step * first / denominator;
        m[i] = first;
        v[i] = second;
    }
}
EXPORT(adamw)

KERNEL(256) sgd(float keep, float step, float grad_scale, float* params, const float* grads, u64 count) {
    EACH(i, count) params[i] = params[i] * keep + step * (grads[i] * grad_scale);
}
EXPORT(sgd)

KERNEL(256) sgd_momentum(
    float keep, float step, float momentum, float grad_scale, float* params, const float* grads, float*
    buffer, u64 count
) {
    EACH(i, count) {
        float b = buffer[i] * momentum + grads[i] * grad_scale;
        buffer[i] = b;
        params[i] = params[i] * keep + step * b;
    }
}
EXPORT(sgd_momentum)

KERNEL(256) squared_error_backward(const float* a, const float* y, float scale, float* d, u64 count) {
    EACH(i, count) d[i] = (a[i] - y[i]) * scale;
}
EXPORT(squared_error_backward)

// Rows of a table by token, positions added if there are some.
KERNEL(256) embed(
    const u32* tokens, u64 rows, const float* table, const float* positions, u32 sequence, u32 width, float* y
) {
    EACH_ROW(row, rows) {
        const float* from = table + (u64)tokens[row] * width;
        const float* position = positions + row % sequence * width;
        EACH_COLUMN(c, width) y[row * width + c] = positions ? from[c] + position[c] : from[c];
    }
}
EXPORT(embed)

// Box and Muller's pair of two words.
DEVICE float2 normal_pair(u32 radius, u32 turn) {
    const float unit = 1.0f / 16777216.0f;
    float square = -2.0f * ln_of((float)((radius >> 8) + 1) * unit);
    float length = __fsqrt_rn(larger(square, 0.0f));
    turn >>= 8;
    u32 quarter = (turn + (1 << 21)) >> 22;
    float rest = (float)((i32)turn - (i32)(quarter << 22)) * unit;
    float angle = 6.28318530717958647692528676655900577f * rest;
    float z = angle * angle;
    float sin = 1.0f / 362880.0f;
    sin = fma_rn(fma_rn(sin, z, -1.0f / 5040.0f), z, 1.0f / 120.0f);
    sin = fma_rn(fma_rn(sin, z, -1.0f / 6.0f) * z, angle, angle);
    float cos = -1.0f / 3628800.0f;
    cos = fma_rn(fma_rn(cos, z, 1.0f / 40320.0f), z, -1.0f / 720.0f);
    cos = fma_rn(fma_rn(fma_rn(cos, z, 1.0f / 24.0f), z, -0.5f), z, 1.0f);
    float x = quarter & 1 ? sin : cos, y = quarter & 1 ? cos : sin;
    x = (quarter + 1) & 2 ? -x : x;
    y = quarter & 2 ? -y : y;
    return make_float2(length * x, length * y);
}

// Elements from the words' first on of the sequence of normal numbers, a block of four by each thread, over x
// or (added) that many times `size` to it.
KERNEL(256) normals(float* x, u64 count, PARAMETERS(Philox) philox, u32 added, float size) {
    u64 first = philox.first, blocks = (first % 4 + count + 3) / 4;
    EACH(b, blocks) {
        Words words = philox_block(philox, first / 4 + b);
        float2 low = normal_pair(words.at[0], words.at[1]), high = normal_pair(words.at[2], words.at[3]);
        float numbers[4] = {low.x, low.y, high.x, high.y};
        EACH_ROUND
        for (u32 w = 0; w < 4; w++) {
            u64 at = b * 4 + w - first % 4;
            if (at < count) x[at] = added ? x[at] + size * numbers[w] : numbers[w];
        }
    }
}
EXPORT(normals)
