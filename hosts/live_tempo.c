// Delays that follow the host's tempo (the option `sync` of a delay). The keeper looks at the tempo 20 times a second
// and turns time_ms; the delay glides to it.
#include "live_session_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SYNCED = 32 };

/// Length of a note such as "1/8" or, dotted, "1/8." or, of a triplet, "1/8t", in whole notes; 0 = "none".
static double whole_notes(const char *note)
{
    int parts = 0;
    char mark = 0;
    if (sscanf(note, "1/%d%c", &parts, &mark) < 1 || parts < 1) return 0;
    return (mark == '.' ? 1.5 : mark == 't' ? 2.0 / 3 : 1) / parts;
}

/// What the preset says of `sync` at a node, in whole notes; 0 = nothing.
static double sync_of(const wt_chain_desc *chain, int node)
{
    for (int k = 0; node < chain->n_nodes && k < chain->nodes[node].n_settings; k++) {
        const wt_setting *setting = &chain->nodes[node].settings[k];
        if (!strcmp(setting->name, "sync") && setting->text) return whole_notes(setting->text);
    }
    return 0;
}

/// Turn every synced delay for a whole note of whole_ms; returns how many, and which of the parameters.  [`change`
/// held]
static int turn_all(live_session *s, double whole_ms, live_name turned[MAX_SYNCED])
{
    const live_playing *p = s->playing;
    int n = 0;
    for (int k = 0; k < p->n_params && n < MAX_SYNCED; k++) {
        const double notes = sync_of(wt_preset_chain(p->preset), p->params[k].node);
        if (notes == 0 || strcmp(p->infos[k].name, "time_ms")) continue;
        if (!wt_live_set(s->live, p->params[k].node, p->params[k].index, (float)(notes * whole_ms)))
            turned[n++] = p->params[k];
    }
    return n;
}

void live__tempo_round(live_session *s)
{
    const double bpm = atomic_load(&s->bpm), beat_unit = atomic_load(&s->beat_unit);
    const double whole_ms = bpm > 0 ? 60000 / bpm * (beat_unit > 0 ? beat_unit : 4) : 0;
    live_name turned[MAX_SYNCED];
    float values[MAX_SYNCED];
    if (whole_ms == 0 || pthread_mutex_trylock(&s->change)) return; // a load is under way: next time
    const int n = whole_ms != s->followed_ms ? turn_all(s, whole_ms, turned) : 0;
    for (int k = 0; k < n; k++) values[k] = wt_live_get(s->live, turned[k].node, turned[k].index);
    s->followed_ms = whole_ms;
    pthread_mutex_unlock(&s->change);
    for (int k = 0; k < n; k++) live__notify(s, turned[k].name, values[k]);
}
