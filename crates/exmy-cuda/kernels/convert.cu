// Slices of binary32 numbers to a format: codes, or values in binary32 or bfloat16; codes to values; random words.
// The twins of the library's `slice::Converter` and `slice::decode_into`.
#include "prelude.cuh"
#include "random.cuh"
#include "round.cuh"

// Numbers of a thread at a time.
#define MANY 4

template <class T, bool VALUE> struct Write;
template <class T> struct Write<T, false> {
    static DEVICE T of(u32 x) { return (T)x; }
};
template <> struct Write<float, true> {
    static DEVICE float of(u32 x) { return float_of(x); }
};
template <> struct Write<u16, true> {
    static DEVICE u16 of(u32 x) { return to_bf16(x); }
};

template <class T> struct __align__(4 * sizeof(T)) Four { T at[4]; };

template <class T, bool VALUE>
DEVICE void convert(const float* x, T* out, u64 count, const Rounder& r, const Philox& random, u32 aligned) {
    bool stochastic = r.mode >= STOCHASTIC_A;
    for (u64 group = thread_index(); group * MANY < count; group += thread_count()) {
        u64 i = group * MANY;
        u32 bits[MANY], words[MANY] = {0, 0, 0, 0};
        if (stochastic) philox_words<MANY>(random, i, words);
        if (aligned && i + MANY <= count) {
            float4 four = *(const float4*)(x + i);
            bits[0] = bits_of(four.x);
            bits[1] = bits_of(four.y);
            bits[2] = bits_of(four.z);
            bits[3] = bits_of(four.w);
            round_all<VALUE, MANY>(r, bits, words);
            Four<T> y;
#pragma unroll
            for (int j = 0; j < MANY; j++) y.at[j] = Write<T, VALUE>::of(bits[j]);
            *(Four<T>*)(out + i) = y;
        } else {
#pragma unroll
            for (int j = 0; j < MANY; j++) bits[j] = i + j < count ? bits_of(x[i + j]) : 0;
            round_all<VALUE, MANY>(r, bits, words);
#pragma unroll
            for (int j = 0; j < MANY; j++) {
                if (i + j < count) out[i + j] = Write<T, VALUE>::of(bits[j]);
            }
        }
    }
}

KERNEL(256) encode_u8(const float* x, u8* out, u64 count, u32 aligned, PARAMETERS(Rounder) r, PARAMETERS(Philox) random) {
    convert<u8, false>(x, out, count, r, random, aligned);
}
EXPORT(encode_u8)

KERNEL(256) encode_u16(const float* x, u16* out, u64 count, u32 aligned, PARAMETERS(Rounder) r, PARAMETERS(Philox) random) {
    convert<u16, false>(x, out, count, r, random, aligned);
}
EXPORT(encode_u16)

KERNEL(256) encode_u32(const float* x, u32* out, u64 count, u32 aligned, PARAMETERS(Rounder) r, PARAMETERS(Philox) random) {
    convert<u32, false>(x, out, count, r, random, aligned);
}
EXPORT(encode_u32)

KERNEL(256) round_f32(const float* x, float* out, u64 count, u32 aligned, PARAMETERS(Rounder) r, PARAMETERS(Philox) random) {
    convert<float, true>(x, out, count, r, random, aligned);
}
EXPORT(round_f32)

KERNEL(256) round_bf16(const float* x, u16* out, u64 count, u32 aligned, PARAMETERS(Rounder) r, PARAMETERS(Philox) random) {
    convert<u16, true>(x, out, count, r, random, aligned);
}
EXPORT(round_bf16)

template <class T> DEVICE void decode(const T* codes, float* out, u64 count, const Rounder& r) {
    for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = float_of(decode_code(r, codes[i]));
}

KERNEL(256) decode_u8(const u8* codes, float* out, u64 count, PARAMETERS(Rounder) r) { decode(codes, out, count, r); }
EXPORT(decode_u8)

KERNEL(256) decode_u16(const u16* codes, float* out, u64 count, PARAMETERS(Rounder) r) { decode(codes, out, count, r); }
EXPORT(decode_u16)

KERNEL(256) decode_u32(const u32* codes, float* out, u64 count, PARAMETERS(Rounder) r) { decode(codes, out, count, r); }
EXPORT(decode_u32)

KERNEL(256) random_words(u32* out, u64 count, PARAMETERS(Philox) random) {
    for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = philox_word(random, i);
}
EXPORT(random_words)
