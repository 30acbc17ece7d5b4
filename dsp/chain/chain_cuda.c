// The GPU side of a chain: its nodes are composed into one CUDA text, compiled once (the text depends only on the node
// types, so the cache serves every preset of the same shape), and launched with one thread block an instance. The text
// of a resident kernel that has all of a chain in shared memory is that chain's own: places, sizes and options are
// constants in it, values of parameters are not.
#include "chain_internal.h"

#include <warptone/kernel.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TABLE_SECTIONS = 8, MOST_TABLE_CHANNELS = 4, MOST_PLAN_BYTES = 64 };
enum { N_GENERATIONS = 16 }; // launches that may be queued before the host waits for the oldest

// What one launch reads from the host, in mapped memory: its spans, then the parameter targets.
typedef struct generation {
    wt_event *done;
    wt_buffer *record;
    bool used;
} generation;

struct chain_cuda {
    wt_module *module;
    wt_kernel *kernel;
    wt_stream *stream; // for resets outside a caller's stream
    wt_buffer *plans, *memory, *places, *readings, *faults;
    generation generations[N_GENERATIONS];
    unsigned turn;
    chain_args args;
    wt_launch launch;
};

// ---- the text

typedef struct text {
    char *at;
    size_t length, room;
    bool failed;
} text;

static void append(text *t, const char *format, ...) WT_PRINTF(2, 3);
static void append(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (t->length + (size_t)n + 1 > t->room) {
        size_t room = 2 * (t->length + (size_t)n + 1);
        char *at = realloc(t->at, room);
        if (!at) {
            t->failed = true;
            return;
        }
        t->at = at, t->room = room;
    }
    va_start(args, format);
    vsnprintf(t->at + t->length, t->room - t->length, format, args);
    va_end(args);
    t->length += (size_t)n;
}

static const char *kernel_name(const wt_node_type *type) { return type->kernel ? type->kernel : type->name; }

static bool seen_before(const wt_chain *chain, int k)
{
    for (int j = 0; j < k; j++)
        if (chain->nodes[j].type == chain->nodes[k].type) return true;
    return false;
}

static bool is_the_only_one(const wt_chain *chain, int k)
{
    int n = 0;
    for (int j = 0; j < chain->n_nodes; j++) n += chain->nodes[j].type == chain->nodes[k].type;
    return n == 1;
}

// A node's way for short blocks in line, where the text is its chain's own: a voice takes a fifth less clocks than by
// calls (bench/TRIED.md), for what the compiler knows of one node it knows of the next.
static bool has_quick(const wt_chain *chain, int k, bool in_shared)
{
    return in_shared && chain->nodes[k].type->flags & WT_NODE_CUDA_QUICK && is_the_only_one(chain, k);
}

static void append_ints(text *t, const int *values, int n)
{
    append(t, "{");
    for (int i = 0; i < n; i++) append(t, "%s%d", i ? ", " : "", values[i]);
    append(t, "}, ");
}

// A node's place as the compiler's own: what follows from it need not be loaded.
static void append_place(text *t, const wt_node_place *p)
{
    append(t, "{%llu, %llu, %llu, %llu, %llu, %llu, %d, %d, %uu, %d, ", p->plan, p->coeffs, p->state, p->ramps,
           p->readings, p->bypass, p->n_params, p->n_readings, p->logarithmic, p->n_inputs);
    append_ints(t, p->input, WT_MAX_NODE_INPUTS);
    append_ints(t, p->input_channels, WT_MAX_NODE_INPUTS);
    append(t, "%d, %d, %d, %d, %d, %d}", p->side, p->side_channels, p->output, p->output_channels, p->first_reading,
           p->latency);
}

// How much of a plan is the compiler's own too: the numbers before its tables, or all of a small one.
static size_t constant_bytes(const chain_node *node)
{
    if (!node) return 0;
    if (node->type->plan_head_bytes) return node->type->plan_head_bytes;
    return node->plan.plan_bytes <= MOST_PLAN_BYTES ? node->plan.plan_bytes : 0;
}

static void append_plan(text *t, const wt_chain *chain, const char *name, const chain_node *node)
{
    const size_t bytes = constant_bytes(node);
    if (!bytes) return;
    const unsigned char *plan = chain->plans + node->place.plan;
    append(t, "static __device__ __align__(16) const unsigned plan_%s[] = {", name);
    for (size_t i = 0; i < bytes; i += sizeof(unsigned)) {
        unsigned word = 0;
        const size_t left = bytes - i;
        memcpy(&word, plan + i, left < sizeof word ? left : sizeof word);
        append(t, "%uu, ", word);
    }
    append(t, "0u};\n");
}

// One of a type's functions, out of line, for any node of the type, or with place and plan of the `only` one.
static void append_function(text *t, const char *verb, const char *name, const char *function, const chain_node *only)
{
    char plan[64] = "room.plans + p.plan";
    const bool quick = !strcmp(function, "quick");
    if (constant_bytes(only)) snprintf(plan, sizeof plan, "plan_%s", name);
    append(t, "static __device__ %s %s_%s(const chain_args &a, unsigned char *memory, int n,"
              " long long position, int k)\n{\n"
              "    const chain_room room = chain_room_of(a, memory);\n"
              "    const wt_node_place %s", quick ? "__forceinline__ bool" : "__noinline__ void", verb, name,
           only ? "p = " : "&p = room.places[k]");
    if (only) append_place(t, &only->place);
    append(t, ";\n    const wt_node_io io = chain_io(a, room, n, position, p);\n"
              "    %s%s_%s(&io, chain_pointer{(void *)(%s)}, chain_pointer{room.memory + p.coeffs},"
              " chain_pointer{room.memory + p.state});\n}\n", quick ? "return " : "", name, function, plan);
}

static void append_line(text *t, const char *name)
{
    append(t, "static __device__ __noinline__ void line_%s(const chain_args &a, unsigned char *memory, int n,"
              " int k, int count)\n{\n    %s_line(a, chain_room_of(a, memory), n, k, count);\n}\n",
           name, name);
}

// Nodes from k on that run at once: each takes only what the one before has put into the same buffer.
static int line_length(const wt_chain *chain, int k)
{
    const chain_node *first = &chain->nodes[k];
    int n = 1;
    for (; first->type->flags & WT_NODE_CUDA_LINE && k + n < chain->n_nodes; n++) {
        const chain_node *node = &chain->nodes[k + n];
        if (node->type != first->type || node->place.n_inputs != 1 ||
            node->place.input[0] != first->place.output || node->place.output != first->place.output ||
            node->place.output_channels != first->place.output_channels)
            break;
    }
    return n;
}

// A line of which a table is made (biquad.cuh): one of a few sections and channels, where one stream has the kernel.
static bool has_table(const wt_chain *chain, int k)
{
    return line_length(chain, k) > 1 && line_length(chain, k) <= MOST_TABLE_SECTIONS &&
           chain->nodes[k].place.output_channels <= MOST_TABLE_CHANNELS;
}

int wt__chain_cuda_threads(const wt_chain *chain)
{
    return chain->buffer_channels < 4 ? 128 * chain->buffer_channels : 512;
}

int wt__chain_cuda_run_threads(const wt_chain *chain)
{
    const int threads = 64 * chain->buffer_channels;
    return threads < 128 ? 128 : threads > 512 ? 512 : threads;
}

size_t wt__chain_cuda_floats(const wt_chain *chain, int frames)
{
    return (size_t)chain->n_buffers * (size_t)chain->buffer_channels * (size_t)frames +
           (((size_t)chain->scratch_floats + 3) & ~(size_t)3);
}

size_t wt__chain_cuda_table_bytes(const wt_chain *chain, int frames)
{
    size_t floats = 0;
    for (int k = 0; k < chain->n_nodes; k += line_length(chain, k)) {
        const size_t n = (size_t)line_length(chain, k), channels = (size_t)chain->nodes[k].place.output_channels;
        if (has_table(chain, k)) floats += (2 + 2 * n + 2 * channels) * (size_t)frames + (2 * n + 1) * 2 * n + 4;
    }
    return sizeof(float) * floats;
}

static void append_tables(text *t, const wt_chain *chain)
{
    for (int k = 0; k < chain->n_nodes; k += line_length(chain, k)) {
        const char *name = kernel_name(chain->nodes[k].type);
        if (!has_table(chain, k)) continue;
        append(t, "static __shared__ __align__(16) %s_table<%d, %d> table_%d;\n", name, line_length(chain, k),
               chain->nodes[k].place.output_channels, k);
        append(t, "static __device__ __forceinline__ bool ahead_%d(const chain_args &a, unsigned char *memory, int n)\n"
                  "{\n    const wt_node_place p[] = {", k);
        for (int j = k; j < k + line_length(chain, k); j++) {
            append_place(t, &chain->nodes[j].place);
            append(t, ",\n        ");
        }
        append(t, "};\n    return %s_ahead(a, chain_room_of(a, memory), n, p, table_%d);\n}\n", name, k);
    }
}

// For tables of coefficients, when the kernel begins and after each block.
static void append_refresh(text *t, const wt_chain *chain)
{
    append(t, "static __device__ __noinline__ void chain_refresh(const chain_args &a, unsigned char *memory)\n{\n");
    for (int k = 0; k < chain->n_nodes; k += line_length(chain, k))
        if (has_table(chain, k))
            append(t, "    %s_behind(chain_room_of(a, memory), %d, table_%d);\n    __syncthreads();\n",
                   kernel_name(chain->nodes[k].type), k, k);
    append(t, "    if (threadIdx.x == 0) chain_changed = CHAIN_AS_DESIGNED;\n    __syncthreads();\n}\n");
}

// A node with a text of its own.
static void append_own_text(text *t, const chain_node *node, int k)
{
    append(t, "#include \"cuda_kernel.h\"\nnamespace node_%d {\n#line 1 \"%s\"\n%s\n}\n", k, node->id,
           node->plan.cuda_text);
    append(t, "static __device__ __noinline__ void run_node_%d(const chain_args &a, unsigned char *memory, int n,"
              " long long position)\n{\n    const chain_room room = chain_room_of(a, memory);\n"
              "    const wt_node_place &p = room.places[%d];\n    wt_node_io io = chain_io(a, room, n, position, p);\n"
              "    node_%d::process(&io, (const float *)(room.memory + p.coeffs), (float *)(room.memory + p.state));\n"
              "}\n", k, k, k);
}

// Texts that the chain includes; the nodes' own, each in a namespace; and one function a type, kept out of line, so
// that a chain of five equal filters compiles and stays in the instruction cache as one.
static void append_nodes(text *t, const wt_chain *chain, bool in_shared)
{
    append(t, "#include \"chain.cuh\"\n");
    for (int k = 0; k < chain->n_nodes; k++) {
        const chain_node *node = &chain->nodes[k];
        const char *name = kernel_name(node->type);
        if (node->plan.cuda_text)
            append_own_text(t, node, k);
        else if (!seen_before(chain, k)) {
            append(t, "#include \"%s.cuh\"\n", name);
            const chain_node *only = in_shared && is_the_only_one(chain, k) ? node : NULL;
            append_plan(t, chain, name, only);
            if (node->type->flags & WT_NODE_CUDA_LINE) append_line(t, name);
            else append_function(t, "run", name, "process", only);
            if (has_quick(chain, k, in_shared)) append_function(t, "quick", name, "quick", node);
            if (node->type->flags & WT_NODE_CUDA_AFTER) append_function(t, "after", name, "after", only);
        }
    }
}

static void append_designs(text *t, const wt_chain *chain)
{
    append(t, "static __device__ __noinline__ void chain_design(int node, const void *plan, const float *v0,"
              " const float *v1, void *coeffs)\n{\n    chain_pointer p = {(void *)plan}, k = {coeffs};\n"
              "    switch (node) {\n");
    for (int k = 0; k < chain->n_nodes; k++) {
        const wt_node_type *type = chain->nodes[k].type;
        if (!type->design || seen_before(chain, k)) continue;
        for (int j = k; j < chain->n_nodes; j++)
            if (chain->nodes[j].type == type) append(t, "    case %d:\n", j);
        append(t, "        %s_design(p, v0, v1, k);\n        break;\n", kernel_name(type));
    }
    append(t, "    }\n}\n");
}

// `count` nodes from k on, and the barrier behind them.
static void append_call(text *t, const wt_chain *chain, int k, int count, bool in_line)
{
    const chain_node *node = &chain->nodes[k];
    if (node->plan.cuda_text)
        append(t, "    run_node_%d(a, memory, n, position);\n", k);
    else if (node->type->flags & WT_NODE_CUDA_LINE)
        append(t, "    line_%s(a, memory, n, %d, %d);\n", kernel_name(node->type), k, count);
    else if (in_line && has_quick(chain, k, true))
        append(t, "    if (!quick_%s(a, memory, n, position, %d)) run_%s(a, memory, n, position, %d);\n",
               kernel_name(node->type), k, kernel_name(node->type), k);
    else
        append(t, "    run_%s(a, memory, n, position, %d);\n", kernel_name(node->type), k);
    append(t, "    __syncthreads();\n");
}

// Node by node, where somebody listens between them or one is bypassed.
static void append_calls_apart(text *t, const wt_chain *chain, bool resident)
{
    append(t, "static __device__ __noinline__ void chain_process_apart(const chain_args &a, unsigned char *memory,"
              " int n, long long position, bool heard, bool bypassed)\n{\n");
    for (int k = 0; k < chain->n_nodes; k++) {
        append(t, "    if (bypassed) chain_keep(a, memory, n, position, %d);\n", k);
        append_call(t, chain, k, 1, false);
        append(t, "    if (bypassed) chain_mix(a, memory, n, position, %d);\n", k);
        if (resident) append(t, "    if (heard) chain_visit(a, n, %d);\n", k);
    }
    append(t, "}\n");
}

// All nodes in order. `quick`: the nodes' ways for short blocks, and the whole in line.
static void append_all_calls(text *t, const wt_chain *chain, bool resident, bool in_shared, bool quick)
{
    append(t, "static __device__ %s(const chain_args &a, unsigned char *memory, int n, long long position)\n{\n",
           quick ? "__forceinline__ void chain_process_quick" : "__noinline__ void chain_process");
    if (resident)
        append(t, "    const int points = message.points;\n    if (points)\n        return chain_process_apart(a,"
                  " memory, n, position, points & CHAIN_HEARD, points & CHAIN_BYPASSED);\n");
    else
        append(t, "    if (((const wt_instance *)memory)->bypassed)\n        return chain_process_apart(a, memory, n,"
                  " position, false, true);\n");
    for (int k = 0, n; k < chain->n_nodes; k += n) {
        n = line_length(chain, k);
        const bool ahead = resident && in_shared && has_table(chain, k);
        if (ahead) append(t, "    if (ahead_%d(a, memory, n)) __syncthreads();\n    else {\n", k);
        append_call(t, chain, k, n, quick);
        if (ahead) append(t, "    }\n");
    }
    append(t, "}\n");
}

// `resident`: for the kernel that stays (resident.cuh), with its taps and inserts after each node.
static void append_calls(text *t, const wt_chain *chain, bool resident, bool in_shared)
{
    append(t, "#include \"chain_bypass.cuh\"\n");
    if (resident) append(t, "#include \"resident_points.cuh\"\n");
    append_calls_apart(t, chain, resident);
    append_all_calls(t, chain, resident, in_shared, false);
    if (in_shared) append_all_calls(t, chain, resident, in_shared, true);
}

static void append_after(text *t, const wt_chain *chain)
{
    append(t, "static __device__ void chain_after(const chain_args &a, unsigned char *memory,"
              " long long end)\n{\n");
    for (int k = 0; k < chain->n_nodes; k++)
        if (chain->nodes[k].type->flags & WT_NODE_CUDA_AFTER)
            append(t, "    after_%s(a, memory, 0, end, %d);\n    __syncthreads();\n",
                   kernel_name(chain->nodes[k].type), k);
    append(t, "}\n");
}

char *wt__chain_cuda_text(const wt_chain *chain, int resident_frames, bool in_shared)
{
    text t = {0};
    const size_t plans_at = sizeof(float) * wt__chain_cuda_floats(chain, resident_frames) + chain->instance_bytes;
    const int threads = wt__chain_cuda_threads(chain);
    if (resident_frames)
        append(&t, "#define CHAIN_MOST_FRAMES %d\n#define RESIDENT_THREADS %d\n", resident_frames, threads);
    if (in_shared)
        append(&t, "#define CHAIN_IN_SHARED\n#define CHAIN_BUFFER_CHANNELS %d\n#define CHAIN_N_BUFFERS %d\n"
                   "#define CHAIN_CHANNELS %d\n#define CHAIN_OUT_CHANNELS %d\n#define CHAIN_THREADS %d\n"
                   "#define CHAIN_PLANS_AT %zu\n#define CHAIN_PLACES_AT %zu\n",
               chain->buffer_channels, chain->n_buffers, chain->channels, chain->out_channels,
               threads, plans_at, plans_at + chain->plans_bytes);
    append_nodes(&t, chain, in_shared);
    append_designs(&t, chain);
    if (in_shared) append_tables(&t, chain);
    append_calls(&t, chain, resident_frames > 0, in_shared);
    if (in_shared) append_refresh(&t, chain);
    append_after(&t, chain);
    append(&t, "#include \"%s\"\n", resident_frames ? "resident.cuh" : "chain_main.cuh");
    if (!t.failed) return t.at;
    free(t.at);
    return NULL;
}

static wt_status compile(wt_chain *chain)
{
    chain_cuda *g = chain->cuda;
    char *source = wt__chain_cuda_text(chain, 0, false);
    if (!source) return wt_fail(WT_ERR_NO_MEMORY, "%s: kernel text", chain->name);
    wt_status status = wt_module_create(
        chain->device, &(wt_module_config){.name = "chain.cu", .source = source}, &g->module);
    free(source);
    return status ? status : wt_module_get_kernel(g->module, "chain_run", &g->kernel);
}

// ---- memory

static wt_status upload(wt_chain *chain, const void *from, size_t bytes, wt_buffer **buffer)
{
    wt_status status = wt_buffer_create(chain->device, WT_MEMORY_DEVICE, bytes, buffer);
    if (!status) status = wt_stream_upload(chain->cuda->stream, *buffer, 0, from, bytes);
    return status ? status : wt_stream_synchronize(chain->cuda->stream);
}

static size_t spans_bytes(const wt_chain *chain) { return sizeof(wt_chain_span) * (size_t)chain->n_instances; }

static wt_status take_memory(wt_chain *chain)
{
    chain_cuda *g = chain->cuda;
    wt_node_place *places = malloc(sizeof *places * (size_t)chain->n_nodes);
    if (!places) return wt_fail(WT_ERR_NO_MEMORY, "%s: node places", chain->name);
    for (int k = 0; k < chain->n_nodes; k++) places[k] = chain->nodes[k].place;
    wt_status status = upload(chain, places, sizeof *places * (size_t)chain->n_nodes, &g->places);
    free(places);
    if (!status) status = upload(chain, chain->plans, chain->plans_bytes, &g->plans);
    if (!status)
        status = wt_buffer_create(chain->device, WT_MEMORY_DEVICE, chain->instance_bytes * (size_t)chain->n_instances,
                                  &g->memory);
    if (!status) status = wt_buffer_create(chain->device, WT_MEMORY_MAPPED, sizeof(uint64_t), &g->faults);
    if (!status)
        status = wt_buffer_create(chain->device, WT_MEMORY_MAPPED, sizeof(float) * (size_t)(chain->n_readings + 1),
                                  &g->readings);
    for (int k = 0; k < N_GENERATIONS && !status; k++) {
        status = wt_event_create(chain->device, &g->generations[k].done);
        if (!status)
            status = wt_buffer_create(chain->device, WT_MEMORY_MAPPED,
                                      spans_bytes(chain) + sizeof(float) * (size_t)(chain->n_params + 1),
                                      &g->generations[k].record);
    }
    return status;
}

// Largest block of frames whose buffers and scratch fit into shared memory.
static wt_status choose_launch(wt_chain *chain)
{
    chain_cuda *g = chain->cuda;
    size_t room = wt_device_get_info(chain->device)->shared_bytes;
    int frames = WT_CHAIN_BLOCK;
    size_t bytes;
    for (;; frames /= 2) {
        bytes = sizeof(float) * ((size_t)chain->n_buffers * (size_t)chain->buffer_channels * (size_t)frames +
                                 (size_t)chain->scratch_floats);
        if (bytes <= room) break;
        if (frames == WT_QUANTUM)
            return wt_fail(WT_ERR_UNSUPPORTED, "%s: needs %zu bytes of shared memory, the device has %zu", chain->name,
                           bytes, room);
    }
    const int threads = wt__chain_cuda_run_threads(chain), most = wt_kernel_get_info(g->kernel).max_threads & ~31;
    g->launch = (wt_launch){.block = {threads < most ? threads : most}, .shared_bytes = bytes};
    g->args = (chain_args){
        .plans = (const unsigned char *)wt_buffer_address(g->plans),
        .memory = (unsigned char *)wt_buffer_address(g->memory),
        .instance_bytes = chain->instance_bytes,
        .places = (const wt_node_place *)wt_buffer_address(g->places),
        .readings = (float *)wt_buffer_address(g->readings),
        .faults = (unsigned long long *)wt_buffer_address(g->faults),
        .n_nodes = chain->n_nodes, .channels = chain->channels, .out_channels = chain->out_channels,
        .n_buffers = chain->n_buffers, .buffer_channels = chain->buffer_channels, .output = chain->output,
        .block_frames = frames, .scratch_floats = chain->scratch_floats, .ramp_quanta = chain->ramp_quanta,
    };
    return WT_OK;
}

// ---- launching

static wt_status launch(wt_chain *chain, wt_stream *stream, const wt_chain_span *spans, int n)
{
    chain_cuda *g = chain->cuda;
    generation *next = &g->generations[g->turn++ % N_GENERATIONS];
    wt_status status = next->used ? wt_event_synchronize(next->done) : WT_OK;
    if (status) return status;
    unsigned char *record = wt_buffer_host(next->record);
    float *targets = (float *)(record + spans_bytes(chain));
    g->args.sequence = atomic_load_explicit(&chain->sequence, memory_order_acquire);
    memcpy(record, spans, sizeof *spans * (size_t)n);
    for (int p = 0; p < chain->n_params; p++)
        targets[p] = atomic_load_explicit(&chain->targets[p], memory_order_relaxed);
    g->args.spans = (const wt_chain_span *)wt_buffer_address(next->record);
    g->args.targets = (const float *)(wt_buffer_address(next->record) + spans_bytes(chain));
    g->launch.grid[0] = n;
    status = wt_kernel_launch(g->kernel, stream, &g->launch, &WT_ARG(g->args), 1);
    if (status) return status;
    next->used = true;
    return wt_event_record(next->done, stream);
}

static wt_status launch_all(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs)
{
    wt_chain_span *spans = calloc((size_t)n_jobs + 1, sizeof *spans);
    if (!spans) return wt_fail(WT_ERR_NO_MEMORY, "%s: %d jobs", chain->name, n_jobs);
    for (int k = 0; k < n_jobs; k++)
        spans[k] = (wt_chain_span){
            .in = jobs[k].in ? wt_buffer_address(jobs[k].in) + jobs[k].in_offset : 0,
            .out = jobs[k].out ? wt_buffer_address(jobs[k].out) + jobs[k].out_offset : 0,
            .in_stride = jobs[k].in_stride, .out_stride = jobs[k].out_stride,
            .n_frames = jobs[k].n_frames, .instance = jobs[k].instance, .reset = jobs[k].reset,
        };
    wt_status status = launch(chain, stream, spans, n_jobs);
    free(spans);
    return status;
}

wt_status wt__chain_cuda_enqueue(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs)
{
    if (n_jobs > chain->n_instances)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d jobs for %d instances, want each at most once", chain->name, n_jobs,
                       chain->n_instances);
    return n_jobs ? launch_all(chain, stream, jobs, n_jobs) : WT_OK;
}

static wt_status reset_range(wt_chain *chain, int first, int n)
{
    wt_chain_job *jobs = calloc((size_t)n, sizeof *jobs);
    if (!jobs) return wt_fail(WT_ERR_NO_MEMORY, "%s: reset", chain->name);
    for (int k = 0; k < n; k++) jobs[k] = (wt_chain_job){.instance = first + k, .reset = true};
    wt_status status = launch_all(chain, chain->cuda->stream, jobs, n);
    free(jobs);
    return status ? status : wt_stream_synchronize(chain->cuda->stream);
}

wt_status wt__chain_cuda_reset(wt_chain *chain, int instance) { return reset_range(chain, instance, 1); }

float wt__chain_cuda_reading(const wt_chain *chain, int index)
{
    return ((const volatile float *)wt_buffer_host(chain->cuda->readings))[index];
}

uint64_t wt__chain_cuda_faults(const wt_chain *chain)
{
    return *(volatile uint64_t *)wt_buffer_host(chain->cuda->faults);
}

wt_status wt__chain_cuda_create(wt_chain *chain)
{
    if (!(chain->cuda = calloc(1, sizeof *chain->cuda)))
        return wt_fail(WT_ERR_NO_MEMORY, "%s: handle", chain->name);
    wt_status status = wt_stream_create(chain->device, NULL, &chain->cuda->stream);
    if (!status) status = compile(chain);
    if (!status) status = take_memory(chain);
    if (!status) status = choose_launch(chain);
    return status ? status : reset_range(chain, 0, chain->n_instances);
}

void wt__chain_cuda_destroy(wt_chain *chain)
{
    chain_cuda *g = chain->cuda;
    if (!g) return;
    wt_stream_destroy(g->stream);
    for (int k = 0; k < N_GENERATIONS; k++) {
        if (g->generations[k].used) (void)!wt_event_synchronize(g->generations[k].done);
        wt_event_destroy(g->generations[k].done);
        wt_buffer_destroy(g->generations[k].record);
    }
    wt_buffer_destroy(g->plans), wt_buffer_destroy(g->memory), wt_buffer_destroy(g->places);
    wt_buffer_destroy(g->readings), wt_buffer_destroy(g->faults);
    wt_module_destroy(g->module);
    free(g);
    chain->cuda = NULL;
}
