// Slices of binary32 numbers to a format: codes, or values in binary32 or bfloat16; codes to values; random
// words; blocks to values. The twins of the library's `slice::Converter`, `slice::decode_into` and
// `BlockTensor::dequantize`.
#include "prelude.cuh"
#include "random.cuh"
#include "round.cuh"

// Numbers of a thread at a time.
#define MANY 8

template <class T, bool VALUE> struct Write;
template <class T> struct Write<T, false> {
    static DEVICE T of(const Rounder&, u32 x) { return (T)x; }
};
template <> struct Write<float, true> {
    static DEVICE float of(const Rounder&, u32 x) { return float_of(x); }
};
template <> struct Write<u16, true> {
    static DEVICE u16 of(const Rounder& r, u32 x) { return r.is_short ? (u16)(x >> 16) : to_bf16(x); }
};

// As many as are stored at once.
template <class T> struct __align__(sizeof(T) == 4 ? 16 : 8 * sizeof(T)) Piece {
    T at[sizeof(T) == 4 ? 4 : 8];
};

template <class T, bool VALUE> DEVICE void convert(const float* x, T* out, u64 count, const Rounder& r,
                                                   const Rounder& before, const Philox& random) {
    const int STORED = sizeof(T) == 4 ? 4 : 8;
    bool stochastic = r.mode >= STOCHASTIC_A || before.mode >= STOCHASTIC_A;
    for (u64 group = thread_index(); group * MANY < count; group += thread_count()) {
        u64 i = group * MANY;
        u32 bits[MANY], words[MANY] = {0, 0, 0, 0, 0, 0, 0, 0};
        bool whole = i + MANY <= count;
        if (whole) {
            float4 lo = *(const float4*)(x + i), hi = *(const float4*)(x + i + 4);
            bits[0] = bits_of(lo.x), bits[1] = bits_of(lo.y), bits[2] = bits_of(lo.z),
            bits[3] = bits_of(lo.w);
            bits[4] = bits_of(hi.x), bits[5] = bits_of(hi.y), bits[6] = bits_of(hi.z),
            bits[7] = bits_of(hi.w);
        } else {
#pragma unroll
            for (int j = 0; j < MANY; j++) bits[j] = i + j < count ? bits_of(x[i + j]) : 0;
        }
        if (stochastic) philox_words<MANY>(random, i, words);
        round_all<true, MANY>(before, bits, words);
        round_all<VALUE, MANY>(r, bits, words);
        T y[MANY];
#pragma unroll
        for (int j = 0; j < MANY; j++) y[j] = Write<T, VALUE>::of(r, bits[j]);
        if (whole) {
#pragma unroll
            for (int j = 0; j < MANY; j += STORED) {
                Piece<T> piece;
#pragma unroll
                for (int k = 0; k < STORED; k++) piece.at[k] = y[j + k];
                *(Piece<T>*)(out + i + j) = piece;
            }
        } else {
#pragma unroll
            for (int j = 0; j < MANY; j++) {
                if (i + j < count) out[i + j] = y[j];
            }
        }
    }
}

KERNEL(256)
encode_u8(const float* x, u8* out, u64 count, PARAMETERS(Rounder) r, PARAMETERS(Rounder) before,
          PARAMETERS(Philox) random) {
    convert<u8, false>(x, out, count, r, before, random);
}
EXPORT(encode_u8)

KERNEL(256)
encode_u16(const float* x, u16* out, u64 count, PARAMETERS(Rounder) r, PARAMETERS(Rounder) before,
           PARAMETERS(Philox) random) {
    convert<u16, false>(x, out, count, r, before, random);
}
EXPORT(encode_u16)

KERNEL(256)
encode_u32(const float* x, u32* out, u64 count, PARAMETERS(Rounder) r, PARAMETERS(Rounder) before,
           PARAMETERS(Philox) random) {
    convert<u32, false>(x, out, count, r, before, random);
}
EXPORT(encode_u32)

KERNEL(256)
round_f32(const float* x, float* out, u64 count, PARAMETERS(Rounder) r, PARAMETERS(Rounder) before,
          PARAMETERS(Philox) random) {
    convert<float, true>(x, out, count, r, before, random);
}
EXPORT(round_f32)

KERNEL(256)
round_bf16(const float* x, u16* out, u64 count, PARAMETERS(Rounder) r, PARAMETERS(Rounder) before,
           PARAMETERS(Philox) random) {
    convert<u16, true>(x, out, count, r, before, random);
}
EXPORT(round_bf16)

template <class T> DEVICE void decode(const T* codes, float* out, u64 count, const Rounder& r) {
    for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = float_of(decode_code(r, codes[i]));
}

KERNEL(256) decode_u8(const u8* codes, float* out, u64 count, PARAMETERS(Rounder) r) {
    decode(codes, out, count, r);
}
EXPORT(decode_u8)

KERNEL(256) decode_u16(const u16* codes, float* out, u64 count, PARAMETERS(Rounder) r) {
    decode(codes, out, count, r);
}
EXPORT(decode_u16)

KERNEL(256) decode_u32(const u32* codes, float* out, u64 count, PARAMETERS(Rounder) r) {
    decode(codes, out, count, r);
}
EXPORT(decode_u32)

// Codes with the scales of their blocks, as `src/blocks/read.rs` describes them.
struct Stored {
    Rounder element, scale;
    u32 width, scale_bytes, cols, block_rows, block_cols, across;
    // Whether the tensor's scale multiplies those of the blocks first.
    u32 folds, gap;
    u64 count, size;
};

// Code times scale, and that times the tensor's scale, which is the second of its factors if there are any.
KERNEL(256)
dequantize(const u8* codes, const u8* scales, const float* factors, float* out, PARAMETERS(Stored) s) {
    float decode = factors == nullptr ? 1.0f : factors[1];
    for (u64 i = thread_index(); i < s.count; i += thread_count()) {
        u64 row = i / s.cols, col = i - row * s.cols;
        const u8* bytes = scales + (row / s.block_rows * s.across + col / s.block_cols) * s.scale_bytes;
        u32 code = 0;
        for (u32 k = s.scale_bytes; k > 0; k--) code = code << 8 | bytes[k - 1];
        float scale = float_of(decode_code(s.scale, code));
        float x = float_of(decode_code(s.element, packed_code(codes, i, s.width, s.size)));
        out[i] = canonical(s.folds ? x * (scale * decode) : x * scale * decode);
    }
}
EXPORT(dequantize)

KERNEL(256) random_words(u32* out, u64 count, PARAMETERS(Philox) random) {
    for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = philox_word(random, i);
}
EXPORT(random_words)
