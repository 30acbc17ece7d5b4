// Running a template's tree. Frames hold names: one for the whole, one for each turn of a loop, each macro, each
// "with".
#include "chat_internal.h"

#include <string.h>

typedef enum flow { NORMAL, BREAK, CONTINUE } flow;

static wt__chat_value eval(wt__chat_render *r, const wt__chat_node *node);
static flow run(wt__chat_render *r, const wt__chat_nodes *body);

static void set(wt__chat_render *r, const char *name, wt__chat_value v)
{
    wt__chat_frame *f = r->frame;
    wt__chat_step(r, f->n / 8);
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->vars[i].name, name)) continue;
        f->vars[i].value = v;
        return;
    }
    wt__chat_heap_grow(&r->heap, (void **)&f->vars, &f->room, f->n, sizeof *f->vars);
    f->vars[f->n].name = name;
    f->vars[f->n++].value = v;
}

static wt__chat_value lookup(wt__chat_render *r, const char *name)
{
    for (const wt__chat_frame *f = r->frame; f; f = f->parent) {
        wt__chat_step(r, 1 + f->n / 8);
        for (size_t i = 0; i < f->n; i++)
            if (!strcmp(f->vars[i].name, name)) return f->vars[i].value;
    }
    if (!wt__chat_is_function(name)) return wt__chat_undefined(name);
    wt__chat_callable *call = wt__chat_heap_take(&r->heap, sizeof *call);
    call->name = name;
    return (wt__chat_value){WT__CALLABLE, 0, {.call = call}};
}

static wt__chat_frame *push_frame(wt__chat_render *r, wt__chat_frame *parent)
{
    wt__chat_frame *before = r->frame;
    r->frame = wt__chat_heap_take(&r->heap, sizeof *r->frame);
    r->frame->parent = parent;
    return before;
}

// --- Calls ----------------------------------------------------------------------------------------------------------

static wt__chat_args eval_arguments(wt__chat_render *r, const wt__chat_nodes *list)
{
    wt__chat_value *at = wt__chat_heap_take(&r->heap, (list->n + 1) * sizeof *at);
    const char **names = wt__chat_heap_take(&r->heap, (list->n + 1) * sizeof *names);
    wt__chat_args args = {at, names, list->n, 0};
    for (size_t i = 0; i < list->n; i++) {
        at[i] = eval(r, list->at[i]->a);
        names[i] = list->at[i]->name;
        if (!names[i]) args.n_positional = i + 1;
    }
    return args;
}

// What `body` writes, as a string.
static wt__chat_value capture(wt__chat_render *r, const wt__chat_nodes *body)
{
    wt__chat_builder out = {0}, *before = r->out;
    r->out = &out;
    run(r, body);
    r->out = before;
    return wt__chat_built(&out);
}

static void bind_parameters(wt__chat_render *r, const wt__chat_node *macro, const wt__chat_args *args)
{
    size_t used = 0;
    for (size_t i = 0; i < macro->list.n; i++) {
        const wt__chat_node *parameter = macro->list.at[i];
        const wt__chat_value *given = wt__chat_arg(args, i, parameter->name);
        used += given != NULL;
        set(r, parameter->name,
            given          ? *given
            : parameter->a ? eval(r, parameter->a)
                           : wt__chat_undefined(parameter->name));
    }
    if (used != args->n)
        wt__chat_raise(r, "macro %s: %zu arguments, of which it knows %zu", macro->name, args->n, used);
}

static wt__chat_value call_macro(wt__chat_render *r, const wt__chat_callable *call, const wt__chat_args *args)
{
    wt__chat_frame *before = push_frame(r, call->frame);
    if (call->caller.kind == WT__CALLABLE) set(r, "caller", call->caller);
    bind_parameters(r, call->macro, args);
    wt__chat_value text = capture(r, &call->macro->body);
    r->frame = before;
    return text;
}

static wt__chat_value call(wt__chat_render *r, wt__chat_value what, const wt__chat_args *args)
{
    if (what.kind == WT__UNDEFINED) wt__chat_raise(r, "'%.64s' is undefined, and called", what.s);
    if (what.kind != WT__CALLABLE) wt__chat_raise(r, "%s is called", wt__chat_kind_name(what));
    if (what.call->macro) return call_macro(r, what.call, args);
    if (what.call->self.kind != WT__UNDEFINED) return wt__chat_method(r, what.call->self, what.call->name, args);
    return wt__chat_function(r, what.call->name, args);
}

static wt__chat_value macro_value(wt__chat_render *r, const wt__chat_node *macro)
{
    wt__chat_callable *call = wt__chat_heap_take(&r->heap, sizeof *call);
    call->name = macro->name;
    call->macro = macro;
    call->frame = r->frame;
    return (wt__chat_value){WT__CALLABLE, 0, {.call = call}};
}

// --- Expressions ----------------------------------------------------------------------------------------------------

static bool holds(wt__chat_render *r, const char *op, wt__chat_value a, wt__chat_value b)
{
    if (!strcmp(op, "==")) return wt__chat_equal(r, a, b);
    if (!strcmp(op, "!=")) return !wt__chat_equal(r, a, b);
    if (!strcmp(op, "in")) return wt__chat_contains(r, b, a);
    if (!strcmp(op, "not in")) return !wt__chat_contains(r, b, a);
    int order = wt__chat_compare(r, a, b);
    if (op[0] == '<') return op[1] ? order <= 0 : order < 0;
    return op[1] ? order >= 0 : order > 0;
}

static wt__chat_value eval_compare(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value left = eval(r, node->a);
    for (size_t i = 0; i < node->list.n; i++) {
        wt__chat_value right = eval(r, node->list.at[i]->a);
        if (!holds(r, node->list.at[i]->op, left, right)) return wt__chat_bool(false);
        left = right;
    }
    return wt__chat_bool(true);
}

static wt__chat_value eval_list(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value list = wt__chat_new_list(r);
    list.size = node->kind == WT__N_TUPLE ? WT__TUPLE : WT__PLAIN_LIST;
    for (size_t i = 0; i < node->list.n; i++) wt__chat_list_add(r, list.list, eval(r, node->list.at[i]));
    return list;
}

static wt__chat_value eval_map(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value map = wt__chat_new_map(r);
    for (size_t i = 0; i + 1 < node->list.n; i += 2) {
        wt__chat_value key = eval(r, node->list.at[i]);
        wt__chat_map_set(r, map.map, key, eval(r, node->list.at[i + 1]));
    }
    return map;
}

static wt__chat_value negate(wt__chat_render *r, wt__chat_value v)
{
    if (v.kind == WT__FLOAT) return (wt__chat_value){WT__FLOAT, 0, {.f = -v.f}};
    if ((v.kind != WT__INT && v.kind != WT__BOOL) || v.i == INT64_MIN)
        wt__chat_raise(r, "minus %s", wt__chat_kind_name(v));
    return wt__chat_int(-v.i);
}

static wt__chat_value eval_slice(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value none = {.kind = WT__NONE}, v = eval(r, node->a);
    wt__chat_value begin = node->b ? eval(r, node->b) : none, end = node->c ? eval(r, node->c) : none;
    return wt__chat_slice(r, v, begin, end, node->list.n ? eval(r, node->list.at[0]) : none);
}

static wt__chat_value eval_operation(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value v = eval(r, node->a);
    wt__chat_args args;
    switch (node->kind) {
    case WT__N_ATTRIBUTE:
        return wt__chat_attribute(r, v, node->name, false);
    case WT__N_ITEM:
        return wt__chat_item(r, v, eval(r, node->b));
    case WT__N_CALL:
        args = eval_arguments(r, &node->list);
        return call(r, v, &args);
    case WT__N_FILTER:
        args = eval_arguments(r, &node->list);
        return wt__chat_filter(r, node->name, v, &args);
    case WT__N_TEST:
        args = eval_arguments(r, &node->list);
        return wt__chat_bool(wt__chat_test(r, node->name, v, &args));
    case WT__N_CONDITION:
        if (wt__chat_truth(r, v)) return eval(r, node->b);
        return node->c ? eval(r, node->c) : wt__chat_undefined("the inline if");
    case WT__N_AND:
        return wt__chat_truth(r, v) ? eval(r, node->b) : v;
    case WT__N_OR:
        return wt__chat_truth(r, v) ? v : eval(r, node->b);
    case WT__N_NOT:
        return wt__chat_bool(!wt__chat_truth(r, v));
    case WT__N_NEGATE:
        return negate(r, v);
    case WT__N_PLUS:
        return v;
    default:
        return wt__chat_binary(r, node->op, v, eval(r, node->b));
    }
}

static wt__chat_value eval(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value v;
    wt__chat_enter(r);
    r->line = node->line;
    switch (node->kind) {
    case WT__N_LITERAL:
        v = node->value;
        break;
    case WT__N_NAME:
        v = lookup(r, node->name);
        break;
    case WT__N_LIST:
    case WT__N_TUPLE:
        v = eval_list(r, node);
        break;
    case WT__N_MAP:
        v = eval_map(r, node);
        break;
    case WT__N_COMPARE:
        v = eval_compare(r, node);
        break;
    case WT__N_SLICE:
        v = eval_slice(r, node);
        break;
    default:
        v = eval_operation(r, node);
    }
    wt__chat_leave(r);
    return v;
}

// A chain of filters without a beginning, on `v`.
static wt__chat_value eval_filters(wt__chat_render *r, const wt__chat_node *node, wt__chat_value v)
{
    wt__chat_enter(r);
    if (node->a) v = eval_filters(r, node->a, v);
    wt__chat_args args = eval_arguments(r, &node->list);
    if (node->kind != WT__N_FILTER) wt__chat_raise(r, "a test where filters are wanted");
    v = wt__chat_filter(r, node->name, v, &args);
    wt__chat_leave(r);
    return v;
}

// --- Statements -----------------------------------------------------------------------------------------------------

static void assign(wt__chat_render *r, const wt__chat_nodes *targets, wt__chat_value v)
{
    if (targets->n == 1) {
        set(r, targets->at[0]->name, v);
        return;
    }
    wt__chat_value parts = wt__chat_elements(r, v);
    if (parts.list->n != targets->n) wt__chat_raise(r, "%zu values for %zu names", parts.list->n, targets->n);
    for (size_t i = 0; i < targets->n; i++) set(r, targets->at[i]->name, parts.list->at[i]);
}

static void run_set(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value v;
    if (node->kind == WT__N_SET) {
        v = eval(r, node->a);
    } else {
        wt__chat_frame *before = push_frame(r, r->frame);
        v = capture(r, &node->body);
        r->frame = before;
        if (node->a) v = eval_filters(r, node->a, v);
    }
    if (!node->name) {
        assign(r, &node->list, v);
        return;
    }
    wt__chat_value space = lookup(r, node->list.at[0]->name);
    if (space.kind != WT__MAP || !space.size) wt__chat_raise(r, "'%.64s' is no namespace", node->list.at[0]->name);
    wt__chat_map_set(r, space.map, wt__chat_key(node->name), v);
}

// What the loop runs over: all elements, or those for which its `if` holds.
static wt__chat_value loop_elements(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value all = wt__chat_elements(r, eval(r, node->a)), kept;
    if (!node->b) return all;
    kept = wt__chat_new_list(r);
    for (size_t i = 0; i < all.list->n; i++) {
        wt__chat_frame *before = push_frame(r, r->frame);
        assign(r, &node->list, all.list->at[i]);
        if (wt__chat_truth(r, eval(r, node->b))) wt__chat_list_add(r, kept.list, all.list->at[i]);
        r->frame = before;
    }
    return kept;
}

static flow run_for(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value elements = loop_elements(r, node);
    if (!elements.list->n) return run(r, &node->otherwise);
    wt__chat_list list = *elements.list; // the body may add to it
    wt__chat_loop *loop = wt__chat_heap_take(&r->heap, sizeof *loop);
    *loop = (wt__chat_loop){.list = &list};
    flow how = NORMAL;
    for (; loop->index < list.n && how != BREAK; loop->index++) {
        wt__chat_frame *before = push_frame(r, r->frame);
        assign(r, &node->list, list.at[loop->index]);
        set(r, "loop", (wt__chat_value){WT__LOOP, 0, {.loop = loop}});
        how = run(r, &node->body);
        r->frame = before;
    }
    loop->list = NULL;
    return NORMAL;
}

static void run_call_block(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_value what = eval(r, node->a->a);
    wt__chat_args args = eval_arguments(r, &node->a->list);
    if (what.kind != WT__CALLABLE || !what.call->macro) wt__chat_raise(r, "call of what is no macro");
    wt__chat_callable with_caller = *what.call;
    with_caller.caller = macro_value(r, node->b);
    wt__chat_write(r, r->out, call_macro(r, &with_caller, &args));
}

static void run_with(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_frame *before = r->frame, *inner;
    push_frame(r, before);
    inner = r->frame;
    for (size_t i = 0; i < node->list.n; i++) {
        r->frame = before;
        wt__chat_value v = eval(r, node->list.at[i]->a);
        r->frame = inner;
        set(r, node->list.at[i]->name, v);
    }
}

static flow run_statement(wt__chat_render *r, const wt__chat_node *node)
{
    wt__chat_frame *before = r->frame;
    flow how = NORMAL;
    switch (node->kind) {
    case WT__N_DATA:
        wt__chat_append(r, r->out, node->value.s, node->value.size);
        break;
    case WT__N_OUTPUT:
        wt__chat_write(r, r->out, eval(r, node->a));
        break;
    case WT__N_IF:
        return run(r, wt__chat_truth(r, eval(r, node->a)) ? &node->body : &node->otherwise);
    case WT__N_FOR:
        return run_for(r, node);
    case WT__N_MACRO:
        set(r, node->name, macro_value(r, node));
        break;
    case WT__N_CALL_BLOCK:
        run_call_block(r, node);
        break;
    case WT__N_FILTER_BLOCK:
        wt__chat_write(r, r->out, eval_filters(r, node->a, capture(r, &node->body)));
        break;
    case WT__N_GENERATION:
        return run(r, &node->body);
    case WT__N_BREAK:
        return BREAK;
    case WT__N_CONTINUE:
        return CONTINUE;
    case WT__N_WITH:
        run_with(r, node);
        how = run(r, &node->body);
        r->frame = before;
        break;
    default:
        run_set(r, node);
    }
    return how;
}

static flow run(wt__chat_render *r, const wt__chat_nodes *body)
{
    flow how = NORMAL;
    wt__chat_enter(r);
    for (size_t i = 0; i < body->n && how == NORMAL; i++) {
        wt__chat_step(r, 1);
        r->line = body->at[i]->line;
        how = run_statement(r, body->at[i]);
    }
    wt__chat_leave(r);
    return how;
}

void wt__chat_exec(wt__chat_render *r, const wt__chat_nodes *body) { run(r, body); }
