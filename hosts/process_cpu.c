#include "process.h"
#include "crew.h"
#include "interrupt.h"

#include <stdlib.h>

enum { BLOCK = 4096 };

// A worker keeps the chain of the last rate and channel count it met: files of a batch are mostly alike.
typedef struct worker {
    process_run *run;
    int number;
    wt_chain *chain;
    int rate_hz, channels;
    float *in, *out; // [WT_AUDIO_MAX_CHANNELS][BLOCK]
} worker;

static wt_status fit_chain(worker *w, const process_job *job)
{
    if (w->chain && w->rate_hz == job->rate_hz && w->channels == job->channels) return wt_chain_reset(w->chain, 0);
    wt_chain_destroy(w->chain);
    w->rate_hz = job->rate_hz;
    w->channels = job->channels;
    wt_status status = process_build_chain(w->run->options, job->rate_hz, job->channels, 1, w->number, &w->chain);
    return status ? status : wt_chain_reset(w->chain, 0); // a change of --set is there from the first frame
}

static wt_status run_blocks(worker *w, process_job *job)
{
    const float *in[WT_AUDIO_MAX_CHANNELS];
    float *out[WT_AUDIO_MAX_CHANNELS];
    for (int c = 0; c < WT_AUDIO_MAX_CHANNELS; c++) in[c] = w->in + c * BLOCK, out[c] = w->out + c * BLOCK;
    for (;;) {
        int n;
        int64_t before = job->n_in;
        wt_status status = process_job_fill(job, w->in, BLOCK, BLOCK, &n);
        if (status || n == 0) return status;
        if ((status = wt_chain_process(w->chain, in, out, n))) return wt_fail(status, "%s: chain", job->item->input);
        if ((status = process_job_drain(job, w->out, n, BLOCK))) return status;
        atomic_fetch_add(&w->run->done_milliseconds, (job->n_in - before) * 1000 / job->rate_hz);
    }
}

static void run_item(worker *w, process_item *item)
{
    process_job job;
    wt_status status = process_job_open(&job, w->run->options, item);
    if (!status) status = fit_chain(w, &job);
    if (!status) status = process_job_start(&job, w->chain);
    if (!status) status = run_blocks(w, &job);
    process_job_close(&job, w->run, status);
}

static void work(void *user, int number)
{
    worker *w = (worker *)user + number;
    for (int k; !wt_interrupted() && (k = atomic_fetch_add(&w->run->next, 1)) < w->run->n_items;)
        if (!w->run->items[k].skipped) run_item(w, &w->run->items[k]);
        else atomic_fetch_add(&w->run->n_done, 1);
}

static wt_status prepare(worker *w, process_run *run, int number)
{
    w->run = run;
    w->number = number;
    w->in = malloc(sizeof(float) * WT_AUDIO_MAX_CHANNELS * BLOCK);
    w->out = malloc(sizeof(float) * WT_AUDIO_MAX_CHANNELS * BLOCK);
    return w->in && w->out ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "process: buffers of %d workers", number + 1);
}

typedef struct ticker {
    process_run *run;
    void (*progress)(process_run *run, void *user);
    void *user;
} ticker;

static void tick(void *user)
{
    ticker *t = user;
    t->progress(t->run, t->user);
}

wt_status process_on_cpu(process_run *run, void (*progress)(process_run *run, void *user), void *user)
{
    int n = run->options->n_jobs;
    if (n > run->n_items) n = run->n_items;
    worker *workers = calloc((size_t)n, sizeof *workers);
    wt_status status = workers ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "process: %d workers", n);
    for (int k = 0; k < n && !status; k++) status = prepare(&workers[k], run, k);
    if (!status) status = wt__crew_run("process", n, work, workers, tick, &(ticker){run, progress, user});
    for (int k = 0; k < n && workers; k++) {
        wt_chain_destroy(workers[k].chain);
        free(workers[k].in), free(workers[k].out);
    }
    free(workers);
    return status;
}
