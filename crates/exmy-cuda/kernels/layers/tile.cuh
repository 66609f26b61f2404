// A tile of a product in registers, its operands by way of shared memory: every element is one chain of fused
// multiply-adds, ascending. Which elements share a tile does not enter their bits.
#pragma once
#include "layers/real.cuh"

// Four numbers from `p` on of which `count` are there.
DEVICE float4 four(const float* p, i32 count, bool vector) {
    if (vector && count >= 4) return *(const float4*)p;
    return make_float4(
        count > 0 ? p[0] : 0.0f, count > 1 ? p[1] : 0.0f, count > 2 ? p[2] : 0.0f, count > 3 ? p[3] : 0.0f
    );
}
DEVICE bool on_vectors(const float* p, u64 row) { return ((u64)p | row * 4) % 16 == 0; }

#define DEPTH 16

// A tile of the product of `left` (rows m, chain k) and `right` (chain k, columns n). What is turned lies
// with the chain in rows of memory: left[k][m]; what is not: left[m][k]. Right likewise: right[k][n], or
// turned right[n][k].
template <int BM, int BN, int TM, int TN> struct Tile {
    enum {
        THREADS = (BM / TM) * (BN / TN),
        LEFT = BM * DEPTH / 4 / THREADS,
        RIGHT = BN * DEPTH / 4 / THREADS,
        LEFT_PITCH = BM + 4,
        RIGHT_PITCH = BN + 4
    };
    float sums[TM][TN];
    float4 from_left[LEFT], from_right[RIGHT];

    DEVICE u32 row(u32 i) const { return threadIdx.x / (BN / TN) * 4 + i / 4 * (BM / (TM / 4)) + i % 4; }
    DEVICE u32 col(u32 j) const { return threadIdx.x % (BN / TN) * 4 + j / 4 * (BN / (TN / 4)) + j % 4; }

    // Numbers along memory's rows: `across` is the index that memory's rows have, `along` that within a row.
    template <int COUNT, int ROWS, int WIDTH>
    DEVICE void fetch(
        float4 (&to)[COUNT], const float* from, u64 stride, u32 across, u32 along, u32 rows, u32 width,
        bool vector
    ) {
        EACH_ROUND
        for (int i = 0; i < COUNT; i++) {
            u32 id = threadIdx.x + i * THREADS, r = across + id / (WIDTH / 4),
                c = along + id % (WIDTH / 4) * 4;
            to[i] =
                r < rows ? four(from + r * stride + c, (i32)width - (i32)c, vector) : make_float4(0, 0, 0, 0);
        }
    }
    template <bool CHAIN_IN_ROWS, int COUNT, int WIDTH, int PITCH>
    DEVICE void place(float (&to)[DEPTH][PITCH], const float4 (&from)[COUNT], float scale) {
        EACH_ROUND
        for (int i = 0; i < COUNT; i++) {
            u32 id = threadIdx.x + i * THREADS;
            float4 x = from[i];
            x.x = x.x * scale;
            x.y = x.y * scale;
            x.z = x.z * scale;
            x.w = x.w * scale;
            if (CHAIN_IN_ROWS) {
                *(float4*)&to[id / (WIDTH / 4)][id % (WIDTH / 4) * 4] = x;
            } else {
                u32 r = id / (DEPTH / 4), k = id % (DEPTH / 4) * 4;
                to[k][r] = x.x;
                to[k + 1][r] = x.y;
                to[k + 2][r] = x.z;
                to[k + 3][r] = x.w;
            }
        }
    }
    DEVICE void clear() {
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            EACH_ROUND
            for (int j = 0; j < TN; j++) sums[i][j] = 0.0f;
        }
    }
    DEVICE void step(const float* left, const float* right, float (&a)[TM], float (&b)[TN]) {
        EACH_ROUND
        for (int i = 0; i < TM; i += 4) *(float4*)&a[i] = *(const float4*)&left[row(i)];
        EACH_ROUND
        for (int j = 0; j < TN; j += 4) *(float4*)&b[j] = *(const float4*)&right[col(j)];
    }

    // Walks the chain from `start` to `end`: fuse(k0, k, all, a, b) for each k0 + k, ascending, with a row's
    // and a column's numbers; then after(k0 + DEPTH). Where all is true k is a constant and every row takes
    // part.
    template <bool LEFT_TURNED, bool RIGHT_TURNED, class Fuse, class After, class Whole>
    DEVICE void walk(
        const float* left, u64 left_stride, u32 m0, u32 rows, const float* right, u64 right_stride, u32 n0,
        u32 cols, u32 start, u32 end, u32 ks, float scale, Fuse fuse, After after, Whole whole
    ) {
        SHARED __align__(16) float lefts[2][DEPTH][LEFT_PITCH];
        SHARED __align__(16) float rights[2][DEPTH][RIGHT_PITCH];
        bool left_vector = on_vectors(left, left_stride), right_vector = on_vectors(right, right_stride);
        auto load = [&](u32 k0) {
            if (LEFT_TURNED)
                fetch<LEFT, DEPTH, BM>(from_left, left, left_stride, k0, m0, ks, rows, left_vector);
            else fetch<LEFT, BM, DEPTH>(from_left, left, left_stride, m0, k0, rows, ks, left_vector);
            if (RIGHT_TURNED)
                fetch<RIGHT, BN, DEPTH>(from_right, right, right_stride, n0, k0, cols, ks, right_vector);
            else fetch<RIGHT, DEPTH, BN>(from_right, right, right_stride, k0, n0, ks, cols, right_vector);
        };
        auto store = [&](u32 s) {
            place<LEFT_TURNED, LEFT, BM, LEFT_PITCH>(lefts[s], from_left, scale);
            place<!RIGHT_TURNED, RIGHT, BN, RIGHT_PITCH>(rights[s], from_right, 1.0f);
        };
        if (start >= end) return;
        __syncthreads();
        load(start);
        store(0);
        __syncthreads();
        u32 s = 0;
        for (u32 k0 = start; k0 < end; k0 += DEPTH, s ^= 1) {
            if (k0 + DEPTH < end) load(k0 + DEPTH);
            float a[TM], b[TN];
            if (k0 + DEPTH <= end && whole(k0)) {
                EACH_ROUND
                for (int k = 0; k < DEPTH; k++) {
                    step(lefts[s][k], rights[s][k], a, b);
                    fuse(k0, k, true, a, b);
                }
            } else {
                u32 count = end - k0 < DEPTH ? end - k0 : DEPTH;
                for (u32 k = 0; k < count; k++) {
                    step(lefts[s][k], rights[s][k], a, b);
                    fuse(k0, k, false, a, b);
                }
            }
            after(k0 + DEPTH);
            if (k0 + DEPTH < end) store(s ^ 1);
            __syncthreads();
        }
    }

    // One chain in `sums`. Row m of the tile takes part at k where takes(m, k); at k in `whole` all do.
    template <bool LEFT_TURNED, bool RIGHT_TURNED, class Takes, class Whole>
    DEVICE void chain(
        const float* left, u64 left_stride, u32 m0, u32 rows, const float* right, u64 right_stride, u32 n0,
        u32 cols, u32 start, u32 end, u32 ks, float scale, Takes takes, Whole whole
    ) {
        auto fuse = [&](u32 k0, u32 k, bool all, const float(&a)[TM], const float(&b)[TN]) {
            EACH_ROUND
            for (int i = 0; i < TM; i++) {
                bool in = all || takes(m0 + row(i), k0 + k);
                EACH_ROUND
                for (int j = 0; j < TN; j++) sums[i][j] = in ? fma_rn(a[i], b[j], sums[i][j]) : sums[i][j];
            }
        };
        walk<LEFT_TURNED, RIGHT_TURNED>(
            left, left_stride, m0, rows, right, right_stride, n0, cols, start, end, ks, scale, fuse,
            [](u32) {}, whole
        );
    }

    // The sums from `out` on that are there, or to it: row r has the columns below `cols(r)`. Four columns at a
    // time where memory allows it.
    template <bool TO, class Out, class Cols> DEVICE void move(Out* out, u64 stride, u32 rows, Cols cols) {
        bool vector = on_vectors(out, stride);
        EACH_ROUND
        for (int i = 0; i < TM; i++) {
            u32 r = row(i), end = r < rows ? cols(r) : 0;
            EACH_ROUND
            for (int j = 0; j < TN; j += 4) {
                u32 c = col(j);
                Out* at = out + (u64)r * stride + c;
                if (vector && c + 4 <= end) {
                    float4 x = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
                    if constexpr (TO) *(float4*)at = x;
                    else {
                        x = *(const float4*)at;
                        sums[i][j] = x.x;
                        sums[i][j + 1] = x.y;
                        sums[i][j + 2] = x.z;
                        sums[i][j + 3] = x.w;
                    }
                    continue;
                }
                EACH_ROUND
                for (int k = 0; k < 4; k++) {
                    if (c + k >= end) continue;
                    if constexpr (TO) at[k] = sums[i][j + k];
                    else sums[i][j + k] = at[k];
                }
            }
        }
    }
};
