/// What the files of the chat templates share: values, the tree, and the state of one rendering.
///
/// Errors leave by longjmp to wt_chat_template_create or wt_chat_render: all memory between lies in a heap that ends
/// there, so nothing is leaked, and an evaluator whose every call can fail stays readable.
#ifndef WT_MODELS_CHAT_INTERNAL_H
#define WT_MODELS_CHAT_INTERNAL_H

#include <setjmp.h>
#include <stdint.h>
#include <warptone/chat.h>

enum {
    WT__CHAT_MAX_BYTES = 64 << 20,
    WT__CHAT_MAX_STEPS = 20000000,
    WT__CHAT_MAX_DEPTH = 600,
    WT__CHAT_MAX_NESTING = 100
};

typedef struct wt__chat_heap {
    struct wt__chat_chunk *chunks;
    size_t used; // bytes of all chunks
    jmp_buf out;
    wt_status status;
} wt__chat_heap;

void *wt__chat_heap_take(wt__chat_heap *heap, size_t size); // zeroed
void wt__chat_heap_free(wt__chat_heap *heap);
_Noreturn void wt__chat_heap_fail(wt__chat_heap *heap, wt_status status, const char *format, ...) WT_PRINTF(3, 4);
/// Room for element `n` of an array of the heap.
void wt__chat_heap_grow(wt__chat_heap *heap, void **at, size_t *room, size_t n, size_t size);

// --- Values ---------------------------------------------------------------------------------------------------------

typedef enum wt__chat_kind {
    WT__UNDEFINED, // text: its name
    WT__NONE,
    WT__BOOL,
    WT__INT,
    WT__FLOAT,
    WT__STRING,
    WT__LIST,
    WT__MAP,
    WT__LOOP,
    WT__CALLABLE,
} wt__chat_kind;

/// What Python has beside the plain list: they are written, compared and added as such.
enum { WT__PLAIN_LIST, WT__TUPLE, WT__ITEMS, WT__KEYS, WT__VALUES };

typedef struct wt__chat_value {
    wt__chat_kind kind;
    uint32_t size; // bytes of a string; of a list which it is; of a map: 1 = namespace
    union {
        int64_t i; // also bool
        double f;
        struct {
            const char *s;
            bool marked; // what |safe and |escape give, and what is made of that: markupsafe's Markup
        };
        struct wt__chat_list *list;
        struct wt__chat_map *map;
        struct wt__chat_loop *loop;
        struct wt__chat_callable *call;
    };
} wt__chat_value;

typedef struct wt__chat_list {
    wt__chat_value *at;
    size_t n, room;
} wt__chat_list;

typedef struct wt__chat_entry {
    wt__chat_value key, value;
} wt__chat_entry;

typedef struct wt__chat_map {
    wt__chat_entry *at;
    size_t n, room;
} wt__chat_map;

typedef struct wt__chat_loop {
    const wt__chat_list *list;
    size_t index;
    wt__chat_value *changed; // what loop.changed() saw last
} wt__chat_loop;

/// A macro with the frame it was defined in, a method with its object, or a function.
typedef struct wt__chat_callable {
    const char *name;
    wt__chat_value self;
    const struct wt__chat_node *macro; // NULL = a method or a function
    struct wt__chat_frame *frame;
    wt__chat_value caller; // what caller() is in this macro; undefined = none
} wt__chat_callable;

// --- The tree -------------------------------------------------------------------------------------------------------

typedef enum wt__chat_node_kind {
    WT__N_DATA, // statements
    WT__N_OUTPUT,
    WT__N_IF,
    WT__N_FOR,
    WT__N_SET,
    WT__N_SET_BLOCK,
    WT__N_MACRO,
    WT__N_CALL_BLOCK,
    WT__N_FILTER_BLOCK,
    WT__N_WITH,
    WT__N_GENERATION,
    WT__N_BREAK,
    WT__N_CONTINUE,
    WT__N_LITERAL, // expressions
    WT__N_NAME,
    WT__N_LIST,
    WT__N_TUPLE,
    WT__N_MAP,
    WT__N_ATTRIBUTE,
    WT__N_ITEM,
    WT__N_SLICE,
    WT__N_CALL,
    WT__N_FILTER,
    WT__N_TEST,
    WT__N_CONDITION,
    WT__N_AND,
    WT__N_OR,
    WT__N_NOT,
    WT__N_NEGATE,
    WT__N_PLUS,
    WT__N_BINARY,
    WT__N_COMPARE,
} wt__chat_node_kind;

typedef struct wt__chat_nodes {
    struct wt__chat_node **at;
    size_t n, room;
} wt__chat_nodes;

typedef struct wt__chat_node {
    wt__chat_node_kind kind;
    int line;
    char op[8];           // of BINARY, and of an operand of COMPARE
    const char *name;     // NAME, ATTRIBUTE, FILTER, TEST, MACRO; of an argument: its keyword
    wt__chat_value value; // LITERAL, DATA
    struct wt__chat_node *a, *b, *c;
    wt__chat_nodes list; // elements, arguments, targets, parameters
    wt__chat_nodes body, otherwise;
} wt__chat_node;

/// The tree of a template, in `heap`.
wt__chat_nodes wt__chat_parse(wt__chat_heap *heap, const char *text, size_t size);

// --- A rendering ----------------------------------------------------------------------------------------------------

typedef struct wt__chat_builder {
    char *at;
    size_t size, room;
} wt__chat_builder;

typedef struct wt__chat_frame {
    struct wt__chat_frame *parent;
    struct {
        const char *name;
        wt__chat_value value;
    } * vars;
    size_t n, room;
} wt__chat_frame;

typedef struct wt__chat_render {
    wt__chat_heap heap;
    wt__chat_builder *out;
    wt__chat_frame *frame;
    const char *date;
    int depth, line;
    int64_t steps;
} wt__chat_render;

typedef struct wt__chat_args {
    const wt__chat_value *at; // positional, then those with a name
    const char *const *names;
    size_t n, n_positional;
} wt__chat_args;

_Noreturn void wt__chat_raise(wt__chat_render *r, const char *format, ...) WT_PRINTF(2, 3);
void wt__chat_step(wt__chat_render *r, size_t n); // count work
void wt__chat_enter(wt__chat_render *r);          // one level deeper
void wt__chat_leave(wt__chat_render *r);

void wt__chat_append(wt__chat_render *r, wt__chat_builder *b, const char *s, size_t n);
void wt__chat_append_text(wt__chat_render *r, wt__chat_builder *b, const char *s); // to its end
wt__chat_value wt__chat_string(wt__chat_render *r, const char *s, size_t n); // copied
wt__chat_value wt__chat_built(const wt__chat_builder *b);
wt__chat_value wt__chat_bool(bool b);
wt__chat_value wt__chat_int(int64_t i);
wt__chat_value wt__chat_undefined(const char *name);
wt__chat_value wt__chat_new_list(wt__chat_render *r);
wt__chat_value wt__chat_new_map(wt__chat_render *r);
void wt__chat_list_add(wt__chat_render *r, wt__chat_list *list, wt__chat_value v);
void wt__chat_map_set(wt__chat_render *r, wt__chat_map *map, wt__chat_value key, wt__chat_value v);
const wt__chat_value *wt__chat_map_get(wt__chat_render *r, const wt__chat_map *map, wt__chat_value key); // NULL = none
wt__chat_value wt__chat_key(const char *name); // borrowed string

bool wt__chat_is(wt__chat_value v, const char *text); // is it this string?
bool wt__chat_is_number(wt__chat_value v);            // a bool is one, as in Python
bool wt__chat_is_view(wt__chat_value v);              // of a dict: no places, only an order
const char *wt__chat_kind_name(wt__chat_value v);
bool wt__chat_truth(wt__chat_render *r, wt__chat_value v);
bool wt__chat_equal(wt__chat_render *r, wt__chat_value a, wt__chat_value b);
int wt__chat_compare(wt__chat_render *r, wt__chat_value a, wt__chat_value b);
bool wt__chat_contains(wt__chat_render *r, wt__chat_value whole, wt__chat_value part);
size_t wt__chat_length(wt__chat_render *r, wt__chat_value v);
wt__chat_value wt__chat_elements(wt__chat_render *r, wt__chat_value v); // a list of what iterating gives
wt__chat_value wt__chat_to_string(wt__chat_render *r, wt__chat_value v);
void wt__chat_write(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v); // as Python's str()

typedef struct wt__chat_json_style {
    int indent; // -1 = one line
    bool sort_keys, ascii;
    wt__chat_value item_separator, key_separator; // undefined = json.dumps's own
} wt__chat_json_style;
void wt__chat_write_json(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v, const wt__chat_json_style *style,
                         int level);
/// A JSON text. Errors: WT_ERR_FORMAT naming `what`.
wt__chat_value wt__chat_from_json(wt__chat_render *r, const char *what, const char *text);

const wt__chat_value *wt__chat_arg(const wt__chat_args *args, size_t i, const char *name); // NULL = not given
wt__chat_value wt__chat_attribute(wt__chat_render *r, wt__chat_value v, const char *name, bool item_first);
wt__chat_value wt__chat_item(wt__chat_render *r, wt__chat_value v, wt__chat_value key);
wt__chat_value wt__chat_slice(wt__chat_render *r, wt__chat_value v, wt__chat_value begin, wt__chat_value end,
                              wt__chat_value step);
wt__chat_value wt__chat_filter(wt__chat_render *r, const char *name, wt__chat_value v, const wt__chat_args *args);
bool wt__chat_test(wt__chat_render *r, const char *name, wt__chat_value v, const wt__chat_args *args);
bool wt__chat_has_method(wt__chat_value v, const char *name);
wt__chat_value wt__chat_method(wt__chat_render *r, wt__chat_value self, const char *name, const wt__chat_args *args);
wt__chat_value wt__chat_function(wt__chat_render *r, const char *name, const wt__chat_args *args);
bool wt__chat_is_function(const char *name);
wt__chat_value wt__chat_binary(wt__chat_render *r, const char *op, wt__chat_value a, wt__chat_value b);
/// The string with HTML's signs replaced, marked; as it is where it is marked already.
wt__chat_value wt__chat_escape(wt__chat_render *r, wt__chat_value v);
/// A string, or the strings of a list, marked as `like` is.
wt__chat_value wt__chat_mark_like(wt__chat_value v, wt__chat_value like);
/// str.format, of fields that have neither a conversion nor a format.
wt__chat_value wt__chat_format(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args);
/// str.strip and its kin: which ends, and of which characters (NULL = white space).
wt__chat_value wt__chat_strip(wt__chat_render *r, wt__chat_value v, const wt__chat_value *chars, bool left, bool right);
wt__chat_value wt__chat_replace_text(wt__chat_render *r, wt__chat_value v, wt__chat_value old, wt__chat_value fresh,
                                     int64_t count);
wt__chat_value wt__chat_map_case(wt__chat_render *r, wt__chat_value v,
                                 char how); // 'u'pper, 'l'ower, 'c'apitalize, 't'itle, 'f' title filter

void wt__chat_exec(wt__chat_render *r, const wt__chat_nodes *body);

#endif
