/// The rows of node_table.c and what plan() functions share.
#ifndef WT_NODE_TYPES_H
#define WT_NODE_TYPES_H

#include <warptone/node.h>
#include "biquad_kernel.h"
#include "chain_kernel.h"

/// Zeroed plan of `bytes` (the struct and its tables). Errors: WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__plan_alloc(wt_node_plan *plan, size_t bytes);

void wt__biquad_run(const float *in, float *out, int stride, int channels, int n_frames, const biquad_coeffs *k,
                    float (*s)[2]);

enum { WT_FIR_RUN = 64 };
/// y[n] = sum over k of h[k] x[n - k] for WT_FIR_RUN frames; x[-(n_taps - 1)] .. x[WT_FIR_RUN - 1] must be readable.
/// Even and odd taps are summed apart, for speed; a sample's sum has the same order wherever it stands.
void wt__fir_run(const float *x, const float *h, int n_taps, float *y);

/// Loudness weighting, channel weights and step of a meter. Errors: WT_ERR_BAD_ARG (rate below 4 kHz).
struct meter_plan;
WT_CHECKED wt_status wt__meter_weighting(struct meter_plan *p, double rate_hz, int channels);

extern const wt_node_type wt__node_agc;
extern const wt_node_type wt__node_align;
extern const wt_node_type wt__node_biquad;
extern const wt_node_type wt__node_chorus;
extern const wt_node_type wt__node_compressor;
extern const wt_node_type wt__node_convolution;
extern const wt_node_type wt__node_cqt;
extern const wt_node_type wt__node_crossover;
extern const wt_node_type wt__node_cuda;
extern const wt_node_type wt__node_dc_block;
extern const wt_node_type wt__node_deesser;
extern const wt_node_type wt__node_delay;
extern const wt_node_type wt__node_denoise;
extern const wt_node_type wt__node_echo_cancel;
extern const wt_node_type wt__node_expander;
extern const wt_node_type wt__node_fir;
extern const wt_node_type wt__node_flanger;
extern const wt_node_type wt__node_gain;
extern const wt_node_type wt__node_gate;
extern const wt_node_type wt__node_hpss;
extern const wt_node_type wt__node_leveler;
extern const wt_node_type wt__node_limiter;
extern const wt_node_type wt__node_meter;
extern const wt_node_type wt__node_mix;
extern const wt_node_type wt__node_mono;
extern const wt_node_type wt__node_pan;
extern const wt_node_type wt__node_pitch;
extern const wt_node_type wt__node_pitch_shift;
extern const wt_node_type wt__node_reverb;
extern const wt_node_type wt__node_saturation;
extern const wt_node_type wt__node_spectrum;
extern const wt_node_type wt__node_vad;

#endif
