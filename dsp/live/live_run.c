// The audio thread's side of wt_live. Nothing here locks, allocates or calls the system.
//
//   in --+--> inserts "in" --> current chain --+--> crossfade --> wet --+--> out --> inserts "out"
//        |                \--> leaving chain --/                        |
//        +--> delay of the chain's latency ----------------------> dry -/
//
// Everything is computed into buffers of our own and written to `out` last, so an output may be any input.
#include "live_far.h"
#include "live_internal.h"

#include <string.h>
#include <warptone/clock.h>

static float smooth(float t) { return t * t * (3 - 2 * t); }

static void count(atomic_ullong *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

// ---- the dry signal

// Which input line an output line is when the chain is bypassed.
static int dry_of(const wt_live *live, int out_channels, int line)
{
    return line / out_channels * live->config.channels + line % out_channels % live->config.channels;
}

static void copy_ring(float *to, const float *ring, int64_t at, int n)
{
    int begin = (int)(at & (LIVE_DRY_FRAMES - 1)), whole = LIVE_DRY_FRAMES - begin < n ? LIVE_DRY_FRAMES - begin : n;
    memcpy(to, ring + begin, sizeof *to * (size_t)whole);
    memcpy(to + whole, ring, sizeof *to * (size_t)(n - whole));
}

static void run_dry(wt_live *live, const float *const *in, int n_frames)
{
    int latency = live->current ? live->current->latency_frames : 0;
    if (latency > LIVE_DRY_FRAMES - n_frames) latency = LIVE_DRY_FRAMES - n_frames;
    for (int c = 0; c < live->lines; c++) {
        float *ring = live->dry_line + (size_t)c * LIVE_DRY_FRAMES;
        int begin = (int)(live->dry_at & (LIVE_DRY_FRAMES - 1));
        int whole = LIVE_DRY_FRAMES - begin < n_frames ? LIVE_DRY_FRAMES - begin : n_frames;
        memcpy(ring + begin, in[c], sizeof *ring * (size_t)whole);
        memcpy(ring, in[c] + whole, sizeof *ring * (size_t)(n_frames - whole));
        copy_ring(live->dry[c], ring, live->dry_at - latency, n_frames);
    }
    live->dry_at += n_frames;
}

// ---- the chain

static bool is_fading(const wt_live *live) { return atomic_load_explicit(&live->fading, memory_order_relaxed); }

// At a block boundary: take up the chain that waits, unless one is still leaving or has not been fetched.
static void take_next(wt_live *live)
{
    if (is_fading(live) || !atomic_load_explicit(&live->next, memory_order_relaxed) ||
        atomic_load_explicit(&live->left, memory_order_relaxed))
        return;
    atomic_store(&live->fading, true); // before `next` is empty, so that who sees that sees this
    live->leaving = live->current;
    if (live->leaving && !live->leaving->far) live->leaving->chain->visit = NULL; // taps, inserts: the new one's
    live->current = atomic_exchange(&live->next, NULL); // which may be another by now, and is there
    live->fade = 0;
    if (atomic_load_explicit(&live->n_blocks, memory_order_relaxed) == 0) live->fade = live->fade_frames;
}

// A chain's one channel to all.
static void widen(const wt_live *live, const live_player *player, float *const *wet, int out_channels, int n_frames)
{
    if (player->chain->out_channels == out_channels) return;
    for (int s = 0; s < live->config.n_streams; s++)
        for (int c = 1; c < out_channels; c++)
            memcpy(wet[s * out_channels + c], wet[s * out_channels], sizeof(float) * (size_t)n_frames);
}

// One block of a chain, NULL being a wire, into `wet` [out lines]; a device has it already. Returns the miss, -1 =
// none.
static int run_player(wt_live *live, live_player *player, const float *const *in, float *const *wet, int n_frames)
{
    const int out_channels = wt__live_out_channels(live);
    if (!player) {
        for (int c = 0; c < live->config.n_streams * out_channels; c++)
            memcpy(wet[c], in[dry_of(live, out_channels, c)], sizeof(float) * (size_t)n_frames);
        return -1;
    }
    int miss = -1;
    if (player->far)
        miss = wt__live_far_take(player->far, wet, out_channels, n_frames);
    else if (live->workers)
        wt__live_workers_run(live->workers, player->chain, in, wet, out_channels, n_frames);
    else
        for (int s = 0; s < live->config.n_streams; s++)
            wt__chain_span(player->chain, s, in + s * live->config.channels, wet + s * out_channels, n_frames);
    if (miss < 0) widen(live, player, wet, out_channels, n_frames);
    return miss;
}

static void crossfade(const wt_live *live, int lines, int n_frames)
{
    for (int n = 0; n < n_frames && live->fade + n < live->fade_frames; n++) {
        const float g = smooth((float)(live->fade + n + 1) / (float)live->fade_frames);
        for (int c = 0; c < lines; c++)
            live->wet[c][n] = live->wet_old[c][n] + g * (live->wet[c][n] - live->wet_old[c][n]);
    }
}

static bool fades(const wt_live *live) { return is_fading(live) && live->fade < live->fade_frames; }

// What a device computes it has before all else, and computes it meanwhile.
static void post_block(wt_live *live, const float *const *in, int n_frames)
{
    const live_player *p = live->current, *old = fades(live) ? live->leaving : NULL;
    if (p && p->far) wt__live_far_post(p->far, in, n_frames);
    if (old && old->far) wt__live_far_post(old->far, in, n_frames);
}

// Which nodes taps and inserts are at.
static void find_points(wt_live *live)
{
    const live_player *p = live->current;
    for (int k = 0; p && k < LIVE_MAX_POINTS; k++) {
        live->visit.tap_node[k] = atomic_load_explicit(&p->tap_node[k], memory_order_relaxed);
        live->visit.insert_node[k] = atomic_load_explicit(&p->insert_node[k], memory_order_relaxed);
    }
}

// The chain, and while it is new the one before it.
static int run_chains(wt_live *live, const float *const *in, int n_frames)
{
    int miss = run_player(live, live->current, in, live->wet, n_frames);
    if (!is_fading(live)) return miss;
    if (fades(live) && run_player(live, live->leaving, in, live->wet_old, n_frames) < 0)
        crossfade(live, live->config.n_streams * wt__live_out_channels(live), n_frames);
    live->fade += n_frames;
    if (live->fade < live->fade_frames) return miss;
    if (live->leaving) atomic_store(&live->left, live->leaving);
    live->leaving = NULL;
    atomic_store(&live->fading, false);
    return miss;
}

// ---- the output

// Where an output line would begin with a step, it begins where it was and moves to the new signal.
static void begin_jump(wt_live *live, int lines, int out_channels)
{
    for (int c = 0; c < lines; c++) live->jump[c] = live->last[c] - live->dry[dry_of(live, out_channels, c)][0];
    live->jump_left = live->fade_frames;
}

static void emit_line(wt_live *live, int c, const float *dry, float *out, int step, int n_frames)
{
    const float *wet = live->wet[c];
    const float scale = 1 / (float)live->fade_frames;
    if (step == 0 && live->wet_frames) memcpy(out, wet, sizeof *out * (size_t)n_frames);
    if (step == 0 && !live->wet_frames) memcpy(out, dry, sizeof *out * (size_t)n_frames);
    for (int n = 0; step && n < n_frames; n++) {
        int at = live->wet_frames + step * (n + 1);
        at = at < 0 ? 0 : at > live->fade_frames ? live->fade_frames : at;
        out[n] = dry[n] + smooth((float)at * scale) * (wet[n] - dry[n]);
    }
    for (int n = 0; n < n_frames && n < live->jump_left; n++)
        out[n] += live->jump[c] * smooth((float)(live->jump_left - n) * scale);
    live->last[c] = out[n_frames - 1];
}

static void emit(wt_live *live, int miss, float *const *out, int n_frames)
{
    const int out_channels = wt__live_out_channels(live), lines = live->config.n_streams * out_channels;
    const int target = miss >= 0 || atomic_load_explicit(&live->bypass, memory_order_relaxed) ? 0 : live->fade_frames;
    if (miss >= 0) {
        if (live->wet_frames) begin_jump(live, lines, out_channels);
        live->wet_frames = 0;
    }
    const int step = (target > live->wet_frames) - (target < live->wet_frames);
    for (int c = 0; c < lines; c++)
        emit_line(live, c, live->dry[dry_of(live, out_channels, c)], out[c], step, n_frames);
    live->wet_frames += step * n_frames;
    if (live->wet_frames < 0) live->wet_frames = 0;
    if (live->wet_frames > live->fade_frames) live->wet_frames = live->fade_frames;
    live->jump_left = live->jump_left > n_frames ? live->jump_left - n_frames : 0;
}

// ---- blocks

// Behind the gate nothing of ours may be touched: frame by frame, since an output may be any input.
static void pass_through(const wt_live *live, const float *const *in, float *const *out, int n_frames)
{
    const int out_channels = wt__live_out_channels(live), channels = live->config.channels;
    for (int s = 0; s < live->config.n_streams; s++)
        for (int n = 0; n < n_frames; n++) {
            float frame[WT_MAX_CHANNELS];
            for (int c = 0; c < channels; c++) frame[c] = in[s * channels + c][n];
            for (int c = 0; c < out_channels; c++) out[s * out_channels + c][n] = frame[c % channels];
        }
}

static int run_block(wt_live *live, const float *const *in, float *const *out, int n_frames)
{
    if (live->was_closed) live->wet_frames = 0;
    live->was_closed = false;
    take_next(live);
    const float *const *heard = wt__live_take_inserts(live, in, n_frames);
    find_points(live);
    post_block(live, heard, n_frames);
    wt__live_push_taps(live, LIVE_AT_IN, in, live->lines, n_frames);
    run_dry(live, in, n_frames);
    int miss = run_chains(live, heard, n_frames);
    wt__live_push_taps(live, LIVE_AT_NODE, NULL, 0, n_frames);
    emit(live, miss, out, n_frames);
    wt__live_add_out(live, out, n_frames);
    wt__live_push_taps(live, LIVE_AT_OUT, (const float *const *)out,
                       live->config.n_streams * wt__live_out_channels(live), n_frames);
    return miss;
}

// A block that is too long for the buffers: the input, in pieces.
static void run_too_long(wt_live *live, const float *const *in, float *const *out, int n_frames)
{
    const int out_lines = live->config.n_streams * wt__live_out_channels(live);
    for (int done = 0, n; done < n_frames; done += n) {
        n = n_frames - done < live->max_frames ? n_frames - done : live->max_frames;
        for (int c = 0; c < live->lines; c++) live->in_at[c] = in[c] + done;
        for (int c = 0; c < out_lines; c++) live->out_at[c] = out[c] + done;
        run_dry(live, live->in_at, n);
        emit(live, WT_LIVE_MISS_SIZE, live->out_at, n);
    }
}

static void note_time(wt_live *live, int64_t begin_ns, int n_frames)
{
    const int64_t took_ns = wt_clock_now_ns(NULL) - begin_ns;
    const double block_s = n_frames / atomic_load_explicit(&live->rate_hz, memory_order_relaxed);
    const double old = atomic_load_explicit(&live->load, memory_order_relaxed), share = block_s < 0.5 ? 2 * block_s : 1;
    wt_histogram_record(live->process_ns, took_ns);
    atomic_store_explicit(&live->load, old + share * ((double)took_ns * 1e-9 / block_s - old), memory_order_relaxed);
    atomic_store_explicit(&live->block_frames, n_frames, memory_order_relaxed);
    count(&live->n_blocks, 1);
    count(&live->n_frames, (uint64_t)n_frames);
}

WT_RT wt_status wt_live_process(wt_live *live, const float *const *in, float *const *out, int n_frames)
{
    if (n_frames < 0) return WT_ERR_BAD_ARG;
    if (n_frames == 0) return WT_OK;
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    const unsigned before = wt__denormals_off();
    int unknown = 0, miss = -1;
    atomic_fetch_add(&live->epoch, 1);
    atomic_compare_exchange_strong(&live->out_channels, &unknown, live->config.channels);
    if (atomic_load(&live->closed)) {
        miss = WT_LIVE_MISS_FORMAT;
        pass_through(live, in, out, n_frames);
        live->was_closed = true;
    } else if (n_frames > live->max_frames) {
        miss = WT_LIVE_MISS_SIZE;
        run_too_long(live, in, out, n_frames);
    } else {
        miss = run_block(live, in, out, n_frames);
        count(&live->n_played, 1);
    }
    if (miss >= 0) count(&live->misses[miss], 1);
    note_time(live, begin_ns, n_frames);
    atomic_fetch_add(&live->epoch, 1);
    wt__denormals_restore(before);
    return miss < 0 ? WT_OK : miss == WT_LIVE_MISS_LOST ? WT_ERR_DEVICE_LOST : WT_ERR_TIMEOUT;
}

WT_RT wt_live_times wt_live_last_times(const wt_live *live) { return live->times; }

WT_RT wt_live_times wt_live_late_times(const wt_live *live, int back)
{
    return live->late_times[(live->n_late - 1 - (unsigned)back) % LIVE_LATE];
}

WT_RT void wt_live_set_bypass(wt_live *live, bool bypass)
{
    atomic_store_explicit(&live->bypass, bypass, memory_order_relaxed);
}

WT_RT void wt_live_set_freewheel(wt_live *live, bool freewheel)
{
    atomic_store_explicit(&live->freewheel, freewheel, memory_order_relaxed);
}
