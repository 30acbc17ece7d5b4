/// For tests of memory pools: pools, blocks, and bytes in them.
#ifndef WT_POOL_CHECK_H
#define WT_POOL_CHECK_H

#include "device_check.h"

#include <warptone/pool.h>

enum { KB = 1024, MB = 1024 * 1024 };

wt_stream *pool_stream(wt_device *device);
wt_pool *pool_of(wt_device *device, wt_pool_config config);
wt_pool_block pool_block_of(wt_pool *pool, size_t size_bytes, wt_stream *stream);
wt_pool_stats pool_stats_of(wt_pool *pool);
bool pool_has_resident(wt_pool *pool, wt_pool_block block);
void pool_close(wt_pool *pool, wt_stream *stream);

/// Bytes that differ from block to block and do not repeat within one.
void pool_fill_pattern(unsigned char *bytes, size_t count, int key);
void pool_assert_pattern(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t count, int key);
void pool_put_pattern(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t count, int key);

#endif
