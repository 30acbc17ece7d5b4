// A convolution's state from one backend to the other. Both keep the same rings, spectra and results; only the sums of
// products that are under way differ:
//
//   GPU   a sum of the chunk at hand, [re size, im size], for the slices whose tick has come
//   CPU   for every slice, CONV_AHEAD sums: those of this chunk and, as far as they are known, of the next ones
//
// To the GPU the CPU's sum of this turn is handed on. To the CPU the sums for later turns are made again from the
// spectra: sum b is that of the partitions that were there on turn 0, turn chunks ago, and only such of them as no
// newer spectrum has written over are in it (b >= turn).
#include "convolution_plan.h"

#include <string.h>

typedef struct place {
    const convolution_plan *p;
    const convolution_stage *s;
    float *state;
    int c, turn;
    convolution_moment now;
} place;

static float *channel_of(const place *at, int c) { return at->state + (size_t)c * (size_t)at->p->channel_floats; }

// [CONV_AHEAD][re CONV_BINS, im CONV_BINS] of a slice, as the CPU keeps them.
static float *sums_of(const place *at, int slice)
{
    return channel_of(at, at->c) + at->s->sum + (size_t)slice * 2 * CONV_BINS * CONV_AHEAD;
}

// The slice's tick has come in the chunk at hand.
static int is_done(const place *at, int slice) { return ((at->now.slice - slice) & (at->s->ticks - 1)) <= at->now.at; }

static void base_sum(const place *at, int slice, int b, float *sum)
{
    const convolution_stage *s = at->s;
    const size_t block = 2 * CONV_BINS, whole = (size_t)s->size * 2 * (size_t)s->n_parts;
    float ends[2] = {0, 0}, *re = sum, *im = sum + CONV_BINS;
    memset(sum, 0, sizeof *sum * block);
    for (int f = 0; f < at->p->n_feeds; f++) {
        const float *line =
            channel_of(at, convolution_input(at->p, at->c, f)) + s->line + (size_t)slice * block * (size_t)s->n_parts;
        const float *spectra = (const float *)at->p + s->spectra +
                               (size_t)convolution_response(at->p, at->c, f) * whole +
                               (size_t)slice * block * (size_t)s->n_parts;
        for (int j = 0; j + b < s->n_parts; j++) {
            const float *x = line + (size_t)((at->now.newest + at->turn + j) % s->n_parts) * block;
            const float *h = spectra + (size_t)(j + b) * block;
            for (int k = 0; k < CONV_BINS; k++) {
                re[k] += x[k] * h[k] - x[CONV_BINS + k] * h[CONV_BINS + k];
                im[k] += x[k] * h[CONV_BINS + k] + x[CONV_BINS + k] * h[k];
            }
            ends[0] += x[0] * h[0], ends[1] += x[CONV_BINS] * h[CONV_BINS];
        }
    }
    if (slice == 0) re[0] = ends[0], im[0] = ends[1]; // two real bins, whose products do not mix
}

static void from_gpu_sums(const place *at, int first)
{
    const size_t half = sizeof(float) * CONV_BINS;
    float gpu[2 * CONV_MAX_SIZE];
    memcpy(gpu, channel_of(at, at->c) + at->s->sum, sizeof(float) * 2 * (size_t)at->s->size);
    for (int slice = 0; slice < at->s->ticks; slice++) {
        const int done = first || is_done(at, slice);
        float *sums = sums_of(at, slice);
        for (int b = done ? at->turn + 1 : at->turn ? at->turn : CONV_AHEAD; b < CONV_AHEAD; b++)
            base_sum(at, slice, b, sums + b * 2 * CONV_BINS);
        if (first || !done) continue;
        memcpy(sums + at->turn * 2 * CONV_BINS, gpu + slice * CONV_BINS, half);
        memcpy(sums + (at->turn * 2 + 1) * CONV_BINS, gpu + at->s->size + slice * CONV_BINS, half);
    }
}

static void to_gpu_sums(const place *at)
{
    const size_t half = sizeof(float) * CONV_BINS;
    float gpu[2 * CONV_MAX_SIZE];
    for (int slice = 0; slice < at->s->ticks; slice++) {
        const float *sum = sums_of(at, slice) + at->turn * 2 * CONV_BINS;
        memcpy(gpu + slice * CONV_BINS, sum, half);
        memcpy(gpu + at->s->size + slice * CONV_BINS, sum + CONV_BINS, half);
    }
    memcpy(channel_of(at, at->c) + at->s->sum, gpu, sizeof(float) * 2 * (size_t)at->s->size);
}

void wt__convolution_adopt(const void *plan, void *state, int64_t position, int from_gpu)
{
    const convolution_plan *p = plan;
    for (int stage = 0; stage < p->n_stages; stage++)
        for (int c = 0; c < p->n_outputs; c++) {
            place at = {.p = p, .s = &p->stages[stage], .state = state, .c = c};
            at.now = convolution_now(p, at.s, c, position / CONV_TICK);
            at.turn = wt__convolution_turn(p, c, at.now.chunk);
            if (from_gpu)
                from_gpu_sums(&at, stage == 0);
            else if (stage > 0)
                to_gpu_sums(&at);
        }
}
