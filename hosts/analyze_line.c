// Files of a run with a GPU, as on an assembly line. A few batches are under way at once, each at a place of its own on
// the GPU; every worker takes the next step that can be taken: compute a batch that is read, write a file of a batch
// that is computed, read a file of one that was begun, begin the next. So files of one batch are read and written side
// by side, the GPU has the next batch waiting while it is busy, and plans and memory are those of WIDTH places, however
// many threads there are. What is not for a batch a worker does by itself, at a place that is free.
//
// One mutex guards all states; steps are taken outside it.

#include "analyze_batch.h"
#include "crew.h"
#include "interrupt.h"

#include <pthread.h>
#include <stdlib.h>

enum { WIDTH = 4 };

typedef enum step {
    STEP_BEGIN, // take a batch, or a file by itself
    STEP_READ,
    STEP_COMPUTE,
    STEP_WRITE,
    STEP_END, // there is nothing left to do
} step;

typedef struct slot {
    enum { SLOT_FREE, SLOT_BUSY, SLOT_READING, SLOT_READ, SLOT_WRITING } state; // busy: in one worker's hands
    bool opened;
    analyze_place place;
    analyze_work work;
    int next, n_done; // files whose step was taken up, and is done
} slot;

typedef struct line {
    const analyze_batches *batches;
    analyze_times *times;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    slot *slots;                       // [n_slots]
    int n_slots, next_span, n_batched; // n_batched: slots with a batch
} line;

typedef struct task {
    step step;
    slot *slot;
    int k; // file of the slot's work, or span
} task;

int analyze_line_width(const analyze_options *options) { return options->n_jobs < WIDTH ? options->n_jobs : WIDTH; }

// ---- which step is next

static bool is_alone(const line *l, int span) { return l->batches->files[l->batches->spans[span].first].alone; }

static slot *slot_in(line *l, int state)
{
    for (int k = 0; k < l->n_slots; k++)
        if ((int)l->slots[k].state == state) return &l->slots[k];
    return NULL;
}

/// A slot in this state with a file that nobody has taken up.
static slot *slot_with_file(line *l, int state)
{
    for (int k = 0; k < l->n_slots; k++)
        if ((int)l->slots[k].state == state && l->slots[k].next < l->slots[k].work.n_files) return &l->slots[k];
    return NULL;
}

/// Those of a batch first: they have plans.
static bool can_begin(const line *l)
{
    if (wt_interrupted() || l->next_span == l->batches->n_spans) return false;
    return is_alone(l, l->next_span) || l->n_batched < analyze_line_width(l->batches->options);
}

static bool look_for_task(line *l, task *t)
{
    slot *s;
    if ((s = slot_in(l, SLOT_READ))) {
        s->state = SLOT_BUSY;
        *t = (task){STEP_COMPUTE, s, 0};
    } else if ((s = slot_with_file(l, SLOT_WRITING))) {
        *t = (task){STEP_WRITE, s, s->next++};
    } else if ((s = slot_with_file(l, SLOT_READING))) {
        *t = (task){STEP_READ, s, s->next++};
    } else if (can_begin(l) && (s = slot_in(l, SLOT_FREE))) {
        s->state = SLOT_BUSY;
        *t = (task){STEP_BEGIN, s, l->next_span++};
        l->n_batched += !is_alone(l, t->k);
    } else {
        return false;
    }
    return true;
}

static bool all_is_done(const line *l)
{
    for (int k = 0; k < l->n_slots; k++)
        if (l->slots[k].state != SLOT_FREE) return false;
    return wt_interrupted() || l->next_span == l->batches->n_spans;
}

static task next_task(line *l)
{
    task t = {.step = STEP_END};
    pthread_mutex_lock(&l->mutex);
    while (!look_for_task(l, &t) && !all_is_done(l)) pthread_cond_wait(&l->changed, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    return t;
}

static void enter_state(line *l, slot *s, int state)
{
    pthread_mutex_lock(&l->mutex);
    s->state = state, s->next = s->n_done = 0;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

/// Another file has had its step; true: it was the last, and the slot is this worker's.
static bool count_file(line *l, slot *s)
{
    pthread_mutex_lock(&l->mutex);
    const bool last = ++s->n_done == s->work.n_files;
    if (last) s->state = SLOT_BUSY;
    pthread_mutex_unlock(&l->mutex);
    return last;
}

// ---- steps

static void leave(line *l, slot *s, bool batched)
{
    pthread_mutex_lock(&l->mutex);
    l->n_batched -= batched;
    pthread_mutex_unlock(&l->mutex);
    enter_state(l, s, SLOT_FREE);
}

static void begin(line *l, slot *s, int span, analyze_clock *clock)
{
    const analyze_batches *b = l->batches;
    const analyze_span *files = &b->spans[span];
    s->place.clock = clock;
    if (!s->opened && analyze_place_open(b->options->backend, &s->place)) s->place.device = NULL; // then on the CPU
    s->opened = true;
    s->work = (analyze_work){.options = b->options,
                             .run = b->run,
                             .place = &s->place,
                             .files = &b->files[files->first],
                             .n_files = files->n_files,
                             .n_room = files->n_room};
    if (is_alone(l, span)) {
        process_item *item = &b->run->items[s->work.files->item];
        analyze_do_item(b->options, &s->place, item);
        analyze_item_done(b->run, item);
        leave(l, s, false);
    } else if (s->place.device && analyze_work_begin(&s->work)) {
        enter_state(l, s, SLOT_READING);
    } else {
        if (!s->place.device) s->work.status = WT_ERR_NO_GPU;
        analyze_work_alone(&s->work);
        enter_state(l, s, SLOT_WRITING);
    }
}

static void take_step(line *l, const task *t, analyze_clock *clock)
{
    static const analyze_stage stages[] = {ANALYZE_OPEN, ANALYZE_READ, ANALYZE_COMPUTE, ANALYZE_WRITE};
    slot *s = t->slot;
    analyze_enter(clock, stages[t->step]);
    switch (t->step) {
    case STEP_BEGIN:
        begin(l, s, t->k, clock);
        break;
    case STEP_READ:
        analyze_work_read(&s->work, t->k);
        if (count_file(l, s)) enter_state(l, s, SLOT_READ);
        break;
    case STEP_COMPUTE:
        s->place.clock = clock;
        analyze_work_compute(&s->work);
        analyze_work_alone(&s->work);
        enter_state(l, s, SLOT_WRITING);
        break;
    default:
        analyze_work_write(&s->work, t->k);
        if (!count_file(l, s)) break;
        analyze_work_end(&s->work);
        leave(l, s, true);
    }
}

static void work(void *user, int worker)
{
    (void)worker;
    line *l = user;
    analyze_clock clock = analyze_clock_start();
    for (task t; (t = next_task(l)).step != STEP_END;) {
        take_step(l, &t, &clock);
        analyze_enter(&clock, ANALYZE_IDLE);
    }
    analyze_clock_stop(&clock, l->times);
}

wt_status analyze_line_run(const analyze_batches *batches, void (*tick)(void *user), void *user, analyze_times *times)
{
    line l = {.batches = batches,
              .times = times,
              .mutex = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER,
              .n_slots = batches->options->n_jobs};
    l.slots = calloc((size_t)l.n_slots, sizeof *l.slots);
    if (!l.slots) return wt_fail(WT_ERR_NO_MEMORY, "analyze: %d places", l.n_slots);
    wt_status status = wt__crew_run("analyze", l.n_slots, work, &l, tick, user);
    analyze_clock clock = analyze_clock_start();
    for (int k = 0; k < l.n_slots; k++) {
        l.slots[k].place.clock = &clock;
        analyze_place_close(&l.slots[k].place);
    }
    analyze_clock_stop(&clock, times);
    free(l.slots);
    return status;
}
