/// A YAML text as libyaml's tree, with its marks: where things stand.
#ifndef WT_YAML_TREE_H
#define WT_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

/// False when it is no YAML. The caller ends with yaml_document_delete.
bool yaml_tree_load(const char *text, size_t length, yaml_document_t *document);

/// The value of a mapping's key, NULL when there is none; `name` is set to the key's own node and may be NULL.
yaml_node_t *yaml_tree_value(yaml_document_t *document, yaml_node_t *mapping, const char *key, yaml_node_t **name);

/// The k-th item of a sequence, or NULL.
yaml_node_t *yaml_tree_item(yaml_document_t *document, yaml_node_t *sequence, int k);

#endif
