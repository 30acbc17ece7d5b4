/// What the steps on a GPU have in common (ops_cuda*.c).
#ifndef WT_LLM_OPS_CUDA_H
#define WT_LLM_OPS_CUDA_H

#include "gpu.h"

enum {
    WT__GPU_THREADS = 256,   ///< of most kernels' blocks
    WT__GPU_CLUSTER_SMS = 16 ///< fewer have no room for every cluster
};

/// Unless the pass has failed.
void wt__gpu_launch(wt__pass *pass, int kernel, wt_launch shape, const void *args, size_t bytes);

static inline int wt__gpu_type(wt_dtype t)
{
    return t == WT_DTYPE_F16 ? WT_LLM_F16 : t == WT_DTYPE_BF16 ? WT_LLM_BF16 : WT_LLM_F32;
}

static inline const void *wt__gpu_io(const wt__pass *p, size_t at)
{
    return (const void *)(p->s->gpu->io_address + at);
}

static inline const wt_llm_token *wt__gpu_tokens(const wt__pass *p) { return wt__gpu_io(p, p->s->gpu->tokens_at); }

/// n rows of x to s->n, in the type that the products take.
void wt__gpu_normalise(wt__pass *pass, const wt__norm *norm, const float *x, int n, wt_dtype type);

/// Tokens of one sequence whose bits are to be those of each alone.
static inline bool wt__gpu_is_alike(const wt_llm_session *s)
{
    return s->exact_guesses && s->is_prompt && s->n_tokens <= WT__LLM_ALIKE;
}

/// Do vectors come with what 16 bits leave of them? Of a few tokens of one sequence, so that what is verified together
/// is, but for the order of sums, what single steps would give.
static inline bool wt__gpu_in_two_parts(const wt_llm_session *s, wt_dtype type)
{
    return s->is_prompt && !s->exact_guesses && !s->rough_guesses && s->n_tokens <= WT__LLM_ALIKE &&
           type != WT_DTYPE_F32;
}

// ---- products of one vector (ops_cuda_vector.c)

/// Is `w` times n vectors one of them?
bool wt__gpu_by_vector(const wt_llm_session *session, const wt__linear *w, int n);
/// Of the vectors that `w` is multiplied with: its own type, 16 bits for smaller ones.
wt_dtype wt__gpu_input_type(const wt_llm_session *session, const wt__linear *w, int n);
wt_llm_part wt__gpu_vector_part(const wt__linear *w, float *out);
/// Queue it: what `args` says but columns and norms. `norm`: of the vector before; NULL = none.
void wt__gpu_multiply_vector(wt__pass *pass, const wt__linear *w, wt_llm_matvec_args args, const wt__norm *norm);
/// How the pass's tokens choose their experts.
wt_llm_choose_args wt__gpu_choice(const wt__pass *pass);
/// Is it by llm_stream's kernels that the chosen experts of such a layer are multiplied with one vector?
bool wt__gpu_streams_experts(const wt_llm_session *session, const wt__layer *layer);
/// Queue all of them: x += sum of share down(activation(gate n) up n), n = norm(x), by the choice that is on the
/// device.
void wt__gpu_stream_experts(wt__pass *pass, const wt__layer *layer);
/// Is a step's attention that of llm_attend_one.cu, whose blocks find room beside those of the products before and
/// after it?
bool wt__gpu_attends_beside(const wt_llm_session *session);

// ---- of several (ops_cuda.c)

wt_matrix wt__gpu_matrix(const wt__linear *w);

static inline wt_matmul_part wt__gpu_part(const wt__linear *w, void *y)
{
    return (wt_matmul_part){.weight = wt__gpu_matrix(w), .y = (uintptr_t)y, .bias = (uintptr_t)w->bias};
}

/// Of the batch, as products see it.
static inline int wt__gpu_batch_rows(const wt_llm_session *s) { return wt__gpu_rows(s->n_tokens, s->n_batch); }

void wt__gpu_multiply(wt__pass *pass, const wt_matmul_args *args);

// ---- of wt__llm_ops

void wt__gpu_place(wt__pass *pass, int layer); // ops_cuda_attend.c
void wt__gpu_attend(wt__pass *pass, int layer);
void wt__gpu_mixture(wt__pass *pass, const wt__layer *layer); // ops_cuda_experts.c

#endif
