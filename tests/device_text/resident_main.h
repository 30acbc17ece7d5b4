// Behind a chain's device text: plays it on threads of the CPU, beside a host that posts blocks at a pace and reads the
// answers. `PROGRAM STATE`; prints how many blocks came back and how far they are from the CPU's chain.
#pragma once
#include "text_state.h"

#include <vector>

enum { SLOTS = 16, PACE = 60000, WORDS_A_STEP = 16, TARGETS_EVERY = 7 };

float shared[1 << 18];
static resident_args args;
static std::vector<float> targets; // as they are, one node after the other
static FILE *file;
static std::atomic<int> n_running;

static void read(void *to, size_t bytes)
{
    if (fread(to, 1, bytes, file) != bytes) abort();
}

template <class T> static T *zeros(size_t n) { return (T *)calloc(n, sizeof(T)); }

static unsigned char *read_bytes(long long n)
{
    unsigned char *bytes = zeros<unsigned char>((size_t)n + 64); // whole vectors are copied
    read(bytes, (size_t)n);
    return bytes;
}

static void lay_out(const text_state &state)
{
    const auto lines = [](int words) { return (words + 15) & ~15; };
    resident_layout &l = args.layout;
    l.slots = SLOTS, l.n_streams = 1, l.max_frames = CHAIN_MOST_FRAMES;
    l.channels = CHAIN_CHANNELS, l.out_channels = CHAIN_OUT_CHANNELS, l.point_channels = CHAIN_BUFFER_CHANNELS;
    for (int k = 0; k < state.n_nodes; k++) {
        const wt_node_place &p = args.chain.places[k];
        for (int i = 0; i < p.n_params; i++) targets.push_back(((const wt_ramp *)(args.exported + p.ramps))[i].target);
        targets.push_back(0); // no bypass
        l.n_readings += p.n_readings;
    }
    l.n_params = (int)targets.size();
    l.in_at = lines(RESIDENT_TARGETS + l.n_params);
    l.inserts_at = l.in_at + l.channels * l.max_frames;
    l.down_words = lines(l.inserts_at);
    l.readings_at = RESIDENT_HEAD;
    l.out_at = lines(l.readings_at + l.n_readings);
    l.taps_at = l.out_at + l.out_channels * l.max_frames;
    l.up_words = lines(l.taps_at);
}

static text_state read_state()
{
    text_state state;
    chain_args &c = args.chain;
    read(&state, sizeof state);
    args.exported = read_bytes(state.instance_bytes);
    c.plans = read_bytes(state.plans_bytes);
    c.places = (const wt_node_place *)read_bytes(state.n_nodes * (long long)sizeof(wt_node_place));
    lay_out(state);
    const resident_layout &l = args.layout;
    c.memory = zeros<unsigned char>((size_t)state.instance_bytes + 64);
    c.instance_bytes = state.instance_bytes, c.n_nodes = state.n_nodes;
    c.channels = l.channels, c.out_channels = l.out_channels, c.output = state.output;
    c.n_buffers = state.n_buffers, c.buffer_channels = state.buffer_channels, c.block_frames = CHAIN_MOST_FRAMES;
    c.ramp_quanta = 10;
    c.faults = zeros<unsigned long long>(1);
    args.down = zeros<wt_block_word>(SLOTS * (size_t)l.down_words);
    args.up = zeros<wt_block_word>(SLOTS * (size_t)l.up_words);
    args.left = zeros<wt_block_word>(1), args.relay = zeros<wt_block_word>(SLOTS);
    args.rehearsal = zeros<wt_block_word>((size_t)(l.down_words + l.up_words));
    args.control = (resident_control *)aligned_alloc(64, 64);
    *args.control = {0, 0, wt_block_pack(0, 1), 0, 0}; // from turn 0 on, the first term
    args.places = zeros<resident_place>(1);
    args.targets = zeros<float>(targets.size());
    args.plans_bytes = (unsigned long long)state.plans_bytes;
    args.life_ns = 1ll << 50;
    args.shared_floats = state.shared_floats;
    args.copy_memory = args.copy_plans = args.copy_places = args.has_spare = 1;
    return state;
}

// ---- the host

struct block {
    int frames;
    std::vector<float> in, want;
};

static block read_block()
{
    block b;
    read(&b.frames, sizeof b.frames);
    b.in.resize((size_t)(b.frames * args.layout.channels));
    b.want.resize((size_t)(b.frames * args.layout.out_channels));
    read(b.in.data(), b.in.size() * sizeof(float));
    read(b.want.data(), b.want.size() * sizeof(float));
    return b;
}

static void wait_until(long long time)
{
    while (device_time.load(std::memory_order_relaxed) < time) {
        device_time.fetch_add(1000, std::memory_order_relaxed);
        sched_yield();
    }
}

// The samples a few at a time and backwards, so that a look finds some of them; every now and then with targets.
static void post(const block &b, unsigned turn)
{
    const resident_layout &l = args.layout;
    wt_block_word *slot = args.down + (turn & (SLOTS - 1)) * l.down_words;
    unsigned bell = (unsigned)b.frames;
    for (int k = (int)b.in.size(); k-- > 0;) {
        block_store(slot + l.in_at + k, __float_as_uint(b.in[(size_t)k]), turn);
        if (k % WORDS_A_STEP == 0) sched_yield();
    }
    if (turn % TARGETS_EVERY == 3) {
        for (int p = 0; p < l.n_params; p++)
            block_store(slot + RESIDENT_TARGETS + p, __float_as_uint(targets[(size_t)p]), turn);
        block_store(slot + RESIDENT_SEQUENCE, turn + 5, turn);
        bell |= RESIDENT_HAS_TARGETS;
    }
    block_store_release(slot, bell, turn);
}

static float answer_of(int word, unsigned turn)
{
    const wt_block_word *at = args.up + (turn & (SLOTS - 1)) * args.layout.up_words + word;
    wt_block_word answer = block_load(at);
    for (; wt_block_turn(answer) != turn; answer = block_load(at)) {
        device_time.fetch_add(1000, std::memory_order_relaxed);
        sched_yield();
    }
    return __uint_as_float(wt_block_data(answer));
}

static void *play(void *user)
{
    const text_state &state = *(const text_state *)user;
    double signal = 0, error = 0;
    int n_answered = 0;
    long long due = 0;
    for (unsigned turn = 1; turn <= (unsigned)state.n_blocks; turn++, n_answered++) {
        const block b = read_block();
        wait_until(due += PACE);
        post(b, turn);
        for (int k = 0; k < (int)b.want.size(); k++) {
            const double want = b.want[(size_t)k], off = answer_of(args.layout.out_at + k, turn) - want;
            signal += want * want, error += off * off;
        }
        if (__float_as_uint(answer_of(0, turn)) != (unsigned)b.frames) break;
    }
    __atomic_store_n(&args.control->orders, wt_block_pack(1, 0), __ATOMIC_RELEASE); // the term is to leave
    while (n_running) wait_until(device_time + 1000);
    printf("%d blocks, %.1f dB, left after %u\n", n_answered, 10 * log10(signal / (error + 1e-30)),
           wt_block_data(args.left[0]));
    return NULL;
}

// ---- the device

static void *run_thread(void *number)
{
    threadIdx.x = (unsigned)(size_t)number;
    resident_run(args);
    n_running--;
    return NULL;
}

int main(int argc, char **argv)
{
    static pthread_t threads[CHAIN_THREADS], host;
    file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!file) return 1;
    text_state state = read_state();
    blockDim.x = CHAIN_THREADS;
    pthread_barrier_init(&block_barrier, NULL, CHAIN_THREADS);
    for (int w = 0; w < CHAIN_THREADS / WARP; w++) pthread_barrier_init(&warp_barriers[w], NULL, WARP);
    n_running = CHAIN_THREADS;
    for (size_t k = 0; k < CHAIN_THREADS; k++) pthread_create(&threads[k], NULL, run_thread, (void *)k);
    pthread_create(&host, NULL, play, &state);
    for (size_t k = 0; k < CHAIN_THREADS; k++) pthread_join(threads[k], NULL);
    pthread_join(host, NULL);
    return 0;
}
