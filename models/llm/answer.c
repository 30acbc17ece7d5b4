// From tokens to what is told of an answer, and where it ends.
#include "answer.h"
#include "../tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

const char *wt_finish_name(wt_finish finish)
{
    static const char *const names[] = {[WT_FINISH_LENGTH] = "length",
                                        [WT_FINISH_EOS] = "eos",
                                        [WT_FINISH_STOP] = "stop",
                                        [WT_FINISH_CONTEXT] = "context",
                                        [WT_FINISH_CANCELLED] = "cancelled"};
    return (unsigned)finish <= WT_FINISH_CANCELLED ? names[finish] : "unknown";
}

wt_status wt__answer_fits(const char *who, const wt_llm *llm, const wt_tokenizer *tokenizer)
{
    const int n = llm->config.vocab_size;
    const int32_t id = tokenizer ? wt__tok_beyond(tokenizer, n) : -1;
    if (id < 0) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "%s: the tokenizer's token %d, \"%.40s\", is none of the model's, want 0..%d", who,
                   (int)id, wt_tokenizer_token(tokenizer, id), n - 1);
}

wt_status wt__answer_create(wt__answer *a, const wt_answer_text_config *text)
{
    a->ids = calloc((size_t)a->n_positions, sizeof *a->ids);
    if (!a->ids) return wt_fail(WT_ERR_NO_MEMORY, "generate: %d positions", a->n_positions);
    return wt_answer_text_create(text ? text : &(wt_answer_text_config){0}, &a->text);
}

void wt__answer_destroy(wt__answer *a)
{
    wt_detokenizer_destroy(a->stream);
    wt_answer_text_destroy(a->text);
    free(a->ids);
}

wt_status wt__answer_begin(wt__answer *a, bool starts_thinking, int n)
{
    a->report = (wt_generation){.n_prompt = n};
    a->ended = false;
    wt_answer_text_begin(a->text, starts_thinking);
    wt_detokenizer_destroy(a->stream);
    a->stream = NULL;
    if (n < 1 || n >= a->n_positions)
        return wt_fail(n < 1 ? WT_ERR_BAD_ARG : WT_ERR_FULL, "generate: a prompt of %d tokens, want 1..%d", n,
                       a->n_positions - 1);
    return a->tokenizer ? wt_detokenizer_create(a->tokenizer, true, &a->stream) : WT_OK;
}

void wt__answer_end(wt__answer *a, wt_finish finish)
{
    if (!a->ended) a->report.finish = finish;
    a->ended = true;
}

static const char *piece_of(const wt__answer *a, int32_t id, size_t *length)
{
    *length = 0;
    if (a->vocab) return wt_llama2c_piece(a->vocab, a->n_ids ? a->ids[a->n_ids - 1] : -1, id, length);
    const char *piece = a->stream ? wt_detokenizer_push(a->stream, id) : "";
    *length = strlen(piece);
    return piece;
}

static void tell(wt__answer *a, const wt_generated *token)
{
    if (a->on_token && !a->on_token(a->user, token)) wt__answer_end(a, WT_FINISH_CANCELLED);
    if (token->text.stopped) wt__answer_end(a, WT_FINISH_STOP);
}

wt_status wt__answer_take(wt__answer *a, const wt_llm_pick *pick)
{
    if (!a->ignore_eos && wt_llm_ends(a->llm, pick->id)) {
        wt__answer_end(a, WT_FINISH_EOS);
        return WT_OK;
    }
    wt_generated token = {.id = pick->id, .logprob = pick->logprob, .pick = pick};
    size_t length;
    const char *piece = piece_of(a, pick->id, &length);
    wt_status status = wt_answer_text_push(a->text, piece, length, &token.text);
    if (status) return status;
    a->ids[a->n_ids++] = pick->id;
    a->report.n_tokens++;
    tell(a, &token);
    if (a->max_tokens && a->report.n_tokens >= a->max_tokens) wt__answer_end(a, WT_FINISH_LENGTH);
    if (a->n_ids >= a->n_positions && !a->goes_on) wt__answer_end(a, WT_FINISH_CONTEXT);
    return WT_OK;
}

wt_status wt__answer_tell_rest(wt__answer *a)
{
    wt_generated token = {.id = -1};
    const char *rest = a->stream ? wt_detokenizer_flush(a->stream) : "";
    wt_answer_part first;
    wt_status status = wt_answer_text_push(a->text, rest, strlen(rest), &first);
    if (status) return status;
    token.text = first;
    if (first.n_thinking + first.n_answer) tell(a, &token);
    wt_answer_text_flush(a->text, &token.text);
    if (token.text.n_thinking + token.text.n_answer) tell(a, &token);
    return WT_OK;
}
