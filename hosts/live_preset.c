#include "atomic_file.h"
#include "live_session_internal.h"
#include "preset_edit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- load

/// Exchange what plays, and keep what was asked for a while: a thread may hold its name.
static void show(live_session *s, live_playing *fresh)
{
    pthread_mutex_lock(&s->table);
    live__playing_destroy(s->retired);
    s->retired = s->playing;
    s->playing = fresh;
    s->followed_ms = 0; // its delays have not heard of the tempo
    pthread_mutex_unlock(&s->table);
}

/// `preset` is taken: it plays, or it is kept so that its files are watched.
static wt_status play(live_session *s, wt_preset *preset, const char *asked)
{
    live_playing *fresh = NULL;
    wt_status status = wt_preset_load_live(preset, s->live, s->channels);
    if (!status) status = live__playing_create(s, preset, asked, &fresh);
    if (!status) {
        live__keep_error(s, live__midi_load(s, preset) ? wt_last_error() : ""); // it plays all the same
        show(s, fresh);
    }
    pthread_mutex_lock(&s->table);
    live__playing_destroy(s->failed);
    s->failed = status ? calloc(1, sizeof *s->failed) : NULL;
    if (s->failed) s->failed->preset = preset;
    pthread_mutex_unlock(&s->table);
    if (status && !s->failed) wt_preset_destroy(preset);
    return status;
}

wt_status live__load(live_session *s, const char *name)
{
    wt_preset *preset;
    wt_status status = wt_preset_load(name, &preset);
    if (!status) status = play(s, preset, name);
    atomic_store(&s->playing_changed, true); // or failed: other files may want watching
    if (!status) atomic_store(&s->latency_changed, true);
    return status;
}

wt_status live_session_load(live_session *s, const char *name)
{
    pthread_mutex_lock(&s->change);
    wt_status status = live__load(s, name);
    pthread_mutex_unlock(&s->change);
    live__wake(s);
    if (!status) live__notify(s, "preset", 0);
    return status;
}

// ---- save

/// Values that the preset's text does not have yet; what it has already is left as it stands.
static wt_status edit_values(live_session *s, const live_playing *p, const char *path, char **text)
{
    wt_status status = WT_OK;
    for (int k = 0; k < p->n_params && !status; k++) {
        const float value = wt_live_get(s->live, p->params[k].node, p->params[k].index);
        if (value != p->saved[k]) status = preset_edit_param(path, text, p->params[k].node, p->infos[k].name, value);
    }
    return status;
}

/// A preset in another folder must find the files it names.
static wt_status check_files(const wt_preset *own, const wt_preset *written)
{
    const wt_chain_desc *a = wt_preset_chain(own), *b = wt_preset_chain(written);
    for (int n = 0; n < a->n_nodes; n++)
        for (int k = 0; k < a->nodes[n].n_settings; k++) {
            const char *here = a->nodes[n].settings[k].text, *there = b->nodes[n].settings[k].text;
            if (!strcmp(a->nodes[n].settings[k].name, "file") && strcmp(here, there) && access(there, R_OK))
                return wt_fail(WT_ERR_FILE, "%s: names %s, which is not there; want it beside %s",
                               wt_preset_path(written), there, wt_preset_path(own));
        }
    return WT_OK;
}

static wt_status write_text(const char *path, const char *text, size_t length)
{
    wt__atomic_file file;
    wt_status status = wt__atomic_file_open(path, &file);
    if (status) return status;
    for (size_t done = 0; done < length;) {
        ssize_t put = write(file.fd, text + done, length - done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            status = wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
            wt__atomic_file_discard(&file);
            return status;
        }
        done += (size_t)put;
    }
    return wt__atomic_file_commit(&file, true);
}

/// What plays is what its file says now.
static void settle(live_session *s, wt_preset *written)
{
    pthread_mutex_lock(&s->table);
    live_playing *p = s->playing;
    wt_preset_destroy(p->preset);
    p->preset = written;
    for (int k = 0; k < p->n_params; k++) p->saved[k] = wt_live_get(s->live, p->params[k].node, p->params[k].index);
    pthread_mutex_unlock(&s->table);
    if (s->watch) live_watch_know(s->watch, wt_preset_path(written));
}

static wt_status save(live_session *s, const char *path)
{
    const live_playing *p = s->playing; // `change` is held: it stays
    const char *own = wt_preset_path(p->preset);
    char *text = strdup(wt_preset_text(p->preset));
    wt_preset *written = NULL;
    int n_rows;
    const wt_midi_row *rows = midi_map_rows(s->midi, &n_rows);
    if (!text) return wt_fail(WT_ERR_NO_MEMORY, "live: text");
    if (!path) path = own;
    wt_status status = edit_values(s, p, own, &text);
    if (!status) status = preset_edit_midi(own, &text, rows, n_rows);
    if (!status) status = wt_preset_parse(path, text, strlen(text), &written);
    if (!status) status = check_files(p->preset, written);
    if (!status) status = write_text(path, text, strlen(text));
    free(text);
    if (!status && !strcmp(path, own))
        settle(s, written);
    else
        wt_preset_destroy(written);
    return status;
}

wt_status live_session_save(live_session *s, const char *path)
{
    pthread_mutex_lock(&s->change);
    wt_status status = save(s, path);
    pthread_mutex_unlock(&s->change);
    return status;
}
