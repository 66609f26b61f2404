// One operand's part of a tile of a product: 32 positions of `SIZE` rows (or columns) in shared memory as
// binary32, position by position, and how they come there.
//
// An operand whose rows (or columns) are adjacent comes by 16 bytes. One whose positions are adjacent (K) is
// turned on the way: a warp takes eight positions of four rows. Rows of a panel are four numbers longer than
// SIZE, so that these lie in 32 banks.
#pragma once
#include "prelude.cuh"

#define POSITIONS 32

// SIZE bytes to shared memory without waiting, 4 or 16, of which `bytes` are there and the others zero.
// WHOLE: all are there.
template <int SIZE, bool WHOLE> DEVICE void fetch_bytes(void* shared, const void* global, u32 bytes) {
#ifdef EMULATED
    memset(shared, 0, SIZE);
    memcpy(shared, global, WHOLE ? SIZE : bytes);
#else
    u32 to = (u32)__cvta_generic_to_shared(shared);
    if (SIZE == 4 && WHOLE) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(global));
    } else if (SIZE == 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes));
    } else if (WHOLE) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global));
    } else {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
    }
#endif
}

// How a thread reads its `MANY` rows of a position.
template <int SIZE, int MANY> struct PanelRows {
    static const int PITCH = SIZE + 4;
    static const int FLOATS = POSITIONS * PITCH;

    // Which row of the tile is the i-th of thread t: four adjacent ones at a time.
    static DEVICE u32 row_of(u32 t, int i) { return i / 4 * (SIZE / MANY * 4) + t * 4 + i % 4; }

    // `panel`: the position, from the thread's first row on.
    static DEVICE void read(const float* panel, float (&x)[MANY]) {
#pragma unroll
        for (int i = 0; i < MANY; i += 4) {
            float4 four = *(const float4*)(panel + i / 4 * (SIZE / MANY * 4));
            x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
        }
    }
};

template <class T, bool K_ADJACENT, int SIZE, int MANY, int THREADS> struct Panel;

// Binary32 goes straight to shared memory.
template <bool K_ADJACENT, int SIZE, int MANY, int THREADS>
struct Panel<float, K_ADJACENT, SIZE, MANY, THREADS> : PanelRows<SIZE, MANY> {
    static const int PITCH = PanelRows<SIZE, MANY>::PITCH;
    static const int STAGES = 3;
    static const int WARPS = THREADS / 32;
    static const int PIECES = POSITIONS * SIZE / (K_ADJACENT ? 1 : 4) / THREADS;
    // Of K: rows between a thread's groups of four pieces. Else: positions between its pieces.
    static const int APART = K_ADJACENT ? 4 * WARPS : THREADS / (SIZE / 4);

    // This thread's first piece and its place in a panel; its position; how many rows are left from its first
    // on; whether all rows of the panel are there.
    const float* from;
    u32 to, position;
    i32 there;
    bool whole;

    DEVICE Panel(const float* x, u64 stride, u32 first, u32 rows, u32 k0) {
        u32 row;
        if (K_ADJACENT) {
            position = threadIdx.x % 32 / 4;
            row = threadIdx.x / 32 * 4 + threadIdx.x % 4;
            from = x + (first + row) * stride + k0 + position;
        } else {
            position = threadIdx.x / (SIZE / 4);
            row = threadIdx.x % (SIZE / 4) * 4;
            from = x + (k0 + position) * stride + first + row;
        }
        there = (i32)(rows - first - row);
        whole = first + SIZE <= rows;
        to = position * PITCH + row;
    }

    template <bool WHOLE> DEVICE void fetch_some(float* panel, u64 stride, u32 left) const {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            if (K_ADJACENT) {
                bool in = there > p / 4 * APART && position + p % 4 * 8 < left;
                fetch_bytes<4, WHOLE>(panel + to + p % 4 * 8 * PITCH + p / 4 * APART,
                                      from + p / 4 * APART * stride + p % 4 * 8, in ? 4 : 0);
            } else {
                u32 bytes = position + p * APART < left ? min(max(there, 0), 4) * 4 : 0;
                fetch_bytes<16, WHOLE>(panel + to + p * APART * PITCH, from + p * APART * stride, bytes);
            }
        }
    }

    // The next 32 positions, of which `left` are there.
    DEVICE void fetch(float* panel, u64 stride, u32 left) {
        if (whole && left >= POSITIONS) fetch_some<true>(panel, stride, left);
        else fetch_some<false>(panel, stride, left);
        from += K_ADJACENT ? (u64)POSITIONS : POSITIONS * stride;
    }

    DEVICE void store(float*) const {}

    static DEVICE void fetched_one_more() {
#ifndef EMULATED
        asm volatile("cp.async.commit_group;");
#endif
    }

    // Waits for all that was fetched but the last.
    static DEVICE void wait() {
#ifndef EMULATED
        asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
    }
};

// Bfloat16 goes by way of registers, where each number becomes binary32 once.
template <bool K_ADJACENT, int SIZE, int MANY, int THREADS>
struct Panel<u16, K_ADJACENT, SIZE, MANY, THREADS> : PanelRows<SIZE, MANY> {
    static const int PITCH = PanelRows<SIZE, MANY>::PITCH;
    static const int STAGES = 2;
    static const int PIECES = POSITIONS * SIZE / 8 / THREADS;

    const u16* x;
    u32 first, rows;
    uint4 held[PIECES];

    DEVICE Panel(const u16* from, u64 stride, u32 first, u32 rows, u32 k0)
        : x(from + (K_ADJACENT ? k0 : k0 * stride)), first(first), rows(rows) {}

    // The row and the position at which eight numbers of this thread begin.
    static DEVICE void place(int p, u32& row, u32& k) {
        u32 id = threadIdx.x + p * THREADS;
        if (K_ADJACENT) row = id % SIZE, k = id / SIZE * 8;
        else row = id % (SIZE / 8) * 8, k = id / (SIZE / 8);
    }

    DEVICE void fetch(float*, u64 stride, u32 left) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            u32 row, k;
            place(p, row, k);
            u32 line = K_ADJACENT ? first + row : k, col = K_ADJACENT ? k : first + row;
            u32 lines = K_ADJACENT ? rows : left, cols = K_ADJACENT ? left : rows;
            const u16* from = x + line * stride + col;
            if (line < lines && col + 8 <= cols) {
                held[p] = *(const uint4*)from;
            } else {
                u32 word[4] = {0, 0, 0, 0};
#pragma unroll
                for (u32 i = 0; i < 8; i++) {
                    if (line < lines && col + i < cols) word[i / 2] |= (u32)from[i] << i % 2 * 16;
                }
                held[p] = make_uint4(word[0], word[1], word[2], word[3]);
            }
        }
        x += K_ADJACENT ? (u64)POSITIONS : POSITIONS * stride;
    }

    DEVICE void store(float* panel) const {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            u32 row, k;
            place(p, row, k);
            u32 word[4] = {held[p].x, held[p].y, held[p].z, held[p].w};
            float* to = panel + k * PITCH + row;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float low = float_of(word[i] << 16), high = float_of(word[i] & 0xFFFF0000u);
                if (K_ADJACENT) {
                    to[2 * i * PITCH] = low;
                    to[(2 * i + 1) * PITCH] = high;
                } else {
                    *(float2*)(to + 2 * i) = make_float2(low, high);
                }
            }
        }
    }

    static DEVICE void fetched_one_more() {}
    static DEVICE void wait() {}
};
