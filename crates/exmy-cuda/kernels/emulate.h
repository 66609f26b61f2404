// CUDA on this processor, as far as the kernels use it, to test their bits: a kernel of one block after
// another, its threads as fibers of one thread, which run until they end or wait at a barrier. The order of
// warps is ascending in even launches and descending in odd ones, so that a missing barrier has a chance to
// show.
//
// This says nothing about speed, and nothing about tensor cores. Included before everything else by the
// compiler's option -include.
#pragma once
#define EMULATED 1

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static const

struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, blockDim, gridDim;

struct __align__(16) float4 { float x, y, z, w; };
struct __align__(8) float2 { float x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(4) uchar4 { unsigned char x, y, z, w; };
struct __align__(8) ushort4 { unsigned short x, y, z, w; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
typedef unsigned char emulated_u8;
inline uchar4 make_uchar4(emulated_u8 x, emulated_u8 y, emulated_u8 z, emulated_u8 w) { return {x, y, z, w}; }
typedef unsigned short emulated_u16;
inline ushort4 make_ushort4(emulated_u16 x, emulated_u16 y, emulated_u16 z, emulated_u16 w) {
    return {x, y, z, w};
}

inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
inline float __int_as_float(int x) { return __uint_as_float((unsigned)x); }
inline long long __double_as_longlong(double x) { long long u; memcpy(&u, &x, 8); return u; }
inline double __longlong_as_double(long long u) { double x; memcpy(&x, &u, 8); return x; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    unsigned long long all = ((unsigned long long)b << 32) | a;
    unsigned out = 0;
    for (int i = 0; i < 4; i++) out |= (unsigned)((all >> (8 * ((s >> (4 * i)) & 7))) & 0xFF) << (8 * i);
    return out;
}
// Conversions to integers, as PTX has them: saturating, and 0 for NaN.
inline int __float2int_rz(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)x;
}
inline unsigned __float2uint_rz(float x) {
    return x != x || x <= 0.0f ? 0 : x >= 4294967296.0f ? 0xFFFFFFFFu : (unsigned)x;
}
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __int2float_rn(int x) { return (float)x; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T min(T a, T b) { return a < b ? a : b; }
template <class T> T max(T a, T b) { return a > b ? a : b; }
inline unsigned atomicAdd(unsigned* p, unsigned x) { unsigned old = *p; *p += x; return old; }
inline int atomicAdd(int* p, int x) { int old = *p; *p += x; return old; }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long x) {
    auto old = *p;
    *p += x;
    return old;
}
inline unsigned atomicMax(unsigned* p, unsigned x) { unsigned old = *p; if (x > old) *p = x; return old; }
inline int atomicMax(int* p, int x) { int old = *p; if (x > old) *p = x; return old; }
inline unsigned atomicOr(unsigned* p, unsigned x) { unsigned old = *p; *p |= x; return old; }
inline void __threadfence() {}

namespace emulated {

enum State { READY, WARP, BLOCK, DONE };

struct Fiber {
    void* stack = nullptr;
    State state = DONE;
    unsigned mask = 0;
    unsigned parity = 0;
#ifdef __x86_64__
    void* sp = nullptr;
#else
    ucontext_t context;
#endif
};

constexpr size_t STACK = 128 << 10;
constexpr unsigned MOST = 1024;

static std::vector<Fiber> fibers;
static unsigned current, threads;
static unsigned long long slots[2][MOST];
static unsigned char* shared_memory = nullptr;
static size_t shared_size = 0;
static unsigned long long launches = 0;
static void (*body)(void**);
static void** arguments;

inline unsigned char* dynamic_shared() { return shared_memory; }

#ifdef __x86_64__
static void* home;
extern "C" void emulated_switch(void** from, void* to);
__asm__(
    ".text\n.local emulated_switch\nemulated_switch:\n"
    "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n");
#else
static ucontext_t home;
#endif

// Back to the scheduler, until it makes this fiber ready again.
static void leave(State state) {
    Fiber& fiber = fibers[current];
    fiber.state = state;
#ifdef __x86_64__
    emulated_switch(&fiber.sp, home);
#else
    swapcontext(&fiber.context, &home);
#endif
}

static void start() {
    body(arguments);
    leave(DONE);
    abort();
}

static void enter(unsigned thread) {
    current = thread;
    Three dim = blockDim;
    threadIdx = {thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y};
    Fiber& fiber = fibers[thread];
#ifdef __x86_64__
    emulated_switch(&home, fiber.sp);
#else
    swapcontext(&home, &fiber.context);
#endif
}

static void make(Fiber& fiber) {
    if (!fiber.stack) fiber.stack = aligned_alloc(64, STACK);
    // The stacks of threads begin at different places of a page: else all of them share a few lines of the
    // cache.
    size_t size = STACK - (size_t)(&fiber - fibers.data()) % 61 * 64;
    fiber.state = READY;
    fiber.parity = 0;
#ifdef __x86_64__
    void** top = (void**)((char*)fiber.stack + size);
    *--top = nullptr;        // keeps the stack aligned as a call would leave it
    *--top = (void*)start;   // where the first switch returns to
    top -= 6;
    fiber.sp = top;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = size;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
#endif
}

// Lanes of a warp that wait for each other go on once all lanes of their mask wait, or have ended.
static bool release(unsigned first, unsigned last) {
    bool any = false;
    for (unsigned i = first; i < last; i++) {
        if (fibers[i].state != WARP) continue;
        unsigned mask = fibers[i].mask;
        bool all = true;
        for (unsigned j = first; j < last; j++) {
            bool in = mask >> (j - first) & 1;
            bool waits = fibers[j].state == WARP && fibers[j].mask == mask;
            if (in && fibers[j].state != DONE && !waits) all = false;
        }
        if (!all) continue;
        for (unsigned j = first; j < last; j++) {
            if ((mask >> (j - first) & 1) && fibers[j].state == WARP) fibers[j].state = READY;
        }
        any = true;
    }
    return any;
}

static void run_block() {
    for (unsigned i = 0; i < threads; i++) make(fibers[i]);
    unsigned warps = (threads + 31) / 32;
    for (;;) {
        bool progress = false;
        for (unsigned w = 0; w < warps; w++) {
            unsigned warp = launches % 2 ? warps - 1 - w : w;
            unsigned first = warp * 32, last = first + 32 < threads ? first + 32 : threads;
            do {
                for (unsigned i = first; i < last; i++) {
                    if (fibers[i].state == READY) { enter(i); progress = true; }
                }
            } while (release(first, last));
        }
        bool done = true, waiting = true;
        for (unsigned i = 0; i < threads; i++) {
            done = done && fibers[i].state == DONE;
            waiting = waiting && (fibers[i].state == DONE || fibers[i].state == BLOCK);
        }
        if (done) return;
        if (waiting) {
            for (unsigned i = 0; i < threads; i++) if (fibers[i].state == BLOCK) fibers[i].state = READY;
        } else if (!progress) {
            fprintf(stderr, "emulated kernel: threads wait for each other at different barriers\n");
            abort();
        }
    }
}

static void wait_warp(unsigned mask) { fibers[current].mask = mask; leave(WARP); }

template <class T> unsigned long long packed(T x) {
    static_assert(sizeof(T) <= 8, "at most 64 bits go between lanes");
    unsigned long long word = 0;
    memcpy(&word, &x, sizeof x);
    return word;
}

// The value that the lane `from` of this warp gave; one's own if it gave none.
template <class T> T exchange(unsigned mask, T x, unsigned from) {
    Fiber& fiber = fibers[current];
    unsigned parity = fiber.parity, first = current / 32 * 32;
    slots[parity][current] = packed(x);
    wait_warp(mask);
    fiber.parity ^= 1;
    bool there = from < 32 && (mask >> from & 1) && first + from < threads;
    unsigned long long word = there ? slots[parity][first + from] : packed(x);
    memcpy(&x, &word, sizeof x);
    return x;
}

inline unsigned lane() { return current % 32; }

inline unsigned ballot(unsigned mask, bool x) {
    Fiber& fiber = fibers[current];
    unsigned parity = fiber.parity, first = current / 32 * 32;
    slots[parity][current] = x;
    wait_warp(mask);
    fiber.parity ^= 1;
    unsigned word = 0;
    for (unsigned i = 0; i < 32 && first + i < threads; i++) {
        if (mask >> i & 1) word |= (unsigned)(slots[parity][first + i] & 1) << i;
    }
    return word;
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*(std::remove_reference_t<A>*)args[I]...);
}
template <class... A> void call(void (*kernel)(A...), void** args) {
    call(kernel, args, std::index_sequence_for<A...>{});
}

// blocks x, y, z; threads; bytes of shared memory.
static int launch(void (*kernel)(void**), const unsigned* grid, void** args) {
    threads = grid[3];
    if (threads == 0 || threads > MOST) return 1;
    if (fibers.size() < threads) fibers.resize(threads);
    if (shared_size < grid[4]) {
        free(shared_memory);
        shared_size = (grid[4] + 1023) / 1024 * 1024;
        shared_memory = (unsigned char*)aligned_alloc(1024, shared_size);
    }
    body = kernel;
    arguments = args;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {threads, 1, 1};
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                if (grid[4]) memset(shared_memory, 0xA5, grid[4]);
                run_block();
            }
    launches++;
    return 0;
}

}  // namespace emulated

#define EMULATED_EXPORT(name)                                                              \
    static void name##_with(void** args) { emulated::call(name, args); }                   \
    extern "C" __attribute__((visibility("default")))                                      \
    int emulated_##name(const unsigned* grid, void** args) {                               \
        return emulated::launch(name##_with, grid, args);                                  \
    }

inline void __syncthreads() { emulated::leave(emulated::BLOCK); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { emulated::wait_warp(mask); }
template <class T> T __shfl_sync(unsigned mask, T x, int from, int width = 32) {
    unsigned base = emulated::lane() / width * width;
    return emulated::exchange(mask, x, base + (unsigned)from % width);
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, int by, int width = 32) {
    unsigned lane = emulated::lane(), to = lane ^ by;
    return emulated::exchange(mask, x, to / width > lane / width ? lane : to);
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
    unsigned lane = emulated::lane(), to = lane + by;
    return emulated::exchange(mask, x, to / width != lane / width ? lane : to);
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32) {
    unsigned lane = emulated::lane(), to = lane - by;
    return emulated::exchange(mask, x, lane % width < by ? lane : to);
}
inline unsigned __ballot_sync(unsigned mask, bool x) { return emulated::ballot(mask, x); }
inline bool __any_sync(unsigned mask, bool x) { return emulated::ballot(mask, x) != 0; }
inline bool __all_sync(unsigned mask, bool x) { return emulated::ballot(mask, !x) == 0; }
