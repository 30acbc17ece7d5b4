// The arithmetic of drawing a token, the same on both backends. After the penalties all of it is in integers: how far a
// logit lies below the largest is rounded down once, a weight is a function of that, and sums of weights do not depend
// on their order. So equal logits and settings give equal tokens everywhere. Only the largest of logits without a
// temperature, the logarithm behind a probability that is told, and products in double that are rounded once are not
// integers, and those are equal too.
#ifndef WT_SAMPLE_KERNEL_H
#define WT_SAMPLE_KERNEL_H
#include "philox_kernel.h"

// A token's depth: (largest - logit) / temperature in units of 2^-26. Below exp(-28) a weight is 0: such a token is
// out.
#define WT_SAMPLE_DEPTH_BITS 26
#define WT_SAMPLE_DEEPEST    (28u << WT_SAMPLE_DEPTH_BITS)
#define WT_SAMPLE_OUT        0xffffffffu
#define WT_SAMPLE_ONE        (1ull << 40) // the weight of depth 0
#define WT_SAMPLE_ALL        (~0ull)

// How one sequence's next token is drawn.
typedef struct wt_llm_draw {
    double depth_scale;              ///< 2^26 / temperature; 0 = the most probable token
    double top_p, typical_p;         ///< 1 = all
    long long presence, frequency;   ///< in units of 2^-32
    unsigned long long seed, number; ///< of Philox; the number moves on with each token
    float repeated;
    unsigned deepest; ///< of min-p
    int top_k;        ///< at most vocab_size
    int tally;        ///< row of the tallies; -1 = no penalties and no bias
    int n_top;        ///< most probable tokens to be told
    int logprobs;     ///< is a probability to be told?
    int n_chosen;     ///< tokens that are counted besides the tally; 0 without one
    int n_settled;    ///< the first of them, which are added to it
} wt_llm_draw;

// What was met of a token, and its bias.
typedef struct wt_llm_tally {
    unsigned count; ///< times generated; the highest bit: seen, in prompt or answer
    float bias;
} wt_llm_tally;
#define WT_LLM_SEEN 0x80000000u

// A logit after penalties and bias. No product and sum can be taken as one: products are exact.
WT_SHARED_FN float wt_sample_penalised(const wt_llm_draw *d, wt_llm_tally t, float x)
{
    const unsigned count = t.count & ~WT_LLM_SEEN;
    if (t.count & WT_LLM_SEEN) x = x < 0 ? (float)((double)x * (double)d->repeated) : x / d->repeated;
    if (count) x -= (float)(d->presence + d->frequency * (long long)count) * 2.3283064365386963e-10f; // 2^-32
    return x + t.bias;
}

WT_SHARED_FN unsigned wt_sample_depth(float logit, float largest, double depth_scale)
{
    const double depth = ((double)largest - (double)logit) * depth_scale;
    return depth < (double)WT_SAMPLE_DEEPEST ? (unsigned)depth : WT_SAMPLE_OUT;
}

WT_SHARED_FN unsigned wt_sample_high(unsigned a, unsigned b)
{
#ifdef __CUDA_ARCH__
    return __umulhi(a, b); // one instruction
#else
    return (unsigned)((unsigned long long)a * b >> 32);
#endif
}

// exp(-depth) in units of 2^-40, with a relative error of 2^-29: turns of log2(e), then the series of exp in 2^-32. Its
// last step, 1 - z (1 - f), is 1 - z + z f, rounded up.
WT_SHARED_FN unsigned long long wt_sample_weight(unsigned depth)
{
    if (depth >= WT_SAMPLE_DEEPEST) return 0;
    const unsigned long long halvings = depth * 3098164010ull;                  // log2(e) 2^31: 2^-57
    const unsigned z = wt_sample_high((unsigned)(halvings >> 25), 2977044472u); // ln(2) 2^32
    unsigned e = 9;                                                             // 2^32 / 12!
    e = 108 - wt_sample_high(z, e);
    e = 1184 - wt_sample_high(z, e);
    e = 11836 - wt_sample_high(z, e);
    e = 106522 - wt_sample_high(z, e);
    e = 852176 - wt_sample_high(z, e);
    e = 5965232 - wt_sample_high(z, e);
    e = 35791394 - wt_sample_high(z, e);
    e = 178956971 - wt_sample_high(z, e);
    e = 715827883 - wt_sample_high(z, e);
    e = 2147483648u - wt_sample_high(z, e);
    const unsigned long long zf = (unsigned long long)z * wt_sample_high(z, e) + 0xffffffffu;
    return (4294967296ull - z + (zf >> 32)) << 8 >> (halvings >> 57);
}

// Tokens in order: the most probable first, of equals the smaller id.
WT_SHARED_FN unsigned long long wt_sample_key(unsigned depth, int id)
{
    return (unsigned long long)depth << 32 | (unsigned)id;
}

// The mass that a share of `mass` asks for, 1 at least.
WT_SHARED_FN unsigned long long wt_sample_share(double share, unsigned long long mass)
{
    if (share >= 1) return mass;
    const unsigned long long part = (unsigned long long)ceil(share * (double)mass);
    return part ? part : 1;
}

// The token that is drawn is the first with which the mass of those before and its own exceeds this.
WT_SHARED_FN unsigned long long wt_sample_target(const wt_llm_draw *d, unsigned long long mass)
{
    const unsigned long long target = (unsigned long long)(wt_philox_uniform(d->seed, d->number) * (double)mass);
    return target < mass ? target : mass - 1;
}

// The sum of weight * depth, in units of 2^32 and of 1.
WT_SHARED_FN void wt_sample_add_moment(unsigned long long weight, unsigned depth, unsigned long long *high,
                                       unsigned long long *low)
{
    const unsigned long long lower = (weight & 0xffffffffu) * depth;
    *high += (weight >> 32) * depth + (lower >> 32);
    *low += lower & 0xffffffffu;
}

// The mean depth from it.
WT_SHARED_FN unsigned wt_sample_mean(unsigned long long high, unsigned long long low, unsigned long long mass)
{
    high += low >> 32;
    return (unsigned)(((double)high * 4294967296.0 + (double)(low & 0xffffffffu)) / (double)mass);
}

WT_SHARED_FN unsigned wt_sample_distance(unsigned depth, unsigned mean)
{
    return depth > mean ? depth - mean : mean - depth;
}
#endif
