// A tile of as many frames as a vector has lanes. Lengths that dsp/fft/fft_frames.h or fft_whole.h takes are
// transformed at once; of others each frame by itself in the first-level cache, and the tile of their powers is turned.
// Either way one vector holds one bin of all its frames, and a band is a short sum of vectors over the bins its
// triangle touches (2018 of 128 * 1025 weights are not zero). Logarithms are taken of whole vectors too. The
// spectrogram is never stored.
//
// A second pass, over the bands alone, limits them once a signal's largest value is known.

#include "mel_plan.h"

#include "db_internal.h"
#include "lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { AT_ONCE = 4 }; // tiles that a thread takes: lines of the output that two share are one thread's then

// ---- creating

wt_mel_config wt_mel_whisper(int n_mels, int64_t n_samples)
{
    return (wt_mel_config){.n_samples = n_samples,
                           .stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT, .precise = true},
                           .bank = {.rate_hz = 16000, .n_mels = n_mels},
                           .scale = WT_MEL_WHISPER,
                           .drop_last = true,
                           .float_on_gpu = true};
}

static wt_status resolve(wt_mel *m)
{
    wt_mel_config *c = &m->config;
    if (!c->n_signals) c->n_signals = 1;
    if (!c->bank.n_mels) c->bank.n_mels = 128;
    if (!c->power) c->power = 2;
    if (c->n_samples < 1)
        return wt_fail(WT_ERR_BAD_ARG, "mel: a signal of %lld samples, want 1 or more", (long long)c->n_samples);
    if (c->n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "mel: %d signals, want 1 or more", c->n_signals);
    if (c->bank.n_mels < 1 || c->bank.n_mels > WT_MEL_MAX_MELS)
        return wt_fail(WT_ERR_BAD_ARG, "mel: %d bands, want 1..%d", c->bank.n_mels, WT_MEL_MAX_MELS);
    if (!(c->power > 0 && isfinite(c->power)))
        return wt_fail(WT_ERR_BAD_ARG, "mel: power %g, want more than 0", c->power);
    if ((unsigned)c->scale > WT_MEL_WHISPER)
        return wt_fail(WT_ERR_BAD_ARG, "mel: scale %d, want 0..%d", (int)c->scale, WT_MEL_WHISPER);
    if (c->scale != WT_MEL_DB) return WT_OK;
    if (c->db.reference == WT_DB_REF_MEDIAN)
        return wt_fail(WT_ERR_BAD_ARG, "mel: decibels of the median, want a value or the maximum");
    return wt__db_resolve("mel", 1e-10, &c->db);
}

static void resolve_scale(wt_mel *m)
{
    const wt_mel_config *c = &m->config;
    const bool whisper = c->scale == WT_MEL_WHISPER, to_max = c->db.reference == WT_DB_REF_MAX;
    m->gain = 1;
    if (c->scale == WT_MEL_LINEAR) return;
    m->logarithm = true;
    m->amin = whisper ? 1e-10f : (float)c->db.amin;
    m->scale = (float)(whisper ? log10(2) : 10 * log10(2));
    m->range = whisper ? 8 : c->db.no_top ? HUGE_VALF : (float)c->db.top_db;
    m->finish = whisper || !c->db.no_top || to_max;
    if (whisper) m->gain = 0.25f, m->offset = 1;
    if (whisper || to_max)
        m->relative = to_max && !whisper;
    else
        m->shift = (float)(-10 * log10(fmax(fabs(c->db.ref), c->db.amin)));
}

static wt_status take_bands(wt_mel *m, const double *bank)
{
    const int n_mels = m->config.bank.n_mels;
    m->begins = calloc((size_t)n_mels, sizeof *m->begins);
    m->lengths = calloc((size_t)n_mels, sizeof *m->lengths);
    m->weights = malloc((size_t)n_mels * (size_t)m->bins * sizeof *m->weights);
    if (!m->begins || !m->lengths || !m->weights) return wt_fail(WT_ERR_NO_MEMORY, "mel: %d bands", n_mels);
    float *to = m->weights;
    for (int b = 0; b < n_mels; b++, bank += m->bins) {
        int begin = 0, end = m->bins;
        while (end > 0 && bank[end - 1] == 0) end--;
        while (begin < end && bank[begin] == 0) begin++;
        m->begins[b] = begin, m->lengths[b] = end - begin;
        for (int k = begin; k < end; k++) *to++ = (float)bank[k];
    }
    return WT_OK;
}

static wt_status make_bands(wt_mel *m)
{
    wt_mel_config *c = &m->config;
    const size_t count = (size_t)c->bank.n_mels * (size_t)m->bins;
    double *bank = malloc(count * sizeof *bank);
    if (!bank) return wt_fail(WT_ERR_NO_MEMORY, "mel: %d bands", c->bank.n_mels);
    wt_status status = WT_OK;
    c->bank.n_fft = wt__stft_config(m->slots[0].stft)->n_fft;
    if (c->weights)
        for (size_t i = 0; i < count; i++) bank[i] = c->weights[i];
    else
        status = wt_mel_bank_fill(&c->bank, bank);
    if (!status) status = take_bands(m, bank);
    c->weights = NULL; // copied
    free(bank);
    return status;
}

// Of as many frames as there are lanes, in whole hops.
static int64_t tile_samples(const wt_mel *m) { return (int64_t)m->frames->columns * m->frames->hop; }

static wt_status make_slots(wt_mel *m)
{
    const size_t lanes = (size_t)m->lanes;
    const wt_stft *stft = m->slots[0].stft;
    const int n_fft = wt__stft_config(stft)->n_fft, hop = wt__stft_config(stft)->hop;
    wt_status made = WT_OK;
    if (!m->config.stft.precise) made = wt__fft_frames_create(n_fft, hop, m->lanes, wt__stft_window(stft), &m->frames);
    if (made) return made;
    m->tile_floats = m->frames ? wt__fft_frames_floats(m->frames, m->lanes) : lanes * m->row;
    const size_t floats = m->tile_floats + ((size_t)m->bins + (size_t)m->config.bank.n_mels) * lanes;
    for (int i = 0; i < m->n_slots; i++) {
        wt_status status = m->slots[i].stft ? WT_OK : wt_stft_create(&m->config.stft, &m->slots[i].stft);
        if (status) return status;
        m->slots[i].scratch = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
        if (!m->slots[i].scratch) return wt_fail(WT_ERR_NO_MEMORY, "mel: %zu floats of scratch", floats);
        memset(m->slots[i].scratch, 0, floats * sizeof(float));
        if (m->frames) m->slots[i].edge = malloc((size_t)tile_samples(m) * sizeof(float));
        if (m->frames && !m->slots[i].edge) return wt_fail(WT_ERR_NO_MEMORY, "mel: samples of %d frames", m->lanes);
    }
    return WT_OK;
}

static wt_status count_frames(wt_mel *m)
{
    wt_status status = wt_stft_create(&m->config.stft, &m->slots[0].stft);
    if (status) return status;
    const wt_stft *stft = m->slots[0].stft;
    m->bins = wt_stft_bins(stft);
    m->row = wt__fft_padded((size_t)m->bins);
    m->lanes = m->config.stft.precise ? WT__FFT64_FRAMES : wt__stft_kernels(stft)->lanes;
    m->n_frames = wt_stft_frames(stft, m->config.n_samples) - m->config.drop_last;
    m->n_lines = (int64_t)m->config.n_signals * wt__stft_config(stft)->channels;
    m->n_tiles = (m->n_frames + m->lanes - 1) / m->lanes;
    if (m->n_frames < 1 || m->n_frames > INT32_MAX / 2)
        return wt_fail(m->n_frames < 1 ? WT_ERR_LENGTH : WT_ERR_BAD_ARG,
                       "mel: %lld frames of %lld samples, want 1..%d", (long long)m->n_frames,
                       (long long)m->config.n_samples, INT32_MAX / 2);
    return WT_OK;
}

wt_status wt__mel_create(wt_device *device, const wt_mel_config *config, const float *matrix, int n_out, wt_mel **mel)
{
    *mel = NULL;
    wt_mel *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "mel: handle");
    m->config = *config;
    m->device = device;
    wt_status status = resolve(m);
    if (status) goto fail;
    resolve_scale(m);
    m->n_slots = wt__op_slots(device, INT64_MAX);
    m->slots = calloc((size_t)m->n_slots, sizeof *m->slots);
    status = m->slots ? count_frames(m) : wt_fail(WT_ERR_NO_MEMORY, "mel: %d threads", m->n_slots);
    if (!status) status = make_bands(m);
    if (!status) status = make_slots(m);
    if (!status && wt__op_on_gpu(device)) status = wt__mel_cuda_create(m, matrix, n_out, &m->cuda);
    if (status) goto fail;
    m->config.stft.window.samples = NULL; // copied
    *mel = m;
    return WT_OK;

fail:
    wt_mel_destroy(m);
    return status;
}

wt_status wt_mel_create(wt_device *device, const wt_mel_config *config, wt_mel **mel)
{
    return wt__mel_create(device, config, NULL, 0, mel);
}

void wt_mel_destroy(wt_mel *mel)
{
    if (!mel) return;
    wt__mel_cuda_destroy(mel->cuda);
    for (int i = 0; mel->slots && i < mel->n_slots; i++) {
        wt_stft_destroy(mel->slots[i].stft);
        free(mel->slots[i].scratch);
        free(mel->slots[i].edge);
    }
    free(mel->slots);
    free(mel->frames);
    free(mel->begins);
    free(mel->lengths);
    free(mel->weights);
    free(mel);
}

int wt_mel_bands(const wt_mel *mel) { return mel->config.bank.n_mels; }

int64_t wt_mel_frames(const wt_mel *mel) { return mel->n_frames; }

// ---- one tile

// Squares to another power.
WT_CLONES static void raise(float *squares, int bins, float power)
{
    if (power == 1)
        for (int k = 0; k < bins; k++) squares[k] = sqrtf(squares[k]);
    else if (power != 2)
        for (int k = 0; k < bins; k++) squares[k] = powf(squares[k], power / 2);
}

// turned [bins][stride] to sums [n_mels][stride], of as many frames as a vector has floats, in two sums, so that one
// does not wait for the other. Where they will be written, `out`, comes to the first-level cache meanwhile.
#define ADD_BIN(vector, stride, at, to)                                                                                \
    {                                                                                                                  \
        vector bin;                                                                                                    \
        memcpy(&bin, from + (size_t)(at) * (stride), sizeof bin);                                                      \
        to += weights[at] * bin;                                                                                       \
    }
#define SUM_BANDS(vector, stride)                                                                                      \
    for (int b = 0; b < n_mels; b++) {                                                                                 \
        vector sum = {0}, odd = {0};                                                                                   \
        __builtin_prefetch(out + b * step, 1, 3);                                                                      \
        __builtin_prefetch(out + b * step + sizeof sum / sizeof(float) - 1, 1, 3);                                     \
        const float *from = turned + (size_t)m->begins[b] * (stride);                                                  \
        int left = m->lengths[b];                                                                                      \
        for (; left >= 4; left -= 4, weights += 4, from += 4 * (stride)) {                                             \
            ADD_BIN(vector, stride, 0, sum)                                                                            \
            ADD_BIN(vector, stride, 1, odd)                                                                            \
            ADD_BIN(vector, stride, 2, sum)                                                                            \
            ADD_BIN(vector, stride, 3, odd)                                                                            \
        }                                                                                                              \
        for (; left > 0; left--, weights++, from += (stride)) ADD_BIN(vector, stride, 0, sum)                          \
        sum += odd;                                                                                                    \
        memcpy(sums + (size_t)b * (stride), &sum, sizeof sum);                                                         \
    }

// `lanes` of m->lanes, a vector.
WT_CLONES static void sum_lanes(const wt_mel *m, int lanes, const float *turned, const float *out, float *sums)
{
    const float *weights = m->weights;
    const int n_mels = m->config.bank.n_mels;
    const int64_t step = m->config.frames_first ? m->lanes : m->n_frames;
    if (lanes == 16) {
        SUM_BANDS(wt_f32x16, 16)
    } else if (lanes == 8 && m->lanes == 16) {
        SUM_BANDS(wt_f32x8, 16)
    } else if (lanes == 8) {
        SUM_BANDS(wt_f32x8, 8)
    } else {
        SUM_BANDS(wt_f32x4, 4)
    }
}

// The same of precise powers, whose digits sums in float would not keep.
WT_CLONES static void sum_precise(const wt_mel *m, const float *turned, float *sums)
{
    const float *weights = m->weights;
    for (int b = 0; b < m->config.bank.n_mels; b++, sums += WT__FFT64_FRAMES) {
        double sum[WT__FFT64_FRAMES] = {0};
        const float *from = turned + (size_t)m->begins[b] * WT__FFT64_FRAMES;
        for (int k = 0; k < m->lengths[b]; k++, weights++, from += WT__FFT64_FRAMES)
            for (int f = 0; f < WT__FFT64_FRAMES; f++) sum[f] += (double)*weights * from[f];
        for (int f = 0; f < WT__FFT64_FRAMES; f++) sums[f] = (float)sum[f];
    }
}

static void sum_bands(const wt_mel *m, const float *turned, const float *out, float *sums)
{
    if (m->config.stft.precise) {
        sum_precise(m, turned, sums);
        return;
    }
    const int width = wt_simd_floats(), lanes = m->lanes < width ? m->lanes : width;
    for (int i = 0; i < m->lanes; i += lanes) sum_lanes(m, lanes, turned + i, out + i, sums + i);
}

static void write_tile(const wt_mel *m, const float *sums, int64_t t, int count, float *out)
{
    const int n_mels = m->config.bank.n_mels;
    const wt__fft_kernels *kernels = wt__stft_kernels(m->slots[0].stft);
    if (m->config.frames_first && m->lanes == kernels->lanes && count == m->lanes) {
        kernels->rows_out(sums, sums, n_mels, out + t * n_mels, n_mels, false);
        return;
    }
    if (m->config.frames_first && m->lanes == WT__LANES) {
        wt__lanes_turn_back(sums, n_mels, count, out + t * n_mels);
        return;
    }
    for (int b = 0; b < n_mels; b++, sums += m->lanes) {
        float *band = out + b * m->n_frames + t;
        if (!m->config.frames_first && count == 16)
            memcpy(band, sums, 16 * sizeof(float)); // one instruction
        else if (!m->config.frames_first && count == 8)
            memcpy(band, sums, 8 * sizeof(float)); // the same
        else if (!m->config.frames_first)
            memcpy(band, sums, (size_t)count * sizeof(float));
        for (int i = 0; i < count && m->config.frames_first; i++) out[(t + i) * n_mels + b] = sums[i];
    }
}

// All at once, lane by lane.
WT_RT static void tile_at_once(const wt_mel *m, const wt__mel_slot *slot, const float *pcm, int64_t t, float *turned)
{
    const wt_stft_config *c = wt__stft_config(slot->stft);
    const int64_t n = m->config.n_samples, samples = tile_samples(m), ahead = (int64_t)m->lanes * c->hop;
    const int64_t margin = c->no_center ? 0 : c->n_fft / 2, begin = t * c->hop - margin, end = begin + samples;
    const bool inside = begin >= 0 && end <= n;
    const float *x = inside ? pcm + begin : slot->edge, *next = inside && end + ahead <= n ? pcm + end : x;
    if (!inside) wt__stft_pad_samples(slot->stft, pcm, n, begin, samples, slot->edge);
    wt__stft_kernels(slot->stft)->frames_powers(m->frames, x, next, slot->scratch, turned);
}

WT_RT static void tile_by_frames(const wt_mel *m, const wt__mel_slot *slot, const float *pcm, int64_t t, int count,
                                 float *turned)
{
    for (int i = 0; i < count; i++)
        wt__stft_powers(slot->stft, pcm, m->config.n_samples, t + i, slot->scratch + (size_t)i * m->row);
    wt__stft_kernels(slot->stft)->rows_in(slot->scratch, (ptrdiff_t)m->row, m->bins, turned, turned, false);
}

WT_RT static void run_tile(const wt_mel *m, const wt__mel_slot *slot, const float *pcm, int64_t t, float *out)
{
    const int lanes = m->lanes, n_mels = m->config.bank.n_mels;
    const int count = m->n_frames - t < lanes ? (int)(m->n_frames - t) : lanes;
    float *turned = slot->scratch + m->tile_floats, *sums = turned + (size_t)m->bins * (size_t)lanes;
    if (m->config.stft.precise) {
        wt__stft_precise_powers(slot->stft, pcm, m->config.n_samples, t, count, turned);
    } else {
        if (m->frames)
            tile_at_once(m, slot, pcm, t, turned);
        else
            tile_by_frames(m, slot, pcm, t, count, turned);
    }
    raise(turned, m->bins * lanes, (float)m->config.power);
    sum_bands(m, turned, out + (m->config.frames_first ? t * n_mels : t), sums);
    if (m->logarithm) wt__db_log(sums, (int64_t)n_mels * lanes, m->amin, m->scale, m->shift, sums);
    write_tile(m, sums, t, count, out);
}

// ---- all of it

typedef struct call {
    wt_mel *mel;
    const float *pcm;
    float *out;
    int n_slots;
} call;

WT_RT static void run_slot(const void *args, int slot)
{
    const call *c = args;
    wt_mel *m = c->mel;
    int64_t tile, end;
    while (wt__op_take(&m->share, m->n_tiles * m->n_lines, AT_ONCE, c->n_slots, &tile, &end))
        for (; tile < end; tile++) {
            const int64_t line = tile / m->n_tiles;
            run_tile(m, &m->slots[slot], c->pcm + line * m->config.n_samples, tile % m->n_tiles * m->lanes,
                     c->out + line * m->n_frames * m->config.bank.n_mels);
        }
}

WT_RT static void finish_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_mel *m = c->mel;
    const int64_t count = m->n_lines / m->config.n_signals * m->n_frames * m->config.bank.n_mels;
    float *x = c->out + signal * count, peak = wt__db_peak(x, count);
    wt__db_limit(x, count, peak - m->range, m->gain, m->offset - m->relative * peak);
}

WT_RT void wt_mel_run(wt_mel *mel, const float *pcm, float *out)
{
    const call c = {mel, pcm, out, 1};
    run_slot(&c, 0);
    for (int signal = 0; mel->finish && signal < mel->config.n_signals; signal++) finish_signal(&c, signal);
}

wt_status wt__mel_enqueue(wt_mel *mel, wt_stream *stream, uintptr_t pcm, uintptr_t bands, uintptr_t product)
{
    if (mel->cuda) return wt__mel_cuda_enqueue(mel, stream, pcm, bands, product);
    const call c = {mel, (const float *)pcm, (float *)bands, mel->n_slots};
    wt_status status = wt_stream_run(stream, run_slot, &c, sizeof c, c.n_slots);
    if (!status && mel->finish) status = wt_stream_run(stream, finish_signal, &c, sizeof c, mel->config.n_signals);
    return status;
}

wt_status wt_mel_enqueue(wt_mel *mel, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset, wt_buffer *out,
                         size_t out_offset)
{
    const int64_t floats = mel->n_lines * mel->n_frames * mel->config.bank.n_mels;
    wt_status status = wt__op_stream("mel", mel->device, stream);
    if (!status) status = wt__op_range("mel", "pcm", pcm, pcm_offset, (size_t)(mel->n_lines * mel->config.n_samples));
    if (!status) status = wt__op_range("mel", "out", out, out_offset, (size_t)floats);
    if (status) return status;
    return wt__mel_enqueue(mel, stream, wt_buffer_address(pcm) + pcm_offset, wt_buffer_address(out) + out_offset, 0);
}
