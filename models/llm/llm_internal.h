/// A model as the forward pass sees it, and the session it works in.
#ifndef WT_LLM_INTERNAL_H
#define WT_LLM_INTERNAL_H

#include <stdatomic.h>
#include <warptone/kernel.h>
#include <warptone/llm.h>
#include <warptone/pacing.h>
#include <warptone/pool.h>

#include "llm_kernel.h"

enum { WT__LLM_MAX_PARTS = 3, WT__LLM_PAGE = WT_LLM_PAGE };

/// y = W x + bias. A weight is (element - zero) scale; scales [rows / scale_rows][columns / scale_columns], both
/// rounded up.
typedef struct wt__linear {
    wt_tensor weight;     ///< [rows][columns]; data NULL = there is none
    const float *bias;    ///< [rows]; NULL = none
    const float *scales;  ///< of F8_E4M3, I8 and nibbles; NULL = 1
    const uint8_t *zeros; ///< one a scale, of nibbles; NULL = 8
    int scale_rows;       ///< rows that share a scale: all, 1, or those of a block
    int scale_columns;    ///< columns that share one: all, or those of a block or group, at most all
    bool nibbles;         ///< two elements a byte of U8, the first in the low bits; the shape counts elements
    bool half_scales;     ///< of a GPU's copy: `scales` are F16
    // Of a GPU's copy, in rows of wt__quant_words:
    const uint32_t *both; ///< of nibbles: scales as F16 and zeros above, where that is exact
    const float *padded;  ///< of blocks: the scales; NULL = `scales` lie so
} wt__linear;

typedef struct wt__norm {
    const float *weight; ///< [width]; NULL = there is none
    const float *bias;   ///< [width] of a LayerNorm; NULL = an RMSNorm
} wt__norm;

typedef struct wt__expert {
    wt__linear gate, up; ///< [d_ff_expert][d_model]
    wt__linear down;     ///< [d_model][d_ff_expert]
} wt__expert;

typedef struct wt__layer {
    wt__norm attention_norm, ffn_norm; ///< [d_model]
    wt__norm q_norm, k_norm;           ///< [d_head]
    wt__linear q;                      ///< [n_heads * d_head][d_model]
    wt__linear k, v;                   ///< [n_kv_heads * d_head][d_model]
    wt__linear o;                      ///< [d_model][n_heads * d_head]
    wt__linear gate, up;               ///< [d_ff][d_model]; GPT-2 has no gate
    wt__linear down;                   ///< [d_model][d_ff]
    wt__linear router;                 ///< [n_experts][d_model]
    wt__expert *experts;               ///< [n_experts]; NULL = a dense layer
} wt__layer;

/// Of the host, or a GPU's copy of one: then all but the experts' array are addresses of the GPU (resident.c).
struct wt_llm {
    wt_model_config config;
    wt_weights *weights;
    struct wt__taken *taken;   ///< memory of bind
    wt_tensor embedding;       ///< [vocab_size][d_model]
    wt_tensor positions;       ///< [max_positions][d_model]; data NULL with RoPE
    wt__norm norm;             ///< [d_model], before the head
    wt__linear head;           ///< [vocab_size][d_model]
    wt__layer *layers;         ///< [n_layers]
    const float *rope_factors; ///< [n_dims / 2] of WT_ROPE_FACTORS, the host's
};

/// Find every tensor of the config's family in the open weights.
WT_CHECKED wt_status wt__llm_bind(wt_llm *llm, const wt_llm_load_config *load);
void wt__llm_give_back(wt_llm *llm); ///< What bind took.

typedef struct wt__llm_ops wt__llm_ops;

/// Pages of the cache: who uses them (pages.c).
typedef struct wt__pages {
    int n, n_free;
    int32_t *free; ///< [n_free] of [n]
    int *uses;     ///< [n] sequences
    int *held;     ///< [n_sequences] of each, the first in its row of the table
} wt__pages;

struct wt_llm_session {
    const wt_llm *llm;      ///< whose weights the steps read: the host's, or the GPU's copy
    const wt__llm_ops *ops; ///< of the backend
    wt_stream *stream;      ///< of the step that is being queued, else `own`
    wt_pool *memory_pool;    ///< of the partition's quota
    wt_pool_arena *memory;  ///< of the CPU backend: what the pointers below point into
    struct wt__gpu *gpu;    ///< of a GPU, where they are addresses of it; else NULL

    wt_partition *partition; ///< NULL = none
    wt_stream *own;
    wt_partition_step step; ///< the one begun last; without a borrowing partition always the own stream
    bool borrows, is_paced;
    wt_pacer pacer;
    wt_event *began, *ended; ///< of the step, when paced
    wt_llm_usage usage;

    int n_positions, n_batch;
    int n_items; ///< of the CPU: threads that a product is for
    int n_pages;                ///< of a sequence, WT__LLM_PAGE positions each
    wt__pages pool;             ///< of all sequences
    wt_dtype kv_type;           ///< of keys and values
    int n_sequences, sequence;  ///< and the one that calls are for
    int position, rope_length;  ///< of that one
    wt_llm_snapshot *sequences; ///< [n_sequences] those of the others
    bool has_logits;
    bool is_prompt; ///< the batch's tokens follow each other in one sequence
    bool is_run;    ///< the step's choice is told to the host by the ring

    int n_tokens;         ///< in the batch
    wt_llm_token *tokens; ///< [n_batch]
    int32_t *pages;       ///< [n_sequences][n_pages] of the cache; of those that are held

    float *x;               ///< [n_batch][d_model] the residual stream
    float *n;               ///< [n_batch][d_model] normalised
    float *q;               ///< [n_batch][n_heads * d_head]
    float *k, *v;           ///< [n_batch][n_kv_heads * d_head]
    float *a;               ///< [n_batch][n_heads * d_head] attention's result
    float *gate, *up;       ///< [n_batch][d_ff], or of the experts in use [n_batch][n_experts_used][d_ff_expert]
    float *routes;          ///< [n_batch][n_experts] the router's logits, then probabilities
    int32_t *chosen;        ///< [n_batch][n_experts_used]
    float *shares;          ///< [n_batch][n_experts_used]
    float *cosines, *sines; ///< [n_batch][n_dims / 2]
    float *frequencies;     ///< [n_sequences][n_dims / 2] radians a position
    float rope_scale;       ///< of cosines and sines
    void *keys, *values;    ///< [pages][n_layers][n_kv_heads][WT__LLM_PAGE][d_head]
    float *rows;            ///< [n_items][wt__room(most columns)]; NULL when no matrix needs it
    void *laid;             ///< of the CPU: room for n_batch vectors laid out for AMX; NULL when no matrix suits it
    bool by_amx;            ///< the batch's products are: it is of a prompt
    _Atomic int64_t n_dealt; ///< of the CPU: fours of rows of the product that is computed, which threads have taken
    atomic_int n_ended;     ///< items of it that found none left
    bool exact;             ///< vectors are not rounded to bytes or bf16
    bool exact_guesses;     ///< of a GPU: single tokens go the way of several
    bool rough_guesses;     ///< of a GPU: vectors of several tokens are rounded to 16 bits
    float *logits;          ///< [vocab_size], and on the CPU [n_sequences] of them
};

// ---- the pass, whose steps each backend has

/// A way through the layers that is being queued.
typedef struct wt__pass {
    wt_llm_session *s;
    int n_logits;     ///< of the last tokens
    float *logits;    ///< [n_logits][vocab_size]
    wt_status status; ///< the first error; nothing is queued after it
    const wt__layer *layer; ///< of a GPU: the one that is being queued
    const wt__norm *normed; ///< of a GPU: s->n is x by it but for the scale of rows (wt_matmul_norm); NULL = none
    int n_squares;          ///< that wt_matmul_norms told of it
    int form;               ///< of a GPU: attention's clusters have 2 to that blocks, from the first layer on
} wt__pass;

/// All take the batch's n_tokens; n is norm(x), by whichever norm comes with the matrices.
struct wt__llm_ops {
    void (*embed)(wt__pass *);                                        ///< x = embedding (+ learnt position)
    void (*qkv)(wt__pass *, const wt__layer *);                       ///< q = Wq n, k = Wk n, v = Wv n
    void (*place)(wt__pass *, int layer);                             ///< norms and RoPE of q and k; k, v to the cache
    void (*attend)(wt__pass *, int layer);                            ///< a = softmax(q k) v
    void (*project)(wt__pass *, const wt__linear *, const float *in); ///< x += W in
    void (*gate)(wt__pass *, const wt__layer *);                      ///< up = activation(Wgate n) Wup n, or (Wup n)
    void (*mixture)(wt__pass *, const wt__layer *); ///< x += sum over chosen experts of share expert(n)
    void (*head)(wt__pass *);                       ///< logits
};
extern const wt__llm_ops wt__llm_cpu_ops, wt__llm_cuda_ops;

// ---- steps (tenant.c)

/// Wait for the partition's share, and make session->stream that of the next step.
WT_CHECKED wt_status wt__llm_step_begin(wt_llm_session *session);
/// All of the step is queued.
WT_CHECKED wt_status wt__llm_step_queued(wt_llm_session *session);
/// It has run: its time is counted.
WT_CHECKED wt_status wt__llm_step_ran(wt_llm_session *session);
/// Both, with waiting between them; `status` is that of queueing, and comes back unless it is WT_OK.
WT_CHECKED wt_status wt__llm_step_finish(wt_llm_session *session, wt_status status);

/// A pool of the partition's quota, or of all the device's memory.
WT_CHECKED wt_status wt__llm_pool(wt_device *device, wt_partition *partition, const char *name, wt_pool **pool);

/// Errors: WT_ERR_QUOTA naming `what`, a plural, when the pool could never hold as much.
WT_CHECKED wt_status wt__llm_fits(wt_pool *pool, const char *what, size_t bytes);
/// An arena of so many bytes, aligned to 64. Errors: WT_ERR_QUOTA, WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__llm_arena(wt_pool *pool, const char *what, size_t bytes, wt_pool_arena **arena,
                                   uintptr_t *address);

/// Queue the batch's way through the first n_layers.
WT_CHECKED wt_status wt__llm_forward(wt_llm_session *session, int n_layers, float *logits, int n_logits);

// Pages (pages.c).

WT_CHECKED wt_status wt__pages_open(wt_llm_session *session);
void wt__pages_close(wt_llm_session *session);
/// Pages that wt__pages_own would take.
int wt__pages_wanted(const wt_llm_session *session, int sequence, int first, int end);
/// And for the next token of each of n sequences.
int wt__pages_wanted_together(const wt_llm_session *session, const wt_llm_turn *turns, int n);
/// Positions first .. end - 1 get pages that are their sequence's alone: new ones, and copies of shared ones. Errors,
/// before anything is changed: WT_ERR_FULL.
WT_CHECKED wt_status wt__pages_own(wt_llm_session *session, int sequence, int first, int end);
void wt__pages_trim(wt_llm_session *session, int sequence, int n_positions); ///< Give back those beyond.

/// Positions of a sequence move n_drop down, to first .. end - 1, and their keys turn back (pages that are its alone).
WT_CHECKED wt_status wt__cpu_shift(wt_llm_session *session, int sequence, int first, int end, int n_drop);
WT_CHECKED wt_status wt__gpu_shift(wt_llm_session *session, int sequence, int first, int end, int n_drop);
WT_CHECKED wt_status wt__cpu_copy_page(wt_llm_session *session, int from, int to);
WT_CHECKED wt_status wt__gpu_copy_page(wt_llm_session *session, int from, int to);

/// Bytes of the keys, or values, of `n` pages.
size_t wt__cache_bytes(const wt_llm_session *session, int n);

/// A sequence's frequencies for a length: that of dynamic RoPE grows with what was met, and is forgotten below what was
/// trained.
void wt__llm_prepare_rope(wt_llm_session *session, int sequence, int length);

/// The largest, the first of equals; -1 when one is not a number or none is finite. Its lead as of
/// wt_llm_verify_greedy.
int32_t wt__llm_most_probable(const float *logits, int n, float *lead);

/// wt_llm_verify, and to `leads` [n], if any, by how much each token's routers were sure of their choices on a GPU, as
/// wt_llm_verify_greedy tells of logits; 1 without experts.
WT_CHECKED wt_status wt__llm_verify(wt_llm_session *session, const int32_t *ids, int n, float *logits, float *leads);

/// Leads of verified tokens from which on single steps are sure to choose the same one, by the types of the weights: at
/// least four times what tokens have been apart (test_llm_shapes, F16 caches, any two tokens; H200): 6.5e-6 with F32,
/// 6e-5 with BF16 (a random Qwen3-0.6B), 4.4e-5 with int8 and int4 (1.4e-4 TinyStories-656K), 5.9e-4 with fp8. 0 where
/// all tokens have the bits of single steps, and with rough_guesses.
float wt__llm_doubt(const wt_llm_session *session);

/// What scores are multiplied with.
float wt__attention_scale(const wt_model_config *config, int layer);

/// Rows first .. first + n_rows - 1 of W x (+ bias) for `n` vectors: out[t][row] = or += them.
typedef struct wt__product {
    const wt__linear *linear;
    const float *x; ///< [n] vectors of `columns`, x_stride apart
    float *out;     ///< [n] vectors, out_stride apart
    float *rows;    ///< [wt__room()] for types other than F32 and F16
    void *laid;     ///< the vectors as wt__amx_lay() left them; NULL: not by AMX
    int64_t x_stride, out_stride;
    int n;
    float factor; ///< of sums; 0 = 1
    bool add;
    bool exact;    ///< vectors are not rounded to bytes or bf16
    bool prepared; ///< `rows` are as a call for other rows left them; of one vector
    bool widened;  ///< `rows` hold floats, with scales: matrix.c's own
} wt__product;
void wt__multiply(const wt__product *product, int64_t first, int64_t n_rows);
/// Floats of a product's room: four rows, or vectors, of at least 96 columns.
static inline size_t wt__room(int64_t columns) { return 4 * (size_t)(columns < 96 ? 96 : columns); }

#endif
