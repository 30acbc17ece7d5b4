// Gain control of many signals, a thread block each, that goes on from block to block. Tiles of up to 256 steps: a
// thread sums the squares of one step of a channel, frame after frame as the CPU does; a thread a channel smooths them;
// a thread a step says what gain it asks for; one thread walks the gains, which is a few instructions a step; then all
// make lines of them and turn the frames. Reads a sample twice, the second time from the cache.
// Judge: the CPU (dsp/level/agc.c), 2e-6 of the peak.
#include "agc_batch_kernel.h"

#define THREADS   256
#define ROOM      2048 // powers
#define MAX_STEPS 256

struct agc_tile {
    long long first;  // step of the block
    int steps, whole; // that begin here, and of these, that end in the block
    int room;         // steps of a row of powers
};

struct agc_shared {
    double powers[ROOM]; // [channels][room] sums of squares, then smoothed
    agc_ear ears[AGC_MAX_CHANNELS];
    agc_line lines[MAX_STEPS + 1]; // the first is that of the tile's first step
    double gains[MAX_STEPS + 1];   // wanted at a step's end, then as they move
};

// Sums of a step's squares, with what the block before has heard of the first.
static __device__ void sum_steps(const agc_batch_args &a, const agc_tile &t, const float *in, agc_shared &own)
{
    for (int i = threadIdx.x; i < a.channels * t.steps; i += THREADS) {
        const int c = i / t.steps, s = i % t.steps;
        const long long begin = (t.first + s) * AGC_STEP - a.at, end = begin + AGC_STEP;
        const float *x = in + c * a.n_frames;
        double sum = t.first + s ? 0 : own.ears[c].sum;
        for (long long f = begin < 0 ? 0 : begin; f < (end < a.n_frames ? end : a.n_frames); f++)
            sum += (double)x[f] * x[f];
        own.powers[c * t.room + s] = sum;
    }
}

static __device__ void smooth(const agc_batch_args &a, const agc_tile &t, agc_shared &own)
{
    if ((int)threadIdx.x >= a.channels) return;
    agc_ear ear = own.ears[threadIdx.x];
    double *power = own.powers + threadIdx.x * t.room;
    for (int s = 0; s < t.whole; s++) {
        ear.sum = power[s];
        agc_hear(&a.rules, &ear);
        power[s] = ear.power;
    }
    if (t.whole < t.steps) ear.sum = power[t.whole];
    own.ears[threadIdx.x] = ear;
}

static __device__ double wanted_by(const agc_batch_args &a, const agc_tile &t, const agc_shared &own, int s)
{
    double loudest = 0;
    for (int c = 0; c < a.channels; c++) loudest = fmax(loudest, own.powers[c * t.room + s]);
    return agc_wanted(&a.rules, loudest);
}

static __device__ void turn(const agc_batch_args &a, const agc_tile &t, const agc_line *lines, long long signal)
{
    const long long begin = t.first * AGC_STEP - a.at, end = begin + (long long)t.steps * AGC_STEP;
    for (int c = 0; c < a.channels; c++) {
        const long long row = (signal * a.channels + c) * a.n_frames;
        for (long long f = begin + threadIdx.x; f < (end < a.n_frames ? end : a.n_frames); f += THREADS) {
            const int at = (int)(f - begin);
            if (f >= 0) a.out[row + f] = agc_turn(&lines[at / AGC_STEP], a.in[row + f], at % AGC_STEP);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) agc_batch(agc_batch_args a)
{
    __shared__ agc_shared own;
    const int i = threadIdx.x;
    const long long signal = blockIdx.x, n_end = (a.at + a.n_frames) / AGC_STEP;
    const long long n_begin = (a.at + a.n_frames + AGC_STEP - 1) / AGC_STEP;
    const float *in = a.in + signal * a.channels * a.n_frames;
    agc_batch_state *state = a.state + signal;
    agc_tile t;
    t.room = min(MAX_STEPS, ROOM / a.channels);
    if (i < a.channels) own.ears[i] = state->ears[i];
    if (i == 0) own.lines[0] = state->line;
    __syncthreads();
    for (t.first = 0; t.first < n_begin; t.first += t.room) {
        t.steps = (int)min((long long)t.room, n_begin - t.first);
        t.whole = (int)min((long long)t.steps, n_end - t.first);
        sum_steps(a, t, in, own);
        __syncthreads();
        smooth(a, t, own);
        __syncthreads();
        if (i < t.whole) own.gains[i + 1] = wanted_by(a, t, own, i);
        __syncthreads();
        if (i == 0) {
            own.gains[0] = own.lines[0].gain_db;
            for (int s = 0; s < t.whole; s++) own.gains[s + 1] = agc_move(&a.rules, own.gains[s], own.gains[s + 1]);
        }
        __syncthreads();
        if (i < t.whole) {
            agc_line line = {own.gains[i], 0, 0};
            agc_lead(&line, own.gains[i + 1]);
            own.lines[i + 1] = line;
        }
        __syncthreads();
        turn(a, t, own.lines, signal);
        __syncthreads();
        if (i == 0) own.lines[0] = own.lines[t.whole];
    }
    if (i < a.channels) state->ears[i] = own.ears[i];
    if (i == 0) state->line = own.lines[0];
}
