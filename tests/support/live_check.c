#include "support/testing.h"
#include "support/live_check.h"

#include <math.h>

static const wt_setting highpass[] = {{"shape", "highpass", 0}, {"frequency_hz", NULL, 80}};
static const wt_setting presence[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 3000}, {"gain_db", NULL, 6}};
static const wt_setting body[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 250}, {"gain_db", NULL, -2}};
static const wt_setting nasal[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 900}, {"gain_db", NULL, -3}};
static const wt_setting air[] = {{"shape", "highshelf", 0}, {"frequency_hz", NULL, 9000}, {"gain_db", NULL, 2}};
static const wt_setting quieter[] = {{"gain_db", NULL, -6}};
static const wt_setting squeeze[] = {{"threshold_db", NULL, -20}, {"ratio", NULL, 3}};
static const wt_setting ceiling[] = {{"ceiling_db", NULL, -1}};
static const wt_setting room[] = {{"synthetic_ms", "10.6875", 0}, {"mix", NULL, 0.3}}; // 513 frames of 48 kHz

static const wt_node_desc voice_nodes[] = {
    {.type = "biquad", .id = "low_cut", .settings = highpass, .n_settings = 2},
    {.type = "biquad", .id = "presence", .settings = presence, .n_settings = 3},
    {.type = "gain", .settings = quieter, .n_settings = 1},
};
const wt_chain_desc live_voice = {.name = "voice", .nodes = voice_nodes, .n_nodes = 3};

static const wt_node_desc full_nodes[] = {
    {.type = "biquad", .id = "low_cut", .settings = highpass, .n_settings = 2},
    {.type = "biquad", .id = "body", .settings = body, .n_settings = 3},
    {.type = "biquad", .id = "nasal", .settings = nasal, .n_settings = 3},
    {.type = "biquad", .id = "presence", .settings = presence, .n_settings = 3},
    {.type = "biquad", .id = "air", .settings = air, .n_settings = 3},
    {.type = "compressor", .settings = squeeze, .n_settings = 2},
    {.type = "convolution", .settings = room, .n_settings = 2},
    {.type = "limiter", .settings = ceiling, .n_settings = 1},
};
const wt_chain_desc live_full_voice = {.name = "full voice", .nodes = full_nodes, .n_nodes = 8};

wt_live *live_of(const wt_live_config *config, const wt_chain_desc *desc)
{
    wt_live *live = NULL;
    assert_ok(wt_live_create(config, &live));
    if (desc) assert_ok(wt_live_load(live, desc, NULL));
    return live;
}

int live_block_size(int block, int turn)
{
    static const int sizes[] = {1, 64, 16, 256, 31, 64, 128, 7, 33};
    return block ? block : sizes[turn % 9];
}

void live_blocks(wt_live *live, const float *in, float *out, int n_frames, int block, int stride)
{
    enum { MAX_LINES = 256 };
    const float *from[MAX_LINES];
    float *to[MAX_LINES];
    for (int done = 0, turn = 0, n; done < n_frames; done += n, turn++) {
        n = live_block_size(block, turn);
        if (n > n_frames - done) n = n_frames - done;
        for (int c = 0; c < MAX_LINES; c++) from[c] = in + (size_t)c * (size_t)stride + done;
        for (int c = 0; c < MAX_LINES; c++) to[c] = out + (size_t)c * (size_t)stride + done;
        assert_int_equal(wt_live_process(live, from, to, n), WT_OK);
    }
}

double largest_step_db(const float *x, int n_frames)
{
    double largest = 1e-9;
    for (int n = 4; n < n_frames; n++) {
        const double difference = (double)x[n] - 4.0 * x[n - 1] + 6.0 * x[n - 2] - 4.0 * x[n - 3] + x[n - 4];
        largest = fmax(largest, fabs(difference) / 3);
    }
    return 20 * log10(largest);
}
