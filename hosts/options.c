#include "options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>

enum { MAX_OPTIONS = 255, COLUMN = 26 };

static const wt_option help_option = {.name = "help", .letter = 'h', .help = "this text"};

static const wt_option *find_letter(const wt_option *options, int n_options, char letter)
{
    for (int k = 0; k < n_options; k++)
        if (options[k].letter && options[k].letter == letter) return &options[k];
    return letter == 'h' ? &help_option : NULL;
}

static const wt_option *find_name(const wt_option *options, int n_options, const char *name, size_t length)
{
    for (int k = 0; k < n_options; k++)
        if (strlen(options[k].name) == length && !memcmp(options[k].name, name, length)) return &options[k];
    return length == 4 && !memcmp(name, "help", 4) ? &help_option : NULL;
}

static wt_status unknown(const wt_option *options, int n_options, const char *given, size_t length)
{
    const char *names[MAX_OPTIONS + 1];
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), given);
    int n_names = n_options < MAX_OPTIONS ? n_options : MAX_OPTIONS;
    for (int k = 0; k < n_names; k++) names[k] = options[k].name;
    names[n_names++] = help_option.name;
    return wt_fail(WT_ERR_BAD_ARG, "unknown option --%s; the nearest is --%s", name,
                   wt_nearest_name(name, names, n_names));
}

static wt_status bad_value(const wt_option *o, const char *text, const char *kind)
{
    if (o->min == 0 && o->max == 0)
        return wt_fail(WT_ERR_BAD_ARG, "option --%s is \"%s\", want %s", o->name, text, kind);
    return wt_fail(WT_ERR_BAD_ARG, "option --%s is \"%s\", want %s in %.10g..%.10g", o->name, text, kind, o->min,
                   o->max);
}

static bool in_range(const wt_option *o, double value)
{
    return (o->min == 0 && o->max == 0) || (value >= o->min && value <= o->max);
}

static wt_status take_value(const wt_option *o, const char *text)
{
    char *end = NULL;
    errno = 0;
    switch (o->kind) {
    case WT_OPTION_FLAG:
        break;
    case WT_OPTION_TEXT:
        *(const char **)o->value = text;
        break;
    case WT_OPTION_TEXTS: {
        wt_option_texts *texts = o->value;
        if (texts->n == WT_OPTION_MAX_TEXTS)
            return wt_fail(WT_ERR_BAD_ARG, "option --%s is given more than %d times", o->name, WT_OPTION_MAX_TEXTS);
        texts->at[texts->n++] = text;
        break;
    }
    case WT_OPTION_INT: {
        long value = strtol(text, &end, 10);
        if (end == text || *end || errno || value < INT_MIN || value > INT_MAX || !in_range(o, (double)value))
            return bad_value(o, text, "an integer");
        *(int *)o->value = (int)value;
        break;
    }
    case WT_OPTION_NUMBER: {
        double value = strtod(text, &end);
        if (end == text || *end || !isfinite(value) || !in_range(o, value)) return bad_value(o, text, "a number");
        *(double *)o->value = value;
        break;
    }
    }
    return WT_OK;
}

/// Use `attached` (NULL = none), else the next argument, as the option's value.
static wt_status take_option(const wt_option *o, const char *attached, int argc, char **argv, int *at, bool *help)
{
    if (o->kind == WT_OPTION_FLAG) {
        if (attached)
            return wt_fail(WT_ERR_BAD_ARG, "option --%s takes no value, but \"%s\" is given", o->name, attached);
        *(o == &help_option ? help : (bool *)o->value) = true;
        return WT_OK;
    }
    if (!attached && *at + 1 >= argc)
        return wt_fail(WT_ERR_BAD_ARG, "option --%s needs a value: --%s %s", o->name, o->name, o->argument);
    return take_value(o, attached ? attached : argv[++*at]);
}

static wt_status take_long(const wt_option *options, int n_options, int argc, char **argv, int *at, bool *help)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const wt_option *o = find_name(options, n_options, name, length);
    if (!o) return unknown(options, n_options, name, length);
    return take_option(o, equals ? equals + 1 : NULL, argc, argv, at, help);
}

/// "-v", "-j4", and flags in a row, "-vj4".
static wt_status take_letters(const wt_option *options, int n_options, int argc, char **argv, int *at, bool *help)
{
    for (const char *letter = argv[*at] + 1; *letter; letter++) {
        const wt_option *o = find_letter(options, n_options, *letter);
        if (!o) return wt_fail(WT_ERR_BAD_ARG, "unknown option -%c; --help lists what there is", *letter);
        bool takes_rest = o->kind != WT_OPTION_FLAG;
        wt_status status = take_option(o, takes_rest && letter[1] ? letter + 1 : NULL, argc, argv, at, help);
        if (status || takes_rest) return status;
    }
    return WT_OK;
}

wt_status wt_options_parse(const wt_option *options, int n_options, int *argc, char **argv, bool *help)
{
    int n_left = 1, at = 1;
    *help = false;
    for (; at < *argc; at++) {
        const char *given = argv[at];
        if (!strcmp(given, "--")) break;
        if (given[0] != '-' || !given[1]) {
            argv[n_left++] = argv[at];
            continue;
        }
        wt_status status = given[1] == '-' ? take_long(options, n_options, *argc, argv, &at, help)
                                           : take_letters(options, n_options, *argc, argv, &at, help);
        if (status) return status;
    }
    for (at++; at < *argc; at++) argv[n_left++] = argv[at]; // after "--"
    *argc = n_left;
    argv[n_left] = NULL;
    return WT_OK;
}

static void print_option(FILE *out, const wt_option *o)
{
    int width = fprintf(out, o->letter ? "  -%c, " : "      ", o->letter);
    width += fprintf(out, "--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    fprintf(out, "%*s%s\n", width < COLUMN ? COLUMN - width : 1, "", o->help);
}

void wt_options_print(FILE *out, const wt_option *options, int n_options)
{
    fprintf(out, "\noptions:\n");
    for (int k = 0; k < n_options; k++) print_option(out, &options[k]);
    print_option(out, &help_option);
}

wt_status wt_options_list(const char *what, const char *text, int min, int max, int *values, int max_values,
                          int *n_values)
{
    *n_values = 0;
    for (const char *at = text;; at++) {
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || value < min || value > max)
            return wt_fail(WT_ERR_BAD_ARG, "%s is \"%s\", want integers in %d..%d with commas between", what, text, min,
                           max);
        if (*n_values == max_values)
            return wt_fail(WT_ERR_BAD_ARG, "%s is \"%s\", want at most %d values", what, text, max_values);
        values[(*n_values)++] = (int)value;
        if (!*end) return WT_OK;
        at = end;
    }
}

/// "a b c" as "a, b or c".
static void list_words(const char *words, char *text, size_t text_bytes)
{
    size_t at = 0;
    for (const char *c = words; *c && at + 1 < text_bytes; c++) {
        const char letter[] = {*c, 0};
        const char *part = *c != ' ' ? letter : strchr(c + 1, ' ') ? ", " : " or ";
        at += (size_t)snprintf(text + at, text_bytes - at, "%s", part);
    }
}

int wt_options_word(const char *option, const char *text, const char *words, wt_status *status)
{
    if (!text) return 0;
    const char *word = words;
    for (int k = 0;; k++) {
        const size_t length = strcspn(word, " ");
        if (length == strlen(text) && !memcmp(word, text, length)) return k;
        if (!word[length]) break;
        word += length + 1;
    }
    char wanted[160];
    list_words(words, wanted, sizeof wanted);
    if (!*status) *status = wt_fail(WT_ERR_BAD_ARG, "--%s is \"%s\", want %s", option, text, wanted);
    return 0;
}

wt_status wt_options_backend(const char *text, wt_backend *backend)
{
    wt_status status = WT_OK;
    *backend = (wt_backend)wt_options_word("backend", text, "auto cuda cpu", &status);
    return status;
}
