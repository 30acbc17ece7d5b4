// The far end's protocol on the CPU: in the audio thread, when the device has handed its state back, and as a function
// that stays on a stream of the CPU backend, as the resident kernel does on a GPU (kernels/chain/resident.cuh).
#include "live_far.h"

#include <sched.h>
#include <warptone/clock.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

static void get(const wt_block_slot *words, float *x, int n, uint32_t turn)
{
    for (int done = 0; done < n;) done += wt_block_get(words + done, x + done, n - done, turn);
}

static uint32_t take(const wt_block_slot *word, uint32_t turn)
{
    uint32_t data;
    while (!wt_block_here(word, turn, &data)) {
    }
    return data;
}

// The points that a block names, inserts into their planes.
static void read_points(live_far *far, const wt_block_slot *down, uint32_t turn, int n_frames)
{
    const resident_layout *l = &far->args.layout;
    live_visit *v = &far->visit;
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        const uint32_t tap = take(down + RESIDENT_TAPS + k, turn), insert = take(down + RESIDENT_INSERTS + k, turn);
        v->tap_node[k] = (int)tap - 1;
        v->tap_channels[k] = l->point_channels;
        v->insert_node[k] = (int)(insert & 0xffff) - 1;
        v->insert_channels[k] = (int)(insert >> 16);
        for (int c = 0; c < v->insert_channels[k]; c++)
            get(down + l->inserts_at + k * l->point_channels * l->max_frames + c * n_frames,
                v->insert[k] + c * v->stride, n_frames, turn);
    }
}

static void write_taps(const live_far *far, wt_block_slot *up, uint32_t turn, int n_frames)
{
    const resident_layout *l = &far->args.layout;
    for (int k = 0; k < LIVE_MAX_POINTS; k++)
        for (int c = 0; far->visit.tap_node[k] >= 0 && c < far->visit.tap_channels[k]; c++)
            wt_block_put(up + l->taps_at + k * l->point_channels * l->max_frames + c * n_frames,
                         far->visit.tap[k] + c * far->visit.stride, n_frames, turn);
}

static void write_readings(const live_far *far, wt_block_slot *up, uint32_t turn)
{
    for (int r = 0; r < far->chain->n_readings; r++) {
        const float value = atomic_load_explicit(&far->chain->readings[r], memory_order_relaxed);
        wt_block_put(up + far->args.layout.readings_at + r, &value, 1, turn);
    }
}

static void serve_block(live_far *far, int s, uint32_t turn)
{
    const resident_layout *l = &far->args.layout;
    const wt_block_slot *down = wt_block_ring_slot(far->down, turn);
    wt_block_slot *up = wt_block_ring_slot(far->up, turn) + s * l->up_words;
    const uint32_t bell = take(down, turn);
    const int n_frames = (int)(bell & RESIDENT_FRAMES);
    const bool points = s == 0 && bell & RESIDENT_HAS_POINTS;
    const float *in[WT_MAX_CHANNELS];
    float *out[WT_MAX_CHANNELS];
    for (int c = 0; c < l->channels; c++) {
        in[c] = far->serve_in + c * l->max_frames;
        get(down + l->in_at + (s * l->channels + c) * n_frames, far->serve_in + c * l->max_frames, n_frames, turn);
    }
    for (int c = 0; c < l->out_channels; c++) out[c] = far->serve_out + c * l->max_frames;
    if (points) read_points(far, down, turn, n_frames);
    far->chain->visit = points ? wt__live_visit : NULL;
    wt__chain_span(far->chain, s, in, out, n_frames);
    for (int c = 0; c < l->out_channels; c++) wt_block_put(up + l->out_at + c * n_frames, out[c], n_frames, turn);
    if (points) write_taps(far, up, turn, n_frames);
    if (s == 0) write_readings(far, up, turn);
    wt_block_ring_bell(up, (uint32_t)n_frames, turn);
}

void wt__live_far_serve(live_far *far, uint32_t turn)
{
    for (int s = 0; s < far->args.layout.n_streams; s++)
        while (far->served[s] != turn) {
            far->served[s] = wt_block_turn_after(far->served[s]);
            serve_block(far, s, far->served[s]);
        }
}

// ---- the function that stays

typedef enum verdict { BLOCK, LEAVE, KILLED, OVER } verdict;

static verdict wait_for(const live_far *far, resident_place next, int64_t end_ns)
{
    const wt_block_slot *bell = wt_block_ring_slot(far->down, next.turn), *orders = &far_control(far)->orders;
    for (int turns = 1;; turns++) {
        uint32_t leave, data;
        if (wt_block_here(orders, next.term, &leave)) return KILLED;
        if (leave == next.term) return LEAVE;
        if (wt_block_here(bell, next.turn, &data)) return BLOCK;
        if (wt_clock_now_ns(NULL) > end_ns) return OVER;
        if (turns % 64 == 0) sched_yield(); // who waits for us may want this processor
#if defined(__x86_64__)
        _mm_pause();
#endif
    }
}

// `number`: of all kernels that began.
static verdict serve_term(live_far *far, uint32_t number)
{
    const int64_t end_ns = wt_clock_now_ns(NULL) + far->args.life_ns + far->args.life_ns / 2;
    for (;;) {
        const resident_place next = {.turn = wt_block_turn_after(far->cpu_place.turn), .term = far->cpu_place.term};
        const verdict v = wait_for(far, next, end_ns);
        if (v != BLOCK) return v;
        wt__live_far_serve(far, next.turn);
        far->cpu_place = next;
        const uint32_t launched = wt_block_data(__atomic_load_n(&far_control(far)->launched, __ATOMIC_RELAXED));
        if (far->args.once || (int32_t)(launched - number) > 0 || wt_clock_now_ns(NULL) > end_ns) return OVER;
    }
}

void wt__live_far_reside(const void *args, int item)
{
    (void)item;
    live_far *far = *(live_far *const *)args;
    resident_control *control = far_control(far);
    wt_block_slot *left = wt_buffer_host(far->left);
    const uint32_t term = far->term;
    uint32_t data;
    if (wt_block_here(&control->orders, term, &data) || wt_block_here(left, term, &data)) return;
    if (far->cpu_place.term != term)
        far->cpu_place = (resident_place){.turn = wt_block_data(control->begin), .term = term};
    const uint32_t number = __atomic_add_fetch(&control->n_started, 1, __ATOMIC_RELAXED);
    const unsigned before = wt__denormals_off();
    const verdict v = serve_term(far, number);
    wt__denormals_restore(before);
    for (int s = 0; v == LEAVE && s < far->args.layout.n_streams; s++)
        wt_block_ring_bell(left + s, far->cpu_place.turn, term);
}
