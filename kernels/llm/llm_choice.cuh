// The largest logit of many and what it leads by, and how a step says what it chose.
#include "llm_kernel.h"

struct choice {
    float logit;
    int id; // -1 = not a number
};

static __device__ __forceinline__ choice better(choice a, choice b)
{
    if (a.id < 0 || b.id < 0) return a.id < 0 ? a : b;
    return b.logit > a.logit || (b.logit == a.logit && b.id < a.id) ? b : a;
}

// The largest of some logits, the second and the lowest; of none of them -inf and inf.
struct standing {
    choice best;
    float second, lowest;
};

static __device__ __forceinline__ standing nobody()
{
    const float highest = __int_as_float(0x7f800000);
    return {{-highest, 0x7fffffff}, -highest, highest};
}

static __device__ __forceinline__ standing joined(standing a, standing b)
{
    const float lesser = fminf(a.best.logit, b.best.logit);
    return {better(a.best, b.best), fmaxf(lesser, fmaxf(a.second, b.second)), fminf(a.lowest, b.lowest)};
}

// Of all threads of the block, for thread 0.
static __device__ standing joined_block(standing c, standing *scratch)
{
    for (int step = 16; step; step /= 2) {
        standing other;
        other.best.logit = __shfl_xor_sync(0xffffffffu, c.best.logit, step);
        other.best.id = __shfl_xor_sync(0xffffffffu, c.best.id, step);
        other.second = __shfl_xor_sync(0xffffffffu, c.second, step);
        other.lowest = __shfl_xor_sync(0xffffffffu, c.lowest, step);
        c = joined(c, other);
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = c;
    __syncthreads();
    for (int k = 1; !threadIdx.x && k < (int)blockDim.x / 32; k++) c = joined(c, scratch[k]);
    return c;
}

// The next step's token, for the device, and with a ring for the host. By one thread, after what the host is to see.
static __device__ __forceinline__ void say_next(wt_llm_token *token, int id, int *step, wt_llm_choice *ring)
{
    token->id = id;
    token->place++;
    if (!ring) return;
    union {
        wt_llm_choice choice;
        long long word; // one store: the host never sees half of it
    } said = {{id, ++*step}};
    *(volatile long long *)&ring[said.choice.step % WT_LLM_RING] = said.word;
}
