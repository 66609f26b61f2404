// What recipes do to tensors apart from block formats: the bits of exmy-train's recipe/mask.rs, clip.rs and
// hot.rs.
#include "layers/real.cuh"
#include "round.cuh"

KERNEL(256) mask(float* x, u64 count, u32 keep) {
    auto masked = [&](u64 i) {
        float rounded = nearest_bf16(x[i]);
        return is_nan_bits(bits_of(rounded)) ? rounded : float_of(bits_of(rounded) & keep);
    };
    each_of<4, u64>(thread_index(), count, thread_count(), masked, [&](u64 i, float v) { x[i] = v; });
}
EXPORT(mask)

KERNEL(256) times(float* x, u64 count, float factor) {
    auto product = [&](u64 i) { return x[i] * factor; };
    each_of<4, u64>(thread_index(), count, thread_count(), product, [&](u64 i, float v) { x[i] = v; });
}
EXPORT(times)

// Rounds to a format, in place; a warp has a row, a thread four neighbours of it at a time.
KERNEL(256) cast_rows(float* x, u64 stride, u64 rows, u32 cols, PARAMETERS(Rounder) rounder) {
    bool vector = ((u64)x | stride * 4) % 16 == 0;
    for (u64 row = thread_index() / 32; row < rows; row += thread_count() / 32) {
        float* of_row = x + row * stride;
#pragma unroll 2
        for (u32 c = threadIdx.x % 32 * 4; c < cols; c += 128) {
            u32 bits[4], words[4] = {0, 0, 0, 0}, count = cols - c < 4 ? cols - c : 4;
            if (vector && count == 4) {
                float4 four = *(const float4*)(of_row + c);
                bits[0] = bits_of(four.x), bits[1] = bits_of(four.y);
                bits[2] = bits_of(four.z), bits[3] = bits_of(four.w);
            } else {
                EACH_ROUND
                for (u32 i = 0; i < 4; i++) bits[i] = i < count ? bits_of(of_row[c + i]) : 0;
            }
            round_all<true, 4>(rounder, bits, words);
            if (vector && count == 4) {
                *(float4*)(of_row + c) =
                    make_float4(float_of(bits[0]), float_of(bits[1]), float_of(bits[2]), float_of(bits[3]));
            } else {
                EACH_ROUND
                for (u32 i = 0; i < 4; i++) {
                    if (i < count) of_row[c + i] = float_of(bits[i]);
                }
            }
        }
    }
}
EXPORT(cast_rows)

// Multiplies in place; a warp has a row.
KERNEL(256) scale_rows(float* x, u64 stride, u64 rows, u32 cols, float factor) {
    for (u64 row = thread_index() / 32; row < rows; row += thread_count() / 32) {
        float* of = x + row * stride;
        auto scaled = [&](u32 c) { return of[c] * factor; };
        each_of<4, u32>(threadIdx.x % 32, cols, 32, scaled, [&](u32 c, float v) { of[c] = v; });
    }
}
EXPORT(scale_rows)

// The largest magnitude of bfloat16 numbers that are finite, as its bits, into a 0.
KERNEL(256) finite_amax(const float* x, u64 count, u32* out) {
    u32 most = 0;
    auto fetch = [&](u64 i) { return bits_of(nearest_bf16(x[i])) & 0x7FFFFFFFu; };
    each_of<8, u64>(thread_index(), count, thread_count(), fetch, [&](u64, u32 bits) {
        if (bits < 0x7F800000u && bits > most) most = bits;
    });
    if (most) atomicMax(out, most);
}
EXPORT(finite_amax)

// The largest magnitude, as its bits; those of NaN are above all others.
KERNEL(256) amax_rows(const float* x, u64 stride, u64 rows, u32 cols, u32* out) {
    u32 most = 0;
    for (u64 row = thread_index() / 32; row < rows; row += thread_count() / 32) {
        auto fetch = [&](u32 c) { return bits_of(x[row * stride + c]) & 0x7FFFFFFFu; };
        each_of<8, u32>(threadIdx.x % 32, cols, 32, fetch, [&](u32, u32 bits) {
            if (bits > most) most = bits;
        });
    }
    if (most) atomicMax(out, most > 0x7F800000u ? CANONICAL_NAN : most);
}
EXPORT(amax_rows)

struct Clip {
    double max, min, place;
    u32 outer, infinite, inner, scaled;
    i32 exponent;
    u32 gap;
};

DEVICE double two_to(i32 n) { return __longlong_as_double((i64)(1023 + n) << 52); }

// `inner`: 0 leaves small numbers, 1 flushes, 2 rounds to multiples of `place`, 3 clamps. With `scaled` the
// tensor is multiplied by the largest power of two under which `amax` is at most `max`.
KERNEL(256) clip(float* x, u64 count, const u32* amax, Clip c) {
    i32 scale = 0;
    if (c.scaled && *amax) {
        double most = (double)float_of(*amax);
        scale = c.exponent - ((i32)(__double_as_longlong(most) >> 52) - 1023);
        if (most * two_to(scale) > c.max) scale -= 1;
    }
    double up = two_to(scale), down = two_to(-scale);
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        float value = nearest_bf16(x[i]);
        if (!is_nan_bits(bits_of(value))) {
            double y = (double)magnitude(value) * up;
            if (c.outer && y > c.max) {
                y = c.infinite ? (double)infinity() : c.max;
            } else if (y > 0.0 && y < c.min) {
                const double big = 4503599627370496.0;
                if (c.inner == 1) y = 0.0;
                if (c.inner == 2) y = (y / c.place + big - big) * c.place;
                if (c.inner == 3) y = c.min;
            }
            value = with_sign_of((float)(y * down), value);
        }
        x[i] = value;
    }
}
EXPORT(clip)

// Some columns of x, or of x - minus, side by side; a warp has a row.
KERNEL(256) take_columns(
    const float* x, u64 x_stride, const float* minus, u64 minus_stride, const u32* columns, u32 count,
    u64 rows, float* out, u64 out_stride
) {
    for (u64 row = thread_index() / 32; row < rows; row += thread_count() / 32) {
        for (u32 k = threadIdx.x % 32; k < count; k += 32) {
            u32 j = columns[k];
            float other = minus ? minus[row * minus_stride + j] : 0.0f;
            out[row * out_stride + k] = x[row * x_stride + j] - other;
        }
    }
}
EXPORT(take_columns)

// Adds columns of x to those of `out` that the list names; one that is named twice gets both in their order,
// so a thread has a row.
KERNEL(128) add_to_columns(
    const float* x, u64 x_stride, const u32* columns, u32 count, u64 rows, float* out, u64 out_stride
) {
    u64 row = thread_index();
    if (row >= rows) return;
    for (u32 k = 0; k < count; k++) {
        float* to = out + row * out_stride + columns[k];
        *to = *to + x[row * x_stride + k];
    }
}
EXPORT(add_to_columns)

// The sum of magnitudes or squares of each column, in f64, rows ascending.
KERNEL(64) column_sums(
    const float* x, u64 x_stride, const float* minus, u64 minus_stride, u64 rows, u32 cols, u32 squared,
    double* out
) {
    u64 c = thread_index();
    if (c >= cols) return;
    double sum = 0.0;
#pragma unroll 8
    for (u64 row = 0; row < rows; row++) {
        double value = (double)x[row * x_stride + c] - (minus ? (double)minus[row * minus_stride + c] : 0.0);
        sum = sum + (squared ? value * value : value < 0.0 ? -value : value);
    }
    out[c] = sum;
}
EXPORT(column_sums)
