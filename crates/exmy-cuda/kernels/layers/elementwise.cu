// What is done to each element by itself: fills, copies, biases, activation functions, gates, rotary
// positions, the update of optimizers. The bits are those of exmy-train's nn/activation.rs, relu.rs,
// steps.rs, gla/gates.rs, rope.rs, hadamard.rs, bias.rs and optimizer.rs.
#include "layers/real.cuh"
#include "random.cuh"

// value = get(i), then put(i, value): of the elements of a launch, and of the columns of a warp's row. Some are
// fetched together, in place or not.
template <class Get, class Put> DEVICE void each(u64 count, Get get, Put put) {
    each_of<4, u64>(thread_index(), count, thread_count(), get, put);
}
template <class Get, class Put> DEVICE void each_column(u32 width, Get get, Put put) {
    each_of<4, u32>(threadIdx.x % 32, width, 32, get, put);
}
#define EACH_ROW(row, rows) for (u64 row = thread_index() / 32; row < (rows); row += thread_count() / 32)

struct Three32 {
    float x, y, z;
};

KERNEL(256) fill(float* x, u64 count, float value) {
    each(count, [&](u64) { return value; }, [&](u64 i, float v) { x[i] = v; });
}
EXPORT(fill)

KERNEL(256) copy(const float* from, float* to, u64 count) {
    each(count, [&](u64 i) { return from[i]; }, [&](u64 i, float v) { to[i] = v; });
}
EXPORT(copy)

KERNEL(256) fill_rows(float* x, u64 rows, u32 cols, u64 stride, float value) {
    EACH_ROW(row, rows)
        each_column(cols, [&](u32) { return value; }, [&](u32 c, float v) { x[row * stride + c] = v; });
}
EXPORT(fill_rows)

KERNEL(256) copy_rows(const float* from, u64 from_stride, float* to, u64 rows, u32 cols, u64 to_stride) {
    EACH_ROW(row, rows) {
        const float* of = from + row * from_stride;
        each_column(cols, [&](u32 c) { return of[c]; }, [&](u32 c, float v) { to[row * to_stride + c] = v; });
    }
}
EXPORT(copy_rows)

KERNEL(256) add_assign(float* y, const float* x, u64 count) {
    each(count, [&](u64 i) { return y[i] + x[i]; }, [&](u64 i, float v) { y[i] = v; });
}
EXPORT(add_assign)

KERNEL(256) round_all(float* x, u64 count, Step step) {
    each(count, [&](u64 i) { return step_of(step, x[i]); }, [&](u64 i, float v) { x[i] = v; });
}
EXPORT(round_all)

KERNEL(256) add_bias(float* x, u64 rows, const float* bias, u32 width, Step step) {
    EACH_ROW(row, rows) {
        float* of = x + row * width;
        auto sum = [&](u32 c) { return step_of(step, of[c] + step_of(step, bias[c])); };
        each_column(width, sum, [&](u32 c, float v) { of[c] = v; });
    }
}
EXPORT(add_bias)

// Functions of one number, in the order of exmy-train's `Function`.
enum Function { GELU, RELU, SQUARED_RELU, LINEAR, TANH, GELU_TANH };

// tanh u of GELU by the hyperbolic tangent, and du / dx.
DEVICE float2 gelu_tanh(float x) {
    const float cubic = 0.044715f, scale = 0.7978845608028654f;
    float square = x * x;
    float u = scale * fma_rn(x * square, cubic, x);
    return make_float2(tanh_of(u), scale * fma_rn(3.0f * cubic, square, 1.0f));
}

DEVICE float activated(u32 function, float x) {
    switch (function) {
        case GELU: return x * normal_of(x).cdf;
        case RELU: return x < 0.0f ? 0.0f : x;
        case SQUARED_RELU: return x < 0.0f ? 0.0f : x * x;
        case TANH: return tanh_of(x);
        case GELU_TANH: return 0.5f * x * (1.0f + gelu_tanh(x).x);
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
        case GELU_TANH: {
            float2 of = gelu_tanh(x);
            float inner = x * fma_rn(-of.x, of.x, 1.0f) * of.y;
            return d * (0.5f * (1.0f + of.x + inner));
        }
        default: return d;
    }
}

KERNEL(256) activate(u32 function, Step step, const float* x, float* y, u64 count) {
    each(count, [&](u64 i) { return x[i]; }, [&](u64 i, float x) { y[i] = step_of(step, activated(function, x)); });
}
EXPORT(activate)

KERNEL(256) activate_backward(u32 function, Step step, const float* x, float* d, u64 count) {
    auto fetch = [&](u64 i) { return make_float2(x[i], d[i]); };
    each(count, fetch, [&](u64 i, float2 at) { d[i] = step_of(step, through(function, at.x, at.y)); });
}
EXPORT(activate_backward)

// GELU whose steps are rounded: x sigmoid(1.59375 (x + 0.044677734375 x^3)).
DEVICE float stepped_phi(Step step, float x) {
    float cube = step_of(step, step_of(step, x * x) * x);
    float u = step_of(step, step_of(step, step_of(step, cube * 0.044677734375f) + x) * 1.59375f);
    return step_of(step, 1.0f / step_of(step, step_of(step, exp_of(-u)) + 1.0f));
}

KERNEL(256) stepped_gelu(Step step, const float* x, float* y, u64 count) {
    each(count, [&](u64 i) { return step_of(step, x[i]); }, [&](u64 i, float x) {
        y[i] = step_of(step, x * stepped_phi(step, x));
    });
}
EXPORT(stepped_gelu)

KERNEL(256) stepped_gelu_backward(Step forward, Step step, const float* x, float* d, u64 count) {
    auto fetch = [&](u64 i) { return make_float2(x[i], d[i]); };
    each(count, fetch, [&](u64 i, float2 at) {
        float phi = stepped_phi(forward, step_of(forward, at.x));
        float own = step_of(step, at.x);
        float slope = step_of(step, step_of(step, step_of(step, own * own) * 0.2138671875f) + 1.59375f);
        float inner = step_of(step, slope * step_of(step, phi * step_of(step, 1.0f - phi)));
        d[i] = step_of(step, step_of(step, phi + step_of(step, own * inner)) * step_of(step, at.y));
    });
}
EXPORT(stepped_gelu_backward)

KERNEL(256) swiglu(const float* gate_up, u64 rows, u32 hidden, float* y) {
    EACH_ROW(row, rows) {
        const float* of = gate_up + row * 2 * hidden;
        auto fetch = [&](u32 c) { return make_float2(of[c], of[hidden + c]); };
        each_column(hidden, fetch, [&](u32 c, float2 at) {
            y[row * hidden + c] = at.x / (1.0f + exp_of(-at.x)) * at.y;
        });
    }
}
EXPORT(swiglu)

KERNEL(256) swiglu_backward(
    const float* gate_up, u64 rows, u32 hidden, const float* dy, float* d, Step step
) {
    EACH_ROW(row, rows) {
        const float *of = gate_up + row * 2 * hidden, *own = dy + row * hidden;
        float* to = d + row * 2 * hidden;
        auto fetch = [&](u32 c) { return Three32{of[c], of[hidden + c], own[c]}; };
        each_column(hidden, fetch, [&](u32 c, Three32 at) {
            float gate = at.x, up = at.y, own = at.z, s = 1.0f / (1.0f + exp_of(-gate));
            to[c + hidden] = step_of(step, own * (gate * s));
            to[c] = step_of(step, own * up * (s * fma_rn(gate, 1.0f - s, 1.0f)));
        });
    }
}
EXPORT(swiglu_backward)

DEVICE float stepped_sigmoid(Step step, float gate) {
    return step_of(step, 1.0f / step_of(step, step_of(step, exp_of(-gate)) + 1.0f));
}

KERNEL(256) stepped_swiglu(Step step, Step last, const float* gate_up, u64 rows, u32 hidden, float* y) {
    EACH_ROW(row, rows) {
        const float* of = gate_up + row * 2 * hidden;
        auto fetch = [&](u32 c) { return make_float2(of[c], of[hidden + c]); };
        each_column(hidden, fetch, [&](u32 c, float2 at) {
            float gate = step_of(step, at.x), up = step_of(step, at.y);
            float swish = step_of(step, gate * stepped_sigmoid(step, gate));
            y[row * hidden + c] = step_of(last, swish * up);
        });
    }
}
EXPORT(stepped_swiglu)

KERNEL(256) stepped_swiglu_backward(
    Step forward, Step step, const float* gate_up, u64 rows, u32 hidden, const float* dy, float* d
) {
    EACH_ROW(row, rows) {
        const float *of = gate_up + row * 2 * hidden, *own = dy + row * hidden;
        float* to = d + row * 2 * hidden;
        auto fetch = [&](u32 c) { return Three32{of[c], of[hidden + c], own[c]}; };
        each_column(hidden, fetch, [&](u32 c, Three32 at) {
            float gate = step_of(forward, at.x), up = step_of(step, at.y), own = step_of(step, at.z);
            float s = stepped_sigmoid(forward, gate);
            float y = step_of(forward, gate * s);
            float slope = step_of(step, s + step_of(step, y * step_of(step, 1.0f - s)));
            to[c + hidden] = step_of(step, own * y);
            to[c] = step_of(step, step_of(step, own * up) * slope);
        });
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
        auto place = [&](u32 c) { return of_row + c / half * 2 * half + c % half; };
        auto turned = [&](u32 c) {
            float low = *place(c), high = *(place(c) + half);
            float co = cos[angle + c % half], si = sin[angle + c % half] * sign;
            return make_float2(low * co - high * si, high * co + low * si);
        };
        each_column(heads * half, turned, [&](u32 c, float2 v) {
            *place(c) = v.x;
            *(place(c) + half) = v.y;
        });
    }
}
EXPORT(rotate)

// Signs and sums of a rotation by a Hadamard matrix, hadamard.rs's butterflies: a thread has those numbers of a
// row that are a multiple of `part` apart.
KERNEL(256) butterflies(float* x, const float* signs, u32 width, u32 part, u64 count) {
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        float* row = x + i / part * width;
        u32 first = i % part;
        for (u32 c = first; c < width; c += part) row[c] = row[c] * signs[c];
        for (u32 half = part; half < width; half *= 2)
            for (u32 c = first; c < width; c += part) {
                if (c / half % 2) continue;
                float a = row[c], b = row[c + half];
                row[c] = a + b;
                row[c + half] = a - b;
            }
    }
}
EXPORT(butterflies)

DEVICE float log_decay(float z, float rate) {
    return (smaller(z, 0.0f) - ln_of(1.0f + exp_of(-magnitude(z)))) * rate;
}

KERNEL(256) decay(const float* z, float rate, float least, float* alpha, u64 count) {
    auto made = [&](u64 i) {
        float log = log_decay(z[i], rate);
        return exp_of(log < least ? least : log);
    };
    each(count, made, [&](u64 i, float v) { alpha[i] = v; });
}
EXPORT(decay)

KERNEL(256) decay_backward(const float* z, float rate, float least, float* d, u64 count) {
    auto made = [&](u64 i) {
        float e = exp_of(-magnitude(z[i]));
        float share = (z[i] < 0.0f ? 1.0f : e) / (1.0f + e);
        share = log_decay(z[i], rate) < least ? 0.0f : share;
        return d[i] * (share * rate);
    };
    each(count, made, [&](u64 i, float v) { d[i] = v; });
}
EXPORT(decay_backward)

KERNEL(256) swish_gate(const float* x, const float* gates, u64 stride, u64 rows, u32 width, float* y) {
    EACH_ROW(row, rows) {
        const float* gate = gates + row * stride;
        auto fetch = [&](u32 c) { return make_float2(x[row * width + c], gate[c]); };
        each_column(width, fetch, [&](u32 c, float2 at) {
            y[row * width + c] = at.x * (at.y / (1.0f + exp_of(-at.y)));
        });
    }
}
EXPORT(swish_gate)

KERNEL(256) swish_gate_backward(
    const float* x, const float* gates, u64 stride, u64 rows, u32 width, float* d, float* d_gates
) {
    EACH_ROW(row, rows) {
        u64 first = row * width;
        auto fetch = [&](u32 c) { return Three32{gates[row * stride + c], d[first + c], x[first + c]}; };
        each_column(width, fetch, [&](u32 c, Three32 at) {
            float g = at.x, own = at.y, s = 1.0f / (1.0f + exp_of(-g));
            d_gates[row * stride + c] = own * at.z * (s * fma_rn(g, 1.0f - s, 1.0f));
            d[first + c] = own * (g * s);
        });
    }
}
EXPORT(swish_gate_backward)

struct AdamW {
    float keep, rise1, beta2, rise2, step, correction2, eps, grad_scale;
};

KERNEL(256) adamw(AdamW c, float* params, const float* grads, float* m, float* v, u64 count) {
    auto fetch = [&](u64 i) { return make_float4(params[i], grads[i], m[i], v[i]); };
    each(count, fetch, [&](u64 i, float4 at) {
        float g = at.y * c.grad_scale;
        float first = at.z + (g - at.z) * c.rise1;
        float second = at.w * c.beta2 + c.rise2 * g * g;
        float denominator = __fsqrt_rn(second) / c.correction2 + c.eps;
        params[i] = at.x * c.keep + c.step * first / denominator;
        m[i] = first;
        v[i] = second;
    });
}
EXPORT(adamw)

KERNEL(256) sgd(float keep, float step, float grad_scale, float* params, const float* grads, u64 count) {
    auto made = [&](u64 i) { return params[i] * keep + step * (grads[i] * grad_scale); };
    each(count, made, [&](u64 i, float v) { params[i] = v; });
}
EXPORT(sgd)

KERNEL(256) sgd_momentum(
    float keep, float step, float momentum, float grad_scale, float* params, const float* grads, float*
    buffer, u64 count
) {
    auto fetch = [&](u64 i) { return Three32{params[i], grads[i], buffer[i]}; };
    each(count, fetch, [&](u64 i, Three32 at) {
        float b = at.z * momentum + at.y * grad_scale;
        buffer[i] = b;
        params[i] = at.x * keep + step * b;
    });
}
EXPORT(sgd_momentum)

KERNEL(256) squared_error_backward(const float* a, const float* y, float scale, float* d, u64 count) {
    each(count, [&](u64 i) { return (a[i] - y[i]) * scale; }, [&](u64 i, float v) { d[i] = v; });
}
EXPORT(squared_error_backward)

// Rows of a table by token, positions added if there are some.
KERNEL(256) embed(
    const u32* tokens, u64 rows, const float* table, const float* positions, u32 sequence, u32 width, float* y
) {
    EACH_ROW(row, rows) {
        const float* from = table + (u64)tokens[row] * width;
        const float* position = positions + row % sequence * width;
        auto made = [&](u32 c) { return positions ? from[c] + position[c] : from[c]; };
        each_column(width, made, [&](u32 c, float v) { y[row * width + c] = v; });
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
    for (u64 b = thread_index(); b < blocks; b += thread_count()) {
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
