// convolution: y = (1 - mix) x + mix gain (h * x), h an impulse response of any length, with no latency.
//
// The first `head_taps` taps run in the time domain. The others run as partitioned convolutions in the frequency domain
// (overlap-save, W. Gardner, "Efficient convolution without input-output delay", JAES 43(3), 1995), a stage a size:
//
//   stage 0   size P, taps P ..          the chunk's transforms and products all run the moment a chunk is full
//   stage i   size P, taps 2P ..         the result is due a whole chunk later, so its products are spread over that
//   time
//
// Time goes in ticks of CONV_TICK frames of the absolute position. A stage's chunk lasts `ticks` = P / CONV_TICK of
// them; at each tick one slice of CONV_TICK bins of the spectrum is multiplied and summed over all partitions, always
// the slice of the tick's number, so that all channels read the same part of the impulse response at the same time,
// while each channel's chunks begin at its own phase, so that transforms spread over the ticks: the channel's number
// with its bits reversed (van der Corput), which spreads any number of channels evenly, plus the chain's stagger.
// Chains of consecutive staggers fill each other's gaps: 5 chains of 60 give 2 or 3 transforms a tick of 128.
//
// A spectrum of 2P real points is P numbers, the real bin P in the imaginary part of bin 0. Spectra and delay lines lie
// in blocks of CONV_BINS bins: [block][partition][re CONV_BINS, im CONV_BINS], so that a slice is one run of memory.
// The delay line's newest spectrum moves downwards: partition j meets slot (newest + j) mod n_parts.
#ifndef WT_CONVOLUTION_KERNEL_H
#define WT_CONVOLUTION_KERNEL_H
#include "gain_kernel.h"

#define CONV_TICK 64
#define CONV_BINS CONV_TICK // a block, so that a slice of one partition is 512 bytes in a row
#define CONV_AHEAD 4 // the CPU reads a delay line once for the products of this many chunks
#define CONV_MAX_STAGES 4
#define CONV_MAX_SIZE 8192
#define CONV_MAX_HEAD 1024

typedef struct convolution_stage {
    int size, ticks, first_tap, n_parts;
    long long spectra;      // floats from the plan's start: [n_responses][size / CONV_BINS][n_parts][2 CONV_BINS]
    long long roots;        // floats from the plan's start: [2 size][2] e^(-2 pi i k / 2 size)
    // Floats from the channel's start: the delay line, products [2][size] (CPU: [size / CONV_BINS][CONV_AHEAD]
    // [re CONV_BINS, im CONV_BINS]), and [size], the result now heard.
    int line, sum, heard;
} convolution_stage;

typedef struct convolution_plan {
    int n_stages, head_taps, ring_frames; // ring: a power of two
    int head_stride;                      // of a response in the head: whole fours, at least a tick, four zeros before
                                          // and 16 behind
    int n_inputs, n_outputs, n_feeds;     // feeds: inputs summed into an output, 2 = true stereo
    int n_responses, coupled;             // coupled: channels read each other's lines, so their chunks begin together
    int phase;
    int rest;                 // on a GPU, floats from a channel's start: [CONV_TICK], what is known of the next frames
                              // before they come; channel 0's is followed by their position
    long long head;           // floats from the plan's start: [n_responses][head_stride], at the first tap
    long long response_taps;
    long long channel_floats; // of the state, a channel: ring, then what the stages name
    convolution_stage stages[CONV_MAX_STAGES];
} convolution_plan;

typedef struct convolution_coeffs {
    float dry, dry_slope, wet, wet_slope; // at the start of the quantum, and their change a frame
} convolution_coeffs;

// v: mix, gain_db
WT_SHARED_FN void convolution_design(const convolution_plan *p, const float *v0, const float *v1, convolution_coeffs *k)
{
    (void)p;
    k->dry = 1 - v0[0], k->dry_slope = (v0[0] - v1[0]) / WT_QUANTUM;
    k->wet = v0[0] * wt_db_to_gain(v0[1]);
    k->wet_slope = (v1[0] * wt_db_to_gain(v1[1]) - k->wet) / WT_QUANTUM;
}

// A channel's place in a stage's time at a tick.
typedef struct convolution_moment {
    int at;     // ticks since its chunk was full: 0 .. ticks - 1
    int slice;  // of the spectrum
    int newest; // slot of the newest spectrum
    long long chunk;
} convolution_moment;

// Ticks by which a channel's chunks come early: 0 .. ticks - 1; ticks is a power of two up to 256.
WT_SHARED_FN int convolution_phase(const convolution_plan *p, const convolution_stage *s, int channel)
{
    unsigned bits = p->coupled ? 0 : (unsigned)channel;
    bits = (bits & 0x0f) << 4 | (bits >> 4 & 0x0f);
    bits = (bits & 0x33) << 2 | (bits >> 2 & 0x33);
    bits = (bits & 0x55) << 1 | (bits >> 1 & 0x55);
    return (int)((unsigned)p->phase + bits * (unsigned)s->ticks / 256) & (s->ticks - 1);
}

WT_SHARED_FN convolution_moment convolution_now(const convolution_plan *p, const convolution_stage *s, int channel,
                                                long long tick)
{
    const long long shifted = tick + convolution_phase(p, s, channel);
    convolution_moment m;
    m.at = (int)(shifted & (s->ticks - 1));
    m.slice = (int)(tick & (s->ticks - 1));
    m.chunk = shifted / s->ticks;
    m.newest = s->n_parts - 1 - (int)(m.chunk % s->n_parts);
    return m;
}

WT_SHARED_FN int convolution_input(const convolution_plan *p, int output, int feed)
{
    return p->n_feeds == 2 ? feed : p->n_inputs == 1 ? 0 : output;
}

// Responses of true stereo: LL, LR, RL, RR, the input first.
WT_SHARED_FN int convolution_response(const convolution_plan *p, int output, int feed)
{
    return p->n_feeds == 2 ? 2 * feed + output : p->n_responses == 1 ? 0 : output;
}
#endif
