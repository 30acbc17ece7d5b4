// One file per kernel, "<hash>-<NVRTC version>.wtk": a header with its own key and the payload's SHA-256, then the
// cubin.
//
// Many processes share the folder without locks: an entry is written under a temporary name and renamed, so a reader
// sees a whole file or none; a file that another process removes stays readable to who has it open; two writers of one
// key write the same bytes. The time of modification is the time of last use. Whatever does not check out is removed
// and compiled anew. Files of other names are never touched.
#include "kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FORMAT = 1, HEX = 64, NAME_BYTES = 128, FOLDER_BYTES = 1024, PATH_BYTES = FOLDER_BYTES + 128 };
enum { DEFAULT_LIMIT_MB = 512, MAX_LIMIT_MB = 1 << 24, STALE_SECONDS = 3600 };
static const char magic[8] = "WTKERN\n";
static const uint64_t max_payload_bytes = (uint64_t)1 << 30;

typedef struct header {
    char magic[8];
    uint32_t format;
    uint32_t nvrtc_version;
    uint32_t architecture;
    uint32_t zero;
    unsigned char hash[32];
    uint64_t size_bytes;
    unsigned char checksum[32];
    char name[NAME_BYTES];
} header;

_Static_assert(sizeof(header) == 224, "the header has no padding");

// Counters of this process, for wt_kernel_cache_query.
static _Atomic uint64_t n_hits, n_misses, n_evictions, n_corrupt, n_temporaries;

typedef struct place {
    char folder[FOLDER_BYTES];
    uint64_t limit_bytes;
} place;

// ---- where

static wt_status find_limit(place *p)
{
    const char *text = getenv("WARPTONE_CACHE_LIMIT_MB");
    char *end = NULL;
    long long megabytes = text && *text ? strtoll(text, &end, 10) : DEFAULT_LIMIT_MB;
    if ((end && (*end || end == text)) || megabytes < 0 || megabytes > MAX_LIMIT_MB)
        return wt_fail(WT_ERR_BAD_ARG, "WARPTONE_CACHE_LIMIT_MB is \"%s\", want 0..%d", text, MAX_LIMIT_MB);
    p->limit_bytes = (uint64_t)megabytes << 20;
    return WT_OK;
}

static wt_status find_place(place *p)
{
    const char *own = getenv("WARPTONE_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;
    if (own && *own)
        length = snprintf(p->folder, FOLDER_BYTES, "%s", own);
    else if (xdg && *xdg)
        length = snprintf(p->folder, FOLDER_BYTES, "%s/warptone", xdg);
    else if (home && *home)
        length = snprintf(p->folder, FOLDER_BYTES, "%s/.cache/warptone", home);
    else
        return wt_fail(WT_ERR_FILE, "kernel cache: no folder; set WARPTONE_CACHE or HOME");
    if (length >= FOLDER_BYTES)
        return wt_fail(WT_ERR_FILE, "kernel cache: the folder's path has %d bytes, want less than %d", length,
                       FOLDER_BYTES);
    return find_limit(p);
}

/// Create a folder and its parents, readable by the user alone.
static wt_status make_folder(const char *folder)
{
    char path[FOLDER_BYTES];
    if (snprintf(path, sizeof path, "%s", folder) >= FOLDER_BYTES)
        return wt_fail(WT_ERR_FILE, "kernel cache: the path of the folder is too long");
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0700);
    }
    if (mkdir(path, 0700) && errno != EEXIST)
        return wt_fail(WT_ERR_FILE, "kernel cache: cannot create %s: %s", folder, strerror(errno));
    return WT_OK;
}

static void hex_of(const unsigned char hash[32], char text[HEX + 1])
{
    for (int k = 0; k < 32; k++) snprintf(text + 2 * k, 3, "%02x", hash[k]);
}

/// True for "<64 hex digits>-<version>.wtk".
static bool is_entry(const char *name)
{
    if (strspn(name, "0123456789abcdef") != HEX || name[HEX] != '-') return false;
    size_t digits = strspn(name + HEX + 1, "0123456789");
    return digits > 0 && digits < 8 && !strcmp(name + HEX + 1 + digits, ".wtk");
}

static bool is_temporary(const char *name)
{
    return !strncmp(name, ".wtk-", 5);
}

// ---- one file

static bool read_all(int file, void *data, size_t size_bytes)
{
    for (unsigned char *at = data; size_bytes;) {
        ssize_t n = read(file, at, size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size_bytes -= (size_t)n;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t size_bytes)
{
    for (const unsigned char *at = data; size_bytes;) {
        ssize_t n = write(file, at, size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size_bytes -= (size_t)n;
    }
    return true;
}

static void checksum_of(const void *data, size_t size_bytes, unsigned char digest[32])
{
    wt__sha256 hash;
    wt__sha256_start(&hash);
    wt__sha256_add(&hash, data, size_bytes);
    wt__sha256_end(&hash, digest);
}

/// The payload of an open entry, or NULL when anything about it is not as it should be.
static void *read_payload(int file, header *h)
{
    struct stat facts;
    if (fstat(file, &facts) || !S_ISREG(facts.st_mode) || !read_all(file, h, sizeof *h)) return NULL;
    if (memcmp(h->magic, magic, sizeof magic) || h->format != FORMAT || !h->size_bytes ||
        h->size_bytes > max_payload_bytes || (uint64_t)facts.st_size != sizeof *h + h->size_bytes)
        return NULL;
    void *payload = malloc(h->size_bytes);
    unsigned char checksum[32];
    if (payload && read_all(file, payload, h->size_bytes)) {
        checksum_of(payload, h->size_bytes, checksum);
        if (!memcmp(checksum, h->checksum, sizeof checksum)) return payload;
    }
    free(payload);
    return NULL;
}

static bool write_entry(const char *folder, const header *h, const void *payload)
{
    char temporary[PATH_BYTES], path[PATH_BYTES], hex[HEX + 1];
    hex_of(h->hash, hex);
    snprintf(path, sizeof path, "%s/%s-%u.wtk", folder, hex, (unsigned)h->nvrtc_version);
    snprintf(temporary, sizeof temporary, "%s/.wtk-%ld-%" PRIu64, folder, (long)getpid(),
             atomic_fetch_add(&n_temporaries, 1));
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    bool written = write_all(file, h, sizeof *h) && write_all(file, payload, h->size_bytes);
    if (close(file)) written = false;
    if (written && !rename(temporary, path)) return true;
    unlink(temporary);
    return false;
}

// ---- the folder

typedef struct entry {
    char name[HEX + 16];
    uint64_t size_bytes;
    struct timespec used;
} entry;

typedef struct listing {
    entry *entries;
    int n_entries;
    uint64_t size_bytes;
} listing;

static bool append(listing *l, const char *name, const struct stat *facts)
{
    if ((l->n_entries & (l->n_entries - 1)) == 0) {
        entry *more = realloc(l->entries, sizeof *more * (size_t)(l->n_entries ? 2 * l->n_entries : 1));
        if (!more) return false;
        l->entries = more;
    }
    entry *e = &l->entries[l->n_entries++];
    snprintf(e->name, sizeof e->name, "%.*s", (int)sizeof e->name - 1, name);
    e->size_bytes = (uint64_t)facts->st_size;
    e->used = facts->st_mtim;
    l->size_bytes += e->size_bytes;
    return true;
}

/// Entries of a folder; what a dead process left half-written an hour ago is removed on the way. A folder that does not
/// exist has none. Free `entries`.
static wt_status list_folder(const char *folder, listing *l)
{
    *l = (listing){0};
    DIR *directory = opendir(folder);
    if (!directory && errno == ENOENT) return WT_OK;
    if (!directory) return wt_fail(WT_ERR_FILE, "kernel cache: cannot read %s: %s", folder, strerror(errno));
    bool complete = true;
    for (struct dirent *found; complete && (found = readdir(directory));) {
        struct stat facts;
        bool temporary = is_temporary(found->d_name);
        if ((!temporary && !is_entry(found->d_name)) ||
            fstatat(dirfd(directory), found->d_name, &facts, AT_SYMLINK_NOFOLLOW) || !S_ISREG(facts.st_mode))
            continue;
        if (!temporary)
            complete = append(l, found->d_name, &facts);
        else if (time(NULL) - facts.st_mtime > STALE_SECONDS)
            unlinkat(dirfd(directory), found->d_name, 0);
    }
    closedir(directory);
    if (complete) return WT_OK;
    free(l->entries);
    return wt_fail(WT_ERR_NO_MEMORY, "kernel cache: no memory to list %s", folder);
}

static int oldest_first(const void *a, const void *b)
{
    const struct timespec *x = &((const entry *)a)->used, *y = &((const entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static void evict(const place *p)
{
    listing l;
    if (list_folder(p->folder, &l)) return;
    if (l.size_bytes > p->limit_bytes) qsort(l.entries, (size_t)l.n_entries, sizeof *l.entries, oldest_first);
    for (int k = 0; k < l.n_entries && l.size_bytes > p->limit_bytes; k++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", p->folder, l.entries[k].name);
        if (!unlink(path)) atomic_fetch_add(&n_evictions, 1);
        l.size_bytes -= l.entries[k].size_bytes;
    }
    free(l.entries);
}

// ---- taking and keeping

/// The newest NVRTC version that the folder holds of a hash; 0 when it holds none.
static int newest_version(const place *p, const char *hex)
{
    listing l;
    if (list_folder(p->folder, &l)) return 0;
    int newest = 0;
    for (int k = 0; k < l.n_entries; k++) {
        int version = strncmp(l.entries[k].name, hex, HEX) ? 0 : atoi(l.entries[k].name + HEX + 1);
        if (version > newest) newest = version;
    }
    free(l.entries);
    return newest;
}

static bool load_file(const char *path, const wt__cache_key *key, int version, wt_compiled *compiled)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return false;
    header h;
    void *payload = read_payload(file, &h);
    bool good = payload && h.nvrtc_version == (uint32_t)version && h.architecture == (uint32_t)key->architecture &&
                !memcmp(h.hash, key->hash, sizeof h.hash);
    if (good) {
        futimens(file, NULL); // the time of last use; it may fail in a folder that is only read
        *compiled = (wt_compiled){payload, h.size_bytes, true};
    } else {
        atomic_fetch_add(&n_corrupt, 1);
        unlink(path);
        free(payload);
    }
    close(file);
    return good;
}

bool wt__cache_load(const wt__cache_key *key, wt_compiled *compiled)
{
    place p;
    bool found = false;
    if (!find_place(&p)) {
        char hex[HEX + 1], path[PATH_BYTES];
        hex_of(key->hash, hex);
        int version = key->nvrtc_version ? key->nvrtc_version : newest_version(&p, hex);
        snprintf(path, sizeof path, "%s/%s-%d.wtk", p.folder, hex, version);
        found = version && load_file(path, key, version, compiled);
    }
    atomic_fetch_add(found ? &n_hits : &n_misses, 1);
    return found;
}

void wt__cache_store(const wt__cache_key *key, const char *name, const void *image, size_t size_bytes)
{
    place p;
    if (find_place(&p) || sizeof(header) + size_bytes > p.limit_bytes || make_folder(p.folder)) return;
    header h = {.format = FORMAT,
                .nvrtc_version = (uint32_t)key->nvrtc_version,
                .architecture = (uint32_t)key->architecture,
                .size_bytes = size_bytes};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.hash, key->hash, sizeof h.hash);
    checksum_of(image, size_bytes, h.checksum);
    snprintf(h.name, sizeof h.name, "%s", name);
    if (write_entry(p.folder, &h, image)) evict(&p);
}

// ---- the public calls

wt_status wt_kernel_cache_query(wt_kernel_cache_info *info)
{
    *info = (wt_kernel_cache_info){0};
    place p;
    listing l;
    wt_status status = find_place(&p);
    if (!status) status = list_folder(p.folder, &l);
    if (status) return status;
    memcpy(info->folder, p.folder, sizeof info->folder);
    info->limit_bytes = p.limit_bytes;
    info->n_entries = l.n_entries;
    info->size_bytes = l.size_bytes;
    info->hits = atomic_load(&n_hits);
    info->misses = atomic_load(&n_misses);
    info->evictions = atomic_load(&n_evictions);
    info->corrupt = atomic_load(&n_corrupt);
    free(l.entries);
    return WT_OK;
}

wt_status wt_kernel_cache_clear(int *n_removed)
{
    *n_removed = 0;
    place p;
    listing l;
    wt_status status = find_place(&p);
    if (!status) status = list_folder(p.folder, &l);
    if (status) return status;
    for (int k = 0; k < l.n_entries; k++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", p.folder, l.entries[k].name);
        if (!unlink(path))
            ++*n_removed;
        else if (errno != ENOENT && !status)
            status = wt_fail(WT_ERR_FILE, "kernel cache: cannot remove %s: %s", path, strerror(errno));
    }
    free(l.entries);
    return status;
}

/// Copy every good entry from one folder to another; bad ones are passed over and counted.
static wt_status copy_entries(const char *from, const char *to, int *n_entries)
{
    listing l;
    wt_status status = make_folder(to);
    if (!status) status = list_folder(from, &l);
    if (status) return status;
    for (int k = 0; k < l.n_entries && !status; k++) {
        char path[PATH_BYTES];
        if (snprintf(path, sizeof path, "%s/%s", from, l.entries[k].name) >= PATH_BYTES) continue;
        int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        header h;
        void *payload = read_payload(file, &h);
        close(file);
        if (!payload)
            atomic_fetch_add(&n_corrupt, 1);
        else if (write_entry(to, &h, payload))
            ++*n_entries;
        else
            status = wt_fail(WT_ERR_FILE, "kernel cache: cannot write into %s: %s", to, strerror(errno));
        free(payload);
    }
    free(l.entries);
    return status;
}

wt_status wt_kernel_cache_export(const char *folder, int *n_entries)
{
    *n_entries = 0;
    place p;
    wt_status status = find_place(&p);
    return status ? status : copy_entries(p.folder, folder, n_entries);
}

wt_status wt_kernel_cache_import(const char *folder, int *n_entries)
{
    *n_entries = 0;
    place p;
    wt_status status = find_place(&p);
    if (status) return status;
    if (access(folder, R_OK | X_OK))
        return wt_fail(WT_ERR_FILE, "kernel cache: cannot read %s: %s", folder, strerror(errno));
    status = copy_entries(folder, p.folder, n_entries);
    if (!status) evict(&p);
    return status;
}
