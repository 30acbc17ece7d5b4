// Signal ops with settings at random, of 1 to 3 signals, some with a NaN: a plan is refused with a sentence, or a
// signal gives the same bits alone, in a batch, on one thread and on two, nothing is written behind the result, and
// what is finite gives no NaN. The long form of it is a run under AddressSanitizer and UndefinedBehaviorSanitizer
// (scons debug=1). It is no libFuzzer program as those of tests/fuzz are: clang does not know GCC's vector shuffles.
//   WARPTONE_DRAWS=1000 ...          cases of each op, default 10
//   WARPTONE_DRAWS_SEED=7 ...        the first case's number, default 0
//   WARPTONE_DRAWS_OP=stft ...       ops of this name alone
#include "support/draws.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 1024, GUARD_BYTE = 0xa5 };

static wt_device *devices[2]; // of one thread and of two
static int n_complaints, n_made, n_refused;
static char what[200];

#define complain(...) (print_error("%s: ", what), print_error(__VA_ARGS__), n_complaints++)

typedef struct drawn_case {
    const signal_op *row;
    draws first; ///< as the settings are drawn from it
    int n;
} drawn_case;

static wt_status make(const drawn_case *c, int device, int n_signals, draws *d, made_op *op)
{
    *d = c->first;
    *op = (made_op){.n = c->n, .n_signals = n_signals, .draws = d};
    wt_status status = c->row->create(devices[device], op);
    for (int k = 0; k < op->n_parts; k++) {
        op->at[k] = op->out_bytes;
        op->out_bytes += (signal_op_bytes(op, k) * (size_t)n_signals + 7) / 8 * 8;
    }
    return status;
}

/// Into `out` [out_bytes]; what lies behind it in a larger buffer stays as it is.
static void run(const drawn_case *c, const made_op *op, int device, const float *in, char *out)
{
    const size_t in_bytes = sizeof *in * op->in_floats * (size_t)op->n_signals;
    char *all = malloc(op->out_bytes + GUARD);
    wt_stream *stream;
    wt_buffer *from, *to;
    assert_ok(wt_stream_create(devices[device], NULL, &stream));
    assert_ok(wt_buffer_create(devices[device], WT_MEMORY_DEVICE, in_bytes, &from));
    assert_ok(wt_buffer_create(devices[device], WT_MEMORY_DEVICE, op->out_bytes + GUARD, &to));
    assert_ok(wt_stream_upload(stream, from, 0, in, in_bytes));
    assert_ok(wt_stream_fill(stream, to, 0, 0, op->out_bytes));
    assert_ok(wt_stream_fill(stream, to, op->out_bytes, GUARD_BYTE, GUARD));
    if (c->row->enqueue(op, stream, from, to)) complain("made, and then refused: %s\n", wt_last_error());
    assert_ok(wt_stream_download(stream, all, to, 0, op->out_bytes + GUARD));
    assert_ok(wt_stream_synchronize(stream));
    for (size_t i = 0; i < GUARD; i++)
        if ((unsigned char)all[op->out_bytes + i] != GUARD_BYTE) {
            complain("byte %zu behind %zu bytes of results was written\n", i, op->out_bytes);
            break;
        }
    memcpy(out, all, op->out_bytes);
    free(all);
    wt_stream_destroy(stream);
    wt_buffer_destroy(from);
    wt_buffer_destroy(to);
}

static bool has_nan(const made_op *op, const char *own)
{
    for (int k = 0; k < op->n_parts; own += (signal_op_bytes(op, k) + 7) / 8 * 8, k++)
        for (size_t i = 0; i < op->parts[k].count; i++) {
            if (op->parts[k].type == OP_F32 && isnan(((const float *)own)[i])) return true;
            if (op->parts[k].type == OP_F64 && k == 0 && isnan(((const double *)own)[i])) return true;
        }
    return false;
}

/// Signal s of `n_signals` on a device gives what the first run gave.
static void check_again(const drawn_case *c, int device, int n_signals, int s, const float *x, const char *want)
{
    draws d;
    made_op op;
    if (make(c, device, n_signals, &d, &op)) {
        complain("%d signals on %d threads: %s\n", n_signals, device + 1, wt_last_error());
    } else {
        const size_t bytes = signal_op_own_bytes(&op);
        char *out = malloc(op.out_bytes + 1), *own = malloc(bytes + 1);
        run(c, &op, device, n_signals == 1 ? x + (size_t)s * op.in_floats : x, out);
        signal_op_pick(c->row, &op, out, n_signals == 1 ? 0 : s, own);
        if (memcmp(own, want, bytes))
            complain("signal %d of %d on %d threads has other bits\n", s, n_signals, device + 1);
        free(out), free(own);
    }
    c->row->destroy(op.plan);
}

static void check_made(const drawn_case *c, const made_op *op, bool poisoned)
{
    const int n = op->n_signals, last = n - 1;
    float *x = signal_op_input(c->row, op, n);
    char *out = malloc(op->out_bytes + 1), *own = malloc(signal_op_own_bytes(op) + 1);
    if (poisoned) x[op->in_floats * (size_t)n * 2 / 3] = NAN;
    run(c, op, 0, x, out);
    signal_op_pick(c->row, op, out, last, own);
    if (!poisoned && !c->first.wild && !c->row->nan_in_silence && has_nan(op, own)) complain("a NaN\n");
    check_again(c, 0, 1, last, x, own);
    check_again(c, 1, n, last, x, own);
    free(x), free(out), free(own);
}

static void check_case(const signal_op *row, int number)
{
    draws d = {.seed = (uint64_t)number * 1000003 + 17}, copy;
    for (int k = 0; k < 4; k++) draw_below(&d, 2);
    d.wild = draw_below(&d, 4) == 0;
    const bool poisoned = draw_below(&d, 8) == 0;
    const int n_signals = 1 + draw_below(&d, 3);
    drawn_case c = {.row = row, .n = draw_size(&d, 1, row->n)};
    if (d.wild && draw_below(&d, 10) == 0) c.n = 0;
    c.first = d;
    made_op op;
    snprintf(what, sizeof what, "%s, case %d, n %d, %d signals%s", row->name, number, c.n, n_signals,
             poisoned ? ", a NaN" : "");
    wt_status status = make(&c, 0, n_signals, &copy, &op);
    if (status) {
        n_refused++;
        if (op.plan) complain("refused and made\n");
        if (!strstr(wt_last_error(), ": ")) complain("no sentence: \"%s\"\n", wt_last_error());
        if (status != WT_ERR_BAD_ARG && status != WT_ERR_LENGTH && status != WT_ERR_NO_MEMORY)
            complain("status %d: %s\n", (int)status, wt_last_error());
    } else if (op.in_floats && op.out_bytes) {
        n_made++;
        check_made(&c, &op, poisoned);
    }
    row->destroy(op.plan);
}

static void drawn_settings_are_refused_or_work(void **state)
{
    (void)state;
    const char *count = getenv("WARPTONE_DRAWS"), *seed = getenv("WARPTONE_DRAWS_SEED"),
               *name = getenv("WARPTONE_DRAWS_OP");
    const int n = count ? atoi(count) : 10, first = seed ? atoi(seed) : 0;
    for (int k = 0; k < 2; k++)
        assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = k + 1}, &devices[k]));
    for (int i = first; i < first + n; i++)
        for (int k = 0; k < drawn_ops_count(); k++)
            if (!name || strstr(drawn_op_at(k)->name, name)) check_case(drawn_op_at(k), i);
    for (int k = 0; k < 2; k++) wt_device_close(devices[k]);
    print_message("%d plans made, %d refused\n", n_made, n_refused);
    if (n_complaints) fail_msg("%d complaints", n_complaints);
    assert_true(name || n_made > n_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_settings_are_refused_or_work)};
    return cmocka_run_group_tests_name("drawn ops", tests, NULL, NULL);
}
