#include "array_check.h"
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

array_rig *array_rig_of(void **state)
{
    static array_rig r;
    r = (array_rig){.device = device_of(state)};
    assert_ok(wt_stream_create(r.device, NULL, &r.stream));
    assert_ok(wt_arrays_create(&(wt_arrays_config){.device = r.device}, &r.arrays));
    return &r;
}

void array_rig_end(array_rig *r)
{
    assert_ok(wt_stream_synchronize(r->stream));
    wt_arrays_destroy(r->arrays);
    for (int k = 0; k < r->n_buffers; k++) wt_buffer_destroy(r->buffers[k]);
    wt_stream_destroy(r->stream);
}

wt_array array_take(array_rig *r, wt_dtype dtype, int rank, const int64_t *shape)
{
    wt_array a = wt_array_of(16, dtype, rank, shape);
    const size_t bytes = wt_dtype_bytes(dtype, wt_array_elements(&a));
    assert_true(r->n_buffers < ARRAY_MAX_BUFFERS);
    assert_ok(wt_buffer_create(r->device, WT_MEMORY_DEVICE, bytes ? bytes : 1, &r->buffers[r->n_buffers]));
    a.data = wt_buffer_address(r->buffers[r->n_buffers++]);
    return a;
}

wt_buffer *array_buffer(const array_rig *r, const wt_array *a)
{
    for (int k = 0; k < r->n_buffers; k++)
        if (wt_buffer_address(r->buffers[k]) == a->data) return r->buffers[k];
    fail_msg("the array is no buffer's begin");
    return NULL;
}

void array_put(array_rig *r, const wt_array *a, const double *x)
{
    const int64_t n = wt_array_elements(a);
    const size_t bytes = wt_dtype_bytes(a->dtype, n);
    unsigned char *p = malloc(bytes + 8);
    for (int64_t k = 0; k < n; k++) switch (a->dtype) {
        case WT_DTYPE_F64:
            memcpy(p + 8 * k, &x[k], 8);
            break;
        case WT_DTYPE_F32:
            memcpy(p + 4 * k, &(float){(float)x[k]}, 4);
            break;
        case WT_DTYPE_I64:
            memcpy(p + 8 * k, &(int64_t){(int64_t)x[k]}, 8);
            break;
        case WT_DTYPE_I32:
            memcpy(p + 4 * k, &(int32_t){(int32_t)x[k]}, 4);
            break;
        case WT_DTYPE_I16:
            memcpy(p + 2 * k, &(int16_t){(int16_t)x[k]}, 2);
            break;
        default:
            p[k] = (unsigned char)(int)x[k];
        }
    assert_ok(wt_stream_upload(r->stream, array_buffer(r, a), 0, p, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    free(p);
}

void array_get(array_rig *r, const wt_array *a, double *x)
{
    const int64_t n = wt_array_elements(a);
    const size_t bytes = wt_dtype_bytes(a->dtype, n);
    unsigned char *p = malloc(bytes + 8);
    float *f = malloc(sizeof *f * (size_t)(n + 1));
    assert_ok(wt_stream_download(r->stream, p, array_buffer(r, a), 0, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    wt_tensor_to_f32(&(wt_tensor){.data = p, .dtype = a->dtype}, 0, n, f);
    for (int64_t k = 0; k < n; k++) {
        int64_t integer = 0;
        x[k] = (double)f[k];
        if (a->dtype == WT_DTYPE_F64) memcpy(&x[k], p + 8 * k, 8);
        if (a->dtype == WT_DTYPE_I64) {
            memcpy(&integer, p + 8 * k, 8);
            x[k] = (double)integer;
        }
    }
    free(p), free(f);
}

static uint64_t seed = 1;
double random_uniform(double low, double high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(seed >> 11) * 0x1p-53;
}

double *random_values(int64_t n, double low, double high, wt_dtype dtype)
{
    double *x = malloc(sizeof *x * (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        x[k] = random_uniform(low, high);
        if (dtype == WT_DTYPE_F32) x[k] = (double)(float)x[k];
        if (dtype != WT_DTYPE_F32 && dtype != WT_DTYPE_F64) x[k] = rint(x[k]);
    }
    return x;
}

void assert_close(const char *what, int64_t at, double got, double want, double bound)
{
    if (isnan(want) && isnan(got)) return;
    if (!(fabs(got - want) <= bound * fmax(fabs(want), 1e-30)) && got != want)
        fail_msg("%s: element %lld is %.17g, want %.17g", what, (long long)at, got, want);
}