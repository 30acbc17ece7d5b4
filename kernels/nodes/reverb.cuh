// reverb: pairs of channels one after another, each in chunks of 64 frames by the whole thread block:
//   low cut       one warp a channel, by scan, the whole block of frames
//   diffusion     one thread a frame and channel: no all-pass is shorter than a chunk
//   damping       one warp a line: 32 frames of the line at once, the recursion as a scan
//   matrix        one lane a line, 16 lanes a frame: rotation and Hadamard by shuffles
//   lines, out    one thread a frame and line, then one a frame
#pragma once
#include "biquad.cuh"
#include "reverb_kernel.h"

struct reverb_shared {
    float x[2][WT_CHAIN_BLOCK]; // input, low cut
    float diffuse[2][REVERB_CHUNK], wet[2][REVERB_CHUNK];
    float line[REVERB_LINES][REVERB_STRIDE];
};

// Pre-delay and all-passes of one channel at one frame.
static __device__ float reverb_diffuse(const reverb_plan *p, const reverb_coeffs *k, float *rings, int c,
                                       long long position)
{
    float x = reverb_pre(p, k, reverb_pre_ring(p, rings, c), position);
    for (int d = 0; d < REVERB_DIFFUSERS; d++) {
        float *ring = reverb_diffuser_ring(p, rings, c, d);
        float delayed = ring[(position - p->diffuser_length[c][d]) & p->diffuser_mask];
        float v = x - k->diffusion * delayed;
        ring[position & p->diffuser_mask] = v;
        x = delayed + k->diffusion * v;
    }
    return x;
}

static __device__ void reverb_lines(const reverb_plan *p, const reverb_coeffs *k, float *rings, float *damping,
                                    long long position, int n, reverb_shared *s)
{
    const int lane = threadIdx.x & 31;
    for (int i = threadIdx.x / 32; i < REVERB_LINES; i += blockDim.x / 32) {
        const float *ring = reverb_line_ring(p, rings, i);
        float before = damping[i];
        for (int first = 0; first < n; first += 32) {
            long long at = position + first + lane;
            float d = first + lane < n ? k->gain[i] * ring[(at - p->length[i]) & p->line_mask] : 0.0f;
            if (lane == 0) d = fmaf(k->pole[i], before, d);
            d = scan_decay(d, k->power[i]);
            if (first + lane < n) s->line[i][first + lane] = d;
            before = __shfl_sync(~0u, d, min(31, n - 1 - first));
        }
        __syncwarp();
        if (lane == 0) damping[i] = before;
    }
}

// The rotation's sine for lines 2 pair and 2 pair + 1.
static __device__ float reverb_twist(const reverb_plan *p, const reverb_coeffs *k, long long position, int pair)
{
    return k->twist * lfo_sine((unsigned int)position * p->increment + (unsigned int)pair * REVERB_PAIR_PHASE);
}

// Rotation, Hadamard's matrix, new input; what goes back into the lines replaces what came out of them.
static __device__ void reverb_matrix(const reverb_plan *p, const reverb_coeffs *k, long long position, int n,
                                     int n_in, reverb_shared *s)
{
    const int i = threadIdx.x & (REVERB_LINES - 1), frames_at_once = blockDim.x / REVERB_LINES;
    const float left = reverb_sign(REVERB_SIGNS_LEFT, i), right = reverb_sign(REVERB_SIGNS_RIGHT, i);
    for (int first = 0; first < n; first += frames_at_once) {
        int f = first + threadIdx.x / REVERB_LINES;
        bool inside = f < n;
        float y = inside ? s->line[i][f] : 0.0f, sine = reverb_twist(p, k, position + f, i / 2);
        float other = __shfl_xor_sync(~0u, y, 1);
        y = sqrtf(1.0f - sine * sine) * y + (i & 1 ? sine : -sine) * other;
        for (int d = 1; d < REVERB_LINES; d *= 2) {
            other = __shfl_xor_sync(~0u, y, d);
            y = i & d ? other - y : y + other;
        }
        y *= 0.25f;
        if (!inside) continue;
        if (i == REVERB_LEFT) s->wet[0][f] = y;
        if (i == REVERB_RIGHT) s->wet[1][f] = y;
        s->line[i][f] = y + left * s->diffuse[0][f] + (n_in > 1 ? right * s->diffuse[1][f] : 0.0f);
    }
}

static __device__ void reverb_pair(const wt_node_io *io, const reverb_plan *p, const reverb_coeffs *k, float *rings,
                                   float *damping, float (*low_cut)[2], int pair)
{
    reverb_shared *s = (reverb_shared *)io->scratch;
    const int n_in = min(2, p->channels_in - 2 * pair), n_out = min(2, io->out_channels - 2 * pair);
    const float *in = io->in[0] + 2 * pair * io->stride;
    float *out = io->out + 2 * pair * io->stride;
    for_each_channel_warp(n_in, [&](int c) {
        biquad_channel(in + c * io->stride, s->x[c], io->n_frames, &k->low_cut, low_cut[c]);
    });
    __syncthreads();
    for (int first = 0; first < io->n_frames; first += REVERB_CHUNK) {
        const int n = min(REVERB_CHUNK, io->n_frames - first);
        const long long position = io->position + first;
        for (int j = threadIdx.x; j < n_in * n; j += blockDim.x)
            reverb_pre_ring(p, rings, j / n)[(position + j % n) & p->pre_mask] = s->x[j / n][first + j % n];
        __syncthreads();
        for (int j = threadIdx.x; j < n_in * n; j += blockDim.x)
            s->diffuse[j / n][j % n] = reverb_diffuse(p, k, rings, j / n, position + j % n);
        reverb_lines(p, k, rings, damping, position, n, s);
        __syncthreads();
        reverb_matrix(p, k, position, n, n_in, s);
        __syncthreads();
        for (int j = threadIdx.x; j < REVERB_LINES * n; j += blockDim.x)
            reverb_line_ring(p, rings, j / n)[(position + j % n) & p->line_mask] = s->line[j / n][j % n];
        for (int f = threadIdx.x; f < n; f += blockDim.x) {
            const float dry[2] = {in[first + f], in[(n_in - 1) * io->stride + first + f]};
            float y[2];
            reverb_blend(k, position + f, dry, s->wet[0][f], s->wet[1][f], n_out, y);
            for (int c = 0; c < n_out; c++) out[c * io->stride + first + f] = y[c];
        }
        __syncthreads();
    }
}

static __device__ void reverb_process(const wt_node_io *io, const reverb_plan *p, const reverb_coeffs *k,
                                      reverb_state *s)
{
    for (int pair = 0; 2 * pair < io->out_channels; pair++)
        reverb_pair(io, p, k, s->rings + (long long)pair * p->pair_floats, s->damping[pair], s->low_cut + 2 * pair,
                    pair);
}
