// vad: the voice activity of dsp/voice/vad.c as a node: it shows, and mutes where asked. Channels are decided each for
// itself; one that speaks opens all, so that a picture in stereo stays where it is. Opening takes a window, closing
// release_ms.
#ifndef WT_NODE_VAD_KERNEL_H
#define WT_NODE_VAD_KERNEL_H
#include "fastmath_kernel.h"
#include "gain_kernel.h"
#include "vad_kernel.h"

enum { VAD_ENTER, VAD_LEAVE, VAD_MIN, VAD_HANGOVER, VAD_MUTE, VAD_RELEASE, VAD_N_PARAMS };
enum { VAD_SPEECH, VAD_LEVEL_DB, VAD_FLOOR_DB, VAD_N_READINGS };

typedef struct node_vad_plan {
    double high_pole;
    int window, channels;
    int lookahead, ring_frames; // ring: a power of two; 0 = none
} node_vad_plan;

typedef struct node_vad_coeffs {
    vad_rules rules;
    float closed, slope; // gain while nobody speaks, its change a frame
    float release;       // part that a window closes
    float unused;
} node_vad_coeffs;

typedef struct node_vad_state {
    vad_count count;
    float begin, end; // how open at both ends of the present window
    vad_voice voices[WT_MAX_CHANNELS];
    float ring[16]; // [channels][ring_frames] where there is look-ahead
} node_vad_state;

WT_SHARED_FN void node_vad_design(const node_vad_plan *p, const float *v0, const float *v1, node_vad_coeffs *k)
{
    (void)p;
    k->rules.enter = pow(10.0, (double)v1[VAD_ENTER] / 10);
    k->rules.leave = pow(10.0, (double)wt_min(v1[VAD_LEAVE], v1[VAD_ENTER]) / 10);
    k->rules.min_power = pow(10.0, (double)v1[VAD_MIN] / 10);
    k->rules.hangover = (int)(v1[VAD_HANGOVER] / 10.0f + 0.5f);
    k->closed = wt_db_to_gain(-v0[VAD_MUTE]);
    k->slope = (wt_db_to_gain(-v1[VAD_MUTE]) - k->closed) / WT_QUANTUM;
    k->release = wt_min(10.0f / v1[VAD_RELEASE], 1.0f);
}

// All channels' windows have ended.
WT_SHARED_FN void node_vad_end_window(const node_vad_plan *p, const node_vad_coeffs *k, node_vad_state *s,
                                      float *readings)
{
    int speech = 0;
    const vad_voice *loudest = s->voices;
    for (int c = 0; c < p->channels; c++) {
        speech |= s->voices[c].active;
        if (s->voices[c].power > loudest->power) loudest = &s->voices[c];
    }
    vad_count_on(&s->count);
    s->begin = s->end;
    s->end = speech ? 1.0f : wt_max(s->end - k->release, 0.0f);
    readings[VAD_SPEECH] = (float)speech;
    readings[VAD_LEVEL_DB] = loudest->power > 1e-12 ? (float)(10 * log10(loudest->power)) : -120.0f;
    readings[VAD_FLOOR_DB] = loudest->floor > 1e-12 ? (float)(10 * log10(loudest->floor)) : -120.0f;
}

// Gain of a frame at that position, frame `at` of its window.
WT_SHARED_FN float node_vad_gain(const node_vad_plan *p, const node_vad_coeffs *k, const node_vad_state *s,
                                 long long position, int at)
{
    const float open = s->begin + (s->end - s->begin) * ((float)at / (float)p->window);
    return 1.0f - (1.0f - (k->closed + k->slope * (float)(position & (WT_QUANTUM - 1)))) * (1.0f - open);
}
#endif
