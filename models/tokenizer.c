// Opening a tokenizer and encoding text: added tokens cut the text, the normalizer, the pre-tokenizer and the merges
// turn what lies between into ids.
// Judge: the `tokenizers` package (tokenizer/mod.rs, added_vocabulary.rs).
#include "json.h"
#include "tokenizer_internal.h"
#include "utf8.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 256 << 20 };

// --- Opening --------------------------------------------------------------------------------------------------------

static void *take(PCRE2_SIZE size, void *user)
{
    wt_tokenizer *t = user;
    void *memory = malloc(size);
    t->refused = t->refused || !memory;
    return memory;
}

static void give(void *memory, void *user)
{
    (void)user;
    free(memory);
}

static void free_steps(wt__tok_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        pcre2_code_free(steps->at[i].pattern.regex);
        free(steps->at[i].pattern.literal);
        free(steps->at[i].content);
    }
    free(steps->at);
}

void wt_tokenizer_close(wt_tokenizer *t)
{
    if (!t) return;
    free_steps(&t->normalizer);
    free_steps(&t->pre_tokenizer);
    free_steps(&t->decoder);
    for (size_t i = 0; i < t->n_added; i++) free(t->added[i].content);
    free(t->added);
    free(t->raw.nodes);
    free(t->normalized.nodes);
    free(t->names.at);
    free(t->name);
    free(t->slots);
    free(t->merges);
    free((void *)t->whole);
    free(t->special);
    free(t->before);
    free(t->after);
    free(t->chat_template);
    pcre2_general_context_free(t->memory);
    free(t);
}

static wt_status read_file(const char *path, char **bytes, size_t *size)
{
    struct stat info;
    FILE *f = fopen(path, "rbe");
    if (!f) return wt_fail(errno == ENOMEM ? WT_ERR_NO_MEMORY : WT_ERR_FILE, "%s: %s", path, strerror(errno));
    setvbuf(f, NULL, _IONBF, 0); // read whole: no buffer to allocate
    wt_status status = WT_OK;
    *bytes = NULL;
    if (fstat(fileno(f), &info) || !S_ISREG(info.st_mode))
        status = wt_fail(WT_ERR_FILE, "%s is not a regular file", path);
    else if (info.st_size > MAX_FILE)
        status = wt_fail(WT_ERR_FORMAT, "%s has %lld bytes, want %d or less", path, (long long)info.st_size, MAX_FILE);
    else if (!(*bytes = malloc((size_t)info.st_size + 1)))
        status = wt__tok_no_memory();
    if (!status) {
        *size = fread(*bytes, 1, (size_t)info.st_size, f);
        (*bytes)[*size] = 0;
        if (ferror(f)) status = wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    }
    fclose(f);
    return status;
}

static bool exists(const char *folder, const char *name, char path[PATH_MAX])
{
    struct stat info;
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && !stat(path, &info);
}

// "<s>" or {"content": "<s>"}
static int32_t token_of(const wt_tokenizer *t, const json_t *json)
{
    const char *text = json_string_value(json_is_object(json) ? json_object_get(json, "content") : json);
    return text ? wt__tok_find_token(t, text, strlen(text)) : -1;
}

// One template, or a list of named ones: then "default".
static const char *template_of(const json_t *json)
{
    if (!json_is_array(json)) return json_string_value(json);
    for (size_t i = 0; i < json_array_size(json); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(json, i), "name"));
        if (name && !strcmp(name, "default"))
            return json_string_value(json_object_get(json_array_get(json, i), "template"));
    }
    return NULL;
}

static wt_status apply_config(wt_tokenizer *t, const json_t *json)
{
    const json_t *bos = json_object_get(json, "bos_token"), *eos = json_object_get(json, "eos_token");
    const char *text = template_of(json_object_get(json, "chat_template"));
    if (bos) t->bos = token_of(t, bos);
    if (eos) t->eos = token_of(t, eos);
    if (text) t->chat_template = strdup(text);
    return text && !t->chat_template ? wt__tok_no_memory() : WT_OK;
}

// tokenizer_config.json, whose model_max_length of 10^30 is no integer of 64 bits: numbers are read as real ones.
static wt_status read_config(wt_tokenizer *t, const char *path)
{
    char *bytes = NULL;
    size_t size = 0;
    json_t *json = NULL;
    wt_status status = read_file(path, &bytes, &size);
    if (!status) status = wt__json_load(path, bytes, size, JSON_DECODE_INT_AS_REAL, &json);
    if (!status) status = apply_config(t, json);
    json_decref(json);
    free(bytes);
    return status;
}

// What stands beside the vocabulary.
static wt_status read_companions(wt_tokenizer *t, const char *folder)
{
    char path[PATH_MAX];
    size_t size;
    wt_status status = exists(folder, "tokenizer_config.json", path) ? read_config(t, path) : WT_OK;
    if (status || !exists(folder, "chat_template.jinja", path)) return status;
    free(t->chat_template);
    t->chat_template = NULL;
    return read_file(path, &t->chat_template, &size);
}

static bool is_gguf(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".gguf");
}

// One of the known names, or the folder's one GGUF file.
static wt_status open_folder(const char *folder, char path[PATH_MAX], bool *gguf)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "tokenizer.bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (exists(folder, names[i], path)) return WT_OK;
    glob_t found;
    snprintf(path, PATH_MAX, "%s/*.gguf", folder);
    *gguf = !glob(path, GLOB_NOSORT, NULL, &found) && found.gl_pathc == 1;
    if (*gguf) snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
    globfree(&found);
    if (*gguf) return WT_OK;
    return wt_fail(WT_ERR_FORMAT, "%s holds no tokenizer.json, tokenizer.model, tokenizer.bin or one *.gguf", folder);
}

static wt_status open_parts(wt_tokenizer *t, const char *path, bool folder)
{
    char file[PATH_MAX], *bytes = NULL;
    size_t size = 0;
    if (snprintf(file, sizeof file, "%s", path) >= PATH_MAX)
        return wt_fail(WT_ERR_FILE, "%.64s...: the path is too long", path);
    bool gguf = is_gguf(path);
    wt_status status = folder ? open_folder(path, file, &gguf) : WT_OK;
    if (!status && gguf) status = wt__tok_read_gguf(t, file);
    if (!status && !gguf) status = read_file(file, &bytes, &size);
    if (!status && !gguf) {
        size_t begin = strspn(bytes, " \t\r\n");
        bool json = bytes[begin] == '{' && memchr(bytes, 0, size) == NULL;
        status =
            json ? wt__tok_read_tokenizer_json(t, file, bytes, size) : wt__tok_read_vocabulary(t, file, bytes, size);
    }
    free(bytes);
    if (!status) status = wt__tok_index_tokens(t); // with the added ones
    if (!status) status = wt__tok_index_added_tokens(t);
    for (size_t i = 0; i < t->n_before + t->n_after && !status; i++) {
        int32_t id = i < t->n_before ? t->before[i] : t->after[i - t->n_before];
        if (!wt_tokenizer_token(t, id))
            status = wt_fail(WT_ERR_FORMAT, "%s: the post-processor adds id %d, which no token has", file, (int)id);
    }
    return status || !folder ? status : read_companions(t, path);
}

wt_status wt_tokenizer_open(const char *path, wt_tokenizer **tokenizer)
{
    struct stat info;
    *tokenizer = NULL;
    if (stat(path, &info)) return wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    wt_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return wt__tok_no_memory();
    t->unknown = t->bos = t->eos = -1;
    t->memory = pcre2_general_context_create(take, give, t);
    wt_status status = t->memory ? open_parts(t, path, S_ISDIR(info.st_mode)) : wt__tok_no_memory();
    if (status)
        wt_tokenizer_close(t);
    else
        *tokenizer = t;
    return status;
}

// --- Questions ------------------------------------------------------------------------------------------------------

int wt_tokenizer_size(const wt_tokenizer *t) { return t->n_tokens; }

int32_t wt_tokenizer_id(const wt_tokenizer *t, const char *token)
{
    return wt__tok_find_token(t, token, strlen(token));
}

const char *wt_tokenizer_token(const wt_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens && t->name[id] >= 0 ? t->names.at + t->name[id] : NULL;
}

bool wt_tokenizer_is_special(const wt_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens && t->special[id];
}

int32_t wt_tokenizer_bos(const wt_tokenizer *t) { return t->bos; }

int32_t wt_tokenizer_eos(const wt_tokenizer *t) { return t->eos; }

const char *wt_tokenizer_chat_template(const wt_tokenizer *t) { return t->chat_template; }

// --- Encoding -------------------------------------------------------------------------------------------------------

typedef wt_status encode_between(wt__tok_work *work, const char *text, size_t size, bool first);

// Cut the text at the added tokens of one tree; what lies between goes on to `encode`.
static wt_status cut(wt__tok_work *work, const wt__tok_trie *trie, const char *text, size_t size, bool first,
                     encode_between *encode)
{
    size_t done = 0, from = 0;
    wt_status status = WT_OK;
    while (!status) {
        const wt__tok_added_token *token;
        wt__tok_span match;
        wt__tok_next_added_token(work->t, trie, text, size, from, done, &token, &match, &from);
        size_t end = token ? match.begin : size;
        if (end > done) status = encode(work, text + done, end - done, first && !done);
        if (!token) return status;
        wt__tok_put_id(work, token->id);
        done = match.end;
    }
    return status;
}

static wt_status encode_words(wt__tok_work *work, const char *text, size_t size, bool first)
{
    const char *pieces;
    const wt__tok_spans *spans;
    wt_status status = wt__tok_pre_tokenize(work, text, size, first, &pieces, &spans);
    for (size_t i = 0; i < (status ? 0 : spans->n) && !status; i++)
        status = wt__tok_bpe(work, pieces + spans->at[i].begin, spans->at[i].end - spans->at[i].begin);
    return status;
}

static wt_status encode_raw(wt__tok_work *work, const char *text, size_t size, bool first)
{
    if (work->t->normalizer.n) {
        wt_status status = wt__tok_normalize(work, text, size, &work->normal);
        if (status) return status;
        text = work->normal.at;
        size = work->normal.size;
    }
    return cut(work, &work->t->normalized, text, size, first, encode_words);
}

wt_status wt_tokenizer_encode(const wt_tokenizer *t, const char *text, size_t length, bool special, int32_t *ids,
                              int max_ids, int *n_ids)
{
    *n_ids = 0;
    if (max_ids < 0 || length > INT_MAX / 8)
        return wt_fail(WT_ERR_BAD_ARG, "tokenizer: %zu bytes for %d ids, want %d or less for 0 or more", length,
                       max_ids, INT_MAX / 8);
    wt__tok_work work = {.t = t, .ids = ids, .max_ids = max_ids};
    wt__tok_bytes clean = {0};
    wt_status status = WT_OK;
    if (!wt__utf8_valid(text, length)) {
        status = wt__tok_add_lossy(&clean, text, length) ? WT_OK : wt__tok_no_memory();
        text = clean.at;
        length = clean.size;
    }
    for (size_t i = 0; special && i < t->n_before; i++) wt__tok_put_id(&work, t->before[i]);
    if (!status) status = cut(&work, &t->raw, text, length, true, encode_raw);
    for (size_t i = 0; special && i < t->n_after; i++) wt__tok_put_id(&work, t->after[i]);
    free(clean.at);
    wt__tok_work_free(&work);
    if (!status) *n_ids = (int)work.n_ids;
    return status;
}
