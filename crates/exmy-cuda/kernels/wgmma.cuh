// One instruction of Hopper's tensor cores: `wgmma`, both operands in shared memory, and what comes with it.
// The functions differ in the number of sums and in what operands are; the sums of a thread are where PTX has
// them.
#pragma once
#include "prelude.cuh"

#define OUT4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define OUT16(i) OUT4(i), OUT4(i + 4), OUT4(i + 8), OUT4(i + 12)

// 64 x 256 sums of a warpgroup, and 16 positions of BF16: what they hold takes part unless `adds` is 0.
DEVICE void multiply_bf16(float (&d)[128], u64 a, u64 b, u32 adds) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
        "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "
        "%87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "
        "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "
        "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, p, 1, 1, 0, 0;}"
        : OUT16(0), OUT16(16), OUT16(32), OUT16(48), OUT16(64), OUT16(80), OUT16(96), OUT16(112)
        : "l"(a), "l"(b), "r"(adds));
}

// 64 x 256 sums of a warpgroup, and 32 positions of E4M3: what they hold takes part unless `adds` is 0.
DEVICE void multiply_e4m3(float (&d)[128], u64 a, u64 b, u32 adds) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
        "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "
        "%87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "
        "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "
        "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, p, 1, 1;}"
        : OUT16(0), OUT16(16), OUT16(32), OUT16(48), OUT16(64), OUT16(80), OUT16(96), OUT16(112)
        : "l"(a), "l"(b), "r"(adds));
}

// 64 x 128 sums of a warpgroup, and 16 positions of BF16: what they hold takes part unless `adds` is 0.
DEVICE void multiply_bf16(float (&d)[64], u64 a, u64 b, u32 adds) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, 0;}"
        : OUT16(0), OUT16(16), OUT16(32), OUT16(48)
        : "l"(a), "l"(b), "r"(adds));
}

// 64 x 128 sums of a warpgroup, and 32 positions of E4M3: what they hold takes part unless `adds` is 0.
DEVICE void multiply_e4m3(float (&d)[64], u64 a, u64 b, u32 adds) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1;}"
        : OUT16(0), OUT16(16), OUT16(32), OUT16(48)
        : "l"(a), "l"(b), "r"(adds));
}
