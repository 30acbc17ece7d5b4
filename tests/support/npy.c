#include "support/npy.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// File: "\x93NUMPY", major, minor, header length (2 bytes in version 1, 4 in version 2), then a Python dict as text:
//   {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
// and the elements.
enum { MAX_HEADER = 1 << 16 };

static const char *after_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    return at + strspn(at, " :");
}

static wt_status parse_type(npy *a, const char *path, const char *header)
{
    static const char *const known[] = {"<f4", "<f8", "<c8", "<c16", "<i4", "<i8", "|b1"};
    const char              *at = after_key(header, "'descr'");
    char                     type[16] = "";
    if (!at || sscanf(at, "'%15[^']'", type) != 1) return wt_fail(WT_ERR_FORMAT, "%s: npy header without a type", path);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(type, known[k]) == 0) {
            a->kind = type[1];
            a->item_bytes = atoi(type + 2);
            return WT_OK;
        }
    return wt_fail(WT_ERR_FORMAT, "%s: npy type %s, want <f4 <f8 <c8 <c16 <i4 <i8 or |b1", path, type);
}

static wt_status parse_shape(npy *a, const char *path, const char *header)
{
    const char *order = after_key(header, "'fortran_order'");
    if (!order || strncmp(order, "False", 5) != 0)
        return wt_fail(WT_ERR_FORMAT, "%s: npy order is Fortran, want C", path);

    const char *at = after_key(header, "'shape'");
    if (!at || *at != '(') return wt_fail(WT_ERR_FORMAT, "%s: npy header without a shape", path);
    a->count = 1;
    for (at++; at += strspn(at, " ,"), *at != ')';) {
        char              *end;
        unsigned long long n = strtoull(at, &end, 10);
        if (end == at) return wt_fail(WT_ERR_FORMAT, "%s: npy shape is not a list of numbers", path);
        if (a->n_dims == NPY_MAX_DIMS) return wt_fail(WT_ERR_FORMAT, "%s: more than %d dimensions", path, NPY_MAX_DIMS);
        if (n && a->count > SIZE_MAX / 64 / n) return wt_fail(WT_ERR_FORMAT, "%s: npy shape too large", path);
        a->shape[a->n_dims++] = n;
        a->count *= n;
        at = end;
    }
    return WT_OK;
}

static wt_status read_header(FILE *file, const char *path, char **header)
{
    unsigned char head[12];
    if (fread(head, 1, 8, file) != 8 || memcmp(head, "\x93NUMPY", 6) != 0)
        return wt_fail(WT_ERR_FORMAT, "%s: not an npy file", path);
    int version = head[6], width = version == 1 ? 2 : 4;
    if (version < 1 || version > 2) return wt_fail(WT_ERR_FORMAT, "%s: npy version %d, want 1 or 2", path, version);
    if (fread(head + 8, 1, (size_t)width, file) != (size_t)width)
        return wt_fail(WT_ERR_FORMAT, "%s: npy header cut short", path);
    size_t length = head[8] | (size_t)head[9] << 8;
    if (version == 2) length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (length > MAX_HEADER) return wt_fail(WT_ERR_FORMAT, "%s: npy header of %zu bytes", path, length);

    *header = calloc(length + 1, 1);
    if (!*header) return wt_fail(WT_ERR_NO_MEMORY, "npy: header");
    if (fread(*header, 1, length, file) != length) return wt_fail(WT_ERR_FORMAT, "%s: npy header cut short", path);
    return WT_OK;
}

static wt_status read_elements(FILE *file, const char *path, npy *a)
{
    size_t size = a->count * (size_t)a->item_bytes;
    long   start = ftell(file);
    if (start < 0 || fseek(file, 0, SEEK_END)) return wt_fail(WT_ERR_FILE, "%s: not a seekable file", path);
    size_t left = (size_t)(ftell(file) - start);
    if (left != size) return wt_fail(WT_ERR_FORMAT, "%s: %zu bytes of elements, want %zu", path, left, size);
    if (fseek(file, start, SEEK_SET)) return wt_fail(WT_ERR_FILE, "%s: not a seekable file", path);
    a->data = malloc(size ? size : 1);
    if (!a->data) return wt_fail(WT_ERR_NO_MEMORY, "npy: %zu bytes", size);
    if (fread(a->data, 1, size, file) != size) return wt_fail(WT_ERR_FILE, "%s: cannot read the elements", path);
    return WT_OK;
}

static wt_status read_file(FILE *file, const char *path, npy *a)
{
    char     *header = NULL;
    wt_status status = read_header(file, path, &header);
    if (!status) status = parse_type(a, path, header);
    if (!status) status = parse_shape(a, path, header);
    if (!status) status = read_elements(file, path, a);
    free(header);
    if (status) npy_free(a);
    return status;
}

wt_status npy_read(const char *path, npy *a)
{
    *a = (npy){0};
    FILE *file = fopen(path, "rb");
    if (!file) return wt_fail(WT_ERR_FILE, "%s: cannot open", path);
    wt_status status = read_file(file, path, a);
    fclose(file);
    return status;
}

// ZIP (PKWARE APPNOTE.TXT, 4.3.7): local headers of 30 bytes, then name, extra field and data.
static bool next_member(FILE *file, size_t *size)
{
    unsigned char h[30];
    if (fread(h, 1, sizeof h, file) != sizeof h || memcmp(h, "PK\3\4", 4) != 0) return false;
    *size = h[18] | (size_t)h[19] << 8 | (size_t)h[20] << 16 | (size_t)h[21] << 24;
    return !fseek(file, (h[26] | h[27] << 8) + (h[28] | h[29] << 8), SEEK_CUR);
}

wt_status npz_read(const char *path, int k, npy *a)
{
    *a = (npy){0};
    FILE *file = fopen(path, "rb"), *member = tmpfile();
    size_t size = 0;
    bool found = file && member && next_member(file, &size);
    for (; found && k > 0; k--) found = !fseek(file, (long)size, SEEK_CUR) && next_member(file, &size);
    char *bytes = found ? malloc(size + 1) : NULL;
    found = bytes && fread(bytes, 1, size, file) == size && fwrite(bytes, 1, size, member) == size;
    if (found) rewind(member);
    wt_status status = found ? read_file(member, path, a) : wt_fail(WT_ERR_FILE, "%s: no such member", path);
    free(bytes);
    if (file) fclose(file);
    if (member) fclose(member);
    return status;
}

void npy_free(npy *a)
{
    free(a->data);
    *a = (npy){0};
}

static double element(const npy *a, size_t n)
{
    int half = a->kind == 'c' ? a->item_bytes / 2 : a->item_bytes;
    if (a->kind == 'b') return ((const unsigned char *)a->data)[n];
    if (a->kind == 'i' && half == 4) return ((const int32_t *)a->data)[n];
    if (a->kind == 'i') return (double)((const int64_t *)a->data)[n];
    return half == 4 ? (double)((const float *)a->data)[n] : ((const double *)a->data)[n];
}

static size_t numbers(const npy *a)
{
    return a->count * (a->kind == 'c' ? 2 : 1);
}

double *npy_doubles(const npy *a)
{
    double *out = malloc(sizeof *out * (numbers(a) ? numbers(a) : 1));
    for (size_t n = 0; out && n < numbers(a); n++) out[n] = element(a, n);
    return out;
}

float *npy_floats(const npy *a)
{
    float *out = malloc(sizeof *out * (numbers(a) ? numbers(a) : 1));
    for (size_t n = 0; out && n < numbers(a); n++) out[n] = (float)element(a, n);
    return out;
}
