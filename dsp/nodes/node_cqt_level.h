// Text of each level (simd_levels.inc): the notes' poles, a vector of notes after the other.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "node_cqt_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(notes)
#    define AT(x) (*(VEC *)((x) + note))
#    define OF(x) (*(const VEC *)((x) + note))

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

static void WT_LEVEL(run_notes)(const node_cqt_plan *p, node_cqt_state *s, const float *x, int n)
{
    for (int note = 0; note < CQT_LANES; note += WT_LEVEL_BYTES / 4) {
        const VEC a = OF(p->pole_re), b = OF(p->pole_im), gain = OF(p->gain);
        VEC re[CQT_STAGES], im[CQT_STAGES];
        for (int k = 0; k < CQT_STAGES; k++) re[k] = AT(s->re[k]), im[k] = AT(s->im[k]);
        for (int i = 0; i < n; i++) {
#    pragma GCC unroll 4
            for (int k = CQT_STAGES - 1; k > 0; k--) {
                const VEC r = re[k];
                re[k] = a * r - b * im[k] + re[k - 1];
                im[k] = a * im[k] + b * r + im[k - 1];
            }
            const VEC r = re[0];
            re[0] = a * r - b * im[0] + gain * x[i];
            im[0] = a * im[0] + b * r;
        }
        for (int k = 0; k < CQT_STAGES; k++) AT(s->re[k]) = re[k], AT(s->im[k]) = im[k];
    }
}

#    undef VEC
#    undef AT
#    undef OF
#endif
