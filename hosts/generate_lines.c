#include "generate_lines.h"

#include "answer_json.h"
#include "interrupt.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/batcher.h>
#include <warptone/clock.h>

enum { MAX_REQUESTS = 256 };

typedef struct line_answer {
    struct run *run;
    answer_json json;
    uint64_t request;
    int line; ///< 0 = the place is free
} line_answer;

typedef struct run {
    const lines_config *config;
    wt_batcher *batcher;
    int32_t *ids; ///< [n_positions]
    line_answer answers[MAX_REQUESTS];
    int n_under_way, n_answers, n_refused;
    long n_tokens;
} run;

static bool show(void *user, const wt_generated *token)
{
    answer_json_add(&((line_answer *)user)->json, token);
    return true;
}

/// The answer, or the sentence that says why there is none.
static void finish(void *user, wt_status status, const wt_generation *report)
{
    line_answer *a = user;
    run *r = a->run;
    json_object_set_new(a->json.object, "line", json_integer(a->line));
    if (status) {
        json_object_set_new(a->json.object, "error", json_string(wt_last_error()));
        r->n_refused++;
    } else {
        answer_json_end(&a->json, report, r->config->split_thinking);
        json_object_set_new(a->json.object, "timings",
                            json_pack("{s:f, s:f}", "prefill_s", report->prefill_s, "decode_s", report->decode_s));
        r->n_answers++;
        r->n_tokens += report->n_tokens;
    }
    answer_json_print(&a->json);
    fflush(stdout);
    answer_json_free(&a->json);
    a->line = 0;
    r->n_under_way--;
}

static wt_status submit(run *r, const char *text, size_t length, line_answer *answer)
{
    const lines_config *c = r->config;
    const language_model *m = c->model;
    const wt_answer_text_config split = {
        .stops = c->options->stops.at, .n_stops = c->options->stops.n, .split_thinking = c->split_thinking};
    int n;
    wt_status status = language_model_encode(m, text, length, true, r->ids, m->n_positions - 1, &n);
    if (status) return status;
    return wt_batcher_submit(r->batcher,
                             &(wt_request){.prompt = r->ids,
                                           .n_prompt = n,
                                           .sampling = &m->sampling,
                                           .max_tokens = m->max_tokens,
                                           .ignore_eos = c->options->ignore_eos,
                                           .logprobs = true,
                                           .n_top = c->n_top,
                                           .text = &split,
                                           .on_token = show,
                                           .on_end = finish,
                                           .user = answer},
                             &answer->request);
}

/// A line that is refused is told like an answer. There is a free place.
static wt_status take_line(run *r, const char *text, size_t length, int line)
{
    line_answer *a = r->answers;
    while (a->line) a++;
    wt_status status = answer_json_begin(&a->json, r->config->n_top);
    if (status) return status;
    a->run = r;
    a->line = line;
    r->n_under_way++;
    status = submit(r, text, length, a);
    if (status) finish(a, status, NULL);
    return status == WT_ERR_NO_MEMORY ? status : WT_OK;
}

static void cancel_all(run *r)
{
    for (int k = 0; k < MAX_REQUESTS; k++)
        if (r->answers[k].line) wt_batcher_cancel(r->batcher, r->answers[k].request);
}

static wt_status answer_all(run *r)
{
    const char *at = r->config->text, *end = at + r->config->length;
    wt_status status = WT_OK;
    for (int line = 1, n_left; !status && (at < end || r->n_under_way);) {
        if (wt_interrupted()) {
            cancel_all(r);
            at = end;
        }
        for (; at < end && r->n_under_way < MAX_REQUESTS && !status; line++) {
            const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
            if (stop > at) status = take_line(r, at, (size_t)(stop - at), line);
            at = newline ? newline + 1 : end;
        }
        if (!status) status = wt_batcher_step(r->batcher, &n_left);
    }
    return status;
}

wt_status generate_lines(const lines_config *config, int *n_refused)
{
    static run r; // 256 answers
    r = (run){.config = config};
    const language_model *m = config->model;
    wt_status status = wt_batcher_create(
        &(wt_batcher_config){
            .session = m->session, .tokenizer = m->tokenizer, .vocab = m->vocab, .max_requests = MAX_REQUESTS},
        &r.batcher);
    if (!status && !(r.ids = calloc((size_t)m->n_positions, sizeof *r.ids)))
        status = wt_fail(WT_ERR_NO_MEMORY, "generate: %d tokens", m->n_positions);
    const int64_t begin = wt_clock_now_ns(NULL);
    if (!status) status = answer_all(&r);
    const double s = (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
    wt_batcher_destroy(r.batcher);
    for (int k = 0; k < MAX_REQUESTS; k++) answer_json_free(&r.answers[k].json); // after an error
    free(r.ids);
    if (!status)
        fprintf(stderr, "%d answers, %ld tokens, %d lines refused; loading %.2f s, answers %.2f s (%.1f tok/s)\n",
                r.n_answers, r.n_tokens, r.n_refused, m->load_s, s, s > 0 ? (double)r.n_tokens / s : 0);
    *n_refused = r.n_refused;
    return status;
}
