// Convolution along time: kernels/nn/nn_conv.cu on a GPU; on the CPU 8 outputs x 128 positions at a time, 16 channels
// of the window as float in the thread's scratch, one array for each position modulo the step, so that the positions of
// a tap are neighbours.
#include "nn_internal.h"

#include <math.h>
#include <stdlib.h>

enum { OUTPUTS = 8, POSITIONS = 128, LANES = 16, CHANNELS = 16, WINDOW = 16384 }; ///< the CPU's; floats of a window
enum { FEW = 16, FEW_THREADS = 256, TILE = 64, SPLITS = 4, SPLIT_TERMS = 256 };   ///< the GPU's
enum { THREADS_16 = 128, STAGES_16 = 4, CHANNELS_16 = 32, PITCH_16 = CHANNELS_16 + 8 }; ///< as in nn_conv_16.cu

// ---- the CPU

typedef struct piece {
    const nn_conv_args *a;
    nn_phase phase;
    int n, group, output, n_outputs, count; ///< positions
    long long position;
    int length; ///< of an array of the window
    float sums[OUTPUTS][POSITIONS];
    float x[WINDOW];
} piece;

/// Elements of x that the positions of one piece touch.
static long long touched(const nn_phase *p)
{
    const long long apart = p->at_step < 0 ? -p->at_step : p->at_step;
    return (long long)(POSITIONS - 1) * p->x_step + (p->n_taps > 0 ? p->n_taps - 1 : 0) * apart + 1;
}

static long long window_begin(const piece *p)
{
    const nn_phase *f = &p->phase;
    return f->at + (f->at_step < 0 ? (long long)(f->n_taps - 1) * f->at_step : 0) + p->position * f->x_step;
}

/// A channel of the window: element e of it at [e modulo x_step][e / x_step].
static void fetch(piece *p, int channel, float *to)
{
    const nn_conv_args *a = p->a;
    const int step = p->phase.x_step;
    const long long from = p->n * a->x.strides[0] + ((long long)p->group * a->inputs + channel) * a->x.strides[1];
    const long long begin = window_begin(p), n = (long long)p->length * step;
    float line[WINDOW];
    long long first = begin < 0 ? -begin : 0, end = a->length - begin < n ? a->length - begin : n;
    if (first > n) first = n;
    if (end < first) end = first;
    float *flat = step == 1 ? to : line;
    memset(flat, 0, sizeof *flat * (size_t)n);
    wt__nn_read(a->x.type, a->x.data, from + begin + first, end - first, flat + first);
    for (int r = 0; step > 1 && r < step; r++)
        for (int k = 0; k < p->length; k++) to[r * p->length + k] = line[k * step + r];
}

/// Sums of a vector of positions of all outputs over some channels and all taps; a tap's place is counted on, since a
/// division would take longer than its products.
#define ADD_LANES(vector)                                                                                              \
    {                                                                                                                  \
        const float *weight = weights;                                                                                 \
        vector sums[OUTPUTS], x;                                                                                       \
        for (int o = 0; o < OUTPUTS; o++) memcpy(&sums[o], &p->sums[o][at], sizeof x);                                 \
        for (int c = 0; c < n_channels; c++) {                                                                         \
            int line = back % step, place = back / step;                                                               \
            for (int i = 0; i < f->n_taps; i++, weight += OUTPUTS) {                                                   \
                memcpy(&x, p->x + (c * step + line) * p->length + place + at, sizeof x);                               \
                for (int o = 0; o < OUTPUTS; o++) sums[o] += weight[o] * x;                                            \
                line += next_line, place += next_place;                                                                \
                if (line >= step) line -= step, place++;                                                               \
            }                                                                                                          \
        }                                                                                                              \
        for (int o = 0; o < OUTPUTS; o++) memcpy(&p->sums[o][at], &sums[o], sizeof x);                                 \
    }

WT_CLONES static void add_channels(piece *p, int n_channels, const float *weights)
{
    const nn_phase *f = &p->phase;
    const int step = f->x_step, back = f->at_step < 0 ? (f->n_taps - 1) * -f->at_step : 0;
    const int next_line = (f->at_step % step + step) % step, next_place = (f->at_step - next_line) / step;
    const int lanes = wt_simd_floats();
    for (int at = 0; at < p->count; at += lanes)
        if (lanes == 16)
            ADD_LANES(wt_f32x16)
        else
            ADD_LANES(wt_f32x8)
}

/// Weights of some channels, [channel][tap][output]; 0 beyond the last output.
static void gather_weights(const piece *p, int channel, int n_channels, float *to)
{
    const nn_conv_args *a = p->a;
    for (int c = 0; c < n_channels; c++)
        for (int i = 0; i < p->phase.n_taps; i++)
            for (int o = 0; o < OUTPUTS; o++, to++) {
                const int tap = p->phase.tap + i * p->phase.tap_step;
                const long long at = p->group * a->next_group + (p->output + o) * a->weight.strides[0] +
                                     (channel + c) * a->weight.strides[1] + tap * a->weight.strides[2];
                *to = o < p->n_outputs ? nn_get(a->weight.type, a->weight.data, at) : 0;
            }
}

static void finish(piece *p)
{
    const nn_conv_args *a = p->a;
    float line[POSITIONS];
    for (int o = 0; o < p->n_outputs; o++) {
        const long long channel = (long long)p->group * a->outputs + p->output + o;
        const long long at = p->phase.first + p->position * p->phase.step;
        const long long out = p->n * a->out.strides[0] + channel * a->out.strides[1] + at;
        const long long other = p->n * a->residual.strides[0] + channel * a->residual.strides[1] + at;
        for (int k = 0; k < p->count; k++) line[k] = p->sums[o][k] + nn_get_or(&a->bias, channel, 0);
        wt__nn_activate(&a->after, p->count, line, channel, true);
        for (int k = 0; a->residual.data && k < p->count; k++)
            line[k] += nn_get(a->residual.type, a->residual.data, other + (long long)k * p->phase.step);
        if (p->phase.step == 1)
            wt__nn_write(a->out.type, a->out.data, out, p->count, line);
        else
            for (int k = 0; k < p->count; k++)
                nn_put(a->out.type, a->out.data, out + (long long)k * p->phase.step, line[k]);
    }
}

typedef struct split {
    int outputs, positions, items; ///< pieces of a group's outputs; of a phase's positions; of all
} split;

static split split_of(const nn_conv_args *a)
{
    const nn_phase first = nn_phase_of(a, 0);
    const int outputs = (a->outputs + OUTPUTS - 1) / OUTPUTS, positions = (int)((first.n + POSITIONS - 1) / POSITIONS);
    return (split){outputs, positions, a->n * a->groups * a->phases * outputs * positions};
}

static void item(const void *args, int index)
{
    const nn_conv_args *a = args;
    const split s = split_of(a);
    float weights[WINDOW];
    piece p;
    p.a = a;
    p.position = (long long)(index % s.positions) * POSITIONS;
    p.output = index / s.positions % s.outputs * OUTPUTS;
    index /= s.positions * s.outputs;
    p.phase = nn_phase_of(a, index % a->phases);
    p.group = index / a->phases % a->groups;
    p.n = index / a->phases / a->groups;
    if (p.position >= p.phase.n) return;
    p.count = (int)(p.phase.n - p.position < POSITIONS ? p.phase.n - p.position : POSITIONS);
    p.n_outputs = a->outputs - p.output < OUTPUTS ? a->outputs - p.output : OUTPUTS;
    p.length = (int)((touched(&p.phase) + p.phase.x_step - 1) / p.phase.x_step) + LANES;
    int each = WINDOW / (p.length * p.phase.x_step); // channels at a time
    if (each > CHANNELS) each = CHANNELS;
    if (p.phase.n_taps && each > WINDOW / OUTPUTS / p.phase.n_taps) each = WINDOW / OUTPUTS / p.phase.n_taps;
    memset(p.sums, 0, sizeof p.sums);
    for (int c = 0; c < a->inputs && p.phase.n_taps; c += each) {
        const int n = a->inputs - c < each ? a->inputs - c : each;
        for (int k = 0; k < n; k++) fetch(&p, c + k, p.x + (size_t)k * (size_t)(p.length * p.phase.x_step));
        gather_weights(&p, c, n, weights);
        add_channels(&p, n, weights);
    }
    finish(&p);
}

// ---- the GPU

static bool in_eights(const nn_strided *x)
{
    return (uintptr_t)x->data % 16 == 0 && x->strides[0] % 8 == 0 && x->strides[1] % 8 == 0;
}

static bool weights_in_eights(const nn_conv_args *a)
{
    const nn_strided *w = &a->weight;
    return (uintptr_t)w->data % 16 == 0 && w->strides[1] == 1 && w->strides[0] % 8 == 0 && w->strides[2] % 8 == 0 &&
           a->next_group % 8 == 0 && a->inputs % 8 == 0;
}

static bool in_fours(const nn_strided *x)
{
    return !x->data || ((uintptr_t)x->data % (4 * wt_dtype_bytes((wt_dtype)x->type, 1)) == 0 &&
                        x->strides[0] % 4 == 0 && x->strides[1] % 4 == 0);
}

/// The convolution as a product (nn_kernel.h); false where it is none, or its numbers are too large for int.
static bool as_product(nn_conv_args *a)
{
    const int64_t *w = (const int64_t *)a->weight.strides;
    const int merged = a->transposed ? a->stride : 1;
    if (merged > 1 && a->dilation > 1) return false;
    const int n_taps = (a->taps + merged - 1) / merged;
    const long long shift = a->transposed ? a->padding : 0, positions = (a->out_length + shift + merged - 1) / merged;
    nn_conv_product *p = &a->product;
    *p = (nn_conv_product){.merged = merged,
                           .n_taps = n_taps,
                           .x_step = a->transposed ? 1 : a->stride,
                           .at = a->transposed ? 0 : -a->padding,
                           .at_step = a->transposed ? -a->dilation : a->dilation,
                           .shift = (int)shift,
                           .taps_inside = a->inputs == 1 || (n_taps > 1 && llabs(w[2]) < llabs(w[1])),
                           .rows_inside = llabs(w[0]) == 1 || (merged > 1 && llabs(w[2]) == 1),
                           .x_packs = in_eights(&a->x),
                           .w_packs = weights_in_eights(a),
                           .fours = merged == 1 && !shift && in_fours(&a->out) && in_fours(&a->residual)};
    p->inner = p->taps_inside ? n_taps : a->inputs;
    p->magic = p->inner > 1 ? (unsigned)((1ull << 32) / (unsigned)p->inner + 1) : UINT32_MAX;
    const long long far = (positions + 2 * TILE) * p->x_step + (long long)n_taps * a->dilation + a->padding;
    const long long weights = llabs(w[0]) * a->outputs + llabs(w[1]) * a->inputs + llabs(w[2]) * a->taps;
    const long long terms = (long long)a->inputs * n_taps + 64, rows = (long long)a->outputs * merged;
    if (far > INT32_MAX / 2 || a->length > INT32_MAX / 2 || rows > INT32_MAX / 2 || terms * p->inner > INT32_MAX ||
        weights > INT32_MAX / 2)
        return false;
    p->positions = (int)positions;
    p->rows = (int)rows;
    return true;
}

/// Shared memory of a block of 16-bit types with so many taps to a window, which is told too.
static size_t shared_16(nn_conv_args *a, int side, int chunk)
{
    nn_conv_product *p = &a->product;
    const long long length = 8 + (long long)(side - 1) * p->x_step + (long long)(chunk - 1) * abs(p->at_step);
    const int windows = chunk < p->n_taps || a->inputs > CHANNELS_16 ? 2 : 1;
    if (length > WINDOW) return SIZE_MAX;
    p->chunk = chunk;
    p->window = (int)(length + 7) / 8 * 8;
    return 2 * (size_t)PITCH_16 * (size_t)(STAGES_16 * side + windows * p->window);
}

/// Windows of as many taps as leave room for other blocks, of one tap if need be; 0 where that has no room.
static size_t fit_16(nn_conv_args *a, int side, size_t most)
{
    const size_t wanted = side == TILE ? most / 4 - 1024 : most / 2 - 1024;
    int chunk = a->product.n_taps;
    while (chunk > 1 && shared_16(a, side, chunk) > wanted) chunk--;
    const size_t bytes = shared_16(a, side, chunk);
    return bytes <= most ? bytes : 0;
}

static long long tiles_of(const nn_conv_args *a, int side)
{
    return (long long)((a->product.positions + side - 1) / side) * ((a->product.rows + side - 1) / side) * a->groups *
           a->n;
}

static wt_status queue_few(wt_nn *nn, wt_stream *stream, const nn_conv_args *a)
{
    const long long channels = (long long)a->groups * a->outputs;
    if (channels > 65535 || a->n > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "conv1d: %lld channels and %d signals, want at most 65535", channels, a->n);
    const wt_launch launch = {.grid = {(int)((a->out_length + FEW_THREADS - 1) / FEW_THREADS), (int)channels, a->n},
                              .block = {FEW_THREADS},
                              .overlap = true};
    return wt__nn_launch(nn, NN_CONV_FEW, stream, &launch, WT_ARG(*a));
}

/// A kernel of nn_conv.cu or nn_conv_16.cu.
typedef struct form {
    int side, splits;
} form;

static const form forms_f32[] = {{128, 1}, {128, 2}, {128, 3}, {128, 4}, {64, 1}, {64, 8}};
static const form forms_16[] = {{128, 1}, {128, 2}, {64, 1}, {64, 4}};

/// The form whose fullest processor has the least to do. A tile's blocks reach a share of the processor's rate that
/// grows with how many there are (shares from measurements on an H200); bringing a step's first terms takes as long
/// as 64.
static int best_form(const wt_nn *nn, const nn_conv_args *a, const form *forms, int n)
{
    static const double large[] = {0.6, 1}, small[] = {0.25, 0.4, 0.5, 0.55};
    double least = 1e300;
    int best = 0;
    for (int k = 0; k < n; k++) {
        const form f = forms[k];
        const double blocks = (double)tiles_of(a, f.side) * f.splits, deep = ceil(blocks / nn->n_sms);
        const double terms = (double)a->inputs * a->product.n_taps / f.splits + 64;
        const double rate = f.side == TILE ? small[deep > 4 ? 3 : (int)deep - 1] : large[deep > 2 ? 1 : (int)deep - 1];
        const double work = deep * f.side * f.side * terms / rate;
        if (work >= least || (f.splits > 1 && !nn->clusters)) continue;
        least = work;
        best = k;
    }
    return best;
}

static wt_status queue_cuda(wt_nn *nn, wt_stream *stream, nn_conv_args *a)
{
    const wt_device_info *info = wt_device_get_info(nn->device);
    const bool one_type = a->x.type == a->weight.type, f32 = one_type && a->x.type == NN_F32;
    const bool tensor = one_type && !f32 && a->inputs >= 8;
    if (a->outputs < FEW || !as_product(a)) return queue_few(nn, stream, a);
    form f = {TILE, 1};
    int kernel = NN_CONV_ANY;
    size_t shared = 0;
    if (f32) {
        const int best = best_form(nn, a, forms_f32, sizeof forms_f32 / sizeof *forms_f32);
        f = forms_f32[best];
        kernel = NN_CONV_F32 + best;
    } else if (tensor) {
        const int best = best_form(nn, a, forms_16, sizeof forms_16 / sizeof *forms_16);
        f = forms_16[best];
        kernel = (a->x.type == NN_F16 ? NN_CONV_F16 : NN_CONV_BF16) + best;
        shared = fit_16(a, f.side, info->shared_bytes);
        if (!shared) return queue_few(nn, stream, a);
    }
    const int tiles = (a->product.positions + f.side - 1) / f.side;
    const long long rows = (long long)a->groups * ((a->product.rows + f.side - 1) / f.side);
    if (rows > 65535 || a->n > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "conv1d: %lld tiles of outputs and %d signals, want at most 65535", rows, a->n);
    const wt_launch launch = {.grid = {tiles * f.splits, (int)rows, a->n},
                              .block = {tensor ? THREADS_16 : 2 * f.side},
                              .shared_bytes = shared,
                              .overlap = true};
    return wt__nn_launch(nn, (nn_kernel)kernel, stream, &launch, WT_ARG(*a));
}

// ---- both

int64_t wt_conv1d_length(const wt_conv1d_args *args, int64_t length, int64_t taps)
{
    const int64_t stride = args->stride ? args->stride : 1, span = (args->dilation ? args->dilation : 1) * (taps - 1);
    const int64_t n = args->transposed ? (length - 1) * stride - 2 * args->padding + span + args->output_padding + 1
                                       : length + 2 * (int64_t)args->padding - span - 1;
    if (length < 1 || n < 0 || (n == 0 && args->transposed)) return 0;
    return args->transposed ? n : n / stride + 1;
}

static wt_status check_numbers(const wt_conv1d_args *args, const nn_conv_args *a)
{
    if (a->stride < 1 || a->dilation < 1 || a->groups < 1 || args->padding < 0 || args->output_padding < 0 ||
        (args->output_padding && (!args->transposed || args->output_padding >= a->stride)))
        return wt_fail(WT_ERR_BAD_ARG,
                       "conv1d: stride %d, dilation %d, groups %d, padding %d, output padding %d; want 1 or more, the "
                       "paddings 0 or more, the last below the stride and only transposed",
                       a->stride, a->dilation, a->groups, args->padding, args->output_padding);
    return WT_OK;
}

/// Extents of all arrays, and the weights' strides as the kernels want them: of outputs, inputs and taps.
static wt_status match(const wt_conv1d_args *args, nn_conv_args *a)
{
    const wt_array *x = args->x, *w = args->weight, *out = args->out;
    const int64_t channels = x->shape[1], outputs = args->transposed ? w->shape[1] * a->groups : w->shape[0];
    const int64_t length = wt_conv1d_length(args, x->shape[2], w->shape[2]);
    char text[96];
    if (channels % a->groups || outputs % a->groups || w->shape[2] < 1 ||
        w->shape[args->transposed ? 0 : 1] != (args->transposed ? channels : channels / a->groups))
        return wt_fail(WT_ERR_BAD_ARG, "conv1d: weight is %s for %lld channels in %d groups, want [%s][taps]",
                       wt_shape_describe(w->rank, w->shape, text), (long long)channels, a->groups,
                       args->transposed ? "channels][outputs / groups" : "outputs][channels / groups");
    wt_status status = wt__nn_shape("conv1d: out", out, 3, (int64_t[]){x->shape[0], outputs, length});
    if (!status && args->residual) status = wt__nn_shape("conv1d: residual", args->residual, 3, out->shape);
    if (!status) status = wt__nn_vector("conv1d: bias", args->bias, outputs, &a->bias);
    if (!status) status = wt__nn_after("conv1d", &args->activation, outputs, &a->after);
    a->n = (int)x->shape[0];
    a->inputs = (int)(channels / a->groups);
    a->outputs = (int)(outputs / a->groups);
    a->taps = (int)w->shape[2];
    a->length = x->shape[2];
    a->out_length = length;
    a->phases = args->transposed ? a->stride : 1;
    a->weight = (nn_strided){.data = (void *)w->data,
                             .strides = {w->strides[args->transposed], w->strides[!args->transposed], w->strides[2]},
                             .type = (int)w->dtype};
    a->next_group = args->transposed ? a->inputs * w->strides[0] : a->outputs * w->strides[0];
    return status;
}

wt_status wt_nn_conv1d(wt_nn *nn, wt_stream *stream, const wt_conv1d_args *args)
{
    nn_conv_args a = {.stride = args->stride ? args->stride : 1,
                      .dilation = args->dilation ? args->dilation : 1,
                      .groups = args->groups ? args->groups : 1,
                      .padding = args->padding,
                      .transposed = args->transposed};
    wt_status status = wt__nn_strided("conv1d: x", args->x, 3, &a.x);
    if (!status) status = wt__nn_strided("conv1d: out", args->out, 3, &a.out);
    if (!status && args->residual) status = wt__nn_strided("conv1d: residual", args->residual, 3, &a.residual);
    if (!status) status = wt__nn_view("conv1d: weight", args->weight, 3);
    if (!status) status = check_numbers(args, &a);
    if (!status) status = match(args, &a);
    if (status || !a.n || !a.outputs || !a.out_length) return status;
    if (nn->on_gpu) return queue_cuda(nn, stream, &a);
    const nn_phase p = nn_phase_of(&a, 0);
    if (touched(&p) + (long long)(LANES + 1) * p.x_step > WINDOW || a.taps > WINDOW / OUTPUTS)
        return wt_fail(WT_ERR_UNSUPPORTED, "conv1d: %d taps, dilation %d, stride %d: a window of %lld, want at most %d",
                       a.taps, a.dilation, a.stride, touched(&p), WINDOW - (LANES + 1) * p.x_step);
    return wt_stream_run(stream, item, &a, sizeof a, split_of(&a).items);
}
