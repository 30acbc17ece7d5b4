// Any bytes as a tokenizer's file, of every kind that is read; where it opens, texts go there and back. Nothing may
// crash, hang or leak.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <warptone/tokenizer.h>

static void there_and_back(const wt_tokenizer *t, const char *text, size_t size)
{
    int32_t ids[256];
    int n = 0;
    char back[1024];
    size_t length;
    wt_detokenizer *stream = NULL;
    if (wt_tokenizer_encode(t, text, size, true, ids, 256, &n)) return;
    n = n < 256 ? n : 256;
    (void)!wt_tokenizer_decode(t, ids, n, false, back, sizeof back, &length);
    if (wt_detokenizer_create(t, true, &stream)) return;
    for (int i = 0; i < n; i++) (void)wt_detokenizer_push(stream, ids[i]);
    (void)wt_detokenizer_flush(stream);
    wt_detokenizer_destroy(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    char path[64];
    wt_tokenizer *t = NULL;
    if (file < 0) file = memfd_create("fuzz", 0);
    if (file < 0 || ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (wt_tokenizer_open(path, &t)) return 0;
    static const char plain[] = "Hello  W\xc3\xb6rld 12\n\t\xff<s> \xe4\xbd\xa0\xf0\x9f\x98\x80";
    there_and_back(t, plain, sizeof plain - 1);
    there_and_back(t, (const char *)data, size < 256 ? size : 256);
    wt_tokenizer_close(t);
    return 0;
}
