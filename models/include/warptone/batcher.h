/// Many requests at one session: those that wait are taken up as sequences and pages of the cache become free, a step
/// takes one token of each that is under way, and each ends by itself (continuous batching; Yu et al., Orca, 2022).
///
///     wt_batcher_create(&(wt_batcher_config){.session = session, .tokenizer = tokenizer}, &batcher);
///     wt_batcher_submit(batcher, &(wt_request){.prompt = ids, .n_prompt = n, .on_token = show, .on_end = done}, &id);
///     while (!wt_batcher_step(batcher, &n_left) && n_left) continue;
#ifndef WARPTONE_BATCHER_H
#define WARPTONE_BATCHER_H

#include <warptone/generate.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_batcher wt_batcher;

typedef struct wt_batcher_config {
    wt_llm_session *session;       ///< of any number of sequences, empty; the batcher's alone until destroy
    const wt_tokenizer *tokenizer; ///< borrowed; NULL = no text, or
    const wt_llama2c_vocab *vocab; ///< borrowed
    int max_requests;              ///< that wait or are under way; 0 = 256
    bool no_sharing;               ///< beginnings that prompts have in common are computed for each
} wt_batcher_config;

typedef struct wt_request {
    const int32_t *prompt;             ///< [n_prompt] copied
    int n_prompt;                      ///< 1 .. positions of a sequence - 1
    const wt_sampler_config *sampling; ///< copied; NULL = the most probable tokens
    int max_tokens;                    ///< of the answer; 0 = as many as a sequence has room for
    bool ignore_eos;
    bool logprobs;
    int n_top;                         ///< most probable tokens told with each, 0 .. WT_LLM_MOST_TOP
    const wt_answer_text_config *text; ///< stop strings, thinking; copied; NULL = {0}
    /// Gets each token, in the thread of wt_batcher_step; false ends the answer. NULL = none.
    bool (*on_token)(void *user, const wt_generated *token);
    /// Told once of each request that was submitted, there too: how it went, or with a status other than WT_OK what
    /// went wrong with it (wt_last_error has the sentence). prefill_s and decode_s are the time from being taken up to
    /// the first token, and from there on. May submit others. NULL = none.
    void (*on_end)(void *user, wt_status status, const wt_generation *report);
    void *user;
} wt_request;

/// Errors: WT_ERR_BAD_ARG (max_requests, a session that has tokens, a tokenizer with others than the model's),
/// WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_batcher_create(const wt_batcher_config *config, wt_batcher **batcher);
/// Requests that are left are not told of. NULL is allowed.  [worker]
void wt_batcher_destroy(wt_batcher *batcher);

/// Queue a request; `id` (NULL = not wanted) names it for wt_batcher_cancel. They are taken up in this order, each when
/// a sequence is free and the cache has pages for its prompt and max_tokens, besides those that the ones under way may
/// still take: nothing that was begun runs out of pages. Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_FULL
/// (max_requests, a prompt too long, more pages than there are), WT_ERR_NO_MEMORY, those of the sampler and the text.
/// [worker, any thread]
WT_CHECKED wt_status wt_batcher_submit(wt_batcher *batcher, const wt_request *request, uint64_t *id);

/// A request ends before the next step, waiting or not; one that has ended is passed over.  [any]
void wt_batcher_cancel(wt_batcher *batcher, uint64_t id);

/// Take up what there is room for, take a batch of one prompt, and one token of each sequence that is past its prompt.
/// `n_left` gets the requests that wait or are under way. What a prompt has in common with tokens that are still in the
/// cache, of requests under way or ended, is not computed again. Errors: those of wt_llm_prefill and wt_llm_step that
/// are not one request's alone: all that are under way have then ended with it.  [worker, one thread at a time]
WT_CHECKED wt_status wt_batcher_step(wt_batcher *batcher, int *n_left);

#ifdef __cplusplus
}
#endif
#endif
