// A sequence's keys and values as bytes of the host, and back: a head, then each page's keys and values.
#include "gpu.h"

#include <string.h>

typedef struct saved_head {
    char magic[8];
    int32_t dtype, page, n_layers, n_kv_heads, d_head; // what the pages are made of
    int32_t position, rope_length;
} saved_head;

static saved_head head_of(const wt_llm_session *s)
{
    const wt_model_config *c = &s->llm->config;
    return (saved_head){.magic = {'w', 't', 'l', 'l', 'm', 'k', 'v', '1'},
                        .dtype = (int32_t)s->kv_type,
                        .page = WT__LLM_PAGE,
                        .n_layers = c->n_layers,
                        .n_kv_heads = c->n_kv_heads,
                        .d_head = c->d_head,
                        .position = s->position,
                        .rope_length = s->rope_length};
}

static int pages_of(int n_positions) { return (n_positions + WT__LLM_PAGE - 1) / WT__LLM_PAGE; }

static wt_pool_arena *arena_of(const wt_llm_session *s) { return s->gpu ? s->gpu->arena : s->memory; }

static size_t bytes_of(const wt_llm_session *s, int n_positions)
{
    return sizeof(saved_head) + 2 * wt__cache_bytes(s, pages_of(n_positions));
}

size_t wt_llm_session_saved_bytes(const wt_llm_session *session) { return bytes_of(session, session->position); }

/// Where keys (k 0) and values (k 1) of the sequence's page are, on the device.
static uintptr_t address_of(const wt_llm_session *s, int page, int k)
{
    const uintptr_t both[] = {(uintptr_t)s->keys, (uintptr_t)s->values};
    return both[k] + wt__cache_bytes(s, 1) * (size_t)s->pages[(int64_t)s->sequence * s->n_pages + page];
}

/// What lies behind the last position was somebody else's.
static void clear_rest(const wt_llm_session *s, unsigned char *page)
{
    const wt_model_config *c = &s->llm->config;
    const size_t row = wt_dtype_bytes(s->kv_type, c->d_head), n_used = (size_t)(s->position % WT__LLM_PAGE);
    for (int k = 0; k < c->n_layers * c->n_kv_heads && n_used; k++, page += row * WT__LLM_PAGE)
        memset(page + row * n_used, 0, row * (WT__LLM_PAGE - n_used));
}

wt_status wt_llm_session_save(wt_llm_session *session, void *out, size_t out_bytes)
{
    wt_llm_session *s = session;
    const size_t wanted = wt_llm_session_saved_bytes(s), bytes = wt__cache_bytes(s, 1);
    const int n_pages = pages_of(s->position);
    const saved_head head = head_of(s);
    unsigned char *at = (unsigned char *)out + sizeof head;
    if (out_bytes < wanted)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %zu bytes to save %d tokens to, want %zu", out_bytes, s->position, wanted);
    memcpy(out, &head, sizeof head);
    wt_status status = WT_OK;
    for (int i = 0; i < 2 * n_pages && !status; i++, at += bytes)
        status = wt_pool_arena_download(arena_of(s), s->stream, address_of(s, i / 2, i % 2), at, bytes);
    const wt_status ran = wt_stream_synchronize(s->stream);
    for (int k = 1; k <= 2 && n_pages; k++) clear_rest(s, (unsigned char *)out + wanted - (size_t)k * bytes);
    return status ? status : ran;
}

static wt_status check_head(const wt_llm_session *s, const saved_head *head, size_t bytes)
{
    saved_head own = head_of(s);
    own.position = head->position, own.rope_length = head->rope_length;
    if (memcmp(head->magic, own.magic, sizeof own.magic))
        return wt_fail(WT_ERR_FORMAT, "llm: these bytes are no saved sequence");
    if (memcmp(head, &own, sizeof own))
        return wt_fail(
            WT_ERR_FORMAT,
            "llm: saved keys of %d layers of %d heads of %d, type %d, pages of %d, want %d of %d of %d, %d, %d",
            head->n_layers, head->n_kv_heads, head->d_head, head->dtype, head->page, own.n_layers, own.n_kv_heads,
            own.d_head, own.dtype, own.page);
    if (head->position < 0 || head->position > s->n_positions || head->rope_length < 0)
        return wt_fail(WT_ERR_FULL, "llm: %d saved tokens, the session has room for %d", head->position,
                       s->n_positions);
    if (bytes != bytes_of(s, head->position))
        return wt_fail(WT_ERR_FORMAT, "llm: %zu bytes of %d saved tokens, want %zu", bytes, head->position,
                       bytes_of(s, head->position));
    return WT_OK;
}

/// Pages that would be free if the sequence had none.
static int pages_free(const wt_llm_session *s)
{
    int n = s->pool.n_free;
    for (int k = 0; k < s->pool.held[s->sequence]; k++)
        n += s->pool.uses[s->pages[(int64_t)s->sequence * s->n_pages + k]] == 1;
    return n;
}

wt_status wt_llm_session_load(wt_llm_session *session, const void *in, size_t in_bytes)
{
    wt_llm_session *s = session;
    const size_t bytes = wt__cache_bytes(s, 1);
    const unsigned char *at = (const unsigned char *)in + sizeof(saved_head);
    saved_head head = {.position = 0};
    if (in_bytes >= sizeof head) memcpy(&head, in, sizeof head);
    wt_status status = check_head(s, &head, in_bytes);
    if (!status && pages_of(head.position) > pages_free(s))
        status = wt_fail(WT_ERR_FULL, "llm: %d saved tokens, %d positions are free", head.position,
                         pages_free(s) * WT__LLM_PAGE);
    if (status) return status;
    s->position = 0, s->has_logits = false;
    wt__pages_trim(s, s->sequence, 0);
    status = wt__pages_own(s, s->sequence, 0, head.position);
    for (int i = 0; i < 2 * pages_of(head.position) && !status; i++, at += bytes)
        status = wt_pool_arena_upload(arena_of(s), s->stream, address_of(s, i / 2, i % 2), at, bytes);
    const wt_status ran = wt_stream_synchronize(s->stream);
    if (!status) status = ran;
    if (status) return status; // the sequence has no tokens
    s->position = head.position, s->rope_length = head.rope_length;
    return WT_OK;
}
