// Preparing a convolution: the impulse response is loaded or made, cut into partitions, and transformed.
#include "convolution_plan.h"
#include "node_types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct response {
    float *taps; // [channels][n_taps]
    int channels, n_taps;
} response;

// ---- the impulse response

static wt_status check_length(double taps, double rate_hz, double max_ms)
{
    if (taps * 1e3 / rate_hz <= max_ms + 1e-6) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "the response lasts %.0f ms, want at most max_ms, which is %g", taps * 1e3 / rate_hz,
                   max_ms);
}

static wt_status load(const wt_node_setup *setup, const char *file, double max_ms, response *r)
{
    wt_status status = wt_setup_load_audio(setup, file, &r->taps, &r->channels, &r->n_taps);
    if (status) return status;
    if (r->n_taps < 1 || r->channels < 1)
        return wt_fail(WT_ERR_FORMAT, "file '%s' holds no samples, want an impulse response", file);
    for (size_t i = 0; i < (size_t)r->channels * (size_t)r->n_taps; i++)
        if (!isfinite(r->taps[i])) return wt_fail(WT_ERR_FORMAT, "file '%s' holds a sample that is not finite", file);
    return check_length(r->n_taps, wt_setup_rate_hz(setup), max_ms);
}

// Uniform noise that falls by 60 dB over the length; a generator a channel (Knuth's MMIX constants).
static wt_status synthesize(const wt_node_setup *setup, double ms, int channels, double max_ms, response *r)
{
    const double taps = ceil(ms * 1e-3 * wt_setup_rate_hz(setup)), fall = pow(10, -3 / taps);
    wt_status status = check_length(taps, wt_setup_rate_hz(setup), max_ms);
    if (status) return status;
    r->channels = channels, r->n_taps = (int)taps;
    r->taps = malloc(sizeof *r->taps * (size_t)channels * (size_t)r->n_taps);
    if (!r->taps) return wt_fail(WT_ERR_NO_MEMORY, "no memory for a response of %d taps", r->n_taps);
    for (int c = 0; c < channels; c++) {
        uint64_t seed = (uint64_t)c + 1;
        double level = 1 / sqrt(taps / 20);
        for (int k = 0; k < r->n_taps; k++, level *= fall) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            r->taps[(size_t)c * (size_t)r->n_taps + (size_t)k] = (float)(level * (int32_t)(seed >> 32) * 0x1p-31);
        }
    }
    return WT_OK;
}

enum { SCALE_NONE, SCALE_PEAK, SCALE_ENERGY };

static void scale(response *r, int kind)
{
    double most = 0;
    for (int c = 0; c < r->channels; c++) {
        double sum = 0, peak = 0;
        for (int k = 0; k < r->n_taps; k++) {
            double h = (double)r->taps[(size_t)c * (size_t)r->n_taps + (size_t)k];
            sum += h * h, peak = fmax(peak, fabs(h));
        }
        most = fmax(most, kind == SCALE_PEAK ? peak : sqrt(sum));
    }
    for (size_t i = 0; kind != SCALE_NONE && most > 0 && i < (size_t)r->channels * (size_t)r->n_taps; i++)
        r->taps[i] = (float)(r->taps[i] / most);
}

static wt_status get_response(const wt_node_setup *setup, response *r)
{
    const char *file = wt_setup_text(setup, "file");
    double ms, channels, max_ms;
    wt_status status = wt_setup_number(setup, "max_ms", 1, 60000, &max_ms);
    if (!status) status = wt_setup_number(setup, "synthetic_channels", 0, WT_MAX_CHANNELS, &channels);
    if (!status) status = wt_setup_number(setup, "synthetic_ms", 0, 60000, &ms);
    if (status) return status;
    if (!*file == !(ms > 0))
        return wt_fail(WT_ERR_BAD_ARG, "has %s, want either file or synthetic_ms",
                       *file ? "file and synthetic_ms" : "neither");
    int own = channels > 0 ? (int)channels : wt_setup_channels(setup, 0);
    status = *file ? load(setup, file, max_ms, r) : synthesize(setup, ms, own, max_ms, r);
    if (!status) scale(r, wt_setup_choice(setup, "normalize"));
    return status;
}

// ---- the layout

// Which input and response feed an output. Errors: WT_ERR_BAD_ARG.
static wt_status choose_feeds(int channels, const response *r, convolution_plan *p)
{
    p->n_inputs = p->n_outputs = channels;
    p->n_responses = r->channels;
    p->n_feeds = 1;
    if (r->channels == 1 || r->channels == channels) return WT_OK;
    p->coupled = 1;
    if (channels == 1 && r->channels == 2) p->n_outputs = 2;
    else if (channels == 2 && r->channels == 4) p->n_feeds = 2;
    else
        return wt_fail(WT_ERR_BAD_ARG, "the response has %d channels for an input of %d, want 1%s", r->channels,
                       channels,
                       channels == 1   ? " or 2"
                       : channels == 2 ? ", 2 or 4"
                                       : " or as many");
    return WT_OK;
}

static wt_status read_sizes(const char *text, int *sizes, int *n)
{
    const char *at = text;
    for (*n = 0;;) {
        char *end;
        long size = strtol(at, &end, 10);
        if (end == at) break;
        bool fits = *n < CONV_MAX_STAGES && size >= (*n ? 2 * sizes[*n - 1] : CONV_TICK) && size <= CONV_MAX_SIZE &&
                    (size & (size - 1)) == 0;
        if (!fits || (*n == 0 && size > CONV_MAX_HEAD)) *n = CONV_MAX_STAGES;
        if (*n == CONV_MAX_STAGES) break;
        sizes[(*n)++] = (int)size;
        at = end;
    }
    while (*at == ' ') at++;
    if (*n && !*at) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG,
                   "partitions is '%s', want up to %d rising powers of two, the first %d..%d, the last at"
                   " most %d",
                   text, CONV_MAX_STAGES, CONV_TICK, CONV_MAX_HEAD, CONV_MAX_SIZE);
}

static int round_up(long long count, int unit) { return (int)((count + unit - 1) / unit); }

// Stages over the taps; a stage that would hold less than one partition is left to the one before.
static void choose_stages(convolution_plan *p, const int *sizes, int n, int n_taps)
{
    p->response_taps = n_taps;
    p->head_taps = n_taps < sizes[0] ? n_taps : sizes[0];
    for (int i = 0; i < n; i++) {
        const int first = i ? 2 * sizes[i] : sizes[0];
        if (n_taps <= (i ? first + sizes[i] : first)) break;
        p->stages[i] = (convolution_stage){.size = sizes[i], .ticks = sizes[i] / CONV_TICK, .first_tap = first};
        if (i) p->stages[i - 1].n_parts = (first - p->stages[i - 1].first_tap) / sizes[i - 1];
        p->stages[i].n_parts = round_up(n_taps - first, sizes[i]);
        p->n_stages = i + 1;
    }
    int ring = 2 * CONV_TICK;
    while (ring < p->head_taps + 2 * CONV_TICK || (p->n_stages && ring < 2 * p->stages[p->n_stages - 1].size))
        ring *= 2;
    p->ring_frames = ring;
}

// Offsets of tables and state. Returns the plan's bytes.
static size_t lay_out(convolution_plan *p)
{
    long long table = ((long long)sizeof *p + 63) / 64 * 16, state = p->ring_frames;
    p->head_stride = (p->head_taps > CONV_TICK ? (p->head_taps + 3) / 4 * 4 : CONV_TICK) + 20;
    p->head = table + 4;
    table += ((long long)p->n_responses * p->head_stride + 15) / 16 * 16;
    for (int i = 0; i < p->n_stages; i++) {
        convolution_stage *s = &p->stages[i];
        const long long spectrum = 2ll * s->size * s->n_parts;
        s->spectra = table;
        s->roots = table += p->n_responses * spectrum;
        table += 4ll * s->size;
        s->line = (int)state;
        s->sum = (int)(state += spectrum);
        s->heard = (int)(state += 2ll * CONV_AHEAD * s->size);
        state += s->size;
    }
    p->rest = (int)state;
    p->channel_floats = state + CONV_TICK + 16; // channels begin in different sets of the cache
    return sizeof(float) * (size_t)table;
}

// ---- the tables

static void fill_stage(convolution_plan *p, const convolution_stage *s, const convolution_fft *fft, const response *r,
                       convolution_work *work)
{
    float *roots = (float *)p + s->roots;
    for (int k = 0; k < 2 * s->size; k++) {
        roots[2 * k] = (float)cos(WT_PI * k / s->size);
        roots[2 * k + 1] = (float)-sin(WT_PI * k / s->size);
    }
    for (int c = 0; c < p->n_responses; c++)
        for (int j = 0; j < s->n_parts; j++) {
            const int first = s->first_tap + j * s->size, left = r->n_taps - first;
            float *blocks = (float *)p + s->spectra +
                            ((size_t)c * (size_t)s->n_parts * (size_t)s->size + (size_t)j * CONV_BINS) * 2;
            memset(work->z, 0, sizeof(float) * 2 * (size_t)s->size);
            memcpy(work->z, r->taps + (size_t)c * (size_t)r->n_taps + first,
                   sizeof(float) * (size_t)(left < s->size ? left : s->size));
            wt__convolution_forward(fft, s->size, work, blocks, (size_t)s->n_parts * 2 * CONV_BINS);
        }
}

static wt_status fill(const response *r, wt_node_plan *out)
{
    convolution_plan *p = out->plan;
    convolution_host *host = out->host;
    for (int c = 0; c < p->n_responses; c++)
        memcpy((float *)p + p->head + (size_t)c * (size_t)p->head_stride, r->taps + (size_t)c * (size_t)r->n_taps,
               sizeof(float) * (size_t)p->head_taps);
    convolution_work *work = aligned_alloc(64, sizeof *work);
    wt_status status = work ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "no memory for transforms");
    for (int i = 0; i < p->n_stages && !status; i++) {
        status = wt__real_core_create(&host->fft[i], p->stages[i].size);
        if (!status) fill_stage(p, &p->stages[i], &host->fft[i], r, work);
    }
    free(work);
    return status;
}

// The plan is a struct with tables behind it that a vector load may touch from a line's start: 64-byte alignment.
static wt_status take_plan(const convolution_plan *p, size_t bytes, wt_node_plan *out)
{
    out->plan = aligned_alloc(64, (bytes + 63) / 64 * 64);
    out->plan_bytes = bytes;
    out->host = calloc(1, sizeof(convolution_host));
    if (!out->plan || !out->host) return wt_fail(WT_ERR_NO_MEMORY, "no memory for a plan of %zu bytes", bytes);
    memset(out->plan, 0, bytes);
    memcpy(out->plan, p, sizeof *p);
    return WT_OK;
}

wt_status wt__convolution_plan(const wt_node_setup *setup, wt_node_plan *out)
{
    convolution_plan p = {.phase = wt_setup_stagger(setup) & (CONV_MAX_SIZE - 1)};
    response r = {0};
    int sizes[CONV_MAX_STAGES], n_sizes;
    wt_status status = read_sizes(wt_setup_text(setup, "partitions"), sizes, &n_sizes);
    if (!status) status = get_response(setup, &r);
    if (!status) status = choose_feeds(wt_setup_channels(setup, 0), &r, &p);
    if (!status) {
        choose_stages(&p, sizes, n_sizes, r.n_taps);
        const size_t bytes = lay_out(&p), most = p.n_inputs > p.n_outputs ? (size_t)p.n_inputs : (size_t)p.n_outputs;
        status = take_plan(&p, bytes, out);
        out->coeffs_bytes = sizeof(convolution_coeffs);
        out->state_bytes = sizeof(float) * (size_t)p.channel_floats * most;
        out->scratch_floats =
            4 * (p.n_stages && p.stages[p.n_stages - 1].size > 1024 ? p.stages[p.n_stages - 1].size : 1024);
        out->out_channels = p.n_outputs;
        out->tail_frames = r.n_taps;
    }
    if (!status) status = fill(&r, out);
    free(r.taps);
    return status;
}

void wt__convolution_release(void *host)
{
    convolution_host *h = host;
    for (int i = 0; h && i < CONV_MAX_STAGES; i++) wt__real_core_destroy(&h->fft[i]);
    free(h);
}
