#include "support/gpu_load.h"

#include <math.h>
#include <string.h>
#include <stdio.h>
#include <warptone/clock.h>

enum {
    READ_THREADS = 512,
    READ_BYTES = 64 << 20,
    N_WINDOWS = 32, ///< of READ_BYTES, so that no launch finds its data in L2
    GEMM = 8192,
    PREFILL = 2048,
    WORKSPACE_BYTES = 32 << 20,
    DEPTH = GPU_LOAD_DEPTH,
    MOST_WINDOWS = 10,
};

const char *const gpu_load_names[] = {"reads", "gemm", "prefill"};

static const char text[] =
    "extern \"C\" __global__ void reads(const uint4 *data, int n_vectors, unsigned *out)\n"
    "{\n"
    "    unsigned sum = 0;\n"
    "    int stride = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    for (; i + 3 * stride < n_vectors; i += 4 * stride) {\n"
    "        uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride], d = data[i + 3 * stride];\n"
    "        sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;\n"
    "    }\n"
    "    for (; i < n_vectors; i += stride) sum ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;\n"
    "    if (sum == 0x12345678) *out = sum;\n"
    "}\n"
    "extern \"C\" __global__ void noise(unsigned *to, long long n)\n" // bf16 pairs of magnitude 0.5 to 1
    "{\n"
    "    long long stride = (long long)gridDim.x * blockDim.x;\n"
    "    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {\n"
    "        unsigned h = (unsigned)i * 2654435761u;\n"
    "        h = (h ^ h >> 15) * 2246822519u;\n"
    "        h = (h ^ h >> 13) * 3266489917u;\n"
    "        to[i] = ((h ^ h >> 16) & 0x807f807fu) | 0x3f003f00u;\n"
    "    }\n"
    "}\n";

void spin_until(int64_t time_ns)
{
    while (wt_clock_now_ns(NULL) < time_ns) {
    }
}

static void *workspace_of(const gpu_load *l)
{
    return (void *)(wt_buffer_address(l->all->workspace) + (size_t)l->number * WORKSPACE_BYTES);
}

static wt_status lt_status(cublasStatus_t result, const char *what)
{
    return result ? wt_fail(WT_ERR_CUDA, "cuBLASLt %s: status %d", what, result) : WT_OK;
}

/// d[n][m] = a[m][GEMM] b[n][GEMM]', all bf16, sums in f32: cuBLASLt's column-major D = A' B.
static wt_status gemm_plan(const gpu_loads *b, int m, int n, int n_sms, gpu_gemm *g)
{
    const wt__cublaslt *lt = b->lt;
    const int transpose = 1; // CUBLAS_OP_T
    const int32_t target = n_sms;
    const size_t workspace_bytes = WORKSPACE_BYTES;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result;
    int n_results = 0;
    wt_status status = wt__cuda_enter(wt__cuda_device_of(b->device));
    if (status) return status;
    cublasStatus_t r = lt->MatmulDescCreate(&g->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!r) r = lt->MatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
    if (!r) r = lt->MatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &target, sizeof target);
    if (!r) r = lt->MatrixLayoutCreate(&g->a, CUDA_R_16BF, GEMM, (uint64_t)m, GEMM);
    if (!r) r = lt->MatrixLayoutCreate(&g->b, CUDA_R_16BF, GEMM, (uint64_t)n, GEMM);
    if (!r) r = lt->MatrixLayoutCreate(&g->d, CUDA_R_16BF, (uint64_t)m, (uint64_t)n, m);
    if (!r) r = lt->MatmulPreferenceCreate(&preference);
    if (!r)
        r = lt->MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                             sizeof workspace_bytes);
    if (!r)
        r = lt->MatmulAlgoGetHeuristic(b->handle, g->desc, g->a, g->b, g->d, g->d, preference, 1, &result, &n_results);
    if (preference) lt->MatmulPreferenceDestroy(preference);
    if (!r && n_results) g->algo = result.algo;
    return r || n_results ? lt_status(r, "plan") : wt_fail(WT_ERR_CUDA, "cuBLASLt has no algorithm");
}

static void gemm_free(const gpu_loads *b, gpu_gemm *g)
{
    if (g->desc) b->lt->MatmulDescDestroy(g->desc);
    cublasLtMatrixLayout_t layouts[] = {g->a, g->b, g->d};
    for (int k = 0; k < 3; k++)
        if (layouts[k]) b->lt->MatrixLayoutDestroy(layouts[k]);
}

static wt_status queue_gemm(const gpu_load *l)
{
    const gpu_loads *b = l->all;
    const float one = 1, zero = 0;
    wt_status status = wt__cuda_enter(wt__cuda_device_of(b->device));
    if (status) return status;
    void *d = (void *)wt_buffer_address(b->d);
    return lt_status(b->lt->Matmul(b->handle, l->gemm.desc, &one, (const void *)wt_buffer_address(b->a), l->gemm.a,
                                   (const void *)wt_buffer_address(b->b), l->gemm.b, &zero, d, l->gemm.d, d, l->gemm.d,
                                   &l->gemm.algo, workspace_of(l), WORKSPACE_BYTES, wt__cuda_stream_of(l->stream)),
                     "matmul");
}

static wt_status queue_reads(const gpu_load *l, int n, int *window)
{
    wt_status status = WT_OK;
    for (int k = 0; k < n && !status; k++) {
        uintptr_t data = wt_buffer_address(l->all->data) + (size_t)(*window)++ % N_WINDOWS * READ_BYTES;
        uintptr_t out = (uintptr_t)workspace_of(l);
        int n_vectors = READ_BYTES / 16;
        const wt_arg args[] = {WT_ARG(data), WT_ARG(n_vectors), WT_ARG(out)};
        const wt_launch launch = {.grid = {l->n_sms * 4}, .block = {READ_THREADS}};
        status = wt_kernel_launch(l->all->reads, l->stream, &launch, args, 3);
    }
    return status;
}

static wt_status queue_piece(const gpu_load *l, int *window)
{
    if (l->kind == GPU_READS) return queue_reads(l, 16, window);
    wt_status status = queue_gemm(l);
    return status || l->kind == GPU_GEMMS ? status : queue_reads(l, 8, window);
}

/// A load that takes a share of the time waits for its piece, then rests in proportion.
static wt_status rest(wt_event *event, double share, int64_t begin_ns)
{
    wt_status status = wt_event_synchronize(event);
    const int64_t now_ns = wt_clock_now_ns(NULL);
    if (!status) spin_until(now_ns + (int64_t)((double)(now_ns - begin_ns) * (1 / share - 1)));
    return status;
}

static void *load_thread(void *user)
{
    gpu_load *l = user;
    int window = 0;
    wt_status status = WT_OK;
    for (long long n = 0; !atomic_load(&l->quit) && !status; n++) {
        if (n >= DEPTH) status = wt_event_synchronize(l->events[n % DEPTH]);
        if (n >= DEPTH) atomic_store(&l->n_done, n - DEPTH + 1);
        const double share = atomic_load(&l->share);
        const int64_t begin_ns = wt_clock_now_ns(NULL);
        if (!status) status = queue_piece(l, &window);
        if (!status) status = wt_event_record(l->events[n % DEPTH], l->stream);
        if (!status && share < 1) status = rest(l->events[n % DEPTH], share, begin_ns);
    }
    if (!status) status = wt_stream_synchronize(l->stream);
    l->status = status;
    return NULL;
}

wt_status gpu_load_start(gpu_load *l, gpu_loads *all, gpu_load_kind kind, wt_stream *stream, int n_sms)
{
    *l = (gpu_load){.all = all, .kind = kind, .stream = stream, .n_sms = n_sms, .share = 1};
    l->number = all->n_started++ % GPU_LOAD_THREADS;
    wt_status status =
        kind == GPU_READS ? WT_OK : gemm_plan(all, GEMM, kind == GPU_GEMMS ? GEMM : PREFILL, n_sms, &l->gemm);
    for (int k = 0; k < DEPTH && !status; k++) status = wt_event_create(all->device, &l->events[k]);
    int window = 0;
    if (!status) status = queue_piece(l, &window); // the first use loads kernels
    if (!status) status = wt_stream_synchronize(stream);
    if (!status && pthread_create(&l->thread, NULL, load_thread, l)) status = wt_fail(WT_ERR_NO_MEMORY, "no thread");
    return status;
}

wt_status gpu_load_stop(gpu_load *l)
{
    atomic_store(&l->quit, true);
    pthread_join(l->thread, NULL);
    for (int k = 0; k < DEPTH; k++) wt_event_destroy(l->events[k]);
    if (l->kind != GPU_READS) gemm_free(l->all, &l->gemm);
    return l->status ? wt_fail(l->status, "%s: the load met an error", gpu_load_names[l->kind]) : WT_OK;
}

double gpu_load_rate(const gpu_load *l, long long n_before, int64_t begin_ns)
{
    return (double)(atomic_load(&l->n_done) - n_before) / ((double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9);
}

void gpu_load_print_rate(gpu_load_kind kind, double rate)
{
    const double read = READ_BYTES * 1e-9, product = 2e-12 * GEMM * GEMM;
    if (kind == GPU_READS) printf("%7.0f GB/s", 16 * read * rate);
    if (kind == GPU_GEMMS) printf("%7.0f TFLOP/s", product * GEMM * rate);
    if (kind == GPU_PREFILLS) printf("%7.0f TFLOP/s + %.0f GB/s", product * PREFILL * rate, 8 * read * rate);
}

void gpu_load_rates(const gpu_load *loads, int n, const long long *before, int64_t begin_ns, double rates[N_GPU_LOADS])
{
    memset(rates, 0, sizeof *rates * N_GPU_LOADS);
    for (int k = 0; k < n; k++) rates[loads[k].kind] += gpu_load_rate(&loads[k], before[k], begin_ns);
}

static void rates_over(const gpu_load *loads, int n, double seconds, double *rates)
{
    long long before[GPU_LOAD_THREADS];
    for (int k = 0; k < n; k++) before[k] = atomic_load(&loads[k].n_done);
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    spin_until(begin_ns + (int64_t)(seconds * 1e9));
    gpu_load_rates(loads, n, before, begin_ns, rates);
}

static bool agree(const double *a, const double *b)
{
    for (int k = 0; k < N_GPU_LOADS; k++)
        if (fabs(a[k] - b[k]) > 0.005 * b[k]) return false;
    return true;
}

wt_status gpu_load_alone(gpu_loads *all, const gpu_load_kind *kinds, wt_stream *const *streams, int n, int n_sms,
                         double seconds, double rates[N_GPU_LOADS])
{
    gpu_load loads[GPU_LOAD_THREADS];
    double before[N_GPU_LOADS];
    wt_status status = WT_OK, stopped;
    int n_started = 0;
    for (; n_started < n && !status; n_started++)
        status = gpu_load_start(&loads[n_started], all, kinds[n_started], streams[n_started], n_sms);
    if (status) n_started--; // that one has no thread
    memset(rates, 0, sizeof before);
    for (int window = 0; window < MOST_WINDOWS && !status; window++) {
        memcpy(before, rates, sizeof before);
        rates_over(loads, n, seconds, rates);
        if (window && agree(rates, before)) break;
    }
    for (int k = 0; k < n_started; k++)
        if ((stopped = gpu_load_stop(&loads[k])) && !status) status = stopped;
    return status;
}

int gpu_loads_count(const gpu_loads *loads) { return loads->lt ? N_GPU_LOADS : GPU_GEMMS; }

wt_status gpu_loads_fill_noise(const gpu_loads *b, wt_stream *stream, wt_buffer *buffer)
{
    uintptr_t address = wt_buffer_address(buffer);
    long long n = (long long)(wt_buffer_size_bytes(buffer) / 4);
    const wt_arg args[] = {WT_ARG(address), WT_ARG(n)};
    return wt_kernel_launch(b->noise, stream, &(wt_launch){.grid = {1024}, .block = {256}}, args, 2);
}

static wt_status open_cublaslt(gpu_loads *b)
{
    if (wt__cublaslt_open(&b->lt)) { // the bench goes on with reads alone
        printf("loads: %s\n", wt_last_error());
        b->lt = NULL;
        return WT_OK;
    }
    wt_status status = wt__cuda_enter(wt__cuda_device_of(b->device));
    return status ? status : lt_status(b->lt->Create(&b->handle), "handle");
}

wt_status gpu_loads_open(wt_device *device, gpu_loads *b)
{
    const size_t matrix_bytes = (size_t)GEMM * GEMM * 2;
    *b = (gpu_loads){.device = device};
    const struct {
        wt_buffer **buffer;
        size_t size_bytes;
    } buffers[] = {{&b->data, (size_t)N_WINDOWS * READ_BYTES},
                   {&b->a, matrix_bytes},
                   {&b->b, matrix_bytes},
                   {&b->d, matrix_bytes},
                   {&b->workspace, (size_t)GPU_LOAD_THREADS * WORKSPACE_BYTES}};
    wt_status status = wt_module_create(device, &(wt_module_config){.name = "loads.cu", .source = text}, &b->module);
    if (!status) status = wt_module_get_kernel(b->module, "reads", &b->reads);
    if (!status) status = wt_module_get_kernel(b->module, "noise", &b->noise);
    for (int k = 0; k < 5 && !status; k++)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, buffers[k].size_bytes, buffers[k].buffer);
    wt_stream *stream = NULL;
    if (!status) status = wt_stream_create(device, NULL, &stream);
    wt_buffer *const noisy[] = {b->data, b->a, b->b};
    for (int k = 0; k < 3 && !status; k++) status = gpu_loads_fill_noise(b, stream, noisy[k]);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status ? status : open_cublaslt(b);
}

void gpu_loads_close(gpu_loads *b)
{
    if (b->handle) b->lt->Destroy(b->handle);
    wt_buffer *const buffers[] = {b->data, b->a, b->b, b->d, b->workspace};
    for (int k = 0; k < 5; k++) wt_buffer_destroy(buffers[k]);
    wt_module_destroy(b->module);
}
