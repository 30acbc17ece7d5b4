// Transforms on one core, against FFTW 3 (single precision, FFTW_MEASURE) where its shared library is found.
//
//   bench_fft [filter]     rows whose name contains `filter`
//
// Best of several repeats, each of 1 ms or more of the core's time, alternating ours and theirs. One row a case:
//   fft  real 2048 x 1   ours 1.31 us   fftw 1.66 us   0.79
// On a CUDA device, data on the device, best of several launches between two events; bytes are one reading and one
// writing of the signals, operations 5 n log2 n, half that for real ones:
//   fft  cuda real 2048 x 16384   100.0 us   2685 GB/s   9226 GFLOP/s
// (The figures above only show the form.)

#include "support/cpu_time.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>

// FFTW's C interface, as its manual gives it (section 4.4, Advanced Interface).
typedef void *fftw_plan;
typedef struct fftw {
    fftw_plan (*many_dft)(int, const int *, int, float *, const int *, int, int, float *, const int *, int, int, int,
                          unsigned);
    fftw_plan (*many_r2c)(int, const int *, int, float *, const int *, int, int, float *, const int *, int, int,
                          unsigned);
    fftw_plan (*many_c2r)(int, const int *, int, float *, const int *, int, int, float *, const int *, int, int,
                          unsigned);
    void (*execute)(fftw_plan);
    void (*destroy_plan)(fftw_plan);
} fftw;

enum { MEASURE = 0, ESTIMATE = 1 << 6, DESTROY_INPUT = 1, FORWARD = -1 };

static bool load_fftw(fftw *f)
{
    void *library = dlopen("libfftw3f.so.3", RTLD_NOW);
    if (!library) return false;
    *(void **)&f->many_dft = dlsym(library, "fftwf_plan_many_dft");
    *(void **)&f->many_r2c = dlsym(library, "fftwf_plan_many_dft_r2c");
    *(void **)&f->many_c2r = dlsym(library, "fftwf_plan_many_dft_c2r");
    *(void **)&f->execute = dlsym(library, "fftwf_execute");
    *(void **)&f->destroy_plan = dlsym(library, "fftwf_destroy_plan");
    return f->many_dft && f->many_r2c && f->many_c2r && f->execute && f->destroy_plan;
}

static fftw_plan plan_fftw(const fftw *f, const wt_fft_config *c, float *in, float *out)
{
    const int n = c->n, bins = n / 2 + 1;
    unsigned flags = (n > 1 << 16 ? ESTIMATE : MEASURE) | DESTROY_INPUT;
    if (c->kind == WT_FFT_REAL_TO_COMPLEX)
        return f->many_r2c(1, &n, c->batch, in, NULL, 1, n, out, NULL, 1, bins, flags);
    if (c->kind == WT_FFT_COMPLEX_TO_REAL)
        return f->many_c2r(1, &n, c->batch, in, NULL, 1, bins, out, NULL, 1, n, flags);
    return f->many_dft(1, &n, c->batch, in, NULL, 1, n, out, NULL, 1, n, FORWARD, flags);
}

typedef struct job {
    wt_fft *ours;
    const fftw *theirs;
    fftw_plan plan;
    float *in, *out;
} job;

static void execute(const job *j, bool ours)
{
    if (ours)
        (void)!wt_fft_run(j->ours, j->in, j->out);
    else
        j->theirs->execute(j->plan);
}

static double time_us(const job *j, bool ours, int loops)
{
    const double begin = bench_cpu_s();
    for (int i = 0; i < loops; i++) execute(j, ours);
    return (bench_cpu_s() - begin) * 1e6 / loops;
}

// Doubled until they take a millisecond: one call is shorter than the clock's own.
static int count_loops(const job *j)
{
    int loops = 1;
    while (time_us(j, true, loops) * loops < 1000) loops *= 2;
    return loops;
}

static void best_of(const job *j, double *ours_us, double *theirs_us)
{
    const int loops = count_loops(j);
    *ours_us = *theirs_us = 1e30;
    for (int repeat = 0; repeat < 15; repeat++) {
        double us = time_us(j, true, loops);
        if (us < *ours_us) *ours_us = us;
        if (!j->plan) continue;
        us = time_us(j, false, loops);
        if (us < *theirs_us) *theirs_us = us;
    }
}

static int bench_case(const fftw *f, const wt_fft_config *config, const char *filter)
{
    static const char *const kinds[] = {"complex", "real", "to real"};
    char name[64];
    snprintf(name, sizeof name, "%s %d x %d", kinds[config->kind], config->n, config->batch);
    if (filter && !strstr(name, filter)) return 0;
    size_t floats = 2 * ((size_t)config->n + 2) * (size_t)config->batch;
    job j = {.theirs = f, .in = aligned_alloc(64, floats * 4 / 64 * 64 + 64)};
    j.out = aligned_alloc(64, floats * 4 / 64 * 64 + 64);
    if (!j.in || !j.out || wt_fft_create(NULL, config, &j.ours)) {
        fprintf(stderr, "bench_fft: %s: %s\n", name, wt_last_error());
        return 1;
    }
    if (f) j.plan = plan_fftw(f, config, j.in, j.out);
    for (size_t i = 0; i < floats; i++) j.in[i] = (float)((i * 7919) % 1000) / 1e6f, j.out[i] = 0;
    double ours_us, theirs_us;
    best_of(&j, &ours_us, &theirs_us);
    printf("fft  %-22s ours %10.3f us", name, ours_us);
    if (j.plan) printf("   fftw %10.3f us   %.2f", theirs_us, ours_us / theirs_us);
    printf("\n");
    if (j.plan) f->destroy_plan(j.plan);
    wt_fft_destroy(j.ours);
    free(j.in), free(j.out);
    return 0;
}

// ---- CUDA

static wt_status time_launches(wt_fft *plan, wt_device *device, size_t bytes, double *best_us)
{
    wt_stream *stream = NULL;
    wt_buffer *in = NULL, *out = NULL;
    wt_event *begin = NULL, *end = NULL;
    wt_status status = wt_stream_create(device, NULL, &stream);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &in);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &out);
    if (!status) status = wt_event_create(device, &begin);
    if (!status) status = wt_event_create(device, &end);
    *best_us = 1e30;
    for (int repeat = 0; repeat < 20 && !status; repeat++) {
        double us = 0;
        status = wt_event_record(begin, stream);
        if (!status) status = wt_fft_enqueue(plan, stream, in, 0, out, 0);
        if (!status) status = wt_event_record(end, stream);
        if (!status) status = wt_event_synchronize(end);
        if (!status) status = wt_event_elapsed_us(begin, end, &us);
        *best_us = fmin(*best_us, us);
    }
    wt_event_destroy(begin), wt_event_destroy(end);
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_stream_destroy(stream);
    return status;
}

static int bench_cuda_case(wt_device *device, const wt_fft_config *config, const char *filter)
{
    static const char *const kinds[] = {"complex", "real", "to real"};
    char name[64];
    snprintf(name, sizeof name, "cuda %s %d x %d", kinds[config->kind], config->n, config->batch);
    if (filter && !strstr(name, filter)) return 0;
    const double real = config->kind == WT_FFT_COMPLEX ? 1 : 0.5, points = (double)config->n * config->batch;
    wt_fft *plan = NULL;
    double us = 0;
    wt_status status = wt_fft_create(device, config, &plan);
    if (!status) status = time_launches(plan, device, ((size_t)config->n + 2) * (size_t)config->batch * 8, &us);
    if (status)
        fprintf(stderr, "bench_fft: %s: %s\n", name, wt_last_error());
    else
        printf("fft  %-30s %10.1f us  %6.0f GB/s  %6.0f GFLOP/s\n", name, us, real * 16e-3 * points / us,
               real * 5e-3 * points * log2(config->n) / us);
    wt_fft_destroy(plan);
    return status != WT_OK;
}

static int bench_cuda(const char *filter)
{
    static const int lengths[] = {64,   128,  256,  400,  512,   1000,  1021,    1024,
                                  2048, 2205, 4096, 8192, 16384, 65536, 1 << 20, 1 << 22};
    wt_device *device;
    if (wt_device_count() < 1) {
        printf("bench_fft: no CUDA device\n");
        return 0;
    }
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device)) {
        fprintf(stderr, "bench_fft: %s\n", wt_last_error());
        return 1;
    }
    int failed = 0;
    for (int kind = WT_FFT_COMPLEX; kind <= WT_FFT_COMPLEX_TO_REAL; kind++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            wt_fft_config config = {.n = lengths[i], .batch = (1 << 25) / lengths[i], .kind = kind};
            failed |= bench_cuda_case(device, &config, filter);
        }
    wt_device_close(device);
    return failed;
}

int main(int argc, char **argv)
{
    static const int lengths[] = {16,   20,   32,   60,   64,   128,  256,  400,   480,     512,     1000,    1021,
                                  1023, 1024, 1200, 2048, 3000, 4096, 8192, 16384, 1 << 15, 1 << 16, 1 << 18, 1 << 20};
    const char *filter = argc > 1 ? argv[1] : NULL;
    fftw f;
    bool have = load_fftw(&f);
    if (!have) printf("bench_fft: no libfftw3f.so.3 here, ours alone\n");
    int failed = 0;
    for (int kind = WT_FFT_COMPLEX; kind <= WT_FFT_COMPLEX_TO_REAL; kind++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            failed |= bench_case(have ? &f : NULL, &(wt_fft_config){.n = lengths[i], .batch = 1, .kind = kind}, filter);
    static const int batched[] = {8, 16, 20, 32, 60, 64, 128, 256, 375, 400, 512, 1023, 1024, 2048};
    for (int kind = WT_FFT_COMPLEX; kind <= WT_FFT_COMPLEX_TO_REAL; kind++)
        for (size_t i = 0; i < sizeof batched / sizeof *batched; i++)
            failed |=
                bench_case(have ? &f : NULL, &(wt_fft_config){.n = batched[i], .batch = 64, .kind = kind}, filter);
    return failed | bench_cuda(filter);
}
