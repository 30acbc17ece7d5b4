/// Arguments of the language models' kernels: what is neither a product of matrices nor attention over many tokens.
#ifndef WT_LLM_KERNEL_H
#define WT_LLM_KERNEL_H

#include "matmul_kernel.h"
#include "sample_kernel.h"

#define WT_LLM_PAGE 64 ///< positions of a page of the cache

// Types of weights, activations and the cache.
#define WT_LLM_F32  0
#define WT_LLM_F16  1
#define WT_LLM_BF16 2
#define WT_LLM_E4M3 3 ///< of the cache alone

/// One token of a batch.
typedef struct wt_llm_token {
    int id, place, sequence; ///< place: its position in the sequence
    float lead; ///< of the logit that llm_pick chose over the second, or of a router's last chosen one over the next,
                ///< as parts of the logits' ranges: the least
} wt_llm_token;

typedef struct wt_llm_embed_args {
    wt_llm_token *tokens;       ///< [n_tokens], a block each; none of it is in doubt yet
    const void *embedding;      ///< [vocab_size][d_model]
    const void *positions;      ///< [..][d_model] learnt; NULL = none
    const float *frequencies;   ///< [n_sequences][half]
    float *x;                   ///< [n_tokens][d_model]
    float *cosines, *sines;     ///< [n_tokens][half]
    float rope_scale;
    int d_model, half, embedding_type, positions_type;
} wt_llm_embed_args;

/// RMSNorm, or LayerNorm with a bias, of rows; out may be of a smaller type.
typedef struct wt_llm_norm_args {
    const float *x; ///< [n][width], a block a row
    const float *weight, *bias;
    void *out; ///< [n][width] of `type`
    float eps;
    int width, type, n_rows; ///< n_rows: of llm_norm_many
    int two_parts;           ///< of llm_norm, 16 bits: what rounding left of the rows lies behind them
} wt_llm_norm_args;

/// The cache of a layer: element of page p, head h, position j of the page, dimension d is
/// [p * page_stride + (h * WT_LLM_PAGE + j) * d_head + d].
typedef struct wt_llm_cache {
    void *keys, *values;
    const int *pages; ///< [n_sequences][n_pages]
    long long page_stride;
    int n_pages;
} wt_llm_cache;

/// What is done to a token's heads of q and k: norm and RoPE.
typedef struct wt_llm_turn_args {
    const float *cosines, *sines; ///< [n_tokens][n_dims / 2]
    const float *q_norm, *k_norm; ///< [d_head] or NULL
    float eps;
    int n_dims, interleaved;
} wt_llm_turn_args;

/// Heads of q are turned in place, k and v go to the cache. Narrow ones, of the cache's type, lie at the beginnings of
/// the float ones.
typedef struct wt_llm_place_args {
    const wt_llm_token *tokens;
    wt_llm_cache cache;
    wt_llm_turn_args turn;
    float *q;           ///< [n_tokens][n_heads][d_head]
    const float *k, *v; ///< [n_tokens][n_kv_heads][d_head]
    int n_heads, n_kv_heads, narrow_q;
} wt_llm_place_args;

#define WT_LLM_PLACE_WARPS  8
#define WT_LLM_PLACE_BLOCKS 4 ///< on a processor, before a warp takes several heads

/// Keys and values of a page to another.
typedef struct wt_llm_copy_args {
    void *keys, *values; ///< of all pages
    long long from, to;  ///< in units of 16 bytes
    int n;               ///< likewise
} wt_llm_copy_args;

/// The positions of one sequence from `first` + n_drop on move n_drop places down, and their keys turn back as far.
typedef struct wt_llm_shift_args {
    wt_llm_cache cache;               ///< of all layers: head l * n_kv_heads + h, a block each
    const float *frequencies;         ///< [n_dims / 2]
    int sequence, first, end, n_drop; ///< end: positions after the shift
    int n_dims, interleaved;
} wt_llm_shift_args;

#define WT_LLM_MAX_PARTS     64                     ///< of the positions of a token
#define WT_LLM_PIECE(d_head) ((d_head) % 4 ? 1 : 4) ///< elements of a head that are added together
/// Blocks of llm_attend on a processor: half of those that it has room for.
#define WT_LLM_ATTEND_BLOCKS(heads, d_head) ((heads) <= 4 && (d_head) <= 256 ? 2 : 1)
#define WT_LLM_MESSAGE                      8 ///< words in which a part says of a piece: sums, maximum, total

typedef struct wt_llm_attend_args {
    const wt_llm_token *tokens;
    wt_llm_cache cache;
    wt_llm_turn_args turn; ///< with k
    const float *q;        ///< [n_tokens][n_heads][d_head]; narrow for llm_flash_wgmma.cu
    const float *k, *v;    ///< [n_tokens][n_kv_heads][d_head] to be turned and put into the cache here, as q is turned.
                           ///< NULL = llm_place did it; llm_attend wants that for tokens of one sequence
    void *out;             ///< as q, of out_type
    float *messages;       ///< [n_tokens][n_heads][d_head / WT_LLM_PIECE][n_splits][WT_LLM_MESSAGE]
    int *arrived;          ///< [n_tokens][n_heads], 0 before and after
    float scale;
    int n_heads, n_kv_heads, n_splits, window; ///< window 0 = none
    int n_tokens, out_type;
    int two_parts; ///< of 16 bits: what rounding left of `out` lies behind it
    int follow; ///< tokens follow each other in one sequence, up to 16; else each has its own (llm_attend_16)
} wt_llm_attend_args;

#define WT_LLM_ATTEND_ROWS  16 ///< of a block of llm_attend_16, heads of tokens
#define WT_LLM_ATTEND_WARPS 8  ///< of that and of llm_attend_one

/// Bytes of shared memory that llm_attend_16 has for the values of two turns of 16 positions a warp.
#define WT_LLM_ATTEND_VALUES(d_head, kv_bytes) (2 * WT_LLM_ATTEND_WARPS * 16 * (d_head) * (kv_bytes))

/// Bytes of shared memory that a warp of llm_attend_one has for keys and values of 16 positions, and then for its sums.
#define WT_LLM_ATTEND_OF_WARP(d_head, kv_bytes, heads)                                                                 \
    (32 * (d_head) * (kv_bytes) > 4 * (heads) * ((d_head) + 4) ? 32 * (d_head) * (kv_bytes)                            \
                                                               : 4 * (heads) * ((d_head) + 4))

typedef struct wt_llm_part {
    const void *weight; ///< [rows][columns]
    const float *bias;  ///< [rows] or NULL
    float *out;         ///< [rows]
    int rows;
    const void *scales; ///< of quantised weights, see wt_llm_quant_args; NULL = 1
} wt_llm_part;

/// What the launch after a product reads first. The weights of a layer drive it from the L2 cache.
typedef struct wt_llm_ahead {
    const void *from;
    int bytes; ///< 0 = nothing
} wt_llm_ahead;
#define WT_LLM_AHEAD 6

/// One vector times up to three matrices of one type, with the norm before and what comes after in one.
typedef struct wt_llm_matvec_args {
    wt_llm_part parts[3];
    const float *x;                       ///< [columns]
    const float *norm_weight, *norm_bias; ///< of a norm of x; NULL = x as it is
    float eps;
    int n_parts, columns;
    int warps;      ///< 1, 2, 4 or 8 that share a row
    int n_rows;     ///< of the parts together; of a gated product of one part
    int gated;      ///< parts 0 and 1: out = activation(W1 x) * (W0 x)
    int activation; ///< wt_activation: of a single part, or of the gate
    int add;        ///< out +=
    wt_llm_ahead ahead[WT_LLM_AHEAD]; ///< not of llm_matvec
} wt_llm_matvec_args;

/// The most probable experts of a token and their shares.
typedef struct wt_llm_choose_args {
    const float *routes;  ///< [n_tokens][n_experts]
    int *chosen;          ///< [n_tokens][n_used]
    float *shares;        ///< [n_tokens][n_used]
    wt_llm_token *tokens; ///< [n_tokens], whose leads become this one if it is less
    int n_tokens, n_experts, n_used, normalise;
} wt_llm_choose_args;

#define WT_LLM_NOT_THERE 0xffffffffu ///< bits that no sum has: additions give one NaN, 0x7fffffff

#define WT_LLM_STREAM_WARPS       8 ///< of a block of llm_stream.cu
#define WT_LLM_STREAM_SHORT       2 ///< warps that share a row of WT_LLM_STREAM_PASS / WARPS columns for each, of many
#define WT_LLM_STREAM_HALF        4 ///< likewise
#define WT_LLM_STREAM_STAGES      5 ///< of a warp: WT_LLM_STREAM_TILE rows of WT_LLM_STREAM_COLUMNS
#define WT_LLM_STREAM_DEEP        6 ///< the same where the vector has at most WT_LLM_STREAM_NARROW columns
#define WT_LLM_STREAM_NARROW      2048
#define WT_LLM_STREAM_TILE        8
#define WT_LLM_STREAM_COLUMNS     128
#define WT_LLM_STREAM_PASS        4096 ///< columns of the vector that a block has at once
#define WT_LLM_STREAM_PITCH(each) (2 * WT_LLM_STREAM_WARPS * (each) + 64) ///< bytes from part to part of the vector

/// The same of matrices of 16 bits whose rows lie at 16 bytes, without a LayerNorm, by llm_stream.cu.
typedef struct wt_llm_stream_args {
    wt_llm_matvec_args m;
    int n_stages; ///< WT_LLM_STREAM_STAGES or _DEEP
    int each,
        n_passes; ///< columns of a warp in a pass, a multiple of a stage's; times those of a row they cover all columns
    unsigned *cleared; ///< [n_cleared] words that become WT_LLM_NOT_THERE, for the launch after this to write; or NULL
    int n_cleared;
    int is_awaited; ///< the launch after this awaits `out`, or comes to know the choice of experts

    // Of the experts that are chosen for one vector: gate and up of each, [rows][columns] as `m` says of one, `out`
    // [n_used][rows]; or down, of which n_shares times `each` cover the columns of one, and x [n_used][columns].
    wt_llm_choose_args choose; ///< at most WT_LLM_STREAM_EXPERTS; `chosen` and `shares` are not there
    long long next[2];         ///< bytes from an expert's matrix to that of the next one, of each part
    int n_shares;
} wt_llm_stream_args;

#define WT_LLM_STREAM_EXPERTS 32  ///< that are chosen, a lane each
#define WT_LLM_ROUTED         128 ///< and of which, four a lane

#define WT_LLM_SCALE_ZERO 100 ///< a type of scales beside WT_MM_F32 and F16: an F16 and a zero of 16 bits, in a word

/// The same of quantised weights, by llm_quant, or by llm_quant_2, whose clusters of two share the columns of a tile
/// (no norm's weights there): matrices of one type, rows of row_bytes at multiples of 16. Scales of a part: floats
/// [rows / scale_rows] that are constant along a row, or words [rows / scale_rows][scale_words] of a float, an F16 with
/// its zero, or two F16, for groups of columns. n_rows counts nothing here; gated products take 8 rows a tile of each.
typedef struct wt_llm_quant_args {
    wt_mm_map w[3]; ///< of each part, as pieces of its rows: boxes of 8 rows of a team's pieces
    wt_mm_map s[3]; ///< of the scales of groups: boxes of a team's, of 8 rows or of one that those share
    wt_llm_matvec_args m;
    long long row_bytes;
    int n_tiles; ///< of 16 rows, of each part by itself
    int scale_rows, scale_words;
    int scale_shift;    ///< scale_rows is 2 to that, where boxes bring scales of groups
    int scale_pitch;    ///< bytes in a stage from a row's scales to the next one's; 0 = 8 rows share them
    int scale_bytes;    ///< and between those of 8 rows
    int scale_expected; ///< that boxes bring
    int team, n_turns;  ///< warps of a block that share a tile's columns, a power of two, and how often each has some
    int n_teams;        ///< of a block
    int n_stages;       ///< of a block, a multiple of its teams
    int has_boxes;      ///< else a warp's lanes copy
    int pace;           ///< stages on their way together before the vector is asked for

    // Of the experts that are chosen for one vector, compiled so: `m`, w and s are those of the first expert, the maps
    // with the rows of all; parts' out is [n_used][rows].
    wt_llm_choose_args choose; ///< a block is one's; what needs no vectors tells the choice
    int have_vectors;         ///< x is [n_used][columns], and the routes were there before the launch; else one's
    int next_rows[2];         ///< rows of a map from an expert to the next one, of each part
    int next_scale_rows[2];   ///< likewise of scales of groups
    long long next[2];        ///< and bytes, of weights
    long long next_scales[2]; ///< and of scales
} wt_llm_quant_args;

#define WT_LLM_QUANT_RING    8 ///< tiles of a block of llm_quant.cu whose sums wait to be finished, one of each team
#define WT_LLM_QUANT_WARPS   8 ///< of a block that multiply
#define WT_LLM_QUANT_HELPERS 2 ///< and those that copy and finish
#define WT_LLM_QUANT_BLOCKS  2 ///< of one launch on a processor, where its shared memory is enough

/// Bytes of shared memory of a block of llm_quant.cu: stages of so many bytes with their scales, the vector in parts,
/// `columns` altogether, what is known of its groups, the sums of the warps, and barriers.
static inline long long wt_llm_quant_shared(int columns, int stages, int stage_bytes, int has_digits)
{
    return 1024 + (long long)stage_bytes * stages + (has_digits ? 3 : 4) * (columns + 32ll) + columns / 4 +
           64 * WT_LLM_QUANT_RING * WT_LLM_QUANT_WARPS + 16 * (stages + WT_LLM_QUANT_RING);
}

#define WT_LLM_PICK_BLOCKS 64
#define WT_LLM_RING        64

/// What a step chose, as the host reads it: `step` counts from 1 and comes last.
typedef struct wt_llm_choice {
    int id, step; ///< id -1 = a logit is not a number
} wt_llm_choice;

/// The largest logit of each row (grid y), the first of equals: it becomes the next step's token, one place on.
typedef struct wt_llm_pick_args {
    const float *logits;  ///< [n][vocab_size]
    wt_llm_token *tokens; ///< [n]
    float *best;          ///< [n][WT_LLM_PICK_BLOCKS][4] of a block: logit and id, the second logit, the lowest
    int *arrived;         ///< [n], 0 before and after
    int *step;            ///< [1] steps so far
    wt_llm_choice *ring;  ///< [WT_LLM_RING] of the host, of one row; NULL = none
    int vocab_size;
} wt_llm_pick_args;

// ---- drawing

#define WT_LLM_MAX_TOP     20 ///< probable tokens that are told besides the chosen one
#define WT_LLM_DRAW_BLOCKS 8  ///< that share a row of logits at most
#define WT_LLM_MAX_CHOSEN  48 ///< tokens that are counted besides the tallies

/// What is told of a choice: natural logarithms of probabilities by the logits as they are.
typedef struct wt_llm_odds {
    float logprob; ///< of the chosen token; 0 when not asked for
    int n_top;
    int top_ids[WT_LLM_MAX_TOP]; ///< the most probable first
    float top_logprobs[WT_LLM_MAX_TOP];
} wt_llm_odds;

/// The next token of each row of logits (grid y) by its own settings. Rows that follow each other in one sequence have
/// the same tally, and count of `chosen` what was chosen since that was made, which is added to it, and what was
/// guessed before them.
typedef struct wt_llm_sample_args {
    const float *logits;   ///< [n][vocab_size]
    wt_llm_draw *draws;    ///< [n]
    wt_llm_tally *tallies; ///< [..][vocab_size]
    const int *chosen; ///< [WT_LLM_MAX_CHOSEN] of rows that follow each other; NULL = each row is of its own sequence
    int *arrived;      ///< [1] rows that are done, 0 before and after; of those that follow each other
    unsigned *values;  ///< [n][vocab_size] of the blocks; NULL = there is room in their shared memory
    wt_llm_odds *odds; ///< [n]
    wt_llm_token *tokens;   ///< [n] become the next step's
    int *step;              ///< [1] steps so far
    wt_llm_choice *ring;    ///< [WT_LLM_RING] of the host, of one row; NULL = none
    wt_llm_odds *ring_odds; ///< [WT_LLM_RING] of the host; NULL = none
    int vocab_size;
} wt_llm_sample_args;

/// Tokens of a row that each of `blocks` has.
WT_SHARED_FN int wt_llm_draw_share(int vocab_size, int blocks)
{
    return (vocab_size + 32 * blocks - 1) / (32 * blocks) * 32;
}

/// The router of one token, with RMSNorm. Rows of 16 bytes and multiples.
typedef struct wt_llm_route_args {
    const void *router; ///< [n_experts][width] of `type`
    const float *x, *norm_weight;
    float *routes; ///< [n_experts]
    float eps;
    int n_experts, width, type;
} wt_llm_route_args;
#define WT_LLM_ROUTE_ROWS 8 ///< of a block

/// Tokens to the experts they chose, and back.
typedef struct wt_llm_mix_args {
    const int *chosen;   ///< [n_pairs], n_used of a token
    const float *shares; ///< [n_pairs]
    int *offsets;        ///< [n_experts + 1] where an expert's rows begin
    int *slots;          ///< [n_pairs] rows of the pairs; NULL = their own numbers
    const void *n;       ///< [n_tokens][d_model] of `type`
    void *grouped;       ///< [n_pairs][d_model] of `type`, by expert
    const float *mixed;  ///< [n_pairs][d_model] what the experts gave
    float *x;            ///< [n_tokens][d_model] += sum of share mixed
    int n_pairs, n_experts, n_used, d_model, type;
} wt_llm_mix_args;

#endif
