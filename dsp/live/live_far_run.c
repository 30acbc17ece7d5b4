// The audio thread's side of a device: posts a block, waits for the answer it is to play now, within bounds.
#include "live_far.h"

#include <string.h>
#include <warptone/clock.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

static const int64_t AWAY_NS = 20000000; // so long blocks wait for a device that went away

static void pause_a_moment(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

static far_block *block_of(live_far *far, uint32_t turn) { return &far->blocks[turn & (FAR_SLOTS - 1)]; }

// ---- answers

// The words of an answer need no order among each other: some that its first word overtook may still be on their way,
// then the whole answer is tried again later.
static bool fetch(const wt_block_slot *words, float *x, int n, uint32_t turn)
{
    return wt_block_get(words, x, n, turn) == n;
}

// The two parts of a block in a line of the fifo.
static int fifo_begin(const live_far *far, int64_t position) { return (int)(position & far->fifo_mask); }

static int fifo_whole(const live_far *far, int64_t position, int n)
{
    const int room = (int)far->fifo_mask + 1 - fifo_begin(far, position);
    return room < n ? room : n;
}

static bool fetch_to_fifo(const live_far *far, const wt_block_slot *words, float *fifo, const far_block *b,
                          uint32_t turn)
{
    const int whole = fifo_whole(far, b->position, b->n_frames);
    return fetch(words, fifo + fifo_begin(far, b->position), whole, turn) &&
           fetch(words + whole, fifo, b->n_frames - whole, turn);
}

static bool is_finite(const float *x, int n)
{
    uint32_t largest = 0;
    for (int k = 0; k < n; k++) {
        uint32_t bits;
        memcpy(&bits, &x[k], sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000u;
}

// A stream's block with a sample that is not finite is silence; the device starts that stream anew.
static void silence_fault(const live_far *far, float *const *fifo, const far_block *b)
{
    const int begin = fifo_begin(far, b->position), whole = fifo_whole(far, b->position, b->n_frames);
    bool finite = true;
    for (int c = 0; c < far->args.layout.out_channels; c++)
        finite &= is_finite(fifo[c] + begin, whole) && is_finite(fifo[c], b->n_frames - whole);
    for (int c = 0; c < far->args.layout.out_channels && !finite; c++) {
        memset(fifo[c] + begin, 0, sizeof(float) * (size_t)whole);
        memset(fifo[c], 0, sizeof(float) * (size_t)(b->n_frames - whole));
    }
}

static bool fetch_output(const live_far *far, int s, const wt_block_slot *up, const far_block *b, uint32_t turn)
{
    const resident_layout *l = &far->args.layout;
    float *const *fifo = far->fifo + s * l->out_channels;
    for (int c = 0; c < l->out_channels; c++)
        if (!fetch_to_fifo(far, up + l->out_at + c * b->n_frames, fifo[c], b, turn)) return false;
    silence_fault(far, fifo, b);
    return true;
}

static bool fetch_readings(live_far *far, const wt_block_slot *up, uint32_t turn)
{
    for (int r = 0; r < far->chain->n_readings; r++) {
        float value;
        if (!fetch(up + far->args.layout.readings_at + r, &value, 1, turn)) return false;
        atomic_store_explicit(&far->chain->readings[r], value, memory_order_relaxed);
    }
    return true;
}

static bool fetch_taps(live_far *far, const wt_block_slot *up, const far_block *b, uint32_t turn)
{
    const resident_layout *l = &far->args.layout;
    for (int k = 0; k < LIVE_MAX_POINTS; k++)
        for (int c = 0; c < b->tap_channels[k]; c++)
            if (!fetch(up + l->taps_at + k * l->point_channels * l->max_frames + c * b->n_frames,
                       far->tap_planes + (k * l->point_channels + c) * l->max_frames, b->n_frames, turn))
                return false;
    return true;
}

static void push_taps(live_far *far, const far_block *b)
{
    const resident_layout *l = &far->args.layout;
    const float *lines[WT_MAX_CHANNELS];
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        for (int c = 0; c < b->tap_channels[k]; c++)
            lines[c] = far->tap_planes + (k * l->point_channels + c) * l->max_frames;
        if (b->tap_channels[k]) wt__live_push_node_tap(far->live, k, lines, b->tap_channels[k], b->n_frames);
    }
}

// While it waits: how long the thread was away between two looks shows where it lost its processor.
static int64_t look_at_clock(live_far *far)
{
    const int64_t now_ns = wt_clock_now_ns(NULL);
    if (now_ns - far->looked_ns > far->hole_ns) far->hole_ns = now_ns - far->looked_ns;
    far->looked_ns = now_ns;
    return now_ns;
}

static void note_times(live_far *far, const far_block *b, uint32_t turn)
{
    const wt_block_slot *up = wt_block_ring_slot(far->up, turn);
    wt_live_times *t = &far->live->times;
    uint32_t head[RESIDENT_HEAD];
    bool known = true;
    for (int k = 1; k < RESIDENT_HEAD; k++) known &= wt_block_here(up + k, turn, &head[k]);
    *t = (wt_live_times){.rung_ns = b->rung_ns, .heard_ns = look_at_clock(far), .device_ns = -1};
    t->round_trip_ns = t->heard_ns - t->rung_ns;
    t->away_ns = far->hole_ns;
    t->n_launches = __atomic_load_n(&far_control(far)->n_started, __ATOMIC_RELAXED);
    if (known) {
        t->seen_ns = head[RESIDENT_SEEN], t->sent_ns = head[RESIDENT_SENT];
        t->device_ns = t->sent_ns - t->seen_ns;
        t->busy_ns = head[RESIDENT_BUSY], t->hole_ns = head[RESIDENT_HOLE], t->n_looks = head[RESIDENT_N_LOOKS];
        t->age_us = (uint32_t)(((uint64_t)head[RESIDENT_AGE] << RESIDENT_AGE_SHIFT) / 1000);
        t->look_ns = head[RESIDENT_LOOK];
    }
    if (t->heard_ns > b->until_ns) far->live->late_times[far->live->n_late++ % LIVE_LATE] = *t;
    wt_histogram_record(far->live->round_trip_ns, t->round_trip_ns);
}

// The streams' answers of a turn, in order, as far as they are there: taken up while the others are still computed.
static bool fetch_streams(live_far *far, const far_block *b, uint32_t turn)
{
    const resident_layout *l = &far->args.layout;
    for (; far->n_fetched < l->n_streams; far->n_fetched++) {
        const wt_block_slot *up = wt_block_ring_slot(far->up, turn) + far->n_fetched * l->up_words;
        uint32_t data;
        if (!wt_block_here(up, turn, &data) || !fetch_output(far, far->n_fetched, up, b, turn) ||
            (far->n_fetched == 0 && (!fetch_readings(far, up, turn) || !fetch_taps(far, up, b, turn))))
            return false;
    }
    far->n_fetched = 0;
    return true;
}

// All answers that are there, in order.
static void collect(live_far *far)
{
    while (far->heard != far->turn) {
        const uint32_t turn = wt_block_turn_after(far->heard);
        const far_block *b = block_of(far, turn);
        if (!fetch_streams(far, b, turn)) return;
        if (atomic_load_explicit(&far->owner, memory_order_relaxed) == FAR_DEVICE) note_times(far, b, turn);
        push_taps(far, b);
        far->fifo_end = b->position + b->n_frames;
        far->heard = turn;
    }
}

// ---- blocks

// Taps and inserts of nodes; returns whether there are any.
static bool post_points(live_far *far, wt_block_slot *down, far_block *b, uint32_t turn)
{
    const live_visit *v = &far->live->visit;
    const resident_layout *l = &far->args.layout;
    const bool current = far->live->current && far->live->current->far == far;
    uint32_t taps[LIVE_MAX_POINTS] = {0}, inserts[LIVE_MAX_POINTS] = {0}, any = 0;
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        b->tap_channels[k] = 0;
        if (current && v->tap[k] && v->tap_node[k] >= 0) {
            const int channels = far->chain->nodes[v->tap_node[k]].place.output_channels;
            b->tap_channels[k] = channels < v->tap_channels[k] ? channels : v->tap_channels[k];
            taps[k] = (uint32_t)v->tap_node[k] + 1;
        }
        if (current && v->insert_channels[k] && v->insert_node[k] >= 0 && v->insert_channels[k] <= l->point_channels)
            inserts[k] = (uint32_t)(v->insert_node[k] + 1) | (uint32_t)v->insert_channels[k] << 16;
        any |= taps[k] | inserts[k];
    }
    for (int k = 0; any && k < LIVE_MAX_POINTS; k++) {
        wt_block_ring_bell(down + RESIDENT_TAPS + k, taps[k], turn);
        wt_block_ring_bell(down + RESIDENT_INSERTS + k, inserts[k], turn);
        for (int c = 0; inserts[k] && c < v->insert_channels[k]; c++)
            wt_block_put(down + l->inserts_at + k * l->point_channels * l->max_frames + c * b->n_frames,
                         v->insert[k] + c * v->stride, b->n_frames, turn);
    }
    return any;
}

static void post(live_far *far, const float *const *in, int64_t position, int n_frames)
{
    const resident_layout *l = &far->args.layout;
    const uint32_t turn = wt_block_turn_after(far->turn);
    const uint32_t sequence = atomic_load_explicit(&far->chain->sequence, memory_order_acquire);
    wt_block_slot *down = wt_block_ring_slot(far->down, turn);
    far_block *b = block_of(far, turn);
    const double rate_hz = atomic_load_explicit(&far->live->rate_hz, memory_order_relaxed);
    uint32_t bell = (uint32_t)n_frames;
    b->n_frames = n_frames;
    b->position = position;
    if (sequence != far->sent_sequence) {
        for (int p = 0; p < l->n_params; p++) {
            const float target = atomic_load_explicit(&far->chain->targets[p], memory_order_relaxed);
            wt_block_put(down + RESIDENT_TARGETS + p, &target, 1, turn);
        }
        bell |= RESIDENT_HAS_TARGETS;
        far->sent_sequence = sequence;
    }
    if (post_points(far, down, b, turn)) bell |= RESIDENT_HAS_POINTS;
    for (int c = 0; c < far->live->lines; c++) wt_block_put(down + l->in_at + c * n_frames, in[c], n_frames, turn);
    wt_block_ring_bell(down + RESIDENT_SEQUENCE, sequence, turn);
    b->until_ns = far->until_ns + (int64_t)(far->delay_frames * 1e9 / rate_hz);
    b->rung_ns = far->looked_ns = wt_clock_now_ns(NULL);
    far->hole_ns = 0;
    wt_block_ring_bell(down, bell, turn);
    far->turn = turn;
    atomic_store_explicit(&far->posted, turn, memory_order_release);
}

// The device has handed its state back: answer what is pending from where it left.
void wt__live_far_serve_pending(live_far *far)
{
    const bool recover = atomic_load_explicit(&far->recover, memory_order_relaxed);
    for (int s = 0; recover && s < far->args.layout.n_streams; s++) far->served[s] = far->heard;
    if (recover) atomic_store_explicit(&far->recover, false, memory_order_release);
    if (far->runs_on_cpu) wt__live_far_serve(far, far->turn);
}

static void serve_if_ours(live_far *far)
{
    if (atomic_load_explicit(&far->owner, memory_order_acquire) == FAR_CPU) wt__live_far_serve_pending(far);
}

// A worker wants the chain for the device, and nothing is pending: from here on nobody serves until it has it.
static void give_back(live_far *far)
{
    if (!atomic_load_explicit(&far->give_back, memory_order_relaxed) ||
        atomic_load_explicit(&far->owner, memory_order_relaxed) != FAR_CPU)
        return;
    serve_if_ours(far);
    atomic_store_explicit(&far->owner, FAR_MOVING, memory_order_release);
}

static void play(const live_far *far, float *const *wet, int out_channels, int64_t position, int n_frames)
{
    const resident_layout *l = &far->args.layout;
    const int none = position >= 0 ? 0 : -position < n_frames ? (int)-position : n_frames, n = n_frames - none;
    const int begin = fifo_begin(far, position + none), whole = fifo_whole(far, position + none, n);
    for (int s = 0; s < l->n_streams; s++)
        for (int c = 0; c < l->out_channels; c++) {
            const float *fifo = far->fifo[s * l->out_channels + c];
            float *to = wet[s * out_channels + c];
            memset(to, 0, sizeof *to * (size_t)none);
            memcpy(to + none, fifo + begin, sizeof *to * (size_t)whole);
            memcpy(to + none + whole, fifo, sizeof *to * (size_t)(n - whole));
        }
}

static bool has_room(const live_far *far) { return far->turn - far->heard < FAR_SLOTS - 1; }

static bool is_parked(const live_far *far) { return atomic_load_explicit(&far->live->parked, memory_order_relaxed); }

// A device that left in good order is mostly back in a moment, and then answers what was posted meanwhile: a quiesce in
// which little is loaded need not be heard even where no CPU can play the chain.
static bool is_back_soon(const live_far *far)
{
    return !is_parked(far) && !atomic_load_explicit(&far->lost, memory_order_relaxed) &&
           wt_clock_now_ns(NULL) - atomic_load_explicit(&far->away_ns, memory_order_relaxed) < AWAY_NS;
}

// What only a device can play is answered by nobody when that is lost, or when the chain was moved away from it,
// however long freewheel waits. -1: somebody will.
static int nobody_answers(const live_far *far)
{
    if (far->runs_on_cpu) return -1;
    if (atomic_load_explicit(&far->lost, memory_order_relaxed)) return WT_LIVE_MISS_LOST;
    return atomic_load_explicit(&far->owner, memory_order_acquire) == FAR_CPU && is_parked(far) ? WT_LIVE_MISS_LATE
                                                                                                : -1;
}

static int wait_for_answer(live_far *far, int64_t end, int64_t until_ns)
{
    for (;;) {
        serve_if_ours(far);
        collect(far);
        if (far->fifo_end >= end) return -1;
        const int miss = nobody_answers(far);
        if (miss >= 0) return miss;
        if (look_at_clock(far) > until_ns) return WT_LIVE_MISS_LATE;
        pause_a_moment();
    }
}

// Whether the block is posted; else far->miss says why not.
static bool try_post(live_far *far, const float *const *in, int n_frames)
{
    const wt_live *live = far->live;
    wt_block_slot *down = wt_block_ring_slot(far->down, wt_block_turn_after(far->turn));
    wt_block_claim(down, 1);
    wt_block_claim(down + far->args.layout.in_at, live->lines * n_frames);
    const bool patient = atomic_load_explicit(&live->freewheel, memory_order_relaxed);
    const double block_ns = n_frames * 1e9 / atomic_load_explicit(&live->rate_hz, memory_order_relaxed);
    const int64_t wait_ns = patient ? INT64_MAX / 2 : (int64_t)(live->config.wait_share * block_ns);
    far->until_ns = wt_clock_now_ns(NULL) + wait_ns;
    if (!far->runs_on_cpu && atomic_load_explicit(&far->owner, memory_order_acquire) != FAR_DEVICE &&
        !is_back_soon(far)) {
        far->miss = atomic_load_explicit(&far->lost, memory_order_relaxed) ? WT_LIVE_MISS_LOST : WT_LIVE_MISS_LATE;
        return false;
    }
    do {
        serve_if_ours(far);
        collect(far);
    } while (!has_room(far) && patient);
    far->miss = has_room(far) ? -1 : WT_LIVE_MISS_FULL;
    if (far->miss < 0) post(far, in, far->position, n_frames);
    return far->miss < 0;
}

void wt__live_far_post(live_far *far, const float *const *in, int n_frames)
{
    if (!try_post(far, in, n_frames)) far->hole_begin = far->position, far->hole_end = far->position + n_frames;
    far->position += n_frames;
}

static int take(live_far *far, float *const *wet, int out_channels, int n_frames)
{
    const int64_t wanted = far->position - n_frames - far->delay_frames;
    if (far->miss >= 0) return far->miss;
    const int miss = wait_for_answer(far, wanted + n_frames, far->until_ns);
    if (miss >= 0) return miss;
    if (far->hole_end > far->hole_begin && wanted < far->hole_end && wanted + n_frames > far->hole_begin)
        return WT_LIVE_MISS_FULL;
    play(far, wet, out_channels, wanted, n_frames);
    return -1;
}

int wt__live_far_take(live_far *far, float *const *wet, int out_channels, int n_frames)
{
    const int miss = take(far, wet, out_channels, n_frames);
    give_back(far);
    return miss;
}
