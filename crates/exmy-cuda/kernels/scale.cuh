// How a block finds its scale, and what its elements become: the formulas of the library's `block::scale`,
// every line one operation in binary32, and the integer rules for powers of two. The parameters are made by
// `src/blocks/params.rs`.
#pragma once
#include "prelude.cuh"
#include "random.cuh"
#include "round.cuh"

// Blocks::rule
#define RULE_FLOOR 0
#define RULE_CEIL 1
#define RULE_EVEN 2
#define RULE_RCEIL 3
#define RULE_NEAREST 4
#define RULE_MAX_ABS 5
#define RULE_FOUR_OVER_SIX 6

// Blocks::exponent, ::round_up, ::infinity, ::smallest, ::zeros, ::order
#define EXPONENT_FIELD 1
#define EXPONENT_LOG2 2
#define UP_RECIPROCAL 1
#define UP_LOG2 2
#define INFINITY_LARGEST 1
#define INFINITY_AS_POWER 2
#define SMALLEST_SCALE 0
#define SMALLEST_MIN_NORMAL 1
#define SMALLEST_ONE 2
#define ZEROS_SIGNED 0
#define ZEROS_POSITIVE_INPUT 1
#define ZEROS_POSITIVE 2
#define ORDER_FOLDED 0
#define ORDER_DIVIDED 1
#define ORDER_TORCHAO 2

struct Blocks {
    Rounder element, scale, before;
    u32 rule, exponent, round_up, infinity, above_is_largest, smallest, flush, zeros, in_binary32, order;
    i32 emax, emin, bottom, top;
    u32 powers_alone, nan_scale, smallest_scale, half_place, threshold;
    u32 squared, has_tensor, tensor_in_image, multiplies, down;
    float largest, reciprocal, bound, lowest, highest;
    u32 rows, cols, block_rows, block_cols, blocks_across;
    u32 scale_bytes;
    u32 rotation, rotation_to_bf16, signs[4];
    float rotation_scale;
    // Whether the output is the transpose.
    u32 turned;
    u64 x_stride, out_stride;
    Philox random;
};

// Of the tensor; all 1 but `block` where it has no scale of its own.
struct Factors {
    float encode, decode, block, amax;
};

DEVICE float at_most_max(float x) { return x > float_of(0x7F7FFFFFu) ? float_of(0x7F7FFFFFu) : x; }

DEVICE Factors tensor_factors(const Blocks& b, float amax) {
    Factors f;
    f.amax = amax;
    if (b.order == ORDER_TORCHAO) {
        f.decode = amax / (b.bound * b.largest);
        f.encode = 1.0f / f.decode;
    } else {
        f.encode = amax == 0.0f ? 1.0f : at_most_max(b.largest * b.bound / amax);
        f.encode = f.encode == 0.0f ? 1.0f : f.encode;
        f.decode = 1.0f / f.encode;
    }
    f.block = f.encode * b.reciprocal;
    return f;
}

// Adds the largest magnitude that a block of threads has found, by one of its threads. Behind the factors are the
// largest so far and the number of blocks that have added theirs, 0 before; the last one writes the factors.
DEVICE void found_by_block(const Blocks& b, u32 most, u32 blocks, float* factors) {
    u32* found = (u32*)(factors + 4);
    atomicMax(found, most);
    __threadfence();
    if (atomicAdd(found + 1, 1u) + 1 < blocks) return;
    *(Factors*)factors = tensor_factors(b, float_of(atomicMax(found, 0u)));
}

// The largest magnitude that the threads of a block have seen; all have to come.
DEVICE u32 largest_of_block(u32 most) {
    SHARED u32 parts[32];
    for (int by = 16; by > 0; by /= 2) most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, by));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 i = 1; i < blockDim.x / 32; i++) most = max(most, parts[i]);
    }
    return most;
}

DEVICE Factors factors_of(const Blocks& b, const float* given) {
    if (given == nullptr) return Factors{1.0f, 1.0f, b.reciprocal, 1.0f};
    return Factors{given[0], given[1], given[2], given[3]};
}

// Exponent and significand of 24 bits of a positive number.
DEVICE i32 normalized(u32 bits, u32& significand) {
    u32 field = bits >> 23, fraction = bits & 0x007FFFFFu;
    if (field == 0) {
        u32 shift = __clz((i32)fraction) - 8;
        significand = fraction << shift;
        return -126 - (i32)shift;
    }
    significand = fraction | SMALLEST_NORMAL;
    return (i32)field - 127;
}

#define LN_2 0xB17217F7u

// Of how many places below 2^k the binary32 logarithm is k.
DEVICE u32 reach(i32 k) {
    i32 next = k < 0 ? -k : k - 1;
    i32 binade = (i32)(bits_of((float)next) >> 23) - 127;
    u32 reach = (LN_2 >> 1) >> ((31 - binade) & 31);
    return next > 0 ? reach : 0;
}

DEVICE i32 floor_log2(u32 bits) {
    u32 significand;
    i32 e = normalized(bits, significand);
    return (1u << 24) - significand <= reach(e + 1) ? e + 1 : e;
}

DEVICE i32 ceil_log2(u32 bits) {
    u32 significand;
    i32 k = normalized(bits, significand);
    u64 j = significand - SMALLEST_NORMAL;
    if (k == -1 || k == 0) return k + (j > 0);
    u32 of = k < -1 ? (u32)(-k - 1) : (u32)k;
    u32 binade = 31 - __clz((i32)of);
    return j <= ((u64)LN_2 << binade >> 33) ? k : k + 1;
}

// The exponent of a scale by the rules for powers of two, or that it is NaN.
#define POWER_OF_NAN 200000
DEVICE i32 power_of_scale(const Blocks& b, u32 amax) {
    const i32 zero = -100000, infinite = 100000;
    if (amax > INFINITE) return POWER_OF_NAN;
    i32 exponent;
    if (b.rule == RULE_RCEIL && b.round_up == UP_RECIPROCAL) {
        u32 bits = bits_of(float_of(amax) * b.reciprocal);
        u32 field = bits >> 23, fraction = bits & 0x007FFFFFu;
        exponent = (i32)field - 127 + (fraction != 0);
        if (field == 0) exponent = fraction > 0x00400000u ? -126 : -127;
        if (field == 255) exponent = infinite;
    } else if (b.rule == RULE_RCEIL && b.round_up == UP_LOG2) {
        u32 ratio = bits_of(float_of(amax) / b.largest);
        exponent = ratio == 0 ? zero : ratio == INFINITE ? infinite : ceil_log2(ratio);
    } else if (b.exponent == EXPONENT_FIELD) {
        u32 bits = amax;
        if (b.rule == RULE_EVEN) bits += b.half_place;
        if (b.rule == RULE_CEIL) bits += 0x007FFFFFu;
        i32 field = (i32)(bits >> 23);
        exponent = field - 127 - b.emax;
        if (amax == INFINITE || (field == 255 && b.rule == RULE_EVEN)) exponent = infinite;
    } else if (amax == 0) {
        exponent = b.exponent == EXPONENT_LOG2 ? -126 - b.emax : zero;
    } else if (amax == INFINITE) {
        exponent = infinite;
    } else {
        u32 m;
        i32 e = normalized(amax, m);
        if (b.exponent == EXPONENT_LOG2 && floor_log2(amax) > e) {
            e += 1;
            m = SMALLEST_NORMAL;
        }
        bool up = false;
        if (b.rule == RULE_CEIL) up = m > SMALLEST_NORMAL;
        if (b.rule == RULE_EVEN) up = b.half_place != 0 && m + b.half_place >= 1u << 24;
        if (b.rule == RULE_RCEIL) up = m > b.threshold;
        exponent = e - b.emax + up;
    }
    if (exponent == infinite) {
        if (b.infinity == INFINITY_LARGEST) exponent = b.top;
        else if (b.infinity == INFINITY_AS_POWER) exponent = 128 - b.emax;
        else return POWER_OF_NAN;
    }
    if (exponent != zero && exponent > b.top && b.powers_alone && !b.above_is_largest) return POWER_OF_NAN;
    return exponent < b.bottom ? b.bottom : exponent > b.top ? b.top : exponent;
}

DEVICE u32 power_code(const Blocks& b, u32 amax) {
    i32 exponent = power_of_scale(b, amax);
    if (exponent == POWER_OF_NAN) return b.nan_scale;
    if (b.scale.man_bits == 0 && !(b.scale.is & HAS_ZERO)) return (u32)(exponent - b.scale.lsb);
    return bounded<false>(b.scale, false,
                          round_magnitude(b.scale, TIES_TO_EVEN, false, 1, exponent, false, 0));
}

// A block's scale, ready for its elements.
struct Scale {
    u32 code;
    // The value of the code.
    float value;
    // What elements are multiplied by, where they are.
    float factor;
    // The power of two that elements are divided by.
    i32 power;
    bool nan, exactly, flushes;
};

// What a scale of full precision becomes, by `nearest` and `4over6`.
DEVICE Scale full_scale(const Blocks& b, const Factors& f, float d) {
    Scale s;
    if (b.scale.kind == KIND_NEAREST) {
        s.value = float_of(round_nearest<true>(b.scale, bits_of(d)));
        s.code = round_nearest<false>(b.scale, bits_of(d));
    } else {
        s.code = round_general<false>(b.scale, bits_of(d), 0, 0);
        s.value = float_of(decode_code(b.scale, s.code));
    }
    s.factor = b.order == ORDER_TORCHAO ? f.encode / s.value : at_most_max(1.0f / (s.value * f.decode));
    s.nan = is_nan_bits(bits_of(s.value));
    s.power = 0;
    s.exactly = false;
    s.flushes = false;
    return s;
}

// What the rule `nearest` rounds to the scale's format.
DEVICE float wanted_scale(const Blocks& b, const Factors& f, float a) {
    if (b.order == ORDER_FOLDED) return at_most_max(a * f.block);
    if (b.order == ORDER_DIVIDED) return at_most_max(a / b.largest * f.encode);
    float d = a / b.largest / f.decode;
    d = d < b.lowest ? b.lowest : d;
    return d > b.highest ? b.highest : d;
}

// Whether all elements of a block with this largest magnitude become zeros.
DEVICE bool flushes_block(const Blocks& b, u32 amax) {
    bool subnormal = amax > 0 && amax < SMALLEST_NORMAL;
    return b.flush && subnormal && (b.exponent != EXPONENT_LOG2 || floor_log2(amax) < -126);
}

// The scale of a block whose largest magnitude, or largest finite one under `max-abs`, has these bits.
DEVICE Scale block_scale(const Blocks& b, const Factors& f, u32 amax) {
    Scale s;
    if (b.rule < RULE_NEAREST) {
        s.code = power_code(b, amax);
        s.value = float_of(decode_code(b.scale, s.code));
        s.nan = is_nan_bits(bits_of(s.value));
        u32 significand;
        s.power = s.nan ? 0 : normalized(bits_of(s.value), significand);
        if (b.smallest != SMALLEST_SCALE && s.code == b.smallest_scale) {
            s.power = b.smallest == SMALLEST_ONE ? 0 : -126;
        }
        s.exactly = b.multiplies && s.power >= -127 && s.power <= 127;
        u32 field = (u32)(127 - s.power);
        s.factor = float_of(field == 0 ? 0x00400000u : field << 23);
    } else {
        float a = float_of(amax);
        s = full_scale(b, f, b.rule == RULE_NEAREST ? wanted_scale(b, f, a) : a);
    }
    s.flushes = flushes_block(b, amax);
    return s;
}

// x / y exactly, then rounded once, for a scale y: the library's `encode_quotient`.
template <bool VALUE> RARELY u32 round_quotient(const Rounder& r, u32 x, u32 y, u32 word) {
    const Edge* edges = VALUE ? r.values : r.codes;
    u32 a = x & ~SIGN, d = y & ~SIGN;
    bool negative = (x ^ y) >> 31;
    if (d > INFINITE) return edges[0].nan;
    if (a > INFINITE) return edges[x >> 31].nan;
    if (d == 0) return edges[0].exact_zero;
    if (d == INFINITE) {
        if (a == 0) return edges[0].exact_zero;
        a = bits_of(1.0f);
        d = a;
    }
    if (a == INFINITE) return edges[negative].infinity;
    if (a == 0) return edges[negative].exact_zero;
    u32 m, n;
    i32 e = normalized(a, m), g = normalized(d, n);
    // 40 bits more than the quotient of two numbers of 24 bits has before the point.
    u64 dividend = (u64)m << 40, quotient = dividend / n;
    bool sticky = quotient * n != dividend;
    u64 magnitude = round_magnitude(r, r.mode, negative, quotient, e - g - 40, sticky, word);
    return bounded<VALUE>(r, negative, magnitude);
}

// x / scale rounded without an upper end, each line one binary32 operation, as microxcaling does it.
template <bool VALUE> RARELY u32 round_in_binary32(const Blocks& b, u32 x, i32 power, u32 word) {
    const Rounder& r = b.element;
    float y = float_of(x) / scaled_by(1.0f, power) + 0.0f;
    u32 bits = bits_of(y), a = bits & ~SIGN;
    if (a >= INFINITE || a == 0) return round_general<VALUE>(r, is_nan_bits(x) ? x : bits, 0, word);
    i32 place = floor_log2(a);
    place = (place > b.emin ? place : b.emin) - r.man_bits;
    float units = scaled_by(float_of(a), -place);
    u32 whole;
    if (r.mode == TIES_TO_AWAY) {
        whole = __float2uint_rz(units + 0.5f);
    } else if (r.mode == TOWARD_ZERO) {
        whole = __float2uint_rz(units);
    } else {
        u32 below = __float2uint_rz(units);
        bool tie = units - 0.5f == (float)below && below % 2 == 0;
        whole = __float2uint_rz(units + 0.5f) - tie;
    }
    bool negative = bits >> 31;
    if (whole == 0) return (VALUE ? r.values : r.codes)[negative].exact_zero;
    return bounded<VALUE>(r, negative, round_magnitude(r, r.mode, negative, whole, place, false, word));
}

// a * b, with the NaN that x86 makes of it: the first NaN operand, or a negative one.
DEVICE u32 product_bits(u32 a, float b) {
    u32 y = bits_of(float_of(a) * b);
    if (!is_nan_bits(y)) return y;
    if (is_nan_bits(a)) return a | 0x00400000u;
    return is_nan_bits(bits_of(b)) ? bits_of(b) | 0x00400000u : 0xFFC00000u;
}

DEVICE u32 without_sign_of_zero(u32 x) { return x == SIGN ? 0 : x; }

// N elements of a block to their codes, or to the bits of the codes' values.
template <bool VALUE, int N> DEVICE void round_elements(const Blocks& b, const Scale& s, u32* x,
                                                        const u32* words) {
    if (s.flushes) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] &= SIGN;
    }
    if (b.rule == RULE_MAX_ABS) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = round_quotient<VALUE>(b.element, x[i], bits_of(s.value), words[i]);
        return;
    }
    if (b.rule >= RULE_NEAREST) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            u32 y = product_bits(x[i], s.factor);
            float z = float_of(y);
            y = z > b.largest ? bits_of(b.largest) : z < -b.largest ? bits_of(-b.largest) : y;
            x[i] = b.zeros == ZEROS_SIGNED ? y : without_sign_of_zero(y);
        }
        round_all<VALUE, N>(b.element, x, words);
        return;
    }
    if (s.nan) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            // The quotient of binary32 keeps the sign of a NaN.
            bool negative = b.in_binary32 && is_nan_bits(x[i]) && x[i] >> 31;
            x[i] = (VALUE ? b.element.values : b.element.codes)[negative].nan;
        }
        return;
    }
    if (b.zeros != ZEROS_SIGNED) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = without_sign_of_zero(x[i]);
    }
    if (b.in_binary32) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = round_in_binary32<VALUE>(b, x[i], s.power, words[i]);
    } else if (s.exactly) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = is_nan_bits(x[i]) ? x[i] : bits_of(float_of(x[i]) * s.factor);
        round_all<VALUE, N>(b.element, x, words);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = round_general<VALUE>(b.element, x[i], s.power, words[i]);
    }
    if (b.zeros == ZEROS_POSITIVE) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = x[i] == (VALUE ? SIGN : b.element.codes[1].exact_zero) ? 0 : x[i];
    }
}

// The image of an element's value.
DEVICE float image_of(const Blocks& b, const Scale& s, const Factors& f, u32 value) {
    float x = float_of(value);
    if (!b.tensor_in_image) return canonical(x * s.value);
    return canonical(b.order == ORDER_TORCHAO ? x * (s.value * f.decode) : x * s.value * f.decode);
}

DEVICE void store_scale(const Blocks& b, void* scales, u64 at, u32 code) {
    if (scales == nullptr) return;
    if (b.scale_bytes == 1) ((u8*)scales)[at] = (u8)code;
    else if (b.scale_bytes == 2) ((u16*)scales)[at] = (u16)code;
    else ((u32*)scales)[at] = code;
}

// What counts toward a block's largest magnitude.
DEVICE u32 magnitude_of(const Blocks& b, u32 x) {
    u32 a = x & ~SIGN;
    return b.rule == RULE_MAX_ABS && a >= INFINITE ? 0 : a;
}
