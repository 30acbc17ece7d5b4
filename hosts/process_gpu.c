// Many files at once through one chain on the GPU: a slot is an instance of the chain with a file in it. Waves go
// through two sets of buffers, so that workers decode and encode one set while the GPU works on the other:
//
//   host      drain A, fill A | drain B, fill B | drain A, fill A | ...
//   up                        | copy A          | copy B          |
//   run                       |     chain A     |     chain B     |
//   down                      |         copy A  |         copy B  |
#include "process.h"
#include "interrupt.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 1024, MIN_CHUNK = 4096, MAX_CHUNK = 1 << 18, N_SETS = 2 };
static const size_t pinned_bytes = (size_t)128 << 20; // of all sets together

typedef struct slot {
    process_job job;
    bool busy, fresh; // fresh: the instance starts anew with the next span
    int n[N_SETS];    // frames of this slot in each set
} slot;

typedef struct buffer_set {
    wt_buffer *host_in, *host_out, *device_in, *device_out;
    wt_event *up, *ran, *down;
} buffer_set;

typedef struct group {
    process_run *run;
    int rate_hz, channels, out_channels;
    wt_chain *chain;
    slot *slots;
    int n_slots, chunk;
    buffer_set sets[N_SETS];
    wt_stream *up, *work, *down;
    wt_chain_job *jobs;
    int set; // of the present wave
    // items not yet taken, and those left for a later group; one lock, held for a few instructions
    pthread_mutex_t lock;
    int *pending, n_pending, at;
    int *later, n_later;
} group;

// ---- workers

typedef struct pool {
    group *group;
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    unsigned wave; // counts pool_run; workers wait until it moves
    int n_working; // workers still in the present wave
    pthread_t *threads;
    int n_threads;
    atomic_int next;
    bool stop;
} pool;

static void serve_slot(group *g, int k);

static void serve_all(pool *p)
{
    for (int k; (k = atomic_fetch_add(&p->next, 1)) < p->group->n_slots;) serve_slot(p->group, k);
}

static void *pool_work(void *user)
{
    pool *p = user;
    pthread_mutex_lock(&p->lock);
    for (unsigned seen = 0;; seen++) {
        while (p->wave == seen && !p->stop) pthread_cond_wait(&p->begun, &p->lock);
        if (p->stop) break;
        pthread_mutex_unlock(&p->lock);
        serve_all(p);
        pthread_mutex_lock(&p->lock);
        if (--p->n_working == 0) pthread_cond_signal(&p->ended);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void pool_run(pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->next, 0);
    p->n_working = p->n_threads;
    p->wave++;
    pthread_cond_broadcast(&p->begun);
    pthread_mutex_unlock(&p->lock);
    serve_all(p);
    pthread_mutex_lock(&p->lock);
    while (p->n_working) pthread_cond_wait(&p->ended, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

// As many of the wanted threads as can be had; the calling one works too.
static void pool_start(pool *p, group *g, int n_threads)
{
    *p = (pool){.group = g, .threads = calloc((size_t)n_threads, sizeof(pthread_t))};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->begun, NULL), pthread_cond_init(&p->ended, NULL);
    while (p->threads && p->n_threads < n_threads - 1 && !pthread_create(&p->threads[p->n_threads], NULL, pool_work, p))
        p->n_threads++;
}

static void pool_stop(pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->begun);
    pthread_mutex_unlock(&p->lock);
    for (int k = 0; k < p->n_threads; k++) pthread_join(p->threads[k], NULL);
    pthread_cond_destroy(&p->begun), pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
}

// ---- slots

static int take_pending(group *g)
{
    pthread_mutex_lock(&g->lock);
    int item = g->at < g->n_pending && !wt_interrupted() ? g->pending[g->at++] : -1;
    pthread_mutex_unlock(&g->lock);
    return item;
}

static void leave_for_later(group *g, int item)
{
    pthread_mutex_lock(&g->lock);
    g->later[g->n_later++] = item;
    pthread_mutex_unlock(&g->lock);
}

// Put the next file of this group's rate and channel count into the slot.
static void load_slot(group *g, slot *s)
{
    for (int item; !s->busy && (item = take_pending(g)) >= 0;) {
        wt_status status = process_job_open(&s->job, g->run->options, &g->run->items[item]);
        if (!status && (s->job.rate_hz != g->rate_hz || s->job.channels != g->channels)) {
            wt_audio_reader_close(s->job.reader);
            leave_for_later(g, item);
            continue;
        }
        if (!status) status = process_job_start(&s->job, g->chain);
        if (status)
            process_job_close(&s->job, g->run, status);
        else
            s->busy = s->fresh = true;
    }
}

static float *slot_audio(const group *g, const wt_buffer *buffer, int k, int channels)
{
    return (float *)wt_buffer_host(buffer) + (size_t)k * (size_t)channels * (size_t)g->chunk;
}

static void close_slot(group *g, slot *s, wt_status status)
{
    process_job_close(&s->job, g->run, status);
    s->busy = false;
    memset(s->n, 0, sizeof s->n);
}

// One slot's turn in a wave: take what came back, then give more.
static void serve_slot(group *g, int k)
{
    slot *s = &g->slots[k];
    buffer_set *set = &g->sets[g->set];
    wt_status status = WT_OK;
    if (s->n[g->set])
        status = process_job_drain(&s->job, slot_audio(g, set->host_out, k, g->out_channels), s->n[g->set],
                                   (size_t)g->chunk);
    s->n[g->set] = 0;
    if (s->busy && status) close_slot(g, s, status);
    if (!s->busy) load_slot(g, s);
    if (!s->busy) return;
    int64_t before = s->job.n_in;
    status = process_job_fill(&s->job, slot_audio(g, set->host_in, k, g->channels), g->chunk, (size_t)g->chunk,
                              &s->n[g->set]);
    atomic_fetch_add(&g->run->done_milliseconds, (s->job.n_in - before) * 1000 / g->rate_hz);
    if (status || (s->n[0] == 0 && s->n[1] == 0)) close_slot(g, s, status);
}

// ---- waves

static int gather_jobs(group *g)
{
    int n_jobs = 0;
    const buffer_set *set = &g->sets[g->set];
    const size_t in_bytes = sizeof(float) * (size_t)g->channels * (size_t)g->chunk;
    const size_t out_bytes = sizeof(float) * (size_t)g->out_channels * (size_t)g->chunk;
    for (int k = 0; k < g->n_slots; k++) {
        slot *s = &g->slots[k];
        if (!s->n[g->set]) continue;
        g->jobs[n_jobs++] = (wt_chain_job){
            .instance = k,
            .in = set->device_in,
            .in_offset = (size_t)k * in_bytes,
            .in_stride = g->chunk,
            .out = set->device_out,
            .out_offset = (size_t)k * out_bytes,
            .out_stride = g->chunk,
            .n_frames = s->n[g->set],
            .reset = s->fresh,
        };
        s->fresh = false;
    }
    return n_jobs;
}

static wt_status enqueue(group *g, int n_jobs)
{
    buffer_set *set = &g->sets[g->set];
    size_t used = (size_t)g->jobs[n_jobs - 1].instance + 1;
    size_t frames_bytes = sizeof(float) * used * (size_t)g->chunk;
    wt_status status = wt_stream_copy(g->up, set->device_in, 0, set->host_in, 0, frames_bytes * (size_t)g->channels);
    if (!status) status = wt_event_record(set->up, g->up);
    if (!status) status = wt_stream_wait(g->work, set->up);
    if (!status) status = wt_chain_enqueue(g->chain, g->work, g->jobs, n_jobs);
    if (!status) status = wt_event_record(set->ran, g->work);
    if (!status) status = wt_stream_wait(g->down, set->ran);
    if (!status)
        status = wt_stream_copy(g->down, set->host_out, 0, set->device_out, 0, frames_bytes * (size_t)g->out_channels);
    return status ? status : wt_event_record(set->down, g->down);
}

static bool any_busy(const group *g)
{
    for (int k = 0; k < g->n_slots; k++)
        if (g->slots[k].busy) return true;
    return false;
}

static wt_status run_waves(group *g, pool *p, void (*progress)(process_run *, void *), void *user)
{
    for (g->set = 0;; g->set = !g->set) {
        wt_status status = wt_event_synchronize(g->sets[g->set].down);
        if (status) return status;
        pool_run(p);
        progress(g->run, user);
        int n_jobs = gather_jobs(g);
        status = n_jobs ? enqueue(g, n_jobs) : WT_OK;
        if (status || !any_busy(g)) return status;
    }
}

// ---- groups

static wt_status make_set(group *g, wt_device *device, buffer_set *set)
{
    size_t in = sizeof(float) * (size_t)g->n_slots * (size_t)g->channels * (size_t)g->chunk;
    size_t out = sizeof(float) * (size_t)g->n_slots * (size_t)g->out_channels * (size_t)g->chunk;
    wt_status status = wt_buffer_create(device, WT_MEMORY_PINNED, in, &set->host_in);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_PINNED, out, &set->host_out);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, in, &set->device_in);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, out, &set->device_out);
    if (!status) status = wt_event_create(device, &set->up);
    if (!status) status = wt_event_create(device, &set->ran);
    return status ? status : wt_event_create(device, &set->down);
}

static int choose_chunk(const group *g)
{
    size_t frames =
        pinned_bytes / (sizeof(float) * N_SETS * (size_t)g->n_slots * (size_t)(g->channels + g->out_channels));
    frames -= frames % MIN_CHUNK;
    return frames < MIN_CHUNK ? MIN_CHUNK : frames > MAX_CHUNK ? MAX_CHUNK : (int)frames;
}

static wt_status open_group(group *g, const process_job *first)
{
    wt_device *device = g->run->options->device;
    g->rate_hz = first->rate_hz;
    g->channels = first->channels;
    g->n_slots = g->n_pending < MAX_SLOTS ? g->n_pending : MAX_SLOTS;
    g->slots = calloc((size_t)g->n_slots, sizeof *g->slots);
    g->jobs = calloc((size_t)g->n_slots, sizeof *g->jobs);
    if (!g->slots || !g->jobs) return wt_fail(WT_ERR_NO_MEMORY, "process: %d slots", g->n_slots);
    wt_status status = process_build_chain(g->run->options, g->rate_hz, g->channels, g->n_slots, 0, &g->chain);
    if (status) return status;
    g->out_channels = wt_chain_out_channels(g->chain);
    g->chunk = choose_chunk(g);
    for (int k = 0; k < N_SETS && !status; k++) status = make_set(g, device, &g->sets[k]);
    if (!status) status = wt_stream_create(device, NULL, &g->up);
    if (!status) status = wt_stream_create(device, NULL, &g->work);
    return status ? status : wt_stream_create(device, NULL, &g->down);
}

static void close_group(group *g, wt_status status)
{
    for (int k = 0; g->slots && k < g->n_slots; k++)
        if (g->slots[k].busy) close_slot(g, &g->slots[k], status);
    wt_stream_destroy(g->up), wt_stream_destroy(g->work), wt_stream_destroy(g->down);
    for (int k = 0; k < N_SETS; k++) {
        wt_buffer_destroy(g->sets[k].host_in), wt_buffer_destroy(g->sets[k].host_out);
        wt_buffer_destroy(g->sets[k].device_in), wt_buffer_destroy(g->sets[k].device_out);
        wt_event_destroy(g->sets[k].up), wt_event_destroy(g->sets[k].ran), wt_event_destroy(g->sets[k].down);
    }
    wt_chain_destroy(g->chain);
    free(g->slots), free(g->jobs);
    g->up = g->work = g->down = NULL;
    memset(g->sets, 0, sizeof g->sets);
    g->chain = NULL, g->slots = NULL, g->jobs = NULL;
}

// The group of the first pending file that can be opened: its files are processed, others stay in `later`.
static wt_status run_group(group *g, void (*progress)(process_run *, void *), void *user)
{
    process_job first;
    for (; g->at < g->n_pending; g->at++) {
        wt_status status = process_job_open(&first, g->run->options, &g->run->items[g->pending[g->at]]);
        if (!status) break;
        process_job_close(&first, g->run, status);
    }
    if (g->at == g->n_pending) return WT_OK;
    wt_audio_reader_close(first.reader);
    int n_jobs = g->run->options->n_jobs;
    pool p;
    wt_status status = open_group(g, &first);
    if (status) { // a chain that does not fit this file may fit others
        first.reader = NULL;
        process_job_close(&first, g->run, status);
        for (g->at++; g->at < g->n_pending; g->at++) g->later[g->n_later++] = g->pending[g->at];
        close_group(g, status);
        return status == WT_ERR_DEVICE_LOST ? status : WT_OK;
    }
    pool_start(&p, g, n_jobs > 0 ? n_jobs : 1);
    status = run_waves(g, &p, progress, user);
    pool_stop(&p);
    close_group(g, status);
    return status;
}

wt_status process_on_gpu(process_run *run, void (*progress)(process_run *run, void *user), void *user)
{
    size_t n = (size_t)run->n_items + 1;
    group g = {.run = run, .pending = calloc(n, sizeof(int)), .later = calloc(n, sizeof(int))};
    wt_status status = g.pending && g.later ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "process: %d files", run->n_items);
    pthread_mutex_init(&g.lock, NULL);
    for (int k = 0; k < run->n_items && !status; k++)
        if (run->items[k].skipped)
            atomic_fetch_add(&run->n_done, 1);
        else
            g.pending[g.n_pending++] = k;
    while (g.n_pending && !status && !wt_interrupted()) {
        status = run_group(&g, progress, user);
        int *spare = g.pending;
        g.pending = g.later, g.n_pending = g.n_later, g.later = spare;
        g.at = g.n_later = 0;
    }
    pthread_mutex_destroy(&g.lock);
    free(g.pending), free(g.later);
    return status;
}
