// Drawing the next token on the device, by the arithmetic of sample_kernel.h, so the CPU's sampler draws the same one.
//
//   llm_draw_1, _2, _4, _8   a cluster of so many blocks of 1024 threads a row of logits (grid: blocks, rows), each
//                            with its share of the vocabulary
//
// A row's largest logit, then each token's depth below it. A filter leaves the first tokens in order of their keys, and
// the drawn one is the last of those with too little mass before them: each is a question where in the order a count or
// a mass is reached. It is answered by bins, whose sums say into which one it falls, by finer bins while that one holds
// too many tokens, and then by the few that are left, put in order. A block counts its own tokens; the blocks of a
// cluster add up a part of the bins each; then all of them go through all bins and so find the same. All sums are of
// integers, so neither the order in which they are added nor the number of blocks shows.
// Judge: models/llm/sampler.c, equal tokens.
#include "llm_choice.cuh"

#include "cluster.cuh"
#include "overlap.cuh"

#define ALL     0xffffffffu
#define BINS    1024 // and threads
#define WARPS   32
#define LIST    128       // tokens that are put in order
#define MOST    8         // blocks of a cluster
#define PART    14        // bits of a mass that are added in one word
#define AT_ONCE (1 << 18) // tokens whose parts have room there
#define NOBODY  (~0ull)

// ---- what blocks find

struct alignas(16) sums {
    unsigned long long n, mass;
};

static __device__ __forceinline__ sums operator+(sums a, sums b) { return {a.n + b.n, a.mass + b.mass}; }
static __device__ __forceinline__ sums operator-(sums a, sums b) { return {a.n - b.n, a.mass - b.mass}; }

static __device__ __forceinline__ sums of_lane(sums s, int lane)
{
    return {__shfl_sync(ALL, s.n, lane), __shfl_sync(ALL, s.mass, lane)};
}

// A logit as a number that rises with it; not a number is above all.
static __device__ __forceinline__ unsigned rank_of(float x)
{
    const unsigned bits = __float_as_uint(x + 0.0f); // -0 is 0
    return x != x ? ALL : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float logit_of(unsigned rank)
{
    return __uint_as_float(rank & 0x80000000u ? rank & 0x7fffffffu : ~rank);
}

// The largest logit, the first of equals.
struct alignas(16) largest {
    unsigned rank;
    int id, unused[2];
};

struct alignas(16) token {
    unsigned long long key, weight;
};

enum order_kind { BY_LOGIT = 1, BY_DEPTH, BY_DISTANCE };

// A row's tokens by their logits as they are, by their depths, or those before `end` in this by their distances from a
// mean.
struct order {
    unsigned *values; // of the block's tokens, the first of which is `begin`: logits or depths
    int begin, n, kind;
    bool has_mass; // masses are asked for
    unsigned mean;
    unsigned long long end;
};

// What other blocks read has 16 bytes an element.
struct memory {
    union {
        unsigned words[4][BINS]; // tokens, and their mass in three parts
        sums own[BINS];
    };
    sums shares[BINS]; // of the cluster's bins this block's part
    sums parts[2];     // the mass of the logits as they are, the moment
    largest row[2];
    token found[2][LIST]; // this block's of the list, in turns
    sums n_found[2];
    sums warps[WARPS];
    largest rows[WARPS];
    token unsorted[LIST];
    unsigned long long keys[LIST]; // the tokens with keys from first to last
    unsigned long long weights[LIST];
    sums before[LIST + 1];
    unsigned long long first, last;
    int kind, n_list, turn; // of the list: whose order, how many, and which of `found` is next
    sums in_bin, before_bin, before_list;
    order o;
};

static __device__ __forceinline__ sums sums_at(const void *address, int rank)
{
    const float4 x = load_from((const float *)address, rank);
    return {(unsigned long long)__float_as_uint(x.y) << 32 | __float_as_uint(x.x),
            (unsigned long long)__float_as_uint(x.w) << 32 | __float_as_uint(x.z)};
}

// The sum over the cluster, for all threads. A `part` is used once.
static __device__ __noinline__ sums over_all(sums s, sums *part, memory *m)
{
    const int lane = threadIdx.x % 32, n = gridDim.x;
    for (int step = 16; step; step /= 2) s = s + of_lane(s, lane ^ step);
    __syncthreads();
    if (!lane) m->warps[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        s = m->warps[lane];
        for (int step = 16; step; step /= 2) s = s + of_lane(s, lane ^ step);
        if (!lane) *part = s;
    }
    cluster_meet();
    s = sums_at(part, lane % n);
#pragma unroll 1
    for (int step = n / 2; step; step /= 2) s = s + of_lane(s, lane ^ step);
    return s;
}

static __device__ __forceinline__ largest of_warp(largest e)
{
    const unsigned rank = __reduce_max_sync(ALL, e.rank);
    return {rank, __reduce_min_sync(ALL, e.rank == rank ? e.id : 0x7fffffff)};
}

static __device__ __noinline__ largest over_all(largest e, largest *part, memory *m)
{
    const int lane = threadIdx.x % 32;
    e = of_warp(e);
    if (!lane) m->rows[threadIdx.x / 32] = e;
    __syncthreads();
    if (threadIdx.x < 32) {
        e = of_warp(m->rows[lane]);
        if (!lane) *part = e;
    }
    cluster_meet();
    const sums there = sums_at(part, lane % gridDim.x);
    return of_warp({(unsigned)there.n, (int)(there.n >> 32)});
}

// What lies in the bins before the thread's own.
static __device__ __noinline__ sums sums_before(sums own, memory *m)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    sums s = own;
    for (int step = 1; step < 32; step *= 2) {
        const sums other = of_lane(s, lane - step & 31);
        if (lane >= step) s = s + other;
    }
    __syncthreads();
    if (lane == 31) m->warps[warp] = s;
    __syncthreads();
    if (!warp) {
        const sums whole = m->warps[lane];
        sums upto = whole;
        for (int step = 1; step < 32; step *= 2) {
            const sums other = of_lane(upto, lane - step & 31);
            if (lane >= step) upto = upto + other;
        }
        m->warps[lane] = upto - whole;
    }
    __syncthreads();
    return m->warps[warp] + s - own;
}

// ---- the block's tokens, those of a thread BINS apart

// The depth of a key, or what stands there in other orders.
static __device__ __forceinline__ unsigned high_of(const order &o, int id, unsigned value)
{
    if (o.kind == BY_LOGIT) return ~rank_of(__uint_as_float(value));
    if (o.kind == BY_DEPTH || value == WT_SAMPLE_OUT) return value;
    return wt_sample_key(value, id) < o.end ? wt_sample_distance(value, o.mean) : WT_SAMPLE_OUT;
}

static __device__ __forceinline__ unsigned long long key_of(const order &o, int id, unsigned value)
{
    const unsigned high = high_of(o, id, value);
    return high == WT_SAMPLE_OUT && o.kind != BY_LOGIT ? NOBODY : wt_sample_key(high, id);
}

// Of the block's tokens those in thread t's bin, the keys from first + (t << shift) on; of wide bins the ids do not
// tell.
static __device__ __forceinline__ sums count(const order o, unsigned long long first, int shift, memory *m)
{
    const int t = threadIdx.x;
    sums own = {0, 0};
    for (int at = 0; at < o.n; at += AT_ONCE) {
        const int stop = min(o.n, at + AT_ONCE);
        for (int j = 0; j < 4; j++) m->words[j][t] = 0;
        __syncthreads();
#pragma unroll 1
        for (int k = at + t; k < stop; k += BINS) {
            const unsigned value = o.values[k];
            unsigned bin;
            if (shift >= 32)
                bin = (high_of(o, o.begin + k, value) - (unsigned)(first >> 32)) >> (shift - 32);
            else
                bin = (unsigned)min((key_of(o, o.begin + k, value) - first) >> shift, (unsigned long long)BINS);
            if (bin >= BINS) continue;
            atomicAdd(&m->words[0][bin], 1u);
            if (!o.has_mass) continue;
            const unsigned long long weight = wt_sample_weight(value);
            atomicAdd(&m->words[1][bin], (unsigned)weight & ((1u << PART) - 1));
            atomicAdd(&m->words[2][bin], (unsigned)(weight >> PART) & ((1u << PART) - 1));
            const unsigned highest = (unsigned)(weight >> 2 * PART);
            if (highest) atomicAdd(&m->words[3][bin], highest);
        }
        __syncthreads();
        own.n += m->words[0][t];
        for (int j = 0; j < 3; j++) own.mass += (unsigned long long)m->words[1 + j][t] << PART * j;
        __syncthreads();
    }
    return own;
}

// Of all blocks.
static __device__ __noinline__ sums count_all(unsigned long long first, int shift, memory *m)
{
    const int t = threadIdx.x, n = gridDim.x, of_block = BINS / n;
    m->own[t] = count(m->o, first, shift, m);
    cluster_meet();
    sums s = sums_at(&m->own[blockIdx.x * of_block + t / n], t % n);
#pragma unroll 1
    for (int step = n / 2; step; step /= 2) s = s + of_lane(s, t % 32 ^ step);
    if (t % n == 0) m->shares[t / n] = s;
    cluster_meet();
    return sums_at(&m->shares[t % of_block], t / of_block);
}

// ---- the list

// What the blocks have found, in m->unsorted; how many.
static __device__ int gather(const token *found, const sums *n_found, memory *m)
{
    const int lane = threadIdx.x % 32, rank = threadIdx.x / LIST, slot = threadIdx.x % LIST, n = gridDim.x;
    const int own = lane < n ? (int)sums_at(n_found, lane).n : 0;
    int upto = own;
    for (int step = 1; step < MOST; step *= 2) {
        const int other = __shfl_up_sync(ALL, upto, step);
        if (lane >= step) upto += other;
    }
    const int end = __shfl_sync(ALL, upto, rank), at = end - __shfl_sync(ALL, own, rank) + slot;
    if (at < end) {
        const sums both = sums_at(found + slot, rank);
        m->unsorted[at] = {both.n, both.mass};
    }
    return __shfl_sync(ALL, upto, MOST - 1);
}

// Eight threads tell a token's place.
static __device__ void sort(int n, memory *m)
{
    const int at = threadIdx.x / 8;
    const token own = at < n ? m->unsorted[at] : token{NOBODY, 0};
    int place = 0;
#pragma unroll 2
    for (int k = threadIdx.x % 8; k < n; k += 8) place += m->unsorted[k].key < own.key;
    for (int step = 4; step; step /= 2) place += __shfl_xor_sync(ALL, place, step);
    if (at >= n || threadIdx.x % 8) return;
    m->keys[place] = own.key;
    m->weights[place] = own.weight;
}

// By one warp.
static __device__ void sum_up(int n, memory *m)
{
    const int lane = threadIdx.x, each = LIST / 32;
    sums own = {0, 0};
#pragma unroll 1
    for (int k = each * lane; k < min(n, each * lane + each); k++) own = own + sums{1, m->weights[k]};
    sums s = own;
    for (int step = 1; step < 32; step *= 2) {
        const sums other = of_lane(s, lane - step & 31);
        if (lane >= step) s = s + other;
    }
    s = m->before_list + s - own;
#pragma unroll 1
    for (int k = each * lane; k < min(n, each * lane + each); k++) {
        m->before[k] = s;
        s = s + sums{1, m->weights[k]};
    }
    if (lane == 31) m->before[n] = s;
}

// The tokens with keys from `first` to `last`, at most LIST, m->before_list before them.
static __device__ __forceinline__ void fill_list(unsigned long long first, unsigned long long last, memory *m)
{
    const int turn = m->turn;
    const order o = m->o;
    token *found = m->found[turn];
    sums *n_found = m->n_found + turn;
    if (!threadIdx.x) *n_found = {0, 0};
    __syncthreads();
#pragma unroll 1
    for (int k = threadIdx.x; k < o.n; k += BINS) {
        const unsigned long long key = key_of(o, o.begin + k, o.values[k]);
        if (key - first > last - first) continue;
        found[atomicAdd((unsigned *)&n_found->n, 1u)] = {key, o.kind == BY_LOGIT ? 0 : wt_sample_weight(o.values[k])};
    }
    cluster_meet();
    const int n = gather(found, n_found, m);
    __syncthreads();
    sort(n, m);
    __syncthreads();
    if (threadIdx.x < 32) sum_up(n, m);
    if (!threadIdx.x) {
        m->first = first;
        m->last = last;
        m->kind = o.kind;
        m->n_list = n;
        m->turn = 1 - turn;
    }
    __syncthreads();
}

// ---- where in the order

// Tokens are taken while fewer than n were, with less than that mass, and are no deeper.
struct goal {
    unsigned long long n, mass;
    unsigned deepest;
};

// Those that were taken; `end` is above the last one's key and not above the next one's.
struct taken {
    sums all;
    unsigned long long end;
};

static __device__ __forceinline__ bool is_before(sums before, unsigned long long key, goal g)
{
    return before.n < g.n && before.mass < g.mass && (unsigned)(key >> 32) <= g.deepest;
}

static __device__ __forceinline__ int taken_of_list(goal g, const memory *m)
{
    const int t = threadIdx.x;
    return __syncthreads_count(t < m->n_list && is_before(m->before[t], m->keys[t], g));
}

static __device__ __forceinline__ taken reached(int n, const memory *m)
{
    return {m->before[n], n ? m->keys[n - 1] + 1 : m->first};
}

// How far the goal reaches, for all threads; `bins` are the order's widest.
static __device__ __noinline__ taken reach(goal g, sums bins, memory *m)
{
    const int t = threadIdx.x, kind = m->o.kind;
    int shift = kind == BY_LOGIT ? 54 : 53, bin, n = m->kind == kind ? taken_of_list(g, m) : 0; // uniform
    if (n && (n < m->n_list || m->before[n].n == g.n)) return reached(n, m);
    unsigned long long first = 0;
    sums before = {0, 0}, in_bin;
    for (;;) {
        before = before + sums_before(bins, m);
        bin = max(__syncthreads_count(is_before(before, first + ((unsigned long long)t << shift), g)) - 1, 0);
        if (t == bin) {
            m->in_bin = bins;
            m->before_bin = before;
        }
        __syncthreads();
        in_bin = m->in_bin;
        if (in_bin.n <= LIST / 2) break;
        before = m->before_bin;
        first += (unsigned long long)bin << shift;
        shift = max(shift - 10, 0);
        bins = count_all(first, shift, m);
    }
    const unsigned long long start = first + ((unsigned long long)bin << shift), upto = m->before_bin.n + in_bin.n;
    if (!in_bin.n && upto > LIST) return {m->before_bin, start};
    // with as many bins before it as have room, or all tokens before it
    const int lowest = __syncthreads_count(t <= bin && upto - before.n > LIST);
    if (t == lowest) m->before_list = upto <= LIST ? sums{0, 0} : before;
    fill_list(upto <= LIST ? 0 : first + ((unsigned long long)lowest << shift), start + ((1ull << shift) - 1), m);
    n = taken_of_list(g, m);
    return reached(n, m);
}

// The block's tokens are in another order from now on.
static __device__ __forceinline__ void put_in_order(int kind, bool has_mass, memory *m)
{
    __syncthreads();
    if (!threadIdx.x) {
        m->o.kind = kind;
        m->o.has_mass = has_mass;
    }
    __syncthreads();
}

// Of those before kept.end, the ones whose depths are nearest to the mean.
static __device__ void turn_to_distances(taken kept, memory *m)
{
    unsigned long long high = 0, low = 0;
    const order o = m->o;
#pragma unroll 1
    for (int k = threadIdx.x; k < o.n; k += BINS) {
        const unsigned depth = o.values[k];
        if (key_of(o, o.begin + k, depth) < kept.end)
            wt_sample_add_moment(wt_sample_weight(depth), depth, &high, &low);
    }
    const sums moment = over_all({high, low}, &m->parts[1], m);
    put_in_order(BY_DISTANCE, true, m);
    if (!threadIdx.x) {
        m->o.mean = wt_sample_mean(moment.n, moment.mass, kept.all.mass);
        m->o.end = kept.end;
    }
    __syncthreads();
}

// As draw() of sampler.c. The tokens of a small top_k are in the list, with their masses.
static __device__ int draw(const wt_llm_draw &d, memory *m)
{
    put_in_order(BY_DEPTH, d.top_k > LIST / 2 || d.typical_p < 1, m);
    sums bins = count_all(0, 53, m);
    taken kept;
    unsigned long long mass = 0;
#pragma unroll 1
    for (int filter = 0; filter < 4; filter++) {
        goal g = {(unsigned long long)d.top_k, WT_SAMPLE_ALL, WT_SAMPLE_OUT};
        if (filter) g = {kept.all.n, WT_SAMPLE_ALL, WT_SAMPLE_OUT};
        if (filter == 1) {
            if (!(d.top_p < 1 || d.deepest < WT_SAMPLE_DEEPEST)) continue;
            g.mass = wt_sample_share(d.top_p, mass);
            g.deepest = d.deepest;
        } else if (filter == 2) {
            if (!(d.typical_p < 1)) continue;
            turn_to_distances(kept, m);
            bins = count_all(0, 53, m);
            g.mass = wt_sample_share(d.typical_p, mass);
        } else if (filter == 3)
            g.mass = wt_sample_target(&d, mass) + 1;
        kept = reach(g, bins, m);
        mass = kept.all.mass;
    }
    return (int)(unsigned)(kept.end - 1);
}

// ---- a row

static __device__ __forceinline__ largest larger(largest e, float x, int id)
{
    const unsigned rank = rank_of(x);
    return rank > e.rank ? largest{rank, id} : e;
}

static __device__ __forceinline__ bool is_finite(largest e) { return fabsf(logit_of(e.rank)) <= 3.402823466e38f; }

// The block's logits, and the largest of them.
static __device__ __forceinline__ largest load_logits(const float *logits, const order &o)
{
    largest e = {0, 0x7fffffff};
#pragma unroll 8
    for (int k = threadIdx.x; k < o.n; k += BINS) {
        const float x = logits[k];
        o.values[k] = __float_as_uint(x);
        e = larger(e, x, o.begin + k);
    }
    return e;
}

// Penalties and bias. Tokens that were chosen since the tallies were made are counted as well.
static __device__ __noinline__ largest penalise(const wt_llm_sample_args &a, const wt_llm_draw &d, memory *m)
{
    const order o = m->o;
    const wt_llm_tally *tallies = a.tallies + (long long)d.tally * a.vocab_size + o.begin;
    const int late = (int)threadIdx.x < d.n_chosen ? a.chosen[threadIdx.x] - o.begin : -1;
    float chosen = 0;
    if (late >= 0 && late < o.n) {
        wt_llm_tally tally = tallies[late];
#pragma unroll 1
        for (int k = 0; k < d.n_chosen; k++) tally.count += a.chosen[k] == late + o.begin;
        tally.count |= WT_LLM_SEEN;
        chosen = wt_sample_penalised(&d, tally, __uint_as_float(o.values[late]));
    }
    __syncthreads();
#pragma unroll 1
    for (int first = threadIdx.x; first < o.n; first += 8 * BINS) {
        unsigned any = 0; // few have a tally
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int k = first + j * BINS;
            const wt_llm_tally t = k < o.n ? tallies[k] : wt_llm_tally{0, 0};
            any |= (unsigned)(t.count || t.bias != 0) << j;
        }
#pragma unroll 1
        for (; any; any &= any - 1) {
            const int k = first + (__ffs(any) - 1) * BINS;
            o.values[k] = __float_as_uint(wt_sample_penalised(&d, tallies[k], __uint_as_float(o.values[k])));
        }
    }
    __syncthreads();
    if (late >= 0 && late < o.n) o.values[late] = __float_as_uint(chosen);
    __syncthreads();
    largest e = {0, 0x7fffffff};
#pragma unroll 1
    for (int k = threadIdx.x; k < o.n; k += BINS) e = larger(e, __uint_as_float(o.values[k]), o.begin + k);
    return over_all(e, &m->row[1], m);
}

static __device__ __forceinline__ void find_depths(const wt_llm_draw &d, float most, memory *m)
{
    const order o = m->o;
#pragma unroll 2
    for (int k = threadIdx.x; k < o.n; k += BINS)
        o.values[k] = wt_sample_depth(__uint_as_float(o.values[k]), most, d.depth_scale);
}

// The logarithm of the mass of the logits as they are.
static __device__ __noinline__ float log_total(float most, memory *m)
{
    const order o = m->o;
    sums s = {0, 0};
#pragma unroll 1
    for (int k = threadIdx.x; k < o.n; k += BINS)
        s.mass += wt_sample_weight(wt_sample_depth(__uint_as_float(o.values[k]), most, 1u << WT_SAMPLE_DEPTH_BITS));
    return logf((float)over_all(s, &m->parts[0], m).mass * 9.094947017729282e-13f); // 2^-40
}

static __device__ __noinline__ void tell_top(wt_llm_odds *odds, int n, float most, float total, memory *m)
{
    put_in_order(BY_LOGIT, false, m);
    reach({(unsigned long long)n, WT_SAMPLE_ALL, WT_SAMPLE_OUT}, count_all(0, 54, m), m);
    if (blockIdx.x || (int)threadIdx.x >= n) return;
    odds->top_ids[threadIdx.x] = (int)(unsigned)m->keys[threadIdx.x];
    odds->top_logprobs[threadIdx.x] = logit_of(~(unsigned)(m->keys[threadIdx.x] >> 32)) - most - total;
}

// Tokens that were chosen before this step count from the next one on.
static __device__ void settle_tallies(const wt_llm_sample_args &a, int n_rows)
{
    if (atomicAdd(a.arrived, 1) != n_rows - 1) return;
    *a.arrived = 0;
    const wt_llm_draw *d = a.draws;
    wt_llm_tally *tallies = a.tallies + (long long)d->tally * a.vocab_size;
#pragma unroll 1
    for (int k = 0; d->tally >= 0 && k < d->n_settled; k++)
        tallies[a.chosen[k]].count = (tallies[a.chosen[k]].count + 1) | WT_LLM_SEEN;
}

// What is said of a row; by one thread.
static __device__ void say(const wt_llm_sample_args &a, const wt_llm_draw &d, int id, float logprob)
{
    const int row = blockIdx.y;
    wt_llm_odds *odds = a.odds + row;
    odds->logprob = logprob;
    odds->n_top = id >= 0 ? d.n_top : 0;
    if (a.chosen)
        settle_tallies(a, gridDim.y);
    else {
        if (id >= 0 && d.depth_scale > 0) a.draws[row].number++;
        if (id >= 0 && d.tally >= 0) {
            wt_llm_tally *tally = a.tallies + (long long)d.tally * a.vocab_size + id;
            tally->count = (tally->count + 1) | WT_LLM_SEEN;
        }
    }
    if (a.ring_odds) {
        a.ring_odds[(*a.step + 1) % WT_LLM_RING] = *odds;
        __threadfence_system(); // the host reads them after the choice
    }
    say_next(a.tokens + row, id, a.step, a.ring);
}

static __device__ __forceinline__ void draw_row(const wt_llm_sample_args &a)
{
    extern __shared__ unsigned block_values[];
    __shared__ memory m;
    wait_for_earlier();
    const int row = blockIdx.y, share = wt_llm_draw_share(a.vocab_size, gridDim.x);
    const int begin = min(a.vocab_size, (int)blockIdx.x * share), n = min(share, a.vocab_size - begin);
    const float *logits = a.logits + (long long)row * a.vocab_size;
    const wt_llm_draw d = a.draws[row];
    unsigned *values = a.values ? a.values + (long long)row * a.vocab_size + begin : block_values;
    if (!threadIdx.x) {
        m.kind = m.turn = 0;
        m.o = {values, begin, n, 0, false, 0, 0};
    }
    __syncthreads();
    largest top = over_all(load_logits(logits + begin, m.o), &m.row[0], &m);
    const float plain = logit_of(top.rank);
    float total = 0;
    bool is_good = is_finite(top);
    if (is_good && d.logprobs) total = log_total(plain, &m);
    if (is_good && d.n_top) tell_top(a.odds + row, d.n_top, plain, total, &m);
    if (is_good && d.tally >= 0) {
        top = penalise(a, d, &m);
        is_good = is_finite(top);
    }
    int id = is_good ? top.id : -1;
    if (is_good && d.depth_scale > 0) {
        find_depths(d, logit_of(top.rank), &m);
        id = draw(d, &m);
    }
    cluster_meet(); // the others have read
    if (!blockIdx.x && !threadIdx.x) say(a, d, id, id >= 0 && d.logprobs ? logits[id] - plain - total : 0);
}

#define DRAW(n)                                                                                                        \
    extern "C" __global__ void CLUSTER_##n __launch_bounds__(BINS)                                                     \
        llm_draw_##n(const __grid_constant__ wt_llm_sample_args a)                                                     \
    {                                                                                                                  \
        draw_row(a);                                                                                                   \
    }

DRAW(1)
DRAW(2)
DRAW(4)
DRAW(8)
