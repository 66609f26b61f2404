// What all kernels share: names of types, how a kernel is declared, and the few operations whose bits matter.
//
// The kernels compile by NVRTC, which brings no headers, and by a C++ compiler for this processor behind
// `emulate.h`, which defines EMULATED and everything of CUDA that is used here. So: no headers, no templates
// of kernels, shared memory by SHARED and DYNAMIC_SHARED, and EXPORT(name) behind each kernel.
//
// Arithmetic on floats is that of IEEE 754, each operation rounded once, to nearest even, subnormal numbers
// kept: the compilers are told not to contract, flush or approximate. A fused multiply-add is written fma_rn.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#ifdef EMULATED
#define KERNEL(threads) extern "C" void
#define KERNEL_RESIDENT(threads, blocks) extern "C" void
#define SHARED static
#define DYNAMIC_SHARED(name) unsigned char* name = emulated::dynamic_shared()
#define EXPORT(name) EMULATED_EXPORT(name)
#define PARAMETERS(type) const type
#define RARELY __attribute__((noinline)) static
#else
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
// The same, with registers for so many blocks at a time on a processor.
#define KERNEL_RESIDENT(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define SHARED __shared__
#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#define EXPORT(name)
// A structure that a kernel takes by value, and whose functions take by reference, without a copy for each
// thread.
#define PARAMETERS(type) const __grid_constant__ type
// A function that stays one, so that what is rare is not in the way, nor compiled a hundred times.
#define RARELY static __device__ __noinline__
#endif
#define DEVICE __device__ __forceinline__

DEVICE u32 bits_of(float x) { return __float_as_uint(x); }
DEVICE float float_of(u32 x) { return __uint_as_float(x); }
DEVICE float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }

// The sum of a and a smaller b, neither negative, rounded toward zero.
DEVICE float add_rz(float a, float b) {
#ifdef EMULATED
    float sum = a + b;
    return sum - a > b ? float_of(bits_of(sum) - 1) : sum;
#else
    return __fadd_rz(a, b);
#endif
}

// The one NaN of products and images.
#define CANONICAL_NAN 0x7FC00000u
DEVICE bool is_nan_bits(u32 x) { return (x & 0x7FFFFFFFu) > 0x7F800000u; }
DEVICE float canonical(float x) { return is_nan_bits(bits_of(x)) ? float_of(CANONICAL_NAN) : x; }

// The nearest bfloat16, ties to even; of NaN the one.
DEVICE float nearest_bf16(float x) {
    u32 bits = bits_of(x);
    u32 rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) & 0xFFFF0000u;
    return float_of(is_nan_bits(bits) ? CANONICAL_NAN : rounded);
}

// The number of this thread among all of a launch with blocks and threads in one direction, and their count.
DEVICE u64 thread_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 thread_count() { return (u64)gridDim.x * blockDim.x; }

// Code `i` of a dense stream of bits, of at most 16 bits.
DEVICE u32 packed_code(const u8* bytes, u64 i, u32 width, u64 size) {
    u64 bit = i * width, byte = bit / 8;
    u32 word = bytes[byte];
    if (byte + 1 < size) word |= (u32)bytes[byte + 1] << 8;
    if (byte + 2 < size) word |= (u32)bytes[byte + 2] << 16;
    return (word >> (bit % 8)) & ((1u << width) - 1);
}

#define EACH_ROUND _Pragma("unroll")

// Of each index from `first` on, `step` apart, below `end`: value = get(index), then put(index, value). BY indices
// at a time where there are as many, so that their numbers come from memory together.
template <int BY, class I, class Get, class Put> DEVICE void each_of(I first, I end, I step, Get get, Put put) {
    I i = first;
    for (; i + (BY - 1) * step < end; i += BY * step) {
        decltype(get(i)) values[BY];
        EACH_ROUND
        for (int k = 0; k < BY; k++) values[k] = get(i + k * step);
        EACH_ROUND
        for (int k = 0; k < BY; k++) put(i + k * step, values[k]);
    }
    for (; i < end; i += step) put(i, get(i));
}
