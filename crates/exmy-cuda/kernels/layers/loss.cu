// Losses of rows: cross-entropy with a z-loss, squared error, the divergence of two softmaxes; and where a
// row is largest. The bits of exmy-train's nn/loss.rs. Half a warp has a row.
#include "layers/real.cuh"

// With `scaled` the logits become the gradient.
KERNEL(128) cross_entropy(
    float* logits, u64 rows, u32 vocab, const u32* targets, u32 scaled, float scale, float z, float* losses
) {
    u64 row = thread_index() / LANES;
    bool there = row < rows;
    u32 n = there ? vocab : 0, target = there ? targets[row] : 0;
    logits += row * vocab;
    float most = row_largest(n, [&](u32 i) { return logits[i]; });
    float at_target = there ? logits[target] - most : 0.0f;
    float total = row_sum(n, [&](u32 i) { return exp_of(logits[i] - most); });
    float normalizer = ln_of(total);
    if (there && lane_of_row() == 0) losses[row] = normalizer - at_target;
    if (!scaled) return;
    float log = normalizer + most;
    float factor = scale * (1.0f + z * (log + log)) / total;
    // The exponentials once more, to the same bits: storing them would cost more.
    row_each(n, [&](u32 i) { return exp_of(logits[i] - most) * factor; }, [&](u32 i, float d) {
        logits[i] = i == target ? d - scale : d;
    });
}
EXPORT(cross_entropy)

KERNEL(256) squared_error(const float* a, const float* y, u64 rows, u32 width, float* losses) {
    u64 row = thread_index() / LANES;
    u32 n = row < rows ? width : 0;
    a += row * width;
    y += row * width;
    float sum = row_sum(n, [&](u32 i) { return (a[i] - y[i]) * (a[i] - y[i]); });
    if (n > 0 && lane_of_row() == 0) losses[row] = 1.0f / (float)width * sum;
}
EXPORT(squared_error)

KERNEL(256) divergence(const float* a, const float* y, u64 rows, u32 width, float* losses) {
    u64 row = thread_index() / LANES;
    u32 n = row < rows ? width : 0;
    a += row * width;
    y += row * width;
    float most_a = row_largest(n, [&](u32 i) { return a[i]; });
    float most_y = row_largest(n, [&](u32 i) { return y[i]; });
    float sum_a = row_sum(n, [&](u32 i) { return exp_of(a[i] - most_a); });
    float sum_y = row_sum(n, [&](u32 i) { return exp_of(y[i] - most_y); });
    float sum =
        row_sum(n, [&](u32 i) { return exp_of(y[i] - most_y) * ((y[i] - most_y) - (a[i] - most_a)); });
    if (n > 0 && lane_of_row() == 0) losses[row] = sum / sum_y + (ln_of(sum_a) - ln_of(sum_y));
}
EXPORT(divergence)

KERNEL(256) divergence_backward(const float* a, const float* y, u64 rows, u32 width, float scale, float* d) {
    u64 row = thread_index() / LANES;
    u32 n = row < rows ? width : 0;
    a += row * width;
    y += row * width;
    d += row * width;
    float most_a = row_largest(n, [&](u32 i) { return a[i]; });
    float most_y = row_largest(n, [&](u32 i) { return y[i]; });
    float of_a = scale / row_sum(n, [&](u32 i) { return exp_of(a[i] - most_a); });
    float of_y = scale / row_sum(n, [&](u32 i) { return exp_of(y[i] - most_y); });
    auto of = [&](u32 i) { return exp_of(a[i] - most_a) * of_a - exp_of(y[i] - most_y) * of_y; };
    row_each(n, of, [&](u32 i, float x) { d[i] = x; });
}
EXPORT(divergence_backward)

// The first of the largest numbers of each row; NaN is none, and 0 is the place where there is no number.
KERNEL(256) likeliest(const float* logits, u64 rows, u32 vocab, u32* places) {
    u64 row = thread_index() / LANES;
    u32 n = row < rows ? vocab : 0, place = 0;
    logits += row * vocab;
    float most = -infinity();
    each_of<16, u32>(lane_of_row(), n, LANES, [&](u32 i) { return logits[i]; }, [&](u32 i, float x) {
        if (x > most) {
            most = x;
            place = i;
        }
    });
    EACH_ROUND
    for (int half = LANES / 2; half > 0; half /= 2) {
        float other = __shfl_down_sync(ALL_LANES, most, half, LANES);
        u32 other_place = __shfl_down_sync(ALL_LANES, place, half, LANES);
        if (other > most || (other == most && other_place < place)) {
            most = other;
            place = other_place;
        }
    }
    if (n > 0 && lane_of_row() == 0) places[row] = place;
}
EXPORT(likeliest)
