// Matrix products on FP32 units in the library's written orders. The sum of each output is one thread's: no
// sum crosses threads, and only which outputs a thread has differs between the shapes of tiles.
//
// FAST  per 32 positions one chain of fused multiply-adds over the even ones and one over the odd ones, each
//       from +0; their sum is added to the sum so far (`gemm::fast`). What is behind the end are zeros, which
//       change nothing.
// F32   per 256 positions one chain from +0; the first sum is stored or added to what is there, each further
//       one is added (`gemm::f32`). Here the end is exact: one more step with zeros would turn -0 into +0.
//
// A block has a tile of BM x BN outputs, a thread TM x TN of them. 32 positions of both operands at a time
// are in shared memory (product_panel.cuh). While a thread multiplies one position, it reads the next.
//
// With fewer blocks than tiles the work is shared out evenly (`Share`): a tile may be begun by one block and
// ended by the next, which waits for the sums so far.
#pragma once
#include "product_panel.cuh"

#define ORDER_FAST 0
#define ORDER_F32 1

struct Gemm {
    u32 m, n, k, accumulate;
    u64 a_stride, b_stride, c_stride;
    float alpha, beta;
    // Whether results are rounded to bfloat16 at last.
    u32 rounds, gap;
};

// Which tile a block has: bands of eight tiles down, so that what blocks read at one time is little.
DEVICE void tile_of(u32 block, u32 down, u32 across, u32& row, u32& col) {
    u32 band = block / (8 * across), in = block - band * 8 * across;
    u32 height = min(down - band * 8, 8u);
    row = band * 8 + in % height;
    col = in / height;
}

// What this block does, in this order: the beginning of a tile, which the next block ends; whole tiles; the
// end of a tile that the block before began. So a block waits only for what the block before does first, and
// blocks start in the order of their numbers.
struct Share {
    u32 rounds, tail, head, whole, units;
    u32 tail_from, head_to;

    // `units` of each tile may be done by different blocks.
    DEVICE Share(u32 tiles, u32 units) : units(units) {
        // Whole tiles first, as neighbours read the same; the last one to two rounds are shared out.
        rounds = max(tiles / gridDim.x, 1u) - 1;
        u32 before = rounds * gridDim.x;
        u64 all = (u64)(tiles - before) * units;
        u64 first = all * blockIdx.x / gridDim.x, end = all * (blockIdx.x + 1) / gridDim.x;
        tail = before + (u32)(first / units);
        tail_from = (u32)(first % units);
        head = before + (u32)(end / units);
        head_to = (u32)(end % units);
        whole = tail + (tail_from > 0);
    }

    // Part number `i`: its tile and its units; nothing is left if there is none.
    DEVICE bool part(u32 i, u32& tile, u32& from, u32& to) const {
        from = 0, to = units;
        if (head_to > 0 && i-- == 0) {
            tile = head, to = head_to;
        } else if (i < rounds) {
            tile = i * gridDim.x + blockIdx.x;
        } else if ((i -= rounds) < head - whole) {
            tile = whole + i;
        } else {
            tile = tail, from = tail_from;
            return i == head - whole && tail_from > 0;
        }
        return true;
    }
};

template <int ORDER, class T, bool A_K, bool B_K, int BM, int BN, int TM, int TN>
DEVICE void product(const T* a, const T* b, float* c, const float* a_scale, const float* b_scale,
                    float4* begun, u32* ready, const Gemm& g) {
    const int THREADS = BM / TM * (BN / TN), ODD = ORDER == ORDER_FAST;
    // Steps of 32 positions that are done by one block, so that no chain is parted.
    const u32 UNIT = ORDER == ORDER_FAST ? 1 : 8;
    typedef Panel<T, A_K, BM, TM, THREADS> A;
    typedef Panel<T, B_K, BN, TN, THREADS> B;
    const int STAGE = A::FLOATS + B::FLOATS;
    DYNAMIC_SHARED(shared);
    float* stages = (float*)shared;

    // A warp has 4 x 8 threads. Those at a distance of 1 read the same rows and those at a distance of 2 the
    // same columns, by which shared memory serves half a warp at once.
    u32 tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    u32 ty = lane / 2 % 4, tx = lane % 2 + lane / 8 * 2;
    const int ACROSS = BN / TN / 8;
    ty += warp / ACROSS * 4;
    tx += warp % ACROSS * 8;

    u32 down = (g.m + BM - 1) / BM, across = (g.n + BN - 1) / BN;
    u32 steps = (g.k + POSITIONS - 1) / POSITIONS;
    float sum[TM][TN], chain[ODD + 1][TM][TN], x[2][TM], y[2][TN];
    auto multiply = [&](int which, int q, bool first) {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float& e = chain[which][i][j];
                e = first ? x[q][i] * y[q][j] : fma_rn(x[q][i], y[q][j], e);
            }
    };
    float factor = g.alpha;
    if (a_scale != nullptr) factor *= *a_scale;
    if (b_scale != nullptr) factor *= *b_scale;
    bool by_four = ((u64)c % 16 | g.c_stride % 4) == 0;

    Share share(down * across, max((steps + UNIT - 1) / UNIT, 1u));
    u32 tile, from, to;
    for (u32 p = 0; share.part(p, tile, from, to); p++) {
        bool ends = to == share.units;
        from *= UNIT, to = min(to * UNIT, steps);
        u32 row, col;
        tile_of(tile, down, across, row, col);
        row *= BM;
        col *= BN;
        A left(a, g.a_stride, row, g.m, from * POSITIONS);
        B right(b, g.b_stride, col, g.n, from * POSITIONS);
        u32 ahead = from, at = 0;
        auto fetch = [&]() {
            if (ahead < to) {
                float* panel = stages + at * STAGE;
                u32 positions = g.k - ahead * POSITIONS;
                left.fetch(panel, g.a_stride, positions);
                right.fetch(panel + A::FLOATS, g.b_stride, positions);
            }
            ahead++;
            at = at + 1 == A::STAGES ? 0 : at + 1;
            A::fetched_one_more();
        };
        u32 stored = 0;
        auto arrive = [&]() {
            left.store(stages + stored * STAGE);
            right.store(stages + stored * STAGE + A::FLOATS);
            stored = stored + 1 == A::STAGES ? 0 : stored + 1;
            A::wait();
            __syncthreads();
        };

        // Nobody reads the last tile's panels any more, and the sums so far are there.
        if (from > 0 && tid == 0) {
            while (atomicAdd(ready + blockIdx.x - 1, 0u) == 0) {}
        }
        __syncthreads();
        if (from > 0) __threadfence();
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (from > 0) four = begun[((blockIdx.x - 1) * TM * TN + i * TN + j) / 4 * THREADS + tid];
                sum[i][j] = four.x, sum[i][j + 1] = four.y, sum[i][j + 2] = four.z, sum[i][j + 3] = four.w;
            }
        fetch();
        if (A::STAGES == 3) fetch();
        arrive();
        const float *pa = stages + ty * 4, *pb = stages + A::FLOATS + tx * 4;
        u32 stage = 0;
        A::read(pa, x[0]);
        B::read(pb, y[0]);
        for (u32 t = from; t < to; t++) {
            fetch();
            if (ORDER == ORDER_F32 && t % 8 == 0) {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) chain[0][i][j] = 0.0f;
            }
            u32 positions = g.k - t * POSITIONS;
            if (ORDER == ORDER_FAST || positions >= POSITIONS) {
                // The first product of a chain from +0 needs no addition in the order FAST: only the sign of
                // a zero may differ, and that is lost where the chains are added to a sum that is never -0.
                A::read(pa + A::PITCH, x[1]);
                B::read(pb + B::PITCH, y[1]);
                multiply(0, 0, ORDER == ORDER_FAST);
                A::read(pa + 2 * A::PITCH, x[0]);
                B::read(pb + 2 * B::PITCH, y[0]);
                multiply(ODD, 1, ORDER == ORDER_FAST);
#pragma unroll 2
                for (int k = 3; k < POSITIONS - 1; k += 2) {
                    A::read(pa + k * A::PITCH, x[1]);
                    B::read(pb + k * B::PITCH, y[1]);
                    multiply(0, 0, false);
                    A::read(pa + (k + 1) * A::PITCH, x[0]);
                    B::read(pb + (k + 1) * B::PITCH, y[0]);
                    multiply(ODD, 1, false);
                }
                A::read(pa + (POSITIONS - 1) * A::PITCH, x[1]);
                B::read(pb + (POSITIONS - 1) * B::PITCH, y[1]);
                multiply(0, 0, false);
                arrive();
                stage = stage + 1 == A::STAGES ? 0 : stage + 1;
                pa = stages + stage * STAGE + ty * 4;
                pb = stages + stage * STAGE + A::FLOATS + tx * 4;
                A::read(pa, x[0]);
                B::read(pb, y[0]);
                multiply(ODD, 1, false);
            } else {
#pragma unroll 1
                for (u32 k = 0; k < positions; k++) {
                    A::read(pa + k * A::PITCH, x[0]);
                    B::read(pb + k * B::PITCH, y[0]);
                    multiply(0, 0, false);
                }
            }
            if (ORDER == ORDER_FAST) {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) sum[i][j] += chain[0][i][j] + chain[ODD][i][j];
            } else if (t % 8 == 7 || t + 1 == steps) {
                bool first = t < 8;
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        u32 r = row + A::row_of(ty, i), q = col + B::row_of(tx, j);
                        float old = sum[i][j];
                        if (first && g.accumulate && r < g.m && q < g.n) old = c[r * g.c_stride + q];
                        sum[i][j] = first && !g.accumulate ? chain[0][i][j] : old + chain[0][i][j];
                    }
            }
        }

        if (!ends) {
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    begun[(blockIdx.x * TM * TN + i * TN + j) / 4 * THREADS + tid] =
                        make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
                }
            __threadfence();
            __syncthreads();
            if (tid == 0) atomicAdd(ready + blockIdx.x, 1u);
            continue;
        }
#pragma unroll
        for (int i = 0; i < TM; i++) {
            u32 r = row + A::row_of(ty, i);
            if (r >= g.m) continue;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                u32 q = col + B::row_of(tx, j);
                float* out = c + r * g.c_stride + q;
                float four[4];
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    four[e] = sum[i][j + e];
                    if (ORDER == ORDER_FAST) {
                        float y = factor * four[e];
                        if (g.beta != 0.0f && q + e < g.n) y += g.beta * out[e];
                        four[e] = g.rounds ? nearest_bf16(y) : canonical(y);
                    } else if (steps == 0 && g.accumulate && q + e < g.n) {
                        four[e] = out[e] + 0.0f;
                    }
                }
                if (by_four && q + 4 <= g.n) {
                    *(float4*)out = make_float4(four[0], four[1], four[2], four[3]);
                } else {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        if (q + e < g.n) out[e] = four[e];
                    }
                }
            }
        }
    }
}

#define PRODUCT(ORDER, KIND, T, MAJORS, A_K, B_K, SIZE, BM, BN, TM, TN)                                    \
    KERNEL(BM / TM * (BN / TN))                                                                            \
    KIND##_##MAJORS##_##SIZE(const T* a, const T* b, float* c, const float* a_scale, const float* b_scale, \
                             float4* begun, u32* ready, PARAMETERS(Gemm) g) {                              \
        product<ORDER, T, A_K, B_K, BM, BN, TM, TN>(a, b, c, a_scale, b_scale, begun, ready, g);           \
    }

// Names end with how operands lie: `nt` has the positions of both adjacent, `nn` those of the left one, `tn`
// none. Then the tile.
#define PRODUCTS(ORDER, KIND, T, SIZE, BM, BN, TM, TN)             \
    PRODUCT(ORDER, KIND, T, nt, true, true, SIZE, BM, BN, TM, TN)  \
    PRODUCT(ORDER, KIND, T, nn, true, false, SIZE, BM, BN, TM, TN) \
    PRODUCT(ORDER, KIND, T, tn, false, false, SIZE, BM, BN, TM, TN)
