// Matrices in block formats: images in binary32 or bfloat16, or codes, and the scales' codes. Three ways to
// walk: blocks along a row, whose elements are adjacent; blocks and tiles of rows, a thread a column; and any
// shape, in two passes. The twin of the library's `Quantizer::image_into` and `BlockTensor::quantize`.
#include "prelude.cuh"
#include "random.cuh"
#include "round.cuh"
#include "scale.cuh"
#include "rotate.cuh"

// How a result is stored: the value's image in binary32 or bfloat16, or the element's code.
struct Image32 {
    typedef float T;
    static const bool VALUE = true;
    static DEVICE T of(const Blocks& b, const Scale& s, const Factors& f, u32 x) {
        return image_of(b, s, f, x);
    }
};
struct Image16 {
    typedef u16 T;
    static const bool VALUE = true;
    static DEVICE T of(const Blocks& b, const Scale& s, const Factors& f, u32 x) {
        return to_bf16(bits_of(image_of(b, s, f, x)));
    }
};
template <class C> struct Codes {
    typedef C T;
    static const bool VALUE = false;
    static DEVICE T of(const Blocks&, const Scale&, const Factors&, u32 x) { return (T)x; }
};

template <class T, int N> struct __align__(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack { T at[N]; };

// Blocks of 8, 16, .. 256 along a row. A thread has 8 elements, and a block is that of adjacent lanes.
template <class OUT> DEVICE void along_rows(const float* x, typename OUT::T* out, void* scales,
                                            const Blocks& b, const float* given) {
    u32 per_row = b.cols / 8, lanes = b.block_cols / 8;
    u64 groups = (u64)per_row * b.rows, group = thread_index();
    bool there = group < groups;
    u64 row = 0;
    u32 at = 0;
    if (there) {
        row = groups <= 0xFFFFFFFFu ? (u32)group / per_row : group / per_row;
        at = (u32)(group - row * per_row);
    }
    u32 v[8] = {0, 0, 0, 0, 0, 0, 0, 0}, words[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (there) {
        const float* from = x + row * b.x_stride + (u64)at * 8;
        float4 lo = *(const float4*)from, hi = *(const float4*)(from + 4);
        v[0] = bits_of(lo.x), v[1] = bits_of(lo.y), v[2] = bits_of(lo.z), v[3] = bits_of(lo.w);
        v[4] = bits_of(hi.x), v[5] = bits_of(hi.y), v[6] = bits_of(hi.z), v[7] = bits_of(hi.w);
    }
    if (b.element.mode >= STOCHASTIC_A || b.before.mode >= STOCHASTIC_A) {
        philox_words<8>(b.random, row * b.cols + (u64)at * 8, words);
    }
    round_all<true, 8>(b.before, v, words);
    if (b.rotation) rotate_eight(b, at * 8, v);
    u32 amax = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) amax = max(amax, magnitude_of(b, v[i]));
    for (u32 by = 1; by < lanes; by *= 2) amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, (int)by));
    if (!there) return;
    Factors f = factors_of(b, given);
    Scale s = block_scale(b, f, amax);
    round_elements<OUT::VALUE, 8>(b, s, v, words);
    Pack<typename OUT::T, 8> y;
#pragma unroll
    for (int i = 0; i < 8; i++) y.at[i] = OUT::of(b, s, f, v[i]);
    *(Pack<typename OUT::T, 8>*)(out + row * b.out_stride + (u64)at * 8) = y;
    if (at % lanes == 0) store_scale(b, scales, row * b.blocks_across + at / lanes, s.code);
}

// Blocks of any number of rows, of 1, 2, 4 .. 32 columns: a thread has one column of a band of rows, which it
// walks twice, the second time from the cache.
template <class OUT> DEVICE void down_columns(const float* x, typename OUT::T* out, void* scales,
                                              const Blocks& b, const float* given) {
    u32 col = blockIdx.x * blockDim.x + threadIdx.x, bands = (b.rows + b.block_rows - 1) / b.block_rows;
    bool there = col < b.cols, stochastic = b.element.mode >= STOCHASTIC_A || b.before.mode >= STOCHASTIC_A;
    Factors f = factors_of(b, given);
    for (u32 band = blockIdx.y; band < bands; band += gridDim.y) {
        u32 first = band * b.block_rows, last = there ? min(first + b.block_rows, b.rows) : first;
        auto load = [&](u32 row, u32& word) {
            u32 v = bits_of(x[row * b.x_stride + col]);
            word = stochastic ? philox_word(b.random, (u64)row * b.cols + col) : 0;
            round_all<true, 1>(b.before, &v, &word);
            return v;
        };
        u32 amax = 0, word;
        for (u32 row = first; row < last; row++) amax = max(amax, magnitude_of(b, load(row, word)));
        for (u32 by = 1; by < b.block_cols; by *= 2)
            amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, (int)by));
        Scale s = block_scale(b, f, amax);
        for (u32 row = first; row < last; row++) {
            u32 v = load(row, word);
            round_elements<OUT::VALUE, 1>(b, s, &v, &word);
            out[row * b.out_stride + col] = OUT::of(b, s, f, v);
        }
        if (there && col % b.block_cols == 0)
            store_scale(b, scales, (u64)band * b.blocks_across + col / b.block_cols, s.code);
    }
}

// Any shape: the largest magnitudes are known.
template <class OUT> DEVICE void any_shape(const float* x, typename OUT::T* out, void* scales,
                                           const Blocks& b, const float* given, const u32* amax) {
    Factors f = factors_of(b, given);
    u64 count = (u64)b.rows * b.cols;
    for (u64 index = thread_index(); index < count; index += thread_count()) {
        u32 row = (u32)(index / b.cols), col = (u32)(index - (u64)row * b.cols);
        u64 at = (u64)(row / b.block_rows) * b.blocks_across + col / b.block_cols;
        u32 v = bits_of(x[row * b.x_stride + col]), word = 0;
        if (b.element.mode >= STOCHASTIC_A || b.before.mode >= STOCHASTIC_A)
            word = philox_word(b.random, index);
        round_all<true, 1>(b.before, &v, &word);
        Scale s = block_scale(b, f, amax[at]);
        round_elements<OUT::VALUE, 1>(b, s, &v, &word);
        out[row * b.out_stride + col] = OUT::of(b, s, f, v);
        if (row % b.block_rows == 0 && col % b.block_cols == 0) store_scale(b, scales, at, s.code);
    }
}

// What a rounded element adds to the error of its block.
DEVICE float error_of(const Blocks& b, const Scale& s, const Factors& f, u32 rounded, u32 x) {
    float value = float_of(rounded) * s.value;
    if (b.has_tensor) value = value * f.amax / (6.0f * b.bound);
    float difference = value - float_of(x);
    return b.squared ? difference * difference : fabsf(difference);
}

// The two scales of which the better one is taken.
DEVICE void candidates_of(const Blocks& b, const Factors& f, u32 amax, Scale (&candidates)[2]) {
    float base = float_of(amax) / b.largest * f.encode;
    candidates[0] = full_scale(b, f, at_most_max(base));
    candidates[1] = full_scale(b, f, at_most_max(base * 1.5f));
}

// The better of two scales, a thread a block: the library's `block::scale::four`.
template <class OUT> DEVICE void four_over_six(const float* x, typename OUT::T* out, void* scales,
                                               const Blocks& b, const float* given) {
    Factors f = factors_of(b, given);
    u64 blocks = (u64)((b.rows + b.block_rows - 1) / b.block_rows) * b.blocks_across;
    for (u64 at = thread_index(); at < blocks; at += thread_count()) {
        u32 row = (u32)(at / b.blocks_across) * b.block_rows,
            col = (u32)(at % b.blocks_across) * b.block_cols;
        u32 rows = min(b.block_rows, b.rows - row), cols = min(b.block_cols, b.cols - col);
        // Rows run along the reduction axis.
        u32 across = b.down ? cols : rows, along = b.down ? rows : cols;
        auto load = [&](u32 i, u32 j, u32& word) {
            u32 r = row + (b.down ? j : i), c = col + (b.down ? i : j);
            word = b.element.mode >= STOCHASTIC_A || b.before.mode >= STOCHASTIC_A
                       ? philox_word(b.random, (u64)r * b.cols + c)
                       : 0;
            u32 v = bits_of(x[r * b.x_stride + c]);
            round_all<true, 1>(b.before, &v, &word);
            return v;
        };
        u32 amax = 0, word;
        for (u32 i = 0; i < across; i++)
            for (u32 j = 0; j < along; j++) amax = max(amax, load(i, j, word) & ~SIGN);
        Scale candidates[2];
        candidates_of(b, f, amax, candidates);
        float errors[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const Scale& s = candidates[k];
            float of_rows[16];
            for (int i = 0; i < 16; i++) of_rows[i] = 0.0f;
            float sum = 0.0f;
            for (u32 i = 0; i < across; i++) {
                float of_row = 0.0f;
                for (u32 j = 0; j < along; j++) {
                    u32 v = load(i, j, word);
                    u32 y = v;
                    round_elements<true, 1>(b, s, &y, &word);
                    of_row += error_of(b, s, f, y, v);
                }
                if (across > 16) sum += of_row;
                else of_rows[i] = of_row;
            }
            if (across <= 16) {
                for (int half = 8; half > 0; half /= 2)
                    for (int i = 0; i < half; i++) of_rows[i] += of_rows[i + half];
                sum = of_rows[0];
            }
            errors[k] = sum;
        }
        const Scale s = errors[1] < errors[0] ? candidates[1] : candidates[0];
        for (u32 i = 0; i < across; i++) {
            for (u32 j = 0; j < along; j++) {
                u32 v = load(i, j, word);
                round_elements<OUT::VALUE, 1>(b, s, &v, &word);
                u64 r = row + (b.down ? j : i), c = col + (b.down ? i : j);
                out[r * b.out_stride + c] = OUT::of(b, s, f, v);
            }
        }
        store_scale(b, scales, at, s.code);
    }
}

DEVICE bool is_line_of_16(const Blocks& b) {
    return b.block_rows * b.block_cols == 16 && (b.down ? b.block_cols : b.block_rows) == 1;
}

// The same for blocks of N numbers in a line along the reduction axis, which stay in registers.
template <class OUT, int N> DEVICE void four_in_line(const float* x, typename OUT::T* out, void* scales,
                                                     const Blocks& b, const float* given) {
    Factors f = factors_of(b, given);
    u64 blocks = (u64)((b.rows + b.block_rows - 1) / b.block_rows) * b.blocks_across;
    bool stochastic = b.element.mode >= STOCHASTIC_A || b.before.mode >= STOCHASTIC_A;
    u64 x_step = b.down ? b.x_stride : 1, out_step = b.down ? b.out_stride : 1;
    for (u64 at = thread_index(); at < blocks; at += thread_count()) {
        u32 row = (u32)(at / b.blocks_across) * b.block_rows,
            col = (u32)(at % b.blocks_across) * b.block_cols;
        u32 count = min((u32)N, b.down ? b.rows - row : b.cols - col), v[N], words[N], amax = 0;
        const float* from = x + row * b.x_stride + col;
        u64 first = (u64)row * b.cols + col;
#pragma unroll
        for (int j = 0; j < N; j++) {
            v[j] = j < count ? bits_of(from[j * x_step]) : 0;
            words[j] = stochastic ? philox_word(b.random, first + j * (b.down ? b.cols : 1)) : 0;
        }
        round_all<true, N>(b.before, v, words);
#pragma unroll
        for (int j = 0; j < N; j++) amax = max(amax, j < count ? v[j] & ~SIGN : 0);
        Scale candidates[2];
        candidates_of(b, f, amax, candidates);
        float errors[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            u32 y[N];
#pragma unroll
            for (int j = 0; j < N; j++) y[j] = v[j];
            round_elements<true, N>(b, candidates[k], y, words);
            errors[k] = 0.0f;
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (j < count) errors[k] += error_of(b, candidates[k], f, y[j], v[j]);
            }
        }
        const Scale s = errors[1] < errors[0] ? candidates[1] : candidates[0];
        round_elements<OUT::VALUE, N>(b, s, v, words);
        typename OUT::T* to = out + row * b.out_stride + col;
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (j < count) to[j * out_step] = OUT::of(b, s, f, v[j]);
        }
        store_scale(b, scales, at, s.code);
    }
}

#define BLOCK_KERNELS(KIND, OUT)                                                                          \
    KERNEL(256)                                                                                           \
    rows_##KIND(const float* x, OUT::T* out, void* scales, const float* given, PARAMETERS(Blocks) b) {    \
        along_rows<OUT>(x, out, scales, b, given);                                                        \
    }                                                                                                     \
    KERNEL(128)                                                                                           \
    columns_##KIND(const float* x, OUT::T* out, void* scales, const float* given, PARAMETERS(Blocks) b) { \
        down_columns<OUT>(x, out, scales, b, given);                                                      \
    }                                                                                                     \
    KERNEL(256)                                                                                           \
    any_##KIND(const float* x, OUT::T* out, void* scales, const float* given, PARAMETERS(Blocks) b,       \
               const u32* amax) {                                                                         \
        any_shape<OUT>(x, out, scales, b, given, amax);                                                   \
    }                                                                                                     \
    KERNEL(128)                                                                                           \
    four_##KIND(const float* x, OUT::T* out, void* scales, const float* given, PARAMETERS(Blocks) b) {    \
        if (is_line_of_16(b)) four_in_line<OUT, 16>(x, out, scales, b, given);                            \
        else four_over_six<OUT>(x, out, scales, b, given);                                                \
    }

BLOCK_KERNELS(f32, Image32)
EXPORT(rows_f32)
EXPORT(columns_f32)
EXPORT(any_f32)
EXPORT(four_f32)

BLOCK_KERNELS(bf16, Image16)
EXPORT(rows_bf16)
EXPORT(columns_bf16)
EXPORT(any_bf16)
EXPORT(four_bf16)

BLOCK_KERNELS(u8, Codes<u8>)
EXPORT(rows_u8)
EXPORT(columns_u8)
EXPORT(any_u8)
EXPORT(four_u8)

BLOCK_KERNELS(u16, Codes<u16>)
EXPORT(rows_u16)
EXPORT(columns_u16)
EXPORT(any_u16)
EXPORT(four_u16)

// The largest magnitude of each block, which holds 0 before: several blocks of threads share a large one.
KERNEL(256) block_amax(const float* x, u32* amax, PARAMETERS(Blocks) b) {
    SHARED u32 parts[8];
    u64 blocks = (u64)((b.rows + b.block_rows - 1) / b.block_rows) * b.blocks_across;
    for (u64 at = blockIdx.x; at < blocks; at += gridDim.x) {
        u32 row = (u32)(at / b.blocks_across) * b.block_rows,
            col = (u32)(at % b.blocks_across) * b.block_cols;
        u32 rows = min(b.block_rows, b.rows - row), cols = min(b.block_cols, b.cols - col);
        u64 count = (u64)rows * cols;
        u32 most = 0;
        for (u64 i = (u64)blockIdx.y * 256 + threadIdx.x; i < count; i += (u64)gridDim.y * 256) {
            u32 r = row + (u32)(i / cols), c = col + (u32)(i % cols);
            u32 v = bits_of(x[r * b.x_stride + c]), word = 0;
            if (b.before.mode >= STOCHASTIC_A) word = philox_word(b.random, (u64)r * b.cols + c);
            round_all<true, 1>(b.before, &v, &word);
            most = max(most, magnitude_of(b, v));
        }
        for (int by = 16; by > 0; by /= 2) most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, by));
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = most;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < 8; i++) most = max(most, parts[i]);
            atomicMax(amax + at, most);
        }
        __syncthreads();
    }
}
EXPORT(block_amax)

// The factors of a whole matrix without a stride, and nothing done to it first.
KERNEL(256) tensor_amax(const float* x, float* factors, u64 count, PARAMETERS(Blocks) b) {
    u32 most = 0;
    u64 fours = count / 4;
    auto fetch = [&](u64 i) { return ((const float4*)x)[i]; };
    each_of<4, u64>(thread_index(), fours, thread_count(), fetch, [&](u64, float4 four) {
        u32 a = max(bits_of(four.x) & ~SIGN, bits_of(four.y) & ~SIGN);
        u32 c = max(bits_of(four.z) & ~SIGN, bits_of(four.w) & ~SIGN);
        most = max(most, max(a, c));
    });
    for (u64 i = fours * 4 + thread_index(); i < count; i += thread_count())
        most = max(most, bits_of(x[i]) & ~SIGN);
    most = largest_of_block(most);
    if (threadIdx.x == 0) found_by_block(b, most, gridDim.x, factors);
}
EXPORT(tensor_amax)

// encode, decode, block, amax of a tensor with a scale of its own.
KERNEL(32) tensor_scale(const u32* amax, float* factors, PARAMETERS(Blocks) b) {
    if (threadIdx.x != 0) return;
    Factors f = tensor_factors(b, float_of(*amax));
    factors[0] = f.encode;
    factors[1] = f.decode;
    factors[2] = f.block;
    factors[3] = f.amax;
}
EXPORT(tensor_scale)

// Cast and rotation alone: groups of adjacent elements of a row, in shared memory, or of a column. A block of
// threads has one group after another.
KERNEL(128) prepare(const float* x, float* out, PARAMETERS(Blocks) b) {
    SHARED float group[128];
    u32 size = b.rotation ? b.rotation : 128;
    u32 length = b.down ? b.rows : b.cols, lines = b.down ? b.cols : b.rows;
    u32 groups_in_line = (length + size - 1) / size, t = threadIdx.x;
    u64 groups = (u64)groups_in_line * lines;
    // Columns take turns fastest, so that a down walk reads neighbours soon after each other.
    for (u64 g = blockIdx.x; g < groups; g += gridDim.x) {
        u32 line = b.down ? (u32)(g % lines) : (u32)(g / groups_in_line);
        u32 at = (b.down ? (u32)(g / lines) : (u32)(g % groups_in_line)) * size + t;
        u32 row = b.down ? at : line, col = b.down ? line : at;
        bool there = t < size && at < length;
        if (there) {
            u32 v = bits_of(x[row * b.x_stride + col]), word = 0;
            if (b.before.mode >= STOCHASTIC_A) word = philox_word(b.random, (u64)row * b.cols + col);
            round_all<true, 1>(b.before, &v, &word);
            group[t] = float_of(b.rotation ? v ^ sign_bit_of(b, t) : v);
        }
        __syncthreads();
        for (u32 h = 1; h < b.rotation; h *= 2) {
            float mine = 0.0f, other = 0.0f;
            if (there) mine = group[t], other = group[t ^ h];
            __syncthreads();
            if (there) group[t] = t & h ? other - mine : mine + other;
            __syncthreads();
        }
        if (there) {
            float y = group[t];
            if (b.rotation) {
                u32 z = bits_of(y * b.rotation_scale);
                y = float_of(b.rotation_to_bf16 ? (u32)to_bf16(z) << 16 : z);
            }
            out[row * b.out_stride + col] = y;
        }
        __syncthreads();
    }
}
EXPORT(prepare)
