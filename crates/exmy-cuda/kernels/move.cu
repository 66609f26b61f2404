// Elements to other places: codes to a dense stream of bits and back, transposes, matrices with strides.
#include "prelude.cuh"

// Eight codes of a width are that many bytes: a thread makes them. The twin of the library's
// `pack::pack_into`.
template <class C> DEVICE void pack(const C* codes, u8* bytes, u64 count, u32 width, u64 size) {
    u64 groups = (count + 7) / 8;
    for (u64 group = thread_index(); group < groups; group += thread_count()) {
        u64 low = 0, high = 0;
        for (u32 i = 0; i < 8; i++) {
            u64 at = group * 8 + i;
            u64 code = at < count ? (u64)codes[at] & ((1u << width) - 1) : 0;
            u32 shift = i * width;
            if (shift < 64) low |= code << shift;
            if (shift >= 64) high |= code << (shift - 64);
            else if (shift + width > 64) high |= code >> (64 - shift);
        }
        for (u32 i = 0; i < width; i++) {
            u64 at = group * width + i;
            if (at < size) bytes[at] = (u8)(i < 8 ? low >> (8 * i) : high >> (8 * (i - 8)));
        }
    }
}

KERNEL(256) pack_u8(const u8* codes, u8* bytes, u64 count, u32 width, u64 size) {
    pack(codes, bytes, count, width, size);
}
EXPORT(pack_u8)

KERNEL(256) pack_u16(const u16* codes, u8* bytes, u64 count, u32 width, u64 size) {
    pack(codes, bytes, count, width, size);
}
EXPORT(pack_u16)

template <class C> DEVICE void unpack(const u8* bytes, C* codes, u64 count, u32 width, u64 size) {
    for (u64 i = thread_index(); i < count; i += thread_count()) codes[i] = (C)packed_code(bytes, i, width, size);
}

KERNEL(256) unpack_u8(const u8* bytes, u8* codes, u64 count, u32 width, u64 size) {
    unpack(bytes, codes, count, width, size);
}
EXPORT(unpack_u8)

KERNEL(256) unpack_u16(const u8* bytes, u16* codes, u64 count, u32 width, u64 size) {
    unpack(bytes, codes, count, width, size);
}
EXPORT(unpack_u16)

// Tiles of 32 x 32 by way of shared memory; a block of 256 threads takes four rows of it at a time.
template <class T> DEVICE void transpose(const T* x, T* out, u32 rows, u32 cols, u64 x_stride,
                                         u64 out_stride) {
    SHARED T tile[32][33];
    u32 across = (cols + 31) / 32, down = (rows + 31) / 32;
    u32 i = threadIdx.x / 32, j = threadIdx.x % 32;
    for (u64 at = blockIdx.x; at < (u64)across * down; at += gridDim.x) {
        u32 row = (u32)(at / across) * 32, col = (u32)(at % across) * 32;
        for (u32 k = i; k < 32; k += 8) {
            if (row + k < rows && col + j < cols) tile[k][j] = x[(row + k) * x_stride + col + j];
        }
        __syncthreads();
        for (u32 k = i; k < 32; k += 8) {
            if (col + k < cols && row + j < rows) out[(col + k) * out_stride + row + j] = tile[j][k];
        }
        __syncthreads();
    }
}

KERNEL(256) transpose_u8(const u8* x, u8* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    transpose(x, out, rows, cols, x_stride, out_stride);
}
EXPORT(transpose_u8)

KERNEL(256) transpose_u16(const u16* x, u16* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    transpose(x, out, rows, cols, x_stride, out_stride);
}
EXPORT(transpose_u16)

KERNEL(256) transpose_u32(const u32* x, u32* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    transpose(x, out, rows, cols, x_stride, out_stride);
}
EXPORT(transpose_u32)

template <class T> DEVICE void copy(const T* x, T* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    for (u64 at = thread_index(); at < (u64)rows * cols; at += thread_count()) {
        u64 row = at / cols, col = at - row * cols;
        out[row * out_stride + col] = x[row * x_stride + col];
    }
}

KERNEL(256) copy_u8(const u8* x, u8* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    copy(x, out, rows, cols, x_stride, out_stride);
}
EXPORT(copy_u8)

KERNEL(256) copy_u16(const u16* x, u16* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    copy(x, out, rows, cols, x_stride, out_stride);
}
EXPORT(copy_u16)

KERNEL(256) copy_u32(const u32* x, u32* out, u32 rows, u32 cols, u64 x_stride, u64 out_stride) {
    copy(x, out, rows, cols, x_stride, out_stride);
}
EXPORT(copy_u32)
