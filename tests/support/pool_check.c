#include "pool_check.h"
#include "testing.h"

#include <stdlib.h>

wt_stream *pool_stream(wt_device *device)
{
    wt_stream *stream = NULL;
    assert_ok(wt_stream_create(device, NULL, &stream));
    return stream;
}

wt_pool *pool_of(wt_device *device, wt_pool_config config)
{
    wt_pool *pool = NULL;
    if (!config.name) config.name = "test";
    assert_ok(wt_pool_create(device, &config, &pool));
    return pool;
}

wt_pool_block pool_block_of(wt_pool *pool, size_t size_bytes, wt_stream *stream)
{
    wt_pool_block block;
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = size_bytes}, stream, &block));
    return block;
}

wt_pool_stats pool_stats_of(wt_pool *pool)
{
    wt_pool_stats stats;
    wt_pool_query(pool, &stats);
    return stats;
}

bool pool_has_resident(wt_pool *pool, wt_pool_block block)
{
    wt_pool_block_info info;
    assert_ok(wt_pool_query_block(pool, block, &info));
    return info.resident;
}

void pool_close(wt_pool *pool, wt_stream *stream)
{
    wt_pool_destroy(pool);
    wt_stream_destroy(stream);
}

void pool_fill_pattern(unsigned char *bytes, size_t count, int key)
{
    uint64_t seed = (uint64_t)key + 1;
    for (size_t n = 0; n < count; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[n] = (unsigned char)(seed >> 56);
    }
}

void pool_assert_pattern(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t count, int key)
{
    unsigned char *want = malloc(count), *got = calloc(1, count);
    pool_fill_pattern(want, count, key);
    assert_ok(wt_pool_download(pool, block, stream, 0, got, count));
    assert_ok(wt_stream_synchronize(stream));
    assert_memory_equal(want, got, count);
    free(want);
    free(got);
}

void pool_put_pattern(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t count, int key)
{
    unsigned char *bytes = malloc(count);
    pool_fill_pattern(bytes, count, key);
    assert_ok(wt_pool_upload(pool, block, stream, 0, bytes, count));
    assert_ok(wt_stream_synchronize(stream));
    free(bytes);
}
