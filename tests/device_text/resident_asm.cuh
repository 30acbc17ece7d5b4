// In place of kernels/chain/resident_asm.cuh. What is asked for is read when it is asked for or when it is waited for,
// by chance, so that a look may bring the doorbell and lack samples.
#pragma once
#include "block_ring.cuh"

static inline long long resident_now() { return device_time.load(std::memory_order_relaxed); }

struct asked_words {
    wt_block_word *to, now[2];
    const wt_block_word *from;
    bool early;
};
struct asked_groups {
    asked_words words[4][4];
    int n[4], last, n_waiting;
};
static thread_local asked_groups asked;

static inline void resident_ask(wt_block_word *to, const wt_block_word *from)
{
    asked_words *w = &asked.words[asked.last & 3][asked.n[asked.last & 3]++];
    *w = {to, {block_load(from), block_load(from + 1)}, from, (rand() & 1) != 0};
}

static inline void resident_asked()
{
    asked.n_waiting++;
    asked.n[++asked.last & 3] = 0;
}

static inline void await_asked(int n_left)
{
    for (; asked.n_waiting > n_left; asked.n_waiting--) {
        const int group = (asked.last - asked.n_waiting) & 3;
        for (int i = 0; i < asked.n[group]; i++)
            for (int k = 0; k < 2; k++) {
                const asked_words *w = &asked.words[group][i];
                w->to[k] = w->early ? w->now[k] : block_load(w->from + k);
            }
    }
}

static inline void resident_await_others() { await_asked(1); }

static inline void resident_await_all()
{
    resident_asked();
    await_asked(0);
}
