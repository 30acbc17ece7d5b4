// Instructions that CUDA C has no plain word for: conversions of small types, pairs of 16-bit floats, tensor cores,
// copies to shared memory in the background.

static __device__ __forceinline__ float f32_of_f16(unsigned short h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

static __device__ __forceinline__ unsigned short f16_of_f32(float f)
{
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

static __device__ __forceinline__ unsigned short bf16_of_f32(float f)
{
    unsigned short h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

// Two floats as bf16 in a word, the first in its low half.
static __device__ __forceinline__ unsigned bf16_pair_of(float low, float high)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// 2^x to 2^-22 of it; 0 below all floats that are none.
static __device__ __forceinline__ float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ unsigned f16_pair_of(float low, float high)
{
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// a b + c of two bf16, or two f16, in a word.
static __device__ __forceinline__ unsigned fma_bf16x2(unsigned a, unsigned b, unsigned c)
{
    unsigned d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

static __device__ __forceinline__ unsigned fma_f16x2(unsigned a, unsigned b, unsigned c)
{
    unsigned d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

// D += A B of a warp: A 16 x 16, B 16 x 8, D 16 x 8. Lane 4 g + t holds of A (row g, columns 2t, 2t + 1), (row g + 8,
// the same), (row g, 2t + 8, 2t + 9), (row g + 8, the same); of B (rows 2t, 2t + 1; column g), (2t + 8, 2t + 9; g); of
// D (row g; columns 2t, 2t + 1), (row g + 8; the same). Source: PTX ISA, mma.m16n8k16 with .f16 and .bf16.
static __device__ __forceinline__ void mma_bf16(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void mma_f16(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same of floats whose low 13 bits are not looked at: A 16 x 8 with columns t and t + 4, B 8 x 8 likewise. Source:
// PTX ISA, mma.m16n8k8 with .tf32.
static __device__ __forceinline__ void mma_tf32(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same of 8-bit types, four to a word: A 16 x 32 with columns 4t .. 4t + 3 and 16 + 4t .., B 32 x 8 likewise.
// Source: PTX ISA, mma.m16n8k32 with .s8 and .e4m3.
static __device__ __forceinline__ void mma_i8(int *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A without signs.
static __device__ __forceinline__ void mma_u8(int *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Compute capability 8.9 and newer.
static __device__ __forceinline__ void mma_e4m3(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same of E2M1, eight to a word: A 16 x 64 with columns 8t .. 8t + 7 and 32 + 8t .., B 64 x 8 likewise, every 16
// columns with a scale of UE4M3, four to a word: of A's row g by lane 4g and of row g + 8 by lane 4g + 1, of B's column
// g by lane 4g. sm_120a alone. Source: PTX ISA, mma with .block_scale, kind::mxf4nvf4.
static __device__ __forceinline__ void mma_e2m1(float *d, const unsigned *a, unsigned b0, unsigned b1,
                                                unsigned a_scales, unsigned b_scales)
{
    asm("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {0, 0}, {%11}, {0, 0};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(a_scales), "r"(b_scales));
}

// 16 bytes, 8 or 4, to shared memory, or zeros when not `valid`; both ends aligned. A group of them ends with commit;
// wait<n> waits until all but the last n groups of this thread have arrived.
static __device__ __forceinline__ void copy_async_16(void *shared, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_async_8(void *shared, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(from), "r"(valid ? 8 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_async_4(void *shared, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(from), "r"(valid ? 4 : 0)
                 : "memory");
}

// 16 bytes of shared memory, or what `to` held when not `wanted`: one instruction.
static __device__ __forceinline__ void load_shared_16(unsigned *to, const void *shared, bool wanted)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.shared.v4.u32 {%0,%1,%2,%3}, [%4]; }"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(shared)), "r"((int)wanted));
}

static __device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N> static __device__ __forceinline__ void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// The line of memory that `from` lies in, to the second-level cache.
static __device__ __forceinline__ void prefetch_global(const void *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

// Four 8 x 8 matrices of 16-bit elements: lane l names row l % 8 of matrix l / 8, at 16 aligned bytes, and gets of each
// (row g; columns 2t, 2t + 1), or transposed (rows 2t, 2t + 1; column g).
static __device__ __forceinline__ void load_matrices(unsigned *r, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

static __device__ __forceinline__ void load_matrices_transposed(unsigned *r, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}
