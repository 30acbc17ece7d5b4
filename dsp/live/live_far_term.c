// Terms: handing a chain to the device and back, and the keeper that launches what is to follow.
//
// A hand-over to the device: the audio thread, at the end of a block and with nothing pending, stops serving (or it
// does not run at all); the state is copied to where the kernel finds it; the kernel starts. Blocks that are posted
// meanwhile wait for it. A hand-over back: the kernel is told to leave and, at a block boundary, puts the state where
// the host finds it, with the turn it left after; the audio thread then answers from there on.
#include "live_far.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>

static void nap(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

static void store_word(wt_block_word *word, uint32_t data, uint32_t turn)
{
    atomic_store_explicit((_Atomic wt_block_word *)word, wt_block_pack(data, turn), memory_order_release);
}

wt_live_path wt__live_far_path(const live_far *far)
{
    return atomic_load_explicit(&far->owner, memory_order_relaxed) == FAR_DEVICE ? far->path : WT_LIVE_CPU;
}

uint64_t wt__live_far_launches(const live_far *far)
{
    return __atomic_load_n(&far_control(far)->n_started, __ATOMIC_RELAXED);
}

// ---- state

static unsigned char *exported(const live_far *far) { return wt_buffer_host(far->exported); }

// Nodes whose state means another thing on the other backend put it right.
static void adopt(live_far *far, bool from_gpu)
{
    const wt_chain *chain = far->chain;
    for (int s = 0; s < chain->n_instances; s++) {
        unsigned char *memory = chain->memory + (size_t)s * chain->instance_bytes;
        for (int k = 0; k < chain->n_nodes; k++) {
            const chain_node *node = &chain->nodes[k];
            if (node->type->adopt)
                node->type->adopt(chain->plans + node->place.plan, memory + node->place.state,
                                  ((const wt_instance *)memory)->position, from_gpu);
        }
    }
}

static void give_state(live_far *far)
{
    if (!far->on_gpu) return;
    adopt(far, false);
    memcpy(exported(far), far->chain->memory, far->chain->instance_bytes * (size_t)far->chain->n_instances);
}

static void take_state(live_far *far)
{
    if (!far->on_gpu) return;
    memcpy(far->chain->memory, exported(far), far->chain->instance_bytes * (size_t)far->chain->n_instances);
    adopt(far, true);
}

// ---- ends, with the mutex held

static bool has_left(const live_far *far, uint32_t *turns)
{
    const wt_block_slot *left = wt_buffer_host(far->left);
    bool all = true;
    for (int s = 0; s < far->args.layout.n_streams; s++) {
        uint32_t turn;
        if (!wt_block_here(left + s, far->term, &turn))
            all = false;
        else if (turns)
            turns[s] = turn;
    }
    return all;
}

static bool some_left(const live_far *far)
{
    const wt_block_slot *left = wt_buffer_host(far->left);
    uint32_t turn;
    for (int s = 0; s < far->args.layout.n_streams; s++)
        if (wt_block_here(left + s, far->term, &turn)) return true;
    return false;
}

static void hand_to_audio_thread(live_far *far)
{
    far->in_term = false;
    atomic_fetch_add_explicit(&far->live->n_moves, 1, memory_order_relaxed);
    atomic_store_explicit(&far->owner, FAR_CPU, memory_order_release);
}

static void finish_term(live_far *far)
{
    take_state(far);
    (void)has_left(far, far->served);
    atomic_store(&far->away_ns, wt_clock_now_ns(NULL));
    hand_to_audio_thread(far);
    (void)!wt_stream_synchronize(far->stream); // what is queued behind finds the term ended
}

// The device's state is gone: the chain starts anew on the CPU, after the last block that was answered.
static void lose_term(live_far *far)
{
    if (!far->on_gpu) (void)!wt_stream_synchronize(far->stream); // it works in the same memory, to the end of its block
    for (int s = 0; s < far->chain->n_instances; s++)
        wt__chain_rest(far->chain, far->chain->memory + (size_t)s * far->chain->instance_bytes);
    atomic_store(&far->recover, true);
    atomic_store(&far->lost, true);
    hand_to_audio_thread(far);
}

// ---- the keeper

static wt_status launch_next(live_far *far)
{
    wt_status status = wt__live_far_launch(far);
    if (!status) store_word(&far_control(far)->launched, ++far->n_launched, 0);
    return status;
}

// A kernel that has lived its life is followed by the next one, which it leaves to at once; so is one that ended
// unbidden, as it does when a fault took the device, which launching meets then. Not before: what is queued behind a
// running kernel, be it an event, makes each launch on neighbours' streams wait (bench/TRIED.md, "What reads keep").
static wt_status follow(live_far *far)
{
    const uint32_t n_begun = __atomic_load_n(&far_control(far)->n_started, __ATOMIC_RELAXED);
    const int64_t now_ns = wt_clock_now_ns(NULL);
    if (n_begun != far->n_begun) far->begun_ns = now_ns;
    far->n_begun = n_begun;
    if (wt_stream_idle(far->stream)) {
        far->n_launched = n_begun;
        return launch_next(far);
    }
    const bool is_last = far->n_launched == n_begun;
    return is_last && now_ns - far->begun_ns >= far->args.life_ns ? launch_next(far) : WT_OK;
}

static wt_status launch_posted(live_far *far)
{
    const uint32_t posted = atomic_load_explicit(&far->posted, memory_order_acquire);
    wt_status status = WT_OK;
    while (far->launched != posted && !status) {
        status = wt__live_far_launch(far);
        far->launched = wt_block_turn_after(far->launched);
    }
    return status;
}

static void keep(live_far *far)
{
    uint32_t leave;
    pthread_mutex_lock(&far->mutex);
    if (far->in_term) {
        const bool killed = wt_block_here(&far_control(far)->orders, far->term, &leave);
        if (has_left(far, NULL))
            finish_term(far); // it was told to and not waited for; the CPU has it until the next begin
        else if (killed || (far->path == WT_LIVE_GRAPH ? launch_posted(far) : follow(far)))
            lose_term(far);
    }
    pthread_mutex_unlock(&far->mutex);
}

// The graph's helper looks for a new block all the time while they come, so that the audio thread calls nobody.
static void *keep_graph(void *user)
{
    live_far *far = user;
    int64_t busy_ns = wt_clock_now_ns(NULL);
    for (uint32_t seen = 0, posted; !atomic_load_explicit(&far->quit, memory_order_relaxed);) {
        posted = atomic_load_explicit(&far->posted, memory_order_acquire);
        const int64_t now_ns = wt_clock_now_ns(NULL);
        if (posted != seen || now_ns - busy_ns > 20000000) {
            keep(far);
            if (posted == seen)
                nap(100000);
            else
                busy_ns = now_ns;
            seen = posted;
        }
    }
    return NULL;
}

static void *keep_resident(void *user)
{
    live_far *far = user;
    while (!atomic_load_explicit(&far->quit, memory_order_relaxed)) {
        keep(far);
        nap(1000000);
    }
    return NULL;
}

// ---- begin and end

// Whether the audio thread may be in the chain: it has heard of it, and it has not faded out.  [far_mutex held]
static bool is_played(const live_far *far)
{
    const wt_live *live = far->live;
    return far != live->far_coming && !(far == live->far_leaving && atomic_load(&live->left));
}

static bool is_free(void *user)
{
    const live_far *far = user;
    return atomic_load(&far->owner) == FAR_MOVING || !is_played(far);
}

static void take_over(live_far *far)
{
    if (atomic_load(&far->owner) != FAR_CPU) return;
    wt__live_far_serve_pending(far);
    atomic_store(&far->owner, FAR_MOVING);
}

// Have the audio thread stop serving; behind the gate when no callback comes. It is not asked for what it does not
// serve, since only the device can, nor for what it does not play: the one who is about to show it the chain, or to
// put it away, waits for us to be done (tests/models/change.pml).
static void claim(live_far *far)
{
    if (!far->runs_on_cpu && !atomic_load(&far->recover)) atomic_store(&far->owner, FAR_MOVING);
    if (!is_free(far)) {
        atomic_store(&far->give_back, true);
        (void)wt__live_wait(far->live, is_free, far);
        if (!is_free(far)) {
            wt__live_close_gate(far->live);
            take_over(far);
            wt__live_open_gate(far->live);
        }
        atomic_store(&far->give_back, false);
    }
    take_over(far);
}

wt_status wt__live_far_begin(live_far *far)
{
    if (!far->has_keeper) {
        void *(*keeper)(void *) = far->path == WT_LIVE_GRAPH ? keep_graph : keep_resident;
        if (pthread_create(&far->keeper, NULL, keeper, far))
            return wt_fail(WT_ERR_NO_MEMORY, "%s: a thread for the live path", far->chain->name);
        far->has_keeper = true;
    }
    if (atomic_load(&far->owner) == FAR_DEVICE) return WT_OK;
    const int64_t end_ns = wt_clock_now_ns(NULL) + 1000000000;
    while (!wt_stream_idle(far->stream)) { // after a kill what was queued may still be on its way out
        if (wt_clock_now_ns(NULL) > end_ns)
            return wt_fail(WT_ERR_TIMEOUT, "%s: the device still holds a kernel that was stopped", far->chain->name);
        nap(50000);
    }
    claim(far);
    pthread_mutex_lock(&far->mutex);
    give_state(far);
    far->term = wt_block_turn_after(far->term);
    far->launched = far->served[0];
    store_word(&far_control(far)->begin, far->served[0], far->term);
    store_word(&far_control(far)->orders, 0, 0);
    far->in_term = true;
    wt_status status = far->path == WT_LIVE_GRAPH ? WT_OK : follow(far);
    atomic_store(&far->lost, status != WT_OK);
    if (status) {
        take_state(far);
        hand_to_audio_thread(far);
    } else {
        far->begun = true;
        atomic_fetch_add_explicit(&far->live->n_moves, 1, memory_order_relaxed);
        atomic_store_explicit(&far->owner, FAR_DEVICE, memory_order_release);
    }
    pthread_mutex_unlock(&far->mutex);
    return status;
}

wt_status wt__live_far_end(live_far *far, int64_t timeout_us)
{
    wt_status status = WT_OK;
    pthread_mutex_lock(&far->mutex);
    if (far->in_term) {
        const int64_t end_ns = wt_clock_now_ns(NULL) + timeout_us * 1000;
        store_word(&far_control(far)->orders, far->term, 0);
        if (far->path == WT_LIVE_GRAPH) status = wt__live_far_launch(far);
        while (!status && !has_left(far, NULL) && wt_clock_now_ns(NULL) < end_ns) sched_yield(); // it leaves at once
        if (!status && !has_left(far, NULL)) {
            // what has left cannot come back: then the others are to follow, and the keeper ends the term
            if (!some_left(far)) store_word(&far_control(far)->orders, 0, 0);
            status = wt_fail(WT_ERR_TIMEOUT, "%s: the kernel did not leave within %lld us", far->chain->name,
                             (long long)timeout_us);
        }
        if (!status) finish_term(far);
    }
    pthread_mutex_unlock(&far->mutex);
    return status;
}

void wt__live_far_kill(live_far *far)
{
    pthread_mutex_lock(&far->mutex);
    if (far->in_term) store_word(&far_control(far)->orders, 0, far->term);
    pthread_mutex_unlock(&far->mutex);
}

void wt__live_far_abandon(live_far *far)
{
    wt__live_far_kill(far);
    pthread_mutex_lock(&far->mutex);
    if (far->in_term) lose_term(far);
    pthread_mutex_unlock(&far->mutex);
    (void)!wt_stream_synchronize(far->stream); // a kernel that obeys nothing still ends with its life
}
