// A snapshot in shared memory. The writer makes `sequence` odd, copies, and makes it even; a reader that meets an odd
// or a changed number reads again, a bounded number of times. Readers use pread instead of a mapping: a file that
// another process cuts short then gives a short read, not a signal. Everything read is checked before it is used.
#include "telemetry_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 2, NAME_BYTES = 48, TRIES = 200, TRY_NS = 100000 };

static const char magic[8] = {'w', 'a', 'r', 'p', 't', 'o', 'n', 'e'};

static void name_of(int64_t pid, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "/warptone.%lld", (long long)pid);
}

// ---- writing

/// With its memory: a file that only has its length ends the process by a signal when the shared memory is full.
static bool reserve(int file, off_t bytes)
{
    do errno = posix_fallocate(file, 0, bytes);
    while (errno == EINTR);
    return !errno;
}

/// A new file that this process holds a lock on; a file of its number that nobody holds is left from a dead process.
static wt_status make_file(const char *name, int *file)
{
    int old = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    bool held = old >= 0 && flock(old, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (old >= 0) close(old);
    if (held) return wt_fail(WT_ERR_STATE, "telemetry: another one of this process is published already");
    if (old >= 0) shm_unlink(name);
    *file = shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (*file >= 0 && !flock(*file, LOCK_EX | LOCK_NB) && reserve(*file, sizeof(wt__segment))) return WT_OK;
    return wt_fail(WT_ERR_FILE, "telemetry: shared memory %s: %s", name, strerror(errno));
}

static wt_status open_segment(wt_telemetry *t)
{
    char name[NAME_BYTES];
    int file = -1;
    name_of(getpid(), name);
    wt_status status = make_file(name, &file);
    void *mapped = MAP_FAILED;
    if (!status) {
        mapped = mmap(NULL, sizeof *t->segment, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped == MAP_FAILED) status = wt_fail(WT_ERR_FILE, "telemetry: map %s: %s", name, strerror(errno));
    }
    if (status) {
        if (file >= 0) {
            shm_unlink(name);
            close(file);
        }
        return status;
    }
    t->segment = mapped;
    t->segment_file = file;
    t->segment_pid = getpid();
    t->segment->version = VERSION;
    t->segment->size_bytes = sizeof *t->segment;
    memcpy(t->segment->magic, magic, sizeof magic);
    return WT_OK;
}

wt_status wt_telemetry_publish(wt_telemetry *telemetry)
{
    wt_telemetry *t = telemetry;
    wt_status status = t->segment ? WT_OK : open_segment(t);
    if (status) return status;
    wt_telemetry_snapshot(t, &t->scratch);
    wt__segment *s = t->segment;
    uint64_t sequence = atomic_load_explicit(&s->sequence, memory_order_relaxed);
    atomic_store_explicit(&s->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); // the odd number before the data
    memcpy(&s->view, &t->scratch, sizeof s->view);
    atomic_store_explicit(&s->sequence, sequence + 2, memory_order_release); // and the even one behind it
    return WT_OK;
}

void wt__telemetry_unpublish(wt_telemetry *t)
{
    if (!t->segment) return;
    munmap(t->segment, sizeof *t->segment);
    t->segment = NULL;
    if (t->segment_pid == getpid()) {
        char name[NAME_BYTES];
        name_of(t->segment_pid, name);
        shm_unlink(name);
    }
    close(t->segment_file);
}

// ---- reading

/// Whole numbers of bytes, or nothing.
static bool read_all(int file, void *to, size_t bytes, off_t at)
{
    return pread(file, to, bytes, at) == (ssize_t)bytes;
}

static bool sane(const wt__segment *s)
{
    return !memcmp(s->magic, magic, sizeof magic) && s->version == VERSION && s->size_bytes == sizeof *s;
}

static wt_status read_segment(int file, int64_t pid, wt__segment *s)
{
    for (int n = 0; n < TRIES; n++) {
        uint64_t again = 1;
        bool whole = read_all(file, s, sizeof *s, 0) &&
                     read_all(file, &again, sizeof again, (off_t)offsetof(wt__segment, sequence));
        uint64_t sequence = atomic_load_explicit(&s->sequence, memory_order_relaxed);
        if (whole && !sane(s) && sequence)
            return wt_fail(WT_ERR_FORMAT, "telemetry: what process %lld publishes is damaged or of another version",
                           (long long)pid);
        if (whole && sequence && sequence == again && !(sequence & 1)) return WT_OK;
        nanosleep(&(struct timespec){0, TRY_NS}, NULL);
    }
    struct stat facts;
    if (!fstat(file, &facts) && facts.st_size != (off_t)sizeof *s)
        return wt_fail(WT_ERR_FORMAT, "telemetry: what process %lld publishes has %lld bytes, want %zu", (long long)pid,
                       (long long)facts.st_size, sizeof *s);
    return wt_fail(WT_ERR_TIMEOUT, "telemetry: process %lld has not finished writing its figures", (long long)pid);
}

/// Figures are only numbers, but rows are counted and names end.
static wt_status take_view(const wt_telemetry_view *from, int64_t pid, wt_telemetry_view *to)
{
    memcpy(to, from, sizeof *to);
    if (to->n_rows < 0 || to->n_rows > WT_TELEMETRY_ROWS) {
        int n_rows = to->n_rows;
        memset(to, 0, sizeof *to);
        return wt_fail(WT_ERR_FORMAT, "telemetry: process %lld publishes %d rows, want 0..%d", (long long)pid, n_rows,
                       WT_TELEMETRY_ROWS);
    }
    for (int k = 0; k < to->n_rows; k++) {
        to->rows[k].name[WT_TELEMETRY_NAME_BYTES - 1] = 0;
        to->rows[k].partition[WT_TELEMETRY_NAME_BYTES - 1] = 0;
    }
    return WT_OK;
}

static bool alive(int64_t pid)
{
    return pid > 0 && pid <= INT32_MAX && (!kill((pid_t)pid, 0) || errno == EPERM);
}

wt_status wt_telemetry_read(int64_t pid, wt_telemetry_view *snapshot)
{
    memset(snapshot, 0, sizeof *snapshot);
    if (!alive(pid)) return wt_fail(WT_ERR_NOT_FOUND, "telemetry: there is no process %lld", (long long)pid);
    char name[NAME_BYTES];
    name_of(pid, name);
    int file = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0)
        return wt_fail(WT_ERR_NOT_FOUND, "telemetry: process %lld publishes no figures (%s: %s)", (long long)pid, name,
                       strerror(errno));
    wt__segment *s = malloc(sizeof *s);
    wt_status status = s ? read_segment(file, pid, s) : wt_fail(WT_ERR_NO_MEMORY, "telemetry: no memory to read");
    if (!status) status = take_view(&s->view, pid, snapshot);
    free(s);
    close(file);
    return status;
}

int wt_telemetry_list(int64_t *pids, int max)
{
    DIR *folder = opendir("/dev/shm"); // where shm_open keeps its files on Linux
    int n = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        long long pid;
        char name[NAME_BYTES], end;
        if (sscanf(entry->d_name, "warptone.%lld%c", &pid, &end) != 1) continue;
        struct stat facts;
        if (fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) || facts.st_uid != geteuid()) continue;
        name_of(pid, name);
        if (!alive(pid))
            shm_unlink(name);
        else if (n < max)
            pids[n++] = pid;
    }
    if (folder) closedir(folder);
    return n;
}
