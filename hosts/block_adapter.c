// Input gathers in one block; when it is full it is processed and its output queued. After N frames in all, the queue
// has held latency + floor(N / B) * B - N frames, which is never negative at the end of a call when the latency is
// B - g: N is a multiple of g, so N mod B is at most B - g. Within a call pieces end where a block is full (N mod B =
// 0).
#include "block_adapter.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 64, MAX_BLOCK = 65536 };

struct block_adapter {
    block_adapter_config config;
    int divisor;        ///< g
    atomic_int latency; ///< block_frames - g; written by process, relaxed
    int n_gathered;
    int begin, n_queued; ///< of the queue, a ring of 2 * block_frames frames a channel
    float *memory;       ///< [channels][B] gathered | [out_channels][B] processed | [out_channels][2 B] queue
    const float *gathered[MAX_CHANNELS];
    float *processed[MAX_CHANNELS], *queue[MAX_CHANNELS];
};

wt_status block_adapter_create(const block_adapter_config *config, block_adapter **adapter)
{
    *adapter = NULL;
    if (config->channels < 1 || config->channels > MAX_CHANNELS || config->out_channels < 1 ||
        config->out_channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "block adapter: %d channels in, %d out, want 1..%d", config->channels,
                       config->out_channels, MAX_CHANNELS);
    if (config->block_frames < 1 || config->block_frames > MAX_BLOCK)
        return wt_fail(WT_ERR_BAD_ARG, "block adapter: blocks of %d frames, want 1..%d", config->block_frames,
                       MAX_BLOCK);
    const size_t block = (size_t)config->block_frames;
    block_adapter *a = calloc(1, sizeof *a);
    if (a) a->memory = calloc(block * (size_t)(config->channels + 3 * config->out_channels), sizeof *a->memory);
    if (!a || !a->memory) {
        block_adapter_destroy(a);
        return wt_fail(WT_ERR_NO_MEMORY, "block adapter: %d frames", config->block_frames);
    }
    a->config = *config;
    a->divisor = config->block_frames;
    float *next = a->memory;
    for (int c = 0; c < config->channels; c++, next += block) a->gathered[c] = next;
    for (int c = 0; c < config->out_channels; c++, next += block) a->processed[c] = next;
    for (int c = 0; c < config->out_channels; c++, next += 2 * block) a->queue[c] = next;
    *adapter = a;
    return WT_OK;
}

void block_adapter_destroy(block_adapter *adapter)
{
    if (!adapter) return;
    free(adapter->memory);
    free(adapter);
}

int block_adapter_latency_frames(const block_adapter *adapter)
{
    return atomic_load_explicit(&adapter->latency, memory_order_relaxed);
}

/// Queue n frames of `from`, or of silence.
static WT_RT void push(block_adapter *a, float *const *from, int n)
{
    const int size = 2 * a->config.block_frames, at = (a->begin + a->n_queued) % size;
    const int first = n < size - at ? n : size - at;
    for (int c = 0; c < a->config.out_channels; c++) {
        float *queue = a->queue[c];
        if (from) {
            memcpy(queue + at, from[c], sizeof(float) * (size_t)first);
            memcpy(queue, from[c] + first, sizeof(float) * (size_t)(n - first));
        } else {
            memset(queue + at, 0, sizeof(float) * (size_t)first);
            memset(queue, 0, sizeof(float) * (size_t)(n - first));
        }
    }
    a->n_queued += n;
}

static WT_RT void pop(block_adapter *a, float *const *to, int offset, int n)
{
    const int size = 2 * a->config.block_frames, first = n < size - a->begin ? n : size - a->begin;
    for (int c = 0; c < a->config.out_channels; c++) {
        memcpy(to[c] + offset, a->queue[c] + a->begin, sizeof(float) * (size_t)first);
        memcpy(to[c] + offset + first, a->queue[c], sizeof(float) * (size_t)(n - first));
    }
    a->begin = (a->begin + n) % size;
    a->n_queued -= n;
}

static WT_RT int common_divisor(int a, int b)
{
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

WT_RT void block_adapter_process(block_adapter *a, const float *const *in, float *const *out, int n_frames)
{
    const int block = a->config.block_frames;
    if (n_frames % a->divisor) {
        const int divisor = common_divisor(a->divisor, n_frames);
        push(a, NULL, a->divisor - divisor);
        a->divisor = divisor;
        atomic_store_explicit(&a->latency, block - divisor, memory_order_relaxed);
    }
    for (int done = 0, n; done < n_frames; done += n) {
        n = block - a->n_gathered < n_frames - done ? block - a->n_gathered : n_frames - done;
        for (int c = 0; c < a->config.channels; c++)
            memcpy(a->memory + (size_t)c * (size_t)block + a->n_gathered, in[c] + done, sizeof(float) * (size_t)n);
        a->n_gathered += n;
        if (a->n_gathered == block) {
            a->config.process(a->config.user, a->gathered, a->processed, block);
            push(a, a->processed, block);
            a->n_gathered = 0;
        }
        pop(a, out, done, n);
    }
}
