// Attacks of a batch of signals, as dsp/stretch/stretch_transients.c has them, and where the output's samples come
// from.
//
//   transient_energies   eight threads a block of samples, one for each of the CPU's partial sums
//   transient_find       a warp a signal walks along its blocks, 32 at a time: each lane has one and those before it
//   transient_places     a thread a place
//
// Squares of floats are exact in double and sums run in the CPU's order, so that attacks are the CPU's to the sample.
#include "transient_kernel.h"

enum { TRANSIENT_LANES = 8, TRANSIENT_PAST = 32 };

static __device__ __forceinline__ double square(float x) { return (double)x * x; }

extern "C" __global__ void __launch_bounds__(256) transient_energies(wt_transient_args a)
{
    const int lane = threadIdx.x % TRANSIENT_LANES, first_lane = threadIdx.x % 32 / TRANSIENT_LANES * TRANSIENT_LANES;
    const long long tiles = (a.n_blocks + 31) / 32, line = blockIdx.x / tiles;
    const long long k = blockIdx.x % tiles * 32 + threadIdx.x / TRANSIENT_LANES, begin = k * a.block;
    const bool there = k < a.n_blocks;
    const int alone = there && !k; // the first sample has none before it
    int n = 0;
    if (there) n = (int)(a.n_samples - begin < a.block ? a.n_samples - begin : a.block) - alone;
    const float *x = a.pcm + line * a.n_samples + begin + alone;
    const int whole = n / TRANSIENT_LANES * TRANSIENT_LANES;
    double part = 0, sum = 0;
    for (int i = lane; i < whole; i += TRANSIENT_LANES) part += square(__ldg(x + i) - __ldg(x + i - 1));
    for (int i = whole; i < n && lane == 0; i++) sum += square(__ldg(x + i) - __ldg(x + i - 1));
    for (int j = 0; j < TRANSIENT_LANES; j++) sum += __shfl_sync(0xffffffff, part, first_lane + j);
    if (there && lane == 0) a.energies[line * a.n_blocks + k] = alone ? square(__ldg(x - 1)) + sum : sum;
}

// The largest difference of two blocks; the first of equal ones. All lanes together.
static __device__ long long steepest(const wt_transient_args &a, const float *pcm, long long begin)
{
    const long long end = begin + 2 * a.block < a.n_samples ? begin + 2 * a.block : a.n_samples;
    float most = -1;
    long long at = begin;
    for (long long i = begin + threadIdx.x; i < end; i += 32) {
        const float step = fabsf(__ldg(pcm + i) - (i ? __ldg(pcm + i - 1) : 0));
        if (step > most) most = step, at = i;
    }
    for (int d = 16; d; d /= 2) {
        const float other = __shfl_xor_sync(0xffffffff, most, d);
        const long long there = __shfl_xor_sync(0xffffffff, at, d);
        if (other > most || (other == most && there < at)) most = other, at = there;
    }
    return at;
}

static __device__ double loudest_of(const double *energies, long long n)
{
    double loudest = 0;
    for (long long k = threadIdx.x; k < n; k += 32)
        if (energies[k] > loudest) loudest = energies[k];
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, loudest, d);
        if (other > loudest) loudest = other;
    }
    return loudest;
}

// Surroundings end half way to the next attack, in the input and in the output.
static __device__ void measure_halves(const wt_transient_args &a, wt_transient *at, long long count)
{
    for (long long i = threadIdx.x; i < count; i += 32) {
        long long half = a.n_fft / 2;
        for (long long k = i ? i : 1; k <= i + 1 && k < count; k++) {
            const long long in = at[k].in - at[k - 1].in, out = at[k].out - at[k - 1].out,
                            gap = (in < out ? in : out) / 2;
            if (gap < half) half = gap;
        }
        at[i].half = half;
    }
}

extern "C" __global__ void __launch_bounds__(32) transient_find(wt_transient_args a)
{
    const long long line = blockIdx.x;
    const int lane = threadIdx.x;
    const float *pcm = a.pcm + line * a.n_samples;
    const double *energies = a.energies + line * a.n_blocks;
    wt_transient *at = a.at + line * a.most;
    const double floor = 1e-6 * loudest_of(energies, a.n_blocks); // what is 60 dB below the loudest attack is none
    double older = 0;
    long long count = 0, free_from = 0;
    for (long long begin = 0; begin < a.n_blocks && count < a.most; begin += 32) {
        const double here = begin + lane < a.n_blocks ? energies[begin + lane] : 0;
        double before = 0;
        for (int i = 0; i < TRANSIENT_PAST; i++) {
            const double late = __shfl_sync(0xffffffff, here, i), early = __shfl_sync(0xffffffff, older, i);
            before += i < lane ? late : early;
        }
        older = here;
        unsigned found = __ballot_sync(0xffffffff, here > 10 * before / TRANSIENT_PAST && here > floor);
        for (; found && count < a.most; found &= found - 1) {
            const long long from = (begin + __ffs(found) - 1) * a.block;
            if (from < free_from) continue;
            const long long place = steepest(a, pcm, from);
            if (lane == 0) at[count] = wt_transient{place, llrint((double)place / a.rate), 0};
            count++;
            free_from = place + a.gap;
        }
    }
    __syncwarp();
    measure_halves(a, at, count);
    if (lane == 0) a.counts[line] = count;
}

extern "C" __global__ void __launch_bounds__(256) transient_places(wt_transient_args a)
{
    const long long tiles = (a.n_places + 255) / 256, line = blockIdx.x / tiles;
    const long long t = blockIdx.x % tiles * 256 + threadIdx.x;
    if (t >= a.n_places) return;
    a.places[line * a.n_places + t] =
        wt__transient_place(a.at + line * a.most, a.counts[line], a.n_samples, a.n_out, t * a.hop);
}
