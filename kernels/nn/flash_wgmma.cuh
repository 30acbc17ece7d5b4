// Attention on the tensor cores of compute capability 9.0, for heads of 64 and 128: a block has TOKENS queries of a
// head. A warpgroup copies tiles of KEYS keys and values to shared memory, the next while one is used; two have 64
// queries each. A tile's scores and the values of the tile before are multiplied together; meanwhile the warpgroup
// makes shares of the scores, and the other one multiplies, in turns. Queries, keys and values lie in panels of 64
// dimensions: rows of 128 bytes whose 16-byte pieces are swizzled over eight rows, as products want them. Scores and
// shares stay in registers. Wants flash.cuh with KEYS 128, and MM_X as wgmma.cuh does.
#include "wgmma.cuh"

#define TOKENS        128
#define GROUP_THREADS 128 // a warpgroup
#define THREADS       (3 * GROUP_THREADS)
#define PANELS        (D_HEAD / 64)
#define PIECES        (D_HEAD / 8) // of a row, 16 bytes each
#define AT_ONCE                                                                                                        \
    (GROUP_THREADS / PIECES) // rows that a warpgroup copies at once, a multiple of eight: all are swizzled alike

struct tile {
    uint4 at[PANELS][KEYS][8];
};

struct shared {
    uint4 queries[PANELS][TOKENS][8];
    tile keys[2], values[2];
    unsigned long long keys_full[2], values_full[2], keys_empty[2], values_empty[2];
};

// ---- to shared memory

template <int ROWS> static __device__ __forceinline__ uint4 *piece_at(uint4 (*panels)[ROWS][8], int row, int piece)
{
    return &panels[piece / 8][row][piece % 8 ^ row % 8];
}

// Aligned for products; its barriers are there for the whole block.
static __device__ __forceinline__ shared *begin_shared(unsigned char *memory)
{
    shared *m = (shared *)(memory + (-shared_of(memory) & 1023u));
    if (threadIdx.x == 0) {
        for (int k = 0; k < 2; k++) {
            barrier_create(&m->keys_full[k], GROUP_THREADS);
            barrier_create(&m->values_full[k], GROUP_THREADS);
            barrier_create(&m->keys_empty[k], 8);
            barrier_create(&m->values_empty[k], 8);
        }
        barriers_created();
    }
    __syncthreads();
    return m;
}

// What copy_async_* or this thread wrote is there for products, after a barrier.
static __device__ __forceinline__ void written() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The warpgroup that copies: keys(k, to) and values(k, to) ask for those of tile k.
template <class K, class V>
static __device__ __forceinline__ void copy_tiles(shared *m, int n_tiles, const K &keys, const V &values)
{
    for (int k = 0; k < n_tiles; k++) {
        const int slot = k % 2, free = k / 2 % 2 ^ 1;
        barrier_wait(&m->keys_empty[slot], free);
        keys(k, m->keys[slot].at);
        barrier_arrive_copied(&m->keys_full[slot]);
        barrier_wait(&m->values_empty[slot], free);
        values(k, m->values[slot].at);
        barrier_arrive_copied(&m->values_full[slot]);
    }
}

// The queries of a warpgroup, which it copied itself.
static __device__ __forceinline__ void queries_copied(int group)
{
    copy_async_commit();
    copy_async_wait<0>();
    written();
    asm volatile("bar.sync %0, 128;" ::"r"(3 + group) : "memory");
}

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

static __device__ __forceinline__ void wait_full(unsigned long long *full, int k)
{
    barrier_wait(&full[k % 2], k / 2 % 2);
    written();
}

// A warp has read tile k.
static __device__ __forceinline__ void release(unsigned long long *empty, int k)
{
    if (threadIdx.x % 32 == 0) barrier_arrive(&empty[k % 2]);
}

static __device__ __forceinline__ void multiply_keys(shared *m, int group, int k, float *s)
{
#pragma unroll
    for (int i = 0; i < D_HEAD / 16; i++)
        multiply_128(s, descriptor_of(m->queries[i / 4][64 * group]) + 2 * (i % 4),
                     descriptor_of(m->keys[k % 2].at[i / 4]) + 2 * (i % 4), i);
    products_commit();
}

static __device__ __forceinline__ void multiply_values(shared *m, int k, const unsigned (*shares)[4], float *sum)
{
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        multiply_rows(sum, shares[i], descriptor_of_columns(m->values[k % 2].at) + i * (16 * 128 >> 4));
    products_commit();
}

// A warpgroup that multiplies. weigh(k, s, fade) makes shares of tile k's scores; all tiles are for both warpgroups.
template <class R, class W>
static __device__ __forceinline__ void attend_tiles(shared *m, int group, int n_tiles, R *r, const W &weigh)
{
    float s[KEYS / 8][4], fade[2];
    unsigned shares[KEYS / 16][4];
    if (group == 1) turn_give(0); // the first; the last one given is not taken
    wait_full(m->keys_full, 0);
    turn_wait(group);
    products_begin();
    multiply_keys(m, group, 0, s[0]);
    turn_give(1 - group);
    products_wait<0>();
    settle<KEYS / 2>(s[0]);
    release(m->keys_empty, 0);
    weigh(0, s, fade);
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) shares_of(s, i, shares[i]);
    for (int k = 1; k < n_tiles; k++) {
        wait_full(m->keys_full, k);
        wait_full(m->values_full, k - 1);
        turn_wait(group);
        products_begin();
        multiply_keys(m, group, k, s[0]);
        multiply_values(m, k - 1, shares, r->sum[0]);
        turn_give(1 - group);
        products_wait<1>();
        settle<KEYS / 2>(s[0]);
        release(m->keys_empty, k);
        weigh(k, s, fade);
        products_wait<0>();
        settle<D_HEAD / 2>(r->sum[0]);
        release(m->values_empty, k - 1);
        fade_sums(r, fade);
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) shares_of(s, i, shares[i]);
    }
    wait_full(m->values_full, n_tiles - 1);
    products_begin();
    multiply_values(m, n_tiles - 1, shares, r->sum[0]);
    products_wait<0>();
    settle<D_HEAD / 2>(r->sum[0]);
}
