// Building a chain: names are resolved, nodes put in order, parallel paths aligned, buffers and memory laid out.
// Runs on workers, never in the audio thread.
#include "chain_internal.h"
#include "chain_setup.h"
#include "chain_wire.h"

#include <warptone/names.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#    include <sys/mman.h>
#endif

// ---- nodes

// Sources while nodes are placed: index into chain->nodes, FROM_INPUT, and their channels and latency.
static int source_channels(const wt_chain *chain, int source)
{
    return source == FROM_INPUT ? chain->channels : chain->nodes[source].plan.out_channels;
}

static int source_latency(const wt_chain *chain, int source)
{
    return source == FROM_INPUT ? 0 : chain->nodes[source].latency_frames;
}

static int source_tail(const wt_chain *chain, int source)
{
    return source == FROM_INPUT ? 0 : chain->nodes[source].tail_frames;
}

// Inputs are kept as sources here and become buffers in lay_out_buffers.
static void finish_node(wt_chain *chain, chain_node *node)
{
    wt_node_place *p = &node->place;
    int latency = p->side >= FROM_INPUT ? source_latency(chain, p->side) : 0, tail = 0;
    for (int i = 0; i < p->n_inputs; i++) {
        if (source_latency(chain, p->input[i]) > latency) latency = source_latency(chain, p->input[i]);
        if (source_tail(chain, p->input[i]) > tail) tail = source_tail(chain, p->input[i]);
    }
    node->latency_frames = latency + node->plan.latency_frames;
    node->tail_frames = tail + node->plan.tail_frames + node->plan.latency_frames;
    p->n_params = node->type->n_params;
    p->n_readings = node->type->n_readings;
    p->output_channels = node->plan.out_channels;
    p->latency = node->type->flags & WT_NODE_INTERNAL ? 0 : node->plan.latency_frames; // those are never bypassed
    for (int k = 0; k < node->type->n_params; k++)
        if (node->type->params[k].logarithmic) p->logarithmic |= 1u << k;
    node->first_param = chain->n_params;
    node->first_reading = p->first_reading = chain->n_readings;
    chain->n_params += wt_place_targets(p);
    chain->n_readings += node->type->n_readings;
    chain->n_nodes++;
}

// Put an align node behind `source` and return its index in *aligned.
static wt_status add_align(wt_chain *chain, const wt_chain_config *config, int source, int frames, int *aligned)
{
    chain_node *node = &chain->nodes[chain->n_nodes];
    wt_setting setting = {.name = "frames", .value = frames};
    int channels = source_channels(chain, source);
    wt_node_setup setup = {.config = config,
                           .type = &wt__node_align,
                           .settings = &setting,
                           .n_settings = 1,
                           .n_inputs = 1,
                           .input_channels = &channels,
                           .stagger = chain->n_nodes};
    node->type = &wt__node_align;
    wt_status status = node->type->plan(&setup, &node->plan);
    if (status) return status;
    node->place.n_inputs = 1;
    node->place.input[0] = source;
    node->place.input_channels[0] = channels;
    node->place.side = NOT_CONNECTED;
    *aligned = chain->n_nodes;
    finish_node(chain, node);
    return WT_OK;
}

// Delay the earlier sources of a node to the latest one.
static wt_status align_sources(wt_chain *chain, const wt_chain_config *config, int *sources, int n_sources)
{
    int latest = 0;
    for (int i = 0; i < n_sources; i++)
        if (source_latency(chain, sources[i]) > latest) latest = source_latency(chain, sources[i]);
    for (int i = 0; i < n_sources; i++) {
        int behind = latest - source_latency(chain, sources[i]);
        wt_status status = behind ? add_align(chain, config, sources[i], behind, &sources[i]) : WT_OK;
        if (status) return status;
    }
    return WT_OK;
}

static bool on_gpu(const wt_chain_config *config)
{
    return config->device && wt_device_get_info(config->device)->backend == WT_BACKEND_CUDA;
}

static wt_status add_node(wt_chain *chain, const wt_chain_config *config, wiring *w, int k, const int *placed)
{
    int sources[WT_MAX_NODE_INPUTS + 1], n = w->n_inputs[k];
    for (int i = 0; i < n; i++) sources[i] = w->inputs[k][i] < 0 ? FROM_INPUT : placed[w->inputs[k][i]];
    if (w->side[k] >= FROM_INPUT) sources[n] = w->side[k] < 0 ? FROM_INPUT : placed[w->side[k]];
    wt_status status = align_sources(chain, config, sources, n + (w->side[k] >= FROM_INPUT));
    if (status) return status;

    chain_node *node = &chain->nodes[chain->n_nodes];
    wt_node_place *p = &node->place;
    node->type = w->types[k];
    node->id = w->ids[k];
    w->ids[k] = NULL;
    p->n_inputs = n;
    p->side = w->side[k] >= FROM_INPUT ? sources[n] : NOT_CONNECTED;
    p->side_channels = w->side[k] >= FROM_INPUT ? source_channels(chain, sources[n]) : 0;
    for (int i = 0; i < n; i++) {
        p->input[i] = sources[i];
        p->input_channels[i] = source_channels(chain, sources[i]);
    }
    wt_node_setup setup = {
        .config = config,
        .chain = chain_name(w),
        .id = node->id,
        .type = node->type,
        .settings = w->desc->nodes[k].settings,
        .n_settings = w->desc->nodes[k].n_settings,
        .n_inputs = n,
        .input_channels = p->input_channels,
        .side_channels = p->side_channels,
        .stagger = config->stagger + chain->n_nodes,
    };
    if (node->type->flags & WT_NODE_CUDA_ONLY && !on_gpu(config))
        return wt__wiring_blame(w, k, "type",
                                wt_fail(WT_ERR_UNSUPPORTED,
                                        "%s: %s: a %s runs on a GPU only, this chain is built for"
                                        " the CPU",
                                        chain_name(w), node->id, node->type->name));
    if ((status = wt__setup_check(&setup))) return wt__wiring_blame(w, k, setup.fault, status);
    for (int i = 0; i < node->type->n_params; i++) node->start[i] = setup.values[i];
    node->bypassed = setup.bypassed;
    if ((status = node->type->plan(&setup, &node->plan))) {
        wt__setup_prefix(&setup);
        return wt__wiring_blame(w, k, setup.fault, status);
    }
    if (node->plan.out_channels < 1 || node->plan.out_channels > WT_MAX_CHANNELS)
        return wt__wiring_blame(w, k, "type",
                                wt_fail(WT_ERR_BAD_ARG, "%s: %s would have %d channels, want 1..%d", chain_name(w),
                                        node->id, node->plan.out_channels, WT_MAX_CHANNELS));
    finish_node(chain, node);
    return WT_OK;
}

static wt_status add_nodes(wt_chain *chain, const wt_chain_config *config, wiring *w)
{
    int placed[MAX_NODES];
    // every node may need an align node for each of its sources
    chain->nodes = calloc((size_t)w->desc->n_nodes * (WT_MAX_NODE_INPUTS + 2), sizeof *chain->nodes);
    chain->described = calloc((size_t)w->desc->n_nodes, sizeof *chain->described);
    if (!chain->nodes || !chain->described) return wt_fail(WT_ERR_NO_MEMORY, "%s: nodes", chain_name(w));
    for (int n = 0; n < w->desc->n_nodes; n++) {
        int k = w->order[n];
        wt_status status = add_node(chain, config, w, k, placed);
        if (status) return status;
        placed[k] = chain->n_nodes - 1;
        chain->described[k] = placed[k];
    }
    chain->n_described = w->desc->n_nodes;
    chain->output = w->output < 0 ? FROM_INPUT : placed[w->output];
    chain->out_channels = source_channels(chain, chain->output);
    chain->latency_frames = source_latency(chain, chain->output);
    chain->tail_frames = source_tail(chain, chain->output);
    return WT_OK;
}

// ---- buffers

static int last_reader(const wt_chain *chain, int source)
{
    int last = source;
    if (chain->output == source) return chain->n_nodes;
    for (int k = 0; k < chain->n_nodes; k++) {
        const wt_node_place *p = &chain->nodes[k].place;
        for (int i = 0; i < p->n_inputs; i++)
            if (p->input[i] == source) last = k;
        if (p->side == source) last = k;
    }
    return last;
}

// Give each node's output a buffer; one is free again after its last reader. Buffer 0 holds the chain's input. A node
// writes over its first input when that is read no more and has as many channels.
static wt_status lay_out_buffers(wt_chain *chain)
{
    int *of = calloc((size_t)chain->n_nodes + 1, sizeof *of),
        *until = calloc((size_t)chain->n_nodes + 2, sizeof *until);
    if (!of || !until) {
        free(of), free(until);
        return wt_fail(WT_ERR_NO_MEMORY, "%s: buffers", chain->name);
    }
    int n_buffers = 1;
    of++; // of[FROM_INPUT] = 0
    until[0] = last_reader(chain, FROM_INPUT);
    chain->buffer_channels = chain->channels;
    for (int k = 0; k < chain->n_nodes; k++) {
        wt_node_place *p = &chain->nodes[k].place;
        int first = of[p->input[0]], last = last_reader(chain, k), pick = -1;
        if (until[first] == k && p->input_channels[0] == p->output_channels && p->side != p->input[0]) pick = first;
        for (int i = 1; i < p->n_inputs; i++)
            if (p->input[i] == p->input[0]) pick = -1;
        for (int b = 0; pick < 0 && b < n_buffers; b++)
            if (until[b] < k) pick = b;
        if (pick < 0) pick = n_buffers++;
        for (int i = 0; i < p->n_inputs; i++) p->input[i] = of[p->input[i]];
        p->side = p->side >= FROM_INPUT ? of[p->side] : -1;
        p->output = pick;
        of[k] = pick;
        until[pick] = last;
        if (p->output_channels > chain->buffer_channels) chain->buffer_channels = p->output_channels;
        if (chain->nodes[k].plan.scratch_floats > chain->scratch_floats)
            chain->scratch_floats = chain->nodes[k].plan.scratch_floats;
    }
    chain->n_buffers = n_buffers + 1; // the last one keeps what is heard of a bypassed node
    chain->output = of[chain->output];
    free(of - 1), free(until);
    return WT_OK;
}

// ---- memory

static size_t take(size_t *at, size_t bytes)
{
    size_t begin = *at;
    *at += (bytes + 63) & ~(size_t)63;
    return begin;
}

// Memory that is touched here and there in every block, such as delay lines, in huge pages where there are any, which
// saves walks through the page table: a convolution of 300 channels of 2.7 s takes 39 % of a core instead of 42.
static void *take_large(size_t bytes)
{
    const size_t huge = (size_t)1 << 21;
    if (bytes < huge) return aligned_alloc(64, (bytes + 63) / 64 * 64);
    bytes = (bytes + huge - 1) / huge * huge;
    void *memory = aligned_alloc(huge, bytes);
#ifdef MADV_HUGEPAGE
    if (memory) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

static wt_status lay_out_memory(wt_chain *chain)
{
    size_t plans = 0, instance = (sizeof(wt_instance) + 63) & ~(size_t)63;
    for (int k = 0; k < chain->n_nodes; k++) {
        chain_node *node = &chain->nodes[k];
        node->place.plan = take(&plans, node->plan.plan_bytes);
        node->place.ramps = take(&instance, sizeof(wt_ramp) * (size_t)node->type->n_params);
        node->place.coeffs = take(&instance, node->plan.coeffs_bytes);
        node->place.readings = take(&instance, sizeof(float) * (size_t)node->type->n_readings);
        node->place.state = take(&instance, node->plan.state_bytes);
    }
    for (int k = 0; k < chain->n_nodes; k++) {
        wt_node_place *p = &chain->nodes[k].place;
        const size_t frames = p->latency ? (size_t)(p->latency + WT_CHAIN_BLOCK) : 0;
        p->bypass = take(&instance, sizeof(wt_bypass) + sizeof(float) * frames * (size_t)p->input_channels[0]);
    }
    chain->plans_bytes = plans + 64;
    chain->instance_bytes = instance;
    chain->plans = take_large(chain->plans_bytes);
    chain->targets = calloc((size_t)chain->n_params + 1, sizeof *chain->targets);
    chain->readings = calloc((size_t)chain->n_readings + 1, sizeof *chain->readings);
    if (!chain->plans || !chain->targets || !chain->readings)
        return wt_fail(WT_ERR_NO_MEMORY, "%s: %zu bytes of plans", chain->name, chain->plans_bytes);
    memset(chain->plans, 0, chain->plans_bytes);
    for (int k = 0; k < chain->n_nodes; k++) {
        chain_node *node = &chain->nodes[k];
        if (node->plan.plan_bytes) memcpy(chain->plans + node->place.plan, node->plan.plan, node->plan.plan_bytes);
        free(node->plan.plan);
        node->plan.plan = NULL;
        for (int p = 0; p < node->type->n_params; p++)
            atomic_init(&chain->targets[node->first_param + p],
                        node->type->params[p].logarithmic ? logf(node->start[p]) : node->start[p]);
        atomic_init(&chain->targets[node->first_param + node->type->n_params], node->bypassed ? 1 : 0);
    }
    return WT_OK;
}

static wt_status take_cpu_memory(wt_chain *chain)
{
    size_t n = (size_t)chain->n_instances;
    chain->instance_floats = (size_t)chain->n_buffers * (size_t)chain->buffer_channels * WT_CHAIN_BLOCK +
                             (((size_t)chain->scratch_floats + 15) & ~(size_t)15);
    chain->memory = take_large(n * chain->instance_bytes);
    chain->buffers = aligned_alloc(64, n * chain->instance_floats * sizeof(float));
    if (!chain->memory || !chain->buffers)
        return wt_fail(WT_ERR_NO_MEMORY, "%s: %zu bytes for %d instances", chain->name,
                       n * (chain->instance_bytes + chain->instance_floats * sizeof(float)), chain->n_instances);
    memset(chain->buffers, 0, n * chain->instance_floats * sizeof(float));
    for (int k = 0; k < chain->n_instances; k++)
        wt__chain_rest(chain, chain->memory + (size_t)k * chain->instance_bytes);
    return WT_OK;
}

// ---- create, destroy

static wt_status check_config(const wt_chain_config *config, const wt_chain_desc *desc)
{
    const char *name = desc->name ? desc->name : "chain";
    if (!(config->rate_hz >= 1000 && config->rate_hz <= 768000))
        return wt_fail(WT_ERR_BAD_ARG, "%s: rate %g Hz, want 1000..768000", name, config->rate_hz);
    if (config->channels < 1 || config->channels > WT_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d channels, want 1..%d", name, config->channels, WT_MAX_CHANNELS);
    if (desc->n_nodes < 1 || desc->n_nodes > MAX_NODES)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d nodes, want 1..%d", name, desc->n_nodes, MAX_NODES);
    if (config->n_instances < 0 || config->n_instances > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d instances, want 1..65535", name, config->n_instances);
    return WT_OK;
}

// All but the memory of the instances.
static wt_status lay_out(const wt_chain_config *config, const wt_chain_desc *desc, wt_chain **chain)
{
    *chain = NULL;
    wt_status status = check_config(config, desc);
    if (status) return status;
    wiring *w = calloc(1, sizeof *w);
    static atomic_ullong n_chains;
    wt_chain *c = calloc(1, sizeof *c);
    status = !w || !c || !(c->name = strdup(desc->name ? desc->name : "chain"))
                 ? wt_fail(WT_ERR_NO_MEMORY, "chain: handle")
                 : wt__wire(w, desc, config->fault);
    if (status) goto done;
    c->number = atomic_fetch_add_explicit(&n_chains, 1, memory_order_relaxed) + 1;
    c->rate_hz = config->rate_hz;
    c->channels = config->channels;
    c->n_instances = config->n_instances ? config->n_instances : 1;
    c->device = config->device;
    c->ramp_quanta = (int)ceil((config->ramp_ms > 0 ? config->ramp_ms : 20) * 1e-3 * c->rate_hz / WT_QUANTUM);
    if ((status = add_nodes(c, config, w))) goto done;
    if ((status = lay_out_buffers(c))) goto done;
    status = lay_out_memory(c);

done:
    for (int k = 0; w && k < MAX_NODES; k++) free(w->ids[k]);
    free(w);
    if (status)
        wt_chain_destroy(c);
    else
        *chain = c;
    return status;
}

// Give a chain that is laid out its instances; it is destroyed on an error.
static wt_status finish(wt_chain **chain, wt_status (*take_memory)(wt_chain *chain))
{
    wt_status status = take_memory(*chain);
    if (!status) return WT_OK;
    wt_chain_destroy(*chain);
    *chain = NULL;
    return status;
}

wt_status wt_chain_create(const wt_chain_config *config, const wt_chain_desc *desc, wt_chain **chain)
{
    wt_status status = lay_out(config, desc, chain);
    return status ? status : finish(chain, on_gpu(config) ? wt__chain_cuda_create : take_cpu_memory);
}

wt_status wt__chain_build(const wt_chain_config *config, const wt_chain_desc *desc, wt_chain **chain)
{
    wt_status status = lay_out(config, desc, chain);
    return status ? status : finish(chain, take_cpu_memory);
}

bool wt__chain_runs_on_cpu(const wt_chain *chain)
{
    for (int k = 0; k < chain->n_nodes; k++)
        if (!chain->nodes[k].type->process) return false;
    return true;
}

void wt_chain_destroy(wt_chain *chain)
{
    if (!chain) return;
    wt__chain_cuda_destroy(chain);
    for (int k = 0; chain->nodes && k < chain->n_nodes + 1; k++) { // one more: a node may be half-built
        chain_node *node = &chain->nodes[k];
        if (node->type && node->type->release) node->type->release(node->plan.host);
        free(node->plan.plan);
        free(node->plan.cuda_text);
        free(node->id);
    }
    free(chain->nodes), free(chain->described), free(chain->name);
    free(chain->plans), free(chain->memory), free(chain->buffers);
    free(chain->targets), free(chain->readings);
    free(chain);
}

wt_status wt_chain_reset(wt_chain *chain, int instance)
{
    if (instance < 0 || instance >= chain->n_instances)
        return wt_fail(WT_ERR_BAD_ARG, "%s: instance %d, want 0..%d", chain->name, instance, chain->n_instances - 1);
    if (chain->cuda) return wt__chain_cuda_reset(chain, instance);
    wt__chain_rest(chain, chain->memory + (size_t)instance * chain->instance_bytes);
    return WT_OK;
}

static wt_status check_job(const wt_chain *chain, const wt_chain_job *job, int k)
{
    if (job->instance < 0 || job->instance >= chain->n_instances)
        return wt_fail(WT_ERR_BAD_ARG, "%s: job %d names instance %d, want 0..%d", chain->name, k, job->instance,
                       chain->n_instances - 1);
    if (job->n_frames < 0 || job->in_stride < job->n_frames || job->out_stride < job->n_frames)
        return wt_fail(WT_ERR_BAD_ARG,
                       "%s: job %d has %d frames and strides %lld and %lld, want strides that hold them", chain->name,
                       k, job->n_frames, (long long)job->in_stride, (long long)job->out_stride);
    size_t in_end = job->in_offset +
                    sizeof(float) * ((size_t)(chain->channels - 1) * (size_t)job->in_stride + (size_t)job->n_frames);
    size_t out_end = job->out_offset + sizeof(float) * ((size_t)(chain->out_channels - 1) * (size_t)job->out_stride +
                                                        (size_t)job->n_frames);
    if (in_end > wt_buffer_size_bytes(job->in) || out_end > wt_buffer_size_bytes(job->out))
        return wt_fail(WT_ERR_BAD_ARG, "%s: job %d ends at byte %zu of %zu and %zu of %zu, want within", chain->name, k,
                       in_end, wt_buffer_size_bytes(job->in), out_end, wt_buffer_size_bytes(job->out));
    return WT_OK;
}

wt_status wt_chain_enqueue(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs)
{
    if (!chain->device) return wt_fail(WT_ERR_STATE, "%s: built without a device, want one to enqueue", chain->name);
    for (int k = 0; k < n_jobs; k++) {
        wt_status status = check_job(chain, &jobs[k], k);
        if (status) return status;
    }
    return chain->cuda ? wt__chain_cuda_enqueue(chain, stream, jobs, n_jobs)
                       : wt__chain_cpu_enqueue(chain, stream, jobs, n_jobs);
}

int wt_chain_out_channels(const wt_chain *chain) { return chain->out_channels; }
uint64_t wt_chain_number(const wt_chain *chain) { return chain->number; }
int wt_chain_latency_frames(const wt_chain *chain) { return chain->latency_frames; }
int wt_chain_tail_frames(const wt_chain *chain) { return chain->tail_frames; }
int wt_chain_n_nodes(const wt_chain *chain) { return chain->n_described; }
uint64_t wt_chain_faults(const wt_chain *chain)
{
    return chain->cuda ? wt__chain_cuda_faults(chain) : atomic_load(&chain->faults);
}

const char *wt_chain_node_id(const wt_chain *chain, int node)
{
    return node < 0 || node >= chain->n_described ? NULL : chain->nodes[chain->described[node]].id;
}

const wt_node_type *wt_chain_node_type(const wt_chain *chain, int node)
{
    return node < 0 || node >= chain->n_described ? NULL : chain->nodes[chain->described[node]].type;
}

wt_status wt_chain_find(const wt_chain *chain, const char *node_id, const char *param, int *node, int *param_index)
{
    const char *names[MAX_NODES];
    for (int k = 0; k < chain->n_described; k++) {
        names[k] = chain->nodes[chain->described[k]].id;
        if (strcmp(names[k], node_id)) continue;
        const wt_node_type *type = chain->nodes[chain->described[k]].type;
        const char *params[WT_MAX_NODE_PARAMS + 1];
        for (int p = 0; p < wt_node_type_n_params(type); p++) {
            params[p] = wt_node_type_param(type, p)->name;
            if (strcmp(params[p], param)) continue;
            *node = k, *param_index = p;
            return WT_OK;
        }
        return wt_fail(WT_ERR_NOT_FOUND, "%s: %s has no parameter '%s'; the nearest is '%s'", chain->name, node_id,
                       param, wt_nearest_name(param, params, wt_node_type_n_params(type)));
    }
    return wt_fail(WT_ERR_NOT_FOUND, "%s: no node '%s'; the nearest is '%s'", chain->name, node_id,
                   wt_nearest_name(node_id, names, chain->n_described));
}
