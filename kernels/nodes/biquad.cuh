// biquad: one warp a channel. In short blocks a lane a section. Else F neighbouring frames a lane: each lane runs its
// frames from rest, a scan over the lanes joins their end states (by the step's powers F, 2F, ... 16F), and each lane
// runs again from its true state; sections that follow each other pass their frames on in registers.
//
// Where a block's answer is waited for, a line of sections is one filter with a response of as many frames as the
// block: y[f] = sum over m of h[f - m] x[m] + what the states add, two threads a frame. The states move on after the
// answer.
#pragma once
#include "chain.cuh"
#include "biquad_kernel.h"

// One section over a lane's frames, in place; those from n on are of no account.
template <int F>
static __device__ __forceinline__ void biquad_scan(float (&x)[F], int n, const biquad_coeffs *k, float *state)
{
    const int lane = threadIdx.x & 31, first = lane * F, log2_f = F == 1 ? 0 : F == 2 ? 1 : F == 4 ? 2 : 3;
    const float4 a = *(const float4 *)k->a, bc = *(const float4 *)k->b;
    const float d = k->d, begin0 = lane == 0 ? state[0] : 0.0f, begin1 = lane == 0 ? state[1] : 0.0f;
    float s0 = begin0, s1 = begin1;
    const auto step = [&](float in) {
        const float t = s0 + (a.x * s0 + a.y * s1 + bc.x * in);
        s1 += a.z * s0 + a.w * s1 + bc.y * in;
        s0 = t;
    };
#pragma unroll
    for (int i = 0; i < F; i++) step(x[i]);
#pragma unroll
    for (int j = 0; j < 5; j++) {
        const float4 p = *(const float4 *)k->power[log2_f + j];
        const float e0 = shift_up(s0, 1 << j, 0.0f), e1 = shift_up(s1, 1 << j, 0.0f);
        s0 += e0 + (p.x * e0 + p.y * e1), s1 += e1 + (p.z * e0 + p.w * e1);
    }
    const float e0 = __shfl_up_sync(~0u, s0, 1), e1 = __shfl_up_sync(~0u, s1, 1);
    s0 = lane == 0 ? begin0 : e0, s1 = lane == 0 ? begin1 : e1;
#pragma unroll
    for (int i = 0; i < F; i++) {
        if (first + i >= n) continue;
        const float y = bc.z * s0 + bc.w * s1 + d * x[i];
        step(x[i]);
        x[i] = y;
    }
    __syncwarp();
    if (lane == (n - 1) / F) state[0] = s0, state[1] = s1;
}

// Sections in a line over one channel; section(i) sets the coefficients and the state of section i.
template <int F, class Section>
static __device__ void biquad_sections(const float *x, float *y, int n, int count, Section section)
{
    const int first = (threadIdx.x & 31) * F;
    float at[F];
#pragma unroll
    for (int i = 0; i < F; i++) at[i] = first + i < n ? x[first + i] : 0.0f;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const biquad_coeffs *k;
        float *state;
        section(i, &k, &state);
        biquad_scan<F>(at, n, k, state);
    }
#pragma unroll
    for (int i = 0; i < F; i++)
        if (first + i < n) y[first + i] = at[i];
    __syncwarp();
}

// The same for a short block: a lane a section, and at each step a pair of frames moves on by a lane, so that all
// sections work at once, each on the frames in their order. `y` may be `x`.
template <class Section>
static __device__ void biquad_march(const float *x, float *y, int n, int count, Section section)
{
    const int lane = threadIdx.x & 31, pairs = (n + 1) / 2;
#pragma unroll 1
    for (int done = 0; done < count; done += 32, x = y) {
        const int here = min(count - done, 32);
        const biquad_coeffs *k;
        float *state;
        section(done + min(lane, here - 1), &k, &state);
        const float4 a = *(const float4 *)k->a, bc = *(const float4 *)k->b;
        const float d = k->d;
        float s0 = state[0], s1 = state[1], next0 = x[0], next1 = n > 1 ? x[1] : 0.0f, y0 = 0.0f, y1 = 0.0f;
        const auto step = [&](float in, bool there) {
            const float out = bc.z * s0 + bc.w * s1 + d * in, t = s0 + (a.x * s0 + a.y * s1 + bc.x * in);
            s1 = there ? s1 + (a.z * s0 + a.w * s1 + bc.y * in) : s1;
            s0 = there ? t : s0;
            return out;
        };
        __syncwarp();
#pragma unroll 1
        for (int t = 0; t < pairs + here - 1; t++) {
            const int at = 2 * (t - lane); // this lane's frames
            const int ahead = 2 * (t + 1); // the first lane's at the next step
            const bool one = at >= 0 && at < n, two = at >= 0 && at + 1 < n;
            const float before0 = __shfl_up_sync(~0u, y0, 1), before1 = __shfl_up_sync(~0u, y1, 1);
            const float in0 = lane ? before0 : next0, in1 = lane ? before1 : next1;
            next0 = ahead < n ? x[ahead] : 0.0f, next1 = ahead + 1 < n ? x[ahead + 1] : 0.0f;
            y0 = step(in0, one), y1 = step(in1, two);
            __syncwarp(); // in place, what is stored was read some steps before, by another lane
            if (lane == here - 1 && one) y[at] = y0;
            if (lane == here - 1 && two) y[at + 1] = y1;
        }
        if (lane < here) state[0] = s0, state[1] = s1;
        __syncwarp();
    }
}

// One channel of up to CHAIN_MOST_FRAMES frames by the calling warp. Where blocks are short one form serves
// all lengths.
template <class Section>
static __device__ __forceinline__ void biquad_cascade(const float *x, float *y, int n, int count, Section section)
{
    if (CHAIN_MOST_FRAMES <= 64)
        biquad_march(x, y, n, count, section);
    else if (n <= 32)
        biquad_sections<1>(x, y, n, count, section);
    else if (n <= 64)
        biquad_sections<2>(x, y, n, count, section);
    else if (n <= 128)
        biquad_sections<4>(x, y, n, count, section);
    else
        biquad_sections<8>(x, y, n, count, section);
}

static __device__ void biquad_channel(const float *x, float *y, int n, const biquad_coeffs *coeffs, float *own)
{
    biquad_cascade(x, y, n, 1, [&](int, const biquad_coeffs **k, float **state) { *k = coeffs, *state = own; });
}

// Nodes `node` .. `node` + count - 1, each working in place on what the one before left.
static __device__ void biquad_line(const chain_args &a, const chain_room &room, int n, int node, int count)
{
    const wt_node_place *p = room.places + node;
    const int stride = chain_stride(a), buffer_floats = chain_buffer_floats(a);
    const float *in = shared + p->input[0] * buffer_floats;
    float *out = shared + p->output * buffer_floats;
    for_each_channel_warp(p->output_channels, [&](int c) {
        biquad_cascade(in + c * stride, out + c * stride, n, count, [&](int i, const biquad_coeffs **k, float **state) {
            *k = (const biquad_coeffs *)(room.memory + p[i].coeffs);
            *state = ((biquad_state *)(room.memory + p[i].state))->s[c];
        });
    });
}

#ifdef CHAIN_IN_SHARED
// Of a line of N sections over up to C channels.
template <int N, int C> struct biquad_table {
    float response[2 * CHAIN_MOST_FRAMES]; // 0 before the impulse at CHAIN_MOST_FRAMES
    float rings[N][2][CHAIN_MOST_FRAMES];  // what each state, being 1, adds to the frames
    float x[C][CHAIN_MOST_FRAMES];         // input of the block whose states are still to be moved on
    float rest[C][CHAIN_MOST_FRAMES];      // what the states add to the frames of the next block
    float states[2 * N + 1][N][2];         // while the table is made
    int n_frames;                          // of x, 0 = none
};

// The line's block from its table; 0 when that cannot be done, which all threads learn. `n` frames in fours.
template <int N, int C>
static __device__ __forceinline__ bool biquad_ahead(const chain_args &a, const chain_room &room, int n,
                                                    const wt_node_place *p, biquad_table<N, C> &t)
{
    const int channels = p->output_channels, stride = chain_stride(a), buffer_floats = chain_buffer_floats(a);
    const fours_place own = fours_place_of(threadIdx.x);
    if (chain_changed || n % 4 || !fours_fit(channels)) return false;
    float y = 0.0f;
    if (own.c < channels) {
        const float *x = shared + p->input[0] * buffer_floats + own.c * stride;
        float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#    pragma unroll
        for (int m = 0; m < CHAIN_MOST_FRAMES; m += 4 * FOURS_LANES) { // the lanes take fours in turn
            const int at = m + 4 * own.lane;                           // before the response there are zeros
            const float4 four = at < n ? *(const float4 *)(x + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (at < CHAIN_MOST_FRAMES)
                fours_add(&sums, four, t.response + CHAIN_MOST_FRAMES + (own.f & ~3) - at);
        }
        y = fours_own<FOURS_LANES>(sums) + t.rest[own.c][own.f];
        if (own.first) t.x[own.c][own.f] = x[own.f];
    }
    if (threadIdx.x == 0) t.n_frames = chain_rehearsed ? 0 : n;
    __syncthreads();
    if (own.c < channels && own.f < n && own.first) shared[p->output * buffer_floats + own.c * stride + own.f] = y;
    return true;
}

// The table when the coefficients have changed: a run of the line a warp, the response's and each state's.
template <int N, int C, class Run>
static __device__ __forceinline__ void biquad_make_table(biquad_table<N, C> &t, const Run &run)
{
    for (int i = threadIdx.x; i < 2 * CHAIN_MOST_FRAMES; i += chain_threads())
        t.response[i] = i == CHAIN_MOST_FRAMES ? 1.0f : 0.0f;
    for (int i = threadIdx.x; i < N * 2 * CHAIN_MOST_FRAMES; i += chain_threads()) (&t.rings[0][0][0])[i] = 0.0f;
    for (int i = threadIdx.x; i < (2 * N + 1) * 2 * N; i += chain_threads())
        (&t.states[0][0][0])[i] = i / (2 * N) == i % (2 * N) ? 1.0f : 0.0f;
    __syncthreads();
    for_each_channel_warp(2 * N + 1, [&](int r) {
        float *x = r < 2 * N ? t.rings[r / 2][r % 2] : t.response + CHAIN_MOST_FRAMES;
        run(x, CHAIN_MOST_FRAMES, [&](int i) { return t.states[r][i]; });
    });
    __syncthreads();
}

// After the answer: the states, the table, and what the states add to the next block.
template <int N, int C> static __device__ void biquad_behind(const chain_room &room, int node, biquad_table<N, C> &t)
{
    const wt_node_place *p = room.places + node;
    const auto run = [&](float *x, int n, auto state_of) {
        biquad_march(x, x, n, N, [&](int i, const biquad_coeffs **k, float **state) {
            *k = (const biquad_coeffs *)(room.memory + p[i].coeffs);
            *state = state_of(i);
        });
    };
    if (t.n_frames && chain_changed != CHAIN_RESTED)
        for_each_channel_warp(p->output_channels, [&](int c) {
            run(t.x[c], t.n_frames, [&](int i) { return ((biquad_state *)(room.memory + p[i].state))->s[c]; });
        });
    __syncthreads();
    if (threadIdx.x == 0) t.n_frames = 0;
    if (chain_changed) biquad_make_table(t, run);
    for_each_frame(p->output_channels, CHAIN_MOST_FRAMES, [&](int c, int f) {
        float y = 0.0f;
#    pragma unroll
        for (int i = 0; i < N; i++) {
            const float *s = ((const biquad_state *)(room.memory + p[i].state))->s[c];
            y = fmaf(t.rings[i][0][f], s[0], fmaf(t.rings[i][1][f], s[1], y));
        }
        t.rest[c][f] = y;
    });
}
#endif
