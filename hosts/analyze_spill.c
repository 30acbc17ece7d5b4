// What is as long as a long file, and must be there at once, lies in a file of $TMPDIR (else /var/tmp) that has no name
// and is mapped: memory that the system takes back when it is short of it.

#include "analyze_array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

wt_status analyze_spill_open(FILE **file)
{
    char path[4096];
    const char *folder = getenv("TMPDIR"); // /tmp is often memory
    snprintf(path, sizeof path, "%s/warptone-XXXXXX", folder ? folder : "/var/tmp");
    const int fd = mkstemp(path);
    if (fd >= 0) unlink(path);
    *file = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (!*file && fd >= 0) close(fd);
    return *file ? WT_OK : wt_fail(WT_ERR_FILE, "%s: cannot be made: %s", path, strerror(errno));
}

wt_status analyze_map(size_t bytes, const char *name, void **memory)
{
    FILE *file;
    wt_status status = analyze_spill_open(&file);
    if (status) return status;
    const int bad = posix_fallocate(fileno(file), 0, (off_t)bytes); // a full disk is told now, not by a signal later
    void *map = bad ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (map == MAP_FAILED)
        status = wt_fail(WT_ERR_FILE, "%s: %.1f GB for a while cannot be kept in %s: %s", name, (double)bytes * 1e-9,
                         getenv("TMPDIR") ? "$TMPDIR" : "/var/tmp", strerror(bad ? bad : errno));
    fclose(file);
    *memory = status ? NULL : map;
    return status;
}

wt_status analyze_take(bool maps, size_t bytes, const char *name, void **data, size_t *mapped)
{
    enum { LEAST = 1 << 20 }; // of a mapping
    *mapped = maps && bytes >= LEAST ? bytes : 0;
    if (*mapped) return analyze_map(bytes, name, data);
    *data = malloc(bytes + 1); // a list may be empty
    return *data ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: %zu bytes", name, bytes);
}

void analyze_let_go(void *data, size_t mapped)
{
    if (data && mapped)
        munmap(data, mapped);
    else
        free(data);
}
