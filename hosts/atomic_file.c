#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static wt_status no_memory(const char *path)
{
    return wt_fail(WT_ERR_NO_MEMORY, "%s: name", path);
}

// What a process that leaves at once must remove, whichever of its threads wrote it: like a signal's number this has no
// other place than a global.
static struct {
    pthread_mutex_t mutex;
    char **names; // [n], borrowed from the files
    int n, room;
} begun = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/// With the mutex held.
static bool note(char *temporary)
{
    if (begun.n == begun.room) {
        const int room = 16 + 2 * begun.room;
        char **names = realloc(begun.names, sizeof *names * (size_t)room);
        if (!names) return false;
        begun.names = names, begun.room = room;
    }
    begun.names[begun.n++] = temporary;
    return true;
}

static void forget(const char *temporary)
{
    pthread_mutex_lock(&begun.mutex);
    for (int k = begun.n - 1; k >= 0; k--)
        if (begun.names[k] == temporary) begun.names[k] = begun.names[--begun.n];
    pthread_mutex_unlock(&begun.mutex);
}

void wt__atomic_file_abandon_all(void)
{
    pthread_mutex_lock(&begun.mutex); // for good: nothing is begun any more
    for (int k = 0; k < begun.n; k++) unlink(begun.names[k]);
}

/// Sets target and refuses what must not be replaced. `mode` is the existing file's, 0 = none.
static wt_status find_target(const char *path, wt__atomic_file *f, mode_t *mode)
{
    *mode = 0;
    errno = 0;
    char *resolved = realpath(path, NULL); // NULL for a file that is not there yet
    f->target = resolved || errno == ENOMEM ? resolved : strdup(path);
    if (!f->target) return no_memory(path);
    struct stat what;
    if (!resolved || stat(f->target, &what)) {
        if (path[strlen(path) - 1] != '/') return WT_OK;
        return wt_fail(WT_ERR_FILE, "%s: is a folder's name, want a file's", path);
    }
    if (S_ISDIR(what.st_mode)) return wt_fail(WT_ERR_FILE, "%s: is a folder, want a file to write", path);
    if (!S_ISREG(what.st_mode)) return wt_fail(WT_ERR_FILE, "%s: is no regular file and is not written over", path);
    f->replaces = true;
    f->device = what.st_dev;
    f->inode = what.st_ino;
    *mode = what.st_mode & 0777;
    return WT_OK;
}

static wt_status create_temporary(const char *path, wt__atomic_file *f, mode_t mode)
{
    const char *slash = strrchr(f->target, '/');
    const int folder_length = slash ? (int)(slash - f->target) + 1 : 0;
    const size_t room = (size_t)folder_length + 256;
    char *temporary = malloc(room);
    if (!temporary) return no_memory(path);
    pthread_mutex_lock(&begun.mutex);
    if (!note(temporary)) {
        pthread_mutex_unlock(&begun.mutex);
        free(temporary);
        return no_memory(path);
    }
    for (int k = 0; k < 10000; k++) { // others may be writing the same target
        snprintf(temporary, room, "%.*s.%.200s.%ld-%d.part", folder_length, f->target, f->target + folder_length,
                 (long)getpid(), k);
        f->fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0 || errno != EEXIST) break;
    }
    const int error = errno;
    pthread_mutex_unlock(&begun.mutex);
    if (f->fd < 0) {
        forget(temporary);
        free(temporary);
        return wt_fail(WT_ERR_FILE, "%s: cannot be created: %s", path, strerror(error));
    }
    f->temporary = temporary;
    if (mode && fchmod(f->fd, mode))
        return wt_fail(WT_ERR_FILE, "%s: its mode cannot be kept: %s", path, strerror(errno));
    return WT_OK;
}

wt_status wt__atomic_file_open(const char *path, wt__atomic_file *file)
{
    *file = (wt__atomic_file){.fd = -1};
    if (!path || !*path) return wt_fail(WT_ERR_BAD_ARG, "file: the path is empty");
    mode_t mode;
    wt_status status = find_target(path, file, &mode);
    if (!status) status = create_temporary(path, file, mode);
    if (status) wt__atomic_file_discard(file);
    return status;
}

static wt_status finish(wt__atomic_file *f, bool sync)
{
    if (sync && fsync(f->fd)) return wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", f->target, strerror(errno));
    int failed = close(f->fd); // NFS reports a full disk here
    f->fd = -1;
    if (failed) return wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", f->target, strerror(errno));
    if (rename(f->temporary, f->target))
        return wt_fail(WT_ERR_FILE, "%s: the finished file cannot be renamed to it: %s", f->target, strerror(errno));
    forget(f->temporary);
    free(f->temporary);
    f->temporary = NULL;
    return WT_OK;
}

wt_status wt__atomic_file_commit(wt__atomic_file *file, bool sync)
{
    wt_status status = finish(file, sync);
    wt__atomic_file_discard(file);
    return status;
}

void wt__atomic_file_discard(wt__atomic_file *file)
{
    if (file->temporary) {
        if (file->fd >= 0) close(file->fd);
        unlink(file->temporary);
        forget(file->temporary);
    }
    free(file->temporary);
    free(file->target);
    *file = (wt__atomic_file){.fd = -1};
}
