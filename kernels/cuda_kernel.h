// cuda: a node whose CUDA text comes from the user. The text defines
//   __device__ void process(const wt_node_io *io, const float *p, float *state)
// which all threads of the block call between barriers: read io->in[0][c * io->stride + n], write io->out likewise for
// n in 0 .. io->n_frames - 1; p[0..7] are the parameters p1 .. p8; state[0 .. state_floats - 1] starts as zero and
// stays. chain.cuh's helpers (for_each_sample, for_each_channel_warp, scan_decay) may be used.
#ifndef WT_CUDA_KERNEL_H
#define WT_CUDA_KERNEL_H
#include "chain_kernel.h"

#define CUDA_PARAMS 8

typedef struct cuda_plan {
    int state_floats;
} cuda_plan;

typedef struct cuda_coeffs {
    float p[CUDA_PARAMS];
} cuda_coeffs;

WT_SHARED_FN void cuda_design(const cuda_plan *plan, const float *v0, const float *v1, cuda_coeffs *k)
{
    (void)plan, (void)v0;
    for (int i = 0; i < CUDA_PARAMS; i++) k->p[i] = v1[i];
}
#endif
