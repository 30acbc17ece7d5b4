// MIDI of a session: the map moves parameters in the audio thread (midi_map.h); what listeners and presets need of that
// comes to the keeper through a ring and the map's own words. Workers' calls of the map are made under `change`.
#include "live_session_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <warptone/names.h>

enum { MOVED_CAPACITY = 256, MOD_HOST_BEND = 131 };

typedef struct moved {
    int node, param;
} moved;

static void set(void *user, uint64_t number, int node, int param, float value)
{
    live_session *s = user;
    if (wt_live_set_if(s->live, number, node, param, value)) return;
    wt_ring_push(s->moved, &(moved){node, param}, 1); // full: listeners hear of it with the next one
}

static float get(void *user, int node, int param) { return wt_live_get(((live_session *)user)->live, node, param); }

wt_status live__midi_open(live_session *s)
{
    const wt_ring_config ring = {.element_bytes = sizeof(moved), .capacity = MOVED_CAPACITY};
    wt_status status = wt_ring_create(&ring, &s->moved);
    return status ? status : midi_map_create(&(midi_sink){s, set, get}, &s->midi);
}

void live__midi_close(live_session *s)
{
    midi_map_destroy(s->midi);
    wt_ring_destroy(s->moved);
}

void live__midi_message(void *user, int frame, const uint8_t *bytes, int n_bytes)
{
    (void)frame; // parameters move at control points of 32 frames from the block's begin, and glide
    midi_map_message(((live_session *)user)->midi, bytes, n_bytes);
}

void live_session_midi(live_session *s, const uint8_t *bytes, int n_bytes) { midi_map_push(s->midi, bytes, n_bytes); }

wt_status live__midi_load(live_session *s, const wt_preset *preset)
{
    int n;
    const wt_midi_row *rows = wt_preset_midi(preset, &n);
    return midi_map_load(s->midi, wt_live_chain(s->live), rows, n);
}

// ---- the keeper's round

static void tell_moved(live_session *s)
{
    moved m;
    while (wt_ring_pop(s->moved, &m, 1)) {
        char name[LIVE_NAME_BYTES] = "";
        pthread_mutex_lock(&s->table);
        for (int k = 0; k < s->playing->n_params && !*name; k++)
            if (s->playing->params[k].node == m.node && s->playing->params[k].index == m.param)
                snprintf(name, sizeof name, "%s", s->playing->params[k].name);
        const float value = wt_live_get(s->live, m.node, m.param);
        pthread_mutex_unlock(&s->table);
        if (*name) live__notify(s, name, value);
    }
}

/// True when a program change loaded a preset.
static bool follow_map(live_session *s)
{
    wt_midi_row row;
    wt_status status = WT_OK;
    bool loaded = false;
    if (*s->learning && midi_map_learned(s->midi, &row)) {
        row.param = s->learning;
        row.min = s->learn_min, row.max = s->learn_max;
        status = midi_map_add(s->midi, wt_live_chain(s->live), &row);
        *s->learning = 0;
        midi_map_learn(s->midi, false);
    }
    const char *program = midi_map_program(s->midi);
    if (program && !status) {
        char name[512];
        snprintf(name, sizeof name, "%s", program); // the map's, which is about to go
        status = live__load(s, name);
        loaded = !status;
    }
    if (status) live__keep_error(s, wt_last_error());
    return loaded;
}

void live__midi_round(live_session *s)
{
    tell_moved(s);
    if (pthread_mutex_trylock(&s->change)) return; // a load is under way: next time
    bool loaded = follow_map(s);
    pthread_mutex_unlock(&s->change);
    if (loaded) live__notify(s, "preset", 0);
}

// ---- mapping by hand

wt_status live_session_midi_learn(live_session *s, const char *name, float min, float max)
{
    char full[LIVE_NAME_BYTES];
    wt_status status = live__full_name(s, name, full);
    if (status) return status;
    pthread_mutex_lock(&s->change);
    snprintf(s->learning, sizeof s->learning, "%s", full);
    s->learn_min = min, s->learn_max = max;
    midi_map_learn(s->midi, true);
    pthread_mutex_unlock(&s->change);
    return WT_OK;
}

static wt_status curve_of(const char *name, wt_midi_curve *curve)
{
    static const char *const names[] = {
#define LIVE_CURVE_NAME(code, text) text,
        WT_MIDI_CURVE_LIST(LIVE_CURVE_NAME)
#undef LIVE_CURVE_NAME
    };
    *curve = WT_MIDI_STANDARD;
    for (int k = 0; k < WT_N_MIDI_CURVES && name; k++)
        if (!strcmp(names[k], name)) {
            *curve = (wt_midi_curve)k;
            return WT_OK;
        }
    if (!name) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "midi: curve is '%s'; the nearest is '%s'", name,
                   wt_nearest_name(name, names, WT_N_MIDI_CURVES));
}

wt_status live_session_midi_map(live_session *s, const char *name, int channel, int controller, float min, float max,
                                const char *curve)
{
    char full[LIVE_NAME_BYTES];
    wt_midi_row row = {.source = WT_MIDI_CC, .number = controller, .channel = channel, .min = min, .max = max};
    if (controller == MOD_HOST_BEND) row.source = WT_MIDI_BEND, row.number = WT_MIDI_ANY;
    if (channel < 0 || channel > 16)
        return wt_fail(WT_ERR_BAD_ARG, "midi: channel %d, want 1..16, or 0 for any", channel);
    if (row.source == WT_MIDI_CC && (controller < 0 || controller > 119))
        return wt_fail(WT_ERR_BAD_ARG, "midi: controller %d, want 0..119, or %d for the pitch wheel", controller,
                       MOD_HOST_BEND);
    wt_status status = curve_of(curve, &row.curve);
    if (!status) status = live__full_name(s, name, full);
    if (status) return status;
    row.param = full;
    pthread_mutex_lock(&s->change);
    status = midi_map_add(s->midi, wt_live_chain(s->live), &row);
    pthread_mutex_unlock(&s->change);
    return status;
}

wt_status live_session_midi_unmap(live_session *s, const char *name)
{
    char full[LIVE_NAME_BYTES];
    wt_midi_row left[PRESET_MAX_MIDI];
    int n, n_left = 0;
    wt_status status = live__full_name(s, name, full);
    if (status) return status;
    pthread_mutex_lock(&s->change);
    const wt_midi_row *rows = midi_map_rows(s->midi, &n);
    for (int k = 0; k < n; k++)
        if (!rows[k].param || strcmp(rows[k].param, full)) left[n_left++] = rows[k];
    status = midi_map_load(s->midi, wt_live_chain(s->live), left, n_left);
    pthread_mutex_unlock(&s->change);
    return status;
}
