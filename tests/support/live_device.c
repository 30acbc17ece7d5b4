#include "live_device.h"

#include "chain_check.h"
#include "live_check.h"
#include "testing.h"

#include <math.h>
#include <string.h>
#include <time.h>

bool live_on_gpu(wt_device *device) { return wt_device_get_info(device)->backend == WT_BACKEND_CUDA; }

wt_live_config live_config_on(wt_device *device, wt_live_path path, int channels)
{
    return (wt_live_config){
        .rate_hz = LIVE_RATE, .channels = channels, .max_frames = 256, .device = device, .path = path};
}

wt_live *live_playing;

wt_live *patient_live(const wt_live_config *config, const wt_chain_desc *desc)
{
    live_playing = live_of(config, NULL);
    wt_live_set_freewheel(live_playing, true);
    if (desc) assert_ok(wt_live_load(live_playing, desc, NULL));
    return live_playing;
}

void finish_live(wt_live *live)
{
    wt_live_destroy(live);
    live_playing = NULL;
}

int finish_failed_live(void **state)
{
    (void)state;
    wt_live_destroy(live_playing);
    live_playing = NULL;
    return 0;
}

wt_live_stats live_stats_of(const wt_live *live)
{
    wt_live_stats stats;
    wt_live_get_stats(live, &stats);
    return stats;
}

void wait_for_path(const wt_live *live, wt_live_path path)
{
    for (int k = 0; k < 5000 && live_stats_of(live).path != path; k++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(live_stats_of(live).path, path);
}

void assert_near_audio(wt_device *device, const float *want, const float *got, int n_frames, int channels, int stride,
                       double want_db)
{
    for (int c = 0; c < channels; c++) {
        const float *w = want + c * stride, *g = got + c * stride;
        if (!live_on_gpu(device) && memcmp(w, g, sizeof *w * (size_t)n_frames)) {
            int n = 0;
            while (w[n] == g[n]) n++;
            fail_msg("channel %d frame %d is %.9g, want %.9g", c, n, (double)g[n], (double)w[n]);
        }
        if (!live_on_gpu(device)) continue;
        int worst = 0;
        for (int n = 0; n < n_frames; n++)
            if (!(fabsf(w[n] - g[n]) <= fabsf(w[worst] - g[worst]))) worst = n;
        const double snr = snr_db(w, g, (size_t)n_frames);
        if (snr < want_db)
            fail_msg("channel %d of %d frames: %.1f dB, want %.0f; worst frame %d is %.9g, want %.9g", c, n_frames, snr,
                     want_db, worst, (double)g[worst], (double)w[worst]);
    }
}

// On a GPU sums run in another order, and a compressor's level detector feeds that back: 90 dB.
void assert_same_audio(wt_device *device, const float *want, const float *got, int n_frames, int channels, int stride)
{
    assert_near_audio(device, want, got, n_frames, channels, stride, 90);
}

// ---- chains

static const wt_node_desc hall_nodes[] = {{.type = "reverb"}};
static const wt_node_desc wide_nodes[] = {{.type = "chorus"}, {.type = "delay"}, {.type = "saturation"}};
static const char *const both[] = {"low", "high"};
static const wt_setting low_band[] = {{"band", "1", 0}}, high_band[] = {{"band", "2", 0}};
static const wt_node_desc split_nodes[] = {
    {.type = "crossover",
     .id = "low",
     .inputs = (const char *const[]){"in"},
     .n_inputs = 1,
     .settings = low_band,
     .n_settings = 1},
    {.type = "crossover",
     .id = "high",
     .inputs = (const char *const[]){"in"},
     .n_inputs = 1,
     .settings = high_band,
     .n_settings = 1},
    {.type = "mix", .inputs = both, .n_inputs = 2},
    {.type = "meter"},
};
static const wt_setting long_room[] = {{"synthetic_ms", "400", 0}, {"mix", NULL, 0.5}};
static const wt_node_desc room_nodes[] = {{.type = "convolution", .settings = long_room, .n_settings = 2}};

// Their readings come a block later from a device, so of a hop that ends long before the test does.
static const wt_setting slowly[] = {{"hop", NULL, 1024}};
static const wt_node_desc look_nodes[] = {
    {.type = "spectrum"}, {.type = "pitch"}, {.type = "cqt", .settings = slowly, .n_settings = 1}};

const live_chain live_chains[N_LIVE_CHAINS] = {
    {"hall", {.name = "hall", .nodes = hall_nodes, .n_nodes = 1}},
    {"wide", {.name = "wide", .nodes = wide_nodes, .n_nodes = 3}},
    {"split", {.name = "split", .nodes = split_nodes, .n_nodes = 4}},
    {"room", {.name = "room", .nodes = room_nodes, .n_nodes = 1}},
    {"look", {.name = "look", .nodes = look_nodes, .n_nodes = 3}},
};
