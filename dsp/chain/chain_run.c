// The audio thread's side of a chain. Nothing here locks, allocates or calls the system.
//
// Memory order: wt_chain_set stores a target relaxed, then adds to `sequence` with release; the audio thread loads
// `sequence` with acquire and, when it moved, loads all targets. A target written in between is taken over with the
// next count. Readings are single floats, stored and loaded relaxed.
#include "chain_internal.h"

#include <warptone/kernel.h>

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#    include <xmmintrin.h>
#endif

static void design_node(const wt_chain *chain, const chain_node *node, unsigned char *memory, const float *v0,
                        const float *v1)
{
    if (node->type->design) node->type->design(chain->plans + node->place.plan, v0, v1, memory + node->place.coeffs);
}

static float bypass_target(const wt_chain *chain, const chain_node *node)
{
    return atomic_load_explicit(&chain->targets[node->first_param + node->type->n_params], memory_order_relaxed);
}

WT_RT void wt__chain_rest(const wt_chain *chain, unsigned char *memory)
{
    memset(memory, 0, chain->instance_bytes);
    wt_instance *instance = (wt_instance *)memory;
    instance->sequence = atomic_load_explicit(&chain->sequence, memory_order_acquire);
    for (int k = 0; k < chain->n_nodes; k++) {
        const chain_node *node = &chain->nodes[k];
        wt_ramp *ramps = (wt_ramp *)(memory + node->place.ramps);
        wt_bypass *bypass = (wt_bypass *)(memory + node->place.bypass);
        wt_bypass_rest(bypass, bypass_target(chain, node), node->place.latency);
        instance->bypassed |= wt_bypass_on(bypass);
        float v0[WT_MAX_NODE_PARAMS], v1[WT_MAX_NODE_PARAMS];
        for (int p = 0; p < node->type->n_params; p++)
            wt_ramp_aim(&ramps[p], atomic_load_explicit(&chain->targets[node->first_param + p], memory_order_relaxed),
                        0);
        wt_ramps_step(ramps, node->type->n_params, node->place.logarithmic, v0, v1);
        design_node(chain, node, memory, v0, v1);
    }
}

// Take over new targets; returns 1 when a ramp moves.
static int aim(const wt_chain *chain, unsigned char *memory)
{
    int moving = 0;
    for (int k = 0; k < chain->n_nodes; k++) {
        const chain_node *node = &chain->nodes[k];
        wt_ramp *ramps = (wt_ramp *)(memory + node->place.ramps);
        for (int p = 0; p < node->type->n_params; p++) {
            float target = atomic_load_explicit(&chain->targets[node->first_param + p], memory_order_relaxed);
            if (ramps[p].target != target) wt_ramp_aim(&ramps[p], target, chain->ramp_quanta);
            moving |= ramps[p].left != 0;
        }
        moving |= wt_bypass_aim((wt_bypass *)(memory + node->place.bypass), bypass_target(chain, node));
    }
    return moving;
}

// A control point: step all ramps, design what moves; returns 1 when anything did.
static int control(const wt_chain *chain, unsigned char *memory)
{
    int moving = 0, bypassed = 0;
    for (int k = 0; k < chain->n_nodes; k++) {
        const chain_node *node = &chain->nodes[k];
        wt_bypass *bypass = (wt_bypass *)(memory + node->place.bypass);
        moving |= wt_bypass_step(bypass, node->place.latency, chain->ramp_quanta);
        bypassed |= wt_bypass_on(bypass);
        float v0[WT_MAX_NODE_PARAMS], v1[WT_MAX_NODE_PARAMS];
        if (!wt_ramps_step((wt_ramp *)(memory + node->place.ramps), node->type->n_params, node->place.logarithmic, v0,
                           v1))
            continue;
        design_node(chain, node, memory, v0, v1);
        moving = 1;
    }
    ((wt_instance *)memory)->bypassed = bypassed;
    return moving;
}

// ---- bypassed nodes

// Where their first input is kept: in the node's line, or in the spare buffer where nothing delays it, since a node may
// work in place.
static float *kept_at(const wt_node_place *p, wt_bypass *bypass, float *spare, int c, int f, int64_t frame)
{
    const int size = p->latency + WT_CHAIN_BLOCK;
    return p->latency ? (float *)(bypass + 1) + c * size + frame % size : spare + c * WT_CHAIN_BLOCK + f;
}

static void keep(const wt_node_place *p, wt_bypass *bypass, float *spare, const wt_node_io *io)
{
    if (!wt_bypass_on(bypass)) return;
    for (int c = 0; c < io->channels[0]; c++)
        for (int f = 0; f < io->n_frames; f++)
            *kept_at(p, bypass, spare, c, f, io->position + f) = io->in[0][c * io->stride + f];
}

// What is heard: a channel of the output is that of the input with the same number, modulo how many there are.
static void mix(const wt_node_place *p, wt_bypass *bypass, float *spare, const wt_node_io *io)
{
    if (bypass->from == 0 && bypass->to == 0) return;
    for (int c = 0; c < io->out_channels; c++)
        for (int f = 0; f < io->n_frames; f++) {
            const int64_t frame = io->position + f;
            const float share = wt_bypass_share(bypass, (int)(frame & (WT_QUANTUM - 1)));
            const float dry = *kept_at(p, bypass, spare, c % io->channels[0], f, frame + WT_CHAIN_BLOCK); // latency ago
            float *y = io->out + c * io->stride + f;
            *y = share < 1 ? *y + share * (dry - *y) : dry;
        }
}

// ---- blocks

// `at`: frames since the block's start, for the visitor of instance 0; -1 = no visitor.
static void run_nodes(const wt_chain *chain, unsigned char *memory, float *buffers, int n_frames, int64_t position,
                      int at)
{
    const size_t buffer_floats = (size_t)chain->buffer_channels * WT_CHAIN_BLOCK;
    const bool bypassed = ((const wt_instance *)memory)->bypassed;
    float *spare = buffers + (size_t)(chain->n_buffers - 1) * buffer_floats;
    for (int k = 0; k < chain->n_nodes; k++) {
        const chain_node *node = &chain->nodes[k];
        const wt_node_place *p = &node->place;
        wt_node_io io = {
            .n_inputs = p->n_inputs,
            .side = p->side < 0 ? NULL : buffers + (size_t)p->side * buffer_floats,
            .side_channels = p->side_channels,
            .out = buffers + (size_t)p->output * buffer_floats,
            .out_channels = p->output_channels,
            .stride = WT_CHAIN_BLOCK,
            .n_frames = n_frames,
            .position = position,
            .scratch = buffers + (size_t)chain->n_buffers * buffer_floats,
            .readings = (float *)(memory + p->readings),
            .host = node->plan.host,
        };
        for (int i = 0; i < p->n_inputs; i++) {
            io.in[i] = buffers + (size_t)p->input[i] * buffer_floats;
            io.channels[i] = p->input_channels[i];
        }
        wt_bypass *bypass = (wt_bypass *)(memory + p->bypass);
        if (bypassed) keep(p, bypass, spare, &io);
        node->type->process(&io, chain->plans + p->plan, memory + p->coeffs, memory + p->state);
        if (bypassed) mix(p, bypass, spare, &io);
        if (at >= 0) chain->visit(chain->visit_user, k, at, &io);
    }
}

// 1 when every sample is finite: no exponent is all ones.
static int all_finite(const float *x, int n)
{
    unsigned carry = 0;
    for (int k = 0; k < n; k++) {
        unsigned bits;
        memcpy(&bits, &x[k], sizeof bits);
        carry |= (bits & 0x7f800000u) + 0x00800000u; // reaches the sign bit only from an exponent of all ones
    }
    return !(carry & 0x80000000u);
}

static void copy_out(wt_chain *chain, unsigned char *memory, const float *result, float *const *out, int at, int n)
{
    int finite = 1;
    for (int c = 0; c < chain->out_channels; c++) finite &= all_finite(result + (size_t)c * WT_CHAIN_BLOCK, n);
    if (!finite) {
        int64_t position = ((wt_instance *)memory)->position;
        wt__chain_rest(chain, memory);
        ((wt_instance *)memory)->position = position;
        atomic_fetch_add_explicit(&chain->faults, 1, memory_order_relaxed);
    }
    for (int c = 0; c < chain->out_channels; c++)
        if (finite)
            memcpy(out[c] + at, result + (size_t)c * WT_CHAIN_BLOCK, sizeof(float) * (size_t)n);
        else
            memset(out[c] + at, 0, sizeof(float) * (size_t)n);
}

static void publish_readings(wt_chain *chain, const unsigned char *memory)
{
    for (int k = 0; k < chain->n_nodes; k++) {
        const chain_node *node = &chain->nodes[k];
        const float *readings = (const float *)(memory + node->place.readings);
        for (int r = 0; r < node->type->n_readings; r++)
            atomic_store_explicit(&chain->readings[node->first_reading + r], readings[r], memory_order_relaxed);
    }
}

WT_RT void wt__chain_span(wt_chain *chain, int instance, const float *const *in, float *const *out, int n_frames)
{
    unsigned char *memory = chain->memory + (size_t)instance * chain->instance_bytes;
    wt_instance *state = (wt_instance *)memory;
    float *buffers = chain->buffers + (size_t)instance * chain->instance_floats;
    unsigned sequence = atomic_load_explicit(&chain->sequence, memory_order_acquire);
    if (state->sequence != sequence) {
        state->moving = aim(chain, memory);
        state->sequence = sequence;
    }
    for (int done = 0, n; done < n_frames; done += n) {
        int phase = (int)(state->position & (WT_QUANTUM - 1));
        if (state->moving && phase == 0) state->moving = control(chain, memory);
        int most = state->moving ? WT_QUANTUM - phase : WT_CHAIN_BLOCK;
        n = n_frames - done < most ? n_frames - done : most;
        for (int c = 0; c < chain->channels; c++)
            memcpy(buffers + (size_t)c * WT_CHAIN_BLOCK, in[c] + done, sizeof(float) * (size_t)n);
        run_nodes(chain, memory, buffers, n, state->position, chain->visit && instance == 0 ? done : -1);
        state->position += n;
        copy_out(chain, memory, buffers + (size_t)chain->output * (size_t)chain->buffer_channels * WT_CHAIN_BLOCK, out,
                 done, n);
    }
    if (instance == 0) publish_readings(chain, memory);
}

WT_RT unsigned wt__denormals_off(void)
{
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); // flush to zero, denormals are zero
    return before;
#else
    return 0;
#endif
}

WT_RT void wt__denormals_restore(unsigned before)
{
#if defined(__x86_64__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

WT_RT wt_status wt_chain_process(wt_chain *chain, const float *const *in, float *const *out, int n_frames)
{
    if (chain->cuda) return WT_ERR_STATE;
    if (n_frames < 0) return WT_ERR_BAD_ARG;
    unsigned before = wt__denormals_off();
    wt__chain_span(chain, 0, in, out, n_frames);
    wt__denormals_restore(before);
    return WT_OK;
}

static const chain_node *described(const wt_chain *chain, int node, int param)
{
    if (node < 0 || node >= chain->n_described) return NULL;
    const chain_node *found = &chain->nodes[chain->described[node]];
    return wt_node_type_param(found->type, param) ? found : NULL;
}

WT_RT wt_status wt_chain_set(wt_chain *chain, int node, int param, float value)
{
    const chain_node *at = described(chain, node, param);
    if (!at || isnan(value)) return WT_ERR_BAD_ARG;
    const wt_param_info *info = wt_node_type_param(at->type, param);
    value = fminf(fmaxf(value, info->min), info->max);
    if (param == at->type->n_params) value = value >= 0.5f; // bypassed or not
    atomic_store_explicit(&chain->targets[at->first_param + param], info->logarithmic ? logf(value) : value,
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&chain->sequence, 1, memory_order_release);
    return WT_OK;
}

WT_RT float wt_chain_get(const wt_chain *chain, int node, int param)
{
    const chain_node *at = described(chain, node, param);
    if (!at) return 0;
    float target = atomic_load_explicit(&chain->targets[at->first_param + param], memory_order_relaxed);
    return wt_node_type_param(at->type, param)->logarithmic ? expf(target) : target;
}

WT_RT int wt_chain_readings(const wt_chain *chain, int node, float *values, int max_values)
{
    if (node < 0 || node >= chain->n_described) return 0;
    const chain_node *at = &chain->nodes[chain->described[node]];
    int count = at->type->n_readings < max_values ? at->type->n_readings : max_values;
    for (int r = 0; r < count; r++)
        values[r] = chain->cuda ? wt__chain_cuda_reading(chain, at->first_reading + r)
                                : atomic_load_explicit(&chain->readings[at->first_reading + r], memory_order_relaxed);
    return count;
}

enum { JOBS_A_CALL = 48 }; // a queued call carries its arguments along, up to 4 KB

typedef struct cpu_batch {
    wt_chain *chain;
    wt_chain_job jobs[JOBS_A_CALL];
} cpu_batch;

static void run_job(const void *args, int item)
{
    const cpu_batch *batch = args;
    const wt_chain_job *job = &batch->jobs[item];
    const float *in[WT_MAX_CHANNELS];
    float *out[WT_MAX_CHANNELS];
    const float *from = (const float *)(wt_buffer_address(job->in) + job->in_offset);
    float *to = (float *)(wt_buffer_address(job->out) + job->out_offset);
    for (int c = 0; c < batch->chain->channels; c++) in[c] = from + c * job->in_stride;
    for (int c = 0; c < batch->chain->out_channels; c++) out[c] = to + c * job->out_stride;
    unsigned before = wt__denormals_off();
    if (job->reset)
        wt__chain_rest(batch->chain, batch->chain->memory + (size_t)job->instance * batch->chain->instance_bytes);
    wt__chain_span(batch->chain, job->instance, in, out, job->n_frames);
    wt__denormals_restore(before);
}

wt_status wt__chain_cpu_enqueue(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs)
{
    cpu_batch batch = {.chain = chain};
    for (int k = 0; k < n_jobs; k += JOBS_A_CALL) {
        int n = n_jobs - k < JOBS_A_CALL ? n_jobs - k : JOBS_A_CALL;
        memcpy(batch.jobs, jobs + k, sizeof *jobs * (size_t)n);
        wt_status status = wt_stream_run(stream, run_job, &batch, sizeof batch, n);
        if (status) return status;
    }
    return WT_OK;
}
