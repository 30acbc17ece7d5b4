// From text to pieces: the normalizer's and the pre-tokenizer's steps, and the patterns they search for.
// Judge: the `tokenizers` package (normalizers/, pre_tokenizers/, tokenizer/normalizer.rs).
#include "tokenizer_internal.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

wt_status wt__tok_no_memory(void) { return wt_fail(WT_ERR_NO_MEMORY, "tokenizer: memory is out"); }

bool wt__tok_grow(void **at, size_t *room, size_t want, size_t size)
{
    if (want <= *room) return true;
    size_t next = *room * 2 > want ? *room * 2 : want < 16 ? 16 : want;
    if (next > SIZE_MAX / 2 / size) return false;
    void *grown = realloc(*at, next * size);
    if (!grown) return false;
    *at = grown;
    *room = next;
    return true;
}

bool wt__tok_bytes_add(wt__tok_bytes *bytes, const char *add, size_t size)
{
    if (!wt__tok_grow((void **)&bytes->at, &bytes->room, bytes->size + size + 1, 1)) return false;
    if (size) memcpy(bytes->at + bytes->size, add, size);
    bytes->size += size;
    bytes->at[bytes->size] = 0;
    return true;
}

static bool add_span(wt__tok_spans *spans, size_t begin, size_t end)
{
    if (!wt__tok_grow((void **)&spans->at, &spans->room, spans->n + 1, sizeof *spans->at)) return false;
    spans->at[spans->n++] = (wt__tok_span){begin, end};
    return true;
}

void wt__tok_work_free(wt__tok_work *work)
{
    pcre2_match_data_free(work->match);
    free(work->normal.at);
    for (int i = 0; i < 2; i++) {
        free(work->text[i].at);
        free(work->spans[i].at);
    }
    free(work->symbols);
    free(work->heap);
}

// --- Patterns -------------------------------------------------------------------------------------------------------

// PCRE2's \s also matches U+180E, which Unicode took from White_Space in version 6.3: say the set in its place.
#define SPACES "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

static bool spell_spaces(const char *regex, wt__tok_bytes *out)
{
    bool in_class = false, ok = true;
    for (const char *p = regex; *p && ok; p++) {
        if (*p == '\\' && p[1] == 's') {
            ok = wt__tok_bytes_add(out, in_class ? SPACES : "[" SPACES "]", strlen(SPACES) + (in_class ? 0 : 2));
            p++;
        } else if (*p == '\\' && p[1] == 'S' && !in_class) {
            ok = wt__tok_bytes_add(out, "[^" SPACES "]", strlen(SPACES) + 3);
            p++;
        } else if (*p == '\\' && p[1]) {
            ok = wt__tok_bytes_add(out, p, 2);
            p++;
        } else {
            if (*p == '[') in_class = true;
            if (*p == ']') in_class = false;
            ok = wt__tok_bytes_add(out, p, 1);
        }
    }
    return ok && wt__tok_bytes_add(out, "", 0);
}

static wt_status compile(wt_tokenizer *t, const char *regex, pcre2_code **code)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(t->memory);
    if (!context) return wt__tok_no_memory();
    *code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &error, &at, context);
    pcre2_compile_context_free(context);
    if (t->refused) return wt__tok_no_memory();
    if (!*code) {
        char text[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return wt_fail(WT_ERR_FORMAT, "tokenizer: regular expression \"%.200s\": %s at byte %zu", regex, text,
                       (size_t)at);
    }
    pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE); // where it cannot be had, the interpreter runs
    return t->refused ? wt__tok_no_memory() : WT_OK;
}

wt_status wt__tok_pattern_create(wt_tokenizer *t, const char *regex, const char *literal, wt__tok_pattern *pattern)
{
    if (literal) {
        pattern->literal = strdup(literal);
        pattern->size = strlen(literal);
        if (!pattern->size) return wt_fail(WT_ERR_FORMAT, "tokenizer: an empty pattern, want a text to search for");
        return pattern->literal ? WT_OK : wt__tok_no_memory();
    }
    wt__tok_bytes spelled = {0};
    wt_status status = spell_spaces(regex, &spelled) ? compile(t, spelled.at, &pattern->regex) : wt__tok_no_memory();
    free(spelled.at);
    return status;
}

static wt_status regex_next(wt__tok_work *work, const pcre2_code *regex, const char *text, size_t size, size_t from,
                            bool *found, wt__tok_span *match)
{
    if (!work->match) work->match = pcre2_match_data_create(1, NULL);
    if (!work->match) return wt__tok_no_memory();
    int got = pcre2_match(regex, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK, work->match, NULL);
    if (got == PCRE2_ERROR_JIT_STACKLIMIT)
        got = pcre2_match(regex, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work->match, NULL);
    *found = got >= 0;
    if (got == PCRE2_ERROR_NOMATCH) return WT_OK;
    if (got == PCRE2_ERROR_NOMEMORY) return wt__tok_no_memory();
    if (got < 0) return wt_fail(WT_ERR_UNSUPPORTED, "tokenizer: the regular expression gave up on the text (%d)", got);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(work->match);
    *match = (wt__tok_span){ends[0], ends[1]};
    return WT_OK;
}

/// The next match at or after `from`; *found false = none.
static wt_status next_match(wt__tok_work *work, const wt__tok_pattern *pattern, const char *text, size_t size,
                            size_t from, bool *found, wt__tok_span *match)
{
    for (; pattern->regex; from++) { // an empty match splits nothing: look behind it
        wt_status status = regex_next(work, pattern->regex, text, size, from, found, match);
        if (status || !*found || match->end > match->begin) return status;
        from = match->begin;
        while (from + 1 < size && ((unsigned char)text[from + 1] & 0xc0) == 0x80) from++;
        if (from >= size) {
            *found = false;
            return WT_OK;
        }
    }
    const char *at = memmem(text + from, size - from, pattern->literal, pattern->size);
    *found = at != NULL;
    if (at) *match = (wt__tok_span){(size_t)(at - text), (size_t)(at - text) + pattern->size};
    return WT_OK;
}

wt_status wt__tok_replace(wt__tok_work *work, const wt__tok_step *step, const char *text, size_t size,
                          wt__tok_bytes *out)
{
    size_t from = 0;
    for (bool found = true; from < size;) {
        wt__tok_span match;
        wt_status status = next_match(work, &step->pattern, text, size, from, &found, &match);
        if (status) return status;
        if (!found) break;
        if (!wt__tok_bytes_add(out, text + from, match.begin - from)) return wt__tok_no_memory();
        if (!wt__tok_bytes_add(out, step->content, strlen(step->content))) return wt__tok_no_memory();
        from = match.end;
    }
    return wt__tok_bytes_add(out, text + from, size - from) ? WT_OK : wt__tok_no_memory();
}

// --- The normalizer -------------------------------------------------------------------------------------------------

static bool is_ascii(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

// Unicode's four normalization forms; the accents' removal drops nonspacing marks.
static wt_status normal_form(wt__tok_step_kind kind, const char *text, size_t size, wt__tok_bytes *out)
{
    static const utf8proc_option_t options[] = {
        [WT__NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [WT__NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [WT__NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [WT__NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    utf8proc_uint8_t *normal = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &normal, options[kind]);
    if (n < 0 && n != UTF8PROC_ERROR_NOMEM)
        return wt_fail(WT_ERR_BAD_ARG, "tokenizer: normalizing the text: %s", utf8proc_errmsg(n));
    bool ok = n >= 0 && wt__tok_bytes_add(out, (const char *)normal, (size_t)n);
    free(normal);
    return ok ? WT_OK : wt__tok_no_memory();
}

// Lower case character by character, or without nonspacing marks.
static wt_status map_characters(wt__tok_step_kind kind, const char *text, size_t size, wt__tok_bytes *out)
{
    for (size_t i = 0; i < size;) {
        uint32_t c;
        char utf8[8];
        i += wt__utf8_next(text + i, size - i, &c, NULL);
        if (kind == WT__STRIP_ACCENTS) {
            utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
            if (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                category == UTF8PROC_CATEGORY_ME)
                continue;
        }
        size_t n = wt__utf8_put(c, utf8);
        if (kind == WT__LOWERCASE && c == 0x130) { // SpecialCasing.txt: the only one that becomes two
            memcpy(utf8, "i\xcc\x87", n = 3);
        } else if (kind == WT__LOWERCASE) {
            n = wt__utf8_put((uint32_t)utf8proc_tolower((utf8proc_int32_t)c), utf8);
        }
        if (!wt__tok_bytes_add(out, utf8, n)) return wt__tok_no_memory();
    }
    return WT_OK;
}

static wt__tok_span without_spaces(const char *text, size_t size, bool left, bool right)
{
    wt__tok_span kept = {0, size};
    uint32_t c;
    for (size_t n; left && kept.begin < size; kept.begin += n) {
        n = wt__utf8_next(text + kept.begin, size - kept.begin, &c, NULL);
        if (!wt__is_space(c)) break;
    }
    while (right && kept.end > kept.begin) {
        size_t at = kept.end - 1;
        while (((unsigned char)text[at] & 0xc0) == 0x80) at--;
        wt__utf8_next(text + at, kept.end - at, &c, NULL);
        if (!wt__is_space(c)) break;
        kept.end = at;
    }
    return kept;
}

static wt_status normalize_step(wt__tok_work *work, const wt__tok_step *step, const char *text, size_t size,
                                wt__tok_bytes *out)
{
    switch (step->kind) {
    case WT__PREPEND:
        if (size && !wt__tok_bytes_add(out, step->content, strlen(step->content))) return wt__tok_no_memory();
        return wt__tok_bytes_add(out, text, size) ? WT_OK : wt__tok_no_memory();
    case WT__REPLACE:
        return wt__tok_replace(work, step, text, size, out);
    case WT__STRIP: {
        wt__tok_span kept = without_spaces(text, size, step->start, step->stop);
        return wt__tok_bytes_add(out, text + kept.begin, kept.end - kept.begin) ? WT_OK : wt__tok_no_memory();
    }
    case WT__LOWERCASE:
    case WT__STRIP_ACCENTS:
        return map_characters(step->kind, text, size, out);
    default:
        if (is_ascii(text, size)) return wt__tok_bytes_add(out, text, size) ? WT_OK : wt__tok_no_memory();
        return normal_form(step->kind, text, size, out);
    }
}

wt_status wt__tok_normalize(wt__tok_work *work, const char *text, size_t size, wt__tok_bytes *out)
{
    const wt__tok_steps *steps = &work->t->normalizer;
    wt__tok_bytes *spare = &work->text[0], now = *out;
    now.size = 0;
    if (!wt__tok_bytes_add(&now, text, size)) return wt__tok_no_memory();
    wt_status status = WT_OK;
    for (size_t i = 0; i < steps->n && !status; i++) {
        wt__tok_bytes next = *spare;
        next.size = 0;
        status = wt__tok_bytes_add(&next, "", 0) ? normalize_step(work, &steps->at[i], now.at, now.size, &next)
                                                 : wt__tok_no_memory();
        *spare = now;
        now = next;
    }
    *out = now;
    return status;
}

// --- The pre-tokenizer ----------------------------------------------------------------------------------------------

// A part of a piece, matched or between matches, joins the pieces so far as the behaviour says.
static bool put_part(const wt__tok_step *step, wt__tok_span part, bool matched, size_t first, bool *before,
                     wt__tok_spans *out)
{
    wt__tok_span *last = out->n > first ? &out->at[out->n - 1] : NULL;
    bool was = *before, join = false;
    *before = matched;
    switch (step->behavior) {
    case WT__REMOVED:
        if (matched) return true;
        break;
    case WT__ISOLATED:
        break;
    case WT__CONTIGUOUS:
        join = last && was == matched;
        break;
    case WT__WITH_PREVIOUS:
        join = last && matched && !was;
        break;
    case WT__WITH_NEXT:
        join = last && was && !matched;
        break;
    }
    if (!join) return add_span(out, part.begin, part.end);
    last->end = part.end;
    return true;
}

static wt_status split(wt__tok_work *work, const wt__tok_step *step, const char *text, wt__tok_span piece,
                       wt__tok_spans *out)
{
    const char *at = text + piece.begin;
    size_t size = piece.end - piece.begin, from = 0, first = out->n;
    bool found = true, before = false;
    while (from < size) {
        wt__tok_span match;
        wt_status status = next_match(work, &step->pattern, at, size, from, &found, &match);
        if (status) return status;
        if (!found) match = (wt__tok_span){size, size};
        wt__tok_span parts[2] = {{piece.begin + from, piece.begin + match.begin},
                                 {piece.begin + match.begin, piece.begin + match.end}};
        for (int i = 0; i < 2; i++)
            if (parts[i].end > parts[i].begin &&
                !put_part(step, parts[i], (i == 1) != step->invert, first, &before, out))
                return wt__tok_no_memory();
        from = match.end;
    }
    return WT_OK;
}

// A piece with other bytes, appended to `out`.
static bool rewrite(const wt__tok_step *step, const char *piece, size_t size, bool first, wt__tok_bytes *out)
{
    bool ok = true;
    if (step->kind == WT__PREFIX_SPACE) {
        if (piece[0] != ' ') ok = wt__tok_bytes_add(out, " ", 1);
        return ok && wt__tok_bytes_add(out, piece, size);
    }
    if (step->kind == WT__METASPACE) {
        size_t n = strlen(step->content);
        bool there = piece[0] == ' ' || (size >= n && !memcmp(piece, step->content, n));
        if (!there && (step->prepend == WT__ALWAYS || (step->prepend == WT__FIRST && first)))
            ok = wt__tok_bytes_add(out, step->content, n);
        for (size_t i = 0; i < size && ok; i++)
            ok = piece[i] == ' ' ? wt__tok_bytes_add(out, step->content, n) : wt__tok_bytes_add(out, piece + i, 1);
        return ok;
    }
    if (!wt__tok_grow((void **)&out->at, &out->room, out->size + 2 * size + 1, 1)) return false;
    for (size_t i = 0; i < size; i++)
        out->size += wt__utf8_put(wt__tok_level_of_byte((unsigned char)piece[i]), out->at + out->size);
    return true;
}

static wt_status rewrite_all(const wt__tok_step *step, const char *text, const wt__tok_spans *in, bool first,
                             wt__tok_bytes *out, wt__tok_spans *spans)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t begin = out->size;
        if (!rewrite(step, text + in->at[i].begin, in->at[i].end - in->at[i].begin, first && i == 0, out))
            return wt__tok_no_memory();
        if (!add_span(spans, begin, out->size)) return wt__tok_no_memory();
    }
    return WT_OK;
}

wt_status wt__tok_pre_tokenize(wt__tok_work *work, const char *text, size_t size, bool first, const char **pieces,
                               const wt__tok_spans **spans)
{
    const wt__tok_steps *steps = &work->t->pre_tokenizer;
    int now = 0, buffer = 0;
    work->spans[0].n = 0;
    if (size && !add_span(&work->spans[0], 0, size)) return wt__tok_no_memory();
    for (size_t i = 0; i < steps->n; i++, now = !now) {
        const wt__tok_step *step = &steps->at[i];
        wt__tok_spans *in = &work->spans[now], *out = &work->spans[!now];
        wt_status status = WT_OK;
        out->n = 0;
        if (step->kind == WT__SPLIT) {
            for (size_t k = 0; k < in->n && !status; k++) status = split(work, step, text, in->at[k], out);
        } else {
            wt__tok_bytes *next = &work->text[buffer];
            next->size = 0;
            status = rewrite_all(step, text, in, first, next, out);
            text = next->at;
            buffer = !buffer;
        }
        if (status) return status;
    }
    *pieces = text;
    *spans = &work->spans[now];
    return WT_OK;
}
