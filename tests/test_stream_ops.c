// Every op that takes a signal block by block: any cut into blocks, empty ones too, gives the same bits, after a reset
// again; silence stays without a NaN, and what is not finite does what docs/dsp-ops.md says.
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/agc.h>
#include <warptone/denoise.h>
#include <warptone/echo.h>
#include <warptone/filter.h>
#include <warptone/loudness.h>
#include <warptone/overlap_save.h>
#include <warptone/resample.h>
#include <warptone/stft_stream.h>
#include <warptone/vad.h>

enum { RATE_HZ = 16000, CHANNELS = 2, FRAMES = 12000, BAD = 5000, ROOM = 2 * FRAMES };

typedef struct stream_op {
    const char *name;
    wt_status (*create)(void **op);
    void (*destroy)(void *op);
    void (*reset)(void *op);
    /// Take n frames; returns the frames given.
    int (*run)(void *op, const float *const *in, int n, float *const *out);
    /// Frames behind one that is not finite after which all is finite again; 0 = it is never heard.
    int recovers;
} stream_op;

#define STREAM_OP(noun)                                                                                                \
    static void destroy_##noun(void *op) { wt_##noun##_destroy(op); }                                                  \
    static void reset_##noun(void *op) { wt_##noun##_reset(op); }
/// As many frames out as in.
#define PLAIN(noun)                                                                                                    \
    STREAM_OP(noun)                                                                                                    \
    static int run_##noun(void *op, const float *const *in, int n, float *const *out)                                  \
    {                                                                                                                  \
        wt_##noun##_process(op, in, out, n);                                                                           \
        return n;                                                                                                      \
    }

PLAIN(agc)
static wt_status create_agc(void **op)
{
    return wt_agc_create(&(wt_agc_config){.rate_hz = RATE_HZ, .channels = CHANNELS}, (wt_agc **)op);
}

PLAIN(denoise)
static wt_status denoise(wt_denoise_mode mode, void **op)
{
    const wt_denoise_config config = {.rate_hz = RATE_HZ, .channels = CHANNELS, .mode = mode};
    return wt_denoise_create(&config, (wt_denoise **)op);
}
static wt_status create_lsa(void **op) { return denoise(WT_DENOISE_LSA, op); }
static wt_status create_wiener(void **op) { return denoise(WT_DENOISE_WIENER, op); }
static wt_status create_gate(void **op) { return denoise(WT_DENOISE_GATE, op); }

STREAM_OP(echo)
static wt_status create_echo(void **op)
{
    return wt_echo_create(&(wt_echo_config){.rate_hz = RATE_HZ, .tail_ms = 64}, (wt_echo **)op);
}
/// The second channel is what is played.
static int run_echo(void *op, const float *const *in, int n, float *const *out)
{
    wt_echo_process(op, in, in[1], out, n);
    memcpy(out[1], out[0], sizeof(float) * (size_t)n);
    return n;
}

PLAIN(overlap_save)
static wt_status create_overlap_save(void **op)
{
    float taps[300];
    for (int k = 0; k < 300; k++) taps[k] = expf((float)-k / 40) * (k % 3 ? 0.1f : -0.2f);
    return wt_overlap_save_create(&(wt_overlap_save_config){.taps = taps, .n_taps = 300, .channels = CHANNELS},
                                  (wt_overlap_save **)op);
}

PLAIN(sos)
static wt_status create_sos(void **op)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos_config config = {.sos = sos[0], .channels = CHANNELS};
    wt_status status =
        wt_sos_design(&(wt_sos_design_config){.order = 6, .edge_hz = {0.1}}, sos[0], &config.n_sections);
    return status ? status : wt_sos_create(&config, (wt_sos **)op);
}

STREAM_OP(resample)
static wt_status resample(wt_resample_quality quality, int out_hz, bool variable, void **op)
{
    const wt_resample_config config = {
        .in_hz = RATE_HZ, .out_hz = out_hz, .channels = CHANNELS, .quality = quality, .variable = variable};
    return wt_resample_create(&config, (wt_resample **)op);
}
static wt_status create_best(void **op) { return resample(WT_RESAMPLE_BEST, 22050, false, op); }
static wt_status create_fast(void **op) { return resample(WT_RESAMPLE_FAST, 11025, false, op); }
static wt_status create_soxr(void **op) { return resample(WT_RESAMPLE_SOXR_HQ, RATE_HZ / 2, false, op); }
static wt_status create_steered(void **op)
{
    wt_status status = resample(WT_RESAMPLE_BEST, 17000, true, op);
    return status ? status : wt_resample_steer(*op, 1.01, 3000);
}
static int run_resample(void *op, const float *const *in, int n, float *const *out)
{
    int used = 0, made = 0;
    wt_resample_process(op, in, n, &used, out, ROOM, &made);
    assert_int_equal(used, n);
    return made;
}
/// A reset keeps the speed that the ramp had reached: the ramp is asked for again.
static void reset_steered(void *op)
{
    wt_resample_reset(op);
    assert_ok(wt_resample_steer(op, 1, 1));
    float zeros[CHANNELS][64] = {{0}}, scratch[CHANNELS][128];
    int used, made;
    wt_resample_process(op, (const float *[]){zeros[0], zeros[1]}, 64, &used, (float *[]){scratch[0], scratch[1]}, 128,
                        &made);
    wt_resample_reset(op);
    assert_ok(wt_resample_steer(op, 1.01, 3000));
}

STREAM_OP(stft_stream)
static wt_status create_stft_stream(void **op)
{
    return wt_stft_stream_create(&(wt_stft_config){.n_fft = 512, .hop = 128, .channels = CHANNELS},
                                 (wt_stft_stream **)op);
}
static void damp(void *user, int64_t t, float *spectrum)
{
    (void)user;
    for (int k = 0; k < 514 * CHANNELS; k++) spectrum[k] *= t % 5 ? 0.5f : 1;
}
static int run_stft_stream(void *op, const float *const *in, int n, float *const *out)
{
    wt_stft_stream_process(op, in, n, out, damp, NULL);
    return n;
}

STREAM_OP(vad)
static wt_status create_vad(void **op)
{
    return wt_vad_create(&(wt_vad_config){.rate_hz = RATE_HZ, .channels = CHANNELS}, (wt_vad **)op);
}
static int run_vad(void *op, const float *const *in, int n, float *const *out)
{
    static bool speech[FRAMES * CHANNELS];
    const int made = wt_vad_process(op, in, n, speech);
    for (int k = 0; k < made; k++)
        for (int c = 0; c < CHANNELS; c++) out[c][k] = speech[k * CHANNELS + c];
    return made;
}

STREAM_OP(loudness)
static wt_status create_loudness(void **op)
{
    return wt_loudness_create(&(wt_loudness_config){.rate_hz = RATE_HZ, .channels = CHANNELS}, (wt_loudness **)op);
}
/// What a meter says after 12,000 frames in all is its result.
static int run_loudness(void *op, const float *const *in, int n, float *const *out)
{
    wt_loudness_values v;
    wt_loudness_process(op, in, n);
    wt_loudness_query(op, &v);
    if (v.n_frames < FRAMES) return 0;
    const double values[] = {v.momentary_lufs, v.max_momentary_lufs, v.integrated_lufs, v.range_lu, v.sample_peak_db,
                             v.true_peak_db};
    for (int k = 0; k < 6; k++) out[0][k] = out[1][k] = (float)values[k];
    return 6;
}

#define ROW(title, made, noun)                                                                                         \
    .name = title, .create = create_##made, .destroy = destroy_##noun, .reset = reset_##noun, .run = run_##noun

static const stream_op ops[] = {
    {ROW("agc", agc, agc), .recovers = 1}, // a sample that is not finite passes
    {ROW("noise reduction, lsa", lsa, denoise)},
    {ROW("noise reduction, wiener", wiener, denoise)},
    {ROW("noise reduction, gate", gate, denoise)},
    {ROW("echo cancellation", echo, echo)},
    {ROW("overlap-save", overlap_save, overlap_save), .recovers = 6000}, // its delay and two blocks of 1749 frames
    {ROW("sections", sos, sos), .recovers = 64},
    {ROW("resample, best", best, resample), .recovers = 1000}, // as far as the filter reaches
    {ROW("resample, fast", fast, resample), .recovers = 1000},
    {ROW("resample, soxr_hq", soxr, resample), .recovers = 1000},
    {.name = "resample, steered", .create = create_steered, .destroy = destroy_resample, .reset = reset_steered,
     .run = run_resample, .recovers = 1000},
    {ROW("stft and back", stft_stream, stft_stream), .recovers = 1024},
    {ROW("vad", vad, vad)},
    {ROW("loudness", loudness, loudness)},
};

enum { N_OPS = sizeof ops / sizeof *ops };

static float signal[CHANNELS][FRAMES];

/// All of `signal` in blocks, as many as `sizes` says, again and again; frames out.
static int play(const stream_op *o, void *op, const int *sizes, int n_sizes, float *const *out)
{
    int made = 0;
    for (int at = 0, k = 0; at < FRAMES; k++) {
        const int n = sizes[k % n_sizes] < FRAMES - at ? sizes[k % n_sizes] : FRAMES - at;
        const float *in[CHANNELS] = {signal[0] + at, signal[1] + at};
        made += o->run(op, in, n, (float *[]){out[0] + made, out[1] + made});
        at += n;
    }
    return made;
}

static void fill_signal(float gain)
{
    for (int c = 0; c < CHANNELS; c++) {
        uint64_t seed = 5 + (uint64_t)c;
        for (int t = 0; t < FRAMES; t++)
            signal[c][t] = gain * (0.4f * sinf(0.05f * (float)(c + 1) * (float)t) * (t / 2000 % 2 ? 1 : 0.1f) +
                                   0.05f * noise(&seed));
    }
}

static float *outputs[2][CHANNELS];

static int make_outputs(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * CHANNELS; k++)
        if (!(outputs[k / CHANNELS][k % CHANNELS] = calloc(ROOM + FRAMES, sizeof(float)))) return 1;
    return 0;
}

static int free_outputs(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * CHANNELS; k++) free(outputs[k / CHANNELS][k % CHANNELS]);
    return 0;
}

static void assert_same(const stream_op *o, const char *what, int n_want, int n_got)
{
    if (n_want != n_got) fail_msg("%s, %s: %d frames, want %d", o->name, what, n_got, n_want);
    for (int c = 0; c < CHANNELS; c++)
        for (int t = 0; t < n_want; t++)
            if (memcmp(&outputs[0][c][t], &outputs[1][c][t], sizeof(float)))
                fail_msg("%s, %s: frame %d of channel %d: %.9g, want %.9g", o->name, what, t, c,
                         (double)outputs[1][c][t], (double)outputs[0][c][t]);
}

static void every_cut_into_blocks_gives_the_same_bits(void **state)
{
    static const int cuts[][5] = {{1, 63, 64, 0, 65}, {253, 1000, 1, 0, 7}, {4096, 4096, 4096, 4096, 4096}};
    (void)state;
    fill_signal(1);
    for (int k = 0; k < N_OPS; k++) {
        void *op;
        assert_ok(ops[k].create(&op));
        const int n = play(&ops[k], op, (int[]){FRAMES}, 1, outputs[0]);
        assert_true(n > 0);
        for (int cut = 0; cut < 3; cut++) {
            ops[k].reset(op); // as it was in the beginning
            assert_same(&ops[k], "in blocks", n, play(&ops[k], op, cuts[cut], 5, outputs[1]));
        }
        ops[k].destroy(op);
    }
}

static void silence_stays_without_a_nan(void **state)
{
    (void)state;
    fill_signal(0);
    for (int k = 0; k < N_OPS; k++) {
        void *op;
        assert_ok(ops[k].create(&op));
        const int n = play(&ops[k], op, (int[]){500}, 1, outputs[0]);
        const bool decibels = ops[k].run == run_loudness; // -INFINITY
        for (int t = 0; t < n; t++)
            if (decibels ? isnan(outputs[0][0][t]) : outputs[0][0][t] != 0)
                fail_msg("%s: silence gives %g", ops[k].name, (double)outputs[0][0][t]);
        ops[k].destroy(op);
    }
}

/// Frame `BAD` of both channels is not finite; the result has the frames' times but for a change of rate.
static void what_is_not_finite_passes_by(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    (void)state;
    for (int which = 0; which < 4; which++) {
        fill_signal(1);
        signal[0][BAD] = signal[1][BAD] = bad[which];
        for (int k = 0; k < N_OPS; k++) {
            void *op;
            assert_ok(ops[k].create(&op));
            const int n = play(&ops[k], op, (int[]){300}, 1, outputs[0]);
            const int from = n > FRAMES / 4 ? (int)((int64_t)BAD * n / FRAMES) : 0, until = from + ops[k].recovers;
            for (int c = 0; c < CHANNELS; c++)
                for (int t = 0; t < n; t++)
                    if (!isfinite(outputs[0][c][t]) && (t < from - 1000 || t >= until))
                        fail_msg("%s: after %g at frame %d frame %d of %d is %g", ops[k].name, (double)bad[which], from,
                                 t, n, (double)outputs[0][c][t]);
            ops[k].destroy(op);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_into_blocks_gives_the_same_bits),
        cmocka_unit_test(silence_stays_without_a_nan),
        cmocka_unit_test(what_is_not_finite_passes_by),
    };
    return cmocka_run_group_tests_name("ops of running signals", tests, make_outputs, free_outputs);
}
