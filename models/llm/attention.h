/// Attention over a session's cache, on the CPU.
#ifndef WT_LLM_ATTENTION_H
#define WT_LLM_ATTENTION_H

#include "llm_internal.h"

enum { WT__CACHE_MAX_DIMS = 1024 }; ///< of a head

typedef struct wt__attention {
    const wt_llm_session *session;
    int layer;
} wt__attention;

/// Where the cache has the keys (or values) of a position, in elements; those of a page follow.
static inline int64_t wt__cache_at(const wt__attention *a, int sequence, int position, int kv_head)
{
    const wt_llm_session *s = a->session;
    const wt_model_config *c = &s->llm->config;
    const int64_t page = s->pages[sequence * s->n_pages + position / WT__LLM_PAGE];
    return (((page * c->n_layers + a->layer) * c->n_kv_heads + kv_head) * WT__LLM_PAGE + position % WT__LLM_PAGE) *
           c->d_head;
}

/// `n` elements of the cache of keys or values from `at` on, as they are or widened to `scratch`.
static inline const float *wt__cache_read(const wt_llm_session *s, const void *cache, int64_t at, int n, float *scratch)
{
    if (s->kv_type == WT_DTYPE_F32) return (const float *)cache + at;
    wt_tensor_to_f32(&(wt_tensor){.data = cache, .dtype = s->kv_type}, at, n, scratch);
    return scratch;
}
void wt__cache_write(const wt_llm_session *session, void *cache, int64_t at, int n, const float *x);

/// Tokens that a call of wt__attend takes at most: few where there are few, so that all threads have some.
int wt__attend_tokens(const wt_llm_session *session);
/// The heads that share one head of keys and values, for some tokens of the batch: session->q to session->a.
void wt__attend(const wt__attention *attention, int token, int n_tokens, int kv_head);

#endif
