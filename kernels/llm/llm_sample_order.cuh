// Where in an order of a row's tokens a count or a mass is reached: by bins, whose sums say into which one it falls, by
// finer bins while that one holds too many tokens, and then by the few that are left, put in order. A block counts its
// own tokens; the blocks of a cluster add up a part of the bins each; then all of them go through all bins and so find
// the same. All sums are of integers, so neither the order in which they are added nor the number of blocks shows.
#pragma once
#include "llm_sample_sums.cuh"

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
