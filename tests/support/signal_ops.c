#include "signal_op_rows.h"
#include "spectral_check.h"

#include <math.h>

static const signal_op_table *const tables[] = {&signal_ops_spectra, &signal_ops_notes, &signal_ops_samples};

int signal_ops_count(void)
{
    int n = 0;
    for (int k = 0; k < 3; k++) n += tables[k]->n_rows;
    return n;
}

const signal_op *signal_op_at(int k)
{
    int table = 0;
    while (k >= tables[table]->n_rows) k -= tables[table++]->n_rows;
    return &tables[table]->rows[k];
}

void signal_op_gives(made_op *op, op_type type, int64_t count)
{
    op->parts[op->n_parts].type = type;
    op->parts[op->n_parts++].count = count > 0 ? (size_t)count : 0;
}

void signal_op_pick(const signal_op *row, const made_op *op, const void *result, int signal, void *own)
{
    char *to = own;
    void *parts[OP_MAX_PARTS];
    memset(own, 0, signal_op_own_bytes(op));
    if (row->pick) {
        row->pick(op, result, signal, own);
        return;
    }
    for (int k = 0; k < op->n_parts; k++) {
        const size_t bytes = signal_op_bytes(op, k);
        memcpy(parts[k] = to, (const char *)result + op->at[k] + (size_t)signal * bytes, bytes);
        to += (bytes + 7) / 8 * 8;
    }
    if (row->clear) row->clear(op, parts);
}

size_t signal_op_own_bytes(const made_op *op)
{
    size_t bytes = 0;
    for (int k = 0; k < op->n_parts; k++) bytes += (signal_op_bytes(op, k) + 7) / 8 * 8;
    return bytes;
}

size_t signal_op_bytes(const made_op *op, int part)
{
    const size_t sizes[] = {sizeof(float), sizeof(double), sizeof(int32_t), sizeof(int64_t)};
    return op->parts[part].count * sizes[op->parts[part].type];
}

wt_status signal_op_make(const signal_op *row, wt_device *device, int n, int n_signals, made_op *op)
{
    *op = (made_op){.n = n, .n_signals = n_signals};
    wt_status status = row->create(device, op);
    for (int k = 0; k < op->n_parts; k++) {
        op->at[k] = op->out_bytes;
        op->out_bytes += (signal_op_bytes(op, k) * (size_t)n_signals + 7) / 8 * 8;
    }
    return status;
}

void signal_op_run(const signal_op *row, const made_op *op, wt_device *device, const float *in, void *out)
{
    wt_stream *stream;
    wt_buffer *from, *to;
    const size_t in_bytes = sizeof *in * op->in_floats * (size_t)op->n_signals;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, in_bytes, &from));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, op->out_bytes, &to));
    assert_ok(wt_stream_upload(stream, from, 0, in, in_bytes));
    assert_ok(wt_stream_fill(stream, to, 0, 0, op->out_bytes));
    if (row->enqueue(op, stream, from, to)) fail_msg("%s: %s", row->name, wt_last_error());
    assert_ok(wt_stream_download(stream, out, to, 0, op->out_bytes));
    assert_ok(wt_stream_synchronize(stream));
    wt_stream_destroy(stream);
    wt_buffer_destroy(from);
    wt_buffer_destroy(to);
}

float *signal_op_input(const signal_op *row, const made_op *op, int n_signals)
{
    float *x = floats(op->in_floats * (size_t)n_signals);
    for (int s = 0; s < n_signals; s++) {
        uint64_t seed = (uint64_t)s + 1;
        float *own = x + (size_t)s * op->in_floats;
        for (size_t i = 0; i < op->in_floats; i++) {
            const float since = (float)(i % 1500) / RATE_HZ, hz = 150.0f + 37.0f * (float)s;
            own[i] = 0.3f * expf(-30 * since) * sinf(6.2831853f * hz * (float)i / RATE_HZ) + 0.02f * noise(&seed);
            if (row->magnitudes) own[i] = fabsf(own[i]) + (i % 43 == 0 ? 0.5f : 0);
        }
    }
    return x;
}
