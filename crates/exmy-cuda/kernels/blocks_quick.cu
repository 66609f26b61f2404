// Images of the block formats that are common in training, as fast as memory gives the numbers: saturating
// elements with a sign and a zero of each, rounded to nearest, toward zero or stochastically, under scales
// that are all powers of two or the nearest value, behind a cast to the exponents of binary32. All else goes
// to `blocks.cu`, which has the same bits; `src/blocks/quick.rs` decides.
//
// Blocks along a row are shared by adjacent lanes with eight numbers each; of blocks and tiles of 16 or 32
// rows a thread has the rows of one column in registers. A rotation is done where the numbers are.
#include "prelude.cuh"
#include "random.cuh"
#include "rotate.cuh"
#include "round.cuh"
#include "scale.cuh"

// What is chosen once for all elements of a thread: to nearest even or stochastically with zeros of both
// signs, and either with what is rarer, which is the other modes, conventions of zeros and flushing. Kernels
// with random words are their own: without them a thread has fewer registers, and a processor more threads.
#define WAY_EVEN 0
#define WAY_OTHER 1
#define WAY_RANDOM 2
#define WAY_RANDOM_OTHER 3
#define IS_RANDOM(way) ((way) >= WAY_RANDOM)
#define IS_RARE(way) ((way) == WAY_OTHER || (way) == WAY_RANDOM_OTHER)

DEVICE bool is_usual(const Blocks& b) {
    bool nearest = b.element.kind == KIND_DITHER || b.element.mode == TIES_TO_EVEN;
    return nearest && b.zeros == ZEROS_SIGNED && !b.flush;
}

// The magnitude `a`, at most the largest value, rounded to the format's grid. Adding and subtracting a power
// of two whose last place is the grid's unit there rounds to nearest even; the other modes correct what that
// did.
template <int WAY> DEVICE float on_grid(const Rounder& r, float a) {
    float power = float_of(max(bits_of(a) & INFINITE, r.normal) + (r.places << 23));
    float z = (a + power) - power;
    if (WAY == WAY_EVEN || r.mode == TIES_TO_EVEN) return z;
    float rest = a - z, half = power * float_of((127u - 24) << 23);
    if (r.mode == TIES_TO_AWAY) return rest == half ? z + (half + half) : z;
    return rest < 0.0f ? z - (half + half) : z;
}

// The same stochastically, variant A. The power's last place is as many bits below the grid's unit as there
// are random bits: those are added to the sum, and their places cut off.
DEVICE float on_grid_by_word(const Rounder& r, float a, u32 word) {
    float power = float_of(max(bits_of(a) & INFINITE, r.normal) + (r.rest << 23));
    u32 sum = bits_of(add_rz(power, a)) + (word >> (32 - r.random_bits));
    return float_of(sum & (0xFFFFFFFFu << r.random_bits)) - power;
}

// What the elements of a block are multiplied by before they are rounded and after.
struct QuickScale {
    float factor, value;
    bool nan, flushes;
};

// As `block_scale` has it, of scales that are all powers of two, or that `round_nearest` rounds, or that are
// binary32. Every branch is short, so that nothing is called and few registers are taken.
DEVICE QuickScale quick_scale(const Blocks& b, const Factors& f, u32 amax) {
    QuickScale s;
    if (b.rule < RULE_NEAREST) {
        i32 power = power_of_scale(b, amax);
        s.nan = power == POWER_OF_NAN;
        s.value = float_of(power == -127 ? 0x00400000u : (u32)(power + 127) << 23);
        if (b.smallest != SMALLEST_SCALE && power == b.bottom) power = b.smallest == SMALLEST_ONE ? 0 : -126;
        s.factor = float_of(power == 127 ? 0x00400000u : (u32)(127 - power) << 23);
    } else {
        s.value = wanted_scale(b, f, float_of(amax));
        if (b.scale.kind == KIND_NEAREST) s.value = float_of(round_nearest<true>(b.scale, bits_of(s.value)));
        s.factor = at_most_max(1.0f / (s.value * f.decode));
        s.nan = is_nan_bits(bits_of(s.value));
    }
    s.flushes = flushes_block(b, amax);
    return s;
}

// The image of an element; none in a block is NaN unless all are.
template <int WAY> DEVICE u32 image_quickly(const Blocks& b, const QuickScale& s, float decode, u32 x,
                                            u32 word) {
    const Rounder& r = b.element;
    float y = float_of(x) * s.factor, a = fminf(fabsf(y), float_of(r.largest));
    float z = IS_RANDOM(WAY) ? on_grid_by_word(r, a, word) : on_grid<WAY>(r, a);
    u32 sign = x & SIGN;
    if (IS_RARE(WAY) && b.zeros != ZEROS_SIGNED) {
        sign = (b.zeros == ZEROS_POSITIVE ? z : y) == 0.0f ? 0 : sign;
    }
    u32 value = bits_of(z) | sign;
    if (IS_RARE(WAY) && s.flushes) value = b.zeros == ZEROS_SIGNED ? x & SIGN : 0;
    return s.nan ? CANONICAL_NAN : bits_of(float_of(value) * s.value * decode);
}

DEVICE void store_one(float* out, u32 x, bool) { *out = float_of(x); }
DEVICE void store_one(u16* out, u32 x, bool nan) { *out = nan ? 0x7FC0 : (u16)two_bf16(x, x); }
DEVICE void store_eight(float* out, const u32* x, bool) {
    ((float4*)out)[0] = make_float4(float_of(x[0]), float_of(x[1]), float_of(x[2]), float_of(x[3]));
    ((float4*)out)[1] = make_float4(float_of(x[4]), float_of(x[5]), float_of(x[6]), float_of(x[7]));
}
DEVICE void store_eight(u16* out, const u32* x, bool nan) {
    u32 w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = nan ? 0x7FC07FC0u : two_bf16(x[2 * i], x[2 * i + 1]);
    *(uint4*)out = make_uint4(w[0], w[1], w[2], w[3]);
}

// Eight adjacent numbers of a row.
DEVICE void fetch_eight(const float* x, const Blocks& b, u64 group, bool there, u64& row, u32& at, u32* v) {
    u32 per_row = b.cols / 8;
    row = 0;
    at = 0;
    if (there) {
        row = group <= 0xFFFFFFFFu ? (u32)group / per_row : group / per_row;
        at = (u32)(group - row * per_row) * 8;
        const float* from = x + row * b.x_stride + at;
        float4 lo = *(const float4*)from, hi = *(const float4*)(from + 4);
        v[0] = bits_of(lo.x), v[1] = bits_of(lo.y), v[2] = bits_of(lo.z), v[3] = bits_of(lo.w);
        v[4] = bits_of(hi.x), v[5] = bits_of(hi.y), v[6] = bits_of(hi.z), v[7] = bits_of(hi.w);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = 0;
    }
}

// The same cast and rotated. All lanes take part.
DEVICE void prepare_eight(const Blocks& b, u32 at, u32* v) {
    if (b.before.kind != KIND_NONE) {
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = cut(b.before, v[i]);
    }
    if (b.rotation) rotate_eight(b, at, v);
}

template <int WAY> DEVICE void images_of_eight(const Blocks& b, const QuickScale& s, float decode, u32* v,
                                               const u32* words) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = image_quickly<WAY>(b, s, decode, v[i], IS_RANDOM(WAY) ? words[i] : 0);
}

// Random words and the tensor's factors need no number of the matrix, so they come while those are fetched.
template <bool RANDOM, class T> DEVICE void quick_rows(const float* x, T* out, const Blocks& b,
                                                       const float* given) {
    u64 group = thread_index(), row;
    bool there = group < (u64)(b.cols / 8) * b.rows;
    u32 at, v[8], words[8];
    fetch_eight(x, b, group, there, row, at, v);
    Factors f = factors_of(b, given);
    if (RANDOM) philox_words<8>(b.random, row * b.cols + at, words);
    prepare_eight(b, at, v);
    u32 amax = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) amax = max(amax, v[i] & ~SIGN);
    for (u32 by = 1; by < b.block_cols / 8; by *= 2)
        amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, (int)by));
    if (!there) return;
    QuickScale s = quick_scale(b, f, amax);
    float decode = b.tensor_in_image ? f.decode : 1.0f;
    bool usual = is_usual(b);
    if (RANDOM) {
        if (usual) images_of_eight<WAY_RANDOM>(b, s, decode, v, words);
        else images_of_eight<WAY_RANDOM_OTHER>(b, s, decode, v, words);
    } else {
        if (usual) images_of_eight<WAY_EVEN>(b, s, decode, v, words);
        else images_of_eight<WAY_OTHER>(b, s, decode, v, words);
    }
    store_eight(out + row * b.out_stride + at, v, s.nan);
}

// The largest magnitude that a block of threads has seen, to those of the others.
DEVICE void largest_of_all(u32 most, float* factors, const Blocks& b) {
    most = largest_of_block(most);
    if (threadIdx.x == 0) found_by_block(b, most, gridDim.x, factors);
}

KERNEL(256) quick_rows_amax(const float* x, float* factors, PARAMETERS(Blocks) b) {
    u64 groups = (u64)(b.cols / 8) * b.rows;
    u32 most = 0;
    // Whole warps go on together.
    for (u64 first = thread_index() / 32 * 32; first < groups; first += thread_count()) {
        u64 group = first + threadIdx.x % 32, row;
        u32 at, v[8];
        fetch_eight(x, b, group, group < groups, row, at, v);
        prepare_eight(b, at, v);
#pragma unroll
        for (int i = 0; i < 8; i++) most = max(most, v[i] & ~SIGN);
    }
    largest_of_all(most, factors, b);
}
EXPORT(quick_rows_amax)

#define QUICK_ROWS(NAME, RANDOM, T)                                                              \
    KERNEL(256) NAME(const float* x, T* out, const float* given, PARAMETERS(Blocks) b) {         \
        quick_rows<RANDOM>(x, out, b, given);                                                    \
    }

QUICK_ROWS(quick_rows_f32, false, float)
EXPORT(quick_rows_f32)
QUICK_ROWS(quick_rows_bf16, false, u16)
EXPORT(quick_rows_bf16)
QUICK_ROWS(quick_rows_random_f32, true, float)
EXPORT(quick_rows_random_f32)
QUICK_ROWS(quick_rows_random_bf16, true, u16)
EXPORT(quick_rows_random_bf16)

// The first `count` of ROWS numbers, one after the other.
template <int ROWS, class T> DEVICE void store_turned(T* to, const u32 (&v)[ROWS], bool nan, u32 count) {
    if (count >= ROWS && (u64)to % 16 == 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i += 8) store_eight(to + i, v + i, nan);
    } else {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i < count) store_one(to + i, v[i], nan);
        }
    }
}

// ROWS numbers of a column, cast and rotated; what is outside is zero.
template <int ROWS> DEVICE void load_column(const float* x, const Blocks& b, u32 first, u32 col, bool there,
                                            u32 (&v)[ROWS]) {
    const float* from = x + first * b.x_stride + col;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        v[i] = there && first + i < b.rows ? bits_of(*from) : 0;
        from += b.x_stride;
    }
    if (b.before.kind != KIND_NONE) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) v[i] = cut(b.before, v[i]);
    }
    if (b.rotation == 0) return;
#pragma unroll
    for (int i = 0; i < ROWS; i++) v[i] ^= sign_bit_of(b, i & (b.rotation - 1));
#pragma unroll
    for (int h = 1; h < ROWS; h *= 2) {
        if (h < b.rotation) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (!(i & h)) {
                    float p = float_of(v[i]), q = float_of(v[i + h]);
                    v[i] = bits_of(p + q);
                    v[i + h] = bits_of(p - q);
                }
            }
        }
    }
    scale_rotated<ROWS>(b, v);
}

// The words of four rows of this column, of which each lane of four adjacent ones computes one row's: a
// square of four by four words is transposed between them. Columns of the four are one block of words.
DEVICE void words_of_rows(const Blocks& b, u32 row, u32 col, u32 (&w)[4]) {
    u32 lane = threadIdx.x & 3;
    u64 index = (u64)(row + lane) * b.cols + (col & ~3u) + b.random.first;
    Words mine = philox_block(b.random, index / 4);
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = mine.at[i];
#pragma unroll
    for (u32 h = 1; h < 4; h *= 2) {
        bool upper = lane & h;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (!(i & h)) {
                u32 other = __shfl_xor_sync(0xFFFFFFFFu, upper ? w[i] : w[i + h], (int)h);
                if (upper) w[i] = other;
                else w[i + h] = other;
            }
        }
    }
}

template <int WAY, int ROWS> DEVICE void images_of_column(const Blocks& b, const QuickScale& s, float decode,
                                                          u32 first, u32 col, u32 (&v)[ROWS]) {
#pragma unroll
    for (int i = 0; i < ROWS; i += 4) {
        u32 words[4];
        if (IS_RANDOM(WAY)) words_of_rows(b, first + i, col, words);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[i + j] = image_quickly<WAY>(b, s, decode, v[i + j], IS_RANDOM(WAY) ? words[j] : 0);
        }
    }
}

template <bool RANDOM, int ROWS, class T> DEVICE void quick_columns(const float* x, T* out, const Blocks& b,
                                                                    const float* given) {
    u32 col = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * ROWS;
    bool there = col < b.cols;
    u32 v[ROWS], amax = 0;
    Factors f = factors_of(b, given);
    load_column<ROWS>(x, b, first, col, there, v);
#pragma unroll
    for (int i = 0; i < ROWS; i++) amax = max(amax, v[i] & ~SIGN);
    for (u32 by = 1; by < b.block_cols; by *= 2)
        amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, (int)by));
    QuickScale s = quick_scale(b, f, amax);
    float decode = b.tensor_in_image ? f.decode : 1.0f;
    bool usual = is_usual(b);
    if (RANDOM) {
        if (usual) images_of_column<WAY_RANDOM, ROWS>(b, s, decode, first, col, v);
        else images_of_column<WAY_RANDOM_OTHER, ROWS>(b, s, decode, first, col, v);
    } else {
        if (usual) images_of_column<WAY_EVEN, ROWS>(b, s, decode, first, col, v);
        else images_of_column<WAY_OTHER, ROWS>(b, s, decode, first, col, v);
    }
    if (b.turned) return store_turned<ROWS>(out + col * b.out_stride + first, v, s.nan, there ? b.rows - first : 0);
    T* to = out + first * b.out_stride + col;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (there && first + i < b.rows) store_one(to, v[i], s.nan);
        to += b.out_stride;
    }
}

template <int ROWS> DEVICE void columns_amax(const float* x, float* factors, const Blocks& b) {
    u32 across = (b.cols + 127) / 128, bands = (b.rows + ROWS - 1) / ROWS, most = 0;
    for (u64 at = blockIdx.x; at < (u64)across * bands; at += gridDim.x) {
        u32 col = (u32)(at % across) * 128 + threadIdx.x, first = (u32)(at / across) * ROWS, v[ROWS];
        load_column<ROWS>(x, b, first, col, col < b.cols, v);
#pragma unroll
        for (int i = 0; i < ROWS; i++) most = max(most, v[i] & ~SIGN);
    }
    largest_of_all(most, factors, b);
}

#define QUICK_COLUMNS(NAME, RANDOM, ROWS, T)                                                     \
    KERNEL(128) NAME(const float* x, T* out, const float* given, PARAMETERS(Blocks) b) {         \
        quick_columns<RANDOM, ROWS>(x, out, b, given);                                           \
    }
#define COLUMNS_AMAX(NAME, ROWS)                                                                 \
    KERNEL(128) NAME(const float* x, float* factors, PARAMETERS(Blocks) b) {                     \
        columns_amax<ROWS>(x, factors, b);                                                       \
    }

COLUMNS_AMAX(quick_columns16_amax, 16)
EXPORT(quick_columns16_amax)
QUICK_COLUMNS(quick_columns16_f32, false, 16, float)
EXPORT(quick_columns16_f32)
QUICK_COLUMNS(quick_columns16_bf16, false, 16, u16)
EXPORT(quick_columns16_bf16)
QUICK_COLUMNS(quick_columns16_random_f32, true, 16, float)
EXPORT(quick_columns16_random_f32)
QUICK_COLUMNS(quick_columns16_random_bf16, true, 16, u16)
EXPORT(quick_columns16_random_bf16)
COLUMNS_AMAX(quick_columns32_amax, 32)
EXPORT(quick_columns32_amax)
QUICK_COLUMNS(quick_columns32_f32, false, 32, float)
EXPORT(quick_columns32_f32)
QUICK_COLUMNS(quick_columns32_bf16, false, 32, u16)
EXPORT(quick_columns32_bf16)
QUICK_COLUMNS(quick_columns32_random_f32, true, 32, float)
EXPORT(quick_columns32_random_f32)
QUICK_COLUMNS(quick_columns32_random_bf16, true, 32, u16)
EXPORT(quick_columns32_random_bf16)
