#include "weights_check.h"

#include "audio_files.h"
#include "testing.h"

#include <string.h>
#include <unistd.h>

void weights_refused(const char *path, wt_status status, const char *part)
{
    wt_weights *w = (wt_weights *)1;
    const wt_status met = wt_weights_open(path, &w);
    if (met != status || !strstr(wt_last_error(), part))
        fail_msg("status %d: \"%s\", want %d: \"%s\"", (int)met, wt_last_error(), (int)status, part);
    assert_null(w);
}

wt_weights *weights_opened(const char *path)
{
    wt_weights *w = NULL;
    assert_ok(wt_weights_open(path, &w));
    return w;
}

void weights_spill_anew(const char *path, const void *data, size_t size)
{
    unlink(path);
    test_spill(path, data, size);
}

void weights_damage(const char *path, const bytes *good)
{
    static const unsigned char masks[] = {0x01, 0x20, 0x80, 0xff};
    wt_weights *w;
    for (size_t n = 0; n < good->n; n++) {
        weights_spill_anew(path, good->at, n);
        if (!wt_weights_open(path, &w)) fail_msg("%s opens with %zu of %zu bytes", path, n, good->n);
    }
    for (size_t k = 0; k < 4 * good->n; k++) {
        bytes bad = *good;
        bad.at[k / 4] ^= masks[k % 4];
        weights_spill_anew(path, bad.at, bad.n);
        if (wt_weights_open(path, &w)) continue;
        for (int t = 0; t < wt_weights_count(w); t++) { // what opens can be read, all of it
            const wt_tensor *x = wt_weights_at(w, t);
            const unsigned char *p = x->data;
            volatile unsigned sum = 0;
            for (size_t j = 0; j < wt_tensor_bytes(x); j++) sum += p[j];
        }
        wt_weights_close(w);
    }
}
