// NPY: numpy/lib/format.py, version 1.0. NPZ: a ZIP archive of NPY members that are stored, not compressed: PKWARE
// APPNOTE.TXT 6.3.10, 4.3.7 local header, 4.3.12 central directory, 4.3.16 its end; of 4 GiB and more with sizes and
// offsets in 64 bits: 4.5.3 extra field, 4.3.14 record and 4.3.15 locator before the end. Numbers are little-endian.
#include "analyze_write.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NPY_HEADER_MAX = 256,
    ZIP_LOCAL = 30,
    ZIP_CENTRAL = 46,
    ZIP_END = 22,
    WIDE_LOCAL = 20,   // behind a local header: both sizes in 64 bits
    WIDE_CENTRAL = 28, // and the offset
    WIDE_END = 56,
    WIDE_LOCATOR = 20,
};

static const uint64_t zip_limit = 0xffffffff; // of 32 bits

/// The bytes before the data; how many is returned, a multiple of 64.
static int npy_header(const analyze_array *a, char header[NPY_HEADER_MAX])
{
    static const char *const types[] = {[ANALYZE_F32] = "<f4", [ANALYZE_F64] = "<f8", [ANALYZE_C64] = "<c8",
                                        [ANALYZE_I32] = "<i4", [ANALYZE_I64] = "<i8", [ANALYZE_BOOL] = "|b1"};
    int n = 10 + snprintf(header + 10, NPY_HEADER_MAX - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          types[a->type]);
    for (int d = 0; d < a->n_dims; d++)
        n += snprintf(header + n, (size_t)(NPY_HEADER_MAX - n), "%lld,%s", (long long)a->shape[d],
                      d + 1 < a->n_dims ? " " : "");
    n += snprintf(header + n, (size_t)(NPY_HEADER_MAX - n), "), }");
    while ((n + 1) % 64) header[n++] = ' ';
    header[n++] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((n - 10) & 255);
    header[9] = (char)((n - 10) >> 8);
    return n;
}

static size_t data_bytes(const analyze_array *a) { return (size_t)analyze_count(a) * analyze_item_bytes(a->type); }

static wt_status check_single(const analyze_result *r)
{
    if (r->n_arrays == 1) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "npy holds one array, these features make %d: want npz", r->n_arrays);
}

wt_status analyze_write_npy(const analyze_report *report, FILE *out)
{
    const analyze_result *r = report->result;
    char header[NPY_HEADER_MAX];
    wt_status status = check_single(r);
    if (status) return status;
    const int n = npy_header(&r->arrays[0], header);
    fwrite(header, 1, (size_t)n, out);
    fwrite(r->arrays[0].data, 1, data_bytes(&r->arrays[0]), out);
    return WT_OK;
}

// ---- ZIP

typedef struct analyze_member member;

// CRC-32 as in ISO 3309, polynomial 0x04c11db7 reflected, eight bytes at a time: crc_tables[k][b] is what byte b does
// with k bytes of zeros behind it (Kounavis and Berry, "A systematic approach to building high performance
// software-based CRC generators", 2005).
static uint32_t crc_tables[8][256];

static void crc_prepare(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        crc_tables[0][b] = b;
        for (int bit = 0; bit < 8; bit++)
            crc_tables[0][b] = crc_tables[0][b] >> 1 ^ (crc_tables[0][b] & 1 ? 0xedb88320 : 0);
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++) {
            const uint32_t before = crc_tables[k - 1][b];
            crc_tables[k][b] = crc_tables[0][before & 255] ^ before >> 8;
        }
}

static uint32_t crc_add(uint32_t crc, const void *bytes, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *b = bytes;
    pthread_once(&once, crc_prepare);
    crc = ~crc;
    for (; n >= 8; n -= 8, b += 8) {
        uint64_t eight = 0;
        for (int k = 0; k < 8; k++) eight |= (uint64_t)b[k] << (8 * k);
        eight ^= crc, crc = 0;
        for (int k = 0; k < 8; k++) crc ^= crc_tables[7 - k][eight >> (8 * k) & 255];
    }
    for (; n; n--, b++) crc = crc_tables[0][(crc ^ *b) & 255] ^ crc >> 8;
    return ~crc;
}

static unsigned char *put(unsigned char *p, int bytes, uint64_t value)
{
    for (int k = 0; k < bytes; k++) *p++ = (unsigned char)(value >> (8 * k));
    return p;
}

/// In 32 bits, or all ones where 64 stand elsewhere.
static unsigned char *put_narrow(unsigned char *p, bool wide, uint64_t value)
{
    return put(p, 4, wide ? zip_limit : value);
}

static size_t local_bytes(const member *m, bool wide) { return ZIP_LOCAL + strlen(m->name) + (wide ? WIDE_LOCAL : 0); }

/// What local header and central directory have in common, from "version needed" to "extra field length".
static unsigned char *put_facts(unsigned char *p, const member *m, bool wide, int extra)
{
    p = put(p, 2, wide ? 45 : 20); // version 4.5, or 2.0
    p = put(p, 2, 0);              // flags
    p = put(p, 2, 0);              // stored
    p = put(p, 2, 0);              // midnight
    p = put(p, 2, 33);             // of 1 January 1980: equal arrays make equal files
    p = put(p, 4, m->crc);
    p = put_narrow(p, wide, m->size);
    p = put_narrow(p, wide, m->size);
    p = put(p, 2, strlen(m->name));
    return put(p, 2, wide ? (unsigned)extra : 0);
}

/// Both sizes behind what an extra field of `bytes` begins with.
static unsigned char *put_sizes(unsigned char *p, const member *m, int bytes)
{
    p = put(put(p, 2, 1), 2, (unsigned)bytes - 4);
    return put(put(p, 8, m->size), 8, m->size);
}

static void write_local(const member *m, bool wide, FILE *out)
{
    unsigned char local[ZIP_LOCAL], sizes[WIDE_LOCAL];
    put_facts(put(local, 4, 0x04034b50), m, wide, WIDE_LOCAL);
    fwrite(local, 1, ZIP_LOCAL, out);
    fwrite(m->name, 1, strlen(m->name), out);
    put_sizes(sizes, m, WIDE_LOCAL);
    if (wide) fwrite(sizes, 1, WIDE_LOCAL, out);
}

static void write_member(member *m, const analyze_array *a, bool wide, uint64_t offset, FILE *out)
{
    char header[NPY_HEADER_MAX];
    const int n = npy_header(a, header);
    snprintf(m->name, sizeof m->name, "%s.npy", a->name);
    m->offset = offset;
    m->size = (size_t)n + data_bytes(a);
    m->crc = crc_add(crc_add(0, header, (size_t)n), a->data, data_bytes(a));
    write_local(m, wide, out);
    fwrite(header, 1, (size_t)n, out);
    fwrite(a->data, 1, data_bytes(a), out);
}

static uint64_t write_entry(const member *m, bool wide, FILE *out)
{
    unsigned char entry[ZIP_CENTRAL] = {0}, extra[WIDE_CENTRAL];
    unsigned char *p = put(put(entry, 4, 0x02014b50), 2, wide ? 45 : 20);
    put_facts(p, m, wide, WIDE_CENTRAL);
    put_narrow(entry + 42, wide, m->offset);
    fwrite(entry, 1, ZIP_CENTRAL, out);
    fwrite(m->name, 1, strlen(m->name), out);
    put(put_sizes(extra, m, WIDE_CENTRAL), 8, m->offset);
    if (wide) fwrite(extra, 1, WIDE_CENTRAL, out);
    return ZIP_CENTRAL + strlen(m->name) + (wide ? WIDE_CENTRAL : 0);
}

/// The directory's size and place in 64 bits, and where that stands.
static void write_wide_end(int n, uint64_t bytes, uint64_t offset, FILE *out)
{
    unsigned char end[WIDE_END + WIDE_LOCATOR] = {0}, *p = put(put(end, 4, 0x06064b50), 8, WIDE_END - 12);
    p = put(put(p, 2, 45), 2, 45);
    p = put(put(p + 8, 8, (unsigned)n), 8, (unsigned)n); // behind the numbers of disks
    p = put(put(p, 8, bytes), 8, offset);
    p = put(p, 4, 0x07064b50) + 4;
    put(put(p, 8, offset + bytes), 4, 1);
    fwrite(end, 1, sizeof end, out);
}

/// What stands behind the members, which end at `offset`.
static void write_directory(const member *members, int n, bool wide, uint64_t offset, FILE *out)
{
    unsigned char end[ZIP_END] = {0}, *p = put(put(end, 4, 0x06054b50) + 4, 2, (unsigned)n);
    uint64_t bytes = 0;
    for (int k = 0; k < n; k++) bytes += write_entry(&members[k], wide, out);
    if (wide) write_wide_end(n, bytes, offset, out);
    p = put(p, 2, (unsigned)n);
    put_narrow(put(p, 4, bytes), wide, offset);
    fwrite(end, 1, ZIP_END, out);
}

/// Does it take 64 bits?
static bool is_wide(const analyze_result *r)
{
    uint64_t total = 0;
    for (int k = 0; k < r->n_arrays; k++)
        total += data_bytes(&r->arrays[k]) + NPY_HEADER_MAX + 2 * sizeof((member *)0)->name + 128;
    return total > zip_limit;
}

wt_status analyze_write_npz(const analyze_report *report, FILE *out)
{
    const analyze_result *r = report->result;
    const bool wide = is_wide(r);
    member members[ANALYZE_MAX_ARRAYS];
    uint64_t offset = 0;
    for (int k = 0; k < r->n_arrays; k++) {
        write_member(&members[k], &r->arrays[k], wide, offset, out);
        offset += local_bytes(&members[k], wide) + members[k].size;
    }
    write_directory(members, r->n_arrays, wide, offset, out);
    return WT_OK;
}

// ---- in parts

wt_status analyze_numpy_lay(const analyze_report *report, analyze_numpy *file)
{
    const analyze_result *r = report->result;
    char header[NPY_HEADER_MAX];
    uint64_t offset = 0;
    file->zip = report->options->format == ANALYZE_NPZ;
    file->wide = file->wide || is_wide(r);
    wt_status status = file->zip ? WT_OK : check_single(r);
    for (int k = 0; k < r->n_arrays && !status; k++) {
        member *m = &file->members[k];
        const int n = npy_header(&r->arrays[k], header);
        snprintf(m->name, sizeof m->name, "%s.npy", r->arrays[k].name);
        m->offset = offset;
        m->size = (size_t)n + data_bytes(&r->arrays[k]);
        file->data[k] = (int64_t)(offset + (file->zip ? local_bytes(m, file->wide) : 0)) + n;
        offset = (uint64_t)file->data[k] + data_bytes(&r->arrays[k]);
    }
    return status;
}

static wt_status put_at(int fd, const void *bytes, size_t n, int64_t at)
{
    for (ssize_t done; n; bytes = (const char *)bytes + done, n -= (size_t)done, at += done)
        if ((done = pwrite(fd, bytes, n, at)) < 1)
            return wt_fail(WT_ERR_FILE, "output: cannot be written: %s", strerror(errno));
    return WT_OK;
}

wt_status analyze_numpy_put(const analyze_numpy *file, int fd, const analyze_result *whole, const analyze_result *tile,
                            const int *places, const analyze_part *part)
{
    wt_status status = WT_OK;
    for (int k = 0; k < tile->n_arrays; k++) {
        const analyze_array *a = &tile->arrays[k];
        const int64_t item = (int64_t)analyze_item_bytes(a->type), n = analyze_n_columns(a);
        const int64_t n_whole = analyze_n_columns(&whole->arrays[places[k]]);
        const int64_t step = a->layout == ANALYZE_SAMPLES ? part->hop : 1, from = part->from * step;
        const int64_t n_put = part->count < 0 ? n - from : part->count * step;
        for (int64_t row = 0; row < analyze_n_rows(a) && !status; row++)
            status = put_at(fd, (const char *)a->data + (row * n + from) * item, (size_t)(n_put * item),
                            file->data[places[k]] + (row * n_whole + part->first * step) * item);
    }
    return status;
}

wt_status analyze_numpy_put_whole(const analyze_numpy *file, int fd, const analyze_result *whole, int k)
{
    return put_at(fd, whole->arrays[k].data, data_bytes(&whole->arrays[k]), file->data[k]);
}

static wt_status crc_of_data(int fd, int64_t at, int64_t n, uint32_t *crc)
{
    enum { BLOCK = 1 << 20 };
    char *block = malloc(BLOCK);
    wt_status status = block ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "npz: a block");
    for (ssize_t done; n && !status; n -= done, at += done)
        if ((done = pread(fd, block, n < BLOCK ? (size_t)n : BLOCK, at)) < 1)
            status = wt_fail(WT_ERR_FILE, "output: cannot be read back: %s", strerror(errno)), done = 0;
        else
            *crc = crc_add(*crc, block, (size_t)done);
    free(block);
    return status;
}

static wt_status finish_zip(analyze_numpy *file, FILE *out, int n)
{
    const member *last = &file->members[n - 1];
    const uint64_t offset = last->offset + local_bytes(last, file->wide) + last->size;
    for (int k = 0; k < n; k++) {
        fseeko(out, (off_t)file->members[k].offset, SEEK_SET);
        write_local(&file->members[k], file->wide, out);
    }
    fseeko(out, (off_t)offset, SEEK_SET);
    write_directory(file->members, n, file->wide, offset, out);
    return WT_OK;
}

wt_status analyze_numpy_finish(analyze_numpy *file, int fd, const analyze_result *whole)
{
    wt_status status = WT_OK;
    for (int k = 0; k < whole->n_arrays && !status; k++) {
        char header[NPY_HEADER_MAX];
        const analyze_array *a = &whole->arrays[k];
        const int n = npy_header(a, header);
        status = put_at(fd, header, (size_t)n, file->data[k] - n);
        file->members[k].crc = crc_add(0, header, (size_t)n);
        if (!status && file->zip)
            status = crc_of_data(fd, file->data[k], (int64_t)data_bytes(a), &file->members[k].crc);
    }
    if (status || !file->zip) return status;
    const int copy = dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "r+b");
    if (out) finish_zip(file, out, whole->n_arrays);
    const bool bad = !out || ferror(out);
    if (!out && copy >= 0) close(copy);
    if ((out && fclose(out)) || bad) return wt_fail(WT_ERR_FILE, "output: cannot be written: %s", strerror(errno));
    return WT_OK;
}
