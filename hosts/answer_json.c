#include "answer_json.h"

#include <stdio.h>
#include <stdlib.h>

wt_status answer_json_begin(answer_json *answer, int n_top)
{
    *answer = (answer_json){.object = json_pack("{s:[], s:[]}", "ids", "logprobs")};
    answer->ids = json_object_get(answer->object, "ids");
    answer->logprobs = json_object_get(answer->object, "logprobs");
    if (n_top) json_object_set_new(answer->object, "top", answer->top = json_array());
    return answer->object && (answer->top || !n_top) ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "generate: an answer");
}

/// [[id, logprob], ...]
static json_t *most_probable(const wt_llm_pick *pick)
{
    json_t *all = json_array();
    for (int k = 0; k < pick->n_top; k++)
        json_array_append_new(all, json_pack("[i, f]", (int)pick->top_ids[k], (double)pick->top_logprobs[k]));
    return all;
}

void answer_json_add(answer_json *answer, const wt_generated *token)
{
    kept_text_add(&answer->said, token->text.answer, token->text.n_answer);
    kept_text_add(&answer->thought, token->text.thinking, token->text.n_thinking);
    if (token->id < 0) return;
    json_array_append_new(answer->ids, json_integer(token->id));
    json_array_append_new(answer->logprobs, json_real(token->logprob));
    if (answer->top) json_array_append_new(answer->top, most_probable(token->pick));
}

const char *answer_end_name(const wt_generation *report)
{
    return report->finish == WT_FINISH_CANCELLED ? "interrupted" : wt_finish_name(report->finish);
}

static void put_text(json_t *object, const char *key, const kept_text *t)
{
    json_t *value = json_stringn(t->at ? t->at : "", t->n);
    json_object_set_new(object, key, value ? value : json_null());
}

void answer_json_end(answer_json *answer, const wt_generation *report, bool thinking)
{
    put_text(answer->object, "text", &answer->said);
    if (thinking) put_text(answer->object, "thinking", &answer->thought);
    json_object_set_new(answer->object, "prompt_tokens", json_integer(report->n_prompt));
    json_object_set_new(answer->object, "tokens", json_integer(report->n_tokens));
    json_object_set_new(answer->object, "end", json_string(answer_end_name(report)));
}

void answer_json_print(const answer_json *answer)
{
    json_dumpf(answer->object, stdout, JSON_REAL_PRECISION(9));
    putchar('\n');
}

void answer_json_free(answer_json *answer)
{
    json_decref(answer->object);
    free(answer->said.at);
    free(answer->thought.at);
    *answer = (answer_json){0};
}
