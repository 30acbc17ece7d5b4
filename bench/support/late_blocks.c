#include "late_blocks.h"

#include <stdio.h>
#include <sys/resource.h>
#include <warptone/clock.h>

enum { HOLE_NS = 20000, LONG_NS = 30000 }; // what counts as away; the aim of p99.99

wt_status late_blocks_open(late_blocks *w)
{
    wt_status status = wt_histogram_create(&w->trip);
    if (!status) status = wt_histogram_create(&w->device_part);
    if (!status) status = wt_histogram_create(&w->rest);
    if (!status) status = wt_histogram_create(&w->before);
    if (!status) status = wt_histogram_create(&w->after);
    return status;
}

void late_blocks_close(late_blocks *w)
{
    wt_histogram_destroy(w->trip);
    wt_histogram_destroy(w->device_part);
    wt_histogram_destroy(w->rest);
    wt_histogram_destroy(w->before);
    wt_histogram_destroy(w->after);
}

static long n_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

void late_blocks_begin(late_blocks *w)
{
    wt_histogram_reset(w->trip);
    wt_histogram_reset(w->device_part);
    wt_histogram_reset(w->rest);
    wt_histogram_reset(w->before);
    wt_histogram_reset(w->after);
    *w = (late_blocks){.trip = w->trip,
                       .device_part = w->device_part,
                       .rest = w->rest,
                       .before = w->before,
                       .after = w->after,
                       .switches = n_switches()};
}

static void note_slow(late_blocks *w, const slow_block *block)
{
    int k = LATE_SLOWEST;
    for (; k > 0 && w->slowest[k - 1].took_ns < block->took_ns; k--)
        if (k < LATE_SLOWEST) w->slowest[k] = w->slowest[k - 1];
    if (k < LATE_SLOWEST) w->slowest[k] = *block;
}

// Asked for when the thread was away, and not for each block: it is a system call.
static int new_switches(late_blocks *w)
{
    const long before = w->switches;
    w->switches = n_switches();
    return (int)(w->switches - before);
}

void late_blocks_spin(late_blocks *w, int64_t until_ns)
{
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    int64_t before_ns = begin_ns;
    for (int64_t now_ns; before_ns < until_ns; before_ns = now_ns) {
        now_ns = wt_clock_now_ns(NULL);
        if (now_ns - before_ns > w->hole_ns) w->hole_ns = now_ns - before_ns;
        if (now_ns - before_ns <= HOLE_NS) continue;
        w->n_holes++;
        w->n_switched += new_switches(w) != 0;
    }
    w->idle_ns += before_ns - begin_ns;
}

// How much later than others the device saw this doorbell; the two clocks drift.
static int32_t seen_later(late_blocks *w, const wt_live_times *t)
{
    const uint32_t offset_ns = t->seen_ns - (uint32_t)t->rung_ns;
    if (!w->has_offset) w->offset_ns = offset_ns;
    w->has_offset = true;
    const int32_t later_ns = (int32_t)(offset_ns - w->offset_ns);
    w->offset_ns += (uint32_t)(later_ns < -200 ? -200 : later_ns > 200 ? 200 : later_ns);
    return later_ns;
}

static void note_device(late_blocks *w, const wt_live_times *t)
{
    w->n_device_holes += t->hole_ns > HOLE_NS;
    if (t->hole_ns > w->device_hole_ns) w->device_hole_ns = t->hole_ns;
    if (t->busy_ns > w->busy_ns) w->busy_ns = t->busy_ns;
}

// What the device did before it had the block; the thread's hole, and the call without it.
static void note_answer(late_blocks *w, slow_block *block)
{
    const wt_live_times *t = &block->times;
    if (!t->heard_ns) return; // no device
    const int64_t before_ns = t->rung_ns - block->start_ns, after_ns = block->start_ns + block->took_ns - t->heard_ns;
    int64_t hole_ns = t->away_ns > before_ns ? t->away_ns : before_ns;
    if (after_ns > hole_ns) hole_ns = after_ns;
    const int64_t rest_ns = block->took_ns - (hole_ns > HOLE_NS / 4 ? hole_ns : 0);
    wt_histogram_record(w->trip, t->round_trip_ns);
    wt_histogram_record(w->rest, rest_ns);
    wt_histogram_record(w->before, before_ns);
    wt_histogram_record(w->after, after_ns);
    w->n_long += block->took_ns > LONG_NS;
    w->n_long_device += rest_ns > LONG_NS;
    if (block->number && t->n_launches != block->n_launches_before && block->took_ns > w->begin_ns)
        w->begin_ns = block->took_ns;
    if (t->device_ns < 0) return;
    wt_histogram_record(w->device_part, t->device_ns);
    block->seen_ns = seen_later(w, t);
    note_device(w, t);
}

// Answers that came after their blocks had been missed.
static void note_late_answers(late_blocks *w, const wt_live *live)
{
    const int n = w->n_missed < LATE_MISSED ? w->n_missed : LATE_MISSED;
    for (int back = 3; back >= 0; back--) {
        const wt_live_times t = wt_live_late_times(live, back);
        for (int k = 0; k < n; k++) {
            slow_block *m = &w->missed[k];
            if (m->times.heard_ns || t.rung_ns < m->start_ns || t.rung_ns > m->start_ns + m->took_ns) continue;
            m->times = t;
            if (t.device_ns < 0) continue;
            note_device(w, &t);
            m->seen_ns = (int32_t)(t.seen_ns - (uint32_t)t.rung_ns - w->offset_ns);
        }
    }
}

static void note_missed(late_blocks *w, const slow_block *block)
{
    if (w->n_missed < LATE_MISSED) w->missed[w->n_missed] = *block;
    w->n_missed++;
}

void late_blocks_note(late_blocks *w, slow_block *block, const wt_live *live)
{
    block->n_launches_before = w->n_launches;
    if (block->took_ns > LONG_NS) block->n_switched = new_switches(w);
    if (live && w->n_missed) note_late_answers(w, live);
    if (live && !block->missed) {
        block->times = wt_live_last_times(live);
        w->n_launches = block->times.n_launches;
        note_answer(w, block);
    }
    if (block->missed)
        note_missed(w, block);
    else
        note_slow(w, block);
}

// On the way there and back: an even block's takes some 3 us.
static int64_t way_ns(const wt_live_times *t, int32_t seen_ns)
{
    return t->round_trip_ns - t->device_ns - (seen_ns > 0 ? seen_ns : 0);
}

const char *late_blocks_whose(const slow_block *s)
{
    const wt_live_times *t = &s->times;
    if (!t->heard_ns) return "nobody's known: no answer";
    const bool known = t->device_ns >= 0;
    const bool looked = 2 * (int64_t)t->hole_ns < s->seen_ns;
    const struct {
        const char *whose;
        int64_t ns;
    } parts[] = {
        {"the thread's before the doorbell", t->rung_ns - s->start_ns},
        {"the thread's, away while it waited", t->away_ns},
        {"the device's, which did not look", known && !looked ? s->seen_ns : 0},
        {"the way's to the device", known && looked ? s->seen_ns : 0},
        {"the way's to the device", known ? t->look_ns : 0},
        {"the device's work", known ? t->device_ns - t->look_ns : 0},
        {"the way's back", known ? way_ns(t, s->seen_ns) - t->away_ns : 0}, // who was away finds it late, too
        {"the thread's behind the answer", s->start_ns + s->took_ns - t->heard_ns},
    };
    int most = 0;
    for (int k = 1; k < (int)(sizeof parts / sizeof *parts); k++)
        if (parts[k].ns > parts[most].ns) most = k;
    return parts[most].whose;
}

static void print_block(const slow_block *s, const char *what)
{
    const wt_live_times *t = &s->times;
    printf("roundtrip    %s: %.1f us, %s; block %d at %.6f s, began %.1f late", what, (double)s->took_ns * 1e-3,
           late_blocks_whose(s), s->number, (double)s->start_ns * 1e-9, (double)s->late_ns * 1e-3);
    if (t->heard_ns)
        printf("; rung after %.1f, answer found %.1f later, thread away %.1f, switched %d, ended %.1f later%s",
               (double)(t->rung_ns - s->start_ns) * 1e-3, (double)t->round_trip_ns * 1e-3, (double)t->away_ns * 1e-3,
               s->n_switched, (double)(s->start_ns + s->took_ns - t->heard_ns) * 1e-3,
               s->number && t->n_launches != s->n_launches_before ? "; the next kernel began" : "");
    if (t->heard_ns && t->device_ns >= 0)
        printf("; device: saw it %.1f later than others, took %.1f, of it its look %.1f, ways %.1f; before it busy "
               "%.1f, %u looks, longest hole %.1f; kernel's age %.3f s",
               (double)s->seen_ns * 1e-3, (double)t->device_ns * 1e-3, (double)t->look_ns * 1e-3,
               (double)way_ns(t, s->seen_ns) * 1e-3,
               (double)t->busy_ns * 1e-3, t->n_looks, (double)t->hole_ns * 1e-3, (double)t->age_us * 1e-6);
    printf("\n");
}

void late_blocks_print(const late_blocks *w)
{
    wt_histogram_summary trip, device, rest, before, after;
    wt_histogram_summarize(w->trip, &trip);
    wt_histogram_summarize(w->device_part, &device);
    wt_histogram_summarize(w->rest, &rest);
    wt_histogram_summarize(w->before, &before);
    wt_histogram_summarize(w->after, &after);
    printf(
        "roundtrip    doorbell to answer: p50 %.1f  p99 %.1f us; of it the device p50 %.1f  p99 %.1f  max %.1f us; the "
        "thread before it p50 %.1f  p99 %.1f, after it p50 %.1f  p99 %.1f\n",
        (double)trip.p50 * 1e-3, (double)trip.p99 * 1e-3, (double)device.p50 * 1e-3, (double)device.p99 * 1e-3,
        (double)device.max * 1e-3, (double)before.p50 * 1e-3, (double)before.p99 * 1e-3, (double)after.p50 * 1e-3,
        (double)after.p99 * 1e-3);
    printf("roundtrip    less the thread's longest hole: p50 %.1f  p99 %.1f  p99.9 %.1f  p99.99 %.1f  max %.1f us; %d "
           "blocks "
           "above %d us, %d of them without it too\n",
           (double)rest.p50 * 1e-3, (double)rest.p99 * 1e-3, (double)rest.p99_9 * 1e-3, (double)rest.p99_99 * 1e-3,
           (double)rest.max * 1e-3, w->n_long, LONG_NS / 1000, w->n_long_device);
    printf(
        "roundtrip    between blocks the thread was away %d times above %d us, %d of them switched, in %.1f s, at most "
        "%.1f us; the device did not look %d times, at most %.1f us, and was busy %.1f; first blocks of kernels took "
        "%.1f us at most\n",
        w->n_holes, HOLE_NS / 1000, w->n_switched, (double)w->idle_ns * 1e-9, (double)w->hole_ns * 1e-3,
        w->n_device_holes, (double)w->device_hole_ns * 1e-3, (double)w->busy_ns * 1e-3, (double)w->begin_ns * 1e-3);
    for (int k = 0; k < LATE_SLOWEST && w->slowest[k].took_ns; k++) print_block(&w->slowest[k], "slow");
    for (int k = 0; k < w->n_missed && k < LATE_MISSED; k++) print_block(&w->missed[k], "missed");
}
