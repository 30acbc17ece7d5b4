// Drawing the next token on the device, by the arithmetic of sample_kernel.h, so the CPU's sampler draws the same one.
//
//   llm_extremes  blocks share a row of logits (grid: blocks, rows): the largest after penalties and bias, and the largest
//                 as they are; the last block done takes the largest of the blocks'
//   llm_depths    likewise: each token's depth below the largest, tokens and their mass by depth in bins, and the mass of
//                 the logits as they are
//   llm_top       likewise: the most probable tokens, by the logits as they are
//   llm_draw      a block of 1024 threads a row: what the filters leave and which of it is drawn
//
// A filter leaves the first tokens in order of their keys, and the drawn one is the last of those with too little mass
// before them: each is a question where in the order a count or a mass is reached. It is answered by bins, whose sums
// say into which one it falls, by finer bins while that one holds more than LIST tokens, and then by comparing the few
// that are left with each other. All sums are of integers, so the order in which they are added does not show.
// Judge: models/llm/sampler.c, equal tokens.
#include "llm_choice.cuh"

#define ALL     0xffffffffu
#define THREADS 256
#define BINS    WT_LLM_DRAW_BINS
#define LIST    512 // tokens that are compared with each other
#define NOBODY  (~0ull)

static __device__ __forceinline__ float lowest() { return -__int_as_float(0x7f800000); }

static __device__ __forceinline__ float penalised(const wt_llm_sample_args &a, const wt_llm_draw &d, int k, float x)
{
    return d.tally < 0 ? x : wt_sample_penalised(&d, a.tallies[(long long)d.tally * a.vocab_size + k], x);
}

extern "C" __global__ void __launch_bounds__(THREADS) llm_extremes(const __grid_constant__ wt_llm_sample_args a)
{
    __shared__ choice scratch[THREADS / 32];
    const wt_llm_draw d = a.draws[blockIdx.y];
    const float *logits = a.logits + (long long)blockIdx.y * a.vocab_size;
    wt_llm_extremes *found = a.extremes + blockIdx.y * (1 + gridDim.x);
    choice most = {lowest(), 0x7fffffff}, plain = most;
    for (int k = blockIdx.x * THREADS + threadIdx.x; k < a.vocab_size; k += gridDim.x * THREADS) {
        const float x = logits[k], y = penalised(a, d, k, x);
        most = better(most, {y, x == x && y == y ? k : -1});
        plain = better(plain, {x, k});
    }
    most = block_best(most, scratch);
    __syncthreads(); // scratch is free again
    plain = block_best(plain, scratch);
    if (threadIdx.x) return;
    found[1 + blockIdx.x] = {most.logit, most.id, plain.logit};
    __threadfence(); // a block's extremes are written before it is counted
    if (atomicAdd(a.arrived + blockIdx.y, 1) != (int)gridDim.x - 1) return;
    __threadfence();
    for (int k = 1; k <= (int)gridDim.x; k++) {
        most = better(most, {found[k].most, found[k].id});
        plain.logit = fmaxf(plain.logit, found[k].plain);
    }
    if (fabsf(most.logit) == -lowest()) most.id = -1;
    found[0] = {most.logit, most.id, plain.logit};
    a.arrived[blockIdx.y] = 0;
}

static __device__ __forceinline__ int pitch_of(int vocab_size) { return (vocab_size + 3) / 4 * 4; }

extern "C" __global__ void __launch_bounds__(THREADS) llm_depths(const __grid_constant__ wt_llm_sample_args a)
{
    const wt_llm_draw d = a.draws[blockIdx.y];
    const wt_llm_extremes top = a.extremes[blockIdx.y * (1 + gridDim.x)];
    const float *logits = a.logits + (long long)blockIdx.y * a.vocab_size;
    const int pitch = pitch_of(a.vocab_size);
    unsigned *depths = a.depths + (long long)blockIdx.y * pitch;
    wt_llm_bin *bins = a.bins + blockIdx.y * BINS;
    if (top.id < 0 || (d.depth_scale == 0 && !d.logprobs)) return;
    unsigned long long mass = 0;
    for (int k = blockIdx.x * THREADS + threadIdx.x; k < pitch; k += gridDim.x * THREADS) {
        const float x = k < a.vocab_size ? logits[k] : lowest();
        if (d.logprobs) mass += wt_sample_weight(wt_sample_depth(x, top.plain, 1u << WT_SAMPLE_DEPTH_BITS));
        if (d.depth_scale == 0) continue;
        const float y = k < a.vocab_size ? penalised(a, d, k, x) : x;
        const unsigned depth = depths[k] = wt_sample_depth(y, top.most, d.depth_scale);
        if (depth == WT_SAMPLE_OUT) continue;
        wt_llm_bin *bin = bins + (depth >> 21);
        atomicAdd(&bin->mass, wt_sample_weight(depth));
        atomicAdd(&bin->n, 1ull);
    }
    if (!d.logprobs) return;
    for (int step = 16; step; step /= 2) mass += __shfl_xor_sync(ALL, mass, step);
    if (threadIdx.x % 32 == 0) atomicAdd(a.mass + blockIdx.y, mass);
}

// ---- the most probable tokens

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

// The smallest of the block's keys, for all its threads.
static __device__ unsigned long long block_smallest(unsigned long long key, unsigned long long *scratch)
{
    for (int step = 16; step; step /= 2) key = min(key, __shfl_xor_sync(ALL, key, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = key;
    __syncthreads();
    for (int k = 0; k < THREADS / 32; k++) key = min(key, scratch[k]);
    return key;
}

extern "C" __global__ void __launch_bounds__(THREADS) llm_top(const __grid_constant__ wt_llm_sample_args a)
{
    __shared__ unsigned long long scratch[THREADS / 32];
    __shared__ int is_last;
    const float *logits = a.logits + (long long)blockIdx.y * a.vocab_size;
    unsigned long long *tops = a.tops + (long long)blockIdx.y * gridDim.x * WT_LLM_MAX_TOP, next = 0;
    const wt_llm_extremes row = a.extremes[blockIdx.y * (1 + gridDim.x)];
    const int n = row.id < 0 ? 0 : a.draws[blockIdx.y].n_top;
    for (int i = 0; i < n; i++) {
        unsigned long long key = NOBODY;
        for (int k = blockIdx.x * THREADS + threadIdx.x; k < a.vocab_size; k += gridDim.x * THREADS) {
            const unsigned long long here = plain_key(logits[k], k);
            if (here >= next) key = min(key, here);
        }
        key = block_smallest(key, scratch);
        if (!threadIdx.x) tops[blockIdx.x * WT_LLM_MAX_TOP + i] = key;
        next = key == NOBODY ? key : key + 1;
    }
    __threadfence(); // a block's tops are written before it is counted
    __syncthreads();
    if (!threadIdx.x) is_last = atomicAdd(a.arrived + blockIdx.y, 1) == (int)gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    next = 0;
    for (int i = 0; i < n; i++) {
        unsigned long long key = NOBODY;
        for (int k = threadIdx.x; k < n * (int)gridDim.x; k += THREADS) {
            const unsigned long long here = tops[k / n * WT_LLM_MAX_TOP + k % n];
            if (here >= next) key = min(key, here);
        }
        key = block_smallest(key, scratch);
        if (!threadIdx.x) {
            a.odds[blockIdx.y].top_ids[i] = (int)(unsigned)key;
            a.odds[blockIdx.y].top_logprobs[i] = plain_logit(key) - row.plain;
        }
        next = key + 1;
    }
    if (!threadIdx.x) a.arrived[blockIdx.y] = 0;
}

// ---- where in the order

// The tokens of a row in the order of their depths, or of those before `end` in the order of their distances from a mean.
struct order {
    const unsigned *depths;
    const wt_llm_bin *bins; // of the depths
    int pitch;
    bool by_distance;
    unsigned mean;
    unsigned long long end;
};

struct sums {
    unsigned long long n, mass;
};

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

struct memory {
    sums warps[BINS / 32];
    wt_llm_bin bins[BINS];
    unsigned long long keys[LIST], weights[LIST]; // the tokens with keys from first to end - 1, before them `before`
    unsigned long long first, end;
    sums before;
    int n_list;
    int bin, lowest; // the bin of the goal; the first one of those that fit into the list with it
    sums in_bin, before_bin;
    unsigned n_taken;
    taken found;
    unsigned long long high, low; // of the moment
};

static __device__ __forceinline__ unsigned long long key_of(const order &o, int k, unsigned depth)
{
    const unsigned long long key = depth == WT_SAMPLE_OUT ? NOBODY : wt_sample_key(depth, k);
    if (!o.by_distance || key >= o.end) return o.by_distance ? NOBODY : key;
    return wt_sample_key(wt_sample_distance(depth, o.mean), k);
}

// Calls visit(key, depth) for the keys from `first` to `end` - 1.
template <class F>
static __device__ __forceinline__ void visit_keys(const order &o, unsigned long long first, unsigned long long end, F visit)
{
#pragma unroll 4
    for (int k = 4 * threadIdx.x; k < o.pitch; k += 4 * BINS) {
        const uint4 four = *(const uint4 *)(o.depths + k);
        const unsigned depths[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const unsigned long long key = key_of(o, k + j, depths[j]);
            if (key >= first && key < end) visit(key, depths[j]);
        }
    }
}

// What lies in the bins before the thread's own.
static __device__ sums sums_before(sums own, memory *m)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    sums s = own;
    for (int step = 1; step < 32; step *= 2) {
        const sums other = {__shfl_up_sync(ALL, s.n, step), __shfl_up_sync(ALL, s.mass, step)};
        if (lane >= step) s = {s.n + other.n, s.mass + other.mass};
    }
    __syncthreads();
    if (lane == 31) m->warps[warp] = s;
    __syncthreads();
    s = {s.n - own.n, s.mass - own.mass};
    for (int w = 0; w < warp; w++) s = {s.n + m->warps[w].n, s.mass + m->warps[w].mass};
    return s;
}

// Thread t's bin: the keys from first + (t << shift) on.
static __device__ sums count_bin(const order &o, unsigned long long first, int shift, memory *m)
{
    if (!o.by_distance && shift == 53) return {o.bins[threadIdx.x].n, o.bins[threadIdx.x].mass};
    __syncthreads();
    m->bins[threadIdx.x] = {0, 0};
    __syncthreads();
    visit_keys(o, first, first + ((unsigned long long)BINS << shift), [&](unsigned long long key, unsigned depth) {
        wt_llm_bin *bin = m->bins + ((key - first) >> shift);
        atomicAdd(&bin->mass, wt_sample_weight(depth));
        atomicAdd(&bin->n, 1ull);
    });
    __syncthreads();
    return {m->bins[threadIdx.x].n, m->bins[threadIdx.x].mass};
}

// The tokens of the goal's bin, and of as many bins before it as have room, unless they are in the list.
static __device__ void fill_list(const order &o, unsigned long long first, int shift, sums before, memory *m)
{
    const unsigned long long start = first + ((unsigned long long)m->bin << shift), end = start + (1ull << shift);
    if (start >= m->first && end <= m->end) return; // uniform
    if ((int)threadIdx.x <= m->bin && m->before_bin.n + m->in_bin.n - before.n <= LIST) atomicMin(&m->lowest, (int)threadIdx.x);
    __syncthreads();
    if ((int)threadIdx.x == m->lowest) {
        m->before = before;
        m->first = first + ((unsigned long long)threadIdx.x << shift);
        m->end = end;
        m->n_list = 0;
    }
    __syncthreads();
    visit_keys(o, m->first, m->end, [&](unsigned long long key, unsigned depth) {
        const int at = atomicAdd(&m->n_list, 1);
        m->keys[at] = key;
        m->weights[at] = wt_sample_weight(depth);
    });
    __syncthreads();
}

// How far the goal reaches, for all threads.
static __device__ taken reach(const order &o, goal g, memory *m)
{
    unsigned long long first = 0;
    sums before_all = {0, 0}, before;
    int shift = 53;
    for (;; shift = shift > 10 ? shift - 10 : 0) {
        const sums own = count_bin(o, first, shift, m);
        before = sums_before(own, m);
        before = {before.n + before_all.n, before.mass + before_all.mass};
        if (!threadIdx.x) {
            m->bin = 0;
            m->lowest = BINS;
            m->n_taken = 0;
        }
        __syncthreads();
        const unsigned long long start = first + ((unsigned long long)threadIdx.x << shift);
        if (before.n < g.n && before.mass < g.mass && (unsigned)(start >> 32) <= g.deepest)
            atomicMax(&m->bin, (int)threadIdx.x);
        __syncthreads();
        if ((int)threadIdx.x == m->bin) {
            m->in_bin = own;
            m->before_bin = before;
            m->found = {before, start};
        }
        __syncthreads();
        if (m->in_bin.n <= LIST) break;
        first += (unsigned long long)m->bin << shift;
        before_all = m->before_bin;
    }
    if (m->in_bin.n) { // uniform
        fill_list(o, first, shift, before, m);
        sums s = m->before;
        bool is_taken = false;
        unsigned long long key = 0;
        if ((int)threadIdx.x < m->n_list) {
            key = m->keys[threadIdx.x];
            for (int k = 0; k < m->n_list; k++)
                if (m->keys[k] < key) s = {s.n + 1, s.mass + m->weights[k]};
            is_taken = s.n < g.n && s.mass < g.mass && (unsigned)(key >> 32) <= g.deepest;
        }
        if (is_taken) atomicMax(&m->n_taken, (unsigned)s.n + 1);
        __syncthreads();
        if (is_taken && (unsigned)s.n + 1 == m->n_taken)
            m->found = {{s.n + 1, s.mass + m->weights[threadIdx.x]}, key + 1};
    }
    __syncthreads();
    const taken found = m->found;
    __syncthreads();
    return found;
}

// Of those before `kept.end`, the ones whose depths are nearest to the mean.
static __device__ void turn_to_distances(order *o, taken kept, memory *m)
{
    unsigned long long high = 0, low = 0;
    visit_keys(*o, 0, kept.end, [&](unsigned long long, unsigned depth) {
        wt_sample_add_moment(wt_sample_weight(depth), depth, &high, &low);
    });
    atomicAdd(&m->high, high);
    atomicAdd(&m->low, low);
    if (!threadIdx.x) m->first = m->end = 0; // the list is of the other order
    __syncthreads();
    o->mean = wt_sample_mean(m->high, m->low, kept.all.mass);
    o->end = kept.end;
    o->by_distance = true;
}

// As draw() of sampler.c.
static __device__ int draw(const wt_llm_draw &d, order o, memory *m)
{
    taken kept = reach(o, {(unsigned long long)d.top_k, WT_SAMPLE_ALL, WT_SAMPLE_OUT}, m);
    if (d.top_p < 1 || d.deepest < WT_SAMPLE_DEEPEST)
        kept = reach(o, {kept.all.n, wt_sample_share(d.top_p, kept.all.mass), d.deepest}, m);
    if (d.typical_p < 1) {
        turn_to_distances(&o, kept, m);
        kept = reach(o, {kept.all.n, wt_sample_share(d.typical_p, kept.all.mass), WT_SAMPLE_OUT}, m);
    }
    const unsigned long long target = wt_sample_target(&d, kept.all.mass);
    return (int)(unsigned)(reach(o, {kept.all.n, target + 1, WT_SAMPLE_OUT}, m).end - 1);
}

extern "C" __global__ void __launch_bounds__(BINS) llm_draw(const __grid_constant__ wt_llm_sample_args a)
{
    __shared__ memory m;
    const int row = blockIdx.x, pitch = pitch_of(a.vocab_size);
    const wt_llm_draw d = a.draws[row];
    const wt_llm_extremes top = a.extremes[row * (1 + WT_LLM_DRAW_BLOCKS)];
    wt_llm_odds *odds = a.odds + row;
    const bool draws = top.id >= 0 && d.depth_scale > 0;
    int id = top.id;
    if (!threadIdx.x) m.first = m.end = m.high = m.low = 0;
    __syncthreads();
    if (draws) id = draw(d, {a.depths + (long long)row * pitch, a.bins + row * BINS, pitch, false, 0, 0}, &m);
    __syncthreads(); // settings and bins were read by all
    if (draws) a.bins[row * BINS + threadIdx.x] = {0, 0};
    if (!threadIdx.x) {
        const float total = logf((float)a.mass[row] * 9.094947017729282e-13f); // 2^-40
        odds->logprob = id >= 0 && d.logprobs ? a.logits[(long long)row * a.vocab_size + id] - top.plain - total : 0;
        odds->n_top = id >= 0 ? d.n_top : 0;
        for (int k = 0; k < odds->n_top; k++) odds->top_logprobs[k] -= total;
        a.mass[row] = 0;
        if (draws) a.draws[row].number++;
        if (id >= 0 && d.tally >= 0) {
            wt_llm_tally *tally = a.tallies + (long long)d.tally * a.vocab_size + id;
            tally->count = (tally->count + 1) | WT_LLM_SEEN;
        }
        if (a.ring_odds) {
            a.ring_odds[(*a.step + 1) % WT_LLM_RING] = *odds;
            __threadfence_system(); // the host reads them after the choice
        }
        say_next(a.tokens + row, id, a.step, a.ring);
    }
}
