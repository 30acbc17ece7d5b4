#include "support/golden.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 1024, MAX_FILES = 2048, SEGMENT = 256, N_FIELDS = 14 };

typedef struct stored {
    char    name[128];
    npy     array;
    double *doubles;
    float  *floats;
} stored;

// Once-filled tables: the manifest, and each array when it is first asked for. Kept until the program ends.
static golden_case cases[MAX_CASES];
static int         n_cases;
static char       *manifest;
static stored      files[MAX_FILES];
static int         n_files;

static const char *path_of(const char *file)
{
    static char path[4096];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(path, sizeof path, "%s/dsp/%s", folder ? folder : "tests/golden", file);
    return path;
}

static stored *load(const char *name)
{
    for (int k = 0; k < n_files; k++)
        if (strcmp(files[k].name, name) == 0) return &files[k];
    if (n_files == MAX_FILES) fail_msg("golden: more than %d files", MAX_FILES);

    stored *file = &files[n_files];
    if (npy_read(path_of(name), &file->array)) fail_msg("golden: %s", wt_last_error());
    file->doubles = npy_doubles(&file->array);
    file->floats = npy_floats(&file->array);
    if (!file->doubles || !file->floats) fail_msg("golden: out of memory");
    snprintf(file->name, sizeof file->name, "%s", name);
    n_files++;
    return file;
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("golden: %s: cannot open (run from the repository root, or set WARPTONE_TEST_GOLDEN)", path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(size + 1, 1);
    if (!text || fread(text, 1, size, file) != size) fail_msg("golden: %s: cannot read", path);
    fclose(file);
    return text;
}

static void parse_case(golden_case *g, char *line)
{
    char *field[N_FIELDS];
    int   n = 0;
    for (char *rest = line, *one; n < N_FIELDS && (one = strsep(&rest, "\t"));) field[n++] = one;
    if (n != N_FIELDS) fail_msg("golden: manifest line '%s' has %d fields, want %d", line, n, N_FIELDS);

    *g = (golden_case){.name = field[0], .op = field[1], .params = field[3], .output = field[4]};
    int k = 0;
    for (char *rest = field[2], *one; k < GOLDEN_MAX_INPUTS && (one = strsep(&rest, ","));)
        if (strcmp(one, "-") != 0) g->inputs[k++] = one;
    size_t first, second;
    g->n_dims = sscanf(field[5], "%zux%zu", &first, &second);
    if (g->n_dims < 1) fail_msg("golden: %s: shape %s", g->name, field[5]);
    g->rows = g->n_dims == 2 ? first : 1;
    g->columns = g->n_dims == 2 ? second : first;
    g->kind = field[6][0];
    if (sscanf(field[7], "%zu,%zu", &g->row_step, &g->column_step) != 2) fail_msg("golden: %s: %s", g->name, field[7]);
    g->sums = strcmp(field[8], "-") == 0 ? NULL : field[8];
    g->peak = strtod(field[9], NULL);
    g->floor = strtod(field[10], NULL);
    g->bound = strtod(field[11], NULL);
    g->goal = strtod(field[12], NULL);
}

static void load_manifest(void)
{
    if (manifest) return;
    manifest = read_text(path_of("manifest.tsv"));
    char *rest = manifest;
    strsep(&rest, "\n"); // the header
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (n_cases == MAX_CASES) fail_msg("golden: more than %d cases", MAX_CASES);
        parse_case(&cases[n_cases], line);
        n_cases++;
    }
}

int golden_count(void)
{
    load_manifest();
    return n_cases;
}

const golden_case *golden_at(int index)
{
    if (index < 0 || index >= golden_count()) fail_msg("golden: case %d, want 0..%d", index, n_cases - 1);
    return &cases[index];
}

const golden_case *golden_find(const char *name)
{
    for (int k = 0; k < golden_count(); k++)
        if (strcmp(cases[k].name, name) == 0) return &cases[k];
    fail_msg("golden: no case %s in the manifest", name);
    return NULL;
}

const golden_case *golden_next(const char *op, const golden_case *before)
{
    for (int k = before ? (int)(before - cases) + 1 : 0; k < golden_count(); k++)
        if (strcmp(cases[k].op, op) == 0) return &cases[k];
    if (!before) fail_msg("golden: no case of op %s in the manifest", op);
    return NULL;
}

static stored *input_of(const golden_case *g, int k)
{
    if (k < 0 || k >= GOLDEN_MAX_INPUTS || !g->inputs[k]) fail_msg("golden: %s has no input %d", g->name, k);
    return load(g->inputs[k]);
}

const float *golden_input(const golden_case *g, int k, size_t *count)
{
    stored *file = input_of(g, k);
    *count = file->array.count;
    return file->floats;
}

void golden_input_shape(const golden_case *g, int k, size_t shape[2])
{
    const npy *a = &input_of(g, k)->array;
    shape[0] = a->n_dims == 2 ? a->shape[0] : 1;
    shape[1] = a->shape[a->n_dims - 1];
}

/// Value of a key in "key=value;key=value", its length in `length`; NULL when the key is absent or "none".
static const char *value_of(const golden_case *g, const char *key, size_t *length)
{
    size_t n_key = strlen(key);
    for (const char *at = g->params; at; at = strchr(at, ';')) {
        at += *at == ';';
        if (strncmp(at, key, n_key) == 0 && at[n_key] == '=') {
            at += n_key + 1;
            *length = strcspn(at, ";");
            return *length == 4 && strncmp(at, "none", 4) == 0 ? NULL : at;
        }
    }
    return NULL;
}

bool golden_has(const golden_case *g, const char *key)
{
    size_t length;
    return value_of(g, key, &length) != NULL;
}

double golden_double(const golden_case *g, const char *key, double otherwise)
{
    size_t      length;
    const char *at = value_of(g, key, &length);
    if (!at) return otherwise;
    char  *end;
    double value = strtod(at, &end);
    if (end != at + length) fail_msg("golden: %s: %s=%.*s is not a number", g->name, key, (int)length, at);
    return value;
}

int golden_int(const golden_case *g, const char *key, int otherwise)
{
    double value = golden_double(g, key, otherwise);
    if (value != floor(value) || fabs(value) > 1e9)
        fail_msg("golden: %s: %s=%g is not an integer", g->name, key, value);
    return (int)value;
}

const char *golden_text(const golden_case *g, const char *key, const char *otherwise)
{
    static char text[256];
    size_t      length;
    const char *at = value_of(g, key, &length);
    if (!at) return otherwise;
    snprintf(text, sizeof text, "%.*s", (int)length, at);
    return text;
}

int golden_list(const golden_case *g, const char *key, double *values, int room)
{
    size_t      length;
    const char *at = value_of(g, key, &length);
    int         n = 0;
    for (const char *stop = at ? at + length : NULL; at && at < stop;) {
        char *end;
        if (n == room) fail_msg("golden: %s: %s has more than %d numbers", g->name, key, room);
        values[n++] = strtod(at, &end);
        if (end == at) fail_msg("golden: %s: %s is not a list of numbers", g->name, key);
        at = end + (*end == ',');
    }
    return n;
}

const double *golden_values(const golden_case *g)
{
    return load(g->output)->doubles;
}

size_t golden_stored_count(const golden_case *g)
{
    return load(g->output)->array.count;
}

static double distance(const double *a, const double *b, int parts)
{
    double sum = 0;
    for (int p = 0; p < parts; p++) {
        if (isnan(a[p]) != isnan(b[p])) return HUGE_VAL;
        if (isnan(a[p]) || a[p] == b[p]) continue;
        sum = hypot(sum, a[p] - b[p]);
    }
    return isnan(sum) ? HUGE_VAL : sum;
}

static double error_of_stored(const golden_case *g, const double *got)
{
    const double *want = golden_values(g);
    int           parts = g->kind == 'c' ? 2 : 1;
    double        worst = 0;
    for (size_t r = 0; r < g->rows; r += g->row_step)
        for (size_t c = 0; c < g->columns; c += g->column_step, want += parts)
            worst = fmax(worst, distance(&got[(r * g->columns + c) * (size_t)parts], want, parts));
    return worst;
}

/// Error of the cosine-weighted sums; see golden_set.py, sums_of().
static double error_of_sums(const golden_case *g, const double *got)
{
    const stored *sums = load(g->sums);
    size_t        parts = g->kind == 'c' ? 2 : 1;
    bool          flat = g->n_dims == 1;
    size_t        rows = flat ? SEGMENT : g->rows;
    double        worst = 0;
    for (size_t c = 0; c < sums->array.count; c++) {
        double sum[2] = {0, 0}, weight = 0;
        for (size_t r = 0; r < rows; r++) {
            size_t at = flat ? c * SEGMENT + r : r * g->columns + c;
            if (at >= g->rows * g->columns) break;
            weight += fabs(cos((double)r));
            for (size_t p = 0; p < parts; p++)
                if (isfinite(got[at * parts + p])) sum[p] += cos((double)r) * got[at * parts + p];
        }
        worst = fmax(worst, distance(sum, &sums->doubles[c * parts], (int)parts) / weight);
    }
    return worst;
}

double golden_error_double(const golden_case *g, const double *got, size_t rows, size_t columns)
{
    if (rows != g->rows || columns != g->columns) return HUGE_VAL;
    double worst = error_of_stored(g, got);
    if (g->sums) worst = fmax(worst, error_of_sums(g, got));
    return worst / g->peak;
}

static double *widen(const golden_case *g, const float *got, const int *numbers, size_t count)
{
    count *= g->kind == 'c' ? 2 : 1;
    double *wide = malloc(sizeof *wide * (count ? count : 1));
    if (!wide) fail_msg("golden: out of memory");
    for (size_t n = 0; n < count; n++) wide[n] = got ? (double)got[n] : numbers[n];
    return wide;
}

double golden_error(const golden_case *g, const float *got, size_t rows, size_t columns)
{
    double *wide = widen(g, got, NULL, rows * columns);
    double  error = golden_error_double(g, wide, rows, columns);
    free(wide);
    return error;
}

static void judge(const golden_case *g, double error, size_t rows, size_t columns, double bound)
{
    if (rows != g->rows || columns != g->columns)
        fail_msg("%s: result is [%zu][%zu], want [%zu][%zu]", g->name, rows, columns, g->rows, g->columns);
    if (!(error <= bound))
        fail_msg("%s: error %.3g of the peak, want at most %.3g (librosa in float32: %.2g)", g->name, error, bound,
                 g->floor);
}

void golden_check(const golden_case *g, const float *got, size_t rows, size_t columns)
{
    judge(g, golden_error(g, got, rows, columns), rows, columns, g->bound);
}

void golden_check_double(const golden_case *g, const double *got, size_t rows, size_t columns)
{
    golden_check_within(g, got, rows, columns, g->bound);
}

void golden_check_within(const golden_case *g, const double *got, size_t rows, size_t columns, double bound)
{
    judge(g, golden_error_double(g, got, rows, columns), rows, columns, bound);
}

void golden_check_int(const golden_case *g, const int *got, size_t rows, size_t columns)
{
    double *wide = widen(g, NULL, got, rows * columns);
    double  error = golden_error_double(g, wide, rows, columns);
    free(wide);
    // 0 but for the rounding of the weighted sums: an integer that differs by 1 moves its sum by far more than this.
    judge(g, error, rows, columns, 1e-9);
}
