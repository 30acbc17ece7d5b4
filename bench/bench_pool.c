// The memory pool: allocate + free on the CPU's clock, against the driver's own calls on a GPU; moving out and back as
// a share of what plain copies between the same kinds of memory reach, all in this run.
//   pool  4096 B        allocate + free  0.09 us   with access  0.16 us   driver  0.61 us
//   pool  4.0 MB x 16   out   9.5 GB/s, 0.96 of plain   back   9.6 GB/s, 0.97 of plain

#include <dlfcn.h>
#include <stdio.h>
#include <warptone/clock.h>
#include <warptone/pool.h>

enum { LOOPS = 20000, REPEATS = 9, N_BLOCKS = 16 };

// The driver's calls to compare with, as NVIDIA's reference declares them.
typedef struct driver {
    int (*stream_create)(void **stream, unsigned int flags);
    int (*stream_destroy)(void *stream);
    int (*alloc)(unsigned long long *address, size_t bytes, void *stream);
    int (*release)(unsigned long long address, void *stream);
    int (*default_pool)(void **pool, int device);
    int (*set_attribute)(void *pool, int attribute, void *value);
    void *stream;
} driver;

static int fail(const char *what)
{
    fprintf(stderr, "bench_pool: %s: %s\n", what, wt_last_error());
    return 1;
}

/// The device must be open, so that its context is current. The driver's pool keeps its memory, as ours does.
static bool open_driver(driver *d, int ordinal)
{
    enum { NON_BLOCKING = 1, RELEASE_THRESHOLD = 4 };
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *pool = NULL;
    if (!library) return false;
    *(void **)&d->stream_create = dlsym(library, "cuStreamCreate");
    *(void **)&d->stream_destroy = dlsym(library, "cuStreamDestroy_v2");
    *(void **)&d->alloc = dlsym(library, "cuMemAllocAsync");
    *(void **)&d->release = dlsym(library, "cuMemFreeAsync");
    *(void **)&d->default_pool = dlsym(library, "cuDeviceGetDefaultMemPool");
    *(void **)&d->set_attribute = dlsym(library, "cuMemPoolSetAttribute");
    if (!d->stream_create || !d->stream_destroy || !d->alloc || !d->release || !d->default_pool || !d->set_attribute)
        return false;
    uint64_t most = UINT64_MAX;
    return !d->stream_create(&d->stream, NON_BLOCKING) && !d->default_pool(&pool, ordinal) &&
           !d->set_attribute(pool, RELEASE_THRESHOLD, &most);
}

static double driver_us(const driver *d, size_t size_bytes)
{
    double best = 1e30;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        int64_t begin_ns = wt_clock_now_ns(NULL);
        for (int k = 0; k < LOOPS; k++) {
            unsigned long long address;
            if (d->alloc(&address, size_bytes, d->stream) || d->release(address, d->stream)) return -1;
        }
        double us = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-3 / LOOPS;
        if (us < best) best = us;
    }
    return best;
}

static wt_status allocate_and_free(wt_pool *pool, wt_stream *stream, size_t size_bytes, bool access)
{
    wt_pool_block block;
    uintptr_t address;
    wt_status status = wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = size_bytes}, stream, &block);
    if (!status && access) status = wt_pool_access(pool, block, stream, &address);
    if (!status && access) status = wt_pool_release_access(pool, block, stream);
    return status ? status : wt_pool_free(pool, block, stream);
}

static double pool_us(wt_pool *pool, wt_stream *stream, size_t size_bytes, bool access)
{
    double best = 1e30;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        int64_t begin_ns = wt_clock_now_ns(NULL);
        for (int k = 0; k < LOOPS; k++)
            if (allocate_and_free(pool, stream, size_bytes, access)) return -1;
        double us = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-3 / LOOPS;
        if (us < best) best = us;
    }
    return best;
}

static int bench_calls(wt_device *device, wt_stream *stream)
{
    static const size_t sizes[] = {256, 4096, 65536, 1 << 20};
    const wt_device_info *info = wt_device_get_info(device);
    driver d = {0};
    bool compare = info->backend == WT_BACKEND_CUDA && open_driver(&d, info->ordinal);
    wt_pool *pool;
    if (wt_pool_create(device, &(wt_pool_config){.quota_bytes = 16 << 20}, &pool)) return fail("create");
    for (int k = 0; k < 4; k++) {
        double plain = pool_us(pool, stream, sizes[k], false), access = pool_us(pool, stream, sizes[k], true);
        if (plain < 0 || access < 0) return fail("allocate");
        printf("pool  %7zu B     allocate + free %6.3f us   with access %6.3f us", sizes[k], plain, access);
        if (compare) printf("   driver %6.3f us", driver_us(&d, sizes[k]));
        printf("\n");
    }
    if (d.stream) d.stream_destroy(d.stream);
    wt_pool_destroy(pool);
    return 0;
}

static double rate_gbps(size_t bytes, int64_t begin_ns)
{
    return (double)bytes / (double)(wt_clock_now_ns(NULL) - begin_ns);
}

static void keep_best(double *best, double value)
{
    if (value > *best) *best = value;
}

typedef struct rates {
    double out, back, plain_out, plain_back; ///< GB/s
} rates;

/// One round of everything; the first takes the pinned memory.
static wt_status move(wt_device *device, wt_pool *pool, wt_pool_block *blocks, size_t size_bytes, wt_stream *stream,
                      wt_buffer *there, wt_buffer *here, rates *best)
{
    size_t total = size_bytes * N_BLOCKS;
    wt_status status = WT_OK;
    int64_t begin_ns = wt_clock_now_ns(NULL);
    for (int k = 0; k < N_BLOCKS && !status; k++) status = wt_pool_evict(pool, blocks[k]);
    if (!status) status = wt_device_synchronize(device);
    keep_best(&best->out, rate_gbps(total, begin_ns));
    begin_ns = wt_clock_now_ns(NULL);
    for (int k = 0; k < N_BLOCKS && !status; k++) {
        uintptr_t address;
        status = wt_pool_access(pool, blocks[k], stream, &address);
        if (!status) status = wt_pool_release_access(pool, blocks[k], stream);
    }
    if (!status) status = wt_stream_synchronize(stream);
    keep_best(&best->back, rate_gbps(total, begin_ns));
    for (int up = 0; up < 2; up++) {
        begin_ns = wt_clock_now_ns(NULL);
        for (int k = 0; k < N_BLOCKS && !status; k++) {
            size_t at = (size_t)k * size_bytes;
            status = wt_stream_copy(stream, up ? there : here, at, up ? here : there, at, size_bytes);
        }
        if (!status) status = wt_stream_synchronize(stream);
        keep_best(up ? &best->plain_back : &best->plain_out, rate_gbps(total, begin_ns));
    }
    return status;
}

static int bench_moves(wt_device *device, wt_stream *stream, size_t size_bytes)
{
    size_t total = size_bytes * N_BLOCKS;
    wt_pool *pool;
    wt_pool_block blocks[N_BLOCKS];
    wt_buffer *there = NULL, *here = NULL;
    if (wt_pool_create(device, &(wt_pool_config){.quota_bytes = total}, &pool)) return fail("create");
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, total, &there);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_PINNED, total, &here);
    for (int k = 0; k < N_BLOCKS && !status; k++)
        status = wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = size_bytes}, stream, &blocks[k]);
    rates best = {0};
    for (int repeat = 0; repeat < REPEATS && !status; repeat++)
        status = move(device, pool, blocks, size_bytes, stream, there, here, &best);
    if (status) return fail("move");
    printf("pool  %5.1f MB x %d   out %6.2f GB/s, %.2f of plain   back %6.2f GB/s, %.2f of plain\n",
           (double)size_bytes / (1 << 20), N_BLOCKS, best.out, best.out / best.plain_out, best.back,
           best.back / best.plain_back);
    wt_pool_destroy(pool);
    wt_buffer_destroy(there);
    wt_buffer_destroy(here);
    return 0;
}

int main(void)
{
    wt_device *device;
    wt_stream *stream;
    if (wt_device_open(NULL, &device)) return fail("device");
    if (wt_stream_create(device, NULL, &stream)) return fail("stream");
    bool cuda = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    printf("pool on %s\n", wt_device_get_info(device)->name);
    int failed = bench_calls(device, stream);
    for (size_t size = 1 << 18; size <= (size_t)(cuda ? 1 << 26 : 1 << 22) && !failed; size *= 4)
        failed = bench_moves(device, stream, size);
    wt_stream_destroy(stream);
    wt_device_close(device);
    return failed;
}
