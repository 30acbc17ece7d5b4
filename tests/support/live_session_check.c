#include "live_session_check.h"

#ifdef WT_HAVE_JACK
#    include <math.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <time.h>

jack_server live_server;

void pause_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

void need_server(void)
{
    if (live_server.killed) return;
    if (live_server.pid)
        jack_server_revive(&live_server);
    else
        jack_server_start(&live_server, BLOCK);
}

live_session_config config_of(const char *preset)
{
    return (live_session_config){.preset = preset,
                                 .host_type = &jack_host_type,
                                 .backend = "cpu",
                                 .host = {.device = live_server.name, .client_name = "session", .midi = true}};
}

live_session *started(const live_session_config *config)
{
    live_session *session;
    assert_ok(live_session_open(config, &session));
    assert_ok(live_session_start(session));
    return session;
}

live_session_stats stats_of(live_session *session)
{
    live_session_stats stats;
    live_session_get_stats(session, &stats);
    return stats;
}

const char *write_preset(void **state, const char *name, const char *nodes)
{
    char text[2048];
    const char *path = test_path(state, name);
    int length = snprintf(text, sizeof text, "name: test   # kept\nnodes:\n%s", nodes);
    char beside[512];
    snprintf(beside, sizeof beside, "%s.new", path);
    test_spill(beside, text, (size_t)length);
    assert_int_equal(rename(beside, path), 0); // as editors do
    return path;
}

float *signal_of(int silence, int n_frames)
{
    float *x = calloc(2 * (size_t)n_frames, sizeof *x);
    uint64_t seed = 7;
    for (int c = 0; c < 2; c++)
        for (int n = silence; n < n_frames; n++)
            x[(size_t)c * (size_t)n_frames + (size_t)n] =
                noise(&seed) * 0.5f * expf(-3.0f * (float)(n - silence) / (float)(n_frames - silence));
    return x;
}

float *offline(const char *path, const float *x, int n_frames)
{
    wt_preset *preset;
    wt_chain *chain;
    float *y = calloc(2 * (size_t)n_frames, sizeof *y);
    assert_ok(wt_preset_load(path, &preset));
    assert_ok(wt_preset_build(preset, &(wt_chain_config){.rate_hz = RATE, .channels = 2}, &chain));
    const float *in[] = {x, x + n_frames};
    float *out[] = {y, y + n_frames};
    assert_ok(wt_chain_process(chain, in, out, n_frames));
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
    return y;
}

float gain_of(jack_wire *wire)
{
    enum { FRAMES = 16384 };
    float *x = signal_of(0, FRAMES), *y = malloc(sizeof *y * 2 * FRAMES);
    jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
    double in = 0, out = 0;
    for (int n = FRAMES / 2; n < FRAMES; n++) in += fabs((double)x[n]), out += fabs((double)y[n]);
    free(x), free(y);
    return (float)(out / in);
}

void listen_to(void *user, const char *name, float value)
{
    heard *h = user;
    snprintf(h->name, sizeof h->name, "%s", name);
    h->value = value;
    h->n++;
}

char *read_text(const char *path)
{
    size_t length;
    char *text = test_slurp(path, &length);
    text[length] = 0; // it has room
    return text;
}

int live_check_begin(void **state)
{
    setenv("WARPTONE_PRESETS", "presets", 1);
    return test_folder_create(state);
}

int live_check_end(void **state)
{
    jack_server_stop(&live_server);
    return test_folder_remove(state);
}

#endif
