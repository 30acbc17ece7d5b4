// The cosine transform is a matrix with the lifter in it: coefficient k = sum over bands of matrix[m][k] dB[m]. On a
// GPU it shares a kernel with the limit below the peak; on the CPU vectors run along the frames.

#include <warptone/mfcc.h>

#include "mel_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { FRAMES = 64 }; // a tile of frames: one row of 128 bands stays in the first-level cache

static const double PI = 3.14159265358979323846;

struct wt_mfcc {
    wt_mfcc_config config;
    wt_mel *mel;
    float *matrix;   // [n_mels][n_mfcc]
    float *bands;    // CPU: [n_lines][n_mels][n_frames]
    wt_buffer *work; // the same on a device
};

// ---- matrices

// Factor of x[n] in coefficient k of an orthonormal transform of `type`, or of scipy's unscaled one.
static double cosine(int type, bool norm, int k, int n, int count)
{
    if (type == 1) {
        const bool end_k = k == 0 || k == count - 1, end_n = n == 0 || n == count - 1;
        double x = cos(PI * k * n / (count - 1)) * (end_n ? 1 : 2);
        return norm ? x * (end_n ? sqrt(2) : 1) * 0.5 * sqrt((end_k ? 1.0 : 2.0) / (count - 1)) : x;
    }
    if (type == 3) return norm ? cosine(2, true, n, k, count) : cos(PI * (2 * k + 1) * n / (2.0 * count)) * (n ? 2 : 1);
    double x = 2 * cos(PI * k * (2 * n + 1) / (2.0 * count));
    return norm ? x * sqrt(1 / ((k ? 2.0 : 4.0) * count)) : x;
}

// The inverse transform: the orthonormal ones are turned, the others each other's, scaled.
static double inverse_cosine(int type, bool norm, int k, int n, int count)
{
    if (norm) return cosine(type, true, n, k, count);
    return type == 1 ? cosine(1, false, k, n, count) / (2.0 * (count - 1))
                     : cosine(5 - type, false, k, n, count) / (2.0 * count);
}

static double lift(double lifter, int k)
{
    return lifter > 0 ? 1 + lifter / 2 * sin(PI * (k + 1) / lifter) : 1;
}

static wt_status resolve(wt_mfcc_config *c)
{
    if (!c->n_mfcc) c->n_mfcc = 20;
    if (!c->dct_type) c->dct_type = 2;
    if (!c->mel.bank.n_mels) c->mel.bank.n_mels = 128;
    if (c->mel.bank.n_mels < 1 || c->mel.bank.n_mels > WT_MEL_MAX_MELS)
        return wt_fail(WT_ERR_BAD_ARG, "mfcc: %d bands, want 1..%d", c->mel.bank.n_mels, WT_MEL_MAX_MELS);
    if (c->n_mfcc < 1 || c->n_mfcc > c->mel.bank.n_mels)
        return wt_fail(WT_ERR_BAD_ARG, "mfcc: %d coefficients, want 1..%d (bands)", c->n_mfcc, c->mel.bank.n_mels);
    if (c->dct_type < 1 || c->dct_type > 3)
        return wt_fail(WT_ERR_BAD_ARG, "mfcc: DCT type %d, want 1..3", c->dct_type);
    if (c->dct_type == 1 && c->mel.bank.n_mels < 2)
        return wt_fail(WT_ERR_BAD_ARG, "mfcc: DCT type 1 of 1 band, want 2 or more");
    if (!(c->lifter >= 0)) return wt_fail(WT_ERR_BAD_ARG, "mfcc: lifter %g, want 0 or more", c->lifter);
    c->mel.scale = WT_MEL_DB;
    c->mel.frames_first = false;
    return WT_OK;
}

// [n_mels][n_mfcc], or `back`, the inverse, [n_mfcc][n_mels].
static wt_status make_matrix(const wt_mfcc_config *c, bool back, float **matrix)
{
    const int n_mels = c->mel.bank.n_mels, n_mfcc = c->n_mfcc, type = c->dct_type;
    *matrix = malloc((size_t)n_mels * (size_t)n_mfcc * sizeof **matrix);
    if (!*matrix) return wt_fail(WT_ERR_NO_MEMORY, "mfcc: matrix of %d * %d", n_mels, n_mfcc);
    for (int m = 0; m < n_mels; m++)
        for (int k = 0; k < n_mfcc; k++) {
            float *at = *matrix + (back ? k * n_mels + m : m * n_mfcc + k);
            if (back) *at = (float)(inverse_cosine(type, !c->no_norm, m, k, n_mels) / lift(c->lifter, k));
            else *at = (float)(cosine(type, !c->no_norm, k, m, n_mels) * lift(c->lifter, k));
        }
    return WT_OK;
}

// sum[t] += sum over i of weight[i stride] in[i][t], for FRAMES or `count` frames.
WT_INLINE void add_rows(const float *weight, int stride, const float *in, int64_t in_stride, int n_in, int count,
                        float *sum)
{
    for (int i = 0; i < n_in; i++) {
        const float *row = in + i * in_stride, w = weight[i * stride];
        if (count == FRAMES)
            for (int t = 0; t < FRAMES; t++) sum[t] += w * row[t];
        else
            for (int t = 0; t < count; t++) sum[t] += w * row[t];
    }
}

// out[j][t] = sum over i of matrix[i][j] in[i][t] for `count` <= FRAMES frames. Sixteen at a time: 128 equal decibels
// of silence, added one by one, are rounded the same way each time, 1.5e-6 of the peak in all.
WT_CLONES static void multiply(const float *matrix, int n_in, int n_out, const float *in, int64_t in_stride, int count,
                               float *out, int64_t out_stride)
{
    for (int j = 0; j < n_out; j++) {
        float sum[FRAMES] = {0};
        for (int i = 0; i < n_in; i += 16) {
            float part[FRAMES] = {0};
            add_rows(matrix + i * n_out + j, n_out, in + i * in_stride, in_stride, n_in - i < 16 ? n_in - i : 16, count,
                     part);
            for (int t = 0; t < FRAMES; t++) sum[t] += part[t];
        }
        memcpy(out + j * out_stride, sum, (size_t)count * sizeof(float));
    }
}

// ---- the plan

wt_status wt_mfcc_create(wt_device *device, const wt_mfcc_config *config, wt_mfcc **mfcc)
{
    *mfcc = NULL;
    wt_mfcc *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "mfcc: handle");
    p->config = *config;
    wt_status status = resolve(&p->config);
    if (status) goto fail;
    const int n_mels = p->config.mel.bank.n_mels;
    status = make_matrix(&p->config, false, &p->matrix);
    if (status) goto fail;
    status = wt__mel_create(device, &p->config.mel, p->matrix, p->config.n_mfcc, &p->mel);
    if (status) goto fail;
    const size_t bytes = (size_t)(p->mel->n_lines * p->mel->n_frames * n_mels) * sizeof(float);
    p->bands = wt__op_on_gpu(device) ? NULL : malloc(bytes);
    if (wt__op_on_gpu(device)) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &p->work);
    else if (!p->bands) status = wt_fail(WT_ERR_NO_MEMORY, "mfcc: %zu bytes of bands", bytes);
    if (status) goto fail;
    p->config.mel.weights = p->config.mel.stft.window.samples = NULL; // copied
    *mfcc = p;
    return WT_OK;

fail:
    wt_mfcc_destroy(p);
    return status;
}

void wt_mfcc_destroy(wt_mfcc *mfcc)
{
    if (!mfcc) return;
    wt_mel_destroy(mfcc->mel);
    wt_buffer_destroy(mfcc->work);
    free(mfcc->matrix);
    free(mfcc->bands);
    free(mfcc);
}

int wt_mfcc_coefficients(const wt_mfcc *mfcc)
{
    return mfcc->config.n_mfcc;
}

int64_t wt_mfcc_frames(const wt_mfcc *mfcc)
{
    return mfcc->mel->n_frames;
}

// ---- running

typedef struct call {
    const wt_mfcc *mfcc;
    float *out;
    int n_slots;
} call;

WT_RT static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_mfcc *p = c->mfcc;
    const int64_t n_frames = p->mel->n_frames, n_tiles = (n_frames + FRAMES - 1) / FRAMES;
    const int n_mels = p->config.mel.bank.n_mels, n_mfcc = p->config.n_mfcc;
    const int64_t all = n_tiles * p->mel->n_lines, end = wt__op_begin(all, slot + 1, c->n_slots);
    for (int64_t tile = wt__op_begin(all, slot, c->n_slots); tile < end; tile++) {
        const int64_t line = tile / n_tiles, t = tile % n_tiles * FRAMES;
        const int count = n_frames - t < FRAMES ? (int)(n_frames - t) : FRAMES;
        multiply(p->matrix, n_mels, n_mfcc, p->bands + line * n_mels * n_frames + t, n_frames, count,
                 c->out + line * n_mfcc * n_frames + t, n_frames);
    }
}

WT_RT void wt_mfcc_run(wt_mfcc *mfcc, const float *pcm, float *out)
{
    const call c = {mfcc, out, 1};
    wt_mel_run(mfcc->mel, pcm, mfcc->bands);
    run_slot(&c, 0);
}

wt_status wt_mfcc_enqueue(wt_mfcc *mfcc, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset, wt_buffer *out,
                          size_t out_offset)
{
    const wt_mel *m = mfcc->mel;
    wt_status status = wt__op_stream("mfcc", m->device, stream);
    if (!status) status = wt__op_range("mfcc", "pcm", pcm, pcm_offset, (size_t)(m->n_lines * m->config.n_samples));
    if (!status)
        status = wt__op_range("mfcc", "out", out, out_offset,
                              (size_t)(m->n_lines * m->n_frames * mfcc->config.n_mfcc));
    if (status) return status;
    const uintptr_t from = wt_buffer_address(pcm) + pcm_offset, to = wt_buffer_address(out) + out_offset;
    if (mfcc->work) return wt__mel_enqueue(mfcc->mel, stream, from, wt_buffer_address(mfcc->work), to);
    status = wt__mel_enqueue(mfcc->mel, stream, from, (uintptr_t)mfcc->bands, 0);
    const call c = {mfcc, (float *)to, m->n_slots};
    return status ? status : wt_stream_run(stream, run_slot, &c, sizeof c, c.n_slots);
}

// ---- matrices alone

// Sums in double: decibels on their way back to powers magnify every rounding.
static wt_status apply(const wt_mfcc_config *c, bool back, const float *in, int64_t n_frames, float *out)
{
    const int n_in = back ? c->n_mfcc : c->mel.bank.n_mels, n_out = back ? c->mel.bank.n_mels : c->n_mfcc;
    float *matrix;
    wt_status status = make_matrix(c, back, &matrix);
    for (int j = 0; j < n_out && !status; j++)
        for (int64_t t = 0; t < n_frames; t++) {
            double sum = 0;
            for (int i = 0; i < n_in; i++) sum += (double)matrix[i * n_out + j] * in[i * n_frames + t];
            out[j * n_frames + t] = (float)sum;
        }
    free(matrix);
    return status;
}

wt_status wt_mfcc_of_db(const wt_mfcc_config *config, const float *db, int64_t n_frames, float *mfcc)
{
    wt_mfcc_config c = *config;
    wt_status status = resolve(&c);
    return status ? status : apply(&c, false, db, n_frames, mfcc);
}

wt_status wt_mfcc_to_mel(const wt_mfcc_config *config, const float *mfcc, int64_t n_frames, float *mel)
{
    wt_mfcc_config c = *config;
    wt_status status = resolve(&c);
    if (!status) status = apply(&c, true, mfcc, n_frames, mel);
    if (!status) wt_db_to_power(c.mel.db.ref ? c.mel.db.ref : 1, mel, c.mel.bank.n_mels * n_frames, mel);
    return status;
}
