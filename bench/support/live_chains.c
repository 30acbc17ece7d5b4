#include "support/live_chains.h"

#define NUMBER(name, value)                                                                                            \
    {                                                                                                                  \
        name, NULL, value                                                                                              \
    }

static const wt_setting low_cut[] = {{"shape", "highpass", 0}, NUMBER("frequency_hz", 80)};
static const wt_setting body[] = {{"shape", "peak", 0}, NUMBER("frequency_hz", 250), NUMBER("gain_db", -2)};
static const wt_setting nasal[] = {{"shape", "peak", 0}, NUMBER("frequency_hz", 900), NUMBER("gain_db", -3)};
static const wt_setting presence[] = {{"shape", "peak", 0}, NUMBER("frequency_hz", 3500), NUMBER("gain_db", 4)};
static const wt_setting air[] = {{"shape", "highshelf", 0}, NUMBER("frequency_hz", 9000), NUMBER("gain_db", 2)};
static const wt_setting squeeze[] = {NUMBER("threshold_db", -20), NUMBER("ratio", 3)};
static const wt_setting ceiling[] = {NUMBER("ceiling_db", -1), NUMBER("lookahead_ms", 1.5)};
// all taps in the time domain or in partitions, as the node decides; 10.66 ms are 512 frames of 48 kHz
static const wt_setting room[] = {{"synthetic_ms", "10.66", 0}, NUMBER("mix", 0.3)};
static const wt_setting hall[] = {{"synthetic_ms", "1000", 0}, NUMBER("mix", 0.3)};

#define VOICE(response)                                                                                                \
    {                                                                                                                  \
        {.type = "biquad", .id = "low_cut", .settings = low_cut, .n_settings = 2},                                     \
            {.type = "biquad", .id = "body", .settings = body, .n_settings = 3},                                       \
            {.type = "biquad", .id = "nasal", .settings = nasal, .n_settings = 3},                                     \
            {.type = "biquad", .id = "presence", .settings = presence, .n_settings = 3},                               \
            {.type = "biquad", .id = "air", .settings = air, .n_settings = 3},                                         \
            {.type = "compressor", .settings = squeeze, .n_settings = 2},                                              \
            {.type = "convolution", .settings = response, .n_settings = 2},                                            \
            {.type = "limiter", .settings = ceiling, .n_settings = 2},                                                 \
    }

static const wt_node_desc nodes[] = VOICE(room), long_nodes[] = VOICE(hall);
const wt_chain_desc bench_voice = {.name = "voice", .nodes = nodes, .n_nodes = sizeof nodes / sizeof *nodes};
const wt_chain_desc bench_voice_long = {
    .name = "voice with a hall", .nodes = long_nodes, .n_nodes = sizeof long_nodes / sizeof *long_nodes};

static const wt_setting fine[] = {NUMBER("n_fft", 1024), NUMBER("hop", 64)};
static const wt_node_desc analysis[] = {
    {.type = "spectrum", .settings = fine, .n_settings = 2}, {.type = "hpss"}, {.type = "cqt"}, {.type = "pitch"}};
const wt_chain_desc bench_analysis = {
    .name = "analysis", .nodes = analysis, .n_nodes = sizeof analysis / sizeof *analysis};
