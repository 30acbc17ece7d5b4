// Slopes of other features, by name: "chroma_delta", "chroma_delta2" and so on. They are made of the feature's
// array on the calling thread, wherever that was made.

#include "analyze.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/delta.h>

static int width_of(const analyze_options *o) { return o->ops.delta.width ? o->ops.delta.width : 9; }

wt_delta_config analyze_delta_config(const analyze_options *o, int order)
{
    wt_delta_config config = o->ops.delta;
    config.order = order;
    return config;
}

int64_t analyze_delta_reach(const analyze_signal *s)
{
    return width_of(s->options) / 2 * (int64_t)analyze_hop(s->options);
}

wt_status analyze_check_wrap(const analyze_options *o)
{
    for (int k = 0; k < o->n_features && o->ops.delta.mode == WT_DELTA_WRAP; k++) {
        const analyze_feature *f = o->features[k];
        if (f->tiles == ANALYZE_TILES && (f->of || f->reach == analyze_delta_reach))
            return wt_fail(WT_ERR_UNSUPPORTED,
                           "%s: --delta-mode wrap wants a signal's end beside its beginning, and one as long as this "
                           "is worked on in tiles",
                           f->name);
    }
    return WT_OK;
}

wt_status analyze_slope_of(const char *name, const analyze_feature *of, int order, analyze_options *options)
{
    const analyze_array *like = analyze_like_of(of->name);
    if (!like || like->layout != ANALYZE_FRAMES || like->type != ANALYZE_F32)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s is not one array of real numbers a frame, which slopes are of", name,
                       of->name);
    if (options->n_features == ANALYZE_MAX_FEATURES)
        return wt_fail(WT_ERR_BAD_ARG, "analyze: more than %d features", ANALYZE_MAX_FEATURES);
    analyze_feature *slope = malloc(sizeof *slope + strlen(name) + 1);
    if (!slope) return wt_fail(WT_ERR_NO_MEMORY, "%s: feature", name);
    *slope = *of;
    slope->of = of, slope->order = order;
    slope->name = strcpy((char *)(slope + 1), name);
    options->slopes[options->n_slopes++] = slope;
    options->features[options->n_features++] = slope;
    return WT_OK;
}

void analyze_slopes_free(analyze_options *options)
{
    for (int k = 0; k < options->n_slopes; k++) free(options->slopes[k]);
    options->n_slopes = 0;
}

wt_status analyze_differentiate(const analyze_options *o, const analyze_feature *slope, analyze_result *result,
                                int first)
{
    const wt_delta_config config = analyze_delta_config(o, slope->order);
    for (int k = first; k < result->n_arrays; k++) {
        analyze_array *a = &result->arrays[k];
        const int64_t n = analyze_n_columns(a);
        if (n < width_of(o) && config.mode == WT_DELTA_INTERP)
            return wt_fail(WT_ERR_LENGTH, "%s: %lld frames, want %d or more", slope->name, (long long)n, width_of(o));
        void *out;
        size_t mapped;
        wt_status status =
            analyze_take(result->maps, sizeof(float) * (size_t)analyze_count(a), slope->name, &out, &mapped);
        if (status) return status;
        status = wt_delta_run(&config, a->data, analyze_n_rows(a), n, out);
        analyze_let_go(a->data, a->mapped);
        a->data = out, a->mapped = mapped, a->name = slope->name, a->unit = "";
        if (status) return status;
    }
    return WT_OK;
}
