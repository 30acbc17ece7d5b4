// Products with many rows of x on the tensor cores of compute capability 9.0. A block computes tiles of 128 rows of x
// by MM_N rows of W (of a gated product half of them of each matrix), one after the other: as many blocks as SMs. A
// thread has boxes of both copied to shared memory, MM_STAGES steps of 128 bytes of a row ahead; two warpgroups
// multiply, 64 rows of x each, and neither waits for the other, so that one finishes its sums while the other
// multiplies. Scales of W are constant along columns and wait for the end, except those of blocks (FP8, MM_SCALES 1).
// FP8 is added with 14 bits there: sums of a step of 128 columns are added to others in float registers (MM_PROMOTE),
// by one warpgroup while the other multiplies.
// Bound by tensor cores; an element is summed in the order of the columns.
//
// F32 is multiplied as tf32, to which the copies round it (the tensor cores would cut it off).
//
// With MM_ROWS 64 for up to 64 rows of x, where it is bound by the reading of W: the warpgroups share the tile's rows
// of W. Where tiles of 128 rows of W are fewer than SMs, a tile's columns are parted in slices, by a block each; the
// warp that ends last adds the slices' sums in order. The first copies of W, by a thread of their own, begin before the
// launch before has ended (overlap.cuh). Judge: the CPU.
//
// With MM_MEET a cluster of two blocks has the halves of the columns of a tile of 64 rows of W, whose sums meet in
// shared memory: each block adds and finishes every other eight rows of x. With 64 rows of x the warpgroups take turns
// at the steps there, whose sums meet the same way.
//
// Architecture: sm_90a
#ifndef MM_X
#    define MM_X          2
#    define MM_SCALES     0
#    define MM_PAIR       1
#    define MM_N          256
#    define MM_ROWS       128
#    define MM_STAGES     4
#    define MM_PROMOTE    0
#    define MM_MEET       0
#    define MM_ACTIVATION 0
#endif
#include "matmul.cuh"

#include "cluster.cuh"
#include "overlap.cuh"
#include "wgmma.cuh"

#define MM_X_IS_8 (MM_X == WT_MM_I8 || MM_X == WT_MM_E4M3)
#define IS_TF32   (MM_X == WT_MM_TF32)
#define SPAN      (MM_X_IS_8 ? 128 : IS_TF32 ? 32 : 64) // columns of a step
#define IN_TURNS  (MM_PROMOTE || MM_SCALES)
#define WARPS     WT_MM_WGMMA_WARPS
#define CHUNK     64 // columns of sums that a warp finishes at a time
#define FEW       (MM_ROWS == 64)
#define BY_STEPS  (FEW && MM_MEET)               // a warpgroup has every other step of a tile
#define EVERY     (BY_STEPS ? 2 : 1)             // of the steps
#define SPLIT     (FEW && !BY_STEPS ? 2 : 1)     // warpgroups that share the tile's rows of W
#define GROUP_N   (MM_N / SPLIT)                 // rows of W of a warpgroup
#define BOX       (GROUP_N / MM_PAIR)            // rows of W that are copied at once
#define EIGHTS    (MM_MEET ? 1 : 2)              // of rows of x that a warp finishes
#define FINISHERS (BY_STEPS ? WARPS / 2 : WARPS) // warps that do
#define MEETING   (2 * EVERY)                    // whose sums each of them adds with MM_MEET
#define ALL       0xffffffffu

struct stage {
    uint4 x[MM_ROWS][8], w[MM_N][8];
};

struct shared {
    stage stages[MM_STAGES];
    mm_sum sums[WARPS][16][CHUNK];
    float scales[WARPS][16]; // of rows of x
    unsigned long long full[MM_STAGES], empty[MM_STAGES], met[WARPS];
};

// Where a user of the stages is; `parity` of the phase that their barriers are in.
struct cursor {
    int stage;
    unsigned parity;
};

static __device__ __forceinline__ void advance(cursor *t)
{
    if (++t->stage < MM_STAGES) return;
    t->stage = 0;
    t->parity ^= 1;
}

static __device__ __forceinline__ int steps_of(const wt_mm_args &a) { return (a.columns + SPAN - 1) / SPAN; }

// ---- to shared memory

// Tile `at`; false for nothing.
static __device__ __forceinline__ bool find_tile(const wt_mm_wgmma_args &g, int at, mm_place *p)
{
    return find_place(g.args, at, g.n_tiles, MM_N / MM_PAIR, MM_PAIR == 2, p);
}

// What a block has of a tile: some of its steps.
struct span {
    int first, n;
};

static __device__ __forceinline__ span span_of(const wt_mm_wgmma_args &g, int slice)
{
    const int n_steps = steps_of(g.args), first = n_steps * slice / g.n_slices;
    return {first, n_steps * (slice + 1) / g.n_slices - first};
}

// Rows of x that are not copied may hold anything: only rows of y come of them that are not there.
static __device__ __forceinline__ int bytes_of_stage(const wt_mm_wgmma_args &g)
{
    return FEW ? (g.x_rows + MM_N) * 128 : (int)sizeof(stage);
}

static __device__ __forceinline__ void copy_x(const wt_mm_wgmma_args &g, const mm_place &p, int step, shared *s, int to)
{
    copy_box(s->stages[to].x, &g.x, step * SPAN, p.tile.first, (int)p.tile.y_batches, &s->full[to]);
}

// The rows of W of a step.
static __device__ __forceinline__ void copy_w(const wt_mm_wgmma_args &g, const mm_place &p, int step, shared *s, int to)
{
    for (int group = 0; group < SPLIT; group++)
        for (int q = 0; q < MM_PAIR; q++)
            copy_box(s->stages[to].w[group * GROUP_N + q * BOX], &g.w[MM_PAIR == 2 ? q : p.part], step * SPAN,
                     p.first + group * BOX, p.tile.stack, &s->full[to]);
}

// W and how much is expected, or x, which is written by a launch that may still run.
static __device__ void copy_all(const wt_mm_wgmma_args &g, shared *s, bool of_x)
{
    cursor t = {0, 0};
    if (of_x) {
        prefetch_map(&g.x);
        wait_for_earlier();
    } else
        for (int k = 0; k < g.args.n_parts; k++) prefetch_map(&g.w[k]);
    for (int at = blockIdx.x; at < g.n_tiles * g.n_slices; at += gridDim.x) {
        mm_place p;
        if (!find_tile(g, at / g.n_slices, &p)) continue;
        const span of = span_of(g, at % g.n_slices);
        for (int k = 0; k < of.n; k++) {
            barrier_wait(&s->empty[t.stage], t.parity ^ 1);
            if (of_x)
                copy_x(g, p, of.first + k, s, t.stage);
            else {
                barrier_expect(&s->full[t.stage], bytes_of_stage(g));
                copy_w(g, p, of.first + k, s, t.stage);
            }
            advance(&t);
        }
    }
}

// ---- products

// A warp has read the stage.
static __device__ __forceinline__ void release(shared *s, int stage)
{
    if (threadIdx.x % 32 == 0) barrier_arrive(&s->empty[stage]);
}

#if IN_TURNS
// The scale of the block of 128 x 128 weights that meets step k, of sums n .. of the tile.
static __device__ __forceinline__ float block_scale(const wt_mm_args &a, const mm_place &p, int n, int k)
{
    if (!MM_SCALES) return 1;
    const int rows = MM_N / MM_PAIR, part = MM_PAIR == 2 ? n / rows : p.part;
    const wt_mm_part &of = a.parts[part];
    const int r = p.first + n % rows, last = of.rows - 1;
    return element(a.scale_type, of.scales + p.tile.stack * of.scales_next,
                   (long long)((r < last ? r : last) / a.scale_rows) * a.scale_stride + k);
}

// The warpgroups take turns, so that one adds while the other multiplies.
static __device__ __forceinline__ void multiply_tile(const wt_mm_args &a, const mm_place &p, const span &of, shared *s,
                                                     int group, cursor *t, mm_sum *sums)
{
#    pragma unroll
    for (int i = 0; i < MM_N / 2; i++) sums[i] = 0;
    for (int k = 0; k < of.n; k++) {
        float scales[MM_N / 64];
#    pragma unroll
        for (int i = 0; i < MM_N / 64; i++) scales[i] = block_scale(a, p, 64 * i, of.first + k);
        barrier_wait(&s->full[t->stage], t->parity);
        const unsigned long long x = descriptor_of(s->stages[t->stage].x[64 * group]);
        const unsigned long long w = descriptor_of(s->stages[t->stage].w);
#    pragma unroll
        for (int half = 0; half < MM_N / 128; half++) {
            mm_sum step[64];
            turn_wait(group);
            products_begin();
#    pragma unroll
            for (int i = 0; i < 4; i++) multiply_128(step, x + 2 * i, w + half * 1024 + 2 * i, i);
            products_commit();
            turn_give(1 - group);
            products_wait<0>();
            settle<64>(step);
            if (half == MM_N / 128 - 1) release(s, t->stage);
#    pragma unroll
            for (int i = 0; i < 64; i++) sums[half * 64 + i] += step[i] * scales[half * 2 + i / 32];
        }
        advance(t);
    }
}
#else
// The products of a step run while the next ones are queued; then its stage is free.
static __device__ __forceinline__ void multiply_tile(const wt_mm_args &, const mm_place &, const span &of, shared *s,
                                                     int group, cursor *t, mm_sum *sums)
{
    int before = 0;
    if (BY_STEPS && group) advance(t);
    for (int k = BY_STEPS ? group : 0; k < of.n; k += EVERY) {
        barrier_wait(&s->full[t->stage], t->parity);
        const unsigned long long x = descriptor_of(s->stages[t->stage].x[FEW ? 0 : 64 * group]);
        const unsigned long long w = descriptor_of(s->stages[t->stage].w[SPLIT == 2 ? group * GROUP_N : 0]);
        products_begin();
#    pragma unroll
        for (int i = 0; i < 4; i++)
            if (GROUP_N == 256)
                multiply_256(sums, x + 2 * i, w + 2 * i, k | i);
            else if (GROUP_N == 128)
                multiply_128(sums, x + 2 * i, w + 2 * i, k | i);
            else
                multiply_64(sums, x + 2 * i, w + 2 * i, k / EVERY | i);
        products_commit();
        products_wait<1>();
        if (k / EVERY) release(s, before);
        before = t->stage;
        for (int n = 0; n < EVERY; n++) advance(t);
    }
    products_wait<0>();
    release(s, before);
    settle<GROUP_N / 2>(sums);
}
#endif

// The sums of one of a tile's slices are put aside. The warp that comes last gets those of all, added in order, and
// true.
static __device__ __forceinline__ bool add_slices(const wt_mm_wgmma_args &g, int tile, int slice, int warp,
                                                  mm_sum *sums)
{
    const int lane = threadIdx.x % 32, n = GROUP_N / 8, apart = WARPS * n * 32;
    mm_sum_4 *of_warp = (mm_sum_4 *)g.partial + ((long long)tile * g.n_slices * WARPS + warp) * n * 32 + lane;
    int *arrived = g.arrived + tile * WARPS + warp, before = 0;
#pragma unroll
    for (int i = 0; i < n; i++)
        of_warp[slice * apart + 32 * i] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
    __threadfence(); // written before they are counted
    __syncwarp();
    if (!lane) before = atomicAdd(arrived, 1);
    if (__shfl_sync(ALL, before, 0) != g.n_slices - 1) return false;
    __threadfence();
    if (!lane) *arrived = 0;
#pragma unroll
    for (int i = 0; i < GROUP_N / 2; i++) sums[i] = 0;
#pragma unroll 4 // one slice's sums are on their way at a time; four slices' at once were no faster (H200)
    for (int k = 0; k < g.n_slices; k++)
#pragma unroll
        for (int i = 0; i < n; i++) {
            const mm_sum_4 part = __ldcg(of_warp + k * apart + 32 * i);
            sums[4 * i] += part.x;
            sums[4 * i + 1] += part.y;
            sums[4 * i + 2] += part.z;
            sums[4 * i + 3] += part.w;
        }
    return true;
}

#if MM_MEET
// To where warp `finisher` of block `rank` meets them, as the ones of that number.
static __device__ __forceinline__ void send_sums(const mm_sum *sums, int rank, shared *s, int finisher, int number)
{
    float4 *to = (float4 *)s->sums + (finisher * MEETING + number) * (GROUP_N / 16 * 32) + threadIdx.x % 32;
#    pragma unroll
    for (int j = 0; j < GROUP_N / 16; j++) {
        const mm_sum *from = sums + 8 * j + 2 * rank;
        send_to(to + 32 * j, rank, {from[0], from[1], from[4], from[5]}, &s->met[finisher]);
    }
}

// Row 8 r + lane / 4 of the warp's 16 goes to block r of the cluster. Of the tile's columns the blocks have halves, of
// their steps the warpgroups every other; false for a warp that has given away its sums and gets none.
static __device__ __forceinline__ bool meet(shared *s, int warp, mm_sum *sums)
{
    const int finisher = warp % FINISHERS, number = blockIdx.x % 2 * EVERY + warp / FINISHERS;
    send_sums(sums, 0, s, finisher, number);
    send_sums(sums, 1, s, finisher, number);
    if (warp != finisher) return false;
    barrier_wait_in_cluster(&s->met[finisher], 0);
    const float4 *from = (const float4 *)s->sums + finisher * MEETING * (GROUP_N / 16 * 32) + threadIdx.x % 32;
#    pragma unroll
    for (int i = 0; i < GROUP_N / 4; i++) sums[i] = 0;
#    pragma unroll
    for (int k = 0; k < MEETING; k++)
#    pragma unroll
        for (int j = 0; j < GROUP_N / 16; j++) {
            const float4 part = from[(k * (GROUP_N / 16) + j) * 32];
            sums[4 * j] += part.x;
            sums[4 * j + 1] += part.y;
            sums[4 * j + 2] += part.z;
            sums[4 * j + 3] += part.w;
        }
    return true;
}
#endif

// ---- the end: 64 columns of sums at a time, 32 of each part of a gated product, from a warp's registers by way of its
// piece of shared memory to y. There a row's 16-byte units are exchanged so that neither side meets a bank twice.

static __device__ __forceinline__ mm_sum *unit_of(mm_sum (*sums)[CHUNK], int row, int unit)
{
    return sums[row] + (unit ^ row % 8 * 2) * 4;
}

// 32 columns of sums to units first ..
static __device__ __forceinline__ void lay_out(const mm_sum *d, mm_sum (*sums)[CHUNK], int first)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int h = 0; h < EIGHTS; h++) {
            const mm_sum *from = d + 2 * (EIGHTS * j + h);
            mm_sum *to = unit_of(sums, g + 8 * h, first + 2 * j + t / 2) + t % 2 * 2;
            *(mm_sum_2 *)to = {from[0], from[1]};
        }
}

// Four elements r .. of row i of y for the norm that follows; 16 lanes have the row's chunk, all of them here.
static __device__ __forceinline__ void norm_four(const wt_mm_args &a, int i, int r, float4 v)
{
    const int rows = a.parts[0].rows;
    const float4 w = *(const float4 *)(a.norm_weight + r);
    const long long at = (long long)i * rows + r;
    *(uint2 *)(a.normed + at) = {pair_of(WT_MM_BF16, v.x * w.x, v.y * w.y), pair_of(WT_MM_BF16, v.z * w.z, v.w * w.w)};
    float squares = v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
#pragma unroll
    for (int step = 8; step; step /= 2) squares += __shfl_xor_sync(0xffffu << (threadIdx.x & 16), squares, step);
    if (threadIdx.x % 16) return;
    a.squares[(long long)i * (rows / WT_MM_WGMMA_SQUARES) + r / WT_MM_WGMMA_SQUARES] = squares;
}

// What the sums of a warp's rows first .. are multiplied with: 1 over the root of the mean square of what x was made
// of.
static __device__ __forceinline__ void scale_rows(const wt_mm_args &a, int first, float *scales)
{
    const int lane = threadIdx.x % 32, n = a.columns / WT_MM_WGMMA_SQUARES;
    float sums[16] = {};
    for (int k = lane; k < n; k += 32)
#pragma unroll
        for (int row = 0; row < 16; row++)
            if (first + row < a.m) sums[row] += a.x_squares[(long long)(first + row) * n + k];
#pragma unroll
    for (int row = 0; row < 16; row++)
        for (int step = 16; step; step /= 2) sums[row] += __shfl_xor_sync(ALL, sums[row], step);
    if (lane) return;
#pragma unroll
    for (int row = 0; row < 16; row++) scales[row] = 1 / sqrtf(sums[row] / (float)a.columns + a.norm_eps);
}

static __device__ __forceinline__ float4 floats_of(mm_sum_4 sum)
{
    return {(float)sum.x, (float)sum.y, (float)sum.z, (float)sum.w};
}

static __device__ __forceinline__ float4 activated_4(float4 v)
{
    return {activated(MM_ACTIVATION, v.x), activated(MM_ACTIVATION, v.y), activated(MM_ACTIVATION, v.z),
            activated(MM_ACTIVATION, v.w)};
}

// Rows first_row .. of the tile, those a warp finishes, columns `column` .. of the tile's part: lanes side by side in a
// row.
static __device__ __forceinline__ void finish_chunk(const wt_mm_args &a, const mm_place &p, mm_sum (*sums)[CHUNK],
                                                    const float *scales, int first_row, int column)
{
    const int lanes = CHUNK / MM_PAIR / 4, lane = threadIdx.x % 32, unit = lane % lanes;
    const int r = p.first + column + 4 * unit, n_rows = min(8 * EIGHTS, p.tile.count - first_row);
    const wt_mm_part &part = a.parts[p.part];
    if (r >= part.rows) return;
    const bool whole = is_whole(a, part, r), bare = MM_X == WT_MM_I8 && a.y_type == WT_MM_I32;
    const factors f = factors_of(a, part, p.tile.stack, r, !MM_SCALES);
    const factors f1 = MM_PAIR == 2 ? factors_of(a, a.parts[1], p.tile.stack, r, !MM_SCALES) : f;
    const int bytes = bytes_of(a.y_type);
    unsigned char *y = (unsigned char *)part.y +
                       (p.tile.y_batches * part.y_batch + (p.tile.first + first_row) * part.y_stride + r) * bytes;
#pragma unroll(4 / MM_PAIR)
    for (int k = 0; k < 8 * EIGHTS * lanes / 32; k++) {
        const int row = lane / lanes + k * (32 / lanes), i = first_row + row;
        if (row >= n_rows) break;
        const mm_sum_4 sum = *(const mm_sum_4 *)unit_of(sums, row, unit);
        unsigned char *to = y + row * part.y_stride * bytes;
        if (bare && whole) {
            *(mm_sum_4 *)to = sum;
            continue;
        }
        if (bare) {
            const int all[4] = {(int)sum.x, (int)sum.y, (int)sum.z, (int)sum.w};
            for (int c = 0; c < 4; c++)
                if (r + c < part.rows) store_sum(part, p.tile, i, r + c, all[c]);
            continue;
        }
        const float x_scale = MM_X_IS_8 && a.x_scales ? a.x_scales[p.tile.first + i]
                              : FEW && a.x_squares    ? scales[row]
                                                      : 1;
        float4 v = activated_4(finished(f, floats_of(sum), x_scale));
        if (MM_PAIR == 2) {
            const float4 v1 = finished(f1, floats_of(*(const mm_sum_4 *)unit_of(sums, row, lanes + unit)), x_scale);
            v = {v.x * v1.x, v.y * v1.y, v.z * v1.z, v.w * v1.w};
        }
        if (whole) {
            v = store_four(a, to, v);
            if (FEW && MM_PAIR == 1 && a.norm_weight) norm_four(a, i, r, v);
            continue;
        }
        const float all[4] = {v.x, v.y, v.z, v.w};
        for (int c = 0; c < 4; c++)
            if (r + c < part.rows) store(a, part, p.tile, i, r + c, all[c]);
    }
}

// Floats that lie side by side, one a row of W.
static __device__ __forceinline__ bool are_of_rows(const wt_mm_args &a, const wt_mm_part &part)
{
    return a.scale_rows == 1 && a.scale_stride == 1 && a.scale_type == WT_MM_F32 && !part.tensor_scale;
}

// Sums that become y by factors: 16 bits, whole pieces of 16 bytes, or, of tf32, floats, whole pairs.
static __device__ __forceinline__ bool is_plain(const wt_mm_args &a, const mm_place &p)
{
    const wt_mm_part &part = a.parts[p.part], &last = a.parts[MM_PAIR == 2 ? 1 : p.part];
    const int bytes = IS_TF32 ? 4 : 2;
    const long long all = (long long)part.y | part.y_stride * bytes | part.y_batch * bytes;
    const bool of_type = IS_TF32 ? a.y_type == WT_MM_F32 : a.y_type == WT_MM_F16 || a.y_type == WT_MM_BF16;
    const bool scales = !part.scales || a.scale_rows >= part.rows || (are_of_rows(a, part) && are_of_rows(a, last));
    const bool norm = FEW && (a.norm_weight || a.x_squares);
    return !norm && !MM_SCALES && of_type && !a.add && !part.bias && !last.bias && scales &&
           all % (IS_TF32 ? 8 : 16) == 0 && p.first + MM_N / MM_PAIR <= part.rows;
}

// The four lanes of a row exchange words of two elements, so that each has 16 bytes of it.
static __device__ __forceinline__ void exchange(unsigned *w)
{
#pragma unroll
    for (int step = 1; step < 4; step *= 2)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (j & step) continue;
            const bool upper = threadIdx.x & step;
            const unsigned other = __shfl_xor_sync(ALL, upper ? w[j] : w[j + step], step);
            (upper ? w[j] : w[j + step]) = other;
        }
}

static __device__ __forceinline__ float activated_plain(float v)
{
    return MM_ACTIVATION == WT_MM_SILU && !IS_TF32 ? silu_of_16(v) : activated(MM_ACTIVATION, v);
}

// Scales of rows r and r + 1 of W.
static __device__ __forceinline__ float2 two_scales(const wt_mm_args &a, const wt_mm_part &part, int stack, int r,
                                                    float otherwise)
{
    if (!part.scales || !are_of_rows(a, part)) return {otherwise, otherwise};
    const float *scales = (const float *)(part.scales + stack * part.scales_next) + r;
    return {scales[0], scales[1]};
}

static __device__ __forceinline__ void finish_plain(const wt_mm_args &a, const mm_place &p, int first_row,
                                                    int first_column, const mm_sum *d)
{
    const int lane = threadIdx.x % 32, row = first_row + lane / 4, t = lane % 4, first_r = p.first + first_column;
    const wt_mm_part &part = a.parts[p.part];
    const long long first = p.tile.y_batches * part.y_batch + (p.tile.first + row) * part.y_stride + first_r;
    unsigned short *y = (unsigned short *)part.y + first + 8 * t;
    float *floats = (float *)part.y + first + 2 * t;
    const float scale = scale_at(a, part, p.tile.stack, p.first, 0);
    const float scale1 = MM_PAIR == 2 ? scale_at(a, a.parts[1], p.tile.stack, p.first, 0) : 1;
    float x_scale[EIGHTS];
#pragma unroll
    for (int h = 0; h < EIGHTS; h++)
        x_scale[h] = MM_X_IS_8 && a.x_scales && row + 8 * h < p.tile.count ? a.x_scales[p.tile.first + row + 8 * h] : 1;
#pragma unroll
    for (int q = 0; q < GROUP_N / MM_PAIR / 32; q++) {
        unsigned w[EIGHTS][4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const mm_sum *sums = d + 2 * EIGHTS * (4 * q + j), *sums1 = sums + GROUP_N / 8 * EIGHTS;
            const int r = first_r + 32 * q + 8 * j + 2 * t;
            const float2 f = two_scales(a, part, p.tile.stack, r, scale);
            const float2 f1 = MM_PAIR == 2 ? two_scales(a, a.parts[1], p.tile.stack, r, scale1) : f;
#pragma unroll
            for (int h = 0; h < EIGHTS; h++) {
                float v = activated_plain((float)sums[2 * h] * (f.x * x_scale[h]));
                float u = activated_plain((float)sums[2 * h + 1] * (f.y * x_scale[h]));
                if (MM_PAIR == 2) {
                    v *= (float)sums1[2 * h] * (f1.x * x_scale[h]);
                    u *= (float)sums1[2 * h + 1] * (f1.y * x_scale[h]);
                }
                if (!IS_TF32)
                    w[h][j] = pair_of(a.y_type, v, u);
                else if (row + 8 * h < p.tile.count)
                    *(float2 *)(floats + 8 * h * part.y_stride + 32 * q + 8 * j) = {v, u};
            }
        }
#pragma unroll
        for (int h = 0; h < EIGHTS && !IS_TF32; h++) {
            exchange(w[h]);
            if (row + 8 * h < p.tile.count)
                *(uint4 *)(y + 8 * h * part.y_stride + 32 * q) = {w[h][0], w[h][1], w[h][2], w[h][3]};
        }
    }
}

static __device__ __forceinline__ void finish_tile(const wt_mm_args &a, const mm_place &p, mm_sum (*sums)[CHUNK],
                                                   const float *scales, int first_row, int first_column,
                                                   const mm_sum *d)
{
    if (first_row >= p.tile.count) return;
    if (is_plain(a, p)) {
        finish_plain(a, p, first_row, first_column, d);
        return;
    }
#pragma unroll
    for (int q = 0; q < GROUP_N / CHUNK; q++) {
        const mm_sum *first = d + q * (16 / MM_PAIR) * EIGHTS,
                     *second = first + (MM_PAIR == 2 ? GROUP_N / 8 : 8) * EIGHTS;
        __syncwarp(); // the chunk before is read
        lay_out(first, sums, 0);
        lay_out(second, sums, CHUNK / 8);
        __syncwarp();
        finish_chunk(a, p, sums, scales, first_row, first_column + q * (CHUNK / MM_PAIR));
    }
}

static __device__ void multiply_all(const wt_mm_wgmma_args &g, shared *s)
{
    const int warp = threadIdx.x / 32 - 4, group = warp / 4;
    const int first_row = 16 * (FEW ? warp % 4 : warp), first_column = SPLIT == 2 ? group * BOX : 0;
    cursor t = {0, 0};
    wait_for_earlier(); // whose results are added to, or read until then what is written here
    if (FEW && g.args.x_squares) scale_rows(g.args, first_row, s->scales[warp]);
    if (IN_TURNS && group == 1) turn_give(0); // the first; the last one given is not taken
    for (int at = blockIdx.x; at < g.n_tiles * g.n_slices; at += gridDim.x) {
        const int tile = at / g.n_slices, slice = at % g.n_slices;
        mm_place p;
        mm_sum sums[GROUP_N / 2];
        if (!find_tile(g, tile, &p)) continue;
        multiply_tile(g.args, p, span_of(g, slice), s, group, &t, sums);
#if MM_MEET
        if (!meet(s, warp, sums)) return;
        const int eight = blockIdx.x % 2 * 8;
        finish_tile(g.args, p, s->sums[warp * EVERY], s->scales[warp] + eight, first_row + eight, 0, sums);
#else
        if (MM_N == 128 && g.n_slices > 1 && !add_slices(g, tile, slice, warp, sums)) continue;
        finish_tile(g.args, p, s->sums[warp], s->scales[warp], first_row, first_column, sums);
#endif
    }
}

// One warpgroup copies, with the registers that a thread of it needs; two multiply with the rest of 65536.
#if MM_MEET
extern "C" __global__ void CLUSTER_2 __launch_bounds__(WT_MM_WGMMA_THREADS, 1)
#else
extern "C" __global__ void __launch_bounds__(WT_MM_WGMMA_THREADS, 1)
#endif
    matmul_wgmma(const __grid_constant__ wt_mm_wgmma_args g)
{
    extern __shared__ unsigned char wgmma_shared[];
    let_next_begin();
    if (g.args.offsets) wait_for_earlier(); // which tell where the block's W is
    shared *s = (shared *)(wgmma_shared + (-shared_of(wgmma_shared) & 1023u));
    if (threadIdx.x == 0) {
        for (int k = 0; k < MM_STAGES; k++) {
            barrier_create(&s->full[k], 1);
            barrier_create(&s->empty[k], FINISHERS);
        }
        for (int k = 0; k < FINISHERS && MM_MEET; k++) barrier_create(&s->met[k], 1);
        barriers_created();
        for (int k = 0; k < FINISHERS && MM_MEET; k++)
            barrier_expect(&s->met[k], MEETING * GROUP_N * 8 * (int)sizeof(float));
    }
    __syncthreads();
    if (MM_MEET) cluster_arrive();
    if (threadIdx.x < 128) {
        registers_down<40>();
        if (threadIdx.x == 0 || threadIdx.x == 32) copy_all(g, s, threadIdx.x == 32);
        __syncwarp();
        if (MM_MEET) cluster_wait();
    } else {
        registers_up<232>();
        if (MM_MEET) cluster_wait(); // barriers of the other block are there
        multiply_all(g, s);
    }
}
