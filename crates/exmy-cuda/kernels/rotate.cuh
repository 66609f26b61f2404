// The random Hadamard transform of the library's `block::hadamard`, where numbers are in registers.
#pragma once
#include "prelude.cuh"
#include "round.cuh"
#include "scale.cuh"

DEVICE u32 sign_bit_of(const Blocks& b, u32 place) { return (b.signs[place >> 5] >> (place & 31)) << 31; }

// What comes behind the butterflies: the scale, and bfloat16 if the transform rounds to it.
template <int N> DEVICE void scale_rotated(const Blocks& b, u32* x) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        u32 p = bits_of(float_of(x[i]) * b.rotation_scale),
            q = bits_of(float_of(x[i + 1]) * b.rotation_scale);
        if (b.rotation_to_bf16) {
            u32 both = two_bf16(p, q);
            p = both << 16;
            q = both & 0xFFFF0000u;
        }
        x[i] = p;
        x[i + 1] = q;
    }
}

// The rotation of groups of up to 128, of which this thread has 8 adjacent elements from column `col` on. All
// lanes of the warp take part.
DEVICE void rotate_eight(const Blocks& b, u32 col, u32* x) {
    u32 size = b.rotation;
    float y[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) y[i] = float_of(x[i] ^ sign_bit_of(b, (col + i) & (size - 1)));
#pragma unroll
    for (u32 h = 1; h < 8; h *= 2) {
        if (h < size) {
#pragma unroll
            for (u32 i = 0; i < 8; i++) {
                if (!(i & h)) {
                    float a = y[i], c = y[i + h];
                    y[i] = a + c;
                    y[i + h] = a - c;
                }
            }
        }
    }
    for (u32 h = 8; h < size; h *= 2) {
        bool upper = col & h;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            float other = __shfl_xor_sync(0xFFFFFFFFu, y[i], (int)(h / 8));
            y[i] = upper ? other - y[i] : y[i] + other;
        }
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++) x[i] = bits_of(y[i]);
    scale_rotated<8>(b, x);
}
