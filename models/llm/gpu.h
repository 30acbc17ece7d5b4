/// What sessions of a GPU have besides: weights on the device, modules, and the memory that is exchanged with the host.
#ifndef WT_LLM_GPU_H
#define WT_LLM_GPU_H

#include "gpu_sample.h"
#include "llm_internal.h"

#include <warptone/graph.h>
#include <warptone/matmul.h>

struct wt_llm_resident {
    wt_llm llm; ///< the host's, with addresses of the device
    wt_device *device;
    wt_pool *pool;
    wt_pool_arena *arena;
};

/// Bytes begin .. end - 1, multiples of 1024 or the end, of something that a GPU has in another form than the host's
/// `linear`.
typedef void (*wt__llm_form)(const wt__linear *linear, size_t begin, size_t end, unsigned char *to);
/// Scales as F16 with zeros above, in words; rows of wt__quant_words, zeros at their ends.
void wt__llm_scales_and_zeros(const wt__linear *linear, size_t begin, size_t end, unsigned char *to);
/// Scales in such rows.
void wt__llm_padded_scales(const wt__linear *linear, size_t begin, size_t end, unsigned char *to);
/// Of Q8_0 and Q6_K (I8) and of Q4_0 (nibbles, two neighbours a byte).
void wt__llm_elements(const wt__linear *linear, size_t begin, size_t end, unsigned char *to);
/// Of Q8_0 and Q4_0 (F16 a 32) and of Q6_K (F32 a 16).
void wt__llm_block_scales(const wt__linear *linear, size_t begin, size_t end, unsigned char *to);
/// Is it of those types?
bool wt__llm_is_repacked(const wt__linear *linear);
/// Has F16 all of them?
bool wt__llm_are_halves(const float *x, int64_t n);

/// Bytes from something of the first expert to the same of the second, and of all.
int64_t wt__llm_expert_stride(const wt_llm *llm, const void *first, const void *second);

wt_scaling wt__llm_scaling(const wt__linear *linear);
/// May they be parts of one product?
bool wt__llm_alike(const wt__linear *a, const wt__linear *b);

typedef enum wt__llm_kernel {
    WT__LLM_EMBED,
    WT__LLM_NORM,
    WT__LLM_NORM_MANY,
    WT__LLM_CHOOSE,
    WT__LLM_ROUTE,
    WT__LLM_GROUP,
    WT__LLM_GATHER,
    WT__LLM_MIX,
    WT__LLM_PICK,
    WT__LLM_PLACE,
    WT__LLM_ATTEND,
    WT__LLM_COPY_PAGE,
    WT__LLM_SHIFT,
    WT__LLM_FLASH,     ///< NULL where the cache or the head's size is not for it
    WT__LLM_ATTEND_16, ///< with clusters of 1, 2, 4 and 8; likewise
    WT__LLM_ATTEND_ONE = WT__LLM_ATTEND_16 + 4, ///< likewise
    WT__LLM_MATVEC = WT__LLM_ATTEND_ONE + 4, ///< of F32, F16, BF16
    WT__LLM_STREAM = WT__LLM_MATVEC + 3,    ///< of F16, BF16, then of short rows, of awaited vectors, of half rows
    WT__LLM_EXPERTS = WT__LLM_STREAM + 8,   ///< gate and up of F16, BF16, down, gate and up of half rows; or NULL
    WT__N_LLM_KERNELS = WT__LLM_EXPERTS + 6,
} wt__llm_kernel;

/// What a step ends with: the most probable tokens; drawn ones and what is told of them; or the logits of tokens that
/// follow each other.
typedef enum wt__step_kind {
    WT__STEP_GREEDY,
    WT__STEP_DRAWN,
    WT__N_STEP_KINDS,
    WT__STEP_LOGITS = WT__N_STEP_KINDS
} wt__step_kind;

/// A batch that came twice on one of the partition's streams: from then on it is recorded.
typedef struct wt__gpu_batch {
    wt__step_kind kind;
    bool is_prompt;
    int n_tokens, variant;
    wt_graph *graph; ///< NULL = it came once
} wt__gpu_batch;

/// How llm_quant.cu is compiled for a matrix.
typedef struct wt__llm_quant {
    int weight, group, scale; ///< WT_MM_ types; group 0 = constant along the row
    bool experts;             ///< chosen on the device
} wt__llm_quant;

/// Whose matrices a product of chosen experts multiplies: those of the parts, of the first expert and of the second.
typedef struct wt__llm_chosen {
    const wt__linear *first[2], *second[2];
    bool have_vectors; ///< one each
} wt__llm_chosen;

typedef struct wt__llm_quant_kernel {
    wt__llm_quant kind;
    wt_module *module;
    wt_kernel *kernels[2]; ///< for blocks, and for clusters of two
} wt__llm_quant_kernel;

/// Its scales as llm_quant.cu reads them.
static inline const void *wt__llm_scales_read(const wt__linear *w)
{
    return w->both ? (const void *)w->both : w->padded ? w->padded : w->scales;
}

/// Is it a matrix that llm_quant.cu multiplies with one vector?
bool wt__llm_is_quant(const wt__linear *linear, wt__llm_quant *kind);

enum {
    WT__N_LLM_MODULES = 10,
    WT__LLM_MAX_QUANTS = 8,
    WT__LLM_MAX_BATCHES = 64,
    WT__LLM_MAX_VARIANTS = 1 << WT_LAYOUT_MAX_LENDERS
};

typedef struct wt__gpu {
    wt_llm_resident *resident;
    bool owns_resident;
    wt_device *device;
    int n_sms;   ///< of the step's stream
    int own_sms; ///< of the partition, without borrowed ones
    int generation; ///< of the layout for which products and recordings were made
    bool is_dry;    ///< a pass launches nothing: products are prepared
    int kv_type, heads_at_once, heads_of_one; ///< of a block of llm_attend and of llm_attend_one
    bool flash_by_wgmma;
    wt_module *modules[WT__N_LLM_MODULES];
    wt_kernel *kernels[WT__N_LLM_KERNELS];
    wt__llm_quant_kernel quants[WT__LLM_MAX_QUANTS];
    int n_quants;
    wt_matmul *matmul;
    wt_pool *pool;        ///< the session's
    wt_pool_arena *arena; ///< the session's bulk
    wt_pool_block io;     ///< tokens, frequencies, logits and what else the host sees; accessed as long as it lives
    wt_buffer *host;      ///< page-locked, laid out as io
    uintptr_t io_address;
    size_t tokens_at, frequencies_at, pages_at, arrived_at, step_at, best_at, messages_at, logits_at,
        io_bytes;         ///< in io
    int n_logits;         ///< rows of logits
    float *squares;       ///< [n_batch][d_model / 16] of wt_matmul_norm
    int *arrived;         ///< [n_batch][n_heads]
    int *offsets, *slots; ///< [n_experts + 1], [n_batch][n_experts_used]: see wt_llm_mix_args
    void *grouped;        ///< [n_batch][n_experts_used][d_model]
    float *mixed;         ///< [n_batch][n_experts_used][d_model]
    wt_buffer *ring;      ///< [WT_LLM_RING] of wt_llm_choice, mapped
    /// A step of one token on each of the partition's streams.
    wt_graph *steps[WT__N_STEP_KINDS][WT__LLM_MAX_VARIANTS];
    wt__gpu_batch batches[WT__LLM_MAX_BATCHES];
    int n_batches;
    wt__gpu_drawer drawer;
    wt_pool_block draw_memory; ///< accessed as long as it lives
    uintptr_t draw_address;
    wt_llm_sample_args draw;  ///< of wt_llm_step; a run has the rings too
    size_t chosen_at;         ///< in io, [WT_LLM_MAX_CHOSEN]; the draws follow
    size_t draws_at, odds_at; ///< in io, [n_logits]
    uint64_t *serials;        ///< [n_sequences] whose tallies the device has: wt__sampler_serial; 0 = nobody's
    wt_buffer *ring_odds;     ///< [WT_LLM_RING] of wt_llm_odds, mapped
    bool logits_away;         ///< the last token's logits are on the device alone
} wt__gpu;

WT_CHECKED wt_status wt__gpu_create(wt_llm_session *session, const wt_llm *llm, const wt_llm_session_config *config);
void wt__gpu_destroy(wt_llm_session *session);

/// The kernels of the model's quantised matrices.
WT_CHECKED wt_status wt__gpu_load_quants(wt__gpu *gpu, const wt_llm *llm);
void wt__gpu_unload_quants(wt__gpu *gpu);
/// Queue a product of matrices like `linear`, of that kind. `beside`: by a block on each processor, with room for one
/// of llm_attend_one.
WT_CHECKED wt_status wt__gpu_multiply_quant(const wt_llm_session *session, const wt__linear *linear,
                                            const wt_llm_matvec_args *args, bool beside);
/// The same of the experts that a router chooses for one vector.
WT_CHECKED wt_status wt__gpu_multiply_chosen(const wt__pass *pass, const wt__llm_chosen *chosen,
                                             const wt_llm_matvec_args *args);

/// Where the host prepares a part of io.
static inline void *wt__gpu_host(const wt__gpu *gpu, size_t at)
{
    return (unsigned char *)wt_buffer_host(gpu->host) + at;
}

/// Queue a copy of a part of io to the device.
WT_CHECKED wt_status wt__gpu_push(wt_llm_session *session, size_t at, size_t size_bytes);

/// Queue what the host says of RoPE and pages to the device.
WT_CHECKED wt_status wt__gpu_push_tables(wt_llm_session *session);

/// Queue the batch's way through all layers and what it ends with, its tokens being there; small ones are recorded.
WT_CHECKED wt_status wt__gpu_queue_batch(wt_llm_session *session, wt__step_kind kind);

/// Queue the batch's way through the first n_layers, with its tokens there and its last n_logits logits back to
/// `logits` of the host, at most n_logits of the GPU; with `leads` what routers lead by comes back to its tokens.
WT_CHECKED wt_status wt__gpu_run(wt_llm_session *session, int n_layers, float *logits, int n_logits, bool leads);

/// Choose the most probable token after p->logits: the next step's token on the device, and in the ring.
void wt__gpu_pick(wt__pass *pass);

/// All that later steps of any size may need: kernels, the library's algorithms, a recorded step for each stream.
WT_CHECKED wt_status wt__gpu_prepare(wt_llm_session *session);

/// The layout was resized: products for the processors of now, `partition`'s, and nothing recorded. What was prepared
/// is prepared again, but steps, which are recorded when they come. Keys, values and the batch stay. Errors, before
/// anything is changed: WT_ERR_ARMED.
WT_CHECKED wt_status wt__gpu_follow(wt_llm_session *session, const wt_partition_info *partition);
/// All recorded steps and batches.
void wt__gpu_forget(wt__gpu *gpu);

/// Record steps of one token, of every kind, on each of the partition's streams.
WT_CHECKED wt_status wt__gpu_record_all(wt_llm_session *session);

enum { WT__LLM_ALIKE = 8 }; ///< products of up to so many rows give a row the same bits

/// Rows that a product of `n` is computed with, at most `most`: few sizes, so that all can be prepared beforehand. What
/// stands in the others is not looked at.
int wt__gpu_rows(int n, int most);

// Drawing (gpu_draw.c).

WT_CHECKED wt_status wt__gpu_draw_open(wt_llm_session *session);
void wt__gpu_draw_close(wt_llm_session *session);

/// How row `row` chooses the next token of a sequence: queues the sampler's tallies if the device has others. The rows
/// are pushed by wt__gpu_push_draws.
WT_CHECKED wt_status wt__gpu_draw_by(wt_llm_session *session, int row, int sequence, const wt_sampler *sampler,
                                     bool logprobs, int n_top);
WT_CHECKED wt_status wt__gpu_push_draws(wt_llm_session *session, int n_rows);

/// How the batch's rows choose as wt__gpu_verify_drawn does: queues all of it.
WT_CHECKED wt_status wt__gpu_draw_guesses(wt_llm_session *session, const wt_sampler *sampler, const int32_t *ids,
                                          int first);

/// Likewise, by the rows' settings.
void wt__gpu_pick_drawn(wt__pass *pass);

/// A row's choice was used: the sampler, if any, counts it, and the device's tallies are those it has now.
void wt__gpu_drawn(wt_llm_session *session, int sequence, wt_sampler *sampler, int32_t id);

/// What the device told, to the public form.
void wt__gpu_odds(const wt_llm_odds *odds, wt_llm_pick *pick);

/// wt_llm_run without a sampler: up to config->n_tokens steps, recorded once and launched ahead of their results.
WT_CHECKED wt_status wt__gpu_generate(wt_llm_session *session, const wt_llm_run_config *config);

/// Queue the batch, of the turns' tokens, through all layers; logits to `logits` [n_tokens][vocab_size] unless NULL.
WT_CHECKED wt_status wt__gpu_step(wt_llm_session *session, const wt_llm_turn *turns, float *logits);
/// When it has run: the next tokens to `next` [n_tokens], -1 where a logit is not a number, and what the turns ask of
/// them.
void wt__gpu_step_choices(wt_llm_session *session, const wt_llm_turn *turns, int32_t *next);

/// Queue the batch, of tokens that follow each other, through all layers, and the most probable token after each to
/// session->tokens.
WT_CHECKED wt_status wt__gpu_verify_greedy(wt_llm_session *session);

/// The same with what `sampler` chooses: the batch's first token is number `first` of `ids`, at most WT__SAMPLER_LOG,
/// of which those behind the first one are guesses.
WT_CHECKED wt_status wt__gpu_verify_drawn(wt_llm_session *session, const wt_sampler *sampler, const int32_t *ids,
                                          int first);

/// The last token's logits to the host, if they are not there.
WT_CHECKED wt_status wt__gpu_fetch_logits(const wt_llm_session *session);

/// Blocks that share the positions of a token's heads, for a batch of n_tokens.
int wt__gpu_n_splits(const wt_llm_session *session, int n_tokens);

#endif
