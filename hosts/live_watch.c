// Editors write beside and rename, so it is folders that are watched (inotify), for the names in question. An event is
// only a hint: what counts is that size, time or inode of a file is another one, so that a file we wrote ourselves and
// have looked at again is not news.
#include "live_watch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { MAX_FILES = 64, SETTLE_NS = 100000000 };

typedef struct watched {
    char *path;
    int folder; ///< inotify's number
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec time;
} watched;

struct live_watch {
    pthread_mutex_t mutex;
    int fd, n_files;
    watched files[MAX_FILES];
    int64_t moved_ns; ///< of the last event; 0 = none since
};

wt_status live_watch_open(live_watch **watch)
{
    live_watch *w = calloc(1, sizeof *w);
    *watch = w;
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "live: watch");
    pthread_mutex_init(&w->mutex, NULL);
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd >= 0) return WT_OK;
    wt_status status = wt_fail(WT_ERR_STATE, "live: files cannot be watched: %s", strerror(errno));
    free(w);
    *watch = NULL;
    return status;
}

void live_watch_close(live_watch *w)
{
    if (!w) return;
    close(w->fd);
    pthread_mutex_destroy(&w->mutex);
    for (int k = 0; k < w->n_files; k++) free(w->files[k].path);
    free(w);
}

/// Look at the file; true when it is another than before. One that is gone for the moment is as it was.
static bool look(watched *f)
{
    struct stat s;
    if (stat(f->path, &s)) return false;
    bool same = f->device == s.st_dev && f->inode == s.st_ino && f->size == s.st_size &&
                f->time.tv_sec == s.st_mtim.tv_sec && f->time.tv_nsec == s.st_mtim.tv_nsec;
    f->device = s.st_dev, f->inode = s.st_ino, f->size = s.st_size, f->time = s.st_mtim;
    return !same;
}

static void add(live_watch *w, const char *path, const watched *old, int n_old)
{
    watched *f = &w->files[w->n_files];
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    *f = (watched){.path = length < sizeof folder ? strdup(path) : NULL};
    if (!f->path) return;
    for (int k = 0; k < n_old; k++)
        if (!strcmp(old[k].path, path))
            f->device = old[k].device, f->inode = old[k].inode, f->size = old[k].size, f->time = old[k].time;
    if (!f->inode) look(f);
    memcpy(folder, length ? path : "./", length ? length : 2);
    folder[length ? length : 2] = 0;
    f->folder = inotify_add_watch(w->fd, folder, IN_CLOSE_WRITE | IN_MOVED_TO);
    w->n_files++;
}

void live_watch_files(live_watch *w, const char *const *paths, int n_paths)
{
    watched old[MAX_FILES];
    pthread_mutex_lock(&w->mutex);
    const int n_old = w->n_files;
    memcpy(old, w->files, sizeof *old * (size_t)n_old);
    for (int k = 0; k < n_old; k++)
        if (old[k].folder >= 0) inotify_rm_watch(w->fd, old[k].folder); // again for a shared one: no harm
    w->n_files = 0;
    for (int k = 0; k < n_paths && w->n_files < MAX_FILES; k++) add(w, paths[k], old, n_old);
    for (int k = 0; k < n_old; k++) free(old[k].path);
    w->moved_ns = wt_clock_now_ns(NULL); // what moved meanwhile is found by looking
    pthread_mutex_unlock(&w->mutex);
}

bool live_watch_changed(live_watch *w)
{
    char events[4096];
    bool changed = false;
    pthread_mutex_lock(&w->mutex);
    while (read(w->fd, events, sizeof events) > 0) w->moved_ns = wt_clock_now_ns(NULL);
    if (w->moved_ns && wt_clock_now_ns(NULL) - w->moved_ns >= SETTLE_NS) {
        w->moved_ns = 0;
        for (int k = 0; k < w->n_files; k++) changed |= look(&w->files[k]);
    }
    pthread_mutex_unlock(&w->mutex);
    return changed;
}

void live_watch_know(live_watch *w, const char *path)
{
    pthread_mutex_lock(&w->mutex);
    for (int k = 0; k < w->n_files; k++)
        if (!strcmp(w->files[k].path, path)) (void)look(&w->files[k]);
    pthread_mutex_unlock(&w->mutex);
}
