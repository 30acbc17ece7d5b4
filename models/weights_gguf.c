// GGUF, versions 2 and 3, little-endian: magic, version, counts; keys with typed values; tensors' names, dimensions
// (the fastest first), types and offsets; then the data, each tensor at a multiple of general.alignment.
// Source: github.com/ggml-org/ggml, docs/gguf.md; type numbers: enum ggml_type.
#include "weights_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/number.h>

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, N_KINDS };

static const struct {
    const char *name;
    int bytes; // 0: has a length of its own
} kinds[N_KINDS] = {
    [U8] = {"u8", 1},   [I8] = {"i8", 1},   [U16] = {"u16", 2},   [I16] = {"i16", 2},       [U32] = {"u32", 4},
    [I32] = {"i32", 4}, [F32] = {"f32", 4}, [BOOL] = {"bool", 1}, [STRING] = {"string", 0}, [ARRAY] = {"array", 0},
    [U64] = {"u64", 8}, [I64] = {"i64", 8}, [F64] = {"f64", 8}};

enum { MAX_NESTING = 4, MAX_NAME = 64, MAX_KEY = 65535, MAX_DIMENSIONS = 4, MAX_KEYS = 4096, DEFAULT_ALIGNMENT = 32 };

typedef struct reader {
    const char *file;
    const uint8_t *at, *end;
} reader;

static size_t left(const reader *r) { return (size_t)(r->end - r->at); }

static wt_status cut_off(const reader *r, const char *what)
{
    return wt_fail(WT_ERR_FORMAT, "%s ends within %s", r->file, what);
}

static wt_status take(reader *r, void *out, size_t size, const char *what)
{
    if (left(r) < size) return cut_off(r, what);
    memcpy(out, r->at, size);
    r->at += size;
    return WT_OK;
}

/// Is it UTF-8 without a zero byte, so that it can stand in messages and JSON? (RFC 3629, table 3-7 of Unicode)
static bool is_text(const uint8_t *p, size_t n)
{
    for (size_t k = 0; k < n;) {
        const uint8_t b = p[k];
        const int more = b < 0x80 ? 0 : b < 0xc2 ? -1 : b < 0xe0 ? 1 : b < 0xf0 ? 2 : b < 0xf5 ? 3 : -1;
        if (!b || more < 0 || (size_t)more > n - k - 1) return false;
        for (int j = 1; j <= more; j++)
            if ((p[k + (size_t)j] & 0xc0) != 0x80) return false;
        if (more > 1) {
            const uint8_t c = p[k + 1];
            if ((b == 0xe0 && c < 0xa0) || (b == 0xed && c > 0x9f) || (b == 0xf0 && c < 0x90) ||
                (b == 0xf4 && c > 0x8f))
                return false;
        }
        k += 1 + (size_t)more;
    }
    return true;
}

/// The bytes of a string, still in the file.
static wt_status take_bytes(reader *r, const char *what, const uint8_t **bytes, size_t *length)
{
    uint64_t n = 0;
    wt_status status = take(r, &n, 8, what);
    if (status) return status;
    if (n > left(r))
        return wt_fail(WT_ERR_FORMAT, "%s: %s has %" PRIu64 " bytes, %zu are left in the file", r->file, what, n,
                       left(r));
    *bytes = r->at;
    *length = (size_t)n;
    r->at += n;
    return WT_OK;
}

/// A string of at most `most` bytes that is text; caller frees.
static wt_status take_text(reader *r, const char *what, size_t most, char **text)
{
    const uint8_t *bytes = NULL;
    size_t length = 0;
    *text = NULL;
    wt_status status = take_bytes(r, what, &bytes, &length);
    if (status) return status;
    if (length > most)
        return wt_fail(WT_ERR_FORMAT, "%s: %s has %zu bytes, want %zu or less", r->file, what, length, most);
    if (!is_text(bytes, length)) return wt_fail(WT_ERR_FORMAT, "%s: %s is not UTF-8", r->file, what);
    *text = strndup((const char *)bytes, length);
    return *text ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: %s of %zu bytes", r->file, what, length);
}

// ---- metadata

static wt_status take_kind(reader *r, const char *key, uint32_t *kind)
{
    wt_status status = take(r, kind, 4, key);
    if (status || *kind < N_KINDS) return status;
    return wt_fail(WT_ERR_FORMAT, "%s: %s has values of type %u, want 0..%d", r->file, key, *kind, N_KINDS - 1);
}

/// Walk over an array, whose elements are not kept; `text` gets "[3] string".
static wt_status skip_array(reader *r, const char *key, int nesting, char text[64])
{
    uint32_t kind = 0;
    uint64_t n = 0;
    wt_status status = take_kind(r, key, &kind);
    if (!status) status = take(r, &n, 8, key);
    if (status) return status;
    snprintf(text, 64, "[%" PRIu64 "] %s", n, kinds[kind].name);
    if (nesting > MAX_NESTING)
        return wt_fail(WT_ERR_FORMAT, "%s: %s has arrays in arrays deeper than %d", r->file, key, MAX_NESTING);
    // a string takes 8 bytes at least, an array 12
    const size_t least = kinds[kind].bytes ? (size_t)kinds[kind].bytes : kind == STRING ? 8 : 12;
    if (n > left(r) / least)
        return wt_fail(WT_ERR_FORMAT, "%s: %s has %" PRIu64 " elements, the file ends before", r->file, key, n);
    if (kinds[kind].bytes) r->at += n * least;
    for (uint64_t k = 0; !kinds[kind].bytes && k < n && !status; k++) {
        const uint8_t *bytes;
        size_t length;
        char inner[64];
        status = kind == STRING ? take_bytes(r, key, &bytes, &length) : skip_array(r, key, nesting + 1, inner);
    }
    return status;
}

/// The fewest digits that bring back the same bits.
static void real_text(double x, bool narrow, char text[64])
{
    for (int digits = 7; digits <= 17; digits++) {
        wt_number_write(text, 64, digits, x);
        const double back = wt_number_read(text, NULL);
        if (narrow ? (float)back == (float)x : back == x) return;
    }
}

/// A number as text.
static wt_status take_number(reader *r, const char *key, uint32_t kind, char text[64])
{
    uint64_t bits = 0;
    const int unused = 64 - 8 * kinds[kind].bytes;
    wt_status status = take(r, &bits, (size_t)kinds[kind].bytes, key);
    if (status) return status;
    if (kind == F32) {
        float x;
        memcpy(&x, &bits, sizeof x);
        real_text((double)x, true, text);
    } else if (kind == F64) {
        double x;
        memcpy(&x, &bits, sizeof x);
        real_text(x, false, text);
    } else if (kind == BOOL) {
        if (bits > 1) return wt_fail(WT_ERR_FORMAT, "%s: %s is the bool %d, want 0 or 1", r->file, key, (int)bits);
        snprintf(text, 64, "%s", bits ? "true" : "false");
    } else if (kind == I8 || kind == I16 || kind == I32 || kind == I64) {
        snprintf(text, 64, "%" PRId64, (int64_t)(bits << unused) >> unused);
    } else {
        snprintf(text, 64, "%" PRIu64, bits);
    }
    return WT_OK;
}

static wt_status read_value(reader *r, wt_weights *weights, const char *key)
{
    uint32_t kind = 0;
    char number[64], *text = NULL;
    wt_status status = take_kind(r, key, &kind);
    if (status) return status;
    const uint8_t *const value = r->at;
    if (wt_weights_metadata(weights, key)) return wt_fail(WT_ERR_FORMAT, "%s: the key %s is there twice", r->file, key);
    if (kind == STRING)
        status = take_text(r, key, SIZE_MAX, &text);
    else
        status = kind == ARRAY ? skip_array(r, key, 1, number) : take_number(r, key, kind, number);
    if (!status && !strcmp(key, "general.alignment") && kind != U32)
        status = wt_fail(WT_ERR_FORMAT, "%s: general.alignment is of type %s, want u32", r->file, kinds[kind].name);
    if (!status) status = wt__weights_note(weights, key, text ? text : number);
    if (!status && kind == ARRAY) {
        wt_metadata_array *array = &weights->notes[weights->n_notes - 1].array;
        memcpy(&kind, value, sizeof kind);
        memcpy(&array->n, value + sizeof kind, sizeof array->n);
        array->type = kinds[kind].name;
        array->at = value + sizeof kind + sizeof array->n;
    }
    free(text);
    return status;
}

// ---- tensors

static wt_status find_type(const reader *r, const char *name, uint32_t type, wt_dtype *dtype)
{
    static const struct {
        int type;
        wt_dtype dtype;
    } known[] = {{0, WT_DTYPE_F32},   {1, WT_DTYPE_F16},   {2, WT_DTYPE_Q4_0}, {8, WT_DTYPE_Q8_0},
                 {12, WT_DTYPE_Q4_K}, {14, WT_DTYPE_Q6_K}, {24, WT_DTYPE_I8},  {25, WT_DTYPE_I16},
                 {26, WT_DTYPE_I32},  {27, WT_DTYPE_I64},  {28, WT_DTYPE_F64}, {30, WT_DTYPE_BF16}};
    static const char *const other[] = {
        [3] = "Q4_1",     [6] = "Q5_0",   [7] = "Q5_1",    [9] = "Q8_1",     [10] = "Q2_K",
        [11] = "Q3_K",    [13] = "Q5_K",  [15] = "Q8_K",   [16] = "IQ2_XXS", [17] = "IQ2_XS",
        [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S",   [22] = "IQ2_S",
        [23] = "IQ4_XS",  [29] = "IQ1_M", [34] = "TQ1_0",  [35] = "TQ2_0",   [39] = "MXFP4"};
    for (int k = 0; k < (int)(sizeof known / sizeof *known); k++)
        if (type == (uint32_t)known[k].type) {
            *dtype = known[k].dtype;
            return WT_OK;
        }
    const bool named = type < sizeof other / sizeof *other && other[type];
    return wt_fail(named ? WT_ERR_UNSUPPORTED : WT_ERR_FORMAT,
                   "%s: tensor %s is of type %u%s%s, want F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K, F64, I8, I16, I32 or "
                   "I64",
                   r->file, name, type, named ? ", " : "", named ? other[type] : "");
}

/// Shape, type and offset of one tensor; the offset stays in *offset until the data's beginning is known.
static wt_status read_info(reader *r, const char *name, wt_tensor *tensor, uint64_t *offset)
{
    uint32_t rank = 0, type = 0;
    wt_status status = take(r, &rank, 4, name);
    if (!status && rank > MAX_DIMENSIONS)
        status = wt_fail(WT_ERR_FORMAT, "%s: tensor %s has %u dimensions, want %d or less", r->file, name, rank,
                         MAX_DIMENSIONS);
    tensor->rank = (int)rank;
    for (int k = tensor->rank; !status && k--;) status = take(r, &tensor->shape[k], 8, name);
    if (!status) status = take(r, &type, 4, name);
    if (!status) status = take(r, offset, 8, name);
    return status ? status : find_type(r, name, type, &tensor->dtype);
}

static wt_status place_tensor(const reader *r, const uint8_t *data, uint64_t alignment, const char *name,
                              uint64_t offset, wt_tensor *tensor)
{
    size_t bytes;
    const size_t size = (size_t)(r->end - data);
    wt_status status = wt__shape_bytes(r->file, name, tensor, &bytes);
    if (status) return status;
    if (offset % alignment)
        return wt_fail(WT_ERR_FORMAT,
                       "%s: tensor %s begins at byte %" PRIu64 " of the data, want a multiple of %" PRIu64, r->file,
                       name, offset, alignment);
    if (offset > size || bytes > size - offset)
        return wt_fail(WT_ERR_FORMAT,
                       "%s: tensor %s has %zu bytes from byte %" PRIu64 " of the data, which ends at %zu", r->file,
                       name, bytes, offset, size);
    tensor->data = data + offset;
    return WT_OK;
}

/// Two walks over the same bytes: the first finds where they end, and with that the data; the second keeps the tensors.
static wt_status read_tensors(reader *r, wt_weights *weights, uint64_t n_tensors, uint64_t alignment)
{
    const uint8_t *const begin = weights->files[weights->n_files - 1].data, *data = NULL;
    const uint8_t *const infos = r->at;
    for (int walk = 0; walk < 2; walk++) {
        r->at = infos;
        for (uint64_t k = 0; k < n_tensors; k++) {
            char *name;
            wt_tensor tensor = {0};
            uint64_t offset = 0;
            wt_status status = take_text(r, "a tensor's name", MAX_NAME, &name);
            if (!status) status = read_info(r, name, &tensor, &offset);
            if (!status && walk) status = place_tensor(r, data, alignment, name, offset, &tensor);
            if (!status && walk) status = wt__weights_add(weights, name, strlen(name), &tensor);
            free(name);
            if (status) return status;
        }
        const size_t padding = (size_t)(-(uint64_t)(r->at - begin) & (alignment - 1));
        if (n_tensors && padding > left(r)) return cut_off(r, "the padding before the data");
        data = n_tensors ? r->at + padding : r->end;
    }
    return wt__weights_place(weights, 0, data, r->end, false);
}

// ---- the file

static wt_status read_alignment(const reader *r, const wt_weights *weights, uint64_t *alignment)
{
    const char *text = wt_weights_metadata(weights, "general.alignment");
    *alignment = text ? strtoull(text, NULL, 10) : DEFAULT_ALIGNMENT;
    if (*alignment && !(*alignment & (*alignment - 1))) return WT_OK;
    return wt_fail(WT_ERR_FORMAT, "%s: general.alignment is %s, want a power of two", r->file, text);
}

static wt_status read_counts(reader *r, uint64_t *n_tensors, uint64_t *n_keys)
{
    char magic[4];
    uint32_t version = 0;
    wt_status status = take(r, magic, 4, "GGUF's header");
    if (!status && memcmp(magic, "GGUF", 4))
        status = wt_fail(WT_ERR_FORMAT, "%s does not begin with GGUF: not such a file", r->file);
    if (!status) status = take(r, &version, 4, "GGUF's header");
    if (status) return status;
    if (version == 1 || !(version & 0xffff))
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: %s GGUF, want version 2 or 3, little-endian", r->file,
                       version == 1 ? "version 1 of" : "big-endian");
    if (version != 2 && version != 3)
        return wt_fail(WT_ERR_FORMAT, "%s: GGUF of version %u, want 2 or 3", r->file, version);
    status = take(r, n_tensors, 8, "GGUF's header");
    if (!status) status = take(r, n_keys, 8, "GGUF's header");
    if (status) return status;
    if (*n_keys > left(r) / 13 || *n_tensors > left(r) / 24) // the fewest bytes of one: see read_value and read_info
        return wt_fail(WT_ERR_FORMAT, "%s: %" PRIu64 " tensors and %" PRIu64 " keys, more than %zu bytes hold", r->file,
                       *n_tensors, *n_keys, left(r));
    if (*n_keys > MAX_KEYS) // real files have below a hundred; each is compared with all before it
        return wt_fail(WT_ERR_FORMAT, "%s: %" PRIu64 " keys, want %d or less", r->file, *n_keys, MAX_KEYS);
    return WT_OK;
}

wt_status wt__gguf_read(wt_weights *weights)
{
    const wt__mapping *m = &weights->files[weights->n_files - 1];
    reader r = {m->path, m->data, m->data + m->size};
    uint64_t n_tensors = 0, n_keys = 0, alignment;
    wt_status status = read_counts(&r, &n_tensors, &n_keys);
    for (uint64_t k = 0; !status && k < n_keys; k++) {
        char *key;
        status = take_text(&r, "a key", MAX_KEY, &key);
        if (!status) status = read_value(&r, weights, key);
        free(key);
    }
    if (status) return status;
    const char *parts = wt_weights_metadata(weights, "split.count");
    if (parts && strcmp(parts, "1") && strcmp(parts, "0"))
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "%s is one of %s parts, want one file: join them with llama-gguf-split "
                       "--merge",
                       r.file, parts);
    status = read_alignment(&r, weights, &alignment);
    return status ? status : read_tensors(&r, weights, n_tensors, alignment);
}
