#include "chain_setup.h"

#include <warptone/names.h>
#include <warptone/number.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const wt_setting *find_setting(const wt_node_setup *setup, const char *name)
{
    for (int k = 0; k < setup->n_settings; k++)
        if (strcmp(setup->settings[k].name, name) == 0) return &setup->settings[k];
    return NULL;
}

static const wt_option_info *find_option(const wt_node_type *type, const char *name)
{
    for (int k = 0; k < type->n_options; k++)
        if (strcmp(type->options[k].name, name) == 0) return &type->options[k];
    return NULL;
}

static int find_param(const wt_node_type *type, const char *name)
{
    for (int p = 0; p < wt_node_type_n_params(type); p++)
        if (strcmp(wt_node_type_param(type, p)->name, name) == 0) return p;
    return -1;
}

static wt_status parse_number(const wt_setting *setting, double *value)
{
    char *end = NULL;
    *value = setting->value;
    if (!setting->text) return WT_OK;
    errno = 0;
    *value = wt_number_read(setting->text, &end);
    if (end == setting->text || *end || errno)
        return wt_fail(WT_ERR_BAD_ARG, "%s is '%s', want a number", setting->name, setting->text);
    return WT_OK;
}

static int choice_index(const char *choices, const char *text)
{
    size_t length = strlen(text);
    int index = 0;
    for (const char *c = choices;; c++, index++) {
        const char *end = strchrnul(c, '|');
        if ((size_t)(end - c) == length && strncmp(c, text, length) == 0) return index;
        if (!*end) return -1;
        c = end;
    }
}

void wt__setup_prefix(const wt_node_setup *setup)
{
    wt_fail(WT_ERR_BAD_ARG, "%s: %s: %s", setup->chain, setup->id, wt_last_error());
}

static wt_status refuse_unknown(wt_node_setup *setup, const char *name)
{
    const char *names[64];
    int n = 0;
    for (int k = 0; k < wt_node_type_n_params(setup->type); k++) names[n++] = wt_node_type_param(setup->type, k)->name;
    for (int k = 0; k < setup->type->n_options; k++) names[n++] = setup->type->options[k].name;
    setup->fault = name;
    return wt_fail(WT_ERR_NOT_FOUND, "%s: %s: a %s has no '%s'; the nearest is '%s'", setup->chain, setup->id,
                   setup->type->name, name, wt_nearest_name(name, names, n));
}

static wt_status check_setting(wt_node_setup *setup, const wt_setting *setting)
{
    const int p = find_param(setup->type, setting->name);
    const wt_param_info *param = wt_node_type_param(setup->type, p);
    const wt_option_info *option = find_option(setup->type, setting->name);
    if (!param && !option) return refuse_unknown(setup, setting->name);
    setup->fault = setting->name;
    if (option && option->choices && setting->text && choice_index(option->choices, setting->text) < 0)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s: %s is '%s', want %s", setup->chain, setup->id, setting->name,
                       setting->text, option->choices);
    if (!param) return WT_OK;
    double value;
    const bool is_bypass = p == setup->type->n_params;
    if (is_bypass && setting->text && (!strcmp(setting->text, "true") || !strcmp(setting->text, "false"))) {
        setup->bypassed = *setting->text == 't';
        return WT_OK;
    }
    if (parse_number(setting, &value)) {
        wt__setup_prefix(setup);
        return WT_ERR_BAD_ARG;
    }
    if (!((float)value >= param->min && (float)value <= param->max)) // a float, as the limits are: 0.1 is within 0.1f
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s: %s is %g, want %g..%g%s%s", setup->chain, setup->id, setting->name,
                       value, (double)param->min, (double)param->max, *param->unit ? " " : "", param->unit);
    if (is_bypass)
        setup->bypassed = value >= 0.5;
    else
        setup->values[p] = (float)value;
    return WT_OK;
}

wt_status wt__setup_check(wt_node_setup *setup)
{
    for (int p = 0; p < setup->type->n_params; p++) setup->values[p] = setup->type->params[p].standard;
    for (int k = 0; k < setup->n_settings; k++) {
        wt_status status = check_setting(setup, &setup->settings[k]);
        if (status) return status;
    }
    for (int k = 0; k < setup->type->n_options; k++) {
        const wt_option_info *option = &setup->type->options[k];
        if (option->standard || find_setting(setup, option->name)) continue;
        setup->fault = "type";
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s: %s is missing, want %s", setup->chain, setup->id, option->name,
                       option->choices ? option->choices : option->help);
    }
    setup->fault = "type";
    return WT_OK;
}

double wt_setup_rate_hz(const wt_node_setup *setup) { return setup->config->rate_hz; }
int wt_setup_n_inputs(const wt_node_setup *setup) { return setup->n_inputs; }
int wt_setup_channels(const wt_node_setup *setup, int input) { return setup->input_channels[input]; }
int wt_setup_side_channels(const wt_node_setup *setup) { return setup->side_channels; }
int wt_setup_stagger(const wt_node_setup *setup) { return setup->stagger; }

const char *wt_setup_text(const wt_node_setup *setup, const char *option)
{
    const wt_setting *setting = find_setting(setup, option);
    const wt_option_info *info = find_option(setup->type, option);
    return setting && setting->text ? setting->text : info && info->standard ? info->standard : "";
}

int wt_setup_choice(const wt_node_setup *setup, const char *option)
{
    return choice_index(find_option(setup->type, option)->choices, wt_setup_text(setup, option));
}

wt_status wt_setup_number(const wt_node_setup *setup, const char *option, double min, double max, double *value)
{
    const wt_setting *given = find_setting(setup, option);
    wt_setting standard = {.name = option, .text = wt_setup_text(setup, option)};
    ((wt_node_setup *)setup)->fault = option;
    wt_status status = parse_number(given ? given : &standard, value);
    if (status) return status;
    if (!(*value >= min && *value <= max))
        return wt_fail(WT_ERR_BAD_ARG, "%s is %g, want %g..%g", option, *value, min, max);
    return WT_OK;
}

float wt_setup_param(const wt_node_setup *setup, const char *param)
{
    const int p = find_param(setup->type, param);
    return p >= 0 && p < setup->type->n_params ? setup->values[p] : 0;
}

wt_status wt_setup_load_audio(const wt_node_setup *setup, const char *path, float **audio, int *channels, int *n_frames)
{
    if (!setup->config->load)
        return wt_fail(WT_ERR_UNSUPPORTED, "reads '%s', but this program gave the chain no file loader", path);
    return setup->config->load(setup->config->load_user, path, setup->config->rate_hz, audio, channels, n_frames);
}
