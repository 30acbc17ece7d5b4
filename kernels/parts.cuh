// Floats on tensor cores: a float is the sum of three bf16, to 2^-25 of it, and a product of two floats that of the six
// products of parts that are not below 2^-26 of it. Sums are floats, but each product of 16 terms cuts off what is
// below the last place: so long sums are made of short ones that begin with zeros. Wants mma.cuh.
#define PARTS 3

// Two floats, the first in the lower halves.
static __device__ __forceinline__ void part_pair(float x, float y, unsigned *parts)
{
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(parts[i]) : "f"(y), "f"(x));
        x -= __uint_as_float(parts[i] << 16);
        y -= __uint_as_float(parts[i] & 0xffff0000u);
    }
}

// d + low += A B of floats: parts of A in a[i], of B in b0[i] and b1[i]. The five small products go to `low`, which may
// be `d`.
static __device__ __forceinline__ void mma_parts(float *d, float *low, const unsigned (*a)[4], const unsigned *b0,
                                                 const unsigned *b1)
{
    mma_bf16(low, a[2], b0[0], b1[0]);
    mma_bf16(low, a[0], b0[2], b1[2]);
    mma_bf16(low, a[1], b0[1], b1[1]);
    mma_bf16(low, a[1], b0[0], b1[0]);
    mma_bf16(low, a[0], b0[1], b1[1]);
    mma_bf16(d, a[0], b0[0], b1[0]);
}
