// The numbers of layers: exp, ln, tanh, erf and the normal distribution, rounding to bfloat16, and sums along
// a row.
//
// Operation by operation what exmy-train's `nn/elementary.rs`, `nn/steps.rs` and `nn/real.rs` do, which
// define the bits and say where the polynomials come from. A fused step is fma_rn, all else is rounded each
// time.
#pragma once
#include "prelude.cuh"

template <int N> DEVICE float polynomial(float x, const float (&c)[N]) {
    float sum = c[N - 1];
    EACH_ROUND
    for (int i = N - 2; i >= 0; i--) sum = fma_rn(sum, x, c[i]);
    return sum;
}

DEVICE float magnitude(float x) { return float_of(bits_of(x) & 0x7FFFFFFFu); }
DEVICE float with_sign_of(float x, float sign) {
    return float_of((bits_of(x) & 0x7FFFFFFFu) | (bits_of(sign) & 0x80000000u));
}
// The first if it is the larger, else the second, also when one of them is NaN.
DEVICE float larger(float a, float b) { return a > b ? a : b; }
DEVICE float smaller(float a, float b) { return a < b ? a : b; }
DEVICE float infinity() { return float_of(0x7F800000u); }

#define LN_2 0.693147180559945309417232121458f
#define LOG2_E 1.44269504088896340735992468100f

DEVICE float power_of_two(i32 n) { return float_of((u32)(n + 127) << 23); }

DEVICE float exp_of(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float shifter = 12582912.0f;
    float shifted = fma_rn(x, LOG2_E, shifter);
    float n = shifted - shifter;
    float r = fma_rn(n, -LN_2, x);
    r = fma_rn(n, 1.9046543e-9f, r);
    const float c[] = {0.49999994f, 0.1666652f, 0.041668396f, 0.008368797f, 0.0013814433f};
    float p = polynomial(r, c);
    float e = fma_rn(r * r, p, r) + 1.0f;
    i32 whole = (i32)(bits_of(shifted) - bits_of(shifter));
    i32 half = whole >> 1;
    return e * power_of_two(half) * power_of_two(whole - half);
}

DEVICE float ln_of(float x) {
    bool tiny = x < 1.17549435e-38f;
    float normal = tiny ? x * 8388608.0f : x;
    float offset = tiny ? -23.0f : 0.0f;
    u32 bits = bits_of(normal) - 0x3F2AAAABu;
    float e = (float)((i32)bits >> 23) + offset;
    float f = float_of((bits & 0x007FFFFFu) + 0x3F2AAAABu) - 1.0f;
    const float c[] = {0.33333215f, -0.24999797f, 0.20010406f, -0.16680487f,
                       0.1400587f,  -0.12184262f, 0.13984437f, -0.12891679f};
    float p = polynomial(f, c);
    float q = fma_rn(f, p, -0.5f);
    float result = fma_rn(e, LN_2, fma_rn(f * f, q, f));
    result = x < infinity() ? result : x;
    result = x == 0.0f ? -infinity() : result;
    return x < 0.0f ? float_of(CANONICAL_NAN) : result;
}

DEVICE float tanh_of(float x) {
    float t = magnitude(x), z = x * x;
    const float c[] = {-0.33333284f, 0.13331491f, -0.053743497f, 0.020650588f, -0.005717045f};
    float p = polynomial(z, c);
    float small = fma_rn(x * z, p, x);
    float large = 1.0f - 2.0f / (exp_of(t + t) + 1.0f);
    return with_sign_of(t < 0.625f ? small : large, x);
}

struct Normal {
    float cdf, pdf;
};

DEVICE Normal normal_of(float x) {
    float t = magnitude(x);
    float e = exp_of(-0.5f * t * t);
    t = t > 5.6f ? 5.6f : t;
    const float c[] = {0.5f,          -0.3989414f,    0.24998525f,   -0.13288254f,   0.0621605f,
                       -0.025894755f, 0.009474475f,   -0.002928328f, 0.00072271226f, -0.0001332308f,
                       1.689419e-5f,  -1.2970773e-6f, 4.5049234e-8f};
    float tail = e * polynomial(t, c);
    Normal normal = {x < 0.0f ? tail : 1.0f - tail, e * 0.3989423f};
    return normal;
}

// Rounding to bfloat16: what is added to the bits before the lower half is cut off, by the sign (a threshold
// from which the magnitude goes up, as its distance from 2^16), and 1 if an odd upper half adds one more. A
// mask of all bits: no rounding. NaN passes.
struct Step {
    u32 positive, negative, odd, mask;
};
// The odd neighbour of what is not exact.
#define TO_ODD 2

DEVICE float step_of(const Step& step, float x) {
    u32 bits = bits_of(x);
    u32 add = ((i32)bits < 0 ? step.negative : step.positive) + (bits >> 16 & step.odd & 1);
    u32 rounded = (bits + add) & step.mask;
    if (step.odd == TO_ODD) rounded = (bits & 0xFFFFu ? bits | 0x10000u : bits) & step.mask;
    return is_nan_bits(bits) ? x : float_of(rounded);
}

DEVICE bool is_none(const Step& step) { return step.mask == 0xFFFFFFFFu; }

// Sums along a row: element i in lane i mod 16, lanes folded by halves. Half a warp has a row.
#define LANES 16
#define ALL_LANES 0xFFFFFFFFu

DEVICE u32 lane_of_row() { return threadIdx.x % LANES; }

DEVICE float fold_sum(float x) {
    EACH_ROUND
    for (int half = LANES / 2; half > 0; half /= 2) x = x + __shfl_down_sync(ALL_LANES, x, half, LANES);
    return __shfl_sync(ALL_LANES, x, 0, LANES);
}

DEVICE double fold_sum(double x) {
    EACH_ROUND
    for (int half = LANES / 2; half > 0; half /= 2) x = x + __shfl_down_sync(ALL_LANES, x, half, LANES);
    return x;
}

DEVICE float fold_larger(float x) {
    EACH_ROUND
    for (int half = LANES / 2; half > 0; half /= 2)
        x = larger(x, __shfl_down_sync(ALL_LANES, x, half, LANES));
    return __shfl_sync(ALL_LANES, x, 0, LANES);
}

// The sum of term(i) over 0..width; all lanes get it. Threads without a row come with width 0.
template <class F> DEVICE float row_sum(u32 width, F term) {
    float sum = 0.0f;
    each_of<8, u32>(lane_of_row(), width, LANES, term, [&](u32, float x) { sum = sum + x; });
    return fold_sum(sum);
}

template <class F> DEVICE float row_largest(u32 width, F term) {
    float most = -infinity();
    each_of<16, u32>(lane_of_row(), width, LANES, term, [&](u32, float x) { most = larger(most, x); });
    return fold_larger(most);
}

// value = get(i), then put(i, value), over 0..width.
template <class Get, class Put> DEVICE void row_each(u32 width, Get get, Put put) {
    each_of<8, u32>(lane_of_row(), width, LANES, get, put);
}
