// Products of one vector with matrices of 16 bits, at the speed at which the weights are read, on tensor cores: 8 rows
// of W at a time by the vector as three parts of the weights' type, which together have its 24 bits; products are exact
// and sums float. A norm before and what comes after are in the same launch, as in llm_matvec.cu, which has what this
// does not take. The kernels are in llm_stream.cu and llm_experts.cu.
//
// A warp has columns of its own, and their part of the vector; rows too long for that in passes. Of many short rows
// fewer warps share one, a team, and the block has several. Tiles of 8 rows are dealt to the blocks in turn, and those
// of a block to its teams; of each a warp copies its columns to stages in shared memory, 128 columns at a time, all but
// one of the stages under way at any time, also across tiles. Half a processor is enough for a block, so that those of
// the next launch come while it runs and fill theirs before they wait (overlap.cuh): that keeps the memory busy while a
// launch ends and the next one fetches its vector.
//
// A product may begin before the one whose rows are its vector has ended, because processors are not equally fast and
// their blocks end far apart. Rows are dealt so that all blocks finish the first part of them in the first part of the
// time, and every word is its own message: the launch before that product makes them all NOT_THERE, and who reads them
// waits until they are not. Nobody is kept from what is waited for: a block that waits so can only be there when all
// blocks of the awaited launch are. Those let it come after their own waiting, so that what was there before has been
// cleared, and it waits for their end before its own, so that later launches' waiting is for all of them. A kernel of
// its own: with a longer one all products are slower (8B 26 us a step).
//
// Experts of a token: every warp chooses them when the router's launch has ended, and every lane keeps one of the
// choice. Gate and up of all of them are rows of one product; the vector is on its way to registers before the first
// weights are asked for, which would be in its way. The launch after it comes when that is so, and chooses as it
// begins. Down's rows are those of all of them side by side, of each in so many parts of columns, a part a warp and
// pass; a part's sums are multiplied with its expert's share, and the next pass's columns of the vector are under way
// meanwhile.
//
// The tensor cores' 16 rows are 8 of W, with columns 0 .. 31 of 64 as the first half and 32 .. 63 as the second (odd
// rows the other way round, so that no two lanes of a read meet a bank), and of their 8 columns three are the parts of
// the vector's first 32 and three those of its others; what does not belong together is not looked at.
//
// The parts of F16 are of the vector times a power of two, by which none leaves the type's range. A row's sum depends
// on its columns alone, not on the grid. Judge: the CPU's steps (models/llm/ops_cpu.c).
#include "llm_types.cuh"
#include "llm_routes.cuh"

#include "mma.cuh"
#include "overlap.cuh"

#define WARPS   WT_LLM_STREAM_WARPS
#define TILE    WT_LLM_STREAM_TILE
#define COLUMNS WT_LLM_STREAM_COLUMNS
#define STAGE   128 // times 16 bytes
#define AT_ONCE 8   // tiles whose sums are finished together
#define KEPT    2   // times 256 columns of a warp whose weights of the norm wait in registers

// What the matrices are: a model's own, with the vector there when the launch before has ended or AWAITED; or those of
// experts that are chosen on the device.
enum kind { PLAIN, AWAITED, GATES, DOWNS };

// ---- the vector

struct eight {
    float at[8];
};

static __device__ __forceinline__ eight load_eight(const float *from, bool wanted)
{
    const float4 zero = {0, 0, 0, 0}, a = wanted ? ((const float4 *)from)[0] : zero;
    const float4 b = wanted ? ((const float4 *)from)[1] : zero;
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// Likewise of what others are writing.
static __device__ __forceinline__ eight look_eight(const float *from, bool wanted)
{
    eight x;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %9, 0;\n"
                 "  mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;\n"
                 "  mov.b32 %4, 0; mov.b32 %5, 0; mov.b32 %6, 0; mov.b32 %7, 0;\n"
                 "  @p ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%8];\n"
                 "  @p ld.relaxed.gpu.global.v4.f32 {%4, %5, %6, %7}, [%8 + 16]; }"
                 : "=&f"(x.at[0]), "=&f"(x.at[1]), "=&f"(x.at[2]), "=&f"(x.at[3]), "=&f"(x.at[4]), "=&f"(x.at[5]),
                   "=&f"(x.at[6]), "=&f"(x.at[7])
                 : "l"(from), "r"((int)wanted)
                 : "memory");
    return x;
}

static __device__ __forceinline__ bool are_there(const eight &x)
{
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) most = max(most, __float_as_uint(x.at[i]));
    return most != WT_LLM_NOT_THERE;
}

static __device__ __forceinline__ constexpr bool is_f16(bf16) { return false; }
static __device__ __forceinline__ constexpr bool is_f16(f16) { return true; }

static __device__ __forceinline__ unsigned pair_of(float a, float b, bf16)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}
static __device__ __forceinline__ unsigned pair_of(float a, float b, f16)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}

// Three parts of eight elements, `pitch` bytes apart.
template <class T> static __device__ __forceinline__ void store_parts(eight x, unsigned char *to, int pitch)
{
#pragma unroll
    for (int part = 0; part < 3; part++) {
        unsigned w[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            w[k] = pair_of(x.at[2 * k], x.at[2 * k + 1], T{});
            x.at[2 * k] -= widen(T{(unsigned short)w[k]});
            x.at[2 * k + 1] -= widen(T{(unsigned short)(w[k] >> 16)});
        }
        *(uint4 *)(to + part * pitch) = {w[0], w[1], w[2], w[3]};
    }
}

// ---- the weights

struct tile_place {
    int part, row; // row -1: there is no such tile
    int slot;      // of GATES: which of the chosen experts
};

static __device__ __forceinline__ int tiles_of(const wt_llm_part &part) { return (part.rows + TILE - 1) / TILE; }

// Of the block.
template <kind KIND> static __device__ __forceinline__ int count_tiles(const wt_llm_stream_args &all)
{
    const wt_llm_matvec_args &a = all.m;
    int n = 0;
    for (int part = 0; part < (a.gated ? 1 : a.n_parts); part++) n += tiles_of(a.parts[part]);
    if (KIND == GATES) n *= all.choose.n_used;
    n = (int)blockIdx.x < n ? (n - 1 - (int)blockIdx.x) / (int)gridDim.x + 1 : 0;
    return a.gated ? 2 * n : n;
}

template <kind KIND> static __device__ __forceinline__ tile_place place_tile(const wt_llm_stream_args &all, int tile)
{
    const wt_llm_matvec_args &a = all.m;
    int at = (int)blockIdx.x + (a.gated ? tile / 2 : tile) * (int)gridDim.x;
    if (KIND == GATES) {
        const int n = tiles_of(a.parts[0]), slot = at / n;
        return {tile % 2, slot < all.choose.n_used ? (at - slot * n) * TILE : -1, slot};
    }
    if (a.gated) return {tile % 2, at * TILE < a.parts[0].rows ? at * TILE : -1};
    for (int part = 0; part < a.n_parts; part++) {
        const int n = tiles_of(a.parts[part]);
        if (at < n) return {part, at * TILE};
        at -= n;
    }
    return {0, -1};
}

static __device__ __forceinline__ const wt_llm_part &part_at(const wt_llm_matvec_args &a, int part)
{
    return part == 0 ? a.parts[0] : part == 1 ? a.parts[1] : a.parts[2];
}

// What a warp has of the columns in a pass.
struct share {
    int first, n;
    int slot; // of DOWNS: which of the chosen experts
};

template <int TEAM, kind KIND>
static __device__ __forceinline__ share share_of(const wt_llm_stream_args &a, int pass)
{
    const int at = pass * TEAM + (int)threadIdx.x / 32 % TEAM;
    const int slot = KIND == DOWNS ? at / a.n_shares : 0;
    const int first = (KIND == DOWNS ? at - slot * a.n_shares : at) * a.each;
    const int n = min(a.each, max(0, a.m.columns - first));
    return {first, KIND == DOWNS && slot >= a.choose.n_used ? 0 : n, slot};
}

// Where a warp's columns are in the vector.
static __device__ __forceinline__ const float *vector_at(const wt_llm_matvec_args &a, const share &own)
{
    return a.x + own.slot * a.columns + own.first;
}

// By each warp for itself. The first block of GATES tells what the last one leads by.
template <kind KIND> static __device__ __forceinline__ routed choose_experts(const wt_llm_stream_args &a)
{
    const bool tells = KIND == GATES && threadIdx.x < 32 && !blockIdx.x;
    const routed own = choose<WT_LLM_ROUTED / 32>(a.choose, a.choose.routes, NULL, NULL, tells);
    wt_llm_token *token = a.choose.tokens;
    if (tells && !threadIdx.x) token->lead = fminf(token->lead, own.lead);
    return own;
}

// Where a warp's copies are: its team's of a turn's tiles begin .. end - 1 pass by pass, then the next turn's.
struct cursor {
    const unsigned char *from;                // of the lane: its row of the tile's first two
    int begin, end, tile, pass, column, left; // left: rows of the tile from that one on
    share own;
    int expert; // of the choice
};

template <kind KIND> static __device__ __forceinline__ void aim(const wt_llm_stream_args &a, cursor &c)
{
    const tile_place p = place_tile<KIND>(a, c.tile);
    const int lane = threadIdx.x % 32, row = p.row + lane / 16;
    const wt_llm_part &part = part_at(a.m, p.part);
    c.left = part.rows - row;
    c.from = (const unsigned char *)part.weight + 2 * ((long long)row * a.m.columns + c.own.first) + lane % 16 * 16;
    if (KIND >= GATES) c.from += __shfl_sync(ALL, c.expert, KIND == GATES ? p.slot : c.own.slot) * a.next[p.part];
}

template <int TEAM, kind KIND>
static __device__ __forceinline__ void move_on(const wt_llm_stream_args &a, int n_tiles, cursor &c)
{
    c.column = 0;
    c.tile += WARPS / TEAM;
    if (c.tile >= c.end) {
        do {
            if (++c.pass == a.n_passes) {
                c.pass = 0;
                c.begin += AT_ONCE;
                c.end = min(c.begin + AT_ONCE, n_tiles);
            }
            c.own = share_of<TEAM, KIND>(a, c.pass);
        } while (!c.own.n && c.begin < n_tiles);
        c.tile = c.begin + (int)threadIdx.x / 32 / TEAM;
    }
    if (c.tile < n_tiles) aim<KIND>(a, c);
}

// The next stage: two rows at a time.
template <int TEAM, kind KIND>
static __device__ __forceinline__ void fetch(const wt_llm_stream_args &a, int n_tiles, cursor &c, uint4 *to)
{
    const int lane = threadIdx.x % 32, two_rows = 4 * a.m.columns;
    if (c.tile < n_tiles && c.own.n) {
        const bool is_there = c.column + lane % 16 * 8 < c.own.n;
#pragma unroll
        for (int i = 0; i < TILE / 2; i++) {
            const bool valid = is_there && 2 * i < c.left;
            copy_async_16(to + i * 32 + lane,
                          valid ? c.from + i * two_rows : (const unsigned char *)a.m.parts[0].weight, valid);
        }
        c.from += 256;
        c.column += COLUMNS;
        if (c.column >= c.own.n) move_on<TEAM, KIND>(a, n_tiles, c);
    }
    copy_async_commit();
}

// ---- finished rows

struct ending {
    float *out; // NULL = none
    float bias, gate_bias, before;
};

// The row that this thread finishes of the tiles from `tile` on.
template <kind KIND> static __device__ __forceinline__ ending ending_of(const wt_llm_stream_args &a, int tile)
{
    const int in_group = threadIdx.x / TILE, slot = threadIdx.x % TILE;
    const bool gated = a.m.gated;
    if (in_group >= (gated ? AT_ONCE / 2 : AT_ONCE)) return {NULL};
    const tile_place p = place_tile<KIND>(a, tile + (gated ? 2 : 1) * in_group);
    const wt_llm_part &part = part_at(a.m, p.part), &gate = a.m.parts[1];
    const int row = p.row + slot;
    if (p.row < 0 || row >= part.rows) return {NULL};
    return {part.out + p.slot * part.rows + row, part.bias ? part.bias[row] : 0,
            gated && gate.bias ? gate.bias[row] : 0, a.m.add ? part.out[row] : 0};
}

template <int N> static __device__ __forceinline__ float sum_of(const float *sums)
{
    float sum = 0;
    for (int k = 0; k < N; k++) sum += sums[k];
    return sum;
}

template <int TEAM>
static __device__ __forceinline__ void finish(const wt_llm_matvec_args &a, const ending &e, const float (*sums)[WARPS],
                                              const float *squares)
{
    const int in_group = threadIdx.x / TILE, slot = threadIdx.x % TILE;
    if (!e.out) return;
    const float scale = a.norm_weight ? 1 / sqrtf(sum_of<TEAM>(squares) / (float)a.columns + a.eps) : 1;
    float y = sum_of<TEAM>(sums[(a.gated ? 2 : 1) * in_group * TILE + slot]) * scale + e.bias;
    if (a.gated)
        y *= activate(a.activation, sum_of<TEAM>(sums[(2 * in_group + 1) * TILE + slot]) * scale + e.gate_bias);
    else
        y = activate(a.activation, y);
    *e.out = e.before + y;
}

// ---- all of it

// The warp's first n columns of a vector, which are there from `from` on; none where there is no vector.
static __device__ __forceinline__ void load_first(const float *from, int n, eight *to)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < KEPT; k++) to[k] = load_eight(from + k * 256 + lane * 8, k * 256 + lane * 8 < n);
}

static __device__ __forceinline__ void load_held(const wt_llm_matvec_args &a, const share &own, eight *to)
{
    load_first(vector_at(a, own), own.n, to);
}

static __device__ __forceinline__ void load_norm(const wt_llm_matvec_args &a, const share &own, eight *to)
{
    load_first(a.norm_weight + own.first, a.norm_weight ? own.n : 0, to);
}

// Times the norm's weights, if there are.
static __device__ __forceinline__ eight weigh(eight x, const eight &w, bool is_normed, float *squares)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        *squares += x.at[i] * x.at[i];
        if (is_normed) x.at[i] *= w.at[i];
    }
    return x;
}

// 256 columns of the warp's part of the vector from `from` on, times the norm's weights. `kept`: the weights or, if
// HELD, the columns themselves.
template <bool HELD>
static __device__ __forceinline__ eight load_vector(const wt_llm_matvec_args &a, const share &own, int from,
                                                    const eight *kept, float *squares)
{
    const int column = from + threadIdx.x % 32 * 8;
    if (HELD) return *kept;
    eight x = load_eight(vector_at(a, own) + column, column < own.n), w;
    if (a.norm_weight) w = kept ? *kept : load_eight(a.norm_weight + own.first + column, column < own.n);
    return weigh(x, w, a.norm_weight, squares);
}

// A power of two by which the largest of the warp's elements becomes 0.5 and more; not a number where one is none.
template <bool HELD>
static __device__ __forceinline__ float power_for(const wt_llm_matvec_args &a, const share &own, const eight *kept)
{
    unsigned most = 0;
    float squares = 0;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        if (k * 256 >= own.n) continue;
        const eight x = load_vector<HELD>(a, own, k * 256, HELD ? kept + k : NULL, &squares);
#pragma unroll
        for (int i = 0; i < 8; i++) most = max(most, __float_as_uint(x.at[i]) & 0x7fffffffu);
    }
    most = __reduce_max_sync(ALL, most);
    return __uint_as_float(most >= 0x7f800000u ? 0x7fffffffu
                                               : (unsigned)min(max(253 - (int)(most >> 23), 1), 254) << 23);
}

// Where a warp's part of the vector lies.
struct vector {
    unsigned char *parts; // `pitch` bytes apart
    float power, squares; // by which it is multiplied; the lane's sum
    int pitch;
};

// 256 columns of it.
template <class T, bool HELD>
static __device__ __forceinline__ void take_some(const wt_llm_matvec_args &a, const share &own, int from,
                                                 const eight *kept, vector &v)
{
    const int column = from + threadIdx.x % 32 * 8;
    eight x = load_vector<HELD>(a, own, from, kept, &v.squares);
    if (is_f16(T{}))
#pragma unroll
        for (int i = 0; i < 8; i++) x.at[i] *= v.power;
    if (column < (own.n + COLUMNS - 1) / COLUMNS * COLUMNS) store_parts<T>(x, v.parts + 2 * column, v.pitch);
}

// ARE_KEPT: `kept` are there, of the first columns, which are all if HELD.
template <class T, bool ARE_KEPT, bool HELD>
static __device__ __forceinline__ void take_vector(const wt_llm_matvec_args &a, const share &own, const eight *kept,
                                                   vector &v)
{
    v.power = is_f16(T{}) ? power_for<HELD>(a, own, kept) : 1;
    __syncwarp(); // what was there is used
    if (ARE_KEPT)
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            if (k * 256 < own.n) take_some<T, HELD>(a, own, k * 256, kept + k, v);
    if (!HELD)
        for (int from = ARE_KEPT ? KEPT * 256 : 0; from < own.n; from += 256)
            take_some<T, HELD>(a, own, from, NULL, v);
    __syncwarp();
}

// The warp's columns of an awaited vector as soon as they are there; that which comes last, `ahead` columns further on,
// is asked for alone.
static __device__ __forceinline__ void await(const wt_llm_stream_args &a, const share &own, int ahead, eight *kept)
{
    const int lane = threadIdx.x % 32;
    const float *last = a.m.x + min(own.first + own.n + ahead, a.m.columns) - 1;
    for (unsigned word = WT_LLM_NOT_THERE; own.n && word == WT_LLM_NOT_THERE;) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(last) : "memory");
        if (word == WT_LLM_NOT_THERE) __nanosleep(ahead ? 500 : 50);
    }
    bool all;
    do {
        all = true;
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            kept[k] = look_eight(a.m.x + own.first + k * 256 + lane * 8, k * 256 + lane * 8 < own.n);
#pragma unroll
        for (int k = 0; k < KEPT; k++) all = all && are_there(kept[k]);
    } while (!__all_sync(ALL, all));
}

static __device__ __forceinline__ void mma(float *d, const unsigned *a, unsigned b0, unsigned b1, bf16)
{
    mma_bf16(d, a, b0, b1);
}
static __device__ __forceinline__ void mma(float *d, const unsigned *a, unsigned b0, unsigned b1, f16)
{
    mma_f16(d, a, b0, b1);
}

// 64 columns of a tile: sums += W x.
template <class T>
static __device__ __forceinline__ void multiply(const uint4 *rows, const unsigned char *x, bool is_part,
                                                float (*sums)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint4 v = rows[g * 16 + g % 2 * 4 + t], w = rows[g * 16 + (1 - g % 2) * 4 + t];
    const unsigned first[4] = {v.x, w.x, v.y, w.y}, second[4] = {v.z, w.z, v.w, w.w};
    unsigned b[4] = {0, 0, 0, 0};
    load_shared_16(b, x, is_part);
    mma(sums[0], first, b[0], b[1], T{});
    mma(sums[1], second, b[2], b[3], T{});
}

// Row g's sum, for all its lanes: what belongs together of the products.
static __device__ __forceinline__ float total_of(const float (*sums)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float c[4];
#pragma unroll
    for (int k = 0; k < 4; k++) c[k] = sums[0][k] + sums[1][k];
    // columns 2 t and 2 t + 1 of the first half's rows, and of the second's
    const float first = g % 2 ? c[2] : c[0], second = g % 2 ? c[3] : c[1];
    const float third = g % 2 ? c[0] : c[2], fourth = g % 2 ? c[1] : c[3];
    float sum = t == 0 ? first + second : t == 1 ? first + fourth : t == 2 ? third + fourth : 0;
    sum += __shfl_xor_sync(ALL, sum, 1);
    return sum + __shfl_xor_sync(ALL, sum, 2);
}

// A row shared by TEAM warps.
template <class T, int TEAM, kind KIND> static __device__ __forceinline__ void stream(const wt_llm_stream_args &a)
{
    extern __shared__ uint4 shared[];
    __shared__ float sums_of[2][AT_ONCE * TILE][WARPS], squares[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, n_tiles = count_tiles<KIND>(a);
    const int n_stages = a.n_stages;
    uint4 *stages = shared + warp * (n_stages * STAGE);
    vector v;
    v.pitch = WT_LLM_STREAM_PITCH(a.each);
    v.parts = (unsigned char *)(shared + WARPS * (n_stages * STAGE)) + 2 * warp * a.each;
    v.squares = 0;
    if (!a.is_awaited) let_next_begin();
    ask_ahead(a.m);
    const int member = warp % TEAM, team = warp / TEAM;
    eight kept[KEPT], held[KEPT];
    if (KIND == GATES) {
        load_norm(a.m, share_of<TEAM, KIND>(a, 0), kept);
        wait_for_earlier();
    }
    if (KIND == GATES) load_held(a.m, share_of<TEAM, KIND>(a, 0), held);
    routed chosen = {};
    if (KIND >= GATES) chosen = choose_experts<KIND>(a);
    cursor c = {NULL, 0, min(AT_ONCE, n_tiles), team, 0, 0, 0, share_of<TEAM, KIND>(a, 0), chosen.expert};
    if (team < n_tiles) aim<KIND>(a, c);
#pragma unroll 1 // this once: less code for the caches to hold
    for (int s = 0; s < n_stages - 1; s++) fetch<TEAM, KIND>(a, n_tiles, c, stages + s * STAGE);
    if (KIND == PLAIN || KIND == DOWNS) {
        load_norm(a.m, share_of<TEAM, KIND>(a, 0), kept);
        wait_for_earlier();
    }
    if (KIND == AWAITED) // a pass ahead: who begins earlier takes from those that it waits for
        await(a, share_of<TEAM, KIND>(a, 0), WT_LLM_STREAM_PASS, kept);
    if (a.is_awaited) let_next_begin();

    if (KIND == GATES)
#pragma unroll
        for (int k = 0; k < KEPT; k++) kept[k] = weigh(held[k], kept[k], a.m.norm_weight, &v.squares);
    take_vector<T, true, KIND == AWAITED || KIND == GATES>(a.m, share_of<TEAM, KIND>(a, 0), kept, v);
    for (int k = (int)(blockIdx.x * blockDim.x + threadIdx.x); k < a.n_cleared; k += (int)(gridDim.x * blockDim.x))
        a.cleared[k] = WT_LLM_NOT_THERE;
    const unsigned char *x =
        v.parts + g % 3 * v.pitch + (g / 3 * 4 + lane % 4) * 16; // the lane's of a stage's first half
    int slot = 0, next = n_stages - 1;
    for (int begin = 0; begin < n_tiles; begin += AT_ONCE) {
        float(*all_sums)[WARPS] = sums_of[begin / AT_ONCE % 2];
        const ending e = ending_of<KIND>(a, begin);
        for (int pass = 0; pass < a.n_passes; pass++) {
            const share own = share_of<TEAM, KIND>(a, pass);
            if (begin + pass && a.n_passes > 1) {
                if (KIND == AWAITED) await(a, own, 0, kept);
                take_vector<T, KIND == AWAITED || KIND == DOWNS, KIND == AWAITED || KIND == DOWNS>(
                    a.m, own, KIND == DOWNS ? held : kept, v);
            }
            if (KIND == DOWNS && a.n_passes > 1)
                load_held(a.m, share_of<TEAM, KIND>(a, pass + 1 < a.n_passes ? pass + 1 : 0), held);
            const float factor = KIND == DOWNS ? __shfl_sync(ALL, chosen.share, own.slot) : 1;
            for (int tile = begin + team; tile < min(begin + AT_ONCE, n_tiles); tile += WARPS / TEAM) {
                float sums[2][4] = {};
                for (int column = 0; column < own.n; column += COLUMNS) {
                    if (n_stages == WT_LLM_STREAM_DEEP)
                        copy_async_wait<WT_LLM_STREAM_DEEP - 2>();
                    else
                        copy_async_wait<WT_LLM_STREAM_STAGES - 2>();
                    __syncwarp();
                    fetch<TEAM, KIND>(a, n_tiles, c, stages + next * STAGE);
                    multiply<T>(stages + slot * STAGE, x + 2 * column, g < 6, sums);
                    multiply<T>(stages + slot * STAGE + 8, x + 2 * column + 128, g < 6, sums);
                    slot = slot + 1 == n_stages ? 0 : slot + 1;
                    next = next + 1 == n_stages ? 0 : next + 1;
                }
                const float sum = total_of(sums) / v.power * factor;
                float *to = &all_sums[tile % AT_ONCE * TILE + g][member];
                if (lane % 4 == 0) *to = pass ? *to + sum : sum;
            }
        }
        if (a.m.norm_weight && !begin) {
            v.squares = warp_sum(v.squares);
            if (!lane && !team) squares[member] = v.squares;
        }
        if (KIND == AWAITED) wait_for_earlier();
        __syncthreads(); // those of the turn before the last are used
        finish<TEAM>(a.m, e, all_sums, squares);
    }
    if (KIND == AWAITED) wait_for_earlier(); // without a tile too
}

#define KERNEL(name, type, team, kind)                                                                                 \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 2) name(const __grid_constant__ wt_llm_stream_args a)     \
    {                                                                                                                  \
        stream<type, team, kind>(a);                                                                                   \
    }
