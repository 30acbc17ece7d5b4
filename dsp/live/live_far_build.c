// Making the device's side of a live chain: text, memory, rings, the shape of the launch.
#include "live_far.h"

#include <stdlib.h>

enum { OWN_SHARED_BYTES = 7168 }; // that the kernel's own variables take at most

// ---- the kernel

// Frames that a node gets at most in a call: room for the longest block, as far as nodes take it at once.
static int most_frames(int max_frames)
{
    int frames = WT_CHAIN_BLOCK;
    while (frames > WT_QUANTUM && frames / 2 >= max_frames) frames /= 2;
    return frames;
}

static size_t places_bytes(const wt_chain *chain) { return sizeof(wt_node_place) * (size_t)chain->n_nodes; }

// Whether shared memory holds one stream's instance and plans beside its buffers, so that the text may say so.
static bool fits_shared(const wt_device_info *info, const wt_chain *chain, int frames)
{
    const size_t own = OWN_SHARED_BYTES + wt__chain_cuda_table_bytes(chain, frames);
    return chain->n_instances == 1 && own + sizeof(float) * wt__chain_cuda_floats(chain, frames) +
                                              chain->instance_bytes + chain->plans_bytes + places_bytes(chain) <=
                                          info->shared_bytes;
}

static char *kernel_text(const wt_device_info *info, const wt_chain *chain, int max_frames)
{
    const int frames = most_frames(max_frames);
    return wt__chain_cuda_text(chain, frames, fits_shared(info, chain, frames));
}

static wt_status compile(live_far *f)
{
    if (!f->on_gpu) return WT_OK;
    char *source = kernel_text(wt_device_get_info(f->device), f->chain, f->args.layout.max_frames);
    if (!source) return wt_fail(WT_ERR_NO_MEMORY, "%s: kernel text", f->chain->name);
    const wt_module_config config = {.name = "resident.cu", .source = source};
    wt_status status = wt_module_prepare(f->device, &config, &f->module);
    free(source);
    return status;
}

// ---- memory

// Words up to the next 128 bytes: what a warp asks for or sends from there crosses the bus in whole lines.
static int whole_lines(int words) { return (words + 15) & ~15; }

static void lay_out(live_far *f, int max_frames)
{
    const wt_chain *chain = f->chain;
    resident_layout *l = &f->args.layout;
    *l = (resident_layout){.slots = FAR_SLOTS,
                           .n_streams = chain->n_instances,
                           .n_params = chain->n_params,
                           .n_readings = chain->n_readings,
                           .max_frames = max_frames,
                           .channels = chain->channels,
                           .out_channels = chain->out_channels,
                           .point_channels = chain->buffer_channels};
    const int points = LIVE_MAX_POINTS * l->point_channels * max_frames;
    l->in_at = whole_lines(RESIDENT_TARGETS + l->n_params);
    l->inserts_at = l->in_at + l->n_streams * l->channels * max_frames;
    l->down_words = whole_lines(l->inserts_at + points);
    l->readings_at = RESIDENT_HEAD;
    l->out_at = whole_lines(l->readings_at + l->n_readings);
    l->taps_at = l->out_at + l->out_channels * max_frames;
    l->up_words = whole_lines(l->taps_at + points);
}

static wt_status upload(live_far *f, const void *from, size_t bytes, wt_buffer **buffer)
{
    wt_status status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, bytes, buffer);
    if (!status) status = wt_stream_upload(f->stream, *buffer, 0, from, bytes);
    return status ? status : wt_stream_synchronize(f->stream);
}

static wt_status take_device_memory(live_far *f)
{
    const wt_chain *chain = f->chain;
    const size_t streams = (size_t)chain->n_instances;
    if (!f->on_gpu) return WT_OK; // the chain's own memory serves
    wt_node_place *places = malloc(sizeof *places * (size_t)chain->n_nodes);
    if (!places) return wt_fail(WT_ERR_NO_MEMORY, "%s: node places", chain->name);
    for (int k = 0; k < chain->n_nodes; k++) places[k] = chain->nodes[k].place;
    wt_status status = upload(f, places, sizeof *places * (size_t)chain->n_nodes, &f->node_places);
    free(places);
    if (!status) status = upload(f, chain->plans, chain->plans_bytes, &f->plans);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, chain->instance_bytes * streams, &f->memory);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, sizeof(resident_place) * streams, &f->places);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, sizeof(wt_block_word) * FAR_SLOTS, &f->relay);
    const size_t slots_words = (size_t)(f->args.layout.down_words + f->args.layout.up_words);
    if (!status)
        status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, sizeof(wt_block_word) * slots_words, &f->rehearsal);
    if (!status)
        status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, sizeof(float) * streams * (size_t)(chain->n_params + 1),
                                  &f->targets);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_MAPPED, chain->instance_bytes * streams, &f->exported);
    return status ? status : wt_buffer_create(f->device, WT_MEMORY_MAPPED, sizeof(uint64_t), &f->faults);
}

static wt_status take_rings(live_far *f)
{
    const resident_layout *l = &f->args.layout;
    wt_status status = wt_block_ring_create(
        &(wt_block_ring_config){.device = f->device, .n_slots = l->slots, .slot_words = (size_t)l->down_words},
        &f->down);
    if (!status)
        status = wt_block_ring_create(&(wt_block_ring_config){.device = f->device,
                                                              .n_slots = l->slots,
                                                              .slot_words = (size_t)(l->up_words * l->n_streams)},
                                      &f->up);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_MAPPED, sizeof(resident_control), &f->control);
    if (!status)
        status = wt_buffer_create(f->device, WT_MEMORY_MAPPED, sizeof(wt_block_word) * (size_t)l->n_streams, &f->left);
    return status;
}

// What the audio thread, and who serves on the CPU, work with.
static wt_status take_host_memory(live_far *f)
{
    const resident_layout *l = &f->args.layout;
    const size_t points = (size_t)LIVE_MAX_POINTS * (size_t)l->point_channels * (size_t)l->max_frames;
    const int lines = l->n_streams * l->out_channels;
    size_t fifo_frames = 1;
    while (fifo_frames < (size_t)(f->delay_frames + 2 * l->max_frames)) fifo_frames *= 2;
    f->fifo_mask = (int64_t)fifo_frames - 1;
    f->served = calloc((size_t)l->n_streams, sizeof *f->served);
    f->serve_in = calloc((size_t)(l->channels * l->max_frames), sizeof(float));
    f->serve_out = calloc((size_t)(l->out_channels * l->max_frames), sizeof(float));
    f->tap_planes = calloc(points, sizeof(float));
    f->visit_planes = calloc(2 * points, sizeof(float));
    f->fifo = calloc((size_t)lines, sizeof *f->fifo);
    float *fifo = f->fifo ? calloc((size_t)lines * fifo_frames, sizeof(float)) : NULL;
    if (!fifo || !f->served || !f->serve_in || !f->serve_out || !f->tap_planes || !f->visit_planes) {
        free(fifo);
        return wt_fail(WT_ERR_NO_MEMORY, "%s: buffers of the live path", f->chain->name);
    }
    for (int c = 0; c < lines; c++) f->fifo[c] = fifo + (size_t)c * fifo_frames;
    f->visit.stride = l->max_frames;
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        f->visit.tap[k] = f->visit_planes + k * l->point_channels * l->max_frames;
        f->visit.insert[k] = f->visit.tap[k] + points;
    }
    f->chain->visit = NULL;
    f->chain->visit_user = &f->visit;
    return WT_OK;
}

// ---- the launch

// Thread blocks that surely run at once on the partition, of so many threads and bytes each: the others would wait
// until these leave.
static int n_resident_blocks(const live_far *f, int threads, size_t shared_bytes)
{
    const wt_device_info *info = wt_device_get_info(f->device);
    const wt_kernel_info kernel = wt_kernel_get_info(f->kernel);
    wt_partition_info partition = {.n_sms = info->n_sms};
    if (f->live->config.partition) wt_partition_get_info(f->live->config.partition, &partition);
    const size_t each = shared_bytes + (size_t)kernel.shared_bytes + 1024; // 1 KB of a block is the system's
    const int registers = ((kernel.n_registers > 16 ? kernel.n_registers : 16) + 7) / 8 * 8;
    int a_sm = (int)((info->shared_bytes + 1024) / each);
    if (a_sm > 65536 / (registers * threads)) a_sm = 65536 / (registers * threads);
    if (a_sm > 1024 / threads) a_sm = 1024 / threads; // half of what most SMs take
    return (a_sm > 0 ? a_sm : 1) * partition.n_sms;
}

// Copies to shared memory what still fits into `room`, in the order that helps most.
static size_t choose_copies(live_far *f, size_t room)
{
    const wt_chain *chain = f->chain;
    const size_t places = places_bytes(chain);
    size_t used = 0;
    if (chain->n_instances == 1 && chain->instance_bytes <= room) {
        f->args.copy_memory = 1;
        used = chain->instance_bytes;
    }
    if (chain->n_instances == 1 && used + chain->plans_bytes <= room) {
        f->args.copy_plans = 1;
        used += chain->plans_bytes;
    }
    if (used + places <= room) {
        f->args.copy_places = 1;
        used += places;
    }
    if (f->args.copy_memory && !f->args.once && used + chain->instance_bytes <= room) {
        f->args.has_spare = 1;
        used += chain->instance_bytes;
    }
    return used;
}

static wt_status choose_launch(live_far *f)
{
    const wt_chain *chain = f->chain;
    size_t room = wt_device_get_info(f->device)->shared_bytes - (size_t)wt_kernel_get_info(f->kernel).shared_bytes;
    int frames = most_frames(f->args.layout.max_frames);
    size_t floats;
    for (;; frames /= 2) {
        floats = wt__chain_cuda_floats(chain, frames);
        if (sizeof(float) * floats <= room) break;
        if (frames == WT_QUANTUM)
            return wt_fail(WT_ERR_UNSUPPORTED, "%s: needs %zu bytes of shared memory, the device has %zu", chain->name,
                           sizeof(float) * floats, room);
    }
    f->args.shared_floats = (int)floats;
    const size_t bytes = sizeof(float) * floats + choose_copies(f, room - sizeof(float) * floats);
    if (fits_shared(wt_device_get_info(f->device), chain, most_frames(f->args.layout.max_frames)) &&
        !(f->args.copy_memory && f->args.copy_plans && f->args.copy_places))
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: the kernel has %d bytes of shared memory of its own, want at most %d",
                       chain->name, wt_kernel_get_info(f->kernel).shared_bytes,
                       OWN_SHARED_BYTES + (int)wt__chain_cuda_table_bytes(chain, frames));
    int threads = wt__chain_cuda_threads(chain), most = wt_kernel_get_info(f->kernel).max_threads & ~31;
    if (threads > most) threads = most;
    const int blocks = n_resident_blocks(f, threads, bytes), streams = chain->n_instances;
    const int each = (streams + blocks - 1) / blocks; // streams of a thread block
    f->launch = (wt_launch){
        .grid = {(streams + each - 1) / each}, .block = {threads}, .shared_bytes = bytes, .apart = !f->args.once};
    f->args.chain.block_frames = frames;
    return WT_OK;
}

static void fill_args(live_far *f)
{
    const wt_chain *chain = f->chain;
    const int frames = f->args.chain.block_frames;
    f->args.chain = (chain_args){
        .plans = (const unsigned char *)wt_buffer_address(f->plans),
        .memory = (unsigned char *)wt_buffer_address(f->memory),
        .instance_bytes = chain->instance_bytes,
        .places = (const wt_node_place *)wt_buffer_address(f->node_places),
        .faults = (unsigned long long *)wt_buffer_address(f->faults),
        .n_nodes = chain->n_nodes,
        .channels = chain->channels,
        .out_channels = chain->out_channels,
        .n_buffers = chain->n_buffers,
        .buffer_channels = chain->buffer_channels,
        .output = chain->output,
        .block_frames = frames,
        .scratch_floats = chain->scratch_floats,
        .ramp_quanta = chain->ramp_quanta,
    };
    f->args.down = (wt_block_word *)wt_block_ring_address(f->down);
    f->args.up = (wt_block_word *)wt_block_ring_address(f->up);
    f->args.left = (wt_block_word *)wt_buffer_address(f->left);
    f->args.control = (resident_control *)wt_buffer_address(f->control);
    f->args.exported = (unsigned char *)wt_buffer_address(f->exported);
    f->args.places = (resident_place *)wt_buffer_address(f->places);
    f->args.relay = (wt_block_word *)wt_buffer_address(f->relay);
    f->args.rehearsal = (wt_block_word *)wt_buffer_address(f->rehearsal);
    f->args.targets = (float *)wt_buffer_address(f->targets);
    f->args.plans_bytes = chain->plans_bytes;
}

static wt_status queue(live_far *f)
{
    if (f->on_gpu) return wt_kernel_launch(f->kernel, f->stream, &f->launch, &WT_ARG(f->args), 1);
    return wt_stream_run(f->stream, wt__live_far_reside, &f, sizeof f, 1);
}

wt_status wt__live_far_launch(live_far *far)
{
    return far->graph ? wt_graph_launch(far->graph, far->stream) : queue(far);
}

static wt_status capture(live_far *f)
{
    wt_status status = wt_graph_begin(f->stream, &f->graph);
    if (status) return status;
    wt_graph *graph = f->graph;
    f->graph = NULL;
    status = queue(f);
    wt_status ended = wt_graph_end(graph);
    f->graph = graph;
    return status ? status : ended;
}

static wt_status open_stream(live_far *f)
{
    const wt_stream_config highest = {.priority = 1};
    return f->live->config.partition ? wt_partition_stream_create(f->live->config.partition, &highest, &f->stream)
                                     : wt_stream_create(f->device, &highest, &f->stream);
}

static wt_status build(live_far *f, int max_frames)
{
    const wt_live_config *config = &f->live->config;
    if (config->mode == WT_LIVE_PIPELINED) f->delay_frames = config->pipeline_blocks * max_frames;
    f->args.once = f->path == WT_LIVE_GRAPH;
    f->args.life_ns = f->args.once ? 1000000 : (long long)(config->life_s * 1e9);
    lay_out(f, max_frames);
    wt_status status = compile(f);
    if (!status) status = open_stream(f);
    if (!status) status = take_device_memory(f);
    if (!status) status = take_rings(f);
    if (!status) status = take_host_memory(f);
    return status;
}

wt_status wt__live_far_load(live_far *far)
{
    if (far->on_gpu) {
        wt_status status = wt_module_load(far->module);
        if (!status) status = wt_module_get_kernel(far->module, "resident_run", &far->kernel);
        if (!status) status = choose_launch(far);
        if (status) return status;
        fill_args(far);
    }
    return far->path == WT_LIVE_GRAPH ? capture(far) : WT_OK;
}

wt_status wt__live_far_create(wt_live *live, wt_chain *chain, wt_live_path path, int max_frames, live_far **far)
{
    *far = NULL;
    if (chain->n_instances > 1 &&
        !wt__chain_runs_on_cpu(chain)) // streams may leave a turn apart, which the CPU evens out
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: %d streams of a chain that runs on a GPU only, want 1", chain->name,
                       chain->n_instances);
    live_far *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "%s: the live path", chain->name);
    pthread_mutex_init(&f->mutex, NULL);
    f->live = live;
    f->chain = chain;
    f->path = path;
    f->device = live->config.device;
    f->on_gpu = wt_device_get_info(f->device)->backend == WT_BACKEND_CUDA;
    f->runs_on_cpu = wt__chain_runs_on_cpu(chain);
    f->sent_sequence = atomic_load(&chain->sequence);
    wt_status status = build(f, max_frames);
    if (status) {
        wt__live_far_destroy(f);
        return status;
    }
    *far = f;
    return WT_OK;
}

void wt__live_far_destroy(live_far *far)
{
    if (!far) return;
    atomic_store(&far->quit, true);
    if (far->has_keeper) pthread_join(far->keeper, NULL);
    wt_graph_destroy(far->graph);
    wt_stream_destroy(far->stream);
    wt_block_ring_destroy(far->down);
    wt_block_ring_destroy(far->up);
    wt_buffer *const buffers[] = {far->plans,   far->memory,   far->node_places, far->places,
                                  far->targets, far->relay,    far->rehearsal,   far->control,
                                  far->left,    far->exported, far->faults};
    for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++) wt_buffer_destroy(buffers[k]);
    wt_module_destroy(far->module);
    if (far->fifo) free(far->fifo[0]);
    free(far->fifo), free(far->served), free(far->serve_in), free(far->serve_out);
    free(far->tap_planes), free(far->visit_planes);
    pthread_mutex_destroy(&far->mutex);
    free(far);
}
