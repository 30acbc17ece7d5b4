// Tokens a second, there and back, of made-up English and Chinese text through the published vocabularies.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/tokenizer.h>

enum { BYTES = 1 << 20, ROUNDS = 5 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double seconds_since(int64_t begin_ns) { return (double)(now_ns() - begin_ns) * 1e-9; }

static void bench(const char *name, const char *path, const char *text)
{
    static int32_t ids[BYTES];
    static char back[8 * BYTES];
    wt_tokenizer *t = NULL;
    double best[2] = {1e9, 1e9};
    int n = 0;
    size_t length = 0;
    int64_t begin = now_ns();
    if (wt_tokenizer_open(path, &t)) {
        printf("tokenizer  %-8s skipped: %s\n", name, wt_last_error());
        return;
    }
    double load = seconds_since(begin);
    for (int i = 0; i < ROUNDS; i++) {
        begin = now_ns();
        if (wt_tokenizer_encode(t, text, BYTES, false, ids, BYTES, &n)) break;
        best[0] = seconds_since(begin) < best[0] ? seconds_since(begin) : best[0];
        begin = now_ns();
        if (wt_tokenizer_decode(t, ids, n, false, back, sizeof back, &length)) break;
        best[1] = seconds_since(begin) < best[1] ? seconds_since(begin) : best[1];
    }
    printf("tokenizer  %-8s open %.0f ms | encode %.2f M tokens/s, %.1f MB/s | decode %.2f M tokens/s\n", name,
           load * 1e3, n / best[0] * 1e-6, BYTES / best[0] * 1e-6, n / best[1] * 1e-6);
    wt_tokenizer_close(t);
}

int main(void)
{
    static const char *const words[] = {"the ",  "Quick ",          "internationalization, ",    "don't ",
                                        "3.14 ", "\n  return x;\n", "\xe4\xbd\xa0\xe5\xa5\xbd ", "speech "};
    char *text = malloc(BYTES + 64);
    size_t n = 0;
    if (!text) return 1;
    for (uint32_t draw = 1; n < BYTES; n = (size_t)(stpcpy(text + n, words[draw >> 29]) - text))
        draw = draw * 1664525u + 1013904223u;
    bench("gpt2", "../shared/data/tokenizers/gpt2", text);
    bench("llama2", "../shared/data/tokenizers/llama2", text);
    bench("llama3", "../shared/data/tokenizers/llama3", text);
    bench("qwen3", "../shared/data/tokenizers/qwen3", text);
    free(text);
    return 0;
}
