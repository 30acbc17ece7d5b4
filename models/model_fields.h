/// Fields of a JSON object, read one after another; the first that is wrong ends it, and is named. null is absent.
#ifndef WT_MODEL_FIELDS_H
#define WT_MODEL_FIELDS_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <warptone/model_config.h>

#include "json.h"

typedef struct wt__fields {
    const char *file; ///< stands in messages, with the part of the file: "config.json: rope_scaling"
    const json_t *object;
    wt_status status; ///< of the first wrong field; all later calls return what stands for an absent one
} wt__fields;

#define WT__REQUIRED      INT_MIN
#define WT__REQUIRED_REAL (-INFINITY)

/// A number in min .. max; `otherwise` when absent.
int wt__field_int(wt__fields *f, const char *key, int min, int max, int otherwise);
double wt__field_real(wt__fields *f, const char *key, double min, double max, double otherwise);
bool wt__field_bool(wt__fields *f, const char *key, bool otherwise);
/// Borrowed; NULL when absent.
const char *wt__field_text(wt__fields *f, const char *key);
/// An object or array of that type; NULL when absent.
const json_t *wt__field_of(wt__fields *f, const char *key, json_type type);

/// "quantization_config" (or what stands for it) of a config.json.
wt_status wt__model_quant_read(wt__fields *f, wt_quant_config *quant);

/// What must hold between the fields, whoever wrote them.
wt_status wt__model_config_check(const char *file, const wt_model_config *config);

/// yarn's factor of cosines and sines when the file does not say it.
double wt__yarn_attention_factor(double factor, double mscale, double mscale_all_dim);

enum {
    WT__MAX_WIDTH = 1 << 20, ///< of a vector
    WT__MAX_HEADS = 4096,
    WT__MAX_EXPERTS = 4096,
    WT__MAX_VOCAB = 1 << 24,
    WT__MAX_POSITIONS = 1 << 28,
};

#endif
