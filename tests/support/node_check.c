#include "support/testing.h"
#include "support/chain_check.h"
#include "support/failing_alloc.h"
#include "support/node_check.h"
#include "support/realtime.h"

#include <math.h>
#include <string.h>

#define RATE 48000.0

wt_chain_desc node_desc(wt_node_desc *node, const char *type, const wt_setting *settings, int n_settings)
{
    *node = (wt_node_desc){.type = type, .settings = settings, .n_settings = n_settings};
    return (wt_chain_desc){.nodes = node, .n_nodes = 1};
}

const wt_setting *node_required(const char *type)
{
    static const struct {
        const char *type;
        wt_setting setting;
    } required[] = {
        {"biquad", {"shape", "peak", 0}},
        {"convolution", {"synthetic_ms", "100", 0}},
        {"crossover", {"band", "1", 0}},
        {"fir", {"design", "lowpass", 0}},
    };
    for (size_t k = 0; k < sizeof required / sizeof *required; k++)
        if (!strcmp(required[k].type, type)) return &required[k].setting;
    return NULL;
}

wt_chain *node_chain(const char *type, const wt_setting *settings, int n_settings, int channels, double rate_hz)
{
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, type, settings, n_settings);
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = rate_hz, .channels = channels}, &desc, &chain));
    return chain;
}

void check_refusal(const char *type, const wt_setting *settings, int n_settings, wt_status status, const char *sentence)
{
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, type, settings, n_settings);
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &desc, &chain), status, sentence);
    assert_null(chain);
}

static void check_real_time(wt_chain *chain)
{
    static float x[2][1000];
    const float *const in[] = {x[0], x[1]};
    float *const out[] = {x[0], x[1]};
    wt_status status = WT_OK;
    RT_SECTION
    {
        for (int block = 1; block <= 1000 && !status; block += 111) {
            for (int p = 0; p < wt_node_type_n_params(wt_chain_node_type(chain, 0)); p++)
                status |= wt_chain_set(chain, 0, p, wt_node_type_param(wt_chain_node_type(chain, 0), p)->max);
            status |= wt_chain_process(chain, in, out, block);
        }
    }
    assert_int_equal(status, WT_OK);
}

typedef struct creation {
    const wt_chain_desc *desc;
    wt_chain *chain;
} creation;

static wt_status create(void *user)
{
    creation *c = user;
    return wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, c->desc, &c->chain);
}

static void destroy(void *user) { wt_chain_destroy(((creation *)user)->chain); }

void check_node(const char *type, const wt_setting *settings, int n_settings)
{
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, type, settings, n_settings);
    const int channels[] = {1, 2, 11};
    for (int k = 0; k < 3; k++) check_block_sizes(&desc, channels[k], RATE);
    check_node_runs(type, settings, n_settings);
}

void check_node_runs(const char *type, const wt_setting *settings, int n_settings)
{
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, type, settings, n_settings);
    wt_chain *chain = node_chain(type, settings, n_settings, 2, RATE);
    check_real_time(chain);
    wt_chain_destroy(chain);
    assert_survives_failing_alloc(create, destroy, &(creation){.desc = &desc});
}

void check_node_cuda(const char *type, const wt_setting *settings, int n_settings, int param, float value,
                     double bound_db)
{
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, type, settings, n_settings);
    check_cuda(&desc, 2, RATE, 0, param, value, bound_db);
    check_cuda(&desc, 11, RATE, 0, param, value, bound_db);
}

void check_node_cuda_readings(const char *type, const wt_setting *settings, int n_settings, float bound)
{
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, type, settings, n_settings);
    const int channels[] = {1, 2, 11};
    for (int k = 0; k < 3; k++) check_cuda_readings(&desc, channels[k], RATE, bound);
}

void sine_signal(float *x, int n_frames, double frequency_hz, double rate_hz, double amplitude, double phase)
{
    for (int n = 0; n < n_frames; n++) x[n] = (float)(amplitude * sin(2 * M_PI * frequency_hz / rate_hz * n + phase));
}

float to_db(float amplitude) { return 20 * log10f(amplitude); }
float from_db(float db) { return powf(10, db / 20); }

float reading(const wt_chain *chain, int node, int which)
{
    float values[16] = {0};
    assert_true(wt_chain_readings(chain, node, values, 16) > which);
    return values[which];
}
