// A binary32 number to a number format: the rounding core of the library's `round::engine` in 64-bit
// integers, and three short ways for what most formats and modes need. The parameters of a format, its mode
// and its policy are one structure, made by `src/rounder.rs`, so one kernel serves all formats.
//
// A number goes to the code of its magnitude, counted from zero on the format's unbounded grid, and only then
// to what the policy makes of it. Special cases (overflow, infinity, NaN, zero) are codes that the library
// has been asked for, one for each sign.
#pragma once
#include "prelude.cuh"

#define SIGN 0x80000000u
#define INFINITE 0x7F800000u
#define SMALLEST_NORMAL 0x00800000u

// Rounder::kind
#define KIND_GENERAL 0
#define KIND_NEAREST 1
#define KIND_DITHER 2
#define KIND_CUT 3
#define KIND_NONE 4

// Rounder::mode
#define TIES_TO_EVEN 0
#define TIES_TO_AWAY 1
#define TIES_TO_ZERO 2
#define TOWARD_ZERO 3
#define TOWARD_POSITIVE 4
#define TOWARD_NEGATIVE 5
#define AWAY_FROM_ZERO 6
#define TO_ODD 7
#define STOCHASTIC_A 8
#define STOCHASTIC_B 9
#define STOCHASTIC_C 10

// Rounder::is
#define HAS_ZERO 1
#define FIELD_ZERO_IS_LOW 2
#define HAS_NORMAL 4
#define UNSIGNED 8
#define TWOS_COMPLEMENT 16
#define NAN_IS_NEGATIVE_ZERO 32
#define ONE_ZERO 64

// Rounder::flush, ::operands, ::sign_rule
#define FLUSH_INPUT 1
#define FLUSH_CANDIDATES 2
#define FLUSH_OUTPUT 3
#define READ_ZERO 1
#define READ_POSITIVE_ZERO 2
#define READ_AWAY 3
#define SIGN_MAGNITUDE 1
#define SIGN_RELU 2

// Rounder::payload; 0 forgets it.
#define PAYLOAD_QUIET 1
#define PAYLOAD_CUT 2

// What one sign's special cases become: codes, or bits of their values.
struct Edge {
    u32 over, infinity, nan, zero, exact_zero;
};

struct Rounder {
    u32 kind, mode, random_bits, is;
    // Whether every value is one of bfloat16.
    u32 is_short;
    i32 man_bits, lsb;
    u32 flush, operands, sign_rule, payload;
    u32 min_normal, max_code, infinity_magnitude;
    u32 mask, magnitude_mask, sign_bit;
    // Magnitudes from here on are too large, by sign.
    u32 beyond[2];
    Edge codes[2], values[2];
    // Of the short ways; see the library's `slice::fast`.
    u32 places, normal, rebias, add[2], shifted_add[2], rest, dither_rebias, keep, largest, over;
    float unit, magic, clamp[2];
    u32 nan_code[2], nan_value[2];
};

// Whether a magnitude goes to its upper neighbour; the fraction is `bits` of 2^64, and something more if
// sticky.
DEVICE bool goes_up(u32 mode, u32 n, bool negative, bool odd, u64 bits, bool sticky, u32 word) {
    const u64 half = 1ull << 63;
    bool inexact = bits != 0 || sticky;
    switch (mode) {
    case TIES_TO_EVEN: return bits > half || (bits == half && (sticky || odd));
    case TIES_TO_AWAY: return bits >= half;
    case TIES_TO_ZERO: return bits > half || (bits == half && sticky);
    case TOWARD_ZERO: return false;
    case TOWARD_POSITIVE: return inexact && !negative;
    case TOWARD_NEGATIVE: return inexact && negative;
    case AWAY_FROM_ZERO: return inexact;
    case TO_ODD: return inexact && !odd;
    default: {
        u64 random = word >> (32 - n), top = bits >> (64 - n), next = bits >> (63 - n) & 1;
        if (mode == STOCHASTIC_A) return top + random >= 1ull << n;
        if (mode == STOCHASTIC_B) return (top << 1 | next) + 2 * random + 1 >= 2ull << n;
        bool rest = (bits << n << 1) != 0 || sticky;
        bool up = next == 1 && (rest || (top & 1) == 1);
        return top + up + random >= 1ull << n;
    }
    }
}

// The magnitude's code of `significand * 2^exponent`, and something more if sticky, on the grid without an
// end.
RARELY u64 round_magnitude(const Rounder& r, u32 mode, bool negative, u64 significand, i32 exponent,
                           bool sticky, u32 word) {
    i32 last = r.lsb;
    u64 whole = 0, fraction = 0;
    if (significand == 0) {
        sticky = true;
    } else {
        i32 zeros = __clzll((i64)significand);
        u64 w = significand << zeros;
        i32 top = exponent + 63 - zeros - r.man_bits;
        last = top > r.lsb ? top : r.lsb;
        i32 shift = last - exponent + zeros;
        if (shift < 64) {
            whole = w >> shift;
            fraction = w << (64 - shift);
        } else if (shift == 64) {
            fraction = w;
        } else if (shift < 128) {
            fraction = w >> (shift - 64);
            sticky = sticky || (w << (128 - shift)) != 0;
        } else {
            sticky = true;
        }
    }
    bool has_zero = r.is & HAS_ZERO, low = r.is & FIELD_ZERO_IS_LOW;
    u64 unit = 1ull << r.man_bits, first = unit + has_zero;
    bool below_normal = (r.is & HAS_NORMAL) && last == r.lsb && whole < unit + (has_zero && !low);
    bool one_gap = low ? below_normal && r.flush == FLUSH_CANDIDATES : last == r.lsb && whole < first;
    u64 magnitude = 0;
    if (!one_gap) {
        u64 steps = (u64)(u32)(last - r.lsb);
        u64 lower = (steps << r.man_bits) + (whole - (low ? 0 : unit));
        magnitude = lower + goes_up(mode, r.random_bits, negative, lower & 1, fraction, sticky, word);
    } else if (has_zero) {
        // Between zero and the next value there is nothing: the number's place in that gap is a quotient, of
        // which the divisor has at most 31 bits.
        u64 gap = low ? unit : first;
        u64 high = whole << 32 | fraction >> 32;
        u64 q = high / gap;
        u64 rest = (high - q * gap) << 32 | (fraction & 0xFFFFFFFFu);
        u64 p = rest / gap;
        sticky = sticky || rest - p * gap != 0;
        bool up = goes_up(mode, r.random_bits, negative, false, q << 32 | p, sticky, word);
        magnitude = up ? (low ? unit : 1) : 0;
    }
    if (below_normal && has_zero) {
        if (r.flush == FLUSH_INPUT) magnitude = 0;
        if (r.flush == FLUSH_OUTPUT && magnitude < r.min_normal) magnitude = 0;
    }
    return magnitude;
}

// `x * 2^k` where that is exact; k is from -252 to 252.
DEVICE float scaled_by(float x, i32 k) {
    i32 half = k >> 1;
    return x * float_of((u32)(half + 127) << 23) * float_of((u32)(k - half + 127) << 23);
}

// The value of a magnitude's code that is a number's.
DEVICE float magnitude_value(const Rounder& r, u32 magnitude) {
    if ((r.is & HAS_ZERO) && magnitude == 0) return 0.0f;
    u32 field = (r.is & TWOS_COMPLEMENT) ? 0 : magnitude >> r.man_bits;
    u32 first = (r.is & FIELD_ZERO_IS_LOW) ? 1 : 0;
    u32 significand = magnitude, above = 0;
    if (field >= first && !(r.is & TWOS_COMPLEMENT)) {
        above = field - first;
        significand = (magnitude & ((1u << r.man_bits) - 1)) | 1u << r.man_bits;
    }
    return scaled_by((float)significand, r.lsb + (i32)above);
}

// The code, or the bits of the value, of a magnitude on the grid without an end.
template <bool VALUE> DEVICE u32 bounded(const Rounder& r, bool negative, u64 magnitude) {
    const Edge& edge = VALUE ? r.values[negative] : r.codes[negative];
    if (magnitude == 0 && (r.is & HAS_ZERO)) return edge.zero;
    if (magnitude >= r.beyond[negative]) return edge.over;
    u32 code = (u32)magnitude;
    if (VALUE) return bits_of(magnitude_value(r, code)) | (negative ? SIGN : 0);
    if (negative) return (r.is & TWOS_COMPLEMENT) ? (0u - code) & r.mask : code | r.sign_bit;
    return code;
}

RARELY u32 decode_code(const Rounder& r, u32 code);

// What becomes of a NaN whose payload is kept: its top bits, made quiet or not, behind the sign that the result has
// without them.
template <bool VALUE> RARELY u32 kept_nan(const Rounder& r, u32 x) {
    u32 payload = x & 0x007FFFFFu;
    u32 top = r.man_bits > 23 ? payload << (r.man_bits - 23) : payload >> (23 - r.man_bits);
    if (r.payload == PAYLOAD_QUIET) top |= 1u << (r.man_bits - 1);
    u32 code = r.infinity_magnitude | top | (r.codes[x >> 31].nan & r.sign_bit);
    return VALUE ? decode_code(r, code) : code;
}

// Any format, mode and policy: `x * 2^-scale`, exactly and then rounded once.
template <bool VALUE> RARELY u32 round_general(const Rounder& r, u32 x, i32 scale, u32 word) {
    bool negative = x >> 31;
    u32 a = x & ~SIGN;
    const Edge* edges = VALUE ? r.values : r.codes;
    if (a > INFINITE) return r.payload ? kept_nan<VALUE>(r, x) : edges[negative].nan;
    bool subnormal = a != 0 && a < SMALLEST_NORMAL;
    u32 mode = r.mode;
    if (subnormal) {
        if (r.operands == READ_ZERO) a = 0;
        if (r.operands == READ_POSITIVE_ZERO) {
            a = 0;
            negative = false;
        }
        if (r.operands == READ_AWAY) mode = AWAY_FROM_ZERO;
    }
    if (r.sign_rule == SIGN_MAGNITUDE) negative = false;
    if (r.sign_rule == SIGN_RELU && negative) {
        a = 0;
        negative = false;
    }
    if (a == INFINITE) return edges[negative].infinity;
    if (a == 0) return edges[negative].exact_zero;
    u32 field = a >> 23;
    u32 significand = (a & 0x007FFFFFu) | (field ? SMALLEST_NORMAL : 0);
    i32 exponent = (i32)(field ? field : 1) - 150 - scale;
    return bounded<VALUE>(r, negative,
                          round_magnitude(r, mode, negative, significand, exponent, false, word));
}

// The smaller of a limit and a magnitude; NaN if that is NaN.
DEVICE u32 at_most(float limit, u32 magnitude) {
    return limit < float_of(magnitude) ? bits_of(limit) : magnitude;
}

// To nearest even under the usual policies: the library's `slice::fast::nearest`.
template <bool VALUE> DEVICE u32 round_nearest(const Rounder& r, u32 x) {
    u32 magnitude = x & ~SIGN, sign = x & SIGN;
    u32 y = at_most(r.clamp[0], magnitude);
    bool odd = y & (1u << r.places);
    if (VALUE) {
        u32 value = (y + (odd ? r.add[1] : r.add[0])) & r.keep;
        float sum = float_of(y) + r.magic;
        value = y < r.normal ? bits_of(sum - r.magic) : value;
        value = value > r.largest ? r.over : value;
        value |= (r.is & ONE_ZERO) && value == 0 ? 0 : sign;
        return magnitude > INFINITE ? r.nan_value[sign != 0] : value;
    }
    u32 code = (y + (odd ? r.shifted_add[1] : r.shifted_add[0])) >> r.places;
    float sum = float_of(y) + r.magic;
    code = y < r.normal ? bits_of(sum) - bits_of(r.magic) : code;
    code |= (r.is & ONE_ZERO) && code == 0 ? 0 : (sign ? r.sign_bit : 0);
    return magnitude > INFINITE ? r.nan_code[sign != 0] : code;
}

// Stochastic, variant A with few bits: the library's `slice::fast::stochastic`.
template <bool VALUE> DEVICE u32 round_dither(const Rounder& r, u32 x, u32 word) {
    u32 magnitude = x & ~SIGN, sign = x & SIGN;
    u32 y = at_most(r.clamp[0], magnitude);
    u32 random = word >> (32 - r.random_bits);
    float sum = float_of(y) + r.magic;
    bool went_up = sum - r.magic > float_of(y);
    u32 small = bits_of(sum) - bits_of(r.magic) - (went_up ? 1 : 0);
    if (VALUE) {
        bool is_small = y < (r.rebias == 0 ? 0 : r.normal);
        float low = (float)((small + random) >> r.random_bits) * r.unit;
        u32 value = (y + (random << r.rest)) & r.keep;
        value = is_small ? bits_of(low) : value;
        value = (value > r.largest ? r.over : value) | sign;
        return magnitude > INFINITE ? r.nan_value[sign != 0] : value;
    }
    u32 cut = y < r.normal ? small : (y >> r.rest) - r.dither_rebias;
    u32 code = ((cut + random) >> r.random_bits) | (sign ? r.sign_bit : 0);
    return magnitude > INFINITE ? r.nan_code[sign != 0] : code;
}

// A cast to fewer bits and the exponents of binary32: something is added, the rest is cut off; NaN stays.
DEVICE u32 cut(const Rounder& r, u32 x) {
    u32 half = 1u << (r.places - 1), odd = x >> r.places & 1;
    u32 add = r.mode == TIES_TO_EVEN ? half - 1 + odd : r.mode == TIES_TO_AWAY ? half : 0;
    return is_nan_bits(x) ? x : (x + add) & r.keep;
}

// `N` numbers at a time, so that the way is chosen once.
template <bool VALUE, int N> DEVICE void round_all(const Rounder& r, u32* x, const u32* words) {
    switch (r.kind) {
    case KIND_NEAREST:
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = round_nearest<VALUE>(r, x[i]);
        break;
    case KIND_DITHER:
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = round_dither<VALUE>(r, x[i], words[i]);
        break;
    case KIND_CUT:
        // Values alone: the host does not ask for codes in this way.
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = is_nan_bits(x[i]) ? r.nan_value[x[i] >> 31] : cut(r, x[i]);
        break;
    case KIND_GENERAL:
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = round_general<VALUE>(r, x[i], 0, words[i]);
        break;
    default: break;
    }
}

// The bits of the value of a code, NaN with its sign.
RARELY u32 decode_code(const Rounder& r, u32 code) {
    code &= r.mask;
    u32 magnitude = code & r.magnitude_mask;
    bool negative = code != magnitude;
    u32 sign = negative ? SIGN : 0;
    if (r.is & TWOS_COMPLEMENT) {
        u32 size = negative ? r.sign_bit - magnitude : magnitude;
        return bits_of(scaled_by((float)size, r.lsb)) | sign;
    }
    if (negative && magnitude == 0 && (r.is & NAN_IS_NEGATIVE_ZERO)) return CANONICAL_NAN;
    if (magnitude > r.max_code) return (magnitude == r.infinity_magnitude ? INFINITE : CANONICAL_NAN) | sign;
    if (magnitude == 0 && (r.is & HAS_ZERO) && (r.is & ONE_ZERO)) return 0;
    return bits_of(magnitude_value(r, magnitude)) | sign;
}

// The nearest bfloat16 of a number, ties to even, NaN as the library's conversion has it (0x7FC0 with the
// sign).
DEVICE u16 to_bf16(u32 x) {
    u32 rounded = (x + 0x7FFFu + (x >> 16 & 1)) >> 16;
    return (u16)(is_nan_bits(x) ? 0x7FC0u | (x >> 16 & 0x8000u) : rounded);
}

// Two numbers that are not NaN as bfloat16 in one word, the first one low. A NaN becomes some NaN.
DEVICE u32 two_bf16(u32 x, u32 y) {
#ifdef EMULATED
    return to_bf16(x) | (u32)to_bf16(y) << 16;
#else
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(float_of(y)), "f"(float_of(x)));
    return both;
#endif
}
