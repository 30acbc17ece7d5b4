// libyaml tells where each scalar begins and ends, in characters; bytes there are replaced and nothing else is touched.
#include "preset_edit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/// A span of bytes, and what to put there.
typedef struct edit {
    size_t from, to;
    char text[4400]; // a path and a name are the longest
} edit;

/// Byte of the character `index`; libyaml counts characters after a byte order mark.
static size_t byte_of(const char *text, size_t length, size_t index)
{
    size_t at = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    for (; index && at < length; index--) do
            at++;
        while (at < length && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

static yaml_node_pair_t *pair_of(yaml_document_t *document, yaml_node_t *mapping, const char *key)
{
    if (!mapping || mapping->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(document, pair->key);
        if (name->type == YAML_SCALAR_NODE && !strcmp((const char *)name->data.scalar.value, key)) return pair;
    }
    return NULL;
}

static yaml_node_t *node_at(yaml_document_t *document, int index)
{
    yaml_node_pair_t *pair = pair_of(document, yaml_document_get_root_node(document), "nodes");
    yaml_node_t *nodes = pair ? yaml_document_get_node(document, pair->value) : NULL;
    if (!nodes || nodes->type != YAML_SEQUENCE_NODE) return NULL;
    yaml_node_item_t *item = nodes->data.sequence.items.start + index;
    return item < nodes->data.sequence.items.top ? yaml_document_get_node(document, *item) : NULL;
}

static bool plan_edit(yaml_document_t *document, const char *text, size_t length, int index, const char *setting,
                      const char *value, edit *e)
{
    yaml_node_t *node = node_at(document, index);
    yaml_node_pair_t *pair = pair_of(document, node, setting);
    if (pair) {
        const yaml_node_t *old = yaml_document_get_node(document, pair->value);
        e->from = byte_of(text, length, old->start_mark.index);
        e->to = byte_of(text, length, old->end_mark.index);
        snprintf(e->text, sizeof e->text, "%s", value);
        return old->type == YAML_SCALAR_NODE;
    }
    if (!(pair = pair_of(document, node, "node"))) return false;
    if (node->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
        const yaml_node_t *last = yaml_document_get_node(document, node->data.mapping.pairs.top[-1].value);
        e->from = e->to = byte_of(text, length, last->end_mark.index);
        snprintf(e->text, sizeof e->text, ", %s: %s", setting, value);
        return true;
    }
    const yaml_node_t *key = yaml_document_get_node(document, pair->key);
    e->from = byte_of(text, length, yaml_document_get_node(document, pair->value)->end_mark.index);
    while (e->from < length && text[e->from] != '\n') e->from++;
    e->to = e->from;
    snprintf(e->text, sizeof e->text, "\n%*s%s: %s", (int)key->start_mark.column, "", setting, value);
    return true;
}

static wt_status apply(char **text, size_t *length, const edit *e)
{
    const size_t put = strlen(e->text), after = *length - e->to;
    char *changed = malloc(e->from + put + after + 1);
    if (!changed) return wt_fail(WT_ERR_NO_MEMORY, "preset: text");
    memcpy(changed, *text, e->from);
    memcpy(changed + e->from, e->text, put);
    memcpy(changed + e->from + put, *text + e->to, after);
    *length = e->from + put + after;
    changed[*length] = 0;
    free(*text);
    *text = changed;
    return WT_OK;
}

wt_status preset_edit_set(char **text, size_t *length, int node, const char *setting, const char *value)
{
    yaml_parser_t parser;
    yaml_document_t document;
    edit e;
    bool found = false;
    if (!yaml_parser_initialize(&parser)) return wt_fail(WT_ERR_NO_MEMORY, "preset: parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)*text, *length);
    if (yaml_parser_load(&parser, &document)) {
        found = plan_edit(&document, *text, *length, node, setting, value, &e);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    if (!found) return wt_fail(WT_ERR_FORMAT, "preset: no place for %s of node %d in its text", setting, node + 1);
    return apply(text, length, &e);
}

void preset_edit_number(float value, char text[32])
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, 32, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) return;
    }
}
