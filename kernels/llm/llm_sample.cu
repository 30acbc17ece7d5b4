// Drawing the next token on the device, by the arithmetic of sample_kernel.h, so the CPU's sampler draws the same one.
//
//   llm_draw_1, _2, _4, _8   a cluster of so many blocks of 1024 threads a row of logits (grid: blocks, rows), each
//                            with its share of the vocabulary
//
// A row's largest logit, then each token's depth below it. A filter leaves the first tokens in order of their keys, and
// the drawn one is the last of those with too little mass before them: each is a question where in the order a count or
// a mass is reached, which llm_sample_order.cuh answers.
// Judge: models/llm/sampler.c, equal tokens.
#include "llm_choice.cuh"
#include "llm_sample_order.cuh"

#include "overlap.cuh"

// ---- drawing

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
