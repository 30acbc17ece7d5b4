// The largest logit of many, and how a step says what it chose.
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

// Of all threads of the block, for thread 0.
static __device__ choice block_best(choice c, choice *scratch)
{
    for (int step = 16; step; step /= 2)
        c = better(c, {__shfl_xor_sync(0xffffffffu, c.logit, step), __shfl_xor_sync(0xffffffffu, c.id, step)});
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = c;
    __syncthreads();
    for (int k = 1; !threadIdx.x && k < (int)blockDim.x / 32; k++) c = better(c, scratch[k]);
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
