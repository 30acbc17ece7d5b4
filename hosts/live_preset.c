#include "atomic_file.h"
#include "live_session_internal.h"
#include "preset_edit.h"

#include <errno.h>
#include <limits.h>
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
    for (int k = 0; k < fresh->n_params; k++) { // see the top of live_playing.c
        const live_name *p = &fresh->params[k];
        if (wt_live_get(s->live, p->node, p->index) != fresh->saved[k])
            (void)wt_live_set(s->live, p->node, p->index, fresh->saved[k]);
    }
    pthread_mutex_unlock(&s->table);
}

/// `preset` is taken: it plays, or it is kept so that its files are watched.
static wt_status play(live_session *s, wt_preset *preset, const char *asked)
{
    live_playing *fresh = NULL;
    wt_status status = wt_preset_load_live(preset, s->live, s->channels);
    if (!status && !(status = live__playing_create(s, preset, asked, &fresh))) show(s, fresh);
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

/// The text of the preset with the present values, malloc'ed; those the preset has already are left as they stand.
static wt_status edit_values(live_session *s, const live_playing *p, char **text, size_t *length)
{
    wt_status status = WT_OK;
    for (int k = 0; k < p->n_params && !status; k++) {
        char number[32];
        const float value = wt_live_get(s->live, p->params[k].node, p->params[k].index);
        if (value == p->saved[k]) continue;
        preset_edit_number(value, number);
        status = preset_edit_set(text, length, p->params[k].node, p->infos[k].name, number);
    }
    return status;
}

/// Relative files of a preset that goes to another folder are named in full.
static wt_status edit_files(const live_playing *p, char **text, size_t *length)
{
    const wt_chain_desc *chain = wt_preset_chain(p->preset);
    wt_status status = WT_OK;
    for (int n = 0; n < chain->n_nodes && !status; n++)
        for (int k = 0; k < chain->nodes[n].n_settings && !status; k++) {
            const wt_setting *setting = &chain->nodes[n].settings[k];
            char full[PATH_MAX], quoted[PATH_MAX + 2];
            if (strcmp(setting->name, "file") || !realpath(setting->text, full)) continue;
            if (strpbrk(full, "\"\\"))
                return wt_fail(WT_ERR_FORMAT, "%s: a name with \" or \\ cannot be written", full);
            snprintf(quoted, sizeof quoted, "\"%s\"", full);
            status = preset_edit_set(text, length, n, "file", quoted);
        }
    return status;
}

static bool same_folder(const char *a, const char *b)
{
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    size_t length = slash_a ? (size_t)(slash_a - a) : 0;
    return length == (slash_b ? (size_t)(slash_b - b) : 0) && !memcmp(a, b, length);
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
    atomic_store(&s->saved, s->watch != NULL);
}

static wt_status save(live_session *s, const char *path)
{
    const live_playing *p = s->playing; // `change` is held: it stays
    const char *own = wt_preset_path(p->preset);
    size_t length;
    const char *before = wt_preset_text(p->preset, &length);
    char *text = malloc(length + 1);
    wt_preset *written = NULL;
    if (!text) return wt_fail(WT_ERR_NO_MEMORY, "live: text");
    memcpy(text, before, length + 1);
    if (!path) path = own;
    wt_status status = edit_values(s, p, &text, &length);
    if (!status && !same_folder(path, own)) status = edit_files(p, &text, &length);
    if (!status) status = wt_preset_parse(path, text, length, &written); // a preset that cannot be read is not written
    if (!status) status = write_text(path, text, length);
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
