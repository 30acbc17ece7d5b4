#include "nn_check.h"

#include "array_kernel.h"
#include "device_check.h"
#include "npy.h"
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_rig(nn_rig *r, wt_device *device, wt_dtype type)
{
    *r = (nn_rig){.device = device, .type = type};
    assert_ok(wt_stream_create(device, NULL, &r->stream));
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true}, &r->matmul));
    assert_ok(wt_nn_create(&(wt_nn_config){.device = device, .matmul = r->matmul}, &r->nn));
}

static void close_rig(nn_rig *r)
{
    assert_ok(wt_stream_synchronize(r->stream));
    wt_nn_destroy(r->nn);
    wt_matmul_destroy(r->matmul);
    for (int k = 0; k < r->n_buffers; k++) wt_buffer_destroy(r->buffers[k]);
    wt_stream_destroy(r->stream);
}

void nn_run_type(void **state, nn_case *body, wt_dtype type)
{
    nn_rig own, cpu;
    wt_device *device = device_of(state), *other = NULL;
    open_rig(&own, device, type);
    if (wt_device_get_info(device)->backend == WT_BACKEND_CUDA) {
        assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &other));
        open_rig(&cpu, other, type);
        body(&cpu);
        own.n_kept = 0;
        own.compares = true;
        memcpy(own.kept, cpu.kept, sizeof own.kept);
        close_rig(&cpu);
        wt_device_close(other);
    }
    body(&own);
    for (int k = 0; k < own.n_kept; k++) free(own.kept[k]);
    close_rig(&own);
}

void nn_run(void **state, nn_case *body)
{
    static const wt_dtype types[] = {WT_DTYPE_F32, WT_DTYPE_F16, WT_DTYPE_BF16};
    for (int k = 0; k < 3; k++) nn_run_type(state, body, types[k]);
}

static wt_array take(nn_rig *r, wt_dtype type, int rank, const int64_t *shape, const void *from)
{
    wt_array a = wt_array_of(16, type, rank, shape);
    const size_t bytes = wt_dtype_bytes(type, wt_array_elements(&a));
    assert_true(r->n_buffers < NN_MAX_ARRAYS);
    wt_buffer **buffer = &r->buffers[r->n_buffers++];
    assert_ok(wt_buffer_create(r->device, WT_MEMORY_DEVICE, bytes ? bytes : 1, buffer));
    a.data = wt_buffer_address(*buffer);
    if (from && bytes) assert_ok(wt_stream_upload(r->stream, *buffer, 0, from, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    return a;
}

wt_array nn_empty(nn_rig *r, wt_dtype type, int rank, const int64_t *shape) { return take(r, type, rank, shape, NULL); }
wt_array nn_integers(nn_rig *r, const int32_t *x, int rank, const int64_t *shape)
{
    return take(r, WT_DTYPE_I32, rank, shape, x);
}
wt_array nn_floats(nn_rig *r, const float *x, int rank, const int64_t *shape)
{
    return take(r, WT_DTYPE_F32, rank, shape, x);
}

wt_array nn_input(nn_rig *r, wt_dtype type, unsigned seed, double scale, double offset, int rank, const int64_t *shape)
{
    const wt_array a = wt_array_of(16, type, rank, shape);
    const int64_t n = wt_array_elements(&a);
    float *x = malloc(sizeof *x * (size_t)(n + 1));
    uint64_t state = seed;
    for (int64_t k = 0; k < n; k++) x[k] = (float)(rint(127 * (double)noise(&state)) / 128 * scale + offset);
    for (int64_t k = 0; k < n && type != WT_DTYPE_F32; k++) { // in place: narrower elements lie before
        const uint16_t y = (uint16_t)array_write_small(type == WT_DTYPE_F16 ? ARRAY_F16 : ARRAY_BF16, x[k]);
        memcpy((char *)x + 2 * k, &y, sizeof y);
    }
    const wt_array made = take(r, type, rank, shape, x);
    free(x);
    return made;
}

static double *read_array(nn_rig *r, const wt_array *a)
{
    const int64_t n = wt_array_elements(a);
    const size_t bytes = wt_dtype_bytes(a->dtype, n);
    unsigned char *p = malloc(bytes + 8);
    float *f = malloc(sizeof *f * (size_t)(n + 1));
    double *x = malloc(sizeof *x * (size_t)(n + 1));
    wt_buffer *buffer = NULL;
    size_t offset = 0;
    for (int k = 0; k < r->n_buffers && !buffer; k++) {
        offset = a->data - wt_buffer_address(r->buffers[k]);
        if (offset + bytes <= wt_buffer_size_bytes(r->buffers[k])) buffer = r->buffers[k];
    }
    assert_non_null(buffer);
    assert_ok(wt_stream_download(r->stream, p, buffer, offset, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    wt_tensor_to_f32(&(wt_tensor){.data = p, .dtype = a->dtype}, 0, n, f);
    for (int64_t k = 0; k < n; k++) x[k] = (double)f[k];
    free(p), free(f);
    return x;
}

static void compare(const char *name, const wt_array *a, const double *got, const double *want, double bound,
                    double roundings)
{
    const int64_t n = wt_array_elements(a);
    const double unit = a->dtype == WT_DTYPE_F16 ? 0x1p-11 : a->dtype == WT_DTYPE_BF16 ? 0x1p-8 : 0;
    double peak = 0, worst = 0;
    int64_t where = -1;
    char shape[96];
    for (int64_t k = 0; k < n; k++) peak = fmax(peak, fabs(want[k]));
    for (int64_t k = 0; k < n; k++) {
        const double slack = bound * peak + unit * fabs(want[k]) + unit * (roundings - 1) * peak + 1e-30;
        const double error = fabs(got[k] - want[k]) / slack;
        if (error <= worst) continue;
        worst = error;
        where = k;
        if (isnan(error)) break;
    }
    if (worst <= 1) return;
    fail_msg("%s, %s %s: element %lld is %.9g, want %.9g; %.3g of the bound", name, wt_dtype_name(a->dtype),
             wt_shape_describe(a->rank, a->shape, shape), (long long)where, got[where], want[where], worst);
}

void nn_result(nn_rig *r, const char *name, const wt_array *array, double bound, double roundings)
{
    double *got = read_array(r, array);
    if (!name) {
        assert_true(r->n_kept < NN_MAX_ARRAYS);
        double **place = &r->kept[r->n_kept++];
        if (r->compares) {
            compare("the backends", array, got, *place, 2 * bound, 2 * roundings);
            free(*place);
        }
        *place = got;
        return;
    }
    char path[256];
    npy golden;
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(path, sizeof path, "%s/nn/%s.npy", folder ? folder : "tests/golden", name);
    assert_ok(npy_read(path, &golden));
    assert_int_equal(golden.count, wt_array_elements(array));
    double *want = npy_doubles(&golden);
    compare(name, array, got, want, bound, roundings);
    npy_free(&golden);
    free(want), free(got);
}

void nn_same(nn_rig *r, const wt_array *a, const wt_array *b)
{
    double *x = read_array(r, a), *y = read_array(r, b);
    for (int64_t k = 0; k < wt_array_elements(a); k++)
        if (x[k] != y[k]) fail_msg("element %lld is %.9g, want %.9g", (long long)k, x[k], y[k]);
    free(x), free(y);
}
