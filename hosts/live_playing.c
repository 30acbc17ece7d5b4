// What plays, by name. A name is looked up, and its value set, under `table`; chains come and go under `change`. For
// the moment between the two the table is the old chain's, and its number keeps a name of it off the new one's
// parameters.
#include "live_session_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>

// ---- the table

static void count(const wt_chain *chain, int *n_params, int *n_readings)
{
    *n_params = *n_readings = 0;
    for (int n = 0; n < wt_chain_n_nodes(chain); n++) {
        *n_params += wt_node_type_n_params(wt_chain_node_type(chain, n));
        *n_readings += wt_chain_node_type(chain, n)->n_readings;
    }
}

static live_name name_of(const wt_chain *chain, int node, int index, const char *name)
{
    live_name n = {.node = node, .index = index};
    snprintf(n.name, sizeof n.name, "%.63s/%.63s", wt_chain_node_id(chain, node), name);
    return n;
}

static live_param info_of(const char *node, const wt_param_info *p)
{
    live_param info = {.min = p->min, .max = p->max, .standard = p->standard, .logarithmic = p->logarithmic != 0};
    snprintf(info.node, sizeof info.node, "%s", node);
    snprintf(info.name, sizeof info.name, "%s", p->name);
    snprintf(info.unit, sizeof info.unit, "%s", p->unit);
    return info;
}

static void fill(live_session *s, const wt_chain *chain, live_playing *p)
{
    int param = 0, reading = 0;
    for (int n = 0; n < wt_chain_n_nodes(chain); n++) {
        const wt_node_type *type = wt_chain_node_type(chain, n);
        for (int k = 0; k < wt_node_type_n_params(type); k++, param++) {
            const wt_param_info *info = wt_node_type_param(type, k);
            p->params[param] = name_of(chain, n, k, info->name);
            p->infos[param] = info_of(wt_chain_node_id(chain, n), info);
            p->saved[param] = wt_live_get(s->live, n, k);
        }
        for (int k = 0; k < type->n_readings; k++) p->readings[reading++] = name_of(chain, n, k, type->readings[k]);
    }
}

wt_status live__playing_create(live_session *s, wt_preset *preset, const char *asked, live_playing **playing)
{
    const wt_chain *chain = wt_live_chain(s->live);
    live_playing *p = calloc(1, sizeof *p);
    *playing = p;
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "live: names");
    count(chain, &p->n_params, &p->n_readings);
    p->asked = strdup(asked);
    p->params = calloc((size_t)p->n_params + 1, sizeof *p->params);
    p->infos = calloc((size_t)p->n_params + 1, sizeof *p->infos);
    p->saved = calloc((size_t)p->n_params + 1, sizeof *p->saved);
    p->readings = calloc((size_t)p->n_readings + 1, sizeof *p->readings);
    if (!p->asked || !p->params || !p->infos || !p->saved || !p->readings) {
        live__playing_destroy(p);
        *playing = NULL;
        return wt_fail(WT_ERR_NO_MEMORY, "live: names");
    }
    p->number = wt_chain_number(chain);
    fill(s, chain, p);
    p->preset = preset;
    return WT_OK;
}

void live__playing_destroy(live_playing *p)
{
    if (!p) return;
    wt_preset_destroy(p->preset);
    free(p->asked), free(p->params), free(p->infos), free(p->saved), free(p->readings);
    free(p);
}

/// "node/param", or "node.param" when the name has no slash.
static int find(const live_name *names, int n, const char *name)
{
    char wanted[LIVE_NAME_BYTES];
    snprintf(wanted, sizeof wanted, "%s", name);
    char *dot = strchr(wanted, '/') ? NULL : strrchr(wanted, '.');
    if (dot) *dot = '/';
    for (int k = 0; k < n; k++)
        if (!strcmp(names[k].name, wanted)) return k;
    return -1;
}

static wt_status refuse(const live_name *names, int n, const char *kind, const char *name)
{
    const char **all = malloc(sizeof *all * ((size_t)n + 1));
    if (!all) return wt_fail(WT_ERR_NO_MEMORY, "live: names");
    for (int k = 0; k < n; k++) all[k] = names[k].name;
    wt_status status = n ? wt_fail(WT_ERR_NOT_FOUND, "live: no %s '%s'; the nearest is '%s'", kind, name,
                                   wt_nearest_name(name, all, n))
                         : wt_fail(WT_ERR_NOT_FOUND, "live: no %s '%s'; this preset has none", kind, name);
    free(all);
    return status;
}

wt_status live__full_name(live_session *s, const char *name, char full[LIVE_NAME_BYTES])
{
    pthread_mutex_lock(&s->table);
    const live_playing *p = s->playing;
    const int k = find(p->params, p->n_params, name);
    wt_status status = k < 0 ? refuse(p->params, p->n_params, "parameter", name) : WT_OK;
    if (!status) snprintf(full, LIVE_NAME_BYTES, "%s", p->params[k].name);
    pthread_mutex_unlock(&s->table);
    return status;
}

// ---- parameters

int live_session_n_params(live_session *s)
{
    pthread_mutex_lock(&s->table);
    int n = s->playing->n_params;
    pthread_mutex_unlock(&s->table);
    return n;
}

wt_status live_session_param(live_session *s, int index, live_param *param)
{
    wt_status status = WT_OK;
    pthread_mutex_lock(&s->table);
    const live_playing *p = s->playing;
    if (index >= 0 && index < p->n_params) {
        *param = p->infos[index];
        param->value = wt_live_get(s->live, p->params[index].node, p->params[index].index);
    } else {
        status = wt_fail(WT_ERR_NOT_FOUND, "live: no parameter %d, want 0..%d", index, p->n_params - 1);
    }
    pthread_mutex_unlock(&s->table);
    return status;
}

wt_status live_session_set(live_session *s, const char *name, float value)
{
    char full[LIVE_NAME_BYTES];
    if (!isfinite(value)) return wt_fail(WT_ERR_BAD_ARG, "live: %s is %g, want a finite number", name, (double)value);
    pthread_mutex_lock(&s->table);
    const live_playing *p = s->playing;
    const int k = find(p->params, p->n_params, name);
    wt_status status = k < 0 ? refuse(p->params, p->n_params, "parameter", name)
                             : wt_live_set_if(s->live, p->number, p->params[k].node, p->params[k].index, value);
    if (status == WT_ERR_STATE) wt_fail(status, "live: %s: its preset is being replaced", name);
    if (!status) {
        value = wt_live_get(s->live, p->params[k].node, p->params[k].index);
        snprintf(full, sizeof full, "%s", p->params[k].name);
    }
    pthread_mutex_unlock(&s->table);
    if (!status) live__notify(s, full, value);
    return status;
}

wt_status live_session_get(live_session *s, const char *name, float *value)
{
    pthread_mutex_lock(&s->table);
    const live_playing *p = s->playing;
    const int k = find(p->params, p->n_params, name);
    wt_status status = k < 0 ? refuse(p->params, p->n_params, "parameter", name) : WT_OK;
    if (!status) *value = wt_live_get(s->live, p->params[k].node, p->params[k].index);
    pthread_mutex_unlock(&s->table);
    return status;
}

wt_status live_session_reading(live_session *s, const char *name, float *value)
{
    enum { MAX_READINGS = 128 };
    float values[MAX_READINGS];
    pthread_mutex_lock(&s->table);
    const live_playing *p = s->playing;
    const int k = find(p->readings, p->n_readings, name);
    wt_status status = k < 0 ? refuse(p->readings, p->n_readings, "reading", name) : WT_OK;
    int n = status ? 0 : wt_live_readings(s->live, p->readings[k].node, values, MAX_READINGS);
    if (!status) *value = p->readings[k].index < n ? values[p->readings[k].index] : 0;
    pthread_mutex_unlock(&s->table);
    return status;
}

// ---- listeners

wt_status live_session_listen(live_session *s, live_listener function, void *user)
{
    wt_status status = WT_OK;
    int free_place = -1;
    pthread_mutex_lock(&s->listen);
    for (int k = 0; k < LIVE_MAX_LISTENERS; k++) {
        live_listening *l = &s->listening[k];
        if (!function && l->user == user) *l = (live_listening){NULL, NULL};
        if (!l->function) free_place = k;
    }
    if (function && free_place < 0) status = wt_fail(WT_ERR_FULL, "live: %d listeners at most", LIVE_MAX_LISTENERS);
    if (function && !status) s->listening[free_place] = (live_listening){function, user};
    pthread_mutex_unlock(&s->listen);
    return status;
}

void live__notify(live_session *s, const char *name, float value)
{
    pthread_mutex_lock(&s->listen);
    for (int k = 0; k < LIVE_MAX_LISTENERS; k++)
        if (s->listening[k].function) s->listening[k].function(s->listening[k].user, name, value);
    pthread_mutex_unlock(&s->listen);
}
