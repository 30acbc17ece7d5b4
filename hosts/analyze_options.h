/// The command line of `warptone analyze`.
#ifndef WT_ANALYZE_OPTIONS_H
#define WT_ANALYZE_OPTIONS_H

#include "analyze.h"
#include "options.h"

typedef struct analyze_arguments {
    const char *features, *format, *backend, *vocoder, *quality, *family, *band, *edges, *design, *by, *denoiser,
        *noise, *distance, *aggregate, *window, *window_file, *padding, *mel_norm, *solver, *ref, *dct_norm,
        *delta_mode, *intervals, *filter_norm, *norm, *cqt_mode, *init, *harmonics, *weights, *fill_value, *beta;
    double fmin_hz, gamma_hz, octwidth, momentum; ///< below 0 = left out
    double tuning; ///< NAN = left out
    bool json, resume, quiet;
    analyze_options options;
} analyze_arguments;

/// What the command line may say, into `arguments`. Returns how many options there are; they stay until the next call.
int analyze_options_table(analyze_arguments *arguments, const wt_option **options);
/// What the texts among them mean, once the features are known. Errors: WT_ERR_BAD_ARG naming the option.
WT_CHECKED wt_status analyze_options_choose(analyze_arguments *arguments);

#endif
