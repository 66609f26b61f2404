// Matrix products on FP32 units in the library's written orders. The sum of each output is one thread's: no
// sum crosses threads, and only which outputs a thread has differs between the shapes of tiles.
//
// FAST  per 32 positions one chain of fused multiply-adds over the even ones and one over the odd ones, each
// from +0;
//       their sum is added to the sum so far (`gemm::fast`). What is behind the end are zeros, which change
//       nothing.
// F32   per 256 positions one chain from +0; the first sum is stored or added to what is there, each further
// one is
//       added (`gemm::f32`). Here the end is exact: one more step with zeros would turn -0 into +0.
//
// A block of 256 threads has a tile of BM x BN outputs, a thread TM x TN of them. 32 positions of both
// operands at a time are in shared memory: of an operand whose positions are adjacent (K) as rows of 32, of
// one whose rows or columns are (not K) as rows of BM or BN. A thread takes four positions at a time to
// registers.
#pragma once
#include "prelude.cuh"

#define ORDER_FAST 0
#define ORDER_F32 1

#define POSITIONS 32
// Rows of 32 positions are 36 numbers apart, so that eight of them begin in different banks.
#define ROW 36
#define STAGES 3

struct Gemm {
    u32 m, n, k, accumulate;
    u64 a_stride, b_stride, c_stride;
    float alpha, beta;
};

// 16 bytes to shared memory, of which `bytes` are there and the others zero, without waiting.
DEVICE void fetch_16(void* shared, const void* global, u32 bytes) {
#ifdef EMULATED
    memset(shared, 0, 16);
    memcpy(shared, global, bytes);
#else
    u32 to = (u32)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
#endif
}

DEVICE void fetched_one_more() {
#ifndef EMULATED
    asm volatile("cp.async.commit_group;");
#endif
}

// Waits for all groups but the last `N`.
template <int N> DEVICE void wait_fetched() {
#ifndef EMULATED
    asm volatile("cp.async.wait_group %0;" ::"n"(N));
#endif
}

// One operand's part of a tile: `SIZE` rows (or columns), and how a thread reads its `MANY` of them.
template <class T, bool K_ADJACENT, int SIZE, int MANY> struct Panel {
    static const int PITCH = K_ADJACENT ? ROW : SIZE + 4;
    static const int FLOATS = K_ADJACENT ? SIZE * ROW : POSITIONS * (SIZE + 4);
    // Numbers in 16 bytes, and such pieces of a thread.
    static const int WIDE = 16 / sizeof(T);
    static const int PIECES = SIZE * POSITIONS / WIDE / 256;
    static const int PER_ROW = (K_ADJACENT ? POSITIONS : SIZE) / WIDE;

    // Which row of the tile a thread's i-th is.
    static DEVICE u32 row_of(u32 t, int i) { return K_ADJACENT ? t + 16 * i : (i / 4) * 64 + t * 4 + i % 4; }

    // Where piece `p` of this thread is, and how many of its numbers are there.
    static DEVICE const T* piece(const T* x, u64 stride, u32 first, u32 rows, u32 k0, u32 k, int p,
                                 u32& count, u32& to) {
        u32 id = threadIdx.x + p * 256, row = id / PER_ROW, at = id % PER_ROW * WIDE;
        to = row * PITCH + at;
        u32 line = (K_ADJACENT ? first : k0) + row, col = (K_ADJACENT ? k0 : first) + at;
        u32 lines = K_ADJACENT ? rows : k, cols = K_ADJACENT ? k : rows;
        count = line < lines && col < cols ? min(cols - col, (u32)WIDE) : 0;
        return count ? x + line * stride + col : x;
    }

    // Binary32: straight to shared memory.
    static DEVICE void fetch(float* panel, const T* x, u64 stride, u32 first, u32 rows, u32 k0, u32 k) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            u32 count, to;
            const T* from = piece(x, stride, first, rows, k0, k, p, count, to);
            fetch_16(panel + to, from, count * 4);
        }
    }

    // Bfloat16: by way of registers, where each number becomes binary32 once.
    static DEVICE void load(uint4* held, const T* x, u64 stride, u32 first, u32 rows, u32 k0, u32 k) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            u32 count, to;
            const T* from = piece(x, stride, first, rows, k0, k, p, count, to);
            if (count == WIDE) {
                held[p] = *(const uint4*)from;
            } else {
                u32 word[4] = {0, 0, 0, 0};
#pragma unroll
                for (u32 i = 0; i < WIDE; i++) {
                    if (i < count) word[i * sizeof(T) / 4] |= (u32)from[i] << (i * sizeof(T) % 4 * 8);
                }
                held[p] = make_uint4(word[0], word[1], word[2], word[3]);
            }
        }
    }

    static DEVICE void store(float* panel, const uint4* held) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            u32 id = threadIdx.x + p * 256, row = id / PER_ROW, at = id % PER_ROW * WIDE;
            float* to = panel + row * PITCH + at;
            uint4 w = held[p];
            *(float4*)to = make_float4(float_of(w.x << 16), float_of(w.x & 0xFFFF0000u), float_of(w.y << 16),
                                       float_of(w.y & 0xFFFF0000u));
            *(float4*)(to + 4) = make_float4(float_of(w.z << 16), float_of(w.z & 0xFFFF0000u),
                                             float_of(w.w << 16), float_of(w.w & 0xFFFF0000u));
        }
    }

    // `AT_ONCE` positions from k on of this thread's rows.
    template <int AT_ONCE> static DEVICE void read(const float* panel, u32 t, u32 k,
                                                   float (&x)[MANY][AT_ONCE]) {
        if (K_ADJACENT) {
#pragma unroll
            for (int i = 0; i < MANY; i++) {
                const float* from = panel + (t + 16 * i) * PITCH + k;
                if (AT_ONCE == 4) {
                    float4 four = *(const float4*)from;
                    x[i][0] = four.x, x[i][1] = four.y, x[i][2 % AT_ONCE] = four.z,
                    x[i][3 % AT_ONCE] = four.w;
                } else {
                    float2 two = *(const float2*)from;
                    x[i][0] = two.x, x[i][1] = two.y;
                }
            }
        } else {
#pragma unroll
            for (int q = 0; q < AT_ONCE; q++) {
#pragma unroll
                for (int i = 0; i < MANY; i += 4) {
                    float4 four = *(const float4*)(panel + (k + q) * PITCH + (i / 4) * 64 + t * 4);
                    x[i][q] = four.x, x[i + 1][q] = four.y, x[i + 2][q] = four.z, x[i + 3][q] = four.w;
                }
            }
        }
    }
};

// Which tile a block has: bands of eight tiles down, so that what blocks read at one time is little.
DEVICE void tile_of(u32 block, u32 down, u32 across, u32& row, u32& col) {
    u32 band = block / (8 * across), in = block - band * 8 * across;
    u32 height = min(down - band * 8, 8u);
    row = band * 8 + in % height;
    col = in / height;
}

template <class T> struct IsWide {
    static const bool YES = true;
};
template <> struct IsWide<u16> {
    static const bool YES = false;
};

template <int ORDER, class T, bool A_K, bool B_K, int BM, int BN, int AT_ONCE, bool ASIDE>
DEVICE void product(const T* a, const T* b, float* c, const float* a_scale, const float* b_scale,
                    const Gemm& g) {
    const int TM = BM / 16, TN = BN / 16;
    typedef Panel<T, A_K, BM, TM> A;
    typedef Panel<T, B_K, BN, TN> B;
    const bool FETCHED = IsWide<T>::YES;
    const int STAGE = A::FLOATS + B::FLOATS;
    // Where registers are full with chains, the sums so far wait in shared memory.
    const int OWN = ASIDE ? 1 : TM * TN;
    DYNAMIC_SHARED(shared);
    float* stages = (float*)shared;
    float4* aside = (float4*)(stages + (FETCHED ? STAGES : 2) * STAGE);

    u32 tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    u32 ty = warp / 2 * 4 + lane / 8, tx = warp % 2 * 8 + lane % 8;
    u32 row, col;
    tile_of(blockIdx.x, (g.m + BM - 1) / BM, (g.n + BN - 1) / BN, row, col);
    row *= BM;
    col *= BN;

    float sum[OWN];
    if (ASIDE) {
        for (int q = 0; q < TM * TN / 4; q++) aside[q * 256 + tid] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    } else {
#pragma unroll
        for (int i = 0; i < OWN; i++) sum[i] = 0.0f;
    }
    float chain[ORDER == ORDER_FAST ? 2 : 1][TM][TN];
    u32 tiles = (g.k + POSITIONS - 1) / POSITIONS;
    uint4 held_a[FETCHED ? 1 : A::PIECES], held_b[FETCHED ? 1 : B::PIECES];

    auto fetch = [&](u32 t) {
        if (t < tiles) {
            float* to = stages + t % STAGES * STAGE;
            A::fetch(to, a, g.a_stride, row, g.m, t * POSITIONS, g.k);
            B::fetch(to + A::FLOATS, b, g.b_stride, col, g.n, t * POSITIONS, g.k);
        }
        fetched_one_more();
    };
    auto load = [&](u32 t) {
        A::load(held_a, a, g.a_stride, row, g.m, t * POSITIONS, g.k);
        B::load(held_b, b, g.b_stride, col, g.n, t * POSITIONS, g.k);
    };
    auto store = [&](u32 t) {
        float* to = stages + t % 2 * STAGE;
        A::store(to, held_a);
        B::store(to + A::FLOATS, held_b);
    };
    if constexpr (FETCHED) {
        fetch(0);
        fetch(1);
    } else if (tiles > 0) {
        load(0);
        store(0);
    }

    for (u32 t = 0; t < tiles; t++) {
        if constexpr (FETCHED) {
            wait_fetched<1>();
            __syncthreads();
            fetch(t + 2);
        } else {
            __syncthreads();
            if (t + 1 < tiles) load(t + 1);
        }
        const float* pa = stages + (FETCHED ? t % STAGES : t % 2) * STAGE;
        const float* pb = pa + A::FLOATS;
        float x[TM][AT_ONCE], y[TN][AT_ONCE];
        if constexpr (ORDER == ORDER_FAST) {
            // The first product of a chain from +0 needs no addition: only the sign of a zero may differ, and
            // that is lost where the chains are added to a sum that is never -0.
            A::template read<AT_ONCE>(pa, ty, 0, x);
            B::template read<AT_ONCE>(pb, tx, 0, y);
#pragma unroll
            for (int q = 0; q < AT_ONCE; q++) {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        float* e = &chain[q & 1][i][j];
                        *e = q < 2 ? x[i][q] * y[j][q] : fma_rn(x[i][q], y[j][q], *e);
                    }
            }
#pragma unroll 1
            for (u32 k = AT_ONCE; k < POSITIONS; k += AT_ONCE) {
                A::template read<AT_ONCE>(pa, ty, k, x);
                B::template read<AT_ONCE>(pb, tx, k, y);
#pragma unroll
                for (int q = 0; q < AT_ONCE; q++)
#pragma unroll
                    for (int i = 0; i < TM; i++)
#pragma unroll
                        for (int j = 0; j < TN; j++)
                            chain[q & 1][i][j] = fma_rn(x[i][q], y[j][q], chain[q & 1][i][j]);
            }
            if constexpr (ASIDE) {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j += 4) {
                        float4* at = aside + (i * TN + j) / 4 * 256 + tid;
                        float4 s = *at;
                        s.x += chain[0][i][j] + chain[1][i][j];
                        s.y += chain[0][i][j + 1] + chain[1][i][j + 1];
                        s.z += chain[0][i][j + 2] + chain[1][i][j + 2];
                        s.w += chain[0][i][j + 3] + chain[1][i][j + 3];
                        *at = s;
                    }
            } else {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) sum[i * TN + j] += chain[0][i][j] + chain[1][i][j];
            }
        } else {
            if (t % 8 == 0) {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) chain[0][i][j] = 0.0f;
            }
            u32 left = g.k - t * POSITIONS;
            if (left >= POSITIONS) {
#pragma unroll 1
                for (u32 k = 0; k < POSITIONS; k += AT_ONCE) {
                    A::template read<AT_ONCE>(pa, ty, k, x);
                    B::template read<AT_ONCE>(pb, tx, k, y);
#pragma unroll
                    for (int q = 0; q < AT_ONCE; q++)
#pragma unroll
                        for (int i = 0; i < TM; i++)
#pragma unroll
                            for (int j = 0; j < TN; j++)
                                chain[0][i][j] = fma_rn(x[i][q], y[j][q], chain[0][i][j]);
                }
            } else {
#pragma unroll 1
                for (u32 k = 0; k < left; k += AT_ONCE) {
                    A::template read<AT_ONCE>(pa, ty, k, x);
                    B::template read<AT_ONCE>(pb, tx, k, y);
#pragma unroll
                    for (int q = 0; q < AT_ONCE; q++) {
                        if (k + q < left) {
#pragma unroll
                            for (int i = 0; i < TM; i++)
#pragma unroll
                                for (int j = 0; j < TN; j++)
                                    chain[0][i][j] = fma_rn(x[i][q], y[j][q], chain[0][i][j]);
                        }
                    }
                }
            }
            if (t % 8 == 7 || t + 1 == tiles) {
                bool first = t < 8;
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        u32 r = row + A::row_of(ty, i), q = col + B::row_of(tx, j);
                        float* at =
                            ASIDE ? (float*)(aside + (i * TN + j) / 4 * 256 + tid) + j % 4 : sum + i * TN + j;
                        float old = *at;
                        if (first && g.accumulate && r < g.m && q < g.n) old = c[r * g.c_stride + q];
                        *at = first && !g.accumulate ? chain[0][i][j] : old + chain[0][i][j];
                    }
            }
        }
        if constexpr (!FETCHED) {
            if (t + 1 < tiles) store(t + 1);
        }
    }

    float factor = g.alpha;
    if (a_scale != nullptr) factor *= *a_scale;
    if (b_scale != nullptr) factor *= *b_scale;
#pragma unroll
    for (int i = 0; i < TM; i++) {
        u32 r = row + A::row_of(ty, i);
#pragma unroll
        for (int j = 0; j < TN; j++) {
            u32 q = col + B::row_of(tx, j);
            if (r >= g.m || q >= g.n) continue;
            float* out = c + r * g.c_stride + q;
            float total;
            if constexpr (ASIDE) total = ((const float*)(aside + (i * TN + j) / 4 * 256 + tid))[j % 4];
            else total = sum[i * TN + j];
            if (ORDER == ORDER_FAST) {
                float y = factor * total;
                if (g.beta != 0.0f) y += g.beta * *out;
                total = canonical(y);
            } else if (tiles == 0 && g.accumulate) {
                total = *out + 0.0f;
            }
            *out = total;
        }
    }
}

#define PRODUCT(ORDER, KIND, T, MAJORS, A_K, B_K, SIZE, BM, BN, AT_ONCE, ASIDE)                            \
    KERNEL(256)                                                                                            \
    KIND##_##MAJORS##_##SIZE(const T* a, const T* b, float* c, const float* a_scale, const float* b_scale, \
                             PARAMETERS(Gemm) g) {                                                         \
        product<ORDER, T, A_K, B_K, BM, BN, AT_ONCE, ASIDE>(a, b, c, a_scale, b_scale, g);                 \
    }

// Names end with how operands lie: `nt` has the positions of both adjacent, `nn` those of the left one, `tn`
// none. Then the tile: large, where `tn` reads two positions at once, tall and small.
#define PRODUCTS(ORDER, KIND, T, SIZE, BM, BN, AT_ONCE, ASIDE)             \
    PRODUCT(ORDER, KIND, T, nt, true, true, SIZE, BM, BN, AT_ONCE, ASIDE)  \
    PRODUCT(ORDER, KIND, T, nn, true, false, SIZE, BM, BN, AT_ONCE, ASIDE) \
    PRODUCT(ORDER, KIND, T, tn, false, false, SIZE, BM, BN, AT_ONCE, ASIDE)
