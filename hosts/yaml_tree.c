#include "yaml_tree.h"

#include <string.h>

bool yaml_tree_load(const char *text, size_t length, yaml_document_t *document)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    const bool good = yaml_parser_load(&parser, document);
    yaml_parser_delete(&parser);
    return good;
}

yaml_node_t *yaml_tree_value(yaml_document_t *document, yaml_node_t *mapping, const char *key, yaml_node_t **name)
{
    if (!mapping || mapping->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
        yaml_node_t *found = yaml_document_get_node(document, pair->key);
        if (found->type != YAML_SCALAR_NODE || strcmp((const char *)found->data.scalar.value, key)) continue;
        if (name) *name = found;
        return yaml_document_get_node(document, pair->value);
    }
    return NULL;
}

yaml_node_t *yaml_tree_item(yaml_document_t *document, yaml_node_t *sequence, int k)
{
    if (!sequence || sequence->type != YAML_SEQUENCE_NODE || k < 0) return NULL;
    if (k >= sequence->data.sequence.items.top - sequence->data.sequence.items.start) return NULL;
    return yaml_document_get_node(document, sequence->data.sequence.items.start[k]);
}
