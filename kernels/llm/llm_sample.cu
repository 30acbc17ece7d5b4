// Drawing the next token on the device, by the arithmetic of sample_kernel.h, so the CPU's sampler draws the same one.
//
//   llm_draw_1, _2, _4, _8   a cluster of so many blocks of 1024 threads a row of logits (grid: blocks, rows), each with
//                            its share of the vocabulary
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

static __device__ __forceinline__ float lowest() { return -__int_as_float(0x7f800000); }

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

struct alignas(16) extremes {
    choice most; // the largest logit after penalties; its id is -1 when a logit is not a number, or none is finite
    float plain; // the largest as it is
    int unused;
};

static __device__ __forceinline__ extremes better(extremes a, extremes b)
{
    return {better(a.most, b.most), fmaxf(a.plain, b.plain), 0};
}

static __device__ __forceinline__ extremes of_lane(extremes e, int lane)
{
    return {{__shfl_sync(ALL, e.most.logit, lane), __shfl_sync(ALL, e.most.id, lane)},
            __shfl_sync(ALL, e.plain, lane),
            0};
}

struct alignas(16) token {
    unsigned long long key, weight;
};

// What other blocks read has 16 bytes an element.
struct memory {
    union {
        unsigned words[4][BINS]; // tokens, and their mass in three parts
        sums own[BINS];
    };
    sums shares[BINS]; // of the cluster's bins this block's part
    sums parts[2];     // the mass of the logits as they are, the moment
    extremes row;
    token found[2][LIST]; // this block's of the list, in turns
    sums n_found[2];
    sums warps[WARPS];
    extremes rows[WARPS];
    token unsorted[LIST];
    unsigned long long keys[LIST]; // the tokens with keys from first to last
    unsigned long long weights[LIST];
    sums before[LIST + 1];
    unsigned long long first, last;
    int kind, n_list, turn; // of the list: whose order, how many, and which of `found` is next
    sums in_bin, before_bin, before_list;
};

static __device__ __forceinline__ sums sums_at(const void *address, int rank)
{
    const float4 x = load_from((const float *)address, rank);
    return {(unsigned long long)__float_as_uint(x.y) << 32 | __float_as_uint(x.x),
            (unsigned long long)__float_as_uint(x.w) << 32 | __float_as_uint(x.z)};
}

// The sum over the cluster, for all threads. A `part` is used once.
static __device__ sums over_all(sums s, sums *part, memory *m)
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
    for (int step = n / 2; step; step /= 2) s = s + of_lane(s, lane ^ step);
    return s;
}

static __device__ extremes over_all(extremes e, memory *m)
{
    const int lane = threadIdx.x % 32, n = gridDim.x;
    for (int step = 16; step; step /= 2) e = better(e, of_lane(e, lane ^ step));
    if (!lane) m->rows[threadIdx.x / 32] = e;
    __syncthreads();
    if (threadIdx.x < 32) {
        e = m->rows[lane];
        for (int step = 16; step; step /= 2) e = better(e, of_lane(e, lane ^ step));
        if (!lane) m->row = e;
    }
    cluster_meet();
    const float4 x = load_from((const float *)&m->row, lane % n);
    e = {{x.x, __float_as_int(x.y)}, x.z, 0};
    for (int step = n / 2; step; step /= 2) e = better(e, of_lane(e, lane ^ step));
    return e;
}

// What lies in the bins before the thread's own.
static __device__ sums sums_before(sums own, memory *m)
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

// ---- the block's tokens

enum order_kind { BY_LOGIT = 1, BY_DEPTH, BY_DISTANCE };

// A row's tokens by their logits as they are, by their depths, or those before `end` in this by their distances from a
// mean. The block's are from begin to stop - 1, those of a thread BINS apart.
struct order {
    const float *logits;
    unsigned *depths;
    int begin, stop, kind;
    unsigned mean;
    unsigned long long end;
};

// Larger logits and smaller ids first.
static __device__ __forceinline__ unsigned long long plain_key(float x, int id)
{
    const unsigned bits = __float_as_uint(x), rising = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (unsigned long long)~rising << 32 | (unsigned)id;
}

static __device__ __forceinline__ float plain_logit(unsigned long long key)
{
    const unsigned rising = ~(unsigned)(key >> 32);
    return __uint_as_float(rising & 0x80000000u ? rising & 0x7fffffffu : ~rising);
}

static __device__ __forceinline__ unsigned long long key_of(const order &o, int k, unsigned depth)
{
    const unsigned long long key = depth == WT_SAMPLE_OUT ? NOBODY : wt_sample_key(depth, k);
    if (o.kind == BY_DEPTH) return key;
    return key < o.end ? wt_sample_key(wt_sample_distance(depth, o.mean), k) : NOBODY;
}

// Calls visit(key, depth) for the block's keys from `first` to `last`.
template <class F>
static __device__ __forceinline__ void visit_keys(const order &o, unsigned long long first, unsigned long long last, F visit)
{
    const unsigned long long most = last - first;
    if (o.kind == BY_LOGIT)
#pragma unroll 4
        for (int k = o.begin + threadIdx.x; k < o.stop; k += BINS) {
            const unsigned long long key = plain_key(o.logits[k], k);
            if (key - first <= most) visit(key, WT_SAMPLE_OUT);
        }
    else
#pragma unroll 4
        for (int k = o.begin + threadIdx.x; k < o.stop; k += BINS) {
            const unsigned depth = o.depths[k];
            const unsigned long long key = key_of(o, k, depth);
            if (key - first <= most) visit(key, depth);
        }
}

// Of the block's tokens those in thread t's bin, the keys from first + (t << shift) on.
static __device__ sums count(order o, unsigned long long first, int shift, memory *m)
{
    const int t = threadIdx.x, stop = o.stop;
    sums own = {0, 0};
    for (; o.begin < stop; o.begin += AT_ONCE) {
        o.stop = min(stop, o.begin + AT_ONCE);
        for (int j = 0; j < 4; j++) m->words[j][t] = 0;
        __syncthreads();
        visit_keys(o, first, first + (((unsigned long long)BINS << shift) - 1), [&](unsigned long long key, unsigned depth) {
            const int bin = (int)((key - first) >> shift);
            const unsigned long long weight = wt_sample_weight(depth);
            atomicAdd(&m->words[0][bin], 1u);
            for (int j = 0; j < 3; j++) {
                const unsigned part = (unsigned)(weight >> PART * j) & ((1u << PART) - 1);
                if (part) atomicAdd(&m->words[1 + j][bin], part);
            }
        });
        __syncthreads();
        own.n += m->words[0][t];
        for (int j = 0; j < 3; j++) own.mass += (unsigned long long)m->words[1 + j][t] << PART * j;
        __syncthreads();
    }
    return own;
}

// Of all blocks.
static __device__ sums count_all(const order &o, unsigned long long first, int shift, memory *m)
{
    const int t = threadIdx.x, n = gridDim.x, of_block = BINS / n;
    m->own[t] = count(o, first, shift, m);
    cluster_meet();
    sums s = sums_at(&m->own[blockIdx.x * of_block + t / n], t % n);
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
    for (int k = each * lane; k < min(n, each * lane + each); k++) own = own + sums{1, m->weights[k]};
    sums s = own;
    for (int step = 1; step < 32; step *= 2) {
        const sums other = of_lane(s, lane - step & 31);
        if (lane >= step) s = s + other;
    }
    s = m->before_list + s - own;
    for (int k = each * lane; k < min(n, each * lane + each); k++) {
        m->before[k] = s;
        s = s + sums{1, m->weights[k]};
    }
    if (lane == 31) m->before[n] = s;
}

// The tokens with keys from `first` to `last`, at most LIST, m->before_list before them.
static __device__ void fill_list(const order &o, unsigned long long first, unsigned long long last, memory *m)
{
    const int turn = m->turn;
    token *found = m->found[turn];
    sums *n_found = m->n_found + turn;
    if (!threadIdx.x) *n_found = {0, 0};
    __syncthreads();
    visit_keys(o, first, last, [&](unsigned long long key, unsigned depth) {
        found[atomicAdd((unsigned *)&n_found->n, 1u)] = {key, wt_sample_weight(depth)};
    });
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

// How far the goal reaches, for all threads; `bins` are the order's widest.
static __device__ taken reach(const order &o, goal g, sums bins, memory *m)
{
    const int t = threadIdx.x;
    int shift = o.kind == BY_LOGIT ? 54 : 53, bin;
    unsigned long long first = 0;
    sums before = sums_before(bins, m), in_bin, before_bin;
    for (;;) {
        bin = max(__syncthreads_count(is_before(before, first + ((unsigned long long)t << shift), g)) - 1, 0);
        if (t == bin) {
            m->in_bin = bins;
            m->before_bin = before;
        }
        __syncthreads();
        in_bin = m->in_bin;
        before_bin = m->before_bin;
        if (in_bin.n <= LIST / 2) break;
        first += (unsigned long long)bin << shift;
        shift = max(shift - 10, 0);
        bins = count_all(o, first, shift, m);
        before = before_bin + sums_before(bins, m);
    }
    const unsigned long long start = first + ((unsigned long long)bin << shift), last = start + ((1ull << shift) - 1);
    if (!in_bin.n) return {before_bin, start};
    if (m->kind != o.kind || start < m->first || last > m->last) { // uniform
        // with as many bins before it as have room, or all tokens before it
        const unsigned long long upto = before_bin.n + in_bin.n;
        const int lowest = __syncthreads_count(t <= bin && upto - before.n > LIST);
        if (t == lowest) m->before_list = upto <= LIST ? sums{0, 0} : before;
        fill_list(o, upto <= LIST ? 0 : first + ((unsigned long long)lowest << shift), last, m);
    }
    const int n = __syncthreads_count(t < m->n_list && is_before(m->before[t], m->keys[t], g));
    return {m->before[n], n ? m->keys[n - 1] + 1 : m->first};
}

// Of those before kept.end, the ones whose depths are nearest to the mean.
static __device__ void turn_to_distances(order *o, taken kept, memory *m)
{
    unsigned long long high = 0, low = 0;
    visit_keys(*o, 0, kept.end - 1, [&](unsigned long long, unsigned depth) {
        wt_sample_add_moment(wt_sample_weight(depth), depth, &high, &low);
    });
    const sums moment = over_all({high, low}, &m->parts[1], m);
    o->mean = wt_sample_mean(moment.n, moment.mass, kept.all.mass);
    o->end = kept.end;
    o->kind = BY_DISTANCE;
}

// As draw() of sampler.c.
static __device__ int draw(const wt_llm_draw &d, order o, memory *m)
{
    sums bins = count_all(o, 0, 53, m);
    taken kept = reach(o, {(unsigned long long)d.top_k, WT_SAMPLE_ALL, WT_SAMPLE_OUT}, bins, m);
    if (d.top_p < 1 || d.deepest < WT_SAMPLE_DEEPEST)
        kept = reach(o, {kept.all.n, wt_sample_share(d.top_p, kept.all.mass), d.deepest}, bins, m);
    if (d.typical_p < 1) {
        turn_to_distances(&o, kept, m);
        bins = count_all(o, 0, 53, m);
        kept = reach(o, {kept.all.n, wt_sample_share(d.typical_p, kept.all.mass), WT_SAMPLE_OUT}, bins, m);
    }
    const unsigned long long target = wt_sample_target(&d, kept.all.mass);
    return (int)(unsigned)(reach(o, {kept.all.n, target + 1, WT_SAMPLE_OUT}, bins, m).end - 1);
}

// ---- a row

// To `depths`, as bits. Tokens that were chosen since the tallies were made are counted as well.
static __device__ void penalise(const wt_llm_sample_args &a, const wt_llm_draw &d, const order &o)
{
    const wt_llm_tally *tallies = a.tallies + (long long)d.tally * a.vocab_size;
#pragma unroll 4
    for (int k = o.begin + threadIdx.x; k < o.stop; k += BINS)
        o.depths[k] = __float_as_uint(wt_sample_penalised(&d, tallies[k], o.logits[k]));
    if (!d.n_chosen) return; // uniform
    __syncthreads();
    if ((int)threadIdx.x < d.n_chosen) {
        const int id = a.chosen[threadIdx.x];
        if (id >= o.begin && id < o.stop) {
            wt_llm_tally tally = tallies[id];
            for (int k = 0; k < d.n_chosen; k++) tally.count += a.chosen[k] == id;
            tally.count |= WT_LLM_SEEN;
            o.depths[id] = __float_as_uint(wt_sample_penalised(&d, tally, o.logits[id]));
        }
    }
    __syncthreads();
}

static __device__ extremes find_extremes(const wt_llm_draw &d, const order &o, memory *m)
{
    extremes e = {{lowest(), 0x7fffffff}, lowest(), 0};
#pragma unroll 4
    for (int k = o.begin + threadIdx.x; k < o.stop; k += BINS) {
        const float x = o.logits[k], y = d.tally < 0 ? x : __uint_as_float(o.depths[k]);
        e = better(e, {{y, x == x && y == y ? k : -1}, x, 0});
    }
    e = over_all(e, m);
    if (fabsf(e.most.logit) == -lowest()) e.most.id = -1;
    return e;
}

static __device__ void find_depths(const wt_llm_draw &d, const order &o, float most)
{
#pragma unroll 4
    for (int k = o.begin + threadIdx.x; k < o.stop; k += BINS) {
        const float y = d.tally < 0 ? o.logits[k] : __uint_as_float(o.depths[k]);
        o.depths[k] = wt_sample_depth(y, most, d.depth_scale);
    }
}

// The logarithm of the mass of the logits as they are.
static __device__ float log_total(const order &o, float most, memory *m)
{
    sums s = {0, 0};
#pragma unroll 4
    for (int k = o.begin + threadIdx.x; k < o.stop; k += BINS)
        s.mass += wt_sample_weight(wt_sample_depth(o.logits[k], most, 1u << WT_SAMPLE_DEPTH_BITS));
    return logf((float)over_all(s, &m->parts[0], m).mass * 9.094947017729282e-13f); // 2^-40
}

// Tokens that were chosen before this step count from the next one on.
static __device__ void settle_tallies(const wt_llm_sample_args &a, int n_rows)
{
    if (atomicAdd(a.arrived, 1) != n_rows - 1) return;
    *a.arrived = 0;
    const wt_llm_draw *d = a.draws;
    wt_llm_tally *tallies = a.tallies + (long long)d->tally * a.vocab_size;
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
    __shared__ memory m;
    wait_for_earlier();
    const int row = blockIdx.y, n = gridDim.x, share = (a.vocab_size + 32 * n - 1) / (32 * n) * 32;
    const wt_llm_draw d = a.draws[row];
    const long long skipped = (long long)row * a.vocab_size;
    const int begin = min(a.vocab_size, (int)blockIdx.x * share);
    order o = {a.logits + skipped, a.depths + skipped, begin, min(a.vocab_size, begin + share), 0, 0, 0};
    if (!threadIdx.x) m.kind = m.turn = 0;
    if (d.tally >= 0) penalise(a, d, o);
    const extremes top = find_extremes(d, o, &m);
    int id = top.most.id;
    float total = 0;
    if (id >= 0 && d.logprobs) total = log_total(o, top.plain, &m);
    if (id >= 0 && d.n_top) {
        o.kind = BY_LOGIT;
        reach(o, {(unsigned long long)d.n_top, WT_SAMPLE_ALL, WT_SAMPLE_OUT}, count_all(o, 0, 54, &m), &m);
        if (!blockIdx.x && (int)threadIdx.x < d.n_top) {
            a.odds[row].top_ids[threadIdx.x] = (int)(unsigned)m.keys[threadIdx.x];
            a.odds[row].top_logprobs[threadIdx.x] = plain_logit(m.keys[threadIdx.x]) - top.plain - total;
        }
    }
    if (id >= 0 && d.depth_scale > 0) {
        find_depths(d, o, top.most.logit);
        o.kind = BY_DEPTH;
        id = draw(d, o, &m);
    }
    cluster_meet(); // the others have read
    if (!blockIdx.x && !threadIdx.x)
        say(a, d, id, id >= 0 && d.logprobs ? o.logits[id] - top.plain - total : 0);
}

#define DRAW(n)                                                                                                        \
    extern "C" __global__ void CLUSTER_##n __launch_bounds__(BINS) llm_draw_##n(const __grid_constant__ wt_llm_sample_args a) \
    {                                                                                                                  \
        draw_row(a);                                                                                                   \
    }

DRAW(1)
DRAW(2)
DRAW(4)
DRAW(8)
