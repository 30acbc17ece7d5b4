#include <warptone/mel.h>

#include <math.h>

// Slaney's scale: linear to 1 kHz in steps of 200 / 3 Hz, then 27 steps to a factor of 6.4.
static double to_mel(double hz, bool htk)
{
    if (htk) return 2595 * log10(1 + hz / 700);
    return hz < 1000 ? hz / (200.0 / 3) : 15 + log(hz / 1000) / (log(6.4) / 27);
}

static double to_hz(double mel, bool htk)
{
    if (htk) return 700 * (pow(10, mel / 2595) - 1);
    return mel < 15 ? mel * (200.0 / 3) : 1000 * exp(log(6.4) / 27 * (mel - 15));
}

static wt_status resolve(wt_mel_bank_config *c)
{
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->n_fft) c->n_fft = 2048;
    if (!c->n_mels) c->n_mels = 128;
    if (!c->fmax_hz) c->fmax_hz = c->rate_hz / 2.0;
    if (c->rate_hz < 1) return wt_fail(WT_ERR_BAD_ARG, "mel: rate %d Hz, want 1 or more", c->rate_hz);
    if (c->n_fft < 1 || c->n_fft > 1 << 22)
        return wt_fail(WT_ERR_BAD_ARG, "mel: n_fft %d, want 1..%d", c->n_fft, 1 << 22);
    if (c->n_mels < 1 || c->n_mels > WT_MEL_MAX_MELS)
        return wt_fail(WT_ERR_BAD_ARG, "mel: %d bands, want 1..%d", c->n_mels, WT_MEL_MAX_MELS);
    if (!(c->fmax_hz <= c->rate_hz / 2.0))
        return wt_fail(WT_ERR_BAD_ARG, "mel: fmax %g Hz, want at most %g (half the rate)", c->fmax_hz,
                       c->rate_hz / 2.0);
    if (!(c->fmin_hz >= 0 && c->fmin_hz < c->fmax_hz))
        return wt_fail(WT_ERR_BAD_ARG, "mel: fmin %g Hz, want 0 or more and below %g", c->fmin_hz, c->fmax_hz);
    if ((unsigned)c->norm > WT_MEL_NORM_INF)
        return wt_fail(WT_ERR_BAD_ARG, "mel: norm %d, want 0..%d", (int)c->norm, WT_MEL_NORM_INF);
    return WT_OK;
}

static void normalise(double *row, int bins, wt_mel_norm norm, double width_hz)
{
    double size = 0;
    for (int k = 0; k < bins; k++) {
        if (norm == WT_MEL_NORM_1) size += row[k];
        if (norm == WT_MEL_NORM_2) size += row[k] * row[k];
        if (norm == WT_MEL_NORM_INF) size = fmax(size, row[k]);
    }
    if (norm == WT_MEL_NORM_2) size = sqrt(size);
    if (norm == WT_MEL_NORM_SLANEY) size = width_hz / 2;
    for (int k = 0; k < bins && size > 0 && norm != WT_MEL_NORM_NONE; k++) row[k] /= size;
}

wt_status wt_mel_bank_fill(const wt_mel_bank_config *config, double *bank)
{
    wt_mel_bank_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    const int bins = c.n_fft / 2 + 1;
    const double low = to_mel(c.fmin_hz, c.htk), high = to_mel(c.fmax_hz, c.htk);
    double hz[3];
    for (int m = 0; m < c.n_mels; m++, bank += bins) {
        for (int i = 0; i < 3; i++) hz[i] = to_hz(low + (high - low) * (m + i) / (c.n_mels + 1), c.htk);
        for (int k = 0; k < bins; k++) {
            double at = (double)k * c.rate_hz / c.n_fft;
            bank[k] = fmax(0, fmin((at - hz[0]) / (hz[1] - hz[0]), (hz[2] - at) / (hz[2] - hz[1])));
        }
        normalise(bank, bins, c.norm, hz[2] - hz[0]);
    }
    return WT_OK;
}
