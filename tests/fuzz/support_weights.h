// What the fuzzers of weights share: bytes become a file in memory, and what opens is read whole.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <warptone/model_config.h>

/// The name's end decides the format, so the file in memory is reached by a link of that name.
static inline int open_and_read(const char *name, const uint8_t *data, size_t size)
{
    static char path[128];
    static int file;
    if (!file) {
        char target[64];
        file = memfd_create(name, 0);
        snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), file);
        snprintf(path, sizeof path, "/tmp/%d-%s", (int)getpid(), name);
        unlink(path);
        if (file < 0 || symlink(target, path)) abort();
    }
    if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    wt_weights *weights;
    static wt_model_config config;
    if (wt_weights_open(path, &weights)) return 0;
    volatile unsigned sum = 0;
    for (int k = 0; k < wt_weights_count(weights); k++) {
        const wt_tensor *t = wt_weights_at(weights, k);
        const uint8_t *bytes = t->data;
        for (size_t j = 0; j < wt_tensor_bytes(t); j++) sum += bytes[j];
        if (wt_weights_find(weights, wt_weights_name(weights, k)) != t) abort();
    }
    (void)!wt_model_config_of_weights(weights, &config);
    wt_weights_close(weights);
    return 0;
}
