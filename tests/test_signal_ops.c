// Every signal op on both backends: a signal gives the same bits in every batch and every time, silence and a NaN give
// what docs/dsp-ops.md says, and signals too short, sizes below 0 get a result or a sentence.
#include "support/device_check.h"
#include "support/signal_ops.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_complaints;

#define complain(...) (print_error(__VA_ARGS__), n_complaints++)

static void *bytes_of(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    assert_non_null(p);
    return p;
}

static made_op make(const signal_op *row, wt_device *device, int n_signals)
{
    made_op op;
    if (signal_op_make(row, device, row->n, n_signals, &op)) fail_msg("%s: %s", row->name, wt_last_error());
    return op;
}

static bool is_nan(op_type type, const void *part, size_t i)
{
    if (type == OP_F32) return isnan(((const float *)part)[i]);
    return type == OP_F64 && isnan(((const double *)part)[i]);
}

/// NaNs of one signal's result.
static size_t count_nans(const made_op *op, const char *own)
{
    size_t n = 0;
    for (int k = 0; k < op->n_parts; own += (signal_op_bytes(op, k) + 7) / 8 * 8, k++)
        for (size_t i = 0; i < op->parts[k].count; i++) n += is_nan(op->parts[k].type, own, i);
    return n;
}

static void compare(const char *name, const char *what, const made_op *op, const char *want, const char *got)
{
    for (int k = 0; k < op->n_parts; k++) {
        const size_t bytes = signal_op_bytes(op, k), item = bytes / (op->parts[k].count ? op->parts[k].count : 1);
        for (size_t i = 0; i < op->parts[k].count; i++)
            if (memcmp(want + i * item, got + i * item, item)) {
                if (item == 4) {
                    complain("%s, %s: part %d, value %zu of %zu: %.9g, want %.9g\n", name, what, k, i,
                             op->parts[k].count, (double)((const float *)got)[i], (double)((const float *)want)[i]);
                } else {
                    complain("%s, %s: part %d, value %zu of %zu: %.17g, want %.17g\n", name, what, k, i,
                             op->parts[k].count, ((const double *)got)[i], ((const double *)want)[i]);
                }
                return;
            }
        want += (bytes + 7) / 8 * 8, got += (bytes + 7) / 8 * 8;
    }
}

// ---- batches

static void check_batches(const signal_op *row, wt_device *device)
{
    enum { MOST = 5 };
    static const int sizes[] = {1, 2, MOST};
    made_op one = make(row, device, 1);
    float *x = signal_op_input(row, &one, MOST);
    const size_t own_bytes = signal_op_own_bytes(&one);
    char *alone[MOST], *got = bytes_of(own_bytes);
    for (int s = 0; s < MOST; s++) {
        char *out = bytes_of(one.out_bytes);
        alone[s] = bytes_of(own_bytes);
        signal_op_run(row, &one, device, x + (size_t)s * one.in_floats, out);
        signal_op_pick(row, &one, out, 0, alone[s]);
        free(out);
    }
    row->destroy(one.plan);
    for (int k = 0; k < 3; k++) {
        made_op many = make(row, device, sizes[k]);
        char *out = bytes_of(many.out_bytes), what[100];
        for (int turn = 0; turn < 2; turn++) {
            signal_op_run(row, &many, device, x, out);
            for (int s = 0; s < sizes[k]; s++) {
                snprintf(what, sizeof what, "signal %d of %d, run %d", s, sizes[k], turn);
                signal_op_pick(row, &many, out, s, got);
                compare(row->name, what, &many, alone[s], got);
            }
        }
        row->destroy(many.plan);
        free(out);
    }
    for (int s = 0; s < MOST; s++) free(alone[s]);
    free(got), free(x);
}

// ---- silence

static void check_silence(const signal_op *row, wt_device *device)
{
    made_op op = make(row, device, 2);
    float *x = bytes_of(sizeof *x * 2 * op.in_floats);
    char *out = bytes_of(op.out_bytes), *own = bytes_of(signal_op_own_bytes(&op));
    signal_op_run(row, &op, device, x, out);
    for (int s = 0; s < 2; s++) {
        signal_op_pick(row, &op, out, s, own);
        const size_t n = count_nans(&op, own);
        if (n && !row->nan_in_silence) complain("%s: %zu NaNs of silence\n", row->name, n);
    }
    row->destroy(op.plan);
    free(x), free(out), free(own);
}

// ---- a NaN

static size_t values_of(const signal_op *row) { return row->frame_rows ? (size_t)row->frame_rows : 1; }
static size_t bands_of(const signal_op *row) { return row->band_rows ? (size_t)row->band_rows : 1; }
static size_t frames_of(const signal_op *row, const made_op *op)
{
    return op->parts[0].count / bands_of(row) / values_of(row);
}

/// Part 0 as [bands][frames][values]: frames `begin` .. `end` the same as without the NaN.
static void compare_frames(const signal_op *row, const made_op *op, const char *want, const char *got, size_t begin,
                           size_t end)
{
    const size_t bands = bands_of(row), values = values_of(row), frames = frames_of(row, op);
    const size_t item = signal_op_bytes(op, 0) / op->parts[0].count;
    for (size_t b = 0; b < bands; b++)
        for (size_t t = begin; t < end && t < frames; t++)
            for (size_t v = 0; v < values; v++) {
                const size_t i = ((b * frames + t) * values + v) * item;
                if (!memcmp(want + i, got + i, item)) continue;
                complain("%s, a NaN: band %zu of %zu, frame %zu of %zu, value %zu is not what it was\n", row->name, b,
                         bands, t, frames, v);
                return;
            }
}

static void check_integers(const signal_op *row, const made_op *op, const char *own)
{
    for (int k = 0; k < op->n_parts; own += (signal_op_bytes(op, k) + 7) / 8 * 8, k++)
        for (size_t i = 0; i < op->parts[k].count; i++) {
            int64_t value = 0;
            if (op->parts[k].type == OP_I32) value = ((const int32_t *)own)[i];
            if (op->parts[k].type == OP_I64) value = ((const int64_t *)own)[i];
            if (value < 0 || value > op->n)
                complain("%s, a NaN: %lld, want 0..%d\n", row->name, (long long)value, op->n);
        }
}

static void check_poisoned(const signal_op *row, const made_op *op, const char *clean, const char *own, bool whole)
{
    const size_t frames = frames_of(row, op), n_clean = count_nans(op, clean), n_nans = count_nans(op, own);
    check_integers(row, op, own);
    if (row->nan == OP_NAN_NONE && n_nans > n_clean && !row->nan_in_silence)
        complain("%s: %zu NaNs of one\n", row->name, n_nans);
    if (row->nan == OP_NAN_LOCAL || row->nan == OP_NAN_ONWARD) {
        if (whole && n_nans <= n_clean) complain("%s: a NaN leaves no trace\n", row->name);
        compare_frames(row, op, clean, own, 0, frames / 2);
    }
    if (row->nan == OP_NAN_LOCAL) compare_frames(row, op, clean, own, frames - frames / 16, frames);
}

/// Three quarters of a signal's way one value is no number, or the whole frame that is given.
static void poison(const signal_op *row, const made_op *op, bool whole, float *x)
{
    const size_t n = (size_t)op->n, width = op->in_floats / n, at = n * 3 / 4;
    for (size_t k = 0; k < width; k++)
        if (whole || k == width / 2) x[row->bands_in ? k * n + at : at * width + k] = NAN;
}

/// In the middle one of three.
static void check_nan(const signal_op *row, wt_device *device)
{
    made_op op = make(row, device, 3);
    float *x = signal_op_input(row, &op, 3);
    const size_t own_bytes = signal_op_own_bytes(&op);
    char *out = bytes_of(op.out_bytes), *clean[3], *own = bytes_of(own_bytes);
    signal_op_run(row, &op, device, x, out);
    for (int s = 0; s < 3; s++) signal_op_pick(row, &op, out, s, clean[s] = bytes_of(own_bytes));
    for (int whole = 0; whole < 2; whole++) {
        poison(row, &op, whole, x + op.in_floats);
        signal_op_run(row, &op, device, x, out);
        for (int s = 0; s < 3; s++) {
            signal_op_pick(row, &op, out, s, own);
            if (s == 1)
                check_poisoned(row, &op, clean[s], own, whole);
            else
                compare(row->name, "beside a signal with a NaN", &op, clean[s], own);
        }
    }
    row->destroy(op.plan);
    for (int s = 0; s < 3; s++) free(clean[s]);
    free(x), free(out), free(own);
}

// ---- sizes

/// What cannot be said when a plan is made is refused when it is run.
static wt_status run_bad(const signal_op *row, const made_op *op, wt_device *device)
{
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 4096, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 4096, &out));
    wt_status status = row->enqueue(op, stream, in, out);
    wt_stream_destroy(stream);
    wt_buffer_destroy(in);
    wt_buffer_destroy(out);
    return status;
}

static void run_small(const signal_op *row, const made_op *op, wt_device *device)
{
    float *x = signal_op_input(row, op, op->n_signals);
    char *out = bytes_of(op->out_bytes), *own = bytes_of(signal_op_own_bytes(op));
    signal_op_run(row, op, device, x, out);
    for (int s = 0; s < op->n_signals; s++) {
        signal_op_pick(row, op, out, s, own);
        if (count_nans(op, own) && !row->nan_in_silence) complain("%s, n %d: NaNs\n", row->name, op->n);
    }
    free(x), free(out), free(own);
}

static void check_size(const signal_op *row, wt_device *device, int n, int n_signals)
{
    made_op op;
    wt_status status = signal_op_make(row, device, n, n_signals, &op);
    const bool bad = n < 0 || n_signals < 0;
    if (status && op.plan) complain("%s, n %d: refused and made\n", row->name, n);
    if (!status && bad) status = run_bad(row, &op, device);
    if (!status && bad) complain("%s: %d signals of %d are taken\n", row->name, n_signals, n);
    if (status && status != WT_ERR_BAD_ARG && status != WT_ERR_LENGTH)
        complain("%s, n %d: %s\n", row->name, n, wt_last_error());
    if (status && !strstr(wt_last_error(), ": ")) complain("%s, n %d: no sentence\n", row->name, n);
    if (!status && !bad && op.in_floats && op.out_bytes) run_small(row, &op, device);
    row->destroy(op.plan);
}

static void check_sizes(const signal_op *row, wt_device *device)
{
    static const int sizes[] = {0, 1, 2, 3, 17};
    for (int k = 0; k < 5; k++) check_size(row, device, sizes[k], 2);
    check_size(row, device, -1, 1);
    check_size(row, device, row->n, -1);
}

static void for_each(void **state, void (*check)(const signal_op *row, wt_device *device))
{
    wt_device *device = device_of(state);
    n_complaints = 0;
    for (int k = 0; k < signal_ops_count(); k++) check(signal_op_at(k), device);
    if (n_complaints) fail_msg("%d complaints", n_complaints);
}

static void a_signal_gives_the_same_bits_in_every_batch_and_run(void **state) { for_each(state, check_batches); }
static void silence_gives_no_nan(void **state) { for_each(state, check_silence); }
static void a_nan_stays_where_it_may(void **state) { for_each(state, check_nan); }
static void short_signals_and_bad_sizes_get_a_result_or_a_sentence(void **state) { for_each(state, check_sizes); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_gives_the_same_bits_in_every_batch_and_run),
        cmocka_unit_test(silence_gives_no_nan),
        cmocka_unit_test(a_nan_stays_where_it_may),
        cmocka_unit_test(short_signals_and_bad_sizes_get_a_result_or_a_sentence),
    };
    int failed = cmocka_run_group_tests_name("signal ops on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("signal ops on a GPU", tests, open_cuda, close_device);
}
