/// What libcyaml says about a file that does not fit its schema, as one message with a line.
#ifndef WT_YAML_MESSAGE_H
#define WT_YAML_MESSAGE_H

#include <cyaml/cyaml.h>
#include <warptone/status.h>

/// Filled while a file is loaded; start from zero.
typedef struct yaml_complaint {
    char cause[512];
    int line; ///< 0 = not known
} yaml_complaint;

/// How to load: complaints go to `complaint`, borrowed while the config is used.
cyaml_config_t yaml_config(yaml_complaint *complaint);

/// The key that no schema has, or NULL when the complaint is another one.
const char *yaml_unknown_key(const yaml_complaint *complaint);

/// WT_ERR_FORMAT with "path:line: cause".
wt_status yaml_refuse(const char *path, const yaml_complaint *complaint, cyaml_err_t error);

#endif
