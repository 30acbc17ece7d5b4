// Frequencies of RoPE, in float where transformers computes in float: an angle of position 1000 turns a rounding of the
// frequency into 1e-4 radians, and a model was trained with the rounded ones.
// Source: transformers, modeling_rope_utils.py, _compute_*_parameters(); llama2.c's run.c has the default kind.
#include <math.h>
#include <warptone/model_config.h>

static const double pi = 3.14159265358979323846;

/// f_k = theta^(-2k/d).
static float plain(double theta, int n_dims, int k)
{
    return 1.0f / powf((float)theta, (float)(2 * k) / (float)n_dims);
}

static float llama3(const wt_rope_config *r, float f)
{
    const float trained = (float)r->original_positions, turns = 2 * (float)pi / f;
    const float low = (float)r->low_freq_factor, high = (float)r->high_freq_factor, factor = (float)r->factor;
    if (turns < trained / high) return f;
    if (turns > trained / low) return f / factor;
    const float smooth = (trained / turns - low) / (high - low);
    return (1 - smooth) * (f / factor) + smooth * f;
}

/// The dimension whose pair makes `turns` turns in the positions that the model was trained with.
static double yarn_dimension(const wt_rope_config *r, double turns)
{
    return r->n_dims * log(r->original_positions / (turns * 2 * pi)) / (2 * log(r->theta));
}

static void yarn(const wt_rope_config *r, float *frequencies)
{
    double low = yarn_dimension(r, r->beta_fast), high = yarn_dimension(r, r->beta_slow);
    if (!r->no_truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, r->n_dims - 1);
    if (low == high) high += 0.001;
    for (int k = 0; k < r->n_dims / 2; k++) {
        const float blend = fminf(fmaxf(((float)k - (float)low) / (float)(high - low), 0), 1), f = frequencies[k];
        frequencies[k] = f / (float)r->factor * blend + f * (1 - blend);
    }
}

void wt_rope_frequencies(const wt_rope_config *r, const float *factors, int length, float *frequencies, float *scale)
{
    double theta = r->theta;
    if (r->kind == WT_ROPE_DYNAMIC && length > r->original_positions)
        theta *= pow(r->factor * length / r->original_positions - (r->factor - 1), r->n_dims / (r->n_dims - 2.0));
    *scale = r->kind == WT_ROPE_YARN ? (float)r->attention_factor : 1;
    for (int k = 0; k < r->n_dims / 2; k++) {
        const float f = frequencies[k] = plain(theta, r->n_dims, k);
        if (r->kind == WT_ROPE_LINEAR) frequencies[k] = f / (float)r->factor;
        if (r->kind == WT_ROPE_LLAMA3) frequencies[k] = llama3(r, f);
        if (r->kind == WT_ROPE_FACTORS) frequencies[k] = f / factors[k];
    }
    if (r->kind == WT_ROPE_YARN) yarn(r, frequencies);
}
