// Attention on the tensor cores of compute capability 9.0, for heads of 64 and 128: a warpgroup has 64 rows of a
// block's TOKENS. Queries stay in shared memory, tiles of keys and values come there, the next while one is used, all
// in panels of 64 dimensions: rows of 128 bytes whose 16-byte pieces are swizzled over eight rows, as products want
// them. Scores and shares stay in registers. Wants flash.cuh, and MM_X as wgmma.cuh does.
#include "wgmma.cuh"

#define TOKENS 128
#define PANELS (D_HEAD / 64)
#define PIECES (D_HEAD / 8) // of a row, 16 bytes each

struct page {
    uint4 keys[PANELS][KEYS][8], values[PANELS][KEYS][8];
};

struct shared {
    uint4 queries[PANELS][TOKENS][8];
    page pages[2];
};

// ---- to shared memory

template <int ROWS> static __device__ __forceinline__ uint4 *piece_at(uint4 (*panels)[ROWS][8], int row, int piece)
{
    return &panels[piece / 8][row][piece % 8 ^ row % 8];
}

// What this thread wrote there is there for products, after the block's barrier.
static __device__ __forceinline__ void written() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products

// d += A B: the warps' 16 rows of 16 elements each by 16 rows of a head's dimensions.
static __device__ __forceinline__ void multiply_rows(float *d, const unsigned *a, unsigned long long b)
{
#if D_HEAD == 64
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.b32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64" MM_KIND MM_NAMES_32 ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n"
                 "}"
                 : MM_SUMS_32(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#else
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.b32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128" MM_KIND MM_NAMES_64 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}"
                 : MM_SUMS_64(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

// Of rows whose dimensions are the columns of a product: the next panel lies a panel further on, eight rows 1024 bytes.
static __device__ __forceinline__ unsigned long long descriptor_of_columns(const void *p)
{
    return (shared_of(p) & 0x3ffff) >> 4 | (unsigned long long)(KEYS * 128 >> 4) << 16 | 1024ull >> 4 << 32 |
           1ull << 62;
}

static __device__ __forceinline__ void score(shared *m, int group, const page *p, float *s)
{
    products_begin();
#pragma unroll
    for (int k = 0; k < D_HEAD / 16; k++)
        multiply_64(s, descriptor_of(m->queries[k / 4][64 * group]) + 2 * (k % 4),
                    descriptor_of(p->keys[k / 4]) + 2 * (k % 4), k);
    products_commit();
    products_wait<0>();
    settle<KEYS / 2>(s);
}

template <class R> static __device__ __forceinline__ void add_values(R *r, const page *p, const float (*s)[4])
{
    unsigned shares[KEYS / 16][4];
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) shares_of(s, k, shares[k]);
    products_begin();
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        multiply_rows(r->sum[0], shares[k], descriptor_of_columns(p->values) + k * (16 * 128 >> 4));
    products_commit();
    products_wait<0>();
    settle<D_HEAD / 2>(r->sum[0]);
}
