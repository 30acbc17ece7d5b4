// libyaml says where each node of the tree begins and ends; what is new is spliced in there. Its marks count
// characters, not bytes, from behind a byte order mark. Each edit is read again before it is given: what YAML's many
// forms make of it is seen there, and not by who loads the preset next.
#include "preset_edit.h"
#include "preset_midi.h"
#include "yaml_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/number.h>

// ---- text

static size_t offset_of(const char *text, yaml_mark_t mark)
{
    size_t at = strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3;
    for (size_t n = 0; n < mark.index && text[at]; n++) do
            at++;
        while ((text[at] & 0xc0) == 0x80);
    return at;
}

/// Behind the line that `at` stands in.
static size_t line_end(const char *text, size_t at)
{
    at += strcspn(text + at, "\n");
    return text[at] ? at + 1 : at;
}

/// A copy of `text` with [begin, end) replaced; NULL without memory.
static char *spliced(const char *text, size_t begin, size_t end, const char *with)
{
    const size_t rest = strlen(text + end), length = strlen(with);
    char *made = malloc(begin + length + rest + 1);
    if (!made) return NULL;
    memcpy(made, text, begin);
    memcpy(made + begin, with, length);
    memcpy(made + begin + length, text + end, rest + 1);
    return made;
}

/// The same, in place of the text that was malloc'ed.
static bool splice(char **text, size_t begin, size_t end, const char *with)
{
    char *made = spliced(*text, begin, end, with);
    if (!made) return false;
    free(*text);
    *text = made;
    return true;
}

static const char *newline_of(const char *text) { return strstr(text, "\r\n") ? "\r\n" : "\n"; }

/// Insert a line at `at`, where a line begins or the text ends.
static bool insert_line(char **text, size_t at, size_t indent, const char *content)
{
    char *line = NULL;
    if (asprintf(&line, "%*s%s%s", (int)indent, "", content, newline_of(*text)) < 0) return false;
    const bool good = splice(text, at, at, line);
    free(line);
    return good;
}

static bool end_last_line(char **text)
{
    const size_t length = strlen(*text);
    return (length && (*text)[length - 1] == '\n') || splice(text, length, length, newline_of(*text));
}

static wt_status refuse(const char *path, const char *what)
{
    return wt_fail(WT_ERR_FORMAT, "%s: %s cannot be written into this text; write it by hand", path, what);
}

// ---- a parameter

static bool is_flow(const yaml_node_t *node)
{
    return node->type == YAML_MAPPING_NODE ? node->data.mapping.style == YAML_FLOW_MAPPING_STYLE
                                           : node->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE;
}

/// Where the last value of a mapping ends.
static size_t last_value_end(yaml_document_t *document, const char *text, const yaml_node_t *mapping)
{
    return offset_of(text, yaml_document_get_node(document, mapping->data.mapping.pairs.top[-1].value)->end_mark);
}

static bool insert_pair(yaml_document_t *document, char **text, yaml_node_t *mapping, const char *pair)
{
    char flow[128];
    if (is_flow(mapping)) {
        const size_t at = last_value_end(document, *text, mapping);
        snprintf(flow, sizeof flow, ", %s", pair);
        return splice(text, at, at, flow);
    }
    yaml_node_t *name = NULL, *type = yaml_tree_value(document, mapping, "node", &name);
    if (!end_last_line(text)) return false;
    return insert_line(text, line_end(*text, offset_of(*text, type->end_mark)), name->start_mark.column, pair);
}

/// Does `text` say that the parameter has this value?
static bool says_param(const char *path, const char *text, int node, const char *param, float value)
{
    wt_preset *preset;
    bool found = false;
    if (wt_preset_parse(path, text, strlen(text), &preset)) return false;
    const wt_node_desc *desc = &wt_preset_chain(preset)->nodes[node];
    for (int k = 0; k < desc->n_settings; k++)
        found |= !strcmp(desc->settings[k].name, param) &&
                 (float)wt_number_read(desc->settings[k].text, NULL) == value;
    wt_preset_destroy(preset);
    return found;
}

wt_status preset_edit_param(const char *path, char **text, int node, const char *param, float value)
{
    yaml_document_t document;
    char number[32], pair[112], *made = strdup(*text);
    if (!made) return wt_fail(WT_ERR_NO_MEMORY, "%s: text", path);
    if (!yaml_tree_load(made, strlen(made), &document)) {
        free(made);
        return refuse(path, param);
    }
    yaml_node_t *nodes = yaml_tree_value(&document, yaml_document_get_root_node(&document), "nodes", NULL);
    yaml_node_t *mapping = yaml_tree_item(&document, nodes, node);
    bool good = false;
    const bool found = yaml_tree_value(&document, mapping, "node", NULL) != NULL;
    preset_number_format(value, number);
    snprintf(pair, sizeof pair, "%.64s: %s", param, number);
    if (found) {
        yaml_node_t *old = yaml_tree_value(&document, mapping, param, NULL);
        good = old ? splice(&made, offset_of(made, old->start_mark), offset_of(made, old->end_mark), number)
                   : insert_pair(&document, &made, mapping, pair);
    }
    yaml_document_delete(&document);
    wt_status status = !found  ? wt_fail(WT_ERR_NOT_FOUND, "%s: no node %d to edit", path, node + 1)
                       : !good ? wt_fail(WT_ERR_NO_MEMORY, "%s: text", path)
                       : !says_param(path, made, node, param, value) ? refuse(path, param)
                                                                     : WT_OK;
    if (status) {
        free(made);
        return status;
    }
    free(*text);
    *text = made;
    return WT_OK;
}

// ---- the MIDI map

/// Rows of the text against rows that are wanted: which stay, which are new.
typedef struct plan {
    bool stays[PRESET_MAX_MIDI], there[PRESET_MAX_MIDI];
    int n_old, n_stay;
} plan;

static void compare(plan *p, const wt_midi_row *old, int n_old, const wt_midi_row *rows, int n_rows)
{
    *p = (plan){.n_old = n_old};
    for (int k = 0; k < n_old; k++)
        for (int j = 0; j < n_rows && !p->stays[k]; j++)
            if (!p->there[j] && preset_midi_equal(&old[k], &rows[j])) p->stays[k] = p->there[j] = true, p->n_stay++;
}

/// All rows on one line, "[{...}, {...}]"; caller frees.
static char *flow_map(const wt_midi_row *rows, int n_rows)
{
    char *made = strdup("["), one[PRESET_MIDI_TEXT];
    for (int k = 0; k < n_rows && made; k++) {
        preset_midi_format(&rows[k], one);
        if (k && !splice(&made, strlen(made), strlen(made), ", ")) break;
        if (!splice(&made, strlen(made), strlen(made), one)) break;
    }
    if (made) splice(&made, strlen(made), strlen(made), "]");
    return made;
}

/// A row's lines in the text: from its dash's line to behind its last value's.
static void item_lines(yaml_document_t *document, const char *text, yaml_node_t *item, size_t *begin, size_t *end)
{
    size_t dash = offset_of(text, item->start_mark);
    const size_t last = is_flow(item) ? offset_of(text, item->end_mark) : last_value_end(document, text, item);
    while (dash > 0 && text[dash] != '-') dash--;
    *begin = dash;
    while (*begin > 0 && text[*begin - 1] != '\n') --*begin;
    *end = line_end(text, last);
}

static bool edit_block(yaml_document_t *document, char **text, yaml_node_t *name, yaml_node_t *map, const plan *p,
                       const wt_midi_row *rows, int n_rows)
{
    size_t begin, end, at;
    char one[PRESET_MIDI_TEXT], line[PRESET_MIDI_TEXT + 2];
    item_lines(document, *text, yaml_tree_item(document, map, p->n_old - 1), &begin, &at);
    bool good = true;
    for (int k = n_rows - 1; k >= 0 && good; k--) {
        if (p->there[k]) continue;
        preset_midi_format(&rows[k], one);
        snprintf(line, sizeof line, "- %s", one);
        good = insert_line(text, at, map->start_mark.column, line);
    }
    // from behind, so that what stands before keeps its place
    for (int k = p->n_old - 1; k >= 0 && good; k--) {
        if (p->stays[k]) continue;
        item_lines(document, *text, yaml_tree_item(document, map, k), &begin, &end);
        good = splice(text, begin, end, "");
    }
    at = offset_of(*text, name->start_mark);
    return good && (n_rows || splice(text, at, line_end(*text, at), ""));
}

static bool edit_map(yaml_document_t *document, char **text, const plan *p, const wt_midi_row *rows, int n_rows)
{
    yaml_node_t *name = NULL, *root = yaml_document_get_root_node(document);
    yaml_node_t *map = yaml_tree_value(document, root, "midi", &name);
    if (!is_flow(root) && !end_last_line(text)) return false;
    if (map && !is_flow(map) && !is_flow(root)) return edit_block(document, text, name, map, p, rows, n_rows);
    if (!map && !is_flow(root)) {
        char one[PRESET_MIDI_TEXT], line[PRESET_MIDI_TEXT + 2];
        bool good = insert_line(text, strlen(*text), 0, "midi:");
        for (int k = 0; k < n_rows && good; k++) {
            preset_midi_format(&rows[k], one);
            snprintf(line, sizeof line, "- %s", one);
            good = insert_line(text, strlen(*text), 2, line);
        }
        return good;
    }
    char *flow = flow_map(rows, n_rows);
    bool good = flow != NULL;
    if (good && map) {
        good = splice(text, offset_of(*text, map->start_mark), offset_of(*text, map->end_mark), flow);
    } else if (good) {
        const size_t at = last_value_end(document, *text, root);
        good = splice(text, at, at, flow) && splice(text, at, at, ", midi: ");
    }
    free(flow);
    return good;
}

static bool says_rows(const char *path, const char *text, const wt_midi_row *rows, int n_rows)
{
    wt_preset *preset;
    plan p;
    int n;
    if (wt_preset_parse(path, text, strlen(text), &preset)) return false;
    const wt_midi_row *got = wt_preset_midi(preset, &n);
    compare(&p, got, n, rows, n_rows);
    wt_preset_destroy(preset);
    return n == n_rows && p.n_stay == n_rows;
}

wt_status preset_edit_midi(const char *path, char **text, const wt_midi_row *rows, int n_rows)
{
    yaml_document_t document;
    wt_preset *preset;
    plan p;
    int n_old;
    if (n_rows > PRESET_MAX_MIDI)
        return wt_fail(WT_ERR_FULL, "%s: %d MIDI rows, want at most %d", path, n_rows, PRESET_MAX_MIDI);
    wt_status status = wt_preset_parse(path, *text, strlen(*text), &preset);
    if (status) return status;
    const wt_midi_row *old = wt_preset_midi(preset, &n_old);
    compare(&p, old, n_old, rows, n_rows);
    wt_preset_destroy(preset);
    if (p.n_stay == n_rows && n_rows == n_old) return WT_OK;
    char *made = strdup(*text);
    if (!made || !yaml_tree_load(made, strlen(made), &document)) {
        free(made);
        return wt_fail(WT_ERR_NO_MEMORY, "%s: text", path);
    }
    const bool good = edit_map(&document, &made, &p, rows, n_rows);
    yaml_document_delete(&document);
    if (!good)
        status = wt_fail(WT_ERR_NO_MEMORY, "%s: text", path);
    else if (!says_rows(path, made, rows, n_rows))
        status = refuse(path, "the MIDI map");
    if (status) {
        free(made);
        return status;
    }
    free(*text);
    *text = made;
    return WT_OK;
}
