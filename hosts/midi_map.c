// Tables go from worker to audio thread through `next` and come back through `retired`, each one pointer that is
// exchanged: release by who gives, acquire by who takes. The audio thread takes a table up only when `retired` is
// empty, and only workers empty it (at a load), so at most three tables exist. What moves inside a table (pick-up) is
// the audio thread's.
#include "midi_map.h"
#include "preset_midi.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/ring.h>

// ---- events

WT_RT bool midi_parse(midi_parser *p, uint8_t byte, midi_event *event)
{
    static const int8_t n_data[8] = {2, 2, 2, 2, 1, 1, 2, 0}; // note off, on, key pressure, control, program, ...
    if (byte >= 0xf8) return false;
    if (byte & 0x80) {
        p->status = byte < 0xf0 ? byte : 0; // system messages end the running status, and their data is nobody's
        p->has_data = false;
        return false;
    }
    if (!p->status) return false;
    const int kind = p->status >> 4 & 7;
    if (n_data[kind] == 2 && !p->has_data) {
        p->data = byte;
        p->has_data = true;
        return false;
    }
    const int first = n_data[kind] == 2 ? p->data : byte;
    p->has_data = false;
    *event = (midi_event){.channel = (p->status & 15) + 1, .number = first, .value = byte};
    switch (kind) {
    case 0:
        event->kind = MIDI_NOTE_OFF;
        break;
    case 1:
        event->kind = byte ? MIDI_NOTE_ON : MIDI_NOTE_OFF;
        break;
    case 3:
        event->kind = MIDI_CONTROL;
        break;
    case 4:
        event->kind = MIDI_PROGRAM;
        break;
    case 5:
        event->kind = MIDI_PRESSURE, event->number = 0;
        break;
    case 6:
        event->kind = MIDI_BEND, event->number = 0, event->value = byte << 7 | first;
        break;
    default:
        return false; // the pressure of a single key
    }
    return true;
}

// ---- tables

enum {
    NAME_BYTES = 256,
    QUEUE_EVENTS = 1024,
    NO_NRPN = 0x3fff /* 127, 127: the null parameter of MIDI 1.0 */,
    LSB = 32
};

typedef struct entry {
    wt_midi_row row;
    char name[NAME_BYTES]; ///< of the parameter or preset; the row's pointer
    preset_midi_target target;
    float last_x, sent; ///< pick-up: where the controller was (not a number = not known), what it set last
    bool picked_up;
} entry;

typedef struct table {
    uint64_t number; ///< of the chain
    int n;
    entry entries[];
} table;

/// What a channel remembers between messages.
typedef struct channel {
    uint8_t high[LSB]; ///< high parts of controllers in pairs
    uint16_t nrpn;     ///< chosen; NO_NRPN = none
    bool is_nrpn;      ///< else it is a registered parameter's turn
} channel;

struct midi_map {
    midi_sink sink;
    // the audio thread's
    table *current;
    channel channels[16];
    wt_ring *queue; ///< of midi_event, filled by ports one at a time
    _Atomic(table *) next, retired;
    atomic_bool learning;
    atomic_uint learned; ///< packed, 0 = nothing
    atomic_int program;  ///< 16 * program + channel - 1; -1 = none
    // the workers'
    pthread_mutex_t push_lock;
    table *rows; ///< a copy of the table that was loaded last, for its rows
    wt_midi_row list[PRESET_MAX_MIDI];
};

static wt_status fill_entry(entry *e, const wt_chain *chain, const wt_midi_row *row)
{
    const char *key, *name = row->param ? row->param : row->preset;
    *e = (entry){.row = *row, .last_x = NAN};
    if (!name || strlen(name) >= sizeof e->name)
        return wt_fail(WT_ERR_BAD_ARG, "midi: a row has a name of %zu bytes, want 1..%d", name ? strlen(name) : 0,
                       NAME_BYTES - 1);
    memcpy(e->name, name, strlen(name) + 1);
    return row->param ? preset_midi_resolve(row, chain, &e->target, &key) : WT_OK;
}

static wt_status make_table(const wt_chain *chain, const wt_midi_row *rows, int n_rows, table **made)
{
    *made = NULL;
    if (n_rows > PRESET_MAX_MIDI)
        return wt_fail(WT_ERR_FULL, "midi: %d rows, want at most %d", n_rows, PRESET_MAX_MIDI);
    table *t = calloc(1, sizeof *t + sizeof *t->entries * (size_t)n_rows);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "midi: table");
    t->number = chain ? wt_chain_number(chain) : 0;
    wt_status status = WT_OK;
    for (t->n = 0; t->n < n_rows && !status; t->n++) status = fill_entry(&t->entries[t->n], chain, &rows[t->n]);
    if (status)
        free(t);
    else
        *made = t;
    return status;
}

/// Rows whose names are the table's own.
static void list_rows(midi_map *map)
{
    for (int k = 0; k < map->rows->n; k++) {
        entry *e = &map->rows->entries[k];
        if (e->row.param)
            e->row.param = e->name;
        else
            e->row.preset = e->name;
        map->list[k] = e->row;
    }
}

wt_status midi_map_load(midi_map *map, const wt_chain *chain, const wt_midi_row *rows, int n_rows)
{
    table *played, *kept;
    wt_status status = make_table(chain, rows, n_rows, &played);
    if (status) return status;
    status = make_table(chain, rows, n_rows, &kept);
    if (status) {
        free(played);
        return status;
    }
    free(map->rows); // `rows` may lie in it: not before the copies
    map->rows = kept;
    list_rows(map);
    free(atomic_exchange_explicit(&map->retired, NULL, memory_order_acquire));
    free(atomic_exchange_explicit(&map->next, played, memory_order_acq_rel));
    return WT_OK;
}

wt_status midi_map_add(midi_map *map, const wt_chain *chain, const wt_midi_row *row)
{
    wt_midi_row rows[PRESET_MAX_MIDI + 1];
    int n = 0;
    for (int k = 0; k < map->rows->n; k++) {
        const wt_midi_row *old = &map->list[k];
        const bool same = old->source == row->source && (!old->param == !row->param) &&
                          (row->param ? !strcmp(old->param, row->param) : old->number == row->number);
        if (!same) rows[n++] = *old;
    }
    rows[n++] = *row;
    return midi_map_load(map, chain, rows, n);
}

const wt_midi_row *midi_map_rows(const midi_map *map, int *n_rows)
{
    *n_rows = map->rows->n;
    return map->list;
}

wt_status midi_map_create(const midi_sink *sink, midi_map **map)
{
    *map = NULL;
    midi_map *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "midi: map");
    m->sink = *sink;
    pthread_mutex_init(&m->push_lock, NULL);
    atomic_store(&m->program, -1);
    for (int c = 0; c < 16; c++) m->channels[c].nrpn = NO_NRPN;
    wt_status status =
        wt_ring_create(&(wt_ring_config){.element_bytes = sizeof(midi_event), .capacity = QUEUE_EVENTS}, &m->queue);
    if (!status) status = midi_map_load(m, NULL, NULL, 0);
    if (status) {
        midi_map_destroy(m);
        return status;
    }
    *map = m;
    return WT_OK;
}

void midi_map_destroy(midi_map *map)
{
    if (!map) return;
    wt_ring_destroy(map->queue);
    pthread_mutex_destroy(&map->push_lock);
    free(atomic_load(&map->next)), free(atomic_load(&map->retired));
    free(map->current), free(map->rows);
    free(map);
}

// ---- applying

/// May the controller, now at x, set its parameter? When it stands at the present value or has just passed it, and from
/// then on until somebody else sets it.
static WT_RT bool picks_up(entry *e, float x, float present)
{
    const preset_midi_target *t = &e->target;
    const float step = 1.0f / 127, from = isnan(e->last_x) ? x : e->last_x;
    e->last_x = x;
    if (e->picked_up && present == e->sent) return true;
    const float a = t->value(t->min, t->max, fmaxf(fminf(from, x) - step, 0));
    const float b = t->value(t->min, t->max, fminf(fmaxf(from, x) + step, 1));
    e->picked_up = present >= fminf(a, b) && present <= fmaxf(a, b);
    return e->picked_up;
}

/// x is where the source stands, 0 .. 1 (a key's number for pitches); `press` = a key went down.
static WT_RT void move(midi_map *map, entry *e, float x, bool press)
{
    const preset_midi_target *t = &e->target;
    const float present = map->sink.get(map->sink.user, t->node, t->param);
    float value;
    if (t->toggle && press)
        value = fabsf(present - t->max) < fabsf(present - t->min) ? t->min : t->max;
    else if (t->toggle)
        value = x < 0.5f ? t->min : t->max;
    else if (t->pick_up && !picks_up(e, x, present))
        return;
    else
        value = t->value(t->min, t->max, x);
    map->sink.set(map->sink.user, map->current->number, t->node, t->param, value);
    e->sent = map->sink.get(map->sink.user, t->node, t->param);
}

static WT_RT bool answers(const wt_midi_row *row, wt_midi_source source, int channel, int number)
{
    return row->source == source && (!row->channel || row->channel == channel) &&
           (row->number == WT_MIDI_ANY || row->number == number);
}

static WT_RT void move_all(midi_map *map, wt_midi_source source, int channel, int number, float x)
{
    for (int k = 0; map->current && k < map->current->n; k++) {
        entry *e = &map->current->entries[k];
        if (answers(&e->row, source, channel, number)) move(map, e, x, false);
    }
}

static WT_RT void apply_note(midi_map *map, const midi_event *event)
{
    const bool on = event->kind == MIDI_NOTE_ON;
    const float velocity = on ? (float)event->value / 127 : 0;
    if (on) move_all(map, WT_MIDI_VELOCITY, event->channel, event->number, velocity);
    for (int k = 0; map->current && k < map->current->n; k++) {
        entry *e = &map->current->entries[k];
        const bool any = e->row.number == WT_MIDI_ANY;
        if (!answers(&e->row, WT_MIDI_NOTE, event->channel, event->number)) continue;
        if (!on && (any || e->target.toggle)) continue; // a pitch stays, and a switch changes over when pressed
        const float x = any ? (float)event->number / (e->target.pitch ? 1 : 127) : velocity;
        move(map, e, x, on);
    }
}

/// 98 and 99 choose an NRPN (100 and 101 a registered one), 6 and 38 give its value.
static WT_RT void apply_nrpn(midi_map *map, const midi_event *event)
{
    channel *c = &map->channels[event->channel - 1];
    switch (event->number) {
    case 99:
        c->nrpn = (uint16_t)(event->value << 7 | (c->nrpn & 127)), c->is_nrpn = true;
        break;
    case 98:
        c->nrpn = (uint16_t)((c->nrpn & 127 << 7) | event->value), c->is_nrpn = true;
        break;
    case 100:
    case 101:
        c->is_nrpn = false;
        break;
    case 6:
    case 6 + LSB: {
        const int value = c->high[6] << 7 | (event->number == 6 ? 0 : event->value);
        if (c->is_nrpn && c->nrpn != NO_NRPN)
            move_all(map, WT_MIDI_NRPN, event->channel, c->nrpn, (float)value / 16383);
        break;
    }
    }
}

static WT_RT void apply_control(midi_map *map, const midi_event *event)
{
    channel *c = &map->channels[event->channel - 1];
    move_all(map, WT_MIDI_CC, event->channel, event->number, (float)event->value / 127);
    if (event->number < LSB) {
        c->high[event->number] = (uint8_t)event->value; // a new high part stands for a low part of 0 (MIDI 1.0)
        move_all(map, WT_MIDI_CC14, event->channel, event->number, (float)(event->value << 7) / 16383);
    } else if (event->number < 2 * LSB) {
        const int number = event->number - LSB;
        move_all(map, WT_MIDI_CC14, event->channel, number, (float)(c->high[number] << 7 | event->value) / 16383);
    }
    apply_nrpn(map, event);
}

/// The middle is exactly the middle, though there is one step more below than above it.
static WT_RT float bend_position(int value)
{
    return value <= 8192 ? (float)value / 16384 : 0.5f + (float)(value - 8192) / (2 * 8191);
}

static WT_RT void learn(midi_map *map, const midi_event *event)
{
    const bool bend = event->kind == MIDI_BEND;
    if (!bend && (event->kind != MIDI_CONTROL || event->number > 119)) return;
    // bit 31 set, then bend, channel, number
    atomic_store_explicit(&map->learned,
                          1u << 31 | (unsigned)bend << 16 | (unsigned)event->channel << 8 | (unsigned)event->number,
                          memory_order_relaxed);
    atomic_store_explicit(&map->learning, false, memory_order_relaxed);
}

static WT_RT void apply(midi_map *map, const midi_event *event)
{
    if (atomic_load_explicit(&map->learning, memory_order_relaxed)) {
        learn(map, event);
        return;
    }
    switch (event->kind) {
    case MIDI_NOTE_OFF:
    case MIDI_NOTE_ON:
        apply_note(map, event);
        break;
    case MIDI_CONTROL:
        apply_control(map, event);
        break;
    case MIDI_PROGRAM:
        atomic_store(&map->program, 16 * event->number + event->channel - 1);
        break;
    case MIDI_PRESSURE:
        move_all(map, WT_MIDI_PRESSURE, event->channel, 0, (float)event->value / 127);
        break;
    case MIDI_BEND:
        move_all(map, WT_MIDI_BEND, event->channel, 0, bend_position(event->value));
        break;
    }
}

WT_RT void midi_map_message(midi_map *map, const uint8_t *bytes, int n_bytes)
{
    midi_parser parser = {.status = 0};
    midi_event event;
    for (int k = 0; k < n_bytes; k++)
        if (midi_parse(&parser, bytes[k], &event)) apply(map, &event);
}

bool midi_map_push(midi_map *map, const uint8_t *bytes, int n_bytes)
{
    midi_parser parser = {.status = 0};
    midi_event event;
    bool good = true;
    pthread_mutex_lock(&map->push_lock);
    for (int k = 0; k < n_bytes; k++)
        if (midi_parse(&parser, bytes[k], &event)) good &= wt_ring_push(map->queue, &event, 1) == 1;
    pthread_mutex_unlock(&map->push_lock);
    return good;
}

WT_RT void midi_map_drain(midi_map *map)
{
    midi_event event;
    if (!atomic_load_explicit(&map->retired, memory_order_relaxed)) {
        table *next = atomic_exchange_explicit(&map->next, NULL, memory_order_acquire);
        if (next) {
            atomic_store_explicit(&map->retired, map->current, memory_order_release);
            map->current = next;
        }
    }
    while (wt_ring_pop(map->queue, &event, 1)) apply(map, &event);
}

// ---- what a worker asks

WT_RT void midi_map_learn(midi_map *map, bool listen)
{
    if (listen) atomic_store(&map->learned, 0);
    atomic_store(&map->learning, listen);
}

bool midi_map_learned(midi_map *map, wt_midi_row *row)
{
    const unsigned packed = atomic_exchange(&map->learned, 0);
    if (!packed) return false;
    const bool bend = packed >> 16 & 1;
    *row = (wt_midi_row){.source = bend ? WT_MIDI_BEND : WT_MIDI_CC,
                         .number = bend ? WT_MIDI_ANY : (int)(packed & 127),
                         .channel = (int)(packed >> 8 & 31),
                         .min = NAN,
                         .max = NAN};
    return true;
}

const char *midi_map_program(midi_map *map)
{
    const int program = atomic_exchange(&map->program, -1);
    for (int k = 0; program >= 0 && k < map->rows->n; k++)
        if (answers(&map->list[k], WT_MIDI_PROGRAM, program % 16 + 1, program / 16)) return map->list[k].preset;
    return NULL;
}
