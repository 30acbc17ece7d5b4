// int32 longest piece, then for each token: float score, int32 length, bytes.
#include <warptone/llama2c.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGIN = 1, FIRST_BYTE = 3, MAX_PIECE = 1024, N_BYTES = 256 };

typedef struct piece {
    float score;
    int32_t length;
    char *text; ///< [length], and a zero
} piece;

struct wt_llama2c_vocab {
    int size;
    piece *pieces;
    int32_t *sorted;     ///< [size] ids by text
    char bytes[N_BYTES]; ///< what <0xNN> means
};

static int compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int by_text(const void *a, const void *b, void *user)
{
    const piece *pieces = user, *x = &pieces[*(const int32_t *)a], *y = &pieces[*(const int32_t *)b];
    return compare(x->text, (size_t)x->length, y->text, (size_t)y->length);
}

static wt_status read_pieces(const char *path, FILE *file, wt_llama2c_vocab *v)
{
    int32_t longest;
    bool good = fread(&longest, sizeof longest, 1, file) == 1;
    for (int k = 0; good && k < v->size; k++) {
        piece *p = &v->pieces[k];
        good = fread(&p->score, sizeof p->score, 1, file) == 1 && fread(&p->length, sizeof p->length, 1, file) == 1 &&
               p->length >= 0 && p->length <= MAX_PIECE;
        if (!good) return wt_fail(WT_ERR_FORMAT, "%s: token %d cannot be read, want %d", path, k, v->size);
        if (!(p->text = calloc(1, (size_t)p->length + 1))) return wt_fail(WT_ERR_NO_MEMORY, "llama2.c: vocabulary");
        good = fread(p->text, 1, (size_t)p->length, file) == (size_t)p->length;
        v->sorted[k] = k;
    }
    if (!good || fgetc(file) != EOF)
        return wt_fail(WT_ERR_FORMAT, "%s: not a vocabulary of %d tokens of llama2.c", path, v->size);
    qsort_r(v->sorted, (size_t)v->size, sizeof *v->sorted, by_text, v->pieces);
    return WT_OK;
}

wt_status wt_llama2c_vocab_open(const char *path, int vocab_size, wt_llama2c_vocab **vocab)
{
    *vocab = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    wt_llama2c_vocab *v = calloc(1, sizeof *v);
    wt_status status = v ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "llama2.c: vocabulary");
    if (v) {
        v->size = vocab_size;
        v->pieces = calloc((size_t)vocab_size, sizeof *v->pieces);
        v->sorted = calloc((size_t)vocab_size, sizeof *v->sorted);
        for (int k = 0; k < N_BYTES; k++) v->bytes[k] = (char)k;
        status = v->pieces && v->sorted ? read_pieces(path, file, v)
                                        : wt_fail(WT_ERR_NO_MEMORY, "llama2.c: a vocabulary of %d", vocab_size);
    }
    fclose(file);
    if (status)
        wt_llama2c_vocab_close(v);
    else
        *vocab = v;
    return status;
}

void wt_llama2c_vocab_close(wt_llama2c_vocab *vocab)
{
    if (!vocab) return;
    for (int k = 0; vocab->pieces && k < vocab->size; k++) free(vocab->pieces[k].text);
    free(vocab->pieces);
    free(vocab->sorted);
    free(vocab);
}

/// The token of that text, or -1.
static int32_t find(const wt_llama2c_vocab *v, const char *text, size_t length)
{
    int low = 0, high = v->size - 1;
    while (low <= high) {
        const int middle = low + (high - low) / 2;
        const piece *p = &v->pieces[v->sorted[middle]];
        const int order = compare(text, length, p->text, (size_t)p->length);
        if (!order) return v->sorted[middle];
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return -1;
}

/// Characters of up to four bytes, those that are no token as tokens of their bytes.
static int characters(const wt_llama2c_vocab *v, const char *text, size_t length, int32_t *ids)
{
    int n = 0;
    for (size_t at = 0, size; at < length; at += size) {
        for (size = 1; at + size < length && size < 4 && (text[at + size] & 0xc0) == 0x80;) size++;
        const int32_t id = find(v, text + at, size);
        if (id >= 0) ids[n++] = id;
        for (size_t k = 0; id < 0 && k < size; k++) ids[n++] = (unsigned char)text[at + k] + FIRST_BYTE;
    }
    return n;
}

/// Merge the pair whose token has the best score, the first of equals, until none is left.
static int merge(const wt_llama2c_vocab *v, int32_t *ids, int n)
{
    for (;;) {
        int best_at = -1;
        int32_t best = -1;
        for (int k = 0; k + 1 < n; k++) {
            const piece *a = &v->pieces[ids[k]], *b = &v->pieces[ids[k + 1]];
            char text[2 * MAX_PIECE];
            memcpy(text, a->text, (size_t)a->length);
            memcpy(text + a->length, b->text, (size_t)b->length);
            const int32_t id = find(v, text, (size_t)a->length + (size_t)b->length);
            if (id < 0 || (best >= 0 && v->pieces[id].score <= v->pieces[best].score)) continue;
            best = id;
            best_at = k;
        }
        if (best < 0) return n;
        ids[best_at] = best;
        memmove(ids + best_at + 1, ids + best_at + 2, sizeof *ids * (size_t)(--n - best_at - 1));
    }
}

wt_status wt_llama2c_encode(const wt_llama2c_vocab *vocab, const char *text, size_t length, int32_t *ids, int max_ids,
                            int *n_ids)
{
    int32_t *all = malloc((length + 2) * sizeof *all);
    if (!all) return wt_fail(WT_ERR_NO_MEMORY, "llama2.c: a text of %zu bytes", length);
    int n = 0;
    all[n++] = BEGIN;
    const int32_t space = find(vocab, " ", 1);
    if (length && space >= 0) all[n++] = space;
    n += characters(vocab, text, length, all + n);
    bool good = true;
    for (int k = 0; k < n; k++) good &= all[k] < vocab->size;
    if (good) n = merge(vocab, all, n);
    *n_ids = n;
    if (good && n <= max_ids) memcpy(ids, all, sizeof *ids * (size_t)n);
    free(all);
    if (!good) return wt_fail(WT_ERR_FORMAT, "llama2.c: the vocabulary of %d has no tokens of bytes", vocab->size);
    return n <= max_ids ? WT_OK : wt_fail(WT_ERR_FULL, "llama2.c: the text has %d tokens, want %d at most", n, max_ids);
}

const char *wt_llama2c_piece(const wt_llama2c_vocab *vocab, int32_t before, int32_t id, size_t *length)
{
    unsigned byte;
    *length = 0;
    if (id < 0 || id >= vocab->size) return "";
    const char *text = vocab->pieces[id].text;
    size_t n = (size_t)vocab->pieces[id].length;
    if (before == BEGIN && *text == ' ') {
        text++;
        n--;
    }
    if (n == 6 && sscanf(text, "<0x%02X>", &byte) == 1) {
        text = &vocab->bytes[byte];
        n = 1;
    }
    const unsigned char first = n ? (unsigned char)*text : 0;
    *length = n == 1 && first < 0x80 && !isprint(first) && !isspace(first) ? 0 : n; // 0x80 on: a part of a character
    return text;
}
