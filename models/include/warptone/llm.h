/// Language models: a decoder-only transformer of one of wt_model_config's families, on a GPU or the CPU.
///
///     wt_llm_open("TinyLlama-1.1B", &llm);
///     wt_llm_session_create(llm, &(wt_llm_session_config){.device = cpu}, &session);
///     wt_sampler_create(&(wt_sampler_config){.temperature = 0.7}, wt_llm_config(llm)->vocab_size, &sampler);
///     wt_llm_prefill(session, prompt, n_prompt);
///     for (int32_t id; !wt_sampler_pick(sampler, wt_llm_logits(session), &id) && !wt_llm_ends(llm, id);)
///         ... show id ..., wt_llm_decode(session, id);
///
/// A model is read-only and may have many sessions; a session, and a sampler, belong to one thread at a time.
#ifndef WARPTONE_LLM_H
#define WARPTONE_LLM_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/model_config.h>
#include <warptone/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_llm wt_llm;

/// Open a model as wt_weights_open and wt_model_config_open do. Matrices of F32, F16, BF16 and GGUF's blocks are read
/// in place from the mapping; the linear layers of a GPT-2 of the hub, which lie transposed, are copied. Errors:
/// theirs; WT_ERR_NOT_FOUND and WT_ERR_FORMAT naming a tensor, its shape and the one wanted; WT_ERR_UNSUPPORTED for
/// types that no matrix has. Quantised checkpoints of the hub: fp8 and int8 are read in place, int4 of AWQ and GPTQ is
/// turned to rows, GPTQ of 8 bits or with act-order becomes F16.  [worker]
WT_CHECKED wt_status wt_llm_open(const char *path, wt_llm **llm);

typedef struct wt_llm_load_config {
    const char *path;                              ///< copied
    void (*progress)(void *user, int done, int of); ///< after each layer of AWQ and GPTQ, by the calling thread
    void *user;
} wt_llm_load_config;

/// Open a model and tell how far its layers are, where they are not read in place. Errors: as wt_llm_open.  [worker]
WT_CHECKED wt_status wt_llm_load(const wt_llm_load_config *config, wt_llm **llm);
void wt_llm_close(wt_llm *llm); ///< After its sessions. NULL is allowed.  [worker]

const wt_model_config *wt_llm_config(const wt_llm *llm); ///< borrowed until closed  [any]
/// Bytes of weights that a decode step reads: all but the embedding's other rows and experts that were not chosen.
/// [any]
size_t wt_llm_step_bytes(const wt_llm *llm);
bool wt_llm_ends(const wt_llm *llm, int32_t id); ///< Is it one of eos_ids?  [any]

// ---- weights on a GPU

typedef enum wt_llm_quantization {
    WT_LLM_AS_STORED,
    WT_LLM_FP8,  ///< e4m3, a scale for 128 x 128
    WT_LLM_INT8, ///< a scale a row
    WT_LLM_INT4, ///< a scale and a zero for groups of up to 128 columns; the head in int8
} wt_llm_quantization;

typedef struct wt_llm_resident wt_llm_resident;

typedef struct wt_llm_resident_config {
    wt_device *device;                ///< a GPU; borrowed until destroy
    wt_partition *partition;          ///< whose memory quota is used; NULL = none. Borrowed until destroy
    wt_llm_quantization quantization; ///< made on the GPU of the weights as they come; the host's stay what they are
    void (*progress)(void *user, size_t done_bytes, size_t all_bytes); ///< after each piece, by the calling thread
    void *user;
} wt_llm_resident_config;

/// Copy a model's weights to a GPU, for any number of sessions there, as they are (F64 becomes F32, some of GGUF's
/// types are parted: docs/llm.md) or quantised, to the bits that wt_llm_quantize gives. The model is borrowed until
/// destroy. Errors: WT_ERR_BAD_ARG, WT_ERR_UNSUPPORTED (no GPU), WT_ERR_QUOTA, WT_ERR_NO_MEMORY, WT_ERR_ARMED,
/// WT_ERR_CUDA, and to quantise WT_ERR_NO_NVRTC, WT_ERR_COMPILE.  [worker, not armed]
WT_CHECKED wt_status wt_llm_resident_create(const wt_llm *llm, const wt_llm_resident_config *config,
                                            wt_llm_resident **resident);
/// The model with these weights, for wt_llm_step_bytes; borrowed until destroy.  [any]
const wt_llm *wt_llm_resident_model(const wt_llm_resident *resident);
void wt_llm_resident_destroy(wt_llm_resident *resident); ///< After its sessions. NULL is allowed.  [worker]

// ---- sessions

typedef struct wt_llm_session wt_llm_session;

typedef struct wt_llm_session_config {
    wt_device *device;         ///< a GPU, or of the CPU backend: its threads do the work; borrowed until destroy
    wt_partition *partition;   ///< of the device: its processors and memory quota; NULL = none. Borrowed until destroy
    wt_llm_resident *resident; ///< on the same GPU; borrowed until destroy. NULL = weights of the session's own
    int n_positions;           ///< tokens that prompt and answer may have together; 0 = the model's, at most 4096
    int n_batch;               ///< tokens of a prompt that go through the layers together; 0 = 64, on a GPU 512
    int n_sequences;           ///< at the same time, at most n_batch; 0 = 1
    int n_cached;              ///< positions of all sequences together; 0 = n_positions of each
    wt_dtype kv_type;          ///< of the cache of keys and values: F32 (0), F16, BF16 or F8_E4M3
    /// Multiply quantised weights (GGUF's blocks, int8, int4) and BF16 ones in float. By default, where the CPU has
    /// AVX2, activations are rounded to 8 bits with a scale for 32 of them, and products are 3 to 20 times as fast; and
    /// beside BF16 weights to bf16, where it has AVX512_BF16 and no AMX, which makes prompts twice as fast.
    bool exact_products;
    /// [GPU] Single tokens by the kernels of several, so that up to 8 tokens that are verified together have the logits
    /// of single steps, bit for bit, whatever the weights (more are verified 8 at a time). Without it, single steps are
    /// faster, and a guess may be taken for another where two tokens are almost as probable. On the CPU it is always
    /// so.
    bool exact_guesses;
    /// [GPU] Vectors of tokens that are verified together are rounded to 16 bits, which is faster, and 16 tokens come
    /// together instead of 8. By default they have 16 bits more, so that logits differ from those of single steps by
    /// little more than the order of sums. With exact_guesses it means nothing.
    bool rough_guesses;
} wt_llm_session_config;

/// Takes all memory, and in a partition of a GPU makes all ready that any call may want later, so that the calls work
/// on an armed device (0.2 to 1 s); after a resize of the layout the first step does so again. Keys and values are
/// 2 n_layers n_cached n_kv_heads d_head numbers, in pages of 64 positions, which sequences take as they grow and give
/// back. Errors: WT_ERR_BAD_ARG (more positions than a model of learnt positions has, more sequences than a batch, a
/// partition or weights of another device), WT_ERR_UNSUPPORTED (a type of the cache; a row of a matrix that does not
/// fit into a GPU's shared memory), WT_ERR_QUOTA, WT_ERR_NO_MEMORY; on a GPU also WT_ERR_NO_NVRTC, WT_ERR_COMPILE,
/// WT_ERR_ARMED.  [worker, not armed]
WT_CHECKED wt_status wt_llm_session_create(const wt_llm *llm, const wt_llm_session_config *config,
                                           wt_llm_session **session);
void wt_llm_session_destroy(wt_llm_session *session); ///< NULL is allowed.  [worker]

/// Append `n` tokens and compute the logits after the last. On the CPU the same tokens give the same logits, bit for
/// bit, in one call or in many, except with RoPE of kind dynamic, whose angles depend on the length that a call
/// reaches. On a GPU the same calls do; other calls differ in the order of sums, and with weights of 16 bits and fewer
/// in that several tokens have their vectors rounded to 16 bits and single ones have not (but see exact_guesses).
/// Errors, before anything is changed: WT_ERR_BAD_ARG (no tokens, an id out of the vocabulary), WT_ERR_FULL (more than
/// n_positions in all, or than pages are free). On a GPU, of this call and those below, at any time WT_ERR_CUDA and
/// WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_llm_prefill(wt_llm_session *session, const int32_t *ids, int n);
WT_CHECKED wt_status wt_llm_decode(wt_llm_session *session, int32_t id); ///< Likewise, one token.  [worker]

/// The sequence that the calls after this are for; 0 at first. Each has its own tokens and position; the logits of the
/// one before are forgotten. Errors: WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_llm_select(wt_llm_session *session, int sequence);

typedef struct wt_sampler wt_sampler; ///< See below.

enum { WT_LLM_MOST_TOP = 20 };

/// A chosen token and what is told of it: natural logarithms of probabilities by the logits as the model gave them,
/// before penalties and temperature.
typedef struct wt_llm_pick {
    int32_t id;
    float logprob;                    ///< of id; 0 when not asked for
    int n_top;                        ///< as many as were asked for
    int32_t top_ids[WT_LLM_MOST_TOP]; ///< the most probable first
    float top_logprobs[WT_LLM_MOST_TOP];
} wt_llm_pick;

typedef struct wt_llm_turn {
    int sequence;
    int32_t id;          ///< to be appended there
    wt_sampler *sampler; ///< which chooses the next and counts it; NULL = the most probable
    wt_llm_pick *pick;   ///< gets what is told of the next; NULL = nothing is told
    int n_top;           ///< tokens that pick tells besides, 0 .. WT_LLM_MOST_TOP
} wt_llm_turn;

/// One token of each of `n` sequences in one step, at the cost of little more than one: append them, choose the next
/// ones to `next` [n], and write all logits to `logits` [n][vocab_size] unless NULL. On a GPU they are chosen there.
/// Sequences may join and leave from step to step. On the CPU a sequence's logits are to the bit those it has alone.
/// Errors, before anything is changed: WT_ERR_BAD_ARG, WT_ERR_FULL; WT_ERR_FORMAT when a logit is not a number: that
/// sequence's `next` is -1, and the others are as they should be.  [worker]
WT_CHECKED wt_status wt_llm_step(wt_llm_session *session, const wt_llm_turn *turns, int n, int32_t *next,
                                 float *logits);

typedef struct wt_llm_run_config {
    int n_tokens;        ///< to be chosen, at most
    wt_sampler *sampler; ///< which chooses and counts what on_token got; NULL = the most probable
    bool logprobs;       ///< tell the logprob of each
    int n_top;           ///< and of so many of the most probable tokens, 0 .. WT_LLM_MOST_TOP
    /// Each token as it is chosen, by the calling thread; false ends the run before the next. NULL = none.
    bool (*on_token)(void *user, const wt_llm_pick *pick);
    void *user;
} wt_llm_run_config;

/// Append `id`, choose a token, append that, and so on. The last chosen one is not appended: it begins the next run. On
/// a GPU a step is recorded once and launched ahead, tokens are chosen on the device and go from step to step there,
/// and the host reads them as they come; what was launched beyond the end of a run is forgotten. Errors: those of
/// wt_llm_prefill, before anything is changed (n_tokens must fit); WT_ERR_BAD_ARG (n_top, a sampler of another
/// vocabulary); WT_ERR_FORMAT when a logit is not a number: no token is chosen by it, no number taken.  [worker]
WT_CHECKED wt_status wt_llm_run(wt_llm_session *session, int32_t id, const wt_llm_run_config *config);

/// [vocab_size] after the last token; NULL before the first and after a restore. Borrowed until the next call.
/// [worker]
const float *wt_llm_logits(const wt_llm_session *session);
int wt_llm_position(const wt_llm_session *session); ///< tokens so far  [worker]

/// A point of a session to come back to: keys and values before it stay as they are while others are appended.
typedef struct wt_llm_snapshot {
    int position;
    int rope_length; ///< what RoPE of kind dynamic has grown to
} wt_llm_snapshot;

wt_llm_snapshot wt_llm_session_snapshot(const wt_llm_session *session); ///< [worker]
/// Forget the tokens after the snapshot; {0} forgets all. Errors: WT_ERR_BAD_ARG when the session has fewer.  [worker]
WT_CHECKED wt_status wt_llm_session_restore(wt_llm_session *session, wt_llm_snapshot snapshot);

/// The tokens so far as bytes that outlive the session: their keys and values, whole pages of 64 positions, zeros
/// behind the last, in this machine's byte order. The same calls give the same bytes on the same backend.  [worker]
size_t wt_llm_session_saved_bytes(const wt_llm_session *session);
/// Write them to `out`. Errors: WT_ERR_BAD_ARG (fewer than wt_llm_session_saved_bytes), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_llm_session_save(wt_llm_session *session, void *out, size_t out_bytes);
/// The sequence forgets its tokens and goes on with the saved ones, as if it had computed them: in any session, on
/// either backend, of the same weights (nothing here can tell) with a cache of the same type. There are no logits until
/// the next token. Errors, before anything is changed: WT_ERR_FORMAT (no saved sequence, one of other shapes or another
/// type, damaged), WT_ERR_FULL (more than n_positions, or than pages are free).  [worker]
WT_CHECKED wt_status wt_llm_session_load(wt_llm_session *session, const void *in, size_t in_bytes);

/// What a session has had of its device. A partition that borrows takes each step on the SMs (processors) of the
/// partitions that lend and are idle at that moment, and gives them back with it. A partition with a bandwidth_share
/// below 1 gets at most that share of time: before a step the session waits for what the steps before took.
typedef struct wt_llm_usage {
    uint64_t n_steps;      ///< batches of a prompt, steps of decoding
    uint64_t n_wide_steps; ///< of these, with SMs of others
    double paced_s;        ///< that paced steps took on the device
    double waited_s;       ///< for the share
} wt_llm_usage;
void wt_llm_session_get_usage(const wt_llm_session *session, wt_llm_usage *usage); ///< [worker]

/// Sequence `to` forgets its tokens and begins with the first `n` of sequence `from`, without computing or copying
/// them: both use the same pages until one of them writes there, and then gets a copy of its own. Errors:
/// WT_ERR_BAD_ARG. [worker]
WT_CHECKED wt_status wt_llm_share(wt_llm_session *session, int from, int to, int n);

/// Positions in pages that no sequence uses.  [worker]
int wt_llm_free_positions(const wt_llm_session *session);

/// Can keys be moved to other positions? Not with learnt positions, nor with RoPE of kind dynamic.  [any]
bool wt_llm_can_shift(const wt_llm *llm);

/// Drop the `n_drop` tokens after the first `n_keep`: those behind move down, and their keys turn back by as many
/// places, with the rounding of the cache's type. What they took over from the dropped ones in deeper layers stays with
/// them, so the logits are near to those of the tokens that are left, and not the same. Errors: WT_ERR_BAD_ARG,
/// WT_ERR_UNSUPPORTED (see wt_llm_can_shift), WT_ERR_FULL (no page for a copy of a shared one).  [worker]
WT_CHECKED wt_status wt_llm_shift(wt_llm_session *session, int n_keep, int n_drop);

// ---- choosing a token

typedef struct wt_logit_bias {
    int32_t id;
    float bias; ///< added to its logit; -INFINITY bans it
} wt_logit_bias;

/// Applied in this order: repetition penalty, presence and frequency penalty, bias, temperature, top-k, top-p, min-p,
/// typical.
typedef struct wt_sampler_config {
    double temperature; ///< 0 = the most probable token, the first of equals
    int top_k;          ///< only the k most probable; 0 = all
    double top_p;       ///< only the most probable whose sum reaches p; 0 and 1 = all
    double min_p;       ///< only those with p times the most probable's probability, or more; 0 = all
    /// Only those whose surprise, - log p, is nearest to its mean, until their sum reaches p; 0 and 1 = all. Source:
    /// Meister et al., Locally Typical Sampling, 2022.
    double typical_p;
    double repetition_penalty; ///< positive logits of tokens seen are divided by it, negative multiplied; 0, 1 = none
    double presence_penalty, frequency_penalty; ///< subtracted from logits of tokens generated: once, and each time
    const wt_logit_bias *biases;                ///< [n_biases]; copied
    int n_biases;
    uint64_t seed;
} wt_sampler_config;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_sampler_create(const wt_sampler_config *config, int vocab_size, wt_sampler **sampler);
void wt_sampler_destroy(wt_sampler *sampler); ///< NULL is allowed.  [worker]

/// Count tokens of the prompt as seen, for the repetition penalty. Ids out of the vocabulary are passed over.  [worker]
void wt_sampler_see(wt_sampler *sampler, const int32_t *ids, int n);

/// Nothing has been seen or generated; the numbers drawn go on.  [worker]
void wt_sampler_forget(wt_sampler *sampler);

/// Choose a token of `logits` [vocab_size] and count it as generated. A GPU's steps choose the same one of the same
/// logits: after the penalties all arithmetic is in integers (kernels/llm/sample_kernel.h), in which logits that differ
/// by less than 2^-26 of the temperature are equal, and a token less probable than e^-28 of the best is never drawn.
/// The n-th choice takes the n-th number of Philox 4x32-10 with the seed as its key (Salmon et al., Parallel Random
/// Numbers: As Easy as 1, 2, 3, 2011). Errors: WT_ERR_FORMAT when a logit is NaN, or none is finite; no number is taken
/// then.  [worker]
WT_CHECKED wt_status wt_sampler_pick(wt_sampler *sampler, const float *logits, int32_t *id);

/// Count a token that was chosen elsewhere by the sampler's settings, 0 .. vocab_size - 1, and pass over its number.
/// [worker]
void wt_sampler_took(wt_sampler *sampler, int32_t id);

/// Natural logarithm of a token's probability by logits as the model gave them.  [any]
double wt_llm_logprob(const float *logits, int vocab_size, int32_t id);
/// What is told of pick->id: its logprob, and the n_top most probable tokens, 0 .. WT_LLM_MOST_TOP.  [any]
void wt_llm_tell(const float *logits, int vocab_size, int n_top, wt_llm_pick *pick);

// ---- several tokens at the cost of one

/// Append `n` guessed tokens and write the logits after each, those that wt_llm_decode one by one would give (on the
/// CPU bit for bit, on a GPU as far as wt_llm_prefill promises), to `logits` [n][vocab_size]. wt_llm_logits has the
/// last. Guesses that were wrong are taken back by wt_llm_session_restore with the position before them
/// (wt_llm_snapshot). Errors: those of wt_llm_prefill.  [worker]
WT_CHECKED wt_status wt_llm_verify(wt_llm_session *session, const int32_t *ids, int n, float *logits);

/// The same, but only the most probable token after each of them to `next` [n], the first of equals, -1 where a logit
/// is not a number: a GPU chooses it and leaves the logits where they are. `leads` [n], NULL = not wanted: how far its
/// logit is above the second, as a part of what it is above the lowest finite one; on a GPU, where less, how far a
/// router's last chosen expert is above the next one likewise. wt_llm_logits has none afterwards.
/// Errors: those of wt_llm_prefill; WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_llm_verify_greedy(wt_llm_session *session, const int32_t *ids, int n, int32_t *next,
                                          float *leads);

/// The same with the token that `sampler` chooses after each of them, if ids[1] .. ids[n - 1] are what it chose before.
/// The sampler stays as it is: whoever takes tokens of `next` calls wt_sampler_took for each. Errors: also
/// WT_ERR_BAD_ARG for a sampler of another vocabulary.  [worker]
WT_CHECKED wt_status wt_llm_verify_drawn(wt_llm_session *session, const int32_t *ids, int n, wt_sampler *sampler,
                                         int32_t *next);

/// Append a token through the first `n_layers` layers alone, 1 .. n_layers of the model: wt_llm_logits then has a guess
/// at a part of the cost. The other layers' keys and values are not there, so the session must be restored to the
/// position before it ahead of anything but the next draft. Errors: also WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_llm_draft(wt_llm_session *session, int32_t id, int n_layers);

// ---- smaller weights

/// Quantise on the host, with all processors, the matrices of layers and head that are in F32, F16, BF16 or F64, by
/// rounding, before the model's first session; embedding, norms and experts' routers stay. `progress` (NULL = none) is
/// told after each layer. Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY: the model then has to be closed.  [worker]
WT_CHECKED wt_status wt_llm_quantize(wt_llm *llm, wt_llm_quantization kind,
                                     void (*progress)(void *user, int done, int of), void *user);

#ifdef __cplusplus
}
#endif
#endif
