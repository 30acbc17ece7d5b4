/// Attention over a session's cache.
#ifndef WT_LLM_ATTENTION_H
#define WT_LLM_ATTENTION_H

#include "llm_internal.h"

typedef struct wt__attention {
    const wt_llm_session *session;
    int layer;
} wt__attention;

/// The heads that share one head of keys and values, for one token of the batch: session->q to session->a.
void wt__attend(const wt__attention *attention, int token, int kv_head);

#endif
