// Neural operations at the shapes of Whisper, Kokoro and language models, on a GPU or the CPU: time of a call, and what
// that is in bytes (each array once) or operations a second. On a GPU calls are replayed from a graph, 20 in a row over
// the same arrays, which L2 may hold where they are small; the median of several replays.
//
//   bench_nn [cpu|gpu] [filter]     rows whose name contains `filter`; without a device the one there is
//
//   layer norm 1500 x 1280 bf16          4.21 us     1824 GB/s   0.40 of read
// (The figure only shows the form.) bench/peers/torch_nn.py has the same rows by torch.

#include "support/read_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/graph.h>
#include <warptone/nn.h>

enum { MAX_ARRAYS = 16, REPLAYS = 9, CALLS = 20 };
static const double cpu_seconds = 0.3, cpu_most_flops = 3e10;

typedef struct bench {
    wt_device *device;
    wt_stream *stream;
    wt_matmul *matmul;
    wt_arrays *arrays;
    wt_nn *nn;
    wt_buffer *buffers[MAX_ARRAYS];
    int n_buffers;
    wt_event *begin, *end;
    const char *filter;
    bool on_gpu;
    double read_rate;    ///< GB/s
    double flops, bytes; ///< of a call; flops 0 = the row is about bytes
} bench;

static void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_nn: %s\n", wt_last_error());
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define SHAPE(...)                                                                                                     \
    (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/// Random numbers of mean 0.5 less 0.5; counted as bytes that move.
static wt_array take(bench *b, wt_dtype type, int rank, const int64_t *shape)
{
    wt_array a = wt_array_of(16, type, rank, shape);
    const size_t bytes = wt_dtype_bytes(type, wt_array_elements(&a));
    need(wt_buffer_create(b->device, WT_MEMORY_DEVICE, bytes, &b->buffers[b->n_buffers]));
    a.data = wt_buffer_address(b->buffers[b->n_buffers++]);
    b->bytes += (double)bytes;
    if (type == WT_DTYPE_I32) return a;
    const wt_array half = wt_array_constant(WT_DTYPE_F32, 0.5);
    need(wt_array_random(b->arrays, b->stream, WT_RANDOM_UNIFORM, 1, (uint64_t)b->n_buffers << 32, &a));
    need(wt_array_binary(b->arrays, b->stream, WT_BINARY_SUB, &a, &half, &a));
    return a;
}

typedef void call(bench *b, const void *args);

static double gpu_us(bench *b, call *queue, const void *args)
{
    wt_graph *graph = NULL;
    double us[REPLAYS];
    queue(b, args);
    need(wt_stream_synchronize(b->stream));
    need(wt_graph_begin(b->stream, &graph));
    for (int k = 0; k < CALLS; k++) queue(b, args);
    need(wt_graph_end(graph));
    for (int k = -2; k < REPLAYS; k++) {
        need(wt_event_record(b->begin, b->stream));
        need(wt_graph_launch(graph, b->stream));
        need(wt_event_record(b->end, b->stream));
        need(wt_stream_synchronize(b->stream));
        if (k >= 0) need(wt_event_elapsed_us(b->begin, b->end, &us[k]));
    }
    wt_graph_destroy(graph);
    qsort(us, REPLAYS, sizeof *us, by_value);
    return us[REPLAYS / 2] / CALLS;
}

static double cpu_us(bench *b, call *queue, const void *args)
{
    double best = 1e30, all = 0;
    need(wt_stream_synchronize(b->stream)); // the numbers are there
    while (all < cpu_seconds) {
        const int64_t begin = wt_clock_now_ns(NULL);
        queue(b, args);
        need(wt_stream_synchronize(b->stream));
        const double us = (double)(wt_clock_now_ns(NULL) - begin) / 1e3;
        if (us < best) best = us;
        all += us / 1e6;
    }
    return best;
}

static bool wanted(const bench *b, const char *name, double flops)
{
    return (!b->filter || strstr(name, b->filter)) && (b->on_gpu || flops <= cpu_most_flops);
}

/// Time it, print, and give the arrays back.
static void row(bench *b, const char *name, call *queue, const void *args)
{
    const double us = b->on_gpu ? gpu_us(b, queue, args) : cpu_us(b, queue, args);
    if (b->flops > 0)
        printf("%-44s %10.2f us  %9.2f TFLOP/s\n", name, us, b->flops / us / 1e6);
    else if (b->on_gpu)
        printf("%-44s %10.2f us  %9.1f GB/s  %5.2f of read\n", name, us, b->bytes / us / 1e3,
               b->bytes / us / 1e3 / b->read_rate);
    else
        printf("%-44s %10.2f us  %9.1f GB/s\n", name, us, b->bytes / us / 1e3);
    fflush(stdout);
    need(wt_stream_synchronize(b->stream));
    for (; b->n_buffers; b->n_buffers--) wt_buffer_destroy(b->buffers[b->n_buffers - 1]);
    b->bytes = b->flops = 0;
}

// ---- norms and pointwise operations

static void queue_norm(bench *b, const void *args) { need(wt_nn_norm(b->nn, b->stream, args)); }
static void queue_point(bench *b, const void *args) { need(wt_nn_pointwise(b->nn, b->stream, args)); }

static void norms(bench *b)
{
    const char *name = "rms norm + residual 4096 x 4096 bf16";
    if (wanted(b, name, 0)) {
        wt_array x = take(b, WT_DTYPE_BF16, SHAPE(4096, 4096)), h = take(b, WT_DTYPE_BF16, SHAPE(4096, 4096));
        wt_array out = take(b, WT_DTYPE_BF16, SHAPE(4096, 4096)), w = take(b, WT_DTYPE_BF16, SHAPE(4096));
        b->bytes += 2.0 * 4096 * 4096; // h is read and written
        row(b, name, queue_norm, &(wt_norm_args){.x = &x, .residual = &h, .sum = &h, .weight = &w, .out = &out});
    }
    name = "layer norm 1500 x 1280 bf16";
    if (wanted(b, name, 0)) {
        wt_array x = take(b, WT_DTYPE_BF16, SHAPE(1500, 1280)), out = take(b, WT_DTYPE_BF16, SHAPE(1500, 1280));
        wt_array w = take(b, WT_DTYPE_F32, SHAPE(1280)), bias = take(b, WT_DTYPE_F32, SHAPE(1280));
        row(b, name, queue_norm,
            &(wt_norm_args){.kind = WT_NORM_LAYER, .x = &x, .weight = &w, .bias = &bias, .out = &out});
    }
    name = "instance norm, style, snake 128 x 28800 f32";
    if (wanted(b, name, 0)) {
        wt_array x = take(b, WT_DTYPE_F32, SHAPE(1, 128, 28800)), out = take(b, WT_DTYPE_F32, SHAPE(1, 128, 28800));
        wt_array w = take(b, WT_DTYPE_F32, SHAPE(1, 128)), alpha = take(b, WT_DTYPE_F32, SHAPE(128));
        row(b, name, queue_norm,
            &(wt_norm_args){.kind = WT_NORM_GROUP,
                            .x = &x,
                            .weight = &w,
                            .bias = &w,
                            .one_plus = true,
                            .activation = {.kind = WT_ACTIVATION_SNAKE, .alpha = &alpha},
                            .out = &out});
    }
    name = "swiglu 4096 x 12288 bf16";
    if (wanted(b, name, 0)) {
        wt_array x = take(b, WT_DTYPE_BF16, SHAPE(4096, 12288)), up = take(b, WT_DTYPE_BF16, SHAPE(4096, 12288));
        wt_array out = take(b, WT_DTYPE_BF16, SHAPE(4096, 12288));
        row(b, name, queue_point,
            &(wt_pointwise_args){.x = &x, .up = &up, .activation.kind = WT_ACTIVATION_SILU, .out = &out});
    }
    name = "bias + gelu 1500 x 5120 bf16";
    if (wanted(b, name, 0)) {
        wt_array x = take(b, WT_DTYPE_BF16, SHAPE(1500, 5120)), bias = take(b, WT_DTYPE_BF16, SHAPE(5120));
        b->bytes *= 2;
        row(b, name, queue_point,
            &(wt_pointwise_args){.x = &x, .bias = &bias, .activation.kind = WT_ACTIVATION_GELU, .out = &x});
    }
}

// ---- convolutions

typedef struct conv {
    const char *name;
    int channels, length, outputs, taps, stride, padding, dilation, groups, extra; ///< extra -1 = not transposed
    wt_dtype type;
} conv;

static const conv convs[] = {
    {"conv Whisper 128 > 1280 k3, 3000 bf16", 128, 3000, 1280, 3, 1, 1, 1, 1, -1, WT_DTYPE_BF16},
    {"conv Whisper 128 > 1280 k3, 3000 f32", 128, 3000, 1280, 3, 1, 1, 1, 1, -1, WT_DTYPE_F32},
    {"conv Whisper 1280 > 1280 k3 s2, 3000 bf16", 1280, 3000, 1280, 3, 2, 1, 1, 1, -1, WT_DTYPE_BF16},
    {"conv Whisper 1280 > 1280 k3 s2, 3000 f32", 1280, 3000, 1280, 3, 2, 1, 1, 1, -1, WT_DTYPE_F32},
    {"conv Kokoro 128 > 128 k11 d5, 28800 f16", 128, 28800, 128, 11, 1, 25, 5, 1, -1, WT_DTYPE_F16},
    {"conv Kokoro 128 > 128 k11 d5, 28800 f32", 128, 28800, 128, 11, 1, 25, 5, 1, -1, WT_DTYPE_F32},
    {"conv Kokoro 256 > 256 k7 d3, 4800 f32", 256, 4800, 256, 7, 1, 9, 3, 1, -1, WT_DTYPE_F32},
    {"conv Kokoro 512 > 512 k3, 240 f32", 512, 240, 512, 3, 1, 1, 1, 1, -1, WT_DTYPE_F32},
    {"conv Kokoro up 512 > 256 k20 s10, 480 f32", 512, 480, 256, 20, 10, 5, 1, 1, 0, WT_DTYPE_F32},
    {"conv Kokoro up 512 > 256 k20 s10, 480 f16", 512, 480, 256, 20, 10, 5, 1, 1, 0, WT_DTYPE_F16},
    {"conv Kokoro pool 512 k3 s2 depthwise, 240 f32", 512, 240, 512, 3, 2, 1, 1, 512, 1, WT_DTYPE_F32},
};

static void queue_conv(bench *b, const void *args) { need(wt_nn_conv1d(b->nn, b->stream, args)); }

static void convolutions(bench *b)
{
    for (size_t k = 0; k < sizeof convs / sizeof *convs; k++) {
        const conv *c = &convs[k];
        wt_conv1d_args args = {.stride = c->stride,
                               .dilation = c->dilation,
                               .groups = c->groups,
                               .padding = c->padding,
                               .transposed = c->extra >= 0,
                               .output_padding = c->extra > 0 ? c->extra : 0};
        const int64_t length = wt_conv1d_length(&args, c->length, c->taps);
        const int64_t steps = c->extra >= 0 ? c->length : length; // each meets all taps, transposed on the way in
        const double flops = 2.0 * (double)steps * c->channels * c->outputs / c->groups * c->taps;
        if (!wanted(b, c->name, flops)) continue;
        wt_array x = take(b, c->type, SHAPE(1, c->channels, c->length)),
                 out = take(b, c->type, SHAPE(1, c->outputs, length));
        wt_array w = c->extra < 0 ? take(b, c->type, SHAPE(c->taps, c->outputs, c->channels / c->groups))
                                  : take(b, c->type, SHAPE(c->taps, c->channels, c->outputs / c->groups));
        wt_array bias = take(b, WT_DTYPE_F32, SHAPE(c->outputs)), view;
        if (c->extra >= 0 && c->type != WT_DTYPE_F32) { // [taps][outputs][channels]
            w = wt_array_of(w.data, c->type, SHAPE(c->taps, c->outputs / c->groups, c->channels));
            need(wt_array_transpose(&w, (const int[]){2, 1, 0}, &view));
        } else if (c->type != WT_DTYPE_F32) {
            need(wt_array_transpose(&w, (const int[]){1, 2, 0}, &view));
        } else { // as PyTorch keeps them
            view = wt_array_of(w.data, c->type, SHAPE(w.shape[1], w.shape[2], w.shape[0]));
        }
        args.x = &x, args.weight = &view, args.bias = &bias, args.out = &out;
        b->flops = flops;
        row(b, c->name, queue_conv, &args);
    }
}

// ---- LSTM: the input's products included

typedef struct lstm {
    const char *name;
    int inputs, hidden, batch, steps, directions;
    wt_dtype type;
} lstm;

static const lstm lstms[] = {
    {"lstm Kokoro 640 > 2 x 256, 64 steps f32", 640, 256, 1, 64, 2, WT_DTYPE_F32},
    {"lstm Kokoro 640 > 2 x 256, 240 steps f32", 640, 256, 1, 240, 2, WT_DTYPE_F32},
    {"lstm Silero 128 > 128, 100 steps f32", 128, 128, 1, 100, 1, WT_DTYPE_F32},
    {"lstm 512 > 512, batch 8, 100 steps f32", 512, 512, 8, 100, 1, WT_DTYPE_F32},
    {"lstm 1024 > 1024, 100 steps f32", 1024, 1024, 1, 100, 1, WT_DTYPE_F32},
    {"lstm 1024 > 1024, 100 steps f16", 1024, 1024, 1, 100, 1, WT_DTYPE_F16},
};

static void queue_lstm(bench *b, const void *args) { need(wt_nn_lstm(b->nn, b->stream, args)); }

static void sequences(bench *b)
{
    for (size_t k = 0; k < sizeof lstms / sizeof *lstms; k++) {
        const lstm *l = &lstms[k];
        if (!wanted(b, l->name, 0)) continue;
        wt_array x = take(b, l->type, SHAPE(l->steps, l->batch, l->inputs)), w[2][2];
        wt_array out = take(b, l->type, SHAPE(l->steps, l->batch, l->directions * l->hidden));
        wt_lstm_args args = {.x = &x, .directions = l->directions, .out = &out};
        for (int d = 0; d < l->directions; d++) {
            w[d][0] = take(b, l->type, SHAPE(4 * l->hidden, l->inputs));
            w[d][1] = take(b, l->type, SHAPE(4 * l->hidden, l->hidden));
            args.weights[d].input = &w[d][0];
            args.weights[d].recurrent = &w[d][1];
        }
        args.workspace = take(b, WT_DTYPE_F32, SHAPE((int64_t)(wt_lstm_workspace_bytes(&args) / 4))).data;
        need(wt_nn_lstm_prepare(b->nn, &args));
        b->flops = 8.0 * l->steps * l->batch * l->directions * l->hidden * (l->inputs + l->hidden);
        row(b, l->name, queue_lstm, &args);
    }
}

// ---- experts

typedef struct mixture {
    wt_route_args route;
    wt_permute_args there;
    wt_unpermute_args back;
} mixture;

static void queue_route(bench *b, const void *args)
{
    need(wt_nn_route(b->nn, b->stream, &((const mixture *)args)->route));
}

static void queue_moves(bench *b, const void *args)
{
    need(wt_nn_permute(b->nn, b->stream, &((const mixture *)args)->there));
    need(wt_nn_unpermute(b->nn, b->stream, &((const mixture *)args)->back));
}

static void experts(bench *b)
{
    enum { TOKENS = 4096, EXPERTS = 128, USED = 8, WIDTH = 2048 };
    static const char *const names[] = {"route 4096 tokens, 8 of 128 f32", "permute, unpermute 4096 x 8 x 2048 bf16"};
    for (int k = 0; k < 2; k++) {
        if (!wanted(b, names[k], 0)) continue;
        wt_array scores = take(b, WT_DTYPE_F32, SHAPE(TOKENS, EXPERTS)),
                 x = take(b, WT_DTYPE_BF16, SHAPE(TOKENS, WIDTH));
        wt_array chosen = take(b, WT_DTYPE_I32, SHAPE(TOKENS, USED)),
                 slots = take(b, WT_DTYPE_I32, SHAPE(TOKENS, USED));
        wt_array shares = take(b, WT_DTYPE_F32, SHAPE(TOKENS, USED)),
                 offsets = take(b, WT_DTYPE_I32, SHAPE(EXPERTS + 1));
        wt_array grouped = take(b, WT_DTYPE_BF16, SHAPE(TOKENS * USED, WIDTH)),
                 out = take(b, WT_DTYPE_BF16, SHAPE(TOKENS, WIDTH));
        const mixture m = {
            .route = {.scores = &scores, .normalise = true, .chosen = &chosen, .shares = &shares},
            .there = {.chosen = &chosen, .offsets = &offsets, .slots = &slots, .x = &x, .grouped = &grouped},
            .back = {.grouped = &grouped, .slots = &slots, .shares = &shares, .out = &out}};
        queue_route(b, &m);
        b->bytes = k ? 2.0 * TOKENS * WIDTH * (2 + 2 * USED) : 4.0 * TOKENS * (EXPERTS + 2 * USED);
        row(b, names[k], k ? queue_moves : queue_route, &m);
    }
}

// ---- attention

typedef struct attention {
    const char *name;
    int heads, kv_heads, tokens, d_head;
    bool causal;
    wt_dtype type;
} attention;

static const attention attentions[] = {
    {"attention Whisper 20 heads of 64, 1500 bf16", 20, 20, 1500, 64, false, WT_DTYPE_BF16},
    {"attention Whisper 20 heads of 64, 1500 f32", 20, 20, 1500, 64, false, WT_DTYPE_F32},
    {"attention 8 heads of 256, 1024 f32", 8, 8, 1024, 256, false, WT_DTYPE_F32},
    {"attention 32 on 8 heads of 128, 4096 causal bf16", 32, 8, 4096, 128, true, WT_DTYPE_BF16},
};

static void queue_attention(bench *b, const void *args) { need(wt_nn_attention(b->nn, b->stream, args)); }

static void attend(bench *b)
{
    for (size_t k = 0; k < sizeof attentions / sizeof *attentions; k++) {
        const attention *a = &attentions[k];
        const double flops = 4.0 * a->heads * a->tokens * (double)a->tokens * a->d_head / (a->causal ? 2 : 1);
        if (!wanted(b, a->name, flops)) continue;
        wt_array q = take(b, a->type, SHAPE(1, a->heads, a->tokens, a->d_head)),
                 out = take(b, a->type, SHAPE(1, a->heads, a->tokens, a->d_head));
        wt_array key = take(b, a->type, SHAPE(1, a->kv_heads, a->tokens, a->d_head)),
                 v = take(b, a->type, SHAPE(1, a->kv_heads, a->tokens, a->d_head));
        b->flops = flops;
        row(b, a->name, queue_attention,
            &(wt_attention_args){.q = &q, .k = &key, .v = &v, .causal = a->causal, .out = &out});
    }
}

static void measure_read(bench *b)
{
    wt_buffer *buffer;
    const size_t bytes = (size_t)1 << 30;
    need(wt_buffer_create(b->device, WT_MEMORY_DEVICE, bytes, &buffer));
    need(bench_read_rate(b->device, b->stream, wt_device_get_info(b->device)->n_sms, wt_buffer_address(buffer), bytes,
                         &b->read_rate));
    wt_buffer_destroy(buffer);
    printf("%-44s %10s     %9.1f GB/s\n", "read", "", b->read_rate);
}

int main(int argc, char **argv)
{
    bench b = {0};
    wt_device_config config = {0};
    for (int k = 1; k < argc; k++)
        if (!strcmp(argv[k], "cpu"))
            config.backend = WT_BACKEND_CPU;
        else if (!strcmp(argv[k], "gpu"))
            config.backend = WT_BACKEND_CUDA;
        else
            b.filter = argv[k];
    need(wt_device_open(&config, &b.device));
    b.on_gpu = wt_device_get_info(b.device)->backend == WT_BACKEND_CUDA;
    printf("%s\n", wt_device_get_info(b.device)->name);
    need(wt_stream_create(b.device, NULL, &b.stream));
    need(wt_event_create(b.device, &b.begin));
    need(wt_event_create(b.device, &b.end));
    need(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &b.matmul));
    need(wt_arrays_create(&(wt_arrays_config){.device = b.device}, &b.arrays));
    need(wt_nn_create(&(wt_nn_config){.device = b.device, .matmul = b.matmul}, &b.nn));
    if (b.on_gpu) measure_read(&b);
    norms(&b);
    convolutions(&b);
    sequences(&b);
    experts(&b);
    attend(&b);
    wt_nn_destroy(b.nn);
    wt_arrays_destroy(b.arrays);
    wt_matmul_destroy(b.matmul);
    wt_event_destroy(b.begin);
    wt_event_destroy(b.end);
    wt_stream_destroy(b.stream);
    wt_device_close(b.device);
}
