#include "optional_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(optional_library *library)
{
    void *handle = NULL;
    for (int k = 0; library->files[k] && !handle; k++) handle = dlopen(library->files[k], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(library->why, sizeof library->why, "%s", dlerror());
        return;
    }
    for (int k = 0; k < library->n_names; k++) {
        void *entry = dlsym(handle, library->names[k]);
        memcpy((char *)library->table + sizeof entry * (size_t)k, &entry, sizeof entry);
        if (!entry && k < library->n_required)
            snprintf(library->why, sizeof library->why, "the library lacks %s", library->names[k]);
    }
}

wt_status optional_library_open(optional_library *library)
{
    pthread_mutex_lock(&lock);
    if (!library->tried) fill(library);
    library->tried = true;
    pthread_mutex_unlock(&lock);
    return library->why[0] ? wt_fail(WT_ERR_NO_LIBRARY, "%s: %s; %s", library->who, library->why, library->install)
                           : WT_OK;
}

// ---- quiet

static pthread_mutex_t quiet_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_quiet, kept = -1;

void quiet_begin(void)
{
    pthread_mutex_lock(&quiet_lock);
    if (n_quiet++ == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        fflush(stderr);
        kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        if (null >= 0 && kept >= 0) dup2(null, STDERR_FILENO);
        if (null >= 0) close(null);
    }
    pthread_mutex_unlock(&quiet_lock);
}

void quiet_end(void)
{
    pthread_mutex_lock(&quiet_lock);
    if (--n_quiet == 0 && kept >= 0) {
        fflush(stderr);
        dup2(kept, STDERR_FILENO);
        close(kept);
        kept = -1;
    }
    pthread_mutex_unlock(&quiet_lock);
}
