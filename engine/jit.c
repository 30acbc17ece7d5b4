// CUDA text to cubin. What a text includes from kernels/ is found by reading its #include "..." lines, one after the
// other; that list goes to NVRTC as headers, and into the hash that names the cached result. A line that the
// preprocessor would skip is listed too, which costs at most a needless compilation.
#include "cuda_libs.h"
#include "kernel_cache.h"
#include "kernel_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADERS = 256, MAX_OPTIONS = 64, MIN_ARCHITECTURE = 80, MAX_ARCHITECTURE = 999 };

typedef struct job {
    const char *name, *source;
    const char *only; ///< of the table; NULL = any architecture
    int n_headers;
    const char *header_names[MAX_HEADERS], *header_texts[MAX_HEADERS];
    int n_options;
    const char *options[MAX_OPTIONS];
    char architecture[32];
    bool cached; ///< false when the user forbids it or names folders whose files the hash cannot cover
} job;

// ---- the text and what it includes

static const wt_kernel_text *find_text(const char *path)
{
    for (int k = 0; k < wt__n_kernel_texts; k++)
        if (!strcmp(wt__kernel_table[k].path, path)) return &wt__kernel_table[k];
    return NULL;
}

static const wt_kernel_text *find_included(const char *name, size_t length)
{
    for (int k = 0; k < wt__n_kernel_texts; k++) {
        const char *slash = strrchr(wt__kernel_table[k].path, '/');
        const char *file = slash ? slash + 1 : wt__kernel_table[k].path;
        if (strlen(file) == length && !memcmp(file, name, length)) return &wt__kernel_table[k];
    }
    return NULL;
}

/// If a line is `#include "name"`, the name's begin and length.
static const char *included_name(const char *line, size_t *length)
{
    line += strspn(line, " \t");
    if (*line++ != '#') return NULL;
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7)) return NULL;
    line += 7 + strspn(line + 7, " \t");
    if (*line++ != '"') return NULL;
    *length = strcspn(line, "\"\n");
    return line[*length] == '"' ? line : NULL;
}

static wt_status add_headers_of(job *j, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        size_t length = 0;
        const char *name = included_name(line, &length);
        const wt_kernel_text *found = name ? find_included(name, length) : NULL;
        if (!found) continue; // not ours: NVRTC has it or complains
        bool known = false;
        for (int k = 0; k < j->n_headers && !known; k++) known = j->header_texts[k] == found->text;
        if (known) continue;
        if (j->n_headers == MAX_HEADERS)
            return wt_fail(WT_ERR_COMPILE, "%s: includes more than %d files", j->name, MAX_HEADERS);
        j->header_names[j->n_headers] = strrchr(found->path, '/') ? strrchr(found->path, '/') + 1 : found->path;
        j->header_texts[j->n_headers++] = found->text;
    }
    return WT_OK;
}

static wt_status find_headers(job *j)
{
    wt_status status = add_headers_of(j, j->source);
    for (int k = 0; k < j->n_headers && !status; k++) status = add_headers_of(j, j->header_texts[k]);
    return status;
}

// ---- options

static bool names_architecture(const char *option)
{
    return !strncmp(option, "-arch", 5) || !strncmp(option, "--gpu-architecture", 18);
}

static bool names_folder(const char *option)
{
    return !strncmp(option, "-I", 2) || !strncmp(option, "--include-path", 14) || !strncmp(option, "-include", 8) ||
           !strncmp(option, "--pre-include", 13);
}

static wt_status find_options(job *j, const wt_module_config *config, int architecture)
{
    if (config->n_options < 0 || config->n_options > MAX_OPTIONS - 4)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d compiler options, want 0..%d", j->name, config->n_options,
                       MAX_OPTIONS - 4);
    bool named = false;
    j->cached = !config->no_cache;
    for (int k = 0; k < config->n_options; k++) {
        named |= names_architecture(config->options[k]);
        j->cached &= !names_folder(config->options[k]);
    }
    if (j->only)
        snprintf(j->architecture, sizeof j->architecture, "-arch=sm_%s", j->only);
    else
        snprintf(j->architecture, sizeof j->architecture, "-arch=sm_%d", architecture);
    if (!named) j->options[j->n_options++] = j->architecture;
    j->options[j->n_options++] = "-std=c++17";
    j->options[j->n_options++] = "-default-device";
    if (config->fast_math) j->options[j->n_options++] = "-use_fast_math";
    for (int k = 0; k < config->n_options; k++) j->options[j->n_options++] = config->options[k];
    return WT_OK;
}

static void add_text(wt__sha256 *hash, const char *text)
{
    uint64_t length = strlen(text); // first, so that "ab", "c" and "a", "bc" differ
    wt__sha256_add(hash, &length, sizeof length);
    wt__sha256_add(hash, text, length);
}

static void hash_job(const job *j, unsigned char digest[32])
{
    wt__sha256 hash;
    wt__sha256_start(&hash);
    add_text(&hash, j->name);
    add_text(&hash, j->source);
    for (int k = 0; k < j->n_headers; k++) {
        add_text(&hash, j->header_names[k]);
        add_text(&hash, j->header_texts[k]);
    }
    for (int k = 0; k < j->n_options; k++) add_text(&hash, j->options[k]);
    wt__sha256_end(&hash, digest);
}

// ---- NVRTC

static wt_status nvrtc_fail(const wt__nvrtc *nvrtc, int result, const job *j)
{
    return wt_fail(WT_ERR_COMPILE, "%s: NVRTC gives %s (options %s ...)", j->name, nvrtc->GetErrorString(result),
                   j->options[0]);
}

/// The sentence of a text that does not compile: NVRTC's log from its first error on (warnings before it would push the
/// error out of the message).
static wt_status log_fail(const wt__nvrtc *nvrtc, nvrtcProgram program, int result, const job *j)
{
    size_t bytes = 0;
    char *log = NULL;
    if (!nvrtc->GetProgramLogSize(program, &bytes) && bytes > 1) log = calloc(1, bytes + 1);
    if (!log || nvrtc->GetProgramLog(program, log)) {
        free(log);
        return nvrtc_fail(nvrtc, result, j);
    }
    char *begin = strstr(log, "error");
    while (begin && begin > log && begin[-1] != '\n') begin--;
    wt_fail(WT_ERR_COMPILE, "%s does not compile: %s", j->name, begin ? begin : log);
    free(log);
    return WT_ERR_COMPILE;
}

static wt_status check_architecture(const wt__nvrtc *nvrtc, const job *j, int architecture)
{
    int count = 0;
    int *known = NULL;
    bool found = true;
    if (!nvrtc->GetNumSupportedArchs(&count) && count > 0) known = calloc((size_t)count, sizeof *known);
    if (known && !nvrtc->GetSupportedArchs(known)) {
        found = false;
        for (int k = 0; k < count; k++) found |= known[k] == architecture;
    }
    int last = known ? known[count - 1] : 0;
    free(known);
    if (found) return WT_OK;
    return wt_fail(WT_ERR_COMPILE, "%s: NVRTC %d.%d knows no sm_%d (its newest is sm_%d)", j->name,
                   nvrtc->version / 1000, nvrtc->version % 1000 / 10, architecture, last);
}

static wt_status take_cubin(const wt__nvrtc *nvrtc, nvrtcProgram program, const job *j, wt_compiled *compiled)
{
    size_t bytes = 0;
    int result = nvrtc->GetCUBINSize(program, &bytes);
    if (result || !bytes) return nvrtc_fail(nvrtc, result, j);
    char *image = malloc(bytes);
    if (!image) return wt_fail(WT_ERR_NO_MEMORY, "%s: no memory for %zu bytes of machine code", j->name, bytes);
    result = nvrtc->GetCUBIN(program, image);
    if (result) {
        free(image);
        return nvrtc_fail(nvrtc, result, j);
    }
    *compiled = (wt_compiled){image, bytes, false};
    return WT_OK;
}

static wt_status compile(const wt__nvrtc *nvrtc, const job *j, wt_compiled *compiled)
{
    nvrtcProgram program = NULL;
    int result = nvrtc->CreateProgram(&program, j->source, j->name, j->n_headers, j->header_texts, j->header_names);
    if (result) return nvrtc_fail(nvrtc, result, j);
    result = nvrtc->CompileProgram(program, j->n_options, j->options);
    wt_status status = result ? log_fail(nvrtc, program, result, j) : take_cubin(nvrtc, program, j, compiled);
    nvrtc->DestroyProgram(&program);
    return status;
}

static wt_status prepare(job *j, const wt_module_config *config, int architecture)
{
    if (!config->name || !*config->name) return wt_fail(WT_ERR_BAD_ARG, "kernel: no name, want one for messages");
    if (architecture < MIN_ARCHITECTURE || architecture > MAX_ARCHITECTURE)
        return wt_fail(WT_ERR_BAD_ARG, "%s: architecture sm_%d, want sm_%d or newer", config->name, architecture,
                       MIN_ARCHITECTURE);
    const wt_kernel_text *text = config->source ? NULL : find_text(config->name);
    if (!config->source && !text) return wt_fail(WT_ERR_NOT_FOUND, "%s: no such kernel is built in", config->name);
    j->name = config->name;
    j->source = text ? text->text : config->source;
    j->only = text ? text->only : NULL;
    if (j->only && atoi(j->only) != architecture)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: it is for sm_%s alone, not sm_%d", j->name, j->only, architecture);
    wt_status status = find_headers(j);
    return status ? status : find_options(j, config, architecture);
}

wt_status wt_kernel_compile(const wt_module_config *config, int architecture, wt_compiled *compiled)
{
    *compiled = (wt_compiled){0};
    job j = {0};
    wt_status status = prepare(&j, config, architecture);
    if (status) return status;

    const wt__nvrtc *nvrtc = NULL;
    wt_status no_nvrtc = wt__nvrtc_open(&nvrtc);
    wt__cache_key key = {.architecture = architecture, .nvrtc_version = nvrtc ? nvrtc->version : 0};
    hash_job(&j, key.hash);
    if (j.cached && wt__cache_load(&key, compiled)) return WT_OK;
    if (no_nvrtc) return wt__nvrtc_open(&nvrtc); // the sentence again: the cache may have written another

    status = check_architecture(nvrtc, &j, architecture);
    if (!status) status = compile(nvrtc, &j, compiled);
    if (!status && j.cached) wt__cache_store(&key, j.name, compiled->image, compiled->size_bytes);
    return status;
}
