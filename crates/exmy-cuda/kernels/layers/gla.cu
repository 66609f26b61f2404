// Gated linear attention in chunks of sixteen tokens: the bits of exmy-train's nn/gla.rs, gla/chunk.rs and
// gla/backward.rs, whose formulas and orders these are.
//
// A block has a (sequence, head) and walks its chunks. What a chunk needs lies in shared memory if it fits,
// else in global: arrays by channel have a pitch of 17, rows of values one of `row` + 1, against conflicts of
// banks.
#include "layers/real.cuh"

#define TOKENS 16
#define PITCH 17

struct Gla {
    u32 sequence, heads, key, value, row, stride;
};

struct Chunk {
    float *q, *k, *alpha, *qp, *decayed, *v, *scores, *p;
    u32 c, first;
};

DEVICE float* cut(float*& from, u32 count) {
    float* part = from;
    from += count;
    return part;
}

DEVICE Chunk chunk_in(float*& work, Gla s) {
    Chunk chunk;
    chunk.q = cut(work, s.key * PITCH);
    chunk.k = cut(work, s.key * PITCH);
    chunk.alpha = cut(work, s.key * PITCH);
    chunk.qp = cut(work, s.key * PITCH);
    chunk.decayed = cut(work, s.key * PITCH);
    chunk.v = cut(work, TOKENS * (s.row + 1));
    chunk.scores = cut(work, TOKENS * TOKENS);
    chunk.p = cut(work, s.key);
    return chunk;
}

// Reads a chunk, and what its decays make of queries and keys. The scores only if they are asked for.
DEVICE void read_chunk(
    Chunk& chunk, Gla s, u32 head, u32 first, const float* qkv, const float* alpha, bool scores
) {
    u32 keys = s.heads * s.key, c = s.sequence - first < TOKENS ? s.sequence - first : TOKENS;
    float scale = 1.0f / __fsqrt_rn((float)s.key);
    chunk.c = c;
    chunk.first = first;
    __syncthreads();
    for (u32 e = threadIdx.x; e < c * s.key; e += blockDim.x) {
        u32 t = e / s.key, d = e % s.key, at = d * PITCH + t;
        const float* row = qkv + (u64)(first + t) * s.stride + head * s.key + d;
        chunk.q[at] = row[0] * scale;
        chunk.k[at] = row[keys];
        chunk.alpha[at] = alpha[(u64)(first + t) * keys + head * s.key + d];
    }
    for (u32 e = threadIdx.x; e < c * s.row; e += blockDim.x) {
        u32 t = e / s.row, x = e % s.row;
        const float* row = qkv + (u64)(first + t) * s.stride + 2 * keys + head * s.value;
        chunk.v[t * (s.row + 1) + x] = x < s.value ? row[x] : 0.0f;
    }
    __syncthreads();
    for (u32 d = threadIdx.x; d < s.key; d += blockDim.x) {
        float p = 1.0f;
        for (u32 t = 0; t < c; t++) {
            p = p * chunk.alpha[d * PITCH + t];
            chunk.qp[d * PITCH + t] = chunk.q[d * PITCH + t] * p;
        }
        chunk.p[d] = p;
    }
    for (u32 e = threadIdx.x; e < TOKENS * s.key; e += blockDim.x) {
        u32 d = e / TOKENS, l = e % TOKENS;
        float x = l < c ? chunk.k[d * PITCH + l] : 0.0f;
        for (u32 i = l + 1; i < c; i++) x = x * chunk.alpha[d * PITCH + i];
        chunk.decayed[d * PITCH + l] = x;
    }
    u32 i = threadIdx.x / TOKENS, l = threadIdx.x % TOKENS;
    if (scores && i < c && l <= i) {
        float sum = 0.0f;
        for (u32 d = 0; d < s.key; d++) {
            float x = chunk.k[d * PITCH + l];
            for (u32 j = l + 1; j <= i; j++) x = x * chunk.alpha[d * PITCH + j];
            sum = fma_rn(chunk.q[d * PITCH + i], x, sum);
        }
        chunk.scores[i * TOKENS + l] = sum;
    }
    __syncthreads();
}

// The state behind the chunk from that before it.
DEVICE void advance(const Chunk& chunk, Gla s, const float* from, float* to) {
    for (u32 e = threadIdx.x; e < s.key * s.row; e += blockDim.x) {
        u32 d = e / s.row, x = e % s.row;
        float sum = from[e] * chunk.p[d];
        for (u32 j = 0; j < chunk.c; j++)
            sum = fma_rn(chunk.decayed[d * PITCH + j], chunk.v[j * (s.row + 1) + x], sum);
        to[e] = sum;
    }
}

// From `states` and to those behind the last whole chunk, or from zero if there are none.
KERNEL(256) gla(
    const float* qkv, const float* alpha, float* y, float* states, float* scratch, u32 unit, u32 in_shared,
    Gla s
) {
    DYNAMIC_SHARED(shared);
    float* work = in_shared ? (float*)shared : scratch + (u64)blockIdx.x * unit;
    u64 batch = blockIdx.x / s.heads;
    u32 head = blockIdx.x % s.heads, keys = s.heads * s.key, values = s.heads * s.value;
    qkv += batch * s.sequence * s.stride;
    alpha += batch * s.sequence * keys;
    y += batch * s.sequence * values + head * s.value;
    float* state = cut(work, s.key * s.row);
    Chunk chunk = chunk_in(work, s);
    u32 size = s.key * s.row;
    if (states) states += (u64)blockIdx.x * size;
    for (u32 e = threadIdx.x; e < size; e += blockDim.x) state[e] = states ? states[e] : 0.0f;
    for (u32 first = 0; first < s.sequence; first += TOKENS) {
        read_chunk(chunk, s, head, first, qkv, alpha, true);
        for (u32 e = threadIdx.x; e < chunk.c * s.value; e += blockDim.x) {
            u32 i = e / s.value, x = e % s.value;
            float sum = 0.0f;
            for (u32 d = 0; d < s.key; d++) sum = fma_rn(chunk.qp[d * PITCH + i], state[d * s.row + x], sum);
            for (u32 j = 0; j <= i; j++)
                sum = fma_rn(chunk.scores[i * TOKENS + j], chunk.v[j * (s.row + 1) + x], sum);
            y[(u64)(first + i) * values + x] = sum;
        }
        __syncthreads();
        if (chunk.c == TOKENS) advance(chunk, s, state, state);
    }
    // Each thread has written what it copies.
    for (u32 e = threadIdx.x; states && e < size; e += blockDim.x) states[e] = state[e];
}
EXPORT(gla)

// `states` has room for the state at each chunk's beginning, for each block.
KERNEL(256) gla_backward(
    const float* qkv, const float* alpha, const float* dy, float* dqkv, float* dga, float* states, float*
    scratch,
    u32 unit, u32 in_shared, Gla s
) {
    DYNAMIC_SHARED(shared);
    float* work = in_shared ? (float*)shared : scratch + (u64)blockIdx.x * unit;
    u64 batch = blockIdx.x / s.heads;
    u32 head = blockIdx.x % s.heads, keys = s.heads * s.key, values = s.heads * s.value;
    u32 chunks = (s.sequence + TOKENS - 1) / TOKENS, size = s.key * s.row, pitch = s.row + 1;
    float scale = 1.0f / __fsqrt_rn((float)s.key);
    qkv += batch * s.sequence * s.stride;
    alpha += batch * s.sequence * keys;
    dy += batch * s.sequence * values + head * s.value;
    dqkv += batch * s.sequence * s.stride;
    dga += batch * s.sequence * keys + head * s.key;
    states += (u64)blockIdx.x * chunks * size;
    float* g = cut(work, size);
    Chunk chunk = chunk_in(work, s);
    float *grad = cut(work, TOKENS * pitch), *d_scores = cut(work, TOKENS * TOKENS),
          *whole = cut(work, s.key);
    float *from_state = cut(work, s.key * PITCH), *from_grad = cut(work, s.key * PITCH);

    for (u32 e = threadIdx.x; e < size; e += blockDim.x) {
        states[e] = 0.0f;
        g[e] = 0.0f;
    }
    for (u32 n = 0; n + 1 < chunks; n++) {
        read_chunk(chunk, s, head, n * TOKENS, qkv, alpha, false);
        advance(chunk, s, states + (u64)n * size, states + (u64)(n + 1) * size);
    }
    for (u32 n = chunks; n-- > 0;) {
        u32 first = n * TOKENS;
        const float* state = states + (u64)n * size;
        read_chunk(chunk, s, head, first, qkv, alpha, true);
        u32 c = chunk.c;
        for (u32 e = threadIdx.x; e < c * s.row; e += blockDim.x) {
            u32 t = e / s.row, x = e % s.row;
            grad[t * pitch + x] = x < s.value ? dy[(u64)(first + t) * values + x] : 0.0f;
        }
        __syncthreads();
        for (u32 e = threadIdx.x; e < s.key * TOKENS; e += blockDim.x) {
            u32 d = e / TOKENS, t = e % TOKENS;
            float of_state = 0.0f, of_grad = 0.0f;
            for (u32 x = 0; t < c && x < s.row; x++) {
                of_state = fma_rn(state[d * s.row + x], grad[t * pitch + x], of_state);
                of_grad = fma_rn(g[d * s.row + x], chunk.v[t * pitch + x], of_grad);
            }
            from_state[d * PITCH + t] = of_state;
            from_grad[d * PITCH + t] = of_grad;
        }
        {
            u32 i = threadIdx.x / TOKENS, j = threadIdx.x % TOKENS;
            float sum = 0.0f;
            for (u32 x = 0; i < c && j < c && x < s.row; x++)
                sum = fma_rn(grad[i * pitch + x], chunk.v[j * pitch + x], sum);
            d_scores[threadIdx.x] = sum;
        }
        // Half a warp has a channel: the gradient of the whole chunk's decay.
        for (u32 d = threadIdx.x / LANES; d < (s.key + 15) / 16 * 16; d += blockDim.x / LANES) {
            bool there = d < s.key;
            float sum =
                row_sum(there ? s.row : 0, [&](u32 x) { return g[d * s.row + x] * state[d * s.row + x]; });
            if (there && lane_of_row() == 0) whole[d] = chunk.p[d] * sum;
        }
        __syncthreads();
        for (u32 e = threadIdx.x; e < c * s.value; e += blockDim.x) {
            u32 j = e / s.value, x = e % s.value;
            float sum = 0.0f;
            for (u32 i = j; i < c; i++) sum = fma_rn(chunk.scores[i * TOKENS + j], grad[i * pitch + x], sum);
            for (u32 d = 0; d < s.key; d++) sum = fma_rn(chunk.decayed[d * PITCH + j], g[d * s.row + x], sum);
            dqkv[(u64)(first + j) * s.stride + 2 * keys + head * s.value + x] = sum;
        }
        for (u32 d = threadIdx.x; d < s.key; d += blockDim.x) {
            const float *q = chunk.q + d * PITCH, *k = chunk.k + d * PITCH, *a = chunk.alpha + d * PITCH;
            float decay[TOKENS], dq[TOKENS], dk[TOKENS], dg[TOKENS];
            EACH_ROUND
            for (int t = 0; t < TOKENS; t++) dq[t] = dk[t] = dg[t] = 0.0f;
            EACH_ROUND
            for (int i = 0; i < TOKENS; i++) {
                if (i < c) {
                    float running = 0.0f, qi = q[i], ai = a[i];
                    decay[i] = 1.0f;
                    EACH_ROUND
                    for (int j = 0; j <= i; j++) {
                        if (j < i) decay[j] = decay[j] * ai;
                        float share = d_scores[i * TOKENS + j] * decay[j];
                        dq[i] = fma_rn(share, k[j], dq[i]);
                        dk[j] = fma_rn(share, qi, dk[j]);
                        running = fma_rn(share * qi, k[j], running);
                        if (j < i) dg[j + 1] = dg[j + 1] + running;
                    }
                }
            }
            float p = 1.0f, before = 0.0f, after = 0.0f;
            EACH_ROUND
            for (int t = 0; t < TOKENS; t++) {
                if (t < c) {
                    p = p * a[t];
                    dq[t] = scale * fma_rn(p, from_state[d * PITCH + t], dq[t]);
                    dg[t] = dg[t] + before;
                    float through = decay[t] * from_grad[d * PITCH + t];
                    dk[t] = dk[t] + through;
                    before = fma_rn(k[t], through, before);
                }
            }
            EACH_ROUND
            for (int t = TOKENS - 1; t >= 0; t--) {
                if (t < c) {
                    after = fma_rn(chunk.qp[d * PITCH + t], from_state[d * PITCH + t], after);
                    dg[t] = dg[t] + after;
                    float* row = dqkv + (u64)(first + t) * s.stride + head * s.key + d;
                    row[0] = dq[t];
                    row[keys] = dk[t];
                    dga[(u64)(first + t) * keys + d] = dg[t] + whole[d];
                }
            }
        }
        __syncthreads();
        for (u32 e = threadIdx.x; e < size; e += blockDim.x) {
            u32 d = e / s.row, x = e % s.row;
            float sum = g[e] * chunk.p[d];
            for (u32 i = 0; i < c; i++) sum = fma_rn(chunk.qp[d * PITCH + i], grad[i * pitch + x], sum);
            g[e] = sum;
        }
        __syncthreads();
    }
}
EXPORT(gla_backward)
