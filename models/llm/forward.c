// The forward pass of all families, the same on both backends: which steps, in which order. ops_cpu.c and ops_cuda.c
// have the steps.
#include "llm_internal.h"

wt_status wt__llm_forward(wt_llm_session *s, int n_layers, float *logits, int n_logits)
{
    const wt__llm_ops *op = s->ops;
    wt__pass p = {.s = s, .n_logits = n_logits, .logits = logits};
    op->embed(&p); // x = embedding (+ position)
    for (int l = 0; l < n_layers; l++) {
        const wt__layer *w = &s->llm->layers[l];
        // x += Wo attend(rope(Wq n), rope(Wk n), Wv n), n = norm(x)
        op->qkv(&p, w);
        op->place(&p, l);
        op->attend(&p, l);
        op->project(&p, &w->o, s->a);
        // x += ffn(n), n = norm(x)
        if (w->experts) {
            op->mixture(&p, w);
        } else {
            op->gate(&p, w);
            op->project(&p, &w->down, s->up);
        }
    }
    if (n_logits) op->head(&p);
    return p.status;
}
