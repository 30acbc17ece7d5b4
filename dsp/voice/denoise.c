// Analysis and synthesis windows differ. With M = half the latency, the analysis window has F frames: it rises over
// F - M as a quarter sine and falls over the last M as a quarter cosine. The synthesis window is 0 but for the last
// 2 M frames, where it is Hann's window divided by the analysis window: their product is Hann's, which adds up to 1
// in hops of M. So the latency is 2 M, and the resolution that of F frames (Mauler and Martin 2007).
//
//     analysis    ___----~~~~~~~~~~~~~--\      F
//     synthesis                    _/~~\_      2 M
#include "denoise_gain.h"
#include "op.h"

#include <warptone/fft.h>
#include <warptone/simd.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 64 };

typedef struct voice {
    denoise_bins bins;
    float *past;  // [frame] the last input
    float *sum;   // [hop] of the window before, still to be added to
    float *ready; // [hop] on its way out
} voice;

struct wt_denoise {
    int channels, hop, frame, at;
    bool learnt;
    float strength;
    denoise_rules rules;
    wt_fft *forward, *inverse;
    float *analysis;  // [frame]
    float *synthesis; // [2 hop]
    float *work;      // [frame]
    float *spectrum;  // [n_bins][2]
    float *memory;    // [channels][floats_of_voice]
    voice voices[MAX_CHANNELS];
};

static wt_status check(const wt_denoise_config *c)
{
    if (c->rate_hz < 8000 || c->rate_hz > 384000)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: rate %d Hz, want 8000..384000", c->rate_hz);
    if (c->channels < 1 || c->channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: %d channels, want 1..%d", c->channels, MAX_CHANNELS);
    if ((unsigned)c->mode > WT_DENOISE_GATE)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: mode %d, want 0..%d", (int)c->mode, WT_DENOISE_GATE);
    if (!(c->latency_ms >= 2 && c->latency_ms <= 100))
        return wt_fail(WT_ERR_BAD_ARG, "denoise: latency %g ms, want 2..100", c->latency_ms);
    if (!(c->frame_ms >= c->latency_ms && c->frame_ms <= 200))
        return wt_fail(WT_ERR_BAD_ARG, "denoise: frame %g ms, want %g..200", c->frame_ms, c->latency_ms);
    if (!(c->max_cut_db >= 1 && c->max_cut_db <= 100))
        return wt_fail(WT_ERR_BAD_ARG, "denoise: cut of %g dB, want 1..100", c->max_cut_db);
    if (!(c->gate_db > 0 && c->gate_db <= 40))
        return wt_fail(WT_ERR_BAD_ARG, "denoise: gate at %g dB, want above 0, up to 40", c->gate_db);
    if (!(c->low_cut_hz <= c->rate_hz / 2.0))
        return wt_fail(WT_ERR_BAD_ARG, "denoise: low cut %g Hz, want %g or less", c->low_cut_hz, c->rate_hz / 2.0);
    return WT_OK;
}

// Times, in seconds: noise 0.164 (half as fast as in the paper's 16 ms frames, whose 0.8 is 0.072: our hops are
// shorter), presence 0.15 (the paper's 0.9), a-priori SNR 0.047, gate 0.05.
denoise_rules wt__denoise_rules(const wt_denoise_config *c, int frame, int hop)
{
    const double hop_s = (double)hop / c->rate_hz;
    return (denoise_rules){
        .mode = (int)c->mode,
        .tracked = !c->stationary,
        .n_bins = frame / 2 + 1,
        .n_low = c->low_cut_hz > 0 ? (int)ceil(c->low_cut_hz * frame / c->rate_hz) : 0,
        .n_start = (int)ceil(0.1 / hop_s),
        .min_gain = (float)pow(10, -c->max_cut_db / 20),
        .gate = (float)pow(10, c->gate_db / 10),
        .noise_keep = (float)exp(-hop_s / 0.164),
        .presence_keep = (float)exp(-hop_s / 0.15),
        .prior_keep = (float)exp(-hop_s / 0.047),
        .mask_keep = (float)exp(-hop_s / 0.05),
    };
}

double wt__denoise_analysis(int frame, int hop, int k)
{
    const int rise = frame - hop;
    return k < rise ? sin(M_PI / 2 * (k + 0.5) / rise) : cos(M_PI / 2 * (k - rise + 0.5) / hop);
}

double wt__denoise_synthesis(int frame, int hop, int k)
{
    const int n = 2 * hop;
    return pow(sin(M_PI * (k + 0.5) / n), 2) / (float)wt__denoise_analysis(frame, hop, frame - n + k);
}

static wt_status take_memory(wt_denoise *d)
{
    const size_t frame = (size_t)d->frame, hop = (size_t)d->hop, n_bins = (size_t)d->rules.n_bins;
    const size_t voice_floats = frame + 2 * hop + 5 * n_bins;
    d->analysis = calloc(frame, sizeof(float));
    d->synthesis = calloc(2 * hop, sizeof(float));
    d->work = calloc(frame, sizeof(float));
    d->spectrum = calloc(2 * n_bins, sizeof(float));
    d->memory = calloc((size_t)d->channels * voice_floats, sizeof(float));
    if (!d->analysis || !d->synthesis || !d->work || !d->spectrum || !d->memory)
        return wt_fail(WT_ERR_NO_MEMORY, "denoise: %d channels of %d frames", d->channels, d->frame);
    for (int c = 0; c < d->channels; c++) {
        voice *v = &d->voices[c];
        v->past = d->memory + (size_t)c * voice_floats;
        v->sum = v->past + frame;
        v->ready = v->sum + hop;
        v->bins = (denoise_bins){.power = v->ready + hop};
        v->bins.noise = v->bins.power + n_bins;
        v->bins.presence = v->bins.noise + n_bins;
        v->bins.clean = v->bins.presence + n_bins;
        v->bins.gain = v->bins.clean + n_bins;
    }
    wt_status status =
        wt_fft_create(NULL, &(wt_fft_config){.n = d->frame, .kind = WT_FFT_REAL_TO_COMPLEX}, &d->forward);
    if (status) return status;
    return wt_fft_create(NULL, &(wt_fft_config){.n = d->frame, .kind = WT_FFT_COMPLEX_TO_REAL}, &d->inverse);
}

wt_status wt_denoise_create(const wt_denoise_config *config, wt_denoise **denoise)
{
    *denoise = NULL;
    wt_denoise_config c = *config;
    c.rate_hz = c.rate_hz ? c.rate_hz : 48000;
    c.channels = c.channels ? c.channels : 2;
    c.latency_ms = wt__op_setting(c.latency_ms, 10);
    c.frame_ms = wt__op_setting(c.frame_ms, 2 * c.latency_ms);
    c.max_cut_db = wt__op_setting(c.max_cut_db, 30);
    c.gate_db = wt__op_setting(c.gate_db, 6);
    c.low_cut_hz = wt__op_setting(c.low_cut_hz, 100);
    wt_status status = check(&c);
    if (status) return status;

    wt_denoise *d = calloc(1, sizeof *d);
    if (!d) return wt_fail(WT_ERR_NO_MEMORY, "denoise: handle");
    d->channels = c.channels;
    d->hop = (int)lround(c.latency_ms * c.rate_hz / 2000);
    d->frame = 2 * wt_fft_good_size((int)fmax(lround(c.frame_ms * c.rate_hz / 2000), d->hop));
    d->strength = 1;
    d->rules = wt__denoise_rules(&c, d->frame, d->hop);
    status = take_memory(d);
    if (status) goto fail;
    for (int k = 0; k < d->frame; k++) d->analysis[k] = (float)wt__denoise_analysis(d->frame, d->hop, k);
    for (int k = 0; k < 2 * d->hop; k++) d->synthesis[k] = (float)wt__denoise_synthesis(d->frame, d->hop, k);
    wt_denoise_reset(d);
    *denoise = d;
    return WT_OK;

fail:
    wt_denoise_destroy(d);
    return status;
}

void wt_denoise_destroy(wt_denoise *d)
{
    if (!d) return;
    wt_fft_destroy(d->forward);
    wt_fft_destroy(d->inverse);
    free(d->analysis);
    free(d->synthesis);
    free(d->work);
    free(d->spectrum);
    free(d->memory);
    free(d);
}

int wt_denoise_latency_frames(const wt_denoise *d) { return 2 * d->hop; }

int wt_denoise_window_frames(const wt_denoise *d) { return d->frame; }

const denoise_rules *wt__denoise_rules_of(const wt_denoise *d) { return &d->rules; }

const float *wt__denoise_noise_of(const wt_denoise *d) { return d->voices[0].bins.noise; }

WT_RT void wt_denoise_reset(wt_denoise *d)
{
    const size_t n_bins = (size_t)d->rules.n_bins;
    d->at = 0;
    for (int c = 0; c < d->channels; c++) {
        voice *v = &d->voices[c];
        memset(v->past, 0, sizeof(float) * ((size_t)d->frame + 2 * (size_t)d->hop)); // past, sum, ready
        memset(v->bins.clean, 0, sizeof(float) * n_bins);
        for (size_t k = 0; k < n_bins; k++) v->bins.presence[k] = 0.5f;
        v->bins.n_heard = d->learnt ? d->rules.n_start : 0;
        if (!d->learnt) memset(v->bins.noise, 0, sizeof(float) * n_bins);
    }
}

WT_RT void wt_denoise_set_strength(wt_denoise *d, double strength) { d->strength = (float)fmin(fmax(strength, 0), 1); }

WT_CLONES static void window(const float *in, const float *weights, float *out, int n)
{
    for (int k = 0; k < n; k++) out[k] = in[k] * weights[k];
}

WT_CLONES static float powers(const float *spectrum, float *power, int n_bins)
{
    float sum = 0;
    for (int k = 0; k < n_bins; k++) {
        power[k] = spectrum[2 * k] * spectrum[2 * k] + spectrum[2 * k + 1] * spectrum[2 * k + 1];
        sum += power[k];
    }
    return sum;
}

WT_CLONES static void turn_down(float *spectrum, const float *gain, float strength, int n_bins)
{
    for (int k = 0; k < n_bins; k++) {
        const float g = 1 - strength * (1 - gain[k]);
        spectrum[2 * k] *= g;
        spectrum[2 * k + 1] *= g;
    }
}

wt_status wt__denoise_check_noise(const float *noise, int n_frames, int least)
{
    if (n_frames < least)
        return wt_fail(WT_ERR_LENGTH, "denoise: %d frames of noise, want %d or more", n_frames, least);
    for (int k = 0; k < n_frames; k++)
        if (!(fabsf(noise[k]) <= DENOISE_LOUDEST))
            return wt_fail(WT_ERR_BAD_ARG, "denoise: frame %d of the noise is not finite or beyond 1e9", k);
    return WT_OK;
}

wt_status wt_denoise_learn(wt_denoise *d, const float *const *noise, int n_frames)
{
    const int n_bins = d->rules.n_bins, n_spectra = (n_frames - d->frame) / d->hop + 1;
    wt_status status = WT_OK;
    for (int c = 0; c < d->channels && !status; c++) status = wt__denoise_check_noise(noise[c], n_frames, d->frame);
    if (status) return status;
    for (int c = 0; c < d->channels; c++) {
        denoise_bins *b = &d->voices[c].bins;
        memset(b->noise, 0, sizeof(float) * (size_t)n_bins);
        for (int t = 0; t < n_spectra; t++) {
            window(noise[c] + (size_t)t * (size_t)d->hop, d->analysis, d->work, d->frame);
            wt_fft_run(d->forward, d->work, d->spectrum); // fails only on a plan without tables
            powers(d->spectrum, b->power, n_bins);
            for (int k = 0; k < n_bins; k++) b->noise[k] += b->power[k] / (float)n_spectra;
        }
        b->n_heard = d->rules.n_start;
    }
    d->learnt = true;
    return WT_OK;
}

WT_RT static void transform(wt_denoise *d, voice *v)
{
    const int n_bins = d->rules.n_bins, hop = d->hop, tail = d->frame - 2 * hop;
    window(v->past, d->analysis, d->work, d->frame);
    wt_fft_run(d->forward, d->work, d->spectrum);
    const bool heard = powers(d->spectrum, v->bins.power, n_bins) > 1e-20f;
    if (heard && (d->rules.tracked || d->learnt)) {
        wt__denoise_gains(&d->rules, &v->bins);
        turn_down(d->spectrum, v->bins.gain, d->strength, n_bins);
    }
    wt_fft_run(d->inverse, d->spectrum, d->work);
    window(d->work + tail, d->synthesis, d->work + tail, 2 * hop);
    for (int k = 0; k < hop; k++) {
        v->ready[k] = v->sum[k] + d->work[tail + k];
        v->sum[k] = d->work[tail + hop + k];
    }
    memmove(v->past, v->past + hop, sizeof(float) * (size_t)(d->frame - hop));
}

WT_RT void wt_denoise_process(wt_denoise *d, const float *const *in, float *const *out, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        const int room = d->hop - d->at, n = n_frames - done < room ? n_frames - done : room;
        for (int c = 0; c < d->channels; c++) {
            voice *v = &d->voices[c];
            float *present = v->past + d->frame - d->hop + d->at;
            for (int k = 0; k < n; k++) {
                const float x = in[c][done + k];
                present[k] = fabsf(x) <= DENOISE_LOUDEST ? x : 0;
            }
            memcpy(out[c] + done, v->ready + d->at, sizeof(float) * (size_t)n);
        }
        d->at += n;
        done += n;
        if (d->at < d->hop) continue;
        for (int c = 0; c < d->channels; c++) transform(d, &d->voices[c]);
        d->at = 0;
    }
}
