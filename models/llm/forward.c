// The forward pass of all families, the same on both backends: which steps, in which order. ops_cpu.c and ops_cuda.c
// have the steps.
#include "llm_internal.h"

static wt_status pass(wt__pass *p, int n_layers)
{
    const wt_llm_session *s = p->s;
    const wt__llm_ops *op = s->ops;
    op->embed(p); // x = embedding (+ position)
    for (int l = 0; l < n_layers; l++) {
        const wt__layer *w = &s->llm->layers[l];
        // x += Wo attend(rope(Wq n), rope(Wk n), Wv n), n = norm(x)
        op->qkv(p, w);
        op->place(p, l);
        op->attend(p, l);
        op->project(p, &w->o, s->a);
        // x += ffn(n), n = norm(x)
        if (w->experts) {
            op->mixture(p, w);
        } else {
            op->gate(p, w);
            op->project(p, &w->down, s->up);
        }
    }
    if (p->n_logits) op->head(p);
    return p->status;
}

wt_status wt__llm_forward(wt_llm_session *s, int n_layers, float *logits, int n_logits)
{
    wt__pass p = {.s = s, .n_logits = n_logits, .logits = logits};
    if (s->ops->at_once && s->ops->at_once(&p, n_layers)) return p.status;
    return pass(&p, n_layers);
}

wt_status wt__llm_collect(wt_llm_session *s, float *logits, struct wt__phases *phases)
{
    wt__pass p = {.s = s, .n_logits = 1, .logits = logits, .phases = phases};
    return pass(&p, s->llm->config.n_layers);
}
