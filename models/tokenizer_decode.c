// From ids to text, whole or as they come.
// Judge: the `tokenizers` package (decoders/).
#include "tokenizer_internal.h"
#include "utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD

// The byte-level alphabet (openai/gpt-2, encoder.py, bytes_to_unicode): printable Latin-1 stands for itself, the other
// 68 bytes in order for U+0100 and on.
static bool stands_for_itself(uint32_t c)
{
    return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

uint32_t wt__tok_level_of_byte(unsigned char byte)
{
    if (stands_for_itself(byte)) return byte;
    return byte <= ' ' ? 0x100u + byte : byte <= 0xa0 ? 0x121u + (byte - 0x7fu) : 0x143u;
}

int wt__tok_byte_of_level(uint32_t c)
{
    if (c < 0x100) return stands_for_itself(c) ? (int)c : -1;
    return c <= 0x120 ? (int)(c - 0x100) : c <= 0x142 ? (int)(c - 0x121 + 0x7f) : c == 0x143 ? 0xad : -1;
}

/// "<0x0A>" is 10; -1 = no such token
static int byte_of_fallback(const char *token)
{
    static const char digits[] = "0123456789ABCDEF";
    if (strncmp(token, "<0x", 3) || strlen(token) != 6 || token[5] != '>') return -1;
    const char *high = memchr(digits, toupper((unsigned char)token[3]), 16);
    const char *low = memchr(digits, toupper((unsigned char)token[4]), 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

bool wt__tok_add_lossy(wt__tok_bytes *out, const char *s, size_t n)
{
    uint32_t c;
    bool ok = wt__tok_bytes_add(out, "", 0);
    for (size_t i = 0, good, bad; i < n && ok; i += good ? good : bad) {
        good = wt__utf8_next(s + i, n - i, &c, &bad);
        ok = good ? wt__tok_bytes_add(out, s + i, good) : wt__tok_bytes_add(out, REPLACEMENT, 3);
    }
    return ok;
}

// --- The decoder's steps, on a list of texts ------------------------------------------------------------------------

// The bytes behind a token of the byte-level alphabet; one that has other characters is its own text.
static bool add_level_bytes(wt__tok_bytes *out, const char *s, size_t n)
{
    size_t before = out->size;
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        size_t length = wt__utf8_next(s + i, n - i, &c, NULL);
        int byte = length ? wt__tok_byte_of_level(c) : -1;
        if (byte < 0) {
            out->size = before;
            return wt__tok_bytes_add(out, s, n);
        }
        char plain = (char)byte;
        if (!wt__tok_bytes_add(out, &plain, 1)) return false;
        i += length;
    }
    return true;
}

// A run of byte tokens is text where it is UTF-8 as a whole, else one U+FFFD for each.
static bool add_fallback_run(wt__tok_bytes *out, const char *bytes, size_t n)
{
    if (wt__utf8_valid(bytes, n)) return wt__tok_bytes_add(out, bytes, n);
    for (size_t i = 0; i < n; i++)
        if (!wt__tok_bytes_add(out, REPLACEMENT, 3)) return false;
    return true;
}

typedef struct texts {
    wt__tok_bytes text; // each ended by a zero, so that one is a string too
    wt__tok_spans spans;
} texts;

static bool end_text(texts *list, size_t begin)
{
    wt__tok_spans *spans = &list->spans;
    if (!wt__tok_grow((void **)&spans->at, &spans->room, spans->n + 1, sizeof *spans->at)) return false;
    spans->at[spans->n++] = (wt__tok_span){begin, list->text.size};
    return wt__tok_bytes_add(&list->text, "", 1);
}

static bool byte_fallback(const texts *in, texts *out)
{
    wt__tok_bytes held = {0};
    bool ok = true;
    for (size_t i = 0; i <= in->spans.n && ok; i++) {
        const char *s = i < in->spans.n ? in->text.at + in->spans.at[i].begin : "";
        int byte = i < in->spans.n ? byte_of_fallback(s) : -1;
        size_t begin = out->text.size;
        if (byte >= 0) {
            char plain = (char)byte;
            ok = wt__tok_bytes_add(&held, &plain, 1);
            continue;
        }
        if (held.size) {
            ok = add_fallback_run(&out->text, held.at, held.size) && end_text(out, begin);
            held.size = 0;
            begin = out->text.size;
        }
        if (ok && i < in->spans.n)
            ok = wt__tok_bytes_add(&out->text, s, in->spans.at[i].end - in->spans.at[i].begin) && end_text(out, begin);
    }
    free(held.at);
    return ok;
}

static bool fuse(const wt__tok_step *step, const texts *in, texts *out)
{
    wt__tok_bytes raw = {0};
    bool ok = true;
    for (size_t i = 0; i < in->spans.n && ok; i++) {
        const char *s = in->text.at + in->spans.at[i].begin;
        size_t n = in->spans.at[i].end - in->spans.at[i].begin;
        ok = step->kind == WT__DECODE_FUSE ? wt__tok_bytes_add(&raw, s, n) : add_level_bytes(&raw, s, n);
    }
    size_t begin = out->text.size;
    ok = ok && wt__tok_add_lossy(&out->text, raw.at, raw.size) && end_text(out, begin);
    free(raw.at);
    return ok;
}

static bool strip(const wt__tok_step *step, bool at_start, const char *s, size_t n, wt__tok_bytes *out)
{
    size_t length = strlen(step->content);
    for (int i = 0; at_start && i < step->start && n >= length && !memcmp(s, step->content, length); i++) {
        s += length;
        n -= length;
    }
    for (int i = 0; i < step->stop && n >= length && !memcmp(s + n - length, step->content, length); i++) n -= length;
    return wt__tok_bytes_add(out, s, n);
}

static bool metaspace(const wt__tok_step *step, bool first, const char *s, size_t n, wt__tok_bytes *out)
{
    size_t length = strlen(step->content);
    bool ok = wt__tok_bytes_add(out, "", 0);
    for (size_t i = 0; i < n && ok;) {
        bool sign = n - i >= length && !memcmp(s + i, step->content, length);
        if (!sign) ok = wt__tok_bytes_add(out, s + i, 1);
        if (sign && !(first && step->prepend != WT__NEVER)) ok = wt__tok_bytes_add(out, " ", 1);
        i += sign ? length : 1;
    }
    return ok;
}

// One step for all texts. `fused`: they are one text already; `first`: it begins the whole.
static wt_status decode_step(wt__tok_work *work, const wt__tok_step *step, bool fused, bool first, const texts *in,
                             texts *out)
{
    if (step->kind == WT__DECODE_BYTE_FALLBACK) return byte_fallback(in, out) ? WT_OK : wt__tok_no_memory();
    if (step->kind == WT__DECODE_BYTE_LEVEL || step->kind == WT__DECODE_FUSE)
        return fuse(step, in, out) ? WT_OK : wt__tok_no_memory();
    for (size_t i = 0; i < in->spans.n; i++) {
        const char *s = in->text.at + in->spans.at[i].begin;
        size_t n = in->spans.at[i].end - in->spans.at[i].begin, begin = out->text.size;
        wt_status status = WT_OK;
        if (step->kind == WT__DECODE_REPLACE)
            status = wt__tok_replace(work, step, s, n, &out->text);
        else if (step->kind == WT__DECODE_STRIP)
            status = strip(step, !fused || first, s, n, &out->text) ? WT_OK : wt__tok_no_memory();
        else
            status = metaspace(step, first && i == 0, s, n, &out->text) ? WT_OK : wt__tok_no_memory();
        if (!status && !end_text(out, begin)) status = wt__tok_no_memory();
        if (status) return status;
    }
    return WT_OK;
}

/// Ids to text, appended to `out`; `first`: they begin the whole text.
static wt_status decode_ids(wt__tok_work *work, const int32_t *ids, size_t n_ids, bool skip_special, bool first,
                            wt__tok_bytes *out)
{
    const wt_tokenizer *t = work->t;
    texts list[2] = {0};
    bool fused = false, ok = true;
    wt_status status = WT_OK;
    for (size_t i = 0; i < n_ids && ok; i++) {
        const char *name = wt_tokenizer_token(t, ids[i]);
        if (!name || (skip_special && t->special[ids[i]])) continue;
        size_t begin = list[0].text.size;
        ok = (!t->join_with_spaces || (!begin && first) || wt__tok_bytes_add(&list[0].text, " ", 1)) &&
             wt__tok_bytes_add(&list[0].text, name, strlen(name)) && end_text(&list[0], begin);
    }
    for (size_t i = 0; i < t->decoder.n && ok && !status; i++) {
        const wt__tok_step *step = &t->decoder.at[i];
        status = decode_step(work, step, fused, first, &list[0], &list[1]);
        fused = fused || step->kind == WT__DECODE_FUSE || step->kind == WT__DECODE_BYTE_LEVEL;
        texts done = list[0];
        list[0] = list[1];
        list[1] = done;
        list[1].text.size = list[1].spans.n = 0;
    }
    ok = ok && wt__tok_bytes_add(out, "", 0);
    for (size_t i = 0; i < list[0].spans.n && ok && !status; i++)
        ok = wt__tok_bytes_add(out, list[0].text.at + list[0].spans.at[i].begin,
                               list[0].spans.at[i].end - list[0].spans.at[i].begin);
    for (int i = 0; i < 2; i++) {
        free(list[i].text.at);
        free(list[i].spans.at);
    }
    return ok ? status : wt__tok_no_memory();
}

wt_status wt_tokenizer_decode(const wt_tokenizer *tokenizer, const int32_t *ids, int n_ids, bool skip_special,
                              char *text, size_t max_bytes, size_t *length)
{
    if (n_ids < 0) return wt_fail(WT_ERR_BAD_ARG, "tokenizer: %d ids, want 0 or more", n_ids);
    wt__tok_work work = {.t = tokenizer};
    wt__tok_bytes out = {0};
    wt_status status = decode_ids(&work, ids, (size_t)n_ids, skip_special, true, &out);
    if (!status) {
        size_t n = out.size < max_bytes ? out.size : max_bytes ? max_bytes - 1 : 0;
        *length = out.size;
        if (max_bytes) {
            memcpy(text, out.at, n);
            text[n] = 0;
        }
    }
    free(out.at);
    wt__tok_work_free(&work);
    return status;
}

// --- As they come ---------------------------------------------------------------------------------------------------

enum { MAX_HELD = 64 }; // ids without a whole character: bytes of one, and tokens without text

struct wt_detokenizer {
    wt__tok_work work;
    bool skip_special, started;
    int32_t held[MAX_HELD];
    size_t n_held;
    char tail[4]; // bytes of the character that is not whole yet
    size_t n_tail;
    wt__tok_bytes text;
};

wt_status wt_detokenizer_create(const wt_tokenizer *tokenizer, bool skip_special, wt_detokenizer **stream)
{
    *stream = calloc(1, sizeof **stream);
    if (!*stream) return wt__tok_no_memory();
    (*stream)->work.t = tokenizer;
    (*stream)->skip_special = skip_special;
    return WT_OK;
}

void wt_detokenizer_destroy(wt_detokenizer *stream)
{
    if (!stream) return;
    wt__tok_work_free(&stream->work);
    free(stream->text.at);
    free(stream);
}

// Add a token's bytes to the tail; what is whole or can never be leaves it.
static void follow_bytes(wt_detokenizer *s, const char *name)
{
    const wt__tok_steps *decoder = &s->work.t->decoder;
    wt__tok_bytes bytes = {0};
    for (size_t i = 0; i < decoder->n; i++) {
        int byte = byte_of_fallback(name);
        char plain = (char)byte;
        if (decoder->at[i].kind == WT__DECODE_BYTE_LEVEL) (void)!add_level_bytes(&bytes, name, strlen(name));
        if (decoder->at[i].kind == WT__DECODE_BYTE_FALLBACK && byte >= 0) (void)!wt__tok_bytes_add(&bytes, &plain, 1);
    }
    if (!bytes.size) s->n_tail = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        s->tail[s->n_tail++] = bytes.at[i];
        if (wt__utf8_unfinished(s->tail, s->n_tail)) continue;
        s->tail[0] = bytes.at[i]; // whole, or broken: then this byte may begin the next
        s->n_tail = wt__utf8_unfinished(s->tail, 1);
    }
    free(bytes.at);
}

const char *wt_detokenizer_flush(wt_detokenizer *s)
{
    s->text.size = 0;
    if (decode_ids(&s->work, s->held, s->n_held, s->skip_special, !s->started, &s->text)) return "";
    s->started = s->started || s->n_held;
    s->n_held = s->n_tail = 0;
    return s->text.at;
}

const char *wt_detokenizer_push(wt_detokenizer *s, int32_t id)
{
    const char *name = wt_tokenizer_token(s->work.t, id);
    if (!name || (s->skip_special && wt_tokenizer_is_special(s->work.t, id))) return "";
    s->held[s->n_held++] = id;
    follow_bytes(s, name);
    return s->n_tail && s->n_held < MAX_HELD ? "" : wt_detokenizer_flush(s);
}
