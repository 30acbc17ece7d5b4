// Chat templates against what jinja2 renders in transformers' environment (golden/make_chat.py), bounds on hostile
// ones, and memory that runs out.
#include <warptone/chat.h>

#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- Recorded renderings --------------------------------------------------------------------------------------------

static uint32_t fnv(const char *s)
{
    uint32_t hash = 0x811c9dc5;
    for (; *s; s++) hash = (hash ^ (unsigned char)*s) * 0x01000193u;
    return hash;
}

static char *dump(const json_t *json) { return json ? json_dumps(json, JSON_ENCODE_ANY) : NULL; }

static wt_status render(const char *text, const json_t *c, const json_t *all, char **out)
{
    const json_t *variables = json_object_get(json_object_get(c, "snippet") ? all : c, "variables");
    char *messages = dump(json_object_get(c, "messages")), *tools = dump(json_object_get(c, "tools")),
         *given = dump(variables);
    wt_chat_options options = {.messages_json = messages,
                               .tools_json = tools,
                               .variables_json = given,
                               .bos_token = json_string_value(json_object_get(c, "bos")),
                               .eos_token = json_string_value(json_object_get(c, "eos")),
                               .no_generation_prompt = json_is_true(json_object_get(c, "no_generation_prompt")),
                               .date = json_string_value(json_object_get(all, "date"))};
    wt_chat_template *chat = NULL;
    *out = NULL;
    wt_status status = wt_chat_template_create(text, &chat);
    if (!status) status = wt_chat_render(chat, &options, out);
    wt_chat_template_destroy(chat);
    free(messages);
    free(tools);
    free(given);
    return status;
}

/// A template's file, or the template in a tokenizer_config.json; caller frees.
static char *read_template(const char *file)
{
    size_t size;
    char *read = test_slurp(shared_data(file), &size);
    read[size] = 0; // there is room for it
    const size_t length = strlen(file);
    if (length < 5 || strcmp(file + length - 5, ".json")) return read;
    json_t *config = json_loads(read, 0, NULL);
    const char *text = json_string_value(json_object_get(config, "chat_template"));
    assert_non_null(text);
    char *template = strdup(text);
    json_decref(config);
    free(read);
    return template;
}

// 0: as recorded
static int check_case(const json_t *c, const json_t *all)
{
    const char *name = json_string_value(json_object_get(c, "name")),
               *file = json_string_value(json_object_get(c, "file"));
    const char *text = json_string_value(json_object_get(c, "template")),
               *want = json_string_value(json_object_get(c, "out"));
    const char *hash = json_string_value(json_object_get(c, "hash"));
    char *read = file ? read_template(file) : NULL, *out = NULL;
    wt_status status = render(file ? read : text, c, all, &out);
    int differs;
    if (!want && !hash)
        differs = status != WT_ERR_BAD_ARG && status != WT_ERR_FORMAT;
    else if (status)
        differs = 1;
    else if (want)
        differs = strcmp(want, out) != 0;
    else
        differs = fnv(out) != strtoul(hash, NULL, 16) ||
                  strlen(out) != (size_t)json_integer_value(json_object_get(c, "size"));
    if (differs)
        print_error("%s: %s\n--- met\n%s\n--- want\n%s\n", name, status ? wt_last_error() : "another text",
                    out ? out : "(refused)",
                    want   ? want
                    : hash ? "(a hash)"
                           : "(refused)");
    free(out);
    free(read);
    return differs;
}

static void check_cases(bool files)
{
    json_t *all = json_load_file("tests/golden/chat.json", 0, NULL), *cases = json_object_get(all, "cases");
    int wrong = 0, met = 0;
    assert_non_null(all);
    if (files && !shared_data("tokenizers")) {
        json_decref(all);
        print_message("skipped: no shared data\n");
        skip();
    }
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        if ((json_object_get(c, "file") != NULL) != files) continue;
        wrong += check_case(c, all);
        met++;
    }
    json_decref(all);
    assert_true(met > 40);
    assert_int_equal(wrong, 0);
}

static void renders_as_recorded(void **state)
{
    (void)state;
    check_cases(false);
}

static void renders_published_files_as_recorded(void **state)
{
    (void)state;
    check_cases(true);
}

// --- Sentences and bounds -------------------------------------------------------------------------------------------

static wt_status render_text(const char *text, const char *messages, char **out)
{
    wt_chat_template *chat = NULL;
    *out = NULL;
    wt_status status = wt_chat_template_create(text, &chat);
    if (!status) status = wt_chat_render(chat, &(wt_chat_options){.messages_json = messages}, out);
    wt_chat_template_destroy(chat);
    return status;
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    char *out;
    assert_fails(render_text("{{ raise_exception('no system role') }}", "[]", &out), WT_ERR_BAD_ARG,
                 "chat template: no system role");
    assert_fails(render_text("a\n{{ x.y }}", "[]", &out), WT_ERR_BAD_ARG,
                 "chat template line 2: 'x' is undefined, and asked for 'y'");
    assert_fails(render_text("\n\n{% if 1 %}", "[]", &out), WT_ERR_FORMAT,
                 "chat template line 3: the text ends, want elif");
    assert_fails(render_text("{{ 1 1 }}", "[]", &out), WT_ERR_FORMAT, "chat template line 1: \"1\", want }}");
    assert_fails(render_text("{% include 'x' %}", "[]", &out), WT_ERR_FORMAT,
                 "chat template line 1: \"include\", want if, for, set, macro, call, with, filter, generation, break "
                 "or continue");
    assert_fails(render_text("", "{}", &out), WT_ERR_FORMAT, "chat: the messages are a dict, want an array");
    assert_int_equal(render_text("", "[", &out), WT_ERR_FORMAT);
    assert_int_equal(render_text("", NULL, &out), WT_ERR_BAD_ARG);
    assert_int_equal(render_text("\xff", "[]", &out), WT_ERR_FORMAT);
}

// `n` times `s` in a string to be freed
static char *repeated(const char *s, int n)
{
    char *all = malloc(strlen(s) * (size_t)n + 1), *at = all;
    assert_non_null(all);
    for (*all = 0; n; n--) at = stpcpy(at, s);
    return all;
}

static void refuses_deep_nesting(void **state)
{
    static const char *const parts[] = {"(",     "[",  "{% if 1 %}",   "{% for i in x %}",      "not ", "{{ -", "a[",
                                        "{'a':", "f(", "1 if 1 else ", "{% if 1 %}{% elif 1 %}"};
    (void)state;
    char *out;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *deep = repeated(parts[i], 5000), text[128 * 1024];
        snprintf(text, sizeof text, "%s%s", parts[i][0] == '{' && parts[i][1] != '\'' ? "" : "{{ ", deep);
        assert_int_equal(render_text(text, "[]", &out), WT_ERR_FORMAT);
        free(deep);
    }
    char *chain = repeated(".a", 20000), *text = NULL;
    assert_true(asprintf(&text, "{{ x%s }}", chain) > 0);
    assert_int_equal(render_text(text, "[]", &out), WT_ERR_BAD_ARG);
    free(chain);
    free(text);
    char *lists = repeated("[", 100000);
    assert_int_equal(render_text("", lists, &out), WT_ERR_FORMAT);
    free(lists);
}

static void ends_what_would_not_end(void **state)
{
    static const char *const endless[] = {
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 1000000000 }}",
        "{{ [0] * 1000000000 }}",
        "{{ range(100001) }}",
        "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
        "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
        "{% set ns = namespace(s='x') %}{% for i in range(99999) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ 2 ** 100 }}",
    };
    (void)state;
    char *out;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        wt_status status = render_text(endless[i], "[]", &out);
        if (status != WT_ERR_BAD_ARG && status != WT_ERR_NO_MEMORY) fail_msg("%s: status %d", endless[i], (int)status);
        assert_null(out);
    }
}

// repr(): what does not print is escaped, in Python's words.
static void lists_are_written_as_python_writes_them(void **state)
{
    char *out = NULL;
    (void)state;
    assert_ok(render_text("{{ messages }}",
                          "[\"a\\u00e9\\u00a0\\u00ad\\u2028\\u200b\\u3000\\ufeff\\ue000 \\u65e5\\ud83d\\ude00"
                          "\\udb40\\udc01\\u0085\\u007f\\u0001\\t\\\\'\"]", &out));
    assert_string_equal(out, "[\"a\xc3\xa9\\xa0\\xad\\u2028\\u200b\\u3000\\ufeff\\ue000 \xe6\x97\xa5\xf0\x9f\x98\x80"
                             "\\U000e0001\\x85\\x7f\\x01\\t\\\\'\"]");
    free(out);
}

static const char survivor[] =
    "{% macro m(a) %}<{{ a | trim }}>{% endmacro %}{% set ns = namespace(n=0) %}{% for x in messages %}"
    "{% set ns.n = ns.n + 1 %}{{ m(x.content) }}{{ x | tojson(indent=2) }}{{ strftime_now('%d %b') }}"
    "{{ messages | map(attribute='role') | sort | join(', ') | upper }}{% endfor %}{{ ns.n }}";

static wt_status render_survivor(void *user)
{
    return render_text(survivor, "[{\"role\":\"user\",\"content\":\" hi \"}]", user);
}
static void free_survivor(void *user) { free(*(char **)user); }

static void survives_failing_allocations(void **state)
{
    char *out = NULL;
    (void)state;
    assert_true(assert_survives_failing_alloc(render_survivor, free_survivor, &out) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renders_as_recorded),     cmocka_unit_test(renders_published_files_as_recorded),
        cmocka_unit_test(says_what_is_wrong),      cmocka_unit_test(refuses_deep_nesting),
        cmocka_unit_test(ends_what_would_not_end), cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(lists_are_written_as_python_writes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
