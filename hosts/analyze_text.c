#include "analyze_write.h"

#include <math.h>

static double frame_s(const analyze_report *report, double frame)
{
    return frame * analyze_hop(report->options) / report->rate_hz;
}

/// Where a column stands, as the table's head names it.
static double place_of(const analyze_report *report, const analyze_array *a, int64_t column)
{
    if (a->layout == ANALYZE_SAMPLES || a->layout == ANALYZE_LAGS) return (double)column / report->rate_hz;
    if (a->layout == ANALYZE_TENTHS) return (double)(column + 1) / 10;
    if (a->layout == ANALYZE_BINS) return (double)column * report->rate_hz / (double)report->n;
    return frame_s(report, (double)column);
}

// ---- CSV (RFC 4180): frames are rows

static bool is_list(const analyze_array *a) { return a->layout == ANALYZE_EVENTS || a->layout == ANALYZE_SPANS; }

wt_status analyze_csv_check(const analyze_result *r)
{
    for (int k = 0; k < r->n_arrays; k++) {
        const analyze_array *a = &r->arrays[0], *b = &r->arrays[k];
        if (a->layout != b->layout || (is_list(b) && k))
            return wt_fail(WT_ERR_BAD_ARG, "csv holds one table, %s and %s make two: want json or npz, or one a run",
                           a->name, b->name);
        if (analyze_n_columns(a) != analyze_n_columns(b) && b->layout != ANALYZE_VALUE)
            return wt_fail(WT_ERR_BAD_ARG, "csv holds one table, %s has %lld steps and %s %lld: want json or npz",
                           a->name, (long long)analyze_n_columns(a), b->name, (long long)analyze_n_columns(b));
    }
    return WT_OK;
}

static void write_head(const analyze_array *a, FILE *out)
{
    const int64_t n = analyze_n_rows(a);
    for (int64_t row = 0; row < n; row++) {
        char number[24] = "";
        if (n > 1 || a->n_dims > 1) snprintf(number, sizeof number, "_%lld", (long long)row);
        if (a->type == ANALYZE_C64) fprintf(out, ",%s%s_re,%s%s_im", a->name, number, a->name, number);
        else fprintf(out, ",%s%s", a->name, number);
    }
}

/// An empty field for what is no number.
static void write_cell(const analyze_array *a, int64_t k, FILE *out)
{
    const float *f = a->data;
    const double value = analyze_number(a, k);
    if (a->type == ANALYZE_C64) fprintf(out, ",%.9g,%.9g", (double)f[2 * k], (double)f[2 * k + 1]);
    else if (isfinite(value)) fprintf(out, ",%.*g", a->type == ANALYZE_F32 ? 9 : 17, value);
    else fputc(',', out);
}

wt_status analyze_csv_head(const analyze_report *report, FILE *out)
{
    const analyze_result *r = report->result;
    wt_status status = analyze_csv_check(r);
    if (status) return status;
    fputs(r->arrays[0].layout == ANALYZE_BINS ? "hz" : r->arrays[0].layout == ANALYZE_LAGS ? "lag_s" : "time_s", out);
    for (int k = 0; k < r->n_arrays; k++) write_head(&r->arrays[k], out);
    fputs("\r\n", out);
    return WT_OK;
}

void analyze_csv_rows(const analyze_report *report, const analyze_result *tile, int64_t first, int64_t from,
                      int64_t count, FILE *out)
{
    const int64_t n = analyze_n_columns(&tile->arrays[0]);
    for (int64_t t = 0; t < count; t++) {
        fprintf(out, "%.9g", place_of(report, &tile->arrays[0], first + t));
        for (int k = 0; k < tile->n_arrays; k++)
            for (int64_t row = 0; row < analyze_n_rows(&tile->arrays[k]); row++)
                write_cell(&tile->arrays[k], row * n + from + t, out);
        fputs("\r\n", out);
    }
}

static void write_events(const analyze_report *report, const analyze_array *a, FILE *out)
{
    fputs("time_s,frame\r\n", out);
    for (int64_t k = 0; k < analyze_count(a); k++)
        fprintf(out, "%.9g,%d\r\n", frame_s(report, analyze_number(a, k)), (int)analyze_number(a, k));
}

static void write_spans(const analyze_report *report, const analyze_array *a, FILE *out)
{
    const int64_t *spans = a->data;
    fputs("begin_s,end_s,begin,end\r\n", out);
    for (int64_t k = 0; k < a->shape[0]; k++, spans += 2)
        fprintf(out, "%.9g,%.9g,%lld,%lld\r\n", (double)spans[0] / report->rate_hz, (double)spans[1] / report->rate_hz,
                (long long)spans[0], (long long)spans[1]);
}

static void write_values(const analyze_result *r, FILE *out)
{
    fputs("name,unit,value\r\n", out);
    for (int k = 0; k < r->n_arrays; k++)
        for (int64_t c = 0; c < analyze_count(&r->arrays[k]); c++) {
            fprintf(out, "%s,%s", r->arrays[k].name, r->arrays[k].unit);
            write_cell(&r->arrays[k], c, out);
            fputs("\r\n", out);
        }
}

/// The tempo of beats is left to the other formats: a table of beats is what is asked for.
wt_status analyze_write_csv(const analyze_report *report, FILE *out)
{
    analyze_result r = *report->result;
    if (r.n_arrays == 2 && r.arrays[0].layout == ANALYZE_EVENTS && r.arrays[1].layout == ANALYZE_VALUE) r.n_arrays = 1;
    const analyze_report short_report = {
        .options = report->options, .result = &r, .n = report->n, .rate_hz = report->rate_hz};
    wt_status status = analyze_csv_check(&r);
    if (status) return status;
    if (r.arrays[0].layout == ANALYZE_VALUE) write_values(&r, out);
    else if (r.arrays[0].layout == ANALYZE_EVENTS) write_events(report, &r.arrays[0], out);
    else if (r.arrays[0].layout == ANALYZE_SPANS) write_spans(report, &r.arrays[0], out);
    else if (!(status = analyze_csv_head(&short_report, out)))
        analyze_csv_rows(report, &r, 0, 0, analyze_n_columns(&r.arrays[0]), out);
    return status;
}

// ---- JSON (RFC 8259): null for what is no number; complex numbers as [re, im]

/// Bytes that are neither printable ASCII nor UTF-8's become '?', quotes and backslashes are escaped.
static void write_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\') fprintf(out, "\\%c", *p);
        else fputc(*p < 32 || *p > 126 ? '?' : *p, out);
    fputc('"', out);
}

static void write_number(const analyze_array *a, int64_t k, FILE *out)
{
    const float *f = a->data;
    const double value = analyze_number(a, k);
    if (!isfinite(value)) fputs("null", out);
    else if (a->type == ANALYZE_C64) fprintf(out, "[%.9g,%.9g]", (double)f[2 * k], (double)f[2 * k + 1]);
    else if (a->type == ANALYZE_BOOL) fputs(value > 0 ? "true" : "false", out);
    else fprintf(out, "%.*g", a->type == ANALYZE_F32 ? 9 : 17, value);
}

/// Dimension d and what lies in it, from element `first` on.
static void write_nested(const analyze_array *a, int d, int64_t first, FILE *out)
{
    int64_t step = 1;
    if (d >= a->n_dims || d >= ANALYZE_MAX_DIMS) {
        write_number(a, first, out);
        return;
    }
    for (int k = d + 1; k < a->n_dims && k < ANALYZE_MAX_DIMS; k++) step *= a->shape[k];
    fputc('[', out);
    for (int64_t k = 0; k < a->shape[d]; k++) {
        if (k) fputc(',', out);
        write_nested(a, d + 1, first + k * step, out);
    }
    fputc(']', out);
}

static void write_row_hz(const analyze_report *report, const analyze_array *a, FILE *out)
{
    if (!a->rows || isnan(analyze_row_hz(report->options, report->rate_hz, a, 0))) return;
    fputs(", \"row_hz\": [", out);
    for (int64_t k = 0; k < a->shape[a->n_dims - 2]; k++)
        fprintf(out, "%s%.9g", k ? "," : "", analyze_row_hz(report->options, report->rate_hz, a, k));
    fputc(']', out);
}

static void write_array(const analyze_report *report, const analyze_array *a, FILE *out)
{
    fprintf(out, "    \"%s\": {\"unit\": \"%s\", \"shape\": [", a->name, a->unit);
    for (int d = 0; d < a->n_dims; d++) fprintf(out, "%s%lld", d ? "," : "", (long long)a->shape[d]);
    fputc(']', out);
    write_row_hz(report, a, out);
    if (a->layout == ANALYZE_EVENTS) {
        fputs(", \"time_s\": [", out);
        for (int64_t k = 0; k < analyze_count(a); k++)
            fprintf(out, "%s%.9g", k ? "," : "", frame_s(report, analyze_number(a, k)));
        fputc(']', out);
    }
    fputs(", \"values\": ", out);
    write_nested(a, 0, 0, out);
    fputc('}', out);
}

wt_status analyze_write_json(const analyze_report *report, FILE *out)
{
    const analyze_result *r = report->result;
    fputs("{\n  \"input\": ", out);
    write_string(report->input, out);
    fprintf(out, ",\n  \"rate_hz\": %d,\n  \"channels\": %d,\n  \"n_samples\": %lld,\n  \"duration_s\": %.9g,\n",
            report->rate_hz, report->channels, (long long)report->n, (double)report->n / report->rate_hz);
    fprintf(out, "  \"n_fft\": %d,\n  \"hop\": %d,\n  \"features\": {\n", analyze_n_fft(report->options),
            analyze_hop(report->options));
    for (int k = 0; k < r->n_arrays; k++) {
        write_array(report, &r->arrays[k], out);
        fputs(k + 1 < r->n_arrays ? ",\n" : "\n", out);
    }
    fputs("  }\n}\n", out);
    return WT_OK;
}
