// Causal softmax attention: the bits of exmy-train's nn/attention.rs and its modules, which state the orders.
//
// Every element of a product is one chain of fused multiply-adds from what the output holds (or +0) over
// ascending positions, so a tile of outputs in registers walks the chain whole; which outputs share a block
// does not matter. A position behind a row's own is not multiplied. Probabilities are (batch, heads,
// sequence, row).
#include "layers/real.cuh"
#include "layers/tile.cuh"

struct Heads {
    u32 batch, sequence, heads, kv_heads, head_dim, row;
};

// Scores of each query with the keys up to its own position, unscaled: a chain over the head's dimensions.
// Block x is a (sequence, head), block y a tile of the lower triangle.
template <int BM, int TM>
DEVICE void scores_of(
    const float* a, u64 a_batch, u32 a_row, const float* b, u64 b_batch, u32 b_row, float* out, Heads s
) {
    u32 batch = blockIdx.x / s.heads, head = blockIdx.x % s.heads, hd = s.head_dim, n = s.sequence;
    u32 i0 = 0, tile = blockIdx.y;
    while (tile > i0) tile -= ++i0;
    i0 *= BM;
    u32 j0 = tile * BM;
    Tile<BM, BM, TM, TM> product;
    product.clear();
    product.template chain<false, true>(
        a + batch * a_batch + head * hd, a_row, i0, n,
        b + batch * b_batch + head / (s.heads / s.kv_heads) * hd, b_row, j0, n, 0, hd, hd, 1.0f,
        [](u32, u32) { return true; }, [](u32) { return true; }
    );
    out += (u64)blockIdx.x * n * s.row + (u64)i0 * s.row + j0;
    product.template move<true>(out, s.row, n - i0, [&](u32 r) { return i0 + r + 1 - j0; });
}

KERNEL_RESIDENT(256, 2) scores_wide(
    const float* a, u64 a_batch, u32 a_row, const float* b, u64 b_batch, u32 b_row, float* out, Heads s
) {
    scores_of<128, 8>(a, a_batch, a_row, b, b_batch, b_row, out, s);
}
EXPORT(scores_wide)

KERNEL(256) scores_small(
    const float* a, u64 a_batch, u32 a_row, const float* b, u64 b_batch, u32 b_row, float* out, Heads s
) {
    scores_of<64, 4>(a, a_batch, a_row, b, b_batch, b_row, out, s);
}
EXPORT(scores_small)

// Row i of `out` is the sum over j up to i of p[i][j] x[j], on top of what is there if `add`. Block x is a
// (sequence, head), y a tile of rows (the longest first), z one of columns.
template <int BM, int TM, int TN>
DEVICE void lower_of(
    const float* p, const float* x, u64 x_batch, u32 x_row, float* out, u64 out_batch, u32 out_row, Heads s,
    float scale, u32 add
) {
    u32 batch = blockIdx.x / s.heads, head = blockIdx.x % s.heads, hd = s.head_dim, n = s.sequence;
    u32 i0 = (gridDim.y - 1 - blockIdx.y) * BM, c0 = blockIdx.z * 64, end = i0 + BM < n ? i0 + BM : n;
    out += batch * out_batch + head * hd + (u64)i0 * out_row + c0;
    auto cols = [&](u32) { return hd - c0; };
    Tile<BM, 64, TM, TN> product;
    product.clear();
    if (add) product.template move<false>(out, out_row, n - i0, cols);
    product.template chain<false, false>(
        p + (u64)blockIdx.x * n * s.row, s.row, i0, n,
        x + batch * x_batch + head / (s.heads / s.kv_heads) * hd, x_row, c0, hd, 0, end, n, scale,
        [](u32 i, u32 j) { return j <= i; }, [&](u32 k0) { return k0 + DEPTH - 1 <= i0; }
    );
    product.template move<true>(out, out_row, n - i0, cols);
}

KERNEL_RESIDENT(128, 4) lower_wide(
    const float* p, const float* x, u64 x_batch, u32 x_row, float* out, u64 out_batch, u32 out_row, Heads
    s, float scale,
    u32 add
) {
    lower_of<128, 8, 8>(p, x, x_batch, x_row, out, out_batch, out_row, s, scale, add);
}
EXPORT(lower_wide)

KERNEL(256) lower_small(
    const float* p, const float* x, u64 x_batch, u32 x_row, float* out, u64 out_batch, u32 out_row, Heads
    s, float scale,
    u32 add
) {
    lower_of<64, 4, 4>(p, x, x_batch, x_row, out, out_batch, out_row, s, scale, add);
}
EXPORT(lower_small)

// Row j of `out` is the sum over the query heads that share a key head, and within each over i from j on, of
// p[i][j] x[i]. Block x is a (sequence, key head).
template <int BM, int TM, int TN>
DEVICE void transposed_of(
    const float* p, const float* x, u64 x_batch, u32 x_row, float* out, u64 out_batch, u32 out_row, Heads s,
    float scale, u32 add
) {
    u32 batch = blockIdx.x / s.kv_heads, kv = blockIdx.x % s.kv_heads, hd = s.head_dim, n = s.sequence;
    u32 group = s.heads / s.kv_heads, j0 = blockIdx.y * BM, c0 = blockIdx.z * 64;
    out += batch * out_batch + kv * hd + (u64)j0 * out_row + c0;
    auto cols = [&](u32) { return hd - c0; };
    Tile<BM, 64, TM, TN> product;
    product.clear();
    if (add) product.template move<false>(out, out_row, n - j0, cols);
    for (u32 head = kv * group; head < (kv + 1) * group; head++) {
        product.template chain<true, false>(
            p + (u64)(batch * s.heads + head) * n * s.row, s.row, j0, n, x + batch * x_batch + head * hd,
            x_row, c0, hd, j0, n, n, scale, [](u32 j, u32 i) { return i >= j; },
            [&](u32 k0) { return k0 >= j0 + BM - 1; }
        );
    }
    product.template move<true>(out, out_row, n - j0, cols);
}

KERNEL_RESIDENT(128, 4) transposed_wide(
    const float* p, const float* x, u64 x_batch, u32 x_row, float* out, u64 out_batch, u32 out_row, Heads
    s, float scale,
    u32 add
) {
    transposed_of<128, 8, 8>(p, x, x_batch, x_row, out, out_batch, out_row, s, scale, add);
}
EXPORT(transposed_wide)

KERNEL(256) transposed_small(
    const float* p, const float* x, u64 x_batch, u32 x_row, float* out, u64 out_batch, u32 out_row, Heads
    s, float scale,
    u32 add
) {
    transposed_of<64, 4, 4>(p, x, x_batch, x_row, out, out_batch, out_row, s, scale, add);
}
EXPORT(transposed_small)

// Scores into probabilities, half a warp a row, which passes the numbers of a lane through `to` and `from`:
// memory for any row, shared memory for shorter ones. Positions behind the row's own become 0 up to
// a whole number of lanes; what is further behind stays as it is.
template <class To, class From>
DEVICE void softmax_by(float* p, u32 seen, u32 end, float scale, To to, From from) {
    u32 lane = lane_of_row();
    float most = -infinity(), total = 0.0f;
    each_of<16, u32>(lane, seen, LANES, [&](u32 j) { return p[j] * scale; }, [&](u32 j, float s) {
        to(j, s);
        most = s > most ? s : most;
    });
    EACH_ROUND
    for (int half = LANES / 2; half > 0; half /= 2) {
        float other = __shfl_down_sync(ALL_LANES, most, half, LANES);
        most = other > most ? other : most;
    }
    most = __shfl_sync(ALL_LANES, most, 0, LANES);
    each_of<8, u32>(lane, seen, LANES, [&](u32 j) { return exp_of(from(j) - most); }, [&](u32 j, float e) {
        to(j, e);
        total = total + e;
    });
    float inverse = 1.0f / fold_sum(total);
    auto share = [&](u32 j) { return (j < seen ? from(j) : 0.0f) * inverse; };
    each_of<8, u32>(lane, end, LANES, share, [&](u32 j, float share) { p[j] = share; });
}

// The positions of a row, and as many as whole lanes have.
DEVICE u32 seen_of(u64 r, u64 rows, u32 n, u32& end) {
    u32 seen = r < rows ? (u32)(r % n) + 1 : 0;
    end = (seen + LANES - 1) / LANES * LANES;
    return seen;
}

// Rows of up to N numbers, in shared memory; a row is sixteen banks off the one before.
template <int N> DEVICE void softmax_of(float* p, u64 rows, u32 n, u32 row, float scale) {
    SHARED float held[128 / LANES][N + LANES];
    u64 r = thread_index() / LANES;
    u32 end, seen = seen_of(r, rows, n, end);
    float* own = held[threadIdx.x / LANES];
    softmax_by(p + r * row, seen, end, scale, [&](u32 j, float x) { own[j] = x; }, [&](u32 j) { return own[j]; });
}

KERNEL(128) softmax_256(float* p, u64 rows, u32 n, u32 row, float scale) {
    softmax_of<256>(p, rows, n, row, scale);
}
EXPORT(softmax_256)

KERNEL(128) softmax_1024(float* p, u64 rows, u32 n, u32 row, float scale) {
    softmax_of<1024>(p, rows, n, row, scale);
}
EXPORT(softmax_1024)

KERNEL(128) softmax_any(float* p, u64 rows, u32 n, u32 row, float scale) {
    u64 r = thread_index() / LANES;
    u32 end, seen = seen_of(r, rows, n, end);
    p += r * row;
    softmax_by(p, seen, end, scale, [&](u32 j, float x) { p[j] = x; }, [&](u32 j) { return p[j]; });
}
EXPORT(softmax_any)

// The gradients of probabilities into those of scores.
template <int N> DEVICE void backward_of(const float* p, float* d, u64 rows, u32 n, u32 row, float scale) {
    u64 r = thread_index() / LANES;
    u32 seen = r < rows ? (u32)(r % n) + 1 : 0, end = (seen + LANES - 1) / LANES * LANES;
    u32 lane = lane_of_row();
    p += r * row;
    d += r * row;
    float sum = 0.0f, ps[N ? N : 1], ds[N ? N : 1];
    if (N) {
        EACH_ROUND
        for (int k = 0; k < N; k++) {
            u32 j = k * LANES + lane;
            ps[k] = j < end ? p[j] : 0.0f;
            ds[k] = j < seen ? d[j] : 0.0f;
        }
        EACH_ROUND
        for (int k = 0; k < N; k++) {
            if (k * LANES < end) sum = fma_rn(ps[k], ds[k], sum);
        }
    } else {
        auto both = [&](u32 j) { return make_float2(p[j], j < seen ? d[j] : 0.0f); };
        each_of<8, u32>(lane, end, LANES, both, [&](u32, float2 of) { sum = fma_rn(of.x, of.y, sum); });
    }
    float mean = fold_sum(sum);
    if (N) {
        EACH_ROUND
        for (int k = 0; k < N; k++) {
            u32 j = k * LANES + lane;
            if (j < end) d[j] = ps[k] * (ds[k] - mean) * scale;
        }
    } else {
        auto of = [&](u32 j) { return p[j] * ((j < seen ? d[j] : 0.0f) - mean) * scale; };
        row_each(end, of, [&](u32 j, float x) { d[j] = x; });
    }
}

KERNEL(128) softmax_backward_256(const float* p, float* d, u64 rows, u32 n, u32 row, float scale) {
    backward_of<16>(p, d, rows, n, row, scale);
}
EXPORT(softmax_backward_256)

KERNEL(128) softmax_backward_1024(const float* p, float* d, u64 rows, u32 n, u32 row, float scale) {
    backward_of<64>(p, d, rows, n, row, scale);
}
EXPORT(softmax_backward_1024)

KERNEL(128) softmax_backward_any(const float* p, float* d, u64 rows, u32 n, u32 row, float scale) {
    backward_of<0>(p, d, rows, n, row, scale);
}
EXPORT(softmax_backward_any)

// Attention of a sequence's last `n` tokens, behind `past` others, to all of it (nn/attention/cached.rs): the
// chains of a token's row in the attention above. The cache has rows k|v of `stride` numbers, `p` rows of
// `row` numbers by head and new token, which is block x; block y is a piece of a row.

// A thread has a score.
KERNEL(256) cached_scores(
    const float* q, u32 q_row, const float* keys, u32 stride, float* p, Heads s, u32 past
) {
    u32 j = blockIdx.y * 256 + threadIdx.x, head = blockIdx.x / s.sequence, i = blockIdx.x % s.sequence;
    if (j > past + i) return;
    q += (u64)i * q_row + head * s.head_dim;
    keys += (u64)j * stride + head / (s.heads / s.kv_heads) * s.head_dim;
    float sum = 0.0f;
    for (u32 d = 0; d < s.head_dim; d++) sum = fma_rn(q[d], keys[d], sum);
    p[(u64)blockIdx.x * s.row + j] = sum;
}
EXPORT(cached_scores)

KERNEL(128) cached_softmax(float* p, Heads s, u32 past, float scale) {
    u64 r = thread_index() / LANES;
    u32 seen = r < (u64)s.heads * s.sequence ? past + (u32)(r % s.sequence) + 1 : 0;
    u32 end = (seen + LANES - 1) / LANES * LANES;
    p += r * s.row;
    softmax_by(p, seen, end, scale, [&](u32 j, float x) { p[j] = x; }, [&](u32 j) { return p[j]; });
}
EXPORT(cached_softmax)

// A thread has an output.
KERNEL(64) cached_values(const float* p, const float* values, u32 stride, float* y, Heads s, u32 past) {
    u32 c = blockIdx.y * 64 + threadIdx.x, head = blockIdx.x / s.sequence, i = blockIdx.x % s.sequence;
    if (c >= s.head_dim) return;
    p += (u64)blockIdx.x * s.row;
    values += head / (s.heads / s.kv_heads) * s.head_dim + c;
    float sum = 0.0f;
    each_of<16, u32>(0, past + i + 1, 1, [&](u32 j) { return values[(u64)j * stride]; }, [&](u32 j, float v) {
        sum = fma_rn(p[j], v, sum);
    });
    y[((u64)i * s.heads + head) * s.head_dim + c] = sum;
}
EXPORT(cached_values)

// The same steps for recipes that round what passes between them (nn/attention/split.rs).

// Scores by dots in sixteen lanes, without fused steps, times `scale`; 0 behind a row's own position. Block x
// is a (sequence, head), y and z are tiles of 16 rows and columns.
KERNEL(256) split_scores(
    const float* a, u64 a_batch, u32 a_row, const float* b, u64 b_batch, u32 b_row, float scale, float*
    out, Heads s
) {
    SHARED float lefts[16][17], rights[16][17];
    u32 batch = blockIdx.x / s.heads, head = blockIdx.x % s.heads, hd = s.head_dim, n = s.sequence;
    u32 r = threadIdx.x / 16, c = threadIdx.x % 16, i = blockIdx.y * 16 + r, j = blockIdx.z * 16 + c;
    a += batch * a_batch + head * hd;
    b += batch * b_batch + head / (s.heads / s.kv_heads) * hd;
    out += (u64)blockIdx.x * n * s.row;
    if (blockIdx.z > blockIdx.y) {
        if (i < n && j < s.row) out[(u64)i * s.row + j] = 0.0f;
        return;
    }
    float sums[LANES];
    EACH_ROUND
    for (int l = 0; l < LANES; l++) sums[l] = 0.0f;
    for (u32 d = 0; d < hd; d += LANES) {
        u32 other = blockIdx.z * 16 + r;
        lefts[r][c] = i < n && d + c < hd ? a[(u64)i * a_row + d + c] : 0.0f;
        rights[r][c] = other < n && d + c < hd ? b[(u64)other * b_row + d + c] : 0.0f;
        __syncthreads();
        EACH_ROUND
        for (int l = 0; l < LANES; l++) {
            if (d + l < hd) sums[l] = sums[l] + lefts[r][l] * rights[c][l];
        }
        __syncthreads();
    }
    EACH_ROUND
    for (int half = LANES / 2; half > 0; half /= 2) {
        EACH_ROUND
        for (int l = 0; l < half; l++) sums[l] = sums[l] + sums[l + half];
    }
    if (i < n && j < s.row) out[(u64)i * s.row + j] = j <= i ? sums[0] * scale : 0.0f;
}
EXPORT(split_scores)

KERNEL(128) split_softmax(float* p, u64 rows, u32 n, u32 row) {
    u64 r = thread_index() / LANES;
    bool there = r < rows;
    u32 seen = there ? (u32)(r % n) + 1 : 0;
    p += r * row;
    float most = row_largest(seen, [&](u32 j) { return p[j]; });
    float total = row_sum(seen, [&](u32 j) {
        float e = exp_of(p[j] - most);
        p[j] = e;
        return e;
    });
    float inverse = 1.0f / total;
    for (u32 j = lane_of_row(); there && j < row; j += LANES) p[j] = j < seen ? p[j] * inverse : 0.0f;
}
EXPORT(split_softmax)

KERNEL(128) split_softmax_backward(const float* p, float* d, u64 rows, u32 n, u32 row) {
    u64 r = thread_index() / LANES;
    u32 seen = r < rows ? (u32)(r % n) + 1 : 0;
    p += r * row;
    d += r * row;
    float mean = row_sum(seen, [&](u32 j) { return p[j] * d[j]; });
    auto of = [&](u32 j) { return p[j] * (d[j] - mean); };
    row_each(seen, of, [&](u32 j, float x) { d[j] = x; });
}
EXPORT(split_softmax_backward)
