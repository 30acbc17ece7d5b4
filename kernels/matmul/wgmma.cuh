// Instructions of compute capability 9.0 alone (sm_90a): products of a warpgroup. Source: PTX ISA 8.0, "wgmma",
// "setmaxnreg".

#include "barrier.cuh"

// ---- products

// Rows of 128 bytes, one after the other, as a box is copied; 32 bytes further on it is descriptor + 2, 8 rows + 64.
static __device__ __forceinline__ unsigned long long descriptor_of(const void *p)
{
    return (shared_of(p) & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

static __device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

static __device__ __forceinline__ void products_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> static __device__ __forceinline__ void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Turns of two warpgroups: each waits for its own (barrier 1 or 2 of the block), and gives the other one.
static __device__ __forceinline__ void turn_wait(int group)
{
    asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}

static __device__ __forceinline__ void turn_give(int group)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory");
}

template <int N> static __device__ __forceinline__ void registers_up()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void registers_down()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// What an instruction names: the kind of product, the constraint of a sum, what follows the operands (signs of both
// sides, and neither transposed). Of MM_X.
#if MM_X == WT_MM_I8
typedef int mm_sum;
typedef int2 mm_sum_2;
typedef int4 mm_sum_4;
#    define MM_KIND   "k32.s32.s8.s8 "
#    define MM_SIGNS  ""
#    define MM_SUM(d) "+r"(d)
#else
typedef float mm_sum;
typedef float2 mm_sum_2;
typedef float4 mm_sum_4;
#    define MM_SUM(d) "+f"(d)
#    if MM_X == WT_MM_TF32
#        define MM_KIND  "k8.f32.tf32.tf32 "
#        define MM_SIGNS ", 1, 1"
#    elif MM_X == WT_MM_E4M3
#        define MM_KIND  "k32.f32.e4m3.e4m3 "
#        define MM_SIGNS ", 1, 1"
#    elif MM_X == WT_MM_BF16
#        define MM_KIND  "k16.f32.bf16.bf16 "
#        define MM_SIGNS ", 1, 1, 0, 0"
#    else
#        define MM_KIND  "k16.f32.f16.f16 "
#        define MM_SIGNS ", 1, 1, 0, 0"
#    endif
#endif

#define MM_SUMS_4(d)   MM_SUM((d)[0]), MM_SUM((d)[1]), MM_SUM((d)[2]), MM_SUM((d)[3])
#define MM_SUMS_16(d)  MM_SUMS_4(d), MM_SUMS_4((d) + 4), MM_SUMS_4((d) + 8), MM_SUMS_4((d) + 12)
#define MM_SUMS_32(d)  MM_SUMS_16(d), MM_SUMS_16((d) + 16)
#define MM_SUMS_64(d)  MM_SUMS_16(d), MM_SUMS_16((d) + 16), MM_SUMS_16((d) + 32), MM_SUMS_16((d) + 48)
#define MM_SUMS_128(d) MM_SUMS_64(d), MM_SUMS_64((d) + 64)

#define MM_NAMES_32                                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "                 \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define MM_NAMES_64                                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "                 \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "                  \
    "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "                  \
    "%59, %60, %61, %62, %63}"
#define MM_NAMES_128                                                                                                   \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "                 \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "                  \
    "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "                  \
    "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "                  \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, "                  \
    "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, "                    \
    "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"

// d (+)= A B^T of a warpgroup: 64 rows at `a` by 64, 128 or 256 at `b`, 32 bytes of each; with add == 0 d is only
// written. Warp w has rows 16 w .. of A: d[4 j + c] of its lane 4 g + t is row g + 8 (c / 2), column (row of B) 8 j + 2
// t + c % 2.
static __device__ __forceinline__ void multiply_64(mm_sum *d, unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64" MM_KIND MM_NAMES_32 ", %32, %33, p" MM_SIGNS ";\n"
                 "}"
                 : MM_SUMS_32(d)
                 : "l"(a), "l"(b), "r"(add));
}

static __device__ __forceinline__ void multiply_128(mm_sum *d, unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128" MM_KIND MM_NAMES_64 ", %64, %65, p" MM_SIGNS ";\n"
                 "}"
                 : MM_SUMS_64(d)
                 : "l"(a), "l"(b), "r"(add));
}

static __device__ __forceinline__ void multiply_256(mm_sum *d, unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256" MM_KIND MM_NAMES_128 ", %128, %129, p" MM_SIGNS ";\n"
                 "}"
                 : MM_SUMS_128(d)
                 : "l"(a), "l"(b), "r"(add));
}

// Keeps reads of finished sums behind products_wait.
template <int N> static __device__ __forceinline__ void settle(mm_sum *d)
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : MM_SUM(d[i])::"memory");
}
