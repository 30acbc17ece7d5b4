// Constant-Q transforms tile by tile: the bits of the whole signal's, whatever the tiles.
#include "support/spectral_check.h"
#include "support/testing.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/cqt.h>

enum { GROUP = 16, CHANNELS = 2, UNTOUCHED = 7 };

typedef struct subject {
    wt_cqt_config config;
    int64_t n;
} subject;

/// Also one whose rate is halved before the first octave, and one that is halved once.
static const subject subjects[] = {
    {{.fmin_hz = 500, .n_bins = 36, .hop = 128}, 150001},
    {{.fmin_hz = 500, .n_bins = 36, .hop = 128, .precise = true}, 60001},
    {{.fmin_hz = 220, .n_bins = 48, .hop = 320, .pad = WT_STFT_PAD_REFLECT, .magnitude = true}, 190000},
    {{.fmin_hz = 300, .n_bins = 40, .hop = 256, .erb_gamma = true}, 170017},
    {{.n_bins = 24, .hop = 1024, .magnitude = true}, 1200003},
    {{.fmin_hz = 400, .n_bins = 30, .hop = 150}, 40000},
    {{.kind = WT_CQT_HYBRID, .fmin_hz = 130, .n_bins = 60, .hop = 512}, 400000},
    {{.kind = WT_CQT_PSEUDO, .fmin_hz = 130, .n_bins = 60, .hop = 512}, 100000},
};

typedef struct place {
    wt_device *device; // NULL = the calling thread
    wt_stream *stream;
    wt_buffer *in, *out;
    wt_cqt *cqt;
    const float *x; // [CHANNELS][n]
    int64_t n;
    size_t frame; // floats
} place;

/// `n` samples of each channel from `begin` on.
static void transform(const place *p, int64_t begin, int64_t n, const wt_cqt_tile *tile, float *out)
{
    const size_t bytes = (size_t)n * sizeof(float),
                 row = (size_t)wt_cqt_frames(p->cqt, n) * p->frame * sizeof(float);
    float *x = floats(CHANNELS * (size_t)n);
    for (int c = 0; c < CHANNELS; c++) memcpy(x + c * n, p->x + c * p->n + begin, bytes);
    if (p->device) {
        assert_ok(wt_stream_upload(p->stream, p->in, 0, x, CHANNELS * bytes));
        assert_ok(wt_stream_upload(p->stream, p->out, 0, out, CHANNELS * row));
        assert_ok(wt_cqt_enqueue_tile(p->cqt, p->stream, p->in, 0, n, tile, p->out, 0));
        assert_ok(wt_stream_download(p->stream, out, p->out, 0, CHANNELS * row));
        assert_ok(wt_stream_synchronize(p->stream));
    } else {
        assert_int_equal(wt_cqt_run_tile(p->cqt, x, n, tile, out), WT_OK);
    }
    free(x);
}

/// `own` frames from `first` on, with no more samples beside them than they reach. The CPU makes no others; a GPU may.
static void check_tile(const place *p, int hop, const float *want, int64_t first, int64_t own)
{
    const int64_t reach = wt_cqt_reach(p->cqt), n_frames = wt_cqt_frames(p->cqt, p->n);
    const int64_t beside = (reach + GROUP * hop - 1) / (GROUP * hop) * GROUP;
    const int64_t from = first < beside ? 0 : first - beside;
    const bool last = first + own >= n_frames || (first + own - 1) * hop + reach >= p->n;
    const int64_t begin = from * hop, end = last ? p->n : (first + own - 1) * hop + reach;
    const int64_t frames = wt_cqt_frames(p->cqt, end - begin), count = first + own > n_frames ? n_frames - first : own;
    const wt_cqt_tile tile = {.begin = begin, .first = first - from, .count = own};
    float *got = floats(CHANNELS * (size_t)frames * p->frame);
    for (size_t i = 0; i < CHANNELS * (size_t)frames * p->frame; i++) got[i] = UNTOUCHED;
    transform(p, begin, end - begin, &tile, got);
    for (int c = 0; c < CHANNELS; c++)
        for (int64_t t = 0; t < frames; t++) {
            const float *row = got + (size_t)(c * frames + t) * p->frame;
            const bool mine = t >= first - from && t < first - from + count;
            if (mine && memcmp(row, want + (size_t)(c * n_frames + from + t) * p->frame, p->frame * sizeof *row))
                fail_msg("%d bins, frame %lld of a tile of %lld from %lld: other bits than of the whole",
                         wt_cqt_bins(p->cqt), (long long)(from + t), (long long)own, (long long)first);
            for (size_t k = 0; k < p->frame && !mine && !p->device; k++) assert_true(row[k] == UNTOUCHED);
        }
    free(got);
}

static void check_subject(wt_device *device, const subject *s)
{
    place p = {.device = device, .n = s->n};
    wt_cqt_config c = s->config;
    c.channels = CHANNELS;
    assert_ok(wt_cqt_create(device, &c, s->n, &p.cqt));
    p.frame = (size_t)wt_cqt_bins(p.cqt) * (c.kind == WT_CQT_FULL && !c.magnitude ? 2 : 1);
    const int64_t n_frames = wt_cqt_frames(p.cqt, s->n);
    const size_t room = CHANNELS * (size_t)n_frames * p.frame;
    float *x = noise_floats(CHANNELS * (size_t)s->n, 5), *want = floats(room);
    p.x = x;
    if (device) {
        assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, CHANNELS * (size_t)s->n * sizeof(float), &p.in));
        assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, room * sizeof(float), &p.out));
        assert_ok(wt_stream_create(device, NULL, &p.stream));
    }
    transform(&p, 0, s->n, NULL, want);
    assert_true(wt_cqt_reach(p.cqt) / c.hop + 2 * GROUP < n_frames / 2); // tiles in the middle see no end
    for (int64_t own = GROUP; own < n_frames; own = 5 * own + GROUP)
        for (int64_t first = 0; first < n_frames; first += own < n_frames / 8 ? n_frames / 8 / own * own : own)
            check_tile(&p, c.hop, want, first, own);
    wt_stream_destroy(p.stream), wt_buffer_destroy(p.in), wt_buffer_destroy(p.out);
    wt_cqt_destroy(p.cqt);
    free(x), free(want);
}

static void tiles_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++) {
        check_subject(NULL, &subjects[k]);
        check_subject(cpu, &subjects[k]);
    }
    wt_device_close(cpu);
}

static void tiles_of_a_gpu_have_the_bits_of_its_whole(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++) check_subject(gpu, &subjects[k]);
    wt_device_close(gpu);
}

/// With half of it runs of halvers lack samples, and somewhere the bits are others.
static void half_of_the_reach_is_too_little(void **state)
{
    (void)state;
    const subject *s = &subjects[0];
    wt_cqt *cqt;
    assert_ok(wt_cqt_create(NULL, &s->config, 0, &cqt));
    const int hop = s->config.hop;
    const int64_t n_frames = wt_cqt_frames(cqt, s->n), half = wt_cqt_reach(cqt) / 2 / (GROUP * hop) * GROUP;
    const size_t frame = 2 * (size_t)wt_cqt_bins(cqt);
    float *x = noise_floats((size_t)s->n, 5), *want = floats((size_t)n_frames * frame),
          *got = floats((size_t)n_frames * frame);
    int differing = 0;
    assert_int_equal(wt_cqt_run(cqt, x, s->n, want), WT_OK);
    for (int64_t first = 2 * half; first + half < n_frames; first += GROUP) {
        const int64_t begin = (first - half) * hop;
        assert_int_equal(wt_cqt_run_tile(cqt, x + begin, s->n - begin, &(wt_cqt_tile){begin, half, 1}, got), WT_OK);
        differing += memcmp(got + (size_t)half * frame, want + (size_t)first * frame, frame * sizeof *got) != 0;
    }
    assert_true(differing > 0);
    wt_cqt_destroy(cqt);
    free(x), free(want), free(got);
}

static void tiles_elsewhere_are_refused(void **state)
{
    (void)state;
    enum { N = 512 * 32 };
    static const struct {
        wt_cqt_tile tile;
        const char *sentence;
    } wrong[] = {
        {{.begin = -8192}, "cqt: the tile begins at sample -8192, want 0 or a multiple of 8192 (16 hops)"},
        {{.begin = 512}, "cqt: the tile begins at sample 512, want 0 or a multiple of 8192 (16 hops)"},
        {{.first = 8}, "cqt: from frame 8 of the tile on, want a multiple of 16 below its 33 frames"},
        {{.first = -16}, "cqt: from frame -16 of the tile on, want a multiple of 16 below its 33 frames"},
        {{.first = 48}, "cqt: from frame 48 of the tile on, want a multiple of 16 below its 33 frames"},
        {{.count = -1}, "cqt: -1 frames of the tile, want 1 or more, or 0 for all"},
    };
    wt_device *cpu = cpu_device();
    wt_cqt *cqt;
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_cqt_create(cpu, &(wt_cqt_config){.fmin_hz = 200, .n_bins = 12}, 0, &cqt));
    assert_ok(wt_stream_create(cpu, NULL, &stream));
    float *x = floats(N), *y = floats(33 * 24);
    assert_ok(wt_buffer_create(cpu, WT_MEMORY_DEVICE, N * sizeof(float), &in));
    assert_ok(wt_buffer_create(cpu, WT_MEMORY_DEVICE, 33 * 24 * sizeof(float), &out));
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_equal(wt_cqt_run_tile(cqt, x, N, &wrong[k].tile, y), WT_ERR_BAD_ARG);
        assert_fails(wt_cqt_enqueue_tile(cqt, stream, in, 0, N, &wrong[k].tile, out, 0), WT_ERR_BAD_ARG,
                     wrong[k].sentence);
    }
    assert_ok(wt_cqt_enqueue_tile(cqt, stream, in, 0, N, &(wt_cqt_tile){.begin = 8192, .first = 32}, out, 0));
    assert_ok(wt_stream_synchronize(stream));
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_stream_destroy(stream);
    wt_cqt_destroy(cqt);
    wt_device_close(cpu);
    free(x), free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_have_the_bits_of_the_whole),
        cmocka_unit_test(tiles_of_a_gpu_have_the_bits_of_its_whole),
        cmocka_unit_test(half_of_the_reach_is_too_little),
        cmocka_unit_test(tiles_elsewhere_are_refused),
    };
    return cmocka_run_group_tests_name("cqt tiles", tests, NULL, NULL);
}
